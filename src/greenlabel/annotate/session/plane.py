"""The map: a position in the plane for each row; near means alike.

    first_plane        the two leading principal axes of the anchors: at once
    layout             t-SNE of the anchors, or of the rows where they are few: some seconds, then kept on disk
    place_rows         rows around their anchors

A row stands at the mean of those of its anchors that lie near its heaviest one on the map; the plain mean would draw
bridges across places where t-SNE tears the anchors of a row apart. A small jitter shows how many rows share a place.

P (m, d) anchors     Q (m, 2) their positions     Z (n, m) mixing weights, k entries a row
"""

import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from greenlabel._common.files import whole_file
from greenlabel.annotate.session.anchoring import Mixing
from greenlabel.annotate.session.child import Arrays, Child
from greenlabel.graph.projection import coordinates, principal_axes
from greenlabel.inspection.sketch import MAX_ANCHORS
from greenlabel.tables.report.plane import positions as tsne
from greenlabel.tables.report.plane import principal_components

Floats = NDArray[np.floating]
Floats32 = NDArray[np.float32]
Ints = NDArray[np.integer]

ROWS_THEMSELVES = 5000  # up to so many rows are laid out one by one
SPACING_NEIGHBOR = 5  # the distance to this neighbour on the map is the local spacing
MAX_SPACINGS = 3.0  # within which an anchor counts as near another one
JITTER = 0.6  # of the local spacing
COPY_JITTER = 0.2  # the same where each row has its own place, and only copies share one
AT_ONCE = 100  # points for which no process is worth its start
VERSION = 1  # of the rule: a map kept by another one is made anew
MARGIN = 0.98  # so that no point lies on the rim


def first_plane(mixing: Mixing) -> Floats32:
    """Rows on the two leading principal axes of the anchors."""
    Q = np.zeros((len(mixing.anchors), 2), np.float32)
    axes = leading_coordinates(mixing.anchors)
    Q[:, : axes.shape[1]] = axes
    return in_square(np.asarray(mixing.plain @ Q))


def leading_coordinates(P: Any) -> Floats:
    """Of anchors on their first two principal axes; by products of columns or of rows, whichever are fewer."""
    m, d = P.shape
    if d > m:
        return principal_components(P)[:, :2]
    P = P.astype(np.float64)
    return coordinates(P, principal_axes(P, min(2, d)))


def points_to_lay_out(mixing: Mixing, X: Any) -> Any:
    """What t-SNE sees: the rows, or the anchors where there are many rows; the anchors too where they are all rows."""
    return X if len(mixing.anchors) < X.shape[0] // 2 and X.shape[0] <= ROWS_THEMSELVES else mixing.anchors


def layout_of_arrays(arrays: Arrays) -> Arrays:
    """The task of a child process."""
    return {"Q": tsne(arrays["points"])}


def layout(points: Any, cache: Path | None, announce: Callable[[Child], Any]) -> Floats | None:
    """Positions of points by t-SNE, made once for the same points; None where the process was ended.

    ``announce`` is told the process, to end it if need be.
    """
    place = None if cache is None else cache / f"map-{fingerprint(points)[:32]}.npy"
    found = read_layout(place, points.shape[0])
    if found is not None:
        return found
    found = tsne(points) if points.shape[0] <= AT_ONCE else layout_by_child(points, announce)
    if found is not None and place is not None:
        keep_layout(place, found)
    return found


def layout_by_child(points: Any, announce: Callable[[Child], Any]) -> Floats | None:
    child = Child("plane", {"points": points})
    announce(child)
    try:
        result = child.result()
        return None if result is None else np.array(result["Q"], np.float64)
    finally:
        child.close()


def fingerprint(points: Any) -> str:
    """Hash of what is laid out and of the rule."""
    digest = hashlib.sha256(f"{VERSION} {points.shape} {points.dtype}".encode())
    for part in (points.data, points.indices, points.indptr) if sp.issparse(points) else (points,):
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def read_layout(place: Path | None, n: int) -> Floats | None:
    """A map that was kept; None where there is none, or where the file is not what it should be."""
    if place is None:
        return None
    try:
        Q = np.load(place, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError):
        return None
    is_sound = isinstance(Q, np.ndarray) and Q.shape == (n, 2) and Q.dtype == np.float64 and np.isfinite(Q).all()
    return Q if is_sound else None


def keep_layout(place: Path, Q: Floats) -> None:
    """Kept where that is possible; a map can always be made again."""
    with suppress(OSError):
        os.makedirs(place.parent, exist_ok=True)
        with whole_file(place) as draft:
            np.save(draft.with_suffix(".npy"), Q)


def settled_plane(mixing: Mixing, Q: Floats, seed: int) -> Floats32:
    """Rows where t-SNE has put them, or around their anchors."""
    n, m = mixing.plain.shape
    if len(Q) == n and m < n:
        return in_square(Q)
    index, weight = entries(mixing.plain)
    if n <= MAX_ANCHORS:  # each different row is an anchor
        return in_square(at_heaviest(Q, index, weight, seed))
    return in_square(place_rows(Q, index, weight, seed))


def entries(Z: sp.csr_array) -> tuple[Ints, Floats]:
    """Anchors (n, k) of each row and their weights."""
    k = Z.nnz // Z.shape[0]
    return Z.indices.reshape(-1, k), Z.data.reshape(-1, k)


def place_rows(Q: Floats, index: Ints, weight: Floats, seed: int) -> Floats:
    """Each row at the mean of those of its anchors that are near its heaviest one, and a little beside it."""
    spacing = local_spacing(Q)
    heaviest = np.take_along_axis(index, weight.argmax(axis=1)[:, None], axis=1)[:, 0]
    total, mass = np.zeros((len(index), 2)), np.zeros(len(index))
    for anchor, part in zip(index.T, weight.T, strict=True):
        apart = np.hypot(*(Q[anchor] - Q[heaviest]).T)
        near = part * (apart <= MAX_SPACINGS * spacing[heaviest])
        total += near[:, None] * Q[anchor]
        mass += near
    return total / mass[:, None] + jitter(spacing[heaviest] * JITTER, seed)


def at_heaviest(Q: Floats, index: Ints, weight: Floats, seed: int) -> Floats:
    """Each row at its heaviest anchor; copies of a row a little beside it, and the first of them not."""
    heaviest = np.take_along_axis(index, weight.argmax(axis=1)[:, None], axis=1)[:, 0]
    is_copy = np.ones(len(index), bool)
    is_copy[np.unique(heaviest, return_index=True)[1]] = False
    return Q[heaviest] + jitter(is_copy * local_spacing(Q)[heaviest] * COPY_JITTER, seed)


def local_spacing(Q: Floats) -> Floats:
    """(m,) the distance of each point to its fifth neighbour, or to the last one of fewer."""
    k = min(SPACING_NEIGHBOR, len(Q) - 1)
    return cKDTree(Q).query(Q, k=[k + 1])[0][:, 0] if k else np.zeros(len(Q))


def jitter(radius: Floats, seed: int) -> Floats:
    """Points drawn evenly from discs of these radii."""
    rng = np.random.default_rng(seed)
    angle, size = rng.uniform(0, 2 * np.pi, len(radius)), radius * np.sqrt(rng.uniform(size=len(radius)))
    return np.column_stack([size * np.cos(angle), size * np.sin(angle)])


def in_square(Q: Floats) -> Floats32:
    """The same picture inside [-1, 1]; all in the middle where it is a point."""
    low, high = Q.min(axis=0), Q.max(axis=0)
    size = float((high - low).max()) / 2
    return ((Q - (low + high) / 2) * (MARGIN / size if size else 0.0)).astype(np.float32)
