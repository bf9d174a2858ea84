"""Two classic methods on the same graph, for comparison and for those who want them.

    LLGC   learning with local and global consistency    F = (L + gamma I)^-1 Y                       (Eq. F_LLGC)
    HF     Gaussian fields and harmonic functions         F = Y on labelled rows, L F = 0 elsewhere

With H = L_uu^-1 S_ul (u unlabelled, l labelled rows), HF is F_u = H Y_l: each unlabelled row is the mean of its
neighbours. A component without a label has no harmonic function of its own: its rows get the shares of the labels.
"""

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel.graph import Graph
from greenlabel.green import DIRECT_ROWS, TOLERANCE, GreenOperator, SparseSystem, dense
from greenlabel.labels import Labels

Floats = NDArray[np.floating]

ADVICE = "label more rows, or raise n_neighbors"


class ConsistencyOperator(GreenOperator):
    """LLGC's operator, G = (L + gamma I)^-1."""

    def __init__(self, graph: Graph, gamma: float):
        self.n = graph.n
        diagonal = graph.degree + gamma
        # Far from all labels scores fall below any residual; an elimination keeps their digits, where it is cheap.
        if self.n <= DIRECT_ROWS:
            self._factor = scipy.linalg.cho_factor(np.diag(diagonal) - graph.S, check_finite=False)
        else:
            self._factor, self._system = None, SparseSystem(graph.S, diagonal, "raise gamma")

    def solve(self, Y: Any, tolerance: float = TOLERANCE) -> Floats:
        if self._factor is not None:
            return scipy.linalg.cho_solve(self._factor, dense(Y), check_finite=False)
        return self._system.solve(dense(Y), tolerance)


def harmonic_scores(graph: Graph, labels: Labels, reached: NDArray[np.bool_]) -> Floats:
    """HF: F (n, c), clamped on labelled rows and harmonic elsewhere."""
    F = labels.Y.toarray()
    free = reached.copy()
    free[labels.rows] = False
    F[free] = _harmonic(graph, free, graph.S[free] @ labels.Y, TOLERANCE)
    F[~reached] = labels.shares
    return F


def harmonic_leave_one_out(
    graph: Graph, labels: Labels, reached: NDArray[np.bool_], tolerance: float = TOLERANCE
) -> Floats:
    """Score of each labelled row were it free, (l, c).

    With K = S_ll + S_lu H, the equation of row i alone reads  (d_i - K_ii) f_i = sum_j≠i K_ij y_j.
    Where no other label reaches the row, its score is the shares of the other labels.
    """
    free = reached.copy()
    free[labels.rows] = False
    H = _harmonic(graph, free, graph.S[free][:, labels.rows], tolerance)
    S_l = graph.S[labels.rows]
    K = S_l[:, labels.rows].toarray() + S_l[:, free] @ H
    np.fill_diagonal(K, 0)
    weight = K.sum(axis=1, keepdims=True)  # equals d_i - K_ii, because the rows of H sum to 1
    F = K @ labels.Y[labels.rows].toarray()
    others = (labels.counts - labels.Y[labels.rows].toarray()) / (len(labels.rows) - 1)
    return np.divide(F, weight, out=others, where=weight > 1e-12 * graph.degree.max())


def _harmonic(graph: Graph, free: NDArray[np.bool_], inflow: sp.csr_array, tolerance: float) -> Floats:
    """L_uu^-1 times what flows into the free rows."""
    if not free.any():
        return inflow.toarray()  # every row is labelled: nothing to solve
    return SparseSystem(graph.S[free][:, free], graph.degree[free], ADVICE).solve(inflow.toarray(), tolerance)
