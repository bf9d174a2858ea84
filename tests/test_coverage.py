"""Which rows to label next: the greedy rule against the formula written out, and what it promises."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from greenlabel import GreenClassifier, suggest
from greenlabel.errors import DataError
from greenlabel.inspection.coverage import (
    ALPHA,
    SHIFT,
    Kernel,
    anchor_means,
    copies,
    correlations,
    gains,
    green_kernel,
    margins,
    next_rows,
    row_of_anchor,
    trust,
)
from greenlabel.inspection.sketch import MAX_ANCHORS, NEIGHBORS, heaviest, n_anchors, sketch


@pytest.fixture
def Z(rng):
    X = np.concatenate([rng.normal(size=(120, 3)), rng.normal(size=(40, 3)) + 20])
    return sketch(X, rng)


def dense_kernel(Z, shift):
    """H as it is written: diag(scale) ((1 + s) I - B'B)^-1 diag(scale)."""
    Z = Z.toarray()
    scale = np.diag(1 / np.sqrt(Z.sum(axis=0)))
    B = Z @ scale
    return scale @ np.linalg.inv((1 + shift) * np.eye(B.shape[1]) - B.T @ B) @ scale


def slow_next_rows(Z, n_rows, labelled, sure, excluded=()):
    """The rule anchor by anchor and label by label."""
    H, A, picks, labels = dense_kernel(Z, SHIFT), Z.toarray(), [], list(labelled)
    mass, m = A.sum(axis=0), A.shape[1]
    sure_anchors = A.T @ sure / mass
    for _ in range(n_rows):
        gain = np.zeros(m)
        for b in range(m):
            reach = [H[b] @ A[row] for row in labels]
            cover = max(
                (h / np.sqrt(H[b, b] * (A[row] @ H @ A[row])) for h, row in zip(reach, labels, strict=True)), default=0
            )
            need = ALPHA / (ALPHA + sum(reach) / H[b, b]) * (1 - sure_anchors[b])
            gain += [mass[b] * need * max(0, H[b, a] / np.sqrt(H[a, a] * H[b, b]) - cover) for a in range(m)]
        weights = A[:, gain.argmax()] * (1 - sure)
        weights[[*labels, *excluded]] = 0
        picks.append(int(weights.argmax()))
        labels.append(picks[-1])
    return picks


def test_the_kernel_is_the_dense_formula(Z):
    assert_allclose(green_kernel((Z.T @ Z).toarray(), 0.03), dense_kernel(Z, 0.03), rtol=1e-9, atol=1e-12)


def test_correlations_are_between_0_and_1_and_1_with_themselves(Z):
    K = correlations(green_kernel((Z.T @ Z).toarray(), SHIFT))
    assert K.min() >= 0
    assert K.max() <= 1
    assert_allclose(np.diag(K), 1)


def test_an_anchor_that_no_row_uses_covers_nothing():
    Z = sp.csr_array(np.array([[0.5, 0.5, 0], [1, 0, 0], [0, 1, 0]]))
    kernel = Kernel.of((Z.T @ Z).toarray())
    assert not kernel.K[2].any()
    assert not kernel.K[:, 2].any()
    assert [pick.row for pick in next_rows(kernel, Z, 9, np.arange(0))] != []


def test_gains_are_sums_over_anchors(rng):
    K, weight, cover = rng.random((600, 600)), rng.random(600), rng.random(600)
    slow = [sum(weight * np.maximum(K[:, a] - cover, 0)) for a in range(600)]
    assert_allclose(gains(K, weight, cover), slow, rtol=1e-12)


@pytest.mark.parametrize("labelled", [[], [3], [0, 5, 140, 77]])
def test_the_picks_are_those_of_the_rule_written_out(Z, rng, labelled):
    sure = rng.random(Z.shape[0])
    picks = next_rows(Kernel.of((Z.T @ Z).toarray()), Z, 6, np.array(labelled, int), sure, np.array([1, 2]))
    assert [pick.row for pick in picks] == slow_next_rows(Z, 6, labelled, sure, (1, 2))


def test_a_batch_is_the_same_as_one_row_after_another(Z):
    kernel = Kernel.of((Z.T @ Z).toarray())
    batch = [pick.row for pick in next_rows(kernel, Z, 8, np.arange(0))]
    one_by_one = []
    for _ in range(8):
        one_by_one.append(next_rows(kernel, Z, 1, np.array(one_by_one, int))[0].row)
    assert batch == one_by_one


def test_no_row_twice_none_labelled_none_excluded_and_all_others_in_the_end(Z):
    picks = next_rows(Kernel.of((Z.T @ Z).toarray()), Z, 1000, np.array([0, 1]), excluded=np.array([2, 3]))
    rows = [pick.row for pick in picks]
    assert len(set(rows)) == len(rows)
    assert sorted(rows) == list(range(4, Z.shape[0]))


def test_a_component_without_a_label_comes_first(Z):
    """The first 120 rows are one group, the other 40 lie far away."""
    labelled = np.arange(0, 120, 10)
    assert next_rows(Kernel.of((Z.T @ Z).toarray()), Z, 1, labelled)[0].row >= 120


def test_sure_predictions_send_picks_elsewhere(rng):
    X = np.concatenate([rng.normal(size=(100, 2)), rng.normal(size=(100, 2)) + 9])
    Z = sketch(X, rng)
    kernel = Kernel.of((Z.T @ Z).toarray())
    labelled = np.concatenate([np.arange(0, 100, 20), np.arange(100, 200, 20)])
    is_left = np.repeat([1.0, 0.0], 100)
    for sure, side in ((is_left, True), (1 - is_left, False)):
        rows = np.array([pick.row for pick in next_rows(kernel, Z, 5, labelled, sure)])
        assert ((rows >= 100) == side).sum() >= 4


def test_a_pick_covers_at_most_all_rows_and_the_first_one_its_component(Z):
    picks = next_rows(Kernel.of((Z.T @ Z).toarray()), Z, 5, np.arange(0))
    assert picks[0].covers == pytest.approx(120)
    assert picks[1].covers == pytest.approx(40)
    assert all(0 < pick.covers <= Z.shape[0] for pick in picks)


def test_the_row_of_an_anchor_is_the_heaviest_times_its_worth():
    Z = sp.csr_array(np.array([[0.5, 0.5], [0.9, 0.1], [0.0, 1.0]]))
    assert row_of_anchor(Z, 0, np.ones(3)) == 1
    assert row_of_anchor(Z, 0, np.array([1, 0.5, 1])) == 0
    assert row_of_anchor(Z, 0, np.array([0.0, 0.0, 1.0])) is None


def test_rows_that_are_sure_come_last_but_come(Z):
    picks = next_rows(Kernel.of((Z.T @ Z).toarray()), Z, Z.shape[0], np.arange(0), np.ones(Z.shape[0]))
    assert len(picks) == Z.shape[0]


def test_margins_and_means_at_anchors(Z, rng):
    P = rng.dirichlet(np.ones(4), Z.shape[0])
    ordered = np.sort(P, axis=1)
    assert_allclose(margins(P), ordered[:, -1] - ordered[:, -2])
    assert not margins(P[:, :1]).any()
    A = Z.toarray()
    assert_allclose(anchor_means(Z, margins(P), A.sum(axis=0)), A.T @ margins(P) / A.sum(axis=0))


def test_trust_grows_with_the_labels_that_another_one_can_confirm():
    assert trust(np.arange(8)) == 0
    assert trust(np.array([0, 0, 1])) == pytest.approx(2 / 4)
    assert trust(np.array([0, 0, 1, 1])) == pytest.approx(4 / 6)
    assert trust(np.tile([0, 1], 100)) > 0.99


def test_calibrated_margins_are_small_where_the_graph_says_nothing(rng):
    """Rows below 120 are one group, the others another; classes are the groups, or tossed."""
    X = np.concatenate([rng.normal(size=(120, 3)), rng.normal(size=(40, 3)) + 20])
    rows = np.concatenate([rng.choice(120, 15, replace=False), 120 + rng.choice(40, 15, replace=False)])
    means = []
    for codes in ((rows >= 120).astype(int), rng.permutation(np.repeat([0, 1], 15))):
        y = np.full(160, -1)
        y[rows] = codes
        means.append(margins(GreenClassifier().fit(X, y).label_distributions_).mean())
    told, tossed = means
    assert told > 0.8
    assert tossed < 0.3


def test_a_kernel_of_other_anchors_is_refused(Z):
    with pytest.raises(DataError, match="anchors"):
        next_rows(Kernel.of(np.eye(3)), Z, 1, np.arange(0))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 60])
def test_a_sketch_of_few_rows(n, rng):
    Z = sketch(rng.normal(size=(n, 2)), rng)
    assert Z.shape == (n, n_anchors(n))
    assert np.diff(Z.indptr).max() <= max(1, NEIGHBORS)
    assert_allclose(Z.sum(axis=1), 1)
    assert len(next_rows(Kernel.of((Z.T @ Z).toarray()), Z, n, np.arange(0))) == n


@pytest.mark.parametrize(("n", "m"), [(60, 60), (1024, 1024), (1500, 1024), (3000, 1500), (50_000, MAX_ANCHORS)])
def test_all_of_few_rows_are_anchors_and_half_of_more(n, m):
    assert n_anchors(n) == m


def test_each_of_few_rows_is_the_anchor_that_it_has_most_of(rng):
    assert len(set(heaviest(sketch(rng.normal(size=(200, 4)), rng)).tolist())) == 200


@pytest.mark.parametrize("seed", range(3))
def test_a_class_around_another_one_does_not_get_most_labels(seed):
    """Its rows are far from each other, so each of its labels tells about few."""
    rng, y = np.random.default_rng(seed), np.arange(400) % 2
    X = rng.normal(size=(400, 20)) * np.where(y, 2.0, 1.0)[:, None] + 0.5 * (y == 0)[:, None]
    rows = [one.row for one in suggest(GreenClassifier().fit(X, np.where(np.arange(400) < 2, y, -1)), 40)]
    assert y[rows].mean() < 0.6  # 0.7 to 0.9 where an anchor is the mean of four rows


def test_equal_rows_have_a_sketch_too():
    Z = sketch(np.ones((50, 3)), np.random.default_rng(0))
    assert len(next_rows(Kernel.of((Z.T @ Z).toarray()), Z, 10, np.arange(0))) == 10


def test_repeated_rows_cost_no_anchors(rng):
    """Few different rows are all anchors, however often each of them stands there."""
    X = rng.normal(size=(20, 3))[rng.integers(0, 20, 400)]
    assert sketch(X, rng).shape == (400, 20)


def test_copies_are_equal_rows(rng):
    number = rng.integers(0, 20, 400)
    copy = copies(sketch(rng.normal(size=(20, 3))[number], rng))
    assert len(set(zip(number.tolist(), copy.tolist(), strict=True))) == len(set(copy.tolist())) == 20


def test_copies_of_one_row_get_at_most_their_share_of_the_labels_rounded_up(rng):
    number = rng.choice(13, 1000, p=np.arange(1, 14) ** 2 / 819)
    Z = sketch(rng.normal(size=(13, 3))[number], rng)
    rows = [pick.row for pick in next_rows(Kernel.of((Z.T @ Z).toarray()), Z, 60, np.arange(0), copy=copies(Z))]
    for n_labels in (13, 30, 60):
        for k in range(13):
            taken, size = sum(number[row] == k for row in rows[:n_labels]), (number == k).sum()
            assert taken <= -(-size * n_labels // 1000)


def test_all_rows_come_in_the_end_where_copies_are_held_back(rng):
    Z = sketch(rng.normal(size=(5, 3))[rng.integers(0, 5, 60)], rng)
    kernel = Kernel.of((Z.T @ Z).toarray())
    assert len(next_rows(kernel, Z, 100, np.arange(3), excluded=np.arange(3, 9), copy=copies(Z))) == 51
