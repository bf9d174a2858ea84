"""The rows to label next, for the terminal."""

from collections.abc import Sequence
from shutil import get_terminal_size
from textwrap import fill
from typing import Any

from greenlabel._common.optional import requires
from greenlabel._common.text import shorten
from greenlabel.tables.columns.rounds import added_names
from greenlabel.tables.report.words import SPACE, cell, counted, listed, name, one_line, time_text, width

with requires("tables"):
    import polars as pl

NAMES = 6  # classes that are named
ADDED = 5  # columns in front of the table's own
CELL, REASON = 24, 90  # characters shown
USUAL_WIDTH = 120  # where there is no terminal


def suggestion_text(facts: dict[str, Any], table: pl.DataFrame) -> str:
    """A headline, the rows, and as many of their own columns as fit."""
    room = get_terminal_size((USUAL_WIDTH, 24)).columns
    columns = shown_columns(facts, table)
    while len(columns) > ADDED - 1 and line_width(columns) > room:
        columns.pop()
    lines = [headline(facts), "", *as_lines(columns), "", fill(f"time: {time_text(facts['seconds'])}", 100)]
    for warning in facts["warnings"]:
        lines += ["", fill(f"warning: {one_line(warning)}", 100)]
    return "\n".join(lines).replace(SPACE, " ")


def headline(facts: dict[str, Any]) -> str:
    labels = facts["labels_given"]
    given = counted(sum(labels.values()), "label") if labels else "no label"
    classes = f" ({listed([name(label, 24) for label in labels], NAMES)})" if labels else ""
    return f"{counted(facts['rows'], 'row')}, {given} so far{classes}; label these next:"


def shown_columns(facts: dict[str, Any], table: pl.DataFrame) -> list[tuple[bool, list[str]]]:
    """(whether it holds numbers, head and cells) of each column.

    The target, what greenlabel added beside it, and what is empty say nothing here.
    """
    target = facts["target"]
    of_target = {target, *added_names(table.columns[ADDED:], target)}
    found = []
    for index, column in enumerate(table.get_columns()):
        if (index >= ADDED and column.name in of_target) or column.null_count() == len(column):
            continue
        cells = [cell(value, REASON if index < ADDED else CELL) for value in column]
        head = ("rank", "row", "reason", "covers", "between")[index] if index < ADDED else name(column.name, CELL)
        found.append((column.dtype.is_numeric(), [head, *(shorten(text, REASON) for text in cells)]))
    return found


def line_width(columns: Sequence[tuple[bool, list[str]]]) -> int:
    return sum(max(map(width, texts)) + 2 for _, texts in columns)


def as_lines(columns: Sequence[tuple[bool, list[str]]]) -> list[str]:
    """Columns side by side, numbers to the right."""
    padded = []
    for is_number, texts in columns:
        room = max(map(width, texts))
        blanks = [" " * (room - width(text)) for text in texts]
        pairs = zip(blanks, texts, strict=True)
        padded.append([blank + text if is_number else text + blank for blank, text in pairs])
    return ["  ".join(line).rstrip() for line in zip(*padded, strict=True)]
