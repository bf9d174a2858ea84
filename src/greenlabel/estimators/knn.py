"""Estimators on a k-NN graph: shells without arithmetic around graph, operators and labels."""

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from greenlabel._common.parameters import (
    check_choice,
    check_integer,
    check_mu,
    check_offsets,
    check_real,
    check_seed,
    choose_mu,
    cut_neighbors,
)
from greenlabel.errors import ParameterError
from greenlabel.estimators.base import ROUGH, Bools, Floats, GraphClassifier, Ints
from greenlabel.graph.distances import working
from greenlabel.graph.duplicates import AllDistinct, distinct_rows
from greenlabel.graph.neighbors import QUICK_OPERATIONS, graph_search
from greenlabel.graph.similarity import (
    WEIGHTS,
    Graph,
    check_similarity,
    check_ties,
    gaussian_width,
    knn_graph,
    make_graph,
    mean_of_neighbours,
    reached_components,
    ties_of_new_rows,
)
from greenlabel.labels.choosing import LEAST_JUDGES, TIMES_OF_MU, choose, judges
from greenlabel.labels.encoding import Labels
from greenlabel.operators.classics import ConsistencyOperator, harmonic_leave_one_out, harmonic_scores
from greenlabel.operators.green import (
    DIRECT_ROWS,
    SOLVERS,
    TOLERANCE,
    GreenOperator,
    score_of_new_rows,
    scores_without_own_label,
)
from greenlabel.operators.remembered import Remembering
from greenlabel.operators.repeated import LoneNode, for_rows

LEFT_OUT_AT_ONCE = 128  # columns of G that leave_one_out holds in memory
GRAPHS = ("knn", "precomputed")
KNN_SHIFT = 0.01  # mu="auto": n mu is this part of the mean degree, or ten times less or more
NEIGHBORS = (10, 5, 20)  # n_neighbors="auto": what is tried, the default first
CHOICE_WORK = 500_000  # rows of the data times labelled rows by which mu and n_neighbors may be chosen
OFFSET_WORK, LEAST_COLUMNS = 500_000, 16  # rows of the data times columns of G for class offsets; the least columns


class _KnnClassifier(GraphClassifier):
    """On a k-NN graph, or on a graph that is given. Equal rows are one node of a k-NN graph.

    A subclass defines
        _prepare(graph)                  its operator
        _spread()                        sets _F, the scores
        _score_new(mean, degree)         scores of new rows from the mean of their neighbours' scores
        _held_out(places, tolerance)     leave-one-out scores
    """

    n_neighbors: Any
    weights: str
    graph: str
    random_state: Any
    class_offsets: str | None
    _F: Floats  # (n, c)
    _nodes: AllDistinct  # of the graph: which rows are equal
    _is_quick = False  # where a graph is one of many: approximate neighbours from fewer rows on, and the usual mu
    _tolerance = TOLERANCE  # of the scores
    _remembers = False  # whether columns of scores that were solved are kept for other labels

    def _check_parameters(self) -> None:
        self._wants_offsets = check_offsets(self.class_offsets)
        self._check_neighbors()
        check_choice("weights", self.weights, WEIGHTS)
        check_choice("graph", self.graph, GRAPHS)
        check_seed(self.random_state)

    def _check_neighbors(self) -> None:
        check_integer("n_neighbors", self.n_neighbors, 1)

    def _build(self, X: Any) -> None:
        self._nodes = AllDistinct()
        if self.graph == "precomputed":
            self._search, self._k = None, 0
            self._stand_on(make_graph(check_similarity(X)))
            return
        self._k = self._neighbors_among(X.shape[0] - 1)
        X = self._distinct_rows(working(X))
        most = QUICK_OPERATIONS if self._is_quick else None
        self._search = graph_search(X, check_seed(self.random_state), most)
        self._weights, self._width = self.weights, gaussian_width(X) if self.weights == "gaussian" else 1.0
        self._stand_on(knn_graph(self._search, self._k, self._weights, self._width))

    def _distinct_rows(self, X: Any) -> Any:
        """The rows of X that differ; there may be too few of them for so many neighbours."""
        self._nodes = distinct_rows(X) or AllDistinct()
        X = self._nodes.to_nodes(X)
        self._k = min(self._k, X.shape[0] - 1)
        return X

    def _neighbors_among(self, others: int) -> int:
        return cut_neighbors(self.n_neighbors, others, "rows")

    def _stand_on(self, graph: Graph) -> None:
        self._graph, self.n_components_ = graph, graph.n_components
        self._component = self._nodes.to_rows(graph.component)
        self._n, self._mean_degree = graph.n, graph.mean_degree
        self._prepare(graph)

    def _for_relabel(self) -> Self:
        slim = copy(self)
        slim._search = None
        return slim

    def _all_scores(self) -> Floats:
        return self._F

    def _label_components(self) -> Ints:
        return self._component[self._labels.rows]

    def _reached(self) -> Bools:
        return reached_components(self._component, self.n_components_, self._labels.rows)[self._component]

    def _slim(self) -> Self:
        slim = super()._slim()
        slim._nodes = AllDistinct()
        slim._F = self._nodes.to_nodes(self._F)
        slim._kept["reached"] = self._nodes.to_nodes(self.reached_)  # new rows go by neighbours that a label reaches
        return slim

    def _extend(self, X: Any) -> tuple[Floats, Bools]:
        F, is_reached = self._nodes.to_nodes(self._F), self._nodes.to_nodes(self.reached_)
        if self._search is None:
            ties = check_ties(X)
        elif self._n == 1:  # all rows are equal, and a new one is no different
            return np.repeat(F, X.shape[0], axis=0), np.ones(X.shape[0], bool)
        else:
            ties = ties_of_new_rows(self._search, X, self._k, self._weights, self._width) * self._mean_degree
        mean, degree = mean_of_neighbours(ties, F, is_reached)
        return self._score_new(mean, degree), degree > 0

    def _prepare(self, graph: Graph) -> None:
        raise NotImplementedError

    def _score_new(self, mean: Floats, degree: Floats) -> Floats:
        raise NotImplementedError


class _LinearClassifier(_KnnClassifier):
    """F = G Y with an operator that _prepare sets."""

    _operator: GreenOperator

    def _spread(self) -> None:
        self._F = self._operator.solve(self._labels.Y, self._tolerance)

    def _held_out(self, places: Ints, tolerance: float) -> Floats:
        rows, codes = self._labels.rows[places], self._labels.codes[places]
        return scores_without_own_label(self._operator, self._F[rows], rows, codes, tolerance)

    def _held_out_roughly(self, places: Ints) -> Floats:
        rows, codes, n_columns = self._labels.rows[places], self._labels.codes[places], OFFSET_WORK // self._n
        F = self._F[rows]
        F[np.arange(len(rows)), codes] -= self._operator.diagonal_from(max(LEAST_COLUMNS, n_columns), rows, ROUGH)
        return F

    def _scores_of(self, labels: Labels, rows: Ints, tolerance: float) -> Floats:
        return self._operator.solve(labels.Y, tolerance)[rows]

    def _solve(self, Y: Any, tolerance: float = TOLERANCE) -> Floats:
        """F of all rows from any labels (n, c)."""
        return self._operator.solve(Y, tolerance)


class GreenClassifier(_LinearClassifier):
    """The improved Green function on a k-NN graph: F = (L + n mu I)^-1 (Y - 1 ybar').

    Parameters
    ----------
    n_neighbors : int or "auto", default 10
        Neighbours of each row in the graph, in which equal rows are one node. "auto" chooses among 10, 5 and 20 by
        leave-one-out, where that is affordable; otherwise it is 10.
    weights : {"adaptive", "gaussian", "binary"}, default "adaptive"
        How similar neighbours are. "adaptive" has nothing to tune; "gaussian" is the paper's.
    mu : float or "auto", default "auto"
        The similarity that every pair of rows gains. "auto" makes n mu one percent of the mean degree; a tenth or ten
        times as much where leave-one-out on at least 20 labels prefers it and is affordable.
    solver : {"auto", "cg", "direct", "eigen"}, default "auto"
        "direct" (GF(G)) and "eigen" (GF) are dense, n x n; "cg" is sparse. "eigen" with mu=0 is the original method.
    graph : {"knn", "precomputed"}, default "knn"
        With "precomputed", X is an n x n symmetric non-negative similarity matrix, sparse or dense.
    random_state : int, RandomState or None
        Seeds the approximate neighbour search that large data needs.
    class_offsets : "auto" or None, default "auto"
        What to do where classes are of different size. "auto" adds an offset to the scores of each class before the
        largest is taken, found from the leave-one-out scores of the labels; it is 0 unless the labels clearly say
        otherwise. None takes the largest score as it is.

    Attributes
    ----------
    classes_ : (c,) the classes, sorted
    scores_ : (n, c) F
    label_distributions_ : (n, c) probabilities
    transduction_ : (n,) the class of each row, that of the largest of scores_ + class_offsets_
    class_offsets_ : (c,) what is added to the scores of each class
    mu_ : the mu that was used
    n_components_ : connected components of the graph
    reached_ : (n,) False where a row's component holds no label
    n_features_in_ : d

    Examples
    --------
    >>> from greenlabel import GreenClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> GreenClassifier(n_neighbors=2).fit(X, [0, -1, -1, 1, -1, -1]).transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    """

    _only_for_fit = (*_LinearClassifier._only_for_fit, "_graphs", "_operators")

    def __init__(
        self,
        n_neighbors: int | str = 10,
        *,
        weights: str = "adaptive",
        mu: float | str = "auto",
        solver: str = "auto",
        graph: str = "knn",
        random_state: Any = None,
        class_offsets: str | None = "auto",
    ):
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.mu = mu
        self.solver = solver
        self.graph = graph
        self.random_state = random_state
        self.class_offsets = class_offsets

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_mu(self.mu)
        check_choice("solver", self.solver, ["auto", *SOLVERS])

    def _check_neighbors(self) -> None:
        if not (isinstance(self.n_neighbors, str) and self.n_neighbors == "auto"):
            check_integer("n_neighbors", self.n_neighbors, 1, offer=", or 'auto'")

    def _neighbors_among(self, others: int) -> int:
        return min(NEIGHBORS[0], others) if self.n_neighbors == "auto" else super()._neighbors_among(others)

    def _build(self, X: Any) -> None:
        self._wanted_mu, self._solver = self.mu, self.solver
        self._graphs: dict[int, Graph] = {}
        self._operators: dict[int, dict[float, GreenOperator]] = {}  # by number of neighbours and mu
        super()._build(X)
        may_try = self.n_neighbors == "auto" and self._search is not None and self._can_choose()
        self._ks = [self._k, *(k for k in NEIGHBORS[1:] if may_try and k < self._n)]
        for k in [*self._ks[1:], self._ks[0]]:
            self._use_neighbors(k)

    def _use_neighbors(self, k: int) -> None:
        self._k = k
        if k not in self._graphs and self._search is not None:
            self._graphs[k] = knn_graph(self._search, k, self._weights, self._width)
        self._stand_on(self._graphs[k])

    def _prepare(self, graph: Graph) -> None:
        if self._k not in self._operators:
            self._graphs[self._k], self._operators[self._k] = graph, dict(self._make_operators(graph))
        self._use_mu(next(iter(self._operators[self._k])))

    def _make_operators(self, graph: Graph) -> Iterator[tuple[float, GreenOperator]]:
        """The operator of the usual mu, then of those that may be chosen instead."""
        usual = choose_mu(self._wanted_mu, KNN_SHIFT * graph.mean_degree, graph.n)
        first = self._first_operator(graph, graph.n * usual)
        yield usual, first
        if self._wanted_mu == "auto" and self._can_choose():
            for times in TIMES_OF_MU[1:]:
                yield usual * times, first.with_shift(graph, graph.n * usual * times)

    def _first_operator(self, graph: Graph, shift: float) -> GreenOperator:
        if graph.n == 1:
            return LoneNode()
        operator = SOLVERS[self._solver_name()](graph, shift)
        return Remembering(operator) if self._remembers and self._solver_name() == "cg" else operator

    def _solver_name(self) -> str:
        by_size = "direct" if self._n <= DIRECT_ROWS else "cg"
        return by_size if self._solver == "auto" else self._solver

    def _can_choose(self) -> bool:
        """Whether several operators, and the influence of single labels, are cheap beside the graph."""
        if self._is_quick:
            return False
        return CHOICE_WORK // self._n >= LEAST_JUDGES if self._solver_name() == "cg" else self._n <= 2 * DIRECT_ROWS

    def _use_mu(self, mu: float) -> None:
        self.mu_, self._operator = mu, for_rows(self._operators[self._k][mu], self._nodes)

    def _for_relabel(self) -> Self:
        slim = super()._for_relabel()
        if self._solver_name() == "cg":  # whose operators have the similarity in a form of their own
            slim._graphs = {k: replace(graph, S=sp.csr_array(graph.S.shape)) for k, graph in self._graphs.items()}
            slim._graph = slim._graphs[self._k]
        return slim

    def _as_chosen(self) -> Self:
        """A copy that stays with its mu and its number of neighbours, whatever labels it is given."""
        fixed = copy(self)
        fixed._ks, fixed._operators = [self._k], {self._k: {self.mu_: self._operators[self._k][self.mu_]}}
        return fixed

    def _spread(self) -> None:
        asked = judges(self._labels, CHOICE_WORK // self._n)
        codes = self._labels.codes[asked]

        def with_neighbors(k: int) -> Floats:
            self._use_neighbors(k)
            return self._without_own(asked)

        def with_mu(mu: float) -> Floats:
            self._use_mu(mu)
            return self._without_own(asked)

        self._use_neighbors(choose(self._ks, codes, with_neighbors))
        self._use_mu(choose(list(self._operators[self._k]), codes, with_mu))
        super()._spread()

    def _without_own(self, places: Ints) -> Floats:
        """Leave-one-out scores, roughly; 0 where no other label reaches. G is symmetric: F_i = (Y'G e_i)'."""
        rows, codes = self._labels.rows[places], self._labels.codes[places]
        G = self._operator.columns(rows, ROUGH)
        F = (self._labels.Y.T @ G).T
        F[np.arange(len(rows)), codes] -= G[rows, np.arange(len(rows))]
        return F * self._joined()[places, None]

    def _score_new(self, mean: Floats, degree: Floats) -> Floats:
        return score_of_new_rows(mean, degree, self._n * self.mu_, self._labels.counts / self._n)


class ConsistencyClassifier(_LinearClassifier):
    """Learning with local and global consistency (LLGC) on the same graph: F = (L + gamma I)^-1 Y.

    Parameters
    ----------
    n_neighbors, weights, graph, random_state
        As in GreenClassifier.
    gamma : float, default 1.0
        How strongly scores are held to the labels (and, on unlabelled rows, to zero).
    class_offsets : "auto" or None, default None
        As in GreenClassifier. None is the method as it was published.
    """

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        weights: str = "adaptive",
        gamma: float = 1.0,
        graph: str = "knn",
        random_state: Any = None,
        class_offsets: str | None = None,
    ):
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.gamma = gamma
        self.graph = graph
        self.random_state = random_state
        self.class_offsets = class_offsets

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("gamma", self.gamma, 0, above=True)

    def _prepare(self, graph: Graph) -> None:
        self._gamma = float(self.gamma)
        self._operator = for_rows(ConsistencyOperator(graph, self._gamma), self._nodes)

    def _score_new(self, mean: Floats, degree: Floats) -> Floats:
        return score_of_new_rows(mean, degree, self._gamma, 0)


class HarmonicClassifier(_KnnClassifier):
    """Gaussian fields and harmonic functions (HF): labelled rows are clamped, every other row is its neighbours' mean.

    Parameters
    ----------
    n_neighbors, weights, graph, random_state
        As in GreenClassifier.
    class_offsets : "auto" or None, default None
        As in GreenClassifier. None is the method as it was published, whose scores go by the shares of the labels.
    """

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        weights: str = "adaptive",
        graph: str = "knn",
        random_state: Any = None,
        class_offsets: str | None = None,
    ):
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.graph = graph
        self.random_state = random_state
        self.class_offsets = class_offsets

    def _prepare(self, graph: Graph) -> None:
        """Nothing to factor: which rows are clamped depends on the labels."""

    def _spread(self) -> None:
        self._F = self._harmonic(self._labels, self.reached_)

    def _harmonic(self, labels: Labels, reached: Bools) -> Floats:
        is_reached = self._nodes.to_nodes(reached)
        return self._nodes.to_rows(harmonic_scores(self._graph, self._nodes.sum_rows(labels.Y), is_reached))

    def _score_new(self, mean: Floats, degree: Floats) -> Floats:
        return np.where(degree[:, None] > 0, mean, self._labels.shares)

    def _held_out(self, places: Ints, tolerance: float) -> Floats:
        rows, codes = self._labels.rows[places], self._labels.codes[places]
        Y, is_reached = self._nodes.sum_rows(self._labels.Y), self._nodes.to_nodes(self.reached_)
        return harmonic_leave_one_out(self._graph, Y, is_reached, self._nodes.numbers(rows), codes, tolerance)

    def _scores_of(self, labels: Labels, rows: Ints, tolerance: float) -> Floats:
        reached = reached_components(self._component, self.n_components_, labels.rows)[self._component]
        return self._harmonic(labels, reached)[rows]


def leave_one_out(model: GraphClassifier) -> Floats:
    """Scores (l, c) of each labelled row without its own label, in closed form: F_i - G_ii y_i.

    Rows are in the order in which labelled rows stand in the data. The result equals refitting l times. A row has
    nothing to be recognised by where its class has no other label, or no other label leads to it: do not count it.
    Of a BlendedClassifier they are the scores of its folds, without the labels of a fifth of the rows at a time.
    """
    if not isinstance(model, GraphClassifier):
        raise ParameterError(
            f"leave_one_out takes a greenlabel classifier, got {type(model).__name__}; give the classifier itself "
            "(of a pipeline the last step, pipeline[-1])."
        )
    model._check_fitted()
    places = np.arange(len(model._labels.rows))
    parts = [places[start : start + LEFT_OUT_AT_ONCE] for start in range(0, len(places), LEFT_OUT_AT_ONCE)]
    return np.concatenate([model._held_out(part, TOLERANCE) for part in parts])
