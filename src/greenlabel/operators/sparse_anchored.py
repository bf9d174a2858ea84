"""GF(A) on many anchors: the m x m system is sparse, and is solved by conjugate gradients.

With W = diag(lambda)^1/2 V the system of ``anchored`` is that of a graph between the anchors, with similarity Z'Z:

    (theta diag(lambda) - Z'Z) V = Z'Y - lambda ybar',     lambda = Z'1,     C = (V - 1 ybar') / theta

Rows of Z'Z sum to lambda, so the matrix is the Laplacian of that graph plus n mu diag(lambda). With a Jacobi
preconditioner its condition number is about 1 / (n mu), whatever the number of anchors. Classes are solved together.

Z (n, m) mixing weights, rows sum to 1     Y (n, c) labels     C (m, c) coefficients     theta = 1 + n mu
"""

from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel.operators.conjugate_gradients import TOLERANCE, SparseSystem
from greenlabel.operators.green import check_invertible

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

COLUMNS_AT_ONCE = 128  # right sides that are in memory at one time
ROUGH_WORK, MIN_COLUMNS = 500_000, 16  # anchors times columns of a rough own share; the fewest columns


class SparseAnchorSystem:
    """The same as AnchorSystem, from a sparse Z'Z. It is set up on first use: it may be one of several to try."""

    def __init__(self, gram: sp.csr_array, n: int, shift: float, n_components: int, group: Ints | None = None):
        """``group`` (m,) numbers groups of near anchors, where they are known."""
        check_invertible(n_components, shift, 1.0)
        self.n, self.theta = n, 1 + shift
        self._gram, self._group = gram, group
        self._mass = np.asarray(gram.sum(axis=1)).ravel()

    @cached_property
    def _system(self) -> SparseSystem:
        """An anchor that no row uses has no mass and no entry: its V stays 0."""
        own = self._gram.diagonal()
        between = sp.csr_array(self._gram - sp.diags_array(own))
        between.eliminate_zeros()
        diagonal = self.theta * self._mass - own
        return SparseSystem(between, diagonal, "raise mu, or lower n_anchors", self._group)

    def coefficients(self, ZY: Floats, ybar: Floats, tolerance: float = TOLERANCE) -> Floats:
        """C (m, c) with F_i = z_i' C for an unlabelled row, from Z'Y (m, c)."""
        return (self._solve(ZY, ybar, tolerance) - ybar) / self.theta

    def own_share(self, Z: sp.csr_array, tolerance: float = TOLERANCE) -> Floats:
        """G_ii of each row of Z: what a label adds to the score of its own row, (z_i' V - 1 / n + 1) / theta."""
        rows = np.arange(Z.shape[0])
        parts = [rows[start : start + COLUMNS_AT_ONCE] for start in range(0, len(rows), COLUMNS_AT_ONCE)]
        return np.concatenate([np.empty(0), *(self._own_share(Z[part], tolerance) for part in parts)])

    def _own_share(self, Z: sp.csr_array, tolerance: float) -> Floats:
        V = self._solve(Z.T.toarray(), np.full(Z.shape[0], 1 / self.n), tolerance)
        return self._share(np.asarray(Z.multiply(V.T).sum(axis=1)).ravel())

    def rough_own_share(self, Z: sp.csr_array, tolerance: float) -> Floats:
        """The same, cheaper: labels far apart share a column, and random signs cancel what they have in common."""
        n_columns = max(MIN_COLUMNS, ROUGH_WORK // len(self._mass))
        n_rows = Z.shape[0]
        if n_rows <= n_columns:
            return self.own_share(Z, tolerance)
        column = np.arange(n_rows) % n_columns
        sign = np.random.default_rng(0).choice([-1.0, 1.0], n_rows)
        Y = sp.csr_array((sign, (np.arange(n_rows), column)), shape=(n_rows, n_columns))
        V = self._solve((Z.T @ Y).toarray(), np.asarray(Y.sum(axis=0)).ravel() / self.n, tolerance)
        return self._share(sign * np.asarray((Z @ V)[np.arange(n_rows), column]))

    def _share(self, through_anchors: Floats) -> Floats:
        return (through_anchors - 1 / self.n + 1) / self.theta

    def _solve(self, ZY: Floats, ybar: Floats, tolerance: float) -> Floats:
        """V (m, c), with lambda'V = 0: of labels that are centred, nothing is left in the constant direction."""
        V = self._system.solve(ZY - np.outer(self._mass, ybar), tolerance, overwrite_b=True)
        return V - np.einsum("m,mc->c", self._mass, V) / self.n
