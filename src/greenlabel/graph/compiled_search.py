"""The comparisons of a search, compiled (kernels/search.h): several times as fast as products of matrices.

    Lines(Q).nearest(...)     for  products.Points              all points
    CompiledClusters          for  clusters.ByProducts          the points of the clusters near to a row
    CompiledCentres           for  clusters.NearestCentres      the cluster of a row
    closest                   for  candidates.closest           a few points, by direct difference
    Axes                      for  projection.coordinates

A product of matrices is quick, but its numbers are written down, compared with a bound and sorted. Here each is
compared with the last of a row's list while the processor still holds it, and most go no further. Sums are taken in
another order than in a product: which of nearly equally near points comes first may differ, and with clusters which
points are compared at all. And each is taken by itself: what is found for a row does not depend on the rows that come
with it.

Q (n, q) coordinates     w points wanted for each row
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.threads import in_parallel
from greenlabel.graph import clusters
from greenlabel.graph.clusters import LEAD, ByProducts, ClusteredPoints, NearestCentres
from greenlabel.graph.distances import BLOCK_VALUES, row_blocks
from greenlabel.graph.products import Points, half_norms
from greenlabel.graph.projection import Projection, coordinates
from greenlabel.kernels import LINE, library

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Found = tuple[NDArray[np.float64], NDArray[np.int64]]  # as in candidates, which imports this module

NUMBERS = {np.dtype(np.float32): ("float", np.int32), np.dtype(np.float64): ("double", np.int64)}
MAX_COORDINATES = 256  # beyond, a product of matrices, which may fuse its operations, gains on the comparisons
ROWS_AT_ONCE = 256  # whose lists stay in the processor's cache,
CACHE_BYTES = 2**18  # beside so much of the points
ROWS_OF_BLOCK = 2**12  # of one thread
LINES_OF_BLOCK = 2**8


def comparable(Q: Floats) -> "Lines | Points":
    """Points, ready for their nearest to be found in the fastest way that there is."""
    return Lines(Q) if _fits(Q) else Points(Q)


def clustered_points(Q: Floats, nearest: NearestCentres, group: Ints) -> ClusteredPoints:
    """The same for points in clusters; ``group`` (n,) is the cluster of each."""
    return CompiledClusters(Q, nearest, group) if _fits(Q) else ByProducts(Q, nearest, group)


def _fits(Q: Floats) -> bool:
    return library() is not None and Q.shape[1] <= MAX_COORDINATES and len(Q) < 2**31


class Lines:
    """Points, LINE of them together in memory, ready to be compared with rows.

    Groups of points, in the order given, begin with a line each; the points of a group are seen from its origin.
    """

    def __init__(self, Q: Floats, order: Ints | None = None, sizes: Ints | None = None, origins: Floats | None = None):
        order = np.arange(len(Q)) if order is None else order
        sizes = np.array([len(Q)]) if sizes is None else sizes
        self.first = np.concatenate([[0], np.cumsum(-(-sizes // LINE))]).astype(np.int64)  # line of each group
        self._name, whole = NUMBERS[Q.dtype]
        self.number = np.full(self.first[-1] * LINE, -1, whole)
        ahead = LINE * self.first[:-1] - (np.cumsum(sizes) - sizes)  # of lines filled to the last place
        self.number[np.arange(len(order)) + np.repeat(ahead, sizes)] = order
        self.lines = np.empty((self.first[-1], Q.shape[1] + 1, LINE), Q.dtype)
        self._pack(np.ascontiguousarray(Q), origins)

    def _pack(self, Q: Floats, origins: Floats | None) -> None:
        pack, q = self.function("pack"), Q.shape[1]
        group = np.repeat(np.arange(len(self.first) - 1, dtype=np.int32), np.diff(self.first))

        def work(first: int) -> None:
            n_lines = min(LINES_OF_BLOCK, len(self.lines) - first)
            points = (Q, self.number[first * LINE :], origins, group[first:])
            pack(n_lines, q, *points, self.lines[first])

        in_parallel(work, range(0, len(self.lines), LINES_OF_BLOCK))

    def function(self, name: str) -> Any:
        return getattr(library(), f"{name}_{self._name}")

    def nearest(self, Q: Floats, w: int) -> tuple[Floats, Ints]:
        """Squared distances and numbers (n, w) of the nearest points, nearest first, as exact as these sums are."""
        Q = np.ascontiguousarray(Q, self.lines.dtype)
        _check_width(Q, self.lines.shape[1] - 1)
        if w < 1 or not len(self.lines):
            raise ValueError(f"{w} of {len(self.lines) * LINE} points are wanted; both have to be positive.")
        g, index = np.empty((len(Q), w), Q.dtype), np.empty((len(Q), w), np.int32)
        lines_at_once = max(1, CACHE_BYTES // self.lines[:1].nbytes)
        points = (len(self.lines), self.lines, self.number)
        at_once = (ROWS_AT_ONCE, lines_at_once)
        is_done = self.function("nearest")(*Q.shape, Q, *points, w, *at_once, g, index)
        _check(is_done)
        half_dist2 = np.maximum(half_norms(Q)[:, None] - g, 0)
        return np.where(index >= 0, 2 * half_dist2, np.inf), index


class CompiledClusters(ClusteredPoints):
    """Points in the order of their clusters: candidates by the library."""

    rows_of_block = ROWS_OF_BLOCK

    def __init__(self, Q: Floats, nearest: NearestCentres, group: Ints):
        super().__init__(nearest, group)
        self._around = _Around(nearest, Q.dtype)
        self._lines = Lines(Q, self.order, self.sizes, self._around.centres)

    def candidates(self, Q: Floats, cluster: Ints, wanted: int) -> Ints:
        lines, around = self._lines, self._around
        Q = np.ascontiguousarray(Q, lines.lines.dtype)
        _check_width(Q, lines.lines.shape[1] - 1)
        start, of_run = _runs(cluster)
        found = np.full((len(Q), wanted), -1, np.int32)
        rows = (len(of_run), start, of_run, Q.shape[1], Q)
        points = (lines.lines, lines.number, lines.first)
        n_probed = min(clusters.CLUSTERS_PROBED, around.n_near)
        nearest_around = lines.function("nearest_around")
        wishes = (len(around.centres), n_probed, wanted, ROWS_AT_ONCE)
        _check(nearest_around(*rows, *points, *around.words(), *wishes, found))
        return found


class CompiledCentres(NearestCentres):
    """The centres of clusters; the nearest one by the library."""

    def of(self, Q: Floats) -> Ints:
        if len(self.centres) <= 2 * self.near.shape[1]:
            return _first(self._all, Q)
        lead = LEAD * _first(self._leading, Q)
        order = np.argsort(lead, kind="stable")
        start, of_run = _runs(lead[order])
        in_order, near_by = np.ascontiguousarray(Q[order], self.centres.dtype), np.empty(len(Q), np.int32)
        rows = (len(of_run), start, of_run, Q.shape[1], in_order)
        nearest_centre = self._leading.function("nearest_centre")
        _check(nearest_centre(*rows, *self._around.words(), ROWS_AT_ONCE, near_by))
        found = np.empty(len(Q), np.int32)
        found[order] = near_by
        return found

    def of_many(self, Q: Floats) -> Ints:
        """Many rows at once: those with the same lead look at the same centres, which are put in lines for them."""
        return np.concatenate(in_parallel(lambda rows: self.of(Q[rows]), row_blocks(*Q.shape)))

    @cached_property
    def _all(self) -> Lines:
        return Lines(self.centres[:, :-1])

    @cached_property
    def _leading(self) -> Lines:
        return Lines(self.centres[::LEAD, :-1])

    @cached_property
    def _around(self) -> "_Around":
        return _Around(self, self.centres.dtype)


class _Around:
    """The centres (clusters, q), and the clusters near to each, as the library reads them."""

    def __init__(self, nearest: NearestCentres, dtype: Any):
        self.centres = np.ascontiguousarray(nearest.centres[:, :-1], dtype)
        self.near = np.ascontiguousarray(nearest.near, NUMBERS[np.dtype(dtype)][1])
        self.n_near = self.near.shape[1]

    def words(self) -> tuple[Any, ...]:
        return self.centres, self.near, self.n_near


def _runs(cluster: Ints) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Where runs of equal clusters begin, and where the last one ends; the cluster of each run."""
    first = np.flatnonzero(np.append(len(cluster) > 0, cluster[1:] != cluster[:-1])[: len(cluster)])
    return np.append(first, len(cluster)).astype(np.int64), cluster[first].astype(np.int32)


def _first(points: Lines, Q: Floats) -> Ints:
    """The nearest point of each row; the first of all for a row that is too far away for numbers."""
    return np.maximum(points.nearest(Q, 1)[1][:, 0], 0)


class Axes:
    """Axes through a mean, as the library reads them: the coordinates of each row are found by themselves."""

    def __init__(self, projection: Projection, dtype: Any):
        d, self.q = projection.axes.shape
        n_lines = -(-self.q // LINE)
        V = np.zeros((d, n_lines * LINE), dtype)
        V[:, : self.q] = projection.axes
        self._axes = np.ascontiguousarray(V.reshape(d, n_lines, LINE).transpose(1, 0, 2))
        self._mean = np.ascontiguousarray(projection.mean, dtype)

    def coordinates(self, X: Floats) -> Floats:
        """(X - mean) V (n, q), in the precision of the axes, on all threads."""
        X = np.ascontiguousarray(X, self._axes.dtype)
        _check_width(X, len(self._mean))
        project = getattr(library(), f"project_{NUMBERS[X.dtype][0]}")
        Q = np.empty((len(X), len(self._axes) * LINE), X.dtype)
        axes = (self._mean, len(self._axes), self._axes)

        def work(rows: slice) -> None:
            _check(project(rows.stop - rows.start, X.shape[1], X[rows], *axes, Q[rows]))

        in_parallel(work, row_blocks(len(X), max(X.shape[1], BLOCK_VALUES // ROWS_OF_BLOCK)))
        return np.ascontiguousarray(Q[:, : self.q])


def single_coordinates(X: Floats, projection: Projection) -> NDArray[np.float32]:
    """(X - mean) V (n, q) in single precision, on all threads; wider numbers are cut when the mean is gone."""
    if library() is not None and X.dtype == np.float32:
        return Axes(projection, np.float32).coordinates(X)
    return np.concatenate(in_parallel(lambda rows: coordinates(X[rows], projection), row_blocks(*X.shape)))


def can_compare(X: Any, P: Any) -> bool:
    """Whether the library takes these rows and points."""
    are_arrays = isinstance(X, np.ndarray) and isinstance(P, np.ndarray)
    return are_arrays and X.dtype == P.dtype and P.dtype in NUMBERS and len(P) < 2**31 and library() is not None


def closest(X: Floats, P: Floats, candidates: Ints, k: int, own: Ints | None = None, rows: Ints | None = None) -> Found:
    X, P = np.ascontiguousarray(X), np.ascontiguousarray(P)
    _check_width(X, P.shape[1])
    n, w = candidates.shape
    chosen = np.ascontiguousarray(candidates, np.int32)
    of_row = np.arange(n) if rows is None else np.ascontiguousarray(rows, np.int64)
    own = None if own is None else np.ascontiguousarray(own, np.int64)
    dist2, index = np.empty((n, k)), np.empty((n, k), np.int64)
    nearest_of = getattr(library(), f"nearest_of_{NUMBERS[X.dtype][0]}")
    of = (X, of_row, P, w, chosen, own)
    nearest_of(n, X.shape[1], *of, k, dist2, index)
    return dist2, index


def _check_width(rows: Floats, d: int) -> None:
    """The library would read beyond the end of shorter rows."""
    if rows.shape[1] != d:
        raise ValueError(f"rows have {rows.shape[1]} columns, what they are compared with has {d}.")


def _check(is_done: int) -> None:
    if not is_done:
        raise MemoryError("no memory is left for the lists of nearest points of some rows")
