"""Features as users give them: checked, and in a unit whose squares neither overflow nor vanish."""

import re
from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from greenlabel.blocks.rows import Blocks
from greenlabel.errors import DataError, DataTypeError
from greenlabel.graph.features import FILL, CheckFeatures, as_numbers, check_finite, check_numeric, in_units, unit_of


def check_features(estimator: Any, X: Any, *, is_graph: bool, unit: float | None = None) -> tuple[Any, float]:
    """X as a numeric array or CSR matrix without NaN, in the type it came in, and its unit.

    Rows of a fit come without a unit and determine it; new rows come with the unit of the fit.
    """
    if isinstance(X, str | PathLike):
        raise DataError(
            f"X is a path, {str(X)!r}, and {type(estimator).__name__} takes rows in memory here; load them (np.load), "
            "or give the path to AnchoredGreenClassifier or BlendedClassifier."
        )
    is_fit = unit is None
    options = {"accept_sparse": "csr", "dtype": "numeric", "ensure_all_finite": False}
    try:
        X = validate_data(estimator, X, reset=is_fit, ensure_min_samples=2 if is_fit else 1, **options)
    except TypeError as error:
        raise DataTypeError(_with_advice(str(error))) from error
    except ValueError as error:
        raise DataError(_with_advice(str(error))) from error
    check_numeric(X.dtype)
    if is_graph:
        check_finite(X, "give 0 where two rows have nothing in common")
        return X, 1.0
    max_abs = check_finite(X, FILL)
    unit = unit_of(X, max_abs) if unit is None else unit
    return in_units(X, unit, max_abs), unit


def check_stream(estimator: Any, source: Blocks) -> Blocks:
    """Check rows of a fit outside memory: their number and columns now, each block when it is read.

    The blocks stay as they are: a sample has to show their unit first.
    """
    d, names = _columns(source, 2)
    estimator.n_features_in_ = d
    estimator.__dict__.pop("feature_names_in_", None)
    if names is not None and len(names) == d:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    return source


def check_new_stream(estimator: Any, source: Blocks, unit: float) -> Blocks:
    """The same for new rows, in the unit of the fit."""
    d, names = _columns(source, 1)
    if d != estimator.n_features_in_:
        name, advice = type(estimator).__name__, ADVICE["features as input"]
        raise DataError(f"X has {d} features, but {name} is expecting {estimator.n_features_in_}; {advice}.")
    known = getattr(estimator, "feature_names_in_", names)
    if names is not None and known is not None and len(names) == d and list(names) != list(known):
        raise DataError(f"the feature names of X are not those of the fit; {ADVICE['feature names']}.")
    return source.through(CheckFeatures(d, unit))


def _columns(source: Blocks, min_rows: int) -> tuple[int, list[str] | None]:
    """The number of columns, and their names."""
    if source.n < min_rows:
        raise DataError(f"Found {source.n} rows, a minimum of {min_rows} is required; give more data.")
    ((_, first),) = source.take(np.array([0]))
    first = as_numbers(first)
    if first.ndim != 2:
        raise DataError(f"rows have {first.ndim - 1} dimensions; give one row of numbers for each item.")
    if not first.shape[1]:
        raise DataError("Found rows with 0 features, a minimum of 1 is required; give more data.")
    return first.shape[1], source.names


ADVICE = {  # a part of scikit-learn's message: what to do
    "features as input": "give the columns that the model was fitted on, in their order",
    "feature names": "give the columns that the model was fitted on, in their order",
    "NAType": "fill missing values (sklearn.impute.SimpleImputer), or drop those rows or columns",
    "string": "encode text as numbers first (sklearn.preprocessing.OneHotEncoder), or drop it",
    "omplex": "give real numbers, for example two columns for the real and the imaginary part",
    "inhomogeneous": "give rows of the same length",
    "minimum of": "give more data",
}


def _with_advice(message: str) -> str:
    """scikit-learn's message without the data that it prints, and with what to do."""
    message = re.sub(r":?\s*array=.*?(?=Reshape|$)", ". ", message, flags=re.S)
    message = re.sub(r"(?<=Complex data not supported).*", "", message, flags=re.S)
    message = " ".join(message.replace("strings.Convert", "strings. Convert").split()).rstrip(". ")
    advice = next((what for part, what in ADVICE.items() if part in message), "give one row of numbers for each item")
    return f"{message}; {advice}."
