"""Rows as numbers to compute with, cut into blocks, and the distances between them.

    X (n, d) rows     P (m, d) points

Squared distances of chosen pairs are taken by direct difference. The usual expansion |x|^2 + |p|^2 - 2 x'p loses the
small ones where features are in the tens of thousands.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from greenlabel._common.threads import in_parallel, load_faiss

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

COPIES = 16  # blocks are so much smaller where they are copied in double precision, to be in the processor's cache
BLOCK_VALUES = 2**22  # numbers held at once by a step that would otherwise copy all rows
FLOAT32_TYPES = tuple(map(np.dtype, ("float32", "float16", "uint8", "int8", "uint16", "int16", "bool")))


def row_blocks(n: int, values_per_row: int) -> Iterator[slice]:
    """Slices that cover n rows, each of about BLOCK_VALUES numbers; what is found for a row is some 64 numbers too."""
    size = max(1, BLOCK_VALUES // max(64, values_per_row))
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def working(X: Any) -> Any:
    """X in float32 where that holds its values, in float64 otherwise; sparse rows stay sparse."""
    if sp.issparse(X):
        return X.tocsr().astype(np.float64, copy=False)
    return np.ascontiguousarray(X, dtype=np.float32 if X.dtype.newbyteorder("=") in FLOAT32_TYPES else np.float64)


def taken(X: Any, rows: Ints) -> Any:
    """Some rows of X, as ``working`` gives them, copied on all threads: new memory takes longer than the copy."""
    if sp.issparse(X):
        return working(X[rows])
    P = np.empty((len(rows), X.shape[1]), working(X[:1]).dtype)

    def take(part: slice) -> None:
        P[part] = X[rows[part]]

    in_parallel(take, row_blocks(*P.shape))
    return P


def squared_norms(X: Any) -> NDArray[np.float64]:
    if sp.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1), dtype=np.float64).ravel()
    if X.dtype != np.float32:
        return np.einsum("nd,nd->n", X, X)
    norm2 = np.empty(len(X))
    for rows in row_blocks(len(X), COPIES * X.shape[1]):
        wide = X[rows].astype(np.float64)
        norm2[rows] = np.einsum("nd,nd->n", wide, wide)
    return norm2


def all_distances(X: Any, P: Any, *, absolute: bool) -> Floats:
    """Distances (n, m) of all rows to all points, for kernels: sums of absolute differences, or of their squares.

    In single precision where there are many: kernels fall off smoothly.
    """
    if sp.issparse(X) or sp.issparse(P):
        from sklearn.metrics.pairwise import euclidean_distances, manhattan_distances  # slow to import, seldom needed

        X, P = sp.csr_matrix(X), sp.csr_matrix(P)
        return manhattan_distances(X, P) if absolute else euclidean_distances(X, P, squared=True)
    if X.shape[0] * P.size <= BLOCK_VALUES:
        return cdist(X, P, "cityblock" if absolute else "sqeuclidean")
    faiss = load_faiss()
    X, P = (np.ascontiguousarray(A, np.float32) for A in (X, P))
    return np.asarray(faiss.pairwise_distances(X, P, faiss.METRIC_L1 if absolute else faiss.METRIC_L2))


def pair_distances(X: Any, P: Any, index: Ints) -> NDArray[np.float64]:
    """Squared distance of row i to each of the points index[i], by direct difference."""
    n, k = index.shape
    if sp.issparse(X) or sp.issparse(P):
        pairs = sp.csr_array(X)[np.repeat(np.arange(n), k)] - sp.csr_array(P)[index.ravel()]
        return np.asarray(pairs.multiply(pairs).sum(axis=1), dtype=np.float64).reshape(n, k)
    if X.dtype == np.float32 and P.dtype == np.float32:
        faiss = load_faiss()
        short, ids = np.empty((n, k), np.float32), np.ascontiguousarray(index, np.int64)
        pointers = map(faiss.swig_ptr, (short, np.ascontiguousarray(X), P, ids))
        faiss.fvec_L2sqr_by_idx(*pointers, X.shape[1], n, k)
        return short.astype(np.float64)
    dist2 = np.empty((n, k))
    for rows in row_blocks(n, k * X.shape[1]):
        gap = X[rows, None, :] - P[index[rows]]
        dist2[rows] = np.einsum("ikd,ikd->ik", gap, gap)
    return dist2
