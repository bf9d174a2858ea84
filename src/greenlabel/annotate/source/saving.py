"""The outcome as files: what ``greenlabel label`` would write from the labels that were given by hand.

    COLUMN             the label that was given, or else the predicted one; an ignored row keeps what the table had
    COLUMN_source      given (checked, where the table said so and nothing changed), predicted, or nothing

Where no prediction can be made (labels of a single class) or none is needed (all rows have one), the labels alone are
written.
"""

from collections.abc import Mapping, Set
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from greenlabel._common.optional import requires
from greenlabel._common.stages import Stages
from greenlabel.annotate.source.files import MODEL, REPORT, Fingerprint, Output
from greenlabel.annotate.source.options import Options
from greenlabel.errors import LabelError
from greenlabel.tables.columns.features import TableFeatures
from greenlabel.tables.columns.rounds import ADDED, GIVEN, MARKS, NOTHING, Round, as_written
from greenlabel.tables.frames import with_columns
from greenlabel.tables.from_files import warn_left_out
from greenlabel.tables.io.blocks import must_stream
from greenlabel.tables.io.files import after
from greenlabel.tables.labelling import METHODS, TableResult, Task, as_list, assemble, evaluate, fit
from greenlabel.tables.report.words import counted

with requires("tables"):
    import polars as pl


class Saver:
    """Writes the outcome, as often as it is asked for; a later outcome takes the place of an earlier one."""

    def __init__(
        self,
        frame: pl.DataFrame,
        table: pl.DataFrame,
        labels: Round,
        steps: TableFeatures,
        X: Any,
        options: Options,
        fingerprint: Fingerprint,
        output: Output,
    ):
        """``frame`` is the table as it came, ``table`` what is learned from, ``labels`` those that it came with."""
        self.frame, self.table, self.labels, self.steps, self._X = frame, table, labels, steps, X
        self._options, self._fingerprint, self._output = options, fingerprint, output
        self.writing = Lock()  # held while files are written: who ends the process waits for it

    @property
    def name(self) -> str:
        return self._output.name

    def save(self, labels: Mapping[int, str], ignored: Set[int], report: bool, model: bool) -> dict[str, Any]:
        """Write the table, and a report and a model if asked for. Returns their names, and a sentence for people."""
        if not labels:
            raise LabelError("There is no label yet; give some before you save.")
        task = task_of(self.table, self.labels, labels, self.steps, self._X, self._options)
        method = "anchored" if must_stream(str(self._options.table), None, None) else "auto"  # as label has it
        filled, result = outcome_of(self.frame, task, self._options.seed, method)
        filled = with_ignored(filled, self.frame, self._options.target, ignored)
        with self.writing:
            files, cautions = self._write(filled, result, report, model)
        sentences = [*summary(filled, self._options.target, files), *self._cautions(task, result, report or model)]
        return {"files": files, "sentence": " ".join([*sentences, *cautions])}

    def _write(
        self, filled: pl.DataFrame, result: TableResult | None, report: bool, model: bool
    ) -> tuple[list[str], list[str]]:
        """The names of what was written, and what did not fit into it."""
        beside = [self._output.beside(suffix) for suffix, wanted in ((MODEL, model), (REPORT, report)) if wanted]
        left_out = self._output.whole.write(filled)
        files = [self._output.name]
        for path in beside if result is not None else []:
            with after(files, [path.name]):
                self._write_beside(result, path)
            files.append(path.name)
        return files, warn_left_out(self._output.name, left_out)

    def _write_beside(self, result: Any, path: Path) -> None:
        if path.suffix == MODEL:
            result.save(path)
        else:
            result.report(path, title=self._options.table.name)

    def _cautions(self, task: Task, result: TableResult | None, is_more_wanted: bool) -> list[str]:
        found = []
        if result is None and len(task.classes) < 2:
            found.append("All labels are of one class, so nothing could be predicted: label a row of another one.")
        if result is None and is_more_wanted:
            found.append("Without predictions there is neither a report nor a model.")
        if task.labels.labels.dtype != self.labels.labels.dtype:
            found.append(f"Column {task.target!r} is text now, for not all classes are {self.labels.labels.dtype}.")
        if self._fingerprint.has_changed(self._options.table, self._options.sheet):
            name = self._options.table.name
            found.append(f"{name} has changed on disk since it was opened; what was written are its rows from before.")
        return found


def task_of(
    table: pl.DataFrame, old: Round, labels: Mapping[int, str], steps: TableFeatures, X: Any, options: Options
) -> Task:
    """The table with the labels that hold now."""
    rows = np.fromiter(sorted(labels), dtype=np.int64, count=len(labels))
    names = pl.Series([labels[row] for row in rows.tolist()], dtype=pl.String)
    values = as_type(names, old.labels.dtype)
    column = pl.Series(old.labels.name, [None] * table.height, dtype=values.dtype).scatter(rows, values)
    is_old = (as_written(column) == as_written(old.labels)).fill_null(False).to_numpy()
    origin = np.full(table.height, NOTHING, dtype=np.int8)
    origin[rows] = np.where(is_old[rows] & (old.origin[rows] != NOTHING), old.origin[rows], GIVEN)
    classes = values.unique(maintain_order=True).to_list()
    code_of = {label: code for code, label in enumerate(classes)}
    given = np.full(table.height, -1, dtype=np.int64)
    given[rows] = [code_of[value] for value in values.to_list()]
    now = Round(column, origin, old.unrecorded)
    return Task(table, options.target, as_list(options.unlabelled), now, classes, given, steps, X)


def as_type(names: pl.Series, dtype: Any) -> pl.Series:
    """Classes as values of the column; as text where it cannot hold them all."""
    if dtype == pl.Boolean:
        truth = names.replace_strict({"true": True, "false": False}, default=None, return_dtype=pl.Boolean)
        return names if truth.null_count() else truth
    if not dtype.is_numeric():
        return names
    numbers = names.cast(dtype, strict=False)
    return numbers if (as_written(numbers) == names).fill_null(False).all() else names


def outcome_of(
    frame: pl.DataFrame, task: Task, seed: int, method: str = "auto"
) -> tuple[pl.DataFrame, TableResult | None]:
    """The filled table, and what was found out; None where nothing is predicted."""
    if len(task.classes) < 2 or (task.given >= 0).all():
        return with_columns(frame, given_columns(task)), None
    stages = Stages()
    fitted = fit(task, METHODS[method](random_state=seed), None, stages)
    return assemble(frame, task, fitted, evaluate(fitted.model), None, stages)


def given_columns(task: Task) -> list[pl.Series]:
    """The columns that are added otherwise too, without any prediction."""
    column, is_given = task.labels.labels, task.labels.origin > NOTHING
    sure = pl.Series(np.where(is_given, 1.0, np.nan)).fill_nan(None)
    return [
        column,
        pl.Series(f"{task.target}_source", MARKS[task.labels.origin].tolist(), dtype=pl.String),
        sure.alias(f"{task.target}_confidence"),
        sure.alias(f"{task.target}_margin"),
        pl.Series(f"{task.target}_predicted", [None] * len(column), dtype=column.dtype),
    ]


def with_ignored(filled: pl.DataFrame, frame: pl.DataFrame, target: str, ignored: Set[int]) -> pl.DataFrame:
    """Ignored rows as they came: with the cells that the table had, and without a prediction."""
    if not ignored:
        return filled
    rows = sorted(ignored)
    columns = [filled[name] for name in (target, *(f"{target}_{suffix}" for suffix in ADDED))]
    return filled.with_columns(as_it_was(column, frame, rows) for column in columns)


def as_it_was(column: pl.Series, frame: pl.DataFrame, rows: list[int]) -> pl.Series:
    if column.name not in frame.columns:
        before = pl.Series([None] * len(rows), dtype=column.dtype)
    else:
        before = frame[column.name].gather(rows).cast(column.dtype, strict=False)
    return column.clone().scatter(rows, before)


def summary(filled: pl.DataFrame, target: str, files: list[str]) -> list[str]:
    """What was written, in a sentence or two."""
    source = filled[f"{target}_source"]
    predicted = source == "predicted"
    n_given, n_predicted = int(source.is_in(["given", "checked"]).sum()), int(predicted.sum())
    left = filled.height - n_given - n_predicted
    return [
        f"Wrote {listing(files)}: {counted(n_given, 'label')} given, {n_predicted:,} filled in, {left:,} left empty."
    ]


def listing(names: list[str]) -> str:
    """a, b and c."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
