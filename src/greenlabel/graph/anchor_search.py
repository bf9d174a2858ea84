"""Approximate search among many points: clusters on their principal axes, candidates by direct difference.

    points -> whole coordinates on their leading axes -> clusters of some 200 points
    row    -> whole coordinates -> the nearest clusters -> candidates -> true distances of these, by direct difference

What is found for a row depends on the points and that row alone, whatever other rows come with it. Axes and clusters
are those of the points, from a fixed seed. A matrix product rounds a row otherwise in another batch, and a row that is
as near to one cluster as to the next would then look into another one. So coordinates are taken in double precision and
rounded to whole numbers so small that every sum of their products is exact: rows may be compared with points in any
company (clusters.py).

X (n, d) rows     P (m, d) points     Q (m, q) their coordinates     V (d, q) axes     k neighbours
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.threads import in_parallel
from greenlabel.graph.candidates import Found, closest, nearest_candidates, redo
from greenlabel.graph.clusters import NearestCentres
from greenlabel.graph.compiled_search import clustered_points
from greenlabel.graph.distances import BLOCK_VALUES, pair_distances, row_blocks, squared_norms, working
from greenlabel.graph.kmeans import cluster_centres
from greenlabel.graph.neighbors import Search, exact_search
from greenlabel.graph.projection import COPIES, SAMPLE_ROWS, Projection, principal_axes, sample_rows

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

EXACT_POINTS = 16_384  # points up to which a search is exact,
EXACT_OPERATIONS = 4e10  # and multiplications of the search of all points among themselves
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
        Q = self._coordinates(self.P)
        self.centres = cluster_centres(Q, _n_clusters(m), seed=0)  # (clusters, q)
        self._unit = _unit_of(Q)
        nearest, Q = NearestCentres(self._whole(self.centres)), self._whole(Q)
        self.group = nearest.of_many(Q)
        self._points = clustered_points(Q, nearest, self.group)

    @classmethod
    def restored(cls, P: Floats, projection: Projection, centres: Floats, group: Ints) -> "InvertedSearch":
        """The same search from its known axes and clusters."""
        search = cls.__new__(cls)
        search.P, search.projection = P, projection
        search.centres, search.group = np.ascontiguousarray(centres, np.float32), np.asarray(group, np.int64)
        Q = search._coordinates(P)
        search._unit = _unit_of(Q)
        search._points = clustered_points(search._whole(Q), NearestCentres(search._whole(search.centres)), search.group)
        return search

    def _coordinates(self, X: Floats) -> NDArray[np.float64]:
        mean, V = (A.astype(np.float64) for A in (self.projection.mean, self.projection.axes))
        parts = in_parallel(lambda rows: (X[rows] - mean) @ V, row_blocks(len(X), COPIES * X.shape[1]))
        return np.concatenate(parts)

    def _whole(self, Q: Floats) -> NDArray[np.float64]:
        """Coordinates in whole units, none longer than LONGEST."""
        Q = Q * self._unit
        length = np.sqrt(np.add.reduce(Q * Q, axis=1, keepdims=True))
        Q *= np.minimum(1, LONGEST / np.maximum(length, 1))
        return np.rint(Q, out=Q)

    def values_per_row(self, X: Any, k: int) -> int:
        """An eighth of the numbers at least: the more rows look into a cluster together, the quicker."""
        n_rows = min(max(ROWS_PER_CLUSTER * len(self.centres), MIN_ROWS), MAX_ROWS)
        return max(X.shape[1] // 8, BLOCK_VALUES // n_rows)

    def _block(self, X: Floats, k: int, own: Ints | None) -> Found:
        Q = self._whole(self._coordinates(X))
        wanted = max(CANDIDATES * k, MIN_CANDIDATES) if Q.shape[1] < X.shape[1] else k + SPARE
        wanted = min(wanted + (own is not None), len(self.P))
        cluster = self._points.nearest.of(Q)
        order = np.argsort(cluster, kind="stable")  # near rows one after the other find points in the cache
        candidates = self._points.candidates(Q[order], cluster[order], wanted)
        dist2, index = np.empty((len(X), k)), np.empty((len(X), k), np.int64)
        dist2[order], index[order] = closest(X, self.P, candidates, k, None if own is None else own[order], order)
        return redo((dist2, index), index[:, -1] < 0, self._among_all, X, own)

    def _among_all(self, X: Floats, k: int, own: Ints | None) -> Found:
        """Where the clusters hold too few points: all of them, row by row."""
        everything = np.arange(len(self.P))[None]

        def search(i: int) -> Found:
            dist2 = pair_distances(X[[i]], self.P, everything)
            return nearest_candidates(dist2, everything, k, None if own is None else own[[i]])

        dist2, index = zip(*map(search, range(len(X))), strict=True)
        return np.concatenate(dist2), np.concatenate(index)

    def __getstate__(self) -> dict[str, Any]:
        return {"P": self.P, "projection": self.projection, "centres": self.centres, "group": self.group}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(vars(InvertedSearch.restored(**state)))


def _n_clusters(m: int) -> int:
    """Clusters of m points, such that a row is compared with about as many points, however many there are."""
    return max(int(np.sqrt(m)), min(m // POINTS_PER_CLUSTER, MAX_CLUSTERS))


def _unit_of(Q: Floats) -> float:
    """What turns coordinates into whole ones: the longest point, or OUTSIDE times the median, becomes LONGEST."""
    length = np.sqrt(squared_norms(Q))
    longest = min(float(length.max()), OUTSIDE * float(np.median(length))) or float(length.max())
    return LONGEST / longest if longest else 1.0


def is_exact(m: int, d: int) -> bool:
    """Whether m points of d features are searched exactly. Rows do not count: later ones meet the same search."""
    return m <= EXACT_POINTS and float(m) * m * d <= EXACT_OPERATIONS


def anchor_search(P: Any, n_rows: int, projection: Projection | None) -> Search:
    """The search of rows among the anchors P; the projection of the rows helps where it is exact."""
    if sp.issparse(P) or is_exact(*P.shape):
        return exact_search(P, n_rows, projection)
    return InvertedSearch(P)
