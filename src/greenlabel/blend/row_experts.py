"""Experts that see the labelled rows only, one by one, as ordinary classifiers do.

RowExpert          any scikit-learn classifier, fitted once more for each fold
TreesExpert        the same of trees, which also say how important each feature is
KernelRidge        least squares in the space of a kernel, with an intercept
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from greenlabel._common.threads import in_parallel, load_faiss, one_thread
from greenlabel.blend.task import Expert, Floats, Ints, Learned, Task
from greenlabel.blend.weights import log_evidence
from greenlabel.graph.distances import all_distances, row_blocks

# For kernels, and now: loaded by one of several threads it would run on more than one itself, and round otherwise.
load_faiss()

ROWS_AT_ONCE = 1024  # that a model predicts, always: see by_equal_parts
KERNEL_ROWS = 1000  # largest number of labelled rows that a kernel uses
FEWER_TREES = 0.4  # part of the trees that a fold has at a relabel
INTERCEPT, RIDGE = 10.0, 0.3  # added to the kernel, and to its diagonal


class RowExpert(Expert):
    """``estimator`` has predict_proba. All classes are in all folds, so its columns are the classes."""

    def __init__(self, name: str, estimator: Any):
        self.name, self.estimator = name, estimator

    def _learn_folds(self, task: Task, learned: dict[str, Expert]) -> None:
        X, codes, splits = labelled_rows(task), task.labels.codes, list(task.splits())
        with quiet():
            whole, *models = in_parallel(
                lambda out: self.fit_model(X, codes) if out is None else self._fit_fold(X[~out], codes[~out], task),
                [None, *(out for _, out in splits)],
            )
        self.model = whole
        self.out_of_fold = task.nothing()
        for (division, out), model in zip(splits, models, strict=True):
            self.out_of_fold[division, out] = self._evidence(model, X[out])
        self._remember(models)

    def _learn_all(self, task: Task, first: Learned) -> None:
        with quiet(), one_thread():  # as where folds are fitted side by side, so that models are the same to the bit
            self.model = self.fit_model(labelled_rows(task), task.labels.codes)

    def _evidence_of(self, learned: Learned, X: Any, rows: Ints) -> Floats:
        return self._evidence(learned.model, dense_if_small(X[rows])) if len(rows) else self._nothing(learned)

    def _nothing(self, learned: Learned) -> Floats:
        return learned.out_of_fold[0, :0]

    def _own_evidence(self, task: Task) -> Floats:
        return self.evidence(task.X)

    def fit_model(self, X: Any, codes: Ints) -> Any:
        return clone(self.estimator).fit(X, codes)

    def _fit_fold(self, X: Any, codes: Ints, task: Task) -> Any:
        return self.fit_model(X, codes)

    def _remember(self, models: list[Any]) -> None:
        """Keep what is needed of the models of the folds beside their evidence: nothing."""

    def _evidence(self, model: Any, X: Any) -> Floats:
        return log_evidence(model.predict_proba(X))

    def evidence(self, X: Any) -> Floats:
        return by_equal_parts(partial(self._evidence, self.model), X)


def by_equal_parts(evidence: Callable[[Any], Floats], X: Any) -> Floats:
    """evidence(part) of parts of ROWS_AT_ONCE rows, one below the other.

    Products of matrices round by their shape. The last part is filled up with copies of its last row, so that the
    evidence of a row is the same to the last bit among any others: in memory, in any block, alone.
    """

    def of_part(start: int) -> Floats:
        part = dense_if_small(X[start : start + ROWS_AT_ONCE])
        n = part.shape[0]
        return evidence(part if n == ROWS_AT_ONCE else part[np.minimum(np.arange(ROWS_AT_ONCE), n - 1)])[:n]

    return np.concatenate(in_parallel(of_part, range(0, X.shape[0], ROWS_AT_ONCE)))


def labelled_rows(task: Task) -> Any:
    return dense_if_small(task.X[task.labels.rows])


class TreesExpert(RowExpert):
    """Extra trees, and how important each feature was to them: for each fold."""

    importances: list[Floats]

    def _fit_fold(self, X: Any, codes: Ints, task: Task) -> Any:
        """Where labels were changed, fewer trees are enough to show what trees are worth."""
        if task.is_first:
            return self.fit_model(X, codes)
        estimator = clone(self.estimator)
        n_trees = max(1, round(FEWER_TREES * estimator.n_estimators))
        return estimator.set_params(n_estimators=n_trees).fit(X, codes)

    def evidence(self, X: Any) -> Floats:
        """A row goes down the trees by itself: parts may be of any size, and large ones are faster."""

        def of_part(rows: slice) -> Floats:
            return self._evidence(self.model, dense_if_small(X[rows]))

        return np.concatenate(in_parallel(of_part, row_blocks(*X.shape)))

    def _remember(self, models: list[Any]) -> None:
        self.importances = [model.feature_importances_ for model in models]


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings of models that have not converged or see few classes: tested rows show what they are worth."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


class KernelExpert(RowExpert):
    """``estimator`` is a KernelRidge, which gives scores instead of probabilities."""

    def fit_model(self, X: Any, codes: Ints) -> Any:
        return copy(self.estimator).fit(X, codes)

    def _evidence(self, model: Any, X: Any) -> Floats:
        F = model.scores(X)
        return F - F.mean(axis=1, keepdims=True)


class KernelRidge:
    """F = K(X, X_l) (K(X_l, X_l) + ridge I)^-1 Y with K = exp(-distance / d) + intercept."""

    def __init__(self, *, absolute: bool, seed: int):
        self.absolute, self.seed = absolute, seed

    def fit(self, X: Any, codes: Ints) -> Self:
        rows = some_of_each(codes, KERNEL_ROWS, np.random.default_rng(self.seed))
        self.points, self.n_varying = X[rows], varying_columns(X)
        K = np.asarray(self._kernel(self.points), dtype=np.float64)
        K[np.diag_indices(len(rows))] += RIDGE
        Y = np.eye(codes.max() + 1)[codes[rows]]
        self.coefficients = scipy.linalg.solve(K, Y, assume_a="pos", check_finite=False)
        return self

    def scores(self, X: Any) -> Floats:
        return self._kernel(X) @ self.coefficients

    def _kernel(self, X: Any) -> Floats:
        K = all_distances(X, self.points, absolute=self.absolute)
        K /= -self.n_varying
        np.exp(K, out=K)
        K += INTERCEPT
        return K


def varying_columns(X: Any) -> int:
    """The number of columns that vary among the labelled rows; at least 1."""
    return max(1, int(((X.max(axis=0) - X.min(axis=0)) != 0).sum()))


def some_of_each(codes: Ints, max_rows: int, rng: np.random.Generator) -> Ints:
    """Indices of at most ``max_rows`` labels, the same number of each class as far as it has them."""
    if len(codes) <= max_rows:
        return np.arange(len(codes))
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    counts = np.bincount(codes)
    rank = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)  # within its class
    return np.sort(order[np.argsort(rank, kind="stable")[:max_rows]])


def dense_if_small(X: Any, max_values: int = 50_000_000) -> Any:
    return X.toarray() if sp.issparse(X) and X.shape[0] * X.shape[1] <= max_values else X
