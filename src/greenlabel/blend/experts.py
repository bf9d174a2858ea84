"""The experts of a blend: graphs, which see all rows, and which experts are usual.

    GraphExpert        a greenlabel classifier: sees all rows; a fold costs a product, nothing is built again
    WeightedGraph      the same on features times the square root of their importance to the trees; the importance
                       knows labels, so each fold has a graph of its own

What an expert is stands in ``task``, those that see labelled rows only in ``row_experts``.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.threads import in_parallel, one_thread
from greenlabel.blend.row_experts import KernelExpert, KernelRidge, RowExpert, TreesExpert
from greenlabel.blend.task import Expert, Floats, Task
from greenlabel.estimators.anchored import AnchoredGreenClassifier
from greenlabel.estimators.base import GraphClassifier
from greenlabel.estimators.knn import GreenClassifier
from greenlabel.labels.encoding import evidence
from greenlabel.operators.green import DIRECT_ROWS

ANCHORED_ROWS = 200_000  # beyond so many rows the graph is an anchored one
WEIGHTED_VALUES = 5_000_000  # up to so many numbers in X there is a weighted graph, built FOLDS + 1 times and kept
TREES = 100
ROUGHLY = 1e-3  # tolerance of held-out scores
FINELY = 1e-8  # tolerance of the scores of a weighted graph, whose neighbours are approximate too
WHOLE = -3  # in place of a fold: the graph of all labels


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
