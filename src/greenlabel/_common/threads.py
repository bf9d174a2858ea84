"""Threads: many blocks of rows at once, each on one thread.

NumPy, SciPy and faiss each keep threads of their own, which wait for work by spinning, and which round a product
otherwise than one thread does. So linear algebra runs on one thread here, and the blocks of rows run side by side:
nothing waits, and the result of a block is the same on any number of threads.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from threading import Barrier, Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

Block = TypeVar("Block")
Result = TypeVar("Result")


class Libraries:
    """The libraries of this process that have threads.

    OpenMP counts them for each thread that starts some, and other linear algebra for the whole process: where several
    threads ask for one, as fits side by side do, the first to come notes how many there were, and the last to go sets
    that back.
    """

    def __init__(self) -> None:
        self._changing, self._n_inside = Lock(), 0
        self._before: list[tuple[Any, int]] = []  # threads of each library of the process, while somebody is inside
        self._of_process: list[Any] = []
        self.look_again()

    def look_again(self) -> None:
        """See those that were loaded since."""
        with self._changing:
            known = {library.filepath for library in self._of_process}
            self.all = ThreadpoolController()
            every = self.all.lib_controllers
            self._of_thread = self.all.select(filepath=[one.filepath for one in every if counts_for_each_thread(one)])
            self._of_process = [one for one in every if not counts_for_each_thread(one)]
            if self._n_inside:
                self._limit([one for one in self._of_process if one.filepath not in known])

    def limit_this_thread(self) -> Any:
        """One thread for what counts them for the thread that asks, until what is returned ends as a context."""
        return self._of_thread.limit(limits=1)

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        with self.limit_this_thread():
            with self._changing:
                if not self._n_inside:
                    self._before = []
                    self._limit(self._of_process)
                else:  # somebody else may have set it meanwhile
                    for library in self._of_process:
                        set_threads(library, 1)
                self._n_inside += 1
            try:
                yield
            finally:
                with self._changing:
                    self._n_inside -= 1
                    if not self._n_inside:
                        for library, n in self._before:
                            set_threads(library, n)

    def _limit(self, libraries: list[Any]) -> None:
        self._before += [(library, library.num_threads) for library in libraries]
        for library in libraries:
            set_threads(library, 1)


def counts_for_each_thread(library: Any) -> bool:
    return "openmp" in (library.user_api, getattr(library, "threading_layer", None))


def set_threads(library: Any, n: int) -> None:
    """From version 3.8 on threadpoolctl lets only one thread change OpenBLAS, and the last to go may be another one."""
    getattr(library, "_real_set_num_threads", library.set_num_threads)(n)


_making = Lock()


@cache
def _made() -> Libraries:
    return Libraries()


def libraries() -> Libraries:
    with _making:  # a cache alone would let two threads make one each
        return _made()


@cache
def load_faiss() -> Any:
    """faiss, whose threads are known from the next step on.

    It is loaded where it is needed and not before: with its OpenMP in the process, scikit-learn's searches run on one
    thread.
    """
    import faiss

    libraries().look_again()
    return faiss


def one_thread() -> AbstractContextManager[None]:
    """Linear algebra and faiss on one thread inside the block."""
    return libraries().one_thread()


def n_threads() -> int:
    """As many as linear algebra may use, by the machine, the environment or threadpoolctl."""
    return max((library.num_threads for library in libraries().all.lib_controllers), default=1)


def in_parallel(work: Callable[[Block], Result], blocks: Iterable[Block]) -> list[Result]:
    """work(block) of every block, in their order; blocks run side by side, each on one thread."""
    blocks = list(blocks)
    threads = n_threads()
    with one_thread():
        if min(len(blocks), threads) < 2:
            return [work(block) for block in blocks]
        with ThreadPoolExecutor(min(len(blocks), threads), initializer=libraries().limit_this_thread) as pool:
            return list(pool.map(work, blocks))


class Team:
    """Threads that stay for many short steps, of which each waits for the one before it.

    Each member has a thread of its own from the beginning: members may wait for each other within a step.
    """

    def __init__(self, n_members: int):
        self.n_members = n_members
        self._others = pool_of_threads(n_members - 1) if n_members > 1 else None

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


def pool_of_threads(n: int) -> ThreadPoolExecutor:
    """A pool whose threads are all there: by itself it counts on idle ones, and its count may be wrong."""
    pool, all_there = ThreadPoolExecutor(n), Barrier(n + 1)
    try:
        for _ in range(n):
            pool.submit(all_there.wait)
        all_there.wait()
    except BaseException:
        all_there.abort()
        pool.shutdown()
        raise
    return pool


def _all_of(work: Callable[[Block], Result], blocks: Sequence[Block]) -> list[Result]:
    return [work(block) for block in blocks]
