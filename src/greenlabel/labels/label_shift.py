"""Label shift: the shares of the classes in the data may differ from those among the labels.

Labels drawn at random have about the shares of the data; those drawn class by class do not. The predictions of a model
then tell more about the sizes of classes than the labels do. C_jk, the mean probability of class k on tested rows of
class j, maps the shares q of the data to the mean probabilities on it:

    C'q = p_mean

    k tested rows, leave-one-out or out-of-fold     c classes
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

USUAL_GAPS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)  # divided by c: usual distance of shares of the data from those of labels
MIN_SHARE = 0.1  # relative to the share among the labels: no class is taken to be rarer
MIN_ALIKE, MIN_SHARE_ALIKE = 3, 0.1  # classes with the largest number of labels: it was then set, not drawn


def is_drawn_by_class(counts: Ints) -> bool:
    """Whether the number of labels of a class was set: several classes then have the largest one, rare by chance.

    Classes with fewer rows than that may have fewer labels.
    """
    n_alike = int((counts == counts.max()).sum())
    return n_alike >= max(min(MIN_ALIKE, len(counts)), MIN_SHARE_ALIKE * len(counts))


def suggested_shares(p_tested: Floats, codes: Ints, p_mean: Floats, label_shares: Floats, repeats: int = 1) -> Floats:
    """Shares q (c,) of the classes that the data suggests.

    C is known from few rows, so the equation holds up to its noise, and q is drawn towards the shares of the labels
    by the usual gap between the two.

    p_tested (k, c), codes (k,) : probabilities of tested rows, and their classes; each row comes ``repeats`` times
    p_mean (c,) : mean probabilities of all rows
    label_shares (c,) : shares of the classes among the labels
    """
    from scipy.optimize import nnls  # slow to import

    c = len(label_shares)
    C, variance = _confusion(p_tested, codes, label_shares, repeats)
    q = label_shares
    for _ in range(3):  # the noise depends on q itself
        noise = np.sqrt((q[:, None] ** 2 * variance).sum(axis=0) + 1e-6)
        gap = _likely_gap(p_mean - C.T @ label_shares, C, noise)
        rows = np.vstack([C.T / noise[:, None], np.eye(c) / gap, np.full((1, c), 1e3)])  # the last one: q sums to 1
        q = nnls(rows, np.concatenate([p_mean / noise, label_shares / gap, [1e3]]))[0]
    q = np.maximum(q, MIN_SHARE * label_shares)
    return q / q.sum()


def _likely_gap(surprise: Floats, C: Floats, noise: Floats) -> float:
    """The usual size of q_j - p_j for which the surprise, p_mean - C'p, is most likely; small ones are preferred.

    The surprise is normal with the covariance diag(noise^2) + gap^2 C'HC, H = I - 11'/c: gaps sum to zero.
    """
    c = len(noise)
    CHC = C.T @ C - np.outer(C.sum(axis=0), C.sum(axis=0)) / c

    def likelihood(gap: float) -> float:
        covariance = np.diag(noise**2) + gap**2 * CHC
        _, log_volume = np.linalg.slogdet(covariance)
        return -float(log_volume + surprise @ np.linalg.solve(covariance, surprise) + np.log(gap)) / 2

    return max((gap / c for gap in USUAL_GAPS), key=likelihood)


def _confusion(p: Floats, codes: Ints, label_shares: Floats, repeats: int) -> tuple[Floats, Floats]:
    """Mean probabilities (c, c) on rows of each class, and the variance of these means.

    Each class has one more row, with the shares of the labels as its probabilities.
    """
    c = len(label_shares)
    counts = np.bincount(codes, minlength=c)[:, None]
    sums = np.zeros((c, c))
    np.add.at(sums, codes, p)
    C = (sums + label_shares) / (counts + 1)
    squares = np.zeros((c, c))
    np.add.at(squares, codes, (p - C[codes]) ** 2)
    return C, (squares + 0.25) / (counts + 1) / np.maximum(counts / repeats, 1)  # a repeated row is no new observation
