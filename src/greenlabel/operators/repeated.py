"""Operators where rows are equal: E G_u E' from the operator G_u of the distinct rows (duplicates.py).

    NodeOperator    any operator on distinct rows, for all rows
    LoneNode        the graph of a single node: all rows are equal
    LonePoint       the same on an anchored graph

Where all rows are equal, no row is nearer to one label than to another. The most frequent label is the best prediction.

E (n, u) rows -> nodes     Y (n, c) labels     F (n, c) scores
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel.graph.duplicates import AllDistinct, Nodes
from greenlabel.graph.similarity import Graph
from greenlabel.operators.anchored import AnchorSystem
from greenlabel.operators.conjugate_gradients import TOLERANCE
from greenlabel.operators.green import GreenOperator, dense

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]


class NodeOperator(GreenOperator):
    """E G_u E': the operator of all rows, from that of the distinct ones."""

    def __init__(self, operator: GreenOperator, nodes: Nodes):
        self.n, self.operator, self.nodes = len(nodes.of_row), operator, nodes

    def with_shift(self, graph: Graph, shift: float) -> "NodeOperator":
        return NodeOperator(self.operator.with_shift(graph, shift), self.nodes)

    def solve(self, Y: Any, tolerance: float = TOLERANCE) -> Floats:
        return self.nodes.to_rows(self.operator.solve(self.nodes.sum_rows(Y), tolerance))

    def columns(self, rows: Ints, tolerance: float = TOLERANCE) -> Floats:
        return self.nodes.to_rows(self.operator.columns(self.nodes.numbers(rows), tolerance))

    def diagonal(self, rows: Ints, tolerance: float = TOLERANCE) -> Floats:
        return self.operator.diagonal(self.nodes.numbers(rows), tolerance)


def for_rows(operator: GreenOperator, nodes: AllDistinct) -> GreenOperator:
    """The operator of all rows from that of the nodes: the same where every row is one."""
    return NodeOperator(operator, nodes) if isinstance(nodes, Nodes) else operator


class LoneNode(GreenOperator):
    """G of a graph with a single node. Only the constant vector exists, so the labels themselves are F."""

    n = 1

    def with_shift(self, graph: Graph, shift: float) -> "LoneNode":
        return self

    def solve(self, Y: Any, tolerance: float = TOLERANCE) -> Floats:
        return dense(Y)


class LonePoint(AnchorSystem):
    """All anchors are one point, so rows do not differ: the shares of the labels are the scores of each."""

    def __init__(self, gram: Any, n: int, shift: float, n_components: int):
        self.n, self.theta = n, 1 + shift

    def coefficients(self, ZY: Floats, ybar: Floats, tolerance: float = TOLERANCE) -> Floats:
        return np.tile(ybar, (len(ZY), 1))

    def own_share(self, Z: sp.csr_array, tolerance: float = TOLERANCE) -> Floats:
        return np.full(Z.shape[0], 1 / self.theta + 1 / self.n)
