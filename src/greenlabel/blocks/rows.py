"""Row blocks: all rows of a data set, with one block of them in memory at a time.

Two verbs do all the work, in this process or on a cluster (``on_dask``):

    blocks.sum(step)      the sum of step(rows, block) over all blocks
    blocks.map(step)      step(rows, block) for each block, in the order of the rows

``rows`` are the row numbers of the block, counted over all blocks; ``block`` is what the source reads: an array, a
table, or what an earlier step made of it. A step is a function of one block alone; on a cluster it must be picklable.

    blocks.through(step)  the blocks that step makes of these, each when it is read
    blocks.keep()         the same blocks, read once and held in memory
    blocks.take(rows)     some of the rows
    blocks.collect(step)  the arrays that step makes of all blocks, as one
    blocks.beside(others) blocks of the same rows in several forms, ``Together``

The predictions for a table are source.through(features).through(nearest_anchors).map(predict).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from greenlabel._common.files import FileMark
from greenlabel.errors import DataError

Ints = NDArray[np.integer]
Step = Callable[[Any, Any], Any]  # of row numbers and a block
Reader = Callable[[], Any]

BLOCK_ROWS = 2**18  # of an array: each step cuts its blocks into smaller ones where it needs memory of its own
NPY_BYTES = 2**27  # read at once from a file


class Blocks:
    """What all sources share. A subclass defines reader(i), which returns a picklable function that reads block i.

    Parameters
    ----------
    sizes : list of int
        Rows of each block.
    """

    names: list[str] | None = None  # of the columns, where they have names

    def __init__(self, sizes: Sequence[int]):
        self.starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.starts[-1])

    def __len__(self) -> int:
        """Number of blocks."""
        return len(self.starts) - 1

    def rows(self, i: int) -> range:
        """Numbers of the rows of block i."""
        return range(int(self.starts[i]), int(self.starts[i + 1]))

    def reader(self, i: int) -> Reader:
        """A picklable function that reads block i."""
        raise NotImplementedError

    def memory(self) -> int:
        """Bytes that are free where blocks are kept."""
        return int(psutil.virtual_memory().available)

    def finish(self) -> None:
        """Called when a pass over all blocks has ended; raises where the source has changed meanwhile."""

    def map(self, step: Step) -> Iterator[Any]:
        """step(rows, block) for each block, in the order of the rows."""
        for i in range(len(self)):
            yield apply(step, self.rows(i), self.reader(i))
        self.finish()

    def sum(self, step: Step) -> Any:
        """The sum of step(rows, block) over all blocks."""
        return reduce(add, self.map(step))

    def through(self, step: Step) -> "Blocks":
        """The blocks that step makes of these, each when it is read."""
        return Through(self, step)

    def keep(self) -> "Blocks":
        """The same blocks, read once and held in memory."""
        return Kept(list(self.map(identity)))

    def take(self, rows: Ints) -> list[tuple[Ints, Any]]:
        """Some rows, by ascending row numbers, as pieces: the numbers, and what is read of them."""
        cuts = np.searchsorted(rows, self.starts)
        pieces = []
        for i in np.flatnonzero(np.diff(cuts)).tolist():
            numbers = rows[cuts[i] : cuts[i + 1]]
            pieces.append((numbers, pick(self.reader(i)(), numbers - self.starts[i])))
        return pieces

    def some(self, rows: Ints) -> tuple[Any, Ints]:
        """An array that holds these rows, and their indices in it."""
        return stack([piece for _, piece in self.take(rows)]), np.arange(len(rows))

    def collect(self, step: Step, like: NDArray[Any]) -> Any:
        """The arrays that step makes of all blocks, as one; ``like`` has their type and, but for the rows, shape."""
        return np.concatenate([like, *self.map(step)])

    def beside(self, others: "Sequence[Blocks]") -> "Blocks":
        """The same rows in several forms; the others were made of these blocks, so that all are cut alike."""
        return Beside([self, *others])


def identity(rows: Sequence[int], block: Any) -> Any:
    """The step that changes nothing."""
    return block


def in_memory(block: Any) -> Any:
    """Reads a block that is there already."""
    return block


def apply(step: Step, rows: Sequence[int], reader: Reader) -> Any:
    """Read a block and do a step."""
    block = reader()
    if n_rows(block) != len(rows):
        raise DataError(
            f"the block of rows {rows[0]} to {rows[-1]} has {n_rows(block)} rows; "
            "give back as many rows from a block as it has."
        )
    return step(rows, block)


def n_rows(block: Any) -> int:
    return int(block.shape[0]) if hasattr(block, "shape") else len(block)


def pick(block: Any, indices: Ints) -> Any:
    return block.pick(indices) if hasattr(block, "pick") else _safe_indexing(block, indices)


def stack(parts: list[Any]) -> Any:
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


class ArrayBlocks(Blocks):
    """An array, a sparse matrix or a memory map.

    Parameters
    ----------
    X : (n, d) array, sparse matrix or memory map
        The rows.
    block_rows : int or None, default None
        Rows of a block; None is a quarter of a million.
    """

    def __init__(self, X: Any, block_rows: int | None = None):
        super().__init__(block_sizes(X.shape[0], block_rows))
        self.X = X

    def reader(self, i: int) -> Reader:
        return partial(in_memory, self.X if len(self) == 1 else self.X[self.starts[i] : self.starts[i + 1]])

    def some(self, rows: Ints) -> tuple[Any, Ints]:
        return self.X, rows

    def take(self, rows: Ints) -> list[tuple[Ints, Any]]:
        return [(rows, self.X[rows])] if len(rows) else []


class NpyBlocks(Blocks):
    """A .npy file, read block by block. Not mapped: a mapped file that shrinks while it is read ends the process."""

    def __init__(self, path: Path, block_rows: int | None = None):
        self._mark = FileMark.of(path)
        X = look_at_npy(self._mark)
        super().__init__(block_sizes(X.shape[0], block_rows or max(1, NPY_BYTES // max(1, X[:1].nbytes))))
        self._layout = (int(X.offset), X.dtype, X.shape[1])

    def reader(self, i: int) -> Reader:
        return partial(read_npy, self._mark, *self._layout, [range(int(self.starts[i]), int(self.starts[i + 1]))])

    def finish(self) -> None:
        self._mark.check()

    def take(self, rows: Ints) -> list[tuple[Ints, Any]]:
        stretches = [range(row, row + 1) for row in rows.tolist()]
        return [(rows, read_npy(self._mark, *self._layout, stretches))] if len(rows) else []


def look_at_npy(mark: FileMark) -> Any:
    """The array as a memory map; nothing is read yet."""
    try:
        X = np.lib.format.open_memmap(mark.path, mode="r")  # np.load takes any other file for a pickle
    except Exception as error:  # a header may be wrong in many ways
        raise corrupt_npy(mark, error) from error
    if X.ndim != 2:
        raise DataError(f"{mark.path} holds an array of shape {X.shape}; give one row of numbers for each item.")
    if not X.flags.c_contiguous:
        raise DataError(f"{mark.path} holds its numbers column by column; save np.ascontiguousarray(X) instead.")
    return X


def corrupt_npy(mark: FileMark, error: Any) -> DataError:
    return DataError(f"{mark.path} is corrupt, or no .npy file of numbers ({error}); write it again.")


def read_npy(mark: FileMark, offset: int, dtype: Any, width: int, stretches: list[range]) -> NDArray[Any]:
    """Some stretches of rows."""
    mark.check()
    X = np.empty((sum(map(len, stretches)), width), dtype)
    row_bytes = width * X.itemsize
    stop = 0
    with mark.path.open("rb") as file:
        for stretch in stretches:
            start, stop = stop, stop + len(stretch)
            file.seek(offset + stretch.start * row_bytes)
            room: Any = X[start:stop].reshape(-1).view(np.uint8)
            if file.readinto(room) < len(stretch) * row_bytes:
                raise corrupt_npy(mark, f"it ends before row {stretch.stop}")
    return X


def block_sizes(n: int, block_rows: int | None) -> list[int]:
    size = block_rows or BLOCK_ROWS
    return [min(size, n - start) for start in range(0, n, size)]


class Through(Blocks):
    """The blocks that a step makes of a source, each when it is read."""

    def __init__(self, source: Blocks, step: Step):
        super().__init__(np.diff(source.starts).tolist())
        self._source, self._step = source, step

    def reader(self, i: int) -> Reader:
        return partial(apply, self._step, self.rows(i), self._source.reader(i))

    def finish(self) -> None:
        self._source.finish()

    def take(self, rows: Ints) -> list[tuple[Ints, Any]]:
        return [(numbers, self._step(numbers, piece)) for numbers, piece in self._source.take(rows)]


class Kept(Blocks):
    """Blocks in memory."""

    def __init__(self, blocks: list[Any]):
        super().__init__([n_rows(block) for block in blocks])
        self._blocks = blocks

    def reader(self, i: int) -> Reader:
        return partial(in_memory, self._blocks[i])

    def keep(self) -> Blocks:
        return self


@dataclass(frozen=True)
class Together:
    """Some rows in several forms."""

    forms: tuple[Any, ...]

    def __len__(self) -> int:
        return n_rows(self.forms[0])

    def pick(self, indices: Ints) -> "Together":
        return Together(tuple(pick(form, indices) for form in self.forms))


class Beside(Blocks):
    """Blocks of several sources of the same rows, each block with its counterparts."""

    def __init__(self, sources: list[Blocks]):
        super().__init__(np.diff(sources[0].starts).tolist())
        self._sources = sources

    def reader(self, i: int) -> Reader:
        return partial(read_together, [source.reader(i) for source in self._sources])

    def finish(self) -> None:
        for source in self._sources:
            source.finish()


def read_together(readers: list[Reader]) -> Together:
    return Together(tuple(reader() for reader in readers))


class Joined(Blocks):
    """The blocks of several sources, one after the other; each source does its own part of a verb."""

    def __init__(self, sources: list[Blocks]):
        super().__init__([size for source in sources for size in np.diff(source.starts).tolist()])
        self._sources = sources
        self._offsets = np.concatenate([[0], np.cumsum([source.n for source in sources])])

    def _parts(self, step: Step) -> Iterator[tuple[Blocks, Step]]:
        """Each source, and the step with rows counted over all sources."""
        for source, offset in zip(self._sources, self._offsets.tolist(), strict=False):
            yield source, partial(with_offset, step, offset)

    def map(self, step: Step) -> Iterator[Any]:
        for source, own_step in self._parts(step):
            yield from source.map(own_step)

    def sum(self, step: Step) -> Any:
        return reduce(add, (source.sum(own_step) for source, own_step in self._parts(step)))

    def through(self, step: Step) -> Blocks:
        return Joined([source.through(own_step) for source, own_step in self._parts(step)])

    def keep(self) -> Blocks:
        return Joined([source.keep() for source in self._sources])

    def take(self, rows: Ints) -> list[tuple[Ints, Any]]:
        cuts = np.searchsorted(rows, self._offsets)
        pieces = []
        for source, offset, start, stop in zip(self._sources, self._offsets, cuts, cuts[1:], strict=False):
            pieces += [(numbers + offset, piece) for numbers, piece in source.take(rows[start:stop] - offset)]
        return pieces

    def collect(self, step: Step, like: NDArray[Any]) -> Any:
        return np.concatenate([source.collect(own_step, like) for source, own_step in self._parts(step)])


def with_offset(step: Step, offset: int, rows: Sequence[int], block: Any) -> Any:
    """A step on rows whose numbers begin at an offset."""
    moved = range(rows.start + offset, rows.stop + offset) if isinstance(rows, range) else np.asarray(rows) + offset
    return step(moved, block)


def joined(first: Blocks, second: Blocks) -> Blocks:
    """Both, one after the other."""
    parts: list[Blocks] = []
    for blocks in (first, second):
        parts += blocks._sources if isinstance(blocks, Joined) else [blocks]
    if all(isinstance(part, Kept) for part in parts):
        return Kept([block for part in parts for block in part._blocks])  # type: ignore[attr-defined]
    return Joined(parts)
