"""Influences on an anchored graph: the part of each label in the score of each row, but for what it adds to its own.

    G_il = z_i' C_l = z_l' C_i        C_l (m,) coefficients of a label on row l alone

The system is solved for rows or for labels, whichever are fewer. Rows are often explained one after the other, and then
again after one more label: so what was solved for rows counts, and once it is as much as the labels would have been,
these are solved and remembered, where they are few numbers. After that only new labels are.

Z (r, m) mixing weights of rows     l labels
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel.operators.anchored import AnchoredGreen
from greenlabel.propagators.base import EXACT, in_parts

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

REMEMBERED_VALUES = 2**23  # coefficients of single labels that are kept: 64 MB


class Influences:
    """Of labels on rows. ``is_unused`` (m,) are the anchors that no row of the fit uses."""

    def __init__(self, operator: AnchoredGreen, is_unused: Bools):
        self._operator, self._m, self._is_unused = operator, len(is_unused), is_unused
        self._n_by_row = 0  # solved since labels were
        self._solved: tuple[Ints, Floats] = self._nothing()  # labelled rows (l,), ascending, and C (m, l)

    def of(self, labels: Ints, labelled: sp.csr_array, Z: sp.csr_array) -> Floats:
        """(r, l) of labels on these rows of the fit, which ascend, with the weights ``labelled`` (l, m)."""
        can_keep = self._m * len(labels) <= REMEMBERED_VALUES
        n_by_label = np.count_nonzero(self._is_new(labels)) if can_keep else len(labels)
        n_by_row = Z.shape[0] + (self._n_by_row if can_keep else 0)
        if n_by_row < n_by_label and self._is_symmetric(Z):
            self._n_by_row = n_by_row
            return np.vstack([np.empty((0, len(labels))), *((labelled @ C).T for C in self._coefficients(Z))])
        if not can_keep:
            return np.hstack([Z @ C for C in self._coefficients(labelled)])
        return np.asarray(Z @ self._of_labels(labels, labelled))

    def _of_labels(self, labels: Ints, labelled: sp.csr_array) -> Floats:
        """C (m, l), of which only what is new is solved."""
        rows, solved = self._solved  # taken once: another thread may replace them
        if np.array_equal(rows, labels):
            return solved
        is_new = ~np.isin(labels, rows)
        C = np.empty((self._m, len(labels)))
        C[:, ~is_new] = solved[:, np.searchsorted(rows, labels[~is_new])]
        C[:, is_new] = np.hstack([np.empty((self._m, 0)), *self._coefficients(labelled[is_new])])
        self._solved, self._n_by_row = (labels, C), 0
        return C

    def _is_symmetric(self, Z: sp.csr_array) -> bool:
        """Whether rows would do as labels what is done to them: not a new one with weight on an unused anchor."""
        return not self._is_unused[Z.indices].any()

    def _is_new(self, labels: Ints) -> Bools:
        return ~np.isin(labels, self._solved[0])

    def _coefficients(self, Z: sp.csr_array) -> Iterator[Floats]:
        """C of labels on the rows of Z, each a class of its own, some at a time."""
        for part in in_parts(np.arange(Z.shape[0])):
            yield self._operator.of_labels(Z[part], np.arange(len(part)), len(part), EXACT)

    def _nothing(self) -> tuple[Ints, Floats]:
        return np.empty(0, np.intp), np.empty((self._m, 0))

    def __getstate__(self) -> dict[str, Any]:
        """Without what was solved: it is quickly there again."""
        return self.__dict__ | {"_solved": self._nothing(), "_n_by_row": 0}
