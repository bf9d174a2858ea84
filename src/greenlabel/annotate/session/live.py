"""Labels spread over all rows after every action: one anchored graph, made once, and one mu.

    C_k = coefficients of the labels of class k (m,)        F_k = Z C_k (n,)

A label changes C_k and F_k of its own class alone; the others are taken over. What the labels say about each other
comes from the Green kernel H of the anchors (inspection/coverage.py), which is held as a whole, so that no system is
solved for it:

    G_il = z_i' H z_l / theta - 1 / (s n)        the influence of label l on row i != l;  theta = 1 + s, s = n mu

Class offsets and temperature are those of LabelledGraph. mu is never chosen anew: the map must not flip by itself.

Z (n, m) mixing weights     C (m, c)     F (n, c)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.parameters import choose_mu
from greenlabel.annotate.session.anchoring import mix
from greenlabel.annotate.session.frames import NONE, Columns, HeldColumns, MixedColumns, as_byte, decide
from greenlabel.estimators.labelled import LabelledGraph
from greenlabel.graph.similarity import reached_components
from greenlabel.inspection.coverage import Covered, Kernel
from greenlabel.labels.encoding import Labels, ScoreDecoder, evenly
from greenlabel.operators.anchored import AnchoredGreen, AnchorSystem
from greenlabel.operators.conjugate_gradients import TOLERANCE
from greenlabel.operators.repeated import LonePoint
from greenlabel.propagators.anchored import ANCHORED_SHIFT
from greenlabel.propagators.base import Propagation, Propagator, unlabelled_sample

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]

HELD_BYTES = 2**29  # of scores; more are mixed anew for each frame
COVER_LABELS = 1000  # labels whose cover is looked at
LABELS_AT_ONCE = 256  # rows times anchors that are in memory


class LiveGraph(Propagator):
    """The graph of all rows and its operator, which know no labels."""

    operator: AnchoredGreen

    def __init__(self, X: Any, seed: int):
        self.mixing = mixing = mix(X, seed)
        self.Z = mixing.Z
        self.n, self.m = self.Z.shape
        self.component, self.n_components = mixing.component, mixing.n_components
        self.mu = choose_mu("auto", ANCHORED_SHIFT, self.n)
        self.shift = self.n * self.mu
        System = LonePoint if mixing.is_one_point else AnchorSystem
        self.operator = AnchoredGreen(System(mixing.gram, self.n, self.shift, self.n_components), lambda: self.Z)
        self.kernel = Kernel.of(mixing.gram, self.shift)

    @property
    def constant(self) -> float:
        """1 / (s n): what centring takes from the influence of every label on every row."""
        return 1 / (self.shift * self.n)

    @cached_property
    def row_component(self) -> Ints | None:
        """Of each row (n,); None where there is one alone."""
        if self.n_components == 1:
            return None
        return self.component[self.Z.indices[self.Z.indptr[:-1]]]

    def components_of(self, rows: Ints) -> Ints:
        return np.zeros(len(rows), np.intp) if self.row_component is None else self.row_component[rows]

    def mixed(self, rows: Ints) -> sp.csr_array:
        """Z of some rows, in double precision."""
        return self.Z[rows].astype(np.float64)

    def coefficients(self, members: Mapping[int, Ints]) -> dict[int, Floats]:
        """C_k (m,) of each class, from its labelled rows."""
        if not members:
            return {}
        Z = self.mixed(np.concatenate(list(members.values())))
        codes = np.repeat(np.arange(len(members)), [len(part) for part in members.values()])
        return dict(zip(members, self.operator.of_labels(Z, codes, len(members)).T, strict=True))

    def influence(self, rows: Ints, labelled: Ints) -> Floats:
        """G_il (r, l) through the anchors."""
        if self.mixing.is_one_point:  # rows do not differ, so the shares of the labels are the scores of each
            return np.full((len(rows), len(labelled)), 1 / self.n)
        reach = np.asarray(self.mixed(labelled) @ (self.mixed(rows) @ self.kernel.H).T).T
        return reach / (1 + self.shift) - self.constant

    def own_influence(self, rows: Ints) -> Floats:
        """G_ii (r,) through the anchors."""
        if self.mixing.is_one_point:
            return np.full(len(rows), 1 / self.n)
        parts = [slice(start, start + LABELS_AT_ONCE) for start in range(0, len(rows), LABELS_AT_ONCE)]
        found = [np.zeros(0)]
        for part in parts:
            Z = self.mixed(rows[part])
            found.append(np.asarray(Z.multiply(Z @ self.kernel.H).sum(axis=1)).ravel())
        return np.concatenate(found) / (1 + self.shift) - self.constant

    def spread(self, members: Mapping[int, Ints], before: "Solved | None" = None) -> "Solved":
        """Labels, {class: its rows}, spread over all rows; what ``before`` has of the same labels is taken over."""
        known = before.members if before is not None else {}
        members = {number: members[number] for number in sorted(members) if len(members[number])}
        kept = {number for number, rows in members.items() if number in known and np.array_equal(known[number], rows)}
        new = self.coefficients({number: rows for number, rows in members.items() if number not in kept})
        C = {number: before.C[number] if before and number in kept else new[number] for number in members}
        F: dict[int, NDArray[np.float32]] = {}
        if 4 * self.n * len(members) <= HELD_BYTES:
            held = before.F if before is not None else {}
            F = {
                number: held[number] if number in kept and number in held else self.Z @ C[number].astype(np.float32)
                for number in members
            }
        return Solved(self, members, C, F)


class LivePropagation(Propagation):
    """Labels on the live graph, whose coefficients C (m, c) are known."""

    propagator: LiveGraph

    def __init__(self, live: LiveGraph, labels: Labels, C: Floats):
        self.propagator, self.labels, self.C = live, labels, C

    def leave_one_out(self, indices: Ints, tolerance: float = TOLERANCE) -> Floats:
        rows = self.labels.rows[indices]
        F = np.asarray(self.propagator.mixed(rows) @ self.C)
        F[np.arange(len(rows)), self.labels.codes[indices]] -= self.propagator.own_influence(rows)
        return F

    def sampled_scores(self) -> Floats:
        rows = unlabelled_sample(self.labels)
        if self.propagator.row_component is not None:
            holds_label = reached_components(self.label_components(), self.propagator.n_components, slice(None))
            rows = rows[holds_label[self.propagator.components_of(rows)]]
        return np.asarray(self.propagator.mixed(rows) @ self.C)

    def influence(self, rows: Ints) -> Floats:
        """Through the anchors: a label adds 1 / theta to its own row beside that."""
        return self.propagator.influence(rows, self.labels.rows)


@dataclass(frozen=True, eq=False)
class Solved:
    """Labels spread over all rows. A preview is another one, which shares all but a class or two."""

    live: LiveGraph
    members: dict[int, Ints]  # labelled rows of each class that has some, by its id
    C: dict[int, Floats]
    F: dict[int, NDArray[np.float32]]  # nothing where it would be too much

    @property
    def ids(self) -> list[int]:
        return list(self.members)

    @cached_property
    def labels(self) -> Labels:
        sizes = [len(rows) for rows in self.members.values()]
        rows = np.concatenate([np.empty(0, np.intp), *self.members.values()])
        codes = np.repeat(np.arange(len(sizes)), sizes)
        order = np.argsort(rows, kind="stable")
        return Labels(self.live.n, np.array(self.ids, np.int64), rows[order], codes[order])

    @cached_property
    def coefficients(self) -> Floats:
        """C (m, c)."""
        return np.column_stack(list(self.C.values()))

    @cached_property
    def propagation(self) -> LivePropagation:
        return LivePropagation(self.live, self.labels, self.coefficients)

    @cached_property
    def fitted(self) -> LabelledGraph:
        """Class offsets and temperature; there are labels of two classes."""
        return LabelledGraph(self.propagation, True)

    @property
    def decoder(self) -> ScoreDecoder:
        return self.fitted.calibrated

    @cached_property
    def predictions(self) -> tuple[Bytes, Bytes]:
        """(n,) the index of each row's class in ``ids`` (NONE where no label reaches it), and its confidence."""
        n = self.live.n
        if not self.members:
            return np.full(n, NONE, np.uint8), np.zeros(n, np.uint8)
        if len(self.members) == 1:
            codes, confidence = np.zeros(n, np.uint8), as_byte(self.live.Z @ self.cover.astype(np.float32))
        else:
            codes, confidence = decide(self._columns(), self.fitted.offsets, self.fitted.temperature)
        reached = self.reached
        if reached is not None:
            codes[~reached], confidence[~reached] = NONE, 0
        return codes, confidence

    def _columns(self) -> Columns:
        if self.F:
            return HeldColumns(list(self.F.values()))
        return MixedColumns(self.live.Z, self.coefficients.astype(np.float32))

    @cached_property
    def cover(self) -> Floats:
        """(m,) how close each anchor is to its nearest label. With one class there is nothing else to tell."""
        return Covered.by(self.live.kernel, self.live.mixed(evenly(self.labels.rows, COVER_LABELS))).cover

    @cached_property
    def reached(self) -> Bools | None:
        """(n,) which rows are in a component with a label; None where all are."""
        component = self.live.row_component
        if component is None:
            return None
        return reached_components(component[self.labels.rows], self.live.n_components, slice(None))[component]

    def is_reached(self, rows: Ints) -> Bools:
        return np.ones(len(rows), bool) if self.reached is None else self.reached[rows]

    def probabilities(self, rows: Ints) -> Floats:
        """(r, c) of some rows without their own labels; 0 where no label reaches a row."""
        if len(self.members) < 2:
            p = np.asarray(self.live.Z[rows] @ self.cover)[:, None] if self.members else np.zeros((len(rows), 0))
        else:
            p = self.decoder.probabilities(self.scores(rows), np.ones(len(rows), bool))
        return p * self.is_reached(rows)[:, None]

    def scores(self, rows: Ints) -> Floats:
        """F (r, c) of some rows by all labels but their own."""
        F = np.asarray(self.live.mixed(rows) @ self.coefficients)
        labelled, index = labelled_among(self.labels, rows)
        F[labelled] = self.propagation.leave_one_out(index)
        return F


def labelled_among(labels: Labels, rows: Ints) -> tuple[Ints, Ints]:
    """Which of the rows carry a label, and its index."""
    if not len(labels.rows):
        return np.empty(0, np.intp), np.empty(0, np.intp)
    index = np.minimum(np.searchsorted(labels.rows, rows), len(labels.rows) - 1)
    labelled = np.flatnonzero(labels.rows[index] == rows)
    return labelled, index[labelled]
