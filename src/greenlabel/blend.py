"""The blend: several opinions made one, weighted by how they do on labelled rows that they did not see.

    A_e (l, c)   held-out evidence of expert e on the labelled rows, centred, times a temperature of its own
    w            argmin  - sum_i log softmax(sum_e w_e A_e)_{i y_i}  +  lambda sqrt(l) |w - w0|^2,   w >= 0
    F            t (sum_e w_e A_e) + log(q / p)          on all rows: log-probabilities up to a constant of the row

The penalty draws the weights to w0, what experts are worth without any evidence, where labels are few. One temperature
t makes the probabilities of F those of the held-out rows. Labels are often drawn class by class, so that their shares p
say nothing about the data: q are the shares that the unlabelled rows suggest, drawn towards p where the experts cannot
tell the classes apart.

    e experts     l labelled rows     c classes     r divisions of the labelled rows into folds
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from greenlabel.labels import choose_temperature, smoothed_target

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

FOLDS = 5
DIVISIONS = 2
MOST_HELD_OUT = 2000  # labelled rows that are held out at all
DRAWN = 0.3  # lambda, how strongly weights are drawn to what they are without evidence
DOUBT = 2.0  # observations spread over all classes that stand beside the held-out ones when t is chosen
FLOOR = 0.02  # of a probability, spread over the classes, so that its logarithm is finite
USUAL_GAPS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)  # divided by c: how far shares of data may lie from those of its labels
LEAST_SHARE = 0.1  # of the share among the labels: no class is thought to be rarer than that
NEW = -2  # in place of a fold: the row had no label at the fit
SURE = 0.9  # of the interval of the estimated accuracy
TYPICAL_LEAD = 2.0  # evidence of a usual row where nothing can be held out


def divide(codes: Ints, rng: np.random.Generator) -> Ints:
    """Folds (r, l): which labelled rows are held out together. -1 is never held out.

    Each class is spread evenly over the folds, so that one of its labels always stays; a class of one label is never
    held out. Of very many labels only some are.
    """
    counts = np.bincount(codes)
    chosen = counts[codes] > 1
    if len(codes) > MOST_HELD_OUT:
        chosen &= rng.uniform(size=len(codes)) < MOST_HELD_OUT / len(codes)
        return _leave_one_of_each(np.where(chosen, 0, -1), codes)[None]
    return np.stack([np.where(chosen, _spread_evenly(codes, rng), -1) for _ in range(DIVISIONS)])


def _spread_evenly(codes: Ints, rng: np.random.Generator) -> Ints:
    """Fold of each row: rows of a class, in an order drawn at random, go to one fold after the other."""
    order = np.lexsort((rng.uniform(size=len(codes)), codes))
    fold = np.empty(len(codes), np.intp)
    fold[order] = np.arange(len(codes)) % FOLDS
    return fold


def _leave_one_of_each(fold: Ints, codes: Ints) -> Ints:
    """The folds (l,), where the first row of a class whose rows are all in one fold is held out no more."""
    for code in np.unique(codes):
        places = np.flatnonzero(codes == code)
        if fold[places[0]] >= 0 and (fold[places] == fold[places[0]]).all():
            fold[places[0]] = -1
    return fold


def divide_again(codes: Ints, before: Ints, rng: np.random.Generator) -> Ints:
    """Folds (r, l) of other labels on the same rows, which what was made for the first folds may be tested by.

    before (l,) is the fold of each row in the first division of the fit. There it stays; -1 was seen by all folds and
    still is never held out. A row that is NEW goes where its class has the fewest rows.
    """
    folds = divide(codes, rng)
    first = np.where((folds[0] >= 0) & (before != NEW), before, folds[0])
    counts = np.zeros((codes.max() + 1, max(first.max(), 0) + 1), np.intp)
    is_new, is_out = before == NEW, first >= 0
    np.add.at(counts, (codes[is_out & ~is_new], first[is_out & ~is_new]), 1)
    for place in rng.permutation(np.flatnonzero(is_out & is_new)):
        of_class = counts[codes[place]]
        first[place] = np.lexsort((counts.sum(axis=0), of_class))[0]
        of_class[first[place]] += 1
    folds[0] = _leave_one_of_each(first, codes)
    return np.where(folds[0] >= 0, folds, -1)


def log_evidence(p: Floats) -> Floats:
    """Centred logarithms of probabilities (rows, c)."""
    log_p = np.log(p + FLOOR / p.shape[1])
    return log_p - log_p.mean(axis=1, keepdims=True)


@dataclass(frozen=True)
class Blend:
    """How the opinions of e experts are added up."""

    scales: Floats  # (e,) what the evidence of each expert is multiplied by before it is added
    own: Floats  # (e,) the temperature at which the evidence of each expert alone gives its probabilities
    weights: Floats  # (e,) the share of each expert in the evidence on held-out rows; sum to 1
    held_out: Floats  # (k, c) the blend on the k held-out rows, all divisions below each other; empty without any
    codes: Ints  # (k,) their true classes


def blend(held_out: Floats, codes: Ints, trust: Floats) -> Blend:
    """Weights and temperature from the held-out evidence (e, k, c) of rows with these classes (k,).

    trust (e,): how the experts weigh against each other before any evidence.
    """
    own = np.array([choose_temperature(A, codes) for A in held_out])
    A = own[:, None, None] * held_out
    w = choose_weights(A, codes, trust / trust.sum())
    t = choose_temperature(np.tensordot(w, A, 1), codes, DOUBT)
    part = w * np.sqrt((A**2).mean(axis=(1, 2)))  # an expert that says nothing has no part, whatever its weight
    shares = part / part.sum() if part.sum() > 0 else w / w.sum()
    return Blend(t * w * own, own, shares, np.tensordot(t * w, A, 1), codes)


def blend_blindly(typical_lead: Floats, c: int, trust: Floats) -> Blend:
    """Where every class has a single label nothing can be held out: trust (e,) decides alone.

    typical_lead (e,): the evidence of each expert for the best class of a usual row. Probabilities are then an order of
    the rows, not a promise.
    """
    w = trust / trust.sum()
    scale = np.divide(TYPICAL_LEAD, typical_lead, out=np.zeros(len(w)), where=typical_lead > 0)
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

    found = minimize(loss, before, jac=True, bounds=[(0, None)] * e, method="L-BFGS-B").x
    return found if found.sum() > 0 else before


def suggested_shares(p_held: Floats, codes: Ints, p_mean: Floats, label_shares: Floats) -> Floats:
    """Shares q (c,) of the classes that the data suggests.

    C_jk, the mean probability of class k on held-out rows of class j, maps the shares of the data to the mean
    probabilities p_mean (c,) that are seen on it: C'q = p_mean. C is known from few rows, so the equation holds up to
    its own noise, and q is drawn towards the shares of the labels by the usual gap between the two.
    """
    from scipy.optimize import nnls  # slow to import

    c = len(label_shares)
    C, variance = _confusion(p_held, codes, label_shares)
    q = label_shares
    for _ in range(3):  # the noise depends on q itself
        noise = np.sqrt((q[:, None] ** 2 * variance).sum(axis=0) + 1e-6)
        gap = _likely_gap(p_mean - C.T @ label_shares, C, noise)
        rows = np.vstack([C.T / noise[:, None], np.eye(c) / gap, np.full((1, c), 1e3)])  # the last one: they sum to 1
        q = nnls(rows, np.concatenate([p_mean / noise, label_shares / gap, [1e3]]))[0]
    q = np.maximum(q, LEAST_SHARE * label_shares)
    return q / q.sum()


def _likely_gap(surprise: Floats, C: Floats, noise: Floats) -> float:
    """The usual size of q_j - p_j under which the surprise, p_mean - C'p, is most likely; small ones come first.

    The surprise is normal with the covariance diag(noise^2) + gap^2 C'HC, H = I - 11'/c: gaps sum to zero.
    """
    c = len(noise)
    spread = C.T @ C - np.outer(C.sum(axis=0), C.sum(axis=0)) / c

    def likelihood(gap: float) -> float:
        covariance = np.diag(noise**2) + gap**2 * spread
        _, log_volume = np.linalg.slogdet(covariance)
        return -float(log_volume + surprise @ np.linalg.solve(covariance, surprise) + np.log(gap)) / 2

    return max((gap / c for gap in USUAL_GAPS), key=likelihood)


def _confusion(p: Floats, codes: Ints, label_shares: Floats) -> tuple[Floats, Floats]:
    """Mean probabilities (c, c) on rows of each class, and the variance of these means.

    One more row with the shares of the labels stands beside those of each class; a class without any has no more.
    """
    c = len(label_shares)
    counts = np.bincount(codes, minlength=c)[:, None]
    sums = np.zeros((c, c))
    np.add.at(sums, codes, p)
    C = (sums + label_shares) / (counts + 1)
    squares = np.zeros((c, c))
    np.add.at(squares, codes, (p - C[codes]) ** 2)
    # Divisions hold the same rows out again: they are no new observations.
    return C, (squares + 0.25) / (counts + 1) / np.maximum(counts / DIVISIONS, 1)


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


def estimate_accuracy(confidence: float, n_told: float) -> Estimate:
    """Accuracy from the mean confidence on unlabelled rows, with an interval from the number of rows that back it up.

    The temperature was chosen on that many held-out rows, so the confidence is as uncertain as a share of right answers
    among them: the interval is Jeffreys'. Without any such row it is all of what is possible.
    """
    from scipy.stats import beta  # slow to import

    if n_told == 0:
        return Estimate.between(confidence, 0.0, 1.0)
    tail = (1 - SURE) / 2
    a, b = confidence * n_told + 0.5, (1 - confidence) * n_told + 0.5
    return Estimate.between(confidence, float(beta.ppf(tail, a, b)), float(beta.ppf(1 - tail, a, b)))


def effective_rows(codes: Ints, shares: Floats, label_shares: Floats) -> float:
    """How many rows drawn from the data the held-out ones are worth, given that classes are held out unevenly."""
    importance = (shares / label_shares)[codes]
    return len(codes) * float(importance.mean() ** 2 / (importance**2).mean()) if len(codes) else 0.0


def scale_to_confidence(E: Floats, confidence: float) -> float:
    """The t at which the mean probability of the best class under softmax(t E) is the given one; E (n, c) evidence."""
    from scipy.optimize import brentq  # slow to import

    def gap(log_t: float) -> float:
        return float(softmax(np.exp(log_t) * E, axis=1).max(axis=1).mean()) - confidence

    typical = float(np.median(np.abs(E).max(axis=1))) or 1.0
    ends = np.log(1e-3 / typical), np.log(1e3 / typical)
    if gap(ends[0]) >= 0 or gap(ends[1]) <= 0:  # out of reach, as a confidence of 1 is
        return float(np.exp(ends[0] if gap(ends[0]) >= 0 else ends[1]))
    return float(np.exp(brentq(gap, *ends, xtol=1e-3)))


def accuracy_and_loss(A: Floats, codes: Ints) -> dict[str, float]:
    """Share of right answers and mean log-loss of log-evidence A (k, c); nan without any row."""
    if not len(codes):
        return {"accuracy": float("nan"), "log_loss": float("nan")}
    log_p = log_softmax(A, axis=1)[np.arange(len(codes)), codes]
    return {"accuracy": float((A.argmax(axis=1) == codes).mean()), "log_loss": -float(log_p.mean())}


def probabilities_of(F: Any) -> Floats:
    return softmax(F, axis=1)
