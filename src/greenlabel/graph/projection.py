"""Principal axes: a few directions that hold most of the distance between rows.

    Q = (X - 1 mean') V        Q (n, q) coordinates, V (d, q) orthonormal, leading axis first

Distances between coordinates never exceed distances between rows. The splits of the anchors, the exact search in two
steps and the approximate search all work on these coordinates; they are found once, from a sample of the rows.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from greenlabel._common.threads import in_parallel, one_thread

Floats = NDArray[np.floating]

SAMPLE_ROWS = 4096


@dataclass(frozen=True)
class Projection:
    """Orthonormal axes through a mean."""

    mean: Floats  # (d,)
    axes: Floats  # (d, q)


def principal_axes(sample: Floats, n_axes: int) -> Projection:
    """The ``n_axes`` leading principal axes of a sample of rows, in double precision.

    Single precision would find other axes with every kind of processor, and the axes decide which rows are compared.
    """
    mean = sample.mean(axis=0, dtype=np.float64)
    centred = sample - mean
    d = centred.shape[1]
    C = products_of_columns(centred)
    with one_thread():  # two threads would round differently
        _, V = scipy.linalg.eigh(C, subset_by_index=[d - n_axes, d - 1], check_finite=False)
    return Projection(mean, np.ascontiguousarray(same_signs(V[:, ::-1])))


def products_of_columns(A: Floats) -> Floats:
    """A'A (d, d): one block between two halves of the columns takes as long as those within the halves."""
    d = A.shape[1]
    C, halves = np.empty((d, d)), [slice(0, d // 2), slice(d // 2, d)]

    def multiply(pairs: list[tuple[slice, slice]]) -> None:
        for one, two in pairs:
            C[one, two] = A[:, one].T @ A[:, two]
            C[two, one] = C[one, two].T

    in_parallel(multiply, [[(halves[0], halves[1])], [(half, half) for half in halves]])
    return C


def same_signs(V: Floats) -> Floats:
    """The axes, each turned to the same side on any machine: an axis and its opposite are equally principal."""
    return np.where(np.cos(np.arange(len(V))) @ V < 0, -V, V)


def centre(X: Floats, mean: Floats) -> NDArray[np.float32]:
    return np.ascontiguousarray(X - mean.astype(X.dtype), dtype=np.float32)


def coordinates(X: Floats, projection: Projection, n_axes: int | None = None) -> NDArray[np.float32]:
    """Q = (X - mean) V of one block of rows; to be called on one thread."""
    V = np.ascontiguousarray(projection.axes[:, :n_axes], dtype=np.float32)
    return centre(X, projection.mean) @ V


def sample_rows(n: int, size: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows of a sample without repeats, ascending; all n of them where ``size`` is as large."""
    if size >= n:
        return np.arange(n)
    return np.sort(rng.choice(n, size, replace=False, shuffle=False))
