"""What a column of a table is, and the same column of new rows as what it was."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.optional import requires
from greenlabel.errors import TableError
from greenlabel.tables.columns.dates import date_format
from greenlabel.tables.columns.iso_dates import holds_zones, read_dates
from greenlabel.tables.io.files import typed
from greenlabel.tables.io.number_text import Writing, read_numbers, writing_of

with requires("tables"):
    import polars as pl

Floats = NDArray[np.floating]

SEVERAL_WORDS = r"[\s\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"  # some write no blanks
NAME_OF_IDS = r"(?i:(^|[\W_])(id|ids|uid|guid|idx|index|key|nr|no)$)|[a-z](Id|ID|Nr|No)$"
EQUAL_PAIRS = 5  # a measurement would have at least so many, on average; none has a chance of 0.7 %


@dataclass
class Column:
    """What one column of the table became."""

    name: str
    kind: str  # number, category, text, date, vector or dropped
    n_features: int = 0
    why: str = ""  # of a dropped column
    categories: list[str] = field(default_factory=list)
    is_temporal: bool = False  # a date that came as one, not as text
    marks: str = ""  # of numbers that came as text: how 1234.5 would be written, a key of number_text.MARKS
    unit: str = ""  # of such numbers: %, a currency, h:mm or h:mm:ss

    @property
    def writing(self) -> Writing:
        """How the numbers of new rows are written if they come as text."""
        return Writing(self.marks or "1234.5", self.unit)


def understood(raw: pl.DataFrame) -> tuple[pl.DataFrame, list[Column]]:
    """Text that holds numbers, or moments of some zone, as what it says; and what each column is."""
    series, columns = [], []
    for text, plain_numbers in zip(raw, typed(raw), strict=True):
        values, writing = _read(text, plain_numbers)
        series.append(values)
        column = Column(text.name, kind_of(values), is_temporal=values.dtype.is_temporal())
        if writing is not None:
            column.marks, column.unit = writing.marks, writing.unit
        columns.append(column)
    return pl.DataFrame(series), columns


def _read(text: pl.Series, plain_numbers: pl.Series) -> tuple[pl.Series, Writing | None]:
    """A column as what it says, and how its numbers are written if it came as text."""
    if text.dtype != pl.String:
        return text, None
    if plain_numbers.dtype != pl.String:
        has_commas = plain_numbers.dtype == pl.Float64 and text.str.contains(",", literal=True).any()
        return plain_numbers, Writing("1234,5" if has_commas else "1234.5")
    writing = writing_of(text)
    if writing is not None:
        return read_numbers(text, writing), writing
    return (read_dates(text) if holds_zones(text) else text), None


def plain(frame: pl.DataFrame) -> pl.DataFrame:
    """Categories as the text that they are; a type of text that lists its values would refuse new ones."""
    return frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))


def row_number(index: int, rows: Sequence[int] | None) -> int:
    """The number of a row as people count, from its index in a block of rows."""
    return int(index if rows is None else rows[index]) + 1


def stacked(series: pl.Series, rows: Sequence[int] | None = None) -> Floats:
    """A column of vectors as a matrix; ``rows`` are the numbers of its rows in the whole."""
    lengths = series.arr.len() if isinstance(series.dtype, pl.Array) else series.list.len()
    some: Any = lengths.drop_nulls().first()
    usual = some or 0
    bad = lengths.is_null() | (lengths != usual)
    if bad.any():
        row = int(bad.arg_true()[0])
        what = "no vector" if lengths[row] is None else f"a vector of {int(lengths[row])} numbers"
        raise TableError(
            f"Column {series.name!r} has {what} in row {row_number(row, rows)}, where {usual} are needed; "
            "give every row a vector of the same length, or leave the column out (--drop)."
        )
    values = series.explode()
    kind = np.float32 if values.dtype == pl.Float32 else np.float64
    X: Any = values.to_numpy().astype(kind).reshape(len(series), -1)
    if not np.isfinite(X).all():
        row = int(np.flatnonzero(~np.isfinite(X).all(axis=1))[0])
        raise TableError(
            f"Column {series.name!r} has a gap or infinity in the vector of row {row_number(row, rows)}; fill it."
        )
    return X


def kind_of(series: pl.Series) -> str:
    if isinstance(series.dtype, (pl.List, pl.Array)) and series.dtype.inner.is_numeric():
        return "vector"
    if series.dtype.is_numeric() or series.dtype == pl.Boolean:
        return "number"
    if series.dtype.is_temporal():
        return "date"
    if series.dtype.is_nested() or series.dtype in (pl.Object, pl.Binary) or isinstance(series.dtype, pl.BaseExtension):
        return "structure"
    return "text"


def why_useless(series: pl.Series, kind: str, wanted: bool) -> str:
    """Why a column says nothing about likeness; "" if it may. ``wanted`` ones were asked for by name."""
    if kind == "structure":
        return f"is of type {series.dtype}"
    if series.null_count() == len(series):
        return "is empty"
    if kind == "vector":
        return ""
    n_values = series.n_unique()
    if n_values == 1:
        return "is constant"
    if wanted or n_values < len(series) or len(series) < 3:
        return ""
    if series.dtype.is_integer() and (why := why_ids(series)):
        return why
    if kind == "text" and not series.str.contains(SEVERAL_WORDS).any() and not _holds_dates(series):
        return "names the rows (all values are different single words)"
    return ""


def why_ids(whole: pl.Series) -> str:
    """Why whole numbers that are all different number the rows; "" where they may be a measurement.

    Among n values drawn independently from R whole numbers, whichever way, at least n (n - 1) / 2R pairs are equal on
    average, and none is with a chance of at most exp(-n (n - 1) / 2R). Where that is small, somebody saw to it.
    """
    if whole.is_sorted() or whole.is_sorted(descending=True):
        return "numbers the rows"
    if re.search(NAME_OF_IDS, str(whole.name)):
        return "numbers the rows (all different, and so its name says)"
    n, low, high = len(whole), int(whole.min()), int(whole.max())  # type: ignore[arg-type]
    if n * (n - 1) / 2 >= EQUAL_PAIRS * (high - low + 1):
        return "numbers the rows (all different, and close together)"
    return ""


def _holds_dates(text: pl.Series) -> bool:
    return date_format(text) is not None


def as_kind(series: pl.Series, column: Column) -> pl.Series:
    """A column of new rows as the kind that the model learned; another kind is an error, an unknown value a gap."""
    kind = kind_of(series)
    if column.kind == "vector" and kind != "vector":
        raise TableError(
            f"Column {column.name!r} holds no vectors, the model needs some of {column.n_features} numbers."
        )
    if kind not in FITTING[column.kind] and not (column.is_temporal and kind == "date") and series.count():
        raise TableError(
            f"Column {column.name!r} holds {series.dtype} values, the model learned from a column of the kind "
            f"{column.kind}; give it as it was there."
        )
    return series if column.kind == "vector" else AS_KIND[column.kind](series, column)


def _as_words(series: pl.Series, column: Column) -> pl.Series:
    return series.cast(pl.String)


def _as_dates(series: pl.Series, column: Column) -> pl.Series:
    """Dates, or where the model learned them from text, text; what is no date is a gap."""
    if series.dtype == pl.Null:
        return series.cast(pl.Datetime if column.is_temporal else pl.String)
    if not column.is_temporal or series.dtype != pl.String:
        return series
    dates = read_dates(series)
    if dates.count():
        return dates
    try:
        return series.str.to_datetime(strict=False)
    except pl.exceptions.PolarsError:  # not one of them is a date
        return dates


def _as_number(series: pl.Series, column: Column) -> pl.Series:
    """Numbers; what is none is a gap."""
    if series.dtype == pl.Null:
        return series.cast(pl.Float64)
    return read_numbers(series, column.writing) if series.dtype == pl.String else series


FITTING = {  # the kinds of new columns that can be taken for the kind that the model learned
    "number": ("number", "text"),
    "category": ("number", "text", "date"),
    "text": ("number", "text", "date"),
    "date": ("date", "text"),
    "vector": ("vector",),
}
AS_KIND = {"number": _as_number, "category": _as_words, "text": _as_words, "date": _as_dates}
