"""How good the predictions are, by rows that were drawn at random and labelled before their prediction was seen.

Labels that were chosen to learn from say little about the other rows, and labels given after a prediction was seen lean
towards it. Rows drawn at random are neither. Each is predicted by all other labels that there are now (leave-one-out),
so the share of right ones is about the model as it is, and the interval is Wilson's.

    curve    [labels, estimate, low, high] as it was after each label
    changed  the share of predictions that the last ten times of labelling changed
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel.labels.estimates import LEVEL
from greenlabel.metrics import share_interval

Ints = NDArray[np.integer]

MIN_AUDITS = 5
RECENT = 10  # times of labelling that `changed` looks back


def facts(audits: int, right: int) -> dict[str, Any]:
    """What is known from so many rows drawn at random."""
    if audits < MIN_AUDITS:
        estimate, (low, high) = None, (0.0, 1.0)
    else:
        estimate, low, high = share_interval(right, audits, LEVEL)
    return {
        "audits": audits,
        "right": right,
        "estimate": estimate,
        "low": low,
        "high": high,
        "sentence": sentence(audits, right, low, high),
    }


def sentence(audits: int, right: int, low: float, high: float) -> str:
    if audits < MIN_AUDITS:
        drawn = {0: "No row drawn at random has been labelled yet", 1: "One row drawn at random has been labelled"}
        return (
            f"{drawn.get(audits, f'{audits} rows drawn at random have been labelled')}: too few to tell how good the "
            f"predictions are. From {MIN_AUDITS} on there is an estimate."
        )
    return (
        f"{right} of {audits} rows drawn at random are predicted right by the other labels, so {low:.0%} to {high:.0%} "
        f"of all predictions probably are ({LEVEL:.0%} interval). Four times as many such rows halve the interval."
    )


@dataclass
class Curve:
    """Points [labels, audits, right] as they were; an undo takes back those of labels that are no longer there."""

    points: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, labels: int, audits: int, right: int) -> None:
        self.points = [point for point in self.points if point[0] < labels]
        if audits >= MIN_AUDITS:
            self.points.append((labels, audits, right))

    def shown(self) -> list[list[float]]:
        return [[labels, *share_interval(right, audits, LEVEL)] for labels, audits, right in self.points]


@dataclass
class Recent:
    """Predictions before each of the last times of labelling."""

    before: deque[NDArray[Any]] = field(default_factory=lambda: deque(maxlen=RECENT))

    def add(self, predicted: NDArray[Any]) -> None:
        """Predictions before labels are given."""
        self.before.append(predicted)

    def take_back(self) -> None:
        """The last time of labelling was undone."""
        if self.before:
            self.before.pop()

    def forget(self) -> None:
        """Classes have changed, so predictions cannot be compared."""
        self.before.clear()

    @property
    def times(self) -> int:
        return len(self.before)

    def changed(self, predicted: NDArray[Any]) -> float | None:
        if not self.before:
            return None
        return float(np.mean(self.before[0] != predicted))
