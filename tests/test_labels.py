import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax, softmax

from greenlabel.errors import LabelError
from greenlabel.labels.encoding import (
    Labels,
    calibrate,
    choose_temperature,
    evidence,
    probabilities,
    read_labels,
    signed,
    smoothed_target,
)


@pytest.mark.parametrize(
    "y",
    [
        [0, 1, -1, 1],
        [0.0, 1.0, np.nan, 1.0],
        np.array([0, 1, None, 1], dtype=object),
        pd.Series([0, 1, None, 1], dtype="Int64"),
        pd.Series(pd.Categorical([0, 1, None, 1])),
        pl.Series([0, 1, None, 1]),
    ],
)
def test_numbers_are_read_in_whatever_wrapping(y):
    labels = read_labels(y, 4, "test")
    assert_array_equal(labels.classes, [0, 1])
    assert_array_equal(labels.rows, [0, 1, 3])
    assert_array_equal(labels.codes, [0, 1, 1])


@pytest.mark.parametrize(
    "y",
    [
        np.array(["b", "a", "", "a"]),
        np.array(["b", "a", None, "a"], dtype=object),
        np.array(["b", "a", np.nan, "a"], dtype=object),
        pd.Series(["b", "a", None, "a"]),
        pd.Series(["b", "a", None, "a"], dtype="category"),
        pl.Series(["b", "a", None, "a"]),
    ],
)
def test_text_is_read_in_whatever_wrapping(y):
    labels = read_labels(y, 4, "test")
    assert list(labels.classes) == ["a", "b"]
    assert_array_equal(labels.rows, [0, 1, 3])
    assert_array_equal(labels.codes, [1, 0, 0])


def test_truth_values_are_classes_and_true_is_not_taken_for_a_number():
    labels = read_labels(np.array([True, False, None], dtype=object), 3, "test")
    assert list(labels.classes) == [False, True]


@pytest.mark.parametrize("unknown", [float("nan"), None, -1])
def test_unknown_labels_that_numpy_made_text_are_warned_of(unknown):
    with pytest.warns(UserWarning, match="as text, which is taken as a class; mark unknown labels with ''"):
        read_labels(np.array(["a", "b", str(unknown)]), 3, "test")


def test_text_beside_numbers_is_refused():
    with pytest.raises(LabelError, match="mixes text and numbers"):
        read_labels(np.array(["a", 1, "b"], dtype=object), 3, "test")


def test_both_codings_are_those_of_the_paper():
    labels = read_labels([1, -1, 0], 3, "test")
    assert_array_equal(labels.Y.toarray(), [[0, 1], [0, 0], [1, 0]])
    assert_array_equal(signed(labels), [[-1, 1], [0, 0], [1, -1]])


def test_evidence_keeps_the_order_of_the_classes(rng):
    F = rng.normal(size=(50, 6)) * 10.0 ** rng.integers(-8, 8, (50, 1))
    order = F.argsort(axis=1)
    assert_array_equal(evidence(F).argsort(axis=1), order)
    p = probabilities(F, 2.0)
    assert (np.diff(np.take_along_axis(p, order, axis=1)) >= 0).all()
    assert_array_equal(p.argmax(axis=1), F.argmax(axis=1))
    assert_allclose(p.sum(axis=1), 1)


def test_equal_scores_are_equal_probabilities():
    assert_allclose(probabilities(np.full((2, 4), 7.0), 5.0), 0.25)


def test_the_temperature_is_found_again(rng):
    """Classes drawn from softmax(3 E) give 3 back."""
    E = rng.normal(size=(20_000, 4))
    codes = np.array([rng.choice(4, p=p) for p in softmax(3 * E, axis=1)])
    assert choose_temperature(E, codes) == pytest.approx(3, rel=0.05)


def test_no_other_temperature_fits_better(rng):
    E, codes = rng.normal(size=(50, 3)), rng.integers(3, size=50)
    E[np.arange(50), codes] += 0.5
    target = smoothed_target(codes, 3)

    def loss(t):
        return -(target * log_softmax(t * E, axis=1)).sum()

    t = choose_temperature(E, codes)
    assert all(loss(t) < loss(t * factor) for factor in (0.5, 0.99, 0.9999, 1.0001, 1.01, 2))


@pytest.mark.parametrize(("sign", "end"), [(1, 1e4), (-1, 1e-3)])
def test_a_temperature_out_of_reach_is_the_end_next_to_it(sign, end):
    codes = np.arange(30) % 3
    E = sign * np.eye(3)[codes]
    assert choose_temperature(E, codes, doubt=0) == pytest.approx(end)


def test_tiny_evidence_has_a_finite_temperature():
    t = choose_temperature(np.array([[1e-306, -1e-306]] * 3), np.array([0, 0, 1]))
    assert 0 < t < np.inf


def test_right_predictions_do_not_make_certainty():
    E = np.tile(np.eye(3), (4, 1))
    p = softmax(choose_temperature(E, np.tile(np.arange(3), 4)) * E, axis=1).max(axis=1)
    assert (p > 0.8).all()
    assert (p < 0.99).all()


def test_only_classes_with_another_label_teach_the_temperature():
    labels = Labels(9, np.arange(3), np.array([1, 3, 5, 7]), np.array([0, 0, 1, 2]))
    asked = []
    calibrate(labels, np.ones(4, bool), lambda indices: asked.append(indices) or np.eye(3)[labels.codes[indices]])
    assert_array_equal(asked[0], [0, 1])
    calibrate(labels, np.array([True, False, True, True]), lambda indices: asked.append(indices) or np.eye(3)[[0]])
    assert_array_equal(asked[1], [0])


def test_one_label_per_class_still_gives_a_temperature():
    labels = Labels(9, np.arange(3), np.array([1, 3, 5]), np.array([0, 1, 2]))
    assert calibrate(labels, np.ones(3, bool), lambda indices: np.eye(3)[indices]) > 0
    assert calibrate(labels, np.ones(3, bool), lambda indices: np.zeros((len(indices), 3))) == 1
