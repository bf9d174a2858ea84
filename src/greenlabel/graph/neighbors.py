"""Nearest points by Euclidean distance.

    dist2, index = search.nearest(X, k)        both (n, k), nearest first; equal distances in the order of their index

Engines find candidates; the squared distances of the candidates are then taken anew by direct difference, in float64
where float32 does not hold the features. The usual expansion |x|^2 + |p|^2 - 2 x'p never decides: with features in
the tens of thousands it loses the small distances.

    Float64Search    few pairs, or sparse features: exact, in double precision
    FlatSearch       exact at the price of one matrix product (products.py), or less (compiled_search.py);
                     a row for which float32 is too coarse, or many points equally far, goes to Float64Search
    ReducedSearch    exact below that price: candidates by a lower bound of the distance on the principal axes;
                     a row whose neighbours the bound does not prove goes to FlatSearch
    ClusterSearch    approximate, for graphs of many rows: clusters on the principal axes, into which all points look
                     together (clusters.py), and other rows as they come (inverted.py)

The neighbours do not depend on the number of threads: the blocks of rows are the same on any machine, each is searched
on one thread, and what rounding could decide is decided by direct difference.

X (n, d) rows whose neighbours are wanted     P (m, d) points that are searched     k neighbours
"""

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.threads import in_parallel
from greenlabel.graph.candidates import Found, closest, nearest_pairs, redo
from greenlabel.graph.clusters import NearestCentres
from greenlabel.graph.compiled_search import clustered_points, comparable, single_coordinates
from greenlabel.graph.distances import squared_norms, working
from greenlabel.graph.inverted import InvertedSearch
from greenlabel.graph.kmeans import cluster_centres
from greenlabel.graph.projection import SAMPLE_ROWS, Projection, centre, principal_axes, sample_rows
from greenlabel.graph.search import Search

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

FLOAT64_PAIRS = 2**24  # (row, point) pairs up to which double precision costs next to nothing
EXACT_OPERATIONS = 1e11  # multiplications up to which a k-NN graph is searched exactly (about two seconds)
QUICK_OPERATIONS = 1e9  # the same for a graph that is one of many
SPARE, MANY_SPARE = 4, 256  # candidates beyond k, for rounding and equal distances: at first, and where these fail
MIN_VALUES = 1024  # of a row, by which blocks are cut: 4,096 rows at most
REDUCED_POINTS = 256  # fewer points are searched as fast without the reduced bound
CLUSTER_AXES = 64
POINTS_PER_CLUSTER = 256
CANDIDATES = 3  # for each neighbour wanted, where the axes leave something out
FLOAT32_ROUNDING = 8 * float(np.finfo(np.float32).eps)  # of a direct difference, and of sums of few numbers
FLOAT64_ROUNDING = 64 * float(np.finfo(np.float64).eps)


def float32_rounding(d: int) -> float:
    """The most by which |x|^2 + |p|^2 - 2 x'p of d columns is off, relative to |x|^2 + |x - p|^2; in any order."""
    return FLOAT32_ROUNDING + 2 * d * float(np.finfo(np.float32).eps)


def copy_numbers(P: Any) -> Ints:
    """The number of equal points before each point."""
    if sp.issparse(P):
        return np.zeros(P.shape[0], np.intp)  # equal sparse rows are rare, and costly to find
    values = np.ascontiguousarray(P + 0)  # -0 becomes 0
    _, distinct = np.unique(values.view(f"V{values.itemsize * values.shape[1]}").ravel(), return_inverse=True)
    order = np.argsort(distinct, kind="stable")
    sizes = np.bincount(distinct)
    copy = np.empty(len(order), np.intp)
    copy[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return copy


class Float64Search(Search):
    """All points that may be among the nearest by double precision are compared by direct difference.

    Of more equal points than neighbours are wanted, the first ones take part.
    """

    def __init__(self, P: Any):
        super().__init__(working(P))
        P = self.P
        self._mean = np.zeros(P.shape[1]) if sp.issparse(P) else P.mean(axis=0, dtype=np.float64)
        self._copy = copy_numbers(P)

    def values_per_row(self, X: Any, k: int) -> int:
        return max(self.P.shape)

    def _block(self, X: Any, k: int, own: Ints | None) -> Found:
        wanted = k + (own is not None)
        ids, points = self._points(wanted)
        centred = self._centre(X)
        product = centred @ points.T
        x2, p2 = squared_norms(centred)[:, None], squared_norms(points)
        dist2 = x2 + p2 - 2 * (product.toarray() if sp.issparse(product) else product)
        limit = np.partition(dist2, wanted - 1, axis=1)[:, wanted - 1, None]
        noise = FLOAT64_ROUNDING * (x2 + p2.max())
        if X.dtype == np.float32:
            noise += FLOAT32_ROUNDING * limit  # of the direct difference
        row, column = np.nonzero(dist2 <= limit + 2 * noise)
        return nearest_pairs(X, self.P, row, ids[column], k, own)

    def _centre(self, X: Any) -> Any:
        return X if sp.issparse(X) else X - self._mean

    def _points(self, wanted: int) -> tuple[Ints, Any]:
        """Indices and centred coordinates of the points, without copies beyond those that are wanted."""
        ids = np.flatnonzero(self._copy < wanted)
        return ids, self._centre(self.P if len(ids) == self.P.shape[0] else self.P[ids])


class FlatSearch(Search):
    """Candidates by products in float32. What lies beyond the last candidate is farther away than the k-th neighbour,
    or the row is searched again: with many candidates, then in double precision."""

    def __init__(self, P: Floats):
        super().__init__(P)
        self._mean = P.mean(axis=0, dtype=np.float64).astype(P.dtype)
        self._centred = comparable(centre(P, self._mean))

    def values_per_row(self, X: Any, k: int) -> int:
        """At least so many that narrow rows, too, make blocks for all threads."""
        return max(X.shape[1], MIN_VALUES)

    def _block(self, X: Floats, k: int, own: Ints | None) -> Found:
        found, unproven = self._among(k + (own is not None) + SPARE, X, k, own)
        return redo(found, unproven, self._among_many, X, own)

    def _among_many(self, X: Floats, k: int, own: Ints | None) -> Found:
        found, unproven = self._among(k + (own is not None) + MANY_SPARE, X, k, own)
        return redo(found, unproven, self._in_double, X, own)

    def _in_double(self, X: Floats, k: int, own: Ints | None) -> Found:
        return self._careful.nearest(X, k, own)  # made where a row needs it, and not before

    def _among(self, wanted: int, X: Floats, k: int, own: Ints | None) -> tuple[Found, NDArray[np.bool_]]:
        """The nearest of ``wanted`` candidates, and the rows for which no proof says that these are the neighbours."""
        centred = centre(X, self._mean)
        _, candidates = self._centred.nearest(centred, min(wanted, len(self.P)))
        dist2, index = closest(X, self.P, candidates, candidates.shape[1], own)
        last = np.where(index >= 0, dist2, 0).max(axis=1)
        norm2 = squared_norms(centred)
        noise = float32_rounding(X.shape[1]) * (norm2 + last)
        others_may_be = (dist2[:, k - 1] >= last - 2 * noise) & (wanted < len(self.P))
        is_unproven = others_may_be | (index[:, k - 1] < 0) | (norm2 >= np.finfo(np.float32).max)
        return (dist2[:, :k].copy(), index[:, :k].copy()), is_unproven

    @cached_property
    def _careful(self) -> Float64Search:
        return Float64Search(self.P)


class ReducedSearch(Search):
    """Exact neighbours from the lower bound

        |x - p|^2 >= |V'x - V'p|^2 + (r(x) - r(p))^2,    r(x) = |x - VV'x|, what the axes V leave of a row,

    itself a squared distance, in q + 1 dimensions. Where the bound of the last candidate exceeds the k-th
    distance found, no other point can be nearer: the neighbours are proven.
    """

    def __init__(self, P: Floats, projection: Projection):
        super().__init__(P)
        self.flat = FlatSearch(P)
        self.projection = projection
        self._axes = np.ascontiguousarray(projection.axes, dtype=np.float32)
        self._reduced = comparable(self._reduce(P)[0])

    def __getstate__(self) -> dict[str, Any]:
        return {"P": self.P, "projection": self.projection}

    def _reduce(self, X: Floats) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
        """Coordinates and remainder (n, q + 1), and how far the squared remainder is off as a rule, if not at worst."""
        centred = centre(X, self.projection.mean)
        Q = centred @ self._axes
        norm2 = squared_norms(centred)
        remainder = np.sqrt(np.maximum(norm2 - squared_norms(Q), 0)).astype(np.float32)
        return np.column_stack([Q, remainder]), FLOAT32_ROUNDING * norm2

    def _block(self, X: Floats, k: int, own: Ints | None) -> Found:
        Q, slack = self._reduce(X)
        bound, candidates = self._reduced.nearest(Q, min(2 * k + (own is not None) + SPARE, len(self.P)))
        found = closest(X, self.P, candidates, k, own)
        # A remainder off by e moves the bound at distance D by at most 2 sqrt(e D) + e.
        farthest = found[0][:, -1]
        unproven = bound[:, -1] <= farthest + 2 * np.sqrt(slack * farthest) + slack
        return redo(found, unproven & (candidates.shape[1] < len(self.P)), self.flat.nearest, X, own)


class ClusterSearch(Search):
    """Approximate neighbours: rows are looked up in the clusters nearest to them, on the principal axes.

    The points themselves are looked up together (clusters.py), other rows as they come (inverted.py).
    """

    group: Ints  # (m,)

    def __init__(self, P: Floats, projection: Projection, seed: int):
        super().__init__(P)
        self.projection = projection
        Q = self._coordinates()
        self.centres = cluster_centres(Q, _n_clusters(len(P)), seed)  # (clusters, axes)
        self.group = self._nearest.of_many(Q)
        self._Q: NDArray[np.float32] | None = Q  # for the search of the points themselves, which most often is next

    @classmethod
    def restored(cls, P: Floats, projection: Projection, centres: Floats, group: Ints) -> "ClusterSearch":
        """The same search from its known clusters (``centres`` and ``group``)."""
        search = cls.__new__(cls)
        search.P, search.projection, search._Q = P, projection, None
        search.centres = np.ascontiguousarray(centres, np.float32)
        search.group = np.ascontiguousarray(group, np.int64)
        return search

    @cached_property
    def _nearest(self) -> NearestCentres:
        return NearestCentres(self.centres)

    def _coordinates(self) -> NDArray[np.float32]:
        return single_coordinates(self.P, self.projection)

    def nearest_to_own(self, k: int) -> Found:
        Q, self._Q = self._coordinates() if self._Q is None else self._Q, None
        points = clustered_points(Q, self._nearest, self.group)
        n = len(self.P)
        dist2, index = np.empty((n, k)), np.empty((n, k), np.int64)

        def search(block: slice) -> None:
            rows = points.order[block]
            candidates = points.candidates(Q[rows], self.group[rows], self._n_candidates(k, True))
            dist2[rows], index[rows] = closest(self.P, self.P, candidates, k, rows, rows)

        in_parallel(search, points.blocks())
        return redo((dist2, index), index[:, -1] < 0, self._in_full, self.P, np.arange(n))

    def nearest(self, X: Any, k: int, own: Ints | None = None) -> Found:
        return self._inverted.nearest(X, k, own)

    def _n_candidates(self, k: int, is_own: bool) -> int:
        """Axes that leave something out need candidates to choose from; all axes are wrong by rounding alone."""
        is_whole = self.projection.axes.shape[1] == self.P.shape[1]
        return min((k + SPARE if is_whole else CANDIDATES * k) + is_own, len(self.P))

    def _in_full(self, X: Floats, k: int, own: Ints | None) -> Found:
        """For a row that has too few candidates. A copy of all points is made where a row needs it, and not before."""
        return self.flat.nearest(X, k, own)

    @cached_property
    def _inverted(self) -> InvertedSearch:
        """The same clusters for rows that are no points."""
        return InvertedSearch.restored(self.P, self.projection, self.centres, self.group)

    @cached_property
    def flat(self) -> FlatSearch:
        return FlatSearch(self.P)

    def __getstate__(self) -> dict[str, Any]:
        return {"P": self.P, "projection": self.projection, "centres": self.centres, "group": self.group}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(vars(ClusterSearch.restored(**state)))


def _n_clusters(n: int) -> int:
    """Of POINTS_PER_CLUSTER each, but sqrt(n) to 2 sqrt(n): a row is compared with centres, then with their points."""
    return int(np.clip(n // POINTS_PER_CLUSTER, np.sqrt(n), 2 * np.sqrt(n)))


def neighbour_matrix(index: Ints, weight: Floats, n_columns: int) -> sp.csr_array:
    """(rows, n_columns) with the weights of each row's k neighbours."""
    n, k = index.shape
    short = np.int32 if max(n * k, n_columns) < 2**31 else np.int64  # half the bytes, where they are enough
    indptr = np.arange(0, n * k + 1, k, dtype=short)
    return sp.csr_array((weight.ravel(), index.ravel().astype(short), indptr), shape=(n, n_columns))


def exact_search(P: Any, n_rows: int, projection: Projection | None = None) -> Search:
    """The fastest exact search of n_rows among the points P; a projection helps where rows are wide."""
    m, d = P.shape
    if sp.issparse(P) or n_rows * m <= FLOAT64_PAIRS:
        return Float64Search(P)
    if projection is not None and d >= 2 * projection.axes.shape[1] and m >= REDUCED_POINTS:
        return ReducedSearch(P, projection)
    return FlatSearch(P)


def graph_search(P: Any, rng: np.random.Generator, max_operations: float | None = None) -> Search:
    """A search of rows among themselves: exact up to EXACT_OPERATIONS multiplications, approximate beyond.

    ``max_operations`` may lower the limit.
    """
    n, d = P.shape
    limit = EXACT_OPERATIONS if max_operations is None else min(max_operations, EXACT_OPERATIONS)
    if sp.issparse(P) or n * n * d <= limit:
        return exact_search(P, n)
    sample = P[sample_rows(n, SAMPLE_ROWS, rng)]
    return ClusterSearch(P, principal_axes(sample, min(d, CLUSTER_AXES)), int(rng.integers(2**31)))
