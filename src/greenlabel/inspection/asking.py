"""Rows to ask for: those that cover most, of equal ones the first alone, unless their labels leave it undecided.

n rows     m anchors     Z (n, m) mixing weights     l labels
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel.graph.duplicates import AllDistinct, Nodes
from greenlabel.inspection.coverage import Kernel, Pick, copies, next_rows, some_at_once
from greenlabel.inspection.equal_rows import first_of_each, n_unlabelled, one_of_each, undecided_groups

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]


MAX_COMPARED = 2**21  # different rows times labels: 16 MB, a few milliseconds
NEAR = 0.5  # correlation with a label from which on a row is not called far from the labels


@dataclass(frozen=True)
class Sketch:
    """Rows on a small anchored graph, and its kernel."""

    Z: sp.csr_array
    kernel: Kernel
    copy: Ints  # (n,) a number for each different row of Z
    nodes: AllDistinct | None  # which rows are equal; None where that is not known, and rows of Z have to tell

    @classmethod
    def of(cls, Z: sp.csr_array, gram: Floats | None = None, nodes: AllDistinct | None = None) -> "Sketch":
        kernel = Kernel.of((Z.T @ Z).toarray() if gram is None else gram)
        return cls(Z, kernel, copies(Z), nodes)

    def next_rows(self, n: int, labelled: Ints, sure: Floats | None, excluded: Ints) -> Ints:
        """The rows to label next. Rows that equal a labelled one, or one before them, come when no others are left."""
        if self._of_row is None:
            return _rows_of(next_rows(self.kernel, self.Z, n, labelled, sure, excluded, self.copy))
        left_out = self._copies(labelled, excluded)
        left_out[excluded] = True
        rows = _rows_of(next_rows(self.kernel, self.Z, n, labelled, sure, left_out, self.copy))
        if len(rows) == n:
            return rows
        seen = np.concatenate([labelled, rows])
        return np.concatenate([rows, _rows_of(next_rows(self.kernel, self.Z, n - len(rows), seen, sure, excluded))])

    def undecided(self, labelled: Ints, codes: Ints, excluded: Ints) -> Ints:
        """Rows that equal labelled ones of these classes, and want a further label. Rows of Z do not tell for sure."""
        if not isinstance(self.nodes, Nodes):
            return np.empty(0, np.intp)
        of_row = self.nodes.of_row
        groups = undecided_groups(self._sizes, of_row[labelled], codes)
        may_come = np.ones(len(of_row), bool)
        may_come[labelled] = may_come[excluded] = False
        return one_of_each(groups, of_row, may_come) if len(groups) else groups

    def n_equal(self, rows: Ints, labelled: Ints) -> list[int]:
        """How many rows without a label equal each of these, itself among them."""
        if not len(rows):
            return []
        assert self._of_row is not None
        return n_unlabelled(self._sizes, self._of_row[rows], self._of_row[labelled])

    @property
    def _of_row(self) -> Ints | None:
        """(n,) a number for each different row; None where all are different."""
        if self.nodes is None:
            return self.copy
        return self.nodes.of_row if isinstance(self.nodes, Nodes) else None

    @cached_property
    def _first(self) -> Ints:
        """(u,) the first of each of the different rows."""
        assert self._of_row is not None
        return first_of_each(self._of_row, np.arange(len(self._of_row)))

    @cached_property
    def _sizes(self) -> Ints:
        """(u,) how many rows equal each of the different ones."""
        assert self._of_row is not None
        return np.bincount(self._of_row)

    def _copies(self, labelled: Ints, excluded: Ints) -> Bools:
        """Rows that equal a labelled one, or that equal one before them that may come."""
        of_row = self._of_row
        assert of_row is not None
        first = self._first.copy()
        if len(excluded):
            first = first_of_each(of_row, np.delete(np.arange(len(of_row)), excluded))
        first[of_row[labelled]] = -1
        are_copies = np.ones(len(of_row), bool)
        are_copies[first[first >= 0]] = False
        return are_copies

    def points(self, labelled: Ints, n_seen: int) -> tuple[sp.csr_array, Floats]:
        """What stands for the rows: Z of points, and how many rows without a label each is.

        The different rows; the anchors, where rows are many beside the ``n_seen`` to which they are compared, or where
        the sketch has some of the rows alone.
        """
        if len(self._copies_of_each) * n_seen > MAX_COMPARED or round(self.kernel.mass.sum()) != self.Z.shape[0]:
            return sp.eye_array(len(self.kernel.mass), format="csr"), self._mass_without(labelled)
        n_labelled = np.bincount(self.copy[labelled], minlength=len(self._copies_of_each))
        return self._different_rows, (self._copies_of_each - n_labelled).astype(float)

    @cached_property
    def _copies_of_each(self) -> Ints:
        """(u,) how many rows of Z equal each of the different ones."""
        return np.bincount(self.copy)

    @cached_property
    def _different_rows(self) -> sp.csr_array:
        """(u, m) the different rows of Z."""
        return self.Z[first_of_each(self.copy, np.arange(len(self.copy)))]

    def _mass_without(self, labelled: Ints) -> Floats:
        """The rows (m,) for which each anchor stands, without labelled ones and what equals them."""
        is_known = np.zeros(int(self.copy.max()) + 1, bool)
        is_known[self.copy[labelled]] = True
        known = self.Z[np.flatnonzero(is_known[self.copy])]
        return np.maximum(self.kernel.mass - np.bincount(known.indices, known.data, len(self.kernel.mass)), 0)


def rows_to_ask(
    look: Sketch, n: int, labelled: Ints, codes: Ints, sure: Floats, excluded: Ints
) -> tuple[Ints, list[int], int]:
    """The n rows to label next, how many rows each stands for, and how many of them, the first, equal labelled ones."""
    again = look.undecided(labelled, codes, excluded)[:n]
    known = np.concatenate([labelled, again])
    rows = look.next_rows(n - len(again), known, sure, excluded)
    counts = look.n_equal(again, labelled) + stands_for(look, known, rows)
    return np.concatenate([again, rows]), counts, len(again)


def stands_for(look: Sketch, labelled: Ints, rows: Ints) -> list[int]:
    """How many rows each of these is closest to, among them and the labelled ones; each is at least itself."""
    if not len(rows):
        return []
    Z, n_rows = look.points(labelled, len(rows) + len(labelled))
    nearness = Z @ look.kernel.scaled_reach(look.Z[rows])
    to_labels = np.zeros(Z.shape[0])
    for part in some_at_once(look.Z[labelled]):
        to_labels = np.maximum(to_labels, (Z @ look.kernel.scaled_reach(part)).max(axis=1))
    is_closest = nearness.max(axis=1) > to_labels
    counts = np.bincount(nearness.argmax(axis=1)[is_closest], n_rows[is_closest], len(rows))
    return [max(1, round(count)) for count in counts.tolist()]


def are_far(look: Sketch, labelled: Ints, rows: Ints) -> Bools:
    """Which of these rows no label is near to."""
    return look.kernel.nearest(look.Z[rows], look.Z[labelled]) < NEAR


def _rows_of(picks: list[Pick]) -> Ints:
    return np.array([pick.row for pick in picks], np.intp)
