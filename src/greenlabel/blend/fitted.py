"""A blend that knows the labels: experts learn, their evidence is added up, shares of the classes are met.

    BlendSetup      what does not depend on the labels: features, experts with their graphs, wishes of the user
    fit_blend       labels on a setup -> FittedBlend
    FittedBlend     scores of all rows, out-of-fold scores, predictor of new rows

F (n, c) scores: log-probabilities up to a constant of the row     e experts     l labelled rows
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.threads import one_thread
from greenlabel.blend.adding import (
    ClassesOf,
    CountPredictions,
    ReachedOf,
    ScoresOf,
    SumProbabilities,
    Tally,
    add_up,
    in_one_block,
)
from greenlabel.blend.experts import GraphExpert, WeightedGraph
from greenlabel.blend.in_blocks import RowsInBlocks
from greenlabel.blend.predictor import BlendForPrediction, BlendPredictor
from greenlabel.blend.task import Expert, Task, another_draw, few_added, learn_all
from greenlabel.blend.weights import (
    NEW,
    Blend,
    accuracy_and_loss,
    blend,
    blend_blindly,
    divide,
    divide_again,
    joint_parts,
    probabilities_of,
    scale_to_confidence,
)
from greenlabel.blocks.rows import Blocks
from greenlabel.errors import ParameterError
from greenlabel.estimators.anchored import AnchoredGreenClassifier
from greenlabel.estimators.knn import GreenClassifier
from greenlabel.estimators.labelled import LabelledGraph
from greenlabel.graph.projection import sample_rows
from greenlabel.graph.scaling import Scaling
from greenlabel.labels.encoding import Labels, evenly, evidence
from greenlabel.labels.estimates import Estimate, estimate_accuracy
from greenlabel.labels.label_shift import suggested_shares
from greenlabel.labels.shares import offsets, read_shares, refine, refinement_pays
from greenlabel.operators.predictions import BlockPredictions, PredictAllRows, PredictRows, Probabilities
from greenlabel.propagators.base import Propagator

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

ESTIMATE_ROWS = 2_000  # out-of-fold rows that the accuracy is estimated from; more tell no more
GRAPH_MAY_TRAIL = 0.02  # refine="auto": out-of-fold accuracy that the graph may lie behind the blend
SHARE_ROWS = 200_000  # whose scores show the offsets that meet class shares


@dataclass(frozen=True)
class BlendSetup:
    """What a blend is made of before any label is known; and after the first ones, what stays for others."""

    X: Any  # (n, d) scaled
    experts: list[Expert]
    scaling: Scaling | None
    seed: int
    class_shares: Any  # that the user wants
    refine: Any  # "auto" or bool
    first: "FirstLabels | None" = None  # those of the fit

    def task(self, labels: Labels) -> Task:
        """What the experts learn, and how they are tested. Other labels than the first are divided into folds once.

        Rows stay in the folds of the fit where something stays that was made for these.
        """
        rng = np.random.default_rng(self.seed)
        coded = Labels(labels.n, np.arange(len(labels.classes)), labels.rows, labels.codes)
        if self.first is None:
            return Task(self.X, coded, divide(labels.codes, rng))
        adds_few = few_added(self.first.labels, labels)
        if not adds_few and not any(isinstance(expert, WeightedGraph) for expert in self.experts):
            return Task(self.X, coded, divide(labels.codes, rng))  # nothing was made for the first labels
        keeps_tests = adds_few or another_draw(self.first.labels, labels)
        folds = divide_again(labels.codes, self.first.folds[labels.rows], rng)
        return Task(self.X, coded, folds if keeps_tests else folds[:1], keeps_tests, is_first=False)

    def learned(self, experts: list[Expert], labels: Labels, folds: Ints) -> "BlendSetup":
        """The same with experts whose graphs stay, and the labels and folds that these were made for."""
        return replace(self, experts=experts, first=self.first or FirstLabels.of(labels, folds))


@dataclass(frozen=True)
class FirstLabels:
    """The labels of the fit, for which graphs of weighted features and models of folds were made."""

    labels: Labels
    folds: Ints  # (n,) in the first division; NEW where there was no label

    @classmethod
    def of(cls, labels: Labels, folds: Ints) -> "FirstLabels":
        of_row = np.full(labels.n, NEW, np.int8)
        of_row[labels.rows] = folds[0]
        return cls(replace(labels), of_row)


class FittedBlend(BlendForPrediction):
    """A blend with the rows of its fit: their evidence in blocks, from which all that is asked of them is made."""

    def __init__(
        self, labels: Labels, predictor: BlendPredictor, features: Any, added: Blocks, shift: Floats, folds: Ints
    ):
        """``features`` (n, d) are scaled; ``added`` are blocks of Added, to whose F ``shift`` (c,) is added."""
        self.labels, self.predictor = labels, predictor
        self.features, self.added, self.folds = features, added, folds
        self.step: Any = ScoresOf(shift)  # over these blocks

    def with_predictor(self, predictor: BlendPredictor, added: Blocks, shift: Floats) -> "FittedBlend":
        return FittedBlend(self.labels, predictor, self.features, added, shift, self.folds)

    @property
    def graph(self) -> LabelledGraph | None:
        """Of the first expert that is a graph."""
        found = (expert.model for expert in self.predictor.experts if isinstance(expert, GraphExpert))
        model = next(found, None)
        return None if model is None else model.fitted_

    @property
    def propagator(self) -> Propagator:
        if self.graph is None:
            raise AttributeError("no expert of this blend is a graph; add a greenlabel classifier to experts.")
        return self.graph.propagator

    @property
    def in_blocks(self) -> bool:
        """Whether the rows are beyond memory."""
        return isinstance(self.features, RowsInBlocks)

    @cached_property
    def scores(self) -> Floats:
        return np.asarray(self.added.collect(self.step, self._no_scores()))

    @cached_property
    def reached(self) -> Bools:
        return np.asarray(self.added.collect(ReachedOf(), np.empty(0, bool)))

    @cached_property
    def transduction(self) -> NDArray[Any]:
        classes = self.labels.classes
        return np.asarray(self.added.collect(ClassesOf(self.step, classes), classes[:0]))

    @cached_property
    def distributions(self) -> Floats:
        return np.asarray(self.added.collect(Probabilities(self.step, self.decoder), self._no_scores()))

    def answers(self) -> Iterator[BlockPredictions]:
        """Class and probabilities of all rows, block by block."""
        return self.added.map(PredictRows(self.step, self.decoder))

    def probabilities_in_blocks(self) -> Iterator[tuple[Floats, Bools]]:
        """Probabilities of all rows, and which of them a label reaches, block by block."""
        return self.added.map(PredictAllRows(self.step, self.decoder))

    def scores_of(self, rows: Ints) -> Floats:
        """``scores`` of some rows, in any order, without a pass over the others."""
        numbers, index = np.unique(rows, return_inverse=True)
        parts = [self.step(found, added) for found, added in self.added.take(numbers)]
        return np.concatenate([self._no_scores(), *parts])[index]

    def _no_scores(self) -> Floats:
        return np.empty((0, len(self.labels.classes)))

    @cached_property
    def _tally(self) -> Tally:
        """One pass over the evidence. Where every row has a label, all are taken to have none."""
        labelled = self.labels.rows if len(self.labels.rows) < self.labels.n else self.labels.rows[:0]
        return self.added.sum(CountPredictions(self.step, labelled))

    @cached_property
    def class_shares(self) -> Floats:  # type: ignore[override]
        """Shares of the classes among the predictions (c,)."""
        return self._tally.n_predicted / self.labels.n

    @cached_property
    def accuracy(self) -> Estimate:  # type: ignore[override]
        """Estimated, of the rows without a label."""
        _, codes, p_tested = self.cross_validated(ESTIMATE_ROWS)
        estimate = estimate_accuracy(codes, p_tested, self.labels.counts, self._tally.unlabelled)
        assert estimate is not None  # there is always a row
        return estimate

    def leave_one_out(self, indices: Ints, tolerance: float = 0.0) -> Floats:
        """Out-of-fold scores, the mean over divisions; zero where a row is the only one of its class."""
        tested = self.folds >= 0
        F = np.zeros((*tested.shape, len(self.labels.classes)))
        F[tested] = self.predictor.blend.out_of_fold
        return (F.sum(axis=0) / np.maximum(tested.sum(axis=0), 1)[:, None])[indices]

    def cross_validated(self, max_rows: int, tests_all: bool = False) -> tuple[Ints, Ints, Floats]:
        """Labelled rows, their classes as numbers, and their out-of-fold probabilities."""
        tested = evenly(np.flatnonzero((self.folds >= 0).any(axis=0)), max_rows)
        return self.labels.rows[tested], self.labels.codes[tested], probabilities_of(self.leave_one_out(tested))

    def expert_scores(self) -> dict[str, dict[str, float]]:
        """How each expert alone and the blend do on out-of-fold rows."""
        tested, b = self.folds >= 0, self.predictor.blend
        found = {
            expert.name: {**accuracy_and_loss(own * expert.out_of_fold[tested], b.codes), "weight": float(w)}
            for expert, own, w in zip(self.predictor.experts, b.own, b.weights, strict=True)
        }
        return found | {"blend": {**accuracy_and_loss(b.out_of_fold, b.codes), "weight": 1.0}}

    def evidence_on_rows(self, rows: Ints) -> dict[str, Floats]:
        """What each expert adds to the scores (r, c) of some rows; what draws them to class shares is one more part.

        Refined predictions come from the graph alone.
        """
        if self.predictor.refined is not None:
            return {"refined graph": self.scores[rows]}
        found = {expert.name: expert.evidence_on_rows(self.features, rows) for expert in self.predictor.experts}
        return self.predictor.scaled_evidence(found)

    def evidence_on_new_rows(self, X: Any) -> dict[str, Floats]:
        """The same for new rows, as the experts know rows."""
        if self.predictor.refined is not None:
            return {"refined graph": self.predictor.refined_scores(X)}
        return self.predictor.scaled_evidence({expert.name: expert.evidence(X) for expert in self.predictor.experts})

    def codes_of_experts(self) -> dict[str, Ints]:
        """The class that each expert alone gives each row, as a number (n,)."""
        if self.in_blocks:
            raise ParameterError(
                "predictions of single experts need all rows in memory, got rows in blocks; give fewer."
            )
        return {
            expert.name: expert.model.transduction_
            if isinstance(expert, (GraphExpert, WeightedGraph))
            else expert.evidence(self.features).argmax(axis=1)
            for expert in self.predictor.experts
        }

    def for_prediction(self) -> BlendForPrediction:
        slim = self.predictor.for_prediction()
        return BlendForPrediction(replace(self.labels), slim, self.class_shares, self.accuracy)


def fit_blend(setup: BlendSetup, labels: Labels) -> tuple[FittedBlend, BlendSetup]:
    """A blend that knows the labels, and the setup for other labels on the same rows."""
    bounds = None if setup.class_shares is None else read_shares(setup.class_shares, labels)
    task = setup.task(labels)
    folds = task.folds
    experts = learn_all(setup.experts, task)
    with one_thread():  # many small steps, between which threads would only wait for each other
        b = weigh(experts, labels, folds, setup.X)
    added = added_up(experts, b.scales, task)
    shift: Floats = np.zeros(len(labels.classes))
    if bounds is None:
        shift = suggested_offsets(b, added, labels, len(folds))
    fitted = FittedBlend(labels, BlendPredictor(experts, b, setup.scaling, shift), setup.X, added, shift, folds)
    if bounds is not None:
        fitted = meet_shares(fitted, setup.refine, setup.seed, *bounds)
    return fitted, setup.learned(experts, labels, folds)


def added_up(experts: list[Expert], scales: Floats, task: Task) -> Blocks:
    """The evidence of all experts for all rows, added up in blocks."""
    n, c = task.labels.n, len(task.labels.classes)
    if isinstance(task.X, RowsInBlocks):
        parts = [(scale, *expert.in_blocks()) for expert, scale in zip(experts, scales.tolist(), strict=True)]
        return add_up(task.X, parts, c, task.X.limit - sum(expert.kept_bytes() for expert in experts))
    F: Floats = np.zeros((n, c))
    for expert, scale in zip(experts, scales, strict=True):
        F += scale * expert.own_evidence
        del expert.own_evidence  # as large as F, and part of it now
    reached = (expert.model.reached_ for expert in experts if isinstance(expert, GraphExpert))
    return in_one_block(F, next(reached, np.ones(n, bool)))


def weigh(experts: list[Expert], labels: Labels, folds: Ints, X: Any) -> Blend:
    trust = np.array([expert.trust for expert in experts])
    tested = folds >= 0
    if not tested.any():
        typical = np.array([typical_evidence(some_evidence(expert, X)) for expert in experts])
        return blend_blindly(typical, len(labels.classes), trust)
    codes = np.broadcast_to(labels.codes, tested.shape)[tested]
    return blend(np.stack([expert.out_of_fold[tested] for expert in experts]), codes, trust, joint_parts(folds))


def some_evidence(expert: Expert, X: Any) -> Floats:
    """Of an expert for all rows in memory, or for a sample of those in blocks."""
    return expert.evidence_on_rows(X, X.sample) if isinstance(X, RowsInBlocks) else expert.own_evidence


def typical_evidence(A: Floats) -> float:
    """The median evidence for the best class over the rows of A (n, c) on which there is any."""
    largest = A.max(axis=1)
    return float(np.median(largest[largest > 0])) if (largest > 0).any() else 0.0


def suggested_offsets(b: Blend, added: Blocks, labels: Labels, n_divisions: int) -> Floats:
    """What draws the scores towards the shares of the classes that the data suggests (c,); one pass of sums."""
    if not len(b.codes):
        return np.zeros(len(labels.classes))
    p_mean = added.sum(SumProbabilities()).mean()
    suggested = suggested_shares(probabilities_of(b.out_of_fold), b.codes, p_mean, labels.shares, n_divisions)
    return np.log(suggested / labels.shares)


def meet_shares(fitted: FittedBlend, wanted_refine: Any, seed: int, low: Floats, high: Floats) -> FittedBlend:
    """Decisions with the wanted shares: by offsets (from a sample of very many rows), or refined over the graph."""
    labels, predictor = fitted.labels, fitted.predictor
    expert = graph_to_refine_on(fitted, wanted_refine, low, high)
    if expert is None:
        F = fitted.scores_of(sample_rows(labels.n, SHARE_ROWS, np.random.default_rng(seed)))
        class_offsets = offsets(F, low, high)
        return fitted.with_predictor(replace(predictor, class_offsets=class_offsets), fitted.added, class_offsets)
    F, free = fitted.scores, unlabelled(labels)
    confidence = float(probabilities_of(F[free]).max(axis=1).mean())
    propagator = expert.model.propagator_
    decided = refine(F, labels, low, high, propagator.solve)
    n, c = F.shape
    propagation = propagator.propagate(Labels(n, np.arange(c), np.arange(n), decided))
    refined = expert.shell.with_fitted(LabelledGraph(propagation, wants_offsets=False), expert.model.n_features_in_)
    class_offsets = offsets(propagation.scores, low, high)
    E = evidence(propagation.scores + class_offsets)
    scale = scale_to_confidence(E[free], confidence)
    refined_predictor = replace(predictor, class_offsets=class_offsets, refined=refined, scale=scale)
    return fitted.with_predictor(refined_predictor, in_one_block(scale * E, fitted.reached), np.zeros(c))


def graph_to_refine_on(fitted: FittedBlend, wanted: Any, low: Floats, high: Floats) -> GraphExpert | None:
    """The first expert that is a Green function, if predictions are to be refined on it."""
    kinds = (GreenClassifier, AnchoredGreenClassifier)
    graphs = [e for e in fitted.predictor.experts if isinstance(e, GraphExpert) and isinstance(e.shell, kinds)]
    if not graphs or wanted is False:
        return None
    if isinstance(fitted.features, RowsInBlocks) and not fitted.features.can_refine:
        if wanted == "auto":
            return None
        raise ParameterError(
            "refine=True needs all rows in memory, got rows in blocks; give refine='auto' or an array."
        )
    if wanted != "auto":
        return graphs[0]
    scores = fitted.expert_scores()
    of_graph, of_blend = (scores[name]["accuracy"] for name in (graphs[0].name, "blend"))
    if of_blend - of_graph > GRAPH_MAY_TRAIL:  # both are nan where nothing was out of fold, and this is false
        return None
    solve = graphs[0].model.propagator_.solve
    return graphs[0] if refinement_pays(fitted.labels, fitted.folds[0], low, high, solve) else None


def unlabelled(labels: Labels) -> Bools:
    """Rows without a label; where every row has one, all."""
    free = np.ones(labels.n, bool)
    free[labels.rows] = False
    return free if free.any() else ~free
