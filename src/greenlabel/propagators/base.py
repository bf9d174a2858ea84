"""The core of the package: a graph with its operator, and labels spread over it.

    Propagator      a graph and its operator; built without labels, so labels may change
    Propagation     labels on a propagator: F = G Y, leave-one-out, which rows a label reaches
    Predictor       what new rows need of a propagation, and nothing else of the size of the data

    propagator.propagate(labels) -> propagation          propagation.predictor() -> predictor

Y (n, c) labels     F (n, c) scores     l labelled rows; *indices* 0 ... l - 1 count among these
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel.graph.distances import row_blocks
from greenlabel.graph.projection import sample_rows
from greenlabel.graph.similarity import reached_components
from greenlabel.labels.encoding import Labels, ScoreDecoder
from greenlabel.operators.conjugate_gradients import TOLERANCE
from greenlabel.operators.green import GreenOperator

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

EXACT = 1e-11  # tolerance of influences, whose sums are to be the scores to 1e-9 of the largest
LABELS_AT_ONCE = 128  # columns of G that are held in memory
ROUGH = 1e-2  # tolerance of leave-one-out scores by which a parameter or a temperature is chosen
SHARE_ROWS = 4096  # rows whose scores show the shares of the classes in the data


class Propagator:
    """A graph and its operator, for n rows in ``n_components`` connected components."""

    n: int
    n_components: int
    graph: Any
    operator: GreenOperator
    k: int  # neighbours of each row, or anchors
    mu: float | None = None  # the similarity that every pair of rows gains, where the method has one

    def propagate(self, labels: Labels, tolerance: float = TOLERANCE) -> "Propagation":
        """The labels, spread over all rows."""
        raise NotImplementedError

    def components_of(self, rows: Ints) -> Ints:
        """The component of each of these rows."""
        raise NotImplementedError

    def leave_one_out(self, labels: Labels, indices: Ints, tolerance: float = TOLERANCE) -> Floats:
        """Scores (len(indices), c) of some labelled rows, each by all other labels."""
        return self.propagate(labels, tolerance).leave_one_out(indices, tolerance)

    def for_own_rows(self) -> "Propagator":
        """The same, without what only new rows need."""
        return self

    def solve(self, Y: Any, tolerance: float = TOLERANCE) -> Floats:
        """F = G Y (n, c)."""
        return self.operator.solve(Y, tolerance)

    def columns(self, rows: Ints, tolerance: float = TOLERANCE) -> Floats:
        """G[:, rows] (n, len(rows)): the influence of single labels."""
        return self.operator.columns(rows, tolerance)


class Predictor:
    """Scores of new rows."""

    def scores(self, X: Any) -> tuple[Floats, Bools]:
        """F of new rows, and which of them a label reaches."""
        raise NotImplementedError


class Propagation:
    """Labels on a propagator."""

    propagator: Propagator
    labels: Labels

    @cached_property
    def scores(self) -> Floats:
        """F of all rows (n, c)."""
        raise NotImplementedError

    @cached_property
    def reached(self) -> Bools:
        """Which rows are in a component with a label (n,)."""
        raise NotImplementedError

    def leave_one_out(self, indices: Ints, tolerance: float = TOLERANCE) -> Floats:
        """Scores (len(indices), c) of some labelled rows, each by all other labels."""
        raise NotImplementedError

    def rough_leave_one_out(self, indices: Ints) -> Floats:
        """The same, as cheap as it can be."""
        return self.leave_one_out(indices, ROUGH)

    def scores_with(self, labels: Labels, rows: Ints, tolerance: float) -> Floats:
        """F of some labelled rows, if these were the only labels."""
        raise NotImplementedError

    def predictor(self) -> Predictor:
        raise NotImplementedError

    def influence(self, rows: Ints) -> Floats:
        """The part of each label in the scores of some rows (len(rows), l), which labels of a class add up to."""
        raise NotImplementedError

    def influence_of_others(self, indices: Ints) -> Floats:
        """The same of labelled rows, where only the parts of the other labels count: those without a row's own one."""
        return self.influence(self.labels.rows[indices])

    def influence_on_new_rows(self, X: Any) -> Floats:
        """The same for new rows."""
        raise NotImplementedError

    def scores_of(self, rows: Ints) -> tuple[Floats, Bools]:
        """F of some rows, and which of them a label reaches."""
        return self.scores[rows], self.reached[rows]

    def n_unreached(self) -> int:
        return int((~self.reached).sum())

    def classify(self, decoder: ScoreDecoder) -> NDArray[Any]:
        """The class of each row (n,)."""
        blocks = row_blocks(*self.scores.shape)
        return np.concatenate([decoder.classify(self.scores[rows], self.reached[rows]) for rows in blocks])

    def probabilities(self, decoder: ScoreDecoder) -> Floats:
        """The probability of each class for each row (n, c)."""
        return decoder.probabilities(self.scores, self.reached)

    def sampled_scores(self) -> Floats:
        """F of a sample of the unlabelled rows that are reached."""
        rows = unlabelled_sample(self.labels)
        return self.scores[rows[self.reached[rows]]]

    def label_components(self) -> Ints:
        """The component of each labelled row (l,)."""
        return self.propagator.components_of(self.labels.rows)

    def joined(self) -> Bools:
        """Labelled rows that another label reaches (l,)."""
        return joined(self.label_components(), self.propagator.n_components)

    def recognisable(self) -> Bools:
        """Labelled rows that the other labels can recognise (l,): one reaches the row, and one has its class."""
        return self.joined() & (self.labels.counts[self.labels.codes] > 1)

    def out_of_fold(self, fold: Ints, tolerance: float) -> Floats:
        """Scores (l, c) of each labelled row without the labels of its fold (l,).

        They are zero where the fold is -1, which is never left out, and where no other label reaches the row.
        """
        F = np.zeros((len(fold), len(self.labels.classes)))
        component = self.label_components()
        for number in np.unique(fold[fold >= 0]):
            out = fold == number
            left = self.labels.without(out)
            holds_label = reached_components(component, self.propagator.n_components, np.flatnonzero(~out))
            F[out] = self.scores_with(left, self.labels.rows[out], tolerance) * holds_label[component[out], None]
        return F


def one_class_each(labels: Labels, indices: Ints) -> Labels:
    """Some of the labels, each as a class of its own: the scores of a class are then the influence of a label."""
    numbers = np.arange(len(indices))
    return Labels(labels.n, numbers, labels.rows[indices], numbers)


def in_parts(indices: Ints) -> list[Ints]:
    """As many indices at a time as there may be columns of G in memory."""
    return [indices[start : start + LABELS_AT_ONCE] for start in range(0, len(indices), LABELS_AT_ONCE)]


def joined(label_components: Ints, n_components: int) -> Bools:
    """Labelled rows whose component holds another label."""
    return np.bincount(label_components, minlength=n_components)[label_components] > 1


def unlabelled_sample(labels: Labels) -> Ints:
    """Unlabelled rows, ascending: the same sample for the same number of rows, less those that are labelled."""
    return np.setdiff1d(sample_rows(labels.n, SHARE_ROWS, np.random.default_rng(0)), labels.rows)
