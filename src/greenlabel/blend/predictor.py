"""New rows by a blend: all that they need of it.

F (n, c) scores: log-probabilities up to a constant of the row
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel.blend.task import Expert
from greenlabel.blend.weights import Blend, probabilities_of
from greenlabel.estimators.base import GraphClassifier
from greenlabel.graph.scaling import Scaling
from greenlabel.labels.encoding import Labels, evidence, make_largest
from greenlabel.labels.estimates import Estimate
from greenlabel.propagators.base import Predictor

Floats = NDArray[np.floating]
Bools = NDArray[np.bool_]


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
        p = probabilities_of(F)
        make_largest(F.argmax(axis=1), p)
        return p

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


@dataclass(frozen=True)
class ScoresOfNewRows:
    """Scores of a block of features, as steps over blocks ask for them (operators.predictions)."""

    predictor: BlendPredictor

    def __call__(self, rows: Any, X: Any) -> Floats:
        return self.predictor.scores(X)[0]

    def with_reach(self, rows: Any, X: Any) -> tuple[Floats, Bools]:
        return self(rows, X), np.ones(X.shape[0], bool)


class BlendForPrediction:
    """What new rows need of a blend, and what its rows showed."""

    def __init__(self, labels: Labels, predictor: BlendPredictor, class_shares: Floats, accuracy: Estimate):
        """``class_shares`` (c,) among the predictions of the fit, and their estimated ``accuracy``."""
        self.labels, self.predictor = labels, predictor
        self.class_shares, self.accuracy = class_shares, accuracy

    @property
    def decoder(self) -> Any:
        """A LogDecoder, which stands where a ScoreDecoder may."""
        return LogDecoder(self.labels.classes)

    calibrated = decoder

    def for_prediction(self) -> "BlendForPrediction":
        return self
