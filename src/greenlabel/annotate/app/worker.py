"""One thread that does all work on the session, one thing after the other: solves never run in the event loop."""

import asyncio
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import PriorityQueue
from typing import Any

URGENT, USUAL, IDLE = range(3)  # what a person waits for after a key press; looking around; while hands rest


class Worker:
    """A queue of work and the thread that does it. The thread ends with the process: a solve cannot be stopped."""

    def __init__(self) -> None:
        self._jobs: PriorityQueue[tuple[int, int, Callable[[], Any] | None, Future[Any]]] = PriorityQueue()
        self._count = itertools.count()
        self._under_way = 0
        self._thread = threading.Thread(target=self._run, name="annotate-worker", daemon=True)
        self._thread.start()

    def submit(self, work: Callable[[], Any], priority: int = USUAL) -> "Future[Any]":
        future: Future[Any] = Future()
        self._jobs.put((priority, next(self._count), work, future))
        return future

    async def __call__(self, work: Callable[[], Any], priority: int = USUAL) -> Any:
        """The result of work; a request that is given up before its turn is left out."""
        return await asyncio.wrap_future(self.submit(work, priority))

    @property
    def is_busy(self) -> bool:
        return self._thread.is_alive() and (bool(self._under_way) or not self._jobs.empty())

    def close(self, last: Callable[[], Any], seconds: float) -> bool:
        """End after one last piece of work, ahead of what waits; False where it does not come about in time."""
        self._jobs.put((-2, next(self._count), last, Future()))
        self._jobs.put((-1, next(self._count), None, Future()))
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            _, _, work, future = self._jobs.get()
            if work is None:
                return
            if not future.set_running_or_notify_cancel():
                continue
            self._under_way = 1
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
            finally:
                self._under_way = 0
