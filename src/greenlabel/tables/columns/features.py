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
from collections.abc import Sequence, Set
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.optional import requires
from greenlabel._common.parameters import check_choice
from greenlabel._common.threads import one_thread
from greenlabel.errors import TableError
from greenlabel.graph.scaling import find_scaling
from greenlabel.tables.columns.encoders import DateEncoder, Encoder, fit_encoder
from greenlabel.tables.columns.kinds import Column, as_kind, plain, row_number, stacked, understood, why_useless
from greenlabel.tables.io.files import VECTORS, nearest_name
from greenlabel.tables.io.number_text import without_gaps

with requires("tables"):
    import polars as pl

Floats = NDArray[np.floating]

SCALES = ("auto", "none", "standard")
LARGEST = float(np.finfo(np.float32).max)
MAX_CATEGORIES = 40  # more values than that, or than one in ten rows, are encoded as text


def choose_columns(
    names: list[str], target: str, features: list[str] | None, drop: list[str] | None, ids: list[str] | None
) -> list[str]:
    """The names that may become features: all but the target and the ids, narrowed by names or patterns."""
    others = [name for name in names if name != target]
    passed_through = matching(others, ids, "--id") | matching(others, drop, "--drop")
    wanted = matching(others, features, "--features") if features else set(others)
    return [name for name in others if name in wanted - passed_through]


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
    """The feature steps of one table, learned by ``fit_transform`` and applied to new rows by ``transform``.

    What was learned is public, so that a model file can hold it.
    """

    encoders: "dict[str, Encoder]"  # of each column that is no vector
    filling: Floats  # (d,) what stands in for a gap; then the bounds, centre and divisor of each feature
    low: Floats
    high: Floats
    centre: Floats
    spread: Floats
    vector_spread: list[float]  # the divisor of each column of vectors

    def __init__(self, scale: str = "auto", seed: int | None = 0):
        self.scale = check_choice("scale", scale, SCALES)
        self.seed = seed

    def fit_transform(
        self,
        frame: pl.DataFrame,
        names: list[str],
        wanted: Set[str] = frozenset(),
        rows: Sequence[int] | None = None,
    ) -> Floats:
        """X of the named columns of a frame; those that say nothing are dropped, except ``wanted`` ones.

        ``rows`` are the numbers of the rows in the whole where the frame is a sample, for the messages.
        """
        frame, self.columns = understood(plain(frame.select(names)))
        for column in self.columns:
            why = why_useless(frame[column.name], column.kind, column.name in wanted)
            if why:
                column.kind, column.why = "dropped", why
        self._fit_table(frame)
        parts = [*self._vectors(frame, rows), self._table(frame)]
        self._fit_scales(parts)
        return self._joined(parts)

    def transform(
        self, frame: pl.DataFrame, rows: Sequence[int] | None = None, strict: bool = True
    ) -> tuple[Floats, dict[str, int]]:
        """X of new rows, and how many values of a column were never seen: new categories, and dates that are none.

        ``rows`` are the numbers of the rows in the whole, for the messages. A number that is none is an error, or if
        not ``strict`` a gap that is counted too.
        """
        frame, unseen = self._as_learned(frame, rows, strict)
        return self._joined([*self._vectors(frame, rows), self._table(frame)]), unseen

    def check_columns(self, names: list[str]) -> None:
        """Refuse a table that lacks columns."""
        missing = [column.name for column in self.used if column.name not in names]
        if missing:
            raise TableError(
                f"The table lacks {len(missing)} of the columns that the model needs: "
                f"{', '.join(map(repr, missing[:8]))}; "
                f"{'give them by --vectors.' if missing == [VECTORS] else nearest_name(missing[0], names)}"
            )

    def unseen(self, frame: pl.DataFrame) -> dict[str, int]:
        """How many values of each column were never seen, or do not fit."""
        return self._as_learned(frame, None, False)[1]

    def _as_learned(
        self, frame: pl.DataFrame, rows: Sequence[int] | None, strict: bool
    ) -> tuple[pl.DataFrame, dict[str, int]]:
        """The columns as the kinds that were learned, and what of them does not fit."""
        self.check_columns(frame.columns)
        raw = plain(frame.select(column.name for column in self.used))
        known = [as_kind(raw[column.name], column) for column in self.used]
        counts = {
            column.name: self._n_unknown(column, raw[column.name], series, rows, strict)
            for column, series in zip(self.used, known, strict=True)
        }
        return pl.DataFrame(known), {name: count for name, count in counts.items() if count}

    def _n_unknown(
        self, column: Column, raw: pl.Series, series: pl.Series, rows: Sequence[int] | None, strict: bool
    ) -> int:
        """How many values of a column are new, or do not fit."""
        if column.kind == "category":
            return int((raw.is_not_null() & ~series.is_in(column.categories)).sum())
        if column.kind == "date":
            encoder = self.encoders[column.name]
            dates = encoder.read(series) if isinstance(encoder, DateEncoder) and series.dtype == pl.String else series
            return int((raw.is_not_null() & dates.is_null()).sum())
        if column.kind != "number" or raw.dtype != pl.String:
            return 0
        unknown = series.is_null() & without_gaps(raw).is_not_null()
        if strict and unknown.any():
            index = int(unknown.arg_true()[0])
            raise TableError(
                f"Column {column.name!r} holds {raw[index]!r} in row {row_number(index, rows)}, the model learned "
                "numbers; correct it."
            )
        return int(unknown.sum())

    @property
    def used(self) -> list[Column]:
        return [column for column in self.columns if column.kind != "dropped"]

    # Numbers, categories, texts and dates

    def _fit_table(self, frame: pl.DataFrame) -> None:
        if not self.used:
            reasons = "; ".join(f"{column.name!r} {column.why}" for column in self.columns[:6])
            raise TableError(
                f"No column can serve as a feature{f' ({reasons})' if reasons else ''}; "
                "give columns of numbers, categories, text or dates beside the target, or insist on one by --features."
            )
        self.encoders = {}
        max_categories = min(MAX_CATEGORIES, max(5, frame.height // 10))
        for column in self.used:
            if column.kind == "vector":
                continue
            series = frame[column.name]
            with one_thread():  # two threads would round the components of texts otherwise
                column.kind, encoder = fit_encoder(series, max_categories, self.seed)
            self.encoders[column.name] = encoder
            column.n_features = encoder.n_features
            if column.kind == "category":
                column.categories = [value for value in series.unique().sort() if value is not None]

    def _table(self, frame: pl.DataFrame) -> Floats:
        with one_thread():
            parts = [encoder.encode(frame[name]) for name, encoder in self.encoders.items()]
        numbers = np.hstack(parts) if parts else np.empty((frame.height, 0))
        return np.where(np.isfinite(numbers), numbers, np.nan)

    # Vectors

    def _vectors(self, frame: pl.DataFrame, rows: Sequence[int] | None) -> list[Floats]:
        return [self._vector(frame[column.name], column, rows) for column in self.used if column.kind == "vector"]

    def _vector(self, series: pl.Series, column: Column, rows: Sequence[int] | None) -> Floats:
        X = stacked(series, rows)
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
            self.filling = np.nan_to_num(np.nanmedian(table, axis=0)) if table.shape[1] else np.empty(0)
        table = self._filled(table)
        self.low, self.high = np.full(table.shape[1], -np.inf), np.full(table.shape[1], np.inf)
        self.centre, self.spread = np.zeros(table.shape[1]), np.ones(table.shape[1])
        self.vector_spread = [1.0] * len(vectors)
        if self.scale == "none":
            return
        kind = np.repeat(*self._kind_of_features())
        for group in ("number", "date"):
            self._scale_group(table, kind == group, group == "date" or self.scale == "standard", rng)
        self._scale_parts(table)
        rest = self._apply(table).var(axis=0).sum() if table.shape[1] else 0.0
        if rest or len(vectors) > 1:
            self.vector_spread = [float(np.sqrt(X.var(axis=0).sum() / max(1.0, rest)) or 1.0) for X in vectors]

    def _kind_of_features(self) -> tuple[list[str], list[int]]:
        named = [column for column in self.used if column.kind != "vector"]
        return [column.kind for column in named], [column.n_features for column in named]

    def _scale_group(self, table: Floats, chosen: NDArray[np.bool_], always: bool, rng: np.random.Generator) -> None:
        if not chosen.any():
            return
        scaling = find_scaling(table[:, chosen], rng)
        varying = np.flatnonzero(chosen)[scaling.kept]
        self.centre[varying], self.spread[varying] = scaling.centre, scaling.spread
        if always:
            self.centre[chosen] = table[:, chosen].mean(axis=0)
            self.spread[chosen] = table[:, chosen].std(axis=0)
            self.spread[chosen & (self.spread == 0)] = 1  # constant: any divisor will do
        elif scaling.units_differ:
            self.low[varying], self.high[varying] = scaling.low, scaling.high

    def _scale_parts(self, table: Floats) -> None:
        """All parts of a text, or of a date, together have the variance of one number."""
        start = 0
        for kind, n_features in zip(*self._kind_of_features(), strict=True):
            part = slice(start, start + n_features)
            variance = table[:, part].var(axis=0)
            if kind == "text":
                self.spread[part] = np.sqrt(variance.sum()) or 1.0
            if kind == "date":
                self.spread[part] *= np.sqrt(max(1, int(np.count_nonzero(variance))))
            start += n_features

    def _filled(self, table: Floats) -> Floats:
        return np.where(np.isnan(table), self.filling, table)

    def _apply(self, table: Floats) -> Floats:
        return (np.clip(table, self.low, self.high) - self.centre) / self.spread

    def _joined(self, parts: list[Floats]) -> Floats:
        *vectors, table = parts
        vectors = [X if spread == 1 else X / spread for X, spread in zip(vectors, self.vector_spread, strict=True)]
        if not table.shape[1] and len(vectors) == 1:
            return vectors[0]
        X = np.hstack([*vectors, self._apply(self._filled(table))])
        return np.clip(X, -LARGEST, LARGEST, out=X).astype(np.float32)
