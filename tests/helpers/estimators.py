"""The estimators over which the tests of the contract run."""

from greenlabel import (
    AnchoredGreenClassifier,
    BlendedClassifier,
    ConsistencyClassifier,
    GreenClassifier,
    HarmonicClassifier,
)

KNN_ESTIMATORS = [GreenClassifier, ConsistencyClassifier, HarmonicClassifier]
GRAPH_ESTIMATORS = [*KNN_ESTIMATORS, AnchoredGreenClassifier]
ESTIMATORS = [*GRAPH_ESTIMATORS, BlendedClassifier]
