"""Rows to be read in blocks, in memory and in files, and the model that every source of them must give."""

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from greenlabel import AnchoredGreenClassifier
from greenlabel.datasets import keep_labels
from greenlabel.graph import neighbors

N, D, M = 3000, 200, 260  # enough for the search on principal axes


def images(dtype=np.uint8):
    """Rows of four classes as bright spots on dark ground, with classes that touch."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, N)
    ground = rng.normal(size=(4, 6)) @ rng.normal(size=(6, D))
    X = 40 * (ground[y] + rng.normal(size=(N, 6)) @ rng.normal(size=(6, D)) + rng.normal(size=(N, D)))
    return np.clip(X + 120, 0, 255).astype(dtype), y


@cache
def labelled_images():
    """The images, and ten labels of each class."""
    X, y = images()
    return X, keep_labels(y, 10, random_state=0)


def fitted(X, y, **options):
    return AnchoredGreenClassifier(**{"n_anchors": M, "random_state": 0, **options}).fit(X, y)


def assert_same(model, expected):
    """Bit by bit."""
    assert_array_equal(model.anchors_, expected.anchors_)
    assert_array_equal(model.scores_, expected.scores_)
    assert_array_equal(model.transduction_, expected.transduction_)
    assert_array_equal(model.label_distributions_, expected.label_distributions_)
    assert_array_equal(model.reached_, expected.reached_)


@cache
def fitted_in_memory():
    """The model of the labelled images as one array, by the search of many rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbors, "FLOAT64_PAIRS", 0)
        return fitted(*labelled_images())


def npy(X, folder):
    np.save(folder / "rows.npy", X)
    return folder / "rows.npy"


def parquet(X, folder, group=700, files=3):
    """Some files of some row groups each."""
    for i, part in enumerate(np.array_split(X, files)):
        table = pa.table({f"x{j}": part[:, j] for j in range(X.shape[1])})
        pq.write_table(table, folder / f"part-{i}.parquet", row_group_size=group)
    return folder
