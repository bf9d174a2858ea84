"""Given labels that the others contradict."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from greenlabel import GreenClassifier, leave_one_out, suspects
from greenlabel.errors import ParameterError


def test_a_wrong_label_among_right_ones_is_the_first_suspect(Model, islands):
    X, y = islands
    few = np.where(np.arange(90) % 30 < 8, y, -1)
    few[3] = 2
    (found, *_) = suspects(Model(random_state=0).fit(X, few))
    assert (found.row, found.given, found.suggested) == (3, 2, 0)
    assert found.probability > 0.5


def test_suspects_are_the_rows_that_leave_one_out_predicts_otherwise(GraphModel, blobs, few):
    model = GraphModel(random_state=0).fit(*blobs)  # every row has a label
    best = (leave_one_out(model) + model.class_offsets_).argmax(axis=1)
    found = suspects(model)
    assert sorted(one.row for one in found) == np.flatnonzero(best != blobs[1]).tolist()
    assert all(one.suggested == best[one.row] and one.given == blobs[1][one.row] for one in found)
    assert_array_equal(np.argsort([-one.probability for one in found], kind="stable"), np.arange(len(found)))


def test_all_labels_are_tested_however_many_there_are(monkeypatch, blobs):
    monkeypatch.setattr("greenlabel.estimators.labelled.MIN_TESTED", 3)
    monkeypatch.setattr("greenlabel.estimators.labelled.TEST_WORK", 0)
    X, y = blobs
    wrong = y.copy()
    wrong[[5, 33]] = [1, 2]
    assert {5, 33} <= {one.row for one in suspects(GreenClassifier().fit(X, wrong))}


def test_a_label_that_nothing_can_contradict_is_no_suspect(islands):
    few = np.full(90, -1)
    few[[0, 1, 30, 31, 60]] = [0, 0, 1, 1, 2]  # 2 is alone in its class and in its island
    assert suspects(GreenClassifier(n_neighbors=5).fit(islands[0], few)) == []


def test_models_without_rows_are_refused(blobs, few):
    with pytest.raises(ParameterError, match="a model for new rows does not keep"):
        suspects(GreenClassifier().fit(blobs[0], few).for_prediction())
