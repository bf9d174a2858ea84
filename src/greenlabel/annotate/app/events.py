"""Server-sent events: pages that are open hear that something changed, and fetch what they lack."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

EVERY = 10.0  # seconds, at least: a connection that is gone is noticed then
MAX_STREAMS = 32


class Events:
    """The streams that are open. Changes that come in quick succession are told once."""

    def __init__(self, status: Callable[[], dict[str, Any]], every: float = EVERY):
        self._status, self.every = status, every
        self._streams: set[asyncio.Event] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.is_closed = False

    def open(self) -> None:
        """From now on, in this event loop."""
        self._loop = asyncio.get_running_loop()

    @property
    def n_streams(self) -> int:
        return len(self._streams)

    @property
    def is_full(self) -> bool:
        return self.n_streams >= MAX_STREAMS

    def publish(self) -> None:
        """Something changed; may be called from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def close(self) -> None:
        """End all streams; may be called from any thread, and from a handler of signals."""
        self.is_closed = True
        self.publish()

    def _wake(self) -> None:
        for changed in self._streams:
            changed.set()

    async def stream(self) -> AsyncIterator[str]:
        """The status at once, after every change, and every few seconds."""
        changed = asyncio.Event()
        self._streams.add(changed)
        try:
            while not self.is_closed:
                yield f"data: {json.dumps(self._status())}\n\n"
                try:
                    await asyncio.wait_for(changed.wait(), self.every)
                except TimeoutError:
                    continue
                changed.clear()
        finally:
            self._streams.discard(changed)
