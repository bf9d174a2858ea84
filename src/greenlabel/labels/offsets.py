"""Class offsets: what is added to the scores of each class before the largest is taken.

F'1 = 0 gives every class the same mass over all rows. Where classes are of different size, small ones then get too many
rows. The labels show it: for their leave-one-out scores H (l, c),

    J(t, b) = -sum_ij w_i T_ij log softmax(t h_i + b)_j + |b|^2 / 2,    t > 0 a slope, b (c,) offsets in log-odds

has its minimum at some (t, b), and b / t are the offsets on the scale of the scores. T (l, c) are the classes of the
labels, smoothed. The ridge is the prior b ~ N(0, I): a class that is e times as likely as its scores say is usual.

w_i is how much of the data a label stands for, 1 on average. Labels drawn at random stand for equal parts. Labels drawn
class by class would count as much for a small class as for a large one: there w_i is the share of the class in the data
(label_shift.py) over that among the labels.

Few labels cannot tell offsets from chance. So the two models, with offsets and without (b = 0), are compared by their
evidence (Laplace's approximation: the integral of exp(-J) over the parameters),

    log odds = J(t0, 0) - J(t, b) - (log det J''(t, b) - log J''_tt(t0, 0)) / 2

and the offsets are exactly 0 unless two things hold: the labels make them twenty times as likely as none (strong
evidence according to Kass and Raftery), and the labels recognised with them stand for no less of the data than those
recognised without.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from greenlabel._common.threads import one_thread
from greenlabel.labels.encoding import choose_temperature, evidence, probabilities, smoothed_target
from greenlabel.labels.label_shift import is_drawn_by_class, suggested_shares

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

ODDS = 20.0  # from which on evidence is called strong
MIN_SLOPE = 1e-3  # of scores whose largest is 1: uninformative scores leave the decision to the offsets
FLAT = 1e-14  # curvature along the slope below which J hangs on the offsets alone, whose own is above 1
MAX_STEPS, MIN_STEP, CLOSE = 100, 1e-8, 1e-12  # of Newton's method


def class_offsets(H: Floats, codes: Ints, counts: Ints, F: Floats) -> Floats:
    """Offsets (c,) on the scale of the leave-one-out scores H (l, c) of labels of these classes; 0 unless it is clear.

    A row of zeros in H is not recognisable, and counts for the size of its class alone.

    counts (c,) : all labels of each class, also those that are not among the l
    F (r, c) : scores of unlabelled rows, which show the shares of the classes in the data
    """
    with one_thread():  # two threads would round differently
        weight = label_weights(H, codes, counts, F)
        offsets, log_odds = fitted_offsets(H, codes, weight)
    counted = weight * H.any(axis=1)  # of a row of zeros the first class would be the largest
    before, after = (counted @ (scores.argmax(axis=1) == codes) for scores in (H, H + offsets))
    return offsets if log_odds > np.log(ODDS) and after >= before else np.zeros(H.shape[1])


def label_weights(H: Floats, codes: Ints, counts: Ints, F: Floats) -> Floats:
    """w (l,): how much of the data each label stands for, 1 on average."""
    is_recognisable = np.asarray(H.any(axis=1))
    if not (len(F) and is_recognisable.any() and is_drawn_by_class(counts)):
        return np.ones(len(codes))
    shares = counts / counts.sum()
    H, tested = H[is_recognisable], codes[is_recognisable]
    t = choose_temperature(evidence(H), tested)
    q = suggested_shares(probabilities(H, t), tested, probabilities(F, t).mean(axis=0), shares)
    weight = (q / shares)[codes]
    return weight / weight.mean()


def fitted_offsets(H: Floats, codes: Ints, weight: Floats) -> tuple[Floats, float]:
    """The offsets that fit best, and the logarithm of the odds for them."""
    c = H.shape[1]
    H = H - H.mean(axis=1, keepdims=True)
    max_abs = np.abs(H).max(initial=0)
    if max_abs == 0 or c > len(codes):  # nothing is recognised, or there are more offsets than labels
        return np.zeros(c), -np.inf
    objective = Objective(H / max_abs, smoothed_target(codes, c), weight)
    plain = objective.minimum(np.arange(c + 1) == 0)
    full = objective.minimum(np.ones(c + 1, bool))
    log_odds = objective.value(plain) - objective.value(full)
    log_odds -= (objective.log_det(full, slice(None)) - objective.log_det(plain, slice(0, 1))) / 2
    slope, b = full[0], full[1:]
    return (b - b.mean()) * (max_abs / slope), float(log_odds)


class Objective:
    """J of x = (t, b), with its derivatives; it is convex."""

    def __init__(self, H: Floats, T: Floats, weight: Floats):
        self.H, self.weight = H, weight[:, None]
        self.T = self.weight * T

    def value(self, x: Floats) -> float:
        return float(x[1:] @ x[1:] / 2 - (self.T * log_softmax(x[0] * self.H + x[1:], axis=1)).sum())

    def gradient(self, x: Floats) -> Floats:
        R = self.weight * softmax(x[0] * self.H + x[1:], axis=1) - self.T
        return np.concatenate([[(R * self.H).sum()], R.sum(axis=0) + x[1:]])

    def hessian(self, x: Floats) -> Floats:
        P = softmax(x[0] * self.H + x[1:], axis=1)
        centred = self.H - (P * self.H).sum(axis=1, keepdims=True)
        wP = self.weight * P
        J = np.empty((len(x), len(x)))
        J[0, 0] = (wP * centred * self.H).sum()
        J[0, 1:] = J[1:, 0] = (wP * centred).sum(axis=0)
        J[1:, 1:] = np.diag(wP.sum(axis=0) + 1) - wP.T @ P
        return J

    def log_det(self, x: Floats, part: slice) -> float:
        return float(np.linalg.slogdet(self.hessian(x)[part, part])[1])

    def minimum(self, free: Bools) -> Floats:
        """Newton's method from (1, 0) in the parameters that are free; the slope stays above its bound."""
        x: Floats = np.zeros(len(free))
        x[0] = 1.0
        value = self.value(x)
        for _ in range(MAX_STEPS):
            g, J = self.gradient(x), self.hessian(x)
            moves = free.copy()
            moves[0] &= J[0, 0] > FLAT and (x[0] > MIN_SLOPE or g[0] < 0)
            step = np.zeros_like(x)
            step[moves] = np.linalg.solve(J[np.ix_(moves, moves)], g[moves])
            if g @ step <= CLOSE:
                break
            x, value, is_moved = self._descend(x, value, step)
            if not is_moved:
                break
        return x

    def _descend(self, x: Floats, value: float, step: Floats) -> tuple[Floats, float, bool]:
        """The first of x - step, x - step / 2, ... at which J is lower."""
        length = 1.0
        while length > MIN_STEP:
            new = x - length * step
            new[0] = max(new[0], MIN_SLOPE)
            found = self.value(new)
            if found < value:
                return new, found, True
            length /= 2
        return x, value, False
