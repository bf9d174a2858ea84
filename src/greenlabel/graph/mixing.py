"""Z in few bytes, and the sum Z'Z over its rows in whole numbers.

    Near             the k nearest anchors of each row, and k + 1 squared distances from which Eq. Z makes the weights
    Largest          the class of each row, from what its anchors say
    GramSum          Z'Z = sum of z_i z_i' over the rows seen so far, m x m numbers
    SparseGramSum    the same for many anchors, of which few pairs have a row in common

Whole numbers add up to the same in any order. So Z'Z, and with it every score, is the same to the last bit in any
blocks, in any number of threads or processes, and whether rows come at once or later. A product p of two weights is at
most 1 and kept as

    p 2^31 = high + low / 2^31,       high, low whole, 0 <= high, low <= 2^31

whose sums fit in 64 bits for four billion rows (kernels/mixing.h). Where NumPy takes them, a block of 2^16 rows adds up
exactly in float64, which is faster there. The sparse sum keeps high and low as the real and imaginary part of one
number, in steps of 2^-21 and 2^-42, whose sums are exact in float64 for as many rows.

Z (n, m) mixing weights, rows sum to 1     k anchors of a row     m anchors
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.threads import in_parallel
from greenlabel.errors import DataError
from greenlabel.graph.anchors import mixing_weights
from greenlabel.graph.distances import row_blocks
from greenlabel.graph.neighbors import neighbour_matrix
from greenlabel.graph.search import Search
from greenlabel.kernels import NearestOf, address, library

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

ROWS_AT_ONCE = 2**16  # their products add up exactly in float64, with 6 bits to spare
PAIRS_AT_ONCE = 2**19  # products that fit in the processor's cache: three times as fast at k = 20
HALF = 2.0**31
SPARSE_HALF = 2.0**21
SPARSE_PAIRS_AT_ONCE = 2**21
MAX_ROWS = 2**32
LANES, MIXED = 8, 32  # columns and rows that what is compiled handles at once, on any processor (kernels/mixing.h)
DENSE_ANCHORS = 2048  # up to here m x m numbers are faster than sparse ones


@dataclass(frozen=True)
class Near:
    """The nearest anchors of some rows, without loss in 6 bytes per neighbour where float32 holds the features."""

    index: Ints  # (n, k)
    dist2: Floats  # (n, k + 1), ascending; column by column in memory, which is faster here

    @classmethod
    def found(cls, dist2: Floats, index: Ints, m: int) -> "Near":
        """From a search for k + 1 of m anchors; the last one is the yardstick only."""
        short_index: Any = index[:, :-1].astype(np.uint16 if m <= 2**16 else np.int32)
        with np.errstate(over="ignore"):
            short = dist2.astype(np.float32, order="F")
        return cls(short_index, short if np.array_equal(short, dist2) else np.asfortranarray(dist2))

    def __len__(self) -> int:
        return len(self.index)

    def pick(self, indices: Any) -> "Near":
        return Near(self.index[indices], np.asfortranarray(self.dist2[indices]))

    @staticmethod
    def joined(parts: "list[Near]") -> "Near":
        if len(parts) == 1:
            return parts[0]
        dist2 = np.concatenate([part.dist2 for part in parts])
        return Near(np.concatenate([part.index for part in parts]), np.asfortranarray(dist2))

    def weights(self) -> Floats:
        """(n, k) by Eq. Z, rows sum to 1."""
        return joining_weights(mixing_weights(self.dist2.astype(np.float64)))

    def matrix(self, m: int) -> sp.csr_array:
        """Z (n, m) of these rows."""
        return neighbour_matrix(self.index, np.ascontiguousarray(self.weights()), m)


class Largest:
    """The class with the largest score of each row, the first of equal ones: scores are z_i' C + offsets.

    A row without weight on any of the anchors that are ``reached`` (m,) gets the class ``otherwise``.
    """

    def __init__(self, C: Floats, offsets: Floats, reached: NDArray[np.bool_], otherwise: int):
        self._c, self._kernels = len(offsets), library()
        self._otherwise = -1 if reached.all() else otherwise
        columns = C if reached.all() else np.column_stack([C, reached])
        unused = -columns.shape[1] % LANES
        self._C = np.ascontiguousarray(np.pad(columns, ((0, 0), (0, unused))), np.float64)
        self._offsets = np.pad(np.asarray(offsets, np.float64), (0, self._C.shape[1] - self._c))

    def __call__(self, near: Near) -> Ints:
        """(rows,)"""
        best = np.empty(len(near), np.int32)
        fill = self._by_numpy(near, best) if self._kernels is None else self._compiled(near, best)
        in_parallel(fill, row_blocks(len(near), self._C.shape[1]))
        return best

    def _by_numpy(self, near: Near, best: Ints) -> Callable[[slice], None]:
        def fill(rows: slice) -> None:
            F = near.pick(rows).matrix(len(self._C)) @ self._C + self._offsets
            best[rows] = F[:, : self._c].argmax(axis=1)
            if self._otherwise >= 0:
                best[rows][~(F[:, self._c] > 0)] = self._otherwise

        return fill

    def _compiled(self, near: Near, best: Ints) -> Callable[[slice], None]:
        check_index(near.index, len(self._C))
        k, columns = near.index.shape[1], self._C.shape[1]
        index = np.ascontiguousarray(near.index, np.uint16 if near.index.dtype == np.uint16 else np.int32)
        dist2 = np.asfortranarray(near.dist2, np.float32 if near.dist2.dtype == np.float32 else np.float64)

        def fill(rows: slice) -> None:
            sizes = len(index), index.dtype == np.uint16, dist2.dtype == np.float32
            nearest, room = NearestOf(*sizes, address(index), address(dist2)), np.empty(k * MIXED + columns)
            asked = rows.start, rows.stop - rows.start, k, nearest, self._c, columns, self._otherwise
            self._kernels.largest(*asked, self._C, self._offsets, room, best[rows])

        return fill


def check_index(index: Ints, m: int) -> None:
    """What is compiled does not look whether an anchor is there."""
    if index.max(initial=0) >= m or index.min(initial=0) < 0:
        raise IndexError(f"a row is near anchor {index.max()}, but there are {m}.")


def joining_weights(weight: Floats) -> Floats:
    """The weights (n, k), less where a row would be a mix of its nearest anchor alone, and so join nothing.

    All other anchors are then as far as the yardstick: on a lattice, a row that is an anchor itself. The yardstick is
    moved as far beyond them as they are beyond the nearest one, which has twice their weight then.
    """
    k = weight.shape[1]
    if k > 1 and (alone := weight[:, 1] == 0).any():
        weight[alone] = 1 / (k + 1)
        weight[alone, 0] *= 2
    return weight


def near_bytes(k: int, m: int, is_short: bool) -> int:
    """Bytes of one row of Near; ``is_short`` where float32 holds the features."""
    return k * (2 if m <= 2**16 else 4) + (k + 1) * (4 if is_short else 8)


@dataclass(frozen=True)
class NearestAnchors:
    """A step over blocks: the nearest anchors of each row."""

    search: Search
    k: int

    def __call__(self, rows: Sequence[int], X: Any) -> Near:
        def find(part: slice) -> Near:
            return Near.found(*self.search.nearest(X[part], self.k + 1), self.search.P.shape[0])

        return Near.joined(in_parallel(find, row_blocks(X.shape[0], self.search.values_per_row(X, self.k + 1))))


@dataclass(frozen=True)
class GramSum:
    """Z'Z of some rows. Rows wait as Near until there are enough of them to be worth m x m numbers."""

    m: int
    n: int = 0
    halves: NDArray[np.int64] | None = None  # (2, m (m + 1) / 2): high and low of the upper triangle, row by row
    waiting: list[Near] = field(default_factory=list)

    @classmethod
    def of(cls, m: int, near: Near) -> "GramSum":
        return cls(m, len(near), None, [near])._flush(ROWS_AT_ONCE)

    def __add__(self, other: "GramSum") -> "GramSum":
        check_rows(self.n + other.n)
        halves = [part.halves for part in (self, other) if part.halves is not None]
        total = sum(halves[1:], start=halves[0]) if halves else None
        together = GramSum(self.m, self.n + other.n, total, self.waiting + other.waiting)
        return together._flush(ROWS_AT_ONCE)

    def _flush(self, min_rows: int) -> "GramSum":
        """The same sum with nothing waiting, if at least ``min_rows`` rows do."""
        if not self.waiting or sum(map(len, self.waiting)) < min_rows:
            return self
        size = self.m * (self.m + 1) // 2
        halves = np.zeros((2, size), np.int64) if self.halves is None else self.halves.copy()
        near = Near.joined(self.waiting)
        for start in range(0, len(near), ROWS_AT_ONCE):
            add_products(halves, near.pick(slice(start, start + ROWS_AT_ONCE)), self.m)
        return GramSum(self.m, self.n, halves)

    def gram(self) -> Floats:
        """Z'Z (m, m)."""
        halves = self._flush(0).halves
        assert halves is not None
        upper = halves[0] / HALF + halves[1] / HALF**2
        G = np.empty((self.m, self.m))
        stops = np.cumsum(np.arange(self.m, 0, -1))
        for row, part in enumerate(np.split(upper, stops[:-1])):
            G[row, row:] = G[row:, row] = part
        return G


def add_products(halves: NDArray[np.int64], near: Near, m: int) -> None:
    """Add the products of each row's weights, for all pairs of its anchors; at most ROWS_AT_ONCE rows."""
    k = near.index.shape[1]
    if kernels := library():
        check_index(near.index, m)
        index, weight = np.ascontiguousarray(near.index, np.int32), np.ascontiguousarray(near.weights())
        kernels.add_products(len(near), k, m, HALF, index, weight, *halves)
        return
    total = np.zeros(halves.shape)
    rows = max(1, 2 * PAIRS_AT_ONCE // (k * (k + 1)))
    for start in range(0, len(near), rows):
        add_some_products(total, near.pick(slice(start, start + rows)), m)
    halves += total.astype(np.int64)


def add_some_products(total: Floats, near: Near, m: int) -> None:
    first, second, product = weight_products(near)
    before = np.arange(m) * (2 * m - 1 - np.arange(m)) // 2  # where row a of the upper triangle begins, less a
    pair = before[first] + second  # index of (a, b)
    for half, part in zip(total, in_halves(product, HALF), strict=True):
        half += np.bincount(pair, part, len(half))


def weight_products(near: Near) -> tuple[Ints, Ints, Floats]:
    """For all rows and all pairs of anchors of a row: the anchors a <= b, and the product of their weights."""
    index, weight = np.ascontiguousarray(near.index.T), near.weights().T
    a, b = np.triu_indices(len(index))
    first, second = np.minimum(index[a], index[b]).ravel(), np.maximum(index[a], index[b]).ravel()
    return first, second, (weight[a] * weight[b]).ravel()


def in_halves(product: Floats, half: float) -> tuple[Floats, Floats]:
    """High and low, whole numbers: product half = high + low / half; overwrites the product."""
    product *= half
    high = np.floor(product)
    product -= high
    product *= half
    np.ceil(product, out=product)  # upwards, so that anchors with a row in common never look as if they had none
    return high, product


def check_rows(n: int) -> None:
    if n > MAX_ROWS:
        raise DataError(f"{n:,} rows are beyond the {MAX_ROWS:,} that add up exactly; give fewer.")


@dataclass(frozen=True)
class SparseGramSum:
    """Z'Z of some rows where few anchors have a row in common."""

    m: int
    n: int
    halves: sp.csr_array  # (m, m) complex: high + i low of the upper triangle
    waiting: list[Near] = field(default_factory=list)

    @classmethod
    def of(cls, m: int, near: Near) -> "SparseGramSum":
        nothing = sp.csr_array((m, m), dtype=np.complex128)
        return cls(m, len(near), nothing, [near])._flush(ROWS_AT_ONCE)

    def __add__(self, other: "SparseGramSum") -> "SparseGramSum":
        check_rows(self.n + other.n)
        halves = (
            self.halves + other.halves
            if self.halves.nnz and other.halves.nnz
            else max(self.halves, other.halves, key=lambda part: part.nnz)
        )
        together = SparseGramSum(self.m, self.n + other.n, halves, self.waiting + other.waiting)
        return together._flush(ROWS_AT_ONCE)

    def _flush(self, min_rows: int) -> "SparseGramSum":
        """The same sum with nothing waiting, if at least ``min_rows`` rows do."""
        if not self.waiting or sum(map(len, self.waiting)) < min_rows:
            return self
        near, halves = Near.joined(self.waiting), self.halves
        k = near.index.shape[1]
        rows = max(1, 2 * SPARSE_PAIRS_AT_ONCE // (k * (k + 1)))
        for start in range(0, len(near), rows):
            halves = halves + sparse_products(near.pick(slice(start, start + rows)), self.m)
        return SparseGramSum(self.m, self.n, halves)

    @cached_property
    def _gram(self) -> sp.csr_array:
        halves = self._flush(0).halves
        upper = sp.csr_array(
            (halves.data.real / SPARSE_HALF + halves.data.imag / SPARSE_HALF**2, halves.indices, halves.indptr),
            shape=halves.shape,
        )
        upper.eliminate_zeros()
        G = sp.csr_array(upper + sp.triu(upper, 1).T)
        G.sort_indices()
        return G

    def gram(self) -> sp.csr_array:
        """Z'Z (m, m), sparse."""
        return self._gram


def sparse_products(near: Near, m: int) -> sp.csr_array:
    """(m, m) complex: the products of each row's weights, added up, for all pairs of its anchors."""
    first, second, product = weight_products(near)
    high, low = in_halves(product, SPARSE_HALF)
    return sp.coo_array((high + 1j * low, (first, second)), shape=(m, m)).tocsr()


@dataclass(frozen=True)
class SumProducts:
    """A step over blocks of Near: their part of Z'Z, dense up to DENSE_ANCHORS anchors."""

    m: int

    def __call__(self, rows: Sequence[int], near: Near) -> "GramSum | SparseGramSum":
        kind = GramSum if self.m <= DENSE_ANCHORS else SparseGramSum
        return kind.of(self.m, near)
