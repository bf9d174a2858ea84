"""Numbers as people write them: which way a column of text does, and its values read that way.

    writing_of(text)         -> Writing, or None where the column holds something else
    read_numbers(text, w)    -> numbers; null where a value is not written that way

A writing is the marks of a column (1,234.5 or 1.234,5 or 1234,5 or …) and its unit (%, one currency, h:mm, h:mm:ss).
It is found once, from all values, and then applied to one value at a time: to the rows it was found in, to blocks of
them, and to new rows.

What could be something else stays text: codes with leading zeros; groups parted by points or blanks that are of the
same number in every value, as those of addresses (10.100.200.100) and telephone numbers (555 123 456) are; values in
several currencies; values of which only some have a %.

1,234 alone is a thousand. If it meant a little more than one, every value would have three digits behind the comma, and
then both readings differ by the same factor throughout; a zero before a comma (0,123) tells that it is a decimal one.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from greenlabel._common.optional import requires

with requires("tables"):
    import polars as pl

GAPS = ("", "na", "n/a", "nan", "null", "none", "?", "-", "missing")  # in columns of numbers, in any capitals
CODES = (
    "USD|EUR|GBP|JPY|CHF|CNY|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|RON|BGN|ISK|BRL|MXN|ARS|CLP|COP|PEN|ZAR|KRW|TRY|"
    "RUB|UAH|ILS|SGD|HKD|TWD|THB|MYR|IDR|PHP|VND|AED|SAR|EGP|NGN|KES"
)
CURRENCY = rf"(?:(?:US|AU|CA|NZ|HK|[ACSR])?\p{{Sc}}|{CODES}|(?:kr|zł|Kč|Ft|lei|Fr)\.?)"
MARKS = {  # as 1234.5 is written: the decimal mark, and the mark between groups of three digits
    "1234.5": (".", ""),
    "1234,5": (",", ""),
    "1,234.5": (".", ","),
    "1.234,5": (",", "."),
    "1 234.5": (".", " "),
    "1 234,5": (",", " "),
    "1'234.5": (".", "'"),
    "1'234,5": (",", "'"),
}
TIMES = {  # hours, minutes and seconds
    "h:mm": r"^[+-]?(\d{1,4}):([0-5]\d)()$",
    "h:mm:ss": r"^[+-]?(\d{1,4}):([0-5]\d):([0-5]\d(?:[.,]\d+)?)$",
}
LEADING_ZERO = r"^[+-]?0[0-9]"
DECIMAL_COMMA = r"^[+-]?(?:0,\d+|\d+,(?:\d{1,2}|\d{4,}))$"  # whatever the other values are


@dataclass(frozen=True)
class Writing:
    """How the numbers of a column are written."""

    marks: str = "1234.5"  # a key of MARKS
    unit: str = ""  # %, a currency, a key of TIMES, or none

    def __str__(self) -> str:
        return self.unit if self.unit in TIMES else f"{self.marks} {self.unit}".strip()


def is_writing(writing: Writing) -> bool:
    """Whether the marks and the unit are ones that ``writing_of`` finds."""
    return writing.marks in MARKS and (writing.unit in ("", "%", *TIMES) or _is_money(writing.unit))


@lru_cache  # a model may have many columns
def _is_money(unit: str) -> bool:
    return bool(pl.Series([unit]).str.contains(rf"^{CURRENCY}$")[0])


def without_gaps(text: pl.Series) -> pl.Series:
    """Text without blanks around it; null where it is a usual sign for a gap."""
    bare = text.str.strip_chars()
    return bare.set(bare.str.to_lowercase().is_in(GAPS).fill_null(False), None)


# Which way


def writing_of(text: pl.Series) -> Writing | None:
    """How all values of a column are written; None where they are no numbers, or differ."""
    known = tidy(without_gaps(text)).drop_nulls()
    if known.is_empty() or not known.str.contains(r"^[^\d]{0,6}\d").all():  # true of most text
        return None
    for time, pattern in TIMES.items():
        if known.str.contains(pattern).all():
            return Writing(unit=time)
    unit = unit_of(known)
    if unit is None or known.str.contains(r"^\(.*\)$").all():  # (1), (2), … are numbers of a list
        return None
    marks = marks_of(without_unit(known, unit), is_money=unit not in ("", "%"))
    return None if marks is None else Writing(marks, unit)


def unit_of(known: pl.Series) -> str | None:
    """%, the one currency of all values, or "" for none; None where the values differ in it."""
    if known.str.ends_with("%").any():
        return "%" if (known.str.ends_with("%") | (known == "0")).all() else None
    found = known.str.extract(rf"({CURRENCY})").drop_nulls().unique()
    if found.is_empty():
        return ""
    return str(found[0]) if len(found) == 1 else None


def marks_of(bare: pl.Series, is_money: bool = False) -> str | None:
    """The marks by which all values can be read, if they mean that and nothing else."""
    if bare.str.contains(LEADING_ZERO).any():
        return None
    for marks, (decimal, group) in MARKS.items():
        if bare.str.contains(pattern_of(decimal, group)).all() and _is_unambiguous(bare, decimal, group, is_money):
            return marks
    return None


def _is_unambiguous(bare: pl.Series, decimal: str, group: str, is_money: bool) -> bool:
    """Whether marks that fit can mean nothing else."""
    if not group and decimal == ",":
        return bool(bare.str.contains(DECIMAL_COMMA).any())
    if not group:  # 1.234 € and 999 €: nobody writes three digits of cents
        return not (is_money and bare.str.contains(r"^[+-]?[1-9]\d{0,2}(\.\d{3})*$").all() and _has(bare, "."))
    if group == "," or not _has(bare, group):
        return _has(bare, group)
    if bare.str.starts_with("+").any():  # a telephone number
        return False
    return is_money or _has(bare, decimal) or bare.str.count_matches(group, literal=True).n_unique() > 1


def _has(bare: pl.Series, mark: str) -> bool:
    return bool(bare.str.contains(mark, literal=True).any())


def pattern_of(decimal: str, group: str) -> str:
    """A number with such marks; groups of three digits, or none."""
    decimal, group = (mark.replace(".", r"\.") for mark in (decimal, group))
    whole = rf"(?:\d+|[1-9]\d{{0,2}}(?:{group}\d{{3}})+)" if group else r"\d+"
    return rf"^[+-]?(?:{whole}(?:{decimal}\d*)?|{decimal}\d+)$"


# Reading


def read_numbers(text: pl.Series, writing: Writing) -> pl.Series:
    """The numbers of values that are written this way; null for others."""
    bare = without_gaps(text)
    if not writing.unit and writing.marks == "1234.5":
        return _plain_numbers(bare)
    if not writing.unit and writing.marks == "1234,5":
        return bare.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    bare = tidy(bare)
    if writing.unit in TIMES:
        return _seconds(bare, TIMES[writing.unit])
    decimal, group = MARKS[writing.marks]
    if writing.unit == "%":
        bare = bare.set(~(bare.str.ends_with("%") | (bare == "0")).fill_null(True), None)
    bare = without_unit(bare, writing.unit)
    bare = bare.set(~bare.str.contains(pattern_of(decimal, group)).fill_null(False), None)
    if group:
        bare = bare.str.replace_all(group, "", literal=True)
    numbers = bare.str.replace(decimal, ".", literal=True).cast(pl.Float64, strict=False)
    return numbers / 100 if writing.unit == "%" else numbers


def _plain_numbers(bare: pl.Series) -> pl.Series:
    """Numbers with a decimal point, or with a decimal comma where it can be nothing else."""
    is_comma = bare.str.contains(DECIMAL_COMMA).fill_null(False)
    with_points = bare.str.replace(",", ".", literal=True)
    return with_points.zip_with(is_comma, bare).cast(pl.Float64, strict=False)


def _seconds(bare: pl.Series, pattern: str) -> pl.Series:
    hours, minutes, seconds = (bare.str.extract(pattern, part).str.replace(",", ".") for part in (1, 2, 3))
    size = 3600 * hours.cast(pl.Float64) + 60 * minutes.cast(pl.Float64) + seconds.replace("", "0").cast(pl.Float64)
    return size * (1.0 - 2.0 * bare.str.starts_with("-").cast(pl.Float64))


def tidy(bare: pl.Series) -> pl.Series:
    """One kind of blank, of minus and of apostrophe."""
    for several, one in ((r"[\x{a0}\x{202f}\x{2009}]", " "), (r"[\x{2212}\x{2013}]", "-"), (r"\x{2019}", "'")):
        bare = bare.str.replace_all(several, one)
    return bare


def without_unit(bare: pl.Series, unit: str) -> pl.Series:
    """Values without their unit, which stands before or behind them. (5) is -5, as in accounts."""
    bare = bare.str.replace(r"^\((.*)\)$", "-${1}")
    if unit:
        at = re.escape(unit)
        bare = bare.str.replace(rf"^([+-]?) ?{at} ?([+-]?)", "${1}${2}").str.replace(rf" ?{at}$", "")
    return bare
