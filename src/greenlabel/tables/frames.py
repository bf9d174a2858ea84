"""Frames of pandas and polars: polars inside, and what goes out is what came in."""

from typing import Any

import numpy as np

from greenlabel._common.optional import requires
from greenlabel.errors import TableError
from greenlabel.tables.columns.rounds import all_names
from greenlabel.tables.io.files import VECTORS, as_vectors, check_names

with requires("tables"):
    import polars as pl


def as_polars(frame: Any) -> pl.DataFrame:
    """A pandas or polars frame as a polars one."""
    if isinstance(frame, pl.DataFrame):
        return frame
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if not hasattr(frame, "columns") or not hasattr(frame, "iloc"):
        raise TableError(f"a table is a pandas or polars frame, got {type(frame).__name__}; make one of it.")
    names = pandas_names(frame)
    check_names(names)
    return pl.DataFrame([_as_series(name, frame[own]) for name, own in zip(names, frame.columns, strict=True)])


def _as_series(name: str, column: Any) -> pl.Series:
    """A pandas column; one of mixed Python objects becomes text, so that what is odd about it can be said."""
    try:
        series = pl.Series(name, pl.from_pandas(column.reset_index(drop=True), nan_to_null=True))
        if not isinstance(series.dtype, pl.BaseExtension):  # pandas's periods and intervals
            return series
    except Exception:  # pyarrow's and polars's own kinds for values that share no type
        pass
    values = [None if gap else str(value) for value, gap in zip(column.tolist(), column.isna(), strict=True)]
    return pl.Series(name, values, dtype=pl.String)


def with_vectors(table: pl.DataFrame, vectors: Any) -> pl.DataFrame:
    """Embeddings beside the table, as one more column."""
    column = as_vectors(np.asarray(vectors), "The array of vectors")
    if len(column) != table.height:
        raise TableError(
            f"The vectors have {len(column):,} rows, the table has {table.height:,}; give one vector for each row."
        )
    if VECTORS in table.columns:
        raise TableError(f"The table has a column {VECTORS!r} already; rename it, or leave out the vectors beside it.")
    return table.with_columns(column.alias(VECTORS))


def with_columns(frame: Any, columns: list[pl.Series]) -> Any:
    """The frame as it came, pandas or polars, with columns replaced or added; the first is the target."""
    if isinstance(frame, (pl.DataFrame, pl.LazyFrame)):
        return as_polars(frame).with_columns(columns)
    filled = frame.copy()
    names = dict(zip(pandas_names(frame), frame.columns, strict=True))
    below = ("",) * (frame.columns.nlevels - 1)  # of names that have levels
    for i, series in enumerate(columns):
        new = (series.name, *below) if below else series.name
        name = names.get(series.name, new)
        is_target = i == 0 and series.name in names
        filled[name] = as_before(series, frame[name].dtype) if is_target else series.to_pandas().to_numpy()
    return filled


def rows_after_columns(frame: Any, rows: list[int], columns: list[pl.Series]) -> Any:
    """Some rows of a frame, pandas or polars, with columns in front of its own."""
    if isinstance(frame, (pl.DataFrame, pl.LazyFrame)):
        return pl.DataFrame([*columns, *as_polars(frame)[rows].get_columns()])
    chosen = frame.iloc[rows].copy()
    below = ("",) * (frame.columns.nlevels - 1)
    for i, series in enumerate(columns):
        chosen.insert(i, (series.name, *below) if below else series.name, series.to_pandas().to_numpy())
    return chosen


def pandas_names(frame: Any) -> list[str]:
    """Names of the columns as text; of names that have levels, those that greenlabel added are their first level."""
    names = [str(name) for name in frame.columns]
    added = {name for target in names for name in all_names(target)}
    firsts = [name[0] if isinstance(name, tuple) else None for name in frame.columns]
    return [first if first in added else name for name, first in zip(names, firsts, strict=True)]


def as_before(series: pl.Series, dtype: Any) -> Any:
    """A filled column as pandas values of the type that it had; NumPy's own types cannot be empty."""
    values = series.to_pandas()
    if isinstance(dtype, np.dtype) and series.null_count():
        return values.to_numpy()
    return values.astype(dtype).array
