"""Several propagators of the same rows, of which the labels choose one by leave-one-out; none of them changes."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from greenlabel.labels.choosing import choose, comparison_labels
from greenlabel.labels.encoding import Labels
from greenlabel.operators.conjugate_gradients import TOLERANCE
from greenlabel.propagators.base import ROUGH, Propagation, Propagator, joined

Floats = NDArray[np.floating]
Group = tuple[Propagator, ...]


@dataclass(frozen=True)
class Candidates:
    """Propagators in groups: those of a group share a graph and differ in mu. The first of a group is its default."""

    groups: tuple[Group, ...]
    max_tested: int  # labelled rows that may choose

    @property
    def default(self) -> Propagator:
        return self.groups[0][0]

    def propagate(self, labels: Labels, tolerance: float = TOLERANCE) -> Propagation:
        """The labels, spread by the propagator that they choose."""
        return self.choose(labels).propagate(labels, tolerance)

    def choose(self, labels: Labels) -> Propagator:
        """The propagator that recognises the labels best: a graph at its default mu, then the mu on that graph."""
        tested = comparison_labels(labels, self.max_tested)
        codes = labels.codes[tested]

        def leave_one_out(propagator: Propagator) -> Floats:
            """Zero where no other label reaches the row."""
            is_joined = joined(propagator.components_of(labels.rows), propagator.n_components)
            return propagator.leave_one_out(labels, tested, ROUGH) * is_joined[tested, None]

        group = choose(self.groups, codes, lambda group: leave_one_out(group[0]))
        return choose(group, codes, leave_one_out)

    def only(self, propagator: Propagator) -> Self:
        """One of them, where nothing is left to choose."""
        return replace(self, groups=((propagator,),))

    def for_own_rows(self) -> Self:
        """The same, without what only new rows need."""
        groups = tuple(tuple(propagator.for_own_rows() for propagator in group) for group in self.groups)
        return replace(self, groups=groups)


def single(propagator: Propagator) -> Candidates:
    """Where there is nothing to choose."""
    return Candidates(((propagator,),), 0)
