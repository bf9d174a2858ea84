"""Conjugate gradients on a sparse system, for many right sides at once: in mixed precision as far as that leads."""

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import reverse_cuthill_mckee
from sklearn.exceptions import ConvergenceWarning

from greenlabel._common.parameters import warn
from greenlabel._common.threads import Team, n_threads, one_thread
from greenlabel.operators.coarse import coarse_system
from greenlabel.operators.compiled_descent import can_multiply
from greenlabel.operators.descent import row_slices
from greenlabel.operators.mixed_precision import MixedPrecision, column_parts

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

TOLERANCE = 1e-13  # relative residual at which conjugate gradients stop: far from all labels scores are small
MAX_ROUNDS = 5000
MIXED_ROWS, COMPILED_ROWS = 20_000, 4000  # fewer are quicker in double precision alone; by steps that are compiled
ALONE_VALUES = 2**18  # numbers of a column part up to which one thread is quicker than to wait for others


class SparseSystem:
    """(diag(diagonal) - S) X = B by conjugate gradients, for many B.

    Scaled by the diagonal on both sides it is A = I - T, T = diag^-1/2 S diag^-1/2, whose conjugate gradients are
    those of the original with a Jacobi preconditioner. A row without any similarity and shift (diagonal 0) stays 0.
    Rows are ordered so that neighbours are close together in memory, which is read faster. Groups of near rows (n,),
    where they are known, save rounds.
    """

    def __init__(self, S: sp.csr_array, diagonal: Floats, advice: str, group: Ints | None = None):
        self._advice = advice
        root = np.sqrt(diagonal)
        inverse_root = np.divide(1, root, out=np.zeros_like(root), where=root > 0)[:, None]
        T = sp.csr_array(S, copy=True)
        scale_both_sides(T, inverse_root[:, 0])
        coarse = None if group is None else coarse_system(T, root, group)
        self._order = coarse.order if coarse else reverse_cuthill_mckee(sp.csr_matrix(S), symmetric_mode=True)
        self._coarse = coarse and coarse.reordered(self._order)
        self._inverse_root = inverse_root[self._order]
        T = T[self._order][:, self._order]
        self._A = sp.csr_array(sp.eye_array(len(root), format="csr") - T)
        self._A.sort_indices()

    def solve(self, B: Floats, tolerance: float = TOLERANCE, overwrite_b: bool = False) -> Floats:
        """X, in the place of B where that may be overwritten: the first use of new memory takes time."""
        X = B if overwrite_b and B.flags.c_contiguous else np.empty(B.shape)  # sums of columns hang on the order
        parts = list(column_parts(*B.shape))
        n_columns = B[:, parts[0]].shape[1] if parts else 0
        with Team(1 if B[:, :n_columns].size <= ALONE_VALUES else n_threads()) as team, one_thread():
            is_large = n_columns > 0 and len(B) >= (COMPILED_ROWS if can_multiply(self._A) else MIXED_ROWS)
            mixed = MixedPrecision(self._A, team, n_columns, self._coarse) if is_large else None
            for columns in parts:
                R = self._in_order(B[:, columns], team)
                self._put(X[:, columns], self._solved(mixed, R, tolerance), team)
        return X

    def _in_order(self, B: Floats, team: Team) -> Floats:
        """diag^-1/2 B, its rows in the order of the system."""
        R = np.empty(B.shape)

        def take(rows: slice) -> None:
            np.multiply(B[self._order[rows]], self._inverse_root[rows], out=R[rows])

        team.run(take, list(row_slices(len(B))))
        return R

    def _put(self, X: Floats, found: Floats, team: Team) -> None:
        """X <- diag^-1/2 found, its rows in the order of the data."""

        def put(rows: slice) -> None:
            X[self._order[rows]] = found[rows] * self._inverse_root[rows]

        team.run(put, list(row_slices(len(X))))

    def _solved(self, mixed: MixedPrecision | None, R: Floats, tolerance: float) -> Floats:
        """X with A X = R. Where single precision cannot go on, double precision takes what is left."""
        size = np.sqrt(squared_columns(R))
        if mixed is None:
            return self.iterate(R, size, tolerance, MAX_ROUNDS)
        X, left, n_rounds = mixed.solve(R, tolerance, MAX_ROUNDS)
        if (squared_columns(left) > (tolerance * size) ** 2).any():
            X += self.iterate(left, size, tolerance, MAX_ROUNDS - n_rounds)
        return X

    def iterate(self, R: Floats, size: Floats, tolerance: float, n_rounds: int) -> Floats:
        """X with A X = R in double precision, up to residuals of the length size (c,) times the tolerance.

        A column that has converged takes no further part.
        """
        X, limit = np.zeros_like(R), (tolerance * size) ** 2
        rr = squared_columns(R)
        active = np.flatnonzero(rr > limit)
        x, r, rr = X.take(active, axis=1), R.take(active, axis=1), rr[active]
        p = r.copy()
        for _ in range(n_rounds):
            left = np.flatnonzero(rr > limit[active])
            if len(left) < len(active):
                X[:, active] = x
                x, r, p = (A.take(left, axis=1) for A in (x, r, p))
                active, rr = active[left], rr[left]
            if not len(active):
                return X
            q = self._A @ p
            step = on_all_rows(rr / column_products(p, q), len(p))
            q *= step
            r -= q
            np.multiply(p, step, out=q)  # q is free now
            x += q
            before, rr = rr, squared_columns(r)
            p *= on_all_rows(rr / before, len(p))
            p += r
        X[:, active] = x
        self._warn(float((np.sqrt(rr) / size[active]).max()), tolerance)
        return X

    def _warn(self, residual: float, tolerance: float) -> None:
        warn(
            f"conjugate gradients stopped after {MAX_ROUNDS:,} rounds at a relative residual of {residual:.1e} "
            f"(wanted {tolerance:.0e}); {self._advice}.",
            ConvergenceWarning,
        )


def on_all_rows(values: Floats, n: int) -> Floats:
    """A value for each column, written out for n rows: NumPy is slow with few columns otherwise."""
    return np.tile(values, (n, 1))


def scale_both_sides(T: sp.csr_array, factor: Floats) -> None:
    """diag(factor) T diag(factor), in place: products of sparse arrays would hold T three times more."""
    T.data *= np.repeat(factor, np.diff(T.indptr))
    T.data *= factor[T.indices]


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
