"""The sketch: a small anchored graph of any rows, on which it is cheap to see what labels cover.

    m anchors: each different row of up to ALL_ROWS, half of more, at most MAX_ANCHORS
    each row is a mix of its NEIGHBORS nearest anchors

It is built from X alone, so that it is there before the first label, and is the same whatever model labels the rows.
Where each row is an anchor, a label on an outlying row reaches no further than that row does. The mean of four rows
that are far from each other looks as if a label on one of them told about all.

X (n, d) rows     P (m, d) anchors     Z (n, m) mixing weights
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel.graph.anchors import ALL_ROWS, SPLIT_AXES, anchor_rows, find_anchors, mixing_matrix
from greenlabel.graph.distances import working
from greenlabel.graph.neighbors import exact_search, neighbour_matrix
from greenlabel.graph.projection import SAMPLE_ROWS, Projection, principal_axes, sample_rows
from greenlabel.operators.green import GreenOperator

Ints = NDArray[np.integer]

MAX_ANCHORS = 2048
GRAPH_SHARE, MAX_GRAPH_ANCHORS = 4, 512  # of a graph one row in GRAPH_SHARE: each costs a solve
NEIGHBORS = 5
ROUGH = 1e-3  # tolerance of these solves
SEARCH_AXES = 96  # principal axes that prove an exact search among anchors


def sketch(X: Any, rng: np.random.Generator, max_anchors: int = MAX_ANCHORS, n_rows: int | None = None) -> sp.csr_array:
    """Z (n, m) of a small anchored graph of the rows X, which are finite; one row is an anchor of its own.

    ``n_rows`` are the rows for which they stand, where they are the different ones of more.
    """
    n = X.shape[0]
    m = min(n_anchors(n_rows or n, max_anchors), n)
    if m == 1:
        return sp.csr_array(np.ones((n, 1)))
    projection = leading_axes(X, rng)
    P = find_anchors("bkhk", X, anchor_rows("bkhk", n, m, rng), m, projection, rng, lambda distinct: min(distinct, m))
    k = min(NEIGHBORS, P.shape[0] - 1)
    return mixing_matrix(X, exact_search(P, n, projection), k) if k else sp.csr_array(np.ones((n, 1)))


def graph_sketch(
    operator: GreenOperator, component: Ints, rng: np.random.Generator, max_anchors: int = MAX_GRAPH_ANCHORS
) -> sp.csr_array:
    """Z (n, m) of a graph that was given without features: rows drawn at random are the anchors.

    Each row is a mix of the anchors of its own component (n,) to which it is nearest by the operator, in proportion to
    their influence on it. The rows of a component without one are an anchor of their own together.
    """
    n = operator.n
    anchors = sample_rows(n, min(max_anchors, max(n // GRAPH_SHARE, min(n, NEIGHBORS + 1))), rng)
    G = operator.columns(anchors, ROUGH)
    G[component[:, None] != component[anchors]] = -np.inf
    k = min(NEIGHBORS, len(anchors))
    index = np.argpartition(-G, k - 1, axis=1)[:, :k]
    weight, is_own = np.take_along_axis(G, index, axis=1), component[anchors][index] == component[:, None]
    total = np.maximum(weight, 0).sum(axis=1, keepdims=True)
    weight = np.where(is_own, np.where(total > 0, np.maximum(weight, 0), 1), 0)
    without = ~is_own.any(axis=1)
    pieces = whole_pieces(component[without], MAX_ANCHORS - len(anchors))
    index[without], weight[without] = len(anchors) + pieces[:, None], 1
    weight /= weight.sum(axis=1, keepdims=True)  # at least one anchor is the row's own
    Z = neighbour_matrix(index, weight, len(anchors) + int(pieces.max(initial=-1)) + 1)
    Z.sum_duplicates()
    Z.eliminate_zeros()
    return Z


def whole_pieces(component: Ints, max_pieces: int) -> Ints:
    """A number for each of these components, the largest first; those beyond ``max_pieces`` share the last one."""
    _, of_row, sizes = np.unique(component, return_inverse=True, return_counts=True)
    rank = np.empty(len(sizes), np.intp)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return np.minimum(rank[of_row], max_pieces - 1)


def heaviest(Z: sp.csr_array) -> Ints:
    """The anchor (n,) of which each row has most, the first of several. No row is empty."""
    largest = np.repeat(np.maximum.reduceat(Z.data, Z.indptr[:-1]), np.diff(Z.indptr))
    entries = np.flatnonzero(Z.data == largest)[::-1]  # the last one that is written stays
    found = np.empty(Z.shape[0], np.intp)
    found[np.searchsorted(Z.indptr, entries, side="right") - 1] = Z.indices[entries]
    return found


def n_anchors(n: int, max_anchors: int = MAX_ANCHORS) -> int:
    """How many anchors n rows get: as many as a classifier takes, up to ``max_anchors``."""
    return min(n, max(ALL_ROWS, n // 2), max_anchors)


def leading_axes(X: Any, rng: np.random.Generator) -> Projection | None:
    """Axes that help to split and to search wide rows."""
    n, d = X.shape
    if sp.issparse(X) or d <= SPLIT_AXES:
        return None
    return principal_axes(working(X[sample_rows(n, SAMPLE_ROWS, rng)]), min(d, SEARCH_AXES))
