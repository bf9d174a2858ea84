"""Conjugate gradients in single precision, on all threads; in NumPy.

A round has three steps, each on blocks of rows that run side by side:

    turn        x <- x + step p,  p <- beta p + z,  z = r + P y        y comes from the coarse system, if there is one
    multiply    q <- A p,         sums of p q
    move        r <- r - step q,  sums of r r

A step along p is added to x when p turns, since p is read there anyway. Sums are taken over SUM_ROWS rows each,
whatever the blocks, and always in the same order, so they are the same to the bit on any number of threads, and no
column depends on another one. ``compiled_descent`` does the same in a third of the time, to the bit on x86-64, where a
compiler was at hand.

x, r, p, q (n, C) float32     step, beta (C,) one factor for each column     A (n, n)     P (n, m) one entry in each row
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.threads import Team
from greenlabel.operators.coarse import CoarseSystem, NearGroups

Floats = NDArray[np.floating]
Singles = NDArray[np.float32]
Bools = NDArray[np.bool_]
Ints = NDArray[np.integer]
Coarse = CoarseSystem | NearGroups | None
Part = tuple[slice, sp.csr_array]  # rows, and these rows of a matrix

SUM_ROWS = 4096  # rows of one sum,
SLAB_ROWS = 512  # in slabs of so many
BLOCK_VALUES = 2**17  # of a block at least: below, threads wait for the interpreter's lock
FACTORS = 4096  # of columns, written out for so many numbers, which stay in the nearest cache
GROUPS_AT_ONCE, GROUP_PARTS = 64, 32  # groups of the coarse system at least, and parts of them at most


class Descent(Protocol):
    """Conjugate gradients from a residual r of any length, which they change."""

    def __init__(self, A: sp.csr_array, team: Team, coarse: Coarse, r: Singles): ...

    @staticmethod
    def n_lanes(c: int) -> int:
        """Columns of r to compute with where c are wanted."""

    def rounds(self, goal: Floats, max_rounds: int) -> Ints:
        """Rounds until the length of each column of r is at its goal (c,), at most so many; how many each took (c,)."""

    def found(self) -> Singles:
        """x, after its last step."""

    def restart(self, length: Floats) -> None:
        """Go on in the same direction from r taken anew, in another unit: ``length`` times the former one."""


class NumpyDescent:
    """By NumPy and SciPy."""

    def __init__(self, A: sp.csr_array, team: Team, coarse: Coarse, r: Singles):
        self._team, self._groups = team, Groups(coarse, team)
        self.r, self.x, self.p = r, np.zeros_like(r), np.zeros_like(r)
        self._parts = row_parts(A, block_rows(r.shape[1]))
        self._parts_of_P: dict[int, sp.csr_array] = {}
        self._q: dict[int, Singles] = {}  # by the first row of a block
        self._before: Floats = np.zeros(r.shape[1])  # r'z at the last turn of each column
        self._step: Floats = np.zeros(r.shape[1])  # that x has still to go
        self._start()

    @staticmethod
    def n_lanes(c: int) -> int:
        """Sparse products of SciPy are quickest with four at a time."""
        return c if c <= 2 else -(-c // 4) * 4

    def rounds(self, goal: Floats, max_rounds: int) -> Ints:
        goal2 = np.full_like(self._rr, np.inf)
        goal2[: len(goal)] = goal**2
        taken = np.zeros(len(goal2), int)
        for _ in range(max_rounds):
            moving = self._rr > goal2
            if not moving.any():
                break
            taken += moving
            self._turn(moving)
            pq = self._multiply()
            self._move(np.divide(self._rz, pq, out=np.zeros_like(pq), where=moving & (pq > 0)))
        return taken[: len(goal)]

    def found(self) -> Singles:
        self._team.run(self._following(self._step), self._parts)
        self._step = np.zeros_like(self._step)
        return self.x

    def restart(self, length: Floats) -> None:
        scale = np.ones_like(self._rr)
        np.divide(1, length, out=scale[: len(length)], where=length > 0)

        def shorten(part: Part) -> None:
            self.x[part[0]] = 0
            self.p[part[0]] *= scale.astype(np.float32)

        self._team.run(shorten, self._parts)
        self._before = self._before * scale**2
        self._start()

    def _start(self) -> None:
        self._set_length(self._summed(lambda part: column_sums(self.r[part[0]] ** 2)))

    def _set_length(self, rr: Floats) -> None:
        self._rr = rr
        self._y, more = self._groups.correct(self.r)
        self._rz = rr + more

    def _turn(self, moving: Bools) -> None:
        """p <- z + beta p, in columns that move; x goes its step along p before."""
        beta = np.divide(self._rz, self._before, out=np.zeros_like(self._rz), where=moving & (self._before > 0))
        self._before = np.where(moving, self._rz, self._before)
        follow, factors = self._following(self._step), ColumnFactors(np.where(moving, beta, 1))
        r_factors = ColumnFactors(moving)
        y = None if self._y is None else self._y * moving.astype(np.float32)

        def turn(part: Part) -> None:
            follow(part)
            p, r = (A[part[0]] for A in (self.p, self.r))
            factors.times(p)
            p += r if moving.all() else r_factors.times(r.copy())
            if y is not None:
                p += self._groups_of(part[0]) @ y

        self._team.run(turn, self._parts)

    def _following(self, step: Floats) -> Callable[[Part], None]:
        """x <- x + step p."""
        factors = ColumnFactors(step)

        def follow(part: Part) -> None:
            x, p = (A[part[0]] for A in (self.x, self.p))
            room = self._q.pop(part[0].start, None)  # nobody needs it any more
            x += factors.times(p, np.empty_like(p) if room is None else room)

        return follow

    def _groups_of(self, rows: slice) -> sp.csr_array:
        """These rows of P, cut out once."""
        if rows.start not in self._parts_of_P:
            assert self._groups.P is not None
            self._parts_of_P[rows.start] = self._groups.P[rows]
        return self._parts_of_P[rows.start]

    def _multiply(self) -> Floats:
        """q <- A p, and the sums of p q (C,)."""

        def multiply(part: Part) -> Floats:
            rows, A = part
            q = self._q[rows.start] = A @ self.p
            return column_sums(self.p[rows] * q)

        return self._summed(multiply)

    def _move(self, step: Floats) -> None:
        """r <- r - step q; x has the same step to go along p."""
        self._step, factors = step, ColumnFactors(step)

        def move(part: Part) -> Floats:
            r, q = self.r[part[0]], self._q[part[0].start]
            r -= factors.times(q)
            np.multiply(r, r, out=q)
            return column_sums(q)

        self._set_length(self._summed(move))

    def _summed(self, work: Callable[[Part], Floats]) -> Floats:
        return added_up(self._team.run(work, self._parts))


class Groups:
    """The coarse system, if there is one, on the blocks of the rows."""

    def __init__(self, coarse: Coarse, team: Team):
        self._coarse, self._team = coarse, team
        self.P = None if coarse is None else coarse.P
        self._down: list[Part] = []
        if coarse is not None:
            size = max(GROUPS_AT_ONCE, -(-coarse.restriction.shape[0] // GROUP_PARTS))
            self._down = row_parts(coarse.restriction, size)

    def correct(self, r: Singles) -> tuple[Singles | None, Floats | float]:
        """y of z = r + P y, and what it adds to r'z of each column (C,)."""
        if self._coarse is None:
            return None, 0.0
        residual = np.concatenate(self._team.run(lambda part: part[1] @ r, self._down))
        y = self._coarse.solve(residual, self._team)

        def multiply(rows: slice) -> Floats:
            return column_sums(residual[rows].astype(np.float64) * y[rows])

        return y, added_up(self._team.run(multiply, list(row_slices(len(y)))))


def row_slices(n: int, size: int | None = None) -> Iterator[slice]:
    """Slices of so many rows, or of one sum each."""
    size = size or SUM_ROWS
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


def row_parts(A: sp.csr_array, size: int) -> list[Part]:
    """Blocks of the rows of A, which share its arrays."""
    parts = []
    for rows in row_slices(A.shape[0], size):
        ends = A.indptr[rows.start : rows.stop + 1]
        inside = slice(ends[0], ends[-1])
        arrays = (A.data[inside], A.indices[inside], ends - ends[0])
        parts.append((rows, sp.csr_array(arrays, shape=(rows.stop - rows.start, A.shape[1]))))
    return parts


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
