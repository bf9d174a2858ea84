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

PRODUCT_VALUES = 2**19  # numbers of one product, which stay in the processor's cache
POOL = 4  # numbers of which only the largest counts for a bound,
MIN_POOLS = 4  # where there are so many times w of such pools


def with_half_norms(Q: Floats, order: Ints | slice = slice(None)) -> Floats:
    """Rows q and |q|^2 / 2 (n, a + 1)."""
    found = np.empty((len(Q), Q.shape[1] + 1), Q.dtype)
    found[:, :-1] = Q[order]
    found[:, -1] = np.einsum("na,na->n", found[:, :-1], found[:, :-1]) / 2
    return found


def as_queries(rows: Floats) -> Floats:
    """Rows with their half norms as those whose product with points and their half norms is g."""
    queries = rows.copy()
    queries[:, -1] = -1
    return queries


def nearest_points(Q: Floats, points: Floats, w: int) -> tuple[Floats, Ints]:
    """Squared distances and numbers (n, w) of the nearest points, given with their half norms (m, a + 1).

    Nearest first; equal ones in the order of the points. Both are as exact as a product in the precision of Q.
    """
    rows = with_half_norms(Q)
    parts = [_nearest(part, points, w) for part in _parts(rows, len(points))]
    dist2, index = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return dist2, index


def nearest_point(Q: Floats, points: Floats) -> Ints:
    """The number (n,) of the nearest point, the first of several; points come with their half norms (m, a + 1)."""
    P, half_norms = points[:, :-1].T, points[:, -1]
    return np.concatenate([np.argmax(part @ P - half_norms, axis=1) for part in _parts(Q, len(points))])


def _parts(rows: Floats, m: int) -> Iterator[Floats]:
    size = max(1, PRODUCT_VALUES // m)
    return (rows[start : start + size] for start in range(0, len(rows), size))


def _nearest(rows: Floats, points: Floats, w: int) -> tuple[Floats, Ints]:
    n, m = len(rows), len(points)
    g = as_queries(rows) @ points.T
    pairs = np.flatnonzero(g >= bound_reached(g, w)[:, None])
    row, point = np.divmod(pairs, m)
    half_dist2 = np.maximum(rows[row, -1] - g.ravel()[pairs], 0)
    index = padded(*sorted_pairs(row, point, half_dist2, n, m), n, w)
    return 2 * np.maximum(rows[:, -1:] - np.take_along_axis(g, index, axis=1), 0), index


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
    pairs = np.flatnonzero(g >= kth_largest(g, k)[:, None])
    return np.divmod(pairs, g.shape[1])


def sorted_pairs(row: Ints, point: Ints, dist2: Floats, n: int, m: int) -> tuple[Ints, Ints]:
    """Pairs of one of n rows and one of m points, by row, and the nearest points of a row first.

    Row, distance and point are put into one whole number, which sorts fastest. Distances are not negative, so the bits
    of a float32 sort as it does; they get what is left beside row and point. Equal ones go by the order of the points.
    """
    n_bits, m_bits = (np.uint64(max(size - 1, 1).bit_length()) for size in (n, m))
    left = min(np.uint64(64) - n_bits - m_bits, np.uint64(31))
    near = dist2.astype(np.float32).view(np.uint32).astype(np.uint64) >> (np.uint64(31) - left)
    key = (row.astype(np.uint64) << left | near) << m_bits | point.astype(np.uint64)
    key.sort()
    return (key >> (left + m_bits)).astype(np.intp), (key & ((np.uint64(1) << m_bits) - np.uint64(1))).astype(np.intp)


def padded(row: Ints, point: Ints, n: int, wanted: int) -> Ints:
    """The first points (n, wanted) of each row, from pairs by row; -1 where there are no more."""
    first = np.searchsorted(row, np.arange(n + 1))
    place = first[:-1, None] + np.arange(wanted)
    is_there = place < first[1:, None]
    return np.where(is_there, point[np.where(is_there, place, 0)], -1)
