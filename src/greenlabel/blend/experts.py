"""The experts of a blend: graphs, which see all rows, and which experts are usual.

    GraphExpert        a greenlabel classifier: sees all rows; a fold costs a product, nothing is built again
    WeightedGraph      the same on features times the square root of their importance to the trees; the importance
                       knows labels, so each fold has a graph of its own

What an expert is stands in ``task``, those that see labelled rows only in ``row_experts``.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.parameters import check_seed
from greenlabel._common.threads import in_parallel, one_thread
from greenlabel.blend.adding import ExpertInBlocks, OverAnchors, added_bytes, kept_near
from greenlabel.blend.in_blocks import RowsInBlocks, weighted
from greenlabel.blend.row_experts import KernelExpert, KernelRidge, RowExpert, TreesExpert
from greenlabel.blend.task import Expert, Floats, Ints, Learned, Task
from greenlabel.blocks.rows import Blocks
from greenlabel.errors import ParameterError
from greenlabel.estimators.anchored import AnchoredGreenClassifier
from greenlabel.estimators.base import GraphClassifier
from greenlabel.estimators.knn import GreenClassifier
from greenlabel.estimators.labelled import LabelledGraph
from greenlabel.graph.mixing import near_bytes
from greenlabel.labels.encoding import Labels, evidence
from greenlabel.operators.green import DIRECT_ROWS
from greenlabel.propagators.anchored import ANCHORED_SHIFT
from greenlabel.propagators.base import Propagation
from greenlabel.propagators.candidates import Candidates
from greenlabel.propagators.knn import GreenSettings, quick_settings

MakePropagators = Callable[[Any], Candidates]

ANCHORED_ROWS = 200_000  # beyond so many rows the graph is an anchored one
WEIGHTED_VALUES = 5_000_000  # up to so many numbers in X there is a weighted graph, built FOLDS + 1 times and kept
TREES = 100
ROUGHLY = 1e-3  # tolerance of out-of-fold scores
FINELY = 1e-8  # tolerance of the scores of a weighted graph, whose neighbours are approximate too
FOLD_ANCHORS, ROWS_PER_ANCHOR = 1024, 4  # of the anchored graph of a fold; fewer rows have the usual number
WHOLE = -3  # in place of a fold: the graph of all labels


# Graphs


class GraphExpert(Expert):
    """Propagators of all rows; ``shell`` is the estimator that shows them."""

    trust = 4.0  # one label per class, 32 data sets: 64.8 % right so, 63.2 % with equal trust
    model: GraphClassifier

    def __init__(self, name: str, shell: GraphClassifier, X: Any, make: MakePropagators | None = None):
        self.name, self.shell, self._d = name, shell, X.shape[1]
        with same_on_all_threads(X.shape[0]):
            self.candidates = (
                propagators_in_blocks(name, shell, X) if isinstance(X, RowsInBlocks) else (make or shell.propagators)(X)
            )

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
        return graph_evidence(self.model.scores_, self.model.reached_)

    def in_blocks(self) -> tuple[ExpertInBlocks, Blocks | None]:
        return over_anchors(self.model, None)

    def kept_bytes(self) -> int:
        return kept_bytes(self.candidates)

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

    Where rows are in blocks, that of all labels is a graph of all rows, and the graphs of the folds are graphs of a
    sample and the labelled rows: they show what such a graph is worth, predict nothing, and are not held.
    """

    factor: Floats  # (d,) what each feature is multiplied by
    model: GraphClassifier
    needed = ("name", "model", "factor")

    def __init__(self, name: str, shell: GraphClassifier, make: MakePropagators, trees: str):
        self.name, self.shell, self._make, self._trees = name, shell, make, trees
        self.graphs: dict[int, Candidates] = {}  # of each fold and of WHOLE; of rows in blocks that of WHOLE
        self._factors: dict[int, Floats] = {}  # the same, as in ``factor``
        self._first_rows: Ints = np.arange(0)  # with the labels of the fit

    def _learn_folds(self, task: Task, learned: dict[str, Expert]) -> None:
        fold, first = task.folds[0], task.nothing()[0]
        numbers = np.unique(fold[fold >= 0]).tolist()
        if not self.graphs:
            self._build(task, learned, numbers)
        sample = None
        if isinstance(task.X, RowsInBlocks):
            sample = task.X.sample_with(np.union1d(self._first_rows, task.labels.rows))

        def spread(number: int) -> Propagation:
            out = fold == number
            graph, labels = self._graph_of(number, task.labels, sample)
            propagation = graph.propagate(labels.without(out), FINELY if graph is self.graphs[WHOLE] else ROUGHLY)
            first[out] = graph_evidence(*propagation.scores_of(labels.rows[out]))
            return propagation

        with quiet_about_anchors():
            whole, *_ = in_parallel(lambda number: keep_whole(number, spread(number)), [WHOLE, *numbers])
        assert whole is not None
        self._set_model(whole, task)
        self.out_of_fold = task.in_all_divisions(first)

    def _graph_of(self, number: int, labels: Labels, sample: tuple[Ints, Any] | None) -> tuple[Candidates, Labels]:
        """The graph of a fold or of WHOLE, and the labels by their rows in it.

        That of a fold of rows in blocks is made of the ``sample``, their numbers and features, and not held.
        """
        if sample is None or number == WHOLE or number not in self._factors:
            return self.graphs.get(number, self.graphs[WHOLE]), labels
        rows, X = sample
        return self._make(weighted(X, self._factors[number])), among(labels, rows)

    def _learn_all(self, task: Task, first: Learned) -> None:
        self._set_model(self.graphs[WHOLE].propagate(task.labels, FINELY), task)

    def _set_model(self, whole: Propagation, task: Task) -> None:
        fitted = LabelledGraph(whole, wants_offsets=True)
        self.model = self.shell.with_fitted(fitted, task.X.shape[1], candidates=self.graphs[WHOLE])

    def _evidence_of(self, learned: Learned, X: Any, rows: Ints) -> Floats:
        return evidence_on(learned.model, rows)

    def _own_evidence(self, task: Task) -> Floats:
        return graph_evidence(self.model.scores_, self.model.reached_)

    def in_blocks(self) -> tuple[ExpertInBlocks, Blocks | None]:
        return over_anchors(self.model, self.factor)

    def kept_bytes(self) -> int:
        return kept_bytes(self.graphs[WHOLE])

    def _build(self, task: Task, learned: dict[str, Expert], numbers: list[int]) -> None:
        trees = learned[self._trees]
        assert isinstance(trees, TreesExpert)
        importances = [trees.model.feature_importances_, *trees.importances[: len(numbers)]]
        factors = dict(zip([WHOLE, *numbers], map(importance_factor, importances), strict=True))
        self.factor, self._factors = factors[WHOLE], factors
        if isinstance(task.X, RowsInBlocks):
            n, c = task.X.shape[0], len(task.labels.classes)
            limit = task.X.limit - sum(expert.kept_bytes() for expert in learned.values()) - added_bytes(n, c)
            whole = propagators_in_blocks(self.name, self.shell, task.X, limit, self.factor)
            self._first_rows, self.graphs = task.labels.rows, {WHOLE: whole}
        else:
            self.graphs = self._build_all(task.X)

    def _build_all(self, X: Any) -> dict[int, Candidates]:
        """Graphs of all rows in memory: that of all labels, and one for each fold."""

        def build(number: int) -> Candidates:
            made = self._make(weighted(X, self._factors[number]))
            return made if number == WHOLE else made.for_own_rows()

        return dict(zip(self._factors, in_parallel(build, self._factors), strict=True))

    def evidence(self, X: Any) -> Floats:
        return graph_evidence(*self.model.fitted_.predictor.scores(weighted(X, self.factor)))

    def evidence_on_rows(self, X: Any, rows: Ints) -> Floats:
        return evidence_on(self.model, rows)

    def for_prediction(self) -> Self:
        return with_slim_model(super().for_prediction())


def keep_whole(number: int, propagation: Propagation) -> Propagation | None:
    """Graphs of folds have said what they know."""
    return propagation if number == WHOLE else None


@contextmanager
def quiet_about_anchors() -> Iterator[None]:
    """No warnings of graphs of folds: where few rows are distinct, fewer anchors are right."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "n_anchors=", UserWarning)
        yield


def among(labels: Labels, rows: Ints) -> Labels:
    """The labels on a part of the rows, which ascend, by their numbers there."""
    return Labels(len(rows), labels.classes, np.searchsorted(rows, labels.rows), labels.codes)


def evidence_on(model: GraphClassifier, rows: Ints) -> Floats:
    """Evidence for some rows of the fit of a model."""
    return graph_evidence(*model.fitted_.propagation.scores_of(rows))


def graph_evidence(F: Floats, is_reached: NDArray[np.bool_]) -> Floats:
    return evidence(F) * is_reached[:, None]


def importance_factor(importance: Floats) -> Floats:
    """Square roots of importances, scaled to mean 1; ones where nothing is important."""
    total = importance.sum()
    return np.sqrt(importance * len(importance) / total) if total > 0 else np.ones(len(importance))


# Rows in blocks


def propagators_in_blocks(
    name: str, shell: GraphClassifier, X: RowsInBlocks, limit: float | None = None, factor: Floats | None = None
) -> Candidates:
    """Propagators of rows in blocks, times a factor; ``limit`` are bytes for their nearest anchors."""
    if not isinstance(shell, AnchoredGreenClassifier):
        raise ParameterError(
            f"expert {name!r} ({type(shell).__name__}) needs all rows in memory, got rows in blocks; "
            "give an AnchoredGreenClassifier instead."
        )
    limit = X.limit if limit is None else limit
    own = shell.memory_limit
    rows = X.blocks if factor is None else weighted(X, factor)
    return shell.propagators_in_blocks(rows, X.shape[1], 1.0, max(limit, 0) if own == "auto" else own)


def over_anchors(model: GraphClassifier, factor: Floats | None) -> tuple[ExpertInBlocks, Blocks | None]:
    """A fitted anchored graph, as blocks of its rows are predicted, and their nearest anchors where they are held."""
    propagation = model.fitted_.propagation
    graph = propagation.propagator.graph
    return OverAnchors(propagation.step, graph.anchor_search, factor), kept_near(graph)


def kept_bytes(candidates: Candidates) -> int:
    """Bytes of the nearest anchors that a graph of rows in blocks holds."""
    graph = candidates.default.graph
    is_short = graph.anchor_search.search.P.dtype == np.float32
    return int(graph.n_kept * near_bytes(graph.anchor_search.k, graph.m, is_short))


# The usual ones


def is_beyond_memory(X: Any) -> bool:
    """Whether the graphs of these rows are anchored."""
    return isinstance(X, RowsInBlocks) or X.shape[0] > ANCHORED_ROWS


def plain_graph(name: str, X: Any, seed: int) -> GraphExpert:
    n = X.shape[0]
    if is_beyond_memory(X):
        return GraphExpert(name, AnchoredGreenClassifier(random_state=seed), X)
    shell = GreenClassifier(min(10, n - 1), random_state=seed)

    def make(X: Any) -> Candidates:
        return GreenSettings(remembers=True).candidates(*shell.graph_settings(n).build(X))

    return GraphExpert(name, shell, X, make)


def weighted_graph(name: str, X: Any, seed: int, trees: str) -> WeightedGraph:
    """One of many graphs: its neighbours are approximate where rows are many, its mu is the usual one."""
    n = X.shape[0]
    if is_beyond_memory(X):
        return WeightedGraph(name, usual_anchored(n, seed), partial(quick_anchored, seed), trees)
    k = min(10, n - 1)
    return WeightedGraph(
        name, GreenClassifier(k, solver="cg", random_state=seed), partial(quick_propagators, k, seed), trees
    )


def usual_anchored(n: int, seed: int) -> AnchoredGreenClassifier:
    """With the usual mu of n rows, which spares two of three systems."""
    return AnchoredGreenClassifier(mu=ANCHORED_SHIFT / n, random_state=seed)


def quick_anchored(seed: int, X: Any) -> Candidates:
    """Of a sample: few anchors show what a graph is worth, and many systems of many anchors would not fit."""
    n = X.shape[0]
    shell = usual_anchored(n, seed)
    if n >= ROWS_PER_ANCHOR * FOLD_ANCHORS:
        shell.set_params(n_anchors=FOLD_ANCHORS)
    return shell.propagators(X)


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
    if is_beyond_memory(X) or n * d <= WEIGHTED_VALUES:
        found.append(weighted_graph("weighted graph", X, seed, trees.name))
    return [
        *found,
        RowExpert("logistic", LogisticRegression(max_iter=300)),
        KernelExpert("rbf kernel", KernelRidge(absolute=False, seed=seed)),
        KernelExpert("laplace kernel", KernelRidge(absolute=True, seed=seed)),
    ]
