"""Rows beyond memory for a blend: they stay in their blocks and stand where an array of features would.

    fits_in_memory      whether rows of files are few enough to be read at once
    open_in_blocks      a source of rows -> RowsInBlocks, scaling, unit
    scale_blocks        a source of rows -> its blocks on one scale, for whoever needs no more
    RowsInBlocks        X.shape, X[rows], and X.blocks for what needs all rows

What an expert learns from rows without labels it learns from a seeded sample of them, or by a sum over all blocks.

    X (n, d) scaled features
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.parameters import warn
from greenlabel.blocks.rows import ArrayBlocks, Blocks, Reader, Through, stack
from greenlabel.graph.features import FILL, CheckFeatures, check_finite, in_units, unit_of
from greenlabel.graph.projection import sample_rows
from greenlabel.graph.scaling import Scaling, scaling_from, scaling_rows
from greenlabel.labels.encoding import Labels

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

MEMORY_ROWS, MEMORY_VALUES = 50_000, 50_000_000  # rows and numbers up to which files are read at once
SAMPLE_ROWS, SAMPLE_VALUES = 20_000, 20_000_000  # of the sample that stands for all rows; it is held
REMEMBERED = 0.1  # part of the memory limit for rows from which anchors are found
MAX_LABELS, LABELLED_VALUES = 100_000, 50_000_000  # labels, and numbers in their rows, from which experts learn


def fits_in_memory(n: int, d: int) -> bool:
    """Whether n rows of d columns are read at once wherever they are: the same on any machine."""
    return n <= MEMORY_ROWS and n * d <= MEMORY_VALUES


@dataclass(frozen=True)
class Scaled:
    """A step over blocks of features."""

    scaling: Scaling

    def __call__(self, rows: Sequence[int], X: Any) -> Any:
        return self.scaling.apply(X)


@dataclass(frozen=True)
class Weighted:
    """A step over blocks of features: each column times its factor."""

    factor: Floats  # (d,)

    def __call__(self, rows: Sequence[int], X: Any) -> Any:
        return weighted(X, self.factor)


def weighted(X: Any, factor: Floats) -> Any:
    """Features, or rows in blocks, with each column times its factor (d,)."""
    if isinstance(X, RowsInBlocks):
        return X.blocks.through(Weighted(factor))
    return sp.csr_array(X * factor) if sp.issparse(X) else X * factor.astype(X.dtype)


class Remembering(Blocks):
    """Blocks that remember the most rows that were taken from them, up to some bytes.

    Both graphs find their anchors from the same rows, which need not be read twice.
    """

    def __init__(self, source: Blocks, max_bytes: float):
        super().__init__(np.diff(source.starts).tolist())
        self._source, self._max_bytes = source, max_bytes
        self._taken: tuple[Ints, list[tuple[Ints, Any]]] = (np.arange(0), [])

    def reader(self, i: int) -> Reader:
        return self._source.reader(i)

    def finish(self) -> None:
        self._source.finish()

    def take(self, rows: Ints) -> list[tuple[Ints, Any]]:
        if np.array_equal(rows, self._taken[0]):
            return self._taken[1]
        pieces = self._source.take(rows)
        if len(rows) > len(self._taken[0]) and sum(piece.nbytes for _, piece in pieces) <= self._max_bytes:
            self._taken = rows, pieces
        return pieces


class RowsInBlocks:
    """Rows that are read when they are needed: X[rows] reads some of them.

    A sample, the labelled rows of the fit and the rows that were asked for last are remembered.
    """

    def __init__(self, blocks: Blocks, limit: float, sample: Ints, held: Ints, X: Any, *, can_refine: bool):
        """``limit`` are bytes for what may be held of all rows; X are the features of the rows ``held``.

        The ``sample`` is among these; both ascend.
        """
        self.blocks, self.limit, self.sample, self.can_refine = blocks, limit, sample, can_refine
        self.shape = (blocks.n, int(X.shape[1]))
        self._remembered = [(held, X)]

    def __getitem__(self, rows: Ints) -> Any:
        """The features of some rows, in any order."""
        for known, X in self._remembered:
            index = np.minimum(np.searchsorted(known, rows), len(known) - 1)
            if np.array_equal(known[index], rows):
                return X[index]
        numbers, index = np.unique(rows, return_inverse=True)
        X, found = self.blocks.some(numbers)
        X = X[found]
        self._remembered[1:] = [(numbers, X)]
        return X[index]

    def sample_with(self, rows: Ints) -> tuple[Ints, Any]:
        """Numbers of the rows of the sample and of these, ascending, and their features."""
        more = np.setdiff1d(rows, self.sample)
        if not len(more):
            return self.sample, self[self.sample]
        numbers = np.concatenate([self.sample, more])
        order = np.argsort(numbers)
        return numbers[order], stack([self[self.sample], self[more]])[order]


def open_in_blocks(
    source: Blocks,
    d: int,
    unit: float | None,
    wants_scaling: bool,
    labelled: Ints,
    seed: int,
    memory_limit: float | str,
) -> tuple[RowsInBlocks, Scaling | None, float]:
    """Rows of d columns as experts take them, how they are scaled, and their unit.

    Rows of files come without a unit, which a sample shows, and as they are; those of an array have it already.
    """
    n, rng = source.n, np.random.default_rng(seed)
    for_scaling = scaling_rows(n, d, rng) if wants_scaling else np.arange(0)
    sample = sample_rows(n, max(100, min(SAMPLE_ROWS, SAMPLE_VALUES // d)), rng)
    chosen = np.union1d(np.union1d(for_scaling, sample), labelled)  # read in one pass
    is_array = unit is not None
    X, rows, unit = read_some(source, d, unit, chosen)
    scaling = scaling_from(X[np.searchsorted(chosen, for_scaling)]) if wants_scaling else None
    held = np.union1d(sample, labelled)
    X = X[np.searchsorted(chosen, held)]
    if scaling is not None:
        X, rows = scaling.apply(X), scaled(rows, scaling, is_array)
    limit = rows.memory() / 2 if memory_limit == "auto" else float(memory_limit)
    if not is_array and not sp.issparse(X) and (size := n * X.shape[1] * X.itemsize) <= limit / 2:
        rows, limit = rows.keep(), limit - size
    elif isinstance(rows, Through) and not sp.issparse(X):
        rows, limit = Remembering(rows, REMEMBERED * limit), (1 - REMEMBERED) * limit
    return RowsInBlocks(rows, limit, sample, held, X, can_refine=is_array), scaling, unit


def scale_blocks(source: Blocks, d: int, unit: float | None, rng: np.random.Generator) -> tuple[Blocks, int, float]:
    """Rows of d columns on one scale, how many columns are left, and their unit."""
    X, rows, known_unit = read_some(source, d, unit, scaling_rows(source.n, d, rng))
    scaling = scaling_from(X)
    return scaled(rows, scaling, unit is not None), len(scaling.kept), known_unit


def read_some(source: Blocks, d: int, unit: float | None, chosen: Ints) -> tuple[Any, Blocks, float]:
    """Some rows in the unit of all, the blocks in that unit, and the unit, which these rows show where it is None."""
    rows = source if unit is not None else source.through(CheckFeatures(d))
    X, index = rows.some(chosen)
    X = X[index]
    if unit is not None:
        return X, rows, unit
    max_abs = check_finite(X, FILL)
    unit = unit_of(X, max_abs)
    return in_units(X, unit, max_abs), source.through(CheckFeatures(d, unit)), unit


def scaled(rows: Blocks, scaling: Scaling, is_array: bool) -> Blocks:
    """Blocks on a new scale; an array at once."""
    if is_array and isinstance(rows, ArrayBlocks):
        return ArrayBlocks(scaling.apply(rows.X))
    return rows.through(Scaled(scaling))


def learnable(labels: Labels, d: int, seed: int) -> Labels:
    """The labels; of very many an even choice of each class, as rows with labels are held in memory."""
    max_labels = min(MAX_LABELS, max(1000, LABELLED_VALUES // d))
    if len(labels.rows) <= max_labels:
        return labels
    share = max_labels / len(labels.rows)
    order = np.random.default_rng(seed).permutation(len(labels.rows))
    order = order[np.argsort(labels.codes[order], kind="stable")]
    first = np.repeat(np.cumsum(labels.counts) - labels.counts, labels.counts)
    rank = np.arange(len(order)) - first  # within its class
    chosen = np.zeros(len(order), bool)
    chosen[order[rank < np.maximum(np.ceil(share * labels.counts), 2)[labels.codes[order]]]] = True
    warn(f"y holds {len(labels.rows):,} labels; the experts learn from an even choice of {chosen.sum():,}.")
    return labels.without(~chosen)
