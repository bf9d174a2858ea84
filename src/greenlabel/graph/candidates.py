"""The nearest of some candidates, by direct difference.

    dist2, index = closest(...)      both (n, k), nearest first; equal distances in the order of their index

X (n, d) rows     P (m, d) points     candidates (n, w) indices of points, -1 for none     k neighbours
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel.graph import compiled_search
from greenlabel.graph.distances import pair_distances, row_blocks

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Found = tuple[NDArray[np.float64], NDArray[np.int64]]


def closest(X: Any, P: Any, candidates: Ints, k: int, own: Ints | None = None, rows: Ints | None = None) -> Found:
    """The k nearest candidates of each row, or of the rows named.

    ``own`` (n,) is the index of a row among the points, which does not count. Where candidates are too few, the
    distance is infinite and the index -1.
    """
    if compiled_search.can_compare(X, P):
        return compiled_search.closest(X, P, candidates, k, own, rows)
    rows = np.arange(len(candidates)) if rows is None else rows
    dist2, index = np.empty((len(rows), k)), np.empty((len(rows), k), np.int64)
    for part in row_blocks(len(rows), X.shape[1]):
        found = pair_distances(X[rows[part]], P, candidates[part])
        dist2[part], index[part] = nearest_candidates(found, candidates[part], k, None if own is None else own[part])
    return dist2, index


def nearest_candidates(dist2: NDArray[np.float64], candidates: Any, k: int, own: Ints | None) -> Found:
    """The k nearest candidates of each row from all their distances, which are changed."""
    is_none = candidates < 0 if own is None else (candidates < 0) | (candidates == own[:, None])
    dist2[is_none] = np.inf
    order = np.lexsort((candidates, dist2), axis=1)[:, :k]
    nearest, index = np.full((len(dist2), k), np.inf), np.full((len(dist2), k), -1)
    there = slice(0, order.shape[1])
    nearest[:, there] = np.take_along_axis(dist2, order, axis=1)
    index[:, there] = np.take_along_axis(np.where(is_none, -1, candidates), order, axis=1)
    return nearest, index


def nearest_pairs(X: Any, P: Any, row: Ints, point: Ints, k: int, own: Ints | None) -> Found:
    """The same for candidates as pairs: any number of them per row, at least k, ``row`` ascending."""
    dist2 = np.empty(len(row))
    for part in row_blocks(len(row), X.shape[1]):
        dist2[part] = closest(X[row[part]], P, point[part, None], 1)[0][:, 0]
    if own is not None:
        dist2[point == own[row]] = np.inf
    order = np.lexsort((point, dist2, row))
    first = np.searchsorted(row, np.arange(X.shape[0]))
    chosen = order[first[:, None] + np.arange(k)]
    return dist2[chosen], point[chosen]


def redo(found: Found, rows: NDArray[np.bool_], careful: Callable[..., Found], X: Any, own: Ints | None) -> Found:
    """What was found, with the marked rows as a more careful search finds them."""
    dist2, index = found
    if rows.any():
        dist2[rows], index[rows] = careful(X[rows], dist2.shape[1], None if own is None else own[rows])
    return dist2, index
