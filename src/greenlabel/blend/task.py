"""The task of an expert, and what every expert is.

    learn(task, …)     an expert that knows the labels, with
      out_of_fold      (r, l, c) its evidence for each labelled row, learned without the fold of that row
      evidence(X)      (rows, c) for new rows; all zeros where it has nothing to say
      own_evidence     (n, c) for the rows of the data, where they are in memory
      in_blocks()      a step that gives it for a block of them, where they are not

An expert is not changed by learning: ``learn`` returns another one.
"""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.progress import logged
from greenlabel.blend.adding import ExpertInBlocks, RowsAlone
from greenlabel.blend.in_blocks import RowsInBlocks
from greenlabel.blocks.rows import Blocks
from greenlabel.labels.encoding import Labels

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

FEW = 0.1  # of the labels of the fit


@dataclass(frozen=True)
class Task:
    """What is to be learned: rows, some of their labels, and the division of these into folds."""

    X: Any  # (n, d), or RowsInBlocks
    labels: Labels
    folds: Ints  # (r, l)
    keeps_tests: bool = False  # whether what experts said of labelled rows at the fit still tests them
    is_first: bool = True  # whether these are the labels of the fit

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
    """Whether all labels are as before, but for at most a tenth more of the same classes."""
    n_before = len(before.rows)
    return n_unchanged(before, now) == n_before and len(now.rows) <= (1 + FEW) * n_before


def another_draw(before: Labels, now: Labels) -> bool:
    """Whether about as many labels take the place of nearly all that there were, and none contradicts them.

    A few labels that are taken back were probably wrong: then this is none.
    """
    n_before, n_stay = len(before.rows), n_unchanged(before, now)
    return 0 <= n_stay <= FEW * n_before and abs(len(now.rows) - n_before) <= FEW * n_before


def n_unchanged(before: Labels, now: Labels) -> int:
    """How many labels stand as they were; -1 where the classes differ, or a row changed its class."""
    if not np.array_equal(before.classes, now.classes):
        return -1
    _, first, second = np.intersect1d(before.rows, now.rows, return_indices=True)
    return len(first) if np.array_equal(before.codes[first], now.codes[second]) else -1


@dataclass(frozen=True)
class Learned:
    """What an expert has learned from the labels of the fit."""

    labels: Labels
    out_of_fold: Floats  # (r, l, c) as of an expert
    model: Any


class Expert:
    """A name and evidence; ``model`` is what the user sees of it.

    A subclass defines
        _learn_folds(task, learned)     model and out_of_fold, from the labels alone
        _learn_all(task, first)         model alone, of the kind that was tested at the fit
        _evidence_of(learned, X, rows)  evidence of a model of the fit for some rows whose labels it has not seen
        evidence(X), own_evidence

    Where the tests of the fit stay (``task.keeps_tests``), only the model of all labels is learned again. Rows that had
    a label at the fit keep their out-of-fold evidence, which comes from models that did not see it. The model of the
    fit tests the other rows: it has not seen their labels either.
    """

    name: str
    model: Any
    trust: float = 1.0  # what it is worth, relative to others, before any evidence
    out_of_fold: Floats
    own_evidence: Floats
    needed: tuple[str, ...] = ("name", "model")  # attributes without which there is no evidence for new rows
    first: Learned | None = None  # from the labels of the fit

    def learn(self, task: Task, learned: "dict[str, Expert]") -> Self:
        """This expert, knowing the labels; ``learned`` are those that learned before it."""
        expert, first = copy(self), self.first
        if first is None or not task.keeps_tests or len(first.out_of_fold) != len(task.folds):
            expert._learn_folds(task, learned)
        else:
            expert._keep_tests(task, first)
        if first is None:
            expert.first = Learned(task.labels, expert.out_of_fold, expert.model)
        if not isinstance(task.X, RowsInBlocks):
            expert.own_evidence = expert._own_evidence(task)
        return expert

    def _keep_tests(self, task: Task, first: Learned) -> None:
        rows = task.labels.rows
        is_new = ~np.isin(rows, first.labels.rows)
        self.out_of_fold, self.model = task.nothing(), first.model
        self.out_of_fold[:, ~is_new] = first.out_of_fold[:, np.searchsorted(first.labels.rows, rows[~is_new])]
        if is_new.any() or len(rows) < len(first.labels.rows):
            self.out_of_fold[:, is_new] = self._evidence_of(first, task.X, rows[is_new])
            self._learn_all(task, first)

    def _learn_folds(self, task: Task, learned: "dict[str, Expert]") -> None:
        raise NotImplementedError

    def _learn_all(self, task: Task, first: Learned) -> None:
        raise NotImplementedError

    def _evidence_of(self, learned: Learned, X: Any, rows: Ints) -> Floats:
        raise NotImplementedError

    def _own_evidence(self, task: Task) -> Floats:
        raise NotImplementedError

    def evidence(self, X: Any) -> Floats:
        raise NotImplementedError

    def evidence_on_rows(self, X: Any, rows: Ints) -> Floats:
        """``own_evidence`` of some rows; X are all rows of the data."""
        return self.evidence(X[rows])

    def in_blocks(self) -> tuple[ExpertInBlocks, Blocks | None]:
        """Its evidence for blocks of all rows, and the nearest anchors of these where they are held."""
        return RowsAlone(self.for_prediction()), None

    def kept_bytes(self) -> int:
        """What is held of all rows in blocks."""
        return 0

    def for_prediction(self) -> Self:
        """A copy with what ``evidence`` needs."""
        slim = object.__new__(type(self))
        slim.__dict__ |= {name: value for name, value in vars(self).items() if name in self.needed}
        return slim


def learn_all(experts: list[Expert], task: Task) -> list[Expert]:
    learned: dict[str, Expert] = {}
    for expert in experts:
        with logged(f"blend: {expert.name}"):
            learned[expert.name] = expert.learn(task, learned)
    return list(learned.values())
