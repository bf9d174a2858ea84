"""greenlabel: label a few rows, get the rest.

Graph-based semi-supervised learning with the improved Green-function method, F = G Y.
"""

from importlib import import_module as _import_module

from greenlabel.anchored import AnchoredGreenClassifier
from greenlabel.blended import BlendedClassifier
from greenlabel.errors import GreenlabelError
from greenlabel.estimators import (
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
    "label_table",
    "leave_one_out",
]

_ON_FIRST_USE = {"label_table": "greenlabel.tables.labelling"}  # needs the libraries of an extra, slow to import


def __getattr__(name: str) -> object:
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module 'greenlabel' has no attribute {name!r}")
    thing = globals()[name] = getattr(_import_module(_ON_FIRST_USE[name]), name)
    return thing
