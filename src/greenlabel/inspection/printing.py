"""Results as small tables of text, for a terminal or a notebook."""

from collections.abc import Iterable, Sequence
from typing import Any


def as_text(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """Columns side by side, each as wide as it needs."""
    cells = [tuple(head), *(tuple(map(str, line)) for line in lines)]
    widths = [max(len(line[j]) for line in cells) for j in range(len(head))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in cells)
