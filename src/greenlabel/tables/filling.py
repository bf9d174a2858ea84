"""Predictions into the table: the filled column, and for each label its source and its confidence.

n rows, c classes      predictions (n,) index of the class of each row, -1 for none      probabilities (n, c)
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.optional import requires
from greenlabel._common.parameters import check_real
from greenlabel.errors import LabelError, ParameterError, TableError
from greenlabel.tables.columns.rounds import MARKS, Round, named_counts, read_round
from greenlabel.tables.columns.targets import doubtful
from greenlabel.tables.io.files import nearest_name
from greenlabel.tables.model_files.saved import SavedModel

with requires("tables"):
    import polars as pl


def check_target(table: pl.DataFrame, target: str) -> None:
    if target not in table.columns:
        raise TableError(f"The table has no column {target!r}; {nearest_name(target, table.columns)}")


def check_not_full(
    target: str, classes: list[Any], given: NDArray[np.integer], advice: str = "empty the cells that are to be filled"
) -> None:
    if not len(given):
        raise TableError("The table holds no rows; give one with rows to label.")
    if (given >= 0).all():
        signs = "".join(f" If {label} means no label, say --unlabelled {label}." for label in doubtful(classes))
        raise TableError(f"Every row of {target!r} has a label already; {advice}.{signs}")


def check_confident(only_confident: float | None) -> None:
    if only_confident is not None and check_real("only_confident", only_confident, 0) > 1:
        raise ParameterError(f"only_confident={only_confident} is above 1, which no confidence is; give a share.")


def decided(probabilities: Any, only_confident: float | None) -> Any:
    """(n,) the index of the most likely class; -1 where it is not likely enough."""
    predictions = probabilities.argmax(axis=1)
    if only_confident is not None:
        predictions[probabilities.max(axis=1) < only_confident] = -1
    return predictions


def labelled_columns(
    column: pl.Series, classes: list[Any], origin: Any, predictions: Any, probabilities: Any
) -> list[pl.Series]:
    """The filled column, the source and the confidence of each label, and what was filled in."""
    is_given = origin > 0
    # A value that stands for "no label" gives way to nothing where the row is left empty.
    column = column.set(pl.Series(~is_given), None)
    filled = fill(column, classes, np.where(is_given, -1, predictions))
    predicted = filled.set(pl.Series(is_given), None).alias(f"{column.name}_predicted")
    return [filled, *confidence_columns(column.name, origin, predictions, probabilities), predicted]


def fill(column: pl.Series, classes: list[Any], predictions: NDArray[np.integer]) -> pl.Series:
    """The column with the predicted classes in it; -1 leaves a cell as it is, without a label."""
    labels = pl.Series(classes).cast(column.dtype)
    indices = pl.Series(np.maximum(predictions, 0), dtype=pl.UInt32)
    frame = pl.DataFrame({"old": column, "new": labels.gather(indices), "is_predicted": predictions >= 0})
    return frame.select(pl.when("is_predicted").then("new").otherwise("old").alias(column.name)).to_series()


def confidence_columns(target: str, origin: Any, predictions: Any, probabilities: Any) -> list[pl.Series]:
    """The source of each label, its confidence and its margin; both are 1 where the label was given."""
    is_given = origin > 0
    top = np.partition(probabilities, -2, axis=1)[:, -2:]
    source = np.where(~is_given & (predictions >= 0), "predicted", MARKS[origin])
    return [
        pl.Series(f"{target}_source", source.tolist(), dtype=pl.String),
        pl.Series(f"{target}_confidence", np.where(is_given, 1.0, top[:, 1]).round(4)),
        pl.Series(f"{target}_margin", np.where(is_given, 1.0, top[:, 1] - top[:, 0]).round(4)),
    ]


def round_of_new_rows(table: pl.DataFrame, saved: SavedModel, rows: Any = None) -> Round:
    """The labels that new rows have already; none where they lack the column."""
    if saved.target in table.columns:
        return read_round(table, saved.target, saved.unlabelled, rows)
    labels = pl.Series(saved.target, [None] * table.height)
    return Round(labels, np.zeros(table.height, np.int8), 0)


def target_of_new_rows(old: Round, saved: SavedModel, holds_labels: bool | None = None) -> pl.Series:
    """The column that the labels go into: the table's own if it holds some, and can hold the model's classes.

    ``holds_labels`` says whether the whole table does, where this one is a part of it.
    """
    labels = pl.Series(saved.classes)
    column = old.labels
    if holds_labels is None:
        holds_labels = bool(old.origin.any())
    if not holds_labels and column.dtype != pl.String:
        return pl.Series(saved.target, [None] * len(column), dtype=labels.dtype)
    try:
        labels.cast(column.dtype)
    except pl.exceptions.PolarsError as error:
        example = "".join(f" ({value})" for value in column.drop_nulls().head(1))
        raise LabelError(
            f"Column {saved.target!r} holds {column.dtype} values{example}, the classes of the model "
            f"are others ({saved.classes[0]}); rename or drop the column."
        ) from error
    return column


def prediction_facts(
    saved: SavedModel, old: Round, predictions: Any, is_reached: Any, unseen: dict[str, int]
) -> dict[str, Any]:
    """What new rows were given."""
    is_given = old.origin > 0
    counts = np.bincount(predictions[~is_given & (predictions >= 0)], minlength=len(saved.classes))
    return {
        "rows": len(predictions),
        "target": saved.target,
        "labels_given": int(is_given.sum()),
        "label_sources": named_counts(old.counts),
        "labels_predicted": dict(zip(map(str, saved.classes), counts.tolist(), strict=True)),
        "rows_left_empty": int((~is_given & (predictions < 0)).sum()),
        "rows_not_reached": int((~is_reached & ~is_given).sum()),
        "values_never_seen": unseen,
    }
