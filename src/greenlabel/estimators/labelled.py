"""Labels on a graph, and what turns their scores into classes and probabilities: class offsets and a temperature.

    LabelledGraph     for the rows of the fit and for new ones; each part is computed on first use
    ForPrediction     for new rows alone: what a model file holds

Offsets and temperature are found on leave-one-out scores, where the class is known.

F (n, c) scores     l labelled rows
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel.labels.encoding import Labels, ScoreDecoder, calibrate, evenly
from greenlabel.labels.offsets import class_offsets
from greenlabel.operators.conjugate_gradients import TOLERANCE
from greenlabel.propagators.base import ROUGH, Predictor, Propagation, Propagator

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

MIN_TESTED = 200  # labelled rows that are always affordable to test
TEST_WORK = 20_000_000  # rows of the data times rows that are tested
TESTED_AT_ONCE = 128  # columns of G that are in memory at one time
OFFSET_ROWS = 500  # labelled rows from which class offsets are found


@dataclass(frozen=True)
class ForPrediction:
    """What new rows need of labels on a graph."""

    labels: Labels
    predictor: Predictor
    offsets: Floats | None  # (c,), None where scores alone are needed
    temperature: float | None

    @property
    def decoder(self) -> ScoreDecoder:
        """From scores to classes."""
        assert self.offsets is not None
        return ScoreDecoder(self.labels.classes, self.labels.shares, self.offsets)

    @property
    def calibrated(self) -> ScoreDecoder:
        """From scores to probabilities."""
        assert self.temperature is not None
        return replace(self.decoder, temperature=self.temperature)

    def for_prediction(self) -> "ForPrediction":
        return self

    def for_scores(self) -> "ForPrediction":
        return replace(self, offsets=None, temperature=None)


class LabelledGraph:
    """A propagation and the decoder of its scores."""

    def __init__(self, propagation: Propagation, wants_offsets: bool):
        self.propagation, self._wants_offsets = propagation, wants_offsets

    @property
    def propagator(self) -> Propagator:
        return self.propagation.propagator

    @property
    def labels(self) -> Labels:
        return self.propagation.labels

    @cached_property
    def predictor(self) -> Predictor:
        return self.propagation.predictor()

    @property
    def scores(self) -> Floats:
        return self.propagation.scores

    @property
    def reached(self) -> Bools:
        return self.propagation.reached

    @cached_property
    def transduction(self) -> NDArray[Any]:
        return self.propagation.classify(self.decoder)

    @cached_property
    def distributions(self) -> Floats:
        return self.propagation.probabilities(self.calibrated)

    @property
    def decoder(self) -> ScoreDecoder:
        """From scores to classes."""
        return ScoreDecoder(self.labels.classes, self.labels.shares, self.offsets)

    @property
    def calibrated(self) -> ScoreDecoder:
        """From scores to probabilities."""
        return replace(self.decoder, temperature=self.temperature)

    @cached_property
    def offsets(self) -> Floats:
        """What is added to the scores of each class (c,)."""
        labels = self.labels
        if not self._wants_offsets:
            return np.zeros(len(labels.classes))
        tested = evenly(np.arange(len(labels.rows)), OFFSET_ROWS)
        H = self.propagation.rough_leave_one_out(tested)
        H[~self.propagation.recognisable()[tested]] = 0
        return class_offsets(H, labels.codes[tested], labels.counts, self.propagation.sampled_scores())

    @cached_property
    def temperature(self) -> float:
        offsets = self.offsets
        return calibrate(
            self.labels,
            self.propagation.joined(),
            lambda indices: self.propagation.leave_one_out(indices, ROUGH) + offsets,
        )

    def leave_one_out(self, indices: Ints, tolerance: float = TOLERANCE) -> Floats:
        """Scores (len(indices), c) of some labelled rows, each by all other labels."""
        parts = [indices[start : start + TESTED_AT_ONCE] for start in range(0, len(indices), TESTED_AT_ONCE)]
        found = [self.propagation.leave_one_out(part, tolerance) for part in parts]
        return np.concatenate(found) if found else np.empty((0, len(self.labels.classes)))

    def cross_validated(self, max_rows: int, tests_all: bool = False) -> tuple[Ints, Ints, Floats]:
        """Labelled rows, their codes, and their leave-one-out probabilities.

        Rows that the other labels cannot recognise are left out. Of more than ``max_rows``, or than are affordable, an
        even choice is taken unless all are wanted.
        """
        affordable = max_rows if tests_all else max(MIN_TESTED, TEST_WORK // self.labels.n)
        tested = evenly(np.flatnonzero(self.propagation.recognisable()), min(max_rows, affordable))
        F = self.leave_one_out(tested, ROUGH)
        p = self.calibrated.probabilities(F, np.ones(len(F), bool))
        return self.labels.rows[tested], self.labels.codes[tested], p

    def for_prediction(self) -> ForPrediction:
        """What new rows need, and nothing else of the fit."""
        return replace(self.for_scores(), offsets=self.offsets, temperature=self.temperature)

    def for_scores(self) -> ForPrediction:
        """The same for scores alone, where a blend decides."""
        predictor = self.propagation.predictor()
        return ForPrediction(replace(self.labels), predictor, None, None)
