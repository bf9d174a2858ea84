"""Features: finite numbers, in a unit whose squares neither overflow nor vanish.

    X / unit        unit a power of two, 1 for all features of ordinary size

No prediction depends on the unit of the features, to the last bit: a power of two only moves the exponent.

X (n, d) rows, dense or sparse
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from greenlabel.errors import DataError

SMALL, LARGE, FAR = 1e-9, 1e9, 1e15  # absolute values; squares of the last still fit in single precision
FILL = "fill them (sklearn.impute.SimpleImputer), or drop those rows or columns"


def check_numeric(dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "fiub":
        raise DataError(
            f"X holds values of type {dtype}; convert them to numbers: encode text "
            "(sklearn.preprocessing.OneHotEncoder), count the days since a date."
        )


def check_finite(X: Any, remedy: str, rows: Sequence[int] | None = None) -> float:
    """The largest absolute value of a feature; an error names the first one that is not finite.

    ``rows`` are the indices of the rows of X where it is a block of a larger whole.
    """
    values = X.data if sp.issparse(X) else X
    if values.dtype.kind in "iub" and values.dtype.itemsize <= 2:
        return 1.0 if values.dtype.kind == "b" else float(np.iinfo(values.dtype).max)  # no need to look
    max_abs = max(float(values.max()), -float(values.min())) if values.size else 0.0
    if np.isfinite(max_abs):
        return max_abs
    bad = ~np.isfinite(values)
    index = np.argwhere(bad)[0]
    row, column = (int(axis[index[0]]) for axis in X.tocoo().coords) if sp.issparse(X) else index.tolist()
    kind = "NaN" if np.isnan(values[tuple(index)]) else "infinity"
    whole = "all" if rows is None else "its block"
    count = f"{bad.sum():,} value{'s' if bad.sum() > 1 else ''} of NaN or infinity in {whole}"
    number = row if rows is None else int(rows[row])
    raise DataError(f"X holds {kind} at row {number}, column {column} ({count}); {remedy}.")


def unit_of(X: Any, max_abs: float) -> float:
    """A power of two near the largest feature where squares of such numbers would not fit, otherwise 1.

    Beside a row that is too far away for that (a mark for "no data", perhaps), near that of most others.
    """
    if max_abs > LARGE:
        sizes = _row_sizes(X)
        usual = float(np.median(sizes[sizes > 0]))
        max_abs = max_abs if max_abs <= FAR * usual else usual
    return 1.0 if max_abs == 0 or SMALL <= max_abs <= LARGE else float(np.exp2(np.floor(np.log2(max_abs))))


def in_units(X: Any, unit: float, max_abs: float) -> Any:
    """X / unit. A row too far away for squared distances is brought nearer along its own direction."""
    if max_abs <= FAR * unit:
        return X if unit == 1 else X / unit
    kind = np.float32 if X.dtype == np.float32 else np.float64  # as rows of a block without any so far away
    X = X.astype(np.float64)
    divisor = np.maximum(_row_sizes(X) / FAR, unit)  # X / unit itself may overflow
    X = sp.diags_array(1 / divisor).tocsr() @ X if sp.issparse(X) else X / divisor[:, None]
    return X.astype(kind, copy=False)


def _row_sizes(X: Any) -> Any:
    """(n,) the largest absolute value in each row."""
    if sp.issparse(X):
        return abs(X).max(axis=1).toarray().ravel().astype(np.float64)
    return np.maximum(X.max(axis=1, initial=0).astype(np.float64), -X.min(axis=1, initial=0).astype(np.float64))


@dataclass(frozen=True)
class CheckFeatures:
    """A step over blocks: finite numbers in ``width`` columns, in the unit of the fit. Anything else is refused."""

    width: int
    unit: float | None = None  # None while it is not known: features stay as they are

    def __call__(self, rows: Sequence[int], X: Any) -> Any:
        X = as_numbers(X)
        if X.ndim != 2 or X.shape[1] != self.width:
            columns = f"{X.shape[1]} columns" if X.ndim == 2 else f"{X.ndim} dimensions"
            raise DataError(
                f"the block of rows {rows[0]} to {rows[-1]} has {columns}, the others {self.width} columns; "
                "give the same columns in every block."
            )
        max_abs = check_finite(X, FILL, rows)
        return X if self.unit is None else in_units(X, self.unit, max_abs)


def as_numbers(X: Any) -> Any:
    """A block as an array or a CSR matrix of numbers."""
    X = X.tocsr() if sp.issparse(X) else np.asarray(X)
    check_numeric(X.dtype)
    return X
