"""Conjugate gradients in single precision that are as exact as in double, on all threads.

    A X = R        A = I - T, T (n, n) sparse, symmetric, eigenvalues below 1

Single precision moves half the bytes, and carries a residual down by DROP before rounding shows. There a column waits;
when all do, what was found is added to X, the residual is taken anew in double precision, and conjugate gradients go on
from it in the direction they had (*reliable updates*), so they need no more rounds than in double precision.

Blocks of rows are worked on side by side (``steps``, ``compiled_steps``); the result is the same to the bit on any
number of threads, and no column depends on another one.

R (n, c) right sides     X (n, c)     r, p, q (n, C) residual, direction and A p, C >= c columns in float32
"""

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.threads import Team
from greenlabel.operators import steps
from greenlabel.operators.coarse import CoarseSystem, NearGroups
from greenlabel.operators.compiled_steps import CompiledSteps, can_multiply
from greenlabel.operators.steps import NumpySteps, Part, Steps, added_up, block_rows, column_sums, sum_by_halves

Floats = NDArray[np.floating]
Singles = NDArray[np.float32]
Ints = NDArray[np.integer]

GROUPS_AT_ONCE, GROUP_PARTS = 64, 32  # groups of the coarse system at least, and parts of them at most
COLUMNS_AT_ONCE = 16  # one line of the processor's cache holds as many numbers,
VALUES_AT_ONCE, MAX_COLUMNS = 2**23, 128  # and of fewer rows more columns: a product takes less time for each of them
DROP = 1e-4  # by which a residual falls before it is taken anew,
DEEP_DROP, EASY_ROUNDS = 1e-5, 40  # or deeper where the first fall took few rounds: rounding grows with them
PATIENCE = 500  # rounds after which it is taken anew in any case
PROGRESS = 1e-2  # a residual that has not fallen by this in all these rounds is too hard for single precision


def row_slices(n: int, size: int | None = None) -> Iterator[slice]:
    """Slices of so many rows, or of one sum each."""
    size = size or steps.SUM_ROWS
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


def in_single(A: sp.csr_array) -> sp.csr_array:
    """A in single precision; the arrays of its indices are shared."""
    return sp.csr_array((A.data.astype(np.float32), A.indices, A.indptr), shape=A.shape)


def column_parts(n: int, c: int) -> Iterator[slice]:
    """Columns to solve at once, of c right sides on n rows; as many in each part."""
    at_once = max(COLUMNS_AT_ONCE, min(VALUES_AT_ONCE // n, MAX_COLUMNS))
    size = -(-c // -(-c // at_once)) if c else 1
    return (slice(start, min(start + size, c)) for start in range(0, c, size))


class Groups:
    """The coarse system, if there is one, on the blocks of the rows."""

    def __init__(self, coarse: CoarseSystem | NearGroups | None, team: Team):
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
            return sum_by_halves(residual[rows].astype(np.float64) * y[rows])[None]

        return y, added_up(self._team.run(multiply, list(row_slices(len(y)))))


class Descent:
    """Conjugate gradients in single precision, from a residual r of any length.

    A step along p is added to x when p turns, since p is read there anyway.
    """

    def __init__(self, parts: list[Part], team: Team, groups: Groups, steps: Steps):
        self._parts, self._team, self._groups, self._steps = parts, team, groups, steps
        self._before: Floats = np.zeros(steps.r.shape[1])  # r'z at the last turn of each column
        self._step: Floats = np.zeros(steps.r.shape[1])  # that x has still to go
        self._start()

    def rounds(self, goal: Floats, max_rounds: int) -> Ints:
        """Rounds until the length of each column of r is at its goal (c,), at most so many; how many each took (c,)."""
        goal2 = np.full_like(self._rr, np.inf)
        goal2[: len(goal)] = goal**2
        taken = np.zeros(len(goal2), int)
        for _ in range(max_rounds):
            moving = self._rr > goal2
            if not moving.any():
                break
            taken += moving
            self._turn(moving)
            pq = self._summed(self._steps.multiplying())
            self._move(np.divide(self._rz, pq, out=np.zeros_like(pq), where=moving & (pq > 0)))
        return taken[: len(goal)]

    def found(self) -> Singles:
        """x, after its last step."""
        self._team.run(self._steps.following(self._step), self._parts)
        self._step = np.zeros_like(self._step)
        return self._steps.x

    def restart(self, length: Floats) -> None:
        """Go on in the same direction from r taken anew, in another unit: ``length`` times the former one."""
        scale = np.ones_like(self._rr)
        np.divide(1, length, out=scale[: len(length)], where=length > 0)

        def shorten(part: Part) -> None:
            self._steps.x[part[0]] = 0
            self._steps.p[part[0]] *= scale.astype(np.float32)

        self._team.run(shorten, self._parts)
        self._before = self._before * scale**2
        self._start()

    def _start(self) -> None:
        self._set_length(self._summed(lambda part: column_sums(self._steps.r[part[0]] ** 2)))

    def _set_length(self, rr: Floats) -> None:
        self._rr = rr
        self._y, more = self._groups.correct(self._steps.r)
        self._rz = rr + more

    def _turn(self, moving: NDArray[np.bool_]) -> None:
        """p <- z + beta p, in columns that move."""
        beta = np.divide(self._rz, self._before, out=np.zeros_like(self._rz), where=moving & (self._before > 0))
        self._before = np.where(moving, self._rz, self._before)
        work = self._steps.turning(self._step, np.where(moving, beta, 1), moving, self._y)
        self._team.run(work, self._parts)

    def _move(self, step: Floats) -> None:
        """r <- r - step q; x has the same step to go along p."""
        self._step = step
        self._set_length(self._summed(self._steps.moving(step)))

    def _summed(self, work: Callable[[Part], Floats]) -> Floats:
        return added_up(self._team.run(work, self._parts))


class MixedPrecision:
    """A X = R, for many R of at most ``n_columns``."""

    def __init__(self, A: sp.csr_array, team: Team, n_columns: int, coarse: CoarseSystem | NearGroups | None = None):
        # One column of 16 would be work in vain: NumPy holds it in the processor's cache.
        self._steps: type[Steps] = CompiledSteps if n_columns > 1 and can_multiply(A) else NumpySteps
        size = self._steps.block_rows(A.shape[0], n_columns, team.n_members)
        self._single, self._double = row_parts(in_single(A), size), row_parts(A, block_rows(n_columns))
        self._team = team
        self._groups = Groups(coarse, team)

    def solve(self, R: Floats, tolerance: float, n_rounds: int) -> tuple[Floats, Floats, int]:
        """X, what is left of R, and how many rounds it took.

        Each column comes as far as the tolerance, its last digit or ``n_rounds`` let it.
        """
        X, left = np.zeros(R.shape), np.empty(R.shape)
        r = np.zeros((len(R), self._steps.n_lanes(R.shape[1])), np.float32)
        size = length = self._lengths(R)
        self._unit_columns(R, length, r)
        descent = Descent(self._single, self._team, self._groups, self._steps(r, self._groups.P))
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
