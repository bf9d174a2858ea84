import numpy as np
import pytest

from greenlabel.errors import LabelError
from greenlabel.metrics import f1_macro, label_margin, unlabelled_accuracy


def test_label_margin_by_hand():
    scores = np.array([[3.0, 0.0], [1.0, 0.0], [0.0, 5.0], [-2.0, 1.0]])
    # first class: (3 + 1)/2 - (0 - 2)/2 = 3;  second class: (5 + 1)/2 - 0 = 3
    assert label_margin(scores, ["a", "a", "b", "b"], ["a", "b"]) == 3
    assert label_margin(scores[:3], ["a", "a", "b"], ["a", "b"]) == pytest.approx((2 + 5) / 2)


def test_label_margin_leaves_out_classes_without_rows():
    scores = np.array([[3.0, 0.0, 9.0], [0.0, 5.0, 9.0]])
    assert label_margin(scores, [0, 1], [0, 1, 2]) == pytest.approx((3 + 5) / 2)
    with pytest.raises(LabelError, match="at least two classes"):
        label_margin(scores, [0, 0], [0, 1, 2])


def test_label_margin_wants_a_class_for_each_row():
    with pytest.raises(LabelError, match="2 rows, y_true has 3"):
        label_margin(np.zeros((2, 2)), [0, 1, 1], [0, 1])


def test_f1_macro_is_of_the_mean_precision_and_recall_not_the_mean_f1():
    y_true, y_pred = [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 2, 2]
    precision = (1 + 1 / 2 + 1 / 2) / 3
    recall = (2 / 3 + 1 / 2 + 1) / 3
    assert f1_macro(y_true, y_pred) == pytest.approx(2 * precision * recall / (precision + recall))


def test_f1_macro_of_nothing_right_is_zero():
    assert f1_macro([0, 0, 1], [1, 1, 0]) == 0


def test_only_unlabelled_rows_count():
    assert unlabelled_accuracy([0, 1, 1, 0], [1, 1, 1, 1], [True, False, False, False]) == pytest.approx(2 / 3)
    with pytest.raises(LabelError, match="every row is labelled"):
        unlabelled_accuracy([0], [0], [True])
