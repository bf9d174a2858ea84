"""Similarity graphs: which rows are neighbours, and how similar they are.

    S (n, n) symmetric, non-negative, zero diagonal        d = S 1 degrees        L = diag(d) - S  Laplacian

    adaptive    S = (A + A')/2,  A_ij by Eq. Z on the k nearest rows; degrees are about 1, nothing to tune
    gaussian    S_ij = exp(-|x_i - x_j|^2 / (2 sigma^2)) where i or j is a neighbour of the other    (Eq. S_rbf)
    binary      S_ij = 1                                  where i or j is a neighbour of the other

The width of the Gaussian is the paper's: 2 sigma^2 = Var(squared distances between distinct rows) / d.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from greenlabel.errors import GraphError
from greenlabel.graph.anchors import mixing_weights
from greenlabel.graph.distances import working
from greenlabel.graph.duplicates import AllDistinct
from greenlabel.graph.neighbors import neighbour_matrix
from greenlabel.graph.search import Search

Floats = NDArray[np.floating]

TINY, HUGE = 1e-200, 1e200  # similarities whose sums and inverses are finite


@dataclass(frozen=True, eq=False)
class Graph:
    """A similarity matrix with its connected components. Its n nodes are the distinct rows of the data."""

    S: sp.csr_array  # (n, n)
    component: NDArray[np.integer]  # (n,) number of each node's component
    n_components: int
    nodes: AllDistinct = field(default_factory=AllDistinct)  # which rows of the data are which node
    group: NDArray[np.integer] | None = None  # (n,) groups of near nodes, where a search has found some

    @property
    def n(self) -> int:
        return self.S.shape[0]

    @cached_property
    def degree(self) -> Floats:
        return np.asarray(self.S.sum(axis=1)).ravel()

    @property
    def mean_degree(self) -> float:
        return float(self.degree.mean())


def make_graph(S: sp.csr_array, nodes: AllDistinct | None = None, group: NDArray[np.integer] | None = None) -> Graph:
    S.eliminate_zeros()
    S.sort_indices()
    n_components, component = connected_components(S, directed=False)
    return Graph(S, component, int(n_components), nodes or AllDistinct(), group)


def knn_graph(search: Search, k: int, weights: str, width: float, nodes: AllDistinct | None = None) -> Graph:
    """The graph of the k nearest rows of each row; ``width`` is read by Gaussian weights only."""
    n = search.P.shape[0]
    if n == 1:
        return make_graph(sp.csr_array((1, 1)), nodes)  # a node without neighbours
    # Adaptive weights measure against one neighbour more; where there is none, the last one is the yardstick.
    dist2, index = search.nearest_to_own(min(k + 1, n - 1))
    if dist2.shape[1] == k:
        dist2 = np.column_stack([dist2, dist2[:, -1]])
    weight_of, symmetric = WEIGHTS[weights]
    A = neighbour_matrix(index[:, :k], weight_of(dist2, width), n)
    return make_graph(symmetric(A).tocsr(), nodes, search.group)


def _adaptive(dist2: Floats, width: float) -> Floats:
    return mixing_weights(dist2)


def _gaussian(dist2: Floats, width: float) -> Floats:
    return np.exp(-dist2[:, :-1] / width)


def _binary(dist2: Floats, width: float) -> Floats:
    return np.ones_like(dist2[:, :-1])


def _mean(A: sp.csr_array) -> sp.csr_array:
    return (A + A.T) / 2


def _union(A: sp.csr_array) -> sp.csr_array:
    return A.maximum(A.T)


WEIGHTS: dict[str, tuple[Callable[[Floats, float], Floats], Callable[[sp.csr_array], sp.csr_array]]] = {
    "adaptive": (_adaptive, _mean),
    "gaussian": (_gaussian, _union),
    "binary": (_binary, _union),
}


def edge_weights_of_new_rows(search: Search, X: Any, k: int, weights: str, width: float) -> sp.csr_array:
    """(rows, n) weights of new rows on their k nearest rows of the graph; each row sums to 1."""
    n = search.P.shape[0]
    dist2, index = search.nearest(X, min(k + 1, n))
    if dist2.shape[1] == k:
        dist2 = np.column_stack([dist2, dist2[:, -1]])
    # Only ratios count here. Distances are relative to the nearest one, so that a row far from all still has edges.
    weight = WEIGHTS[weights][0](dist2 - dist2[:, :1], width)
    return neighbour_matrix(index[:, :k], weight / weight.sum(axis=1, keepdims=True), n)


def mean_of_neighbours(edges: sp.csr_array, F: Floats, is_reached: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The mean F of the reached neighbours, and the total edge weight to them; both 0 without such an edge."""
    reached_weights = edges * is_reached
    total = np.asarray(reached_weights.sum(axis=1)).ravel()
    nothing = np.zeros((edges.shape[0], F.shape[1]))
    mean = np.divide(reached_weights @ F, total[:, None], out=nothing, where=total[:, None] > 0)
    return mean, total


def gaussian_width(X: Any) -> float:
    """2 sigma^2 = Var(|x_i - x_j|^2 over pairs of distinct rows) / d, without forming the pairs.

    With centred rows, a_i = |x_i|^2 and C = X'X / n, the sums over all n^2 pairs are
        mean |x_i - x_j|^2 = 2 mean(a)         mean |x_i - x_j|^4 = 2 mean(a^2) + 2 mean(a)^2 + 4 |C|_F^2,
    and pairs of equal rows, which the rule leaves out, add nothing to them: only the count changes.
    """
    X = working(X.toarray() if sp.issparse(X) else X).astype(np.float64, copy=False)
    n, d = X.shape
    X = X - X.mean(axis=0)
    norm2 = np.einsum("nd,nd->n", X, X)
    C = X.T @ X / n
    distinct = 1 - equal_pairs(X) / n**2
    if distinct == 0:
        return 1.0  # all rows are equal: every distance is zero and every weight one, whatever the width
    mean2 = 2 * norm2.mean() / distinct
    mean4 = (2 * (norm2**2).mean() + 2 * norm2.mean() ** 2 + 4 * (C**2).sum()) / distinct
    variance = mean4 - mean2**2
    # Where all distances are equal, the rule gives no width; their mean is taken instead.
    return float((variance if variance > 1e-12 * mean4 else mean2) / d)


def equal_pairs(X: Floats) -> int:
    """The number of equal ones among the n^2 ordered pairs of rows, each row with itself included."""
    keys = np.ascontiguousarray(X + 0.0).view(np.dtype((np.void, X.itemsize * X.shape[1]))).ravel()
    counts = np.unique(keys, return_counts=True)[1].astype(np.int64)
    return int((counts**2).sum())


def check_similarity(S: Any) -> sp.csr_array:
    """The user's own similarity matrix as a symmetric CSR matrix without its diagonal, which cancels in L."""
    n, columns = S.shape
    if n != columns:
        raise GraphError(f"a precomputed graph of shape {S.shape} is not square; give one row and one column per item.")
    S = sp.csr_array(S, dtype=np.float64)
    _check_non_negative(S)
    largest = S.data.max() if S.nnz else 0
    if largest and not TINY < largest < HUGE:
        raise GraphError(f"the largest similarity is {largest:.0e}, out of range; divide all similarities by it.")
    gap = sp.coo_array(abs(S - S.T))
    if gap.nnz and gap.data.max() > 1e-8 * S.data.max():
        worst = gap.data.argmax()
        i, j = int(gap.row[worst]), int(gap.col[worst])
        raise GraphError(
            f"the graph is not symmetric: S[{i}, {j}] = {S[i, j]:g} but S[{j}, {i}] = {S[j, i]:g}; give (S + S') / 2."
        )
    return sp.csr_array(S - sp.diags_array(S.diagonal()))


def check_edge_weights(T: Any) -> sp.csr_array:
    """Similarities of new rows to the rows of a precomputed graph."""
    T = sp.csr_array(T, dtype=np.float64)
    _check_non_negative(T)
    return T


def _check_non_negative(S: sp.csr_array) -> None:
    if S.nnz and S.data.min() < 0:
        entries = sp.coo_array(S)
        i, j = (int(axis[S.data.argmin()]) for axis in (entries.row, entries.col))
        raise GraphError(
            f"the graph holds a negative similarity ({S.data.min():g}) at [{i}, {j}]; give similarities of at least 0."
        )


def anchor_components(gram: sp.csr_array) -> tuple[NDArray[np.integer], int]:
    """The component of each anchor from Z'Z, and their number. An anchor that no row uses is in none: -1."""
    used = gram.diagonal() > 0
    n_components, component = connected_components(gram[used][:, used], directed=False)
    of_anchor = np.full(len(used), -1, np.int32)
    of_anchor[used] = component
    return of_anchor, int(n_components)


def reached_components(component: NDArray[np.integer], n_components: int, labelled: Any) -> NDArray[np.bool_]:
    """Which components hold a labelled row; one more entry, False, stands for what is in no component."""
    holds_label = np.zeros(n_components + 1, bool)
    holds_label[component[labelled]] = True
    return holds_label
