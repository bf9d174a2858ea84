import numpy as np
import pytest
from numpy.testing import assert_array_equal

from greenlabel import GreenClassifier
from greenlabel.datasets import balance_scale, digits, keep_labels, two_rings
from greenlabel.errors import LabelError


@pytest.mark.slow
@pytest.mark.parametrize("connected", [False, True])
def test_two_rings_have_the_sizes_and_the_graph_of_the_paper(connected):
    for seed in range(5):
        X, y = two_rings(connected=connected, random_state=seed)
        assert X.shape == (1500, 2)
        assert np.bincount(y).tolist() == [1000, 500]
        model = GreenClassifier(20, weights="gaussian").fit(X, keep_labels(y, 10, random_state=seed))
        assert model.n_components_ == (1 if connected else 2)


def test_balance_scale_is_complete_and_right():
    X, y = balance_scale()
    assert len(np.unique(X, axis=0)) == 625
    assert {name: int((y == name).sum()) for name in "BLR"} == {"B": 49, "L": 288, "R": 288}
    assert y[(X == [5, 5, 1, 1]).all(axis=1)] == ["L"]
    assert y[(X == [2, 3, 3, 2]).all(axis=1)] == ["B"]


def test_balance_scale_is_the_published_file(balance_file):
    X, y = balance_scale()
    assert_array_equal(X, balance_file[0])
    assert_array_equal(np.unique(y, return_inverse=True)[1], balance_file[1])


def test_digits_are_there():
    X, y = digits()
    assert X.shape == (1797, 64)
    assert len(np.unique(y)) == 10


@pytest.mark.parametrize("y", [np.repeat([0, 1, 2], 20), np.repeat(["a", "b", "c"], 20)])
def test_kept_labels_are_true_and_as_many_as_asked(y):
    few = keep_labels(y, 3, random_state=0)
    given = few != (-1 if y.dtype.kind == "i" else "")
    assert given.sum() == 9
    assert_array_equal(few[given], y[given])
    assert_array_equal(few, keep_labels(y, 3, random_state=0))


@pytest.mark.parametrize(
    ("y", "hidden"),
    [
        (np.array([True, False] * 5), None),
        (np.array([1, 0] * 5, dtype=np.uint8), -1),
        (np.array(["a", "b"] * 5, dtype=object), None),
        (["a", "b"] * 5, None),
    ],
)
def test_hidden_labels_are_unlabelled_whatever_their_type(y, hidden):
    few = keep_labels(y, 2, random_state=0)
    assert sum(label is hidden or label == hidden for label in few.tolist()) == 6
    assert len(GreenClassifier(3).fit(np.arange(10)[:, None], few).classes_) == 2


def test_labels_that_are_hidden_already_stay_hidden():
    assert (keep_labels([0, 0, 1, 1, -1, -1], 2) == [0, 0, 1, 1, None, None]).all()


def test_more_labels_than_a_class_has_rows_are_refused():
    with pytest.raises(LabelError, match="class 1 has 2 rows, 3 labels were asked for"):
        keep_labels([0, 0, 0, 1, 1], 3)
