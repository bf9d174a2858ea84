"""Numbers and names as people read them, for the terminal and for pages.

Names and values come from other people's tables: whatever they hold, the text here is one line, short, and free of
control characters.
"""

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from greenlabel._common.text import printable, shorten, without_middle

SPACE = "\u00a0"  # keeps a number and its unit on one line
INVISIBLE = "\u200b\u200d\ufe0f"
GAP = "–"  # for a value that is not there


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
    return printable(value) or GAP


def name(value: Any, max_length: int = 40) -> str:
    """A name, without its middle where it is long."""
    return without_middle(one_line(value), max_length)


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
