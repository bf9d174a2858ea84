"""Candidates for the neighbours of many rows, from the clusters of points nearest to each row.

An inverted file looks at one row after the other. Here rows that look into the same cluster do so together, in one
matrix product g(q, p), large where p is near (products.py), which is several times as fast. A bound keeps nearly all
products from being sorted: about the distance of the ``wanted``-th nearest point in the clusters nearest to the centre
of the row's own cluster.

Q (m, a) coordinates of the points     C (clusters, a) centres     w candidates wanted for each row
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.threads import in_parallel, one_thread
from greenlabel.graph.distances import row_blocks
from greenlabel.graph.products import (
    above,
    as_queries,
    bound_reached,
    entries_at,
    nearest_point,
    padded,
    sorted_pairs,
    with_half_norms,
)

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

ROWS_AT_ONCE = 2**14
CLUSTERS_PROBED = 14
MIN_NEAR = 256  # clusters among which a row looks for those to probe: the quarter nearest to its own, at least these
CLUSTERS_OF_BOUND = 2
LEAD = 8  # one centre of so many is compared with every row


class NearestCentres:
    """The centres of clusters, with half their squared norms, and those that are near to each."""

    def __init__(self, C: Floats):
        self.centres = with_half_norms(C)
        self.near = self._near()

    def of(self, Q: Floats) -> Ints:
        """The cluster (r,) whose centre is nearest to each row.

        Among many centres it is sought near the nearest one of every LEAD-th: nearly always that finds it.
        """
        if len(self.centres) <= 2 * self.near.shape[1]:
            return nearest_point(Q, self.centres)
        lead = LEAD * nearest_point(Q, self.centres[::LEAD])
        found = np.empty(len(Q), np.intp)
        for first, rows in by_cluster(np.arange(len(Q)), lead):
            near = self.near[first]
            found[rows] = near[nearest_point(Q[rows], self.centres[near])]
        return found

    def of_many(self, Q: Floats) -> Ints:
        """The same on all threads."""
        return np.concatenate(in_parallel(lambda rows: self.of(Q[rows]), row_blocks(len(Q), len(self.centres))))

    def _near(self) -> Ints:
        """The clusters (clusters, MIN_NEAR or more) nearest to each one, itself first."""
        with one_thread():
            g = as_queries(self.centres) @ self.centres.T
        return np.argsort(-g, axis=1, kind="stable")[:, : max(MIN_NEAR, len(g) // 4)]


class ClusteredPoints:
    """Points in the order of their clusters. A subclass compares them with rows."""

    rows_of_block = ROWS_AT_ONCE

    def __init__(self, nearest: NearestCentres, group: Ints):
        self.nearest, self.order = nearest, np.argsort(group, kind="stable")
        self.sizes = np.bincount(group, minlength=len(nearest.centres))

    def blocks(self) -> Iterator[slice]:
        """Slices of the points in their order here."""
        n, size = len(self.order), self.rows_of_block
        return (slice(start, min(start + size, n)) for start in range(0, n, size))

    def candidates(self, Q: Floats, cluster: Ints, wanted: int) -> Ints:
        """Numbers of points (r, wanted), nearest first; -1 where there are no more.

        ``cluster`` (r,) is the one nearest to each row of Q (r, a), ascending.
        """
        raise NotImplementedError


class ByProducts(ClusteredPoints):
    """Candidates by products of matrices, chosen by NumPy."""

    def __init__(self, Q: Floats, nearest: NearestCentres, group: Ints):
        super().__init__(nearest, group)
        self._start = np.concatenate([[0], np.cumsum(self.sizes)])
        self._points = with_half_norms(Q, self.order)

    def candidates(self, Q: Floats, cluster: Ints, wanted: int) -> Ints:
        rows = with_half_norms(Q)
        queries = as_queries(rows)
        bound, probing, probed = self._bounds_and_probes(queries, cluster, wanted)
        found = [self.in_cluster(each, looking, queries, bound) for each, looking in by_cluster(probing, probed)]
        row, point, g = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        half_dist2 = np.maximum(rows[row, -1] - g, 0)
        row, point = sorted_pairs(row, point, half_dist2, len(rows), len(self.order))
        return padded(row, self.order[point], len(rows), wanted)

    def _bounds_and_probes(self, queries: Floats, cluster: Ints, wanted: int) -> tuple[Floats, Ints, Ints]:
        """The least g that is of interest to each row, and pairs of a row and a cluster that it looks into."""
        bound, probing, probed = np.empty(len(queries), queries.dtype), [], []
        first = np.flatnonzero(np.diff(cluster, prepend=-1))
        for start, stop in zip(first, [*first[1:], len(cluster)], strict=True):
            near, rows = self.nearest.near[cluster[start]], queries[start:stop]
            bound[start:stop] = self._bounds(rows, near[:CLUSTERS_OF_BOUND], wanted)
            row, place = above(rows @ self.nearest.centres[near].T, CLUSTERS_PROBED)
            probing.append(row + start)
            probed.append(near[place])
        return bound, np.concatenate(probing), np.concatenate(probed)

    def _bounds(self, queries: Floats, clusters: Ints, wanted: int) -> Floats | float:
        """What ``wanted`` points of a few clusters reach in g with each row; -inf where these hold fewer points."""
        points = np.concatenate([self._points[self._rows_of(cluster)] for cluster in clusters])
        return bound_reached(queries @ points.T, wanted) if len(points) >= wanted else -np.inf

    def _rows_of(self, cluster: int) -> slice:
        return slice(self._start[cluster], self._start[cluster + 1])

    def in_cluster(self, cluster: int, rows: Ints, queries: Floats, bound: Floats) -> tuple[Ints, Ints, Floats]:
        """Pairs of a row and a point of the cluster whose g is not below the bound of the row, and g."""
        row, point, g = entries_at(queries[rows] @ self._points[self._rows_of(cluster)].T, bound[rows])
        return rows[row], point + self._start[cluster], g


def by_cluster(probing: Ints, probed: Ints) -> Iterator[tuple[int, Ints]]:
    """Each cluster into which rows look, and these rows, from pairs of a row and a cluster."""
    short = probed.astype(np.uint16) if probed.max() < 2**16 else probed  # sorted faster
    order = np.argsort(short, kind="stable")
    clusters, first = np.unique(probed[order], return_index=True)
    yield from zip(clusters.tolist(), np.split(probing[order], first[1:]), strict=True)
