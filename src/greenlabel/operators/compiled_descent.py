"""Conjugate gradients as in ``descent``, all rounds compiled (kernels/descent.h): the same to the bit on x86-64.

Each member of the team has a block of rows. They wait for each other inside the library, since to hand the interpreter
from one thread to another takes longer than most steps.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from greenlabel._common.threads import Team
from greenlabel.kernels import LINE, Matrix, Rounds, address, library, rounded_up, single
from greenlabel.operators import descent
from greenlabel.operators.coarse import NearGroups
from greenlabel.operators.descent import Coarse, Floats, Ints, Singles

VALUES_AT_ONCE = 2**31  # products of one call, a second or two: then the interpreter may hear of Ctrl-C
MAX_COLUMNS = 1024  # that the library has room for
ALL_ARRIVED = 2**62  # at all meetings


def can_multiply(A: sp.csr_array) -> bool:
    """Whether the library is there and reads the indices of A, which are short in all graphs that are built here."""
    return library() is not None and A.indices.dtype == np.int32 and A.indptr.dtype == np.int32


def block_rows(n: int, n_members: int) -> int:
    """Rows of a block: whole sums, one block for each member at most."""
    return max(1, -(-n // (n_members * descent.SUM_ROWS))) * descent.SUM_ROWS


class CompiledDescent:
    """By the library, on lines of columns."""

    def __init__(self, A: sp.csr_array, team: Team, coarse: Coarse, r: Singles):
        n, C = r.shape
        if not 0 < C <= MAX_COLUMNS:
            raise ValueError(f"{C} columns are wanted, from 1 to {MAX_COLUMNS} can be solved at once.")
        self._team, self._library = team, library()
        self.r, self.x, self.p = r, np.zeros_like(r), np.zeros_like(r)
        self._before, self._step = np.zeros(C), np.zeros(C)
        self._goal2, self._taken = np.full(C, np.inf), np.zeros(C, np.int64)
        self._is_new = True
        self._rounds_at_once = max(1, VALUES_AT_ONCE // max(1, A.nnz * C))
        n_sums, slab = -(-n // descent.SUM_ROWS), np.empty(team.n_members * descent.SLAB_ROWS * C)
        self._kept: list[Any] = []  # what the library reads by its address
        self._state = Rounds(
            n=n,
            K=C // LINE,
            n_members=team.n_members,
            block_rows=block_rows(n, team.n_members),
            sum_rows=descent.SUM_ROWS,
            slab_rows=descent.SLAB_ROWS,
            A=self._matrix(A),
            **self._addresses(x=self.x, r=self.r, p=self.p, q=np.zeros_like(r), slab=slab),
            **self._addresses(pq=np.empty((n_sums, C)), rr=np.empty((n_sums, C)), length2=np.empty(C), rz=np.empty(C)),
            **self._addresses(goal2=self._goal2, before=self._before, step=self._step, taken=self._taken),
            **({} if coarse is None else self._groups(coarse, C)),
        )

    @staticmethod
    def n_lanes(c: int) -> int:
        return rounded_up(c)

    def rounds(self, goal: Floats, max_rounds: int) -> Ints:
        self._goal2[: len(goal)], self._taken[:] = goal**2, 0
        done, is_over = 0, False
        while not is_over:
            n_rounds = min(self._rounds_at_once, max_rounds - done)
            is_over = self._some_rounds(n_rounds) or done + n_rounds == max_rounds
            done += n_rounds
        return self._taken[: len(goal)].copy()

    def _some_rounds(self, n_rounds: int) -> bool:
        """Whether all columns are at their goals then."""
        self._state.arrived = 0
        words = (int(self._is_new), n_rounds)
        state, members = ctypes.byref(self._state), range(self._team.n_members)

        def run(member: int) -> Any:
            with self._waited_for():
                return self._library.rounds(state, member, *words)

        with self._waited_for():
            found = self._team.run(run, members)
        self._is_new = False
        return bool(found[0])

    @contextmanager
    def _waited_for(self) -> Iterator[None]:
        """Whoever fails here, and so never comes to the next meeting, lets the others go on."""
        try:
            yield
        except BaseException:
            self._state.arrived = ALL_ARRIVED
            raise

    def found(self) -> Singles:
        n, C = self.x.shape
        self._library.follow(n, C // LINE, self.x, self.p, single(self._step))
        self._step[:] = 0
        return self.x

    def restart(self, length: Floats) -> None:
        scale = np.ones(len(self._before))
        np.divide(1, length, out=scale[: len(length)], where=length > 0)
        self.x[:] = 0
        self.p *= scale.astype(np.float32)
        self._before *= scale**2
        self._is_new = True

    def _groups(self, coarse: Any, C: int) -> dict[str, Any]:
        """The groups of rows, and the clusters that they are or are in."""
        u, m = coarse.P.shape[1], len(coarse.inverse)
        words: dict[str, Any] = self._addresses(
            entry=single(coarse.P.data),
            group=np.ascontiguousarray(coarse.P.indices, np.int32),
            inverse=coarse.inverse,
            residual=np.empty((u, C), np.float32),
            y=np.empty((u, C), np.float32),
            ry=np.empty((-(-u // descent.SUM_ROWS), C)),
        )
        if isinstance(coarse, NearGroups):
            words |= {"far_down": self._matrix(coarse.down)} | self._addresses(
                far_entry=coarse.entry,
                cluster=coarse.cluster,
                scale=coarse.scale,
                far_residual=np.empty((m, C), np.float32),
                far=np.empty((m, C), np.float32),
            )
        return words | {"u": u, "m": m, "down": self._matrix(coarse.restriction)}

    def _matrix(self, A: sp.csr_array) -> Matrix:
        indices = (np.ascontiguousarray(of, np.int32) for of in (A.indptr, A.indices))
        return Matrix(*self._addresses_of(*indices, single(A.data)))

    def _addresses(self, **arrays: Any) -> dict[str, int | None]:
        return dict(zip(arrays, self._addresses_of(*arrays.values()), strict=True))

    def _addresses_of(self, *arrays: Any) -> list[int | None]:
        self._kept += arrays
        return [address(of) for of in arrays]
