"""Columns of a table -> features X: what each column is, and how it becomes numbers on one scale.

    number      as it is; a gap becomes the median
    category    one column of 0 and 1 per value (up to 40 values)
    text        letter n-grams, reduced to 30 components
    date        year, month, day, … and the time in all
    vector      an embedding, as it is

Distances compare columns with each other, so every column should say about as much. Numbers and dates are brought to
unit variance where their units differ; a text or a date counts as one number; embeddings together count as much as all
the rest. A table of one kind alone, pixels or one embedding, keeps its geometry.

Values that a column cannot have, and categories that were never seen, are counted when new rows come.
"""

import warnings
from collections.abc import Set
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel.checks import check_choice
from greenlabel.errors import TableError
from greenlabel.extras import requires
from greenlabel.scaling import find_scaling
from greenlabel.tables.files import VECTORS, nearest_name, typed, with_points, without_gaps

with requires("tables"):
    import polars as pl
    from skrub import StringEncoder, TableVectorizer, ToDatetime

Floats = NDArray[np.floating]

SCALES = ("auto", "none", "standard")
MOST_CATEGORIES = 40  # more values than that, or than one in ten rows, are encoded as text
SEVERAL_WORDS = r"[\s\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"  # some write no blanks
KINDS = {"numeric": "number", "datetime": "date", "low_cardinality": "category", "high_cardinality": "text"}


@dataclass
class Column:
    """What one column of the table became."""

    name: str
    kind: str  # number, category, text, date, vector or dropped
    n_features: int = 0
    why: str = ""  # of a dropped column
    categories: list[str] = field(default_factory=list)
    is_temporal: bool = False  # a date that came as one, not as text


def choose_columns(
    names: list[str], target: str, features: list[str] | None, drop: list[str] | None, ids: list[str] | None
) -> list[str]:
    """The names that may become features: all but the target and the ids, narrowed by names or patterns."""
    others = [name for name in names if name != target]
    passed_by = matching(others, ids, "--id") | matching(others, drop, "--drop")
    wanted = matching(others, features, "--features") if features else set(others)
    return [name for name in others if name in wanted - passed_by]


def matching(names: list[str], patterns: list[str] | None, option: str) -> set[str]:
    """Names that equal or match a pattern (*, ?, [abc])."""
    found: set[str] = set()
    for pattern in patterns or []:
        hits = {name for name in names if name == pattern or fnmatchcase(name, pattern)}
        if not hits:
            raise TableError(f"{option} {pattern!r} matches no column; {nearest_name(pattern, names)}")
        found |= hits
    return found


class TableFeatures:
    """The feature steps of one table, learned by ``fit_transform`` and applied to new rows by ``transform``."""

    def __init__(self, scale: str = "auto", seed: int = 0):
        self.scale = check_choice("scale", scale, SCALES)
        self.seed = seed

    def fit_transform(self, frame: pl.DataFrame, names: list[str], wanted: Set[str] = frozenset()) -> Floats:
        """X of the named columns of a frame; those that say nothing are dropped, except ``wanted`` ones."""
        frame = typed(plain(frame.select(names)))
        self.columns = [Column(name, _kind(frame[name]), is_temporal=frame[name].dtype.is_temporal()) for name in names]
        for column in self.columns:
            why = why_useless(frame[column.name], column.kind, column.name in wanted)
            if why:
                column.kind, column.why = "dropped", why
        table = self._fit_table(frame)
        parts = [*self._vectors(frame), table]
        self._fit_scales(parts)
        return self._joined(parts)

    def transform(self, frame: pl.DataFrame) -> tuple[Floats, dict[str, int]]:
        """X of new rows, and how many values of a column were never seen: new categories, and dates that are none."""
        missing = [column.name for column in self.used if column.name not in frame.columns]
        if missing:
            raise TableError(
                f"The table lacks {len(missing)} of the columns that the model needs: "
                f"{', '.join(map(repr, missing[:8]))}; "
                f"{'give them by --vectors.' if missing == [VECTORS] else nearest_name(missing[0], frame.columns)}"
            )
        known = frame.select(pl.col(column.name).is_not_null() for column in self.used)
        frame = plain(frame)
        frame = pl.DataFrame([_as_kind(frame[column.name], column) for column in self.used])
        table = self._table(frame)
        return self._joined([*self._vectors(frame), table]), self._unseen(frame, known, table)

    def _unseen(self, frame: pl.DataFrame, known: pl.DataFrame, table: Floats) -> dict[str, int]:
        counts: dict[str, int] = {}
        start = 0
        for column in (column for column in self.used if column.kind != "vector"):
            is_known = known[column.name]
            if column.kind == "category":
                counts[column.name] = int((is_known & ~frame[column.name].is_in(column.categories)).sum())
            elif column.kind == "date":
                counts[column.name] = int((is_known & pl.Series(np.isnan(table[:, start]))).sum())
            start += column.n_features
        return {name: count for name, count in counts.items() if count}

    @property
    def used(self) -> list[Column]:
        return [column for column in self.columns if column.kind != "dropped"]

    # Numbers, categories, texts and dates, by skrub

    def _fit_table(self, frame: pl.DataFrame) -> Floats:
        self._named = [column.name for column in self.used if column.kind != "vector"]
        self._vectorizer = None
        if not self.used:
            reasons = "; ".join(f"{column.name!r} {column.why}" for column in self.columns[:6])
            raise TableError(
                f"No column can serve as a feature{f' ({reasons})' if reasons else ''}; "
                "give columns of numbers, categories, text or dates beside the target, or insist on one by --features."
            )
        if not self._named:
            return np.empty((frame.height, 0))
        text = StringEncoder(random_state=self.seed)
        most = min(MOST_CATEGORIES, max(5, frame.height // 10))
        self._vectorizer = TableVectorizer(cardinality_threshold=most, high_cardinality=text, n_jobs=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # components that a short vocabulary cannot fill, and the like
            numbers = self._vectorizer.fit_transform(frame.select(self._named))
        kinds = {name: KINDS[kind] for kind, group in self._vectorizer.kind_to_columns_.items() for name in group}
        for column in self.used:
            if column.name in kinds:
                column.kind = kinds[column.name]
                column.n_features = len(self._vectorizer.input_to_outputs_[column.name])
                if column.kind == "category":
                    column.categories = [value for value in frame[column.name].unique().sort() if value is not None]
        return as_floats(numbers)

    def _table(self, frame: pl.DataFrame) -> Floats:
        if self._vectorizer is None:
            return np.empty((frame.height, 0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unseen categories, which are counted
            try:
                return as_floats(self._vectorizer.transform(frame.select(self._named)))
            except (ValueError, TypeError, pl.exceptions.PolarsError) as error:
                reason = " ".join(str(error).split())[:200]
                raise TableError(
                    f"The table does not fit the model: {reason}; give columns of the kinds that it learned from."
                ) from error

    # Vectors

    def _vectors(self, frame: pl.DataFrame) -> list[Floats]:
        return [self._vector(frame[column.name], column) for column in self.used if column.kind == "vector"]

    def _vector(self, series: pl.Series, column: Column) -> Floats:
        X = stacked(series)
        if column.n_features not in (0, X.shape[1]):
            raise TableError(
                f"Column {column.name!r} holds vectors of {X.shape[1]} numbers, the model needs {column.n_features}."
            )
        column.n_features = X.shape[1]
        return X

    # Scales

    def _fit_scales(self, parts: list[Floats]) -> None:
        """For every feature its filling, bounds, centre and divisor."""
        *vectors, table = parts
        rng = np.random.default_rng(self.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a column of gaps alone has no median
            self._filling = np.nan_to_num(np.nanmedian(table, axis=0)) if table.shape[1] else np.empty(0)
        table = self._filled(table)
        self._low, self._high = np.full(table.shape[1], -np.inf), np.full(table.shape[1], np.inf)
        self._centre, self._spread = np.zeros(table.shape[1]), np.ones(table.shape[1])
        self._vector_spread = [1.0] * len(vectors)
        if self.scale == "none":
            return
        kind = np.repeat(*self._kind_of_features())
        for group in ("number", "date"):
            self._scale_group(table, kind == group, group == "date" or self.scale == "standard", rng)
        self._scale_parts(table)
        rest = self._apply(table).var(axis=0).sum() if table.shape[1] else 0.0
        if rest or len(vectors) > 1:
            self._vector_spread = [float(np.sqrt(X.var(axis=0).sum() / max(1.0, rest)) or 1.0) for X in vectors]

    def _kind_of_features(self) -> tuple[list[str], list[int]]:
        named = [column for column in self.used if column.kind != "vector"]
        return [column.kind for column in named], [column.n_features for column in named]

    def _scale_group(self, table: Floats, chosen: NDArray[np.bool_], always: bool, rng: np.random.Generator) -> None:
        if not chosen.any():
            return
        scaling = find_scaling(table[:, chosen], rng)
        varying = np.flatnonzero(chosen)[scaling.kept]
        self._centre[varying], self._spread[varying] = scaling.centre, scaling.spread
        if always:
            self._centre[chosen] = table[:, chosen].mean(axis=0)
            self._spread[chosen] = table[:, chosen].std(axis=0)
            self._spread[chosen & (self._spread == 0)] = 1  # constant: any divisor will do
        elif scaling.units_differ:
            self._low[varying], self._high[varying] = scaling.low, scaling.high

    def _scale_parts(self, table: Floats) -> None:
        """All parts of a text, or of a date, together have the variance of one number."""
        start = 0
        for kind, n_features in zip(*self._kind_of_features(), strict=True):
            part = slice(start, start + n_features)
            variance = table[:, part].var(axis=0)
            if kind == "text":
                self._spread[part] = np.sqrt(variance.sum()) or 1.0
            if kind == "date":
                self._spread[part] *= np.sqrt(max(1, int(np.count_nonzero(variance))))
            start += n_features

    def _filled(self, table: Floats) -> Floats:
        return np.where(np.isnan(table), self._filling, table)

    def _apply(self, table: Floats) -> Floats:
        return (np.clip(table, self._low, self._high) - self._centre) / self._spread

    def _joined(self, parts: list[Floats]) -> Floats:
        *vectors, table = parts
        vectors = [X if spread == 1 else X / spread for X, spread in zip(vectors, self._vector_spread, strict=True)]
        if not table.shape[1] and len(vectors) == 1:
            return vectors[0]
        return np.hstack([*vectors, self._apply(self._filled(table))]).astype(np.float32)


def as_floats(frame: pl.DataFrame) -> Floats:
    """A frame of numbers as an array, with NaN for whatever is none."""
    numbers = frame.to_numpy().astype(np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def plain(frame: pl.DataFrame) -> pl.DataFrame:
    """Categories as the text that they are; a type of text that lists its values would refuse new ones."""
    return frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))


def stacked(series: pl.Series) -> Floats:
    """A column of vectors as a matrix."""
    lengths = series.arr.len() if isinstance(series.dtype, pl.Array) else series.list.len()
    usual = int(lengths.drop_nulls()[0])
    bad = lengths.is_null() | (lengths != usual)
    if bad.any():
        row = int(bad.arg_true()[0])
        what = "no vector" if lengths[row] is None else f"a vector of {int(lengths[row])} numbers"
        raise TableError(
            f"Column {series.name!r} has {what} in row {row + 1}, where {usual} are needed; "
            "give every row a vector of the same length, or leave the column out (--drop)."
        )
    values = series.explode()
    kind = np.float32 if values.dtype == pl.Float32 else np.float64
    X: Any = values.to_numpy().astype(kind).reshape(len(series), -1)
    if not np.isfinite(X).all():
        row = int(np.flatnonzero(~np.isfinite(X).all(axis=1))[0])
        raise TableError(f"Column {series.name!r} has a gap or infinity in the vector of row {row + 1}; fill it.")
    return X


def _kind(series: pl.Series) -> str:
    if isinstance(series.dtype, (pl.List, pl.Array)) and series.dtype.inner.is_numeric():
        return "vector"
    if series.dtype.is_numeric() or series.dtype == pl.Boolean:
        return "number"
    if series.dtype.is_temporal():
        return "date"
    if series.dtype.is_nested() or series.dtype in (pl.Object, pl.Binary) or isinstance(series.dtype, pl.BaseExtension):
        return "structure"
    return "text"


def why_useless(series: pl.Series, kind: str, wanted: bool) -> str:
    """Why a column says nothing about likeness; "" if it may. ``wanted`` ones were asked for by name."""
    if kind == "structure":
        return f"is of type {series.dtype}"
    if series.null_count() == len(series):
        return "is empty"
    if kind == "vector":
        return ""
    n_values = series.n_unique()
    if n_values == 1:
        return "is constant"
    if wanted or n_values < len(series) or len(series) < 3:
        return ""
    if series.dtype.is_integer() and (series.is_sorted() or series.is_sorted(descending=True)):
        return "numbers the rows"
    if kind == "text" and not series.str.contains(SEVERAL_WORDS).any() and not _holds_dates(series):
        return "names the rows (all values are different single words)"
    return ""


def _holds_dates(text: pl.Series) -> bool:
    try:
        return bool(ToDatetime().fit_transform(text).dtype.is_temporal())
    except ValueError:  # skrub's refusal of a column
        return False


def _as_kind(series: pl.Series, column: Column) -> pl.Series:
    """A column of new rows as the kind that the model learned; what does not fit is an error that names the row."""
    kind = _kind(series)
    if column.kind == "vector" and kind != "vector":
        raise TableError(
            f"Column {column.name!r} holds no vectors, the model needs some of {column.n_features} numbers."
        )
    if kind not in FITTING[column.kind] and not (column.is_temporal and kind == "date") and series.count():
        raise TableError(
            f"Column {column.name!r} holds {series.dtype} values, the model learned from a column of the kind "
            f"{column.kind}; give it as it was there."
        )
    return series if column.kind == "vector" else AS_KIND[column.kind](series, column)


def _as_words(series: pl.Series, column: Column) -> pl.Series:
    return series.cast(pl.String)


def _as_dates(series: pl.Series, column: Column) -> pl.Series:
    """Dates, or where the model learned them from text, text; what is no date is a gap."""
    if series.dtype == pl.Null:
        return series.cast(pl.Datetime if column.is_temporal else pl.String)
    if not column.is_temporal or series.dtype != pl.String:
        return series
    try:
        return series.str.to_datetime(strict=False)
    except pl.exceptions.PolarsError:  # not one of them is a date
        return pl.Series(series.name, [None] * len(series), dtype=pl.Datetime)


def _as_number(series: pl.Series, column: Column) -> pl.Series:
    if series.dtype == pl.Null:
        return series.cast(pl.Float64)
    if series.dtype != pl.String:
        return series
    bare = with_points(without_gaps(series))
    numbers = bare.cast(pl.Float64, strict=False)
    strange = numbers.is_null() & bare.is_not_null()
    if strange.any():
        row = int(strange.arg_true()[0])
        raise TableError(
            f"Column {column.name!r} holds {series[row]!r} in row {row + 1}, the model learned numbers; correct it."
        )
    return numbers


FITTING = {  # the kinds of new columns that can be taken for the kind that the model learned
    "number": ("number", "text"),
    "category": ("number", "text", "date"),
    "text": ("number", "text", "date"),
    "date": ("date", "text"),
    "vector": ("vector",),
}
AS_KIND = {"number": _as_number, "category": _as_words, "text": _as_words, "date": _as_dates}
