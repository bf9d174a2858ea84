"""The blend, fitted in a process of its own while hands rest; shown where it predicts held-out labels better.

Where columns matter one by one, trees or a linear model beat any graph. The blend has them all, and takes seconds. So
the live model is shown at once, and the blend replaces it when it is there, is about the labels as they are now, and
is clearly better on the same labels: live by leave-one-out, the blend out-of-fold.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel.annotate.session.child import Arrays, Child
from greenlabel.labels.encoding import Labels

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

MAX_ROWS = 50_000
MAX_NUMBERS = 20_000_000  # rows times columns
MIN_PER_CLASS = 2
MAX_TESTED = 2000


@dataclass(frozen=True)
class Settled:
    """The blend of some labels."""

    ids: list[int]  # of its classes
    p: NDArray[np.float32]  # (n, c)
    tested: Ints  # labelled rows
    predicted: Ints  # their classes out-of-fold


def why_not(X: Any, labels: Labels) -> str | None:
    """Why there is no blend of these labels; None where there can be one."""
    n, d = X.shape
    if n > MAX_ROWS or n * d > MAX_NUMBERS:
        return f"the blend takes too long for {n:,} rows of {d:,} columns"
    if len(labels.classes) < 2:
        return "there are labels of fewer than two classes"
    if labels.counts.min() < MIN_PER_CLASS:
        return f"some class has fewer than {MIN_PER_CLASS} labels"
    return None


def start(X: Any, labels: Labels) -> Child:
    """The blend of these labels, under way."""
    y = np.full(labels.n, -1)
    y[labels.rows] = labels.classes[labels.codes]
    return Child("blend", {"X": X, "y": y})


def blend_of_arrays(arrays: Arrays) -> Arrays:
    """The task of a child process."""
    from greenlabel.blend.classifier import BlendedClassifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BlendedClassifier(random_state=0).fit(arrays["X"], arrays["y"])
        rows, _, p = model.cross_validated(MAX_TESTED)
    return {
        "ids": model.classes_,
        "p": model.label_distributions_.astype(np.float32),
        "tested": rows,
        "predicted": model.classes_[p.argmax(axis=1)],
    }


def collect(child: Child) -> Settled | None:
    """What a finished process made; None where it failed."""
    found = child.result()
    if found is None:
        return None
    p, tested, predicted = (np.array(found[name]) for name in ("p", "tested", "predicted"))
    return Settled(found["ids"].tolist(), p, tested, predicted)


def is_better(is_right: NDArray[np.bool_], than: NDArray[np.bool_]) -> bool:
    """Whether one model is right more often than another on the same rows, by more than chance explains.

    Rows on which they differ are flips of a coin if they are equally good: wins - losses has the deviation
    sqrt(wins + losses).
    """
    wins, losses = np.count_nonzero(is_right & ~than), np.count_nonzero(than & ~is_right)
    return wins - losses > np.sqrt(wins + losses)


class Settling:
    """The blend of the labels as they are: under way, there, or neither."""

    def __init__(self) -> None:
        self._child: Child | None = None
        self._is_tried = False
        self.found: Settled | None = None

    def rest(self, X: Any, labels: Labels) -> bool:
        """Hands rest: start what is to be fitted, collect what is there. True where a blend has come."""
        if self._child is not None and self._child.is_done():
            self.found = collect(self._child)
            self._stop()
            return self.found is not None
        if not self._is_tried and why_not(X, labels) is None:
            self._child, self._is_tried = start(X, labels), True
        return False

    def outdated(self) -> None:
        """Labels have changed: what is there or under way is of no use."""
        self.found, self._is_tried = None, False
        self._stop()

    def _stop(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None
