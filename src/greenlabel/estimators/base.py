"""What all estimators share: from features and labels to classes and probabilities.

    fit(X, y)      the graph and the operator, which know no labels; then the labels
    relabel(y)     the labels alone

A fitted estimator computes scores, probabilities and classes of its rows on first use.
"""

import copy
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from greenlabel._common.parameters import warn_unreached
from greenlabel.blocks.rows import Blocks
from greenlabel.errors import DataError, DataTypeError, LabelError
from greenlabel.graph.distances import row_blocks
from greenlabel.graph.features import FILL, CheckFeatures, as_numbers, check_finite, check_numeric, in_units, unit_of
from greenlabel.graph.projection import sample_rows
from greenlabel.graph.similarity import reached_components
from greenlabel.labels.encoding import Labels, Verdict, as_labels, calibrate, evenly, is_unlabelled, read_labels
from greenlabel.labels.offsets import class_offsets

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

ROUGH = 1e-2  # tolerance of the held-out scores from which the temperature is chosen
LEAST_HELD_OUT, HELD_OUT_WORK = 200, 20_000_000  # labels that may be held out, and rows of data times those
OFFSET_ROWS = 500  # labelled rows from which class offsets are found
SHIFT_ROWS = 4096  # rows whose scores tell the shares of the classes in the data


class GraphClassifier(ClassifierMixin, BaseEstimator):
    """Labels in, classes and probabilities out; a subclass builds the graph and spreads the labels.

    A subclass defines
        _check_parameters()  raises ParameterError
        _build(X)            whatever does not depend on the labels; sets n_components_
        _spread()            the scores from self._labels
        _label_components()  the component of each labelled row
        _reached()           which rows a label reaches
        _all_scores()        F of the rows of the fit
        _extend(X)           F of new rows, and which of them a label reaches
        _held_out(places, tolerance)  leave-one-out scores of some of the labelled rows
        _scores_of(labels, rows, tolerance)  F of some rows, were these the labels
    """

    _unit: float | None  # of the features
    _wants_offsets = False
    _is_slim = False  # a copy for new rows
    _only_for_fit: tuple[str, ...] = ("_operator", "_graph", "_component")

    def fit(self, X: Any, y: Any) -> Self:
        """Build the graph of the rows of X and spread the labels y over it.

        Parameters
        ----------
        X : (n, d) array, sparse matrix or data frame of numbers
        y : (n,) labels; -1 where unknown. None, NaN and "" are unknown too.
        """
        with self._or_as_before():
            self._check_parameters()
            X, n, y = self._open(X, y, reset=True)
            labels = read_labels(y, n, type(self).__name__)
            self._build(X)
            return self._take(labels)._warn_unreached()

    def relabel(self, y: Any) -> Self:
        """Other labels on the same graph: nothing that depends on the features alone is computed again."""
        self._check_fitted()
        with self._or_as_before():
            return self._take(read_labels(y, self._labels.n, type(self).__name__))._warn_unreached()

    def _open(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, int, Any]:
        """Features as _build takes them, the number of rows, and labels as they came."""
        X = check_features(self, X, reset=reset)
        return self._as_built_from(X), X.shape[0], y

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    @contextmanager
    def _or_as_before(self) -> Iterator[None]:
        """What is refused, or interrupted, leaves the model as it was."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _built(self, X: Any) -> Self:
        """The graph of features that were checked before; ``_take`` gives it labels."""
        self._check_parameters()
        self._is_graph, self._unit, self.n_features_in_ = False, 1.0, X.shape[1]
        self._build(self._as_built_from(X))
        return self

    def _for_relabel(self) -> Self:
        """A built model without what only new rows need: it takes labels, and answers for its own rows."""
        return self

    def _as_built_from(self, X: Any) -> Any:
        """Checked features in the form that _build takes."""
        return X

    def _without(self, fold: Ints, tolerance: float) -> Floats:
        """Scores (l, c) of each labelled row without the labels of its fold.

        Zero where the fold is -1, which is never left out, and where none of the other labels reaches the row.
        """
        F, of_label = np.zeros((len(fold), len(self.classes_))), self._label_components()
        for number in np.unique(fold[fold >= 0]):
            out = fold == number
            rows, left = self._labels.rows[out], self._labels.without(out)
            holds_label = reached_components(of_label, self.n_components_, np.flatnonzero(~out))
            F[out] = self._scores_of(left, rows, tolerance) * holds_label[of_label[out], None]
        return F

    def _take(self, labels: Labels) -> Self:
        self._labels = labels
        self.classes_ = labels.classes
        self._kept: dict[str, Any] = {}
        self._is_slim = False
        self._spread()
        return self

    def _warn_unreached(self) -> Self:
        """Rows that no label reaches are answered by the shares of the labels: a warning where they are many."""
        if self.n_components_ > 1:
            warn_unreached(self._n_unreached(), self._labels.n)
        return self

    def _n_unreached(self) -> int:
        return int((~self.reached_).sum())

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_kept")

    @property
    def reached_(self) -> Bools:
        """False where a row's component holds no label (n,)."""
        self._check_fitted()
        return self._keep("reached", self._reached)

    @property
    def scores_(self) -> Floats:
        """F = G Y (n, c), labelled rows included and not clamped."""
        self._check_fitted()
        return self._keep("scores", self._all_scores)

    @property
    def class_offsets_(self) -> Floats:
        """What is added to the scores of each class before the largest is taken (c,), on the scale of ``scores_``."""
        self._check_fitted()
        return self._keep("offsets", self._find_offsets)

    @property
    def label_distributions_(self) -> Floats:
        """Probabilities of the classes for each row (n, c)."""
        self._check_fitted()
        return self._keep("distributions", self._distribute)

    @property
    def transduction_(self) -> NDArray[Any]:
        """The class of each row (n,), that of the largest of ``scores_ + class_offsets_``, of labelled rows too."""
        self._check_fitted()
        return self._keep("transduction", self._transduce)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each new row."""
        F, is_reached = self._new_rows(X)
        return self._verdict().decide(F, is_reached)

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class for each new row."""
        F, is_reached = self._new_rows(X)
        return self._calibrated().probabilities(F, is_reached)

    def answer_new_rows(self, X: Any) -> tuple[Floats, Bools]:
        """``predict_proba``, and which of the rows a label reaches."""
        F, is_reached = self._new_rows(X)
        return self._calibrated().probabilities(F, is_reached), is_reached

    def decision_function(self, X: Any) -> Floats:
        """Scores of new rows and ``class_offsets_``, on the scale of ``scores_``; the largest is the class of the row.

        For two classes it is one column, positive for the second. Of a row that no label reaches it says nothing:
        ``predict`` goes by the shares of the labels there.
        """
        F, _ = self._new_rows(X)
        F = self._verdict().adjusted(F)
        return F[:, 1] - F[:, 0] if F.shape[1] == 2 else F

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of right answers on the rows of y that carry a label, so that a grid search can be given them all."""
        y, answer = as_labels(y), self.predict(X)
        known = np.flatnonzero(~is_unlabelled(y))
        weight = np.ones(len(answer)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if not len(known):
            raise LabelError("y holds no label to score against; give some true labels.")
        if not len(answer) == len(y) == len(weight):
            raise LabelError(
                f"X has {len(answer)} rows, y {len(y)}, sample_weight {len(weight)}; give one each per row."
            )
        return float(np.average(answer[known] == y[known], weights=weight[known]))

    def _keep(self, name: str, compute: Callable[[], Any]) -> Any:
        if name not in self._kept and self._is_slim:
            raise AttributeError(
                f"a {type(self).__name__} for new rows keeps no {name} of the rows of its fit; use predict_proba."
            )
        if name not in self._kept:
            self._kept[name] = compute()
        return self._kept[name]

    def _new_rows(self, X: Any) -> tuple[Floats, Bools]:
        self._check_fitted()
        return self._extend(check_features(self, X, reset=False))

    def _transduce(self) -> NDArray[Any]:
        n, c, verdict = self._labels.n, len(self.classes_), self._verdict()
        parts = [verdict.decide(self.scores_[rows], self.reached_[rows]) for rows in row_blocks(n, c)]
        return np.concatenate(parts)

    def _distribute(self) -> Floats:
        return self._calibrated().probabilities(self.scores_, self.reached_)

    def _verdict(self) -> Verdict:
        return Verdict(self.classes_, self._labels.shares, self.class_offsets_)

    def _calibrated(self) -> Verdict:
        return replace(self._verdict(), temperature=self._keep("temperature", self._calibrate))

    def _calibrate(self) -> float:
        offsets = self.class_offsets_
        return calibrate(self._labels, self._joined(), lambda places: self._held_out(places, ROUGH) + offsets)

    def _find_offsets(self) -> Floats:
        labels = self._labels
        if not self._wants_offsets:
            return np.zeros(len(labels.classes))
        chosen = evenly(np.arange(len(labels.rows)), OFFSET_ROWS)
        H = self._held_out_roughly(chosen)
        H[~self._recognisable()[chosen]] = 0
        return class_offsets(H, labels.codes[chosen], labels.counts, self._some_scores())

    def _some_scores(self) -> Floats:
        """F of some rows without a label that a label reaches."""
        rows = some_rows_without_label(self._labels)
        return self.scores_[rows[self.reached_[rows]]]

    def _held_out_roughly(self, places: Ints) -> Floats:
        """Leave-one-out scores, as cheap as they can be."""
        return self._held_out(places, ROUGH)

    def _recognisable(self) -> Bools:
        """Labelled rows that can be recognised by the other labels: one of them reaches the row, one has its class."""
        return self._joined() & (self._labels.counts[self._labels.codes] > 1)

    def _joined(self) -> Bools:
        """Labelled rows that another label reaches."""
        of_label = self._label_components()
        return np.bincount(of_label, minlength=self.n_components_)[of_label] > 1

    def held_out(self, most: int) -> tuple[Ints, Ints, Floats]:
        """Labelled rows, their classes as numbers, and the probabilities that they get from the other labels alone.

        Rows whose class has no other label, or that no other label reaches, have nothing to be recognised by and are
        left out. Of more than ``most``, an even choice is taken.
        """
        chosen = evenly(
            np.flatnonzero(self._recognisable()), min(most, max(LEAST_HELD_OUT, HELD_OUT_WORK // self._labels.n))
        )
        parts = [self._held_out(chosen[i : i + 128], ROUGH) for i in range(0, len(chosen), 128)]
        F = np.concatenate(parts) if parts else np.empty((0, len(self.classes_)))
        p = self._calibrated().probabilities(F, np.ones(len(F), bool))
        return self._labels.rows[chosen], self._labels.codes[chosen], p

    def for_new_rows(self) -> Self:
        """A copy with what answers for new rows need, without what the fit needed beside that."""
        self._check_fitted()
        slim = self._slim()
        slim._kept |= {"offsets": self.class_offsets_, "temperature": self._keep("temperature", self._calibrate)}
        return slim

    def _slim(self) -> Self:
        """The same, for scores alone."""
        slim = copy.copy(self)
        slim._labels = replace(self._labels)  # without its matrix of n rows
        slim._kept, slim._is_slim = {}, True
        for name in self._only_for_fit:
            slim.__dict__.pop(name, None)
        return slim

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = getattr(self, "graph", "knn") == "precomputed"
        return tags

    def _check_parameters(self) -> None:
        raise NotImplementedError

    def _build(self, X: Any) -> None:
        raise NotImplementedError

    def _spread(self) -> None:
        raise NotImplementedError

    def _label_components(self) -> Ints:
        raise NotImplementedError

    def _reached(self) -> Bools:
        raise NotImplementedError

    def _all_scores(self) -> Floats:
        raise NotImplementedError

    def _extend(self, X: Any) -> tuple[Floats, Bools]:
        raise NotImplementedError

    def _held_out(self, places: Ints, tolerance: float) -> Floats:
        raise NotImplementedError

    def _scores_of(self, labels: Labels, rows: Ints, tolerance: float) -> Floats:
        raise NotImplementedError


def some_rows_without_label(labels: Labels) -> Ints:
    """Row numbers, ascending: the same for the same number of rows, but for those that are labelled."""
    return np.setdiff1d(sample_rows(labels.n, SHIFT_ROWS, np.random.default_rng(0)), labels.rows)


def check_features(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a numeric array or CSR matrix without NaN, in the type it came in, and in the unit of the fit."""
    options = {"accept_sparse": "csr", "dtype": "numeric", "ensure_all_finite": False}
    try:
        X = validate_data(estimator, X, reset=reset, ensure_min_samples=2 if reset else 1, **options)
    except TypeError as error:
        raise DataTypeError(_with_advice(str(error))) from error
    except ValueError as error:
        raise DataError(_with_advice(str(error))) from error
    check_numeric(X.dtype)
    if reset:
        estimator._is_graph = getattr(estimator, "graph", "knn") == "precomputed"
    if estimator._is_graph:
        check_finite(X, "give 0 where two rows have nothing in common")
        return X
    reach = check_finite(X, FILL)
    if reset:
        estimator._unit = unit_of(reach)
    return in_units(X, estimator._unit, reach)


def check_stream(estimator: Any, source: Blocks, *, reset: bool) -> Blocks:
    """Rows that are not in memory: their number and columns now, each block when it is read.

    With ``reset`` the blocks are left as they are: their unit is known only when a sample has been seen.
    """
    if source.n < (2 if reset else 1):
        raise DataError(f"Found {source.n} rows, a minimum of {2 if reset else 1} is required; give more data.")
    ((_, first),) = source.take(np.array([0]))
    first = as_numbers(first)
    if first.ndim != 2:
        raise DataError(f"rows have {first.ndim - 1} dimensions; give one row of numbers for each item.")
    d, names = first.shape[1], source.names
    if reset:
        estimator.n_features_in_, estimator._unit, estimator._is_graph = d, None, False
        estimator.__dict__.pop("feature_names_in_", None)
        if names is not None and len(names) == d:
            estimator.feature_names_in_ = np.array(names, dtype=object)
        return source
    if d != estimator.n_features_in_:
        name, advice = type(estimator).__name__, ADVICE["features as input"]
        raise DataError(f"X has {d} features, but {name} is expecting {estimator.n_features_in_}; {advice}.")
    known = getattr(estimator, "feature_names_in_", names)
    if names is not None and known is not None and len(names) == d and list(names) != list(known):
        raise DataError(f"the feature names of X are not those of the fit; {ADVICE['feature names']}.")
    return source.through(CheckFeatures(d, estimator._unit))


ADVICE = {  # a part of scikit-learn's message: what to do
    "features as input": "give the columns that the model was fitted on, in their order",
    "feature names": "give the columns that the model was fitted on, in their order",
    "NAType": "fill missing values (sklearn.impute.SimpleImputer), or drop those rows or columns",
    "string": "encode text as numbers first (sklearn.preprocessing.OneHotEncoder), or drop it",
    "omplex": "give real numbers, for example two columns for the real and the imaginary part",
    "inhomogeneous": "give rows of the same length",
    "minimum of": "give more data",
}


def _with_advice(message: str) -> str:
    """scikit-learn's message without the data that it prints, and with what to do."""
    message = re.sub(r":?\s*array=.*?(?=Reshape|$)", ". ", message, flags=re.S)
    message = re.sub(r"(?<=Complex data not supported).*", "", message, flags=re.S)
    message = " ".join(message.replace("strings.Convert", "strings. Convert").split()).rstrip(". ")
    advice = next((what for part, what in ADVICE.items() if part in message), "give one row of numbers for each item")
    return f"{message}; {advice}."
