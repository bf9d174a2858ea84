"""A coarse system of groups of rows, which takes from conjugate gradients what is far apart.

    z = r + DAMPING P A^-1 P'r,        A = P'(I - T) P        instead of r as the next direction

What conjugate gradients need many rounds for are functions that hardly change from row to row. They are nearly constant
on groups of near rows, so a system with one unknown for each group finds them at once: about half the rounds are left.

Among very many rows there are small groups that hardly hang together with others, such as copies of one image. They are
too many for a system of their own, but the inverse of its diagonal does: a third of the rounds less.

    z = r + N (NEAR_DAMPING diag(N'(I - T) N)^-1 + DAMPING Q A^-1 Q') N'r        P = N Q

T (n, n)     P (n, m) one entry for each row, at its group; P'P = I     N (n, u) the same for small groups     Q (u, m)
these in the others     r (n, C) residual in float32
"""

from collections.abc import Iterator
from copy import copy
from functools import cached_property

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from greenlabel._common.threads import Team, one_thread

Floats = NDArray[np.floating]
Singles = NDArray[np.float32]
Ints = NDArray[np.integer]

DAMPING = 0.3  # smaller steps of the groups disturb less what single rows have found
NEAR_ROWS = 100_000  # from here on small groups are worth finding
NEAR_DAMPING, MAX_NEAR = 0.5, 64  # MAX_NEAR rows at most are a small group across the others
NEAR_AT_ONCE = 2**13
RIDGE = 1e-6  # without a shift A has no inverse
ROWS_AT_ONCE = 2**17
PARTS = 16  # of the groups, for threads


def coarse_system(T: sp.csr_array, smooth: Floats, group: Ints) -> "CoarseSystem | NearGroups":
    """``smooth`` (n,) is what T hardly changes; ``group`` (n,) numbers the group of each row."""
    return (CoarseSystem if len(group) < NEAR_ROWS else NearGroups)(T, smooth, group)


class CoarseSystem:
    """The groups, with the inverse of their system."""

    def __init__(self, T: sp.csr_array, smooth: Floats, group: Ints):
        m = int(group.max()) + 1
        entry, self.P = unit_columns(smooth, group, m)
        self.restriction = sp.csr_array(self.P.T)
        between = grouped(T, entry, group, m)
        self.place = chain(between)[group]  # (n,) of the group of each row among all
        self.order = np.argsort(self.place, kind="stable")
        with one_thread():
            A = np.diag(np.full(m, 1 + RIDGE)) - between
            self.inverse = np.ascontiguousarray(DAMPING * scipy.linalg.inv(A, check_finite=False), np.float32)

    def reordered(self, order: Ints) -> "CoarseSystem":
        """The same for rows in another order."""
        other = copy(self)
        other.P = self.P[order]
        other.restriction = sp.csr_array(other.P.T)
        return other

    def solve(self, residual: Singles, team: Team) -> Singles:
        """DAMPING A^-1 residual (m, C)."""
        return np.concatenate(team.run(lambda part: part @ residual, self._parts_of_inverse))

    @cached_property
    def _parts_of_inverse(self) -> list[sp.csr_array]:
        """As sparse arrays, whose products add up one number after the other, whatever other columns there are."""
        return [sp.csr_array(part) for part in np.array_split(self.inverse, min(PARTS, len(self.inverse)))]


class NearGroups:
    """Small groups, each of which is in one of the others as a whole."""

    def __init__(self, T: sp.csr_array, smooth: Floats, group: Ints):
        near, cluster = small_groups(joined(T), group)
        clusters = CoarseSystem(T, smooth, cluster)
        self.order = np.lexsort((near, clusters.place))
        near = in_order_of_rows(near, self.order)  # so that rows of a group, and groups of a cluster, follow each other
        u = int(near.max()) + 1
        entry, self.P = unit_columns(smooth, near, u)
        self.restriction = sp.csr_array(self.P.T)
        self.scale = (NEAR_DAMPING / (1 + RIDGE - within(T, entry, near, u))).astype(np.float32)
        self._clusters, m = clusters, clusters.P.shape[1]
        self.cluster = np.empty(u, np.int32)
        self.cluster[near] = cluster
        self.entry = np.bincount(near, entry * clusters.P.data, u).astype(np.float32)  # of Q
        Q = sp.csr_array((self.entry, self.cluster, np.arange(u + 1, dtype=np.int32)), shape=(u, m))
        self.down = sp.csr_array(Q.T)

    @property
    def inverse(self) -> Singles:
        return self._clusters.inverse

    def reordered(self, order: Ints) -> "NearGroups":
        other = copy(self)
        other.P = self.P[order]
        other.restriction = sp.csr_array(other.P.T)
        return other

    def solve(self, residual: Singles, team: Team) -> Singles:
        """(NEAR_DAMPING diag(N'(I - T) N)^-1 + DAMPING Q A^-1 Q') residual (u, C)."""
        far = self._clusters.solve(self.down @ residual, team)
        found = np.empty_like(residual)

        def add(start: int) -> None:
            rows = slice(start, start + NEAR_AT_ONCE)
            np.multiply(residual[rows], self.scale[rows, None], out=found[rows])
            found[rows] += self.entry[rows, None] * far[self.cluster[rows]]

        team.run(add, range(0, len(residual), NEAR_AT_ONCE))
        return found


def unit_columns(smooth: Floats, group: Ints, m: int) -> tuple[Floats, sp.csr_array]:
    """The entries (n,) of P, whose columns have length 1 and are smooth within their groups; and P."""
    length = np.sqrt(np.bincount(group, smooth**2, m))
    entry = np.divide(smooth, length[group], out=np.zeros(len(group)), where=length[group] > 0)
    one_each = group.astype(np.int32), np.arange(len(group) + 1, dtype=np.int32)
    return entry, sp.csr_array((entry.astype(np.float32), *one_each), shape=(len(group), m))


def joined(T: sp.csr_array) -> Ints:
    """The number of a group (n,) for each row: rows are together with the one that they are most similar to."""
    n, n_edges = T.shape[0], np.diff(T.indptr)
    some = np.flatnonzero(n_edges)
    largest = np.zeros(n)
    largest[some] = np.maximum.reduceat(T.data, T.indptr[some]) if len(some) else 0
    at = np.flatnonzero(T.data == np.repeat(largest, n_edges))
    row = np.searchsorted(T.indptr, at, side="right") - 1
    is_first = np.diff(row, prepend=-1) > 0
    partner = np.arange(n)
    partner[row[is_first]] = T.indices[at[is_first]]
    return connected_components(sp.csr_array((np.ones(n), partner, np.arange(n + 1)), shape=(n, n)), directed=False)[1]


def small_groups(near: Ints, group: Ints) -> tuple[Ints, Ints]:
    """Numbers of small groups (n,), and the group (n,) that each of them is in: that of its first row.

    What is too large to be in one of the groups is cut along them.
    """
    n_groups = int(group.max()) + 1
    is_large = np.bincount(near)[near] > MAX_NEAR
    key = near.astype(np.int64) * n_groups + np.where(is_large, group, 0)
    _, first, near = np.unique(key, return_index=True, return_inverse=True)
    return near, group[first][near]


def in_order_of_rows(group: Ints, order: Ints) -> Ints:
    """The groups numbered anew, as they come in an order of the rows."""
    _, first, found = np.unique(group[order], return_index=True, return_inverse=True)
    rank = np.empty_like(first)
    rank[np.argsort(first)] = np.arange(len(first))
    numbers = np.empty_like(group)
    numbers[order] = rank[found]
    return numbers


def chain(between: Floats) -> Ints:
    """The place of each group (m,) in an order in which the next one is the most similar to all before it."""
    m = len(between)
    place, similarity = np.full(m, -1), between[0].copy()
    for i in range(m):
        following = int(np.argmax(np.where(place < 0, similarity, -1.0))) if i else 0
        place[following] = i
        similarity += between[following]
    return place


def grouped(T: sp.csr_array, entry: Floats, group: Ints, m: int) -> Floats:
    """P'T P (m, m), of which P has one entry in each row."""
    total = np.zeros(m * m)
    for one, two, value in grouped_edges(T, entry, group):
        total += np.bincount(one * m + two, value, m * m)
    return total.reshape(m, m)


def within(T: sp.csr_array, entry: Floats, group: Ints, m: int) -> Floats:
    """The diagonal (m,) of P'T P."""
    total = np.zeros(m)
    for one, two, value in grouped_edges(T, entry, group):
        total += np.bincount(one[one == two], value[one == two], m)
    return total


def grouped_edges(T: sp.csr_array, entry: Floats, group: Ints) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Some of the edges at a time: the groups of their ends, and what they add to P'T P."""
    for start in range(0, len(group), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        ends = T.indptr[rows.start : rows.stop + 1]
        inside, n_edges = slice(ends[0], ends[-1]), np.diff(ends)
        columns = T.indices[inside]
        value = np.repeat(entry[rows], n_edges) * T.data[inside] * entry[columns]
        yield np.repeat(group[rows].astype(np.int64), n_edges), group[columns], value
