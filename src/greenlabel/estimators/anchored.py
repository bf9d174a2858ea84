"""The estimator on an anchored graph: a shell around blocks of rows, anchors and predictions.

    rows -> nearest anchors -> Z'Z -> m x m system | labels -> C -> predictions

What is computed from all rows is a sum over blocks, what is predicted for each row a map over blocks (room blocks), so
rows may be in memory, in files or on a cluster, and more of them may come later.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from greenlabel._common.parameters import check_choice, check_integer, check_mu, check_offsets, check_real, check_seed
from greenlabel.blocks.rows import ArrayBlocks, Blocks
from greenlabel.blocks.sources import open_rows
from greenlabel.errors import LabelError, ParameterError
from greenlabel.estimators.base import Bools, Floats, GraphClassifier
from greenlabel.estimators.checks import check_features, check_new_stream, check_stream
from greenlabel.graph.anchors import ANCHORS
from greenlabel.labels.encoding import Labels, joined_labels, read_some_labels
from greenlabel.operators.predictions import (
    BlockPredictions,
    Classes,
    Decisions,
    PredictAllRows,
    PredictRows,
    Probabilities,
)
from greenlabel.propagators.anchored import AnchoredCandidates, anchored_candidates
from greenlabel.propagators.anchored_graph import AnchoredGraph, AnchorSettings


class AnchoredGreenClassifier(GraphClassifier):
    """The improved Green function on an anchored graph, for many rows: similarity only through a few anchors.

    Rows may be an array, a sparse matrix or a data frame in memory; a memory map, a path to a .npy file, to Parquet
    files or to a .zarr folder; or a Dask array. Predictions do not depend on which.

    Parameters
    ----------
    n_anchors : int or "auto", default "auto"
        From 2 to a million; more are more accurate and slower. "auto" takes up to 1,024 rows all, half of more up to
        32,768 anchors, and of more than 131,072 rows a quarter, up to 262,144 anchors or 2^28 numbers in them; fewer
        where rows are equal. Of sparse features, and with "kmeans", it takes a quarter of the rows, at most 2,048.
    n_neighbors : int, default 5
        Anchors that each row is a mix of; fewer than there are anchors.
    mu : float or "auto", default "auto"
        The similarity that every pair of rows gains. "auto" makes n mu three percent of the degree, which is 1 here,
        and less with more than 8,192 anchors: it falls with their square root. A tenth or ten times as much where
        leave-one-out on at least 20 labels prefers it, with up to 25,000 anchors.
    anchors : {"bkhk", "kmeans", "random"} or (m, d) array, default "bkhk"
        How anchors are found, or the anchors themselves. "bkhk" is balanced k-means applied hierarchically; beyond
        8,192 anchors of fewer than eight rows each, and under n_anchors="auto" on features that are not sparse, it is
        as "random": rows drawn at random, which are better there.
    random_state : int, RandomState or None, default None
        Seeds the choice of anchors.
    memory_limit : int or "auto", default "auto"
        Bytes for the nearest anchors of all rows, 6 per neighbour and 4 per row (more where float32 does not hold the
        features). Beyond it they are computed again for the predictions. "auto" is half of the free memory.
    class_offsets : "auto" or None, default "auto"
        As in GreenClassifier.

    Attributes
    ----------
    classes_, scores_, label_distributions_, transduction_, class_offsets_, mu_, n_components_, reached_, n_features_in_
        As in GreenClassifier.
    anchors_ : (m, d) array
        The anchors.
    graph_ : AnchoredGraph
        The graph, read-only: ``anchors`` (m, d), ``mixing_matrix()`` Z (n, m), ``gram()`` Z'Z (sparse beyond
        2,048 anchors), ``component`` (m,).
    operator_ : operator
        G, read-only: ``solve(Y)`` (n, c), ``columns(rows)`` (n, r), ``diagonal(rows)`` (r,).
    """

    _candidates: AnchoredCandidates
    _unit: float | None  # of the features; unknown until a sample of rows outside memory has been seen

    def __init__(
        self,
        n_anchors: int | str = "auto",
        n_neighbors: int = 5,
        *,
        mu: float | str = "auto",
        anchors: Any = "bkhk",
        random_state: Any = None,
        memory_limit: int | str = "auto",
        class_offsets: str | None = "auto",
    ):
        self.n_anchors = n_anchors
        self.n_neighbors = n_neighbors
        self.mu = mu
        self.anchors = anchors
        self.random_state = random_state
        self.memory_limit = memory_limit
        self.class_offsets = class_offsets

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Add rows, labelled or not, to those that the model has seen; the first rows give the anchors.

        The result equals one fit on all rows with the same anchors. Rows are numbered in the order in which they came.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path or Dask array
            Rows of any kind that ``fit`` takes.
        y : (n,) array or None, default None
            Labels of these rows, as in ``fit``; None where all are unknown.
        classes : array or None, default None
            All classes that may come, as in scikit-learn; any other label is then refused.

        Returns
        -------
        self : AnchoredGreenClassifier
        """
        with self._rollback_on_error():
            if not hasattr(self, "_candidates"):
                self.check_parameters()
                rows, n, y = self._open(X, y)
                labels = read_known_labels(y, n, classes)
                self._fit_graph(rows)
                return self._settle(labels)
            rows, y = self._open_new(X, y)
            labels = read_known_labels(y, rows.n, classes)
            graph = self._candidates.graph.with_rows(rows, self.memory_limit)
            return self._extend(graph, labels)

    def merge(self, other: "AnchoredGreenClassifier") -> Self:
        """Add the rows and labels of another model that was fitted on the same anchors, after the rows of this one.

        Parameters
        ----------
        other : AnchoredGreenClassifier
            Fitted with the anchors of this one: ``AnchoredGreenClassifier(anchors=model.anchors_)``.

        Returns
        -------
        self : AnchoredGreenClassifier
        """
        if not isinstance(other, AnchoredGreenClassifier):
            raise ParameterError(f"merge takes an AnchoredGreenClassifier, got {type(other).__name__}; fit one.")
        graph, theirs = self._graph_with_rows(), other._graph_with_rows()
        if graph.anchor_search.k != theirs.anchor_search.k or not np.array_equal(self.anchors_, other.anchors_):
            raise ParameterError(
                "the models have different anchors or numbers of neighbours; fit both with the anchors of one: "
                "AnchoredGreenClassifier(anchors=model.anchors_)."
            )
        with self._rollback_on_error():
            return self._extend(graph.with_rows_of(theirs), other._seen)

    def answers(self) -> Iterator[BlockPredictions]:
        """Class and probabilities of all rows of the fit, block by block.

        Use it to write predictions that would not fit in memory: nothing of the size of the data is held.

        Yields
        ------
        rows, classes, probabilities : range, (b,) array, (b, c) array
            Of one block of b rows after the other.
        """
        fitted = self._of_rows("nearest anchors")
        return fitted.propagation.near.map(PredictRows(fitted.propagation.step, fitted.calibrated))

    def predict_proba_all_rows(self) -> Iterator[tuple[Floats, Bools]]:
        """The same as (probabilities, is_reached), as ``predict_proba_reached`` gives them for new rows."""
        fitted = self._of_rows("nearest anchors")
        return fitted.propagation.near.map(PredictAllRows(fitted.propagation.step, fitted.calibrated))

    def predict(self, X: Any) -> Any:
        """The class of each new row; for a Dask array a Dask array, not yet computed.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path or Dask array
            New rows of any kind that ``fit`` takes.
        """
        fitted = self.fitted_
        return self._collect(X, Classes(fitted.predictor.step, fitted.decoder), self.classes_[:0])

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class for each new row; for a Dask array a Dask array, not yet computed.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path or Dask array
            New rows of any kind that ``fit`` takes.
        """
        predictor = self.fitted_.predictor
        return self._collect(X, Probabilities(predictor.step, self._fitted.calibrated), predictor.no_scores())

    def decision_function(self, X: Any) -> Any:
        """Scores of new rows and ``class_offsets_``, on the scale of ``scores_``; the largest is the class of the row.

        For two classes it is one column, positive for the second. It says nothing about an unreached row, for which
        ``predict`` goes by the shares of the labels.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path or Dask array
            New rows of any kind that ``fit`` takes.
        """
        predictor = self.fitted_.predictor
        like = predictor.no_scores()
        step = Decisions(predictor.step, self._fitted.decoder)
        return self._collect(X, step, like[:, 0] if like.shape[1] == 2 else like)

    def propagators(self, X: Any) -> AnchoredCandidates:
        """As in other classifiers; X may be blocks of rows."""
        if isinstance(X, Blocks):
            return self.propagators_in_blocks(X, self.n_features_in_, self._unit, self.memory_limit)
        return self.propagators_in_blocks(ArrayBlocks(X), X.shape[1], 1.0, self.memory_limit)

    def propagators_in_blocks(
        self, rows: Blocks, d: int, unit: float | None, memory_limit: float | str
    ) -> AnchoredCandidates:
        """The same of rows in blocks.

        Parameters
        ----------
        rows : Blocks
            The rows.
        d : int
            How many features they have.
        unit : float or None
            Their unit; None where a sample has to show it.
        memory_limit : int or "auto"
            As in this estimator.
        """
        return anchored_candidates(self._settings(memory_limit).build(rows, d, unit), self.mu)

    def _settings(self, memory_limit: float | str) -> AnchorSettings:
        rng = check_seed(self.random_state)
        return AnchorSettings(self.n_anchors, self.n_neighbors, self.anchors, memory_limit, rng, self.merge_equal_rows)

    def check_parameters(self) -> None:
        check_integer("n_neighbors", self.n_neighbors, 1)
        check_mu(self.mu)
        check_offsets(self.class_offsets)
        if not (isinstance(self.n_anchors, str) and self.n_anchors == "auto"):
            check_integer("n_anchors", self.n_anchors, 2, offer=", or 'auto'")
        check_seed(self.random_state)
        if isinstance(self.anchors, str):
            check_choice("anchors", self.anchors, ANCHORS)
        if not (isinstance(self.memory_limit, str) and self.memory_limit == "auto"):
            check_real("memory_limit", self.memory_limit, 0, offer=" bytes, or 'auto'")

    def _open(self, X: Any, y: Any) -> tuple[Blocks, int, Any]:
        source, y = open_rows(X, y)
        self._is_graph, self._unit = False, None
        if source is None:
            X, self._unit = check_features(self, X, is_graph=False)
            source = ArrayBlocks(X)
        else:
            source = check_stream(self, source)
        return source, source.n, y

    def _open_new(self, X: Any, y: Any = None) -> tuple[Blocks, Any]:
        """New rows in the unit of the fit, and labels as they came."""
        source, y = open_rows(X, y)
        assert self._unit is not None
        if source is None:
            return ArrayBlocks(check_features(self, X, is_graph=False, unit=self._unit)[0]), y
        return check_new_stream(self, source, self._unit), y

    def sketch_of(
        self, X: Any, prepare: Callable[[Blocks, int, Any], tuple[Blocks, int, Any]] | None = None
    ) -> AnchoredGraph:
        """A graph on few anchors, without labels.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path or Dask array
            Rows of any kind that ``fit`` takes.
        prepare : function or None, default None
            From blocks of rows, the number of their columns and their unit to others that take their place.
        """
        shell = clone(self)
        shell.check_parameters()
        rows, _, _ = shell._open(X, None)
        d, unit = shell.n_features_in_, shell._unit
        if prepare is not None:
            rows, d, unit = prepare(rows, d, unit)
        return replace(shell._settings(shell.memory_limit), is_sketch=True).build(rows, d, unit)

    def _fit_graph(self, X: Any) -> None:
        super()._fit_graph(X)
        self._unit = self._candidates.graph.unit
        self.anchors_ = self._candidates.graph.anchors

    def _fit_labels(self, labels: Labels) -> None:
        super()._fit_labels(labels)
        self._seen = labels

    def _graph_with_rows(self) -> AnchoredGraph:
        """The graph, which may not have labels of two classes yet."""
        if not hasattr(self, "_candidates"):
            self._of_rows("graph")
        return self._candidates.graph

    def _extend(self, graph: AnchoredGraph, labels: Labels) -> Self:
        """The model on a graph with new rows, which carry these labels."""
        self._candidates = anchored_candidates(graph, self.mu)
        return self._settle(joined_labels(self._seen, labels))

    def _settle(self, labels: Labels) -> Self:
        """Spread the labels, if there are two classes of them yet."""
        if len(labels.classes) >= 2:
            self._fit_labels(labels)
            return self
        self._seen, self.classes_ = labels, labels.classes
        self.__dict__.pop("_fitted", None)
        return self

    def _set_fitted(self, fitted: Any) -> None:
        super()._set_fitted(fitted)
        self.anchors_ = fitted.predictor.anchor_search.in_unit(self._unit or 1.0)

    def _check_fitted(self) -> None:
        if hasattr(self, "_candidates") and not hasattr(self, "_fitted"):
            n_classes = len(self._seen.classes)
            raise LabelError(f"the rows so far hold labels of {n_classes} classes; give rows of two classes at least.")
        super()._check_fitted()

    def _collect(self, X: Any, step: Any, like: Any) -> Any:
        """The result of a step over the nearest anchors of new rows."""
        rows, _ = self._open_new(X)
        return self._fitted.predictor.collect(rows, step, like)


def read_known_labels(y: Any, n: int, classes: Any) -> Labels:
    """Labels of n rows; classes that were not announced are refused."""
    labels = read_some_labels(y, n)
    if classes is None:
        return labels
    unknown = np.setdiff1d(labels.classes, np.asarray(classes))
    if len(unknown):
        raise LabelError(f"y holds the class {unknown[0]!s}, which is not among classes; add it there.")
    return labels
