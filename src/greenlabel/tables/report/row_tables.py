"""Rows of the table in a report: those to label next, the least confident ones, and labels that look wrong."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from greenlabel._common.optional import requires
from greenlabel.inspection.explaining import Influence
from greenlabel.tables.outcome import Outcome
from greenlabel.tables.report.markup import Markup, element, joined
from greenlabel.tables.report.page_tables import named, number, number_head, table
from greenlabel.tables.report.words import GAP, SPACE, cell, count, counted, one_line, percent, whole_percent

with requires("tables"):
    import polars as pl

SHOWN_COLUMNS = 5
BESIDE_REASONS = 3  # columns shown where a reason takes their room
# Which columns tell a reader most about a row; those that are no features are names and numbers of it
TELLING = {"dropped": 0, "text": 1, "category": 2, "date": 3, "number": 4, "vector": 5}


def telling_columns(outcome: Outcome, frame: pl.DataFrame, max_columns: int = SHOWN_COLUMNS) -> list[str]:
    """Columns by which a reader may know a row again, in the order of the table."""
    kinds = {column.name: column.kind for column in outcome.columns}
    blank = {column.name for column in outcome.columns if column.why in ("is empty", "is constant")}
    names = [title for title in frame.columns if title != outcome.target and title not in blank]
    chosen = sorted(names, key=lambda title: TELLING.get(kinds.get(title, ""), 0))[:max_columns]
    return [title for title in names if title in chosen]


def suggestion_table(outcome: Outcome, frame: pl.DataFrame) -> Markup:
    """Rows to label next, the best first, and why."""
    columns = telling_columns(outcome, frame, BESIDE_REASONS)
    lines = [
        (
            count(rank),
            number(count(outcome.number(one.row))),
            element("td", named(one.reason, 120), class_="reason"),
            number(count(one.covers)),
            _between(one.between),
            *_cells(frame, one.row, columns),
        )
        for rank, one in enumerate(outcome.to_label, start=1)
    ]
    heads = (number_head("rank"), number_head("row"), "reason", number_head("covers"), "between")
    caption = _rows_caption(len(lines), frame, columns)
    return table(caption, (*heads, *_heads(frame, columns)), lines, style="rows", label="Rows to label next")


def _between(classes: Sequence[Any]) -> Markup:
    said = [part for label in classes for part in (named(label, 24), " or ")][:-1]
    return joined(*said)


def uncertain_table(outcome: Outcome, frame: pl.DataFrame) -> Markup:
    rows = outcome.least_confident()
    columns = telling_columns(outcome, frame)
    second = np.argsort(-outcome.probabilities[rows], axis=1, kind="stable")[:, :2]
    lines = [
        (
            count(outcome.number(row)),
            named(outcome.classes[best]),
            number(percent(outcome.probabilities[row, best])),
            joined(named(outcome.classes[next_]), f" {percent(outcome.probabilities[row, next_])}"),
            *_cells(frame, int(row), columns),
        )
        for row, (best, next_) in zip(rows.tolist(), second.tolist(), strict=True)
    ]
    head = (number_head("row"), "most likely", number_head("confidence"), "next", *_heads(frame, columns))
    return table(_rows_caption(len(rows), frame, columns), head, lines, style="rows", label="Least confident rows")


def contradiction_table(outcome: Outcome, frame: pl.DataFrame) -> Markup:
    """Given labels that the others contradict; where the model is at hand, which labels do."""
    found = outcome.contradicted()
    columns = telling_columns(outcome, frame, BESIDE_REASONS if outcome.can_inspect else SHOWN_COLUMNS)
    lines = [
        (
            count(outcome.number(one["row"])),
            named(one["given"]),
            named(one["others_say"]),
            number(percent(one["confidence"])),
            *([_because(outcome, labels)] if outcome.can_inspect else []),
            *_cells(frame, one["row"], columns),
        )
        for one, labels in zip(found, outcome.say_otherwise(found), strict=True)
    ]
    head = [number_head("row"), "given", "others say", number_head("confidence")]
    head += ["because of", *_heads(frame, columns)] if outcome.can_inspect else _heads(frame, columns)
    return table(_rows_caption(len(found), frame, columns), head, lines, style="rows", label="Contradicted labels")


def _because(outcome: Outcome, labels: Sequence[Influence]) -> Markup:
    """The labels that say otherwise, by their rows, with their shares of what the other labels say."""
    said = ", ".join(f"row{SPACE}{count(outcome.number(one.row))}{SPACE}({whole_percent(one.share)})" for one in labels)
    return element("td", said or GAP, class_="reason")


def _heads(frame: pl.DataFrame, columns: Sequence[str]) -> Iterable[Markup]:
    for title in columns:
        yield number_head(named(title)) if frame[title].dtype.is_numeric() else element("th", named(title), scope="col")


def _cells(frame: pl.DataFrame, row: int, columns: Sequence[str]) -> Iterable[Markup]:
    for title in columns:
        value = frame[title][row]
        is_number = frame[title].dtype.is_numeric()
        yield element("td", _value(value), class_="number" if is_number else None)


def _value(value: Any) -> Markup:
    said, whole = cell(value), one_line(value)
    is_cut = isinstance(value, str) and said != whole
    return element("bdi", said, title=whole[:500] if is_cut else None)


def _rows_caption(rows: int, frame: pl.DataFrame, columns: Sequence[str]) -> str:
    others = frame.width - 1 - len(columns)
    more = f" {counted(others, 'more column')} not shown." if others > 0 else ""
    return f"{counted(rows, 'row')}. Row 1 is the first one below the column names.{more}"
