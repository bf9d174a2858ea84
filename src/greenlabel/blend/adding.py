"""Evidence of all experts added up, block by block, and what is made of the sum.

    F_i = sum_e s_e A_e,i         s_e what the evidence A_e of expert e is multiplied by

    rows and their nearest anchors -> AddUp -> Added -> class shares, classes, probabilities

Sums over rows are taken in whole numbers, which add up to the same in any order: every number is the same to the last
bit in any blocks, on any number of threads or workers.

F (n, c) scores without what draws them to class shares     e experts     c classes
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from greenlabel.blend.in_blocks import RowsInBlocks, weighted
from greenlabel.blocks.rows import ArrayBlocks, Blocks, Kept, Together, identity
from greenlabel.graph.distances import row_blocks
from greenlabel.graph.mixing import Near
from greenlabel.labels.encoding import evidence
from greenlabel.labels.estimates import Filled
from greenlabel.operators.predictions import Scores
from greenlabel.propagators.anchored_graph import AnchoredGraph, AnchorSearch

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

STEPS = 2.0**40  # of a probability: whole numbers of these, of one block, add up exactly in 64 bits


@dataclass(frozen=True)
class Added:
    """The evidence of all experts for some rows, and which of them a label reaches over the graph."""

    F: Floats  # (rows, c), of rows in blocks in single precision: more of them can be held
    reached: Bools  # (rows,)

    def __len__(self) -> int:
        return len(self.F)

    def pick(self, indices: Any) -> "Added":
        return Added(self.F[indices], self.reached[indices])


# The evidence of one expert


class ExpertInBlocks(Protocol):
    """The evidence (rows, c) of an expert for a block of rows in several forms, features first."""

    def __call__(self, rows: Any, block: Together) -> Floats: ...


@dataclass(frozen=True)
class RowsAlone:
    """An expert that sees one row at a time."""

    expert: Any

    def __call__(self, rows: Any, block: Together) -> Floats:
        return self.expert.evidence(block.forms[0])


@dataclass(frozen=True)
class OverAnchors:
    """An anchored graph: the evidence for a row is that of its nearest anchors, and of its own label."""

    scores: Scores
    anchor_search: AnchorSearch
    factor: Floats | None  # (d,) of a graph of weighted features
    form: int | None = None  # of the block that holds the nearest anchors; None where they are searched again

    def near(self, block: Together) -> Near:
        if self.form is not None:
            return block.forms[self.form]
        X = block.forms[0]
        found = self.anchor_search.near(ArrayBlocks(X if self.factor is None else weighted(X, self.factor)))
        return Near.joined(list(found.map(identity)))

    def __call__(self, rows: Any, block: Together) -> Floats:
        return self.of_near(rows, self.near(block))

    def of_near(self, rows: Any, near: Near) -> Floats:
        """Rows may be any that ascend."""
        nothing = np.arange(0)
        F = replace(self.scores, labelled=nothing, codes=nothing)(range(len(near)), near)
        index = np.searchsorted(rows, self.scores.labelled)
        here = np.flatnonzero(np.asarray(rows)[np.minimum(index, len(near) - 1)] == self.scores.labelled)
        F[index[here], self.scores.codes[here]] += self.scores.own
        return evidence(F) * self.scores.reached(near)[:, None]


def kept_near(graph: AnchoredGraph) -> Blocks | None:
    """The nearest anchors of all rows, where they are held."""
    return graph.near if graph.n_kept == graph.n else None


# Their sum


@dataclass(frozen=True)
class AddUp:
    """A step over blocks of rows in several forms."""

    experts: tuple[tuple[float, ExpertInBlocks], ...]  # with what their evidence is multiplied by
    graph: OverAnchors | None  # that says which rows are reached
    n_classes: int

    def __call__(self, rows: Any, block: Together) -> Added:
        F, reached = np.zeros((len(block), self.n_classes)), np.ones(len(block), bool)
        for scale, expert in self.experts:
            F += np.float64(scale) * expert(rows, block)  # evidence in single precision is added in double precision
        if self.graph is not None and not self.graph.scores.reached_anchors.all():
            reached = self.graph.scores.reached(self.graph.near(block))
        return Added(F.astype(np.float32), reached)


def add_up(
    X: RowsInBlocks, experts: Sequence[tuple[float, ExpertInBlocks, Blocks | None]], n_classes: int, limit: float
) -> Blocks:
    """Blocks of Added: of experts, each with its scale and the nearest anchors that are held for it.

    They are held where they fit into ``limit`` bytes, and otherwise computed each time they are read.
    """
    forms: list[Blocks] = []
    placed: list[tuple[float, ExpertInBlocks]] = []
    for scale, expert, near in experts:
        if near is not None:
            forms.append(near)
            expert = replace(expert, form=len(forms))  # type: ignore[type-var]
        placed.append((scale, expert))
    graph = next((expert for _, expert in placed if isinstance(expert, OverAnchors) and expert.factor is None), None)
    counted = tuple((scale, expert) for scale, expert in placed if scale > 0)
    added = X.blocks.beside(forms).through(AddUp(counted, graph, n_classes))
    return added.keep() if added_bytes(X.shape[0], n_classes) <= limit else added


def added_bytes(n: int, n_classes: int) -> int:
    """What holding Added of n rows takes."""
    return n * (4 * n_classes + 1)


def in_one_block(F: Floats, reached: Bools) -> Blocks:
    """Rows in memory."""
    return Kept([Added(F, reached)])


# What is made of it


@dataclass(frozen=True)
class ScoresOf:
    """F of a block with class offsets, and which rows are reached: what the steps of ``predictions`` ask for."""

    class_offsets: Floats  # (c,)

    def __call__(self, rows: Any, added: Added) -> Floats:
        return added.F + self.class_offsets

    def with_reach(self, rows: Any, added: Added) -> tuple[Floats, Bools]:
        return self(rows, added), added.reached


@dataclass(frozen=True)
class ClassesOf:
    """The class of each row of a block; ``scores`` are like ScoresOf."""

    scores: Any
    classes: NDArray[Any]  # (c,)

    def __call__(self, rows: Any, block: Any) -> NDArray[Any]:
        return self.classes[self.scores(rows, block).argmax(axis=1)]


@dataclass(frozen=True)
class ReachedOf:
    def __call__(self, rows: Any, added: Added) -> Bools:
        return added.reached


@dataclass(frozen=True)
class Total:
    """Probabilities of the classes, added up over rows, in steps."""

    n: int
    steps: tuple[int, ...]

    def __add__(self, other: "Total") -> "Total":
        return Total(self.n + other.n, tuple(one + two for one, two in zip(self.steps, other.steps, strict=True)))

    def mean(self) -> Floats:
        """(c,)"""
        return np.array([float(step) for step in self.steps]) / STEPS / self.n


@dataclass(frozen=True)
class SumProbabilities:
    """A step over blocks of Added: their probabilities without class offsets."""

    def __call__(self, rows: Any, added: Added) -> Total:
        F = added.F
        parts = [
            np.rint(softmax(F[part].astype(np.float64), axis=1) * STEPS).astype(np.int64).sum(axis=0)
            for part in row_blocks(*F.shape)
        ]
        return Total(len(F), tuple(sum(int(part[code]) for part in parts) for code in range(F.shape[1])))


@dataclass(frozen=True)
class Tally:
    """How many rows were given each class, and those without a label as the estimate of their accuracy needs them."""

    n_predicted: Ints  # (c,)
    unlabelled: Filled

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.n_predicted + other.n_predicted, self.unlabelled + other.unlabelled)


@dataclass(frozen=True)
class CountPredictions:
    """A step over blocks of Added."""

    scores: ScoresOf
    labelled: Ints  # rows that are left out of the estimate, ascending

    def __call__(self, rows: Any, added: Added) -> Tally:
        F = self.scores(rows, added)
        best, c = F.argmax(axis=1), F.shape[1]
        free = ~np.isin(rows, self.labelled, assume_unique=True)
        confidence = softmax(F[free], axis=1).max(axis=1)
        filled = Filled.of(best[free], confidence, np.ones(len(confidence), bool), c)
        return Tally(np.bincount(best, minlength=c), filled)
