"""The column to fill: labels as people write them."""

import numpy as np
import polars as pl
import pytest

from greenlabel.errors import LabelError
from greenlabel.tables.columns.targets import doubts, find_labels, join_labels, read_target


def read(values, unlabelled=(), dtype=None):
    return read_target(pl.Series("y", values, dtype=dtype), list(unlabelled))


@pytest.mark.parametrize(
    ("values", "classes", "codes"),
    [
        (["b", None, "a", "", " ", "b"], ["a", "b"], [1, -1, 0, -1, -1, 1]),
        ([2, None, 10, 2], [2, 10], [0, -1, 1, 0]),
        ([1.0, float("nan"), 0.0, None], [0.0, 1.0], [1, -1, 0, -1]),
        ([True, None, False], [False, True], [1, -1, 0]),
        (["10", "9", None], ["9", "10"], [1, 0, -1]),
        ([-1, 1, None], [-1, 1], [0, 1, -1]),  # -1 is a class in a table, unless the user says otherwise
    ],
)
def test_gaps_are_unlabelled_and_classes_are_in_their_order(values, classes, codes):
    found, given = read(values)
    assert found == classes
    assert given.tolist() == codes


def test_categories_are_read_as_text():
    assert read(["a", "b", None], dtype=pl.Categorical)[0] == ["a", "b"]


@pytest.mark.parametrize(
    ("values", "value"),
    [(["a", "b", "?"], "?"), ([0, 1, -1], "-1"), ([0.0, 1.0, -1.0], "-1"), (["x", "y", "nan"], "nan")],
)
def test_a_value_may_mean_no_label(values, value):
    classes, given = read(values, [value])
    assert len(classes) == 2
    assert given.tolist() == [0, 1, -1]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([None, None], "holds no label in 2 rows"),
        (["", " "], "holds no label"),
        (["a", None, "a"], r"single class \(a\)"),
        (["1", "2", "cat"], r"mixes numbers and text \(1 and cat\).*--unlabelled cat"),
        ([0.5, 1.0, None], "holds 0.5, a measurement and no class"),
        (["0.5", "1.25"], "a measurement and no class"),
        ([[1], [2]], "no classes; give text or whole numbers"),
        ([f"row {i}" for i in range(1500)], "1,500 classes in 1,500 labels, hardly one twice"),
    ],
)
def test_labels_that_cannot_be_used_are_refused(values, reason):
    with pytest.raises(LabelError, match=reason):
        read(values)


def test_labels_that_look_alike_are_kept_apart_with_a_warning():
    classes, _ = read(["cat", "Cat ", "dog"])
    assert len(classes) == 3
    assert any("'Cat '" in text and "'cat'" in text and "kept apart" in text for text in doubts(classes))
    assert doubts(["cat", "dog"]) == doubts([0, 1]) == []


def test_a_sign_for_a_gap_among_the_classes_is_doubted():
    assert "--unlabelled NA" in doubts(["NA", "cat"])[0]


def test_codes_are_small_integers():
    assert read(["a", "b"])[1].dtype == np.int64


@pytest.mark.parametrize("values", [["b", None, "a", "", "b", "c"], [2, None, 10, 2, 2, 7], [1.0, None, 0.0, 1.0, 3.0]])
@pytest.mark.parametrize("cut", [0, 1, 2, 4])
def test_a_column_in_parts_is_read_as_the_whole(values, cut):
    column = pl.Series("y", values)
    parts = [find_labels(part, ["c", "7", "3"]) for part in (column[:cut], column[cut:])]
    classes, given = read_target(column, ["c", "7", "3"])
    assert join_labels(parts)[0] == classes
    assert np.array_equal(join_labels(parts)[1], given)


def test_labels_that_differ_in_kind_between_parts_are_refused():
    parts = [find_labels(pl.Series("y", values), []) for values in (["1", "2", "2"], ["cat"])]
    with pytest.raises(LabelError, match=r"mixes numbers and text \(1 and cat\).*--unlabelled cat"):
        join_labels(parts)
