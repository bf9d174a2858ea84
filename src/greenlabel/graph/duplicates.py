"""Equal rows are one node of a graph.

If each of them were a node, a row with more than k copies would have only these as neighbours: an island that no label
reaches. So the graph is that of the distinct rows, and

    F = E G_u E' Y          G_u the operator on the u distinct rows

E (n, u) has a 1 in each row, at its node.  E'Y adds up the labels on equal rows: two of them count twice, and where
they contradict each other, both count.  F has equal rows for equal rows.

Rows are equal where all their numbers are; -0 equals 0.  Nodes are numbered in the order of their first rows.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.threads import in_parallel
from greenlabel.graph.distances import row_blocks

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

VALUES_AT_ONCE = 2**17  # whose copy in double precision stays in the processor's cache


class AllDistinct:
    """No two rows are equal: every row is a node, and there is nothing to do."""

    def sum_rows(self, Y: Any) -> Any:
        """E'Y (u, c): Y summed over the rows of each node."""
        return Y

    def to_rows(self, F: Any) -> Any:
        """E F (n, ...): every row has what its node has."""
        return F

    def to_nodes(self, F: Any) -> Any:
        """F (u, ...) of E F."""
        return F

    def numbers(self, rows: Ints) -> Ints:
        """The node of each of the rows."""
        return rows


@dataclass(frozen=True)
class Nodes(AllDistinct):
    """Which rows are equal."""

    first: Ints  # (u,) the first row of each node, ascending
    of_row: Ints  # (n,) the node of each row

    def sum_rows(self, Y: Any) -> sp.csr_array:
        Y = sp.coo_array(Y)
        rows, columns = Y.coords
        return sp.csr_array((Y.data, (self.of_row[rows], columns)), shape=(len(self.first), Y.shape[1]))

    def to_rows(self, F: Any) -> Any:
        return F[self.of_row]

    def to_nodes(self, F: Any) -> Any:
        return F[self.first]

    def numbers(self, rows: Ints) -> Ints:
        return self.of_row[rows]


def distinct_rows(X: Any) -> Nodes | None:
    """The nodes of the rows of X (n, d), dense or CSR; None where no two rows are equal.

    Rows are compared by a sum of their numbers, those that it does not tell apart by their hashes, and rows of equal
    hash once more number by number: O(n d).
    """
    X = _canonical(X)
    if not sp.issparse(X) and _all_differ(_hashes(X[perhaps_equal(X)])):
        return None
    hashes = _hashes(X)
    if _all_differ(hashes):
        return None
    nodes = _nodes(hashes)
    if not _is_exact(X, nodes):
        nodes = _nodes(_numbers(_bytes_of_rows(X)))
    return nodes if len(nodes.first) < X.shape[0] else None


def are_equal(X: Any) -> bool:
    """Whether all rows of X are equal."""
    if sp.issparse(X):
        return bool((X[np.zeros(X.shape[0], int)] != X).nnz == 0)
    return bool((X[:1] == X).all())


def _nodes(keys: Ints) -> Nodes:
    """From a key for each row, equal for equal rows."""
    _, first, of_row = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return Nodes(first[order], number[of_row.ravel()])


def perhaps_equal(X: Floats) -> Ints:
    """Rows that a sum of their numbers, each with a weight of its column, does not tell from all others."""
    n, d = X.shape
    weight = np.asarray(np.random.default_rng(0).uniform(0.5, 1.5, d))
    total, size = np.empty(n), max(1, VALUES_AT_ONCE // max(1, d))

    def add_up(rows: slice) -> float:
        """The largest number, too. Small blocks in a large one stay in the cache, and do not wait for each other."""
        largest = 0.0
        for start in range(rows.start, rows.stop, size):
            part = slice(start, min(start + size, rows.stop))
            with np.errstate(over="ignore", invalid="ignore"):
                np.dot(X[part].astype(np.float64), weight, out=total[part])
            largest = max(largest, float(X[part].max(initial=0)), -float(X[part].min(initial=0)))
        return largest

    rounding = d * np.finfo(np.float64).eps * weight.sum() * max(in_parallel(add_up, row_blocks(n, d)), default=0.0)
    order = np.argsort(total, kind="stable")
    with np.errstate(invalid="ignore"):
        is_told = np.diff(total[order]) > 2 * rounding  # from the next one; never where a sum overflows
    is_alone = np.append(is_told, True) & np.insert(is_told, 0, True)
    return np.sort(order[~is_alone])


def _hashes(X: Any) -> Ints:
    return np.fromiter(map(hash, _bytes_of_rows(X)), np.int64, X.shape[0])


def _all_differ(values: Ints) -> bool:
    ordered = np.sort(values)
    return bool((ordered[1:] != ordered[:-1]).all())


def _canonical(X: Any) -> Any:
    """Sparse rows with sorted columns, without duplicates and zeros, so that equal rows have equal arrays."""
    if not sp.issparse(X):
        return X
    X = sp.csr_array(X, copy=True)
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def _bytes_of_rows(X: Any) -> Iterator[bytes]:
    if sp.issparse(X):
        for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
            yield X.indices[start:stop].tobytes() + X.data[start:stop].tobytes()
        return
    for rows in row_blocks(*X.shape):
        block = np.ascontiguousarray(X[rows] + 0)  # -0 becomes 0
        yield from block.view(f"V{block.itemsize * block.shape[1]}").ravel().tolist()


def _is_exact(X: Any, nodes: Nodes) -> bool:
    """Whether every row equals the first row of its node."""
    first = nodes.first[nodes.of_row]
    copies = np.flatnonzero(first != np.arange(len(first)))
    for part in row_blocks(len(copies), X.shape[1]):
        rows = copies[part]
        differ = X[rows] != X[first[rows]]
        if differ.nnz if sp.issparse(X) else differ.any():
            return False
    return True


def _numbers(keys: Iterable[bytes]) -> Ints:
    """A number for each key, the same for equal keys; needed where two hashes are equal by chance."""
    known: dict[bytes, int] = {}
    return np.fromiter((known.setdefault(key, len(known)) for key in keys), np.int64)
