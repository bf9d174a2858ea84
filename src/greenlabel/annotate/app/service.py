"""A session at work: prepared in the background, used by one thread, its changes told to all open pages."""

import asyncio
import secrets
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from greenlabel.annotate.app.events import Events
from greenlabel.annotate.app.protocol import Refusal, frame_bytes, position_bytes
from greenlabel.annotate.app.worker import IDLE, URGENT, USUAL, Worker
from greenlabel.errors import GreenlabelError

WRITING = 5.0  # seconds for a file that is being written to become whole
MAX_WORDED = 100  # rows of a list whose first words are told
QUIET = 3.0  # seconds without an action after which hands rest
STAGES = {"graph": "Building the graph", "map": "Making the map", "ready": "Ready"}
NOT_YET = "The graph is still being made; try again when the page says that it is ready."


class Saves(Protocol):
    """What a source can do beside being looked at."""

    n: int
    notes: list[str]

    @property
    def out(self) -> str: ...  # the name of the file that is saved

    def save(self, labels: dict[int, str], ignored: set[int], report: bool, model: bool) -> dict[str, Any]: ...

    def finish_writing(self, seconds: float) -> bool: ...

    def picture(self, row: int) -> tuple[str, bytes] | None: ...

    def words(self, row: int) -> str | None: ...

    def search(self, words: str, limit: int) -> list[int]: ...


class Seen(NamedTuple):
    """What is to be seen of a session at one moment; replaced as a whole, so that its parts belong together."""

    state: dict[str, Any]
    frame: Any
    positions: tuple[int, Any]

    @classmethod
    def now(cls, session: Any) -> "Seen":
        return cls(session.state(), session.frame(), session.positions())


class Service:
    """All that the routes ask for. Methods that are coroutines wait for the worker."""

    def __init__(self, session: Any, source: Saves, quiet: float = QUIET):
        self.session, self.source, self.n = session, source, source.n
        self.events = Events(self.status)
        self.run = secrets.token_hex(8)  # part of addresses that a browser keeps: nothing of an earlier run is shown
        self.failure: BaseException | None = None  # of the graph: the session is of no use then
        self._worker, self._saver, self._reader = Worker(), Worker(), Worker()  # pictures do not wait for solves
        self._quiet, self._last_action = quiet, time.monotonic()
        self._stage: dict[str, Any] = {"name": "graph", "sentence": STAGES["graph"], "done": None}
        self._is_ready = False
        self._saving = False
        self._saved: dict[str, Any] | None = None
        self._seen = Seen.now(session)
        self._on_failure: Callable[[], None] = lambda: None

    # Beginning and end

    async def start(self, on_failure: Callable[[], None]) -> None:
        """Prepare in the background; ``on_failure`` is called, from another thread, where that does not come about."""
        self._on_failure = on_failure
        self.events.open()
        self._worker.submit(self._prepare)
        self._resting = asyncio.create_task(self._rest_when_quiet())

    def _prepare(self) -> None:
        try:
            self.session.prepare(self._announce)
        except BaseException as error:
            self.failure = error
            is_plain = isinstance(error, GreenlabelError | OSError)
            self._set_stage("failed", str(error) if is_plain else "Something went wrong; the terminal says what.")
            self._on_failure()
            return
        self._is_ready = True
        self._look("map")
        threading.Thread(target=self._settle, name="annotate-map", daemon=True).start()

    def _settle(self) -> None:
        try:
            self.session.settle_map()
            sentence = STAGES["ready"]
        except Exception as error:
            reason = getattr(error, "strerror", None) or error  # without the path of a system's error
            sentence = f"Ready; the map stays a plane, for it could not be made ({reason})"
        self._worker.submit(lambda: self._look("ready", sentence))

    def _announce(self, name: str, done: float | None = None) -> None:
        self._set_stage("graph", STAGES.get(name, name), done)

    def _set_stage(self, name: str, sentence: str, done: float | None = None) -> None:
        self._stage = {"name": name, "sentence": sentence, "done": done}
        self.events.publish()

    async def _rest_when_quiet(self) -> None:
        while not self.events.is_closed:
            await asyncio.sleep(min(1.0, self._quiet))
            is_quiet = time.monotonic() - self._last_action >= self._quiet
            if self._is_ready and is_quiet and not self._worker.is_busy:
                await self._worker(self._rest, IDLE)

    def _rest(self) -> None:
        """In the worker; where it fails, the live model is shown all the same."""
        try:
            if self.session.rest():
                self._look()
        except Exception as error:
            if isinstance(error, OSError):
                print(f"The blend cannot be fitted ({error.strerror}), so the live model stays.", file=sys.stderr)
            else:
                traceback.print_exc(file=sys.stderr)
            self._last_action = float("inf")  # not again before the next label

    def close(self, seconds: float = 1.0) -> bool:
        """End streams, files and the session; False where a solve is under way that cannot be stopped."""
        self.events.close()
        self.source.finish_writing(WRITING)
        return self._worker.close(self.session.close, seconds)

    # What pages see: as it was after the last change, so that nobody waits for the worker

    def status(self) -> dict[str, Any]:
        """What an event says."""
        state = self._seen.state
        return {"generation": state["generation"], "map": state["map"], "stage": self._stage}

    def _look(self, stage: str | None = None, sentence: str | None = None) -> None:
        """See what is to be seen now, in the worker, perhaps of another stage; pages hear of it where it is new."""
        before = self.status()
        self._seen = Seen.now(self.session)
        if stage is not None:
            self._stage = {"name": stage, "sentence": sentence or STAGES[stage], "done": None}
        if self.status() != before:
            self.events.publish()

    def state(self) -> dict[str, Any]:
        """The state of the session, and beside it what the server and the source know."""
        return self._with_own(self._seen.state)

    def _with_own(self, state: dict[str, Any]) -> dict[str, Any]:
        notes = [*self.source.notes, *state["notes"]]
        own = {"stage": self._stage, "notes": notes, "out": self.source.out, "run": self.run}
        return {**state, **own, "saving": self._saving, "saved": self._saved}

    def frame(self) -> tuple[int, bytes]:
        """The generation, and the frame as bytes."""
        state, frame, _ = self._seen
        return int(frame.generation), frame_bytes(self._with_own(state), frame.classes, frame.confidence)

    def positions(self) -> tuple[int, bytes]:
        """The version of the map, and the positions as bytes."""
        if not self._is_ready:
            raise Refusal(503, NOT_YET, {"Retry-After": "1"})
        version, positions = self._seen.positions
        return version, position_bytes(positions)

    async def ask(self, question: Callable[[], Any], priority: int = USUAL) -> Any:
        """Something that the session knows, once it is prepared."""
        if not self._is_ready:
            raise Refusal(503, NOT_YET, {"Retry-After": "1"})
        return await self._worker(question, priority)

    # What people do

    async def act(self, action: dict[str, Any]) -> tuple[int, bytes]:
        """Do something; returns the frame after it."""
        self._last_action = time.monotonic()
        return await self.ask(lambda: self._act_now(action), URGENT)

    def _act_now(self, action: dict[str, Any]) -> tuple[int, bytes]:
        self.session.act(action)
        self._look()
        self._last_action = time.monotonic()
        return self.frame()

    async def save(self, report: bool, model: bool) -> dict[str, Any]:
        """Write what was labelled until now; labels may be given meanwhile."""
        if self._saving:
            raise Refusal(409, "The table is being saved already; wait until that is done.")
        self._saving = True
        self.events.publish()
        try:
            labels, ignored = await self.ask(self.session.given_now)
            saved = await self._saver(lambda: self.source.save(labels, ignored, report, model))
            self._saved = saved
            return saved
        finally:
            self._saving = False
            self.events.publish()

    # What needs the source alone

    async def beside(self, work: Callable[[], Any]) -> Any:
        """Work that needs no session: neither the event loop nor a key press waits for it."""
        return await self._reader(work)

    async def picture(self, row: int) -> tuple[str, bytes] | None:
        return await self.beside(lambda: self.source.picture(row))

    def words(self, rows: list[int]) -> dict[str, dict[int, str]]:
        """The first words of the first of some rows, as a part of a reply; nothing where rows are no texts."""
        found = {row: self.source.words(row) for row in rows[:MAX_WORDED]}
        known = {row: words for row, words in found.items() if words is not None}
        return {"words": known} if known else {}

    async def search(self, words: str) -> list[int]:
        """All rows with these words."""
        return await self.beside(lambda: self.source.search(words, self.n))

    async def of_class(self, number: int, n: int) -> tuple[list[int], int]:
        """Rows that are predicted to be of a class, and how many there are."""
        rows = await self.ask(lambda: self.session.of_class(number, n))
        known = {one["id"]: one["predicted"] for one in self._seen.state["classes"]}
        return rows, max(known.get(number, 0), len(rows))
