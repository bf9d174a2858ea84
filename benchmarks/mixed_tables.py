"""Tables as people have them, generated: numbers, categories, dates, a text, gaps, and a column with few labels."""

import datetime
from typing import Any

import numpy as np
import polars as pl

Array = np.ndarray[Any, Any]
LABELS = 20
FIRST_DAY = datetime.date(2021, 1, 1)


def mixed_table(seed: int) -> tuple[pl.DataFrame, pl.Series, dict[str, Any]]:
    """A table whose column "kind" has twenty labels, that column without a gap, and what kind of table it is.

    Two to six classes; each column tells them apart as well as chance has it, and some not at all. Even seeds draw
    their labels at random, odd ones as many of each class.
    """
    rng = np.random.default_rng([seed, 12])
    c, n, by_class = int(rng.integers(2, 7)), int(rng.choice([400, 800])), bool(seed % 2)
    shares = rng.dirichlet(np.full(c, 8.0))
    y = np.concatenate([np.repeat(np.arange(c), 10), rng.choice(c, n - 10 * c, p=shares)])[rng.permutation(n)]
    frame = pl.DataFrame(columns(y, c, rng))
    is_given = drawn_labels(y, c, by_class, rng)
    kind = pl.Series("kind", [f"kind {code}" for code in y])
    given = pl.Series("kind", [name if known else None for name, known in zip(kind, is_given, strict=True)])
    facts = {"variant": f"mixed tables, {LABELS} labels", "classes": c, "per_class": LABELS // c, "by_class": by_class}
    return frame.with_columns(given), kind, facts


def columns(y: Array, c: int, rng: np.random.Generator) -> list[pl.Series]:
    numbers = [pl.Series(f"number {i}", number(y, c, rng)) for i in range(rng.integers(2, 6))]
    categories = [pl.Series(f"category {i}", category(y, c, rng)) for i in range(rng.integers(1, 4))]
    return [with_gaps(column, rng) for column in (*numbers, *categories, date(y, c, rng), text(y, c, rng))]


def number(y: Array, c: int, rng: np.random.Generator) -> Array:
    value = (rng.normal(size=c) * rng.choice([0.0, 1.0, 1.5]))[y] + rng.normal(size=len(y))
    return np.exp(value).round(3) if rng.random() < 0.3 else (value * 10.0 ** rng.integers(0, 4)).round(2)


def category(y: Array, c: int, rng: np.random.Generator) -> list[str]:
    k = int(rng.integers(3, 7))
    likely = rng.dirichlet(np.full(k, rng.choice([0.5, 1.0, 5.0])), size=c).cumsum(axis=1)
    return [f"value {code}" for code in (rng.random((len(y), 1)) > likely[y][:, :-1]).sum(axis=1)]


def date(y: Array, c: int, rng: np.random.Generator) -> pl.Series:
    days = 500 + 120 * rng.normal(size=c)[y] + 150 * rng.normal(size=len(y))
    return pl.Series("date", [FIRST_DAY + datetime.timedelta(int(day)) for day in days])


def text(y: Array, c: int, rng: np.random.Generator) -> pl.Series:
    """Six words, of which some are those of the class."""
    telling = rng.choice([0.1, 0.3])
    own, common = rng.integers(0, 8, (len(y), 6)), rng.integers(0, 40, (len(y), 6))
    is_own = rng.random((len(y), 6)) < telling
    rows = np.where(is_own, 100 + 8 * y[:, None] + own, common)
    return pl.Series("text", [" ".join(f"word{code}" for code in row) for row in rows])


def with_gaps(column: pl.Series, rng: np.random.Generator) -> pl.Series:
    is_gap = rng.random(len(column)) < rng.choice([0.0, 0.05, 0.2])
    return pl.Series(column.name, [None if gap else value for gap, value in zip(is_gap, column, strict=True)])


def drawn_labels(y: Array, c: int, by_class: bool, rng: np.random.Generator) -> Array:
    """Which rows have a label (n,)."""
    order = rng.permutation(len(y))
    if by_class:
        rows = np.concatenate([order[y[order] == j][: LABELS // c] for j in range(c)])
    else:
        rows = order[:LABELS]
    return np.isin(np.arange(len(y)), rows)
