"""The blend: evidence of several experts made one, weighted by how they do on labelled rows that they did not see.

    A_e (l, c)   out-of-fold evidence of expert e on the labelled rows, centred, times a temperature of its own
    w            argmin  - sum_i log softmax(sum_e w_e A_e)_{i y_i}  +  lambda sqrt(l) |w - w0|^2,   w >= 0
    U            sum_e w_e A_e on each fold, w from the other folds
    F            t (sum_e w_e A_e) + log(q / p)          on all rows: log-probabilities up to a constant of the row

The penalty draws the weights to w0, what experts are worth without any evidence, where labels are few. Weights fit the
rows that they were chosen by better than others, so the blend is tested on rows that did not choose them: U is the sum
over experts with the weights of the other folds, made equally large, and the temperature t makes softmax(t U) fit the
classes of these rows. Labels are often drawn class by class, so that their shares p say nothing about the data: q are
the shares that the unlabelled rows suggest, drawn towards p where the experts cannot tell the classes apart.

    e experts     l labelled rows     c classes     r divisions of the labelled rows into folds
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from greenlabel.labels.encoding import choose_temperature, exp_of_root, smoothed_target

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

FOLDS = 5
DIVISIONS = 2
MAX_TESTED = 2000  # labelled rows that are tested at all
DRAWN = 0.3  # lambda, how strongly weights are drawn to what they are without evidence
DOUBT = 1.5  # observations, divided among all classes, that are added to the tested rows when t is chosen
FLOOR = 0.02  # added to the probabilities of a row, divided among its classes, so that logarithms are finite
NEW = -2  # in place of a fold: the row had no label at the fit
TYPICAL_EVIDENCE = 2.0  # evidence of a usual row where nothing can be tested
LAST_STEPS = 3  # of Newton: a search among values of the loss stops early, and the last bit decides how early
ROUNDING = 1e-9  # by which a loss may rise that is at its minimum


def divide(codes: Ints, rng: np.random.Generator) -> Ints:
    """Folds (r, l): which labelled rows are tested together, by models without them. -1 is never tested.

    Each class is divided evenly among the folds, so that one of its labels always stays; a class of one label is never
    tested. Of very many labels only some are.
    """
    counts = np.bincount(codes)
    chosen = counts[codes] > 1
    if len(codes) > MAX_TESTED:
        chosen &= rng.uniform(size=len(codes)) < MAX_TESTED / len(codes)
        return _leave_one_of_each(np.where(chosen, 0, -1), codes)[None]
    return np.stack([np.where(chosen, _divide_evenly(codes, rng), -1) for _ in range(DIVISIONS)])


def _divide_evenly(codes: Ints, rng: np.random.Generator) -> Ints:
    """Fold of each row: rows of a class, in an order drawn at random, go to one fold after the other."""
    order = np.lexsort((rng.uniform(size=len(codes)), codes))
    fold = np.empty(len(codes), np.intp)
    fold[order] = np.arange(len(codes)) % FOLDS
    return fold


def _leave_one_of_each(fold: Ints, codes: Ints) -> Ints:
    """The folds (l,), where the first row of a class whose rows are all in one fold is tested no more."""
    for code in np.unique(codes):
        indices = np.flatnonzero(codes == code)
        if fold[indices[0]] >= 0 and (fold[indices] == fold[indices[0]]).all():
            fold[indices[0]] = -1
    return fold


def divide_again(codes: Ints, before: Ints, rng: np.random.Generator) -> Ints:
    """Folds (r, l) of other labels on the same rows, which what was made for the first folds may be tested by.

    before (l,) is the fold of each row in the first division of the fit. There it stays, unless it is the only one of
    its class now; -1 was seen by all folds and still is never tested. A row that is NEW goes where its class has the
    fewest rows.
    """
    folds = divide(codes, rng)
    stays = np.where(np.bincount(codes)[codes] > 1, before, -1)
    first = np.where(before == NEW, folds[0], stays)
    counts = np.zeros((codes.max() + 1, max(first.max(), 0) + 1), np.intp)
    is_new, is_out = before == NEW, first >= 0
    np.add.at(counts, (codes[is_out & ~is_new], first[is_out & ~is_new]), 1)
    for index in rng.permutation(np.flatnonzero(is_out & is_new)):
        of_class = counts[codes[index]]
        first[index] = np.lexsort((counts.sum(axis=0), of_class))[0]
        of_class[first[index]] += 1
    folds[0] = _leave_one_of_each(first, codes)
    return np.where(folds[0] >= 0, folds, -1)


def joint_parts(folds: Ints) -> Ints:
    """Parts (k,) of the tested rows of all divisions, one below the other: each is tested with weights of the others.

    The parts are the folds of the first division, so that a row is in the same part in all of them; where there is one
    fold only, they are every fifth row.
    """
    part = folds[0] if folds[0].max() > 0 else np.arange(folds.shape[1]) % FOLDS
    return np.broadcast_to(part, folds.shape)[folds >= 0]


def log_evidence(p: Floats) -> Floats:
    """Centred logarithms of probabilities (rows, c)."""
    log_p = np.log(p + FLOOR / p.shape[1])
    return log_p - log_p.mean(axis=1, keepdims=True)


@dataclass(frozen=True)
class Blend:
    """How the evidence of e experts is added up."""

    scales: Floats  # (e,) what the evidence of each expert is multiplied by before it is added
    own: Floats  # (e,) the temperature at which the evidence of each expert alone gives its probabilities
    weights: Floats  # (e,) the share of each expert in the evidence on tested rows; sum to 1
    out_of_fold: Floats  # (k, c) t U on the k tested rows, all divisions below each other; empty without any
    codes: Ints  # (k,) their true classes


def blend(out_of_fold: Floats, codes: Ints, trust: Floats, parts: Ints) -> Blend:
    """Weights and temperature from the out-of-fold evidence (e, k, c) of rows with these classes (k,).

    trust (e,): how the experts weigh against each other before any evidence.
    parts (k,): the blend on the rows of a part is made with weights from the rows of all others.
    """
    own, w = fit_weights(out_of_fold, codes, trust)
    U = cross_fitted(out_of_fold, codes, trust, parts, np.tensordot(w * own, out_of_fold, 1))
    t = choose_temperature(U, codes, DOUBT)
    part = w * own * root_mean_square(out_of_fold)  # an expert without evidence has no part, whatever its weight
    shares = part / part.sum() if part.sum() > 0 else w / w.sum()
    return Blend(t * w * own, own, shares, t * U, codes)


def fit_weights(out_of_fold: Floats, codes: Ints, trust: Floats) -> tuple[Floats, Floats]:
    """The temperature of each expert alone (e,) and its weight (e,)."""
    own = np.array([choose_temperature(A, codes) for A in out_of_fold])
    return own, choose_weights(own[:, None, None] * out_of_fold, codes, trust / trust.sum())


def cross_fitted(out_of_fold: Floats, codes: Ints, trust: Floats, parts: Ints, whole: Floats) -> Floats:
    """U (k, c): the blend on each part of the rows, made with weights from the others.

    Weights differ in size from part to part, while one temperature is to be found for all: each blend is first made as
    large as ``whole`` (k, c), the one with weights from all rows. That is all there is where the rows are one part: a
    single tested row has no others to weigh by.
    """
    if (parts == parts[0]).all():
        return whole
    U = np.empty_like(whole)
    for number in np.unique(parts):
        here = parts == number
        own, w = fit_weights(out_of_fold[:, ~here], codes[~here], trust)
        found = np.tensordot(w * own, out_of_fold, 1)
        size = root_mean_square(found)
        U[here] = found[here] * (root_mean_square(whole) / size if size > 0 else 1.0)
    return U


def root_mean_square(A: Floats) -> Any:
    """The root mean square over rows and classes, the last two axes."""
    return np.sqrt((A**2).mean(axis=(-2, -1)))


def blend_blindly(typical_evidence: Floats, c: int, trust: Floats) -> Blend:
    """The blend where every class has a single label and nothing can be tested: trust (e,) decides alone.

    typical_evidence (e,): the evidence of each expert for the best class of a usual row. Probabilities are an order
    of the rows, not a promise.
    """
    w = trust / trust.sum()
    scale = np.divide(TYPICAL_EVIDENCE, typical_evidence, out=np.zeros(len(w)), where=typical_evidence > 0)
    return Blend(w * scale, scale, w, np.empty((0, c)), np.empty(0, np.intp))


def choose_weights(A: Floats, codes: Ints, before: Floats) -> Floats:
    """w (e,) of the penalised log-loss, A (e, k, c); before (e,) is w0."""
    from scipy.optimize import minimize  # slow to import

    e, k, c = A.shape
    target, strength = smoothed_target(codes, c), DRAWN * np.sqrt(k)

    def loss(w: Floats) -> tuple[float, Floats]:
        log_p = log_softmax(np.tensordot(w, A, 1), axis=1)
        apart = w - before
        slope = np.tensordot(A, np.exp(log_p) - target, 2)
        return -float((target * log_p).sum()) + strength * float(apart @ apart), slope + 2 * strength * apart

    w = minimize(loss, before, jac=True, bounds=[(0, None)] * e, method="L-BFGS-B").x
    value, slope = loss(w)
    for _ in range(LAST_STEPS):
        is_free = (w > 0) | (slope < 0)
        H = curvature(A[is_free], softmax(np.tensordot(w, A, 1), axis=1)) + 2 * strength * np.eye(is_free.sum())
        moved = w.copy()
        moved[is_free] = np.maximum(w[is_free] - np.linalg.solve(H, slope[is_free]), 0)
        found = loss(moved)
        if found[0] > value * (1 + ROUNDING):  # where the curve is flat a whole step leads far beyond the minimum
            break
        w, (value, slope) = moved, found
    return w if w.sum() > 0 else before


def curvature(A: Floats, p: Floats) -> Floats:
    """Second derivatives (e, e) of the log-loss by the weights of A (e, k, c), where probabilities are p (k, c)."""
    weighted = A * p
    means = weighted.sum(axis=2)
    return np.tensordot(weighted, A, ([1, 2], [1, 2])) - means @ means.T


def scale_to_confidence(E: Floats, confidence: float) -> float:
    """The t at which the mean probability of the best class under softmax(t E) is the given one; E (n, c) evidence."""

    def gap(log_t: float) -> float:
        return float(softmax(np.exp(log_t) * E, axis=1).max(axis=1).mean()) - confidence

    typical = float(np.median(np.abs(E).max(axis=1))) or 1.0
    return exp_of_root(gap, np.log(1e-3 / typical), np.log(1e3 / typical))  # an end: out of reach, as 1 is


def accuracy_and_loss(A: Floats, codes: Ints) -> dict[str, float]:
    """Share of right predictions and mean log-loss of log-evidence A (k, c); nan without any row."""
    if not len(codes):
        return {"accuracy": float("nan"), "log_loss": float("nan")}
    log_p = log_softmax(A, axis=1)[np.arange(len(codes)), codes]
    return {"accuracy": float((A.argmax(axis=1) == codes).mean()), "log_loss": -float(log_p.mean())}


def probabilities_of(F: Any) -> Floats:
    return softmax(F, axis=1)
