"""The task of an expert, and what every expert is.

    learn(task, …)     an expert that knows the labels, with
      held_out         (r, l, c) its evidence for each labelled row, learned without the fold of that row
      evidence(X)      (rows, c) for new rows; all zeros where it has nothing to say
      own_evidence     (n, c) for the rows of the data

An expert is not changed by learning: ``learn`` returns another one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from greenlabel.labels.encoding import Labels

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

FEW = 0.1  # of the labels of the fit: where no more are added, what was learned from them without a fold is kept


@dataclass(frozen=True)
class Task:
    """What is to be learned: rows, some of their labels, and the division of these into folds."""

    X: Any  # (n, d)
    labels: Labels
    folds: Ints  # (r, l)
    keeps_folds: bool = False  # whether these are the labels of the fit, in the same folds, and a few more

    def splits(self) -> Iterator[tuple[int, NDArray[np.bool_]]]:
        """(division, which labelled rows are out) for each fold of each division."""
        for division, fold in enumerate(self.folds):
            yield from ((division, fold == number) for number in np.unique(fold[fold >= 0]))

    def nothing(self) -> Floats:
        return np.zeros((*self.folds.shape, len(self.labels.classes)))

    def in_all_divisions(self, first: Floats) -> Floats:
        """Evidence (l, c) of the first division for all: one says as much as two where other experts differ in both."""
        return np.broadcast_to(first, self.nothing().shape)


def few_added(before: Labels, now: Labels) -> bool:
    """Whether all labels are as before, but for a few more of the same classes."""
    if not np.array_equal(before.classes, now.classes):
        return False
    stays = np.isin(now.rows, before.rows)
    all_stay = np.array_equal(now.rows[stays], before.rows) and np.array_equal(now.codes[stays], before.codes)
    return all_stay and len(now.rows) <= (1 + FEW) * len(before.rows)


class Expert:
    """A name and evidence; ``model`` is what the user sees of it."""

    name: str
    model: Any
    trust: float = 1.0  # what it is worth, relative to others, before any evidence
    held_out: Floats
    own_evidence: Floats
    needed: tuple[str, ...] = ("name", "model")  # attributes without which there is no evidence for new rows

    def learn(self, task: Task, learned: "dict[str, Expert]") -> Self:
        """This expert, knowing the labels; ``learned`` are those that were asked before it."""
        raise NotImplementedError

    def evidence(self, X: Any) -> Floats:
        raise NotImplementedError

    def evidence_on_rows(self, X: Any, rows: Ints) -> Floats:
        """``own_evidence`` of some rows; X are all rows of the data."""
        return self.evidence(X[rows])

    def for_prediction(self) -> Self:
        """A copy with what ``evidence`` needs."""
        slim = object.__new__(type(self))
        slim.__dict__ |= {name: value for name, value in vars(self).items() if name in self.needed}
        return slim


def learn_all(experts: list[Expert], task: Task) -> list[Expert]:
    learned: dict[str, Expert] = {}
    for expert in experts:
        learned[expert.name] = expert.learn(task, learned)
    return list(learned.values())
