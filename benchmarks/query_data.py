"""Data sets of queries.py, and how much of them is measured."""

from collections.abc import Callable
from typing import Any

import numpy as np

from accuracy import PAPERS
from basics import load
from greenlabel.graph.scaling import find_scaling

DRAWS = 100  # of random rows
ORDERS = 3000  # in which classes are seen; one costs nothing
STARTS, QUICK_STARTS = 10, 50  # runs of our rule, and where a run takes a second or two
QUICK_ROWS, QUICK_LABELS = 3_000, 100
MAX_ROWS = 20_000
PEER_ROWS = 3_000  # the other rules hold a dense n x n operator
PEER_DRAWS = 3
SAMPLES = 10
SAMPLE_SHARE, SAMPLE_ROWS = 0.85, 1_500
SAMPLE_DRAWS = 20
BUNDLED = ["digits", "wine", "breast_cancer", "iris"]
GENERATED = ["skewed clouds", "many clouds", "noise columns", "moons"]
NAMES = [*PAPERS, *BUNDLED, *GENERATED]
SEVEN = ["digits", *PAPERS]  # of the bar
Array = np.ndarray[Any, Any]


def n_starts(n_rows: int, n_labels: int) -> int:
    """How many runs of our rule are measured."""
    return QUICK_STARTS if n_rows <= QUICK_ROWS and n_labels <= QUICK_LABELS else STARTS


def clouds(sizes: Array, d: int, distance: float, n_noise: int = 0) -> tuple[Array, Array]:
    """Gaussian clouds of these sizes, one to a class, and columns that say nothing."""
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = distance * rng.normal(size=(len(sizes), d))[y] + rng.normal(size=(len(y), d))
    return np.hstack([X, rng.normal(size=(len(y), n_noise))]), y


def generated(name: str) -> tuple[Array, Array]:
    from sklearn.datasets import make_moons

    makers: dict[str, Callable[[], tuple[Array, Array]]] = {
        "skewed clouds": lambda: clouds(np.array([1500, 600, 200, 80, 40, 20]), 8, 2.0),
        "many clouds": lambda: clouds(np.full(30, 80), 12, 1.6),
        "noise columns": lambda: clouds(np.full(4, 500), 5, 2.0, n_noise=30),
        "moons": lambda: make_moons(2000, noise=0.12, random_state=0),
    }
    return makers[name]()


def data(name: str, max_rows: int) -> tuple[Array, Array]:
    """Features scaled by the blend's rule, classes 0 to c - 1; a sample where there are more rows."""
    import sklearn.datasets

    if name in PAPERS:
        X, y = load(name)
    elif name in GENERATED:
        X, y = generated(name)
    else:
        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    rows = np.sort(np.random.default_rng(0).permutation(len(X))[:max_rows])
    X = np.asarray(X, np.float32)[rows]
    return find_scaling(X, np.random.default_rng(0)).apply(X), np.unique(y[rows], return_inverse=True)[1]
