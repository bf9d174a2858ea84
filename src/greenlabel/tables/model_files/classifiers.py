"""The parts of a model file that make a classifier: each kind is written by one function and read by another.

    green, consistency, harmonic    k-NN graphs: the search for neighbours, scores F of its rows
    anchored                        anchors, coefficients C
    blend                           experts and how they are added up (blends.py)

A reader builds an object from values that it has checked against each other: sizes n, d, c agree, numbers of rows,
anchors and classes exist. One more value of a fitted model is one more line in a writer and in its reader; what is
not in every file of the format is read under ``part.has(name)``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from greenlabel.errors import ModelFileError
from greenlabel.estimators.anchored import AnchoredGreenClassifier
from greenlabel.estimators.base import GraphClassifier, TransductiveClassifier
from greenlabel.estimators.knn import ConsistencyClassifier, GreenClassifier, HarmonicClassifier
from greenlabel.estimators.labelled import ForPrediction
from greenlabel.graph.mixing import Near
from greenlabel.graph.similarity import WEIGHTS
from greenlabel.labels.encoding import Labels
from greenlabel.propagators.anchored import AnchoredPredictor
from greenlabel.propagators.anchored_graph import AnchorSearch
from greenlabel.propagators.base import Predictor
from greenlabel.propagators.knn import Equation, KnnPredictor, Neighbourhood, NeighbourMean
from greenlabel.tables.model_files.container import HUGE, MAX_ROWS, Arrays, Part
from greenlabel.tables.model_files.searches import (
    MAX_FEATURES,
    Values,
    kind_of,
    read_projection,
    read_search,
    write_projection,
    write_search,
)

MAX_NEIGHBORS = 1000
UNITS = (1e-45, 1e300)  # of features
TINY = 1e-30  # no divisor is smaller


def bare(cls: Any, **attributes: Any) -> Any:
    """An object of a class with these attributes, as copying makes one."""
    thing = cls.__new__(cls)
    vars(thing).update(attributes)
    return thing


# Parameters: plain values, so that a loaded model can be shown and cloned


def write_value(value: Any, out: Arrays) -> Any:
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and np.isfinite(value)):
        return value
    if isinstance(value, (list, tuple)):
        return {"list" if isinstance(value, list) else "tuple": [write_value(item, out) for item in value]}
    if isinstance(value, dict):
        return {"pairs": [[write_value(key, out), write_value(item, out)] for key, item in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.ndim in (1, 2):
        return {"array": out.add(value)}
    if isinstance(value, GraphClassifier):
        return {"model": {"kind": kind_of(value, CLASSIFIERS), "parameters": write_parameters(value, out)}}
    raise ModelFileError(
        f"a model with {str(value)[:80]} among its parameters cannot be saved: a model file holds plain numbers, words "
        "and greenlabel classifiers; leave that parameter at its default."
    )


def read_value(part: Part, name: str, depth: int = 0) -> Any:
    value = part.get(name)
    if isinstance(value, str):
        return part.text(name)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        part.real(name, -HUGE, HUGE)
        return value
    inner = part.part(name)
    if depth > 3 or len(inner.values) != 1:
        part.refuse(name, "is no plain value")
    if inner.has("array"):
        array = inner.arrays[inner.whole("array", 0, len(inner.arrays) - 1)]
        return inner.array("array", "i" if array.dtype.kind in "iu" else array.dtype.kind, (None,) * array.ndim)
    if inner.has("model"):
        model = inner.part("model")
        return read_parameters(model, CLASSIFIERS[model.text("kind", CLASSIFIERS)])
    word = next(iter(inner.values))
    if word not in ("list", "tuple", "pairs"):
        part.refuse(name, "is no plain value")
    items = [read_items(inner, word, item, depth) for item in inner.items(word)]
    return tuple(items) if word == "tuple" else dict(items) if word == "pairs" else items


def read_items(part: Part, word: str, item: Any, depth: int) -> Any:
    if word != "pairs":
        return read_value(Part({word: item}, part.where, part.arrays, part.taken), word, depth + 1)
    if not isinstance(item, list) or len(item) != 2 or not isinstance(item[0], (str, int, float)):
        part.refuse(word, "is no list of pairs")
    return tuple(read_items(part, "item", half, depth) for half in item)


def write_parameters(model: Any, out: Arrays) -> Values:
    return {name: write_value(value, out) for name, value in model.get_params(deep=False).items()}


def read_parameters(part: Part, cls: type) -> Any:
    """An unfitted model. Parameters that came after the file was written have their defaults."""
    given = part.part("parameters")
    unknown = set(given.values) - set(cls().get_params(deep=False))
    if unknown:
        part.refuse("parameters", f"hold an unknown one, {min(unknown)[:20]!r}")
    model = cls(**{name: read_value(given, name) for name in given.values})
    try:
        model.check_parameters()
    except (ValueError, TypeError) as error:
        part.refuse("parameters", f"are wrong ({str(error)[:200]})")
    return model


# Classes and labels


def write_classes(classes: Any, out: Arrays) -> Values:
    if classes.dtype.kind in "biuf":
        return {"type": classes.dtype.str, "numbers": out.add(classes)}
    if not all(isinstance(label, str) for label in classes.tolist()):
        raise ModelFileError(f"a model with classes of type {classes.dtype} cannot be saved; give text or numbers.")
    return {"type": "object" if classes.dtype.kind == "O" else "text", "words": list(map(str, classes.tolist()))}


NUMBERS = [np.dtype(kind + size).str for kind in "iu" for size in "1248"] + ["<f4", "<f8", "|b1"]


def read_classes(part: Part) -> Any:
    """Sorted, each once, two at the least."""
    kind = part.text("type", ["text", "object", *NUMBERS])
    if kind in ("text", "object"):
        classes = np.array(part.texts("words"), dtype=object if kind == "object" else str)
    else:
        stored = {"i": "i", "u": "i"}.get(np.dtype(kind).kind, np.dtype(kind).kind)
        classes = part.array("numbers", stored, (None,), -(2.0**63), 2.0**63).astype(kind)
    if len(classes) < 2 or not (classes[1:] > classes[:-1]).all():
        part.refuse("", "are no classes in their order")
    return classes


def write_labels(labels: Labels, out: Arrays) -> Values:
    return {"n": int(labels.n), "rows": out.add(labels.rows), "codes": out.add(labels.codes)}


def read_labels(part: Part, classes: Any) -> Labels:
    """Nothing of n numbers may be made of them: n is what the file says."""
    n = part.whole("n", 1, MAX_ROWS)
    rows = part.array("rows", "i", (None,), 0, n - 1).astype(np.intp)
    codes = part.array("codes", "i", (len(rows),), 0, len(classes) - 1).astype(np.intp)
    if not len(rows) or not (rows[1:] > rows[:-1]).all():
        part.refuse("rows", "are not in their order")
    return Labels(n, classes, rows, codes)


# Classifiers


def write_base(model: TransductiveClassifier, out: Arrays) -> Values:
    """What all classifiers have."""
    values = {
        "parameters": write_parameters(model, out),
        "classes": write_classes(model.classes_, out),
        "features": int(model.n_features_in_),
        "unit": float(model.unit_),
        "labels": write_labels(model.fitted_.labels, out),
        "components": int(model.n_components_),
    }
    if hasattr(model, "feature_names_in_"):
        values["names"] = list(map(str, model.feature_names_in_))
    return values


def write_decoder(fitted: ForPrediction, out: Arrays) -> Values:
    """Temperature and offsets; an expert of a blend has neither."""
    values: Values = {}
    if fitted.temperature is not None:
        values["temperature"] = float(fitted.temperature)
    if fitted.offsets is not None:
        values["offsets"] = out.add(fitted.offsets)
    return values


@dataclass(frozen=True)
class Base:
    """What all classifiers have, before their predictor is read."""

    estimator: Any  # without a fit
    labels: Labels
    n_features: int
    unit: float
    n_components: int
    names: list[str] | None

    @property
    def is_graph(self) -> bool:
        return getattr(self.estimator, "graph", "knn") == "precomputed"

    def fitted(self, fitted: Any) -> Any:
        model = self.estimator.with_fitted(fitted, self.n_features, self.unit)
        model.n_components_ = self.n_components
        if self.names is not None:
            model.feature_names_in_ = np.array(self.names, dtype=object)
        return model


def read_base(part: Part, cls: type) -> Base:
    estimator = read_parameters(part, cls)
    classes = read_classes(part.part("classes"))
    n_features = part.whole("features", 1, MAX_FEATURES)
    unit = part.real("unit", *UNITS)
    labels = read_labels(part.part("labels"), classes)
    n_components = part.whole("components", 1, labels.n)
    names = part.texts("names") if part.has("names") else None
    if names is not None and len(names) != n_features:
        part.refuse("names", "are not as many as the features")
    return Base(estimator, labels, n_features, unit, n_components, names)


def read_decoder(part: Part, labels: Labels, predictor: Predictor) -> ForPrediction:
    """An expert of a blend has neither temperature nor offsets."""
    if not part.has("temperature"):
        return ForPrediction(labels, predictor, None, None)
    temperature = part.real("temperature", 0, 1 / TINY)
    c = len(labels.classes)
    offsets = part.array("offsets", "f", (c,)).astype(np.float64) if part.has("offsets") else np.zeros(c)
    return ForPrediction(labels, predictor, offsets, temperature)


def write_knn(model: Any, out: Arrays) -> Values:
    predictor = model.fitted_.predictor
    values = write_base(model, out) | write_decoder(model.fitted_, out)
    values |= {
        "scores": out.add(predictor.F),
        "reached": out.add(predictor.reached),
        "mean_degree": float(predictor.mean_degree),
    }
    near = predictor.neighbourhood
    if near.search is not None:
        values |= {"search": write_search(near.search, out), "neighbors": int(near.k)}
        values |= {"weights": near.weights, "width": float(near.width)}
    if isinstance(model, GreenClassifier):
        values["mu"] = float(model.mu_)
    return values


def read_knn(part: Part, cls: type) -> Any:
    F = part.array("scores", "f", (None, None)).astype(np.float64)
    base = read_base(part, cls)
    n = len(F)  # equal rows are one node: there may be more rows than scores
    if F.shape[1] != len(base.labels.classes):
        part.refuse("scores", "are not as many as the classes")
    reached = part.array("reached", "b", (n,))
    mean_degree = part.real("mean_degree", 0, 1 / TINY)
    neighbourhood = read_neighbourhood(part, base, n)
    mu = part.real("mu", 0, 1 / TINY) if cls is GreenClassifier else 0.0
    rule = RULES[cls](base.estimator, n * mu)
    predictor = KnnPredictor(neighbourhood, mean_degree, rule, base.labels, F, reached)
    model = base.fitted(read_decoder(part, base.labels, predictor))
    if cls is GreenClassifier:
        model.mu_ = mu
    return model


RULES: dict[type, Callable[[Any, float], Equation | NeighbourMean]] = {
    GreenClassifier: lambda estimator, shift: Equation(shift, is_centred=True),
    ConsistencyClassifier: lambda estimator, shift: Equation(float(estimator.gamma), is_centred=False),
    HarmonicClassifier: lambda estimator, shift: NeighbourMean(),
}


def read_neighbourhood(part: Part, base: Base, n: int) -> Neighbourhood:
    """How new rows find their neighbours among n nodes."""
    if base.is_graph:
        if base.n_features != n:
            part.refuse("features", "are not as many as the rows of the graph")
        return Neighbourhood(None, 0, base.estimator.weights, 1.0)
    search = read_search(part.part("search"), base.n_features)
    if search.P.shape[0] != n:
        part.refuse("search", "has not as many points as there are scores")
    k = part.whole("neighbors", min(1, n - 1), min(n, MAX_NEIGHBORS))
    return Neighbourhood(search, k, part.text("weights", WEIGHTS), part.real("width", TINY, HUGE))


def write_anchored(model: Any, out: Arrays) -> Values:
    predictor = model.fitted_.predictor
    search = predictor.anchor_search
    values = write_base(model, out) | write_decoder(model.fitted_, out)
    values |= {
        "search": write_search(search.search, out),
        "searched": int(search.n_rows),
        "neighbors": int(search.k),
        "coefficients": out.add(predictor.C),
        "component": out.add(predictor.component),
        "nearest": out.add(predictor.labelled.index),
        "distances": out.add(predictor.labelled.dist2),
        "mu": float(model.mu_),
    }
    if search.projection is not None:
        values["projection"] = write_projection(search.projection, out)
    return values


def read_anchored(part: Part, cls: type) -> Any:
    base = read_base(part, cls)
    c, n_labels = len(base.labels.classes), len(base.labels.rows)
    anchor_search = read_anchor_search(part, base.n_features)
    m, k = anchor_search.m, anchor_search.k
    coefficients = part.array("coefficients", "f", (m, c)).astype(np.float64)
    n_components = part.whole("components", 1, m)
    component = part.array("component", "i", (m,), -1, n_components - 1).astype(np.int32)
    nearest = part.array("nearest", "i", (n_labels, k), 0, m - 1)
    labelled = Near(nearest, np.asfortranarray(part.array("distances", "f", (n_labels, k + 1), 0)))
    predictor = AnchoredPredictor(anchor_search, component, n_components, coefficients, base.labels, labelled)
    model = base.fitted(read_decoder(part, base.labels, predictor))
    model.mu_ = part.real("mu", 0, 1 / TINY)
    return model


def read_anchor_search(part: Part, d: int) -> AnchorSearch:
    search = read_search(part.part("search"), d)
    m = search.P.shape[0]
    if m < 2:
        part.refuse("search", "has a single anchor")
    k = part.whole("neighbors", 1, min(m - 1, MAX_NEIGHBORS))
    projection = read_projection(part.part("projection"), d) if part.has("projection") else None
    if projection is not None and sp.issparse(search.P):
        part.refuse("projection", "is that of dense anchors")
    return AnchorSearch(search, k, part.whole("searched", 1, MAX_ROWS), projection)


CLASSIFIERS: dict[str, type] = {
    "green": GreenClassifier,
    "consistency": ConsistencyClassifier,
    "harmonic": HarmonicClassifier,
    "anchored": AnchoredGreenClassifier,
}
Write = Callable[[Any, Arrays], Values]


def write_classifier(model: Any, out: Arrays) -> Values:
    """A classifier on a graph, as ``for_prediction`` left it."""
    kind = kind_of(model, CLASSIFIERS)
    write: Write = write_anchored if kind == "anchored" else write_knn
    return {"kind": kind, **write(model, out)}


def read_classifier(part: Part) -> Any:
    kind = part.text("kind", CLASSIFIERS)
    return (read_anchored if kind == "anchored" else read_knn)(part, CLASSIFIERS[kind])
