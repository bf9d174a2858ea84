"""A blend that knows the labels: experts learn, their evidence is added up, shares of the classes are met.

    BlendSetup      what does not depend on the labels: features, experts with their graphs, wishes of the user
    fit_blend       labels on a setup -> FittedBlend
    FittedBlend     scores of all rows, out-of-fold scores, predictor of new rows

F (n, c) scores: log-probabilities up to a constant of the row     e experts     l labelled rows
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.threads import one_thread
from greenlabel.blend.experts import GraphExpert, WeightedGraph
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
from greenlabel.estimators.anchored import AnchoredGreenClassifier
from greenlabel.estimators.base import GraphClassifier
from greenlabel.estimators.knn import GreenClassifier
from greenlabel.estimators.labelled import LabelledGraph
from greenlabel.graph.scaling import Scaling
from greenlabel.labels.encoding import Labels, evenly, evidence
from greenlabel.labels.estimates import Estimate, Filled, estimate_accuracy
from greenlabel.labels.label_shift import suggested_shares
from greenlabel.labels.shares import offsets, read_shares, refine, refinement_pays
from greenlabel.propagators.base import Predictor, Propagator

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

ESTIMATE_ROWS = 2_000  # out-of-fold rows that the accuracy is estimated from; more tell no more
GRAPH_MAY_TRAIL = 0.02  # refine="auto": out-of-fold accuracy that the graph may lie behind the blend


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


@dataclass(frozen=True)
class LogDecoder:
    """From log-probabilities to classes and probabilities. Other experts know what the graph does not reach."""

    classes: NDArray[Any]  # (c,)

    @property
    def offsets(self) -> Floats:
        return np.zeros(len(self.classes))

    def classify(self, F: Floats, is_reached: Bools) -> NDArray[Any]:
        return self.classes[F.argmax(axis=1)]

    def probabilities(self, F: Floats, is_reached: Bools) -> Floats:
        return probabilities_of(F)

    def adjusted(self, F: Floats) -> Floats:
        return F


@dataclass(frozen=True)
class BlendPredictor(Predictor):
    """New rows by all experts, or by the refined graph."""

    experts: list[Expert]
    blend: Blend
    scaling: Scaling | None
    class_offsets: Floats  # (c,) that draw the scores to the shares of the classes
    refined: GraphClassifier | None = None
    scale: float = 1.0  # of the evidence of the refined graph

    def scores(self, X: Any) -> tuple[Floats, Bools]:
        X = self.scaled(X)
        if self.refined is not None:
            F = self.refined_scores(X)
        else:
            parts = (scale * expert.evidence(X) for expert, scale in zip(self.experts, self.blend.scales, strict=True))
            F = sum(parts) + self.class_offsets
        return F, np.ones(X.shape[0], bool)

    def refined_scores(self, X: Any) -> Floats:
        assert self.refined is not None
        return self.scale * evidence(self.refined.fitted_.predictor.scores(X)[0] + self.class_offsets)

    def scaled_evidence(self, found: dict[str, Floats]) -> dict[str, Floats]:
        """The evidence of each expert as it is added up, and what draws scores to class shares: all parts of F."""
        parts = {name: scale * A for (name, A), scale in zip(found.items(), self.blend.scales, strict=True)}
        n_rows = len(next(iter(found.values())))
        return parts | {"class shares": np.tile(self.class_offsets, (n_rows, 1))}

    def scaled(self, X: Any) -> Any:
        """New rows as the experts know rows."""
        return X if self.scaling is None else self.scaling.apply(X)

    def for_prediction(self) -> "BlendPredictor":
        """The same with what new rows need."""
        refined = self.refined
        if refined is not None:
            refined = refined.with_fitted(refined.fitted_.for_scores(), refined.n_features_in_)
        slim = replace(self.blend, out_of_fold=self.blend.out_of_fold[:0], codes=self.blend.codes[:0])
        experts = [expert.for_prediction() for expert in self.experts]
        return replace(self, experts=experts, blend=slim, refined=refined)


class BlendForPrediction:
    """What new rows need of a blend."""

    def __init__(self, labels: Labels, predictor: BlendPredictor):
        self.labels, self.predictor = labels, predictor

    @property
    def decoder(self) -> LogDecoder:
        return LogDecoder(self.labels.classes)

    calibrated = decoder

    def for_prediction(self) -> "BlendForPrediction":
        return self


class FittedBlend(BlendForPrediction):
    """A blend with the rows of its fit."""

    def __init__(self, labels: Labels, predictor: BlendPredictor, features: Any, F: Floats, folds: Ints):
        super().__init__(labels, predictor)
        self.features, self.scores, self.folds = features, F, folds  # (n, d) scaled, (n, c), (r, l)

    def with_predictor(self, predictor: BlendPredictor, F: Floats) -> "FittedBlend":
        return FittedBlend(self.labels, predictor, self.features, F, self.folds)

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

    @cached_property
    def reached(self) -> Bools:
        return np.ones(self.labels.n, bool) if self.graph is None else self.graph.reached

    @cached_property
    def transduction(self) -> NDArray[Any]:
        return self.labels.classes[self.scores.argmax(axis=1)]

    @cached_property
    def distributions(self) -> Floats:
        return probabilities_of(self.scores)

    @property
    def class_shares(self) -> Floats:
        """Shares of the classes among the predictions (c,)."""
        return np.bincount(self.scores.argmax(axis=1), minlength=self.scores.shape[1]) / self.labels.n

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
        return {
            expert.name: expert.model.transduction_
            if isinstance(expert, (GraphExpert, WeightedGraph))
            else expert.evidence(self.features).argmax(axis=1)
            for expert in self.predictor.experts
        }

    def estimated_accuracy(self) -> Estimate:
        _, codes, p_tested = self.cross_validated(ESTIMATE_ROWS)
        p = probabilities_of(self.scores[unlabelled(self.labels)])
        filled = Filled.of(p.argmax(axis=1), p.max(axis=1), np.ones(len(p), bool), p.shape[1])
        estimate = estimate_accuracy(codes, p_tested, self.labels.counts, filled)
        assert estimate is not None  # there is always a row
        return estimate

    def for_prediction(self) -> BlendForPrediction:
        return BlendForPrediction(replace(self.labels), self.predictor.for_prediction())


def fit_blend(setup: BlendSetup, labels: Labels) -> tuple[FittedBlend, BlendSetup]:
    """A blend that knows the labels, and the setup for other labels on the same rows."""
    bounds = None if setup.class_shares is None else read_shares(setup.class_shares, labels)
    task = setup.task(labels)
    folds = task.folds
    experts = learn_all(setup.experts, task)
    with one_thread():  # many small steps, between which threads would only wait for each other
        b = weigh(experts, labels, folds)
    F: Floats = np.zeros((labels.n, len(labels.classes)))
    for expert, scale in zip(experts, b.scales, strict=True):
        F += scale * expert.own_evidence
        del expert.own_evidence  # as large as F, and part of it now
    class_offsets = suggested_offsets(b, F, labels, len(folds)) if bounds is None else np.zeros(F.shape[1])
    predictor = BlendPredictor(experts, b, setup.scaling, class_offsets)
    fitted = FittedBlend(labels, predictor, setup.X, F + class_offsets, folds)
    if bounds is not None:
        fitted = meet_shares(fitted, setup.refine, *bounds)
    return fitted, setup.learned(experts, labels, folds)


def weigh(experts: list[Expert], labels: Labels, folds: Ints) -> Blend:
    trust = np.array([expert.trust for expert in experts])
    tested = folds >= 0
    if not tested.any():
        typical = np.array([typical_evidence(expert.own_evidence) for expert in experts])
        return blend_blindly(typical, len(labels.classes), trust)
    codes = np.broadcast_to(labels.codes, tested.shape)[tested]
    return blend(np.stack([expert.out_of_fold[tested] for expert in experts]), codes, trust, joint_parts(folds))


def typical_evidence(A: Floats) -> float:
    """The median evidence for the best class over the rows of A (n, c) on which there is any."""
    largest = A.max(axis=1)
    return float(np.median(largest[largest > 0])) if (largest > 0).any() else 0.0


def suggested_offsets(b: Blend, F: Floats, labels: Labels, n_divisions: int) -> Floats:
    """What draws the scores towards the shares of the classes that the data suggests (c,)."""
    if not len(b.codes):
        return np.zeros(F.shape[1])
    p_mean = probabilities_of(F).mean(axis=0)
    suggested = suggested_shares(probabilities_of(b.out_of_fold), b.codes, p_mean, labels.shares, n_divisions)
    return np.log(suggested / labels.shares)


def meet_shares(fitted: FittedBlend, wanted_refine: Any, low: Floats, high: Floats) -> FittedBlend:
    """Decisions with the wanted shares: by offsets, or by refinement over the graph."""
    F, labels, predictor = fitted.scores, fitted.labels, fitted.predictor
    expert = graph_to_refine_on(fitted, wanted_refine, low, high)
    if expert is None:
        class_offsets = offsets(F, low, high)
        return fitted.with_predictor(replace(predictor, class_offsets=class_offsets), F + class_offsets)
    free = unlabelled(labels)
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
    return fitted.with_predictor(refined_predictor, scale * E)


def graph_to_refine_on(fitted: FittedBlend, wanted: Any, low: Floats, high: Floats) -> GraphExpert | None:
    """The first expert that is a Green function, if predictions are to be refined on it."""
    kinds = (GreenClassifier, AnchoredGreenClassifier)
    graphs = [e for e in fitted.predictor.experts if isinstance(e, GraphExpert) and isinstance(e.shell, kinds)]
    if not graphs or wanted is False:
        return None
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
