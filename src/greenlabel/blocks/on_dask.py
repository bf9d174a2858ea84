"""Row blocks on Dask: the same verbs, carried out by its scheduler; the only module that imports dask.

    from_dask(X)          blocks are the chunks of a Dask array, or the partitions of a Dask frame
    from_zarr(path)       blocks are the chunks of a zarr array
    distribute(blocks)    blocks of any other source, read by the workers
    cluster(address)      blocks run there until the context ends
    connect(address)      a client of a cluster: blocks run there until it is closed, and without one on threads here

All steps of a block are one task, named after the last of them; sums are added up as a tree. Only the anchors travel to
the workers, and only sums and predictions come back. A task can be done again at any time, so a worker that dies costs
its work and no more: steps are part of the graph, never data that somebody has to hold.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.optional import requires
from greenlabel.blocks.rows import Blocks, Ints, Reader, Step, Together, in_memory, n_rows, pick
from greenlabel.blocks.rows import apply as apply_step
from greenlabel.errors import ClusterError, DataError

with requires("dask"):
    import dask
    import dask.array as da
    from dask.delayed import Delayed, delayed
    from distributed import CancelledError, Client, KilledWorker, default_client
    from distributed.comm import CommClosedError
    from distributed.comm import connect as comm_connect

ADDED_AT_ONCE = 8  # sums that one task of the tree adds up
AHEAD = 2  # blocks in work per thread of the cluster beyond the one whose turn it is: more would fill the client
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": 2**30, "MALLOC_MMAP_THRESHOLD_": 2**30}  # bytes
# Ctrl-C goes to all processes of a terminal. Workers leave their end to the first of them, and say nothing of it.
ON_INTERRUPT = """
import logging, signal
signal.signal(signal.SIGINT, lambda *_: logging.disable())
"""
PATIENCE = 10  # seconds for a scheduler to respond


class DaskBlocks(Blocks):
    """Blocks that Dask computes: its own ones, and the steps that follow on each."""

    def __init__(self, parts: list[Delayed], sizes: Sequence[int], steps: tuple[Step, ...] = (), origin: Any = None):
        super().__init__(sizes)
        self._parts, self._steps, self._origin = parts, steps, origin

    def reader(self, i: int) -> Reader:
        return partial(self._tasks(self._steps)[i].compute)

    def finish(self) -> None:
        if self._origin is not None:
            self._origin.finish()

    def memory(self) -> int:
        client = current_client()
        if client is None:
            return super().memory()
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(worker["memory_limit"] - worker["metrics"]["memory"] for worker in workers)

    def through(self, step: Step) -> Blocks:
        return DaskBlocks(self._parts, np.diff(self.starts).tolist(), (*self._steps, step), self._origin)

    def keep(self) -> Blocks:
        """Kept on the workers; what dies with one of them is computed again."""
        kept = submit(dask.persist, *self._tasks(self._steps))
        return DaskBlocks(list(kept), np.diff(self.starts).tolist())

    def map(self, step: Step) -> Iterator[Any]:
        steps = (*self._steps, step)
        # Sent once, not with every block; Dask would drop it if it were not held.
        (held,) = submit(dask.persist, shared(steps))
        yield from in_order(self._tasks(steps, held))
        self.finish()

    def sum(self, step: Step) -> Any:
        parts = self._tasks((*self._steps, step))
        name = f"add-up-{uuid4().hex}"
        while len(parts) > 1:
            groups = in_groups(parts, ADDED_AT_ONCE)
            parts = [delayed(add_up)(group, dask_key_name=(name, len(parts), i)) for i, group in enumerate(groups)]
        (total,) = submit(dask.compute, parts[0])
        self.finish()
        return total

    def take(self, rows: Ints) -> list[tuple[Ints, Any]]:
        cuts = np.searchsorted(rows, self.starts)
        pieces = [(i, rows[cuts[i] : cuts[i + 1]]) for i in np.flatnonzero(np.diff(cuts)).tolist()]
        steps = shared(self._steps)
        name = f"take-rows-{uuid4().hex}"
        tasks = [
            delayed(take_some)(self._parts[i], numbers, numbers - self.starts[i], steps, dask_key_name=(name, i))
            for i, numbers in pieces
        ]
        return list(zip([numbers for _, numbers in pieces], submit(dask.compute, *tasks), strict=True))

    def collect(self, step: Step, like: NDArray[Any]) -> Any:
        """A Dask array, not yet computed."""
        tasks = self._tasks((*self._steps, step))
        sizes = np.diff(self.starts).tolist()
        parts = [
            da.from_delayed(task, (size, *like.shape[1:]), like.dtype) for task, size in zip(tasks, sizes, strict=True)
        ]
        return da.concatenate(parts)

    def beside(self, others: Sequence[Blocks]) -> Blocks:
        """The others are on Dask too: they were made of these blocks."""
        forms = [form._tasks(form._steps) for form in (self, *others) if isinstance(form, DaskBlocks)]
        name = f"together-{uuid4().hex}"
        parts = [
            delayed(put_together)(*some, dask_key_name=(name, i)) for i, some in enumerate(zip(*forms, strict=True))
        ]
        return DaskBlocks(parts, np.diff(self.starts).tolist(), origin=self._origin)

    def _tasks(self, steps: tuple[Step, ...], as_task: Delayed | None = None) -> list[Delayed]:
        """One task for each block, which does all the steps."""
        if not steps:
            return self._parts
        name = f"{readable(steps[-1])}-{uuid4().hex}"
        all_steps = shared(steps) if as_task is None else as_task
        return [
            delayed(do_steps)(part, self.rows(i), all_steps, dask_key_name=(name, i))
            for i, part in enumerate(self._parts)
        ]


def readable(step: Any) -> str:
    """The name of a step on the dashboard: NearestAnchors is nearest-anchors."""
    while isinstance(step, partial):
        step = next((part for part in step.args if callable(part)), step.func)
    name = getattr(step, "__name__", type(step).__name__)
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).strip("-_")


def shared(steps: tuple[Step, ...]) -> Delayed:
    """Steps as a task of their own, so that a graph holds them once, not with every block."""
    return delayed(partial(in_memory, Steps(steps)))(dask_key_name=f"steps-{uuid4().hex}")


def submit(verb: Any, *tasks: Delayed) -> Any:
    """dask.compute or dask.persist. Steps hold the anchors, so a graph of some megabytes is meant."""
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"}):
        return verb(*tasks)


@dataclass(frozen=True)
class Steps:
    """Several steps as one. Not a bare tuple: Dask would call its first element."""

    steps: tuple[Step, ...]

    def __call__(self, rows: Any, block: Any) -> Any:
        for step in self.steps:
            block = apply_step(step, rows, partial(in_memory, block))
        return block


def do_steps(block: Any, rows: range, steps: Steps) -> Any:
    return steps(rows, block)


def take_some(block: Any, numbers: Ints, indices: Ints, steps: Steps) -> Any:
    return steps(numbers, pick(block, indices))


def put_together(*forms: Any) -> Together:
    return Together(forms)


def in_groups(tasks: list[Delayed], size: int) -> list[list[Delayed]]:
    return [tasks[start : start + size] for start in range(0, len(tasks), size)]


def add_up(parts: list[Any]) -> Any:
    return sum(parts[1:], start=parts[0])


def in_order(tasks: list[Delayed]) -> Iterator[Any]:
    """Results one after the other, with a few blocks in work at a time."""
    client = current_client()
    if client is None:
        for some in in_groups(tasks, AHEAD * (dask.system.CPU_COUNT + 1)):
            yield from dask.compute(*some)
        return
    at_once = AHEAD * (sum(client.nthreads().values()) + 1)
    waiting: deque[Any] = deque()
    for task in tasks:
        waiting.append(client.compute(task))
        if len(waiting) >= at_once:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def current_client() -> Client | None:
    try:
        return default_client()
    except ValueError:
        return None


def connect(address: str, patience: float = PATIENCE) -> Client:
    """A client of a Dask scheduler; fits on blocks then run on its workers.

    Parameters
    ----------
    address : str
        Such as ``tcp://host:8786``; "local" starts a cluster on this machine.
    patience : float, default 10
        Seconds to wait for an answer.

    Returns
    -------
    client : distributed.Client
        Close it to end the connection.
    """
    if address == "local":
        return start_local(dask.system.CPU_COUNT)
    if not responds(address, patience):
        raise ClusterError(
            f"no Dask scheduler answers at {address} within {patience:g} seconds; check the address, and start one "
            "with `dask scheduler`."
        )
    return Client(address, timeout=patience)


@contextmanager
def cluster(address: str, n_workers: int | None = None) -> Iterator[None]:
    """Blocks run there until the context ends; a cluster that breaks down is an error of one sentence."""
    client = start_local(n_workers) if address == "local" and n_workers else connect(address)
    be_silent("asyncio")  # tasks of an interrupted step end before the interrupt arrives here
    with client:
        try:
            yield
        except KeyboardInterrupt:
            be_silent("distributed", "distributed.scheduler", "distributed.nanny")
            raise
        except (KilledWorker, CommClosedError, CancelledError, TimeoutError) as error:
            reason = " ".join(str(error).split())[:200]
            raise ClusterError(
                f"the cluster at {address} broke down ({reason}); see to its workers, and start again."
            ) from error


def start_local(n_workers: int) -> Client:
    """A cluster of ``n_workers`` processes on this machine, which ends with its client.

    Dask makes its workers give memory back to the system at once. Steps use the same amount again and again; getting
    it anew each time would cost a third of their time.
    """
    environment = {**dask.config.get("distributed.nanny.pre-spawn-environ"), **KEEP_MEMORY}
    with dask.config.set({"distributed.nanny.pre-spawn-environ": environment}):
        return Client(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", preload=[ON_INTERRUPT])


def be_silent(*names: str) -> None:
    """Nothing is said any more of work that is left undone."""
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def responds(address: str, patience: float) -> bool:
    """Whether a Dask scheduler is there. A client by itself would wait for ever for an address that says nothing."""
    replies: list[bool] = []

    async def ask() -> None:
        comm = await comm_connect(address, timeout=patience)
        replies.append(True)
        await comm.close()

    def ask_or_fail() -> None:
        with suppress(OSError, ValueError):
            asyncio.run(ask())

    asking = Thread(target=ask_or_fail, daemon=True)
    asking.start()
    asking.join(patience)
    return bool(replies)


def from_dask(X: Any) -> Blocks:
    """Blocks of a Dask array or frame."""
    if hasattr(X, "npartitions") and hasattr(X, "columns"):
        blocks = DaskBlocks(X.to_delayed(), dask.compute(*[delayed(len)(part) for part in X.to_delayed()]))
        blocks.names = [str(name) for name in X.columns]
        return blocks
    if X.ndim != 2:
        raise DataError(f"X is a Dask array of {X.ndim} dimensions; give one row of numbers for each item.")
    parts = X.rechunk({1: -1}).to_delayed().ravel().tolist()
    sizes: Any = X.chunks[0]
    if np.isnan(sizes).any():  # Dask does not know them until the chunks are computed
        sizes = dask.compute(*[delayed(n_rows)(part) for part in parts])
    kept = [(part, size) for part, size in zip(parts, sizes, strict=True) if size]
    return DaskBlocks([part for part, _ in kept], [size for _, size in kept])


def from_zarr(source: str | Path | Any) -> Blocks:
    """Blocks of a zarr array, or of the path to one."""
    try:
        return from_dask(da.from_zarr(str(source) if isinstance(source, Path) else source))
    except (OSError, KeyError, ValueError, TypeError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{source} cannot be read as a zarr array ({error}); check the path.") from error


def distribute(blocks: Blocks) -> Blocks:
    """Blocks that the workers read, from a disk that all of them see.

    Parameters
    ----------
    blocks : Blocks
        From ``open_rows``.

    Returns
    -------
    blocks : Blocks
        The same, read by the workers of the cluster that is connected.
    """
    name = f"read-rows-{uuid4().hex}"
    parts = [delayed(blocks.reader(i))(dask_key_name=(name, i)) for i in range(len(blocks))]
    distributed = DaskBlocks(parts, np.diff(blocks.starts).tolist(), origin=blocks)
    distributed.names = blocks.names
    return distributed
