"""How a CSV file is written: what came with semicolons, decimal commas and Windows' line ends goes out with them.

    style = CsvStyle.of(raw)         from the beginning of the text that was read
    style.write(frame, file)         other text as it is, quotes where they are needed

The style is that of the first rows, so that a table has the same one at once and in blocks.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from greenlabel._common.optional import requires
from greenlabel.tables.io.csv_text import BYTE_ORDER, CsvLayout, as_frame, last_end
from greenlabel.tables.io.encodings import UTF_8
from greenlabel.tables.io.number_text import MARKS, writing_of

with requires("tables"):
    import polars as pl

HEAD = 2**18  # bytes that tell the style
TAB = "\t"


@dataclass(frozen=True)
class CsvStyle:
    """What is kept of the way in which a table was written; without one, the usual way."""

    separator: str = ","
    has_decimal_comma: bool = False
    line_end: str = "\n"
    has_mark: bool = False  # of the byte order, which tells some programs that this is UTF-8

    @classmethod
    def of(cls, raw: bytes, separator: str | None = None, is_cut: bool = False, name: str = "standard input") -> Self:
        """The style of a text, or of its beginning if it ``is_cut`` off somewhere; ``name`` is for the messages."""
        head = raw[:HEAD]
        layout = CsvLayout.of(name, head, separator)
        if is_cut or len(raw) > HEAD:
            head = head[: last_end(head, layout) or 0]
        is_windows = head.partition(layout.line_end)[0].endswith(b"\r")
        line_end = "\r\n" if is_windows else layout.line_end.decode()
        has_comma = bool(head) and has_decimal_comma(as_frame(layout.parse(head).slice(1)))
        return cls(layout.separator, has_comma, line_end, raw.startswith(BYTE_ORDER))

    @classmethod
    def of_file(cls, path: Path, encoding: str = UTF_8) -> Self:
        """The style of a text file; the usual one for any other file. The tabs of a .tsv are no choice."""
        is_tabbed = path.suffix.lower() == ".tsv"
        if not is_tabbed and path.suffix.lower() != ".csv":
            return cls()
        with path.open("rb") as file:
            raw = file.read(HEAD)
            is_cut = bool(file.read(1))
        if encoding != UTF_8:
            raw = raw.decode(encoding, errors="ignore").encode()  # the last letter may be cut in half
        style = cls.of(raw, TAB if is_tabbed else None, is_cut, str(path))
        return replace(style, separator=",") if is_tabbed else style

    def write(self, frame: pl.DataFrame, file: Any, suffix: str = ".csv", is_first: bool = True) -> None:
        """A frame as text; the header and the mark come with the ``is_first`` one of several."""
        frame.write_csv(
            file,
            separator=TAB if suffix == ".tsv" else self.separator,
            decimal_comma=self.has_decimal_comma,
            line_terminator=self.line_end,
            include_bom=self.has_mark and is_first,
            include_header=is_first,
        )


def has_decimal_comma(frame: pl.DataFrame) -> bool:
    """Whether some column of text holds numbers with a decimal comma."""
    writings = [writing_of(column) for column in frame if column.dtype == pl.String]
    return any(MARKS[writing.marks][0] == "," for writing in writings if writing is not None)
