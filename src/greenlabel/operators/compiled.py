"""The steps of ``steps``, compiled from steps.c: the same to the bit on x86-64, in half the time.

The build makes a small library of it where it finds a C compiler (hatch_build.py). Without that library, or with one of
another version, NumPy does the work: nothing but time depends on a compiler.
"""

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel.operators import steps
from greenlabel.operators.steps import Bools, Floats, Part, Singles

LIBRARY = Path(__file__).with_name("_steps.so")
INTERFACE = 1  # the number of steps.c that is called here
LINE = 16  # columns that are one line of the processor's cache


class _Sums(ctypes.Structure):
    _fields_ = [
        ("sum_rows", ctypes.c_int64),
        ("slab_rows", ctypes.c_int64),
        ("slab", ctypes.c_void_p),
        ("sums", ctypes.c_void_p),
    ]


SIZE, ADDRESS = ctypes.c_int64, ctypes.c_void_p
ARGUMENTS = {
    "follow": [SIZE, SIZE, *[ADDRESS] * 3],
    "turn": [SIZE, SIZE, *[ADDRESS] * 9],
    "multiply": [SIZE, SIZE, *[ADDRESS] * 6, _Sums],
    "move": [SIZE, SIZE, *[ADDRESS] * 3, _Sums],
}


@cache
def library(path: Path = LIBRARY) -> Any:
    """The compiled library, or None where there is none that fits."""
    try:
        found = ctypes.CDLL(str(path))
        if found.steps_interface() != INTERFACE:
            return None
    except (OSError, AttributeError):  # not there, not for this machine, or not ours
        return None
    for name, types in ARGUMENTS.items():
        function = getattr(found, name)
        function.argtypes, function.restype = types, None
    return found


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
        return -(-c // LINE) * LINE

    @staticmethod
    def block_rows(n: int, c: int, n_threads: int) -> int:
        """One block for each thread: a step reads every number once, so no cache would be left in between."""
        return max(1, -(-n // (n_threads * steps.SUM_ROWS))) * steps.SUM_ROWS

    def following(self, step: Floats) -> Callable[[Part], None]:
        factors = _single(step)

        def follow(part: Part) -> None:
            n, x, p = self._at(part[0], self.x, self.p)
            self._library.follow(n, self._K, x, p, _address(factors))

        return follow

    def turning(self, step: Floats, beta: Floats, moving: Bools, y: Singles | None) -> Callable[[Part], None]:
        factors = [_single(values) for values in (step, beta, moving)]
        y = None if y is None else y * factors[2]

        def turn(part: Part) -> None:
            n, x, p, r = self._at(part[0], self.x, self.p, self.r)
            entry, group = (_address(A, part[0].start) for A in (self._entry, self._group))
            self._library.turn(n, self._K, x, p, r, *map(_address, factors), entry, group, _address(y))

        return turn

    def multiplying(self) -> Callable[[Part], Floats]:
        def multiply(part: Part) -> Floats:
            rows, A = part
            n, p, q = self._at(rows, self.p, self._q)
            matrix = map(_address, (A.indptr, A.indices, A.data))
            sums = _SumsOf(n, self._K)
            self._library.multiply(n, self._K, *matrix, _address(self.p), p, q, sums.how)
            return sums.found

        return multiply

    def moving(self, step: Floats) -> Callable[[Part], Floats]:
        factors = _single(step)

        def move(part: Part) -> Floats:
            n, r, q = self._at(part[0], self.r, self._q)
            sums = _SumsOf(n, self._K)
            self._library.move(n, self._K, r, q, _address(factors), sums.how)
            return sums.found

        return move

    def _at(self, rows: slice, *arrays: Singles) -> tuple[int, ...]:
        """How many rows, and where they begin in each array."""
        return rows.stop - rows.start, *(_address(A, rows.start * A.shape[1]) for A in arrays)


class _SumsOf:
    """Room for the sums of n rows (sums, C), and for what is added up on the way."""

    def __init__(self, n: int, K: int):
        self.found = np.empty((-(-n // steps.SUM_ROWS), K * LINE))
        self._slab = np.empty((steps.SLAB_ROWS, K * LINE), np.float32)
        self.how = _Sums(steps.SUM_ROWS, steps.SLAB_ROWS, _address(self._slab), _address(self.found))


def _single(values: NDArray[Any]) -> Singles:
    return np.ascontiguousarray(values, np.float32)


def _address(A: NDArray[Any] | None, index: int = 0) -> int | None:
    """Where the index-th number of an array is; None where there is no array."""
    return None if A is None else A.ctypes.data + index * A.itemsize
