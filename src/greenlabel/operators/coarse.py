"""A coarse system of groups of rows, which takes from conjugate gradients what is far apart.

    z = r + DAMPING P A^-1 P'r,        A = P'(I - T) P        instead of r as the next direction

What conjugate gradients need many rounds for are functions that hardly change from row to row. They are nearly constant
on groups of near rows, so a system with one unknown for each group finds them at once: about half the rounds are left.

T (n, n)     P (n, m) one entry for each row, at its group; P'P = I     r (n, C) residual in float32
"""

from copy import copy

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.threads import Team, one_thread

Floats = NDArray[np.floating]
Singles = NDArray[np.float32]
Ints = NDArray[np.integer]

DAMPING = 0.3  # smaller steps of the groups disturb less what single rows have found
RIDGE = 1e-6  # without a shift A has no inverse
ROWS_AT_ONCE = 2**17
WIDTH = 16  # columns of every product, so that none depends on how many there are


class CoarseSystem:
    """The groups, with the inverse of their system."""

    def __init__(self, T: sp.csr_array, smooth: Floats, group: Ints):
        """``smooth`` (n,) is what T hardly changes; ``group`` (n,) numbers the group of each row."""
        n, m = len(group), int(group.max()) + 1
        length = np.sqrt(np.bincount(group, smooth**2, m))
        entry = np.divide(smooth, length[group], out=np.zeros(n), where=length[group] > 0)
        one_each = group.astype(np.int32), np.arange(n + 1, dtype=np.int32)
        self.P = sp.csr_array((entry.astype(np.float32), *one_each), shape=(n, m))
        self.restriction = sp.csr_array(self.P.T)
        between = grouped(T, entry, group, m)
        self.order = np.argsort(chain(between)[group], kind="stable")
        with one_thread():
            A = np.diag(np.full(m, 1 + RIDGE)) - between
            self._inverse = (DAMPING * scipy.linalg.inv(A, check_finite=False)).astype(np.float32)

    def reordered(self, order: Ints) -> "CoarseSystem":
        """The same for rows in another order."""
        other = copy(self)
        other.P = self.P[order]
        other.restriction = sp.csr_array(other.P.T)
        return other

    def solve(self, residual: Singles, team: Team) -> Singles:
        """DAMPING A^-1 residual (m, C)."""
        m, n_columns = residual.shape
        wide = np.zeros((m, -(-n_columns // WIDTH) * WIDTH), np.float32)
        wide[:, :n_columns] = residual

        def multiply(start: int) -> None:
            columns = slice(start, start + WIDTH)
            wide[:, columns] = self._inverse @ np.ascontiguousarray(wide[:, columns])

        team.run(multiply, range(0, wide.shape[1], WIDTH))
        return np.ascontiguousarray(wide[:, :n_columns])


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
    for start in range(0, len(group), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        ends = T.indptr[rows.start : rows.stop + 1]
        inside, n_edges = slice(ends[0], ends[-1]), np.diff(ends)
        columns = T.indices[inside]
        pair = np.repeat(group[rows].astype(np.int64) * m, n_edges) + group[columns]
        total += np.bincount(pair, np.repeat(entry[rows], n_edges) * T.data[inside] * entry[columns], m * m)
    return total.reshape(m, m)
