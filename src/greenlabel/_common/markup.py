"""Small HTML tables for notebooks. Every cell is escaped: names of classes may come from anywhere."""

import html
from collections.abc import Iterable, Sequence
from typing import Any


def html_table(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    """A table with a line of names above it; without names, none."""
    above = f"<thead>{_line('th', head)}</thead>" if head else ""
    return f"<table>{above}<tbody>{''.join(_line('td', line) for line in lines)}</tbody></table>"


def _line(tag: str, cells: Sequence[Any]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(str(cell))}</{tag}>' for cell in cells)}</tr>"
