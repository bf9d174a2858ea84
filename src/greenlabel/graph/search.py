"""What all searches have in common: points that are searched, in blocks of rows.

    dist2, index = search.nearest(X, k)        both (n, k), nearest first; equal distances in the order of their index

X (n, d) rows whose neighbours are wanted     P (m, d) points that are searched     k neighbours
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.threads import in_parallel
from greenlabel.graph.candidates import Found
from greenlabel.graph.distances import row_blocks, working

Ints = NDArray[np.integer]


class Search:
    """The points P, ready to be searched in blocks of rows. A subclass searches for one block."""

    group: Ints | None = None  # (m,) the cluster of each point, where a search has some

    def __init__(self, P: Any):
        self.P = P

    def nearest(self, X: Any, k: int, own: Ints | None = None) -> Found:
        """The k nearest points of each row; with ``own``, its index among the points, the row itself does not count."""
        n = X.shape[0]
        dist2, index = np.empty((n, k)), np.empty((n, k), np.int64)

        def search(rows: slice) -> None:
            dist2[rows], index[rows] = self._block(self._like_points(X[rows]), k, None if own is None else own[rows])

        in_parallel(search, row_blocks(n, self.values_per_row(X, k)))
        return dist2, index

    def nearest_to_own(self, k: int) -> Found:
        """The k nearest other points of each point, which is left out by its index: a duplicate may come first."""
        return self.nearest(self.P, k, np.arange(self.P.shape[0]))

    def _like_points(self, X: Any) -> Any:
        """Rows sparse where the points are, and dense where they are not."""
        if sp.issparse(self.P):
            return sp.csr_array(X, dtype=np.float64)
        return working(X.toarray() if sp.issparse(X) else X)

    def values_per_row(self, X: Any, k: int) -> int:
        return X.shape[1]

    def _block(self, X: Any, k: int, own: Ints | None) -> Found:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        """The points alone; everything else is made again from them."""
        return {"P": self.P}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]
