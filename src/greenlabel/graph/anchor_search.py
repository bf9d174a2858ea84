"""The search of rows among anchors: exact where these are few, approximate beyond (inverted.py)."""

from typing import Any

import scipy.sparse as sp

from greenlabel.graph.inverted import InvertedSearch
from greenlabel.graph.neighbors import exact_search
from greenlabel.graph.projection import Projection
from greenlabel.graph.search import Search

EXACT_POINTS = 16_384  # points up to which a search is exact,
EXACT_OPERATIONS = 4e10  # and multiplications of the search of all points among themselves


def is_exact(m: int, d: int) -> bool:
    """Whether m points of d features are searched exactly. Rows do not count: later ones meet the same search."""
    return m <= EXACT_POINTS and float(m) * m * d <= EXACT_OPERATIONS


def anchor_search(P: Any, n_rows: int, projection: Projection | None) -> Search:
    """The search of rows among the anchors P; the projection of the rows helps where it is exact."""
    if sp.issparse(P) or is_exact(*P.shape):
        return exact_search(P, n_rows, projection)
    return InvertedSearch(P)
