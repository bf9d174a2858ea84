"""A table with a half-empty column in, the filled table out.

    frame, result = label_table(frame, "species")

What the command line does, in Python: pandas and polars frames come back as what they were, with every other column
as it came.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.optional import requires
from greenlabel._common.parameters import check_choice, check_integer, warn_unreached
from greenlabel._common.stages import Announce, Stages
from greenlabel.blend.classifier import BlendedClassifier
from greenlabel.errors import ParameterError
from greenlabel.estimators.anchored import AnchoredGreenClassifier
from greenlabel.estimators.base import TransductiveClassifier
from greenlabel.estimators.knn import ConsistencyClassifier, GreenClassifier, HarmonicClassifier
from greenlabel.propagators.anchored import AnchoredPropagator
from greenlabel.tables.columns.features import TableFeatures, choose_columns, matching
from greenlabel.tables.columns.rounds import (
    Round,
    added_names,
    check_names_free,
    named_counts,
    read_round,
    round_doubts,
)
from greenlabel.tables.columns.targets import doubts, read_target
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
from greenlabel.tables.frames import as_polars, with_columns, with_vectors
from greenlabel.tables.io.files import nearest_name
from greenlabel.tables.model_files.saved import SavedModel
from greenlabel.tables.outcome import Outcome, Validation
from greenlabel.tables.report.page import summary_html, write_report
from greenlabel.tables.report.summary import summary_text

with requires("tables"):
    import polars as pl

VALIDATION_ROWS = 2_000  # given labels that are hidden in turn; more of them say no more
METHODS: dict[str, type[TransductiveClassifier]] = {
    "auto": BlendedClassifier,
    "green": GreenClassifier,
    "anchored": AnchoredGreenClassifier,
    "consistency": ConsistencyClassifier,
    "harmonic": HarmonicClassifier,
}


@dataclass(kw_only=True, eq=False, repr=False)
class TableResult(Outcome):
    """What ``label_table`` found out: shows itself in notebooks, prints as a summary, saves as a model or a page."""

    frame: pl.DataFrame  # the table without the columns that were added
    unlabelled: list[str]  # values of the target that mean "no label"

    def __str__(self) -> str:
        return summary_text(self)

    def _repr_html_(self) -> str:
        return summary_html(self)

    def report(self, path: str | Path, title: str = "") -> None:
        """One HTML page that shows whether to trust the labels; it needs no network."""
        write_report(Path(path), self, self.frame, title or self.target)

    def save(self, path: str | Path) -> None:
        """A model file for new rows: ``greenlabel predict``, or ``greenlabel.tables.load_model``."""
        SavedModel(self.target, self.classes, self.features, self.model, self.unlabelled).save(Path(path))


def label_table(
    frame: Any,
    target: Any,
    *,
    features: str | list[str] | None = None,
    drop: str | list[str] | None = None,
    id: str | list[str] | None = None,
    unlabelled: Any = None,
    vectors: Any = None,
    scale: str = "auto",
    method: str = "auto",
    class_shares: Any = None,
    only_confident: float | None = None,
    random_state: int = 0,
    announce: Announce | None = None,
) -> tuple[Any, TableResult]:
    """Fill the empty cells of a column from the rows in which it is known.

    A frame that was filled before may come again: cells that were changed by hand, or whose source says "given" or
    "checked", are labels, and the others are filled in anew.

    Parameters
    ----------
    frame : DataFrame
        Of pandas or polars.
    target : str
        The column to fill; null, NaN and "" are unlabelled.
    features, drop, id : str, list of str or None, default None
        Names or patterns (``"pixel*"``) of columns to learn from, to leave out, to pass through.
    unlabelled : str, list or None, default None
        Further values of the target that mean "no label".
    vectors : (n, d) array or None, default None
        Embeddings, one row for each row of the frame.
    scale : {"auto", "none", "standard"}, default "auto"
        "auto" scales columns whose units differ; see ``greenlabel.tables.columns.features``.
    method : {"auto", "green", "anchored", "consistency", "harmonic"}, default "auto"
        "auto" is BlendedClassifier: the Green function and ordinary models, weighted by what the labels say.
    class_shares : None, "labels", "balanced" or a mapping, default None
        Shares of the classes that the predictions must have: those among the given labels, equal ones, or
        {class: share}; a share may be a range (low, high). Needs method="auto".
    only_confident : float or None, default None
        Leave a cell empty where the confidence is below this.
    random_state : int, default 0
        Seeds folds, trees, anchors and approximate neighbours.
    announce : callable or None, default None
        Called with the name of each stage as it begins.

    Returns
    -------
    frame : DataFrame
        The same with ``target`` filled, and ``<target>_source``, ``<target>_confidence``, ``<target>_margin``,
        ``<target>_predicted``.
    result : TableResult
        Prints as a summary. ``report(path)`` writes the page, ``save(path)`` the model; ``suggest()``,
        ``explain(row)`` and ``suspects()`` answer further questions.

    Examples
    --------
    >>> import polars as pl
    >>> from greenlabel import label_table
    >>> frame = pl.DataFrame({"size": [1.0, 1.1, 1.2, 5.0, 5.1, 5.2], "kind": ["S", None, None, "L", None, None]})
    >>> filled, result = label_table(frame, "kind")
    >>> filled["kind"].to_list()
    ['S', 'S', 'S', 'L', 'L', 'L']
    """
    stages = Stages.of(announce)
    check_options(method, class_shares, only_confident, random_state)
    with stages("features"):
        patterns = {"features": as_list(features), "drop": as_list(drop), "ids": as_list(id)}
        steps = TableFeatures(scale, random_state)
        task = read(frame, str(target), patterns, as_list(unlabelled), vectors, steps)
    fitted = fit(task, METHODS[method](random_state=random_state), class_shares, stages)
    with stages("check"):
        validation = evaluate(fitted.model)
    return assemble(frame, task, fitted, validation, only_confident, stages)


def as_list(names: Any) -> list[str]:
    """One name or several, as text: pandas has names that are numbers."""
    if names is None:
        return []
    return [str(name) for name in (names if isinstance(names, (list, tuple, set)) else [names])]


@dataclass(frozen=True)
class Task:
    """A table as a model takes it."""

    table: pl.DataFrame  # without the columns that an earlier round added
    target: str
    unlabelled: list[str]  # values of the target that mean "no label"
    labels: Round
    classes: list[Any]
    given: NDArray[np.integer]  # (n,) index of the given label in classes, -1 where none was given
    steps: TableFeatures
    X: Any  # (n, d) features


def check_options(method: str, class_shares: Any, only_confident: float | None, random_state: int | None) -> None:
    check_choice("method", method, METHODS)
    if class_shares is not None and method != "auto":
        raise ParameterError(f"class_shares needs method='auto', got {method!r}; leave out one of them.")
    check_confident(only_confident)
    if random_state is not None:
        check_integer("random_state", random_state, 0, offer=", or None")


def read(
    frame: Any,
    target: str,
    patterns: dict[str, list[str]],
    unlabelled: list[str],
    vectors: Any,
    steps: TableFeatures,
    min_classes: int = 2,
    *advice: str,
    adds_columns: bool = True,
) -> Task:
    """The labels of a frame, and the features that the steps learn from its columns.

    Fewer classes, and no row left without a label, are refused; the ``advice`` is for the latter. So are columns of the
    names that filling adds, where that is to come.
    """
    table = as_polars(frame)
    check_target(table, target)
    if vectors is not None:
        table = with_vectors(table, vectors)
    if adds_columns:
        check_names_free(table.columns, target)
    labels = read_round(table, target, unlabelled)
    table = table.drop(added_names(table.columns, target))
    classes, given = read_target(labels.labels, unlabelled, min_classes)
    check_not_full(target, classes, given, *advice)
    names = choose_columns(table.columns, target, **patterns)
    X = steps.fit_transform(table, names, matching(table.columns, patterns["features"], "features"))
    return Task(table, target, unlabelled, labels, classes, given, steps, X)


@dataclass(frozen=True)
class Fitted:
    model: TransductiveClassifier
    probabilities: Any  # (n, c)
    cautions: list[str]  # what the model warned of


def fit(task: Task, model: TransductiveClassifier, class_shares: Any, stages: Stages) -> Fitted:
    """The model of a task; its warnings are kept for the summary."""
    is_blend = isinstance(model, BlendedClassifier)
    with stages("experts" if is_blend else "graph"), warnings.catch_warnings(record=True) as cautions:
        warnings.simplefilter("always", UserWarning)
        if class_shares is not None:
            model.set_params(class_shares=shares_of_codes(class_shares, task.classes))
        model.fit(task.X, task.given)
    with stages("labels"):
        probabilities = model.label_distributions_
    return Fitted(model, probabilities, [str(caution.message) for caution in cautions])


def evaluate(model: TransductiveClassifier) -> Validation:
    """Given labels, each predicted without itself; an even choice where there are many."""
    return Validation(*model.cross_validated(VALIDATION_ROWS))


def assemble(
    frame: Any, task: Task, fitted: Fitted, validation: Validation, only_confident: float | None, stages: Stages
) -> tuple[Any, TableResult]:
    """The filled frame, and the result."""
    model, probabilities = fitted.model, fitted.probabilities
    if not isinstance(model, BlendedClassifier):  # which has other experts for such rows
        warn_unreached(int((~model.reached_).sum()), len(task.given))
    predictions = np.where(task.given >= 0, task.given, decided(probabilities, only_confident))
    columns = labelled_columns(task.labels.labels, task.classes, task.labels.origin, predictions, probabilities)
    filled = with_columns(frame, columns)
    return filled, TableResult(
        target=task.target,
        classes=task.classes,
        given=task.given,
        probabilities=probabilities,
        predictions=predictions,
        is_reached=model.reached_,
        validation=validation,
        columns=task.steps.columns,
        X=task.X,
        method=type(model).__name__,
        graph=graph_facts(model),
        seconds=stages.seconds,
        warnings=all_doubts(task.target, task.labels.unrecorded, task.classes, task.given, fitted.cautions),
        label_sources=named_counts(task.labels.counts),
        experts=getattr(model, "expert_scores_", {}),
        only_confident=only_confident or 0.0,
        model=model,
        features=task.steps,
        frame=task.table,
        unlabelled=task.unlabelled,
    )


def predict_table(
    saved: SavedModel, frame: Any, *, vectors: Any = None, only_confident: float | None = None
) -> tuple[Any, dict[str, Any]]:
    """Label the rows of a new frame with a saved model; labels that the frame holds already are kept.

    A frame that was filled before is read as ``label_table`` reads it: what are no labels is filled in anew.

    Parameters
    ----------
    saved : SavedModel
        From ``load_model``.
    frame : DataFrame
        Of pandas or polars, with the columns that the model learned from.
    vectors : (n, d) array or None, default None
        Embeddings, for a model that learned from some.
    only_confident : float or None, default None
        Leave a cell empty where the confidence is below this.

    Returns
    -------
    frame : DataFrame
        The same with the columns that ``label_table`` adds.
    facts : dict
        Rows, labels, values never seen.
    """
    table = as_polars(frame)
    check_names_free(table.columns, saved.target)
    old = round_of_new_rows(table, saved)
    X, unseen = saved.features.transform(table if vectors is None else with_vectors(table, vectors))
    probabilities, is_reached = saved.model.predict_proba_reached(X)
    predictions = decided(probabilities, only_confident)
    columns = labelled_columns(target_of_new_rows(old, saved), saved.classes, old.origin, predictions, probabilities)
    facts = prediction_facts(saved, old, predictions, is_reached, unseen)
    return with_columns(frame, columns), {**facts, "warnings": round_doubts(saved.target, old.unrecorded)}


def all_doubts(target: str, unrecorded: int, classes: list[Any], given: Any, cautions: list[str]) -> list[str]:
    """What may not be meant: corrections that cannot be seen, labels that look odd, and what the model warned of."""
    return [*round_doubts(target, unrecorded), *doubts(classes, int((given >= 0).sum())), *cautions]


def shares_of_codes(shares: Any, classes: list[Any]) -> Any:
    """Shares by the index of a class instead of its name; labels of a text file are text."""
    if not isinstance(shares, Mapping):
        return shares
    codes = {str(label): code for code, label in enumerate(classes)}
    unknown = [label for label in shares if str(label) not in codes]
    if unknown:
        advice = nearest_name(str(unknown[0]), list(codes), "classes")
        raise ParameterError(f"The shares name the class {unknown[0]!r}, which no label has; {advice}")
    return {codes[str(label)]: share for label, share in shares.items()}


def graph_facts(model: TransductiveClassifier) -> dict[str, Any]:
    propagator = model.propagator_
    facts = {"neighbours": int(propagator.k), "components": int(propagator.n_components)}
    return facts | ({"anchors": propagator.graph.m} if isinstance(propagator, AnchoredPropagator) else {})
