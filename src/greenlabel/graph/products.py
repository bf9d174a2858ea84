"""Nearest points by matrix products.

    |q - p|^2 / 2 = |q|^2 / 2 - g(q, p),       g(q, p) = q'p - |p|^2 / 2,  large where p is near

The product itself is quick; what takes time is to choose the largest of its numbers. So a bound is found first that w
numbers of each row reach, and the few that do are sorted.

Q (n, a) rows     P (m, a) points     w points wanted for each row
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

PRODUCT_VALUES = 2**20  # numbers of one product, which stay in the processor's cache,
POINTS_AT_ONCE = 4096  # of so many points at most, for with more there would be too few rows;
MIN_SHARE = 4  # but of so many times w: a bound needs enough to choose from
POOL = 4  # numbers of which only the largest counts for a bound,
MIN_POOLS = 4  # where there are so many times w of such pools


def half_norms(Q: Floats) -> Floats:
    return np.einsum("na,na->n", Q, Q) / 2


def with_half_norms(Q: Floats, order: Ints | slice = slice(None)) -> Floats:
    """Rows q and |q|^2 / 2 (n, a + 1)."""
    found = np.empty((len(Q), Q.shape[1] + 1), Q.dtype)
    found[:, :-1] = Q[order]
    found[:, -1] = half_norms(found[:, :-1])
    return found


def as_queries(rows: Floats) -> Floats:
    """Rows with their half norms as those whose product with points and their half norms is g."""
    queries = rows.copy()
    queries[:, -1] = -1
    return queries


class Points:
    """Points with their half norms, ready to be compared with rows."""

    def __init__(self, P: Floats):
        self._points = with_half_norms(P)

    def nearest(self, Q: Floats, w: int) -> tuple[Floats, Ints]:
        return nearest_points(Q, self._points, w)


def nearest_points(Q: Floats, points: Floats, w: int) -> tuple[Floats, Ints]:
    """Squared distances and numbers (n, w) of the nearest points, given with their half norms (m, a + 1).

    Nearest first; equal ones in the order of the points. Both are as exact as a product in the precision of Q.
    """
    at_once = min(len(points), max(POINTS_AT_ONCE, MIN_SHARE * w))
    parts = [_nearest(part, points, w, at_once) for part in _parts(with_half_norms(Q), at_once)]
    dist2, index = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return dist2, index


def nearest_point(Q: Floats, points: Floats) -> Ints:
    """The number (n,) of the nearest point, the first of several; points come with their half norms (m, a + 1)."""
    P, halves = points[:, :-1].T, points[:, -1]

    def nearest(part: Floats) -> Ints:
        g = part @ P
        g -= halves
        return np.argmax(g, axis=1)

    return np.concatenate([nearest(part) for part in _parts(Q, len(points))])


def _parts(rows: Floats, n_points: int) -> Iterator[Floats]:
    size = max(1, PRODUCT_VALUES // n_points)
    return (rows[start : start + size] for start in range(0, len(rows), size))


def _nearest(rows: Floats, points: Floats, w: int, at_once: int) -> tuple[Floats, Ints]:
    """The same for rows with their half norms. A bound that enough of some points reach holds for all of them."""
    n, m = len(rows), len(points)
    queries, bound, found = as_queries(rows), np.full(n, -np.inf, rows.dtype), []
    for start in range(0, m, at_once):
        g = queries @ points[start : start + at_once].T
        if g.shape[1] >= w:
            bound = np.maximum(bound, bound_reached(g, w))
        row, point, reached = entries_at(g, bound)
        found.append((row, point + start, reached))
    row, point, g = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
    if not len(row):  # all numbers overflow
        return np.full((n, w), np.inf, rows.dtype), np.full((n, w), -1)
    half_dist2 = np.maximum(rows[row, -1] - g, 0)
    order = np.argsort(sort_keys(row, point, half_dist2, n, m))
    chosen = padded(row[order], order, n, w)
    is_there = chosen >= 0  # always, unless numbers overflow
    return 2 * np.where(is_there, half_dist2[chosen], np.inf), np.where(is_there, point[chosen], -1)


def bound_reached(g: Floats, w: int) -> Floats:
    """A number (n,) that at least w entries of each row reach, and not many more: w maxima of pools of entries do."""
    pools = g.shape[1] // POOL
    if pools < MIN_POOLS * w:
        return kth_largest(g, w)
    return kth_largest(g[:, : POOL * pools].reshape(len(g), POOL, pools).max(axis=1), w)


def kth_largest(g: Floats, k: int) -> Floats:
    """The k-th largest entry of each row (n,); the least one where there are fewer."""
    place = max(g.shape[1] - k, 0)
    return np.partition(g, place, axis=1)[:, place]


def above(g: Floats, k: int) -> tuple[Ints, Ints]:
    """Rows and columns of the k largest entries of each row, and of those equal to the last of them, row by row."""
    return entries_at(g, kth_largest(g, k))[:2]


def entries_at(g: Floats, bound: Floats) -> tuple[Ints, Ints, Floats]:
    """Rows, columns and values of the entries that reach the bound (n,) of their row, row by row."""
    places = np.flatnonzero(g >= bound[:, None])
    row = places // max(g.shape[1], 1)  # quicker than divmod
    return row, places - row * g.shape[1], g.ravel()[places]


def sort_keys(row: Ints, point: Ints, dist2: Floats, n: int, m: int) -> NDArray[np.uint64]:
    """Numbers by which pairs of one of n rows and one of m points sort: by row, the nearest points of a row first.

    Row, distance and point are put into one whole number, which sorts fastest. Distances are not negative, so the bits
    of a float32 sort as it does; they get what is left beside row and point. Equal ones go by the order of the points.
    """
    _, m_bits, left = _key_bits(n, m)
    near = dist2.astype(np.float32).view(np.uint32).astype(np.uint64) >> (np.uint64(31) - left)
    return (row.astype(np.uint64) << left | near) << m_bits | point.astype(np.uint64)


def _key_bits(n: int, m: int) -> tuple[np.uint64, np.uint64, np.uint64]:
    """The bits of a row, of a point, and those that are left for a distance."""
    n_bits, m_bits = (np.uint64(max(size - 1, 1).bit_length()) for size in (n, m))
    return n_bits, m_bits, min(np.uint64(64) - n_bits - m_bits, np.uint64(31))


def sorted_pairs(row: Ints, point: Ints, dist2: Floats, n: int, m: int) -> tuple[Ints, Ints]:
    """Rows and points of pairs in the order of their keys."""
    key = sort_keys(row, point, dist2, n, m)
    key.sort()
    _, m_bits, left = _key_bits(n, m)
    return (key >> (left + m_bits)).astype(np.intp), (key & ((np.uint64(1) << m_bits) - np.uint64(1))).astype(np.intp)


def padded(row: Ints, point: Ints, n: int, wanted: int) -> Ints:
    """The first points (n, wanted) of each row, from pairs by row; -1 where there are no more."""
    first = np.searchsorted(row, np.arange(n + 1))
    place = first[:-1, None] + np.arange(wanted)
    is_there = place < first[1:, None]
    return np.where(is_there, point[np.where(is_there, place, 0)], -1)
