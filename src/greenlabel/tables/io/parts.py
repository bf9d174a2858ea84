"""A table written block by block, and there as a whole or not at all.

    output = output_of("rows/*.parquet", "labelled/")     a folder of parts, or one file
    with output.opened() as write:
        write(frame)                                      one block after the other

Parts have the format of the input, Parquet or CSV. All is written beside its final path, and renamed in the end.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from greenlabel._common.files import whole_file, whole_folder
from greenlabel._common.optional import requires
from greenlabel.blocks.parquet import find_files
from greenlabel.errors import TableError
from greenlabel.tables.io.blocks import PARQUET, is_several
from greenlabel.tables.io.csv_style import CsvStyle
from greenlabel.tables.io.files import check_output, left_out, write_errors

with requires("tables"):
    import polars as pl
    import pyarrow.parquet as pq

FORMATS = (".csv", ".tsv", ".parquet")

Write = Callable[[pl.DataFrame], None]


@dataclass(frozen=True)
class Output:
    """Where a table goes."""

    path: Path
    suffix: str  # of the file, or of each part
    is_folder: bool

    def check(self, force: bool, table: str, formats: Any = FORMATS) -> None:
        """Refuse, before any work, a path that cannot be written to, or where something would be overwritten."""
        for file in [Path(table)] if Path(table).is_file() else find_files(table):
            if self.path.resolve() in (file.resolve(), *file.resolve().parents):
                raise TableError(f"{self.path} holds the table that is read; write elsewhere.")
        if Path(table).is_dir() and Path(table).resolve() in self.path.resolve().parents:
            raise TableError(f"{self.path} lies in the folder that is read; write elsewhere.")
        if not self.is_folder:
            check_output(self.path, force, formats)
        elif os.path.lexists(self.path) or not self.path.parent.is_dir():
            self._check_folder(force)

    def _check_folder(self, force: bool) -> None:
        if not self.path.parent.is_dir():
            raise TableError(f"The folder {self.path.parent} does not exist; make it, or write elsewhere.")
        if not self.path.exists():
            raise TableError(f"{self.path} is a link that leads nowhere; remove it, or give another name.")
        if not self.path.is_dir():
            raise TableError(f"{self.path} is a file; name a folder for the parts.")
        if not force:
            raise TableError(f"{self.path} exists already; give --force to overwrite it, or another name.")
        foreign = sorted(path.name for path in self.path.iterdir() if not path.match("part-*"))
        if foreign:
            raise TableError(
                f"{self.path} holds {foreign[0]!r}, which is no part that greenlabel wrote; name a folder of its own."
            )

    def left_out(self, schema: Any) -> list[str]:
        """Columns that the format cannot hold."""
        return left_out(Path(f"part{self.suffix}"), pl.DataFrame(schema=schema))

    @contextmanager
    def opened(self, without: Sequence[str] = (), style: CsvStyle | None = None) -> Iterator[Write]:
        """A function that writes the next block, without some columns; all appear when this ends without an error.

        Text is written in a style.
        """
        with ExitStack() as stack:
            with write_errors(self.path):
                draft = stack.enter_context(whole_folder(self.path) if self.is_folder else whole_file(self.path))
            writer = WRITERS["folder" if self.is_folder else self.suffix]
            write, close = writer(draft, self.suffix, style or CsvStyle())
            stack.callback(close_anyhow, close)  # before the draft is removed
            yield lambda frame: self._write(write, frame.drop(without))
            with write_errors(self.path):
                close()
                stack.close()

    def _write(self, write: Write, frame: pl.DataFrame) -> None:
        with write_errors(self.path):
            write(frame)


def close_anyhow(close: Callable[[], None]) -> None:
    """After an error, which is the one to tell."""
    with suppress(OSError):
        close()


def to_folder(draft: Path, suffix: str, style: CsvStyle) -> tuple[Write, Callable[[], None]]:
    """A file for each block."""
    names = (draft / f"part-{i:05}{suffix}" for i in range(10**9))

    def write(frame: pl.DataFrame) -> None:
        write_one, close = WRITERS[suffix](next(names), suffix, style)
        try:
            write_one(frame)
        finally:
            close()

    return write, lambda: None


def to_text(draft: Path, suffix: str, style: CsvStyle) -> tuple[Write, Callable[[], None]]:
    """One file of text, whose header comes once."""
    file = draft.open("wb")

    def write(frame: pl.DataFrame) -> None:
        style.write(frame, file, suffix, is_first=not file.tell())

    return write, file.close


def to_parquet(draft: Path, suffix: str, style: CsvStyle) -> tuple[Write, Callable[[], None]]:
    """One Parquet file, with a row group for each block."""
    opened: list[Any] = []

    def write(frame: pl.DataFrame) -> None:
        table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        if not opened:
            opened.append(pq.ParquetWriter(draft, table.schema, compression="zstd"))
        opened[0].write_table(table, row_group_size=max(1, frame.height))

    def close() -> None:
        for writer in opened:
            writer.close()

    return write, close


WRITERS = {"folder": to_folder, ".csv": to_text, ".tsv": to_text, ".parquet": to_parquet}


def output_of(table: str, out: str | None) -> Output:
    """What -o means for a table that is read in blocks; without it a name beside the input."""
    own = Path(table).suffix.lower()
    suffix = ".parquet" if is_several(table) or own in PARQUET else own
    if out is None:
        return default_output(table, suffix)
    if out == "-":
        raise TableError("A table that is read in blocks is not written to standard output; give -o FILE or FOLDER.")
    extension = Path(out).suffix.lower()
    if not out.endswith("/") and extension in FORMATS:
        return Output(Path(out), extension, False)
    if out.endswith("/") or Path(out).is_dir() or (is_several(table) and not extension):
        return Output(Path(out), suffix, True)
    raise TableError(
        f"{out} names no format in which a table is written in blocks; give a folder (ending in /), or a name that "
        f"ends in one of {', '.join(FORMATS)}."
    )


def default_output(table: str, suffix: str) -> Output:
    path = Path(table)
    if not is_several(table):
        return Output(path.with_name(f"{path.stem}-labelled{suffix}"), suffix, False)
    folder = path if path.is_dir() else path.parent
    while any(mark in str(folder) for mark in "*?["):
        folder = folder.parent
    name = f"{folder.resolve().name}-labelled" if path.is_dir() or folder != Path() else "labelled"
    return Output(folder.parent / name if folder != Path() else Path(name), suffix, True)
