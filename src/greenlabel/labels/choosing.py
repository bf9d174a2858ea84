"""A parameter chosen by the labels: the value whose leave-one-out scores recognise the labelled rows best.

    comparison_labels(labels, max_rows)      the labelled rows by which values are compared
    choose(values, codes, leave_one_out)     the best value; leave_one_out(value) are the scores of these rows

Few labels cannot tell values apart. So the first value, the default, gives way only to one that gets more rows right
and whose log-loss is lower by two standard errors of the difference.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from greenlabel.labels.encoding import Labels, evenly, evidence, smoothed_target

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Value = TypeVar("Value")

MIN_TESTED = 20  # fewer would choose by chance
TIMES_OF_MU = (1.0, 0.1, 10.0)  # mu="auto": the values to try, in multiples of the default
TEMPERATURES = (0.1, 1000.0)  # the range to search, for evidence whose largest value is 1
ZOOMS, GRID = 3, 11  # to within four percent; a coarser search would find differences where there are none


def comparison_labels(labels: Labels, max_rows: int) -> Ints:
    """Indices of labelled rows whose class has another label; none where there are, or may be, too few."""
    found = np.flatnonzero(labels.counts[labels.codes] > 1)
    return evenly(found, max_rows) if min(len(found), max_rows) >= MIN_TESTED else found[:0]


def choose(values: Sequence[Value], codes: Ints, leave_one_out: Callable[[Value], Floats]) -> Value:
    """The value by which the tested rows, whose classes are ``codes``, are best recognised."""
    if len(values) == 1 or not len(codes):
        return values[0]
    scores = [leave_one_out(value) for value in values]
    losses = [log_losses(evidence(F), codes) for F in scores]
    best = int(np.argmin([loss.mean() for loss in losses]))
    gain = losses[0] - losses[best]
    n_right = [int((F.argmax(axis=1) == codes).sum()) for F in scores]
    is_better = n_right[best] > n_right[0] and gain.mean() > 2 * gain.std() / np.sqrt(len(gain))
    return values[best if is_better else 0]


def log_losses(E: Floats, codes: Ints) -> Floats:
    """-log p of the true class of each row (l,), at the temperature that suits the evidence E (l, c) best."""
    E = (E - E.max(axis=1, keepdims=True)) / (np.abs(E).max() or 1.0)  # no exponential of it overflows
    true = (smoothed_target(codes, E.shape[1]) * E).sum(axis=1)
    low, high, best = *TEMPERATURES, np.zeros(len(E))
    for _ in range(ZOOMS):
        grid = np.geomspace(low, high, GRID)
        trials = [np.log(np.exp(t * E).sum(axis=1)) - t * true for t in grid]
        index = int(np.argmin([trial.mean() for trial in trials]))
        low, high, best = grid[max(index - 1, 0)], grid[min(index + 1, GRID - 1)], trials[index]
    return best
