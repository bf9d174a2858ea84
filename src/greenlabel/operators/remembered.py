"""An operator that solves no column of labels twice: where some labels change, the other classes are known already.

F = G Y has a column for each class, and each depends on the labels of that class alone. Columns that were solved are
kept, as many as fit into KEPT_VALUES numbers; the least recently used go first.

Y (n, c) labels     F (n, c) scores
"""

from collections import OrderedDict
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel.graph.similarity import Graph
from greenlabel.operators.conjugate_gradients import TOLERANCE
from greenlabel.operators.green import GreenOperator

Floats = NDArray[np.floating]
Key = tuple[float, bytes, bytes]

KEPT_VALUES = 2**22  # of one operator: 32 MiB


class Remembering(GreenOperator):
    """``operator``, and the columns that it solved last."""

    def __init__(self, operator: GreenOperator):
        self.n, self.operator = operator.n, operator
        self._solved: OrderedDict[Key, Floats] = OrderedDict()

    def with_shift(self, graph: Graph, shift: float) -> "Remembering":
        return Remembering(self.operator.with_shift(graph, shift))

    def solve(self, Y: Any, tolerance: float = TOLERANCE) -> Floats:
        if not sp.issparse(Y):  # numbers on all rows instead of labels: they do not come twice
            return self.operator.solve(Y, tolerance)
        Y = sp.csc_array(Y)
        keys = [_key(Y, column, tolerance) for column in range(Y.shape[1])]
        found = [self._solved.get(key) for key in keys]  # threads that solve at the same time may keep and drop others
        new = [column for column, known in enumerate(found) if known is None]
        F = np.empty((self.n, Y.shape[1]))
        F[:, new] = self.operator.solve(sp.csr_array(Y[:, new]), tolerance) if new else 0
        for column, known in enumerate(found):
            if known is not None:
                F[:, column] = known
        self._keep(keys, F)
        return F

    @property
    def n_kept(self) -> int:
        """Columns that are known."""
        return len(self._solved)

    def _keep(self, keys: list[Key], F: Floats) -> None:
        for column, key in enumerate(keys[: KEPT_VALUES // self.n]):
            known = self._solved.pop(key, None)
            self._solved[key] = F[:, column].copy() if known is None else known
        while len(self._solved) > KEPT_VALUES // self.n:
            self._solved.popitem(last=False)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_solved": OrderedDict()}


def _key(Y: sp.csc_array, column: int, tolerance: float) -> Key:
    """What a column is recognised by: its rows and values."""
    part = slice(Y.indptr[column], Y.indptr[column + 1])
    return tolerance, Y.indices[part].tobytes(), Y.data[part].tobytes()
