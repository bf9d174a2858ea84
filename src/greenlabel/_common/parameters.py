"""Checks of parameters and of memory, each with a message that says what to do.

A parameter is checked where it is used for the first time in ``fit``, never in ``__init__`` (scikit-learn's rule).
"""

import sys
import warnings
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

import numpy as np
import psutil
from sklearn.utils import check_random_state

from greenlabel.errors import MemoryLimitError, ParameterError, UnreachedWarning

UNREACHED_SHARE = 0.01  # of the rows; more of them are a warning


def check_integer(name: str, value: Any, minimum: int, *, offer: str = "") -> int:
    """A whole number >= minimum; ``offer`` names what else is allowed."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise ParameterError(f"{name}={value!r} is not a whole number; give an integer of at least {minimum}{offer}.")
    if value < minimum:
        raise ParameterError(f"{name}={value!r} is too small; give an integer of at least {minimum}{offer}.")
    return int(value)


def check_real(name: str, value: Any, minimum: float, *, above: bool = False, offer: str = "") -> float:
    """A finite number >= minimum, or > minimum with ``above``; ``offer`` names what else is allowed."""
    bound = f"a number {'greater than' if above else 'of at least'} {minimum:g}{offer}"
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


def check_offsets(class_offsets: Any) -> bool:
    """Whether class offsets are wanted."""
    if class_offsets is not None and not (isinstance(class_offsets, str) and class_offsets == "auto"):
        raise ParameterError(f"class_offsets={class_offsets!r} is unknown; give 'auto' or None.")
    return class_offsets is not None


def check_memory(n_bytes: float, what: str, instead: str) -> None:
    """Refuse a dense computation that would not fit in the memory that is free now."""
    free = psutil.virtual_memory().available
    if n_bytes > free:
        raise MemoryLimitError(
            f"{what} needs {n_bytes / 2**30:.1f} GiB of memory, {free / 2**30:.1f} GiB are free; {instead}."
        )


def check_seed(random_state: Any) -> np.random.Generator:
    """A generator seeded by scikit-learn's kind of random_state."""
    try:
        return np.random.default_rng(check_random_state(random_state).randint(2**31))
    except ValueError as error:
        raise ParameterError(
            f"random_state={random_state!r} seeds nothing; give an integer of at least 0, a RandomState, or None."
        ) from error


def check_mu(mu: Any) -> None:
    if not (isinstance(mu, str) and mu == "auto"):
        check_real("mu", mu, 0, offer=", or 'auto'")


def choose_mu(mu: Any, shift: float, n: int) -> float:
    """The absolute mu; "auto" is the one with n mu = shift. A graph without any edge has no scale: any mu will do."""
    return (shift or 1.0) / n if mu == "auto" else float(mu)


def cut_neighbors(k: int, max_k: int, of: str) -> int:
    if k > max_k:
        warn(f"n_neighbors={k} is too many for {max_k + 1} {of}; {max_k} are used.")
    return min(k, max_k)


def warn_unreached(unreached: int, n: int) -> None:
    if unreached > UNREACHED_SHARE * n:
        warn(
            f"{unreached:,} of {n:,} rows are reached by no label and get the most frequent one; label a row of each "
            "group of rows, raise n_neighbors, or use BlendedClassifier (method='auto'): its other models reach them.",
            UnreachedWarning,
        )


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """A warning that names the line outside this package from which it came about."""
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("greenlabel."):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(text, category, stacklevel=depth)
