"""Labels on the sketch alone: the model of an anchored classifier with the same graph, without a solve."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from greenlabel import AnchoredGreenClassifier, suggest
from greenlabel.inspection import suggesting
from greenlabel.inspection.coverage import SHIFT, Kernel, margins
from greenlabel.inspection.sketch import heaviest
from greenlabel.inspection.sketch_model import SketchModel
from greenlabel.inspection.suggesting import sketch_of


@pytest.fixture
def digits():
    X, y = load_digits(return_X_y=True)
    few = np.full(len(y), -1)
    few[:60] = y[:60]
    return X, y, few


def test_it_is_the_anchored_classifier_of_that_graph(digits):
    X, _, few = digits
    model = AnchoredGreenClassifier(200, mu=SHIFT / len(X), random_state=0).fit(X, few)
    fitted, Z = model.fitted_, model.operator_.Z
    small = SketchModel.of(Kernel.of(model.graph_.gram()), Z, fitted.labels)
    assert_allclose(small.C, fitted.propagation.C, atol=1e-9 * np.abs(small.C).max())
    assert_allclose(small.decoder.offsets, fitted.offsets, rtol=1e-6)
    assert_allclose(small.decoder.temperature, fitted.temperature, rtol=1e-4)
    rows = np.arange(100, 150)
    p, is_reached = small.probabilities(Z[rows])
    assert_allclose(p, model.label_distributions_[rows], atol=1e-4)
    assert is_reached.all()
    assert_allclose(small.margins(Z), Z @ margins(small.decoder.probabilities(small.C, small.is_reached)))


def test_rows_of_a_component_without_a_label_are_not_reached(islands):
    X, y = islands
    few = np.where((y < 2) & (np.arange(len(y)) % 5 == 0), y, -1)
    with pytest.warns(UserWarning, match="reached by no label"):
        model = AnchoredGreenClassifier(30, 3, random_state=0).fit(X, few)
    look = sketch_of(model)
    small = SketchModel.of(look.kernel, look.Z, model.fitted_.labels)
    assert_array_equal(small.probabilities(look.Z)[1], y < 2)
    assert not small.margins(look.Z)[y == 2].any()


def test_heaviest_anchor_is_the_first_of_the_largest_weight(rng):
    dense = np.zeros((40, 9))
    for row in dense:
        row[rng.permutation(9)[: rng.integers(1, 5)]] = rng.integers(1, 3, size=1)
    assert_array_equal(heaviest(sp.csr_array(dense)), dense.argmax(axis=1))


def test_models_of_many_anchors_suggest_without_a_solve(digits, monkeypatch):
    X, _, few = digits
    model = AnchoredGreenClassifier(600, random_state=0).fit(X, few)
    monkeypatch.setattr(suggesting, "MAX_ANCHORS", 500)

    def refuse(self):
        raise AssertionError("probabilities of the model itself were asked for")

    monkeypatch.setattr(type(model.fitted_), "calibrated", property(refuse))
    found = suggest(model, 20)
    rows = [one.row for one in found]
    assert len(set(rows)) == 20
    assert (few[rows] == -1).all()
    assert all(len(one.between) == 2 for one in found)
    assert sum(one.covers for one in found) <= len(X)


def test_groups_are_found_through_many_anchors(islands, monkeypatch):
    X, y = islands
    few = np.full(len(y), -1)
    few[[0, 1]], few[[30, 31]] = y[0], y[30]
    with pytest.warns(UserWarning, match="reached by no label"):
        model = AnchoredGreenClassifier(60, 3, random_state=0).fit(X, few)
    monkeypatch.setattr(suggesting, "MAX_ANCHORS", 40)
    first = suggest(model, 1)[0]
    assert y[first.row] == 2
    assert first.reason == "no label reaches it; stands for about 30 rows"
