"""What all classifiers share: labels in, classes and probabilities out.

    fit(X, y)      the graph, which knows no labels; then the labels
    relabel(y)     the labels alone

    TransductiveClassifier    the shell of scikit-learn: parameters, checks, fitted attributes
    GraphClassifier           the shell around a propagator; a subclass says which one

A fitted estimator computes scores, probabilities and classes of its rows on first use.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from greenlabel._common.parameters import check_offsets, warn_unreached
from greenlabel._common.progress import logged
from greenlabel.errors import LabelError, ParameterError
from greenlabel.estimators.checks import check_features
from greenlabel.estimators.labelled import ForPrediction, LabelledGraph
from greenlabel.estimators.notebook import learned_table
from greenlabel.labels.encoding import Labels, as_labels, is_unlabelled, read_labels
from greenlabel.propagators.base import Propagator
from greenlabel.propagators.candidates import Candidates

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]


class TransductiveClassifier(ClassifierMixin, BaseEstimator):
    """Labels in, classes and probabilities of all rows and of new ones out.

    A subclass defines
        check_parameters()     raises ParameterError
        _fit_graph(X)           what does not depend on the labels
        _fit_labels(labels)     what does; sets _fitted
    """

    _fitted: Any  # what the labels made: a LabelledGraph or a FittedBlend, or what is left of it for new rows
    _unit: float | None  # of the features
    _is_graph: bool  # whether X is one

    def fit(self, X: Any, y: Any) -> Self:
        """Build the graph of the rows of X and spread the labels y over it.

        Parameters
        ----------
        X : (n, d) array, sparse matrix or data frame
            Numbers, one row for each item.
        y : (n,) array
            Labels; -1 where unknown. None, NaN and "" are unknown too.

        Returns
        -------
        self : object
            The fitted classifier.
        """
        with self._rollback_on_error():
            self.check_parameters()
            X, n, y = self._open(X, y)
            labels = read_labels(y, n, type(self).__name__)
            name = type(self).__name__
            with logged(f"{name}: graph of {n:,} rows"):
                self._fit_graph(X)
            with logged(f"{name}: {len(labels.rows):,} labels"):
                self._fit_labels(labels)
        return self

    def relabel(self, y: Any) -> Self:
        """Other labels on the same graph: nothing that depends on the features alone is computed again.

        Parameters
        ----------
        y : (n,) array
            Labels of all rows of the fit, as in ``fit``.

        Returns
        -------
        self : object
        """
        fitted = self._of_rows("graph")
        with self._rollback_on_error():
            self._fit_labels(read_labels(y, fitted.labels.n, type(self).__name__))
        return self

    @property
    def fitted_(self) -> Any:
        """What the labels made: labels, scores, decoder and predictor. The other attributes are read from it."""
        self._check_fitted()
        return self._fitted

    @property
    def unit_(self) -> float:
        """The power of two by which features are divided; 1 for all features of ordinary size."""
        self._check_fitted()
        return self._unit or 1.0

    @property
    def reached_(self) -> Bools:
        """False where a row's component holds no label (n,)."""
        return self._of_rows("reached").reached

    @property
    def scores_(self) -> Floats:
        """F = G Y (n, c), labelled rows included and not clamped."""
        return self._of_rows("scores").scores

    @property
    def class_offsets_(self) -> Floats:
        """What is added to the scores of each class before the largest is taken (c,), on the scale of ``scores_``."""
        return self.fitted_.decoder.offsets

    @property
    def label_distributions_(self) -> Floats:
        """Probabilities of the classes for each row (n, c)."""
        return self._of_rows("distributions").distributions

    @property
    def transduction_(self) -> NDArray[Any]:
        """The class of each row (n,), that of the largest of ``scores_ + class_offsets_``, of labelled rows too."""
        return self._of_rows("transduction").transduction

    @property
    def propagator_(self) -> Propagator:
        """The graph and its operator, which know no labels."""
        return self._of_rows("graph").propagator

    @property
    def graph_(self) -> Any:
        """The graph that was built, read-only: a ``Graph`` (similarity S) or an ``AnchoredGraph`` (anchors, Z)."""
        return self.propagator_.graph

    @property
    def operator_(self) -> Any:
        """G of all rows, read-only: ``solve(Y)``, ``columns(rows)``, ``diagonal(rows)``."""
        return self.propagator_.operator

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each new row.

        Parameters
        ----------
        X : (n, d) array, sparse matrix or data frame
            New rows; of a precomputed graph their similarities to the rows of the fit.
        """
        F, is_reached = self._new_scores(X)
        return self._fitted.decoder.classify(F, is_reached)

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class for each new row.

        Parameters
        ----------
        X : (n, d) array, sparse matrix or data frame
            New rows; of a precomputed graph their similarities to the rows of the fit.
        """
        return self.predict_proba_reached(X)[0]

    def predict_proba_reached(self, X: Any) -> tuple[Floats, Bools]:
        """``predict_proba``, and which of the rows a label reaches."""
        F, is_reached = self._new_scores(X)
        return self._fitted.calibrated.probabilities(F, is_reached), is_reached

    def decision_function(self, X: Any) -> Floats:
        """Scores of new rows and ``class_offsets_``, on the scale of ``scores_``; the largest is the class of the row.

        For two classes it is one column, positive for the second. It says nothing about an unreached row, for which
        ``predict`` goes by the shares of the labels.

        Parameters
        ----------
        X : (n, d) array, sparse matrix or data frame
            New rows; of a precomputed graph their similarities to the rows of the fit.
        """
        F, _ = self._new_scores(X)
        F = self._fitted.decoder.adjusted(F)
        return F[:, 1] - F[:, 0] if F.shape[1] == 2 else F

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of right predictions on the labelled rows of y, so that a grid search may get all rows.

        Parameters
        ----------
        X : (n, d) array, sparse matrix or data frame
            Rows to predict.
        y : (n,) array
            Their labels; rows without one do not count.
        sample_weight : (n,) array or None, default None
            How much each row counts.
        """
        y, predicted = as_labels(y), self.predict(X)
        known = np.flatnonzero(~is_unlabelled(y))
        weight = np.ones(len(predicted)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if not len(known):
            raise LabelError("y holds no label to score against; give some true labels.")
        if not len(predicted) == len(y) == len(weight):
            raise LabelError(
                f"X has {len(predicted)} rows, y {len(y)}, sample_weight {len(weight)}; give one each per row."
            )
        return float(np.average(predicted[known] == y[known], weights=weight[known]))

    def cross_validated(self, max_rows: int) -> tuple[Ints, Ints, Floats]:
        """Labelled rows, their codes, and their leave-one-out probabilities; a blend gives out-of-fold ones.

        Rows that the other labels cannot recognise are left out: those whose class has no other label, or that no
        other label reaches.

        Parameters
        ----------
        max_rows : int
            Of more labelled rows than these, an even choice is taken.

        Returns
        -------
        rows, codes, probabilities : (r,) array, (r,) array, (r, c) array
            A code is the index of a class in ``classes_``.
        """
        return self._of_rows("labels").cross_validated(max_rows)

    def for_prediction(self) -> Self:
        """A copy with what new rows need and nothing else of the fit."""
        return self.with_fitted(self.fitted_.for_prediction(), self.n_features_in_, self.unit_)

    def with_fitted(self, fitted: Any, n_features: int, unit: float = 1.0) -> Self:
        """A copy of this estimator with what was fitted elsewhere, on rows that were checked there."""
        other = copy(self)
        other._is_graph = getattr(self, "graph", "knn") == "precomputed"
        other.n_features_in_, other._unit = n_features, unit
        other._set_fitted(fitted)
        return other

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_fitted")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = getattr(self, "graph", "knn") == "precomputed"
        return tags

    def _repr_html_inner(self) -> str:
        """scikit-learn's table of the parameters, and what was learned."""
        return super()._repr_html_inner() + self._learned_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._learned_html()
        return bundle

    def _learned_html(self) -> str:
        return learned_table(self) if self.__sklearn_is_fitted__() else ""

    def _open(self, X: Any, y: Any) -> tuple[Any, int, Any]:
        """Features of a fit as _fit_graph takes them, the number of rows, and labels as they came."""
        self._is_graph = getattr(self, "graph", "knn") == "precomputed"
        X, self._unit = check_features(self, X, is_graph=self._is_graph)
        return X, X.shape[0], y

    def checked_features(self, X: Any) -> Any:
        """New rows, checked, in the unit of the fit."""
        self._check_fitted()
        return check_features(self, X, is_graph=self._is_graph, unit=self._unit)[0]

    def _new_scores(self, X: Any) -> tuple[Floats, Bools]:
        """F of new rows, and which of them a label reaches."""
        X = self.checked_features(X)
        return self._fitted.predictor.scores(X)

    def _of_rows(self, name: str) -> Any:
        """What was fitted, if it knows the rows of the fit."""
        fitted = self.fitted_
        if not hasattr(fitted, "cross_validated"):
            raise AttributeError(
                f"a {type(self).__name__} for new rows keeps no {name} of the rows of its fit; use predict_proba."
            )
        return fitted

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    def _set_fitted(self, fitted: Any) -> None:
        self._fitted = fitted
        self.classes_ = fitted.labels.classes

    @contextmanager
    def _rollback_on_error(self) -> Iterator[None]:
        """Leave the model as it was where a call is refused or interrupted."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def check_parameters(self) -> None:
        """Raise ParameterError where a parameter has a value that it cannot have."""
        raise NotImplementedError

    def _fit_graph(self, X: Any) -> None:
        raise NotImplementedError

    def _fit_labels(self, labels: Labels) -> None:
        raise NotImplementedError


class GraphClassifier(TransductiveClassifier):
    """A shell around one propagator. A subclass defines ``propagators`` and ``check_parameters``."""

    class_offsets: str | None
    merge_equal_rows = True  # whether equal rows are one node; the paper's methods keep each
    _candidates: Candidates

    def propagators(self, X: Any) -> Candidates:
        """The graph of checked features and its operators: what a fit makes before it reads the labels."""
        raise NotImplementedError

    def _fit_graph(self, X: Any) -> None:
        self._candidates = self.propagators(X)

    def _fit_labels(self, labels: Labels) -> None:
        fitted = self.labelled(self._candidates, labels)
        self._set_fitted(fitted)
        if self.n_components_ > 1:  # unreached rows get the shares of the labels: a warning where there are many
            warn_unreached(fitted.propagation.n_unreached(), labels.n)

    def labelled(self, candidates: Candidates, labels: Labels) -> LabelledGraph:
        """Labels on the propagator that they choose, decoded as this estimator's parameters say."""
        return LabelledGraph(candidates.propagate(labels), check_offsets(self.class_offsets))

    def with_fitted(
        self, fitted: Any, n_features: int, unit: float = 1.0, candidates: Candidates | None = None
    ) -> Self:
        """As in all classifiers; with candidates it can be relabelled."""
        other = super().with_fitted(fitted, n_features, unit)
        if candidates is not None:
            other._candidates = candidates
        return other

    def _set_fitted(self, fitted: LabelledGraph | ForPrediction) -> None:
        super()._set_fitted(fitted)
        if isinstance(fitted, LabelledGraph):
            self.n_components_ = fitted.propagator.n_components
            if fitted.propagator.mu is not None:
                self.mu_ = fitted.propagator.mu
        else:
            self.__dict__.pop("_candidates", None)


def leave_one_out(model: TransductiveClassifier) -> Floats:
    """Leave-one-out scores (l, c): each labelled row by all other labels, in closed form: F_i - G_ii y_i.

    Labelled rows come in their order in the data. The result equals refitting l times. A row whose class has no other
    label, or that no other label reaches, cannot be recognised: do not count it. A BlendedClassifier gives its
    out-of-fold scores, without the labels of a fifth of the rows at a time.

    Parameters
    ----------
    model : classifier
        A fitted greenlabel classifier.

    Returns
    -------
    scores : (l, c) array
        Scores of the labelled rows, a column for each of ``model.classes_``.
    """
    if not isinstance(model, TransductiveClassifier):
        raise ParameterError(
            f"leave_one_out takes a greenlabel classifier, got {type(model).__name__}; give the classifier itself "
            "(of a pipeline the last step, pipeline[-1])."
        )
    fitted = model._of_rows("labels")
    return fitted.leave_one_out(np.arange(len(fitted.labels.rows)))
