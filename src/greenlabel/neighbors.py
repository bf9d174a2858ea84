"""Nearest points by Euclidean distance; the only module that imports faiss.

    dist2, index = search.nearest(X, k)        both (n, k), nearest first; equal distances in the order of their index

Engines find candidates; the squared distances of the candidates are then taken anew by direct difference, in float64
where float32 does not hold the features. The usual expansion |x|^2 + |p|^2 - 2 x'p is never the answer: with features
in the tens of thousands it loses the small distances.

    SparseSearch     sparse features: exact, by scikit-learn
    Float64Search    few pairs: exact, in double precision
    FlatSearch       exact at the price of one matrix product (faiss);
                     a row for which float32 is too coarse goes to Float64Search
    ReducedSearch    exact below that price: candidates by a lower bound of the distance on the principal axes;
                     a row whose answer the bound does not prove goes to FlatSearch
    ClusterSearch    approximate, for graphs of many rows: an inverted file on the principal axes (faiss)

X (n, d) rows that ask     P (m, d) points that are searched     k neighbours
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import faiss
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from greenlabel.projection import SAMPLE_ROWS, Projection, principal_axes, sample_rows

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Found = tuple[NDArray[np.float64], NDArray[np.int64]]

BLOCK_VALUES = 2**22  # numbers held at once by a step that would otherwise copy all rows
FLOAT64_PAIRS = 2**24  # up to so many (row, point) pairs, double precision costs nothing to speak of
EXACT_OPERATIONS = 1e11  # up to so many multiplications a k-NN graph is searched exactly (about two seconds)
SPARE = 4  # candidates beyond k, so that rounding in the search cannot push a neighbour out
REDUCED_POINTS = 256  # fewer points are searched as fast without the reduced bound
CLUSTER_AXES = 64
CLUSTERS_PROBED = 12
FLOAT32_ROUNDING = 8 * float(np.finfo(np.float32).eps)  # of |x|^2 + |p|^2 - 2 x'p relative to |x|^2, for p near x
FLOAT32_TYPES = tuple(map(np.dtype, ("float32", "float16", "uint8", "int8", "uint16", "int16", "bool")))


def row_blocks(n: int, values_per_row: int) -> Iterator[slice]:
    """Slices that cover n rows, each of about BLOCK_VALUES numbers; what is found for a row is some 64 numbers too."""
    size = max(1, BLOCK_VALUES // max(64, values_per_row))
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def working(X: Any) -> Any:
    """X in float32 where that holds its values, in float64 otherwise; sparse rows stay sparse."""
    if sp.issparse(X):
        return X.tocsr().astype(np.float64, copy=False)
    return np.ascontiguousarray(X, dtype=np.float32 if X.dtype in FLOAT32_TYPES else np.float64)


def centre(X: Floats, mean: Floats) -> NDArray[np.float32]:
    return np.ascontiguousarray(X - mean, dtype=np.float32)


def coordinates(X: Floats, projection: Projection, n_axes: int | None = None) -> NDArray[np.float32]:
    """Q = (X - mean) V by faiss, whose threads the searches before and after it use: two kinds of threads would wait
    for each other longer than the product takes."""
    V = projection.axes[:, :n_axes]
    transform = faiss.LinearTransform(V.shape[0], V.shape[1], False)
    faiss.copy_array_to_vector(np.ascontiguousarray(V.T, dtype=np.float32).ravel(), transform.A)
    transform.is_trained = True
    return transform.apply(centre(X, projection.mean))


def squared_norms(X: NDArray[np.float32]) -> NDArray[np.float64]:
    norm2 = np.empty(len(X), np.float32)
    faiss.fvec_norms_L2sqr(faiss.swig_ptr(norm2), faiss.swig_ptr(X), X.shape[1], len(X))  # type: ignore[attr-defined]
    return norm2.astype(np.float64)


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
    X, P = (np.ascontiguousarray(A, np.float32) for A in (X, P))
    return faiss.pairwise_distances(X, P, faiss.METRIC_L1 if absolute else faiss.METRIC_L2)


def pair_distances(X: Any, P: Any, index: Ints) -> NDArray[np.float64]:
    """Squared distance of row i to each of the points index[i], by direct difference."""
    n, k = index.shape
    if sp.issparse(X) or sp.issparse(P):
        pairs = sp.csr_array(X)[np.repeat(np.arange(n), k)] - sp.csr_array(P)[index.ravel()]
        return np.asarray(pairs.multiply(pairs).sum(axis=1), dtype=np.float64).reshape(n, k)
    if X.dtype == np.float32 and P.dtype == np.float32:
        short, ids = np.empty((n, k), np.float32), np.ascontiguousarray(index, np.int64)
        pointers = map(faiss.swig_ptr, (short, np.ascontiguousarray(X), P, ids))
        faiss.fvec_L2sqr_by_idx(*pointers, X.shape[1], n, k)  # type: ignore[attr-defined]
        return short.astype(np.float64)
    dist2 = np.empty((n, k))
    for rows in row_blocks(n, k * X.shape[1]):
        gap = X[rows, None, :] - P[index[rows]]
        dist2[rows] = np.einsum("ikd,ikd->ik", gap, gap)
    return dist2


def refine(X: Any, P: Any, candidates: Any, k: int, own: Ints | None) -> Found:
    """The k nearest of the candidates by direct difference; ``own`` holds the number of each row among the points."""
    dist2 = pair_distances(X, P, candidates)
    dist2[candidates < 0] = np.inf  # faiss's sign for a candidate it did not find
    if own is not None:
        dist2[candidates == own[:, None]] = np.inf
    order = np.lexsort((candidates, dist2), axis=1)[:, :k]
    return np.take_along_axis(dist2, order, axis=1), np.take_along_axis(candidates, order, axis=1)


class Search:
    """The points P, ready to be searched in blocks of rows. A subclass finds candidates."""

    def __init__(self, P: Any):
        self.P = P

    def nearest(self, X: Any, k: int, own: Ints | None = None) -> Found:
        """The k nearest points of each row; with ``own``, the row's own number among the points does not count."""
        n = X.shape[0]
        dist2, index = np.empty((n, k)), np.empty((n, k), np.int64)
        for rows in row_blocks(n, self._values_per_row(X, k)):
            dist2[rows], index[rows] = self._block(self._like_points(X[rows]), k, None if own is None else own[rows])
        return dist2, index

    def nearest_to_own(self, k: int) -> Found:
        """The k nearest other points of each point. Itself is known by its number: a duplicate may come first."""
        return self.nearest(self.P, k, np.arange(self.P.shape[0]))

    def _like_points(self, X: Any) -> Any:
        """Rows sparse where the points are, and dense where they are not."""
        if sp.issparse(self.P):
            return sp.csr_array(X, dtype=np.float64)
        return working(X.toarray() if sp.issparse(X) else X)

    def _values_per_row(self, X: Any, k: int) -> int:
        return X.shape[1]

    def _block(self, X: Any, k: int, own: Ints | None) -> Found:
        return refine(X, self.P, self._candidates(X, self._wanted(k, own)), k, own)

    def _wanted(self, k: int, own: Ints | None) -> int:
        return min(k + (own is not None) + SPARE, self.P.shape[0])

    def _candidates(self, X: Any, k: int) -> Ints:
        raise NotImplementedError

    def _redo(
        self, dist2: Floats, index: Ints, rows: NDArray[np.bool_], other: "Search", X: Any, own: Ints | None
    ) -> None:
        """Overwrite the marked rows with what a more careful search finds."""
        own = None if own is None else own[rows]
        dist2[rows], index[rows] = other.nearest(X[rows], dist2.shape[1], own)


class SparseSearch(Search):
    def __init__(self, P: Any):
        from sklearn.neighbors import NearestNeighbors  # slow to import, and seldom needed

        super().__init__(P)
        self._engine = NearestNeighbors(algorithm="brute").fit(P)

    def _values_per_row(self, X: Any, k: int) -> int:
        stored = X.nnz if sp.issparse(X) else X.size
        return k * max(1, stored // max(1, X.shape[0]))

    def _candidates(self, X: Any, k: int) -> Ints:
        return self._engine.kneighbors(X, k, return_distance=False)


class Float64Search(Search):
    def __init__(self, P: Floats):
        super().__init__(P)
        self._mean = P.mean(axis=0, dtype=np.float64)
        self._centred = P - self._mean
        self._norm2 = np.einsum("md,md->m", self._centred, self._centred)

    def _values_per_row(self, X: Floats, k: int) -> int:
        return max(self.P.shape)

    def _candidates(self, X: Floats, k: int) -> Ints:
        # |x|^2 is the same for all points of a row, so it does not take part in the choice.
        relative = self._norm2 - 2 * (X - self._mean) @ self._centred.T
        if k == relative.shape[1]:
            return np.broadcast_to(np.arange(k), relative.shape)
        return np.argpartition(relative, k - 1, axis=1)[:, :k]


class FlatSearch(Search):
    def __init__(self, P: Floats):
        super().__init__(P)
        self._mean = P.mean(axis=0, dtype=np.float64).astype(P.dtype)
        self._centred = centre(P, self._mean)

    def _block(self, X: Floats, k: int, own: Ints | None) -> Found:
        centred = centre(X, self._mean)
        _, candidates = faiss.knn(centred, self._centred, self._wanted(k, own))
        dist2, index = refine(X, self.P, candidates, k, own)
        # A last distance of 0 needs no better digits: nothing can be nearer.
        coarse = (FLOAT32_ROUNDING * squared_norms(centred) > 0.01 * dist2[:, -1]) & (dist2[:, -1] > 0)
        if coarse.any():
            self._redo(dist2, index, coarse, self._careful, X, own)
        return dist2, index

    @cached_property
    def _careful(self) -> Float64Search:
        return Float64Search(self.P)


class ReducedSearch(Search):
    """Exact neighbours from the lower bound

        |x - p|^2 >= |V'x - V'p|^2 + (r(x) - r(p))^2,    r(x) = |x - VV'x|, what the axes V leave of a row,

    itself a squared distance, in q + 1 dimensions. Where the bound of the last candidate exceeds the k-th
    distance found, no other point can be nearer: the answer is proven.
    """

    def __init__(self, P: Floats, projection: Projection):
        super().__init__(P)
        self._flat = FlatSearch(P)
        self._projection = projection
        self._reduced, _ = self._reduce(P)

    def _reduce(self, X: Floats) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Coordinates and remainder (n, q + 1), and how far the squared remainder may be off."""
        Q = coordinates(X, self._projection)
        norm2 = squared_norms(centre(X, self._projection.mean))
        remainder = np.sqrt(np.maximum(norm2 - squared_norms(Q), 0)).astype(np.float32)
        return np.column_stack([Q, remainder]), FLOAT32_ROUNDING * norm2

    def _block(self, X: Floats, k: int, own: Ints | None) -> Found:
        Q, slack = self._reduce(X)
        bound, candidates = faiss.knn(Q, self._reduced, min(2 * k + (own is not None) + SPARE, len(self.P)))
        dist2, index = refine(X, self.P, candidates, k, own)
        # A remainder off by e moves the bound at distance D by 2 sqrt(e D) + e at the most.
        farthest = dist2[:, -1]
        unproven = bound[:, -1] < farthest + 2 * np.sqrt(slack * farthest) + slack
        if unproven.any() and candidates.shape[1] < len(self.P):
            self._redo(dist2, index, unproven, self._flat, X, own)
        return dist2, index


class ClusterSearch(Search):
    """Approximate neighbours: rows are looked up in the clusters nearest to them, on the principal axes."""

    def __init__(self, P: Floats, projection: Projection, seed: int):
        super().__init__(P)
        self._projection = projection
        n, q = len(P), projection.axes.shape[1]
        n_clusters = int(2 * np.sqrt(n))
        index: Any = faiss.index_factory(q, f"IVF{n_clusters},Flat")
        index.nprobe = CLUSTERS_PROBED
        index.cp.niter, index.cp.seed = 5, seed
        index.cp.min_points_per_centroid, index.cp.max_points_per_centroid = 1, 64
        Q = np.concatenate([coordinates(P[rows], projection) for rows in row_blocks(n, P.shape[1])])
        index.train(Q)
        index.add(Q)
        self._index = index

    def _wanted(self, k: int, own: Ints | None) -> int:
        return min(3 * k + (own is not None), self.P.shape[0])

    def _block(self, X: Floats, k: int, own: Ints | None) -> Found:
        _, candidates = self._index.search(coordinates(X, self._projection), self._wanted(k, own))
        dist2, index = refine(X, self.P, candidates, k, own)
        short = ~np.isfinite(dist2[:, -1])
        if short.any():
            self._redo(dist2, index, short, self._flat, X, own)
        return dist2, index

    @cached_property
    def _flat(self) -> FlatSearch:
        return FlatSearch(self.P)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_index": faiss.serialize_index(self._index)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _index=faiss.deserialize_index(state["_index"]))


def neighbour_matrix(index: Ints, weight: Floats, n_columns: int) -> sp.csr_array:
    """(rows, n_columns) with the weights of each row's k neighbours."""
    n, k = index.shape
    short = np.int32 if max(n * k, n_columns) < 2**31 else np.int64  # half the bytes, where they are enough
    indptr = np.arange(0, n * k + 1, k, dtype=short)
    return sp.csr_array((weight.ravel(), index.ravel().astype(short), indptr), shape=(n, n_columns))


def kmeans_groups(Q: Floats, m: int, seed: int) -> Ints:
    """The group of each row by plain k-means; some of the m groups may be empty."""
    Q = np.ascontiguousarray(Q, np.float32)
    clustering = faiss.Kmeans(
        Q.shape[1], m, niter=20, seed=seed, min_points_per_centroid=1, max_points_per_centroid=len(Q)
    )
    clustering.train(Q)
    return faiss.knn(Q, clustering.centroids, 1)[1][:, 0]


def exact_search(P: Any, n_rows: int, projection: Projection | None = None) -> Search:
    """The fastest exact search of n_rows among the points P; a projection helps where rows are wide."""
    m, d = P.shape
    if sp.issparse(P):
        return SparseSearch(P)
    if n_rows * m <= FLOAT64_PAIRS:
        return Float64Search(P)
    if projection is not None and d >= 2 * projection.axes.shape[1] and m >= REDUCED_POINTS:
        return ReducedSearch(P, projection)
    return FlatSearch(P)


def graph_search(P: Any, rng: np.random.Generator) -> Search:
    """A search of rows among themselves: exact while that is affordable, approximate beyond."""
    n, d = P.shape
    if sp.issparse(P) or n * n * d <= EXACT_OPERATIONS:
        return exact_search(P, n)
    sample = P[sample_rows(n, SAMPLE_ROWS, rng)]
    return ClusterSearch(P, principal_axes(sample, min(d, CLUSTER_AXES)), int(rng.integers(2**31)))
