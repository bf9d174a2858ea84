"""Approximate search among many points: clusters on their principal axes, candidates by direct difference.

    points -> coordinates on their leading axes -> clusters of some 200 points
    row    -> coordinates -> the nearest clusters -> candidates -> true distances of these, by direct difference

What is found for a row depends on the points and that row alone, whatever other rows come with it, on one kind of
processor and installation. Axes and clusters
are those of the points, from a fixed seed. What is compiled takes every sum by itself (compiled_search.py). A matrix
product rounds a row otherwise in another batch, and a row that is as near to one cluster as to the next would then look
into another one: there coordinates are taken in double precision and rounded to whole numbers so small that every sum
of their products is exact, and rows may be compared with points in any company (clusters.py).

X (n, d) rows     P (m, d) points     Q (m, q) their coordinates     V (d, q) axes     k neighbours
"""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.threads import in_parallel
from greenlabel.graph.candidates import Found, closest, redo
from greenlabel.graph.clusters import NearestCentres
from greenlabel.graph.compiled_search import (
    Axes,
    CompiledCentres,
    can_compare,
    clustered_points,
)
from greenlabel.graph.distances import BLOCK_VALUES, COPIES, row_blocks, squared_norms, working
from greenlabel.graph.kmeans import cluster_centres
from greenlabel.graph.projection import SAMPLE_ROWS, Projection, principal_axes, sample_rows
from greenlabel.graph.search import Search

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

AXES = 64
CANDIDATES = 3  # times k, whose true distances are taken, where axes leave something out of a row
MIN_CANDIDATES = 18  # at the least: of few neighbours the axes would miss some
SPARE = 4  # candidates beyond k where they do not
LONGEST = 2**25  # a row of whole coordinates; |q| |p| + |p|^2 / 2 is then below 2^52, and float64 holds sums of halves
OUTSIDE = 4096.0  # times the median length of the points: what is longer is drawn in
POINTS_PER_CLUSTER, MAX_CLUSTERS = 180, 4096  # of many points; fewer have sqrt(m) clusters
ROWS_PER_CLUSTER = 32  # that are looked up together: with fewer, products would be small
MIN_ROWS, MAX_ROWS = 2**14, 2**15


class InvertedSearch(Search):
    """Approximate neighbours: rows are looked up in the clusters nearest to them, on the principal axes."""

    group: Ints  # (m,)

    def __init__(self, P: Floats):
        super().__init__(working(P))
        m, d = self.P.shape
        sample = self.P[sample_rows(m, SAMPLE_ROWS, np.random.default_rng(0))]
        self.projection = principal_axes(sample, min(d, AXES))
        self._view = view_of(self.projection, self.P)
        Q = self._view.of_points(self.P)
        self.centres = cluster_centres(Q, _n_clusters(m), seed=0)  # (clusters, q)
        nearest, Q = self._view.centres(self.centres), self._view.compared(Q)
        self.group = nearest.of_many(Q)
        self._points = clustered_points(Q, nearest, self.group)

    @classmethod
    def restored(cls, P: Floats, projection: Projection, centres: Floats, group: Ints) -> "InvertedSearch":
        """The same search from its known axes and clusters."""
        search = cls.__new__(cls)
        search.P, search.projection = P, projection
        search.centres, search.group = np.ascontiguousarray(centres, np.float32), np.asarray(group, np.int64)
        search._view = view_of(projection, P)
        Q = search._view.compared(search._view.of_points(P))
        search._points = clustered_points(Q, search._view.centres(search.centres), search.group)
        return search

    def values_per_row(self, X: Any, k: int) -> int:
        return BLOCK_VALUES // self._view.rows_at_once(len(self.centres), X.shape[1])

    def nearest(self, X: Any, k: int, own: Ints | None = None) -> Found:
        """Many rows at once, for those that look into one cluster do so together; few of them in full width."""
        n = X.shape[0]
        dist2, index = np.empty((n, k)), np.empty((n, k), np.int64)

        def search(rows: slice) -> None:
            dist2[rows], index[rows] = self._block(X[rows], k, None if own is None else own[rows])

        in_parallel(search, row_blocks(n, self.values_per_row(X, k)))
        return dist2, index

    def _block(self, X: Any, k: int, own: Ints | None) -> Found:
        n, d = X.shape
        Q = np.concatenate([self._view.of(self._like_points(X[part])) for part in row_blocks(n, d)])
        wanted = max(CANDIDATES * k, MIN_CANDIDATES) if Q.shape[1] < d else k + SPARE
        wanted = min(wanted + (own is not None), len(self.P))
        cluster = self._points.nearest.of(Q)
        order = np.argsort(cluster, kind="stable")  # near rows one after the other find points in the cache
        candidates = self._points.candidates(Q[order], cluster[order], wanted)
        dist2, index = np.empty((n, k)), np.empty((n, k), np.int64)
        for part in row_blocks(n, d):
            rows = order[part]
            its_own = None if own is None else own[rows]
            dist2[rows], index[rows] = closest(self._like_points(X[rows]), self.P, candidates[part], k, its_own)
        return redo((dist2, index), index[:, -1] < 0, self._among_all, X, own)

    def _among_all(self, X: Any, k: int, own: Ints | None) -> Found:
        """Where the clusters hold too few points: all of them, row by row."""
        X, everything = self._like_points(X), np.arange(len(self.P))[None]

        def search(i: int) -> Found:
            return closest(X[[i]], self.P, everything, k, None if own is None else own[[i]])

        dist2, index = zip(*map(search, range(len(X))), strict=True)
        return np.concatenate(dist2), np.concatenate(index)

    def __getstate__(self) -> dict[str, Any]:
        return {"P": self.P, "projection": self.projection, "centres": self.centres, "group": self.group}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(vars(InvertedSearch.restored(**state)))


def _n_clusters(m: int) -> int:
    """Clusters of m points, such that a row is compared with about as many points, however many there are."""
    return max(int(np.sqrt(m)), min(m // POINTS_PER_CLUSTER, MAX_CLUSTERS))


class View(Protocol):
    """How rows are seen on the axes: in any company alike."""

    def of_points(self, P: Floats) -> Floats:
        """Coordinates (m, q) of the points, which come first."""

    def compared(self, Q: Floats) -> Floats:
        """Coordinates as they are compared."""

    def of(self, X: Floats) -> Floats:
        """The same of rows."""

    def centres(self, C: Floats) -> NearestCentres:
        """The centres of clusters, as they are compared."""

    def rows_at_once(self, n_clusters: int, d: int) -> int:
        """Rows of d columns that are looked up together: the more look into a cluster, the quicker."""


class SumsOneByOne:
    """Coordinates and comparisons by what is compiled, which takes every sum by itself."""

    def __init__(self, projection: Projection, dtype: Any):
        self._axes, self._dtype = Axes(projection, dtype), dtype

    def of(self, X: Floats) -> Floats:
        return self._axes.coordinates(X)

    of_points = of

    def compared(self, Q: Floats) -> Floats:
        return Q

    def centres(self, C: Floats) -> NearestCentres:
        return CompiledCentres(C.astype(self._dtype))

    def rows_at_once(self, n_clusters: int, d: int) -> int:
        return min(max(2 * ROWS_PER_CLUSTER * n_clusters, MIN_ROWS), 4 * MAX_ROWS)


class WholeNumbers:
    """Coordinates in whole units, none longer than LONGEST: products of them are exact."""

    def __init__(self, projection: Projection):
        self._mean, self._V = (A.astype(np.float64) for A in (projection.mean, projection.axes))
        self._unit = 1.0

    def of_points(self, P: Floats) -> Floats:
        Q = self._coordinates(P)
        self._unit = _unit_of(Q)
        return Q

    def compared(self, Q: Floats) -> Floats:
        Q = Q * self._unit
        length = np.sqrt(np.add.reduce(Q * Q, axis=1, keepdims=True))
        Q *= np.minimum(1, LONGEST / np.maximum(length, 1))
        return np.rint(Q, out=Q)

    def of(self, X: Floats) -> Floats:
        return self.compared(self._coordinates(X))

    def centres(self, C: Floats) -> NearestCentres:
        return NearestCentres(self.compared(C))

    def rows_at_once(self, n_clusters: int, d: int) -> int:
        return min(max(ROWS_PER_CLUSTER * n_clusters, MIN_ROWS), MAX_ROWS, 8 * BLOCK_VALUES // d)

    def _coordinates(self, X: Floats) -> NDArray[np.float64]:
        blocks = row_blocks(len(X), COPIES * X.shape[1])
        return np.concatenate(in_parallel(lambda rows: (X[rows] - self._mean) @ self._V, blocks))


def view_of(projection: Projection, P: Floats) -> View:
    return SumsOneByOne(projection, P.dtype) if can_compare(P, P) else WholeNumbers(projection)


def _unit_of(Q: Floats) -> float:
    """What turns coordinates into whole ones: the longest point, or OUTSIDE times the median, becomes LONGEST."""
    length = np.sqrt(squared_norms(Q))
    longest = min(float(length.max()), OUTSIDE * float(np.median(length))) or float(length.max())
    return LONGEST / longest if longest else 1.0
