"""Experts that see the labelled rows only, one by one, as ordinary classifiers do.

RowExpert          any scikit-learn classifier, fitted once more for each fold
TreesExpert        the same of trees, which also say how important each feature is
KernelRidge        least squares in the space of a kernel, with an intercept
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from greenlabel._common.threads import in_parallel, one_thread
from greenlabel.blend.task import Expert, Floats, Ints, Task
from greenlabel.blend.weights import log_evidence
from greenlabel.graph.distances import all_distances, row_blocks
from greenlabel.labels.encoding import Labels

KERNEL_ROWS = 1000  # labelled rows that a kernel uses at the most
INTERCEPT, RIDGE = 10.0, 0.3  # added to the kernel, and to its diagonal


@dataclass(frozen=True)
class Learned:
    """What an expert has learned from some labels."""

    labels: Labels
    held_out: Floats  # (r, l, c) as of an expert
    model: Any


class RowExpert(Expert):
    """``estimator`` has predict_proba. All classes are in all folds, so its columns are the classes.

    Where a few labels were added since the fit (``task.keeps_folds``), only the model of all labels is fitted again.
    The evidence of rows that were held out at the fit stays: it comes from models that did not see their labels. The
    new rows are answered by the model of all labels of the fit, which has not seen theirs either.
    """

    _first: Learned | None = None  # from the labels of the fit

    def __init__(self, name: str, estimator: Any):
        self.name, self.estimator = name, estimator

    def learn(self, task: Task, learned: dict[str, Expert]) -> Self:
        expert, X = copy(self), dense_if_small(task.X[task.labels.rows])
        first = self._first
        with quiet():
            if task.keeps_folds and first is not None and len(first.held_out) == len(task.folds):
                with one_thread():  # as where folds are fitted side by side, so that models are the same to the bit
                    expert._learn_more(task, X, first)
            else:
                expert._learn_folds(task, X)
        if first is None:
            expert._first = Learned(task.labels, expert.held_out, expert.model)
        expert.own_evidence = expert.evidence(task.X)
        return expert

    def _learn_folds(self, task: Task, X: Any) -> None:
        codes, splits = task.labels.codes, list(task.splits())
        whole, *models = in_parallel(
            lambda out: self._fit(X, codes) if out is None else self._fit(X[~out], codes[~out]),
            [None, *(out for _, out in splits)],
        )
        self.model = whole
        self.held_out = task.nothing()
        for (division, out), model in zip(splits, models, strict=True):
            self.held_out[division, out] = self._answer(model, X[out])
        self._remember(models)

    def _learn_more(self, task: Task, X: Any, first: Learned) -> None:
        is_new = ~np.isin(task.labels.rows, first.labels.rows)
        self.held_out, self.model = task.nothing(), first.model
        self.held_out[:, ~is_new] = first.held_out
        if is_new.any():
            self.held_out[:, is_new] = self._answer(first.model, X[is_new])
            self.model = self._fit(X, task.labels.codes)

    def _fit(self, X: Any, codes: Ints) -> Any:
        return clone(self.estimator).fit(X, codes)

    def _remember(self, models: list[Any]) -> None:
        """What is to be known of the models of the folds beside their answers: nothing."""

    def _answer(self, model: Any, X: Any) -> Floats:
        return log_evidence(model.predict_proba(X))

    def evidence(self, X: Any) -> Floats:
        def answer(rows: slice) -> Floats:
            return self._answer(self.model, dense_if_small(X[rows]))

        return np.concatenate(in_parallel(answer, row_blocks(*X.shape)))


class TreesExpert(RowExpert):
    """Extra trees, and how important each feature was to them: for each fold."""

    importances: list[Floats]

    def _remember(self, models: list[Any]) -> None:
        self.importances = [model.feature_importances_ for model in models]


@contextmanager
def quiet() -> Iterator[None]:
    """Without warnings of models that have not converged or see few classes: held-out rows tell what they are worth."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


class KernelExpert(RowExpert):
    """``estimator`` is a KernelRidge, which answers with scores instead of probabilities."""

    def _fit(self, X: Any, codes: Ints) -> Any:
        return copy(self.estimator).fit(X, codes)

    def _answer(self, model: Any, X: Any) -> Floats:
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
        return np.exp(-all_distances(X, self.points, absolute=self.absolute) / self.n_varying) + INTERCEPT


def varying_columns(X: Any) -> int:
    """How many columns tell labelled rows apart; 1 at the least."""
    return max(1, int(((X.max(axis=0) - X.min(axis=0)) != 0).sum()))


def some_of_each(codes: Ints, most: int, rng: np.random.Generator) -> Ints:
    """Places of at most so many labels, the same number of each class as far as there are so many."""
    if len(codes) <= most:
        return np.arange(len(codes))
    order = rng.permutation(len(codes))
    order = order[np.argsort(codes[order], kind="stable")]
    counts = np.bincount(codes)
    rank = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)  # within its class
    return np.sort(order[np.argsort(rank, kind="stable")[:most]])


def dense_if_small(X: Any, most: int = 50_000_000) -> Any:
    return X.toarray() if sp.issparse(X) and X.shape[0] * X.shape[1] <= most else X
