"""The estimator on an anchored graph: a shell around row blocks, anchors, sums and answers.

    rows -> nearest anchors (Near) -> Z'Z -> m x m system | labels -> C -> answers

What is computed from all rows is a sum over blocks, what is answered for each row a map over blocks (blocks.py), so
rows may be in memory, in files or on a cluster, and more of them may come later.
"""

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from greenlabel._common.parameters import (
    check_choice,
    check_integer,
    check_mu,
    check_offsets,
    check_real,
    check_seed,
    choose_mu,
    cut_neighbors,
)
from greenlabel.blocks.rows import ArrayBlocks, Blocks, identity, joined
from greenlabel.blocks.sources import open_rows
from greenlabel.errors import LabelError, ParameterError
from greenlabel.estimators.base import (
    ROUGH,
    Bools,
    Floats,
    GraphClassifier,
    Ints,
    check_features,
    check_stream,
    some_rows_without_label,
)
from greenlabel.graph.anchors import ANCHORS, SPLIT_AXES, anchor_rows, find_anchors, given_anchors, usual_number
from greenlabel.graph.distances import working
from greenlabel.graph.duplicates import are_equal
from greenlabel.graph.features import FILL, CheckFeatures, check_finite, in_units, unit_of
from greenlabel.graph.mixing import GramSum, Near, NearestAnchors, SumProducts, near_bytes
from greenlabel.graph.neighbors import exact_search
from greenlabel.graph.projection import SAMPLE_ROWS, Projection, principal_axes, sample_rows
from greenlabel.graph.similarity import anchor_components, reached_components
from greenlabel.labels.choosing import TIMES_OF_MU, choose, judges
from greenlabel.labels.encoding import Labels, joined_labels, read_some_labels
from greenlabel.operators.green import TOLERANCE, AnchorSystem, column_means, dense
from greenlabel.operators.predictions import (
    AnswerAllRows,
    AnswerRows,
    Answers,
    Classes,
    Decisions,
    Probabilities,
    Reached,
    Scores,
)
from greenlabel.operators.repeated import LonePoint

ANCHORED_SHIFT = 0.03  # mu="auto": n mu, where the degrees are 1; or ten times less or more
CHOICE_ROWS, CHOICE_ANCHORS = 500, 2048  # labelled rows by which mu is chosen, and anchors up to which it is
SEARCH_AXES = 96  # principal axes that prove an exact search among anchors


class AnchoredGreenClassifier(GraphClassifier):
    """The improved Green function on an anchored graph, for many rows: similarity only through a few anchors.

    Rows may be an array, a sparse matrix or a data frame in memory; a memory map, a path to a .npy file, to Parquet
    files or to a .zarr folder; or a Dask array. Answers do not depend on which.

    Parameters
    ----------
    n_anchors : int or "auto", default "auto"
        More anchors are more accurate and slower. "auto" takes a quarter of the rows, 2,048 at the most. There are
        fewer where anchors would coincide because rows are equal.
    n_neighbors : int, default 5
        Anchors that each row is a mix of; fewer than there are anchors.
    mu : float or "auto", default "auto"
        The similarity that every pair of rows gains. "auto" makes n mu three percent of the degree, which is 1 here; a
        tenth or ten times as much where leave-one-out on at least 20 labels prefers it.
    anchors : {"bkhk", "kmeans", "random"} or (m, d) array, default "bkhk"
        How anchors are found; "bkhk" is balanced k-means applied hierarchically. An array gives them.
    random_state : int, RandomState or None
        Seeds the choice of anchors.
    memory_limit : int or "auto", default "auto"
        Bytes for the nearest anchors of all rows, 6 per neighbour and 4 per row (more where float32 does not hold the
        features). Beyond it they are computed again for the answers. "auto" is half of what is free.
    class_offsets : "auto" or None, default "auto"
        As in GreenClassifier.

    Attributes
    ----------
    classes_, scores_, label_distributions_, transduction_, class_offsets_, mu_, n_components_, reached_, n_features_in_
        As in GreenClassifier.
    anchors_ : (m, d) the anchors
    """

    _only_for_fit = ("_operator", "_systems", "_near", "_gram")
    _find_anchors: Callable[..., Any] = staticmethod(find_anchors)
    _unit: float | None  # of the features; unknown until a sample of rows outside memory has been seen

    def __init__(
        self,
        n_anchors: int | str = "auto",
        n_neighbors: int = 5,
        *,
        mu: float | str = "auto",
        anchors: Any = "bkhk",
        random_state: Any = None,
        memory_limit: int | str = "auto",
        class_offsets: str | None = "auto",
    ):
        self.n_anchors = n_anchors
        self.n_neighbors = n_neighbors
        self.mu = mu
        self.anchors = anchors
        self.random_state = random_state
        self.memory_limit = memory_limit
        self.class_offsets = class_offsets

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> Self:
        """Add rows, labelled or not, to those that the model has seen; the first rows give the anchors.

        The result equals one fit on all rows with the same anchors. Rows are numbered in the order in which they came.

        Parameters
        ----------
        X : rows of any kind that fit takes
        y : (n,) labels of these rows, as in fit; None where all are unknown
        classes : all classes that may ever come, as in scikit-learn; any other label is then refused
        """
        with self._or_as_before():
            is_first = not hasattr(self, "_gram")
            if is_first:
                self._check_parameters()
            rows, n, y = self._open(X, y, reset=is_first)
            labels = read_some_labels(y, n)
            check_known(labels, classes)
            if is_first:
                self._build(rows)
                return self._settle(labels)
            near = self._nearest(rows)
            return self._extend_by(near, near.sum(SumProducts(len(self.anchors_))), labels)

    def merge(self, other: "AnchoredGreenClassifier") -> Self:
        """Add the rows and labels of another model that was fitted on the same anchors, after the rows of this one."""
        if not isinstance(other, AnchoredGreenClassifier):
            raise ParameterError(f"merge takes an AnchoredGreenClassifier, got {type(other).__name__}; fit one.")
        for model in (self, other):
            if not hasattr(model, "_gram"):
                model._check_fitted()
        if self._k != other._k or not np.array_equal(self.anchors_, other.anchors_):
            raise ParameterError(
                "the models stand on different anchors, or numbers of neighbours; fit both with the anchors of one: "
                "AnchoredGreenClassifier(anchors=model.anchors_)."
            )
        with self._or_as_before():
            return self._extend_by(other._near, other._gram, other._labels)

    def answers(self) -> Iterator[Answers]:
        """Class and probabilities of all rows of the fit, block by block: (rows, classes, probabilities).

        Nothing of the size of the data is held, so this is how answers are written where they would not fit.
        """
        self._check_fitted()
        return self._near.map(AnswerRows(self._all_rows(), self._calibrated()))

    def answer_all_rows(self) -> Iterator[tuple[Floats, Bools]]:
        """The same as (probabilities, is_reached), as ``answer_new_rows`` gives them for new rows."""
        self._check_fitted()
        return self._near.map(AnswerAllRows(self._all_rows(), self._calibrated()))

    def predict(self, X: Any) -> Any:
        """The class of each new row; of a Dask array a Dask array, not yet computed."""
        self._check_fitted()
        return self._of_new_rows(X, Classes(self._new_rows_only(), self._verdict()), self.classes_[:0])

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class for each new row; of a Dask array a Dask array, not yet computed."""
        self._check_fitted()
        return self._of_new_rows(X, Probabilities(self._new_rows_only(), self._calibrated()), self._no_scores())

    def decision_function(self, X: Any) -> Any:
        """Scores of new rows and ``class_offsets_``, on the scale of ``scores_``; the largest is the class of the row.

        For two classes it is one column, positive for the second. Of a row that no label reaches it says nothing:
        ``predict`` goes by the shares of the labels there.
        """
        self._check_fitted()
        like = self._no_scores()
        return self._of_new_rows(
            X, Decisions(self._new_rows_only(), self._verdict()), like[:, 0] if like.shape[1] == 2 else like
        )

    # From rows to the system, without labels

    def _check_parameters(self) -> None:
        check_integer("n_neighbors", self.n_neighbors, 1)
        check_mu(self.mu)
        self._wants_offsets = check_offsets(self.class_offsets)
        if not (isinstance(self.n_anchors, str) and self.n_anchors == "auto"):
            check_integer("n_anchors", self.n_anchors, 1, offer=", or 'auto'")
        check_seed(self.random_state)
        if isinstance(self.anchors, str):
            check_choice("anchors", self.anchors, ANCHORS)
        if not (isinstance(self.memory_limit, str) and self.memory_limit == "auto"):
            check_real("memory_limit", self.memory_limit, 0, offer=" bytes, or 'auto'")

    def _open(self, X: Any, y: Any, *, reset: bool) -> tuple[Blocks, int, Any]:
        source, y = open_rows(X, y)
        if source is None:
            source = ArrayBlocks(check_features(self, X, reset=reset))
        else:
            source = check_stream(self, source, reset=reset)
        return source, source.n, y

    def _as_built_from(self, X: Any) -> Blocks:
        return ArrayBlocks(X)

    def _build(self, rows: Blocks) -> None:
        given = None if isinstance(self.anchors, str) else given_anchors(self.anchors, self.n_features_in_)
        m, self._k = self._sizes(rows.n, given)
        rows, P, self._projection = self._lay_anchors(rows, m, given, check_seed(self.random_state))
        self.anchors_ = (P.toarray() if sp.issparse(P) else P) * self._unit
        m, self._is_one_point = P.shape[0], are_equal(P)
        self._k = min(self._k, m - 1)
        self._search, self._searched, self._n_kept = exact_search(P, rows.n, self._projection), rows.n, 0
        self._near = self._nearest(rows)
        self._gram = self._near.sum(SumProducts(m))
        self._make_system()

    def _lay_anchors(
        self, rows: Blocks, m: int, given: Any, rng: np.random.Generator
    ) -> tuple[Blocks, Any, Projection | None]:
        """The rows in the unit of the fit, the anchors, and the axes that help to search them."""
        n, d = rows.n, self.n_features_in_
        first = CheckFeatures(d)(range(1), rows.take(np.array([0]))[0][1])
        is_wide = not sp.issparse(first) and d > SPLIT_AXES
        for_axes = sample_rows(n, SAMPLE_ROWS, rng) if is_wide else np.arange(0)
        for_anchors = anchor_rows(self.anchors, n, m, rng) if given is None else np.arange(0)
        rows, X, place = self._sample(rows, np.union1d(for_axes, for_anchors))
        projection = None
        if is_wide:
            projection = principal_axes(working(X[place(for_axes)]), min(d, SEARCH_AXES))
        if given is None:
            most = partial(usual_number, k=self.n_neighbors) if self.n_anchors == "auto" else None
            P = self._find_anchors(self.anchors, X, place(for_anchors), m, projection, rng, most)
        else:
            P = given / self._unit
        return rows, sp.csr_array(P) if sp.issparse(first) else P, projection

    def _sample(self, rows: Blocks, numbers: Ints) -> tuple[Blocks, Any, Callable[[Ints], Ints]]:
        """Rows in the unit of the fit; an array that holds the rows of these numbers; and where each of them is in it.

        The unit of rows in memory is known; of others it is found from the sample, which is read in one pass.
        """
        if self._unit is not None:
            X, places = rows.some(numbers)
        else:
            numbers = np.union1d(numbers, sample_rows(rows.n, SAMPLE_ROWS, np.random.default_rng(0)))
            X, places = rows.through(CheckFeatures(self.n_features_in_)).some(numbers)
            reach = check_finite(X, FILL)
            self._unit = unit = unit_of(reach)
            X, rows = in_units(X, unit, reach), rows.through(CheckFeatures(self.n_features_in_, unit))
        return rows, X, lambda wanted: places[np.searchsorted(numbers, wanted)]

    def _sizes(self, n: int, given: Floats | None) -> tuple[int, int]:
        """Number of anchors and of neighbours for n rows."""
        k = self.n_neighbors
        if given is not None:
            m = len(given)
            remedy = "give more anchors or lower n_neighbors"
        elif self.n_anchors == "auto":
            m = usual_number(n, k)
            return m, cut_neighbors(k, m - 1, "anchors")
        else:
            m = int(self.n_anchors)
            if m > n:
                raise ParameterError(f"n_anchors={m} needs at least {m} rows, got {n}; lower n_anchors or add rows.")
            remedy = "raise n_anchors or lower n_neighbors"
        if m <= k:
            raise ParameterError(f"n_neighbors={k} needs at least {k + 1} anchors, got {m}; {remedy}.")
        return m, k

    def _found(self, rows: Blocks) -> Blocks:
        """The nearest anchors of rows, searched when they are read."""
        search = self._search
        if rows.n > self._searched:  # more rows than the search was made for may want another one
            search = exact_search(search.P, rows.n, self._projection)
        return rows.through(NearestAnchors(search, self._k))

    def _nearest(self, rows: Blocks) -> Blocks:
        """The same, and kept where they fit."""
        near = self._found(rows)
        is_short = self._search.P.dtype == np.float32
        size = near_bytes(self._k, len(self.anchors_), is_short)
        limit = rows.memory() / 2 if self.memory_limit == "auto" else float(self.memory_limit) - size * self._n_kept
        if rows.n * size > limit:
            return near
        self._n_kept += rows.n
        return near.keep()

    def _make_system(self) -> None:
        gram, n = self._gram.gram(), self._gram.n
        self._anchor_component, self.n_components_ = anchor_components(sp.csr_array(gram))
        usual = choose_mu(self.mu, ANCHORED_SHIFT, n)
        times = TIMES_OF_MU if self.mu == "auto" and len(gram) <= CHOICE_ANCHORS else (1.0,)
        System = LonePoint if self._is_one_point else AnchorSystem
        self._systems = {usual * t: System(gram, n, n * usual * t, self.n_components_) for t in times}
        self.mu_, self._operator = usual, self._systems[usual]

    # Labels

    def _extend_by(self, near: Blocks, gram: GramSum, labels: Labels) -> Self:
        """More rows after those that are there."""
        self._near, self._gram = joined(self._near, near), self._gram + gram
        self._make_system()
        return self._settle(joined_labels(self._labels, labels))

    def _settle(self, labels: Labels) -> Self:
        """Spread the labels, if there are two classes of them yet."""
        if len(labels.classes) >= 2:
            return self._take(labels)
        self._labels, self.classes_ = labels, labels.classes
        self.__dict__.pop("_kept", None)
        return self

    def _check_fitted(self) -> None:
        if hasattr(self, "_gram") and not hasattr(self, "_kept"):
            found = len(self._labels.classes)
            raise LabelError(f"the rows so far hold labels of {found} classes; give rows of two classes at least.")
        super()._check_fitted()

    def _as_chosen(self) -> Self:
        """A copy that stays with its mu, whatever labels it is given."""
        fixed = copy(self)
        fixed._systems = {self.mu_: self._operator}
        return fixed

    def _spread(self) -> None:
        labels = self._labels
        self._labelled = Near.joined([near for _, near in self._near.take(labels.rows)])
        asked = judges(labels, CHOICE_ROWS)

        def without_own(mu: float) -> Floats:
            self._spread_with(mu)
            return self._held_out(asked, ROUGH) * self._joined()[asked, None]

        self._spread_with(choose(list(self._systems), labels.codes[asked], without_own))

    def _spread_with(self, mu: float) -> None:
        labels, Z = self._labels, self._labelled.matrix(len(self.anchors_))
        self.mu_, self._operator = mu, self._systems[mu]
        self._coefficients = self._operator.of_labels(Z, labels.codes, len(labels.classes))

    def _label_components(self) -> Ints:
        return self._anchor_component[self._labelled.index[:, 0]]  # of the nearest anchor, whose weight is not 0

    def _held_out(self, places: Ints, tolerance: float) -> Floats:
        """F_i - G_ii y_i, in which the own label of a row is left out of F from the start."""
        near = self._labelled.pick(places)
        F = self._new_rows_only()(range(len(near)), near)
        share = self._operator.own_share(near.matrix(len(self.anchors_))) - 1 / self._operator.theta
        F[np.arange(len(near)), self._labels.codes[places]] -= share
        return F

    def _scores_of(self, labels: Labels, rows: Ints, tolerance: float) -> Floats:
        """For labels that are some of those of the fit, and rows that carry the others."""
        Z = self._labelled.matrix(len(self.anchors_))
        known, asked = (np.searchsorted(self._labels.rows, part) for part in (labels.rows, rows))
        return Z[asked] @ self._operator.of_labels(Z[known], labels.codes, len(labels.classes))

    def _solve(self, Y: Any, tolerance: float = TOLERANCE) -> Floats:
        """F of all rows from any labels (n, c)."""
        Y = dense(Y)
        Z = self._keep("Z", lambda: Near.joined(list(self._near.map(identity))).matrix(len(self.anchors_)))
        return Z @ self._operator.coefficients(Z.T @ Y, column_means(Y)) + Y / self._operator.theta

    # Answers

    def _new_rows_only(self) -> Scores:
        """The scores of rows without labels of their own."""
        holds_label = reached_components(self._label_components(), self.n_components_, slice(None))
        nothing = np.arange(0)
        return Scores(self._coefficients, holds_label[self._anchor_component], nothing, nothing, 0.0)

    def _all_rows(self) -> Scores:
        """The scores of the rows of the fit."""
        labels, scores = self._labels, self._new_rows_only()
        reached = scores.reached_anchors | (self._anchor_component < 0)  # an anchor that no row uses leads none astray
        own = 1 / self._operator.theta
        return replace(scores, reached_anchors=reached, labelled=labels.rows, codes=labels.codes, own=own)

    def _some_scores(self) -> Floats:
        rows, scores = some_rows_without_label(self._labels), self._new_rows_only()
        pieces = [near for _, near in self._near.take(rows)]
        if not pieces:
            return self._no_scores()
        near = Near.joined(pieces)
        return scores(range(len(near)), near)[scores.reached(near)]

    def _no_scores(self) -> Floats:
        return np.empty((0, len(self.classes_)))

    def _extend(self, X: Any) -> tuple[Floats, Bools]:
        near, scores = self._found(ArrayBlocks(X)).keep(), self._new_rows_only()
        return near.collect(scores, self._no_scores()), near.collect(Reached(scores), np.empty(0, bool))

    def _of_new_rows(self, X: Any, step: Any, like: Any) -> Any:
        rows, _, _ = self._open(X, None, reset=False)
        return self._found(rows).collect(step, like)

    def _n_unreached(self) -> int:
        """Without a pass over the rows: the weights of a row add up to 1 and lie in one component, Z'1 = Z'Z 1."""
        reached = self._all_rows().reached_anchors
        return 0 if reached.all() else round(float(self._gram.gram()[~reached].sum()))

    def _reached(self) -> Bools:
        return np.asarray(self._near.collect(Reached(self._all_rows()), np.empty(0, bool)))

    def _all_scores(self) -> Floats:
        return np.asarray(self._near.collect(self._all_rows(), self._no_scores()))

    def _transduce(self) -> Any:
        return np.asarray(self._near.collect(Classes(self._all_rows(), self._verdict()), self.classes_[:0]))

    def _distribute(self) -> Floats:
        return np.asarray(self._near.collect(Probabilities(self._all_rows(), self._calibrated()), self._no_scores()))


def check_known(labels: Labels, classes: Any) -> None:
    """Labels beyond those that were announced are refused."""
    if classes is None:
        return
    unknown = np.setdiff1d(labels.classes, np.asarray(classes))
    if len(unknown):
        raise LabelError(f"y holds the class {unknown[0]!s}, which is not among classes; add it there.")
