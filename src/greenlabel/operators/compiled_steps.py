"""The steps of ``steps``, compiled (kernels/steps.h): the same to the bit on x86-64, in half the time."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from greenlabel.kernels import LINE, Sums, address, library, rounded_up, single
from greenlabel.operators import steps
from greenlabel.operators.steps import Bools, Floats, Part, Singles


def can_multiply(A: sp.csr_array) -> bool:
    """Whether the library is there and reads the indices of A, which are short in all graphs that are built here."""
    return library() is not None and A.indices.dtype == np.int32 and A.indptr.dtype == np.int32


class CompiledSteps:
    """Steps by the library, on lines of columns."""

    def __init__(self, r: Singles, P: sp.csr_array | None):
        self.r, self.x, self.p = r, np.zeros_like(r), np.zeros_like(r)
        self._q, self._library = np.empty_like(r), library()
        self._K = r.shape[1] // LINE
        self._entry = None if P is None else np.ascontiguousarray(P.data, np.float32)
        self._group = None if P is None else np.ascontiguousarray(P.indices, np.int32)

    @staticmethod
    def n_lanes(c: int) -> int:
        return rounded_up(c)

    @staticmethod
    def block_rows(n: int, c: int, n_threads: int) -> int:
        """One block for each thread: a step reads every number once, so no cache would be left in between."""
        return max(1, -(-n // (n_threads * steps.SUM_ROWS))) * steps.SUM_ROWS

    def following(self, step: Floats) -> Callable[[Part], None]:
        factors = single(step)

        def follow(part: Part) -> None:
            n, x, p = self._at(part[0], self.x, self.p)
            self._library.follow(n, self._K, x, p, address(factors))

        return follow

    def turning(self, step: Floats, beta: Floats, moving: Bools, y: Singles | None) -> Callable[[Part], None]:
        factors = [single(values) for values in (step, beta, moving)]

        def turn(part: Part) -> None:
            n, x, p, r = self._at(part[0], self.x, self.p, self.r)
            entry, group = (address(A, part[0].start) for A in (self._entry, self._group))
            self._library.turn(n, self._K, x, p, r, *map(address, factors), entry, group, address(y))

        return turn

    def multiplying(self) -> Callable[[Part], Floats]:
        def multiply(part: Part) -> Floats:
            rows, A = part
            n, p, q = self._at(rows, self.p, self._q)
            matrix = map(address, (A.indptr, A.indices, A.data))
            sums = _SumsOf(n, self._K)
            self._library.multiply(n, self._K, *matrix, address(self.p), p, q, sums.how)
            return sums.found

        return multiply

    def moving(self, step: Floats) -> Callable[[Part], Floats]:
        factors = single(step)

        def move(part: Part) -> Floats:
            n, r, q = self._at(part[0], self.r, self._q)
            sums = _SumsOf(n, self._K)
            self._library.move(n, self._K, r, q, address(factors), sums.how)
            return sums.found

        return move

    def _at(self, rows: slice, *arrays: Singles) -> tuple[int, ...]:
        """How many rows, and where they begin in each array."""
        return rows.stop - rows.start, *(address(A, rows.start * A.shape[1]) for A in arrays)


class _SumsOf:
    """Room for the sums of n rows (sums, C), and for what is added up on the way."""

    def __init__(self, n: int, K: int):
        self.found = np.empty((-(-n // steps.SUM_ROWS), K * LINE))
        self._slab = np.empty((steps.SLAB_ROWS, K * LINE), np.float32)
        self.how = Sums(steps.SUM_ROWS, steps.SLAB_ROWS, address(self._slab), address(self.found))
