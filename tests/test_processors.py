"""The same rows on any processor: libraries round otherwise with every set of instructions, and nothing hangs on it.

Other processors are this one with some of its instructions switched off, in processes of their own.
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from greenlabel.graph.anchors import lower_side
from greenlabel.graph.projection import principal_axes, same_signs
from greenlabel.inspection.coverage import steady_argmax

OTHERS = {
    "linear algebra of 2008": {"OPENBLAS_CORETYPE": "Nehalem"},
    "linear algebra of 2011": {"OPENBLAS_CORETYPE": "Sandybridge"},
    "distances without SIMD": {"FAISS_SIMD_LEVEL": "NONE"},
    "arrays without AVX": {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4"},
}

# What the processor shows of itself, and the rows that are suggested: at the start, and with labels.
PROGRAM = """
import json, warnings
import faiss, numpy as np
from greenlabel import GreenClassifier, suggest
from greenlabel.datasets import digits

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
A = rng.normal(size=(99, 70)).astype(np.float32)
rounding = [A.T @ A, A.sum(axis=1), faiss.pairwise_distances(A[:50], A[50:]), A.round().argpartition(35, axis=0)]

def chosen(X, y):
    few = np.full(len(X), -1)
    rows = [one.row for one in suggest(X, 10, random_state=0)]
    few[rows] = y[rows]
    model = GreenClassifier().fit(X, few)
    for _ in range(3):
        rows += [one.row for one in suggest(model, 10)]
        few[rows] = y[rows]
        model.relabel(few)
    return rows

grid = np.indices((5,) * 4).reshape(4, -1).T.astype(np.float32)
y = np.repeat(np.arange(6), 100)
clouds = rng.normal(size=(6, 40))[y] + rng.normal(size=(600, 40))
sets = {
    "digits": digits(),
    "a grid": (grid / np.float32(1.7), np.sign(grid[:, 0] * grid[:, 1] - grid[:, 2] * grid[:, 3]).astype(int) + 1),
    "clouds": (clouds, y),
}
print(json.dumps({"rounding": [part.tobytes().hex() for part in rounding]} | {k: chosen(*v) for k, v in sets.items()}))
"""


def on_a_processor(settings):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | settings, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def here():
    return on_a_processor({})


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_the_same_rows_are_suggested_on_another_processor(name, here):
    there = on_a_processor(OTHERS[name])
    if there.pop("rounding") == here["rounding"]:
        pytest.skip(f"{OTHERS[name]} changes no rounding here")
    assert there == {data: here[data] for data in there}


def test_rows_on_one_cut_go_by_their_order_whatever_the_last_digit(rng):
    along = rng.integers(-3, 4, size=(5, 90)) / 1.7
    noise = 1 + 1e-14 * rng.normal(size=along.shape)
    is_lower = lower_side(along * noise, 40)
    assert_array_equal(is_lower, lower_side(along, 40))
    assert_array_equal(is_lower.sum(axis=1), 40)
    for values, lower in zip(along, is_lower, strict=True):
        assert_array_equal(np.flatnonzero(lower), np.sort(np.argsort(values, kind="stable")[:40]))


def test_axes_point_to_the_same_side(rng):
    V = principal_axes(rng.normal(size=(50, 6)), 4).axes
    assert_array_equal(same_signs(V * [1, -1, -1, 1]), V)


def test_of_values_that_rounding_tells_apart_the_first_is_the_largest():
    assert steady_argmax(np.array([0.5, 1.0, 1 + 1e-12, 0.9])) == 1
    assert steady_argmax(np.array([0.5, 1.0, 1.001])) == 2
    assert steady_argmax(np.zeros(3)) == 0
