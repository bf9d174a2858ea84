"""Two classic methods on the same graph.

    LLGC   learning with local and global consistency    F = (L + gamma I)^-1 Y                       (Eq. F_LLGC)
    HF     Gaussian fields and harmonic functions         F = Y on labelled rows, L F = 0 elsewhere

With H = L_uu^-1 S_ul (u unlabelled, l labelled rows), HF is F_u = H Y_l: each unlabelled row is the mean of its
neighbours. An unreached component has no harmonic function of its own: its rows get the shares of the labels.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel.graph.similarity import Graph, reached_components
from greenlabel.operators.conjugate_gradients import TOLERANCE, SparseSystem
from greenlabel.operators.green import DIRECT_ROWS, MIN_SHIFT, GreenOperator, dense, factor

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

SHORT_SERIES = 0.1  # the series is short where gamma is at least this part of the largest degree
ADVICE = "label more rows, or raise n_neighbors"


class ConsistencyOperator(GreenOperator):
    """LLGC's operator, G = (L + gamma I)^-1.

    Scores fall quickly with the distance from a label, below any residual. Two ways keep the digits of the smallest:
    elimination on small graphs, and on larger ones the series sum_j (D^-1 S)^j D^-1 Y with D = diag(d + gamma), which
    never subtracts. Where gamma is so small that the series is long, scores stay large, and conjugate gradients are
    exact enough.
    """

    _solve: Callable[[Floats, float], Floats]

    def __init__(self, graph: Graph, gamma: float):
        self.n = graph.n
        # A gamma that drowns in rounding would leave it to chance whether there is an inverse.
        diagonal = np.maximum(graph.degree + gamma, graph.degree * (1 + MIN_SHIFT))
        if self.n <= DIRECT_ROWS:
            self._factor = factor(np.diag(diagonal) - graph.S, "gamma")
            self._solve = self._eliminate
        elif gamma >= SHORT_SERIES * graph.degree.max():
            self._diagonal, self._S = diagonal[:, None], graph.S
            self._solve = self._sum_series
        else:
            self._system = SparseSystem(graph.S, diagonal, "raise gamma", graph.group)
            self._solve = self._system.solve

    def solve(self, Y: Any, tolerance: float = TOLERANCE) -> Floats:
        return self._solve(dense(Y), tolerance)

    def _eliminate(self, Y: Floats, tolerance: float) -> Floats:
        return scipy.linalg.cho_solve(self._factor, Y, check_finite=False)

    def _sum_series(self, Y: Floats, tolerance: float) -> Floats:
        """Sum until no score grows by more than the tolerance, relative to itself; a row just reached grows by all."""
        term = Y / self._diagonal
        F = term.copy()
        while (abs(term) > tolerance * abs(F)).any():
            term = self._S @ term
            term /= self._diagonal
            F += term
        return F


class HarmonicOperator(GreenOperator):
    """HF: rows with an entry in Y are clamped, every other row is harmonic.

    Which rows are clamped depends on Y, so no matrix G serves all labels. ``columns(rows)`` clamps all of these rows:
    for the labelled rows it holds the share of each label in the score of every row.
    """

    def __init__(self, graph: Graph):
        self.n, self.graph = graph.n, graph

    def solve(self, Y: Any, tolerance: float = TOLERANCE) -> Floats:
        Y, graph = sp.csr_array(Y), self.graph
        labelled = np.flatnonzero(np.diff(Y.indptr))
        is_reached = reached_components(graph.component, graph.n_components, labelled)[graph.component]
        return harmonic_scores(graph, Y, is_reached, tolerance)


def harmonic_scores(graph: Graph, Y: Any, reached: NDArray[np.bool_], tolerance: float = TOLERANCE) -> Floats:
    """HF: F (n, c), clamped on labelled rows and harmonic elsewhere.

    Y (n, c) counts the labels of each row. Where a row carries several (as a node of equal rows may), it is clamped to
    their mean.
    """
    count, F = _clamped(Y)
    free = reached & (count == 0)
    F_free = _harmonic(graph, free, graph.S[free] @ F, tolerance)
    F = F.toarray()
    F[free] = F_free
    F[~reached] = Y.sum(axis=0) / count.sum()
    return F


def harmonic_leave_one_out(
    graph: Graph, Y: Any, reached: NDArray[np.bool_], rows: Ints, codes: Ints, tolerance: float
) -> Floats:
    """Leave-one-out scores (len(rows), c): each row without one label that it carries (rows, codes).

    With K = S_ll + S_lu L_uu^-1 S_ul, the equation of row i alone reads  (d_i - K_ii) f_i = sum_j≠i K_ij y_j.
    A row that no other label reaches scores the shares of the other labels; a row that carries others, their mean.
    """
    count, mean = _clamped(Y)
    labelled = np.flatnonzero(count)
    indices = np.arange(len(rows))
    own = np.searchsorted(labelled, rows)
    free = reached & (count == 0)
    S_ul = graph.S[free][:, labelled]
    K = graph.S[rows][:, labelled].toarray() + (S_ul.T @ _harmonic(graph, free, S_ul[:, own], tolerance)).T
    K[indices, own] = 0
    weight = K.sum(axis=1, keepdims=True)  # equals d_i - K_ii, because L_uu^-1 S_ul has rows that sum to 1
    others = np.tile(Y.sum(axis=0), (len(rows), 1))  # counts of the other labels, and of those on the row itself
    others_here = Y[rows].toarray()
    others[indices, codes] -= 1
    others_here[indices, codes] -= 1
    shares = others / (count.sum() - 1)
    F = np.divide(K @ mean[labelled].toarray(), weight, out=shares, where=weight > 1e-12 * graph.degree.max())
    return np.divide(others_here, count[rows, None] - 1, out=F, where=count[rows, None] > 1)


def _clamped(Y: Any) -> tuple[Floats, sp.csr_array]:
    """The number of labels on each row, and their mean; a row without any has a zero row."""
    count = np.asarray(Y.sum(axis=1)).ravel()
    return count, sp.csr_array(Y * np.divide(1, count, out=np.zeros_like(count), where=count > 0)[:, None])


def _harmonic(graph: Graph, free: NDArray[np.bool_], inflow: sp.csr_array, tolerance: float) -> Floats:
    """L_uu^-1 times what flows into the free rows."""
    if not free.any():
        return inflow.toarray()  # every row is labelled: nothing to solve
    return SparseSystem(graph.S[free][:, free], graph.degree[free], ADVICE).solve(inflow.toarray(), tolerance)
