"""Rows that come later, models that are merged: as if all rows had come at once, to the last bit."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

from greenlabel import AnchoredGreenClassifier, GreenClassifier, leave_one_out
from greenlabel.blocks.rows import ArrayBlocks
from greenlabel.datasets import keep_labels
from greenlabel.errors import DataError, LabelError, ParameterError
from helpers.block_rows import assert_same


@pytest.fixture(scope="module")
def data(clouds):
    X, y = clouds
    return X, keep_labels(y, 8, random_state=0)


@pytest.fixture(scope="module")
def anchors(data):
    return AnchoredGreenClassifier(40, random_state=0).fit(*data).anchors_


def whole(data, anchors, **options):
    return AnchoredGreenClassifier(anchors=anchors, **options).fit(*data)


@pytest.mark.slow
@pytest.mark.parametrize("mu", ["auto", 1e-4])
@pytest.mark.parametrize("memory_limit", ["auto", 0, 6000])
def test_parts_equal_one_fit(data, anchors, mu, memory_limit):
    X, y = data
    model = AnchoredGreenClassifier(anchors=anchors, mu=mu, memory_limit=memory_limit)
    for rows in np.array_split(np.arange(200), 7):
        assert model.partial_fit(X[rows], y[rows]) is model
    one = whole(data, anchors, mu=mu)
    assert_same(model, one)
    assert (model.mu_, model.n_components_) == (one.mu_, one.n_components_)
    assert_array_equal(leave_one_out(model), leave_one_out(one))
    assert_array_equal(model.predict_proba(X + 0.1), one.predict_proba(X + 0.1))
    assert_same(model.relabel(np.roll(y, 3)), whole((X, np.roll(y, 3)), anchors, mu=mu))


def test_the_first_rows_give_the_anchors(data):
    X, y = data
    first = AnchoredGreenClassifier(30, random_state=0).partial_fit(X[:100], y[:100])
    anchors = first.anchors_.copy()
    assert_array_equal(anchors, AnchoredGreenClassifier(30, random_state=0).fit(X[:100], y[:100]).anchors_)
    first.partial_fit(X[100:], y[100:])
    assert_array_equal(first.anchors_, anchors)
    assert_same(first, whole(data, anchors))


def test_rows_without_labels_count_too(data, anchors):
    X, y = data
    y = np.where(np.arange(200) < 90, y, -1)
    model = AnchoredGreenClassifier(anchors=anchors).partial_fit(X[:90], y[:90]).partial_fit(X[90:])
    assert_same(model, whole((X, y), anchors))


def test_a_fit_can_go_on_and_a_new_fit_starts_again(data, anchors):
    X, y = data
    model = AnchoredGreenClassifier(anchors=anchors).fit(X[:120], y[:120]).partial_fit(X[120:], y[120:])
    assert_same(model, whole(data, anchors))
    assert_same(model.fit(*data), whole(data, anchors))


def test_classes_may_appear_one_after_the_other(data, anchors):
    X, y = data
    order = np.argsort(np.where(y < 0, 9, y), kind="stable")
    X, y = X[order], y[order]
    model = AnchoredGreenClassifier(anchors=anchors).partial_fit(X[:8], y[:8])
    assert model.classes_.tolist() == [0]
    with pytest.raises(LabelError, match="the rows so far hold labels of 1 classes; give rows of two classes at least"):
        model.predict(X)
    model.partial_fit(X[8:20], y[8:20])
    assert model.classes_.tolist() == [0, 1, 2]
    model.partial_fit(X[20:], y[20:])
    assert_same(model, whole((X, y), anchors))


def test_text_labels_of_any_length_and_object_labels_join(data, anchors):
    X, y = data
    names = np.array(["", "d", "b", "a longer name", "c"])[y + 1]
    model = AnchoredGreenClassifier(anchors=anchors).partial_fit(X[:50], names[:50].astype("U1"))
    model.partial_fit(X[50:120], names[50:120].astype(object)).partial_fit(X[120:], names[120:])
    assert set(model.classes_) <= {"d", "a", "b", "a longer name", "c"}
    one = names.copy()
    one[:50] = names[:50].astype("U1")
    assert_same(model, whole((X, one), anchors))


def test_text_and_numbers_do_not_join(data, anchors):
    X, y = data
    model = AnchoredGreenClassifier(anchors=anchors).partial_fit(X, y)
    before = model.scores_.copy()
    with pytest.raises(LabelError, match=r"mixes text and numbers \('yes' and 0\)"):
        model.partial_fit(X, np.where(y >= 0, "yes", ""))
    assert_array_equal(model.scores_, before)
    assert model.graph_.n == 200


def test_announced_classes_are_held_to(data, anchors):
    X, y = data
    model = AnchoredGreenClassifier(anchors=anchors).partial_fit(X, y, classes=[0, 1, 2, 3])
    with pytest.raises(LabelError, match="class 7, which is not among classes"):
        model.partial_fit(X[:2], [7, 1], classes=[0, 1, 2, 3])


def test_what_is_refused_leaves_the_model_as_it_was(data, anchors):
    X, y = data
    model = AnchoredGreenClassifier(anchors=anchors).partial_fit(X, y)
    before = model.scores_.copy()
    bad = X.copy()
    bad[150, 1] = np.nan
    for rows, labels, error, message in [
        (X[:, :3], y, DataError, "X has 3 features"),
        (ArrayBlocks(X[:, :3], 50), y, DataError, "X has 3 features"),
        (bad, y, DataError, "NaN at row 150, column 1"),
        (ArrayBlocks(bad, 60), y, DataError, "NaN at row 150, column 1"),
        (X, y[:10], LabelError, "y has 10 entries, X has 200 rows"),
    ]:
        with pytest.raises(error, match=message):
            model.partial_fit(rows, labels)
        assert_array_equal(model.scores_, before)
    assert_same(model.partial_fit(X, y), whole((np.vstack([X, X]), np.append(y, y)), anchors))


def test_too_few_first_rows_for_the_anchors_are_refused(data):
    X, y = data
    with pytest.raises(
        ParameterError, match="n_anchors=40 needs at least 40 rows, got 30; lower n_anchors or add rows"
    ):
        AnchoredGreenClassifier(40).partial_fit(X[:30], y[:30])


@pytest.mark.parametrize("memory_limit", ["auto", 0])
def test_merged_models_equal_one_fit(data, anchors, memory_limit):
    X, y = data
    parts = [slice(0, 70), slice(70, 90), slice(90, 200)]
    one, two, three = (whole((X[rows], y[rows]), anchors, memory_limit=memory_limit) for rows in parts)
    assert one.merge(two).merge(three) is one
    assert_same(one, whole(data, anchors))
    assert_same(two, whole((X[70:90], y[70:90]), anchors))


def test_a_model_without_two_classes_can_be_merged(data, anchors):
    X, y = data
    y = np.where(np.arange(200) < 100, y, -1)
    rest = AnchoredGreenClassifier(anchors=anchors).partial_fit(X[100:])
    assert_same(whole((X[:100], y[:100]), anchors).merge(rest), whole((X, y), anchors))


def test_models_on_other_anchors_are_not_merged(data, anchors):
    model = whole(data, anchors)
    for other in (whole(data, anchors[::-1]), whole(data, anchors, n_neighbors=4), whole(data, anchors[:-1])):
        with pytest.raises(ParameterError, match=r"different anchors.*anchors=model\.anchors_"):
            model.merge(other)
    with pytest.raises(ParameterError, match="merge takes an AnchoredGreenClassifier, got GreenClassifier"):
        model.merge(GreenClassifier().fit(*data))
    with pytest.raises(NotFittedError):
        model.merge(AnchoredGreenClassifier())
    assert_same(model, whole(data, anchors))
