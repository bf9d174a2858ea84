"""One column of a table as numbers: what was learned from it is a few plain values and arrays.

number      itself; a span of time in seconds
category    one column of 0 and 1 per value, in their order; two values need one column, that of the second. A gap
            is a value where there was one; a value never seen is none of them
date        year, month, day, the hour unless all are midnight, and the seconds since 1970
text        letter n-grams within words -> tf-idf (scikit-learn) -> 30 components by a truncated SVD, divided by
            the root of their total variance
nothing     a column whose every value stands for a gap

fit_encoder(series)        what the column is, and its encoder
encoder.encode(series)     (n, n_features), NaN where there is a gap
"""

import datetime
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.optional import requires
from greenlabel.tables.columns.dates import date_format, parse_dates

with requires("tables"):
    import polars as pl

Floats = NDArray[np.floating]

COMPONENTS = 30
LETTERS = (3, 4)  # length of the n-grams of a text
PARTS_OF_DAY = ("year", "month", "day", "hour")
SIGNS_OF_GAPS = (  # in text; those of pandas
    *("", "null", "NULL", "none", "None", "nan", "-nan", "NaN", "-NaN", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA"),
    *("<NA>", "1.#QNAN", "-1.#QNAN", "1.#IND", "-1.#IND", "?", "..."),
)


class Encoder(Protocol):
    """What a column became."""

    @property
    def n_features(self) -> int: ...
    def encode(self, series: pl.Series) -> Floats: ...


def fit_encoder(series: pl.Series, max_categories: int, seed: int | None) -> tuple[str, Encoder]:
    """What a column is, by its values, and its encoder; text of fewer values than ``max_categories`` is a category."""
    bare = without_signs(series)
    if bare.null_count() == len(bare):
        return "text", NoEncoder()
    format = date_format(bare) if bare.dtype == pl.String else None
    if format is not None or bare.dtype in (pl.Date, pl.Datetime):
        return "date", DateEncoder.fit(bare, format)
    if bare.dtype != pl.String or bare.cast(pl.Float32, strict=False).null_count() == bare.null_count():
        return "number", NumberEncoder()
    if bare.drop_nulls().n_unique() < max_categories:
        return "category", CategoryEncoder.fit(bare)
    return "text", TextEncoder.fit(bare, seed)


def without_signs(series: pl.Series) -> pl.Series:
    """A column without the usual signs for a gap where it is text."""
    if series.dtype != pl.String:
        return series
    return series.set(series.str.replace(r"^\s*$", "").is_in(SIGNS_OF_GAPS).fill_null(False), None)


@dataclass(frozen=True)
class NoEncoder:
    n_features = 0

    def encode(self, series: pl.Series) -> Floats:
        return np.empty((len(series), 0))


@dataclass(frozen=True)
class NumberEncoder:
    n_features = 1

    def encode(self, series: pl.Series) -> Floats:
        if series.dtype == pl.Duration:
            series = series.dt.total_nanoseconds() * 1e-9
        return as_column(series.cast(pl.Float32, strict=False))


def as_column(numbers: pl.Series) -> Floats:
    return numbers.cast(pl.Float64).to_numpy().reshape(-1, 1)


@dataclass(frozen=True)
class CategoryEncoder:
    values: list[str]  # sorted, each once
    has_gap: bool  # whether gaps are a value of their own, the last one

    @classmethod
    def fit(cls, text: pl.Series) -> "CategoryEncoder":
        return cls(sorted(text.drop_nulls().unique().to_list()), bool(text.null_count()))

    @property
    def n_values(self) -> int:
        return len(self.values) + self.has_gap

    @property
    def n_features(self) -> int:
        return self.n_values - (self.n_values == 2)

    def encode(self, series: pl.Series) -> Floats:
        bare = without_signs(series)
        indices = list(range(len(self.values)))
        index = bare.replace_strict(self.values, indices, default=-1, return_dtype=pl.Int64).to_numpy().copy()
        index[bare.is_null().to_numpy()] = len(self.values) if self.has_gap else -1
        return (index[:, None] == np.arange(self.n_values)[-self.n_features :]).astype(np.float64)


@dataclass(frozen=True)
class DateEncoder:
    format: str | None  # of dates that came as text
    unit: str  # "day", "ms", "us" or "ns": the precision of what was learned from
    zone: str | None  # in which hours are counted
    n_parts: int  # of the day: without the hour, or with it

    @classmethod
    def fit(cls, series: pl.Series, format: str | None) -> "DateEncoder":
        dates = series if format is None else parse_dates(series, format)
        if not isinstance(dates.dtype, pl.Datetime):
            return cls(format, "day", None, 3)
        n_parts = 3 if (dates.dt.time() == datetime.time()).all() else 4
        return cls(format, dates.dtype.time_unit, dates.dtype.time_zone, n_parts)

    @property
    def n_features(self) -> int:
        return self.n_parts + 1

    def read(self, series: pl.Series) -> pl.Series:
        """Dates of the kind that was learned from; null where text is none."""
        if series.dtype == pl.String:
            series = parse_dates(without_signs(series), self.format or "%Y-%m-%d")
        zone = getattr(series.dtype, "time_zone", None)
        if zone is not None:
            series = series.dt.convert_time_zone(self.zone or "UTC")
        if self.unit == "day":
            return series.cast(pl.Date)
        if zone is None and self.zone is not None:
            series = series.cast(pl.Datetime("us")).dt.replace_time_zone("UTC").dt.convert_time_zone(self.zone)
        elif zone is not None and self.zone is None:
            series = series.dt.replace_time_zone(None)
        return series.cast(pl.Datetime(self.unit, self.zone))  # type: ignore[arg-type]

    def encode(self, series: pl.Series) -> Floats:
        dates = self.read(series)
        parts = [getattr(dates.dt, part)() for part in PARTS_OF_DAY[: self.n_parts]]
        seconds = (dates.dt.timestamp("ms") / 1000).cast(pl.Float32)
        return np.hstack([as_column(part) for part in (*parts, seconds)])


@dataclass(frozen=True)
class TextEncoder:
    vocabulary: list[str]  # V n-grams, sorted, each once
    idf: Floats  # (V,)
    components: Floats | None  # (30, V); None where n-grams or texts are too few to be reduced: the first 30 are taken
    divisor: float

    @classmethod
    def fit(cls, text: pl.Series, seed: int | None) -> "TextEncoder":
        from sklearn.decomposition import TruncatedSVD  # slow to import

        vectorizer = n_gram_weights()
        weights = vectorizer.fit_transform(text.fill_null("").to_list()).astype(np.float32)
        if min(weights.shape) > COMPONENTS:
            svd = TruncatedSVD(COMPONENTS, random_state=seed)
            coordinates, components = svd.fit_transform(weights), svd.components_
        else:
            coordinates, components = weights[:, :COMPONENTS].toarray(), None
        deviation = np.sqrt(coordinates.var(axis=0).sum())
        is_flat = deviation < 10 * np.finfo(coordinates.dtype).eps
        n_grams = vectorizer.get_feature_names_out().tolist()
        return cls(n_grams, vectorizer.idf_, components, 1.0 if is_flat else float(deviation))

    @property
    def n_features(self) -> int:
        return min(COMPONENTS, len(self.vocabulary)) if self.components is None else len(self.components)

    @cached_property
    def _vectorizer(self) -> Any:
        vectorizer = n_gram_weights(self.vocabulary)
        vectorizer.idf_ = self.idf
        return vectorizer

    def encode(self, series: pl.Series) -> Floats:
        texts = without_signs(series).fill_null("").to_list()
        weights = self._vectorizer.transform(texts).astype(np.float32)
        if self.components is None:
            coordinates = weights[:, :COMPONENTS].toarray()
        else:
            coordinates = weights @ self.components.T
        return np.asarray(coordinates / np.float32(self.divisor), dtype=np.float64)


def n_gram_weights(vocabulary: list[str] | None = None) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer  # slow to import, and for text alone

    return TfidfVectorizer(analyzer="char_wb", ngram_range=LETTERS, vocabulary=vocabulary)
