"""Parquet files as row blocks: a row group is a block (pyarrow).

    ParquetBlocks(path)               blocks are Arrow tables, for a step that makes features of them
    .through(AsMatrix(path))          blocks are arrays: all columns are numbers, or fixed-size lists of numbers

A path is a file, a folder (all .parquet files in it, by name) or a pattern such as rows/*.parquet. Files are looked at
once; one that is corrupt, or changes while it is read, is an error that names it.
"""

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.files import FileMark
from greenlabel._common.optional import requires
from greenlabel.blocks.rows import Blocks, Reader
from greenlabel.errors import DataError, LabelError

with requires("tables"):
    import pyarrow as pa
    import pyarrow.parquet as pq

SUFFIXES = (".parquet", ".pq")


class ParquetBlocks(Blocks):
    """Row groups of one or several Parquet files, read as Arrow tables.

    Parameters
    ----------
    path : str or Path
        A file, a folder of files, or a pattern such as ``rows/*.parquet``.
    without : str or None, default None
        A column that is no feature, such as the labels.
    """

    def __init__(self, path: str | Path, without: str | None = None):
        self._path = path
        self._marks = [FileMark.of(file) for file in find_files(path)]
        self._without = without
        columns = [schema_of(mark) for mark in self._marks]
        for mark, others in zip(self._marks, columns, strict=True):
            check_columns(mark, others, self._marks[0], columns[0])
        self._columns = [name for name in columns[0].names if name != without]
        groups = [(mark, group) for mark in self._marks for group in range(metadata(mark).num_row_groups)]
        sizes = [metadata(mark).row_group(group).num_rows for mark, group in groups]
        self._groups = [group for group, size in zip(groups, sizes, strict=True) if size]
        super().__init__([size for size in sizes if size])
        self.names = self._columns

    @property
    def files(self) -> list[Path]:
        """The files, in the order of their rows."""
        return [mark.path for mark in self._marks]

    @property
    def n_bytes(self) -> int:
        """Size of the files."""
        return sum(mark.size for mark in self._marks)

    @property
    def unpacked_bytes(self) -> int:
        """Size of what the files hold, without compression."""
        groups = [metadata(mark).row_group(group) for mark, group in self._groups]
        return sum(group.total_byte_size for group in groups)

    def schemas(self) -> list[tuple[Path, Any]]:
        """The types of the columns of each file."""
        return [(mark.path, schema_of(mark)) for mark in self._marks]

    def is_empty(self, path: Path, name: str) -> bool:
        """Whether a column of a file holds nothing, whatever its type."""
        (mark,) = [mark for mark in self._marks if mark.path == path]
        return all(is_empty_in_group(mark, group, name) for group in range(metadata(mark).num_row_groups))

    def only(self, names: list[str]) -> "ParquetBlocks":
        """The same rows, with these columns alone."""
        some = ParquetBlocks.__new__(ParquetBlocks)
        some.__dict__ = {**self.__dict__, "_columns": names, "names": names}
        return some

    def reader(self, i: int) -> Reader:
        return partial(read_group, *self._groups[i], self._columns)

    def finish(self) -> None:
        if find_files(self._path) != [mark.path for mark in self._marks]:
            raise DataError(f"files were added to {self._path} or taken away while it was read; start again.")
        for mark in self._marks:
            mark.check()

    def column(self, name: str) -> NDArray[Any]:
        """One column of all rows, such as the labels."""
        known = schema_of(self._marks[0]).names
        if name not in known:
            raise LabelError(f"{self._path} has no column {name!r}; it has {', '.join(known)}.")
        parts = [read_group(*group, [name]).column(name) for group in self._groups]
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks]).to_numpy()


def find_files(path: str | Path) -> list[Path]:
    """The Parquet files that a path means, sorted by name."""
    whole = Path(path)
    if whole.is_dir():
        files = [file for file in whole.rglob("*") if file.suffix in SUFFIXES and not file.name.startswith((".", "_"))]
    elif whole.exists():
        return [whole]
    else:
        files = [Path(name) for name in glob.glob(str(path))]
    if not files:
        raise DataError(f"{path} names no Parquet file; give a file, a folder of .parquet files, or a pattern.")
    return sorted(files)


@lru_cache(maxsize=1024)
def metadata(mark: FileMark) -> Any:
    """Footer of a file; the same mark is the same file, so it is read once."""
    try:
        return pq.read_metadata(mark.path)
    except (OSError, pa.ArrowException) as error:
        raise corrupt(mark, error) from error


def schema_of(mark: FileMark) -> Any:
    return metadata(mark).schema.to_arrow_schema()


def corrupt(mark: FileMark, error: Exception) -> DataError:
    reason = str(error).splitlines()[0].rstrip(".")
    return DataError(f"{mark.path} is corrupt, or no Parquet file ({reason}); write it again, or take it away.")


def check_columns(mark: FileMark, schema: Any, first: FileMark, expected: Any) -> None:
    if schema.names != expected.names:
        odd = sorted(set(schema.names) ^ set(expected.names))
        what = f"differ in {', '.join(odd[:5])}" if odd else "are in another order"
        raise DataError(
            f"{mark.path} has {len(schema.names)} columns, {first.path} {len(expected.names)}, and they {what}; "
            "give files with the same columns."
        )


def read_group(mark: FileMark, group: int, columns: list[str]) -> Any:
    """One row group as an Arrow table."""
    mark.check()
    try:
        with pq.ParquetFile(mark.path, metadata=metadata(mark)) as file:
            return file.read_row_group(group, columns=columns)
    except (OSError, pa.ArrowException) as error:
        raise corrupt(mark, error) from error


def is_empty_in_group(mark: FileMark, group: int, name: str) -> bool:
    """Whether a column of a row group holds nothing; the footer mostly tells."""
    facts = metadata(mark).row_group(group)
    chunks = [facts.column(i) for i in range(facts.num_columns)]
    found = [chunk.statistics for chunk in chunks if chunk.path_in_schema == name and chunk.is_stats_set]
    if found and found[0].has_null_count:
        return bool(found[0].null_count == facts.num_rows)
    return bool(read_group(mark, group, [name]).column(name).null_count == facts.num_rows)


@dataclass(frozen=True)
class AsMatrix:
    """A step over blocks of Arrow tables: their numbers as one array."""

    path: str  # named in the messages

    def __call__(self, rows: Sequence[int], table: Any) -> NDArray[Any]:
        columns = [self._numbers(name, table.column(name)) for name in table.column_names]
        dtype = np.result_type(np.bool_, *columns)  # which changes no type, and is there where no column is
        X = np.empty((table.num_rows, sum(part.shape[1] for part in columns)), dtype)
        stop = 0
        for part in columns:
            start, stop = stop, stop + part.shape[1]
            X[:, start:stop] = part
        return X

    def _numbers(self, name: str, column: Any) -> NDArray[Any]:
        """(rows, 1), or (rows, length) for a column of lists; an empty cell is NaN."""
        kind = column.type
        if not pa.types.is_fixed_size_list(kind):
            return self._plain(name, column).reshape(-1, 1)
        flat = column.combine_chunks().flatten()  # without the empty cells
        rows = self._plain(name, flat).reshape(len(column) - column.null_count, kind.list_size)
        return with_gaps(rows, column.is_valid().to_numpy()) if column.null_count else rows

    def _plain(self, name: str, column: Any) -> NDArray[Any]:
        kind = column.type
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            raise DataError(
                f"column {name!r} of {self.path} holds lists of any length ({kind}); store it as lists of a fixed size "
                "(pyarrow.FixedSizeListArray, polars.Array), or leave it out."
            )
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
            raise DataError(
                f"column {name!r} of {self.path} holds values of type {kind}; encode it as numbers, or leave it out."
            )
        return column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()


def with_gaps(rows: NDArray[Any], is_there: NDArray[np.bool_]) -> NDArray[Any]:
    """The rows at the places where some are, NaN at the others."""
    dtype = rows.dtype if rows.dtype.kind == "f" else np.float64
    whole = np.full((len(is_there), rows.shape[1]), np.nan, dtype)
    whole[is_there] = rows
    return whole
