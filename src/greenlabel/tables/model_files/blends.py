"""The parts of a model file that make a blend: its experts, its scaling, and how evidence is added up.

    graph, weighted     a classifier on a graph; the same on features times a factor
    trees, logistic     arrays (array_models)
    kernel              rows, coefficients

``write_model`` and ``read_model`` are for any classifier, a blend or a graph alone.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from greenlabel.blend.array_models import Logistic, Trees
from greenlabel.blend.classifier import BlendedClassifier
from greenlabel.blend.experts import GraphExpert, WeightedGraph
from greenlabel.blend.predictor import BlendForPrediction, BlendPredictor
from greenlabel.blend.row_experts import KERNEL_ROWS, KernelExpert, KernelRidge, RowExpert, TreesExpert
from greenlabel.blend.weights import Blend
from greenlabel.estimators.base import TransductiveClassifier
from greenlabel.graph.scaling import Scaling
from greenlabel.labels.estimates import Estimate
from greenlabel.tables.model_files.classifiers import (
    TINY,
    bare,
    read_base,
    read_classifier,
    write_base,
    write_classifier,
)
from greenlabel.tables.model_files.container import HUGE, Arrays, Part
from greenlabel.tables.model_files.searches import FAR, Values, read_matrix, write_matrix

MAX_DEPTH = 4096  # of a tree
LARGE = 1e18  # coefficients: their products with coordinates, and sums of these, are finite in single precision


# Experts


def write_graph(expert: Any, out: Arrays) -> Values:
    return {"kind": "graph", "model": write_classifier(expert.model, out)}


def read_graph(part: Part, d: int, c: int) -> Any:
    return bare(GraphExpert, model=read_member(part, d, c))


def read_member(part: Part, d: int, c: int) -> Any:
    model = read_classifier(part.part("model"))
    if model.n_features_in_ != d or len(model.classes_) != c:
        part.refuse("model", "has other features or classes than the blend")
    return model


def write_weighted(expert: Any, out: Arrays) -> Values:
    return {"kind": "weighted", "factor": out.add(expert.factor), "model": write_classifier(expert.model, out)}


def read_weighted(part: Part, d: int, c: int) -> Any:
    most = 1.001 * np.sqrt(d)  # of square roots of shares, scaled to mean 1
    return bare(WeightedGraph, factor=part.array("factor", "f", (d,), 0, most), model=read_member(part, d, c))


def write_trees(expert: Any, out: Arrays) -> Values:
    trees = expert.model if isinstance(expert.model, Trees) else Trees.of(expert.model)
    return {"kind": "trees"} | {name: out.add(array) for name, array in vars(trees).items() if name in TREES}


TREES = ("roots", "left", "right", "feature", "threshold", "value")


def read_trees(part: Part, d: int, c: int) -> Any:
    value = part.array("value", "f", (None, c), 0, 1.001).astype(np.float64)
    n = len(value)
    left, right = (part.array(name, "i", (n,), -1, n - 1).astype(np.int32) for name in ("left", "right"))
    feature = part.array("feature", "i", (n,), 0, d - 1).astype(np.int32)
    threshold = part.array("threshold", "f", (n,)).astype(np.float64)
    roots = part.array("roots", "i", (None,), 0, n - 1).astype(np.int32)
    if not are_trees(roots, left, right):
        part.refuse("left", "and right are the children of no trees")
    return bare(TreesExpert, model=Trees(roots, left, right, feature, threshold, value))


def are_trees(roots: Any, left: Any, right: Any) -> bool:
    """Whether every node but the roots is the child of one node before it, and every way down ends soon."""
    n, is_leaf = len(left), left < 0
    inner = np.flatnonzero(~is_leaf)
    children = np.concatenate([left[inner], right[inner]])
    others = np.setdiff1d(np.arange(n), roots)
    if not len(roots) or (right[is_leaf] >= 0).any() or not (roots[1:] > roots[:-1]).all():
        return False
    if (children <= np.tile(inner, 2)).any() or not np.array_equal(np.sort(children), others):
        return False
    level = roots
    for _ in range(MAX_DEPTH):
        level = np.concatenate([left[level], right[level]])
        level = level[level >= 0]
        if not len(level):
            return True
    return False


def write_logistic(expert: Any, out: Arrays) -> Values:
    logistic = expert.model if isinstance(expert.model, Logistic) else Logistic.of(expert.model)
    return {"kind": "logistic", "weights": out.add(logistic.weights), "intercept": out.add(logistic.intercept)}


def read_logistic(part: Part, d: int, c: int) -> Any:
    outputs = 1 if c == 2 else c
    weights = part.array("weights", "f", (outputs, d), -LARGE, LARGE)
    return bare(RowExpert, model=Logistic(weights, part.array("intercept", "f", (outputs,), -LARGE, LARGE)))


def write_kernel(expert: Any, out: Arrays) -> Values:
    kernel = expert.model
    return {
        "kind": "kernel",
        "absolute": bool(kernel.absolute),
        "seed": int(kernel.seed),
        "varying": int(kernel.n_varying),
        "points": write_matrix(kernel.points, out),
        "coefficients": out.add(kernel.coefficients),
    }


def read_kernel(part: Part, d: int, c: int) -> Any:
    P = read_matrix(part.part("points"), None, d)
    if P.shape[0] > KERNEL_ROWS:
        part.refuse("points", f"are more than {KERNEL_ROWS:,}")
    kernel = KernelRidge(absolute=part.truth("absolute"), seed=part.whole("seed", 0, 2**63))
    kernel.points, kernel.n_varying = P, part.whole("varying", 1, d)
    kernel.coefficients = part.array("coefficients", "f", (P.shape[0], c), -LARGE, LARGE).astype(np.float64)
    return bare(KernelExpert, model=kernel)


EXPERTS = {
    "graph": (GraphExpert, write_graph, read_graph),
    "weighted": (WeightedGraph, write_weighted, read_weighted),
    "trees": (TreesExpert, write_trees, read_trees),
    "logistic": (RowExpert, write_logistic, read_logistic),
    "kernel": (KernelExpert, write_kernel, read_kernel),
}


def write_expert(expert: Any, out: Arrays) -> Values:
    write = next(write for cls, write, _ in EXPERTS.values() if type(expert) is cls)
    return {"name": expert.name, **write(expert, out)}


def read_expert(part: Part, d: int, c: int) -> Any:
    expert = EXPERTS[part.text("kind", EXPERTS)][2](part, d, c)
    expert.name = part.text("name")
    return expert


# Scaling


def write_scaling(scaling: Scaling, out: Arrays) -> Values:
    arrays = {name: out.add(getattr(scaling, name)) for name in ("kept", "low", "high", "centre", "spread")}
    return {**arrays, "units_differ": bool(scaling.units_differ), "only_divides": bool(scaling.only_divides)}


def read_scaling(part: Part, d: int) -> Scaling:
    kept = part.array("kept", "i", (None,), 0, d - 1).astype(np.intp)
    if not len(kept) or not (kept[1:] > kept[:-1]).all():
        part.refuse("kept", "are no columns in their order")
    low, high, centre = (part.array(name, "f", kept.shape, -FAR, FAR) for name in ("low", "high", "centre"))
    if (low > high).any():
        part.refuse("low", "is above high")
    spread = part.array("spread", "f", kept.shape, TINY, FAR)
    return Scaling(kept, low, high, centre, spread, part.truth("units_differ"), part.truth("only_divides"))


# The blend


def write_blend(model: Any, out: Arrays) -> Values:
    """Experts that a user gave are greenlabel classifiers, or the parameters are refused before they are reached."""
    predictor, accuracy = model.fitted_.predictor, model.estimated_accuracy_
    values = write_base(model, out) | {
        "experts": [write_expert(expert, out) for expert in predictor.experts],
        "scales": out.add(predictor.blend.scales),
        "own": out.add(predictor.blend.own),
        "weights": out.add(predictor.blend.weights),
        "shift": out.add(predictor.class_offsets),
        "class_shares": out.add(model.class_shares_),
        "accuracy": [float(accuracy), float(accuracy.low), float(accuracy.high)],
    }
    if np.isfinite(model.mu_):
        values["mu"] = float(model.mu_)
    if predictor.scaling is not None:
        values["scaling"] = write_scaling(predictor.scaling, out)
    if predictor.refined is not None:
        values |= {"refined": write_classifier(predictor.refined, out), "scale": float(predictor.scale)}
    return values


def read_blend(part: Part) -> Any:
    base = read_base(part, BlendedClassifier)
    c, d = len(base.labels.classes), base.n_features
    scaling = read_scaling(part.part("scaling"), d) if part.has("scaling") else None
    d = d if scaling is None else len(scaling.kept)
    experts = [read_expert(expert, d, c) for expert in part.parts("experts")]
    names = [expert.name for expert in experts]
    if not names or len(set(names)) < len(names):
        part.refuse("experts", "have no names of their own")
    scales, own, weights = (part.array(name, "f", (len(names),), 0, LARGE) for name in ("scales", "own", "weights"))
    blend = Blend(scales, own, weights, np.empty((0, c)), np.empty(0, np.intp))
    predictor = BlendPredictor(experts, blend, scaling, part.array("shift", "f", (c,), -LARGE, LARGE))
    if part.has("refined"):
        predictor = replace(predictor, refined=read_refined(part, d, c), scale=part.real("scale", 0, LARGE))
    class_shares = part.array("class_shares", "f", (c,), 0, 1)
    model = base.fitted(BlendForPrediction(base.labels, predictor, class_shares, read_accuracy(part)))
    model.mu_ = part.real("mu", 0, HUGE) if part.has("mu") else float("nan")
    return model


def read_accuracy(part: Part) -> Estimate:
    numbers = Part(dict(zip("vlh", part.items("accuracy"), strict=False)), f"{part.where}accuracy.", ())
    return Estimate.between(*(numbers.real(name, 0, 1) for name in "vlh"))


def read_refined(part: Part, d: int, c: int) -> Any:
    model = read_classifier(part.part("refined"))
    if model.n_features_in_ != d or len(model.classes_) != c:
        part.refuse("refined", "has other features or classes than the blend")
    return model


# Any model


def write_model(model: TransductiveClassifier, out: Arrays) -> Values:
    """A fitted classifier with what new rows need."""
    slim = model.for_prediction()
    if type(slim) is BlendedClassifier:
        return {"kind": "blend", **write_blend(slim, out)}
    return write_classifier(slim, out)


def read_model(part: Part) -> Any:
    if part.text("kind") == "blend":
        return read_blend(part)
    model = read_classifier(part)
    if model.fitted_.temperature is None:
        part.refuse("temperature", "is missing")
    return model
