"""Why a row got its scores: the exact part of every given label in them.

    F_ik = sum over the labels l of class k of I_il        I = G[rows, labelled]

The operator is linear in the labels, so this is no approximation: each label is spread as a class of its own.

I (r, l) influence of the l labels on the r rows     F (r, c) scores
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.parameters import check_integer
from greenlabel.blend.classifier import BlendedClassifier
from greenlabel.blend.fitted import FittedBlend
from greenlabel.errors import ParameterError
from greenlabel.estimators.base import TransductiveClassifier
from greenlabel.estimators.labelled import LabelledGraph
from greenlabel.inspection.checks import check_model, check_rows
from greenlabel.inspection.printing import PrintsAsTable, Table, plain
from greenlabel.labels.encoding import Labels

ROUNDING = 1e-6  # of an influence: differences below say nothing
Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]


class Influence(NamedTuple):
    """The part of one label in the scores of a row."""

    row: int  # that carries the label
    label: Any
    share: float  # of all support that labels give the row


@dataclass(frozen=True)
class Explanation(PrintsAsTable):
    """What each label contributes to the scores of some rows.

    Attributes
    ----------
    influence : (r, l) the part of each label; labels of class k sum to ``scores[:, k]``
    labelled : (l,) rows that carry the labels, ascending
    labels : (l,) their classes
    classes : (c,)
    scores : (r, c) of the graph, without class offsets
    predicted : (r,) the class of each row
    rows : (r,) the explained rows; None where they are new
    evidence : {expert: (r, c)} of a blend: what each expert adds to ``scores_``; empty for other classifiers
    is_reached : (r,) whether any label reaches the row over the graph; None where all are reached
    """

    influence: Floats
    labelled: Ints
    labels: NDArray[Any]
    classes: NDArray[Any]
    scores: Floats
    predicted: NDArray[Any]
    rows: Ints | None = None
    evidence: dict[str, Floats] = field(default_factory=dict)
    is_reached: Bools | None = None

    def top(self, n: int = 3) -> list[list[Influence]]:
        """The labels that support each row most, best first, with their shares of all support that it has.

        Labels whose influence is negative support nothing; there may be fewer than n. Where all are negative, far from
        every label, support is what a label has beyond the least one. Nothing supports a row that no label reaches.
        """
        check_integer("n", n, 1)
        support = _support(self.influence)
        if self.is_reached is not None:
            support = support * self.is_reached[:, None]
        total = support.sum(axis=1, keepdims=True)
        share = np.divide(support, total, out=np.zeros_like(support), where=total > 0)
        order, labels = np.argsort(-share, axis=1, kind="stable")[:, :n], plain(self.labels)
        return [
            [Influence(int(self.labelled[i]), labels[i], float(parts[i])) for i in best if parts[i] > 0]
            for best, parts in zip(order, share, strict=True)
        ]

    def __len__(self) -> int:
        return len(self.influence)

    def as_table(self) -> Table:
        names = range(len(self)) if self.rows is None else self.rows.tolist()
        lines = [
            (name, predicted, ", ".join(f"{label} (row {row}) {share:.0%}" for row, label, share in found))
            for name, predicted, found in zip(names, self.predicted, self.top(), strict=True)
        ]
        return ("row", "predicted", "because of"), lines


def _support(influence: Floats) -> Floats:
    """What counts as support (r, l); nothing where all influences are negative and equal but for rounding."""
    least = np.minimum(influence.min(axis=1, initial=0, keepdims=True), 0)
    is_far = influence.max(axis=1, initial=-np.inf, keepdims=True) <= 0
    support = np.maximum(influence - np.where(is_far, least, 0), 0)
    return np.where(support > ROUNDING * abs(least), support, 0)


def explain(model: TransductiveClassifier, rows: Any = None, *, X: Any = None) -> Explanation:
    """The exact share of every given label in the scores of rows.

    Parameters
    ----------
    model : classifier
        A fitted greenlabel classifier.
    rows : int, array of int or None, default None
        Numbers of rows of the fit, one or several.
    X : (r, d) array, sparse matrix, data frame or None, default None
        New rows, instead.

    Returns
    -------
    explanation : Explanation
        Prints as a table. ``top(n)`` names the labels that support each row most, with their shares; ``influence``
        (r, l) is the part of each label in the scores, ``labelled`` and ``labels`` say which they are, ``predicted``
        what came of it.

    Notes
    -----
    The explanation of a blend holds the evidence of each expert, which adds up to ``scores_``, and the influences
    within its graph.

    Examples
    --------
    >>> from greenlabel import GreenClassifier, explain
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> model = GreenClassifier(n_neighbors=2).fit(X, ["low", "", "", "high", "", ""])
    >>> [str(one.label) for one in explain(model, 1).top(1)[0]]
    ['low']
    """
    fitted = check_model(model, "explain")
    if (rows is None) == (X is None):
        raise ParameterError("explain takes either numbers of rows or new rows X=...; give one of the two.")
    if isinstance(X, str | PathLike):
        raise ParameterError(f"explain takes new rows as an array, got the path {str(X)!r}; read it first.")
    if rows is not None:
        return _of_fitted_rows(model, fitted, check_rows(rows, fitted.labels.n))
    return _of_new_rows(model, fitted, model.checked_features(X))


def explain_by_others(model: TransductiveClassifier, rows: Sequence[int]) -> list[Explanation]:
    """What ``explain`` says of each of some labelled rows, by all labels but its own."""
    fitted = check_model(model, "explain")
    labels, own = fitted.labels, np.searchsorted(fitted.labels.rows, rows)
    influence = _graph_of(fitted).propagation.influence_of_others(own)
    return [
        _explanation(
            labels.without(np.arange(len(labels.rows)) == i),
            np.delete(line, i)[None],
            model.transduction_[[row]],
            np.array([row]),
        )
        for row, i, line in zip(rows, own.tolist(), influence, strict=True)
    ]


def _of_fitted_rows(model: Any, fitted: Any, rows: Ints) -> Explanation:
    graph = _graph_of(fitted)
    labels, influence = fitted.labels, graph.propagation.influence(rows)
    is_reached = graph.propagation.scores_of(rows)[1]
    if not isinstance(fitted, FittedBlend) or not len(rows):
        return _explanation(labels, influence, model.transduction_[rows], rows, {}, is_reached)
    predicted = labels.classes[fitted.scores_of(rows).argmax(axis=1)]
    return _explanation(labels, influence, predicted, rows, fitted.evidence_on_rows(rows), is_reached)


def _of_new_rows(model: Any, fitted: Any, X: Any) -> Explanation:
    graph, evidence = _graph_of(fitted), {}
    F, is_reached = fitted.predictor.scores(X)
    predicted = fitted.decoder.classify(F, is_reached)
    if isinstance(fitted, FittedBlend):
        X = fitted.predictor.scaled(X)
        evidence = fitted.evidence_on_new_rows(X)
    influence = graph.propagation.influence_on_new_rows(X)
    return _explanation(fitted.labels, influence, predicted, None, evidence, is_reached)


def _explanation(
    labels: Labels,
    influence: Floats,
    predicted: NDArray[Any],
    rows: Ints | None,
    evidence: dict[str, Floats] | None = None,
    is_reached: Bools | None = None,
) -> Explanation:
    given, classes = labels.classes[labels.codes], labels.classes
    scores = influence @ np.eye(len(classes))[labels.codes]
    return Explanation(influence, labels.rows, given, classes, scores, predicted, rows, evidence or {}, is_reached)


def _graph_of(fitted: Any) -> LabelledGraph:
    """The graph in which influences are exact."""
    if isinstance(fitted, LabelledGraph):
        return fitted
    if fitted.graph is None:
        raise ParameterError(
            f"no expert of this {BlendedClassifier.__name__} is a graph, so no label has an influence; "
            "add a greenlabel classifier to experts."
        )
    return fitted.graph
