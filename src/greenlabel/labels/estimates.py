"""The share of right predictions among the rows filled in, and its interval: one rule for every method.

Tested rows are labelled rows that were predicted without their own label: leave-one-out or, by a blend, out-of-fold.
They and the confidence on the rows filled in are readings of the same share:

    a    share of the k tested rows that are right
    b    mean confidence on the N rows filled in
    a_m  a again, each class weighted by how often it is predicted there           (labels drawn class by class only)

The estimate is their mean, to which half a right and half a wrong row are added: few rows never earn certainty. Its
variance is that of a share, of k / 1.25 tested and of N filled rows, plus the square of half the range of the readings:
where they disagree, less is known. The interval is that of the beta distribution of this mean and variance (Jeffreys'
interval where the readings agree and N is large), rounded outwards to whole rows.

Labels drawn at random miss classes. A label that is alone in its class is wrong when it is tested, as are rows of a
class without labels: the share g of such labels estimates the share of such rows (Good-Turing), and readings are
multiplied by 1 - g. Labels drawn class by class, where several classes have the largest number, miss none. But the
class of a tested row has one label less than for the rows filled in, so a wrong prediction counts
((l_j - 1) / l_j)^(1/3).

Unreached rows get the most frequent label. They are right as often as its share suggests, no more.

"Right" means agreement with the given labels: labels that are wrong themselves go unnoticed.

    k tested rows     N rows filled in     c classes     l_j labels of class j
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from greenlabel.labels.label_shift import is_drawn_by_class

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

LEVEL = 0.9  # of the interval
DEPENDENCE = 1.25  # tested rows share their labels: the variance of their share over that of independent rows
CONFIDENCE_STEPS = 2.0**20  # between 0 and 1: whole numbers of steps add up to the same in any order of blocks
LEARNING = 1 / 3  # exponent of the learning curve: errors fall with the number of labels of a class


class Estimate(float):
    """A number with its interval, from ``low`` to ``high``."""

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

    n_predicted: Ints  # (c,) reached rows by their predicted class
    confidence: float  # the sum over these rows
    n_unreached: int = 0  # further rows, which got the most frequent label

    @classmethod
    def of(cls, predictions: Ints, confidence: Floats, is_reached: Bools, c: int) -> "Filled":
        """From the predictions (n,) as codes of c classes, -1 where the row was left empty."""
        is_filled = predictions >= 0
        counted = is_reached & is_filled
        n_unreached = int((~is_reached & is_filled).sum())
        steps = np.rint(confidence[counted] * CONFIDENCE_STEPS)
        return cls(np.bincount(predictions[counted], minlength=c), float(steps.sum()) / CONFIDENCE_STEPS, n_unreached)

    def __add__(self, other: "Filled") -> "Filled":
        return Filled(
            self.n_predicted + other.n_predicted,
            self.confidence + other.confidence,
            self.n_unreached + other.n_unreached,
        )


def estimate_accuracy(
    codes: Ints, probabilities: Floats, counts: Ints, filled: Filled, only_confident: float = 0.0
) -> Estimate | None:
    """The share of right predictions among the rows filled in, with its 90 % interval; None where no row was filled in.

    codes (k,), probabilities (k, c) : classes of the tested rows, and what the other labels predict for them
    counts (c,) : labels of each class, tested or not
    only_confident : rows below this confidence were left empty, so tested rows below it do not count
    """
    n_reached = int(filled.n_predicted.sum())
    n = n_reached + filled.n_unreached
    if n == 0:
        return None
    of_reached = _of_reached(codes, probabilities, counts, filled, only_confident) if n_reached else (0.0, 0.0, 0.0)
    of_others = _of_unreached(counts) if filled.n_unreached else (0.0, 0.0, 0.0)
    u = filled.n_unreached / n
    return Estimate.between(*((1 - u) * one + u * other for one, other in zip(of_reached, of_others, strict=True)))


def _of_reached(
    codes: Ints, probabilities: Floats, counts: Ints, filled: Filled, only_confident: float
) -> tuple[float, float, float]:
    n = int(filled.n_predicted.sum())
    b = filled.confidence / n
    is_wrong = probabilities.argmax(axis=1) != codes
    counted = probabilities.max(axis=1) >= only_confident if len(codes) else is_wrong
    if not counted.any():
        return b, 0.0, 1.0
    by_class = is_drawn_by_class(counts)
    g = 0.0 if by_class else unseen_share(counts, is_wrong, counted)
    of_tested, k = _readings(codes[counted], is_wrong[counted], counts, filled.n_predicted if by_class else None)
    readings = (1 - g) * np.array([*of_tested, b])
    p = float(readings.mean())
    worth = k / (1 - g) / DEPENDENCE
    low, high = interval(p, worth, n, float(np.ptp(readings)) / 2)
    nothing_is_wrong = g == 0 and not is_wrong[counted].any()
    return shrunk(p, worth), low, 1.0 if nothing_is_wrong else high


def _readings(codes: Ints, is_wrong: Bools, counts: Ints, n_predicted: Ints | None) -> tuple[list[float], float]:
    """a and, for labels drawn class by class, a_m; and the number of rows drawn at random that they are worth.

    n_predicted (c,): rows filled in by their class; None for labels drawn at random.
    """
    k = len(codes)
    if n_predicted is None:
        return [1 - float(is_wrong.mean())], k
    error = is_wrong * ((counts[codes] - 1) / counts[codes]) ** LEARNING
    weight = (n_predicted / np.maximum(counts, 1))[codes]
    if not weight.any():  # no prediction is of a class that was tested
        return [1 - float(error.mean())], k
    worth = float(weight.sum() ** 2 / (weight**2).sum())
    return [1 - float(error.mean()), 1 - float(np.average(error, weights=weight))], 2 / (1 / k + 1 / worth)


def shrunk(p: float, k: float) -> float:
    """A share p of k rows, drawn in by half a right and half a wrong one more."""
    return (p * k + 0.5) / (k + 1)


def interval(p: float, k: float, n: float, doubt: float) -> tuple[float, float]:
    """The interval of the share of right predictions among n rows, where k others suggest p, give or take the doubt."""
    from scipy.stats import beta  # slow to import

    mean = shrunk(p, k)
    variance = mean * (1 - mean) * (1 / (k + 2) + 1 / n) + doubt**2
    total = max(mean * (1 - mean) / variance - 1, 1e-3)  # as wide as a beta distribution can be
    low, high = beta.ppf([(1 - LEVEL) / 2, (1 + LEVEL) / 2], mean * total, (1 - mean) * total)
    return float(np.floor(min(low, mean) * n) / n), float(np.ceil(max(high, mean) * n) / n)


def unseen_share(counts: Ints, is_wrong: Bools, counted: Bools) -> float:
    """g, among the rows that count: labels alone in their class, which count as often as wrong predictions do."""
    n_single = int((counts == 1).sum())
    passing = 1.0 if counted.all() else float((is_wrong & counted).sum() + 0.5) / (is_wrong.sum() + 1)
    others = (counts.sum() - n_single) * counted.mean()
    return n_single * passing / (n_single * passing + others)


def _of_unreached(counts: Ints) -> tuple[float, float, float]:
    """The share of the most frequent label. It is worth one row only where labels were drawn class by class."""
    from scipy.stats import beta  # slow to import

    share = float(counts.max() / counts.sum())
    k = 1 if is_drawn_by_class(counts) else int(counts.sum())
    low, high = beta.ppf([(1 - LEVEL) / 2, (1 + LEVEL) / 2], share * k + 0.5, (1 - share) * k + 0.5)
    return share, float(min(low, share)), float(max(high, share))
