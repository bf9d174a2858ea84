"""Threads: many blocks of rows at once, each on one thread.

NumPy, SciPy and faiss each keep threads of their own, which wait for work by spinning, and which round a product
otherwise than one thread does. So linear algebra runs on one thread here, and the blocks of rows run side by side:
nothing waits, and the result of a block is the same on any number of threads.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Block = TypeVar("Block")
Result = TypeVar("Result")


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@cache
def load_faiss() -> Any:
    """faiss, whose threads are known from the next step on.

    It is loaded where it is needed and not before: with its OpenMP in the process, scikit-learn's searches run on one
    thread.
    """
    import faiss

    _controller.cache_clear()
    return faiss


def one_thread() -> AbstractContextManager[None]:
    """Linear algebra and faiss on one thread inside the block."""
    return _controller().limit(limits=1)


def n_threads() -> int:
    """As many as linear algebra may use, by the machine, the environment or threadpoolctl."""
    return max((library.num_threads for library in _controller().lib_controllers), default=1)


def in_parallel(work: Callable[[Block], Result], blocks: Iterable[Block]) -> list[Result]:
    """work(block) of every block, in their order; blocks run side by side, each on one thread."""
    blocks = list(blocks)
    threads = n_threads()
    with one_thread():
        if min(len(blocks), threads) < 2:
            return [work(block) for block in blocks]
        # OpenMP counts threads for each thread that starts some, so every worker says so for itself.
        with ThreadPoolExecutor(min(len(blocks), threads), initializer=lambda: one_thread()) as pool:
            return list(pool.map(work, blocks))


class Team:
    """Threads that stay for many short steps, of which each waits for the one before it."""

    def __init__(self, n_members: int):
        self.n_members = n_members
        self._others = ThreadPoolExecutor(n_members - 1) if n_members > 1 else None

    def run(self, work: Callable[[Block], Result], blocks: Sequence[Block]) -> list[Result]:
        """work(block) of every block, in their order; each member takes every n-th block."""
        if self._others is None:
            return [work(block) for block in blocks]
        shares = [blocks[first :: self.n_members] for first in range(self.n_members)]
        started = [self._others.submit(_all_of, work, share) for share in shares[1:]]
        found = [_all_of(work, shares[0]), *(one.result() for one in started)]
        return [found[i % self.n_members][i // self.n_members] for i in range(len(blocks))]

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, *failure: object) -> None:
        if self._others is not None:
            self._others.shutdown()


def _all_of(work: Callable[[Block], Result], blocks: Sequence[Block]) -> list[Result]:
    return [work(block) for block in blocks]
