"""Results as small tables: text for a terminal, markup for a notebook."""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from numpy.typing import NDArray

from greenlabel._common.markup import html_table
from greenlabel._common.text import printable, without_middle

Table = tuple[Sequence[str], Iterable[Sequence[Any]]]  # head, lines
T = TypeVar("T")

MAX_CELL = 200  # characters shown of a cell; attributes of the result have all of them


def plain(values: NDArray[Any]) -> list[Any]:
    """Values of an array as Python's own, but for dates: of these it would make nanoseconds."""
    return list(values) if values.dtype.kind in "mM" else values.tolist()


class PrintsAsTable:
    """A result that shows itself as a table; a subclass says which."""

    def as_table(self) -> Table:
        raise NotImplementedError

    def __str__(self) -> str:
        return as_text(*self.as_table())

    def _repr_html_(self) -> str:
        head, lines = self.as_table()
        return html_table(head, map(cells, lines))


class ListAsTable(PrintsAsTable, list[T]):
    """A list that prints as a table, and so do its slices."""

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return type(self)(found) if isinstance(place, slice) else found


def as_text(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """Columns side by side, each as wide as it needs."""
    rows = [tuple(head), *map(cells, lines)]
    widths = [max(len(line[j]) for line in rows) for j in range(len(head))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in rows)


def cells(line: Sequence[Any]) -> tuple[str, ...]:
    """Names of classes may come from anywhere: none of them steers the terminal, or fills it."""
    return tuple(without_middle(printable(cell), MAX_CELL) for cell in line)
