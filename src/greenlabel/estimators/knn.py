"""Estimators on a k-NN graph: shells without arithmetic around propagators and labels."""

from typing import Any

from greenlabel._common.parameters import (
    check_choice,
    check_integer,
    check_mu,
    check_offsets,
    check_real,
    check_seed,
    cut_neighbors,
)
from greenlabel.estimators.base import GraphClassifier
from greenlabel.graph.similarity import WEIGHTS
from greenlabel.operators.green import SOLVERS
from greenlabel.propagators.candidates import Candidates, single
from greenlabel.propagators.harmonic import HarmonicPropagator
from greenlabel.propagators.knn import NEIGHBORS, GreenSettings, KnnSettings, consistency_propagator

GRAPHS = ("knn", "precomputed")


class KnnClassifier(GraphClassifier):
    """On a k-NN graph, or on a precomputed one. Equal rows are one node of a k-NN graph."""

    n_neighbors: Any
    weights: str
    graph: str
    random_state: Any

    def check_parameters(self) -> None:
        check_offsets(self.class_offsets)
        self._check_neighbors()
        check_choice("weights", self.weights, WEIGHTS)
        check_choice("graph", self.graph, GRAPHS)
        check_seed(self.random_state)

    def _check_neighbors(self) -> None:
        check_integer("n_neighbors", self.n_neighbors, 1)

    def graph_settings(self, n: int) -> KnnSettings:
        """The settings of the graph of n rows."""
        is_precomputed = self.graph == "precomputed"
        k = 0 if is_precomputed else self._usual_neighbors(n - 1)
        rng = check_seed(self.random_state)
        return KnnSettings(k, self.weights, is_precomputed, self.merge_equal_rows, seed=rng)

    def _usual_neighbors(self, n_others: int) -> int:
        return cut_neighbors(self.n_neighbors, n_others, "rows")


class GreenClassifier(KnnClassifier):
    """The improved Green function on a k-NN graph: F = (L + n mu I)^-1 (Y - 1 ybar').

    Parameters
    ----------
    n_neighbors : int or "auto", default 10
        Neighbours of each row in the graph, where equal rows are one node. "auto" chooses among 10, 5 and 20 by
        leave-one-out where that is affordable; otherwise it is 10.
    weights : {"adaptive", "gaussian", "binary"}, default "adaptive"
        How similar neighbours are. "adaptive" has nothing to tune; "gaussian" is the paper's.
    mu : float or "auto", default "auto"
        The similarity that every pair of rows gains. "auto" makes n mu one percent of the mean degree; a tenth or ten
        times as much where leave-one-out on at least 20 labels prefers it and is affordable.
    solver : {"auto", "cg", "direct", "eigen"}, default "auto"
        "direct" (GF(G)) and "eigen" (GF) are dense, n x n; "cg" is sparse. "eigen" with mu=0 is the original method.
    graph : {"knn", "precomputed"}, default "knn"
        With "precomputed", X is an n x n symmetric non-negative similarity matrix, sparse or dense.
    random_state : int, RandomState or None, default None
        Seeds the approximate neighbour search that large data needs.
    class_offsets : "auto" or None, default "auto"
        What to do where classes are of different size. "auto" adds an offset to the scores of each class before the
        largest is taken, found from the leave-one-out scores of the labels; it is 0 unless the labels clearly say
        otherwise. None takes the largest score as it is.

    Attributes
    ----------
    classes_ : (c,) array
        The classes, sorted.
    scores_ : (n, c) array
        F, labelled rows included and not clamped.
    label_distributions_ : (n, c) array
        Probabilities of the classes for each row.
    transduction_ : (n,) array
        The class of each row, that of the largest of ``scores_ + class_offsets_``.
    class_offsets_ : (c,) array
        What is added to the scores of each class.
    mu_ : float
        The mu that was used.
    n_components_ : int
        Connected components of the graph.
    reached_ : (n,) array of bool
        False where a row's component holds no label.
    graph_ : Graph
        The graph, read-only: similarity ``S`` (u, u) of the u distinct rows, ``component`` (u,), ``degree`` (u,).
    operator_ : operator
        G, read-only: ``solve(Y)`` (n, c), ``columns(rows)`` (n, r), ``diagonal(rows)`` (r,).
    n_features_in_ : int
        Columns of X, d.

    Examples
    --------
    >>> from greenlabel import GreenClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> GreenClassifier(n_neighbors=2).fit(X, [0, -1, -1, 1, -1, -1]).transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    """

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

    def propagators(self, X: Any) -> Candidates:
        graph, neighbourhood = self.graph_settings(X.shape[0]).build(X)
        tries_neighbors = self.n_neighbors == "auto"
        return GreenSettings(self.mu, self.solver, tries_neighbors).candidates(graph, neighbourhood)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_mu(self.mu)
        check_choice("solver", self.solver, ["auto", *SOLVERS])

    def _check_neighbors(self) -> None:
        if not (isinstance(self.n_neighbors, str) and self.n_neighbors == "auto"):
            check_integer("n_neighbors", self.n_neighbors, 1, offer=", or 'auto'")

    def _usual_neighbors(self, n_others: int) -> int:
        return min(NEIGHBORS[0], n_others) if self.n_neighbors == "auto" else super()._usual_neighbors(n_others)


class ConsistencyClassifier(KnnClassifier):
    """Learning with local and global consistency (LLGC) on the same graph: F = (L + gamma I)^-1 Y.

    Parameters
    ----------
    n_neighbors : int, default 10
        Neighbours of each row in the graph, where equal rows are one node.
    weights : {"adaptive", "gaussian", "binary"}, default "adaptive"
        How similar neighbours are, as in GreenClassifier.
    gamma : float, default 1.0
        How strongly scores are held to the labels (and, on unlabelled rows, to zero). What is less than 1e-12 of the
        degree of a row would drown in rounding, and counts as that much.
    graph : {"knn", "precomputed"}, default "knn"
        With "precomputed", X is an n x n symmetric non-negative similarity matrix, sparse or dense.
    random_state : int, RandomState or None, default None
        Seeds the approximate neighbour search that large data needs.
    class_offsets : "auto" or None, default None
        As in GreenClassifier. None is the method as it was published.

    Attributes
    ----------
    classes_, scores_, label_distributions_, transduction_, n_components_, reached_, graph_, operator_
        As in GreenClassifier.
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

    def propagators(self, X: Any) -> Candidates:
        graph, neighbourhood = self.graph_settings(X.shape[0]).build(X)
        return single(consistency_propagator(graph, neighbourhood, float(self.gamma)))

    def check_parameters(self) -> None:
        super().check_parameters()
        check_real("gamma", self.gamma, 0, above=True)


class HarmonicClassifier(KnnClassifier):
    """Gaussian fields and harmonic functions (HF): labelled rows are clamped, every other row is its neighbours' mean.

    Parameters
    ----------
    n_neighbors : int, default 10
        Neighbours of each row in the graph, where equal rows are one node.
    weights : {"adaptive", "gaussian", "binary"}, default "adaptive"
        How similar neighbours are, as in GreenClassifier.
    graph : {"knn", "precomputed"}, default "knn"
        With "precomputed", X is an n x n symmetric non-negative similarity matrix, sparse or dense.
    random_state : int, RandomState or None, default None
        Seeds the approximate neighbour search that large data needs.
    class_offsets : "auto" or None, default None
        As in GreenClassifier. None is the method as it was published, whose scores go by the shares of the labels.

    Attributes
    ----------
    classes_, scores_, label_distributions_, transduction_, n_components_, reached_, graph_, operator_
        As in GreenClassifier.
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

    def propagators(self, X: Any) -> Candidates:
        return single(HarmonicPropagator(*self.graph_settings(X.shape[0]).build(X)))
