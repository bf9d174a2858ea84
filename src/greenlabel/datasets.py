"""Data sets that need no download, and labels taken away for a trial."""

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from greenlabel._common.parameters import check_integer
from greenlabel.errors import LabelError
from greenlabel.labels.encoding import UNLABELED, as_labels, is_unlabelled

Floats = NDArray[np.float64]


def two_rings(*, connected: bool = False, random_state: Any = 0) -> tuple[Floats, NDArray[np.intp]]:
    """The paper's two rings: 500 rows on the inner (class 1), 1,000 on the outer one (class 0), in the plane.

    Thin rings fall apart into two components of the graph of 20 neighbours; with ``connected`` the rings are
    blurred until they touch.

    Parameters
    ----------
    connected : bool, default False
        Whether the rings touch.
    random_state : int, RandomState or None, default 0
        Seeds the noise.

    Returns
    -------
    X, y : (1500, 2) array, (1500,) array
    """
    rng = check_random_state(random_state)
    y = np.repeat([1, 0], [500, 1000])
    radius = np.where(y == 1, 1.0, 2.0) + rng.normal(scale=0.15 if connected else 0.08, size=len(y))
    angle = rng.uniform(0, 2 * np.pi, len(y))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


def balance_scale() -> tuple[NDArray[np.uint8], NDArray[np.str_]]:
    """Balance scale, generated from its definition: all 625 combinations of two weights and two distances from 1 to 5.

    Columns: left weight, left distance, right weight, right distance. Classes: "B" balanced, "L" left, "R" right.

    Returns
    -------
    X, y : (625, 4) array, (625,) array
    """
    X = np.array(list(product(range(1, 6), repeat=4)), dtype=np.uint8)
    left, right = X[:, 0].astype(int) * X[:, 1], X[:, 2].astype(int) * X[:, 3]
    return X, np.array(["B", "L", "R"])[np.sign(left - right)]


def digits() -> tuple[Floats, NDArray[np.intp]]:
    """The 1,797 handwritten digits of 8 x 8 pixels that come with scikit-learn.

    Returns
    -------
    X, y : (1797, 64) array, (1797,) array
    """
    from sklearn.datasets import load_digits

    return load_digits(return_X_y=True)


def keep_labels(y: Any, per_class: int, *, random_state: Any = None) -> NDArray[Any]:
    """A copy of y in which only ``per_class`` rows of each class, drawn at random, keep their label.

    The others are -1, "" where labels are text, and None where they are truth values.

    Parameters
    ----------
    y : (n,) array
        Labels of all rows.
    per_class : int
        Labels that each class keeps.
    random_state : int, RandomState or None, default None
        Seeds the draw.

    Returns
    -------
    few : (n,) array
        For ``fit``.
    """
    y = as_labels(y)
    check_integer("per_class", per_class, 1)
    rng = check_random_state(random_state)
    unknown, dtype = BLANKS.get(y.dtype.kind, (UNLABELED, np.int64))
    few = np.full(len(y), unknown, dtype=dtype or y.dtype)
    known = np.flatnonzero(~is_unlabelled(y))
    for name in np.unique(y[known]):
        rows = known[y[known] == name]
        if len(rows) < per_class:
            raise LabelError(f"class {name!s} has {len(rows)} rows, {per_class} labels were asked for; ask for fewer.")
        few[rng.choice(rows, per_class, replace=False)] = name
    return few


# kind of label: what marks a row as unlabelled, and the type that holds it (None: that of y)
BLANKS: dict[str, tuple[Any, Any]] = {
    "U": ("", None),
    "T": ("", None),
    "S": (b"", None),
    "M": (np.datetime64("NaT", "ns"), None),
    "m": (np.timedelta64("NaT", "ns"), None),
    "O": (None, object),
    "b": (None, object),
    "i": (UNLABELED, None),
    "f": (UNLABELED, None),
}
