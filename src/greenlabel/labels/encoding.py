"""Labels: y <-> Y, and F -> class and probability.

    Y (n, c) one-hot rows where a label is known, zero rows elsewhere      (Eq. y2)
    F + 1 b'    the class of a row is that of its largest score, to which the offset b_j of the class is added
    p_ij = exp(t E_ij) / sum_j' exp(t E_ij')    probabilities; E the evidence in F + 1 b', t a temperature for all rows

The temperature is chosen where the class is known: on the leave-one-out scores of labelled rows. The probabilities of
an unreached row are the shares of the given labels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils.validation import column_or_1d

from greenlabel._common.parameters import warn
from greenlabel.errors import LabelError

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

UNLABELED = -1
CALIBRATION_ROWS = (100, 200)  # bounds of the number of labelled rows that choose the temperature
CALIBRATION_WORK = 1_000_000  # rows of data times rows that choose, between these bounds


@dataclass(frozen=True)
class Labels:
    """The known labels of n rows."""

    n: int
    classes: NDArray[Any]  # (c,) sorted
    rows: Ints  # (l,) labelled rows, ascending
    codes: Ints  # (l,) their indices in classes

    @cached_property
    def Y(self) -> sp.csr_array:
        """One-hot (Eq. y2), sparse."""
        return sp.csr_array((np.ones(len(self.rows)), (self.rows, self.codes)), shape=(self.n, len(self.classes)))

    @cached_property
    def counts(self) -> Ints:
        return np.bincount(self.codes, minlength=len(self.classes))

    @property
    def shares(self) -> Floats:
        return self.counts / len(self.codes)

    def without(self, left_out: NDArray[np.bool_]) -> "Labels":
        """The labels without those marked in ``left_out`` (l,); the classes stay."""
        return Labels(self.n, self.classes, self.rows[~left_out], self.codes[~left_out])


def signed(labels: Labels) -> Floats:
    """The other coding of the labels: +1 for the class, -1 for the other classes, 0 where unlabelled (Eq. y1)."""
    Y = np.zeros((labels.n, len(labels.classes)))
    Y[labels.rows] = -1
    Y[labels.rows, labels.codes] = 1
    return Y


def read_labels(y: Any, n: int, reader: str) -> Labels:
    """Labels from y, where -1, NaN, None and "" are unlabelled. ``reader`` is named in the messages."""
    if y is None:
        raise LabelError(f"{reader} requires y to be passed, but the target y is None; mark unlabelled rows with -1.")
    labels = read_some_labels(y, n)
    if not len(labels.rows):
        raise LabelError(
            f"y holds no label at all in {n} rows; label rows of two classes at least, leave the rest at -1."
        )
    check_two_classes(labels)
    return labels


def check_two_classes(labels: Labels) -> None:
    if len(labels.classes) < 2:
        count = f"{len(labels.rows)} label{'s' if len(labels.rows) > 1 else ''}"
        raise LabelError(f"y holds a single class ({labels.classes[0]!s}, {count}); label a row of another class too.")


def read_some_labels(y: Any, n: int) -> Labels:
    """The same where there may be few labels, or none (y is None)."""
    if y is None:
        return Labels(n, np.empty(0, np.int64), np.empty(0, np.intp), np.empty(0, np.intp))
    y = as_labels(y)
    if len(y) != n:
        raise LabelError(f"y has {len(y)} entries, X has {n} rows; give one label per row, -1 where it is unknown.")
    rows = np.flatnonzero(~is_unlabelled(y))
    classes, codes = distinct(y[rows])
    if y.dtype.kind in "UST" and {"nan", "None", "-1"} & set(map(str, classes)):
        warn("y holds 'nan', 'None' or '-1' as text, which is taken as a class; mark unknown labels with ''.")
    if y.dtype.kind == "f" and np.isnan(y).any():  # whole numbers, made floats by the gaps between them
        classes = classes.astype(np.int64)
    return Labels(n, classes, rows, codes)


def joined_labels(first: Labels, second: Labels) -> Labels:
    """Labels of the rows of both, one after the other."""
    known = [labels.classes for labels in (first, second) if len(labels.classes)]
    if len({classes.dtype.kind in "OUST" for classes in known}) > 1:
        text, number = sorted((classes[0] for classes in known), key=lambda label: not isinstance(label, str))
        raise LabelError(f"y mixes text and numbers ({str(text)!r} and {number!s}); make them all text or all numbers.")
    classes = np.unique(np.concatenate(known)) if known else first.classes
    codes = [np.searchsorted(classes, labels.classes)[labels.codes] for labels in (first, second) if len(labels.rows)]
    rows = np.concatenate([first.rows, second.rows + first.n])
    return Labels(first.n + second.n, classes, rows, np.concatenate([np.empty(0, np.intp), *codes]))


def as_labels(y: Any) -> NDArray[Any]:
    """y as an array with one label per row, unknown ones included."""
    # In a list beside text, NumPy would turn NaN into a class "nan".
    y = np.array(y, dtype=object) if isinstance(y, (list, tuple)) else np.asarray(y)
    if y.dtype.kind not in "OUSTfiubmM":
        raise LabelError(f"y holds {y.dtype} values; give whole numbers or text as classes, -1 where unknown.")
    try:
        return column_or_1d(y, warn=True)
    except ValueError as error:
        raise LabelError(f"y has the shape {y.shape}; give one label per row, in one column.") from error


def is_unlabelled(y: NDArray[Any]) -> NDArray[np.bool_]:
    if y.dtype.kind == "f":
        return np.isnan(y) | (y == UNLABELED)
    if y.dtype.kind in "iu":
        return y == UNLABELED
    if y.dtype.kind in "UST":
        return y == (b"" if y.dtype.kind == "S" else "")
    if y.dtype.kind in "mM":
        return np.isnat(y)
    if y.dtype.kind == "O":
        return np.fromiter(map(_is_blank, y), bool, len(y))
    return np.zeros(len(y), bool)


def _is_blank(label: Any) -> bool:
    if label is None or type(label).__name__ in ("NAType", "NaTType"):  # pandas' missing values
        return True
    if isinstance(label, str):
        return label == ""
    return bool(label != label) or (not isinstance(label, (bool, np.bool_)) and bool(label == UNLABELED))


def distinct(given: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """Sorted classes, and the index of each given label among them."""
    if given.dtype.kind == "O" and not all(isinstance(label, str) for label in given):
        text = next((label for label in given if isinstance(label, str)), None)
        if text is not None:
            number = next(label for label in given if not isinstance(label, str))
            raise LabelError(f"y mixes text and numbers ({text!r} and {number!r}); make them all text or all numbers.")
        given = np.array(given.tolist())
    if given.dtype.kind == "f" and (given != np.floor(given)).any():
        example = given[given != np.floor(given)][0]
        raise LabelError(
            f"Unknown label type: continuous, y holds {example:g}. Classes are whole numbers or text; "
            "round or bin the values first."
        )
    if given.dtype.kind == "f" and np.isinf(given).any():
        raise LabelError("y holds infinity; give whole numbers or text as classes, -1 or NaN where they are unknown.")
    classes, codes = np.unique(given, return_inverse=True)
    return classes, codes.ravel()


@dataclass(frozen=True)
class ScoreDecoder:
    """From the scores of some rows to their classes and probabilities."""

    classes: NDArray[Any]  # (c,)
    shares: Floats  # (c,) of the given labels: the probabilities of an unreached row
    offsets: Floats  # (c,) what is added to the scores of each class
    temperature: float = 1.0

    def classify(self, F: Floats, is_reached: NDArray[np.bool_]) -> NDArray[Any]:
        best = self.adjusted(F).argmax(axis=1)
        best[~is_reached] = self.shares.argmax()
        return self.classes[best]

    def probabilities(self, F: Floats, is_reached: NDArray[np.bool_]) -> Floats:
        """Probabilities of the classes; the largest of a row is that of the class that ``classify`` gives."""
        F = self.adjusted(F)
        p = probabilities(F, self.temperature)
        make_largest(F.argmax(axis=1), p)
        p[~is_reached] = self.shares
        return p

    def adjusted(self, F: Floats) -> Floats:
        return F + self.offsets if self.offsets.any() else F


def make_largest(best: Ints, p: Floats) -> None:
    """Make p at ``best`` the largest number of its row: rounding may have made another one equal."""
    other = np.flatnonzero(p.argmax(axis=1) != best)
    p[other, best[other]] = np.nextafter(p[other].max(axis=1), 2)


def probabilities(F: Floats, temperature: float) -> Floats:
    return softmax(temperature * evidence(F), axis=1)


def evidence(F: Floats) -> Floats:
    """Centred scores of each row, divided by the root of the largest one.

    Undivided, rows far from all labels would have no confidence; divided by the largest itself, as much as any other
    row. The root is between the two. Evidence orders the classes of a row as F does.
    """
    centred = F - F.mean(axis=1, keepdims=True)
    largest = centred.max(axis=1, keepdims=True)
    return np.divide(centred, np.sqrt(np.maximum(largest, 0)), out=np.zeros_like(centred), where=largest > 0)


def calibrate(labels: Labels, joined: NDArray[np.bool_], leave_one_out: Callable[[Ints], Floats]) -> float:
    """The temperature from leave-one-out scores of labelled rows that the other labels can recognise.

    These are the rows that another label reaches (``joined``) and whose class has another label; a sample of them is
    enough. With one label per class there are none: the temperature then gives a typical row the evidence 2, and
    probabilities are an order, not a promise.
    """
    recognisable = np.flatnonzero(joined & (labels.counts[labels.codes] > 1))
    if len(recognisable):
        max_rows = np.clip(CALIBRATION_WORK // labels.n, *CALIBRATION_ROWS)
        tested = evenly(recognisable, max_rows)
        return choose_temperature(evidence(leave_one_out(tested)), labels.codes[tested])
    typical = np.median(evidence(leave_one_out(np.arange(len(labels.codes)))).max(axis=1))
    return float(2 / typical) if typical > 0 else 1.0


def evenly(items: Ints, max_items: int) -> Ints:
    """The items; of more than ``max_items`` an even choice."""
    return items[np.linspace(0, len(items) - 1, min(len(items), max_items)).astype(int)] if len(items) else items


def smoothed_target(codes: Ints, c: int, doubt: float = 1.0) -> Floats:
    """One-hot rows (l, c), mixed with ``doubt`` more observations that are divided among all classes.

    A finite number of right predictions then never earns certainty.
    """
    target = np.full((len(codes), c), doubt / (c * (len(codes) + doubt)))
    target[np.arange(len(codes)), codes] += len(codes) / (len(codes) + doubt)
    return target


def choose_temperature(E: Floats, codes: Ints, doubt: float = 1.0) -> float:
    """The t for which softmax(t E) fits the true classes best; E (l, c) is leave-one-out or out-of-fold evidence."""
    target = smoothed_target(codes, E.shape[1], doubt)
    max_abs = np.abs(E).max()
    if max_abs == 0:
        return 1.0  # no evidence at all: every temperature gives equal probabilities
    E = E / max_abs  # of which no temperature overflows

    def slope(log_t: float) -> float:
        """Of the log-loss, whose minimum is its root: to find it by values of the loss costs half the digits."""
        return float(((softmax(np.exp(log_t) * E, axis=1) - target) * E).sum())

    return min(exp_of_root(slope, *np.log([1e-3, 1e4])) / max_abs, float(np.finfo(float).max))


def exp_of_root(rising: Callable[[float], float], low: float, high: float) -> float:
    """exp of where a rising function crosses 0 between two ends, or of the end next to that.

    To nearly the last digit: where a search stops early, the last bit of its input decides how early.
    """
    from scipy.optimize import brentq  # slow to import, and needed for probabilities only

    if rising(low) >= 0 or rising(high) <= 0:
        return float(np.exp(low if rising(low) >= 0 else high))
    return float(np.exp(brentq(rising, low, high, xtol=1e-12)))
