"""What is compiled from C, where a compiler was at hand: a small library, loaded once.

    kernels = library()                   None where there is none, or none that fits
    kernels.multiply(...)                 the function for this processor

The build makes it of library.c (hatch_build.py). Without it NumPy does the work, in more
time; approximate neighbours may be others then.
Its callers say what their NumPy counterparts are.
"""

import ctypes
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

LIBRARY = Path(__file__).with_name("_library.so")
INTERFACE = 8  # the number of library.c that is called here
LINE = 16  # numbers that belong together in memory
WIDTHS = (16, 8, 4)  # numbers that kinds of processors handle at once


class Matrix(ctypes.Structure):
    """A sparse matrix in single precision, by rows."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("indptr", "indices", "data")]


class Rounds(ctypes.Structure):
    """All that rounds of conjugate gradients read and write; kernels/descent.h says what is what."""

    _fields_ = [
        *((name, ctypes.c_int64) for name in ("n", "K", "n_members", "block_rows", "sum_rows", "slab_rows")),
        ("A", Matrix),
        *((name, ctypes.c_void_p) for name in ("x", "r", "p", "q")),
        ("u", ctypes.c_int64),
        ("down", Matrix),
        *((name, ctypes.c_void_p) for name in ("entry", "group", "residual", "y")),
        ("m", ctypes.c_int64),
        ("inverse", ctypes.c_void_p),
        ("far_down", Matrix),
        *((name, ctypes.c_void_p) for name in ("far_entry", "cluster", "scale", "far_residual", "far")),
        *((name, ctypes.c_void_p) for name in ("pq", "rr", "ry", "slab")),
        *((name, ctypes.c_void_p) for name in ("goal2", "length2", "rz", "before", "step", "taken")),
        ("arrived", ctypes.c_int64),
    ]


class NearestOf(ctypes.Structure):
    """The nearest anchors of rows."""

    _fields_ = [
        ("n", ctypes.c_int64),
        ("is_short", ctypes.c_int64),
        ("is_single", ctypes.c_int64),
        ("index", ctypes.c_void_p),
        ("dist2", ctypes.c_void_p),
    ]


class Array:
    """An array as an argument. Python holds arguments until a function returns, so none is gone while C reads it."""

    @classmethod
    def from_param(cls, values: NDArray[Any] | None) -> ctypes.c_void_p | None:
        if values is None:
            return None
        if not values.flags.c_contiguous:
            raise ctypes.ArgumentError("numbers that lie apart in memory are not what the library reads.")
        return ctypes.c_void_p(values.ctypes.data)


S, A = ctypes.c_int64, Array  # a size, an array
ARGUMENTS: dict[str, list[Any]] = {
    "follow": [S, S, A, A, A],
    "rounds": [ctypes.POINTER(Rounds), S, S, S],
    "add_products": [S, S, S, ctypes.c_double, *[A] * 4],
    "largest": [S, S, S, NearestOf, S, S, S, *[A] * 4],
}
ARGUMENTS_OF_SEARCHES = {  # each for float and for double
    "pack": [S, S, A, A, A, A, A],
    "project": [S, S, A, A, S, A, A],
    "nearest": [S, S, A, S, A, A, S, S, S, A, A],
    "nearest_centre": [S, A, A, S, A, A, A, S, S, A],
    "nearest_around": [S, A, A, S, *[A] * 6, S, S, S, S, S, A],
    "nearest_of": [S, S, A, A, A, S, A, A, S, A, A],
}
ARGUMENTS |= {f"{name}_{of}": types for name, types in ARGUMENTS_OF_SEARCHES.items() for of in ("float", "double")}


@cache
def library(width: int | None = None, path: Path = LIBRARY) -> Any:
    """The functions for processors of a width, by default for this one; None where there is no library that fits."""
    try:
        found = ctypes.CDLL(str(path))
        if found.kernels_interface() != INTERFACE:
            return None
        widest = found.kernels_width()
        if (width or widest) > widest:
            return None
        functions = {name: getattr(found, f"{name}_{width or widest}") for name in ARGUMENTS}
    except (OSError, AttributeError):  # not there, not for this machine, or not ours
        return None
    for name, function in functions.items():
        function.argtypes = ARGUMENTS[name]
    return SimpleNamespace(**functions)


def address(values: NDArray[Any]) -> int:
    """Where an array is, for what outlasts a call: its owner has to keep the array as long."""
    return int(values.ctypes.data)


def rounded_up(n: int) -> int:
    """The numbers of as many whole lines as hold n."""
    return -(-n // LINE) * LINE


def single(values: NDArray[Any]) -> NDArray[np.float32]:
    return np.ascontiguousarray(values, np.float32)
