"""What all estimators share: from features and labels to classes and probabilities.

    fit(X, y)      the graph and the operator, which know no labels; then the labels
    relabel(y)     the labels alone

A fitted estimator computes scores, probabilities and classes of its rows on first use.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from greenlabel.errors import DataError, DataTypeError, LabelError
from greenlabel.graph import reached_components
from greenlabel.labels import Labels, as_labels, calibrate, is_unlabelled, probabilities, read_labels
from greenlabel.neighbors import row_blocks

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

SMALL, LARGE, FAR = 1e-9, 1e9, 1e15  # sizes of features: squares of the last still fit in single precision
ROUGH = 1e-2  # tolerance of the held-out scores from which the temperature is chosen


class GraphClassifier(ClassifierMixin, BaseEstimator):
    """Labels in, classes and probabilities out; a subclass builds the graph and spreads the labels.

    A subclass defines
        _check_parameters()  raises ParameterError
        _build(X)            whatever does not depend on the labels; sets n_components_ and _component
        _spread()            the scores from self._labels
        _scores(rows)        F of these rows of the training data
        _extend(X)           F of new rows, and which of them a label reaches
        _held_out(places, tolerance)  leave-one-out scores of some of the labelled rows
        _scores_of(labels, rows, tolerance)  F of some rows, were these the labels
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Build the graph of the rows of X and spread the labels y over it.

        Parameters
        ----------
        X : (n, d) array, sparse matrix or data frame of numbers
        y : (n,) labels; -1 where unknown. None, NaN and "" are unknown too.
        """
        with self._or_as_before():
            self._check_parameters()
            X = check_features(self, X, reset=True)
            labels = read_labels(y, X.shape[0], type(self).__name__)
            self._build(X)
            return self._take(labels)

    def relabel(self, y: Any) -> Self:
        """Other labels on the same graph: nothing that depends on the features alone is computed again."""
        check_is_fitted(self)
        with self._or_as_before():
            return self._take(read_labels(y, self._labels.n, type(self).__name__))

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
        self._build(X)
        return self

    def _without(self, fold: Ints, tolerance: float) -> Floats:
        """Scores (l, c) of each labelled row without the labels of its fold.

        Zero where the fold is -1, which is never left out, and where none of the other labels reaches the row.
        """
        F = np.zeros((len(fold), len(self.classes_)))
        for number in np.unique(fold[fold >= 0]):
            out = fold == number
            rows, left = self._labels.rows[out], self._labels.without(out)
            holds_label = reached_components(self._component, self.n_components_, left.rows)
            F[out] = self._scores_of(left, rows, tolerance) * holds_label[self._component[rows], None]
        return F

    def _take(self, labels: Labels) -> Self:
        self._labels = labels
        self.classes_ = labels.classes
        self.reached_ = reached_components(self._component, self.n_components_, labels.rows)[self._component]
        self._spread()
        self._kept: dict[str, Any] = {}
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_kept")

    @property
    def scores_(self) -> Floats:
        """F = G Y (n, c), labelled rows included and not clamped."""
        check_is_fitted(self)
        return self._keep("scores", lambda: self._scores(slice(None)))

    @property
    def label_distributions_(self) -> Floats:
        """Probabilities of the classes for each row (n, c)."""
        check_is_fitted(self)
        return self._keep("distributions", lambda: self._probabilities(self.scores_, self.reached_))

    @property
    def transduction_(self) -> NDArray[Any]:
        """The class of each row (n,). Rows keep the class their score says, labelled ones too."""
        check_is_fitted(self)
        return self._keep("transduction", self._transduce)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each new row."""
        F, is_reached = self._new_rows(X)
        return self._decide(F, is_reached)

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class for each new row."""
        return self._probabilities(*self._new_rows(X))

    def decision_function(self, X: Any) -> Floats:
        """Scores of new rows on the scale of ``scores_``; for two classes one column, positive for the second.

        Of a row that no label reaches the score says nothing: ``predict`` goes by the shares of the labels there.
        """
        F, _ = self._new_rows(X)
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
        if name not in self._kept:
            self._kept[name] = compute()
        return self._kept[name]

    def _new_rows(self, X: Any) -> tuple[Floats, Bools]:
        check_is_fitted(self)
        return self._extend(check_features(self, X, reset=False))

    def _transduce(self) -> NDArray[Any]:
        n, c = self._labels.n, len(self.classes_)
        parts = [self._decide(self._scores(rows), self.reached_[rows]) for rows in row_blocks(n, c)]
        return np.concatenate(parts)

    def _decide(self, F: Floats, is_reached: Bools) -> NDArray[Any]:
        best = F.argmax(axis=1)
        best[~is_reached] = self._labels.counts.argmax()
        return self.classes_[best]

    def _probabilities(self, F: Floats, is_reached: Bools) -> Floats:
        p = probabilities(F, self._keep("temperature", self._calibrate))
        p[~is_reached] = self._labels.shares
        return p

    def _calibrate(self) -> float:
        """From labelled rows that another label reaches."""
        of_label = self._component[self._labels.rows]
        joined = np.bincount(of_label, minlength=self.n_components_)[of_label] > 1
        return calibrate(self._labels, joined, lambda places: self._held_out(places, ROUGH))

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

    def _scores(self, rows: slice) -> Floats:
        raise NotImplementedError

    def _extend(self, X: Any) -> tuple[Floats, Bools]:
        raise NotImplementedError

    def _held_out(self, places: Ints, tolerance: float) -> Floats:
        raise NotImplementedError

    def _scores_of(self, labels: Labels, rows: Ints, tolerance: float) -> Floats:
        raise NotImplementedError


def check_features(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a numeric array or CSR matrix without NaN, in the type it came in, and in the unit of the fit."""
    options = {"accept_sparse": "csr", "dtype": "numeric", "ensure_all_finite": False}
    try:
        X = validate_data(estimator, X, reset=reset, ensure_min_samples=2 if reset else 1, **options)
    except TypeError as error:
        raise DataTypeError(_with_advice(str(error))) from error
    except ValueError as error:
        raise DataError(_with_advice(str(error))) from error
    if X.dtype.kind not in "fiub":
        raise DataError(
            f"X holds values of type {X.dtype}; convert them to numbers: encode text "
            "(sklearn.preprocessing.OneHotEncoder), count the days since a date."
        )
    if reset:
        estimator._is_graph = getattr(estimator, "graph", "knn") == "precomputed"
    if estimator._is_graph:
        check_finite(X, "give 0 where two rows have nothing in common")
        return X
    reach = check_finite(X, "fill them (sklearn.impute.SimpleImputer), or drop those rows or columns")
    if reset:
        estimator._unit = unit_of(reach)
    return in_units(X, estimator._unit, reach)


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


def check_finite(X: Any, remedy: str) -> float:
    """The largest size of a feature; an error names the first one that is not a number."""
    values = X.data if sp.issparse(X) else X
    reach = max(float(values.max()), -float(values.min())) if values.size else 0.0
    if np.isfinite(reach):
        return reach
    bad = ~np.isfinite(values)
    place = np.argwhere(bad)[0]
    row, column = (int(axis[place[0]]) for axis in X.tocoo().coords) if sp.issparse(X) else place.tolist()
    kind = "NaN" if np.isnan(values[tuple(place)]) else "infinity"
    count = f"{bad.sum():,} value{'s' if bad.sum() > 1 else ''} of NaN or infinity in all"
    raise DataError(f"X holds {kind} at row {row}, column {column} ({count}); {remedy}.")


def unit_of(reach: float) -> float:
    """A power of two near the largest feature where squares of such numbers would not fit, otherwise 1.

    No answer depends on the unit of the features, so a strange one is taken out, to the last bit.
    """
    return 1.0 if reach == 0 or SMALL <= reach <= LARGE else float(np.exp2(np.round(np.log2(reach))))


def in_units(X: Any, unit: float, reach: float) -> Any:
    """X / unit. Of new rows farther away than the others can see, only the direction counts."""
    if unit != 1:
        X = X / unit
    if reach / unit > FAR:
        X = X.astype(np.float64)  # a copy
        values = X.data if sp.issparse(X) else X
        np.clip(values, -FAR, FAR, out=values)
    return X
