"""Experts: opinions on the class of every row, each in the same form.

    learn(task, …)     an expert that knows the labels, with
      held_out         (r, l, c) its evidence for each labelled row, learned without the fold of that row
      evidence(X)      (rows, c) for new rows; all zeros where it has nothing to say
      own_evidence     (n, c) for the rows of the data

    GraphExpert        a greenlabel classifier: sees all rows; a fold costs a product, nothing is built again
    WeightedGraph      the same on features times the square root of their importance to the trees; the importance
                       knows labels, so each fold has a graph of its own
    RowExpert          any scikit-learn classifier: sees the labelled rows only, fitted once more for each fold
    KernelRidge        least squares in the space of a kernel, with an intercept

An expert is not changed by learning: ``learn`` returns another one.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from greenlabel._common.threads import in_parallel, one_thread
from greenlabel.blend.weights import log_evidence
from greenlabel.estimators.anchored import AnchoredGreenClassifier
from greenlabel.estimators.base import GraphClassifier
from greenlabel.estimators.knn import GreenClassifier
from greenlabel.graph.distances import all_distances, row_blocks
from greenlabel.labels.encoding import Labels, evidence
from greenlabel.operators.green import DIRECT_ROWS

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

ANCHORED_ROWS = 200_000  # beyond so many rows the graph is an anchored one
WEIGHTED_VALUES = 5_000_000  # up to so many numbers in X there is a weighted graph, built FOLDS + 1 times and kept
TREES = 100
ROUGHLY = 1e-3  # tolerance of held-out scores
FINELY = 1e-8  # tolerance of the scores of a weighted graph, whose neighbours are approximate too
WHOLE = -3  # in place of a fold: the graph of all labels
KERNEL_ROWS = 1000  # labelled rows that a kernel uses at the most
INTERCEPT, RIDGE = 10.0, 0.3  # added to the kernel, and to its diagonal


@dataclass(frozen=True)
class Task:
    """What is to be learned: rows, some of their labels, and the division of these into folds."""

    X: Any  # (n, d)
    labels: Labels
    folds: Ints  # (r, l)

    def splits(self) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """(division, which labelled rows are out) for each fold of each division."""
        for division, fold in enumerate(self.folds):
            yield from ((division, fold == number) for number in np.unique(fold[fold >= 0]))

    def nothing(self) -> Floats:
        return np.zeros((*self.folds.shape, len(self.labels.classes)))

    def in_all_divisions(self, first: Floats) -> Floats:
        """Evidence (l, c) of the first division for all: one says as much as two where other experts differ in both."""
        return np.broadcast_to(first, self.nothing().shape)


class Expert:
    """A name and an opinion; ``model`` is what the user sees of it."""

    name: str
    model: Any
    trust: float = 1.0  # what it is worth, relative to others, before any evidence
    held_out: Floats
    own_evidence: Floats

    def learn(self, task: Task, learned: "dict[str, Expert]") -> Self:
        """This expert, knowing the labels; ``learned`` are those that were asked before it."""
        raise NotImplementedError

    def evidence(self, X: Any) -> Floats:
        raise NotImplementedError

    def for_new_rows(self) -> Self:
        """A copy with what ``evidence`` needs."""
        slim = copy(self)
        for name in ("held_out", "own_evidence", "importances", "estimator", "_make", "_graphs"):
            slim.__dict__.pop(name, None)
        if isinstance(slim.model, GraphClassifier):
            slim.model = slim.model._slim()
        return slim


def learn_all(experts: list[Expert], task: Task) -> list[Expert]:
    learned: dict[str, Expert] = {}
    for expert in experts:
        learned[expert.name] = expert.learn(task, learned)
    return list(learned.values())


# Graphs


class GraphExpert(Expert):
    trust = 4.0  # one label per class, 32 data sets: 64.8 % right so, 63.2 % with equal trust

    def __init__(self, name: str, model: GraphClassifier, X: Any):
        self.name = name
        with same_on_all_threads(X.shape[0]):
            self.model = model._built(X)

    def learn(self, task: Task, learned: dict[str, Expert]) -> Self:
        expert = copy(self)
        with same_on_all_threads(task.labels.n):
            expert.model = copy(self.model)._take(task.labels)
        fold, model = task.folds[0], expert.model
        parts = in_parallel(
            lambda number: model._without(np.where(fold == number, number, -1), ROUGHLY), np.unique(fold[fold >= 0])
        )
        expert.held_out = task.in_all_divisions(evidence(sum(parts, task.nothing()[0])))
        expert.own_evidence = graph_evidence(model.scores_, model.reached_)
        return expert

    def evidence(self, X: Any) -> Floats:
        return graph_evidence(*self.model._extend(X))


def same_on_all_threads(n: int) -> AbstractContextManager[None]:
    """Few rows have a dense factor, which two threads would round otherwise than one."""
    return one_thread() if n <= DIRECT_ROWS else nullcontext()


class WeightedGraph(Expert):
    """``make(tolerance)`` is a model without a graph, ``trees`` names the expert whose importances weight the features.

    The graph of a fold is asked for the rows of that fold alone; all of them are built side by side. They are built for
    the first labels and stay. Rows keep their folds when labels change (``divide_again``), so no graph has ever seen a
    label of the rows that it is asked for. A fold that the first labels did not have holds new rows only, whose labels
    no graph has seen: the graph of all labels answers for it.
    """

    _factor: Floats

    def __init__(self, name: str, make: Callable[[float], GraphClassifier], trees: str):
        self.name, self._make, self._trees = name, make, trees
        self._graphs: dict[int, GraphClassifier] = {}  # of each fold and of WHOLE, without labels

    def learn(self, task: Task, learned: dict[str, Expert]) -> Self:
        expert, labels, fold, first = copy(self), task.labels, task.folds[0], task.nothing()[0]
        numbers = np.unique(fold[fold >= 0]).tolist()
        if not self._graphs:
            expert._build(task.X, learned[self._trees], numbers)

        def spread(number: int) -> GraphClassifier:
            out = fold == number
            model = copy(expert._graphs.get(number, expert._graphs[WHOLE]))._take(labels.without(out))
            first[out] = graph_evidence(model.scores_[labels.rows[out]], model.reached_[labels.rows[out]])
            return model

        expert.model, *_ = in_parallel(spread, [WHOLE, *numbers])
        expert.held_out = task.in_all_divisions(first)
        expert.own_evidence = graph_evidence(expert.model.scores_, expert.model.reached_)
        return expert

    def _build(self, X: Any, trees: Expert, numbers: list[int]) -> None:
        assert isinstance(trees, TreesExpert)
        importances = [trees.model.feature_importances_, *trees.importances[: len(numbers)]]
        factors = [importance_factor(importance) for importance in importances]

        def build(number: int, factor: Floats) -> GraphClassifier:
            model = self._make(FINELY if number == WHOLE else ROUGHLY)._built(weighted(X, factor))
            return model if number == WHOLE else model._for_relabel()

        keys = [WHOLE, *numbers]
        graphs = in_parallel(lambda pair: build(*pair), zip(keys, factors, strict=True))
        self._factor, self._graphs = factors[0], dict(zip(keys, graphs, strict=True))

    def evidence(self, X: Any) -> Floats:
        return graph_evidence(*self.model._extend(weighted(X, self._factor)))


def graph_evidence(F: Floats, is_reached: NDArray[np.bool_]) -> Floats:
    return evidence(F) * is_reached[:, None]


def importance_factor(importance: Floats) -> Floats:
    """Square roots of importances, scaled to mean 1; ones where nothing is important."""
    total = importance.sum()
    return np.sqrt(importance * len(importance) / total) if total > 0 else np.ones(len(importance))


def weighted(X: Any, factor: Floats) -> Any:
    return sp.csr_array(X * factor) if sp.issparse(X) else X * factor.astype(X.dtype)


# Rows


class RowExpert(Expert):
    """``estimator`` has predict_proba. All classes are in all folds, so its columns are the classes."""

    def __init__(self, name: str, estimator: Any):
        self.name, self.estimator = name, estimator

    def learn(self, task: Task, learned: dict[str, Expert]) -> Self:
        expert, labels = copy(self), task.labels
        X, splits = dense_if_small(task.X[labels.rows]), list(task.splits())
        kept = [~out for _, out in splits]
        with quiet():
            *models, expert.model = in_parallel(
                lambda rows: expert._fit(X[rows], labels.codes[rows]), [*kept, np.ones(len(labels.rows), bool)]
            )
        expert.held_out = task.nothing()
        for (division, out), model in zip(splits, models, strict=True):
            expert.held_out[division, out] = self._answer(model, X[out])
        expert._remember(models)
        expert.own_evidence = expert.evidence(task.X)
        return expert

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
    """Trees, and how important each feature was to them: for each fold."""

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
        self._P, self._d = X[rows], varying_columns(X)
        K = np.asarray(self._kernel(self._P), dtype=np.float64)
        K[np.diag_indices(len(rows))] += RIDGE
        Y = np.eye(codes.max() + 1)[codes[rows]]
        self._coefficients = scipy.linalg.solve(K, Y, assume_a="pos", check_finite=False)
        return self

    def scores(self, X: Any) -> Floats:
        return self._kernel(X) @ self._coefficients

    def _kernel(self, X: Any) -> Floats:
        return np.exp(-all_distances(X, self._P, absolute=self.absolute) / self._d) + INTERCEPT


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


# The usual ones


def plain_graph(n: int, seed: int) -> GraphClassifier:
    if n > ANCHORED_ROWS:
        return AnchoredGreenClassifier(random_state=seed)
    model = GreenClassifier(min(10, n - 1), random_state=seed)
    model._remembers = True
    return model


def quick_graph(n: int, seed: int, tolerance: float) -> GraphClassifier:
    """The same as one of many: its neighbours are approximate where rows are many, its mu is the usual one."""
    if n > ANCHORED_ROWS:
        return AnchoredGreenClassifier(random_state=seed)
    model = GreenClassifier(min(10, n - 1), solver="cg", random_state=seed)
    model._is_quick, model._tolerance, model._remembers = True, tolerance, True
    return model


def usual_experts(X: Any, seed: int) -> list[Expert]:
    """The experts of experts="auto" for scaled features."""
    from sklearn.ensemble import ExtraTreesClassifier  # slow to import
    from sklearn.linear_model import LogisticRegression

    n, d = X.shape
    trees = TreesExpert("trees", ExtraTreesClassifier(TREES, random_state=seed))
    found: list[Expert] = [GraphExpert("graph", plain_graph(n, seed), X), trees]
    if n * d <= WEIGHTED_VALUES:
        found.append(WeightedGraph("weighted graph", partial(quick_graph, n, seed), trees.name))
    return [
        *found,
        RowExpert("logistic", LogisticRegression(max_iter=300)),
        KernelExpert("rbf kernel", KernelRidge(absolute=False, seed=seed)),
        KernelExpert("laplace kernel", KernelRidge(absolute=True, seed=seed)),
    ]
