"""Numbers and names as people read them, for the terminal and for pages.

Names and values come from other people's tables: whatever they hold, the text here is one line, short, and free of
control characters.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

SPACE = "\u00a0"  # keeps a number and its unit on one line
JOINERS = "\u200d\ufe0f\u20e3"  # joiner, and marks that belong to the sign before them
INVISIBLE = "\u200b\u200d\ufe0f"
GAP = "–"  # for a value that is not there
# Control characters, halves of a pair, and marks that turn the direction of the text around them
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]+")


def count(number: float) -> str:
    """1234 -> 1,234."""
    return f"{number:,.0f}"


def counted(number: int, one: str, many: str = "") -> str:
    """3, "row" -> 3 rows."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def percent(share: float) -> str:
    """0.934 -> 93.4 %. What is not quite nothing or everything is not rounded to it."""
    if share in (0, 1):
        return whole_percent(share)
    if share < 0.001:
        return f"<{SPACE}0.1{SPACE}%"
    return f">{SPACE}99.9{SPACE}%" if share > 0.999 else f"{100 * share:.1f}{SPACE}%"


def whole_percent(share: float) -> str:
    """0.9 -> 90 %."""
    return f"{share:.0%}".replace("%", f"{SPACE}%")


def duration(seconds: float) -> str:
    """0.0123 -> 12 ms, 2.345 -> 2.3 s, 95 -> 1 min 35 s."""
    if seconds < 0.0005:
        return f"<{SPACE}1{SPACE}ms"
    if seconds < 0.9995:
        return f"{1000 * seconds:.0f}{SPACE}ms"
    if seconds < 59.95:
        return f"{seconds:.1f}{SPACE}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes:,}{SPACE}min {rest}{SPACE}s"


def time_text(seconds: dict[str, float]) -> str:
    """The time of all stages, and of each that is worth naming: 2.3 s (start 1.1 s, graph 1.2 s)."""
    stages = ", ".join(f"{name(stage)} {duration(taken)}" for stage, taken in seconds.items() if taken >= 0.0005)
    return f"{duration(sum(seconds.values()))}{f' ({stages})' if stages else ''}"


def amount(n_bytes: float) -> str:
    """12345678 -> 12.3 MB."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 999.5 or unit == "GB":
            break
        n_bytes /= 1000
    return f"{count(n_bytes) if unit == 'bytes' or n_bytes >= 99.95 else f'{n_bytes:.1f}'}{SPACE}{unit}"


def one_line(value: Any) -> str:
    """A value as printable text on one line; gaps and empty text are a dash."""
    text = UNPRINTABLE.sub(" ", "" if value is None else str(value))
    return " ".join(text.split()) or GAP


def shorten(text: str, max_length: int, tail: int = 0) -> str:
    """Text of at most ``max_length`` characters, ``tail`` of them from its end; letters keep their marks."""
    if len(text) <= max_length:
        return text
    head = max_length - 1 - tail
    end = len(text) - tail
    while head > 0 and _is_joined(text, head):
        head -= 1
    while end < len(text) and _is_joined(text, end):
        end += 1
    return f"{text[:head].rstrip()}…{text[end:].lstrip()}"


def _is_joined(text: str, index: int) -> bool:
    """Whether the character at an index makes one letter or picture with the one before it."""
    return bool(unicodedata.combining(text[index])) or text[index] in JOINERS or text[index - 1] == JOINERS[0]


def name(value: Any, max_length: int = 40) -> str:
    """A name; a long one loses its middle, for names often differ in their last letters."""
    return shorten(one_line(value), max_length, tail=max_length // 3)


def cell(value: Any, max_length: int = 60) -> str:
    """A value of the table: floats to four digits, vectors by their first numbers and their length."""
    if hasattr(value, "to_list"):
        value = value.to_list()
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list):
        inner = ", ".join(cell(v, 12) for v in value[:3]) + (", …" if len(value) > 3 else "")
        return shorten(f"[{inner}] ({len(value):,} values)", max_length)
    return shorten(one_line(value), max_length)


def listed(names: Sequence[str], max_names: int) -> str:
    """a, b, c and 12 more."""
    if len(names) <= max_names + 1:  # "and 1 more" would be no shorter
        return ", ".join(names)
    return f"{', '.join(names[:max_names])} and {len(names) - max_names:,} more"


def width(text: str) -> int:
    """Columns that a text takes in a terminal."""
    return sum(
        0 if unicodedata.combining(mark) or mark in INVISIBLE else 1 + (unicodedata.east_asian_width(mark) in "WF")
        for mark in text
    )


def aligned(rows: Iterable[Sequence[str]], between: str = "   ") -> list[str]:
    """Rows of cells as lines: the first column to the left, the others to the right."""
    rows = list(rows)
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    return [
        between.join(
            " " * (0 if i == 0 else room - width(text)) + text + " " * (room - width(text) if i == 0 else 0)
            for i, (text, room) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
