"""The steps of one round of conjugate gradients, each on a block of rows; in NumPy.

    turn        x <- x + step p,  p <- beta p + z,  z = r + P y        y comes from the coarse system, if there is one
    multiply    q <- A p,         sums of p q
    move        r <- r - step q,  sums of r r

Blocks run side by side, each while it is in the processor's cache. Sums are taken over SUM_ROWS rows each, whatever the
blocks, and always in the same order, so they are the same to the bit on any number of threads, and no column depends on
another one. ``compiled_steps`` does the same in half the time, to the bit on x86-64, where a compiler was at hand.

x, r, p, q (n, C) float32     step, beta (C,) one factor for each column     A (n, n)     P (n, m) one entry in each row
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Singles = NDArray[np.float32]
Bools = NDArray[np.bool_]
Part = tuple[slice, sp.csr_array]  # rows, and these rows of a matrix

SUM_ROWS = 4096  # rows of one sum,
SLAB_ROWS = 512  # in slabs of so many
BLOCK_VALUES = 2**17  # of a block at least: below, threads wait for the interpreter's lock
FACTORS = 4096  # of columns, written out for so many numbers, which stay in the nearest cache


class Steps(Protocol):
    """What a descent is made of. A method gets what all rows share, and gives what does the step on a part."""

    x: Singles
    r: Singles
    p: Singles

    def __init__(self, r: Singles, P: sp.csr_array | None): ...

    @staticmethod
    def n_lanes(c: int) -> int:
        """Columns to compute with where c are wanted."""

    @staticmethod
    def block_rows(n: int, c: int, n_threads: int) -> int:
        """Rows of a block, of n with c columns: one or more whole sums."""

    def following(self, step: Floats) -> Callable[[Part], None]:
        """x <- x + step p."""

    def turning(self, step: Floats, beta: Floats, moving: Bools, y: Singles | None) -> Callable[[Part], None]:
        """The same, then p <- z + beta p in columns that move; in others beta is 1."""

    def multiplying(self) -> Callable[[Part], Floats]:
        """q <- A p, and the sums of p q (sums, C)."""

    def moving(self, step: Floats) -> Callable[[Part], Floats]:
        """r <- r - step q, and the sums of r r (sums, C)."""


class NumpySteps:
    """Steps by NumPy and SciPy."""

    def __init__(self, r: Singles, P: sp.csr_array | None):
        self.r, self.x, self.p = r, np.zeros_like(r), np.zeros_like(r)
        self._P, self._parts_of_P = P, dict[int, sp.csr_array]()
        self._q: dict[int, Singles] = {}  # by the first row of a block

    @staticmethod
    def n_lanes(c: int) -> int:
        """Sparse products of SciPy are quickest with four at a time."""
        return c if c <= 2 else -(-c // 4) * 4

    @staticmethod
    def block_rows(n: int, c: int, n_threads: int) -> int:
        """What stays in the processor's cache."""
        return block_rows(c)

    def following(self, step: Floats) -> Callable[[Part], None]:
        factors = ColumnFactors(step)

        def follow(part: Part) -> None:
            x, p = (A[part[0]] for A in (self.x, self.p))
            room = self._q.pop(part[0].start, None)  # nobody needs it any more
            x += factors.times(p, np.empty_like(p) if room is None else room)

        return follow

    def turning(self, step: Floats, beta: Floats, moving: Bools, y: Singles | None) -> Callable[[Part], None]:
        follow, factors, r_factors = self.following(step), ColumnFactors(beta), ColumnFactors(moving)
        if y is not None:
            y = y * moving.astype(np.float32)

        def turn(part: Part) -> None:
            follow(part)
            p, r = (A[part[0]] for A in (self.p, self.r))
            factors.times(p)
            p += r if moving.all() else r_factors.times(r.copy())
            if y is not None:
                p += self._groups_of(part[0]) @ y

        return turn

    def _groups_of(self, rows: slice) -> sp.csr_array:
        """These rows of P, cut out once."""
        if rows.start not in self._parts_of_P:
            assert self._P is not None
            self._parts_of_P[rows.start] = self._P[rows]
        return self._parts_of_P[rows.start]

    def multiplying(self) -> Callable[[Part], Floats]:
        def multiply(part: Part) -> Floats:
            rows, A = part
            q = self._q[rows.start] = A @ self.p
            return column_sums(self.p[rows] * q)

        return multiply

    def moving(self, step: Floats) -> Callable[[Part], Floats]:
        factors = ColumnFactors(step)

        def move(part: Part) -> Floats:
            r, q = self.r[part[0]], self._q[part[0].start]
            r -= factors.times(q)
            np.multiply(r, r, out=q)
            return column_sums(q)

        return move


class ColumnFactors:
    """One factor for each column. NumPy is slow where columns are few, so they are written out for some rows."""

    def __init__(self, values: NDArray[Any]):
        self._n_rows = 1 << max(0, (FACTORS // len(values)).bit_length() - 1)
        self._factors = np.tile(values.astype(np.float32), self._n_rows)

    def times(self, A: Singles, out: Singles | None = None) -> Singles:
        """A with its columns multiplied, in its own place or in that of ``out``."""
        out = A if out is None else out
        together = min(self._n_rows, len(A) & -len(A)) * A.shape[1]  # numbers of rows that divide those of A
        np.multiply(A.reshape(-1, together), self._factors[:together], out=out.reshape(-1, together))
        return out


def block_rows(n_columns: int) -> int:
    """Rows of a block with so many columns: one or two sums of rows."""
    return SUM_ROWS if n_columns * SUM_ROWS >= BLOCK_VALUES else 2 * SUM_ROWS


def column_sums(A: Floats) -> NDArray[np.float64]:
    """Sums of columns over every SUM_ROWS rows (sums, C); overwrites A. No column depends on another one."""
    return np.concatenate([_column_sum(A[start : start + SUM_ROWS]) for start in range(0, len(A), SUM_ROWS)])


def _column_sum(A: Floats) -> NDArray[np.float64]:
    """The sum of all rows (1, C): slabs one after the other, then the rows of what they give by halves."""
    first = A[:SLAB_ROWS]
    for start in range(SLAB_ROWS, len(A), SLAB_ROWS):
        slab = A[start : start + SLAB_ROWS]
        first[: len(slab)] += slab
    return sum_by_halves(first)[None]


def sum_by_halves(A: Floats) -> NDArray[np.float64]:
    """The sum of all rows (C,), which rounds little by halves; overwrites A."""
    n = len(A)
    while n > 1:
        half = n // 2
        A[:half] += A[n - half : n]
        n -= half
    return A[0].astype(np.float64)


def added_up(sums: Sequence[Floats]) -> NDArray[np.float64]:
    """All sums together (C,), one after the other."""
    return np.add.accumulate(np.concatenate(sums))[-1]
