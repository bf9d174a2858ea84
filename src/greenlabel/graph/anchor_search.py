"""Approximate search among many points: an inverted file on their principal axes, candidates by direct difference.

    points -> coordinates on their leading axes -> clusters of some 200 points
    row    -> coordinates -> the PROBED nearest clusters -> candidates -> true distances of these, by direct difference

What is found for a row depends on the points and that row alone, whatever other rows come with it. Axes and clusters
are those of the points, from a fixed seed. A matrix product may round a row otherwise in another batch, and a row that
is as near to one cluster as to the next would then look into another one; so all products are of BATCH rows, filled up
with zeros, in which every row is treated alike.

X (n, d) rows     P (m, d) points     Q (m, q) their coordinates     V (d, q) axes     k neighbours
"""

from typing import Any

import faiss
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.threads import in_parallel, one_thread
from greenlabel.graph.distances import pair_distances, row_blocks, working
from greenlabel.graph.neighbors import Found, Search, exact_search, nearest_candidates, redo
from greenlabel.graph.projection import SAMPLE_ROWS, Projection, centre, principal_axes, sample_rows

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

EXACT_POINTS = 16_384  # points up to which a search is exact,
EXACT_OPERATIONS = 4e10  # and multiplications of the search of all points among themselves
AXES = 64
PROBED = 12  # clusters in which a row is looked up
CANDIDATES = 3  # times k, whose true distances are taken, where axes leave something out of a row
MIN_CANDIDATES = 18  # at the least: of few neighbours the axes would miss some
SPARE = 4  # candidates beyond k where they do not
TRAINING = 64  # points per cluster by which clusters are found
ROUNDS = 5  # of k-means
BATCH = 256  # rows of every product


class InvertedSearch(Search):
    """Approximate neighbours: rows are looked up in the clusters nearest to them, on the principal axes."""

    def __init__(self, P: Floats):
        super().__init__(working(P))
        m, d = self.P.shape
        sample = self.P[sample_rows(m, SAMPLE_ROWS, np.random.default_rng(0))]
        self.projection = principal_axes(sample, min(d, AXES))
        Q = self._coordinates(self.P)
        index = _empty_index(Q.shape[1], int(2 * np.sqrt(m)))
        with one_thread():
            index.train(Q)
        self.centres = index.quantizer.reconstruct_n(0, index.nlist)
        self.group = np.concatenate(
            in_parallel(lambda rows: _nearest_clusters(index, Q[rows], 1)[1][:, 0], row_blocks(*Q.shape))
        )
        self._fill(index, Q)

    @classmethod
    def restored(cls, P: Floats, projection: Projection, centres: Floats, group: Ints) -> "InvertedSearch":
        """The same search from its known axes and clusters."""
        search = cls.__new__(cls)
        search.P, search.projection = P, projection
        search.centres, search.group = np.ascontiguousarray(centres, np.float32), np.asarray(group, np.int64)
        index = _empty_index(projection.axes.shape[1], len(centres))
        index.quantizer.add(search.centres)
        index.is_trained = True
        search._fill(index, search._coordinates(P))
        return search

    def _coordinates(self, X: Floats) -> NDArray[np.float32]:
        V = np.ascontiguousarray(self.projection.axes, np.float32)

        def project(rows: slice) -> NDArray[np.float32]:
            centred = centre(X[rows], self.projection.mean)
            return np.concatenate([_filled(part) @ V for part in _batches(centred)])[: len(centred)]

        return np.concatenate(in_parallel(project, row_blocks(*X.shape)))

    def _fill(self, index: Any, Q: NDArray[np.float32]) -> None:
        index.nprobe = min(PROBED, index.nlist)
        group = np.ascontiguousarray(self.group, np.int64)
        index.add_core(len(Q), faiss.swig_ptr(Q), None, faiss.swig_ptr(group))
        self._index = index

    def _block(self, X: Floats, k: int, own: Ints | None) -> Found:
        Q, m = self._coordinates(X), len(self.P)
        wanted = max(CANDIDATES * k, MIN_CANDIDATES) if Q.shape[1] < X.shape[1] else k + SPARE
        wanted = min(wanted + (own is not None), m)
        dist2, clusters = _nearest_clusters(self._index, Q, self._index.nprobe)
        candidates, true_dist2 = np.empty((len(X), wanted), np.int64), np.empty((len(X), wanted))
        together = np.argsort(clusters[:, 0], kind="stable")  # near rows one after the other find points in the cache
        _, candidates[together] = self._index.search_preassigned(
            Q[together], wanted, clusters[together], dist2[together]
        )
        true_dist2[together] = pair_distances(X[together], self.P, candidates[together])
        found = nearest_candidates(true_dist2, candidates, k, own)
        return redo(found, ~np.isfinite(found[0][:, -1]), self._among_all, X, own)

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


def _empty_index(q: int, n_clusters: int) -> Any:
    index: Any = faiss.index_factory(q, f"IVF{n_clusters},SQfp16")
    index.cp.niter, index.cp.seed = ROUNDS, 0
    index.cp.min_points_per_centroid, index.cp.max_points_per_centroid = 1, TRAINING
    return index


def _batches(X: Floats) -> list[Floats]:
    return [X[start : start + BATCH] for start in range(0, len(X), BATCH)]


def _filled(X: Floats) -> Floats:
    """BATCH rows, the last of which are 0."""
    return X if len(X) == BATCH else np.concatenate([X, np.zeros((BATCH - len(X), X.shape[1]), X.dtype)])


def _nearest_clusters(index: Any, Q: NDArray[np.float32], n_clusters: int) -> tuple[Floats, Ints]:
    parts = [index.quantizer.search(_filled(part), n_clusters) for part in _batches(Q)]
    return tuple(np.concatenate(each)[: len(Q)] for each in zip(*parts, strict=True))  # type: ignore[return-value]


def is_exact(m: int, d: int) -> bool:
    """Whether m points of d features are searched exactly. Rows do not count: later ones meet the same search."""
    return m <= EXACT_POINTS and float(m) * m * d <= EXACT_OPERATIONS


def anchor_search(P: Any, n_rows: int, projection: Projection | None) -> Search:
    """The search of rows among the anchors P; the projection of the rows helps where it is exact."""
    if sp.issparse(P) or is_exact(*P.shape):
        return exact_search(P, n_rows, projection)
    return InvertedSearch(P)
