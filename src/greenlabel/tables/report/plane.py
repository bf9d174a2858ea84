"""A map of the rows: features X -> positions in the plane, by t-SNE on a sample. Near means alike; axes have no unit.

    X (n, d) features     positions (s, 2) of the sampled rows

Everything runs on one thread from one seed, so the same rows always have the same map.
"""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import eigh

from greenlabel._common.threads import one_thread

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

MAX_ROWS = 1500
AXES = 50  # leading components that t-SNE sees
SEED = 0
START_DEVIATION = 1e-4  # as t-SNE wants it
ROUNDING = 1e-7  # relative size of components that are none
FEW = 5  # rows with which t-SNE has nothing to do


def sample_for_map(is_given: NDArray[np.bool_], max_rows: int = MAX_ROWS) -> Ints:
    """Rows to draw, ascending: up to half of them labelled, or more where there are too few others."""
    rng = np.random.default_rng(SEED)
    given, others = np.flatnonzero(is_given), np.flatnonzero(~is_given)
    n_given = min(len(given), max(max_rows // 2, max_rows - len(others)))
    n_others = min(len(others), max_rows - n_given)
    chosen = [rng.choice(rows, size, replace=False) for rows, size in ((given, n_given), (others, n_others))]
    return np.sort(np.concatenate(chosen))


def positions(X: Any) -> Floats:
    """Positions in the plane, near where rows are alike."""
    with one_thread():
        Q = principal_components(X)
        start = np.zeros((len(Q), 2))
        start[:, : min(2, Q.shape[1])] = Q[:, :2]
        deviation = start[:, 0].std()
        if len(Q) < FEW or not deviation:
            return start
        start += np.random.default_rng(SEED).normal(scale=0.01 * deviation, size=start.shape)  # a line may unfold
        return _tsne(Q / deviation, START_DEVIATION * start / deviation)


def principal_components(X: Any) -> Floats:
    """Leading principal components, largest first, each turned so that its largest entry is positive.

    By products of rows, of which there are few; columns may be many, and sparse.
    """
    X = X if sp.issparse(X) else np.asarray(X, dtype=np.float64) - np.mean(X, axis=0, dtype=np.float64)
    X = X / (abs(X).max() or 1)  # constant rows: any divisor will do
    products = X @ X.T
    products = products.toarray() if sp.issparse(products) else products
    products = products - products.mean(axis=0) - products.mean(axis=1, keepdims=True) + products.mean()
    size, vectors = eigh(products, subset_by_index=(max(0, len(products) - AXES), len(products) - 1))
    Q = (vectors * np.sqrt(np.maximum(size, 0)))[:, ::-1]
    Q[np.abs(Q) < ROUNDING * np.abs(Q).max()] = 0
    return Q * np.where(Q[np.abs(Q).argmax(axis=0), np.arange(Q.shape[1])] < 0, -1.0, 1.0)


def _tsne(Q: Floats, start: Floats) -> Floats:
    from sklearn.manifold import TSNE

    model = TSNE(init=start, perplexity=min(30, (len(Q) - 1) / 3), max_iter=500, random_state=SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of many equal rows
        return model.fit_transform(Q)
