"""Dates as text in the order of ISO 8601, with or without a time, a fraction of a second and a zone.

    2024-01-05      2024-01-05T10:00      2024-01-05 10:00:00.123Z      2024-01-05T10:00:00+02:00

What has a zone is read as the same moment in UTC, so that offsets may differ from row to row; what has none is taken as
it is. Each value is read by itself.
"""

from greenlabel._common.optional import requires

with requires("tables"):
    import polars as pl

DAY, TIME, SECOND, FRACTION = r"(\d{4}-\d{2}-\d{2})", r"(\d{2}:\d{2})", r"(\d{2})", r"(\d{1,9})"
ZONE = r"([Zz]|[+-]\d{2}(?::?\d{2})?)"
PATTERN = rf"^{DAY}(?:[Tt ]{TIME}(?::{SECOND}(?:[.,]{FRACTION})?)? ?{ZONE}?)?$"


def holds_zones(text: pl.Series) -> bool:
    """Whether a column holds nothing but dates, some of them with a zone."""
    known = text.str.strip_chars().replace("", None).drop_nulls()
    if known.is_empty() or not known.str.contains(r"\d ?(?:[Zz]|[+-]\d{2}(?::?\d{2})?)$").any():
        return False
    return bool(known.str.extract(PATTERN, 5).is_not_null().any() and read_dates(known).null_count() == 0)


def read_dates(text: pl.Series) -> pl.Series:
    """Moments without a zone; null where a value is no such date."""
    bare = text.str.strip_chars()
    day, time, second, fraction, zone = (bare.str.extract(PATTERN, part) for part in range(1, 6))
    whole = day + "T" + time.fill_null("00:00") + ":" + second.fill_null("00")
    moment = whole.str.to_datetime("%Y-%m-%dT%H:%M:%S", time_unit="us", strict=False)
    microseconds = (fraction.fill_null("0").str.pad_end(6, "0").str.slice(0, 6)).cast(pl.Int64)
    return (moment + microseconds.cast(pl.Duration("us")) - _offset(zone)).alias(text.name)


def _offset(zone: pl.Series) -> pl.Series:
    """How far a zone is ahead of UTC."""
    parts = zone.str.extract(r"(\d{2}):?\d{0,2}$").fill_null("0"), zone.str.extract(r"\d{2}:?(\d{2})$").fill_null("0")
    minutes = 60 * parts[0].cast(pl.Int64) + parts[1].cast(pl.Int64)
    ahead = minutes * (1 - 2 * zone.str.starts_with("-").fill_null(False).cast(pl.Int64))
    return (60_000_000 * ahead).cast(pl.Duration("us"))
