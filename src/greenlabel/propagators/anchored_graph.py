"""The anchored graph: rows -> nearest anchors (Near) -> Z'Z, in blocks and without labels.

What is computed from all rows is a sum over blocks, so rows may be in memory, in files or on a cluster, and more of
them may come later.

Z (n, m) mixing weights     P (m, d) anchors in the unit of the fit     k anchors of each row
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.parameters import cut_neighbors
from greenlabel.blocks.rows import Blocks, joined
from greenlabel.errors import ParameterError
from greenlabel.graph.anchor_search import anchor_search, is_exact
from greenlabel.graph.anchors import (
    ALL_ROWS,
    ANCHORS,
    MEAN_ANCHORS,
    MEAN_ROWS,
    SPLIT_AXES,
    anchor_rows,
    check_anchors,
    few_number,
    find_anchors,
    usual_number,
)
from greenlabel.graph.distances import working
from greenlabel.graph.duplicates import are_equal
from greenlabel.graph.features import FILL, CheckFeatures, check_finite, in_units, unit_of
from greenlabel.graph.inverted import InvertedSearch
from greenlabel.graph.mixing import Near, NearestAnchors, SumProducts, near_bytes
from greenlabel.graph.projection import SAMPLE_ROWS, Projection, principal_axes, sample_rows
from greenlabel.graph.search import Search
from greenlabel.graph.similarity import anchor_components

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Products = Any  # GramSum, or SparseGramSum where anchors are many

SEARCH_AXES = 96  # principal axes that prove an exact search among anchors


@dataclass(frozen=True)
class AnchorSearch:
    """How rows find their nearest anchors: all of the graph that new rows need."""

    search: Search
    k: int
    n_rows: int  # for which the search was made
    projection: Projection | None  # axes that help to search

    @property
    def m(self) -> int:
        return int(self.search.P.shape[0])

    @property
    def points(self) -> Floats:
        """The anchors (m, d), dense."""
        P = self.search.P
        return P.toarray() if sp.issparse(P) else P

    def in_unit(self, unit: float) -> Floats:
        """The anchors as the features came, without a second copy of many where the unit is 1."""
        points = self.points if unit == 1 else self.points * unit
        points = points.view()
        points.flags.writeable = False
        return points

    def near(self, rows: Blocks) -> Blocks:
        """The nearest anchors of rows, searched when they are read."""
        search = self.search
        if rows.n > self.n_rows and not isinstance(search, InvertedSearch):  # another may be faster for more rows
            search = anchor_search(search.P, rows.n, self.projection)
        return rows.through(NearestAnchors(search, self.k))

    def kept_near(self, rows: Blocks, memory_limit: float | str, n_kept: int) -> tuple[Blocks, int]:
        """The same, kept in memory where they fit, and the number of rows kept. ``n_kept`` others are kept already."""
        near = self.near(rows)
        size = near_bytes(self.k, self.m, self.search.P.dtype == np.float32)
        limit = rows.memory() / 2 if memory_limit == "auto" else float(memory_limit) - size * n_kept
        return (near, 0) if rows.n * size > limit else (near.keep(), rows.n)


@dataclass(frozen=True, eq=False)
class AnchoredGraph:
    """Rows, each a mix of its nearest anchors: S = Z diag(Z'1)^-1 Z'."""

    anchor_search: AnchorSearch
    near: Blocks  # of Near
    products: Products  # Z'Z
    component: Ints  # (m,) of each anchor; -1 where no row uses it
    n_components: int
    unit: float  # of the features
    n_kept: int  # rows whose nearest anchors are kept in memory

    @classmethod
    def of(cls, search: AnchorSearch, near: Blocks, products: Products, unit: float, n_kept: int) -> "AnchoredGraph":
        component, n_components = anchor_components(sp.csr_array(products.gram()))
        return cls(search, near, products, component, n_components, unit, n_kept)

    @property
    def n(self) -> int:
        return self.products.n

    @property
    def m(self) -> int:
        return self.anchor_search.m

    @property
    def anchors(self) -> Floats:
        """(m, d), in the unit of the features as they came; read-only, as they may be those that are searched."""
        return self.anchor_search.in_unit(self.unit)

    def gram(self) -> Any:
        """Z'Z (m, m); sparse where anchors are many."""
        return self.products.gram()

    @cached_property
    def mass(self) -> Floats:
        """Z'1 (m,): for how many rows each anchor stands. Rows of Z'Z sum to it."""
        return np.asarray(self.gram().sum(axis=1)).ravel()

    @cached_property
    def is_one_point(self) -> bool:
        """Whether all anchors coincide."""
        return are_equal(self.anchor_search.search.P)

    def near_of(self, rows: Ints) -> Near:
        """The nearest anchors of some rows, which ascend."""
        return Near.joined([near for _, near in self.near.take(rows)])

    def mixing_matrix(self) -> sp.csr_array:
        """Z (n, m) of all rows."""
        return sp.csr_array(sp.vstack(list(self.near.map(partial(_matrix, self.m)))))

    def with_rows(self, rows: Blocks, memory_limit: float | str) -> "AnchoredGraph":
        """The graph with more rows after its own, on the same anchors."""
        near, n_kept = self.anchor_search.kept_near(rows, memory_limit, self.n_kept)
        return self._extended(near, near.sum(SumProducts(self.m)), n_kept)

    def with_rows_of(self, other: "AnchoredGraph") -> "AnchoredGraph":
        """The graph with the rows of another one after its own; both have the same anchors."""
        return self._extended(other.near, other.products, other.n_kept)

    def _extended(self, near: Blocks, products: Products, n_kept: int) -> "AnchoredGraph":
        together = joined(self.near, near)
        return AnchoredGraph.of(self.anchor_search, together, self.products + products, self.unit, self.n_kept + n_kept)


def _matrix(m: int, rows: Any, near: Near) -> sp.csr_array:
    return near.matrix(m)


@dataclass(frozen=True)
class AnchorSettings:
    """What an anchored graph is built with."""

    n_anchors: int | str
    n_neighbors: int
    anchors: Any  # how they are found, or the user's own (m, d)
    memory_limit: float | str
    rng: np.random.Generator
    merge_equal_rows: bool = True
    is_sketch: bool = False  # few anchors are enough

    def build(self, rows: Blocks, d: int, unit: float | None) -> AnchoredGraph:
        """The graph of rows with d features; their unit is None where a sample has to show it."""
        own_anchors = None if isinstance(self.anchors, str) else check_anchors(self.anchors, d)
        is_sparse = sp.issparse(CheckFeatures(d)(range(1), rows.take(np.array([0]))[0][1]))
        takes_rows = self._takes_rows(rows.n, is_sparse)
        usual = self._usual_number(d, takes_rows)
        m, k = self._sizes(rows.n, own_anchors, usual)
        rows, P, projection, unit = self._place_anchors(rows, m, own_anchors, usual, d, is_sparse, takes_rows, unit)
        search = anchor_search(P, rows.n, projection)
        searched = AnchorSearch(search, min(k, P.shape[0] - 1), rows.n, projection)
        near, n_kept = searched.kept_near(rows, self.memory_limit, 0)
        return AnchoredGraph.of(searched, near, near.sum(SumProducts(searched.m)), unit, n_kept)

    def _usual_number(self, d: int, takes_rows: bool) -> Callable[[int], int] | None:
        """The number of anchors by that of rows, where it is not given."""
        if self.n_anchors != "auto":
            return None
        return partial(usual_number, d=d) if takes_rows else partial(few_number, k=self.n_neighbors)

    def _takes_rows(self, n: int, is_sparse: bool) -> bool:
        """Whether there are so many anchors for the n rows that means of groups lose to rows.

        Of sparse rows only few can be searched so; and with one neighbour each row would be joined to itself alone.
        """
        is_usual = self.n_anchors == "auto" and not self.is_sketch and self._name in ("bkhk", "random")
        return is_usual and self.n_neighbors > 1 and (not is_sparse or n <= ALL_ROWS)

    @property
    def _name(self) -> str:
        """How anchors are to be found; nothing where they are given."""
        return self.anchors if isinstance(self.anchors, str) else ""

    def _sizes(self, n: int, own_anchors: Floats | None, usual: Callable[[int], int] | None) -> tuple[int, int]:
        """The numbers of anchors and of neighbours for n rows."""
        k = self.n_neighbors
        if own_anchors is not None:
            m = len(own_anchors)
            remedy = "give more anchors or lower n_neighbors"
        elif usual is not None:
            m = usual(n)
            return m, min(k, m - 1) if self.is_sketch else cut_neighbors(k, m - 1, "anchors")
        else:
            m = int(self.n_anchors)
            if m > n:
                raise ParameterError(f"n_anchors={m} needs at least {m} rows, got {n}; lower n_anchors or add rows.")
            remedy = "raise n_anchors or lower n_neighbors"
        if m <= k:
            raise ParameterError(f"n_neighbors={k} needs at least {k + 1} anchors, got {m}; {remedy}.")
        return m, k

    def _kind(self, n: int, m: int, takes_rows: bool) -> str:
        """How m anchors of n rows are found."""
        is_many = (m > MEAN_ANCHORS and n < MEAN_ROWS * m) or takes_rows
        return "random" if self._name == "bkhk" and is_many else self._name

    def _place_anchors(
        self,
        rows: Blocks,
        m: int,
        own_anchors: Any,
        usual: Callable[[int], int] | None,
        d: int,
        is_sparse: bool,
        takes_rows: bool,
        unit: float | None,
    ) -> tuple[Blocks, Any, Projection | None, float]:
        """The rows in the unit of the fit, the anchors, the axes that help to search them, and the unit."""
        n, rng = rows.n, self.rng
        kind = self._kind(n, m, takes_rows)
        is_wide = not is_sparse and d > SPLIT_AXES and (is_exact(m, d) or kind in ("bkhk", "kmeans"))
        for_axes = sample_rows(n, SAMPLE_ROWS, rng) if is_wide else np.arange(0)
        for_anchors = anchor_rows(kind, n, m, rng) if kind else np.arange(0)
        rows, X, index_of, unit = _sample(rows, np.union1d(for_axes, for_anchors), d, unit)
        projection = None
        if is_wide:
            projection = principal_axes(working(X[index_of(for_axes)]), min(d, SEARCH_AXES))
        if kind:
            P = self._find_anchors(kind, X, index_of(for_anchors), m, projection, usual)
        else:
            P = own_anchors / unit
        return rows, sp.csr_array(P) if is_sparse else P, projection, unit

    def _find_anchors(
        self, kind: str, X: Any, rows: Ints, m: int, projection: Projection | None, usual: Callable[[int], int] | None
    ) -> Any:
        if not self.merge_equal_rows:
            return ANCHORS[kind](X, rows, m, projection, self.rng)
        if self.is_sketch and usual is not None:  # a label covers copies: each different row may be an anchor
            return find_anchors(kind, X, rows, m, projection, self.rng, lambda u: min(u, m))
        return find_anchors(kind, X, rows, m, projection, self.rng, usual)


def _sample(
    rows: Blocks, chosen: Ints, d: int, unit: float | None
) -> tuple[Blocks, Any, Callable[[Ints], Ints], float]:
    """Rows in their unit, an array that holds the chosen ones, the index of each in it, and the unit.

    The unit of rows in memory is known; that of others is found from the sample, which is read in one pass.
    """
    if unit is not None:
        X, indices = rows.some(chosen)
    else:
        chosen = np.union1d(chosen, sample_rows(rows.n, SAMPLE_ROWS, np.random.default_rng(0)))
        X, indices = rows.through(CheckFeatures(d)).some(chosen)
        max_abs = check_finite(X, FILL)
        unit = unit_of(X, max_abs)
        X = in_units(X, unit, max_abs)
        rows = rows.through(CheckFeatures(d, unit))
    return rows, X, lambda wanted: indices[np.searchsorted(chosen, wanted)], unit
