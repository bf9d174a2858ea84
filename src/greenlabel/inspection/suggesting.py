"""Which rows to label next, and why: coverage of the data by labels, weighted by what the model is unsure of.

    suggest(X)        before there is any label
    suggest(model)    with labels, by any classifier of ours

The rule stands in ``coverage``, the small anchored graph on which it looks at the rows in ``sketch``. The sketch knows
no labels: it is made once for a graph, and a suggestion after one more label costs milliseconds.

n rows     m anchors     Z (n, m) mixing weights     p (r, c) probabilities of some rows
"""

from dataclasses import dataclass
from numbers import Integral
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.parameters import check_integer, check_seed
from greenlabel._common.text import printable, without_middle
from greenlabel.blend.fitted import FittedBlend
from greenlabel.blend.in_blocks import scale_blocks
from greenlabel.blocks.rows import ArrayBlocks, Blocks
from greenlabel.errors import ParameterError
from greenlabel.estimators.anchored import AnchoredGreenClassifier
from greenlabel.estimators.base import TransductiveClassifier
from greenlabel.graph.duplicates import AllDistinct, Nodes, distinct_rows
from greenlabel.inspection.asking import Sketch, are_far, rows_to_ask, stands_for
from greenlabel.inspection.checks import check_model, check_rows, check_two_rows, is_a_model
from greenlabel.inspection.coverage import margins, trust
from greenlabel.inspection.printing import ListAsTable, Table, plain
from greenlabel.inspection.sketch import MAX_ANCHORS, graph_sketch, heaviest, sketch
from greenlabel.inspection.sketch_model import SketchModel
from greenlabel.propagators.anchored import AnchoredPropagation, AnchoredPropagator
from greenlabel.propagators.base import Propagator
from greenlabel.propagators.knn import KnnPropagator

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

MAX_NAME = 30  # characters of a class in a reason; ``between`` has all of them
MAX_OF_MANY = 1024  # anchors of a sketch of many anchors, which is to be there in a second or two
MAX_WITH_OFFSETS = 2**16  # anchors up to which the class offsets of a model are found in tenths of a second
UNDECIDED = 0.5  # margin below which a row is said to lie between two classes


@dataclass(frozen=True)
class Suggestion:
    """A row that is worth a label."""

    row: int
    reason: str
    covers: int  # about how many rows it stands for
    between: tuple[Any, ...]  # the classes that it would decide between; empty without predictions


class Suggestions(ListAsTable[Suggestion]):
    """A list that prints as a table, and so do its slices."""

    def as_table(self) -> Table:
        lines = [(one.row, one.covers, " or ".join(map(str, one.between)), one.reason) for one in self]
        return ("row", "covers", "between", "reason"), lines


def suggest(model_or_X: Any, n: int = 10, *, exclude: Any = (), random_state: Any = None) -> Suggestions:
    """The rows to label next, best first: each stands for as many rows as it can that no label tells about yet.

    Parameters
    ----------
    model_or_X : classifier, array, sparse matrix or data frame
        A fitted greenlabel classifier; or rows as ``fit`` takes them, before there are labels of two classes.
        Columns are scaled where their units differ, as BlendedClassifier does. Of Parquet files with labels leave
        their column out:
        ``greenlabel.blocks.open_rows(path, "label")[0]``.
    n : int, default 10
        How many rows. They spread over the data: a row counts as labelled for those after it. Fewer come only where
        no more are left.
    exclude : array of int, default ()
        Numbers of rows that never come. Without a model they count as seen, so rows like them come late.
    random_state : int, RandomState or None, default None
        Seeds the anchors of the sketch. With a model, None is as good as any number: the same rows come every time.

    Returns
    -------
    suggestions : list of Suggestion
        Prints as a table. Each has ``row``, ``reason``, ``covers`` (about how many rows it stands for) and ``between``
        (the classes that it would decide between).

    Examples
    --------
    >>> from greenlabel import suggest
    >>> X = [[0.0], [0.1], [0.2], [0.3], [5.0], [5.1], [5.2], [5.3]]
    >>> sorted(one.row // 4 for one in suggest(X, 2, random_state=0))
    [0, 1]
    """
    check_integer("n", n, 1)
    if is_a_model(model_or_X):
        return suggest_with_labels(model_or_X, n, exclude, 0 if random_state is None else random_state)
    check_two_rows(model_or_X)
    return suggest_without_labels(model_or_X, n, exclude, random_state)


def suggest_without_labels(
    X: Any, n: int, exclude: Any = (), random_state: Any = None, *, is_scaled: bool = False
) -> Suggestions:
    """What ``suggest`` does with rows; ``is_scaled`` where their columns are on the scale on which they are to stay."""
    look = _sketch_of_rows(X, random_state, is_scaled)
    seen = np.unique(check_rows(exclude, look.Z.shape[0], "exclude"))
    rows = look.next_rows(n, seen, None, np.empty(0, np.intp))
    counts = stands_for(look, seen, rows)
    return Suggestions(
        Suggestion(row, f"stands for {_like_it(count)}", count, ())
        for row, count in zip(rows.tolist(), counts, strict=True)
    )


def suggest_with_labels(
    model: TransductiveClassifier, n: int, exclude: Any = (), seed: Any = 0, names: NDArray[Any] | None = None
) -> Suggestions:
    """What ``suggest`` does with a model; ``names`` (c,) are those of its classes, where it was fitted on codes."""
    fitted = check_model(model, "suggest")
    labels, classes = fitted.labels, model.classes_ if names is None else names
    excluded = np.unique(check_rows(exclude, labels.n, "exclude"))
    look = sketch_of(model, seed)
    small = SketchModel.of(look.kernel, look.Z, labels) if _has_many_anchors(fitted) else None
    margin = _margins(fitted) if small is None else small.margins(look.Z)
    rows, counts, n_again = rows_to_ask(look, n, labels.rows, labels.codes, trust(labels.codes) * margin, excluded)
    p, is_reached = _probabilities(fitted, rows) if small is None else _likely(fitted, rows, small, look.Z[rows])
    reasons = reasons_of(counts, n_again, p, is_reached, are_far(look, labels.rows, rows), classes)
    return Suggestions(
        Suggestion(row, reason, count, between(of_row, classes))
        for row, reason, count, of_row in zip(rows.tolist(), reasons, counts, p, strict=True)
    )


def _has_many_anchors(fitted: Any) -> bool:
    """Whether its probabilities take seconds: they are calibrated by solves on a large sparse system."""
    return not isinstance(fitted, FittedBlend) and _anchors_of(fitted.propagator) > MAX_ANCHORS


def _anchors_of(propagator: Propagator) -> int:
    return propagator.graph.m if isinstance(propagator, AnchoredPropagator) else 0


def _margins(fitted: Any) -> Floats:
    """(n,) the margins of all rows. Of an anchored graph those of its anchors, mixed: no pass over the rows."""
    if isinstance(fitted, FittedBlend):
        return np.concatenate([margins(p) for p, _ in fitted.probabilities_in_blocks()])
    if not isinstance(fitted.propagation, AnchoredPropagation):
        return margins(fitted.distributions)
    C = fitted.propagation.C
    return fitted.propagator.operator.Z @ margins(fitted.calibrated.probabilities(C, np.ones(len(C), bool)))


def _probabilities(fitted: Any, rows: Ints) -> tuple[Floats, Bools]:
    """(r, c) of some rows, and whether a label reaches them."""
    if isinstance(fitted, FittedBlend):
        is_reached = np.ones(len(rows), bool) if fitted.graph is None else fitted.graph.propagation.scores_of(rows)[1]
        return fitted.decoder.probabilities(fitted.scores_of(rows), is_reached), is_reached
    F, is_reached = fitted.propagation.scores_of(rows)
    return fitted.calibrated.probabilities(F, is_reached), is_reached


def _likely(fitted: Any, rows: Ints, small: SketchModel, Z: sp.csr_array) -> tuple[Floats, Bools]:
    """The same without calibrating: how sure is said by the sketch, of which class by the scores of the model."""
    F, is_reached = fitted.propagation.scores_of(rows)
    if _anchors_of(fitted.propagator) <= MAX_WITH_OFFSETS:
        F = fitted.decoder.adjusted(F)
    F = np.where(is_reached[:, None], F, fitted.labels.shares)
    return in_order_of(small.probabilities(Z)[0], F), is_reached


def in_order_of(p: Floats, F: Floats) -> Floats:
    """Probabilities (r, c) dealt out to the classes in the order of the scores F (r, c).

    Where the two disagree about the likeliest class, the two likeliest are as likely as each other but for the last
    digit: equal probabilities would not tell which of the classes F favours.
    """
    order, dealt = np.argsort(-F, axis=1, kind="stable"), -np.sort(-p, axis=1)
    differs = p.argmax(axis=1) != order[:, 0]
    dealt[differs, :2] = dealt[differs, :2].mean(axis=1, keepdims=True)
    for j in range(min(2, p.shape[1] - 1))[::-1]:
        dealt[:, j] = np.maximum(dealt[:, j], np.nextafter(dealt[:, j + 1], 1))
    found = np.empty_like(p)
    np.put_along_axis(found, order, dealt, axis=1)
    return found


# Sketches


Kind = tuple[bool, int]  # whether it is of a blend, which has all its rows in a sketch of their own; the seed
SKETCHES: WeakKeyDictionary[Any, dict[Kind, Sketch]] = WeakKeyDictionary()  # of each graph, while it is there


def sketch_of(model: TransductiveClassifier, seed: Any = 0) -> Sketch:
    """The sketch of the rows of a fitted model, made once for its graph and a number as seed, the last one.

    A RandomState draws something else every time, so what it drew is not kept.
    """
    fitted = model.fitted_
    if not isinstance(seed, Integral) or (isinstance(fitted, FittedBlend) and fitted.graph is None):
        return _make_sketch(fitted, check_seed(seed))
    kind = isinstance(fitted, FittedBlend), int(seed)
    found = SKETCHES.get(model.graph_, {}).get(kind)
    if found is None:
        found = _make_sketch(fitted, check_seed(seed))
        others = {other: one for other, one in SKETCHES.get(model.graph_, {}).items() if other[0] != kind[0]}
        SKETCHES[model.graph_] = others | {kind: found}
    return found


def _make_sketch(fitted: Any, rng: np.random.Generator) -> Sketch:
    if isinstance(fitted, FittedBlend):
        if fitted.in_blocks:
            return _sketch_in_blocks(fitted, rng)
        return Sketch.of(sketch(fitted.features, rng), nodes=distinct_rows(fitted.features) or AllDistinct())
    return _sketch_of_propagator(fitted.propagator, rng)


def _sketch_in_blocks(fitted: FittedBlend, rng: np.random.Generator) -> Sketch:
    """Of rows beyond memory: their anchored graph, which a blend of other experts alone does not have."""
    if fitted.graph is None:
        raise ParameterError(
            "suggest needs an anchored graph of rows in blocks, and no expert of this blend is one; add an "
            "AnchoredGreenClassifier to experts."
        )
    return _sketch_of_propagator(fitted.propagator, rng)


def _sketch_of_propagator(propagator: Propagator, rng: np.random.Generator) -> Sketch:
    if isinstance(propagator, AnchoredPropagator):
        return _sketch_of_anchors(propagator, rng)
    assert isinstance(propagator, KnnPropagator)
    search = propagator.neighbourhood.search
    if search is None:
        return Sketch.of(graph_sketch(propagator.operator, propagator.graph.component, rng))
    nodes, P = propagator.graph.nodes, search.P
    n = len(nodes.of_row) if isinstance(nodes, Nodes) else P.shape[0]
    return Sketch.of(sp.csr_array(nodes.to_rows(sketch(P, rng, n_rows=n))), nodes=nodes)


def _sketch_of_anchors(propagator: AnchoredPropagator, rng: np.random.Generator) -> Sketch:
    """Many anchors are themselves mixes of few. A row is then seen as the anchor of which it has most."""
    Z, graph = propagator.operator.Z, propagator.graph
    if graph.m <= MAX_ANCHORS:
        return Sketch.of(Z, graph.gram())
    of_anchors, anchor = sketch(graph.anchor_search.search.P, rng, MAX_OF_MANY), heaviest(Z)
    n_rows = sp.diags_array(np.bincount(anchor, minlength=graph.m).astype(float))
    return Sketch.of(sp.csr_array(of_anchors[anchor]), (of_anchors.T @ n_rows @ of_anchors).toarray())


def _sketch_of_rows(X: Any, random_state: Any, is_scaled: bool) -> Sketch:
    """Rows of any kind that fit takes; if not yet done scaled where the units of columns differ, as a blend does."""
    shell = AnchoredGreenClassifier(random_state=int(check_seed(random_state).integers(2**31)))
    nodes: list[AllDistinct | None] = [None]

    def scale(rows: Blocks, d: int, unit: float | None) -> tuple[Blocks, int, float | None]:
        if unit is not None and isinstance(rows, ArrayBlocks):
            nodes[0] = distinct_rows(rows.X) or AllDistinct()
        return (rows, d, unit) if is_scaled else scale_blocks(rows, d, unit, np.random.default_rng(0))

    graph = shell.sketch_of(X, prepare=scale)
    return Sketch.of(graph.mixing_matrix(), graph.gram(), nodes[0])


# Reasons


def between(p: Floats, classes: NDArray[Any]) -> tuple[Any, ...]:
    """The two likeliest classes (of c probabilities), the likelier first."""
    return tuple(plain(classes[np.argsort(-p, kind="stable")[:2]]))


def _like_it(count: int) -> str:
    return f"about {count:,} rows" if count > 1 else "itself alone"


def short_name(label: Any) -> str:
    return without_middle(printable(label), MAX_NAME)


def reason(count: int, p: Floats, is_reached: bool, is_far: bool, classes: NDArray[Any]) -> str:
    """Why a row is worth a label, from its probabilities p (c,); there may be fewer than two classes yet."""
    if len(p) < 2:
        return f"stands for {_like_it(count)}"
    first, second = (short_name(label) for label in between(p, classes))
    if not is_reached:
        return f"no label reaches it; stands for {_like_it(count)}"
    if margins(p[None])[0] < UNDECIDED:
        return f"{first} or {second}? decides for {_like_it(count)}"
    return f"{'far from the labels, ' if is_far else ''}probably {first}; stands for {_like_it(count)}"


def reasons_of(
    counts: list[int], n_again: int, p: Floats, is_reached: Bools, is_far: Bools, classes: NDArray[Any]
) -> list[str]:
    """Why each of some rows is worth a label, of which the first ``n_again`` equal labelled ones."""
    others = zip(counts[n_again:], p[n_again:], is_reached[n_again:], is_far[n_again:], strict=True)
    return [*map(reason_again, counts[:n_again]), *(reason(*one, classes) for one in others)]


def reason_again(count: int) -> str:
    """Why a row that equals labelled ones is worth a label, with ``count`` rows like it."""
    return f"equals labelled rows, which want another label; stands for {_like_it(count)}"
