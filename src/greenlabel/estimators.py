"""The four estimators: shells without arithmetic around graph, anchors, operators and labels."""

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from greenlabel.anchors import ANCHORS, SPLIT_AXES, given_anchors, mixing_matrix
from greenlabel.base import Bools, Floats, GraphClassifier, Ints
from greenlabel.checks import check_choice, check_integer, check_real, check_seed
from greenlabel.classics import ConsistencyOperator, harmonic_leave_one_out, harmonic_scores
from greenlabel.errors import ParameterError
from greenlabel.graph import (
    WEIGHTS,
    Graph,
    anchor_components,
    check_similarity,
    check_ties,
    gaussian_width,
    knn_graph,
    make_graph,
    mean_of_neighbours,
    reached_components,
    ties_of_new_rows,
)
from greenlabel.green import (
    DIRECT_ROWS,
    SOLVERS,
    TOLERANCE,
    AnchoredGreen,
    GreenOperator,
    column_means,
    score_of_new_rows,
    scores_without_own_label,
)
from greenlabel.labels import Labels
from greenlabel.neighbors import exact_search, graph_search, working
from greenlabel.projection import SAMPLE_ROWS, principal_axes, sample_rows

LEFT_OUT_AT_ONCE = 128  # columns of G that leave_one_out holds in memory
GRAPHS = ("knn", "precomputed")
KNN_SHIFT, ANCHORED_SHIFT = 0.01, 0.03  # mu="auto": n mu is this part of the mean degree
SEARCH_AXES = 96  # principal axes that prove an exact search among anchors
AUTO_SHARE, MOST_ANCHORS = 4, 2048  # n_anchors="auto": one in so many rows, and no more than so many
LEAST_ANCHORS = 6  # times n_neighbors: were each row tied to most anchors, all rows would look alike


class _KnnClassifier(GraphClassifier):
    """On a k-NN graph, or on a graph that is given.

    A subclass defines
        _prepare(graph)                  its operator
        _spread()                        sets _F, the scores
        _score_new(mean, degree)         scores of new rows from the mean of their neighbours' scores
        _held_out(places, tolerance)     leave-one-out scores
    """

    n_neighbors: int
    weights: str
    graph: str
    random_state: Any
    _F: Floats

    def _check_parameters(self) -> None:
        check_integer("n_neighbors", self.n_neighbors, 1)
        check_choice("weights", self.weights, WEIGHTS)
        check_choice("graph", self.graph, GRAPHS)
        check_seed(self.random_state)

    def _build(self, X: Any) -> None:
        if self.graph == "precomputed":
            self._search, graph = None, make_graph(check_similarity(X))
        else:
            self._k = _cut_neighbors(self.n_neighbors, X.shape[0] - 1, "rows")
            X = working(X)
            self._search = graph_search(X, check_seed(self.random_state))
            self._weights, self._width = self.weights, gaussian_width(X) if self.weights == "gaussian" else 1.0
            graph = knn_graph(self._search, self._k, self._weights, self._width)
        self._graph, self._component, self.n_components_ = graph, graph.component, graph.n_components
        self._prepare(graph)

    def _scores(self, rows: slice) -> Floats:
        return self._F[rows]

    def _extend(self, X: Any) -> tuple[Floats, Bools]:
        if self._search is None:
            ties = check_ties(X)
        else:
            ties = ties_of_new_rows(self._search, X, self._k, self._weights, self._width) * self._graph.mean_degree
        mean, degree = mean_of_neighbours(ties, self._F, self.reached_)
        return self._score_new(mean, degree), degree > 0

    def _prepare(self, graph: Graph) -> None:
        raise NotImplementedError

    def _score_new(self, mean: Floats, degree: Floats) -> Floats:
        raise NotImplementedError


class _LinearClassifier(_KnnClassifier):
    """F = G Y with an operator that _prepare sets."""

    _operator: GreenOperator

    def _spread(self) -> None:
        self._F = self._operator.solve(self._labels.Y)

    def _held_out(self, places: Ints, tolerance: float) -> Floats:
        rows, codes = self._labels.rows[places], self._labels.codes[places]
        return scores_without_own_label(self._operator, self._F[rows], rows, codes, tolerance)

    def _scores_of(self, labels: Labels, rows: Ints, tolerance: float) -> Floats:
        return self._operator.solve(labels.Y, tolerance)[rows]


class GreenClassifier(_LinearClassifier):
    """The improved Green function on a k-NN graph: F = (L + n mu I)^-1 (Y - 1 ybar').

    Parameters
    ----------
    n_neighbors : int, default 10
        Neighbours of each row in the graph.
    weights : {"adaptive", "gaussian", "binary"}, default "adaptive"
        How similar neighbours are. "adaptive" has nothing to tune; "gaussian" is the paper's.
    mu : float or "auto", default "auto"
        The similarity that every pair of rows gains. "auto" makes n mu one percent of the mean degree.
    solver : {"auto", "cg", "direct", "eigen"}, default "auto"
        "direct" (GF(G)) and "eigen" (GF) are dense, n x n; "cg" is sparse. "eigen" with mu=0 is the original method.
    graph : {"knn", "precomputed"}, default "knn"
        With "precomputed", X is an n x n symmetric non-negative similarity matrix, sparse or dense.
    random_state : int, RandomState or None
        Seeds the approximate neighbour search that large data needs.

    Attributes
    ----------
    classes_ : (c,) the classes, sorted
    scores_ : (n, c) F
    label_distributions_ : (n, c) probabilities
    transduction_ : (n,) the class of each row
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

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        weights: str = "adaptive",
        mu: float | str = "auto",
        solver: str = "auto",
        graph: str = "knn",
        random_state: Any = None,
    ):
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.mu = mu
        self.solver = solver
        self.graph = graph
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _check_mu(self.mu)
        check_choice("solver", self.solver, ["auto", *SOLVERS])

    def _prepare(self, graph: Graph) -> None:
        self.mu_ = _choose_mu(self.mu, KNN_SHIFT * graph.mean_degree, graph.n)
        solver = self.solver
        if solver == "auto":
            solver = "direct" if graph.n <= DIRECT_ROWS else "cg"
        self._operator = SOLVERS[solver](graph, graph.n * self.mu_)

    def _score_new(self, mean: Floats, degree: Floats) -> Floats:
        return score_of_new_rows(mean, degree, self._graph.n * self.mu_, column_means(self._labels.Y))


class ConsistencyClassifier(_LinearClassifier):
    """Learning with local and global consistency (LLGC) on the same graph: F = (L + gamma I)^-1 Y.

    Parameters
    ----------
    n_neighbors, weights, graph, random_state
        As in GreenClassifier.
    gamma : float, default 1.0
        How strongly scores are held to the labels (and, on unlabelled rows, to zero).
    """

    def __init__(
        self,
        n_neighbors: int = 10,
        *,
        weights: str = "adaptive",
        gamma: float = 1.0,
        graph: str = "knn",
        random_state: Any = None,
    ):
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.gamma = gamma
        self.graph = graph
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_real("gamma", self.gamma, 0, above=True)

    def _prepare(self, graph: Graph) -> None:
        self._gamma = float(self.gamma)
        self._operator = ConsistencyOperator(graph, self._gamma)

    def _score_new(self, mean: Floats, degree: Floats) -> Floats:
        return score_of_new_rows(mean, degree, self._gamma, 0)


class HarmonicClassifier(_KnnClassifier):
    """Gaussian fields and harmonic functions (HF): labelled rows are clamped, every other row is its neighbours' mean.

    Parameters
    ----------
    n_neighbors, weights, graph, random_state
        As in GreenClassifier.
    """

    def __init__(
        self, n_neighbors: int = 10, *, weights: str = "adaptive", graph: str = "knn", random_state: Any = None
    ):
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.graph = graph
        self.random_state = random_state

    def _prepare(self, graph: Graph) -> None:
        """Nothing to factor: which rows are clamped depends on the labels."""

    def _spread(self) -> None:
        self._F = harmonic_scores(self._graph, self._labels, self.reached_)

    def _score_new(self, mean: Floats, degree: Floats) -> Floats:
        return np.where(degree[:, None] > 0, mean, self._labels.shares)

    def _held_out(self, places: Ints, tolerance: float) -> Floats:
        return harmonic_leave_one_out(self._graph, self._labels, self.reached_, places, tolerance)

    def _scores_of(self, labels: Labels, rows: Ints, tolerance: float) -> Floats:
        reached = reached_components(self._component, self.n_components_, labels.rows)[self._component]
        return harmonic_scores(self._graph, labels, reached)[rows]


class AnchoredGreenClassifier(GraphClassifier):
    """The improved Green function on an anchored graph, for many rows: similarity only through a few anchors.

    Parameters
    ----------
    n_anchors : int or "auto", default "auto"
        More anchors are more accurate and slower. "auto" takes a quarter of the rows, 2,048 at the most.
    n_neighbors : int, default 5
        Anchors that each row is a mix of; fewer than there are anchors.
    mu : float or "auto", default "auto"
        The similarity that every pair of rows gains. "auto" makes n mu three percent of the degree, which is 1 here.
    anchors : {"bkhk", "kmeans", "random"} or (m, d) array, default "bkhk"
        How anchors are found; "bkhk" is balanced k-means applied hierarchically. An array gives them.
    random_state : int, RandomState or None
        Seeds the choice of anchors.

    Attributes
    ----------
    classes_, scores_, label_distributions_, transduction_, mu_, n_components_, reached_, n_features_in_
        As in GreenClassifier.
    anchors_ : (m, d) the anchors
    """

    def __init__(
        self,
        n_anchors: int | str = "auto",
        n_neighbors: int = 5,
        *,
        mu: float | str = "auto",
        anchors: Any = "bkhk",
        random_state: Any = None,
    ):
        self.n_anchors = n_anchors
        self.n_neighbors = n_neighbors
        self.mu = mu
        self.anchors = anchors
        self.random_state = random_state

    def _check_parameters(self) -> None:
        check_integer("n_neighbors", self.n_neighbors, 1)
        _check_mu(self.mu)
        if not (isinstance(self.n_anchors, str) and self.n_anchors == "auto"):
            check_integer("n_anchors", self.n_anchors, 1, offer=", or 'auto'")
        check_seed(self.random_state)
        if isinstance(self.anchors, str):
            check_choice("anchors", self.anchors, ANCHORS)

    def _build(self, X: Any) -> None:
        n, d = X.shape
        rng = check_seed(self.random_state)
        given = None if isinstance(self.anchors, str) else given_anchors(self.anchors, d) / self._unit
        m, self._k = self._sizes(n, given)
        projection = None
        if not sp.issparse(X) and d > SPLIT_AXES:
            projection = principal_axes(working(X[sample_rows(n, SAMPLE_ROWS, rng)]), min(d, SEARCH_AXES))
        P: Any = ANCHORS[self.anchors](X, m, projection, rng) if given is None else given
        self._search = exact_search(sp.csr_array(P) if sp.issparse(X) else P, n, projection)
        self.anchors_ = (P.toarray() if sp.issparse(P) else P) * self._unit
        Z = mixing_matrix(X, self._search, self._k)
        gram = sp.csr_array(Z.T @ Z)
        self._anchor_component, self.n_components_ = anchor_components(gram)
        self._component = self._anchor_component[Z.indices[:: self._k]]  # of the nearest anchor, whose weight is not 0
        self.mu_ = _choose_mu(self.mu, ANCHORED_SHIFT, n)
        self._operator = AnchoredGreen(Z, gram, n * self.mu_, self.n_components_)

    def _sizes(self, n: int, given: Floats | None) -> tuple[int, int]:
        """Number of anchors and of neighbours for n rows."""
        k = self.n_neighbors
        if given is not None:
            m = len(given)
            remedy = "give more anchors or lower n_neighbors"
        elif self.n_anchors == "auto":
            m = min(MOST_ANCHORS, max(n // AUTO_SHARE, min(n // 2, LEAST_ANCHORS * k)))
            m = max(m, min(k + 1, n))
            return m, _cut_neighbors(k, m - 1, "anchors")
        else:
            m = int(self.n_anchors)
            if m > n:
                raise ParameterError(f"n_anchors={m} needs at least {m} rows, got {n}; lower n_anchors or add rows.")
            remedy = "raise n_anchors or lower n_neighbors"
        if m <= k:
            raise ParameterError(f"n_neighbors={k} needs at least {k + 1} anchors, got {m}; {remedy}.")
        return m, k

    def _spread(self) -> None:
        self._coefficients = self._operator.coefficients(self._labels.Y)

    def _scores(self, rows: slice) -> Floats:
        return self._operator.scores(self._labels.Y, self._coefficients, rows)

    def _extend(self, X: Any) -> tuple[Floats, Bools]:
        Z = mixing_matrix(X, self._search, self._k)
        holds_label = reached_components(self._component, self.n_components_, self._labels.rows)
        return Z @ self._coefficients, Z @ holds_label[self._anchor_component] > 0

    def _held_out(self, places: Ints, tolerance: float) -> Floats:
        rows = self._labels.rows[places]
        F = self._operator.scores(self._labels.Y, self._coefficients, rows)
        return scores_without_own_label(self._operator, F, rows, self._labels.codes[places], tolerance)

    def _scores_of(self, labels: Labels, rows: Ints, tolerance: float) -> Floats:
        return self._operator.scores(labels.Y, self._operator.coefficients(labels.Y), rows)


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
    check_is_fitted(model)
    places = np.arange(len(model._labels.rows))
    parts = [places[start : start + LEFT_OUT_AT_ONCE] for start in range(0, len(places), LEFT_OUT_AT_ONCE)]
    return np.concatenate([model._held_out(part, TOLERANCE) for part in parts])


def _check_mu(mu: Any) -> None:
    if not (isinstance(mu, str) and mu == "auto"):
        check_real("mu", mu, 0, offer=", or 'auto'")


def _choose_mu(mu: Any, shift: float, n: int) -> float:
    """The absolute mu; "auto" is the one with n mu = shift. A graph without any edge has no scale: any mu will do."""
    return (shift or 1.0) / n if mu == "auto" else float(mu)


def _cut_neighbors(k: int, most: int, of: str) -> int:
    if k > most:
        warnings.warn(f"n_neighbors={k} is too many for {most + 1} {of}; {most} are used.", UserWarning, stacklevel=4)
    return min(k, most)
