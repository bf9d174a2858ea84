"""greenlabel: label a few rows, get the rest.

Graph-based semi-supervised learning with the improved Green-function method, F = G Y.

Names are imported on first use, so that the command line can say what is wrong before the numerical libraries load.
"""

from importlib import import_module as _import_module

from greenlabel.errors import GreenlabelError

TYPE_CHECKING = False  # true for type checkers; the module `typing` takes longer to import than all else here
if TYPE_CHECKING:
    from greenlabel.blend.classifier import BlendedClassifier
    from greenlabel.estimators.anchored import AnchoredGreenClassifier
    from greenlabel.estimators.base import leave_one_out
    from greenlabel.estimators.knn import ConsistencyClassifier, GreenClassifier, HarmonicClassifier
    from greenlabel.inspection.explaining import explain
    from greenlabel.inspection.suspicion import suspects
    from greenlabel.labels.encoding import UNLABELED
    from greenlabel.tables.labelling import label_table
del TYPE_CHECKING

__version__ = "0.1.0"

__all__ = [
    "UNLABELED",
    "AnchoredGreenClassifier",
    "BlendedClassifier",
    "ConsistencyClassifier",
    "GreenClassifier",
    "GreenlabelError",
    "HarmonicClassifier",
    "explain",
    "label_table",
    "leave_one_out",
    "suspects",
]

_ON_FIRST_USE = {  # a name, and the module that it comes from
    "UNLABELED": "greenlabel.labels.encoding",
    "AnchoredGreenClassifier": "greenlabel.estimators.anchored",
    "BlendedClassifier": "greenlabel.blend.classifier",
    "ConsistencyClassifier": "greenlabel.estimators.knn",
    "GreenClassifier": "greenlabel.estimators.knn",
    "HarmonicClassifier": "greenlabel.estimators.knn",
    "explain": "greenlabel.inspection.explaining",
    "label_table": "greenlabel.tables.labelling",  # needs the libraries of an extra
    "leave_one_out": "greenlabel.estimators.base",
    "suspects": "greenlabel.inspection.suspicion",
}


def __getattr__(name: str) -> object:
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module 'greenlabel' has no attribute {name!r}")
    thing = globals()[name] = getattr(_import_module(_ON_FIRST_USE[name]), name)
    return thing


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
