"""A parameter chosen by the labels: the value whose leave-one-out scores recognise the labelled rows best.

    judges(labels, most)                     the labelled rows that are asked
    choose(values, codes, held_out)          the best value; held_out(value) are the scores of the judges without their
                                             own labels

Few labels cannot tell values apart. So the first value, the default, gives way only where another one is better by more
than two standard errors of the difference.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from greenlabel.labels import Labels, evenly, evidence, smoothed_target

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Value = TypeVar("Value")

LEAST_JUDGES = 20  # fewer would choose by chance
TIMES_OF_MU = (1.0, 0.1, 10.0)  # mu="auto": what is tried, in multiples of the default
TEMPERATURES = np.geomspace(0.3, 300, 24)  # of evidence whose largest value is 1


def judges(labels: Labels, most: int) -> Ints:
    """Places of labelled rows whose class has another label; none where there are too few, or only few may be asked."""
    told = np.flatnonzero(labels.counts[labels.codes] > 1)
    return evenly(told, most) if min(len(told), most) >= LEAST_JUDGES else told[:0]


def choose(values: Sequence[Value], codes: Ints, held_out: Callable[[Value], Floats]) -> Value:
    """The value by which the judges, whose classes are ``codes``, are best recognised."""
    if len(values) == 1 or not len(codes):
        return values[0]
    losses = [log_losses(evidence(held_out(value)), codes) for value in values]
    best = int(np.argmin([loss.mean() for loss in losses]))
    gain = losses[0] - losses[best]
    return values[best if gain.mean() > 2 * gain.std() / np.sqrt(len(gain)) else 0]


def log_losses(E: Floats, codes: Ints) -> Floats:
    """-log p of the true class of each row (l,), at the temperature that suits the evidence E (l, c) best."""
    target, scale = smoothed_target(codes, E.shape[1]), np.abs(E).max() or 1.0
    trials = [-(target * log_softmax(t / scale * E, axis=1)).sum(axis=1) for t in TEMPERATURES]
    return min(trials, key=np.mean)
