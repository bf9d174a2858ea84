"""What the functions of this room are given, checked."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel.blocks.rows import Blocks
from greenlabel.errors import DataError, ParameterError
from greenlabel.estimators.base import TransductiveClassifier

Ints = NDArray[np.integer]


def is_a_model(thing: Any) -> bool:
    """Whether this is meant as a model, of ours or not, and not as rows."""
    return thing is None or isinstance(thing, type) or callable(getattr(thing, "predict", None))


def check_model(model: Any, name: str) -> Any:
    """What a classifier of ours knows about the rows of its fit."""
    if not isinstance(model, TransductiveClassifier):
        raise ParameterError(
            f"{name} takes a fitted greenlabel classifier, got {type(model).__name__}; give the classifier itself "
            "(of a pipeline the last step, pipeline[-1])."
        )
    fitted = model.fitted_
    if not hasattr(fitted, "cross_validated"):
        raise ParameterError(
            f"{name} needs the rows of the fit, which a model for new rows does not keep; fit it, or take the model "
            "that was fitted."
        )
    return fitted


def check_rows(rows: Any, n: int, name: str = "rows") -> Ints:
    """Row numbers from 0 to n - 1, as an array."""
    try:
        if rows is None or isinstance(rows, set | frozenset | Iterator):
            rows = sorted(rows or ())
        found = np.atleast_1d(np.asarray(rows))
    except (TypeError, ValueError):  # numbers beside text, or lists of different lengths
        raise ParameterError(f"{name} holds text, or lists of different lengths; give whole row numbers.") from None
    if not found.size:
        return np.empty(0, np.intp)
    if found.dtype == bool:
        raise ParameterError(f"{name} is a mask of shape {found.shape}; give row numbers: numpy.flatnonzero(mask).")
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise ParameterError(f"{name} holds {found.dtype} values of shape {found.shape}; give whole row numbers.")
    outside = found[(found < 0) | (found >= n)]
    if len(outside):
        raise ParameterError(f"{name} names row {outside[0]}, there are rows 0 to {n - 1}; give numbers among these.")
    return found.astype(np.intp)


def check_two_rows(X: Any) -> None:
    """Refuse a single row to choose among; what is no table of rows is refused where it is read."""
    n = _number_of_rows(X)
    if n is not None and n < 2:
        raise DataError(
            f"suggest chooses among rows and needs at least 2, got {n}; give all rows that may be labelled."
        )


def _number_of_rows(X: Any) -> int | None:
    """The number of rows, where it can be seen without reading them."""
    if isinstance(X, Blocks):
        return X.n
    if isinstance(X, list | tuple) and X and isinstance(X[0], list | tuple | np.ndarray):
        return len(X)
    shape: tuple[int, ...] = getattr(X, "shape", ())
    return shape[0] if len(shape) == 2 else None
