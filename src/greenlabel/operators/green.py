"""Green operators: F = G Y spreads the known labels over the graph.

    L* = L + n mu I - mu 11'        every pair of rows gains a similarity mu                    (Eq. L*)
    F  = argmin Tr(F' L* F) - 2 Tr(F' Y)   subject to   F'1 = 0                                (Eq. min*)
       = (L + s I)^-1 (Y - 1 ybar'),   s = n mu,   ybar = Y'1 / n

The paper obtains F'1 = 0 by a term eta 11' with a huge eta (Eq. F_eta). The constant vector is an eigenvector of L, so
the limit is exact: centre Y, and no eta is needed.

    operator        the paper's     factors                         one solve
    EigenGreen      GF              L = U diag(sigma) U'            O(n^2 c)
    DirectGreen     GF(G)           L + s I = R'R (Cholesky)        O(n^2 c)
    SparseGreen     GF(G)           nothing; rows are reordered     conjugate gradients, O(n k c) a round
    AnchoredGreen   GF(A)           theta I - B'B (m x m)           O(n k c + m^2 c), in anchored.py

None of them knows the labels when it is made: factor once, solve many. Each has

    solve(Y)        F = G Y, (n, c)           Y dense or sparse
    columns(rows)   G[:, rows]                the influence of single labels
    diagonal(rows)  G[rows, rows]             of a label on its own row: F_i - G_ii y_i is the leave-one-out score

S (n, n) similarity     L Laplacian     Y (n, c) labels     F (n, c) scores     Z (n, m), B = Z diag(Z'1)^-1/2
"""

from copy import copy
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.parameters import check_memory
from greenlabel.errors import GraphError
from greenlabel.graph.similarity import Graph
from greenlabel.operators.conjugate_gradients import TOLERANCE, SparseSystem, column_products

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

DIRECT_ROWS = 1500  # up to here a dense factor is as fast as any solver
MIN_SHIFT = 1e-12  # relative to the mean degree; a smaller one drowns in rounding
ORIGINAL = ", or solver='eigen' for the pseudo-inverse of the original method"
SPARSE_INSTEAD = "use solver='cg', whose memory grows with the edges"


def centred(Y: Any) -> Floats:
    """Y - 1 ybar': the labels on the complement of the constant vector, dense."""
    is_ours = sp.issparse(Y)
    Y = dense(Y)
    return np.subtract(Y, Y.mean(axis=0), out=Y if is_ours else None)


def one_label_each(n: int, rows: Ints) -> sp.csr_array:
    """(n, len(rows)): one label on each of these rows, each in a column of its own."""
    return sp.csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(n, len(rows)))


class GreenOperator:
    """What all operators share."""

    n: int

    def with_shift(self, graph: Graph, shift: float) -> "GreenOperator":
        """The operator of the same graph with another shift."""
        return type(self)(graph, shift)  # type: ignore[call-arg]

    def solve(self, Y: Any, tolerance: float = TOLERANCE) -> Floats:
        """``tolerance`` is read by iterative solvers only."""
        raise NotImplementedError

    def columns(self, rows: Ints, tolerance: float = TOLERANCE) -> Floats:
        return self.solve(one_label_each(self.n, rows), tolerance)

    def diagonal(self, rows: Ints, tolerance: float = TOLERANCE) -> Floats:
        return self.columns(rows, tolerance)[rows, np.arange(len(rows))]

    def diagonal_from(self, n_columns: int, rows: Ints, tolerance: float) -> Floats:
        """A rough diagonal from ``n_columns`` right sides, for any number of rows.

        Each column holds every n_columns-th of the rows. Labels far apart hardly influence each other, and random signs
        cancel what is left on average (Hutchinson's estimate).
        """
        if len(rows) <= n_columns:
            return self.diagonal(rows, tolerance)
        column = np.arange(len(rows)) % n_columns
        sign = np.random.default_rng(0).choice([-1.0, 1.0], len(rows))
        Y = sp.csr_array((sign, (rows, column)), shape=(self.n, n_columns))
        return sign * self.solve(Y, tolerance)[rows, column]


class EigenGreen(GreenOperator):
    """GF by an eigendecomposition (Eq. F_GF on L*). With shift 0 it is the pseudo-inverse, the original GF."""

    def __init__(self, graph: Graph, shift: float):
        self.n = n = graph.n
        check_memory(4 * 8 * n**2, f"solver='eigen' on {n:,} rows", SPARSE_INSTEAD)
        sigma, self._U = scipy.linalg.eigh(
            laplacian(graph).toarray(), overwrite_a=True, check_finite=False, driver="evd"
        )
        sigma[: graph.n_components] = 0  # known: one zero for each component
        self._sigma, self._sums = sigma, self._U.sum(axis=0)
        self._invert(shift)

    def _invert(self, shift: float) -> None:
        """1 / (sigma + shift); the zero modes that are left without a shift are discarded (Conclusion 3)."""
        sigma = self._sigma + shift
        self._inverse = np.divide(1, sigma, out=np.zeros(self.n), where=sigma > 0)

    def with_shift(self, graph: Graph, shift: float) -> "EigenGreen":
        other = copy(self)
        other._invert(shift)
        return other

    def solve(self, Y: Any, tolerance: float = TOLERANCE) -> Floats:
        Y = sp.csr_array(Y)
        labelled = np.flatnonzero(np.diff(Y.indptr))  # few rows, which alone enter U'Y
        UY = self._U[labelled].T @ Y[labelled].toarray() - np.outer(self._sums, column_means(Y))
        return self._U @ (self._inverse[:, None] * UY)


class DirectGreen(GreenOperator):
    """GF(G): elimination on the dense system (Algorithm 1), by Cholesky.

    A multiple of 11' is added, which changes nothing on centred labels and keeps the system positive definite
    when the shift is 0.
    """

    def __init__(self, graph: Graph, shift: float):
        self.n = n = graph.n
        check_memory(2 * 8 * n**2, f"solver='direct' on {n:,} rows", SPARSE_INSTEAD)
        check_invertible(graph.n_components, shift, graph.mean_degree, ORIGINAL)
        A = laplacian(graph).toarray()
        A += (np.trace(A) / n or 1.0) / n
        A[np.diag_indices(n)] += shift
        self._factor = factor(A, "mu")

    def solve(self, Y: Any, tolerance: float = TOLERANCE) -> Floats:
        return scipy.linalg.cho_solve(self._factor, centred(Y), check_finite=False)


class SparseGreen(GreenOperator):
    """GF(G) without a dense matrix: conjugate gradients on the sparse system, all classes at once."""

    def __init__(self, graph: Graph, shift: float):
        check_invertible(graph.n_components, shift, graph.mean_degree, ORIGINAL)
        self.n = graph.n
        self._system = SparseSystem(graph.S, graph.degree + shift, "raise mu, or use solver='direct'", graph.group)

    def solve(self, Y: Any, tolerance: float = TOLERANCE) -> Floats:
        F = self._system.solve(centred(Y), tolerance, overwrite_b=True)
        F -= column_products(F, np.broadcast_to(1.0, F.shape)) / self.n
        return F


def laplacian(graph: Graph) -> sp.csr_array:
    return sp.csr_array(sp.diags_array(graph.degree) - graph.S)


def check_invertible(n_components: int, shift: float, mean_degree: float, other: str = "") -> None:
    """Refuse several components without a shift that differs from 0: each would have a zero mode of its own."""
    if n_components > 1 and shift <= MIN_SHIFT * mean_degree:
        mu = "mu=0" if shift == 0 else "a mu so near to 0"
        raise GraphError(
            f"{mu} on a graph of {n_components} components leaves a system without an inverse; "
            f"give mu > 0 (n mu above {MIN_SHIFT:g} of the mean degree) or mu='auto'{other}."
        )


def factor(A: Floats, parameter: str) -> tuple[Floats, bool]:
    """Cholesky factor of A, which overwrites A; the parameter is the one to raise where there is none."""
    try:
        return scipy.linalg.cho_factor(A, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError as error:
        raise GraphError(f"parts of the graph are joined by less than rounding; raise {parameter}.") from error


def column_sums(Y: Any) -> Floats:
    return np.asarray(Y.sum(axis=0), dtype=np.float64).ravel()


def column_means(Y: Any) -> Floats:
    return column_sums(Y) / Y.shape[0]


def dense(A: Any) -> Floats:
    return A.toarray() if sp.issparse(A) else np.asarray(A, dtype=np.float64)


SOLVERS: dict[str, type[EigenGreen | DirectGreen | SparseGreen]] = {
    "eigen": EigenGreen,
    "direct": DirectGreen,
    "cg": SparseGreen,
}


def score_of_new_rows(mean: Floats, degree: Any, shift: float, ybar: Any) -> Floats:
    """F of unlabelled rows from their neighbours' mean F; ``degree`` is the total weight of their edges.

    Such a row adds its equation (degree + s) F_x - degree mean = -ybar to the system; without ybar it is LLGC's. A row
    without edges has no equation where the shift is 0: its scores are 0.
    """
    total = np.asarray(degree + shift, dtype=np.float64).reshape(-1, 1)
    degree = np.asarray(degree, dtype=np.float64).reshape(-1, 1)
    return np.divide(degree * mean - ybar, total, out=np.zeros_like(mean), where=total > 0)


def leave_one_out_scores(
    operator: GreenOperator, F: Floats, rows: Ints, codes: Ints, tolerance: float = TOLERANCE
) -> Floats:
    """F_i - G_ii y_i: the scores of labelled rows, each by all other labels; F (len(rows), c) is by all labels."""
    F = F.copy()
    F[np.arange(len(rows)), codes] -= operator.diagonal(rows, tolerance)
    return F
