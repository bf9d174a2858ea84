"""The parts of a model file that make feature steps: what each column is, its encoder, and its scale.

number, category, date, text, nothing       encoders (encoders.py)
"""

import re
from dataclasses import fields
from typing import Any

import numpy as np

from greenlabel._common.optional import requires
from greenlabel.tables.columns.encoders import (
    COMPONENTS,
    CategoryEncoder,
    DateEncoder,
    Encoder,
    NoEncoder,
    NumberEncoder,
    TextEncoder,
)
from greenlabel.tables.columns.features import SCALES, TableFeatures
from greenlabel.tables.columns.kinds import Column
from greenlabel.tables.io.number_text import is_writing
from greenlabel.tables.model_files.classifiers import MAX_FEATURES, TINY, Values, kind_of
from greenlabel.tables.model_files.container import Arrays, Part

with requires("tables"):
    import polars as pl

FORMAT_OF_DATES = re.compile(r"(%[-:#.]?[A-Za-z+]|[^%\x00-\x1f]){1,64}")
ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+/-]{0,63}")
LARGE = 1e30
MAX_VALUES = 1000  # of a category


# Columns: one value for each field, of the type of the field


def write_column(column: Column) -> Values:
    return {name: list(value) if isinstance(value, (list, tuple)) else value for name, value in vars(column).items()}


def read_column(part: Part) -> Column:
    """A column; fields that came after the file was written have their defaults."""
    values: Values = {}
    for field in fields(Column):
        if field.name in part.values:
            values[field.name] = READERS[str(getattr(field.type, "__name__", field.type))](part, field.name)
    for name, choices in CHOICES.items():
        if name in values:
            part.text(name, choices)
    for name in ("name", "kind"):
        part.text(name)
    column = Column(**values)
    if not is_writing(column.writing):  # which becomes part of a pattern
        part.refuse("unit", "or marks are none of numbers")
    return column


READERS: dict[str, Any] = {
    "str": lambda part, name: part.text(name),
    "bool": lambda part, name: part.truth(name),
    "int": lambda part, name: part.whole(name, 0, MAX_FEATURES),
    "list": lambda part, name: part.texts(name),
}


# Encoders


def write_encoder(encoder: Any, out: Arrays) -> Values:
    kind = kind_of(encoder, ENCODERS)
    if isinstance(encoder, TextEncoder):
        components = None if encoder.components is None else out.add(encoder.components)
        words = {"vocabulary": out.add_lines(encoder.vocabulary), "idf": out.add(encoder.idf)}
        return {"kind": kind, **words, "components": components, "divisor": encoder.divisor}
    return {"kind": kind, **vars(encoder)}


def read_category(part: Part) -> CategoryEncoder:
    values = part.texts("values")
    if not 0 < len(set(values)) == len(values) <= MAX_VALUES:
        part.refuse("values", f"are not up to {MAX_VALUES:,} different ones")
    return CategoryEncoder(values, part.truth("has_gap"))


def read_date(part: Part) -> DateEncoder:
    unit = part.text("unit", ["day", "ms", "us", "ns"])
    zone = part.text("zone") if part.has("zone") else None
    format = part.text("format") if part.has("format") else None
    if zone is not None and (unit == "day" or not ZONE.fullmatch(zone)):
        part.refuse("zone", "is no time zone")
    if format is not None and not FORMAT_OF_DATES.fullmatch(format):
        part.refuse("format", "is no format of dates")
    encoder = DateEncoder(format, unit, zone, part.whole("n_parts", 3, 3 if unit == "day" else 4))
    try:  # polars knows which zones and formats there are
        encoder.encode(pl.Series(["2020-01-02"]))
        encoder.encode(pl.Series([0]).cast(pl.Datetime("us")))
    except Exception:
        part.refuse("format", "or zone is none of dates")
    return encoder


def read_text(part: Part) -> TextEncoder:
    vocabulary = part.lines("vocabulary")
    if len(set(vocabulary)) < len(vocabulary):
        part.refuse("vocabulary", "holds an n-gram twice")
    size = len(vocabulary)
    idf = part.array("idf", "f", (size,), 0, LARGE).astype(np.float64)
    components = None
    if part.has("components"):
        components = part.array("components", "f", (COMPONENTS, size), -LARGE, LARGE).astype(np.float32)
    return TextEncoder(vocabulary, idf, components, part.real("divisor", TINY, LARGE))


ENCODERS: dict[str, type] = {
    "nothing": NoEncoder,
    "number": NumberEncoder,
    "category": CategoryEncoder,
    "date": DateEncoder,
    "text": TextEncoder,
}
READ: dict[str, Any] = {
    "nothing": lambda part: NoEncoder(),
    "number": lambda part: NumberEncoder(),
    "category": read_category,
    "date": read_date,
    "text": read_text,
}
ENCODERS_OF = {"number": ["number"], "category": ["category"], "date": ["date"], "text": ["text", "nothing"]}
CHOICES = {"kind": [*ENCODERS_OF, "vector", "dropped"]}  # fields of a column that are words out of a list


def read_encoder(part: Part, column: Column) -> Encoder:
    encoder: Encoder = READ[part.text("kind", ENCODERS_OF[column.kind])](part)
    if encoder.n_features != column.n_features:
        part.refuse("kind", "has another number of features than its column")
    return encoder


# The steps


def write_features(features: TableFeatures, out: Arrays) -> Values:
    arrays = {name: out.add(getattr(features, name)) for name in ("filling", "low", "high", "centre", "spread")}
    return {
        "scale": features.scale,
        "seed": features.seed,
        "columns": [write_column(column) for column in features.columns],
        "encoders": [write_encoder(encoder, out) for encoder in features.encoders.values()],
        **arrays,
        "vector_spread": out.add(np.array(features.vector_spread, dtype=np.float64)),
    }


def read_features(part: Part) -> TableFeatures:
    features = TableFeatures(part.text("scale", SCALES), part.whole("seed", 0, 2**63) if part.has("seed") else None)
    features.columns = [read_column(column) for column in part.parts("columns")]
    names = [column.name for column in features.columns]
    if not features.used or len(set(names)) < len(names):
        part.refuse("columns", "have no names of their own")
    plain = [column for column in features.used if column.kind != "vector"]
    encoders = list(part.parts("encoders"))
    if len(encoders) != len(plain):
        part.refuse("encoders", "are not as many as the columns")
    features.encoders = {
        column.name: read_encoder(encoder, column) for column, encoder in zip(plain, encoders, strict=True)
    }
    read_scales(features, part, sum(column.n_features for column in plain))
    return features


def read_scales(features: TableFeatures, part: Part, d: int) -> None:
    """Fillings, bounds, centres and divisors of d features, and of vectors."""
    features.filling, features.centre = (part.array(name, "f", (d,), -LARGE, LARGE) for name in ("filling", "centre"))
    features.low, features.high = (part.array(name, "f", (d,), -np.inf, np.inf) for name in ("low", "high"))
    if (features.low > features.high).any():
        part.refuse("low", "is above high")
    features.spread = part.array("spread", "f", (d,), TINY, LARGE)
    vectors = [column for column in features.used if column.kind == "vector"]
    spread = part.array("vector_spread", "f", (len(vectors),), TINY, LARGE)
    if any(column.n_features == 0 for column in vectors) or (not d and len(vectors) == 1 and spread[0] != 1):
        part.refuse("vector_spread", "does not fit its columns")
    features.vector_spread = spread.tolist()


def width_of(features: TableFeatures) -> int:
    """The number of features."""
    return sum(column.n_features for column in features.used)
