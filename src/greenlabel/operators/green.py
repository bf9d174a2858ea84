"""Green operators: F = G Y spreads the known labels over the graph.

    L* = L + n mu I - mu 11'        every pair of rows gains a similarity mu                    (Eq. L*)
    F  = argmin Tr(F' L* F) - 2 Tr(F' Y)   subject to   F'1 = 0                                (Eq. min*)
       = (L + s I)^-1 (Y - 1 ybar'),   s = n mu,   ybar = Y'1 / n

The paper reaches F'1 = 0 by a term eta 11' with a huge eta (Eq. F_eta). The constant vector is an eigenvector of L, so
its limit is exact: centre Y, and no eta is needed.

    operator        the paper's     factors                         one solve
    EigenGreen      GF              L = U diag(sigma) U'            O(n^2 c)
    DirectGreen     GF(G)           L + s I = R'R (Cholesky)        O(n^2 c)
    SparseGreen     GF(G)           nothing, it sorts the rows      conjugate gradients, O(n k c) a round
    AnchoredGreen   GF(A)           theta I - B'B (m x m)           O(n k c + m^2 c)

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
from scipy.sparse.csgraph import reverse_cuthill_mckee
from sklearn.exceptions import ConvergenceWarning

from greenlabel._common.parameters import check_memory, warn
from greenlabel._common.threads import one_thread
from greenlabel.errors import GraphError
from greenlabel.graph.similarity import Graph

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

TOLERANCE = 1e-13  # relative residual at which conjugate gradients stop: far from all labels scores are small
SINGLE = 1e-4  # from this tolerance on, half the digits do
SINGLE_ROWS = 500_000  # beyond so many rows, sums of single precision are too rough
MAX_ROUNDS = 5000
DIRECT_ROWS = 1500  # up to here a dense factor is as fast as any solver
SMALLEST_SHIFT = 1e-12  # relative to the mean degree; below it, rounding is as large
ORIGINAL = ", or solver='eigen' for the pseudo-inverse of the original method"
SPARSE_INSTEAD = "use solver='cg', whose memory grows with the edges"


def centred(Y: Any) -> Floats:
    """Y - 1 ybar': the labels on the complement of the constant vector, dense."""
    Y = dense(Y)
    return Y - Y.mean(axis=0)


def unit_columns(n: int, rows: Ints) -> sp.csr_array:
    """(n, len(rows)): one label of its own class on each of the rows."""
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
        return self.solve(unit_columns(self.n, rows), tolerance)

    def diagonal(self, rows: Ints, tolerance: float = TOLERANCE) -> Floats:
        return self.columns(rows, tolerance)[rows, np.arange(len(rows))]

    def diagonal_from(self, n_columns: int, rows: Ints, tolerance: float) -> Floats:
        """The same, roughly, from that many solves, however many rows.

        Each column holds every n_columns-th of the rows. Labels far apart hardly reach each other, and what they do
        cancels on average, for they have random signs (Hutchinson's estimate).
        """
        if len(rows) <= n_columns:
            return self.diagonal(rows, tolerance)
        column, sign = np.arange(len(rows)) % n_columns, np.random.default_rng(0).choice([-1.0, 1.0], len(rows))
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
        labelled = np.flatnonzero(np.diff(Y.indptr))  # few rows, of which alone U'Y is made
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
        self._system = SparseSystem(graph.S, graph.degree + shift, "raise mu, or use solver='direct'")

    def solve(self, Y: Any, tolerance: float = TOLERANCE) -> Floats:
        F = self._system.solve(centred(Y), tolerance)
        return F - column_products(F, np.ones_like(F)) / self.n


class AnchorSystem:
    """The part of GF(A) that is as large as the anchors, with no row in it. With theta = 1 + s, Woodbury gives

        F = (Yc + B W) / theta,     W = (theta I - B'B)^-1 B' Yc,     Yc = Y - 1 ybar'        (from Eq. F_result)

    theta I - B'B is positive definite up to its known vector sqrt(lambda), lambda = Z'1, which B' maps the constant to:
    adding sqrt(lambda) sqrt(lambda)' / n changes nothing on centred labels and keeps the condition number low.
    """

    def __init__(self, gram: Floats, n: int, shift: float, n_components: int):
        """``gram`` is Z'Z (m, m) of n rows. Rows of Z sum to 1, so rows of Z'Z sum to lambda."""
        check_invertible(n_components, shift, 1.0)
        m = len(gram)
        check_memory(2 * 8 * m**2, f"a graph of {m:,} anchors", "lower n_anchors")
        self.n, self.theta = n, 1 + shift
        mass = gram.sum(axis=1)
        # An anchor that no row uses has no mass and no entry in Z: its scale is never seen.
        self.scale = np.divide(1, np.sqrt(mass), out=np.zeros_like(mass), where=mass > 0)
        M = -np.outer(self.scale, self.scale)
        M *= gram
        M += np.sqrt(np.outer(mass, mass)) / n
        M[np.diag_indices(m)] += self.theta
        self._root_mass = np.sqrt(mass)
        with one_thread():
            self._factor = factor(M, "mu")

    def coefficients(self, ZY: Floats, ybar: Floats) -> Floats:
        """C (m, c) with F_i = z_i' C for an unlabelled row, from Z'Y (m, c).

        F_i = (b_i' W - ybar') / theta and b_i = diag(Z'1)^-1/2 z_i; ybar goes inside because z_i sums to 1.
        """
        BY = self.scale[:, None] * ZY - np.outer(self._root_mass, ybar)
        with one_thread():  # two threads would round otherwise
            W = scipy.linalg.cho_solve(self._factor, BY, check_finite=False)
        return (self.scale[:, None] * W - ybar) / self.theta

    def of_labels(self, Z: sp.csr_array, codes: Ints, n_classes: int) -> Floats:
        """C of one label on each of the rows of Z."""
        Y = one_hot(codes, n_classes)
        return self.coefficients((Z.T @ Y).toarray(), Y.sum(axis=0) / self.n)

    def own_share(self, Z: sp.csr_array) -> Floats:
        """G_ii of each of the rows of Z: what a label adds to its own row.

        With M = R'R the matrix of W, b_i = diag(Z'1)^-1/2 z_i and M sqrt(lambda) = theta sqrt(lambda), it is
        (|R^-T b_i|^2 - 1 / (n theta) - 1 / n + 1) / theta: one triangular solve where coefficients need two.
        """
        B = (Z * self.scale).T.toarray()
        with one_thread():
            half = scipy.linalg.solve_triangular(self._factor[0], B, trans="T", overwrite_b=True, check_finite=False)
        squares: Floats = np.einsum("ml,ml->l", half, half)
        return (squares - 1 / (self.n * self.theta) - 1 / self.n + 1) / self.theta


class AnchoredGreen(GreenOperator):
    """GF(A): the Green operator of S = B B' (Algorithm 2). All degrees are 1; a label adds 1 / theta to its own row."""

    def __init__(self, Z: sp.csr_array, gram: Any, shift: float, n_components: int):
        """``gram`` is Z'Z, which the count of components needs too."""
        self.n, self.Z = Z.shape[0], Z
        self.system = AnchorSystem(dense(gram), self.n, shift, n_components)

    def solve(self, Y: Any, tolerance: float = TOLERANCE) -> Floats:
        Y = sp.csr_array(Y)
        labelled = np.flatnonzero(np.diff(Y.indptr))
        C = self.system.coefficients((self.Z[labelled].T @ Y[labelled]).toarray(), column_means(Y))
        F, own = self.Z @ C, Y.tocoo()
        F[own.row, own.col] += own.data / self.system.theta
        return F

    def diagonal(self, rows: Ints, tolerance: float = TOLERANCE) -> Floats:
        return self.system.own_share(self.Z[rows])


def one_hot(codes: Ints, n_classes: int) -> sp.csr_array:
    """(len(codes), n_classes): a 1 in each row, at its code."""
    rows = np.arange(len(codes))
    return sp.csr_array((np.ones(len(codes)), (rows, codes)), shape=(len(codes), n_classes))


def laplacian(graph: Graph) -> sp.csr_array:
    return sp.csr_array(sp.diags_array(graph.degree) - graph.S)


def check_invertible(n_components: int, shift: float, mean_degree: float, other: str = "") -> None:
    """Without a shift that can be told from 0, each component has a zero mode of its own."""
    if n_components > 1 and shift <= SMALLEST_SHIFT * mean_degree:
        mu = "mu=0" if shift == 0 else "a mu so near to 0"
        raise GraphError(
            f"{mu} on a graph of {n_components} components leaves a system without an inverse; "
            f"give mu > 0 (n mu above {SMALLEST_SHIFT:g} of the mean degree) or mu='auto'{other}."
        )


def factor(A: Floats, knob: str) -> tuple[Floats, bool]:
    """Cholesky factor of A, in its place."""
    try:
        return scipy.linalg.cho_factor(A, overwrite_a=True, check_finite=False)
    except scipy.linalg.LinAlgError as error:
        raise GraphError(f"parts of the graph hang together by less than rounding; raise {knob}.") from error


def column_sums(Y: Any) -> Floats:
    return np.asarray(Y.sum(axis=0), dtype=np.float64).ravel()


def column_means(Y: Any) -> Floats:
    return column_sums(Y) / Y.shape[0]


def dense(A: Any) -> Floats:
    return A.toarray() if sp.issparse(A) else np.asarray(A, dtype=np.float64)


class SparseSystem:
    """(diag(diagonal) - S) X = B by conjugate gradients, for many B.

    Scaled by the diagonal on both sides the system is I - T, T = diag^-1/2 S diag^-1/2, whose conjugate gradients are
    those of the original with a Jacobi preconditioner. A row without any similarity and shift (diagonal 0) stays 0.
    Rows are put in an order in which neighbours stand close together, where the memory is read faster.
    """

    def __init__(self, S: sp.csr_array, diagonal: Floats, advice: str):
        self._advice = advice
        self._order = reverse_cuthill_mckee(sp.csr_matrix(S), symmetric_mode=True)
        diagonal = diagonal[self._order]
        self._scale = np.divide(1, np.sqrt(diagonal), out=np.zeros_like(diagonal), where=diagonal > 0)[:, None]
        T = S[self._order][:, self._order]
        self._T = sp.csr_array(T.multiply(self._scale).multiply(self._scale.T))
        self._T.sort_indices()

    def solve(self, B: Floats, tolerance: float = TOLERANCE) -> Floats:
        X, R = np.empty(B.shape), np.ascontiguousarray(self._scale * B[self._order])
        if tolerance >= SINGLE and len(R) <= SINGLE_ROWS:
            length = np.sqrt(squared_columns(R))  # columns of length 1 neither overflow nor vanish
            unit = np.divide(R, length, out=np.zeros_like(R), where=length > 0).astype(np.float32)
            solved = length * self._conjugate_gradients(unit, self._T.astype(np.float32), tolerance)
        else:
            solved = self._conjugate_gradients(R, self._T, tolerance)
        X[self._order] = self._scale * solved
        return X

    def _conjugate_gradients(self, R: Floats, T: sp.csr_array, tolerance: float) -> Floats:
        """X with (I - T) X = R, all columns at once; a column that has converged takes no further part."""
        X = np.zeros_like(R)
        size = squared_columns(R)
        active = np.flatnonzero(size > 0)
        x, r, rr = X.take(active, axis=1), R.take(active, axis=1), size[active]
        p = r.copy()
        for _ in range(MAX_ROUNDS):
            left = np.flatnonzero(rr > tolerance**2 * size[active])
            if len(left) < len(active):
                X[:, active] = x
                x, r, p = (A.take(left, axis=1) for A in (x, r, p))
                active, rr = active[left], rr[left]
            if not len(active):
                return X
            q = T @ p
            np.subtract(p, q, out=q)
            step = rr / column_products(p, q)
            q *= step
            r -= q
            np.multiply(p, step, out=q)  # q is free now: no further array as large as R is needed
            x += q
            before, rr = rr, squared_columns(r)
            p *= rr / before
            p += r
        X[:, active] = x
        self._warn(float(np.sqrt((rr / size[active]).max())), tolerance)
        return X

    def _warn(self, residual: float, tolerance: float) -> None:
        warn(
            f"conjugate gradients stopped after {MAX_ROUNDS:,} rounds at a relative residual of {residual:.1e} "
            f"(wanted {tolerance:.0e}); {self._advice}.",
            ConvergenceWarning,
        )


def squared_columns(A: Floats) -> Floats:
    return column_products(A, A)


def column_products(A: Floats, B: Floats) -> Floats:
    """a_j'b_j (c,) of each pair of columns; to the bit the same whatever other columns there are.

    Of a single column einsum would add up the rows in another order than of several.
    """
    if A.shape[1] == 1:
        A, B = np.repeat(A, 2, axis=1), np.repeat(B, 2, axis=1)
        return np.einsum("nc,nc->c", A, B)[:1]
    return np.einsum("nc,nc->c", A, B)


SOLVERS: dict[str, type[EigenGreen | DirectGreen | SparseGreen]] = {
    "eigen": EigenGreen,
    "direct": DirectGreen,
    "cg": SparseGreen,
}


def score_of_new_rows(mean: Floats, degree: Any, shift: float, ybar: Any) -> Floats:
    """F of unlabelled rows tied to the graph with a total similarity ``degree``; ``mean`` is their neighbours' mean F.

    Such a row adds its equation (degree + s) F_x - degree mean = -ybar to the system; without ybar it is LLGC's. A row
    tied to nothing, without a shift, has no equation: 0.
    """
    total = np.asarray(degree + shift, dtype=np.float64).reshape(-1, 1)
    degree = np.asarray(degree, dtype=np.float64).reshape(-1, 1)
    return np.divide(degree * mean - ybar, total, out=np.zeros_like(mean), where=total > 0)


def scores_without_own_label(
    operator: GreenOperator, F: Floats, rows: Ints, codes: Ints, tolerance: float = TOLERANCE
) -> Floats:
    """F_i - G_ii y_i: the scores of labelled rows (their F given) had each one not been labelled itself."""
    F = F.copy()
    F[np.arange(len(rows)), codes] -= operator.diagonal(rows, tolerance)
    return F
