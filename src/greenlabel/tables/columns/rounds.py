"""The second round: a table that was filled before, corrected by a person and given back.

    COLUMN_source        COLUMN                        what it is now
    given                a value                       a label
    checked              a value                       a label; changed by hand, if it is not what was filled in
    predicted            what was filled in            filled in anew
    predicted            another value                 a label, changed by hand
    nothing              a value                       a label: typed into an empty cell, or into a new row
    whatever             nothing                       filled in

COLUMN_predicted records what was filled in, and is empty where no label was. So each row shows by itself whether it was
changed: rows may be sorted, deleted and added, and blocks need not know of each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.optional import requires
from greenlabel.errors import TableError
from greenlabel.tables.columns.targets import check_type, has_label
from greenlabel.tables.io.number_text import GAPS

with requires("tables"):
    import polars as pl

ADDED = ("source", "confidence", "margin", "predicted")  # columns beside the target, as greenlabel writes them
NOTHING, GIVEN, CHECKED, CHANGED = range(4)  # where the label of a row is from
NAMES = ("given", "checked", "changed_by_hand")
MARKS = np.array([None, "given", "checked", "checked"], dtype=object)  # what the next round reads


@dataclass(frozen=True)
class Round:
    """The labels of some rows, and where they are from."""

    labels: pl.Series  # the target without the cells that are to be filled anew
    origin: NDArray[np.int8]  # (n,) NOTHING, GIVEN, CHECKED or CHANGED
    unrecorded: int  # cells marked predicted without a record of what was filled in

    @property
    def counts(self) -> NDArray[np.integer]:
        """(3,) labels given, checked, changed by hand."""
        return np.bincount(self.origin, minlength=len(MARKS))[1:]


def all_names(target: str) -> set[str]:
    return {f"{target}_{suffix}" for suffix in ADDED}


def added_names(names: Sequence[str], target: str) -> list[str]:
    """The columns of a table that greenlabel wrote; none where the table comes for the first time."""
    if target not in names or f"{target}_source" not in names:
        return []
    return [name for name in names if name in all_names(target)]


def check_names_free(names: Sequence[str], target: str) -> None:
    """Refuse columns that would be overwritten: without target and source they are not greenlabel's."""
    taken = [] if added_names(names, target) else [name for name in names if name in all_names(target)]
    if taken:
        raise TableError(f"The table has a column {taken[0]!r} already, which greenlabel adds; rename or drop it.")


def round_columns(names: Sequence[str], target: str) -> list[str]:
    """The columns that say which rows have a label."""
    return [name for name in (target, f"{target}_source", f"{target}_predicted") if name in names]


def read_round(table: pl.DataFrame, target: str, unlabelled: list[str], rows: Sequence[int] | None = None) -> Round:
    """The labels of a table, or of a part of it whose rows have these numbers in the whole, for the messages."""
    check_type(table[target])
    if f"{target}_source" not in table.columns:
        origin = np.where(has_label(table[target], unlabelled).to_numpy(), GIVEN, NOTHING)
        return Round(table[target], origin.astype(np.int8), 0)
    source = source_words(table[f"{target}_source"], rows)
    if f"{target}_predicted" in table.columns:
        predicted = as_written(table[f"{target}_predicted"])
    else:
        predicted = pl.Series([None] * table.height, dtype=pl.String)
    return round_of_columns(table[target], source, predicted, unlabelled)


def round_of_columns(column: pl.Series, source: pl.Series, predicted: pl.Series, unlabelled: list[str]) -> Round:
    """The table at the head of this module."""
    has_value = has_label(column, unlabelled).to_numpy()
    is_recorded = predicted.is_not_null().to_numpy()
    differs = is_recorded & (as_written(column) != predicted).fill_null(True).to_numpy()
    says = {word: (source == word).fill_null(False).to_numpy() for word in ("given", "checked", "predicted")}
    origin = np.select(
        [~has_value, says["given"], differs, says["checked"], says["predicted"]],
        [NOTHING, GIVEN, CHANGED, CHECKED, NOTHING],
        GIVEN,
    ).astype(np.int8)
    labels = column.set(pl.Series(origin == NOTHING), None)
    return Round(labels, origin, int((has_value & says["predicted"] & ~is_recorded).sum()))


def source_words(source: pl.Series, rows: Sequence[int] | None = None) -> pl.Series:
    """given, checked and predicted, however they are written; null for nothing. Any other word is refused."""
    words = as_text(source).str.strip_chars().str.to_lowercase()
    words = words.set(words.is_in(GAPS).fill_null(False), None)
    unknown = (~words.is_in(["given", "checked", "predicted"])).fill_null(False).arg_true()
    if len(unknown):
        i = unknown[0]
        row = (i if rows is None else rows[i]) + 1
        raise TableError(
            f"The table has a column {source.name!r} already, and it says {source[i]!r} in row {row:,}; write given, "
            "checked or predicted there, or nothing. If the column is not greenlabel's, rename or drop it."
        )
    return words


def as_written(column: pl.Series) -> pl.Series:
    """Values as text that outlasts spreadsheets: 3.0 is 3, TRUE is true, blanks around a value are none."""
    text = as_text(column).str.strip_chars().str.replace(r"^([+-]?\d+)[.,]0+$", "$1")
    text = text.str.replace(r"^(?i:true)$", "true").str.replace(r"^(?i:false)$", "false")
    return text.set((text == "").fill_null(False), None)


def as_text(column: pl.Series) -> pl.Series:
    if column.dtype.is_nested() or column.dtype in (pl.Object, pl.Binary):
        raise TableError(
            f"The table has a column {column.name!r} already, and it holds {column.dtype} values, which greenlabel "
            "never writes there; rename or drop it."
        )
    text = column.cast(pl.String)
    return text.set(column.is_nan().fill_null(False), None) if column.dtype.is_float() else text


def named_counts(counts: Any) -> dict[str, int]:
    return dict(zip(NAMES, map(int, counts), strict=True))


def round_doubts(target: str, unrecorded: int) -> list[str]:
    """A warning where corrections might be lost."""
    if not unrecorded:
        return []
    cells, have = ("1 cell", "has") if unrecorded == 1 else (f"{unrecorded:,} cells", "have")
    return [
        f"{cells} marked predicted {have} no value in {target + '_predicted'!r}, so a change by hand cannot be seen "
        f"there and is lost: filled in anew. Write checked into {target + '_source'!r} to keep a cell."
    ]
