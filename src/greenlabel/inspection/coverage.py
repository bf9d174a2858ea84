"""Coverage: rows to label next, each of which stands for as much as it can of what no label stands for yet.

A label counts for the rows that it reaches over the graph. How far it reaches is said by the Green kernel between the
anchors, which knows no labels:

    H      = diag(scale) ((1 + s) I - B'B)^-1 diag(scale)      lambda = Z'1, scale = lambda^-1/2, B = Z diag(scale)
    h_l    = H z_l                                             of a label l on the anchors
    K_bl   = H_bl / sqrt(H_bb H_ll)                            as a correlation, between 0 and 1; H_ll = z_l' h_l
    cover_b    = max over labels l of K_bl                     how close to its nearest label an anchor is
    evidence_b = sum over labels l of H_bl / H_bb              what all labels say there; its own label would say 1
    need_b = alpha / (alpha + evidence_b) (1 - sure_b)         sure_b: mean of trust margin_i over its rows i
    gain_a = sum over b of lambda_b need_b max(0, K_ba - cover_b)

The next row is that of the anchor a of the largest gain whose z_ia (1 - trust margin_i) is largest. It counts as a
label at once, whatever its class will be: cover and evidence grow, and the next gain is that of the rows that are left.
So a batch spreads by itself.
Copies of one row get at most their share of the labels, rounded up: where few different rows stand for all, a label may
never quite cover an anchor between them, which would ask for the same row again and again.
Components that no label reaches have cover and evidence 0, so they gain in full: large ones come early, tiny ones wait.

A sure prediction lowers the need only as far as predictions have earned it. Trust is what leave-one-out gets right
beyond the share of the largest class, as a part of what it could; two further labels count as wrong, so that the first
few prove nothing. Where the graph says little, trust stays near 0 and coverage alone decides; random rows instead, in
part or where a test says so, are no better there (benchmarks/queries_tried.md). The root is taken because margins of
calibrated probabilities are small by themselves where predictions are poor.

    trust^2 = max(0, (right / (l + 2) - largest share) / (1 - largest share))

Z (n, m) mixing weights, k entries a row, rows sum to 1     lambda (m,) rows that an anchor stands for     s = n mu
H, K (m, m)     margin (n,) between the two likeliest classes of each row     l labels
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.threads import one_thread
from greenlabel.errors import DataError

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

SHIFT = 0.03  # s: the smaller, the further a label reaches
ALPHA = 1.0  # evidence at which half of the need is left: as much as an own label says
DOUBT = 2  # labels that count as wrong beside those that there are
MIN_WORTH = 1e-6  # a row that is quite sure can be had, too, when no other is left
MARK_DIGITS = 9  # to which marks of equal rows agree
ANCHORS_AT_ONCE = 256  # rows of K that fit in the processor's cache


@dataclass(frozen=True)
class Kernel:
    """The Green kernel between anchors. It knows no labels: make it once, ask it after every label."""

    H: Floats  # (m, m)
    K: NDArray[np.float32]  # (m, m)
    mass: Floats  # (m,) lambda

    @classmethod
    def of(cls, gram: Floats, shift: float = SHIFT) -> "Kernel":
        """From Z'Z (m, m), whose rows sum to lambda."""
        mass = np.asarray(gram).sum(axis=1)
        H = green_kernel(gram, shift)
        return cls(H, correlations(H).astype(np.float32), mass)

    def correlations_with(self, Z: sp.csr_array) -> Floats:
        """K_bl (m, l) of anchors with labels on the rows of Z."""
        reach = self.reach(Z)
        own = np.asarray(Z.multiply(reach.T).sum(axis=1)).ravel()
        return inverse_roots(np.diag(self.H))[:, None] * reach * inverse_roots(own)

    def reach(self, Z: sp.csr_array) -> Floats:
        """h_l (m, l) of labels on the rows of Z."""
        return np.asarray((Z @ self.H).T)


@dataclass(frozen=True)
class Pick:
    """One row to label."""

    row: int
    anchor: int
    covers: float  # rows for which it stands rather than any label or pick before it


def green_kernel(gram: Floats, shift: float) -> Floats:
    """H (m, m). An anchor that no row uses has no mass: its row and column are 0."""
    gram = np.asarray(gram, dtype=np.float64)
    mass = gram.sum(axis=1)
    scale = np.divide(1, np.sqrt(mass), out=np.zeros_like(mass), where=mass > 0)
    A = -scale[:, None] * gram * scale
    A[np.diag_indices(len(A))] += 1 + shift
    with one_thread():  # two threads would round otherwise
        R = scipy.linalg.cho_solve(scipy.linalg.cho_factor(A, check_finite=False), np.eye(len(A)), check_finite=False)
    R = (R + R.T) / 2
    return scale[:, None] * R * scale


def correlations(H: Floats) -> Floats:
    """K (m, m) of anchors with each other; 0 where an anchor has no mass."""
    inverse = inverse_roots(np.diag(H))
    return np.clip(inverse[:, None] * H * inverse, 0, 1)


def inverse_roots(values: Floats) -> Floats:
    """values^-1/2, and 0 at 0."""
    return np.divide(1, np.sqrt(values), out=np.zeros(len(values)), where=values > 0)


def label_cover(H: Floats, reach: Floats, own: Floats) -> Floats:
    """cover (m,): the largest K_bl over the labels, 0 without any. ``own`` (l,) is H_ll."""
    K = inverse_roots(np.diag(H))[:, None] * reach * inverse_roots(own)
    return np.clip(K.max(axis=1, initial=0.0), 0, 1)


def label_evidence(H: Floats, reach: Floats) -> Floats:
    """evidence (m,): what all labels say at each anchor, as a multiple of what its own label would."""
    diagonal = np.diag(H)
    return np.divide(reach.sum(axis=1), diagonal, out=np.zeros(len(H)), where=diagonal > 0)


def leave_one_out_means(kernel: Kernel, Z: sp.csr_array, codes: Ints, n_classes: int) -> Floats:
    """(l, c): of each label, the mean H_lj over the other labels j of each class; 0 where a class has no other.

    Means and not sums, for a class with many labels is not a larger one.
    """
    H = np.asarray(Z @ kernel.reach(Z))
    Y = np.eye(n_classes)[codes]
    total = H @ Y - np.diag(H)[:, None] * Y
    others = Y.sum(axis=0) - Y
    return np.divide(total, others, out=np.zeros_like(total), where=others > 0)


def trust(scores: Floats, codes: Ints) -> float:
    """How far predictions can be believed, 0 to 1, from leave-one-out scores (l, c) of labels of these classes.

    A label that no other one of its class can confirm is wrong by necessity, and where all labels are of one class
    nothing has been told apart yet.
    """
    counts = np.bincount(codes, minlength=1)
    if np.count_nonzero(counts) < 2:
        return 0.0
    right = np.count_nonzero((scores.argmax(axis=1) == codes) & (counts[codes] > 1))
    largest = counts.max() / len(codes)
    return max(0.0, float((right / (len(codes) + DOUBT) - largest) / (1 - largest))) ** 0.5


def need(evidence: Floats, sure: Floats, alpha: float = ALPHA) -> Floats:
    """need (m,): how much a further label is wanted at each anchor, 1 where nothing is known."""
    return alpha / (alpha + evidence) * (1 - sure)


def gains(K: Floats, weight: Floats, cover: Floats) -> Floats:
    """gain (m,): sum over b of weight_b max(0, K_ba - cover_b), some rows of K at a time."""
    total = np.zeros(K.shape[1])
    for start in range(0, len(K), ANCHORS_AT_ONCE):
        part = slice(start, start + ANCHORS_AT_ONCE)
        missing = K[part] - cover[part, None].astype(K.dtype)
        np.maximum(missing, 0, out=missing)
        total += weight[part].astype(K.dtype) @ missing
    return total


def row_of_anchor(Z: sp.csr_array, anchor: int, worth: Floats) -> int | None:
    """The row of the largest z_ia worth_i, the first of several; None where all are 0. ``worth`` (n,) is >= 0."""
    entries = np.flatnonzero(Z.indices == anchor)
    rows = np.searchsorted(Z.indptr, entries, side="right") - 1
    weights = Z.data[entries] * worth[rows]
    return int(rows[weights.argmax()]) if weights.any() else None


def anchor_means(Z: sp.csr_array, values: Floats, mass: Floats) -> Floats:
    """Means of values of rows (n,) at the anchors (m,), weighted by Z; 0 where an anchor has no mass."""
    total = np.asarray(Z.T @ values)
    return np.divide(total, mass, out=np.zeros_like(total), where=mass > 0)


def margins(P: Floats) -> Floats:
    """The largest of each row of P less the second largest; 0 with one column, which tells nothing apart."""
    if P.shape[1] < 2:
        return np.zeros(len(P))
    second, first = np.partition(P, -2, axis=1)[:, -2:].T
    return first - second


def copies(Z: sp.csr_array) -> Ints:
    """Numbers (n,) from 0 of the different rows of Z: equal rows have the same one."""
    marks = Z @ np.random.default_rng(0).random(Z.shape[1])
    return np.asarray(np.unique(marks.round(MARK_DIGITS), return_inverse=True)[1])


def within_share(copy: Ints, labelled: list[int]) -> Bools:
    """Which rows (n,) may come next, so that copies of one row have at most their share of the labels, rounded up."""
    size = np.bincount(copy)
    taken = np.bincount(copy[labelled], minlength=len(size))
    return np.asarray(taken < np.ceil(size * (len(labelled) + 1) / len(copy)))[copy]


def best_row(Z: sp.csr_array, gain: Floats, worth: Floats) -> tuple[int, int] | None:
    """The row, and its anchor, of the largest gain among those that have a row of any worth; None where none has."""
    has_rows = np.asarray(Z.T @ (worth > 0).astype(float)) > 0
    anchor = int(np.where(has_rows, gain, -1.0).argmax())
    row = row_of_anchor(Z, anchor, worth)
    return None if row is None else (row, anchor)


def next_rows(
    kernel: Kernel,
    Z: sp.csr_array,
    n_rows: int,
    labelled: Ints,
    sure: Floats | None = None,
    excluded: Ints | None = None,
    copy: Ints | None = None,
) -> list[Pick]:
    """The rows to label next, best first.

    Z (n, m) of all rows; ``labelled`` rows count as labels, ``excluded`` ones do not, and neither comes. Fewer rows
    than were wanted come only where no more are left. ``sure`` (n,) is trust times margin, below 1; nothing before
    there are predictions. ``copy`` (n,) from ``copies(Z)`` keeps equal rows to their share of the labels.
    """
    n, m = Z.shape
    if len(kernel.H) != m:
        raise DataError(f"Z has {m} anchors and the kernel {len(kernel.H)}; make the kernel from Z'Z of the same rows.")
    sure = np.zeros(n) if sure is None else sure
    sure_anchors = anchor_means(Z, sure, kernel.mass)
    worth = np.maximum(1 - sure, MIN_WORTH)
    worth[labelled] = 0
    if excluded is not None:
        worth[excluded] = 0
    covered, labels = Covered.by(kernel, Z[labelled]), [int(row) for row in labelled]
    picks: list[Pick] = []
    while len(picks) < n_rows:
        gain = gains(kernel.K, kernel.mass * need(covered.evidence, sure_anchors), covered.cover)
        found = None if copy is None else best_row(Z, gain, worth * within_share(copy, labels))
        found = found or best_row(Z, gain, worth)
        if found is None:
            break
        row, anchor = found
        worth[row] = 0
        labels.append(row)
        before, covered = covered, covered.joined(Covered.by(kernel, Z[[row]]))
        picks.append(Pick(row, anchor, float(kernel.mass[covered.cover > before.cover].sum())))
    return picks


@dataclass(frozen=True)
class Covered:
    """What some labels cover."""

    cover: Floats  # (m,)
    evidence: Floats  # (m,)

    @classmethod
    def by(cls, kernel: Kernel, Z: sp.csr_array) -> "Covered":
        """Labels on the rows of Z, of whatever class."""
        reach = kernel.reach(Z)
        own = np.asarray(Z.multiply(reach.T).sum(axis=1)).ravel()
        return cls(label_cover(kernel.H, reach, own), label_evidence(kernel.H, reach))

    def joined(self, other: "Covered") -> "Covered":
        return Covered(np.maximum(self.cover, other.cover), self.evidence + other.evidence)
