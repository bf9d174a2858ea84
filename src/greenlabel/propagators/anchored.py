"""The propagator of an anchored graph: m x m numbers and the labels are held, rows stay in their blocks.

    Z'Z -> m x m system, dense or sparse | labels -> C -> scores, classes and probabilities, block by block

C (m, c) coefficients     Z (n, m) mixing weights     F (n, c) scores
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.parameters import choose_mu
from greenlabel._common.threads import in_parallel
from greenlabel.blocks.rows import ArrayBlocks, Blocks
from greenlabel.graph.mixing import Near
from greenlabel.graph.similarity import reached_components
from greenlabel.labels.choosing import MIN_TESTED, TIMES_OF_MU, choose, comparison_labels
from greenlabel.labels.encoding import Labels, ScoreDecoder
from greenlabel.operators.anchored import AnchoredGreen, anchor_system
from greenlabel.operators.conjugate_gradients import TOLERANCE
from greenlabel.operators.predictions import Classes, Probabilities, Reached, Scores
from greenlabel.operators.repeated import LonePoint
from greenlabel.propagators.anchored_graph import AnchoredGraph, AnchorSearch
from greenlabel.propagators.base import (
    ROUGH,
    Predictor,
    Propagation,
    Propagator,
    unlabelled_sample,
)
from greenlabel.propagators.candidates import Candidates
from greenlabel.propagators.influences import Influences

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

ANCHORED_SHIFT = 0.03  # mu="auto": n mu, where all degrees are 1; a tenth or ten times as much may be chosen
SHIFT_ANCHORS = 8192  # with more anchors a label has more of them to cross: n mu falls with their square root
CHOICE_ROWS = 500  # labelled rows by which mu is chosen
CHOICE_WORK = 500_000  # anchors of a sparse system times these rows


def anchored_candidates(graph: AnchoredGraph, mu: float | str) -> "AnchoredCandidates":
    """Propagators of the usual mu, and of those that labels may choose instead."""
    usual = choose_mu(mu, usual_shift(graph.m), graph.n)
    gram = graph.gram()
    max_tested = min(CHOICE_ROWS, CHOICE_WORK // graph.m) if sp.issparse(gram) else CHOICE_ROWS
    times = TIMES_OF_MU if mu == "auto" and max_tested >= MIN_TESTED else (1.0,)

    def propagator(t: float) -> AnchoredPropagator:
        return AnchoredPropagator(graph, gram, usual * t)

    # Dense systems are factored at once, each on one thread; sparse ones when they are used.
    propagators = map(propagator, times) if sp.issparse(gram) else in_parallel(propagator, times)
    return AnchoredCandidates((tuple(propagators),), max_tested)


def usual_shift(m: int) -> float:
    """n mu of m anchors with mu="auto"."""
    return ANCHORED_SHIFT * min(1.0, (SHIFT_ANCHORS / m) ** 0.5)


@dataclass(frozen=True)
class AnchoredCandidates(Candidates):
    """Propagators of one graph."""

    groups: "tuple[tuple[AnchoredPropagator, ...], ...]"

    @property
    def graph(self) -> AnchoredGraph:
        return self.default.graph

    def propagate(self, labels: Labels, tolerance: float = TOLERANCE) -> "AnchoredPropagation":
        near = self.graph.near_of(labels.rows)  # once: rows may be in files
        trials = [AnchoredPropagation(propagator, labels, near, ROUGH) for propagator in self.groups[0]]
        tested = comparison_labels(labels, self.max_tested)

        def leave_one_out(trial: AnchoredPropagation) -> Floats:
            return trial.leave_one_out(tested, ROUGH) * trial.joined()[tested, None]

        chosen = choose(trials, labels.codes[tested], leave_one_out)
        return chosen.solved_to(tolerance)


class AnchoredPropagator(Propagator):
    """An anchored graph and its Green operator."""

    graph: AnchoredGraph
    operator: AnchoredGreen
    influences: Influences

    def __init__(self, graph: AnchoredGraph, gram: Any, mu: float):
        """``gram`` is Z'Z of the graph, dense or sparse."""
        self.graph, self.mu, self.n, self.n_components = graph, mu, graph.n, graph.n_components
        self.k = graph.anchor_search.k
        self.operator = AnchoredGreen(self._system(gram, graph.n * mu), graph.mixing_matrix)
        self.influences = Influences(self.operator, graph.component < 0)

    def _system(self, gram: Any, shift: float) -> Any:
        graph = self.graph
        if graph.is_one_point:
            return LonePoint(gram, graph.n, shift, graph.n_components)
        return anchor_system(gram, graph.n, shift, graph.n_components, graph.anchor_search.search.group)

    def propagate(self, labels: Labels, tolerance: float = TOLERANCE) -> "AnchoredPropagation":
        return AnchoredPropagation(self, labels, self.graph.near_of(labels.rows), tolerance)

    def components_of(self, rows: Ints) -> Ints:
        order = np.argsort(rows)
        near = self.graph.near_of(rows[order])
        component = np.empty(len(rows), self.graph.component.dtype)
        component[order] = near_components(near, self.graph.component)
        return component


def near_components(near: Near, component: Ints) -> Ints:
    """The component of each row: that of its nearest anchor, whose weight is not 0."""
    return component[near.index[:, 0]]


@dataclass(frozen=True)
class AnchoredPredictor(Predictor):
    """New rows by their nearest anchors: F_x = z_x' C."""

    anchor_search: AnchorSearch
    component: Ints  # (m,) of each anchor
    n_components: int
    C: Floats  # (m, c)
    labels: Labels
    labelled: Near  # the nearest anchors of the labelled rows

    @cached_property
    def step(self) -> Scores:
        """Scores of a block of rows without labels of their own."""
        holds_label = reached_components(near_components(self.labelled, self.component), self.n_components, slice(None))
        nothing = np.arange(0)
        return Scores(self.C, holds_label[self.component], nothing, nothing, 0.0)

    def no_scores(self) -> Floats:
        return np.empty((0, self.C.shape[1]))

    def scores(self, X: Any) -> tuple[Floats, Bools]:
        near = self.anchor_search.near(ArrayBlocks(X)).keep()
        return near.collect(self.step, self.no_scores()), near.collect(Reached(self.step), np.empty(0, bool))

    def collect(self, rows: Blocks, step: Any, like: Any) -> Any:
        """The result of a step over the nearest anchors of these rows; for rows on a cluster not yet computed."""
        return self.anchor_search.near(rows).collect(step, like)


class AnchoredPropagation(Propagation):
    """Labels on an anchored graph: their coefficients."""

    propagator: AnchoredPropagator
    _left_out: tuple[Ints, Floats] | None = None  # rows that were asked for last, and their scores

    def __init__(self, propagator: AnchoredPropagator, labels: Labels, labelled: Near, tolerance: float = TOLERANCE):
        self.propagator, self.labels, self.labelled, self.tolerance = propagator, labels, labelled, tolerance

    @cached_property
    def C(self) -> Floats:
        """(m, c)."""
        Z, operator = self.labelled.matrix(self.propagator.graph.m), self.propagator.operator
        return operator.of_labels(Z, self.labels.codes, len(self.labels.classes), self.tolerance)

    def solved_to(self, tolerance: float) -> "AnchoredPropagation":
        """The same at another tolerance, which a dense system does not have."""
        if self.propagator.operator.is_direct:
            return self
        return AnchoredPropagation(self.propagator, self.labels, self.labelled, tolerance)

    @property
    def near(self) -> Blocks:
        """The nearest anchors of all rows."""
        return self.propagator.graph.near

    @cached_property
    def step(self) -> Scores:
        """Scores of a block of the rows of the fit."""
        new, component = self._new_rows, self.propagator.graph.component
        reached = new.reached_anchors | (component < 0)  # no row uses such an anchor
        own = self.propagator.operator.own
        return replace(new, reached_anchors=reached, labelled=self.labels.rows, codes=self.labels.codes, own=own)

    @cached_property
    def _new_rows(self) -> Scores:
        return self.predictor().step

    @cached_property
    def scores(self) -> Floats:
        return np.asarray(self.near.collect(self.step, self._no_scores()))

    @cached_property
    def reached(self) -> Bools:
        return np.asarray(self.near.collect(Reached(self.step), np.empty(0, bool)))

    def classify(self, decoder: ScoreDecoder) -> NDArray[Any]:
        return np.asarray(self.near.collect(Classes(self.step, decoder), decoder.classes[:0]))

    def probabilities(self, decoder: ScoreDecoder) -> Floats:
        return np.asarray(self.near.collect(Probabilities(self.step, decoder), self._no_scores()))

    def sampled_scores(self) -> Floats:
        rows = unlabelled_sample(self.labels)
        if not len(rows):
            return self._no_scores()
        near = self.propagator.graph.near_of(rows)
        F, is_reached = self._new_rows.with_reach(range(len(near)), near)
        return F[is_reached]

    def n_unreached(self) -> int:
        """Counted without a pass over the rows: the weights of a row sum to 1 in one component, and Z'1 = Z'Z 1."""
        reached = self.step.reached_anchors
        return 0 if reached.all() else round(float(self.propagator.graph.mass[~reached].sum()))

    def label_components(self) -> Ints:
        return near_components(self.labelled, self.propagator.graph.component)

    def leave_one_out(self, indices: Ints, tolerance: float = TOLERANCE) -> Floats:
        """F_i - G_ii y_i, in which the own label of a row is left out of F from the start."""
        if self.propagator.operator.is_direct:
            return self.rough_leave_one_out(indices)
        return self._without_own(indices, partial(self.propagator.operator.system.own_share, tolerance=tolerance))

    def rough_leave_one_out(self, indices: Ints) -> Floats:
        """Remembered for the rows that were asked for last; of a dense system it is not rough."""
        if self._left_out is None or not np.array_equal(indices, self._left_out[0]):
            own_share = partial(self.propagator.operator.system.rough_own_share, tolerance=ROUGH)
            self._left_out = np.array(indices), self._without_own(indices, own_share)
        return self._left_out[1].copy()

    def _without_own(self, indices: Ints, own_share: Callable[[sp.csr_array], Floats]) -> Floats:
        near = self.labelled.pick(indices)
        F = self._new_rows(range(len(near)), near)
        share = own_share(near.matrix(self.propagator.graph.m)) - self.propagator.operator.own
        F[np.arange(len(near)), self.labels.codes[indices]] -= share
        return F

    def scores_with(self, labels: Labels, rows: Ints, tolerance: float) -> Floats:
        Z = self.labelled.matrix(self.propagator.graph.m)
        known, asked = (np.searchsorted(self.labels.rows, part) for part in (labels.rows, rows))
        return Z[asked] @ self.propagator.operator.of_labels(Z[known], labels.codes, len(labels.classes), tolerance)

    def scores_of(self, rows: Ints) -> tuple[Floats, Bools]:
        Z, codes = self._mixing_of(rows), self.labels.codes
        F = Z @ self.C
        labelled, index = self._labelled_among(rows)
        F[labelled, codes[index]] += self.propagator.operator.own
        return F, Z @ self.step.reached_anchors > 0

    def _mixing_of(self, rows: Ints) -> sp.csr_array:
        """Z of some rows, in any order."""
        if not len(rows):
            return sp.csr_array((0, self.propagator.graph.m))
        order = np.argsort(rows, kind="stable")
        Z = self.propagator.graph.near_of(rows[order]).matrix(self.propagator.graph.m)
        return Z[np.argsort(order, kind="stable")]

    def _labelled_among(self, rows: Ints) -> tuple[Ints, Ints]:
        """Which of the rows carry a label, and its index."""
        index = np.minimum(np.searchsorted(self.labels.rows, rows), len(self.labels.rows) - 1)
        labelled = np.flatnonzero(self.labels.rows[index] == rows)
        return labelled, index[labelled]

    def influence(self, rows: Ints) -> Floats:
        F = self._influence(self._mixing_of(rows))
        labelled, index = self._labelled_among(rows)
        F[labelled, index] += self.propagator.operator.own
        return F

    def influence_on_new_rows(self, X: Any) -> Floats:
        search = self.propagator.graph.anchor_search
        found = search.near(ArrayBlocks(X)).take(np.arange(X.shape[0]))
        return self._influence(Near.joined([near for _, near in found]).matrix(search.m))

    def _influence(self, Z: sp.csr_array) -> Floats:
        labelled = self.labelled.matrix(self.propagator.graph.m)
        return self.propagator.influences.of(self.labels.rows, labelled, Z)

    def predictor(self) -> AnchoredPredictor:
        graph = self.propagator.graph
        labels = replace(self.labels)  # without its matrix of n rows
        return AnchoredPredictor(
            graph.anchor_search, graph.component, graph.n_components, self.C, labels, self.labelled
        )

    def _no_scores(self) -> Floats:
        return np.empty((0, len(self.labels.classes)))
