"""Where the time goes: a clock whose stages share out all of it.

    stages = Stages()
    with stages("graph"):
        ...
    stages.seconds          {"graph": 0.31, "other": 0.02}

One stage is under way at any moment, so the seconds add up to the time since the clock began, by construction.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

START, OTHER = "start", "other"  # before the clock was made (imports, checks); whatever no stage is named for

Announce = Callable[[str], Any]


class Stages:
    """Seconds of each stage; every beginning is announced."""

    def __init__(self, announce: Announce | None = None, began: float | None = None):
        """``began`` is a reading of ``time.perf_counter`` from before: the time since then is the stage "start"."""
        now = perf_counter()
        self._announce = announce or (lambda name: None)
        self._spent: dict[str, float] = {} if began is None else {START: now - began}
        self._name, self._since = OTHER, now

    @classmethod
    def of(cls, announce: "Announce | Stages | None") -> "Stages":
        """A clock that runs already goes on; otherwise a new one."""
        return announce if isinstance(announce, Stages) else cls(announce)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """A stage; after it the one before goes on."""
        before = self._name
        self._announce(name)
        self._turn_to(name)
        yield
        self._turn_to(before)

    def _turn_to(self, name: str) -> None:
        now = perf_counter()
        self._spent[self._name] = self._spent.get(self._name, 0.0) + now - self._since
        self._name, self._since = name, now

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of each stage until now, in the order in which they began; "other" last."""
        self._turn_to(self._name)
        rest = self._spent.get(OTHER, 0.0)
        return {name: taken for name, taken in self._spent.items() if name != OTHER} | {OTHER: rest}
