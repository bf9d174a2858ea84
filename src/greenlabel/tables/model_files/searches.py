"""The parts of a model file that hold rows: matrices, and searches among their rows, made again from their points.

float64, flat, reduced, cluster, inverted     searches
"""

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from greenlabel.errors import ModelFileError
from greenlabel.graph.inverted import InvertedSearch
from greenlabel.graph.neighbors import ClusterSearch, FlatSearch, Float64Search, ReducedSearch
from greenlabel.graph.projection import Projection
from greenlabel.graph.search import Search
from greenlabel.tables.model_files.container import Arrays, Part

Values = dict[str, Any]

FAR = 1e17  # no coordinate of a point is farther out: squares of such numbers fit in single precision
MAX_FEATURES = 2**31
MAX_EMPTY = 100  # cells of a sparse matrix for each number in it: what is made dense of it stays in proportion


def kind_of(thing: Any, kinds: dict[str, type]) -> str:
    """The word for the type of a thing; other things cannot be saved."""
    for word, cls in kinds.items():
        if type(thing) is cls:
            return word
    raise ModelFileError(
        f"a model with {type(thing).__name__} in it cannot be saved; a model file holds {', '.join(kinds)} alone."
    )


def write_matrix(X: Any, out: Arrays) -> Any:
    if not sp.issparse(X):
        return {"dense": out.add(X)}
    X = sp.csr_array(X, dtype=np.float64)
    X.sum_duplicates()
    if too_empty(X):
        raise ModelFileError(
            f"a model of sparse rows with less than one number among {MAX_EMPTY} cells cannot be saved; "
            "reduce the features first, such as by scikit-learn's TruncatedSVD."
        )
    parts = {name: out.add(array) for name, array in (("data", X.data), ("columns", X.indices), ("starts", X.indptr))}
    return {"width": X.shape[1], **parts}


def read_matrix(part: Part, n: int | None, d: int | None) -> Any:
    """Rows of finite numbers, dense or sparse; one at the least."""
    if part.has("dense"):
        X = part.array("dense", "f", (n, d), -FAR, FAR)
        if not X.size:
            part.refuse("dense", "is empty")
        return X
    width = part.whole("width", d or 1, d or MAX_FEATURES)
    data = part.array("data", "f", (None,), -FAR, FAR).astype(np.float64)
    columns = part.array("columns", "i", (len(data),), 0, width - 1).astype(np.int64)
    starts = part.array("starts", "i", (None if n is None else n + 1,), 0, len(data)).astype(np.int64)
    row = np.repeat(np.arange(max(0, len(starts) - 1)), np.maximum(np.diff(starts), 0))
    is_sound = len(starts) > 1 and starts[0] == 0 and starts[-1] == len(data) and (np.diff(starts) >= 0).all()
    if not is_sound or not (np.diff(row * width + columns) > 0).all():
        part.refuse("starts", "and columns are those of no sparse matrix")
    X = sp.csr_array((data, columns, starts), shape=(len(starts) - 1, width))
    if too_empty(X):
        part.refuse("width", "is far beyond the numbers of its matrix")
    return X


def too_empty(X: Any) -> bool:
    return math.prod(X.shape) > MAX_EMPTY * (X.nnz + X.shape[0])


SEARCHES: dict[str, type] = {
    "float64": Float64Search,
    "flat": FlatSearch,
    "reduced": ReducedSearch,
    "cluster": ClusterSearch,
    "inverted": InvertedSearch,
}


def write_search(search: Any, out: Arrays) -> Values:
    kind = kind_of(search, SEARCHES)
    values = {"kind": kind, "points": write_matrix(search.P, out)}
    if kind in ("reduced", "cluster", "inverted"):
        values["projection"] = write_projection(search.projection, out)
    if kind in ("cluster", "inverted"):
        values |= {"centres": out.add(search.centres), "group": out.add(search.group.ravel())}
    return values


def read_search(part: Part, d: int) -> Search:
    kind, P = part.text("kind", SEARCHES), read_matrix(part.part("points"), None, d)
    if kind != "float64" and sp.issparse(P):
        part.refuse("points", "are sparse")
    if kind in ("float64", "flat"):
        return SEARCHES[kind](P)
    projection = read_projection(part.part("projection"), d)
    if kind == "reduced":
        return ReducedSearch(P, projection)
    centres = part.array("centres", "f", (None, projection.axes.shape[1]), -FAR, FAR)
    group = part.array("group", "i", (len(P),), 0, len(centres) - 1)
    restored = InvertedSearch.restored if kind == "inverted" else ClusterSearch.restored
    return restored(P, projection, centres, group)


def write_projection(projection: Projection, out: Arrays) -> Values:
    return {"mean": out.add(projection.mean), "axes": out.add(projection.axes)}


def read_projection(part: Part, d: int) -> Projection:
    axes = part.array("axes", "f", (d, None), -1.01, 1.01)
    if not 0 < axes.shape[1] <= d:
        part.refuse("axes", "are too many or none")
    return Projection(part.array("mean", "f", (d,), -FAR, FAR), axes)
