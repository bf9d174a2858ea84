"""Anchors: a few points that stand in for all rows.

Each row is a mix of its k nearest anchors, and rows that share anchors are similar:

    S = Z diag(Z'1)^-1 Z' = B B'            (Eq. S_Z)

    X (n, d) rows     P (m, d) anchors     Z (n, m) mixing weights, rows sum to 1, k entries each

BKHK (balanced k-means based hierarchical k-means) finds anchors by halving: all rows are split into two equal halves
by balanced 2-means, each half again, until m groups are left; an anchor is the mean of a group. With two centres the
balanced assignment is a cut at the median along the line through them, so one round of 2-means is a projection, a
partition and two means. All groups of a level are split at once.

Many rows of a regular grid lie on one cut. Which side they go to must not hang on the last digit of a product, which
differs between processors: places along the line are rounded, and equal ones go by the order of the rows.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.parameters import warn
from greenlabel._common.threads import in_parallel
from greenlabel.errors import DataError, ParameterError
from greenlabel.graph.distances import COPIES, row_blocks, taken, working
from greenlabel.graph.duplicates import distinct_rows
from greenlabel.graph.kmeans import kmeans_groups
from greenlabel.graph.neighbors import neighbour_matrix
from greenlabel.graph.projection import Projection, sample_rows
from greenlabel.graph.search import Search

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

SPLIT_AXES = 32  # principal axes on which splits are found
SPLIT_ROUNDS = 6  # rounds of balanced 2-means per split
SPLIT_STEPS = 2.0**30  # to which places along a line, and variances, are rounded
SPLIT_ROWS = 2048  # rows of a group from which the direction of its split is found
PART_VALUES = 2**18  # coordinates of groups that are split together
FEW_SHARE, FEW_ANCHORS = 4, 2048  # few anchors: one in FEW_SHARE rows, up to FEW_ANCHORS
MIN_ANCHORS = 6  # times n_neighbors: with edges to most anchors, all rows would look alike
ROWS_PER_ANCHOR = 48  # more rows per anchor do not move the anchors
COLUMNS_AT_ONCE = 256  # of the means of groups, which threads share out
MEAN_ANCHORS = 8192  # beyond so many, rows are better anchors than means
MEAN_ROWS = 8  # of fewer rows than these; means of more leave out what rows have of noise
ALL_ROWS = 1024  # n_anchors="auto": all of so many rows,
HALF_OF_ROWS = 32_768  # half of more rows, up to so many anchors,
QUARTER_OF_ROWS = 262_144  # a quarter of still more, up to so many anchors
MAX_VALUES = 2**28  # and so many numbers in them: a gigabyte


def mixing_weights(dist2: Floats) -> Floats:
    """Weights of each row on its k nearest anchors, free of parameters (Eq. Z).

    dist2 : (n, k + 1) squared distances, ascending; the last column is the yardstick only.
    returns (n, k), rows sum to 1.  Where all k + 1 distances are equal, the weights are equal too.
    """
    gap = dist2[:, -1:] - dist2[:, :-1]
    total = reduce(np.add, gap.T)[:, None]  # in this order, which NumPy's sum changes with the layout
    if (total == 0).any():
        return np.divide(gap, total, out=np.full_like(gap, 1 / gap.shape[1]), where=total > 0)
    gap /= total
    return gap


def mixing_matrix(X: Any, search: Search, k: int) -> sp.csr_array:
    """Z (n, m): each row's weights on its k nearest anchors. Only a few blocks of rows are in work at a time."""
    n, m = X.shape[0], search.P.shape[0]
    index, weight = np.empty((n, k), np.int32), np.empty((n, k))

    def mix(rows: slice) -> None:
        dist2, nearest = search.nearest(X[rows], k + 1)
        index[rows], weight[rows] = nearest[:, :-1], mixing_weights(dist2)

    in_parallel(mix, row_blocks(n, X.shape[1]))
    return neighbour_matrix(index, weight, m)


def check_anchors(P: Any, d: int) -> Floats:
    """The user's own anchors (m, d), each point once."""
    if sp.issparse(P):
        P = P.toarray()
    if np.isscalar(P) or P is None:
        names = ", ".join(map(repr, ANCHORS))
        raise ParameterError(
            f"anchors={P!r} is neither a name nor an array; give one of {names}, or an (m, {d}) array."
        )
    try:
        P = np.asarray(P)
        P = working(P if P.dtype.kind in "fiub" else P.astype(np.float64, casting="safe"))
    except (TypeError, ValueError) as error:
        raise ParameterError(f"anchors are no table of numbers; give an (m, {d}) array.") from error
    if P.ndim != 2 or P.shape[1] != d:
        raise ParameterError(f"anchors have shape {P.shape}, X has {d} columns; give an (m, {d}) array.")
    if not np.isfinite(P).all():
        raise DataError("anchors hold NaN or infinity; give finite coordinates.")
    nodes = distinct_rows(P)
    if nodes is None:
        return P
    warn(f"anchors hold {len(P) - len(nodes.first)} rows that repeat an earlier one; each point is one anchor.")
    return P[nodes.first]


def bkhk_groups(Q: Floats, m: int, rng: np.random.Generator) -> Ints:
    """The group of each row by BKHK. Sizes of groups differ by at most one per level of the split."""
    order = rng.permutation(len(Q))  # so that every stretch of a group is a sample of it
    sizes, leaves = np.array([len(Q)]), np.array([m])
    while leaves.max() > 1:
        left_leaves = leaves // 2
        left_sizes = np.where(leaves > 1, np.rint(sizes * left_leaves / leaves).astype(int), sizes)
        starts = np.cumsum(sizes) - sizes
        for size, left in {*zip(sizes[leaves > 1].tolist(), left_sizes[leaves > 1].tolist(), strict=True)}:
            chosen = starts[(sizes == size) & (left_sizes == left) & (leaves > 1)]
            indices = chosen[:, None] + np.arange(size)
            order[indices] = _halve_all(Q, order[indices], left)
        sizes, leaves = _children(sizes, left_sizes, leaves), _children(leaves, left_leaves, leaves)
    group = np.empty(len(Q), np.intp)
    group[order] = np.repeat(np.arange(m), sizes)
    return group


def _children(parent: Ints, left: Ints, leaves: Ints) -> Ints:
    """Left and right parts, side by side; a group that is a leaf already stays whole."""
    split = leaves > 1
    pairs = np.column_stack([np.where(split, left, parent), np.where(split, parent - left, -1)]).ravel()
    return pairs[pairs >= 0]


def _halve_all(Q: Floats, rows: Ints, left: int) -> Ints:
    """``halve`` of all groups, of which none depends on another one, some at a time: large copies take longer."""
    n_parts = min(len(rows), rows.size * Q.shape[1] // PART_VALUES) or 1
    return np.concatenate(in_parallel(lambda part: halve(Q, part, left), np.array_split(rows, n_parts)))


def halve(Q: Floats, rows: Ints, left: int) -> Ints:
    """Balanced 2-means of g groups of equal size: rows (g, size) reordered so that the first ``left`` are one side."""
    size = rows.shape[1]
    step = max(1, size // SPLIT_ROWS)
    T = Q[rows[:, ::step]]
    n_left = round(left * T.shape[1] / size)
    apart = T - T.mean(axis=1, keepdims=True)  # a group may be far from the origin and narrow
    direction = np.eye(Q.shape[1], dtype=Q.dtype)[in_steps(np.einsum("gsq,gsq->gq", apart, apart)).argmax(axis=1)]
    for _ in range(SPLIT_ROUNDS):
        is_left = lower_side((T @ direction[:, :, None])[:, :, 0], n_left)
        side = np.where(is_left, -1 / n_left, 1 / (T.shape[1] - n_left))
        direction = (side[:, None, :] @ T)[:, 0, :]  # mean of one side minus mean of the other
    is_left = lower_side(np.einsum("gsq,gq->gs", T if step == 1 else Q[rows], direction), left)
    return np.hstack([rows[part].reshape(len(rows), -1) for part in (is_left, ~is_left)])


def lower_side(along: Floats, left: int) -> NDArray[np.bool_]:
    """Which ``left`` entries of each row (g, size) are the smallest; of equal ones the first."""
    size = along.shape[1]
    key = in_steps(along) * size + np.arange(size)
    return np.asarray(key <= np.partition(key, left - 1, axis=1)[:, left - 1, None])


def in_steps(values: Floats) -> NDArray[np.int64]:
    """Each row of the values (g, size) in whole steps of its largest; a row of zeros stays one."""
    largest = np.abs(values).max(axis=1, keepdims=True)
    return np.rint(np.divide(values, largest, out=np.zeros_like(values), where=largest > 0) * SPLIT_STEPS).astype(int)


def split_coordinates(X: Any, rows: Ints, projection: Projection | None, rng: np.random.Generator) -> Floats:
    """Few coordinates of the sampled rows, enough to split them, in double precision."""
    if sp.issparse(X):
        if X.shape[1] <= SPLIT_AXES:
            return X[rows].toarray()
        from sklearn.decomposition import TruncatedSVD

        return TruncatedSVD(SPLIT_AXES, random_state=int(rng.integers(2**31))).fit_transform(X[rows])
    if projection is None:
        return np.asarray(X[rows] - X[rows].mean(axis=0, dtype=np.float64))
    V = np.ascontiguousarray(projection.axes[:, :SPLIT_AXES])

    def project(part: slice) -> Floats:
        return np.asarray((X[rows[part]] - projection.mean) @ V)

    return np.concatenate(in_parallel(project, row_blocks(len(rows), COPIES * X.shape[1])))


def group_means(X: Any, rows: Ints, group: Ints, m: int) -> Any:
    """P (m, d): the mean of each group of rows, in full dimension. An empty group takes a row of the largest one."""
    counts = np.bincount(group, minlength=m)
    for empty in np.flatnonzero(counts == 0):
        moved = np.flatnonzero(group == counts.argmax())[0]
        counts[group[moved]] -= 1
        group[moved] = empty
        counts[empty] = 1
    if sp.issparse(X):
        member = sp.csr_array((1 / counts[group], (group, np.arange(len(rows)))), shape=(m, len(rows)))
        return (member @ X[rows]).tocsr()
    total, d = np.zeros((m, X.shape[1])), X.shape[1]

    def add_up(columns: slice) -> None:
        for part in row_blocks(len(rows), d):
            size = part.stop - part.start
            member = sp.csr_array((np.ones(size), (group[part], np.arange(size))), shape=(m, size))
            total[:, columns] += member @ working(X[rows[part], columns])

    in_parallel(add_up, [slice(start, start + COLUMNS_AT_ONCE) for start in range(0, d, COLUMNS_AT_ONCE)])
    return working((total / counts[:, None]).astype(working(X[:1]).dtype))


def bkhk(X: Any, rows: Ints, m: int, projection: Projection | None, rng: np.random.Generator) -> Any:
    """P (m, d): means of groups of equal size."""
    Q = split_coordinates(X, rows, projection, rng)
    return group_means(X, rows, bkhk_groups(Q, m, rng), m)


def kmeans(X: Any, rows: Ints, m: int, projection: Projection | None, rng: np.random.Generator) -> Any:
    """P (m, d): means of the groups of plain k-means."""
    Q = split_coordinates(X, rows, projection, rng)
    return group_means(X, rows, kmeans_groups(Q, m, int(rng.integers(2**31))), m)


def drawn(X: Any, rows: Ints, m: int, projection: Projection | None, rng: np.random.Generator) -> Any:
    """P (m, d): rows drawn at random."""
    return taken(X, rows[sample_rows(len(rows), m, rng)])


# Each from a sample of the rows where there are more than the anchors need.
ANCHORS: dict[str, Callable[..., Any]] = {"bkhk": bkhk, "kmeans": kmeans, "random": drawn}
PER_ANCHOR = {"bkhk": ROWS_PER_ANCHOR, "kmeans": ROWS_PER_ANCHOR, "random": 1}


def find_anchors(
    name: str,
    X: Any,
    rows: Ints,
    m: int,
    projection: Projection | None,
    rng: np.random.Generator,
    usual: Callable[[int], int] | None = None,
) -> Any:
    """P (m, d) from these rows of X; where rows are equal and anchors coincide, anew from the distinct rows.

    Where a row has more copies than a group has rows, several anchors are that row. If they were all of its k nearest
    anchors, it would have no edge to anything else. The distinct rows have no such groups. ``usual(u)`` is the number
    of anchors for u of them; without it there are m, or all of them.
    """
    P = ANCHORS[name](X, rows, m, projection, rng)
    # Means of equal rows may differ by rounding, in double precision.
    if (nodes := distinct_rows(P.astype(np.float32, copy=False))) is None:
        return P
    if name == "random" and len(nodes.first) > 1:
        if usual is None:
            warn(f"{m - len(nodes.first)} of {m} rows drawn as anchors repeat another one; each point is one anchor.")
        return P[nodes.first]
    nodes = distinct_rows(working(X[rows]))
    if nodes is None or len(nodes.first) == 1:
        return P  # means of different rows coincide; or all rows are equal, and so are all anchors
    u = len(nodes.first)
    if usual is None and u < m:
        warn(f"n_anchors={m} is too many for {u} distinct rows; {u} are used.")
    return ANCHORS[name](X, rows[nodes.first], min(m, usual(u) if usual else u), projection, rng)


def usual_number(n: int, d: int) -> int:
    """The number of anchors of n dense rows with d features under n_anchors="auto", where anchors are rows.

    All of few rows, then half of them; from 65,536 rows on a quarter, as far as a person would wait for it.
    """
    if n <= 2 * HALF_OF_ROWS:
        return min(n, max(ALL_ROWS, n // 2))
    return max(HALF_OF_ROWS, min(n // 4, QUARTER_OF_ROWS, MAX_VALUES // d))


def few_number(n: int, k: int) -> int:
    """The same where anchors are means, where features are sparse, and for a sketch of the rows."""
    m = min(FEW_ANCHORS, max(n // FEW_SHARE, min(n // 2, MIN_ANCHORS * k)))
    return max(m, min(k + 1, n))


def anchor_rows(name: str, n: int, m: int, rng: np.random.Generator) -> Ints:
    """The rows from which m anchors are found, ascending."""
    return sample_rows(n, PER_ANCHOR[name] * m, rng)
