"""The rows of a table to label next, as a table: rank, row, reason, covers, between, and the row's own columns.

    table, facts = suggest_table(frame, "species")

Before there are labels of two classes, rows that cover the data come; with them, those of the fitted model. Row 1 is
the first one below the column names.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.optional import requires
from greenlabel._common.parameters import check_integer
from greenlabel._common.stages import Announce, Stages
from greenlabel.inspection.suggesting import Suggestions, suggest_with_labels, suggest_without_labels
from greenlabel.tables.columns.features import TableFeatures
from greenlabel.tables.frames import as_polars, rows_after_columns
from greenlabel.tables.labelling import METHODS, all_doubts, as_list, check_options, fit, read
from greenlabel.tables.outcome import as_array, suggestion_facts
from greenlabel.tables.passes import Run
from greenlabel.tables.report.words import one_line
from greenlabel.tables.streaming import (
    STAGE,
    features_in_blocks,
    fit_in_blocks,
    labels_of,
    learn_features,
    sample_of,
    sample_size,
)

with requires("tables"):
    import polars as pl

Ints = NDArray[np.integer]

NONE_LEFT = "add rows without a label to get some to label next"


def suggest_table(
    frame: Any,
    target: Any,
    n: int = 20,
    *,
    features: str | list[str] | None = None,
    drop: str | list[str] | None = None,
    id: str | list[str] | None = None,
    unlabelled: Any = None,
    vectors: Any = None,
    scale: str = "auto",
    method: str = "auto",
    random_state: int = 0,
    announce: Announce | None = None,
) -> tuple[Any, dict[str, Any]]:
    """The rows of a frame to label next, best first, from no label on.

    Parameters
    ----------
    frame : DataFrame
        Of pandas or polars.
    target : str
        The column to fill; it may be empty in all rows, or hold one class so far.
    n : int, default 20
        How many rows.
    features, drop, id : str, list of str or None, default None
        Names or patterns (``"pixel*"``) of columns to learn from, to leave out, to pass through.
    unlabelled : str, list or None, default None
        Further values of the target that mean "no label".
    vectors : (n, d) array or None, default None
        Embeddings, one row for each row of the frame.
    scale : {"auto", "none", "standard"}, default "auto"
        As in ``label_table``.
    method : {"auto", "green", "anchored", "consistency", "harmonic"}, default "auto"
        As in ``label_table``.
    random_state : int, default 0
        Seeds what is random, as in ``label_table``.
    announce : callable or None, default None
        Called with the name of each stage as it begins.

    Returns
    -------
    table : DataFrame
        n rows of the frame, pandas or polars as it came, behind columns ``rank``, ``row`` (as people count),
        ``reason``, ``covers`` and ``between``; a name that the frame has already begins with ``suggested_``.
    facts : dict
        Rows, labels, the suggestions, warnings.

    Examples
    --------
    >>> import polars as pl
    >>> from greenlabel.tables import suggest_table
    >>> frame = pl.DataFrame({"size": [1.0, 1.1, 1.2, 5.0, 5.1, 5.2], "kind": [None, "S", None, None, None, None]})
    >>> suggest_table(frame, "kind", 1)[0]["size"].item() > 4
    True
    """
    stages = Stages.of(announce)
    check_integer("n", n, 1)
    check_options(method, None, None, random_state)
    with stages("features"):
        patterns = {"features": as_list(features), "drop": as_list(drop), "ids": as_list(id)}
        steps = TableFeatures(scale, random_state)
        task = read(frame, str(target), patterns, as_list(unlabelled), vectors, steps, 0, NONE_LEFT, adds_columns=False)
    cautions: list[str] = []
    if len(task.classes) < 2:
        with stages("next rows"):
            seen = np.flatnonzero(task.given >= 0)
            found = suggest_without_labels(task.X, n, seen, random_state, is_scaled=True)
    else:
        fitted = fit(task, METHODS[method](random_state=random_state), None, stages)
        cautions = fitted.cautions
        with stages("next rows"):
            found = suggest_with_labels(fitted.model, n, names=as_array(task.classes))
    doubts = all_doubts(task.target, task.labels.unrecorded, task.classes, task.given, cautions)
    taken = as_polars(frame).columns
    table = rows_after_columns(frame, [one.row for one in found], suggestion_columns(found, taken))
    return table, facts_of(task.target, task.classes, task.given, found, doubts)


def suggest_stream(
    run: Run,
    target: str,
    n: int,
    *,
    features: list[str] | None = None,
    drop: list[str] | None = None,
    id: list[str] | None = None,
    unlabelled: list[str] | None = None,
    scale: str = "auto",
    method: str = "auto",
    random_state: int = 0,
    memory_limit: int | None = None,
) -> tuple[pl.DataFrame, dict[str, Any]]:
    """What suggest_table does, for a table in blocks.

    Every row is held as its nearest anchors, five numbers and their weights.
    """
    cautions: list[str] = []
    with run.stages("reading"):
        classes, given, _, unrecorded = labels_of(run, target, unlabelled or [], 0, NONE_LEFT, adds_columns=False)
    with run.stages("features"):
        sample = sample_of(given, sample_size(run.table), random_state)
        steps = learn_features(run, TableFeatures(scale, random_state), target, (features, drop, id), sample)
    with run.stages("graph" if len(classes) < 2 else STAGE[method]):
        if len(classes) < 2:
            X, seen = features_in_blocks(run, steps), np.flatnonzero(given >= 0)
            found = suggest_without_labels(X, n, seen, random_state, is_scaled=True)
        else:
            model, cautions = fit_in_blocks(run, steps, given, method, random_state, memory_limit)
            found = suggest_with_labels(model, n, names=as_array(classes))
    with run.stages("next rows"):
        rows = rows_of_blocks(run, [one.row for one in found])
    doubts = all_doubts(target, unrecorded, classes, given, cautions)
    table = pl.DataFrame([*suggestion_columns(found, run.table.names), *rows.get_columns()])
    return table, facts_of(target, classes, given, found, doubts)


def rows_of_blocks(run: Run, rows: list[int]) -> pl.DataFrame:
    """Some rows in their order, with all columns."""
    order = np.argsort(rows, kind="stable")
    pieces = [piece for _, piece in run.table.take(np.array(rows)[order])]
    return pl.concat(pieces)[np.argsort(order).tolist()]


def suggestion_columns(found: Suggestions, taken: Sequence[str]) -> list[pl.Series]:
    """What is said about the rows, under names that the table does not have."""
    columns = {
        "rank": range(1, len(found) + 1),
        "row": [one.row + 1 for one in found],
        "reason": [one_line(one.reason) for one in found],
        "covers": [one.covers for one in found],
        "between": [" or ".join(map(one_line, one.between)) or None for one in found],
    }
    types = {"reason": pl.String, "between": pl.String}
    return [pl.Series(free_name(name, taken), values, types.get(name, pl.Int64)) for name, values in columns.items()]


def free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name = f"suggested_{name}"
    return name


def facts_of(target: str, classes: list[Any], given: Ints, found: Suggestions, doubts: list[str]) -> dict[str, Any]:
    """What the terminal and --json show."""
    counts = np.bincount(given[given >= 0], minlength=len(classes)).tolist()
    return {
        "rows": len(given),
        "target": target,
        "labels_given": dict(zip(map(str, classes), counts, strict=True)),
        "suggestions": [suggestion_facts(one.row + 1, one) for one in found],
        "warnings": doubts,
    }
