"""Results as small tables: text for a terminal, markup for a notebook."""

from collections.abc import Iterable, Sequence
from typing import Any

from greenlabel._common.markup import html_table

Table = tuple[Sequence[str], Iterable[Sequence[Any]]]  # head, lines


class PrintsAsTable:
    """A result that shows itself as a table; a subclass says which."""

    def as_table(self) -> Table:
        raise NotImplementedError

    def __str__(self) -> str:
        return as_text(*self.as_table())

    def _repr_html_(self) -> str:
        return html_table(*self.as_table())


def as_text(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """Columns side by side, each as wide as it needs."""
    cells = [tuple(head), *(tuple(" ".join(str(cell).splitlines()) for cell in line) for line in lines)]
    widths = [max(len(line[j]) for line in cells) for j in range(len(head))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in cells)
