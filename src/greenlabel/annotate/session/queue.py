"""What to label next: rows that stand for most of what no label covers, and one in five drawn at random.

The rule is that of `suggest` (inspection/coverage.py), on the anchors of the live graph. Of many rows only those can
come that are typical of an anchor, some for each; when they are used up, all can.

Rows drawn at random tell how good the predictions are (accuracy.py). Which turn is such a one, and which row comes,
follow from the seed of the journal alone: never from features, and the same after a restart.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel.annotate.session.labels import State
from greenlabel.annotate.session.live import LiveGraph, Solved
from greenlabel.graph.duplicates import AllDistinct, Nodes, distinct_rows
from greenlabel.inspection.asking import Sketch, are_far, stands_for
from greenlabel.inspection.coverage import copies, margins, trust
from greenlabel.inspection.equal_rows import n_unlabelled, one_of_each, undecided_groups
from greenlabel.inspection.suggesting import between, reason, reason_again
from greenlabel.labels.encoding import Labels, evenly

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

AUDIT_EVERY = 5
AUDIT_REASON = "drawn at random: tells how good the predictions are"
ROWS_PER_ANCHOR = 8  # typical rows of each anchor that can come
ALL_ROWS = 2**14  # up to so many rows all can
COVER_LABELS = 1000  # labels whose cover is looked at
ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Asked:
    """A row that is asked for."""

    row: int
    reason: str
    covers: int
    between: tuple[int, ...]  # ids of classes
    audit: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "row": self.row,
            "reason": self.reason,
            "covers": self.covers,
            "between": list(self.between),
            "audit": self.audit,
        }


class Audits:
    """Rows drawn at random, in an order that the seed alone decides."""

    def __init__(self, n: int, seed: int):
        self._seed = seed
        self._order = np.random.default_rng([seed, 0]).permutation(n).astype(np.int32)

    def is_turn(self, turn: int) -> bool:
        """Whether the label of this turn is one: once in every AUDIT_EVERY but the first few, at a place of its own."""
        group, place = divmod(turn, AUDIT_EVERY)
        return group > 0 and int(np.random.default_rng([self._seed, 1, group]).integers(AUDIT_EVERY)) == place

    def next_rows(self, count: int, is_open: Bools) -> list[int]:
        """The next rows of the order that are open."""
        found: list[int] = []
        for start in range(0, len(self._order), ROWS_AT_ONCE):
            part = self._order[start : start + ROWS_AT_ONCE]
            found += part[is_open[part]][: count - len(found)].tolist()
            if len(found) >= count:
                break
        return found


def can_be_drawn(state: State) -> Bools:
    """(n,) rows that may be drawn at random: nobody has answered, skipped or ignored them."""
    marks = state.marks
    found = (marks["origin"] == 0) & ~marks["ignored"] & (marks["skipped"] == 0)
    found[list(state.answered)] = False
    return np.asarray(found, bool)


def queue(coverage: "Coverage", audits: Audits, solved: Solved, state: State, n: int) -> list[Asked]:
    """The next n rows, each in its turn; fewer only where no more are left."""
    turns = range(state.n_turns, state.n_turns + n)
    n_drawn = sum(map(audits.is_turn, turns))
    drawn = audits.next_rows(n_drawn, can_be_drawn(state)) if n_drawn else []
    names = {one.id: one.name for one in state.classes}
    chosen = iter(coverage.ask(solved, state, n - len(drawn), names, drawn))
    at_random = iter([Asked(row, AUDIT_REASON, 1, (), True) for row in drawn])
    order = [next(at_random if audits.is_turn(turn) else chosen, None) for turn in turns]
    return [one for one in [*order, *at_random, *chosen] if one is not None]


def typical_rows(Z: sp.csr_array) -> Ints:
    """Rows that can come, ascending: of each anchor those that it is the heaviest of, and that have it most.

    All rows where they are few.
    """
    n = Z.shape[0]
    if n <= ALL_ROWS:
        return np.arange(n)
    heaviest = np.maximum.reduceat(Z.data, Z.indptr[:-1])
    rows = np.repeat(np.arange(n), np.diff(Z.indptr))
    entries = np.flatnonzero(Z.data == heaviest[rows])
    order = entries[np.lexsort((-Z.data[entries], Z.indices[entries]))]
    anchor = Z.indices[order]
    rank = np.arange(len(order)) - np.searchsorted(anchor, anchor, side="left")
    return np.unique(rows[order[rank < ROWS_PER_ANCHOR]])


class Coverage:
    """Rows to label next by what labels cover."""

    def __init__(self, live: LiveGraph, X: Any):
        self._live, self._typical = live, typical_rows(live.Z)
        self._nodes = distinct_rows(X) if live.n <= ALL_ROWS else None

    def ask(self, solved: Solved, state: State, n: int, names: dict[int, str], excluded: list[int]) -> list[Asked]:
        """The n best rows; ``excluded`` ones do not come. Skipped rows come when no others are left."""
        marks = state.marks
        closed, skipped = (marks["origin"] > 0) | marks["ignored"], marks["skipped"] > 0
        closed[excluded] = True
        found = self._ask_again(solved, ~closed, skipped, n)
        closed[[one.row for one in found]] = True
        for rows in (self._typical[~skipped[self._typical]], np.flatnonzero(~skipped), None):
            if len(found) >= n:
                break
            rows = np.flatnonzero(~closed) if rows is None else rows[~closed[rows]]
            found += self._ask(solved, rows, n - len(found), names) if len(rows) else []
            closed[[one.row for one in found]] = True
        return found

    def _ask_again(self, solved: Solved, may_come: Bools, skipped: Bools, n: int) -> list[Asked]:
        """Rows that equal labelled ones and want another label; none that equals a skipped one."""
        if self._nodes is None:
            return []
        of_row, labels = self._nodes.of_row, solved.labels
        size, of_labels = np.bincount(of_row), of_row[labels.rows]
        groups = undecided_groups(size, of_labels, labels.codes)
        rows = one_of_each(groups[~np.isin(groups, of_row[skipped])], of_row, may_come)[:n]
        if not len(rows):
            return []
        counts, p = n_unlabelled(size, of_row[rows], of_labels), solved.probabilities(rows)
        return [
            Asked(row, reason_again(count), count, between(of_one, labels.classes))
            for row, count, of_one in zip(rows.tolist(), counts, p, strict=True)
        ]

    def _ask(self, solved: Solved, open_rows: Ints, n: int, names: dict[int, str]) -> list[Asked]:
        labels = some_labels(solved.labels)
        rows = np.concatenate([open_rows, labels.rows])
        labelled = np.arange(len(open_rows), len(rows))
        look = self._sketch(rows)
        p = solved.probabilities(open_rows)
        sure = np.zeros(len(rows))
        if len(labels.classes) > 1:
            sure[: len(open_rows)] = trust(solved.labels.codes) * margins(p)
        chosen = look.next_rows(n, labelled, sure, np.empty(0, np.intp))
        counts, far = stands_for(look, labelled, chosen), are_far(look, labelled, chosen)
        reached = solved.is_reached(rows[chosen])
        ids, known = labels.classes, np.array([names[number] for number in labels.classes.tolist()])
        return [
            Asked(int(rows[i]), reason(count, p[i], bool(is_reached), bool(is_far), known), count, between(p[i], ids))
            for i, count, is_reached, is_far in zip(chosen.tolist(), counts, reached, far, strict=True)
        ]

    def _sketch(self, rows: Ints) -> Sketch:
        Z = sp.csr_array(self._live.Z[rows], dtype=np.float64)
        nodes = AllDistinct() if self._nodes is None else renumbered(self._nodes.of_row[rows])
        return Sketch(Z, self._live.kernel, copies(Z), nodes)


def some_labels(labels: Labels) -> Labels:
    """All labels, or an even choice of many."""
    some = evenly(np.arange(len(labels.rows)), COVER_LABELS)
    return Labels(labels.n, labels.classes, labels.rows[some], labels.codes[some])


def renumbered(node: Ints) -> Nodes:
    """Nodes of some of the rows."""
    _, first, of_row = np.unique(node, return_index=True, return_inverse=True)
    return Nodes(np.sort(first), np.argsort(np.argsort(first))[of_row.ravel()])
