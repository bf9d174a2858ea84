"""greenlabel: label a few rows, get the rest.

Graph-based semi-supervised learning with the improved Green-function method, F = G Y.
"""

from greenlabel.blended import BlendedClassifier
from greenlabel.errors import GreenlabelError
from greenlabel.estimators import (
    AnchoredGreenClassifier,
    ConsistencyClassifier,
    GreenClassifier,
    HarmonicClassifier,
    leave_one_out,
)
from greenlabel.labels import UNLABELED

__version__ = "0.1.0"

__all__ = [
    "UNLABELED",
    "AnchoredGreenClassifier",
    "BlendedClassifier",
    "ConsistencyClassifier",
    "GreenClassifier",
    "GreenlabelError",
    "HarmonicClassifier",
    "leave_one_out",
]
