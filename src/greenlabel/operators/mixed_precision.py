"""Conjugate gradients in single precision that are as exact as in double, on all threads.

    A X = R        A = I - T, T (n, n) sparse, symmetric, eigenvalues below 1

Single precision moves half the bytes, and carries a residual down by DROP before rounding shows. There a column waits;
when all do, what was found is added to X, the residual is taken anew in double precision, and conjugate gradients go on
from it in the direction they had (*reliable updates*), so they need no more rounds than in double precision.

Rows are shared out among threads (``descent``, ``compiled_descent``); the result is the same to the bit on any number
of them, and no column depends on another one.

R (n, c) right sides     X (n, c)     r, p, q (n, C) residual, direction and A p, C >= c columns in float32
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.threads import Team
from greenlabel.operators.compiled_descent import CompiledDescent, can_multiply
from greenlabel.operators.descent import (
    Coarse,
    Descent,
    NumpyDescent,
    Part,
    added_up,
    block_rows,
    column_sums,
    row_parts,
)

Floats = NDArray[np.floating]
Singles = NDArray[np.float32]

COLUMNS_AT_ONCE = 16  # one line of the processor's cache holds as many numbers,
VALUES_AT_ONCE, MAX_COLUMNS = 2**20, 128  # and of fewer rows several lines, as long as r, p, q and x stay in the cache
DROP = 1e-4  # by which a residual falls before it is taken anew,
DEEP_DROP, EASY_ROUNDS = 1e-5, 40  # or deeper where the first fall took few rounds: rounding grows with them
PATIENCE = 500  # rounds after which it is taken anew in any case
PROGRESS = 1e-2  # a residual that has not fallen by this in all these rounds is too hard for single precision


def in_single(A: sp.csr_array) -> sp.csr_array:
    """A in single precision; the arrays of its indices are shared."""
    return sp.csr_array((A.data.astype(np.float32), A.indices, A.indptr), shape=A.shape)


def column_parts(n: int, c: int) -> Iterator[slice]:
    """Columns to solve at once, of c right sides on n rows: whole lines, about as many in each part."""
    at_once = max(1, min(VALUES_AT_ONCE // n, MAX_COLUMNS) // COLUMNS_AT_ONCE)
    n_lines = -(-c // COLUMNS_AT_ONCE)
    size = -(-n_lines // -(-n_lines // at_once)) * COLUMNS_AT_ONCE if c else 1
    return (slice(start, min(start + size, c)) for start in range(0, c, size))


class MixedPrecision:
    """A X = R, for many R of at most ``n_columns``."""

    def __init__(self, A: sp.csr_array, team: Team, n_columns: int, coarse: Coarse = None):
        # One column of 16 would be work in vain: NumPy holds it in the processor's cache.
        self._kind: type[Descent] = CompiledDescent if n_columns > 1 and can_multiply(A) else NumpyDescent
        self._single, self._double = in_single(A), row_parts(A, block_rows(n_columns))
        self._team, self._coarse = team, coarse

    def solve(self, R: Floats, tolerance: float, n_rounds: int) -> tuple[Floats, Floats, int]:
        """X, what is left of R, and how many rounds it took.

        Each column comes as far as the tolerance, its last digit or ``n_rounds`` let it.
        """
        X, left = np.zeros(R.shape), np.empty(R.shape)
        r = np.zeros((len(R), self._kind.n_lanes(R.shape[1])), np.float32)
        size = length = self._lengths(R)
        self._unit_columns(R, length, r)
        descent = self._kind(self._single, self._team, self._coarse, r)
        is_open, done, drop = size > 0, 0, np.full(len(size), DROP)
        while is_open.any() and done < n_rounds:
            goal = np.where(is_open, np.maximum(drop, tolerance / 2 * relative(size, length)), np.inf)
            taken = descent.rounds(goal, min(PATIENCE, n_rounds - done))
            if done == 0:
                drop[taken <= EASY_ROUNDS] = DEEP_DROP
            done += int(taken.max())
            self._add(X, descent.found(), length)
            self._residual(R, X, left)
            before, length = length, self._lengths(left)
            is_open = is_open & (length > tolerance * size) & (length < PROGRESS * before)
            if is_open.any():
                self._unit_columns(left, length, r)
                descent.restart(relative(length, before))
        return X, left if done else R, done

    def _unit_columns(self, R: Floats, length: Floats, r: Singles) -> None:
        """r is R in single precision, its columns of length 1, so that they neither overflow nor vanish."""
        divisor = np.where(length > 0, length, np.inf)

        def divide(part: Part) -> None:
            r[part[0], : R.shape[1]] = R[part[0]] / divisor

        self._team.run(divide, self._double)

    def _add(self, X: Floats, x: Singles, length: Floats) -> None:
        """X <- X + x, whose columns are in units of their own."""

        def add(part: Part) -> None:
            X[part[0]] += x[part[0], : X.shape[1]] * length

        self._team.run(add, self._double)

    def _residual(self, R: Floats, X: Floats, left: Floats) -> None:
        """left <- R - A X."""

        def subtract(part: Part) -> None:
            rows, A = part
            np.subtract(R[rows], A @ X, out=left[rows])

        self._team.run(subtract, self._double)

    def _lengths(self, R: Floats) -> Floats:
        return np.sqrt(added_up(self._team.run(lambda part: column_sums(R[part[0]] ** 2), self._double)))


def relative(a: Floats, b: Floats) -> Floats:
    """a / b, and 1 where b is 0."""
    return np.divide(a, b, out=np.ones_like(a), where=b > 0)
