"""The propagator of HF, whose system depends on which rows are labelled: nothing can be factored beforehand."""

from dataclasses import replace
from typing import Any

import numpy as np

from greenlabel.graph.similarity import Graph
from greenlabel.labels.encoding import Labels
from greenlabel.operators.classics import HarmonicOperator, harmonic_leave_one_out
from greenlabel.operators.conjugate_gradients import TOLERANCE
from greenlabel.propagators.base import ROUGH, one_class_each
from greenlabel.propagators.knn import Floats, Ints, KnnPropagation, KnnPropagator, Neighbourhood, NeighbourMean


class HarmonicPropagator(KnnPropagator):
    """A graph on which labelled rows are clamped, and every other row is the mean of its neighbours."""

    def __init__(self, graph: Graph, neighbourhood: Neighbourhood):
        super().__init__(graph, neighbourhood, HarmonicOperator(graph), NeighbourMean())

    def propagate(self, labels: Labels, tolerance: float = TOLERANCE) -> "HarmonicPropagation":
        return HarmonicPropagation(self, labels, self.operator.solve(labels.Y, tolerance))

    def leave_one_out(self, labels: Labels, indices: Ints, tolerance: float = TOLERANCE) -> Floats:
        nodes, rows = self.graph.nodes, labels.rows
        Y, is_reached = nodes.sum_rows(labels.Y), self.reached_nodes(rows)
        return harmonic_leave_one_out(
            self.graph, Y, is_reached, nodes.numbers(rows[indices]), labels.codes[indices], tolerance
        )


class HarmonicPropagation(KnnPropagation):
    """Labels on such a graph."""

    def leave_one_out(self, indices: Ints, tolerance: float = TOLERANCE) -> Floats:
        return self.propagator.leave_one_out(self.labels, indices, tolerance)

    def rough_leave_one_out(self, indices: Ints) -> Floats:
        return self.leave_one_out(indices, ROUGH)

    def influence(self, rows: Ints) -> Floats:
        """All labels at once: each of them is clamped, whichever is asked for."""
        return self._all_columns()[rows]

    def influence_of_others(self, indices: Ints) -> Floats:
        """A clamped row is its own label's alone, so each is set free and predicted by the others."""
        return self.propagator.leave_one_out(one_class_each(self.labels, np.arange(len(self.labels.rows))), indices)

    def influence_on_new_rows(self, X: Any) -> Floats:
        labels = one_class_each(self.labels, np.arange(len(self.labels.rows)))
        F = self.propagator.graph.nodes.to_nodes(self._all_columns())
        return replace(self.predictor(), F=F, labels=labels).scores(X)[0]

    def _all_columns(self) -> Floats:
        return self.propagator.operator.columns(self.labels.rows)

    def scores_with(self, labels: Labels, rows: Ints, tolerance: float) -> Floats:
        return self.propagator.operator.solve(labels.Y)[rows]
