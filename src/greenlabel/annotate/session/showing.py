"""What is shown of all rows: the live predictions, or those of the blend where it is better.

Rows that carry a label show it. Classes are indices in the list of classes; NONE where nothing is predicted.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel.annotate.session.frames import NONE, Frame, as_byte
from greenlabel.annotate.session.labels import State
from greenlabel.annotate.session.live import Solved
from greenlabel.annotate.session.settled import Settled, is_better

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]

LIVE, BLEND = "live", "blend"


def nothing(n: int, generation: int) -> Frame:
    """Before there is a graph."""
    return Frame(generation, np.full(n, NONE, np.uint8), np.zeros(n, np.uint8))


def live_frame(solved: Solved, state: State, generation: int) -> Frame:
    codes, confidence = solved.predictions
    return frame_of(codes, confidence, solved.ids, state, generation)


def blend_frame(blend: Settled, state: State, generation: int) -> Frame:
    return frame_of(blend.p.argmax(axis=1), as_byte(blend.p.max(axis=1)), blend.ids, state, generation)


def frame_of(codes: Ints, confidence: Bytes, ids: list[int], state: State, generation: int) -> Frame:
    """Predictions by code (an index in ``ids``), with given labels over them."""
    index = {one.id: i for i, one in enumerate(state.classes)}
    lookup = np.full(NONE + 1, NONE, np.uint8)
    lookup[: len(ids)] = [index[number] for number in ids]
    classes, confidence = lookup[codes], confidence.copy()
    rows = state.labelled
    of_id = np.zeros(state.next_id, np.uint8)
    of_id[list(index)] = list(index.values())
    classes[rows], confidence[rows] = of_id[state.marks["label"][rows]], 255
    return Frame(generation, classes, confidence)


@dataclass(frozen=True)
class Comparison:
    """Live and blend on the same labels; None where it cannot be told."""

    model: str
    why: str
    live: float | None = None
    blend: float | None = None

    def as_json(self) -> dict[str, Any]:
        return {"model": self.model, "why": self.why, "live": self.live, "blend": self.blend}


def compare(solved: Solved, state: State, blend: Settled | None, why_no_blend: str | None) -> Comparison:
    """Which of the two is shown, and why."""
    if blend is None:
        waits = "the blend is fitted when your hands rest"
        return Comparison(LIVE, f"The live model is shown; {why_no_blend or waits}.")
    given = state.marks["label"][blend.tested]
    by_blend, by_live = blend.predicted == given, predicted_without_own(solved, blend.tested) == given
    if not len(given):
        return Comparison(LIVE, "The live model is shown; no label can be held out to compare the blend with it.")
    shares = float(by_live.mean()), float(by_blend.mean())
    says = f"of {len(given)} held-out labels it predicts {by_blend.sum()}, the live model {by_live.sum()}"
    if is_better(by_blend, by_live):
        return Comparison(BLEND, f"The blend is shown: {says}.", *shares)
    return Comparison(LIVE, f"The live model is shown, for the blend is not clearly better: {says}.", *shares)


def predicted_without_own(solved: Solved, rows: Ints) -> Ints:
    """The class of each labelled row by all other labels; -1 where they cannot recognise it."""
    labels = solved.labels
    index = np.searchsorted(labels.rows, rows)
    if len(labels.classes) < 2:
        return np.full(len(rows), labels.classes[0] if len(labels.rows) > 1 else -1)
    F = solved.decoder.adjusted(solved.scores(rows))
    best = labels.classes[F.argmax(axis=1)]
    return np.where(solved.propagation.recognisable()[index], best, -1)


def audits_right(solved: Solved, state: State, blend: Settled | None) -> Bools:
    """Which of the rows drawn at random are predicted right: by the blend out-of-fold where it is shown."""
    rows = state.audits
    predicted = predicted_without_own(solved, rows) if len(rows) else rows
    if blend is not None:
        known = dict(zip(blend.tested.tolist(), blend.predicted.tolist(), strict=True))
        predicted = np.array([known.get(row, other) for row, other in zip(rows.tolist(), predicted, strict=True)])
    return np.asarray(predicted == state.marks["label"][rows], bool)
