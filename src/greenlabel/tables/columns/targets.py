"""The column to fill: which rows carry a label, which classes there are, and what looks wrong about them.

A column may come in parts: what each part holds is found by itself (Found), and joined.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.optional import requires
from greenlabel.errors import LabelError
from greenlabel.tables.io.number_text import GAPS

with requires("tables"):
    import polars as pl

Ints = NDArray[np.integer]

MANY_CLASSES = 1000  # more are a column of names, or of measurements
FEW_CLASSES = 2  # no more than these are classes, whatever they are called and however often they come


@dataclass(frozen=True)
class Found:
    """The labels of some rows: which there are, how often each, and where."""

    labels: pl.Series  # each once, in the order in which they came
    counts: Ints  # of each
    codes: NDArray[np.int32]  # (n,) index of the label of each row among them, -1 where there is none


def read_target(column: pl.Series, unlabelled: list[str], min_classes: int = 2) -> tuple[list[Any], Ints]:
    """The classes in their order, and for each row the index of its label among them, -1 where there is none."""
    classes, codes = join_labels([find_labels(column, unlabelled)], min_classes)
    return classes, codes.astype(np.int64)


def find_labels(column: pl.Series, unlabelled: list[str]) -> Found:
    """The labels of a column, or of a part of it."""
    check_type(column)
    known = has_label(column, unlabelled)
    found = pl.DataFrame({"label": column.filter(known)}).group_by("label", maintain_order=True).len("rows")
    indexed = found.select("label").with_row_index("code")
    codes = pl.DataFrame({"label": column}).join(indexed, on="label", how="left", maintain_order="left")["code"]
    at = np.where(known.to_numpy(), codes.cast(pl.Int32).fill_null(-1).to_numpy(), -1).astype(np.int32)
    return Found(found["label"].alias(column.name), found["rows"].to_numpy().astype(np.int64), at)


def join_labels(parts: list[Found], min_classes: int = 2) -> tuple[list[Any], Ints]:
    """The classes and codes of a whole column from those of its parts; fewer classes than are needed are refused."""
    labels = pl.DataFrame(
        {"label": pl.concat([part.labels for part in parts]), "rows": np.concatenate([part.counts for part in parts])}
    )
    labels = labels.group_by("label", maintain_order=True).agg(pl.col("rows").sum())
    n = sum(len(part.codes) for part in parts)
    classes = checked_classes(labels["label"].alias(parts[0].labels.name), labels["rows"], n, min_classes)
    code_of = {label: code for code, label in enumerate(classes)}
    codes = [np.array([*(code_of[_plain(label)] for label in part.labels.to_list()), -1], np.int32) for part in parts]
    return classes, np.concatenate([code[part.codes] for code, part in zip(codes, parts, strict=True)])


def checked_classes(labels: pl.Series, rows: pl.Series, n: int, min_classes: int = 2) -> list[Any]:
    """The classes in their order, from the labels that n rows hold and the number of rows of each."""
    name = labels.name
    given = int(rows.sum())
    if not given and min_classes:
        raise LabelError(
            f"Column {name!r} holds no label in {n:,} rows; label rows of two classes at least "
            "(`greenlabel suggest` says which)."
        )
    check_kind(labels, rows)
    classes = sorted(map(_plain, labels.to_list()), key=_rank)
    if len(classes) == 1 < min_classes:
        raise LabelError(f"Column {name!r} holds a single class ({classes[0]}); label a row of another class too.")
    if len(classes) > MANY_CLASSES and 2 * len(classes) > given:
        raise LabelError(
            f"Column {name!r} holds {len(classes):,} classes in {given:,} labels, hardly one twice; "
            "name the column of classes by --target."
        )
    return classes


def check_type(column: pl.Series) -> None:
    dtype = column.dtype
    if (
        dtype.is_nested()
        or dtype.is_temporal()
        or dtype in (pl.Object, pl.Binary)
        or isinstance(dtype, pl.BaseExtension)
    ):
        raise LabelError(
            f"Column {column.name!r} holds {dtype} values, which are no classes; give text or whole numbers."
        )


def _plain(label: Any) -> Any:
    """Decimals, which are whole here, as the integers that they are."""
    return int(label) if isinstance(label, Decimal) else label


def has_label(column: pl.Series, unlabelled: list[str]) -> pl.Series:
    """Rows whose label is neither null, NaN nor blank, nor one of the values that mean "none"."""
    known = column.is_not_null()
    if column.dtype.is_float():
        known &= column.is_not_nan().fill_null(False)
    if unlabelled or not column.dtype.is_numeric():
        text = column.cast(pl.String)
        known &= (text.str.strip_chars() != "").fill_null(False) & ~text.is_in(unlabelled).fill_null(False)
        for value in unlabelled if column.dtype.is_numeric() else []:  # -1 and -1.0 are one
            known &= (column.cast(pl.Float64) != _number(value)).fill_null(False)
    return known


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return np.inf


def check_kind(labels: pl.Series, rows: pl.Series) -> None:
    """Classes are text, whole numbers, or true and false."""
    name = labels.name
    bare = labels if labels.dtype.is_numeric() else labels.cast(pl.String).str.strip_chars()
    numbers = bare.cast(pl.Float64, strict=False)
    if 0 < numbers.null_count() < len(labels):
        number, word = labels.filter(numbers.is_not_null())[0], labels.filter(numbers.is_null())[0]
        rare = number if 2 * int(rows.filter(numbers.is_null()).sum()) > int(rows.sum()) else word
        raise LabelError(
            f"Column {name!r} mixes numbers and text ({number} and {word}); make all labels of one kind, "
            f"or say that one means no label (--unlabelled {rare})."
        )
    if numbers.null_count() == 0 and (numbers != numbers.floor()).any():
        example = labels.filter(numbers != numbers.floor())[0]
        raise LabelError(f"Column {name!r} holds {example}, a measurement and no class; round or bin it first.")


def doubts(classes: list[Any], n_labels: int | None = None) -> list[str]:
    """Warnings about classes that may not be meant: they are taken as they are. n_labels rows have one."""
    return [
        *_lookalikes(classes),
        *(
            f"{label!r} is taken as a class; if it means no label, say --unlabelled {label}."
            for label in doubtful(classes)
        ),
        *([_all_different(classes)] if n_labels == len(classes) > FEW_CLASSES else []),
    ]


def doubtful(classes: list[Any]) -> list[Any]:
    """Classes that may mean "no label": usual signs for a gap, and -1 among numbers that leave two others."""
    signs = [label for label in classes if isinstance(label, str) and label.strip().lower() in GAPS]
    numbers = [_number(str(label)) for label in classes]
    is_numeric = bool(np.isfinite(numbers).all()) and not any(isinstance(label, bool) for label in classes)
    if not is_numeric or len(classes) <= FEW_CLASSES:  # -1 and 1 alone are two classes
        return signs
    return signs + [
        label if isinstance(label, str) else -1 for label, n in zip(classes, numbers, strict=True) if n == -1
    ]


def _all_different(classes: list[Any]) -> str:
    if np.isfinite([_number(str(label)) for label in classes]).all():
        return (
            f"All {len(classes):,} labels are different numbers; is this a number to predict? Each is taken as a "
            "class: bin them first, or name another --target."
        )
    return (
        f"All {len(classes):,} labels are different, so each is a class of its own; if they name the rows, name "
        "another --target, else label more rows of each class."
    )


def _lookalikes(classes: list[Any]) -> list[str]:
    """Classes that differ by blanks or capitals alone."""
    groups: dict[str, list[str]] = {}
    for label in classes:
        if isinstance(label, str):
            groups.setdefault(" ".join(label.split()).casefold(), []).append(label)
    return [
        f"Labels {' and '.join(map(repr, group))} differ by blanks or capitals alone and are kept apart; "
        "make them equal if they mean the same."
        for group in groups.values()
        if len(group) > 1
    ]


def _rank(label: Any) -> Any:
    """Numbers by size, also where they are text; text by its letters."""
    if not isinstance(label, str):
        return (0, label, "")
    number = _number(label)
    return (0, number, label) if np.isfinite(number) else (1, 0.0, label)
