"""Conjugate gradients on a sparse system, for many right sides at once."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import reverse_cuthill_mckee
from sklearn.exceptions import ConvergenceWarning

from greenlabel._common.parameters import warn

Floats = NDArray[np.floating]

TOLERANCE = 1e-13  # relative residual at which conjugate gradients stop: far from all labels scores are small
SINGLE = 1e-4  # from this tolerance on, single precision is enough
SINGLE_ROWS = 500_000  # sums over more rows are too rough in single precision
MAX_ROUNDS = 5000


class SparseSystem:
    """(diag(diagonal) - S) X = B by conjugate gradients, for many B.

    Scaled by the diagonal on both sides the system is I - T, T = diag^-1/2 S diag^-1/2, whose conjugate gradients are
    those of the original with a Jacobi preconditioner. A row without any similarity and shift (diagonal 0) stays 0.
    Rows are ordered so that neighbours are close together in memory, which is read faster.
    """

    def __init__(self, S: sp.csr_array, diagonal: Floats, advice: str):
        self._advice = advice
        self._order = reverse_cuthill_mckee(sp.csr_matrix(S), symmetric_mode=True)
        diagonal = diagonal[self._order]
        self._inverse_root = np.divide(1, np.sqrt(diagonal), out=np.zeros_like(diagonal), where=diagonal > 0)[:, None]
        T = S[self._order][:, self._order]
        self._T = sp.csr_array(T.multiply(self._inverse_root).multiply(self._inverse_root.T))
        self._T.sort_indices()

    def solve(self, B: Floats, tolerance: float = TOLERANCE) -> Floats:
        X = np.empty(B.shape)
        R = np.ascontiguousarray(self._inverse_root * B[self._order])
        if tolerance >= SINGLE and len(R) <= SINGLE_ROWS:
            length = np.sqrt(squared_columns(R))  # columns of length 1 neither overflow nor vanish
            normalised = np.divide(R, length, out=np.zeros_like(R), where=length > 0).astype(np.float32)
            solved = length * self.iterate(normalised, self._T.astype(np.float32), tolerance)
        else:
            solved = self.iterate(R, self._T, tolerance)
        X[self._order] = self._inverse_root * solved
        return X

    def iterate(self, R: Floats, T: sp.csr_array, tolerance: float) -> Floats:
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
    """a_j'b_j (c,) of each pair of columns; the same to the bit whatever other columns there are.

    With a single column einsum would add up the rows in another order than with several.
    """
    if A.shape[1] == 1:
        A, B = np.repeat(A, 2, axis=1), np.repeat(B, 2, axis=1)
        return np.einsum("nc,nc->c", A, B)[:1]
    return np.einsum("nc,nc->c", A, B)
