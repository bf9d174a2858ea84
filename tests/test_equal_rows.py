"""Equal rows: one label is enough for all of them, unless they are many and their labels do not agree."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from greenlabel import AnchoredGreenClassifier, BlendedClassifier, GreenClassifier, suggest
from greenlabel.inspection.asking import Sketch
from greenlabel.inspection.equal_rows import first_of_each, one_of_each, undecided_groups


def slow_undecided(of_row, labelled, codes):
    """The rule group by group, the one that is furthest behind its share first."""
    found, n, n_labels = [], len(of_row), len(labelled)
    for group in range(of_row.max() + 1):
        own = codes[of_row[labelled] == group]
        votes = sorted([0, 0, *(np.count_nonzero(own == k) for k in set(own.tolist()))], reverse=True)
        share = np.count_nonzero(of_row == group) * (n_labels + 1) / n
        if len(own) and share >= 2 and len(own) + 1 <= share and votes[0] - votes[1] < 2:
            found.append((len(own) - share, group))
    return [group for _, group in sorted(found)]


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10_000), n_groups=st.integers(1, 8), n_labels=st.integers(0, 30))
def test_undecided_groups_are_those_of_the_rule_written_out(seed, n_groups, n_labels):
    rng = np.random.default_rng(seed)
    n = 64  # shares are then exact numbers
    of_row = np.concatenate(
        [np.arange(n_groups), rng.choice(n_groups, n - n_groups, p=rng.dirichlet(np.ones(n_groups)))]
    )
    labelled = rng.choice(n, n_labels, replace=False)
    codes = rng.integers(0, 3, n_labels)
    found = undecided_groups(np.bincount(of_row), of_row[labelled], codes)
    assert found.tolist() == slow_undecided(of_row, labelled, codes)


def test_many_labels_of_many_classes_need_no_table_of_both():
    group, codes = np.arange(20_000), np.arange(20_000) % 1000
    tracemalloc.start()
    assert not len(undecided_groups(np.full(20_000, 2), group, codes))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * 8 * len(codes)


def test_of_a_group_the_first_row_that_may_come_does():
    of_row = np.array([2, 0, 2, 1, 0, 2, 1])
    assert_array_equal(first_of_each(of_row, np.arange(7)), [1, 3, 0])
    may_come = np.array([False, True, True, False, True, True, False])
    assert_array_equal(one_of_each(np.array([2, 1, 0]), of_row, may_come), [2, 1])  # none is left of group 1
    assert one_of_each(np.array([], int), of_row, may_come).tolist() == []


SHOWN = [0b1110111, 0b0010010, 0b1011101, 0b1011011, 0b0111010, 0b1101011, 0b1101111, 0b1010010, 0b1111111, 0b1111011]


def displays(seed):
    """500 digits on displays of seven segments, each of which fails one time in ten: 128 different rows at most."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 10, 500)
    segments = np.array(SHOWN)[y, None] >> np.arange(7) & 1
    return np.abs(segments - (rng.random((500, 7)) < 0.1)).astype(float), y


def asked_for(X, y, n_labels, Model=GreenClassifier):
    """Rows by the loop of a user, a tenth more labels each time, and the model in the end."""
    rows, few = [one.row for one in suggest(X, 10, random_state=0)], np.full(len(y), -1)
    few[rows] = y[rows]
    model = Model(random_state=0).fit(X, few)
    while len(rows) < n_labels:
        rows += [one.row for one in suggest(model, min(len(rows) // 10, n_labels - len(rows)))]
        few[rows] = y[rows]
        model.relabel(few)
    return rows, model


def accuracy(rows, model, y):
    return np.delete(model.transduction_ == y, rows).mean()


def at_random(model, y, n_labels):
    """The mean accuracy of ten draws."""
    found = []
    for seed in range(10):
        rows, few = np.random.default_rng(seed).permutation(len(y))[:n_labels], np.full(len(y), -1)
        few[rows] = y[rows]
        found.append(accuracy(rows, model.relabel(few), y))
    return np.mean(found)


@pytest.mark.slow
def test_where_equal_rows_differ_suggested_ones_are_better_than_random_ones(monkeypatch):
    sets = [displays(seed) for seed in range(12)]
    suggested = np.mean([accuracy(*asked_for(X, y, 60), y) for X, y in sets])
    random = np.mean([at_random(asked_for(X, y, 10)[1], y, 60) for X, y in sets])
    assert suggested > random + 0.01
    monkeypatch.setattr(Sketch, "undecided", lambda *words: np.empty(0, int))
    assert np.mean([accuracy(*asked_for(X, y, 60), y) for X, y in sets]) < random - 0.02  # once each


@pytest.mark.parametrize(
    ("Model", "times"), [(GreenClassifier, 2), (BlendedClassifier, 2), (AnchoredGreenClassifier, 1)]
)
def test_copies_whose_labels_agree_are_asked_for_twice_at_most(Model, times):
    """Half of the rows are one blank page, of one class. An anchored graph does not know for sure what is equal."""
    rng = np.random.default_rng(0)
    X = np.concatenate([np.zeros((150, 4)), rng.normal(size=(150, 4)) + 5 * np.eye(4)[rng.integers(1, 3, 150)]])
    y = np.concatenate([np.zeros(150, int), X[150:, 1:3].argmax(axis=1) + 1])
    rows, _ = asked_for(X, y, 40, Model)
    assert sum(row < 150 for row in rows) == times


@pytest.mark.parametrize("anchors", [(50, 1), (2500, 5)])
def test_rows_that_only_look_equal_on_anchors_are_not_said_to_be(anchors, rng):
    X, few = rng.normal(size=(6000, 3)), np.full(6000, -1)
    few[:600] = rng.integers(0, 2, 600)
    model = AnchoredGreenClassifier(*anchors, mu=1e-3, class_offsets=None, random_state=0).fit(X, few)
    assert not [one for one in suggest(model, 10) if "equals" in one.reason]


def test_rows_of_a_given_graph_are_not_said_to_be_equal(rng):
    ring = sp.diags_array([np.ones(19), np.ones(19)], offsets=[-1, 1])
    few = np.full(800, -1)
    few[rng.permutation(800)[:200]] = rng.integers(0, 2, 200)
    model = GreenClassifier(graph="precomputed", class_offsets=None).fit(sp.block_diag([ring] * 40).tocsr(), few)
    assert not [one for one in suggest(model, 10) if "equals" in one.reason]


@pytest.mark.parametrize("excluded", [[], [4], [2, 9]])
def test_a_row_that_is_asked_for_again_comes_once(excluded):
    X, few = np.concatenate([np.zeros((8, 2)), np.ones((2, 2))]), np.full(10, -1)
    few[[0, 1, 8]] = [0, 1, 1]
    found = suggest(GreenClassifier().fit(X, few), 7, exclude=excluded)
    assert "equals" in found[0].reason
    assert sorted(one.row for one in found) == sorted({2, 3, 4, 5, 6, 7, 9} - set(excluded))


def test_a_row_that_equals_labelled_ones_says_so():
    X, y = displays(0)
    few, of_row = np.full(len(y), -1), np.unique(X, axis=0, return_inverse=True)[1].ravel()
    frequent = np.flatnonzero(of_row == np.bincount(of_row).argmax())
    few[frequent[:2]] = [0, 1]
    few[np.flatnonzero(of_row != of_row[frequent[0]])[:60]] = 2
    model = GreenClassifier().fit(X, few)
    first, second = suggest(model, 2)
    assert first.row == frequent[2]
    assert first.covers == len(frequent) - 2
    assert first.reason == f"equals labelled rows, which want another label; stands for about {first.covers} rows"
    assert second.row not in frequent
    assert suggest(model, 1, exclude=[frequent[2]])[0].row == frequent[3]
    few[frequent[2:4]] = 1  # three against one
    assert suggest(model.relabel(few), 1)[0].row not in frequent
