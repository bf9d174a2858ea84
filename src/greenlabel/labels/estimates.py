"""How many of the rows filled in are right, and between which two shares that lies: one rule for every method.

Held-out labelled rows and the confidence on the rows filled in are readings of the same share:

    a    share of the k held-out rows that are right
    b    mean confidence on the N rows filled in
    a_m  a again, each class weighted by how often it is the answer there          (labels drawn class by class only)

The estimate is their mean, to which half a right and half a wrong row are added: few rows never earn certainty. Its
variance is that of a share, of k / 1.25 held-out and of N filled rows, and the square of half the range of the
readings: where they disagree, less is known. The interval is the beta distribution of that mean and variance (Jeffreys'
interval where the readings agree and N is large), and holds whole rows.

Labels drawn at random miss classes. A class of one label is wrong when that is hidden, as are rows of a class without
any: the share g of such labels estimates the share of such rows (Good-Turing), and readings are multiplied by 1 - g.
Labels drawn class by class, of which the largest number comes up again and again, miss none; but a row that is hidden
leaves its class one label less than the rows filled in have, so a wrong answer counts ((l_j - 1) / l_j)^(1/3).

Rows that no label reaches get the most frequent label. They are right as often as its share suggests, no more.

"Right" means what the given labels mean by it: labels that are wrong themselves are not seen through.

    k held-out rows     N rows filled in     c classes     l_j labels of class j
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from greenlabel.labels.label_shift import is_drawn_by_class

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

LEVEL = 0.9  # of the interval
DEPENDENCE = 1.25  # held-out answers share their labels: the variance of their share beside that of independent ones
LEARNING = 1 / 3  # exponent of the learning curve: errors fall with the number of labels of a class


class Estimate(float):
    """A number that knows between which two it lies: ``low`` and ``high``."""

    low: float
    high: float

    @classmethod
    def between(cls, value: float, low: float, high: float) -> "Estimate":
        self = cls(value)
        self.low, self.high = low, high
        return self

    def __repr__(self) -> str:
        return f"{float(self):.3f} ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True)
class Filled:
    """Rows filled in. Those of several blocks add up."""

    answers: Ints  # (c,) rows that a label reaches, by the class that they were given
    confidence: float  # the sum over these rows
    unreached: int = 0  # further rows, which got the most frequent label

    @classmethod
    def of(cls, answers: Ints, confidence: Floats, is_reached: Bools, c: int) -> "Filled":
        """Of rows with these answers (n,), places among c classes, or -1 where the row was left empty."""
        told = is_reached & (answers >= 0)
        unreached = int((~is_reached & (answers >= 0)).sum())
        return cls(np.bincount(answers[told], minlength=c), float(confidence[told].sum()), unreached)

    def __add__(self, other: "Filled") -> "Filled":
        return Filled(
            self.answers + other.answers, self.confidence + other.confidence, self.unreached + other.unreached
        )


def estimate_accuracy(
    codes: Ints, probabilities: Floats, counts: Ints, filled: Filled, only_confident: float = 0.0
) -> Estimate | None:
    """The share of right answers among the rows filled in, with its 90 % interval; None where no row was filled in.

    codes (k,), probabilities (k, c) : classes of held-out rows, and what the other labels say of them
    counts (c,) : labels of each class, those that were not held out too
    only_confident : rows below this confidence were left empty, so held-out rows below it do not count
    """
    reached = int(filled.answers.sum())
    if reached + filled.unreached == 0:
        return None
    of_reached = _of_reached(codes, probabilities, counts, filled, only_confident) if reached else (0.0, 0.0, 0.0)
    of_others = _of_unreached(counts) if filled.unreached else (0.0, 0.0, 0.0)
    u = filled.unreached / (reached + filled.unreached)
    return Estimate.between(*((1 - u) * one + u * other for one, other in zip(of_reached, of_others, strict=True)))


def _of_reached(
    codes: Ints, probabilities: Floats, counts: Ints, filled: Filled, only_confident: float
) -> tuple[float, float, float]:
    n = int(filled.answers.sum())
    b = filled.confidence / n
    is_wrong = probabilities.argmax(axis=1) != codes
    counted = probabilities.max(axis=1) >= only_confident if len(codes) else is_wrong
    if not counted.any():
        return b, 0.0, 1.0
    by_class = is_drawn_by_class(counts)
    g = 0.0 if by_class else unseen_share(counts, is_wrong, counted)
    of_held_out, k = _readings(codes[counted], is_wrong[counted], counts, filled.answers if by_class else None)
    readings = (1 - g) * np.array([*of_held_out, b])
    p, worth = float(readings.mean()), k / (1 - g) / DEPENDENCE
    low, high = interval(p, worth, n, float(np.ptp(readings)) / 2)
    nothing_is_wrong = g == 0 and not is_wrong[counted].any()
    return drawn_in(p, worth), low, 1.0 if nothing_is_wrong else high


def _readings(codes: Ints, is_wrong: Bools, counts: Ints, answers: Ints | None) -> tuple[list[float], float]:
    """a and, of labels drawn class by class, a_m; and how many rows drawn at random they are worth.

    answers (c,): rows filled in by their class, given for labels drawn class by class.
    """
    k = len(codes)
    if answers is None:
        return [1 - float(is_wrong.mean())], k
    error = is_wrong * ((counts[codes] - 1) / counts[codes]) ** LEARNING
    weight = (answers / np.maximum(counts, 1))[codes]
    if not weight.any():  # no answer is of a class that was held out
        return [1 - float(error.mean())], k
    worth = float(weight.sum() ** 2 / (weight**2).sum())
    return [1 - float(error.mean()), 1 - float(np.average(error, weights=weight))], 2 / (1 / k + 1 / worth)


def drawn_in(p: float, k: float) -> float:
    """A share of k rows, and half a right and half a wrong one more."""
    return (p * k + 0.5) / (k + 1)


def interval(p: float, k: float, n: float, doubt: float) -> tuple[float, float]:
    """Where the share of right answers among n rows lies that k others suggest to be p, give or take the doubt."""
    from scipy.stats import beta  # slow to import

    mean = drawn_in(p, k)
    variance = mean * (1 - mean) * (1 / (k + 2) + 1 / n) + doubt**2
    total = max(mean * (1 - mean) / variance - 1, 1e-3)  # as wide as a beta distribution can be
    low, high = beta.ppf([(1 - LEVEL) / 2, (1 + LEVEL) / 2], mean * total, (1 - mean) * total)
    return float(np.floor(min(low, mean) * n) / n), float(np.ceil(max(high, mean) * n) / n)


def unseen_share(counts: Ints, is_wrong: Bools, counted: Bools) -> float:
    """g, among the rows that count: labels that are alone in their class, passing as often as wrong answers do."""
    single = int((counts == 1).sum())
    passing = 1.0 if counted.all() else float((is_wrong & counted).sum() + 0.5) / (is_wrong.sum() + 1)
    others = (counts.sum() - single) * counted.mean()
    return single * passing / (single * passing + others)


def _of_unreached(counts: Ints) -> tuple[float, float, float]:
    """The share of the most frequent label. Of labels drawn class by class it says next to nothing: one row's worth."""
    from scipy.stats import beta  # slow to import

    share = float(counts.max() / counts.sum())
    k = 1 if is_drawn_by_class(counts) else int(counts.sum())
    low, high = beta.ppf([(1 - LEVEL) / 2, (1 + LEVEL) / 2], share * k + 0.5, (1 - share) * k + 0.5)
    return share, float(min(low, share)), float(max(high, share))
