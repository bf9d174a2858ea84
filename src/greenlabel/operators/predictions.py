"""Predictions for rows from their nearest anchors, one block at a time.

    F_i = z_i' C + y_i / theta        z_i the weights of row i on its anchors, y_i its own label (0 without one)

Each class here is a step over blocks of Near (blocks.py): it holds all that predictions need beside the rows, which is
m x c numbers and the labels, nothing of the size of the data.

C (m, c) coefficients     F (n, c) scores     theta = 1 + n mu
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel.graph.mixing import Largest, Near
from greenlabel.labels.encoding import ScoreDecoder

Floats = NDArray[np.floating]
Bools = NDArray[np.bool_]
Ints = NDArray[np.integer]


class BlockPredictions(NamedTuple):
    """What is predicted for one block of rows."""

    rows: Sequence[int]  # a range
    classes: NDArray[Any]  # (len(rows),)
    probabilities: Floats  # (len(rows), c)


@dataclass(frozen=True)
class Scores:
    """F of the rows; also which of them are reached."""

    C: Floats
    reached_anchors: Bools  # (m,)
    labelled: Ints  # rows with a label of their own, ascending; none among new rows
    codes: Ints  # their classes
    own: float  # 1 / theta

    def __call__(self, rows: Sequence[int], near: Near) -> Floats:
        return self._of(rows, near.matrix(len(self.C)))

    def reached(self, near: Near) -> Bools:
        """Whether a label reaches any of a row's anchors."""
        if self.reached_anchors.all():
            return np.ones(len(near), bool)
        return self._reached(near.matrix(len(self.C)))

    def with_reach(self, rows: Sequence[int], near: Near) -> tuple[Floats, Bools]:
        """Both, from weights that are taken once."""
        Z = near.matrix(len(self.C))
        return self._of(rows, Z), self._reached(Z)

    def of_labelled(self, rows: Sequence[int], near: Near) -> tuple[Ints, Floats, Bools]:
        """Which of these rows have a label, by their place among them; F of those, and whether they are reached."""
        labelled, codes = self._labels_of(rows)
        Z = near.pick(labelled).matrix(len(self.C))
        F = Z @ self.C
        F[np.arange(len(codes)), codes] += self.own
        return labelled, F, self._reached(Z)

    def _labels_of(self, rows: Sequence[int]) -> tuple[Ints, Ints]:
        here = slice(*np.searchsorted(self.labelled, [rows[0], rows[-1] + 1]))
        return self.labelled[here] - rows[0], self.codes[here]

    def _of(self, rows: Sequence[int], Z: sp.csr_array) -> Floats:
        F = Z @ self.C
        F[self._labels_of(rows)] += self.own
        return F

    def _reached(self, Z: sp.csr_array) -> Bools:
        return np.ones(Z.shape[0], bool) if self.reached_anchors.all() else Z @ self.reached_anchors > 0


@dataclass(frozen=True)
class Reached:
    scores: Scores

    def __call__(self, rows: Sequence[int], near: Near) -> Bools:
        return self.scores.reached(near)


@dataclass(frozen=True)
class Classes:
    scores: Scores
    decoder: ScoreDecoder

    def __call__(self, rows: Sequence[int], near: Near) -> NDArray[Any]:
        """Scores are made for rows with a label of their own alone."""
        scores, decoder = self.scores, self.decoder
        largest = Largest(scores.C, decoder.offsets, scores.reached_anchors, int(decoder.shares.argmax()))

        found = decoder.classes[largest(near)]
        labelled, F, is_reached = scores.of_labelled(rows, near)
        found[labelled] = decoder.classify(F, is_reached)
        return found


@dataclass(frozen=True)
class Probabilities:
    scores: Scores
    decoder: ScoreDecoder

    def __call__(self, rows: Sequence[int], near: Near) -> Floats:
        return self.decoder.probabilities(*self.scores.with_reach(rows, near))


@dataclass(frozen=True)
class Decisions:
    """Scores and offsets as scikit-learn wants them: one column for two classes, positive for the second."""

    scores: Scores
    decoder: ScoreDecoder

    def __call__(self, rows: Sequence[int], near: Near) -> Floats:
        F = self.decoder.adjusted(self.scores(rows, near))
        return F[:, 1] - F[:, 0] if F.shape[1] == 2 else F


@dataclass(frozen=True)
class PredictAllRows:
    """Probabilities, and whether a label reaches the row."""

    scores: Scores
    decoder: ScoreDecoder

    def __call__(self, rows: Sequence[int], near: Near) -> tuple[Floats, Bools]:
        F, is_reached = self.scores.with_reach(rows, near)
        return self.decoder.probabilities(F, is_reached), is_reached


@dataclass(frozen=True)
class PredictRows:
    scores: Scores
    decoder: ScoreDecoder

    def __call__(self, rows: Sequence[int], near: Near) -> BlockPredictions:
        F, is_reached = self.scores.with_reach(rows, near)
        return BlockPredictions(rows, self.decoder.classify(F, is_reached), self.decoder.probabilities(F, is_reached))
