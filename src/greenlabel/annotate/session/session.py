"""A labelling session: the state of the labels, and what follows from it. All that a server needs, without one.

    journal -> state -> live predictions -> frame, card, queue, suspects, accuracy

One thread calls it, except that settle_map may run in another one.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import greenlabel
from greenlabel.annotate.session import accuracy, facts, plane
from greenlabel.annotate.session.actions import Action, checked_class, checked_rows, read_action
from greenlabel.annotate.session.child import Child
from greenlabel.annotate.session.frames import NONE, Frame
from greenlabel.annotate.session.labels import HAND, Change
from greenlabel.annotate.session.live import LiveGraph, Solved
from greenlabel.annotate.session.opening import open_journal
from greenlabel.annotate.session.queue import Asked, Audits, Coverage, can_be_drawn, queue
from greenlabel.annotate.session.settled import Settled, Settling, why_not
from greenlabel.annotate.session.showing import (
    BLEND,
    Comparison,
    audits_right,
    blend_frame,
    compare,
    live_frame,
    nothing,
)
from greenlabel.annotate.session.sources import Source
from greenlabel.errors import ParameterError
from greenlabel.inspection.suspicion import contradicted

Ints = NDArray[np.integer]

STAGES = {"graph": "Building the graph of the rows", "map": "Making the map", "ready": "Ready"}
MAX_QUEUE = 1000
ASKED_BEFORE = 5  # audits that a page may have on its list while the server is started again
MAX_TESTED = 1000  # labels that are looked at for suspects; an even choice of more


class Session:
    """Labels of a table, and what they say about its rows."""

    def __init__(
        self, source: Source, journal_path: Path | str, *, cache_dir: Path | str | None = None, random_state: int = 0
    ):
        self._source, self._seed = source, random_state
        self._cache = None if cache_dir is None else Path(cache_dir)
        opened = open_journal(source, Path(journal_path), random_state)
        self._journal, self._state, self._ids = opened.journal, opened.state, opened.ids
        self._curve, self._notes = opened.curve, opened.notes
        self._audits = Audits(source.n, self._journal.header["seed"])
        self._offered: set[int] = set()  # rows that were asked as audits
        self._recent, self._settling = accuracy.Recent(), Settling()
        self._stage = "graph"
        self._map = (0, np.zeros((source.n, 2), np.float32))
        self._map_child: Child | None = None
        self._is_closed = False
        self._live: LiveGraph | None = None
        self._solved: Solved | None = None
        self._live_frame = self._frame = nothing(source.n, self._state.n_actions)  # generations go on after a restart
        self._comparison = Comparison("live", "No graph is there yet.")
        self._labelled = self._frame.generation  # the generation in which labels changed last
        self._right = np.zeros(0, bool)
        self._queue: list[Asked] = []
        self._suspects: list[dict[str, Any]] | None = []

    # Preparation and end

    def prepare(self, announce: Callable[[str], Any] = lambda name: None) -> None:
        """The graph, the first map and the first predictions; after it everything works."""
        announce("graph")
        live = LiveGraph(self._source.X, self._seed)
        self._coverage = Coverage(live, self._source.X)
        self._map = (1, plane.first_plane(live.mixing))
        self._live, self._solved = live, live.spread(self._state.members())
        for past in self._state.before_last(accuracy.RECENT):  # a restart forgets nothing
            self._recent.add(live_frame(live.spread(past.members(), self._solved), past, 0).classes)
        self._show()
        self._stage = "map"
        announce("map")

    def settle_map(self) -> None:
        """The map that stays; its positions are swapped in at once. May run in another thread."""
        live = self._prepared()[0]
        points = plane.points_to_lay_out(live.mixing, self._source.X)
        Q = plane.layout(points, self._cache, self._hold)
        if Q is not None and not self._is_closed:
            self._map = (2, plane.settled_plane(live.mixing, Q, self._seed))
        self._stage = "ready"

    def _hold(self, child: Child) -> None:
        self._map_child = child
        if self._is_closed:
            child.close()

    def close(self) -> None:
        """End what is under way, and let go of the journal."""
        self._is_closed = True
        self._settling.outdated()
        if self._map_child is not None:
            self._map_child.close()
        self._journal.close()

    def _prepared(self) -> tuple[LiveGraph, Solved]:
        if self._live is None or self._solved is None:
            raise ParameterError("the graph is not there yet; wait until it is.")
        return self._live, self._solved

    # What is done

    def act(self, action: dict[str, Any]) -> None:
        """Do something: it is on disk before it counts. The same id twice is done once."""
        wanted = read_action(action, self._source.n)
        if wanted.id in self._ids:
            return
        change = self._state.change(wanted)
        if wanted.audit:
            self._check_drawn(int(wanted.rows[0]))
        self._journal.append(wanted.as_line() | self._as_things_are(wanted))
        self._remember(wanted, change)
        self._state.apply(wanted, change)
        self._ids.add(wanted.id)
        if change.changes_labels:
            self._labelled = self._frame.generation + 1
            self._settling.outdated()
            if self._live is not None:
                self._solved = self._live.spread(self._state.members(), self._solved)
        self._show()

    def _check_drawn(self, row: int) -> None:
        """An audit was asked for, by this process or before a restart, which the seed tells; and never answered."""
        if row in self._state.answered:
            raise ParameterError(f"row {row} was answered before, so its prediction is known; send it without audit.")
        is_drawn = row in self._offered or row in self._audits.next_rows(ASKED_BEFORE, can_be_drawn(self._state))
        if not is_drawn:
            raise ParameterError(f"row {row} was not drawn at random; send its label without audit.")

    def _as_things_are(self, action: Action) -> dict[str, Any]:
        """What a line tells beside the action: the accuracy until now, and what was predicted for an audit."""
        found: dict[str, Any] = {}
        if self._curve.points:
            found["accuracy"] = list(self._curve.points[-1])
        if action.audit:
            found["predicted"] = self._class_id(self._frame.classes[action.rows[0]])
        return found

    def _remember(self, action: Action, change: Change) -> None:
        """Keep the predictions before labels are given; forget them where classes cannot be compared any more."""
        if not change.keeps_classes:
            self._recent.forget()
        elif change.is_labelling and action.do == "undo":
            self._recent.take_back()
        elif change.is_labelling:
            self._recent.add(self._live_frame.classes)

    def _show(self) -> None:
        """All that is seen, after labels or models have changed."""
        self._queue, self._suspects = [], None
        if self._solved is None:
            self._frame = self._frame._replace(generation=self._frame.generation + 1)
            return
        blend = self._settling.found
        generation = self._frame.generation + 1
        self._live_frame = live_frame(self._solved, self._state, generation)
        why = why_not(self._source.X, self._solved.labels)
        self._comparison = compare(self._solved, self._state, blend, why)
        self._frame = self._live_frame if self._blend is None else blend_frame(self._blend, self._state, generation)
        self._right = audits_right(self._solved, self._state, self._blend)
        self._curve.add(len(self._state.labelled), len(self._right), int(self._right.sum()))

    @property
    def _blend(self) -> Settled | None:
        """The blend, where it is shown."""
        return self._settling.found if self._comparison.model == BLEND else None

    def rest(self) -> bool:
        """Hands rest: the blend is started, or collected. True where the frame has changed."""
        _, solved = self._prepared()
        if not self._settling.rest(self._source.X, solved.labels):
            return False
        self._show()
        return True

    def save(self, report: bool, model: bool) -> dict[str, Any]:
        labels, ignored = self.given_now()
        return self._source.save(labels, ignored, report, model)

    def given_now(self) -> tuple[dict[int, str], set[int]]:
        """{row: class} of all labels, and the ignored rows."""
        names = {one.id: one.name for one in self._state.classes}
        rows = self._state.labelled
        labels = self._state.marks["label"][rows]
        given = {row: names[label] for row, label in zip(rows.tolist(), labels.tolist(), strict=True)}
        return given, set(np.flatnonzero(self._state.marks["ignored"]).tolist())

    # What is seen

    def state(self) -> dict[str, Any]:
        """Everything but the rows, as JSON."""
        frame = self._frame
        return {
            "generation": frame.generation,
            "labelled": self._labelled,
            "map": self._map[0],
            "n": self._source.n,
            "identity": self.identity,
            "table": self._source.name,
            "target": self._source.target,
            "kind": self._source.kind,
            "version": greenlabel.__version__,
            "stage": self.stage,
            "classes": facts.class_facts(self._state, frame),
            **facts.label_facts(self._state, frame),
            "shown": self._comparison.as_json(),
            "accuracy": self._accuracy(),
            "notes": self.notes,
            "suspects": len(self.suspects()),
        }

    @property
    def identity(self) -> str:
        """Of the table and the column: what a page has to send for another one must not be done here."""
        return hashlib.sha256(f"{self._source.fingerprint}\n{self._source.target}".encode()).hexdigest()[:32]

    @property
    def stage(self) -> dict[str, Any]:
        return {"name": self._stage, "sentence": STAGES[self._stage], "done": None}

    @property
    def notes(self) -> list[str]:
        """Sentences for the user."""
        return list(self._notes)

    def _accuracy(self) -> dict[str, Any]:
        changed = self._recent.changed(self._live_frame.classes)
        known = accuracy.facts(len(self._right), int(self._right.sum()))
        return known | {"curve": self._curve.shown(), "changed": changed, "times": self._recent.times}

    def positions(self) -> tuple[int, NDArray[np.float32]]:
        """The version of the map, and where each row is (n, 2)."""
        return self._map

    def frame(self) -> Frame:
        return self._frame

    def card(self, row: int, hide: bool = False) -> dict[str, Any]:
        """A row as a person sees it; with ``hide`` without its prediction."""
        row = int(checked_rows([row], self._source.n)[0])
        picture = self._source.picture(row) is not None
        seen = {"fields": [list(pair) for pair in self._source.fields(row)], "text": self._source.text(row)}
        card = facts.row_facts(self._state, row) | seen | {"picture": picture}
        return card | (facts.HIDDEN if hide else self._prediction(row))

    def _prediction(self, row: int) -> dict[str, Any]:
        _, solved = self._prepared()
        if self._blend is not None:
            return facts.prediction_facts(solved, row, self._blend.ids, self._blend.p[row], True)
        p = solved.probabilities(np.array([row]))[0]
        return facts.prediction_facts(solved, row, solved.ids, p, bool(p.any()))

    def queue(self, n: int) -> list[dict[str, Any]]:
        """What to label next, best first."""
        _, solved = self._prepared()
        n = min(n, MAX_QUEUE)
        if len(self._queue) < n:
            self._queue = queue(self._coverage, self._audits, solved, self._state, n)
            self._offered |= {one.row for one in self._queue if one.audit}
        return [one.as_json() for one in self._queue[:n]]

    def suspects(self) -> list[dict[str, Any]]:
        """Labels that the others contradict, the most probable mistakes first; without those that were kept."""
        if self._suspects is None:
            self._suspects = self._found_suspects()
        return self._suspects

    def _found_suspects(self) -> list[dict[str, Any]]:
        if self._solved is None or len(self._solved.members) < 2:
            return []
        found = contradicted(self._solved.fitted, self._solved.labels.classes, MAX_TESTED)
        return [
            {
                "row": one.row,
                "given": int(one.given),
                "suggested": int(one.suggested),
                "probability": round(one.probability, 4),
            }
            for one in found
            if not self._state.marks["kept"][one.row]
        ]

    def of_class(self, class_id: int, n: int) -> list[int]:
        """Rows predicted to be of a class, the least confident first; a list would give away what a draw is to hide."""
        wanted = self._state.class_of(checked_class(class_id))
        marks = self._state.marks
        is_listed = (marks["origin"] == 0) & ~marks["ignored"]
        is_listed[[one.row for one in self._queue if one.audit]] = False
        rows = np.flatnonzero((self._frame.classes == self._state.classes.index(wanted)) & is_listed)
        return rows[np.argsort(self._frame.confidence[rows], kind="stable")[:n]].tolist()

    def search(self, words: str, n: int) -> list[int]:
        return self._source.search(words, n)

    def selection(self, rows: list[int], class_id: int | None = None) -> dict[str, Any]:
        """What is in a selection, and what would change if all of it got this label."""
        live, _ = self._prepared()
        chosen = checked_rows(rows, self._source.n)
        ids = [one.id for one in self._state.classes]
        return {
            "size": len(chosen),
            "labelled": int(np.count_nonzero(self._state.marks["origin"][chosen])),
            "mix": facts.mix_of(ids, self._frame.classes[chosen]),
            "least_typical": facts.least_typical(live.kernel, live.Z[chosen], chosen),
            "changes": None if class_id is None else self._preview(chosen, checked_class(class_id), ids),
        }

    def _preview(self, rows: Ints, class_id: int, ids: list[int]) -> dict[str, Any]:
        """Predictions that these labels would change: another solve, which nobody hears of."""
        live, solved = self._prepared()
        self._state.class_of(class_id)
        after = self._state.if_labelled(rows, class_id, HAND)
        would = live_frame(live.spread(after.members(), solved), after, 0).classes
        changed = would != self._live_frame.classes
        return {"total": int(np.count_nonzero(changed)), "to": facts.mix_of(ids, would[changed])}

    def _class_id(self, index: int) -> int | None:
        return None if index == NONE else self._state.classes[index].id
