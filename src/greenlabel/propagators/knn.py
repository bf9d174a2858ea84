"""Propagators on the graph of nearest rows, or on a precomputed graph: GF and LLGC.

Equal rows are one node of a graph of nearest rows. A new row has edges to its nearest nodes and takes its score from
their mean, as one more row of the system would (``Equation``).

F (n, c) scores     u nodes
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.parameters import choose_mu
from greenlabel.graph.distances import working
from greenlabel.graph.duplicates import AllDistinct, distinct_rows
from greenlabel.graph.neighbors import QUICK_OPERATIONS, graph_search
from greenlabel.graph.search import Search
from greenlabel.graph.similarity import (
    Graph,
    check_edge_weights,
    check_similarity,
    edge_weights_of_new_rows,
    gaussian_width,
    knn_graph,
    make_graph,
    mean_of_neighbours,
    reached_components,
)
from greenlabel.labels.choosing import MIN_TESTED, TIMES_OF_MU
from greenlabel.labels.encoding import Labels
from greenlabel.operators.classics import ConsistencyOperator
from greenlabel.operators.conjugate_gradients import TOLERANCE
from greenlabel.operators.green import (
    DIRECT_ROWS,
    SOLVERS,
    GreenOperator,
    leave_one_out_scores,
    score_of_new_rows,
)
from greenlabel.operators.remembered import Remembering
from greenlabel.operators.repeated import LoneNode, for_rows
from greenlabel.propagators.base import (
    EXACT,
    ROUGH,
    Predictor,
    Propagation,
    Propagator,
    in_parts,
    one_class_each,
)
from greenlabel.propagators.candidates import Candidates

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

KNN_SHIFT = 0.01  # mu="auto": n mu relative to the mean degree; a tenth or ten times as much may be chosen
NEIGHBORS = (10, 5, 20)  # n_neighbors="auto": what is tried, the default first
CHOICE_WORK = 500_000  # rows of the data times labelled rows by which mu and n_neighbors may be chosen
NEARLY_EXACT = 1e-9  # tolerance of influences on rows of the fit, whose sums are known: the scores
MAX_DIFFERENCE = 5e-9  # from these, of the largest score, up to which influences are moved to add up to them
OFFSET_WORK, MIN_COLUMNS = 500_000, 16  # rows of the data times columns of G for class offsets; the fewest columns


@dataclass(frozen=True)
class Neighbourhood:
    """How rows find their neighbours: all of a graph that new rows need."""

    search: Search | None  # None where the graph is precomputed, and new rows come as their similarities
    k: int
    weights: str
    width: float  # of Gaussian weights

    def graph(self, nodes: AllDistinct) -> Graph:
        assert self.search is not None
        return knn_graph(self.search, self.k, self.weights, self.width, nodes)

    def edges_of_new_rows(self, X: Any, mean_degree: float) -> sp.csr_array:
        """Similarities (rows, u) of new rows to the nodes."""
        if self.search is None:
            return check_edge_weights(X)
        return edge_weights_of_new_rows(self.search, X, self.k, self.weights, self.width) * mean_degree


@dataclass(frozen=True)
class Equation:
    """The equation of a new row: (degree + shift) F_x - degree mean = -ybar, in which LLGC has no ybar."""

    shift: float
    is_centred: bool

    def scores(self, mean: Floats, degree: Floats, labels: Labels, n: int) -> Floats:
        """F from the mean F of the neighbours among n nodes, and the total similarity to them."""
        return score_of_new_rows(mean, degree, self.shift, labels.counts / n if self.is_centred else 0)


@dataclass(frozen=True)
class NeighbourMean:
    """HF's rule for a new row: the mean of its neighbours; without one, the shares of the labels."""

    def scores(self, mean: Floats, degree: Floats, labels: Labels, n: int) -> Floats:
        return np.where(degree[:, None] > 0, mean, labels.shares)


@dataclass(frozen=True)
class KnnPredictor(Predictor):
    """New rows by their nearest nodes."""

    neighbourhood: Neighbourhood
    mean_degree: float
    rule: Equation | NeighbourMean
    labels: Labels
    F: Floats  # (u, c)
    reached: Bools  # (u,)

    def scores(self, X: Any) -> tuple[Floats, Bools]:
        n = len(self.F)
        if n == 1 and self.neighbourhood.search is not None:  # all rows are equal, and a new one is like them
            return np.repeat(self.F, X.shape[0], axis=0), np.ones(X.shape[0], bool)
        edges = self.neighbourhood.edges_of_new_rows(X, self.mean_degree)
        mean, degree = mean_of_neighbours(edges, self.F, self.reached)
        return self.rule.scores(mean, degree, self.labels, n), degree > 0


class KnnPropagator(Propagator):
    """A graph and a linear operator of its nodes, which becomes the operator of all rows."""

    def __init__(
        self,
        graph: Graph,
        neighbourhood: Neighbourhood,
        operator: GreenOperator,
        rule: Equation | NeighbourMean,
        mu: float | None = None,
    ):
        self.graph, self.neighbourhood, self.rule, self.mu = graph, neighbourhood, rule, mu
        self.operator = for_rows(operator, graph.nodes)
        self.n, self.n_components, self.k = self.operator.n, graph.n_components, neighbourhood.k
        self.mean_degree = graph.mean_degree

    def propagate(self, labels: Labels, tolerance: float = TOLERANCE) -> "KnnPropagation":
        return KnnPropagation(self, labels, self.operator.solve(labels.Y, tolerance))

    def components_of(self, rows: Ints) -> Ints:
        return self.graph.component[self.graph.nodes.numbers(rows)]

    def reached_nodes(self, labelled: Ints) -> Bools:
        """Which nodes a label on one of these rows reaches (u,)."""
        component = self.graph.component
        return reached_components(component, self.n_components, self.graph.nodes.numbers(labelled))[component]

    def leave_one_out(self, labels: Labels, indices: Ints, tolerance: float = TOLERANCE) -> Floats:
        """From columns of G, which is symmetric, without F: F_i = (Y'G e_i)'."""
        rows, codes = labels.rows[indices], labels.codes[indices]
        G = self.operator.columns(rows, tolerance)
        F = (labels.Y.T @ G).T
        F[np.arange(len(rows)), codes] -= G[rows, np.arange(len(rows))]
        return F

    def for_own_rows(self) -> "KnnPropagator":
        """Without what new rows need, and without S, which conjugate gradients hold in a form of their own."""
        slim = copy(self)
        slim.neighbourhood = replace(self.neighbourhood, search=None)
        slim.graph = replace(self.graph, S=sp.csr_array(self.graph.S.shape))
        return slim


class KnnPropagation(Propagation):
    """Labels on a graph of nodes, with the scores F (n, c) of all rows."""

    propagator: KnnPropagator

    def __init__(self, propagator: KnnPropagator, labels: Labels, F: Floats):
        self.propagator, self.labels, self._F = propagator, labels, F

    @cached_property
    def scores(self) -> Floats:
        return self._F

    @cached_property
    def reached(self) -> Bools:
        nodes = self.propagator.graph.nodes
        return nodes.to_rows(self.propagator.reached_nodes(self.labels.rows))

    def leave_one_out(self, indices: Ints, tolerance: float = TOLERANCE) -> Floats:
        rows, codes = self.labels.rows[indices], self.labels.codes[indices]
        return leave_one_out_scores(self.propagator.operator, self._F[rows], rows, codes, tolerance)

    def rough_leave_one_out(self, indices: Ints) -> Floats:
        rows, codes = self.labels.rows[indices], self.labels.codes[indices]
        n_columns = max(MIN_COLUMNS, OFFSET_WORK // self.propagator.graph.n)
        F = self._F[rows]
        F[np.arange(len(rows)), codes] -= self.propagator.operator.diagonal_from(n_columns, rows, ROUGH)
        return F

    def scores_with(self, labels: Labels, rows: Ints, tolerance: float) -> Floats:
        return self.propagator.operator.solve(labels.Y, tolerance)[rows]

    def influence(self, rows: Ints) -> Floats:
        """G[rows, labelled]. Its sums are known, the scores: what is missing from them is shared out evenly.

        That is the nearest matrix with these sums. Where much is missing, it is solved as exactly as the scores.
        """
        codes, F = self.labels.codes, self._F[rows]
        found = self._influence(rows, NEARLY_EXACT)
        missing = F - found @ np.eye(len(self.labels.classes))[codes]
        if abs(missing).max(initial=0) > MAX_DIFFERENCE * abs(F).max(initial=0):
            return self._influence(rows, TOLERANCE)
        return found + (missing / np.bincount(codes, minlength=missing.shape[1]))[:, codes]

    def _influence(self, rows: Ints, tolerance: float) -> Floats:
        """G is symmetric, so its columns are solved for the fewer of the two."""
        operator, labelled = self.propagator.operator, self.labels.rows
        if not len(rows):
            return np.empty((0, len(labelled)))
        if len(rows) < len(labelled):
            return np.concatenate([operator.columns(part, tolerance)[labelled].T for part in in_parts(rows)])
        return np.hstack([operator.columns(part, tolerance)[rows] for part in in_parts(labelled)])

    def influence_on_new_rows(self, X: Any) -> Floats:
        predictor, nodes = self.predictor(), self.propagator.graph.nodes
        parts = []
        for indices in in_parts(np.arange(len(self.labels.rows))):
            F = nodes.to_nodes(self._columns(indices))
            parts.append(replace(predictor, F=F, labels=one_class_each(self.labels, indices)).scores(X)[0])
        return np.hstack(parts)

    def _columns(self, indices: Ints) -> Floats:
        return self.propagator.operator.columns(self.labels.rows[indices], EXACT)

    def predictor(self) -> KnnPredictor:
        source, nodes = self.propagator, self.propagator.graph.nodes
        F, is_reached = nodes.to_nodes(self._F), nodes.to_nodes(self.reached)
        labels = replace(self.labels)  # without its matrix of n rows
        return KnnPredictor(source.neighbourhood, source.mean_degree, source.rule, labels, F, is_reached)


# Building


@dataclass(frozen=True)
class KnnSettings:
    """What a graph of nearest rows is built with."""

    n_neighbors: int
    weights: str
    is_precomputed: bool = False
    merge_equal_rows: bool = True
    max_operations: float | None = None  # of an exact search; neighbours of more rows are approximate
    seed: Any = None  # a generator

    def build(self, X: Any) -> tuple[Graph, Neighbourhood]:
        """The graph of the rows of X, or X itself as a graph."""
        if self.is_precomputed:
            return make_graph(check_similarity(X)), Neighbourhood(None, 0, self.weights, 1.0)
        X = working(X)
        nodes = (distinct_rows(X) if self.merge_equal_rows else None) or AllDistinct()
        X = nodes.to_nodes(X)
        search = graph_search(X, self.seed, self.max_operations)
        width = gaussian_width(X) if self.weights == "gaussian" else 1.0
        neighbourhood = Neighbourhood(search, min(self.n_neighbors, X.shape[0] - 1), self.weights, width)
        return neighbourhood.graph(nodes), neighbourhood


def quick_settings(n_neighbors: int, seed: Any) -> KnnSettings:
    """For a graph that is one of many: neighbours are approximate from fewer rows on."""
    return KnnSettings(n_neighbors, "adaptive", max_operations=QUICK_OPERATIONS, seed=seed)


@dataclass(frozen=True)
class GreenSettings:
    """Which Green operators are made for a graph."""

    mu: float | str = "auto"
    solver: str = "auto"
    tries_neighbors: bool = False
    tries_mu: bool = True  # several mu where that is cheap; otherwise the usual one
    remembers: bool = False  # whether columns of scores that were solved are kept for other labels

    def candidates(self, graph: Graph, neighbourhood: Neighbourhood) -> Candidates:
        """Propagators of the usual mu and number of neighbours, and of those that labels may choose instead."""
        groups = [tuple(self._of_graph(graph, neighbourhood))]
        if self.tries_neighbors and neighbourhood.search is not None and self._can_choose(graph.n):
            for k in NEIGHBORS[1:]:
                if k < graph.n:
                    other = replace(neighbourhood, k=k)
                    groups.append(tuple(self._of_graph(other.graph(graph.nodes), other)))
        return Candidates(tuple(groups), CHOICE_WORK // graph.n)

    def _of_graph(self, graph: Graph, neighbourhood: Neighbourhood) -> Iterator[KnnPropagator]:
        """The propagator of the usual mu, then of those that may be chosen instead."""
        n = graph.n
        usual = choose_mu(self.mu, KNN_SHIFT * graph.mean_degree, n)
        first = self._first_operator(graph, n * usual)
        yield KnnPropagator(graph, neighbourhood, first, Equation(n * usual, True), usual)
        if self.mu == "auto" and self.tries_mu and self._can_choose(n):
            for times in TIMES_OF_MU[1:]:
                mu = usual * times
                operator = first.with_shift(graph, n * mu)
                yield KnnPropagator(graph, neighbourhood, operator, Equation(n * mu, True), mu)

    def _first_operator(self, graph: Graph, shift: float) -> GreenOperator:
        if graph.n == 1:
            return LoneNode()
        operator = SOLVERS[self._solver_name(graph.n)](graph, shift)
        return Remembering(operator) if self.remembers and self._solver_name(graph.n) == "cg" else operator

    def _solver_name(self, n: int) -> str:
        by_size = "direct" if n <= DIRECT_ROWS else "cg"
        return by_size if self.solver == "auto" else self.solver

    def _can_choose(self, n: int) -> bool:
        """Whether several operators, and the influence of single labels, are cheap beside the graph."""
        return CHOICE_WORK // n >= MIN_TESTED if self._solver_name(n) == "cg" else n <= 2 * DIRECT_ROWS


def consistency_propagator(graph: Graph, neighbourhood: Neighbourhood, gamma: float) -> KnnPropagator:
    """LLGC: F = (L + gamma I)^-1 Y."""
    return KnnPropagator(graph, neighbourhood, ConsistencyOperator(graph, gamma), Equation(gamma, False))
