"""The estimators over which the tests of the contract run."""

import pytest

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
FEW_TREES = 5  # of a blend, in nearly all tests
# For many cases of one promise: each fit of a blend fits several models.
SLOW_BLEND = pytest.mark.parametrize(
    "Model",
    [*GRAPH_ESTIMATORS, pytest.param(BlendedClassifier, marks=pytest.mark.slow)],
    ids=lambda model: model.__name__,
)
