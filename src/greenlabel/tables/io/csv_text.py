"""CSV: the rules by which text becomes a frame, at once or in blocks of rows.

    read_csv(name, raw)      a frame of all the text
    CsvBlocks(path)          blocks are stretches of a file, cut at line ends outside quotes

Every column is text, so that what greenlabel does not understand goes out as it came in: 007 stays 007. A row with too
few or too many fields is an error that names its line; so is text that is not UTF-8. A quote means something at the
beginning of a field alone: 5" disk is a cell, and "5"" disk" is the same one.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.files import FileMark
from greenlabel._common.optional import requires
from greenlabel.blocks.rows import Blocks, Reader
from greenlabel.errors import TableError
from greenlabel.tables.io.encodings import UTF_8, as_utf8

with requires("tables"):
    import polars as pl
    import pyarrow as pa
    import pyarrow.csv

BYTE_ORDER = b"\xef\xbb\xbf"  # the mark that some programs put before UTF-8
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
LONGEST_ROW = 2**26  # bytes of one row
BLOCK_BYTES = 2**25  # of a block
TEXT_GROWS = 30  # bytes of memory for each byte of text, to label it at once; measured 28 (docs/scale.md)
UNCLOSED = "a quote is opened and never closed; the file is corrupt, or a field lacks its quotes."
SWALLOWED = "has several lines and text behind its last quote; a quote is missing there, or one too many."
QUOTE = ord('"')
LINE_ENDS = b"\r\n"
MIXED = (
    "has lines that end in a carriage return alone beside line feeds, so it cannot be cut into blocks; save it with "
    "one kind of line end, or give it more memory (--memory-limit)."
)


@dataclass(frozen=True)
class CsvLayout:
    """What the head of a table says about all of it."""

    name: str  # of the table, for the messages
    separator: str
    has_one_column: bool  # by its first line: an empty line then is an empty cell
    names: tuple[str, ...] = ()  # of the columns, where they are known already
    encoding: str = UTF_8
    line_end: bytes = b"\n"  # its last byte: \r\n is \n here

    @classmethod
    def of(cls, name: str, raw: bytes, separator: str | None) -> Self:
        """From the beginning of the text."""
        if raw.startswith(UTF_16):
            raise TableError(f"{name} is UTF-16 text; save the table as UTF-8, or give --encoding utf-16.")
        line_end = b"\r" if b"\r" in raw and b"\n" not in raw else b"\n"
        head = raw.removeprefix(BYTE_ORDER).partition(line_end)[0]
        if not head.strip():
            raise TableError(f"{name} has no header; give a row of column names first.")
        separator = separator or max(",;\t|", key=lambda mark: head.count(mark.encode()))
        return cls(name, separator, separator.encode() not in head, line_end=line_end)

    def parse(self, raw: bytes, before: int = 0, only: tuple[str, ...] | None = None) -> Any:
        """The fields of all rows as text. ``before`` rows come before these; ``only`` names some of the columns."""
        raw = as_utf8(raw, self.encoding, self.name)
        names = self.names or tuple(f"f{i}" for i in range(self._max_columns(raw)))
        columns = only if self.names else None
        try:
            return pa.csv.read_csv(
                pa.BufferReader(raw),
                read_options=pa.csv.ReadOptions(
                    column_names=list(self.names) or None,
                    autogenerate_column_names=not self.names,
                    use_threads=False,
                    block_size=LONGEST_ROW,
                ),
                parse_options=pa.csv.ParseOptions(
                    delimiter=self.separator, newlines_in_values=True, ignore_empty_lines=not self.has_one_column
                ),
                convert_options=pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, include_columns=columns
                ),
            )
        except pa.ArrowInvalid as error:
            raise TableError(f"{self.name}: {_trouble(str(error), before)}") from error

    def _max_columns(self, raw: bytes) -> int:
        """At most so many columns: a quoted header may have line ends."""
        head = raw.removeprefix(BYTE_ORDER).partition(self.line_end)[0]
        return raw.count(self.separator.encode(), 0, max(2**16, len(head))) + 1


def read_csv(name: str, raw: bytes, separator: str | None = None) -> pl.DataFrame:
    """Text with a header as a frame of text."""
    layout = CsvLayout.of(name, raw, separator)
    table = layout.parse(raw)
    if is_open(quotes_of(raw, layout)):
        raise TableError(f"{name}: {UNCLOSED}")
    return as_frame(table.slice(1).rename_columns(header_names(table)))


def header_names(table: Any) -> list[str]:
    """Names of the columns, which stand in the first row."""
    names = [str(column[0].as_py()).strip() for column in table.columns]
    check_names(names)
    return names


def check_names(names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TableError(f"The table has more than one column named {twice[0]!r}; rename them apart.")


def as_frame(table: Any) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(table)).with_columns(pl.col(pl.String).replace("", None))


def _trouble(message: str, before: int) -> str:
    """pyarrow's message as one of ours."""
    wrong = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message)
    if wrong:
        row, expected, got = map(int, wrong.groups())
        return (
            f"line {row + before} has {got} fields, the header has {expected}; "
            "the file is corrupt, or a field lacks its quotes."
        )
    if "UTF8" in message or "utf-8" in message.lower():
        found = re.search(r"Row #(\d+)", message)
        where = f"line {int(found[1]) + before}" if found else "it"
        return f"{where} is not UTF-8 text; save the table as UTF-8, or name its --encoding (cp1252, latin-1, …)."
    return f"cannot be read as CSV: {' '.join(message.split())[:200]}; write the file anew."


# In blocks


class CsvBlocks(Blocks):
    """Stretches of a CSV file as frames of text. The file is read once to find where they end and count their rows."""

    def __init__(self, path: Path, separator: str | None = None, block_bytes: int | None = None, encoding: str = UTF_8):
        self._mark = FileMark.of(path)
        self._layout, start = read_header(self._mark, separator, encoding)
        self._only: tuple[str, ...] | None = None
        self._stretches: list[range] = []
        sizes: list[int] = []
        first = self._layout.names[:1]
        for stretch, raw in stretches_of(self._mark, self._layout, start, block_bytes or BLOCK_BYTES):
            rows = self._layout.parse(raw, 1 + sum(sizes), first).num_rows
            if rows:
                self._stretches.append(stretch)
                sizes.append(rows)
        self._mark.check()
        super().__init__(sizes)
        self.names = list(self._layout.names)
        self.schema = dict.fromkeys(self.names, pl.String())
        self.files = [path]
        self.n_bytes = self._mark.size
        self.memory_bytes = TEXT_GROWS * self.n_bytes

    def only(self, names: list[str]) -> "CsvBlocks":
        """The same rows, with these columns alone."""
        some = CsvBlocks.__new__(CsvBlocks)
        some.__dict__ = {**self.__dict__, "names": names, "_only": tuple(names)}
        return some

    def reader(self, i: int) -> Reader:
        return partial(read_stretch, self._mark, self._stretches[i], self._layout, 1 + self.rows(i).start, self._only)

    def finish(self) -> None:
        self._mark.check()


def read_header(mark: FileMark, separator: str | None, encoding: str = UTF_8) -> tuple[CsvLayout, int]:
    """The layout of a file, and the byte at which its first row of data begins."""
    with mark.path.open("rb") as file:
        raw = file.read(2**20)
        layout = replace(CsvLayout.of(str(mark.path), raw, separator), encoding=encoding)
        while (stop := first_end(raw, layout)) is None and (more := file.read(2**20)):
            raw += more
            if len(raw) > LONGEST_ROW:
                raise TableError(f"{mark.path}: {UNCLOSED}")
    head = raw[: stop or len(raw)]
    table = layout.parse(head)
    if table.num_rows > 1:  # rows would be lost with the header
        raise TableError(f"{mark.path} {MIXED}")
    names = header_names(table)
    return replace(layout, names=tuple(names)), len(head)


def quotes_of(raw: bytes, layout: CsvLayout) -> NDArray[np.integer]:
    """Indices of the quotes that open and close fields, in turn; doubled ones within a field close and open it.

    raw begins with a row. The usual case, in which every quote is such a one, is seen without looking at one by one.
    """
    text = np.frombuffer(raw, dtype=np.uint8)
    indices = np.flatnonzero(text == QUOTE)
    before = text[indices - 1]  # that of the first byte wraps around, and does not count
    is_start = _among(before, layout.separator.encode() + LINE_ENDS) | (indices == 0)
    is_start |= (indices == len(BYTE_ORDER)) & raw.startswith(BYTE_ORDER)
    is_doubled = np.diff(indices, prepend=-1) == 1
    if not (is_start | is_doubled)[::2].all():
        indices = indices[_is_mark(indices.tolist(), is_start.tolist())]
    _check_closes(raw, text, indices, layout)
    return indices


def _among(text: NDArray[np.uint8], letters: bytes) -> NDArray[np.bool_]:
    chosen = np.zeros(256, dtype=bool)
    chosen[list(letters)] = True
    return chosen[text]


def _is_mark(indices: list[int], is_start: list[bool]) -> list[bool]:
    """Which quotes open or close a field, or are doubled within one; others are letters."""
    found = []
    inside, last = False, -2
    for index, starts in zip(indices, is_start, strict=True):
        inside_before = inside
        if inside:
            inside, last = False, index
        elif starts or index == last + 1:
            inside = True
        found.append(inside_before or inside)
    return found


def _check_closes(raw: bytes, text: NDArray[np.uint8], indices: NDArray[np.integer], layout: CsvLayout) -> None:
    """Refuse a field of several lines with letters behind its last quote: a quote is missing, rows would be lost."""
    opens, closes = indices[0 : len(indices) // 2 * 2 : 2], indices[1::2]
    after = text[np.minimum(closes + 1, len(text) - 1)]
    odd = ~_among(after, layout.separator.encode() + LINE_ENDS + b'"') & (closes + 1 < len(text))
    for start, stop in zip(opens[odd].tolist(), closes[odd].tolist(), strict=True):
        if raw.find(layout.line_end, start, stop) >= 0:
            begin = raw[start + 1 : stop].partition(layout.line_end)[0].decode(errors="replace").strip()[:40]
            raise TableError(f"{layout.name}: the cell that begins with {begin!r} {SWALLOWED}")


def is_open(quotes: NDArray[np.integer], index: int | None = None) -> bool:
    """Whether a field is still open, at the end or at an index."""
    return bool((len(quotes) if index is None else int(np.searchsorted(quotes, index))) % 2)


def first_end(raw: bytes, layout: CsvLayout) -> int | None:
    """The index behind the first line end outside quotes; None where there is none."""
    quotes = quotes_of(raw, layout)
    stop = 0
    while stop := raw.find(layout.line_end, stop) + 1:
        if not is_open(quotes, stop):
            return stop
    return None


def last_end(raw: bytes, layout: CsvLayout) -> int | None:
    """The index behind the last line end outside quotes; an open quote at the end must be closed by what follows."""
    quotes = quotes_of(raw, layout)
    stop = len(raw)
    while (stop := raw.rfind(layout.line_end, 0, stop)) >= 0:
        if not is_open(quotes, stop):
            return stop + 1
    return None


def stretches_of(mark: FileMark, layout: CsvLayout, start: int, size: int) -> Iterator[tuple[range, bytes]]:
    """Stretches of about ``size`` bytes that hold whole rows, and what is in them."""
    rest = b""
    with mark.path.open("rb") as file:
        file.seek(start)
        while more := file.read(size):
            rest += more
            stop = last_end(rest, layout)
            if stop is None and len(rest) > LONGEST_ROW:
                raise TableError(f"{mark.path}: {UNCLOSED}")
            if stop:
                yield range(start, start + stop), rest[:stop]
                start, rest = start + stop, rest[stop:]
    if is_open(quotes_of(rest, layout)):
        raise TableError(f"{mark.path}: {UNCLOSED}")
    if rest:
        yield range(start, start + len(rest)), rest


def read_stretch(
    mark: FileMark, stretch: range, layout: CsvLayout, before: int, only: tuple[str, ...] | None
) -> pl.DataFrame:
    mark.check()
    with mark.path.open("rb") as file:
        file.seek(stretch.start)
        raw = file.read(len(stretch))
    if len(raw) < len(stretch):
        raise TableError(f"{mark.path} ends before its end; it was cut off while it was read.")
    return as_frame(layout.parse(raw, before, only))
