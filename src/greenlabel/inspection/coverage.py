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

A sure prediction lowers the need only as far as probabilities could be calibrated. Where the graph says little,
calibrated margins are small by themselves. But they are calibrated on the r labels that another one of their class can
confirm, and few of these prove nothing. Leave-one-out as a further factor is worse from 20 labels on, and random rows,
in part or where a test says so, are no better than coverage where the graph says little (benchmarks/tried.md).

    trust = r / (r + 2)

Z (n, m) mixing weights, k entries a row, rows sum to 1     lambda (m,) rows that an anchor stands for     s = n mu
H, K (m, m)     margin (n,) between the two likeliest classes of each row
"""

from collections.abc import Iterator
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
DOUBT = 2  # labels that calibrate probabilities at which half of a margin is believed
MIN_WORTH = 1e-6  # a row that is quite sure can be had, too, when no other is left
MARK_DIGITS = 9  # to which marks of equal rows agree
CLOSE = 1e-5  # gains that single precision may put in the wrong order, relative to the largest
EQUAL = 1e-9  # values that double precision may
ANCHORS_AT_ONCE = 256  # rows of K that fit in the processor's cache
LABELS_AT_ONCE = 1024  # times anchors are in memory


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

    def reach(self, Z: sp.csr_array) -> Floats:
        """h_l (m, l) of labels on the rows of Z."""
        return np.asarray((Z @ self.H).T)

    def scaled_reach(self, Z: sp.csr_array) -> Floats:
        """h_l / sqrt(H_ll) (m, l): for one row after another, z_i' of it is in proportion to the correlations K_il."""
        reach = self.reach(Z)
        return reach * inverse_roots(own_reach(Z, reach))

    def nearest(self, Z: sp.csr_array, labelled: sp.csr_array) -> Floats:
        """(r,) how close each row of Z is to its nearest label, the largest K_il; 0 without any."""
        scaled, found = self.scaled_reach(Z), np.zeros(Z.shape[0])
        for part in some_at_once(labelled):
            K = (part @ scaled) * inverse_roots(own_reach(part, self.reach(part)))[:, None]
            found = np.maximum(found, K.max(axis=0))
        return found


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
    R = inverse(A)
    R *= scale
    R *= scale[:, None]
    return R


def inverse(A: Floats) -> Floats:
    """A^-1 of a positive definite matrix, exactly symmetric."""
    with one_thread():  # two threads would round otherwise
        R, _ = scipy.linalg.cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        R, _ = scipy.linalg.lapack.dpotri(R, lower=1, overwrite_c=1)
    above = np.triu_indices(len(R), 1)
    R[above] = R.T[above]
    return R.T  # in the order of rows, as sparse products want it


def correlations(H: Floats) -> Floats:
    """K (m, m) of anchors with each other; 0 where an anchor has no mass."""
    inverse = inverse_roots(np.diag(H))
    return np.clip(inverse[:, None] * H * inverse, 0, 1)


def inverse_roots(values: Floats) -> Floats:
    """values^-1/2, and 0 at 0."""
    return np.divide(1, np.sqrt(values), out=np.zeros(len(values)), where=values > 0)


def some_at_once(Z: sp.csr_array) -> Iterator[sp.csr_array]:
    """Rows of Z, as many at a time as are compared with all anchors at once."""
    return (Z[start : start + LABELS_AT_ONCE] for start in range(0, Z.shape[0], LABELS_AT_ONCE))


def own_reach(Z: sp.csr_array, reach: Floats) -> Floats:
    """H_ll (l,) of labels on the rows of Z, from h_l (m, l)."""
    return np.asarray(Z.multiply(reach.T).sum(axis=1)).ravel()


def label_cover(H: Floats, reach: Floats, own: Floats) -> Floats:
    """cover (m,): the largest K_bl over the labels, 0 without any. ``own`` (l,) is H_ll."""
    K = inverse_roots(np.diag(H))[:, None] * reach * inverse_roots(own)
    return np.clip(K.max(axis=1, initial=0.0), 0, 1)


def label_evidence(H: Floats, reach: Floats) -> Floats:
    """evidence (m,): what all labels say at each anchor, as a multiple of what its own label would."""
    diagonal = np.diag(H)
    return np.divide(reach.sum(axis=1), diagonal, out=np.zeros(len(H)), where=diagonal > 0)


def trust(codes: Ints) -> float:
    """How far calibrated margins can be believed, 0 to 1, from the classes (l,) of the labels."""
    r = np.count_nonzero(np.bincount(codes)[codes] > 1)
    return r / (r + DOUBT)


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
    return int(rows[steady_argmax(weights)]) if weights.any() else None


def steady_argmax(values: Floats) -> int:
    """Where the largest of some values >= 0 is; the first of those that only rounding tells apart."""
    return int((values >= values.max() * (1 - EQUAL)).argmax())


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


class LazyGains:
    """Gains that are computed where they can be the largest.

    A label only lowers them: cover and evidence grow, and need falls. So the gains before a label are bounds, and most
    anchors are never looked at again.
    """

    def __init__(self, K: Floats, weight: Floats, cover: Floats):
        self._K, self._bound = K, gains(K, weight, cover)
        self._is_exact = np.ones(len(K), bool)
        self._weight, self._cover = weight, cover

    def after(self, weight: Floats, cover: Floats) -> "LazyGains":
        """The same after one more label; what was known are bounds now."""
        self._is_exact[:] = False
        self._weight, self._cover = weight.astype(self._K.dtype), cover.astype(self._K.dtype)
        return self

    def best(self, allowed: Bools) -> int:
        """The anchor of the largest gain among those allowed, of which there is one; the first of several.

        Which of two close gains is the larger one is found in double precision: the last digit of a sum in single
        precision differs between processors.
        """
        bound = np.where(allowed, self._bound, -1.0)
        while not self._is_exact[anchor := int(bound.argmax())]:
            gain = float(self._weight @ np.maximum(self._K[anchor] - self._cover, 0))
            self._bound[anchor] = gain
            self._is_exact[anchor] = True
            bound[anchor] = gain if allowed[anchor] else -1.0
        close = np.flatnonzero(bound >= bound[anchor] * (1 - CLOSE))
        missing = np.maximum(self._K[close] - self._cover.astype(float), 0)
        return int(close[steady_argmax(missing @ self._weight.astype(float))])


def best_row(Z: sp.csr_array, gain: LazyGains, worth: Floats) -> tuple[int, int] | None:
    """The row, and its anchor, of the largest gain among those that have a row of any worth; None where none has."""
    has_rows = np.asarray(Z.T @ (worth > 0).astype(float)) > 0
    if not has_rows.any():
        return None
    anchor = gain.best(has_rows)
    row = row_of_anchor(Z, anchor, worth)
    return None if row is None else (row, anchor)


def next_rows(
    kernel: Kernel,
    Z: sp.csr_array,
    n_rows: int,
    labelled: Ints,
    sure: Floats | None = None,
    excluded: Ints | Bools | None = None,
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
    sure_anchors = anchor_means(Z, sure, np.asarray(Z.sum(axis=0)).ravel())  # Z may be some of the kernel's rows
    worth = np.maximum(1 - sure, MIN_WORTH)
    worth[labelled] = 0
    if excluded is not None:
        worth[excluded] = 0
    covered, labels = Covered.by(kernel, Z[labelled]), [int(row) for row in labelled]
    picks: list[Pick] = []
    gain: LazyGains | None = None
    while len(picks) < n_rows:
        weight = kernel.mass * need(covered.evidence, sure_anchors)
        gain = LazyGains(kernel.K, weight, covered.cover) if gain is None else gain.after(weight, covered.cover)
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
        covered = cls(np.zeros(len(kernel.H)), np.zeros(len(kernel.H)))
        for part in some_at_once(Z):
            reach = kernel.reach(part)
            cover, evidence = label_cover(kernel.H, reach, own_reach(part, reach)), label_evidence(kernel.H, reach)
            covered = covered.joined(cls(cover, evidence))
        return covered

    def joined(self, other: "Covered") -> "Covered":
        return Covered(np.maximum(self.cover, other.cover), self.evidence + other.evidence)
