"""GF(A), the Green operator of an anchored graph S = B B', B = Z diag(Z'1)^-1/2 (Algorithm 2).

    AnchorSystem    what is as large as the anchors: m x m, factored once (many anchors: sparse_anchored.py)
    AnchoredGreen   the operator of all rows: the system, and Z

Rows enter through Z'Y and leave through Z C, so they may stay in blocks: C (m, c) alone is held (predictions.py).

Z (n, m) mixing weights, rows sum to 1     Y (n, c) labels     F (n, c) scores     C (m, c) coefficients
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.parameters import check_memory
from greenlabel._common.threads import one_thread
from greenlabel.graph.mixing import DENSE_ANCHORS
from greenlabel.operators.conjugate_gradients import TOLERANCE
from greenlabel.operators.green import GreenOperator, check_invertible, column_means, factor
from greenlabel.operators.sparse_anchored import SparseAnchorSystem

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]


class AnchorSystem:
    """The part of GF(A) that is as large as the anchors, with no row in it. With theta = 1 + s, Woodbury gives

        F = (Yc + B W) / theta,     W = (theta I - B'B)^-1 B' Yc,     Yc = Y - 1 ybar'        (from Eq. F_result)

    B' maps the constant vector to sqrt(lambda), lambda = Z'1, the one direction in which theta I - B'B may be singular.
    Adding sqrt(lambda) sqrt(lambda)' / n changes nothing on centred labels and keeps the condition number low.
    """

    def __init__(self, gram: Floats, n: int, shift: float, n_components: int):
        """``gram`` is Z'Z (m, m) of n rows. Rows of Z sum to 1, so rows of Z'Z sum to lambda."""
        check_invertible(n_components, shift, 1.0)
        m = len(gram)
        check_memory(2 * 8 * m**2, f"a graph of {m:,} anchors", "lower n_anchors")
        self.n, self.theta = n, 1 + shift
        mass = gram.sum(axis=1)
        # An anchor that no row uses has no mass and no entry in Z: its factor is never used.
        self._inverse_root_mass = np.divide(1, np.sqrt(mass), out=np.zeros_like(mass), where=mass > 0)
        M = -np.outer(self._inverse_root_mass, self._inverse_root_mass)
        M *= gram
        M += np.sqrt(np.outer(mass, mass)) / n
        M[np.diag_indices(m)] += self.theta
        self._root_mass = np.sqrt(mass)
        with one_thread():
            self._factor = factor(M, "mu")

    def coefficients(self, ZY: Floats, ybar: Floats, tolerance: float = TOLERANCE) -> Floats:
        """C (m, c) with F_i = z_i' C for an unlabelled row, from Z'Y (m, c).

        F_i = (b_i' W - ybar') / theta and b_i = diag(Z'1)^-1/2 z_i; ybar goes inside because z_i sums to 1.
        """
        BY = self._inverse_root_mass[:, None] * ZY - np.outer(self._root_mass, ybar)
        with one_thread():  # two threads would round differently
            W = scipy.linalg.cho_solve(self._factor, BY, check_finite=False)
        return (self._inverse_root_mass[:, None] * W - ybar) / self.theta

    def own_share(self, Z: sp.csr_array, tolerance: float = TOLERANCE) -> Floats:
        """G_ii of each row of Z: what a label adds to the score of its own row.

        With M = R'R the matrix of W, b_i = diag(Z'1)^-1/2 z_i and M sqrt(lambda) = theta sqrt(lambda), it is
        (|R^-T b_i|^2 - 1 / (n theta) - 1 / n + 1) / theta: one triangular solve where coefficients need two.
        """
        B = (Z * self._inverse_root_mass).T.toarray()
        with one_thread():
            half = scipy.linalg.solve_triangular(self._factor[0], B, trans="T", overwrite_b=True, check_finite=False)
        squares: Floats = np.einsum("ml,ml->l", half, half)
        return (squares - 1 / (self.n * self.theta) - 1 / self.n + 1) / self.theta

    def rough_own_share(self, Z: sp.csr_array, tolerance: float) -> Floats:
        """The same: nothing is cheaper."""
        return self.own_share(Z)


def anchor_system(
    gram: Any, n: int, shift: float, n_components: int, group: Ints | None = None
) -> AnchorSystem | SparseAnchorSystem:
    """The system of Z'Z (m, m), dense or sparse as it is; ``group`` (m,) of near anchors helps where it is sparse."""
    if sp.issparse(gram):
        return SparseAnchorSystem(gram, n, shift, n_components, group)
    return AnchorSystem(gram, n, shift, n_components)


class AnchoredGreen(GreenOperator):
    """F = Z C + Y / theta. All degrees are 1; a label adds 1 / theta to its own row."""

    def __init__(self, system: AnchorSystem | SparseAnchorSystem, mixing: Callable[[], sp.csr_array]):
        """``mixing()`` makes Z, which is held from its first use on: a fit in blocks never needs all of it."""
        self.n, self.system, self._mixing = system.n, system, mixing

    @classmethod
    def of(cls, Z: sp.csr_array, shift: float, n_components: int) -> "AnchoredGreen":
        """The operator of rows that are in memory as Z."""
        gram = sp.csr_array(Z.T @ Z)
        is_dense = gram.shape[0] <= DENSE_ANCHORS
        return cls(anchor_system(gram.toarray() if is_dense else gram, Z.shape[0], shift, n_components), lambda: Z)

    @cached_property
    def Z(self) -> sp.csr_array:
        return self._mixing()

    @property
    def is_direct(self) -> bool:
        """Whether the system is factored, so that no solve has a tolerance."""
        return isinstance(self.system, AnchorSystem)

    @property
    def own(self) -> float:
        """1 / theta: what a label adds to its own row directly, not through its anchors."""
        return 1 / self.system.theta

    def of_labels(self, Z: sp.csr_array, codes: Ints, n_classes: int, tolerance: float = TOLERANCE) -> Floats:
        """C (m, c) of one label on each row of Z: all that new rows need."""
        Y = one_hot(codes, n_classes)
        return self.system.coefficients((Z.T @ Y).toarray(), Y.sum(axis=0) / self.n, tolerance)

    def solve(self, Y: Any, tolerance: float = TOLERANCE) -> Floats:
        Y = sp.csr_array(Y)
        labelled = np.flatnonzero(np.diff(Y.indptr))
        C = self.system.coefficients((self.Z[labelled].T @ Y[labelled]).toarray(), column_means(Y), tolerance)
        F, own = self.Z @ C, Y.tocoo()
        F[own.row, own.col] += own.data * self.own
        return F

    def diagonal(self, rows: Ints, tolerance: float = TOLERANCE) -> Floats:
        return self.system.own_share(self.Z[rows], tolerance)


def one_hot(codes: Ints, n_classes: int) -> sp.csr_array:
    """(len(codes), n_classes): a 1 in each row, at its code."""
    rows = np.arange(len(codes))
    return sp.csr_array((np.ones(len(codes)), (rows, codes)), shape=(len(codes), n_classes))
