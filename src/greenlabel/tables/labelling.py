"""A table with a half-empty column in, the filled table out.

    frame, result = label_table(frame, "species")

What the command line does, in Python: pandas and polars frames come back as what they were, with every other column
as it came.
"""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from greenlabel._common.optional import requires
from greenlabel._common.parameters import check_choice, check_integer, warn_unreached
from greenlabel._common.stages import Announce, Stages
from greenlabel.blend.classifier import BlendedClassifier
from greenlabel.errors import ParameterError, TableError
from greenlabel.estimators.anchored import AnchoredGreenClassifier
from greenlabel.estimators.base import TransductiveClassifier
from greenlabel.estimators.knn import ConsistencyClassifier, GreenClassifier, HarmonicClassifier
from greenlabel.propagators.anchored import AnchoredPropagator
from greenlabel.tables.columns.features import TableFeatures, choose_columns, matching
from greenlabel.tables.columns.rounds import (
    added_names,
    all_names,
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
from greenlabel.tables.io.files import VECTORS, as_vectors, check_names, nearest_name
from greenlabel.tables.model_files.saved import SavedModel
from greenlabel.tables.outcome import HeldOut, Outcome
from greenlabel.tables.report.page import summary_html, write_report
from greenlabel.tables.report.summary import summary_text

with requires("tables"):
    import polars as pl

HELD_OUT_ROWS = 2_000  # given labels that are hidden in turn; more tell no more
METHODS: dict[str, type[TransductiveClassifier]] = {
    "auto": BlendedClassifier,
    "green": GreenClassifier,
    "anchored": AnchoredGreenClassifier,
    "consistency": ConsistencyClassifier,
    "harmonic": HarmonicClassifier,
}


class TableResult(Outcome):
    """What ``label_table`` found out: shows itself in notebooks, prints as a summary, saves as a model or a page."""

    frame: pl.DataFrame
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
    frame : pandas or polars DataFrame
    target : the column to fill; null, NaN and "" are unlabelled
    features, drop, id : names or patterns (``"pixel*"``) of columns to learn from, to leave out, to pass by
    unlabelled : further values of the target that mean "no label"
    vectors : (n, d) array of embeddings, one row for each row of the frame
    scale : {"auto", "none", "standard"}, default "auto"
        "auto" scales columns whose units differ; see ``greenlabel.tables.columns.features``.
    method : {"auto", "green", "anchored", "consistency", "harmonic"}, default "auto"
        "auto" is BlendedClassifier: the Green function and ordinary models, weighted by what the labels say.
    class_shares : None, "labels", "balanced" or a mapping, default None
        Shares of the classes that the answer must have: those among the given labels, equal ones, or {class: share};
        a share may be a range (low, high). Needs method="auto".
    only_confident : leave a cell empty where the confidence is below this
    random_state : int, default 0
    announce : called with the name of each stage as it begins

    Returns
    -------
    frame : the same with ``target`` filled, and ``<target>_source``, ``<target>_confidence``, ``<target>_margin``,
        ``<target>_predicted``
    result : a TableResult

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
    check_choice("method", method, METHODS)
    if class_shares is not None and method != "auto":
        raise ParameterError(f"class_shares needs method='auto', got {method!r}; leave out one of them.")
    check_confident(only_confident)
    if random_state is not None:
        check_integer("random_state", random_state, 0, offer=", or None")
    features, drop, id, unlabelled = map(_as_list, (features, drop, id, unlabelled))
    target = str(target)
    table = as_polars(frame)
    check_target(table, target)
    if vectors is not None:
        table = with_vectors(table, vectors)
    with stages("features"):
        check_names_free(table.columns, target)
        labels = read_round(table, target, unlabelled)
        table = table.drop(added_names(table.columns, target))
        classes, given = read_target(labels.labels, unlabelled)
        check_not_full(target, classes, given)
        names = choose_columns(table.columns, target, features, drop, id)
        steps = TableFeatures(scale, random_state)
        X = steps.fit_transform(table, names, matching(table.columns, features, "features"))
    with stages("experts" if method == "auto" else "graph"), warnings.catch_warnings(record=True) as cautions:
        warnings.simplefilter("always", UserWarning)
        model = METHODS[method](random_state=random_state)
        if class_shares is not None:
            model.set_params(class_shares=shares_of_codes(class_shares, classes))
        model.fit(X, given)
    with stages("labels"):
        probabilities = model.label_distributions_
    with stages("check"):
        held_out = HeldOut(*model.cross_validated(HELD_OUT_ROWS))
    if method != "auto":
        warn_unreached(int((~model.reached_).sum()), len(given))
    answers = decided(probabilities, only_confident)
    result = TableResult(
        target=target,
        classes=classes,
        given=given,
        probabilities=probabilities,
        answers=np.where(given >= 0, given, answers),
        is_reached=model.reached_,
        held_out=held_out,
        columns=steps.columns,
        X=X,
        method=type(model).__name__,
        graph=graph_facts(model),
        seconds=stages.seconds,
        warnings=all_doubts(target, labels.untold, classes, given, cautions),
        label_sources=named_counts(labels.counts),
        experts=getattr(model, "expert_scores_", {}),
        only_confident=only_confident or 0.0,
        model=model,
        features=steps,
    )
    result.frame, result.unlabelled = table, unlabelled
    columns = labelled_columns(labels.labels, classes, labels.origin, result.answers, probabilities)
    filled = with_columns(frame, columns)
    result.seconds = stages.seconds
    return filled, result


def predict_table(
    saved: SavedModel, frame: Any, *, vectors: Any = None, only_confident: float | None = None
) -> tuple[Any, dict[str, Any]]:
    """Label the rows of a new frame with a saved model; labels that the frame holds already are kept.

    Of a frame that was filled before, labels are what ``label_table`` takes for labels; the rest is filled in anew.

    ``vectors`` is the (n, d) array of embeddings for a model that learned from one.

    Returns the frame with the same columns as label_table adds, and the facts: rows, labels, values never seen.
    """
    table = as_polars(frame)
    check_names_free(table.columns, saved.target)
    old = round_of_new_rows(table, saved)
    X, unseen = saved.features.transform(table if vectors is None else with_vectors(table, vectors))
    probabilities, is_reached = saved.model.predict_proba_reached(X)
    answers = decided(probabilities, only_confident)
    columns = labelled_columns(target_of_new_rows(old, saved), saved.classes, old.origin, answers, probabilities)
    facts = prediction_facts(saved, old, answers, is_reached, unseen)
    return with_columns(frame, columns), {**facts, "warnings": round_doubts(saved.target, old.untold)}


def all_doubts(target: str, untold: int, classes: list[Any], given: Any, cautions: list[Any]) -> list[str]:
    """What may not be meant: corrections that cannot be seen, labels that look odd, and what the model warned of."""
    labels = doubts(classes, int((given >= 0).sum()))
    return [*round_doubts(target, untold), *labels, *(str(caution.message) for caution in cautions)]


def shares_of_codes(shares: Any, classes: list[Any]) -> Any:
    """Shares by the place of a class instead of its name; labels of a text file are text."""
    if not isinstance(shares, Mapping):
        return shares
    place = {str(label): code for code, label in enumerate(classes)}
    strange = [label for label in shares if str(label) not in place]
    if strange:
        advice = nearest_name(str(strange[0]), list(place), "classes")
        raise ParameterError(f"The shares name the class {strange[0]!r}, which no label has; {advice}")
    return {place[str(label)]: share for label, share in shares.items()}


def graph_facts(model: TransductiveClassifier) -> dict[str, Any]:
    propagator = model.propagator_
    facts = {"neighbours": int(propagator.k), "components": int(propagator.n_components)}
    return facts | ({"anchors": propagator.graph.m} if isinstance(propagator, AnchoredPropagator) else {})


def as_polars(frame: Any) -> pl.DataFrame:
    """A pandas or polars frame as a polars one."""
    if isinstance(frame, pl.DataFrame):
        return frame
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if not hasattr(frame, "columns") or not hasattr(frame, "iloc"):
        raise TableError(f"label_table takes a pandas or polars frame, got {type(frame).__name__}; make one of it.")
    names = pandas_names(frame)
    check_names(names)
    return pl.DataFrame([_as_series(name, frame[own]) for name, own in zip(names, frame.columns, strict=True)])


def _as_series(name: str, column: Any) -> pl.Series:
    """A pandas column; one of mixed Python objects becomes text, so that what is odd about it can be said."""
    try:
        series = pl.Series(name, pl.from_pandas(column.reset_index(drop=True), nan_to_null=True))
        if not isinstance(series.dtype, pl.BaseExtension):  # pandas's periods and intervals
            return series
    except Exception:  # pyarrow's and polars's own kinds for values that share no type
        pass
    values = [None if gap else str(value) for value, gap in zip(column.tolist(), column.isna(), strict=True)]
    return pl.Series(name, values, dtype=pl.String)


def _as_list(names: Any) -> list[str]:
    """One name or several, as text: pandas has names that are numbers."""
    if names is None:
        return []
    return [str(name) for name in (names if isinstance(names, (list, tuple, set)) else [names])]


def with_vectors(table: pl.DataFrame, vectors: Any) -> pl.DataFrame:
    """Embeddings beside the table, as one more column."""
    column = as_vectors(np.asarray(vectors), "The array of vectors")
    if len(column) != table.height:
        raise TableError(
            f"The vectors have {len(column):,} rows, the table has {table.height:,}; give one vector for each row."
        )
    if VECTORS in table.columns:
        raise TableError(f"The table has a column {VECTORS!r} already; rename it, or leave out the vectors beside it.")
    return table.with_columns(column.alias(VECTORS))


def with_columns(frame: Any, columns: list[pl.Series]) -> Any:
    """The frame as it came, pandas or polars, with columns replaced or added; the first is the target."""
    if isinstance(frame, (pl.DataFrame, pl.LazyFrame)):
        return as_polars(frame).with_columns(columns)
    filled = frame.copy()
    names = dict(zip(pandas_names(frame), frame.columns, strict=True))
    below = ("",) * (frame.columns.nlevels - 1)  # of names that have levels
    for i, series in enumerate(columns):
        new = (series.name, *below) if below else series.name
        name = names.get(series.name, new)
        is_target = i == 0 and series.name in names
        filled[name] = as_before(series, frame[name].dtype) if is_target else series.to_pandas().to_numpy()
    return filled


def pandas_names(frame: Any) -> list[str]:
    """Names of the columns as text; of names that have levels, those that greenlabel added are their first level."""
    names = [str(name) for name in frame.columns]
    added = {name for target in names for name in all_names(target)}
    firsts = [name[0] if isinstance(name, tuple) else None for name in frame.columns]
    return [first if first in added else name for name, first in zip(names, firsts, strict=True)]


def as_before(series: pl.Series, dtype: Any) -> Any:
    """A filled column as pandas values of the type that it had; NumPy's own types cannot be empty."""
    values = series.to_pandas()
    if isinstance(dtype, np.dtype) and series.null_count():
        return values.to_numpy()
    return values.astype(dtype).array
