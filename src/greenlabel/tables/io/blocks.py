"""Tables as row blocks: blocks are frames, read when their turn comes.

    open_table(path)         the blocks of a CSV or TSV file, a Parquet file, a folder or a pattern
    blocks.only(names)       the same rows, with some columns alone
    blocks.schema            the type of each column
    blocks.files, n_bytes    what is read

Several Parquet files have columns of the same names. Their types may differ as whole numbers and fractions do, or where
a file holds nothing in a column, whatever type it gave it; every block then has the wider type.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from greenlabel._common.optional import requires
from greenlabel.blocks.parquet import ParquetBlocks
from greenlabel.blocks.rows import Through
from greenlabel.errors import DataError, ParameterError, TableError
from greenlabel.tables.io.csv_text import TEXT_GROWS, CsvBlocks
from greenlabel.tables.io.encodings import UTF_8

with requires("tables"):
    import polars as pl

PARQUET_GROWS = 30  # bytes of memory for each byte without compression, to label it at once
SEPARATORS = {".csv": None, ".tsv": "\t"}  # None: whichever the header has
PARQUET = (".parquet", ".pq")
BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
WORDS = (pl.String, pl.Categorical, pl.Enum)


@dataclass(frozen=True)
class AsFrame:
    """A step over Arrow tables: frames, all with the same types."""

    schema: Any  # of names and types

    def __call__(self, rows: Sequence[int], table: Any) -> pl.DataFrame:
        frame = pl.DataFrame(pl.from_arrow(table))
        odd = [column.name for column in frame if column.dtype != self.schema[column.name]]
        # What holds nothing can be of any type; its own may have no cast to that of the others.
        empty = [pl.lit(None).alias(name) for name in odd if frame[name].null_count() == frame.height]
        return frame.with_columns(empty).cast(self.schema)


class ParquetFrames(Through):
    """Row groups of Parquet files as frames."""

    def __init__(self, source: ParquetBlocks, schema: dict[str, Any]):
        super().__init__(source, AsFrame(schema))
        self._parquet = source
        self.schema = schema
        self.names = list(schema)
        self.files = source.files
        self.n_bytes = source.n_bytes
        self.memory_bytes = PARQUET_GROWS * source.unpacked_bytes

    def only(self, names: list[str]) -> "ParquetFrames":
        return ParquetFrames(self._parquet.only(names), {name: self.schema[name] for name in names})


def open_table(path: str, encoding: str = UTF_8) -> Any:
    """The blocks of a table; the encoding is that of text."""
    suffix = Path(path).suffix.lower()
    if Path(path).is_file() and suffix in SEPARATORS:
        blocks: Any = CsvBlocks(Path(path), SEPARATORS[suffix], encoding=encoding)
    elif suffix in SEPARATORS:
        raise TableError(f"{path} is a pattern of {suffix} files; give one of them, or a pattern of Parquet files.")
    else:
        source = ParquetBlocks(path)
        blocks = ParquetFrames(source, common_schema(source))
    if not blocks.n:
        raise TableError(f"{path} holds no rows; give a table with rows to label.")
    return blocks


def is_several(path: str) -> bool:
    """Whether a path is a folder or a pattern."""
    whole = Path(path)
    return whole.is_dir() or (not whole.exists() and any(mark in path for mark in "*?["))


def can_stream(path: str) -> bool:
    return is_several(path) or Path(path).suffix.lower() in (*SEPARATORS, *PARQUET)


def bytes_in_memory(path: str) -> int:
    """About how much memory it takes to label a table without streaming it; 0 for one that is not there."""
    whole = Path(path)
    if not whole.is_file() and not is_several(path):
        return 0
    if is_several(path) or whole.suffix.lower() in PARQUET:
        try:
            return PARQUET_GROWS * ParquetBlocks(path).unpacked_bytes
        except DataError:  # corrupt, or no files, which reading it will say
            return 0
    return TEXT_GROWS * whole.stat().st_size


def must_stream(table: str, scheduler: str | None, memory_limit: int | None) -> bool:
    """A cluster, or a table whose size in memory is beyond the limit (half of what is free)."""
    if scheduler is not None:
        if not can_stream(table):
            raise TableError(f"{table} cannot be read in blocks; give Parquet, CSV or TSV to --scheduler.")
        return True
    limit = memory_limit if memory_limit is not None else psutil.virtual_memory().available // 2
    return can_stream(table) and bytes_in_memory(table) > limit


def read_size(text: str | None) -> int | None:
    """4GB, 500 MB or 4000000000 as bytes."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?\s*", text.lower())
    if not found:
        raise ParameterError(f"--memory-limit {text} is no number of bytes; write it like 4GB or 500MB.")
    return int(float(found[1]) * BYTES[found[2]])


def common_schema(source: ParquetBlocks) -> dict[str, Any]:
    """The type of each column that holds the values of all files."""
    first, *others = without_empty(source)
    path, frame = first
    for other, more in others:
        for name, kind in more.schema.items():
            if not are_alike(frame.schema[name], kind):
                raise DataError(
                    f"{other} holds {kind} values in column {name!r}, {path} {frame.schema[name]}; "
                    "give files with columns of the same types."
                )
        frame = pl.concat([frame, more], how="vertical_relaxed")
    return dict(frame.schema)


def without_empty(source: ParquetBlocks) -> list[tuple[Path, pl.DataFrame]]:
    """Each file as a frame without rows; where types differ, columns that hold nothing in a file are of type Null."""
    frames = [(path, pl.DataFrame(pl.from_arrow(schema.empty_table()))) for path, schema in source.schemas()]
    odd = [name for name, kind in frames[0][1].schema.items() if any(frame.schema[name] != kind for _, frame in frames)]
    return [
        (path, frame.with_columns(pl.lit(None).alias(name) for name in odd if source.is_empty(path, name)))
        for path, frame in frames
    ]


def are_alike(one: Any, other: Any) -> bool:
    """Whether a column can hold values of both types without loss of meaning."""
    if one == other or pl.Null in (one, other):
        return True
    if one.is_numeric() and other.is_numeric():
        return True
    return isinstance(one, WORDS) and isinstance(other, WORDS)
