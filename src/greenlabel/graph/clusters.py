"""Candidates for the neighbours of all rows among themselves, from the clusters nearest to each row.

An inverted file looks at one row after the other. Where all rows are searched, those that look into the same cluster
do so together, in one matrix product, which is several times as fast. A bound keeps nearly all products from being
sorted: the distance of the ``wanted``-th nearest row in the clusters nearest to the centre of the row's own cluster.

    |q - p|^2 / 2 = |q|^2 / 2 - g(q, p),       g(q, p) = q'p - |p|^2 / 2,  large where p is near

Q (n, a) coordinates of the rows     C (clusters, a) centres     w candidates wanted for each row
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.threads import one_thread

Floats = NDArray[np.floating]
Singles = NDArray[np.float32]
Ints = NDArray[np.integer]

ROWS_AT_ONCE = 2**14
CLUSTERS_PROBED = 13
MIN_NEAR = 256  # clusters among which a row looks for those to probe: the quarter nearest to its own, at least these
CLUSTERS_OF_BOUND = 4


class ClusteredRows:
    """Rows in the order of their clusters, ready to be compared."""

    def __init__(self, Q: Singles, centres: Singles, group: Ints):
        self.order = np.argsort(group, kind="stable")
        self._start = np.searchsorted(group[self.order], np.arange(len(centres) + 1))
        self._centres = with_half_norms(centres)
        self._points = with_half_norms(Q, self.order)
        with one_thread():
            self._near = nearest_centres(self._centres)

    def blocks(self) -> Iterator[slice]:
        """Slices of the rows in their order here."""
        n = len(self.order)
        return (slice(start, min(start + ROWS_AT_ONCE, n)) for start in range(0, n, ROWS_AT_ONCE))

    def candidates(self, block: slice, wanted: int) -> Ints:
        """Numbers of rows (len(block), wanted), nearest first; -1 where there are no more."""
        queries = self._points[block].copy()
        half_norms = queries[:, -1].copy()
        queries[:, -1] = -1  # so that a product with points is g
        bound, probed = self._bounds_and_probes(queries, block, wanted)
        found = [self._in_cluster(cluster, rows, queries, bound) for cluster, rows in by_cluster(probed)]
        row, point, g = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        return self._nearest(row, point, np.maximum(half_norms[row] - g, 0), len(queries), wanted)

    def _bounds_and_probes(self, queries: Singles, block: slice, wanted: int) -> tuple[Singles, Ints]:
        """The least g that is of interest to each row, and the clusters that it looks into."""
        bound = np.empty(len(queries), np.float32)
        probed = np.empty((len(queries), min(CLUSTERS_PROBED, len(self._centres))), np.int32)
        first, last = np.searchsorted(self._start, [block.start, block.stop - 1], side="right") - 1
        for cluster in range(first, last + 1):
            start, stop = np.clip(self._start[cluster : cluster + 2], block.start, block.stop) - block.start
            if start < stop:
                near, rows = self._near[cluster], queries[start:stop]
                bound[start:stop] = self._bounds(rows, near[:CLUSTERS_OF_BOUND], wanted)
                probed[start:stop] = near[largest(rows @ self._centres[near].T, probed.shape[1])]
        return bound, probed

    def _bounds(self, queries: Singles, clusters: Ints, wanted: int) -> Singles | float:
        """The ``wanted``-th largest g of each row in a few clusters; -inf where these hold fewer points."""
        points = np.concatenate([self._points[self._rows_of(cluster)] for cluster in clusters])
        last = len(points) - wanted
        return np.partition(queries @ points.T, last, axis=1)[:, last] if last >= 0 else -np.inf

    def _rows_of(self, cluster: int) -> slice:
        return slice(self._start[cluster], self._start[cluster + 1])

    def _in_cluster(self, cluster: int, rows: Ints, queries: Singles, bound: Singles) -> tuple[Ints, Ints, Singles]:
        """Pairs of a row and a point of the cluster whose g is not below the bound of the row, and g."""
        points = self._points[self._rows_of(cluster)]
        g = queries[rows] @ points.T
        pairs = np.flatnonzero(g >= bound[rows, None])
        row, point = np.divmod(pairs, max(len(points), 1))
        return rows[row], point + self._start[cluster], g.ravel()[pairs]

    def _nearest(self, row: Ints, point: Ints, dist2: Singles, n: int, wanted: int) -> Ints:
        """The nearest points of each of n rows, from pairs; squared distances are not negative, so their bits sort."""
        key = row.astype(np.uint64) << np.uint64(32) | dist2.astype(np.float32).view(np.uint32)
        by_row = np.argsort(key)
        first = np.searchsorted(row[by_row], np.arange(n + 1))
        place = first[:-1, None] + np.arange(wanted)
        is_there = place < first[1:, None]
        nearest = self.order[point[by_row[np.where(is_there, place, 0)]]]
        return np.where(is_there, nearest, -1)


def with_half_norms(Q: Singles, order: Ints | slice = slice(None)) -> Singles:
    """Rows q and |q|^2 / 2 (n, a + 1)."""
    found = np.empty((len(Q), Q.shape[1] + 1), np.float32)
    found[:, :-1] = Q[order]
    found[:, -1] = np.einsum("na,na->n", found[:, :-1], found[:, :-1]) / 2
    return found


def nearest_centres(C: Singles) -> Ints:
    """The clusters nearest to each one, itself first, from their centres with half their squared norms."""
    C_minus = C.copy()
    C_minus[:, -1] = -1
    g = C_minus @ C.T
    near = largest(g, min(max(MIN_NEAR, len(C) // 4), len(C)))
    order = np.argsort(-np.take_along_axis(g, near, axis=1), axis=1, kind="stable")
    return np.take_along_axis(near, order, axis=1)


def largest(g: Singles, k: int) -> Ints:
    """Columns (n, k) of the k largest entries of each row, in no order."""
    return np.argpartition(g, g.shape[1] - k, axis=1)[:, g.shape[1] - k :]


def by_cluster(probed: Ints) -> Iterator[tuple[int, Ints]]:
    """Each cluster into which rows look, and these rows, from the clusters of each row (n, probes)."""
    flat = probed.ravel()
    order = np.argsort(flat, kind="stable")
    clusters, first = np.unique(flat[order], return_index=True)
    for cluster, places in zip(clusters.tolist(), np.split(order, first[1:]), strict=True):
        yield cluster, places // probed.shape[1]
