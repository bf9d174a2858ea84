"""The mixing weights of the live graph: rows as mixes of at most 2,048 anchors.

Where rows are few enough to find their neighbours, a row is mixed from the anchors of its neighbours, too:

    Z_0 = mixing weights (Eq. Z)        Z_t = the MAX_ENTRIES largest of each row of W Z_(t-1), scaled to sum to 1

W is the k-NN graph with rows scaled to sum to 1. The anchored graph S = Z diag(Z'1)^-1 Z' of such a Z was about as good
as the k-NN graph itself on USPS and better than the plain weights on MNIST (benchmarks/annotate.md), and is as quick.

Z (n, m) mixing weights     W, S (u, u) similarity of the u distinct rows
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel.errors import DataError
from greenlabel.estimators.anchored import AnchoredGreenClassifier
from greenlabel.graph.duplicates import AllDistinct, are_equal, distinct_rows
from greenlabel.graph.similarity import anchor_components
from greenlabel.inspection.sketch import MAX_ANCHORS
from greenlabel.propagators.anchored import ANCHORED_SHIFT
from greenlabel.propagators.anchored_graph import AnchoredGraph
from greenlabel.propagators.knn import quick_settings

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

NEIGHBORS = 5  # anchors of each row
ROW_NEIGHBORS = 10  # rows near each row
STEPS = 4
MAX_ENTRIES = 8
SMOOTHED_ROWS = 20_000  # up to so many rows neighbours are found in a second or two


@dataclass(frozen=True)
class Mixing:
    """Rows as mixes of anchors, and what follows from that alone."""

    anchors: Any  # (m, d), dense
    plain: sp.csr_array  # (n, m) the weights of Eq. Z, by which the map places rows
    Z: sp.csr_array  # (n, m) float32
    gram: Floats  # Z'Z
    component: Ints  # (m,) of each anchor
    n_components: int

    @property
    def is_one_point(self) -> bool:
        """Whether all rows are equal."""
        return len(self.anchors) == 1


def mix(X: Any, seed: int) -> Mixing:
    """Rows as mixes of anchors."""
    n = X.shape[0]
    if not n:
        raise DataError("the table has no rows to label; give one that has.")
    nodes = distinct_rows(X) if n <= MAX_ANCHORS else None
    u = n if nodes is None else len(nodes.first)
    if u == 1 or (n > MAX_ANCHORS and are_equal(X)):
        return one_point(X)
    graph = anchored_graph(X, min(MAX_ANCHORS, u), seed)
    points, plain = graph.anchor_search.points, sp.csr_array(graph.mixing_matrix(), dtype=np.float32)
    if graph.m <= NEIGHBORS or n > SMOOTHED_ROWS:
        return Mixing(points, plain, plain, graph.gram(), graph.component, graph.n_components)
    Z = sp.csr_array(smoothed(X, plain, seed), dtype=np.float32)
    exact = Z.astype(np.float64)
    gram = (exact.T @ exact).toarray()
    return Mixing(points, plain, Z, gram, *anchor_components(sp.csr_array(gram)))


def one_point(X: Any) -> Mixing:
    """All rows are equal: one anchor, and every row is it."""
    n = X.shape[0]
    first = X[:1].toarray() if sp.issparse(X) else np.asarray(X[:1])
    Z = sp.csr_array(np.ones((n, 1), np.float32))
    return Mixing(first, Z, Z, np.array([[float(n)]]), np.zeros(1, np.intp), 1)


def anchored_graph(X: Any, n_anchors: int, seed: int) -> AnchoredGraph:
    """The graph of so many anchors: each different row, or fewer points."""
    shell = AnchoredGreenClassifier(
        n_anchors if n_anchors > NEIGHBORS else "auto",
        NEIGHBORS,
        mu=ANCHORED_SHIFT / X.shape[0],  # one system: labels choose nothing here
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a few rows have fewer neighbours, which nobody can change
        return shell.sketch_of(X)


def smoothed(X: Any, Z: sp.csr_array, seed: int) -> sp.csr_array:
    """Z with the anchors of each row's neighbours."""
    graph, _ = quick_settings(ROW_NEIGHBORS, np.random.default_rng(seed)).build(X)
    nodes: AllDistinct = graph.nodes
    W, Z = scaled_rows(graph.S), nodes.to_nodes(Z)
    for _ in range(STEPS):
        Z = largest_entries(sp.csr_array(W @ Z), MAX_ENTRIES)
    return nodes.to_rows(Z)


def largest_entries(A: sp.csr_array, k: int) -> sp.csr_array:
    """The k largest entries of each row, scaled to sum to 1; all of a row that has fewer."""
    row = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    order = np.lexsort((A.indices, -A.data, row))
    rank = np.arange(A.nnz) - A.indptr[row]
    kept = np.sort(order[rank < k])
    entries = (A.data[kept], (row[kept], A.indices[kept]))
    return scaled_rows(sp.csr_array(entries, shape=A.shape))


def scaled_rows(A: sp.csr_array) -> sp.csr_array:
    """Rows that sum to 1; a row of zeros stays."""
    total = np.asarray(A.sum(axis=1)).ravel()
    factor = np.divide(1, total, out=np.zeros_like(total, dtype=np.float64), where=total > 0)
    return sp.csr_array(sp.diags_array(factor) @ A)
