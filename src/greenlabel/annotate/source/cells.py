"""What a person sees of a row: its cells as text, one text in full, and the rows in which words stand."""

import re
from typing import Any

from greenlabel._common.optional import requires

with requires("tables"):
    import polars as pl

MAX_CELL = 2_000  # characters of a cell on the card of a row
MAX_TEXT = 100_000  # of the text that is shown in full
MAX_FIELDS = 200  # cells on a card
MAX_WORDS = 10  # of a search
MAX_FIRST = 120  # characters by which a text is recognised in a list


class Cells:
    """The columns of a table that can be shown as text."""

    def __init__(self, table: pl.DataFrame, elsewhere: set[str], hidden: set[str]):
        """Columns ``elsewhere`` are shown in another way, and searched, too; ``hidden`` ones are neither."""
        plain = [column.name for column in table if column.name not in hidden and is_plain(column.dtype)]
        self._frame = table.select([name for name in plain if name not in elsewhere])
        self._searched = table.select(plain)

    def fields(self, row: int) -> list[tuple[str, str]]:
        names = self._frame.columns[:MAX_FIELDS]
        return [(name, as_text(self._frame[name][row])[:MAX_CELL]) for name in names]

    def search(self, words: str, limit: int) -> list[int]:
        """The first rows in which every word stands in some cell, in capitals or not."""
        wanted = words.split()[:MAX_WORDS]
        if not wanted or not self._searched.width:
            return []
        found = pl.all_horizontal([self._holds(word) for word in wanted])
        rows = self._searched.lazy().with_row_index("row number of greenlabel").filter(found)
        return rows.select("row number of greenlabel").head(limit).collect().to_series().to_list()

    def _holds(self, word: str) -> pl.Expr:
        pattern = f"(?i){re.escape(word)}"
        names = self._searched.columns
        return pl.any_horizontal(
            [pl.col(name).cast(pl.String).str.contains(pattern).fill_null(False) for name in names]
        )


def is_plain(dtype: Any) -> bool:
    return not dtype.is_nested() and dtype not in (pl.Binary, pl.Object)


def as_text(value: Any) -> str:
    """A cell as text; a gap is none."""
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def full_text(column: pl.Series, row: int) -> str:
    return as_text(column[row])[:MAX_TEXT]


def first_words(text: str) -> str:
    """How a text begins, in one line."""
    return " ".join(text[: 4 * MAX_FIRST].split())[:MAX_FIRST]
