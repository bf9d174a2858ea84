"""Checks of parameters and of memory, each with a message that says what to do.

A parameter is checked where it is used for the first time in ``fit``, never in ``__init__`` (scikit-learn's rule).
"""

from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
import psutil

from greenlabel.errors import MemoryLimitError, ParameterError


def check_integer(name: str, value: Any, minimum: int) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise ParameterError(f"{name}={value!r} is not a whole number; give an integer of at least {minimum}.")
    if value < minimum:
        raise ParameterError(f"{name}={value!r} is too small; give an integer of at least {minimum}.")
    return int(value)


def check_real(name: str, value: Any, minimum: float, *, above: bool = False) -> float:
    """A finite number >= minimum, or > minimum with ``above``."""
    bound = f"a number {'greater than' if above else 'of at least'} {minimum:g}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise ParameterError(f"{name}={value!r} is not a number; give {bound}.")
    value = float(value)
    if not np.isfinite(value) or value < minimum or (above and value == minimum):
        raise ParameterError(f"{name}={value!r} is out of range; give {bound}.")
    return value


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    known = list(choices)
    if not (isinstance(value, str) and value in known):
        raise ParameterError(f"{name}={value!r} is unknown; choose one of {', '.join(map(repr, known))}.")
    return value


def check_memory(n_bytes: float, what: str, instead: str) -> None:
    """Refuse a dense computation that would not fit in the memory that is free now."""
    free = psutil.virtual_memory().available
    if n_bytes > free:
        raise MemoryLimitError(
            f"{what} needs {n_bytes / 2**30:.1f} GiB of memory, {free / 2**30:.1f} GiB are free; {instead}."
        )
