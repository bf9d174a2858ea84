"""The parts of a model file that make a classifier: each kind is written by one function and read by another.

    green, consistency, harmonic    k-NN graphs: the search for neighbours, scores F of its rows
    anchored                        anchors, coefficients C
    blend                           experts and how they are added up
    float64, flat, reduced, cluster     searches, made again from their points

A reader builds an object from values that it has checked against each other: sizes n, d, c agree, numbers of rows,
anchors and classes exist. One more value of a fitted model is one more line in a writer and in its reader; what is
not in every file of the format is read under ``part.has(name)``.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from greenlabel.errors import ModelFileError
from greenlabel.estimators.anchored import AnchoredGreenClassifier
from greenlabel.estimators.base import GraphClassifier
from greenlabel.estimators.knn import ConsistencyClassifier, GreenClassifier, HarmonicClassifier
from greenlabel.graph.duplicates import AllDistinct
from greenlabel.graph.mixing import Near
from greenlabel.graph.neighbors import ClusterSearch, FlatSearch, Float64Search, ReducedSearch, Search
from greenlabel.graph.projection import Projection
from greenlabel.graph.similarity import WEIGHTS
from greenlabel.labels.encoding import Labels
from greenlabel.tables.model_files.container import HUGE, MOST_ROWS, Arrays, Part

Values = dict[str, Any]

FAR = 1e17  # no coordinate of a point is farther out: squares of such numbers fit in single precision
MOST_NEIGHBORS = 1000
MOST_FEATURES = 2**31
MOST_EMPTY = 100  # cells of a sparse matrix for each number in it: what is made dense of it stays in proportion
UNITS = (1e-45, 1e300)  # of features
TINY = 1e-30  # no divisor is smaller


def bare(cls: Any, **attributes: Any) -> Any:
    """An object of a class with these attributes, as copying makes one."""
    thing = cls.__new__(cls)
    vars(thing).update(attributes)
    return thing


def kind_of(thing: Any, kinds: dict[str, type]) -> str:
    """The word for the type of a thing; other things cannot be saved."""
    for word, cls in kinds.items():
        if type(thing) is cls:
            return word
    raise ModelFileError(
        f"a model with {type(thing).__name__} in it cannot be saved; a model file holds {', '.join(kinds)} alone."
    )


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
        model._check_parameters()
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
    n = part.whole("n", 1, MOST_ROWS)
    rows = part.array("rows", "i", (None,), 0, n - 1).astype(np.intp)
    codes = part.array("codes", "i", (len(rows),), 0, len(classes) - 1).astype(np.intp)
    if not len(rows) or not (rows[1:] > rows[:-1]).all():
        part.refuse("rows", "are not in their order")
    return Labels(n, classes, rows, codes)


# Matrices and searches


def write_matrix(X: Any, out: Arrays) -> Any:
    if not sp.issparse(X):
        return {"dense": out.add(X)}
    X = sp.csr_array(X, dtype=np.float64)
    X.sum_duplicates()
    if too_empty(X):
        raise ModelFileError(
            f"a model of sparse rows with less than one number among {MOST_EMPTY} cells cannot be saved; "
            "reduce the features first, such as by scikit-learn's TruncatedSVD."
        )
    parts = {name: out.add(array) for name, array in (("data", X.data), ("columns", X.indices), ("starts", X.indptr))}
    return {"width": X.shape[1], **parts}


def read_matrix(part: Part, n: int | None, d: int | None) -> Any:
    """Rows of finite numbers, dense or sparse; one at the least."""
    if part.has("dense"):
        X = part.array("dense", "f", (n, d), -FAR, FAR)
        if not X.size:
            part.refuse("dense", "is empty")
        return X
    width = part.whole("width", d or 1, d or MOST_FEATURES)
    data = part.array("data", "f", (None,), -FAR, FAR).astype(np.float64)
    columns = part.array("columns", "i", (len(data),), 0, width - 1).astype(np.int64)
    starts = part.array("starts", "i", (None if n is None else n + 1,), 0, len(data)).astype(np.int64)
    row = np.repeat(np.arange(max(0, len(starts) - 1)), np.maximum(np.diff(starts), 0))
    is_sound = len(starts) > 1 and starts[0] == 0 and starts[-1] == len(data) and (np.diff(starts) >= 0).all()
    if not is_sound or not (np.diff(row * width + columns) > 0).all():
        part.refuse("starts", "and columns are those of no sparse matrix")
    X = sp.csr_array((data, columns, starts), shape=(len(starts) - 1, width))
    if too_empty(X):
        part.refuse("width", "is far beyond the numbers of its matrix")
    return X


def too_empty(X: Any) -> bool:
    return math.prod(X.shape) > MOST_EMPTY * (X.nnz + X.shape[0])


SEARCHES: dict[str, type] = {
    "float64": Float64Search,
    "flat": FlatSearch,
    "reduced": ReducedSearch,
    "cluster": ClusterSearch,
}


def write_search(search: Any, out: Arrays) -> Values:
    kind = kind_of(search, SEARCHES)
    values = {"kind": kind, "points": write_matrix(search.P, out)}
    if kind in ("reduced", "cluster"):
        values["projection"] = write_projection(search.projection, out)
    if kind == "cluster":
        values |= {"centres": out.add(search.centres), "group": out.add(search.group[:, 0])}
    return values


def read_search(part: Part, d: int) -> Search:
    kind, P = part.text("kind", SEARCHES), read_matrix(part.part("points"), None, d)
    if kind != "float64" and sp.issparse(P):
        part.refuse("points", "are sparse")
    if kind in ("float64", "flat"):
        return SEARCHES[kind](P)
    projection = read_projection(part.part("projection"), d)
    if kind == "reduced":
        return ReducedSearch(P, projection)
    centres = part.array("centres", "f", (None, projection.axes.shape[1]), -FAR, FAR)
    return ClusterSearch.restored(P, projection, centres, part.array("group", "i", (len(P),), 0, len(centres) - 1))


def write_projection(projection: Projection, out: Arrays) -> Values:
    return {"mean": out.add(projection.mean), "axes": out.add(projection.axes)}


def read_projection(part: Part, d: int) -> Projection:
    axes = part.array("axes", "f", (d, None), -1.01, 1.01)
    if not 0 < axes.shape[1] <= d:
        part.refuse("axes", "are too many or none")
    return Projection(part.array("mean", "f", (d,), -FAR, FAR), axes)


# Classifiers


def write_base(model: GraphClassifier, out: Arrays) -> Values:
    """What all classifiers have."""
    values = {
        "parameters": write_parameters(model, out),
        "classes": write_classes(model.classes_, out),
        "features": int(model.n_features_in_),
        "unit": 1.0 if model._unit is None else float(model._unit),
        "labels": write_labels(model._labels, out),
        "components": int(model.n_components_),
    }
    if hasattr(model, "feature_names_in_"):
        values["names"] = list(map(str, model.feature_names_in_))
    if "temperature" in model._kept:
        values["temperature"] = float(model._kept["temperature"])
    if "offsets" in model._kept:
        values["offsets"] = out.add(model._kept["offsets"])
    return values


def read_base(part: Part, cls: type) -> Any:
    model = read_parameters(part, cls)
    model.classes_ = read_classes(part.part("classes"))
    model.n_features_in_ = part.whole("features", 1, MOST_FEATURES)
    model._unit, model._is_graph = part.real("unit", *UNITS), getattr(model, "graph", "knn") == "precomputed"
    model._labels = read_labels(part.part("labels"), model.classes_)
    model.n_components_ = part.whole("components", 1, model._labels.n)
    model._kept, model._is_slim = {}, True
    if part.has("names"):
        names = part.texts("names")
        if len(names) != model.n_features_in_:
            part.refuse("names", "are not as many as the features")
        model.feature_names_in_ = np.array(names, dtype=object)
    if part.has("temperature"):
        model._kept["temperature"] = part.real("temperature", 0, 1 / TINY)
    c = len(model.classes_)
    model._kept["offsets"] = part.array("offsets", "f", (c,)).astype(np.float64) if part.has("offsets") else np.zeros(c)
    return model


def write_knn(model: Any, out: Arrays) -> Values:
    values = write_base(model, out) | {
        "scores": out.add(model._F),
        "reached": out.add(model._kept["reached"]),
        "mean_degree": float(model._mean_degree),
    }
    if model._search is not None:
        values |= {"search": write_search(model._search, out), "neighbors": int(model._k)}
        values |= {"weights": model._weights, "width": float(model._width)}
    if isinstance(model, GreenClassifier):
        values["mu"] = float(model.mu_)
    return values


def read_knn(part: Part, cls: type) -> Any:
    F = part.array("scores", "f", (None, None)).astype(np.float64)
    model = read_base(part, cls)
    n, model._F, model._nodes = len(F), F, AllDistinct()  # equal rows are one node: there may be more rows than scores
    if F.shape[1] != len(model.classes_):
        part.refuse("scores", "are not as many as the classes")
    model._n, model._k, model._search = n, 0, None
    model._kept["reached"] = part.array("reached", "b", (n,))
    model._mean_degree = part.real("mean_degree", 0, 1 / TINY)
    if not model._is_graph:
        model._search = read_search(part.part("search"), model.n_features_in_)
        if model._search.P.shape[0] != n:
            part.refuse("search", "has not as many points as there are scores")
        model._k = part.whole("neighbors", min(1, n - 1), min(n, MOST_NEIGHBORS))
        model._weights, model._width = part.text("weights", WEIGHTS), part.real("width", TINY, HUGE)
    elif model.n_features_in_ != n:
        part.refuse("features", "are not as many as the rows of the graph")
    if cls is GreenClassifier:
        model.mu_ = part.real("mu", 0, 1 / TINY)
    if cls is ConsistencyClassifier:
        model._gamma = float(model.gamma)
    return model


def write_anchored(model: Any, out: Arrays) -> Values:
    values = write_base(model, out) | {
        "search": write_search(model._search, out),
        "searched": int(model._searched),
        "neighbors": int(model._k),
        "coefficients": out.add(model._coefficients),
        "component": out.add(model._anchor_component),
        "nearest": out.add(model._labelled.index),
        "distances": out.add(model._labelled.dist2),
        "mu": float(model.mu_),
    }
    if model._projection is not None:
        values["projection"] = write_projection(model._projection, out)
    return values


def read_anchored(part: Part, cls: type) -> Any:
    model = read_base(part, cls)
    c, d, n_labels = len(model.classes_), model.n_features_in_, len(model._labels.rows)
    model._search = read_search(part.part("search"), d)
    P = model._search.P
    m = P.shape[0]
    if m < 2:
        part.refuse("search", "has a single anchor")
    model.anchors_ = (P.toarray() if sp.issparse(P) else P) * model._unit
    model._searched, model._n_kept = part.whole("searched", 1, MOST_ROWS), 0
    model._k = k = part.whole("neighbors", 1, min(m - 1, MOST_NEIGHBORS))
    model._coefficients = part.array("coefficients", "f", (m, c)).astype(np.float64)
    model.n_components_ = part.whole("components", 1, m)
    model._anchor_component = part.array("component", "i", (m,), -1, model.n_components_ - 1).astype(np.int32)
    nearest = part.array("nearest", "i", (n_labels, k), 0, m - 1)
    model._labelled = Near(nearest, np.asfortranarray(part.array("distances", "f", (n_labels, k + 1), 0)))
    model._projection = read_projection(part.part("projection"), d) if part.has("projection") else None
    if model._projection is not None and sp.issparse(P):
        part.refuse("projection", "is that of dense anchors")
    model.mu_ = part.real("mu", 0, 1 / TINY)
    return model


CLASSIFIERS: dict[str, type] = {
    "green": GreenClassifier,
    "consistency": ConsistencyClassifier,
    "harmonic": HarmonicClassifier,
    "anchored": AnchoredGreenClassifier,
}
Write = Callable[[Any, Arrays], Values]


def write_classifier(model: Any, out: Arrays) -> Values:
    """A classifier on a graph, as ``for_new_rows`` left it."""
    kind = kind_of(model, CLASSIFIERS)
    write: Write = write_anchored if kind == "anchored" else write_knn
    return {"kind": kind, **write(model, out)}


def read_classifier(part: Part) -> Any:
    kind = part.text("kind", CLASSIFIERS)
    return (read_anchored if kind == "anchored" else read_knn)(part, CLASSIFIERS[kind])
