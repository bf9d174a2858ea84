"""A table opened together with its output: in blocks, here or on a cluster, or at once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from greenlabel._common.optional import requires
from greenlabel._common.stages import Stages
from greenlabel.blocks.rows import identity
from greenlabel.tables.io.blocks import is_several, open_table
from greenlabel.tables.io.csv_style import CsvStyle
from greenlabel.tables.io.encodings import check_cuttable, check_encoding
from greenlabel.tables.io.files import (
    WRITERS,
    check_apart,
    check_output,
    has_no_types,
    left_out,
    read_with_style,
    write_table,
)
from greenlabel.tables.io.parts import FORMATS, Output, output_of
from greenlabel.tables.io.paths import STANDARD
from greenlabel.tables.passes import Run

with requires("tables"):
    import polars as pl


class Bar(Protocol):
    """The progress of a run, and its clock."""

    stages: Stages

    def expect(self, n_blocks: int) -> None: ...

    def tick(self) -> None: ...


@dataclass
class InBlocks:
    """A table that is being read in blocks, and its output."""

    run: Any
    write: Callable[[Any], None]
    name: str  # of the output
    left_out: list[str]  # columns that it cannot hold


@contextmanager
def in_blocks(
    table: str,
    out: str | None,
    beside: list[Path],
    scheduler: str | None,
    jobs: int | None,
    force: bool,
    bar: Bar,
    encoding: str | None = None,
) -> Iterator[InBlocks]:
    """Open a table and its output, and a cluster; the output appears when this ends without an error."""
    check_cuttable(check_encoding(encoding))
    output = output_of(table, out)
    output.check(force, table)
    check_apart(output.path, *beside)
    with read_in_blocks(table, scheduler, jobs, bar, encoding) as run:
        left = output.left_out(run.table.schema)
        with output.opened(left, style_of(table, encoding)) as write:
            yield InBlocks(run, write, f"{output.path}{'/' if output.is_folder else ''}", left)


@contextmanager
def read_in_blocks(
    table: str, scheduler: str | None, jobs: int | None, bar: Bar, encoding: str | None = None
) -> Iterator[Run]:
    """Open a table, and a cluster."""
    check_cuttable(check_encoding(encoding))
    with workers(scheduler, jobs):
        path = table if scheduler is None else str(Path(table).absolute())  # workers may be elsewhere
        with bar.stages("reading"):
            blocks = open_table(path, check_encoding(encoding))
        bar.expect(len(blocks))
        yield Run(blocks, scheduler is not None, bar.stages, bar.tick)


def style_of(table: str, encoding: str | None) -> CsvStyle:
    """How the text of a file is written."""
    return CsvStyle() if is_several(table) else CsvStyle.of_file(Path(table), check_encoding(encoding))


@contextmanager
def workers(scheduler: str | None, jobs: int | None) -> Iterator[None]:
    if scheduler is None:
        yield
        return
    from greenlabel.blocks.on_dask import cluster

    with cluster(scheduler, jobs):
        yield


# At once


class AtOnce:
    """A table that fits in memory, and its output; several files go out as parts, as they came."""

    def __init__(self, table: str, out: str | None, force: bool, encoding: str | None = None, sheet: str | None = None):
        self._table, self._encoding, self._sheet = table, encoding, sheet
        self._rows: list[range] | None = None  # of the parts
        self._style = CsvStyle()
        self._output = output_at_once(table, out)
        if is_several(table) and self.path != STANDARD:
            self._output.check(force, table, WRITERS)
        else:
            check_output(self._output.path, force, WRITERS)

    @property
    def path(self) -> Path:
        """The path of the output."""
        return self._output.path

    @property
    def style(self) -> CsvStyle:
        """How the text that was read is written."""
        return self._style

    @property
    def name(self) -> str:
        """The name of the output, for people."""
        return f"{self.path}{'/' if self._output.is_folder else ''}"

    def read(self) -> pl.DataFrame:
        if not is_several(self._table):
            frame, self._style = read_with_style(Path(self._table), self._encoding, self._sheet)
            return frame
        blocks = open_table(self._table)
        self._rows = [blocks.rows(i) for i in range(len(blocks))]
        return pl.concat(list(blocks.map(identity)))

    def write(self, filled: pl.DataFrame) -> list[str]:
        """Write the table. Returns columns that the output cannot hold."""
        if self._rows is None or self._output.suffix not in FORMATS:
            write_table(self.path, filled, self._style, has_no_types(Path(self._table)))
            return left_out(self.path, filled)
        without = self._output.left_out(filled.schema)
        with self._output.opened(without, self._style) as write:
            for rows in self._rows:
                write(filled[rows.start : rows.stop])
        return without


def output_at_once(table: str, out: str | None) -> Output:
    """What -o means for a table that is read at once; without it a name beside the input."""
    path = Path(table)
    if out is None and not is_several(table):
        if path == STANDARD:
            return Output(path, ".csv", False)
        suffix = path.suffix if path.suffix.lower() in WRITERS else ".csv"
        return Output(path.with_name(f"{path.stem}-labelled{suffix}"), suffix, False)
    is_file = out is not None and not out.endswith("/") and Path(out).suffix.lower() in WRITERS
    if out is not None and (is_file or out == "-" or not is_several(table)):
        return Output(Path(out), "" if out == "-" else Path(out).suffix.lower(), False)
    return output_of(table, out)
