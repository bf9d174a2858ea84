"""Labels spread over the sketch alone: what a model of very many anchors would take seconds to say of all rows.

    G_il = z_i' H z_l / theta - 1 / (s n)        the influence of label l on row i != l;  theta = 1 + s, s = n mu
    C_k  = sum over labels l of class k of H z_l / theta - 1 / (s n)        so that F_i = z_i' C

H is the Green kernel of the sketch (coverage.py), which is held as a whole: nothing is solved. Class offsets and
temperature are found as those of a classifier are, from leave-one-out scores, F_l less what its own label adds.

Z (n, m) mixing weights     H (m, m)     C (m, c)     P (r, c) probabilities
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel.inspection.coverage import SHIFT, Kernel, margins
from greenlabel.labels.encoding import Labels, ScoreDecoder, calibrate, evenly
from greenlabel.labels.offsets import class_offsets

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

MAX_TESTED = 1000  # labels whose leave-one-out scores are looked at
ROUNDING = 1e-9
SAMPLED_ROWS = 4096  # rows whose scores show the shares of the classes in the data


@dataclass(frozen=True)
class SketchModel:
    """Scores of anchors, and how they become probabilities."""

    C: Floats  # (m, c)
    is_reached: Bools  # (m,) anchors that a label reaches
    decoder: ScoreDecoder

    @classmethod
    def of(cls, kernel: Kernel, Z: sp.csr_array, labels: Labels) -> "SketchModel":
        of_labels = Z[labels.rows]
        reach, constant = kernel.reach(of_labels) / (1 + SHIFT), 1 / (SHIFT * labels.n)
        C = reach @ np.eye(len(labels.classes))[labels.codes] - constant * labels.counts
        is_reached = np.asarray(reach.max(axis=1) > 0)
        tested = evenly(np.arange(len(labels.rows)), MAX_TESTED)
        own = np.asarray(of_labels.multiply(reach.T).sum(axis=1)).ravel()
        joined = np.asarray(of_labels @ reach.sum(axis=1)) > (1 + ROUNDING) * own  # by a label other than its own
        left_out = np.asarray(of_labels @ C)
        left_out[np.arange(len(labels.rows)), labels.codes] -= own - constant
        offsets = _offsets(left_out, joined, labels, tested, _sampled(Z, C, is_reached, labels))
        t = calibrate(labels, joined, lambda indices: left_out[indices] + offsets)
        return cls(C, is_reached, ScoreDecoder(labels.classes, labels.shares, offsets, t))

    def margins(self, Z: sp.csr_array) -> Floats:
        """(n,) margins of rows: those of their anchors, mixed."""
        return np.asarray(Z @ margins(self.decoder.probabilities(self.C, self.is_reached)))

    def probabilities(self, Z: sp.csr_array) -> tuple[Floats, Bools]:
        """P of some rows, and whether a label reaches them."""
        is_reached = np.asarray(Z @ self.is_reached.astype(float)) > 0
        return self.decoder.probabilities(np.asarray(Z @ self.C), is_reached), is_reached


def _offsets(left_out: Floats, joined: Bools, labels: Labels, tested: Ints, sampled: Floats) -> Floats:
    """(c,) A label that the others cannot recognise counts for the size of its class alone."""
    recognisable = joined & (labels.counts[labels.codes] > 1)
    H = np.where(recognisable[:, None], left_out, 0.0)[tested]
    return class_offsets(H, labels.codes[tested], labels.counts, sampled)


def _sampled(Z: sp.csr_array, C: Floats, is_reached: Bools, labels: Labels) -> Floats:
    """F of some unlabelled rows that a label reaches."""
    rows = np.setdiff1d(evenly(np.arange(labels.n), SAMPLED_ROWS), labels.rows)
    part = Z[rows]
    return np.asarray(part @ C)[np.asarray(part @ is_reached.astype(float)) > 0]
