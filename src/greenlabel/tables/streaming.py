"""A table that does not fit in memory: labelled in blocks of its rows, here or on a cluster.

    target column -> classes and codes of all rows            one pass, this column alone
    sample -> the steps from columns to features              one pass
    blocks -> features -> BlendedClassifier                   experts on the labelled rows, nearest anchors, sums
    blocks -> predictions -> the output, block by block

Every row is held as the code of its label, and as its features, nearest anchors and scores where those fit. The
sample is drawn from the seed; it holds every labelled row, up to LABELLED_ROWS of them. A value that fits no type of
the sample is a gap, and counted. On a cluster the workers read the input and send back sums and predictions; rows are
written here.
"""

import warnings
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.optional import requires
from greenlabel.blend.classifier import BlendedClassifier
from greenlabel.errors import ParameterError
from greenlabel.estimators.anchored import AnchoredGreenClassifier
from greenlabel.graph.projection import sample_rows
from greenlabel.tables.columns.features import TableFeatures, choose_columns, matching
from greenlabel.tables.columns.rounds import (
    added_names,
    check_names_free,
    named_counts,
    read_round,
    round_columns,
    round_doubts,
)
from greenlabel.tables.columns.targets import join_labels
from greenlabel.tables.filling import (
    check_confident,
    check_not_full,
    check_target,
    decided,
    labelled_columns,
    prediction_facts,
    round_of_new_rows,
    target_of_new_rows,
)
from greenlabel.tables.io.parts import Write
from greenlabel.tables.labelling import TableResult, all_doubts, evaluate, graph_facts
from greenlabel.tables.model_files.saved import SavedModel
from greenlabel.tables.outcome import Tally
from greenlabel.tables.passes import FindLabels, HoldLabels, MakeFeatures, PredictNewRows, Run

with requires("tables"):
    import polars as pl

Ints = NDArray[np.integer]

SAMPLE_ROWS = 50_000  # from which features are learned
LABELLED_ROWS = 10_000  # with a label, beside them
MIN_SAMPLE = 10_000  # rows, however wide
SAMPLE_BYTES = 2**30  # limits wide rows; not the memory that is free, which changes
PAGE_ROWS = 5_000  # kept for the report
METHODS_IN_BLOCKS: dict[str, type[BlendedClassifier] | type[AnchoredGreenClassifier]] = {
    "auto": BlendedClassifier,
    "anchored": AnchoredGreenClassifier,
}
STAGE = {"auto": "experts", "anchored": "graph"}  # in which a model is fitted


def refuse_in_blocks(**options: Any) -> None:
    """Refuse what a table in blocks cannot have; the names are those of the command line."""
    for option, value in options.items():
        if value is not None:
            raise ParameterError(
                f"--{option} {value} is not for a table that is read in blocks; leave it out, or give one file that "
                "fits in memory (--memory-limit), without --scheduler."
            )


def label_stream(
    run: Run,
    target: str,
    write: Write,
    *,
    features: list[str] | None = None,
    drop: list[str] | None = None,
    id: list[str] | None = None,
    unlabelled: list[str] | None = None,
    scale: str = "auto",
    only_confident: float | None = None,
    method: str = "auto",
    random_state: int = 0,
    memory_limit: int | None = None,
) -> TableResult:
    """What label_table does, for a table in blocks; ``write`` takes the filled blocks.

    The result holds a sample of the rows, and counts of all.
    """
    check_confident(only_confident)
    unlabelled = unlabelled or []
    with run.stages("reading"):
        classes, given, sources, unrecorded = labels_of(run, target, unlabelled)
    with run.stages("features"):
        sample = sample_of(given, sample_size(run.table), random_state)
        steps = learn_features(run, TableFeatures(scale, random_state), target, (features, drop, id), sample)
    with run.stages(STAGE[method]):
        model, cautions = fit_in_blocks(run, steps, given, method, random_state, memory_limit)
    with run.stages("check"):
        validation = evaluate(model)
    drawn = sample_rows(len(given), PAGE_ROWS, np.random.default_rng(random_state))
    page = ForPage(np.union1d(validation.rows, drawn))
    filler = Filler(
        target, unlabelled, classes, given, steps, only_confident, page, isinstance(model, BlendedClassifier)
    )
    with run.stages("writing"):
        for rows, frame, prediction in run.beside(run.cut(model.predict_proba_all_rows())):
            write(filler.filled(rows, frame, *prediction))
    return page.result(
        target=target,
        classes=classes,
        validation=replace(validation, rows=np.searchsorted(page.numbers, validation.rows)),
        columns=steps.columns,
        method=type(model).__name__,
        graph=graph_facts(model),
        seconds=run.stages.seconds,
        warnings=all_doubts(target, unrecorded, classes, given, cautions),
        label_sources=named_counts(sources),
        experts=getattr(model, "expert_scores_", {}),
        model=model,
        features=steps,
        whole=filler.tally,
        only_confident=only_confident or 0.0,
        stream=run.facts(sample_rows=len(sample), values_never_seen=dict(filler.unseen)),
        unlabelled=unlabelled,
    )


def labels_of(
    run: Run, target: str, unlabelled: list[str], min_classes: int = 2, *advice: str, adds_columns: bool = True
) -> tuple[list[Any], Ints, Ints, int]:
    """The classes, the codes of all rows, where the labels are from, and how many cells have no record of that."""
    check_target(pl.DataFrame(schema=run.table.schema), target)
    if adds_columns:
        check_names_free(run.table.names, target)
    parts = list(run.columns(round_columns(run.table.names, target)).map(FindLabels(target, unlabelled)))
    found, counts, unrecorded = zip(*parts, strict=True)
    classes, given = join_labels(list(found), min_classes)
    check_not_full(target, classes, given, *advice)
    return classes, given, np.sum(counts, axis=0), sum(unrecorded)


def learn_features(
    run: Run, steps: TableFeatures, target: str, patterns: tuple[list[str] | None, ...], sample: Ints
) -> TableFeatures:
    """The steps from columns to features, learned from some rows; patterns are those of features, drop and id."""
    own = [name for name in run.table.names if name not in added_names(run.table.names, target)]
    names = choose_columns(own, target, *patterns)
    wanted = matching(own, patterns[0], "--features")
    pieces = [piece for _, piece in run.columns(names).take(sample)] if names else [pl.DataFrame()]
    steps.fit_transform(pl.concat(pieces), names, wanted, sample.tolist())
    return steps


def fit_in_blocks(
    run: Run, steps: TableFeatures, given: Ints, method: str, random_state: int, memory_limit: int | None
) -> tuple[BlendedClassifier | AnchoredGreenClassifier, list[str]]:
    """The fitted model, and what it warned of."""
    limit = "auto" if memory_limit is None else memory_limit
    model = METHODS_IN_BLOCKS[method](random_state=random_state, memory_limit=limit)
    X = features_in_blocks(run, steps)
    with warnings.catch_warnings(record=True) as cautions:
        warnings.simplefilter("always", UserWarning)
        model.fit(X, given)
    return model, [str(caution.message) for caution in cautions]


def features_in_blocks(run: Run, steps: TableFeatures) -> Any:
    """The features of all rows, made as they are read."""
    return run.columns([column.name for column in steps.used]).through(MakeFeatures(steps))


def sample_size(table: Any) -> int:
    """Rows of the sample: the same on any machine."""
    fitting = int(SAMPLE_BYTES / max(1.0, table.memory_bytes / table.n))
    return min(SAMPLE_ROWS, max(MIN_SAMPLE, fitting))


def sample_of(given: Ints, size: int, seed: int) -> Ints:
    """Numbers of rows, ascending: drawn from all, and from those with a label."""
    rng = np.random.default_rng(seed)
    drawn = sample_rows(len(given), size, rng)
    labelled = np.flatnonzero(given >= 0)
    return np.union1d(drawn, labelled[sample_rows(len(labelled), LABELLED_ROWS, rng)])


@dataclass
class ForPage:
    """Some rows with their predictions, picked as the blocks go by."""

    numbers: Ints  # ascending
    frames: list[pl.DataFrame] = field(default_factory=list)
    arrays: list[tuple[Any, ...]] = field(default_factory=list)

    def add(self, rows: range, frame: pl.DataFrame, *arrays: Any) -> None:
        start, stop = np.searchsorted(self.numbers, [rows.start, rows.stop])
        indices = self.numbers[start:stop] - rows.start
        self.frames.append(frame[indices])
        self.arrays.append(tuple(array[indices] for array in arrays))

    def result(self, features: TableFeatures, **facts: Any) -> TableResult:
        """The outcome for these rows."""
        frame = pl.concat(self.frames)
        given, probabilities, predictions, is_reached = map(np.concatenate, zip(*self.arrays, strict=True))
        return TableResult(
            frame=frame,
            given=given,
            probabilities=probabilities,
            predictions=predictions,
            is_reached=is_reached,
            X=features.transform(frame, self.numbers.tolist(), strict=False)[0],
            features=features,
            numbers=self.numbers,
            **facts,
        )


@dataclass
class Filler:
    """Fills the blocks one after the other, and counts what went by."""

    target: str
    unlabelled: list[str]
    classes: list[Any]
    given: Ints  # codes of all rows
    steps: TableFeatures
    only_confident: float | None
    page: ForPage
    is_blend: bool
    tally: Tally | None = None
    unseen: Counter[str] = field(default_factory=Counter)

    def filled(self, rows: range, frame: pl.DataFrame, probabilities: Any, is_reached: Any) -> pl.DataFrame:
        given = self.given[rows.start : rows.stop]
        predictions = np.where(given >= 0, given, decided(probabilities, self.only_confident))
        tally = Tally.of(given, predictions, probabilities, is_reached, self.is_blend)
        self.tally = tally if self.tally is None else self.tally + tally
        self.unseen.update(self.steps.unseen(frame))
        own = frame.drop(added_names(frame.columns, self.target))
        self.page.add(rows, own, given, probabilities, predictions, is_reached)
        found = read_round(frame, self.target, self.unlabelled, rows)
        return frame.with_columns(
            labelled_columns(found.labels, self.classes, found.origin, predictions, probabilities)
        )


# New rows


def predict_stream(run: Run, saved: SavedModel, write: Write, only_confident: float | None = None) -> dict[str, Any]:
    """What predict_table does, for a table in blocks."""
    check_names_free(run.table.names, saved.target)
    saved.features.check_columns(run.table.names)
    with run.stages("reading"):
        holds_labels = hold_labels(run, saved)
    with run.stages("writing"):
        used = run.columns([column.name for column in saved.features.used])
        parts = [
            write_predictions(saved, rows, frame, prediction, holds_labels, only_confident, write)
            for rows, frame, prediction in run.beside(used.map(PredictNewRows(saved.features, saved.model)))
        ]
    facts, unrecorded = zip(*parts, strict=True)
    return {
        **joined_facts(list(facts)),
        "warnings": round_doubts(saved.target, sum(unrecorded)),
        "stream": run.facts(),
    }


def hold_labels(run: Run, saved: SavedModel) -> bool:
    """Whether the column that the labels go into holds some."""
    if saved.target not in run.table.names:
        return False
    columns = run.columns(round_columns(run.table.names, saved.target))
    return any(list(columns.map(HoldLabels(saved.target, saved.unlabelled))))


def write_predictions(
    saved: SavedModel,
    rows: range,
    frame: pl.DataFrame,
    predicted: Any,
    holds_labels: bool,
    only_confident: float | None,
    write: Write,
) -> tuple[dict[str, Any], int]:
    """Write a block with its predictions. Returns the facts, and how many cells lack a record of what was filled in."""
    probabilities, is_reached, unseen = predicted
    predictions = decided(probabilities, only_confident)
    old = round_of_new_rows(frame, saved, rows)
    column = target_of_new_rows(old, saved, holds_labels)
    write(frame.with_columns(labelled_columns(column, saved.classes, old.origin, predictions, probabilities)))
    return prediction_facts(saved, old, predictions, is_reached, unseen), old.unrecorded


def joined_facts(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The facts of all blocks: numbers are added up."""
    whole = dict(parts[0])
    for part in parts[1:]:
        for name, value in part.items():
            if isinstance(value, dict):
                whole[name] = {key: whole[name].get(key, 0) + value.get(key, 0) for key in {**whole[name], **value}}
            elif isinstance(value, int):
                whole[name] += value
    return whole
