"""A table opened to be read in blocks, together with its output and, where there is one, the cluster."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from greenlabel.tables.csv_style import CsvStyle
from greenlabel.tables.files import check_apart
from greenlabel.tables.parts import output_of
from greenlabel.tables.streaming import Run
from greenlabel.tables.table_blocks import is_several, open_table


class Bar(Protocol):
    """Who is told how far it is."""

    def expect(self, n_blocks: int) -> None: ...

    def announce(self, name: str) -> None: ...

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
    table: str, out: str | None, beside: list[Path], scheduler: str | None, jobs: int | None, force: bool, bar: Bar
) -> Iterator[InBlocks]:
    """Open a table and its output, and a cluster; the output appears when this ends without an error."""
    output = output_of(table, out)
    output.check(force, table)
    check_apart(output.path, *beside)
    with workers(scheduler, jobs):
        bar.announce("reading")
        blocks = open_table(table if scheduler is None else str(Path(table).absolute()))  # workers may be elsewhere
        bar.expect(len(blocks))
        left = output.left_out(blocks.schema)
        run = Run(blocks, scheduler is not None, bar.announce, bar.tick)
        style = CsvStyle() if is_several(table) else CsvStyle.of_file(Path(table))
        with output.opened(left, style) as write:
            yield InBlocks(run, write, f"{output.path}{'/' if output.is_folder else ''}", left)


@contextmanager
def workers(scheduler: str | None, jobs: int | None) -> Iterator[None]:
    if scheduler is None:
        yield
        return
    from greenlabel.dask_blocks import cluster

    with cluster(scheduler, jobs):
        yield
