"""The experts of a blend: graphs, which see all rows, and which experts are usual.

    GraphExpert        a greenlabel classifier: sees all rows; a fold costs a product, nothing is built again
    WeightedGraph      the same on features times the square root of their importance to the trees; the importance
                       knows labels, so each fold has a graph of its own

What an expert is stands in ``task``, those that see labelled rows only in ``row_experts``.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.parameters import check_seed
from greenlabel._common.threads import in_parallel, one_thread
from greenlabel.blend.row_experts import KernelExpert, KernelRidge, RowExpert, TreesExpert
from greenlabel.blend.task import Expert, Floats, Ints, Learned, Task
from greenlabel.estimators.anchored import AnchoredGreenClassifier
from greenlabel.estimators.base import GraphClassifier
from greenlabel.estimators.knn import GreenClassifier
from greenlabel.estimators.labelled import LabelledGraph
from greenlabel.labels.encoding import evidence
from greenlabel.operators.green import DIRECT_ROWS
from greenlabel.propagators.base import Propagation
from greenlabel.propagators.candidates import Candidates
from greenlabel.propagators.knn import GreenSettings, quick_settings

MakePropagators = Callable[[Any], Candidates]

ANCHORED_ROWS = 200_000  # beyond so many rows the graph is an anchored one
WEIGHTED_VALUES = 5_000_000  # up to so many numbers in X there is a weighted graph, built FOLDS + 1 times and kept
TREES = 100
ROUGHLY = 1e-3  # tolerance of out-of-fold scores
FINELY = 1e-8  # tolerance of the scores of a weighted graph, whose neighbours are approximate too
WHOLE = -3  # in place of a fold: the graph of all labels


# Graphs


class GraphExpert(Expert):
    """Propagators of all rows; ``shell`` is the estimator that shows them."""

    trust = 4.0  # one label per class, 32 data sets: 64.8 % right so, 63.2 % with equal trust
    model: GraphClassifier

    def __init__(self, name: str, shell: GraphClassifier, X: Any, make: MakePropagators | None = None):
        self.name, self.shell, self._d = name, shell, X.shape[1]
        with same_on_all_threads(X.shape[0]):
            self.candidates = (make or shell.propagators)(X)

    def _learn_folds(self, task: Task, learned: dict[str, Expert]) -> None:
        self._spread(self.candidates, task)
        fold, propagation = task.folds[0], self.model.fitted_.propagation
        parts = in_parallel(
            lambda number: propagation.out_of_fold(np.where(fold == number, number, -1), ROUGHLY),
            np.unique(fold[fold >= 0]),
        )
        self.out_of_fold = task.in_all_divisions(evidence(sum(parts, task.nothing()[0])))

    def _learn_all(self, task: Task, first: Learned) -> None:
        self._spread(self.candidates.only(first.model.propagator_), task)  # its mu is the one that was tested

    def _spread(self, candidates: Candidates, task: Task) -> None:
        with same_on_all_threads(task.labels.n):
            fitted = self.shell.labelled(candidates, task.labels)
        self.model = self.shell.with_fitted(fitted, self._d, candidates=self.candidates)

    def _evidence_of(self, learned: Learned, X: Any, rows: Ints) -> Floats:
        return evidence_on(learned.model, rows)

    def _own_evidence(self, task: Task) -> Floats:
        return evidence_on(self.model, slice(None))

    def evidence(self, X: Any) -> Floats:
        return graph_evidence(*self.model.fitted_.predictor.scores(X))

    def evidence_on_rows(self, X: Any, rows: Ints) -> Floats:
        return evidence_on(self.model, rows)

    def for_prediction(self) -> Self:
        return with_slim_model(super().for_prediction())


def with_slim_model(expert: Any) -> Any:
    """The expert with what scores of new rows need."""
    expert.model = expert.model.with_fitted(expert.model.fitted_.for_scores(), expert.model.n_features_in_)
    return expert


def same_on_all_threads(n: int) -> AbstractContextManager[None]:
    """One thread for few rows, whose dense factor two threads would round differently."""
    return one_thread() if n <= DIRECT_ROWS else nullcontext()


class WeightedGraph(Expert):
    """Propagators on weighted features; ``trees`` names the expert whose importances weight them.

    The graph of a fold is asked for the rows of that fold alone; all of them are built side by side. They are built for
    the first labels and stay. Rows keep their folds when labels change (``divide_again``), so no graph has ever seen a
    label of the rows that it is asked for. A fold that the first labels did not have holds new rows only, whose labels
    no graph has seen: the graph of all labels serves it.
    """

    factor: Floats  # (d,) what each feature is multiplied by
    model: GraphClassifier
    needed = ("name", "model", "factor")

    def __init__(self, name: str, shell: GraphClassifier, make: MakePropagators, trees: str):
        self.name, self.shell, self._make, self._trees = name, shell, make, trees
        self.graphs: dict[int, Candidates] = {}  # of each fold and of WHOLE

    def _learn_folds(self, task: Task, learned: dict[str, Expert]) -> None:
        labels, fold, first = task.labels, task.folds[0], task.nothing()[0]
        numbers = np.unique(fold[fold >= 0]).tolist()
        if not self.graphs:
            self._build(task.X, learned[self._trees], numbers)

        def spread(number: int) -> Propagation:
            out = fold == number
            graphs = self.graphs.get(number, self.graphs[WHOLE])
            propagation = graphs.propagate(labels.without(out), FINELY if graphs is self.graphs[WHOLE] else ROUGHLY)
            rows = labels.rows[out]
            first[out] = graph_evidence(propagation.scores[rows], propagation.reached[rows])
            return propagation

        whole, *_ = in_parallel(spread, [WHOLE, *numbers])
        self._set_model(whole, task)
        self.out_of_fold = task.in_all_divisions(first)

    def _learn_all(self, task: Task, first: Learned) -> None:
        self._set_model(self.graphs[WHOLE].propagate(task.labels, FINELY), task)

    def _set_model(self, whole: Propagation, task: Task) -> None:
        fitted = LabelledGraph(whole, wants_offsets=True)
        self.model = self.shell.with_fitted(fitted, task.X.shape[1], candidates=self.graphs[WHOLE])

    def _evidence_of(self, learned: Learned, X: Any, rows: Ints) -> Floats:
        return evidence_on(learned.model, rows)

    def _own_evidence(self, task: Task) -> Floats:
        return evidence_on(self.model, slice(None))

    def _build(self, X: Any, trees: Expert, numbers: list[int]) -> None:
        assert isinstance(trees, TreesExpert)
        importances = [trees.model.feature_importances_, *trees.importances[: len(numbers)]]
        factors = [importance_factor(importance) for importance in importances]

        def build(number: int, factor: Floats) -> Candidates:
            made = self._make(weighted(X, factor))
            return made if number == WHOLE else made.for_own_rows()

        keys = [WHOLE, *numbers]
        graphs = in_parallel(lambda pair: build(*pair), zip(keys, factors, strict=True))
        self.factor, self.graphs = factors[0], dict(zip(keys, graphs, strict=True))

    def evidence(self, X: Any) -> Floats:
        return graph_evidence(*self.model.fitted_.predictor.scores(weighted(X, self.factor)))

    def evidence_on_rows(self, X: Any, rows: Ints) -> Floats:
        return evidence_on(self.model, rows)

    def for_prediction(self) -> Self:
        return with_slim_model(super().for_prediction())


def evidence_on(model: GraphClassifier, rows: Any) -> Floats:
    """Evidence for some rows of the fit of a model."""
    return graph_evidence(model.scores_[rows], model.reached_[rows])


def graph_evidence(F: Floats, is_reached: NDArray[np.bool_]) -> Floats:
    return evidence(F) * is_reached[:, None]


def importance_factor(importance: Floats) -> Floats:
    """Square roots of importances, scaled to mean 1; ones where nothing is important."""
    total = importance.sum()
    return np.sqrt(importance * len(importance) / total) if total > 0 else np.ones(len(importance))


def weighted(X: Any, factor: Floats) -> Any:
    return sp.csr_array(X * factor) if sp.issparse(X) else X * factor.astype(X.dtype)


# The usual ones


def plain_graph(name: str, X: Any, seed: int) -> GraphExpert:
    n = X.shape[0]
    if n > ANCHORED_ROWS:
        return GraphExpert(name, AnchoredGreenClassifier(random_state=seed), X)
    shell = GreenClassifier(min(10, n - 1), random_state=seed)

    def make(X: Any) -> Candidates:
        return GreenSettings(remembers=True).candidates(*shell.graph_settings(n).build(X))

    return GraphExpert(name, shell, X, make)


def weighted_graph(name: str, n: int, seed: int, trees: str) -> WeightedGraph:
    """One of many graphs: its neighbours are approximate where rows are many, its mu is the usual one."""
    if n > ANCHORED_ROWS:
        anchored = AnchoredGreenClassifier(random_state=seed)
        return WeightedGraph(name, anchored, anchored.propagators, trees)
    k = min(10, n - 1)
    return WeightedGraph(
        name, GreenClassifier(k, solver="cg", random_state=seed), partial(quick_propagators, k, seed), trees
    )


def quick_propagators(k: int, seed: int, X: Any) -> Candidates:
    graph, neighbourhood = quick_settings(k, check_seed(seed)).build(X)
    return GreenSettings(solver="cg", tries_mu=False, remembers=True).candidates(graph, neighbourhood)


def usual_experts(X: Any, seed: int) -> list[Expert]:
    """The experts of experts="auto" for scaled features."""
    from sklearn.ensemble import ExtraTreesClassifier  # slow to import
    from sklearn.linear_model import LogisticRegression

    n, d = X.shape
    trees = TreesExpert("trees", ExtraTreesClassifier(TREES, random_state=seed))
    found: list[Expert] = [plain_graph("graph", X, seed), trees]
    if n * d <= WEIGHTED_VALUES:
        found.append(weighted_graph("weighted graph", n, seed, trees.name))
    return [
        *found,
        RowExpert("logistic", LogisticRegression(max_iter=300)),
        KernelExpert("rbf kernel", KernelRidge(absolute=False, seed=seed)),
        KernelExpert("laplace kernel", KernelRidge(absolute=True, seed=seed)),
    ]
