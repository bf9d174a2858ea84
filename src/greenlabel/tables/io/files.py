"""Tables as files: the format by the extension of the name, `-` for CSV on standard input and output.

Text formats (CSV, TSV) are read as text, every column of it, so that what greenlabel does not understand goes out as it
came in: 007 stays 007. ``typed`` turns the columns that hold numbers into numbers, for features and for formats with
types of their own.
"""

import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from greenlabel._common.files import whole_file
from greenlabel._common.optional import requires
from greenlabel.errors import TableError
from greenlabel.tables.io.csv_style import CsvStyle
from greenlabel.tables.io.csv_text import BYTE_ORDER, check_names, read_csv
from greenlabel.tables.io.encodings import as_utf8, check_encoding
from greenlabel.tables.io.number_text import without_gaps
from greenlabel.tables.io.paths import STANDARD, nearest_file

with requires("tables"):
    import fastexcel
    import polars as pl

TEXT = (".csv", ".tsv")
EXAMPLE_SHARES = '{"cat": 0.6, "dog": 0.4}'
VECTORS = "vectors"  # the column that rows of a .npy file become
EXCEL_ROWS, EXCEL_COLUMNS, EXCEL_TEXT = 2**20, 2**14, 2**15  # what a sheet must stay below


def read_table(path: Path, encoding: str | None = None, sheet: str | None = None) -> pl.DataFrame:
    """The table in a file, or in one sheet of a workbook. Columns of text formats are text."""
    check_reading(path, encoding, sheet)
    if path == STANDARD:
        return _read_text(path, encoding)
    if path.is_dir():
        raise TableError(f"{path} is a folder; give a file.")
    reader = READERS[_extension(path, READERS)]
    try:
        frame = reader(path, *(option for option in (encoding, sheet) if option is not None))
    except FileNotFoundError:
        raise TableError(f"{path} does not exist{nearest_file(path)}") from None
    except TableError:
        raise
    except Exception as error:  # each format's reader has errors of its own, all of which mean this
        if isinstance(error, OSError) and error.strerror:
            raise TableError(f"{path} cannot be opened: {error.strerror}.") from error
        reason = " ".join(str(error).split())[:200]
        raise TableError(f"{path} cannot be read as {path.suffix[1:]}: {reason}; write the file anew.") from error
    if not frame.height:
        raise TableError(f"{path} holds no rows; give a table with a row of column names and rows below it.")
    return frame


def check_reading(path: Path, encoding: str | None, sheet: str | None) -> None:
    """Refuse options that mean nothing for a file."""
    if encoding is not None:
        check_encoding(encoding)
        if not has_no_types(path):
            raise TableError(f"--encoding is for {' and '.join(TEXT)} files; leave it out for {path}.")
    if sheet is not None and path.suffix.lower() != ".xlsx":
        raise TableError(f"--sheet is for .xlsx files; leave it out for {path}.")


def read_with_style(path: Path, encoding: str | None = None, sheet: str | None = None) -> tuple[pl.DataFrame, CsvStyle]:
    """The table in a file, and how its text is written, for ``write_table``."""
    if path == STANDARD:
        check_reading(path, encoding, sheet)
        raw = as_utf8(sys.stdin.buffer.read(), check_encoding(encoding), "standard input")
        return read_csv("standard input", raw), CsvStyle.of(raw)
    frame = read_table(path, encoding, sheet)
    return frame, CsvStyle.of_file(path, check_encoding(encoding))


def write_table(path: Path, frame: pl.DataFrame, style: CsvStyle | None = None, is_text: bool = True) -> None:
    """The frame as a file that appears whole or not at all; text is written in a style.

    Columns of a table that came as text, where ``is_text``, become numbers in formats that have types.
    """
    frame = frame.drop(left_out(path, frame))
    style = style or CsvStyle()
    if path == STANDARD:
        style.write(frame, sys.stdout.buffer)
        return
    extension = _extension(path, WRITERS)
    if is_text and extension not in TEXT:
        frame = typed(frame)
    with new_file(path) as draft:
        WRITERS[extension](frame, draft, style)


def has_no_types(path: Path) -> bool:
    """Whether a file is text, every column of it."""
    return path == STANDARD or path.suffix.lower() in TEXT


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A path to write to; it becomes the file when all is written, and an error is one sentence."""
    with write_errors(path), whole_file(path) as draft:
        yield draft


@contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """An error in writing a file becomes one sentence."""
    try:
        yield
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())[:200]
        raise NotWritten(path, reason) from error


class NotWritten(TableError):
    """A file that cannot be written, and what became of the others."""

    def __init__(self, path: Path, reason: str, others: str = "nothing was written"):
        super().__init__(f"{path} cannot be written: {reason}; {others}.")
        self.path, self.reason = path, reason


@contextmanager
def after(written: Sequence[Any], missing: Sequence[Any]) -> Iterator[None]:
    """Where a file cannot be written after others, say which are there and which are not."""
    try:
        yield
    except NotWritten as error:
        there, not_there = (" and ".join(map(str, names)) for names in (written, missing))
        others = f"{there} {'is' if len(written) == 1 else 'are'} written, {not_there} "
        raise NotWritten(error.path, error.reason, others + ("is not" if len(missing) == 1 else "are not")) from error


def left_out(path: Path, frame: pl.DataFrame) -> list[str]:
    """Columns that the format of a file cannot hold: vectors and the like in formats of plain cells."""
    extension = ".csv" if path == STANDARD else _extension(path, WRITERS)
    return [column.name for column in frame if not _fits(column.dtype, extension)]


def _fits(dtype: Any, extension: str) -> bool:
    if dtype == pl.Object:
        return False
    if dtype == pl.Binary:
        return extension == ".parquet"
    return not dtype.is_nested() or extension in (".parquet", ".jsonl", ".ndjson")


def read_vectors(path: Path) -> Any:
    """The array in a .npy file."""
    try:
        with path.open("rb") as file:
            return np.lib.format.read_array(file, allow_pickle=False)
    except FileNotFoundError:
        raise TableError(f"{path} does not exist{nearest_file(path)}") from None
    except Exception as error:  # a header may be wrong in many ways
        raise TableError(f"{path} cannot be read as .npy ({error}); write it by numpy.save.") from error


def read_shares(path: Path) -> dict[str, Any]:
    """Shares of classes: a JSON object {class: share or [low, high]}, or a table of classes and shares (or ranges)."""
    if path.suffix.lower() == ".json":
        try:
            shares = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise TableError(f"{path} does not exist{nearest_file(path)}") from None
        except ValueError as error:
            raise TableError(f"{path} is no JSON ({error}); write an object like {EXAMPLE_SHARES}.") from error
        if not isinstance(shares, dict):
            raise TableError(f"{path} holds no JSON object; write one like {EXAMPLE_SHARES}.")
        return shares
    frame = typed(read_table(path))
    if frame.width not in (2, 3) or not all(column.dtype.is_numeric() for column in frame.get_columns()[1:]):
        raise TableError(
            f"{path} is no table of shares; give a column of classes and one of shares (or lowest, highest)."
        )
    return {str(label): share if len(share) > 1 else share[0] for label, *share in frame.iter_rows()}


def check_output(path: Path, force: bool, formats: Any = None) -> None:
    """Refuse, before any work, a path that cannot be written to; only tables go to standard output."""
    if path == STANDARD:
        if formats is None:
            raise TableError("Standard output takes the table alone; give the file a name.")
        return
    if path.is_dir():
        raise TableError(f"{path} is a folder; name a file in it.")
    if formats is not None:
        _extension(path, formats)
    if not path.parent.is_dir():
        raise TableError(f"The folder {path.parent} does not exist; make it, or write elsewhere.")
    if not os.access(path.parent, os.W_OK):
        raise TableError(f"The folder {path.parent} may not be written to; write elsewhere.")
    if os.path.lexists(path) and not force:  # a link that leads nowhere is something too
        raise TableError(f"{path} exists already; give --force to overwrite it, or another name.")


def check_apart(*paths: Path) -> None:
    """Refuse to write one file over another, or over one that is read."""
    resolved = [path.resolve() for path in paths if path != STANDARD]
    for path in resolved:
        if resolved.count(path) > 1:
            raise TableError(f"{path.name} is named for two things; give each a file of its own.")


def typed(frame: pl.DataFrame) -> pl.DataFrame:
    """Columns of text that hold nothing but numbers as numbers; codes with leading zeros stay text."""
    return frame.with_columns([_as_numbers(column) for column in frame if column.dtype == pl.String])


def _as_numbers(text: pl.Series) -> pl.Series:
    bare = without_gaps(text)
    known = bare.drop_nulls()
    if known.is_empty() or known.str.contains(r"^[+-]?0[0-9]").any():
        return text
    bare = with_points(bare)
    for kind in (pl.Int64, pl.Float64):
        numbers = bare.cast(kind, strict=False)
        if numbers.count() == len(known):
            return numbers
    return text


def with_points(bare: pl.Series) -> pl.Series:
    """Numbers with a decimal comma (0,5) as numbers with a point. 1,234 alone may be a thousand and is left alone."""
    known = bare.drop_nulls()
    is_decimal = known.str.contains(r"^[+-]?\d+(,\d+)?$").all() and known.str.contains(r",(\d{1,2}|\d{4,})$").any()
    return bare.str.replace(",", ".", literal=True) if is_decimal else bare


def nearest_name(name: str, names: list[str], kind: str = "columns") -> str:
    """A half sentence that helps with a misspelt name."""
    close = get_close_matches(name, names, n=1, cutoff=0.6) or [n for n in names if n.lower() == name.lower()]
    if close:
        return f"did you mean {close[0]!r}?"
    shown = ", ".join(map(repr, names[:12])) + (", …" if len(names) > 12 else "")
    return f"the {kind} are {shown}."


def _extension(path: Path, formats: dict[str, Any]) -> str:
    name = path.name.lower()
    for extension in formats:
        if name.endswith(extension):
            return extension
    known = ", ".join(formats)
    raise TableError(f"{path} has no extension that names a format; give a name that ends in one of {known}.")


# Readers


def _read_npy(path: Path) -> pl.DataFrame:
    return pl.DataFrame({VECTORS: as_vectors(read_vectors(path), path)})


def as_vectors(X: Any, origin: Any) -> pl.Series:
    """A 2-D array as a column of vectors."""
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise TableError(f"{origin} holds an array of shape {X.shape} and type {X.dtype}; give a 2-D array of numbers.")
    short = X.dtype.kind == "f" and X.dtype.itemsize <= 4
    X = X.astype(np.float32 if short else np.float64)
    return pl.Series(VECTORS, X, dtype=pl.Array(pl.Float32 if short else pl.Float64, X.shape[1]))


def _read_npz(path: Path) -> pl.DataFrame:
    """Arrays with one entry per row: 2-D ones become columns of vectors."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    lengths = {name: len(array) if array.ndim else 0 for name, array in arrays.items()}
    n = max(lengths.values(), default=0)
    columns = [
        as_vectors(array, path).alias(name) if array.ndim > 1 else pl.Series(name, _as_text(array))
        for name, array in arrays.items()
        if lengths[name] == n and array.dtype.kind != "c"
    ]
    return pl.DataFrame(columns)


def _as_text(array: Any) -> Any:
    """Text that NumPy holds as bytes is text."""
    return np.char.decode(array, "utf-8") if array.dtype.kind == "S" else array


def _read_text(path: Path, encoding: str | None = None) -> pl.DataFrame:
    name, raw = ("standard input", sys.stdin.buffer.read()) if path == STANDARD else (str(path), path.read_bytes())
    return read_csv(name, as_utf8(raw, check_encoding(encoding), name), "\t" if path.suffix.lower() == ".tsv" else None)


def _read_excel(path: Path, sheet: str | None = None) -> pl.DataFrame:
    """A sheet. polars would number columns of the same name without a word, so their names are checked first."""
    book = fastexcel.read_excel(path)
    name = find_sheet(path, book.sheet_names, sheet)
    head = book.load_sheet(name, header_row=None, n_rows=1, dtypes="string")
    check_names([value for value in head.to_polars().row(0) if value] if head.height else [])
    return pl.read_excel(path, sheet_name=name, infer_schema_length=None, raise_if_empty=False)


def find_sheet(path: Path, names: list[str], sheet: str | None) -> str:
    """The sheet of a name or a number, counted from 1; the first if none is asked for."""
    if sheet is None:
        return names[0]
    if sheet in names:
        return sheet
    if sheet.isdecimal() and 1 <= int(sheet) <= len(names):
        return names[int(sheet) - 1]
    raise TableError(f"{path} has no sheet {sheet!r}; its sheets are {', '.join(map(repr, names))}.")


def _read_json_lines(path: Path) -> pl.DataFrame:
    raw = path.read_bytes().removeprefix(BYTE_ORDER)
    if not raw.strip():
        return pl.DataFrame()
    try:
        return pl.read_ndjson(raw, infer_schema_length=None)
    except pl.exceptions.PolarsError as error:
        for number, line in enumerate(raw.splitlines(), start=1):
            try:
                json.loads(line or "{}")
            except ValueError as reason:
                raise TableError(f"{path}: line {number} is no JSON ({reason}); correct it.") from error
        raise


READERS: dict[str, Callable[..., pl.DataFrame]] = {
    ".csv": _read_text,
    ".tsv": _read_text,
    ".parquet": lambda path: pl.read_parquet(path),
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".xlsx": _read_excel,
    ".npy": _read_npy,
    ".npz": _read_npz,
}


# Writers


def _write_excel(frame: pl.DataFrame, path: Path, style: CsvStyle) -> None:
    """A workbook; what a sheet cannot hold would be cut off without a word."""
    is_long = any((column.str.len_chars() >= EXCEL_TEXT).any() for column in frame if column.dtype == pl.String)
    if frame.height >= EXCEL_ROWS or frame.width >= EXCEL_COLUMNS or is_long:
        raise TableError(
            f"The table has {EXCEL_ROWS:,} rows, {EXCEL_COLUMNS:,} columns or {EXCEL_TEXT:,} characters in a cell, or "
            "more, and a sheet holds fewer; write .csv or .parquet."
        )
    whole = io.BytesIO()
    frame.write_excel(whole)
    path.write_bytes(whole.getvalue())


WRITERS: dict[str, Callable[[pl.DataFrame, Path, CsvStyle], Any]] = {
    ".csv": lambda frame, path, style: style.write(frame, path, ".csv"),
    ".tsv": lambda frame, path, style: style.write(frame, path, ".tsv"),
    ".parquet": lambda frame, path, style: frame.write_parquet(path),
    ".jsonl": lambda frame, path, style: frame.write_ndjson(path),
    ".ndjson": lambda frame, path, style: frame.write_ndjson(path),
    ".xlsx": _write_excel,
}
