"""Rules that say which rows to label, ours and others, for queries.py: a task and how many rows -> their order."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from greenlabel import GreenClassifier, suggest
from greenlabel.graph.distances import working
from greenlabel.graph.neighbors import graph_search
from greenlabel.graph.similarity import knn_graph
from greenlabel.inspection.coverage import margins

PER_CLASS = (1, 2, 5, 10)
MAX_BATCH = 10
ACQUISITIONS = ("unc_sampling", "var_opt", "sigma_opt", "model_change", "model_change_var_opt")
FIRST_TAU, LAST_TAU = 0.1, 1e-9
Array = np.ndarray[Any, Any]


@dataclass
class Task:
    X: Array
    y: Array

    @cached_property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1

    @cached_property
    def budgets(self) -> list[int]:
        return [per * self.n_classes for per in PER_CLASS if per * self.n_classes <= len(self.y) // 2]

    @cached_property
    def model(self) -> GreenClassifier:
        """Fitted to any labels; the graph is what is kept."""
        few = np.full(len(self.y), -1)
        classes, first = np.unique(self.y, return_index=True)
        few[first] = classes
        return GreenClassifier(random_state=0).fit(self.X, few)

    @cached_property
    def similarity(self) -> sp.csr_matrix:
        """The k-NN graph on which all rules stand."""
        return sp.csr_matrix(knn_graph(graph_search(working(self.X), np.random.default_rng(0)), 10, "adaptive", 1.0).S)

    def fitted(self, rows: list[int]) -> GreenClassifier | None:
        """The model of labels on these rows, where they are of two classes."""
        if len(np.unique(self.y[rows])) < 2:
            return None
        few = np.full(len(self.y), -1)
        few[rows] = self.y[rows]
        return self.model.relabel(few)

    def accuracy(self, rows: list[int]) -> float:
        """On the other rows; labels of one class give it to all."""
        model = self.fitted(rows)
        predicted = np.full(len(self.y), self.y[rows[0]]) if model is None else model.transduction_
        return float(np.delete(predicted == self.y, rows).mean())

    def curve(self, rows: list[int], budgets: list[int] | None = None) -> list[float]:
        return [self.accuracy(rows[:budget]) for budget in budgets or self.budgets]

    def n_until_all_seen(self, rows: Any) -> int | None:
        """Labels until every class has been seen; None where one never was."""
        classes, first = np.unique(self.y[np.asarray(rows)], return_index=True)
        return int(first.max()) + 1 if len(classes) == self.n_classes else None


def suggested(task: Task, total: int, seed: int = 0) -> list[int]:
    """Ours, as a user has it: `suggest(X)` one by one until two classes are seen, then `suggest(model)`, relabelled."""
    rows: list[int] = []
    while len(rows) < total:
        model = task.fitted(rows) if rows else None
        if model is None:
            found = suggest(task.X, 1, exclude=rows, random_state=seed)
        else:
            found = suggest(model, batch_size(rows, total), random_state=seed)
        rows += [one.row for one in found]
    return rows


def batch_size(rows: list[int], total: int) -> int:
    """A tenth of the labels there are, at most ten."""
    return min(MAX_BATCH, max(1, len(rows) // 10), total - len(rows))


def random_start(task: Task, rng: np.random.Generator) -> list[int]:
    """Rows at random until two classes have been seen, for rules that need labels to begin with."""
    order = rng.permutation(len(task.y))
    n_needed = int(np.flatnonzero(task.y[order] != task.y[order[0]])[0]) + 1
    return [int(row) for row in order[:n_needed]]


def margin_sampling(task: Task, total: int, rng: np.random.Generator) -> list[int]:
    rows = random_start(task, rng)
    while len(rows) < total:
        model = task.fitted(rows)
        assert model is not None
        sure = margins(model.label_distributions_)
        sure[rows] = np.inf
        rows += [int(row) for row in np.argsort(sure, kind="stable")[: batch_size(rows, total)]]
    return rows


def v_optimality(task: Task, total: int, rng: np.random.Generator) -> list[int]:
    """The row that lowers the sum of all variances of G = (L + s I)^-1 most; needs no labels."""
    S = task.similarity
    degree = np.asarray(S.sum(axis=1)).ravel()
    G = np.linalg.inv(np.diag(degree * 1.0) - S.toarray() + 0.01 * degree.mean() * np.eye(len(degree)))
    rows: list[int] = []
    noise = 0.01 * np.diag(G).mean()
    while len(rows) < total:
        lowered = np.einsum("ij,ij->j", G, G) / (np.diag(G) + noise)
        lowered[rows] = -1
        rows.append(int(lowered.argmax()))
        g = G[:, rows[-1]].copy()
        G -= np.outer(g, g / (g[rows[-1]] + noise))
    return rows


def graphlearning_rule(acquisition: str) -> Callable[[Task, int, np.random.Generator], list[int]]:
    def rule(task: Task, total: int, rng: np.random.Generator) -> list[int]:
        import graphlearning as gl

        model = gl.ssl.laplace(task.similarity)
        values: dict[str, Any] = {}
        if acquisition != "unc_sampling":
            sigma, V = model.graph.eigen_decomp(normalization="normalized", k=50)
            values = {"C": np.diag(1 / (sigma + 1e-11)), "V": V}
        return graphlearning_queries(task, total, rng, model, acquisition, values)

    return rule


def poisson_norm(task: Task, total: int, rng: np.random.Generator) -> list[int] | None:
    """The smallest norm of Poisson-reweighted scores, whose tau decays from 0.1 to nothing over two labels per class.

    None where the graph is not in one piece: the weights are then not defined, and its solver does not end.
    """
    import graphlearning as gl

    if connected_components(task.similarity)[0] > 1:
        return None
    model = gl.ssl.laplace(task.similarity, reweighting="poisson", tau=FIRST_TAU)

    def decay(n_labels: int) -> None:
        tau = FIRST_TAU * (LAST_TAU / FIRST_TAU) ** (n_labels / (2 * task.n_classes))
        model.tau = np.full(len(task.y), tau if tau > LAST_TAU else 0.0)

    return graphlearning_queries(task, total, rng, model, "unc_sampling", {"unc_method": "unc_2norm"}, decay)


def graphlearning_queries(
    task: Task,
    total: int,
    rng: np.random.Generator,
    model: Any,
    acquisition: str,
    values: dict[str, Any],
    before_fit: Callable[[int], None] = lambda n_labels: None,
) -> list[int]:
    """What GraphLearning's active learner asks for, from random rows of two classes on."""
    import graphlearning as gl

    start = np.array(random_start(task, rng))
    number: dict[int, int] = {}  # classes as they come: GraphLearning wants 0 to c - 1 of those it has seen

    def numbered(rows: Array) -> Array:
        return np.array([number.setdefault(k, len(number)) for k in task.y[rows].tolist()])

    before_fit(len(start))
    learner = gl.active_learning.active_learner(
        model, getattr(gl.active_learning, acquisition), start, numbered(start), **values
    )
    while len(learner.labeled_ind) < total:
        asked = learner.select_queries(batch_size=batch_size(list(learner.labeled_ind), total))
        before_fit(len(learner.labeled_ind) + len(asked))
        learner.update(asked, numbered(asked))
    return [int(row) for row in learner.labeled_ind[:total]]


PEERS: dict[str, Callable[[Task, int, np.random.Generator], list[int] | None]] = {
    "margin": margin_sampling,
    "V-optimality": v_optimality,
    **{f"GraphLearning {name}": graphlearning_rule(name) for name in ACQUISITIONS},
    "GraphLearning unc_sampling, Poisson norm": poisson_norm,
}
