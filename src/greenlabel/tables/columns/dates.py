"""Dates that came as text: the one format in which all of them are written."""

import warnings

from greenlabel._common.optional import requires

with requires("tables"):
    import polars as pl

SAMPLE = 30  # values from which a format is guessed; it must then read all of them


def date_format(text: pl.Series) -> str | None:
    """The format that reads every value of a column of text as a date; None where there is none.

    Where day and month cannot be told apart, the month comes first.
    """
    known = text.drop_nulls()
    if known.is_empty():
        return None
    sample = known.sample(min(SAMPLE, len(known)), seed=0).to_list()
    found = _common_format(sample, day_first=False) or _common_format(sample, day_first=True)
    return found if found and parse_dates(known, found).null_count() == 0 else None


def _common_format(sample: list[str], day_first: bool) -> str | None:
    from pandas.tseries.api import guess_datetime_format  # slow to import

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of days beyond the twelfth, where months were thought to come first
        formats = {guess_datetime_format(value, dayfirst=day_first) for value in sample}
    return str(formats.pop()) if len(formats) == 1 and None not in formats else None


def parse_dates(text: pl.Series, format: str) -> pl.Series:
    """Text as points in time; null where it does not have the format. A fraction of a second is written .%f."""
    try:
        return text.str.to_datetime(format=format.replace(".%f", "%.f"), strict=False)
    except pl.exceptions.PolarsError:  # no format of dates at all
        return pl.Series(text.name, [None] * len(text), dtype=pl.Datetime)
