"""Weights, temperature and suggested shares of the blend, against slow and obvious versions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import softmax

from greenlabel.blend.predictor import LogDecoder
from greenlabel.blend.weights import (
    DOUBT,
    DRAWN,
    FOLDS,
    MAX_TESTED,
    NEW,
    blend,
    blend_blindly,
    choose_weights,
    divide,
    divide_again,
    joint_parts,
    log_evidence,
    scale_to_confidence,
)
from greenlabel.labels.encoding import choose_temperature
from greenlabel.labels.label_shift import suggested_shares
from helpers import reference

EVEN = np.ones(3)
PARTS = np.arange(60) % FOLDS


def evidence_of_experts(rng, k=60, c=3):
    """Held-out evidence (3, k, c) of a good, a middling and a useless expert, and the true classes."""
    codes = rng.integers(0, c, k)
    A = rng.normal(size=(3, k, c))
    A[0, np.arange(k), codes] += 3
    A[1, np.arange(k), codes] += 1
    return A - A.mean(axis=2, keepdims=True), codes


# Folds ------------------------------------------------------------------------------------------------------------


def test_a_class_always_keeps_a_label_when_a_fold_is_left_out(rng):
    codes = np.repeat([0, 1, 2, 3], [2, 3, 9, 40])
    for fold in divide(codes, rng):
        assert set(fold) == set(range(FOLDS))
        for number in range(FOLDS):
            assert set(codes[fold != number]) == {0, 1, 2, 3}


def test_the_only_label_of_a_class_is_never_left_out(rng):
    folds = divide(np.array([0, 1, 1, 1, 2, 2]), rng)
    assert (folds[:, 0] == -1).all()
    assert (folds[:, 1:] >= 0).all()


def test_one_label_per_class_leaves_nothing_to_hold_out(rng):
    assert (divide(np.arange(7), rng) == -1).all()


def test_of_very_many_labels_a_class_of_two_keeps_one():
    codes = np.concatenate([np.arange(4000) % 2, np.repeat(np.arange(2, 202), 2)])
    (fold,) = divide(codes, np.random.default_rng(0))
    assert set(codes[fold < 0]) == set(range(202))


def test_the_same_labels_are_divided_again_as_they_were(rng):
    codes = rng.integers(0, 5, 60)
    first = divide(codes, np.random.default_rng(7))
    assert_array_equal(divide_again(codes, first[0], np.random.default_rng(7)), first)


def test_rows_with_other_labels_stay_in_their_fold_and_new_ones_even_it_out(rng):
    before = np.concatenate([divide(np.arange(40) % 4, rng)[0], np.full(30, NEW)])
    codes = np.concatenate([rng.integers(0, 4, 40), np.repeat([0, 1, 4], 10)])
    folds = divide_again(codes, before, rng)
    assert_array_equal(folds[0, :40], before[:40])
    of_new_class = np.bincount(folds[0, codes == 4], minlength=FOLDS)
    assert_array_equal(of_new_class, np.full(FOLDS, 2))
    for code in (0, 1):
        was = np.bincount(before[:40][codes[:40] == code], minlength=FOLDS)
        now = np.bincount(folds[0, codes == code], minlength=FOLDS)
        assert now.max() <= max(was.max(), np.ceil(now.sum() / FOLDS))
    for fold in folds:
        for number in range(FOLDS):
            assert set(codes[fold != number]) == {0, 1, 2, 3, 4}


def test_a_row_that_all_folds_have_seen_is_not_left_out_later(rng):
    codes, before = np.array([0, 1, 2, 0, 1, 2]), np.array([-1, -1, -1, NEW, NEW, NEW])
    folds = divide_again(codes, before, rng)
    assert (folds[:, :3] == -1).all()
    assert (folds[:, 3:] >= 0).all()


def test_a_class_whose_rows_are_left_in_one_fold_keeps_one_of_them(rng):
    codes, before = np.array([0, 0, 0, 1, 1]), np.array([2, 2, 2, 1, 3])
    folds = divide_again(codes, before, rng)
    assert_array_equal(folds[0], [-1, 2, 2, 1, 3])
    assert_array_equal(folds[1] < 0, [True, False, False, False, False])


def test_of_very_many_labels_some_are_left_out_once(rng):
    folds = divide(np.arange(20_000) % 4, rng)
    assert folds.shape == (1, 20_000)
    assert (folds == 0).sum() == pytest.approx(MAX_TESTED, rel=0.1)


def test_of_very_many_labels_those_that_were_left_out_stay_so(rng):
    codes = np.arange(20_000) % 4
    (before,) = divide(codes[:19_990], rng)
    (fold,) = divide_again(codes, np.append(before, np.full(10, NEW)), rng)
    assert_array_equal(fold[:19_990], before)


def test_a_row_is_in_the_same_part_in_all_divisions(rng):
    folds = divide(np.array([0, 1, 1, 1, 2, 2, 2, 2]), rng)
    parts = joint_parts(folds).reshape(len(folds), 7)
    assert_array_equal(parts, np.broadcast_to(folds[0, 1:], parts.shape))


def test_rows_of_a_single_fold_are_tested_in_parts_too(rng):
    folds = divide(np.arange(20_000) % 4, rng)
    parts = joint_parts(folds)
    assert len(parts) == (folds == 0).sum()
    assert np.bincount(parts).min() > len(parts) / FOLDS * 0.8


# Weights ----------------------------------------------------------------------------------------------------------


def test_weights_minimise_the_penalised_loss(rng):
    A, codes = evidence_of_experts(rng)
    before = np.array([0.5, 0.3, 0.2])
    strength = DRAWN * np.sqrt(60)
    slow = minimize(
        reference.penalised_loss, before, args=(A, codes, before, strength), bounds=[(0, None)] * 3, method="SLSQP"
    )
    found = choose_weights(A, codes, before)
    assert_allclose(found, slow.x, atol=1e-3)
    assert reference.penalised_loss(found, A, codes, before, strength) <= slow.fun + 1e-6


@pytest.mark.parametrize("seed", range(10))
def test_the_last_bit_of_the_evidence_changes_no_more_of_what_is_chosen(seed):
    """Processors round differently: a search that stops early would show it in the seventh digit."""
    rng = np.random.default_rng(seed)
    A, codes = evidence_of_experts(rng)
    other = A * (1 + 1e-15 * rng.normal(size=A.shape))
    before = np.array([0.5, 0.3, 0.2])
    assert_allclose(choose_weights(other, codes, before), choose_weights(A, codes, before), rtol=0, atol=1e-12)
    assert choose_temperature(other[0], codes) == pytest.approx(choose_temperature(A[0], codes), rel=1e-12)
    assert scale_to_confidence(other[0], 0.8) == pytest.approx(scale_to_confidence(A[0], 0.8), rel=1e-12)


def test_certain_probabilities_do_not_lead_beyond_the_minimum():
    """There the curve is flat, and a whole step of Newton goes a thousand times too far."""
    rng = np.random.default_rng(1090)
    k = int(rng.choice([2, 5]))
    codes = rng.integers(0, 2, k)
    A = rng.normal(size=(2, k, 2)) * 10.0 ** rng.uniform(0, 3, (2, 1, 1))
    before = np.array([0.5, 0.5])
    words = A, codes, before, DRAWN * np.sqrt(k)
    assert reference.penalised_loss(choose_weights(A, codes, before), *words) <= reference.penalised_loss(
        before, *words
    )


def test_an_expert_that_is_mostly_wrong_has_no_weight(rng):
    A, codes = evidence_of_experts(rng)
    found = choose_weights(np.stack([A[0], -4 * A[0]]), codes, np.array([0.9, 0.1]))
    assert found[1] == 0
    assert_allclose(found[:1], choose_weights(A[:1], codes, np.array([0.9])), rtol=1e-12)


def test_the_better_expert_has_the_larger_weight(rng):
    found = blend(*evidence_of_experts(rng), EVEN, PARTS)
    assert found.weights.sum() == pytest.approx(1)
    assert found.weights[0] > found.weights[1] > found.weights[2] - 0.05


def test_without_evidence_weights_stay_what_they_were():
    A = np.zeros((3, 20, 2))
    assert_allclose(choose_weights(A, np.arange(20) % 2, np.array([0.6, 0.3, 0.1])), [0.6, 0.3, 0.1], atol=1e-6)


def fit_slowly(A, codes, before):
    """Temperatures of the experts times their weights, by searches that know no slope."""
    own = [slow_temperature(of_expert, codes, 1.0) for of_expert in A]
    scaled = A * np.array(own)[:, None, None]
    strength = DRAWN * np.sqrt(len(codes))
    start = (before, scaled, codes, before, strength)
    found = minimize(reference.penalised_loss, start[0], args=start[1:], bounds=[(0, None)] * len(A), method="SLSQP")
    return found.x * own


def slow_temperature(A, codes, doubt):
    c = A.shape[1]
    target = (np.eye(c)[codes] * len(codes) + doubt / c) / (len(codes) + doubt)
    grid = np.exp(np.linspace(-7, 5, 1201))
    return min(grid, key=lambda t: -(target * np.log(softmax(t * A, axis=1) + 1e-300)).sum())


@pytest.mark.slow
def test_each_part_of_the_rows_is_blended_with_weights_from_the_others(rng):
    A, codes = evidence_of_experts(rng)
    found = blend(A, codes, EVEN, PARTS)
    whole = np.tensordot(fit_slowly(A, codes, EVEN / 3), A, 1)
    slow = np.zeros_like(whole)
    for part in range(FOLDS):
        rest = part != PARTS
        mixed = np.tensordot(fit_slowly(A[:, rest], codes[rest], EVEN / 3), A, 1)
        slow[~rest] = mixed[~rest] * np.linalg.norm(whole) / np.linalg.norm(mixed)
    t = slow_temperature(slow, codes, DOUBT)
    assert_allclose(found.out_of_fold, t * slow, atol=0.02 * np.abs(t * slow).max())
    assert_allclose(np.tensordot(found.scales, A, 1), t * whole, atol=0.02 * np.abs(t * whole).max())


def test_the_classes_of_a_part_do_not_choose_the_weights_that_it_is_tested_with(rng):
    A, codes = evidence_of_experts(rng)
    other = np.where(PARTS == 0, (codes + 1) % 3, codes)
    one, two = (blend(A, known, EVEN, PARTS).out_of_fold[PARTS == 0] for known in (codes, other))
    assert_allclose(one / np.linalg.norm(one), two / np.linalg.norm(two), atol=1e-9)


@pytest.mark.slow
def test_experts_that_know_nothing_are_right_as_often_as_chance(rng):
    """With weights from the same rows they would seem right six times of ten, with as much confidence."""
    right, confidence = [], []
    for _ in range(40):
        codes = rng.permutation(np.arange(20) % 2)
        noise = rng.normal(size=(6, 20, 2))
        found = blend(noise - noise.mean(axis=2, keepdims=True), codes, np.ones(6), np.arange(20) % FOLDS)
        right.append((found.out_of_fold.argmax(axis=1) == codes).mean())
        confidence.append(softmax(found.out_of_fold, axis=1).max(axis=1).mean())
    assert 0.4 < np.mean(right) < 0.53
    assert np.mean(confidence) < 0.57


def test_experts_without_evidence_make_a_blend_without_evidence():
    found = blend(np.zeros((3, 60, 2)), np.arange(60) % 2, EVEN, PARTS)
    assert_array_equal(found.out_of_fold, np.zeros((60, 2)))
    assert np.isfinite(found.scales).all()
    assert_allclose(found.weights, 1 / 3)


def test_confidence_on_tested_rows_is_about_their_accuracy(rng):
    A, codes = evidence_of_experts(rng, k=600)
    found = blend(A, codes, EVEN, np.arange(600) % FOLDS)
    right = (found.out_of_fold.argmax(axis=1) == codes).mean()
    assert softmax(found.out_of_fold, axis=1).max(axis=1).mean() == pytest.approx(right, abs=0.03)


def test_blindly_each_expert_counts_by_its_trust():
    found = blend_blindly(np.array([2.0, 0.5, 0.0]), 4, np.array([2.0, 1.0, 1.0]))
    assert_allclose(found.weights, [0.5, 0.25, 0.25])
    assert_allclose(found.scales * [2.0, 0.5, 0.0], [1.0, 0.5, 0.0])  # typical evidence, made alike, times the weights
    assert len(found.codes) == 0


def test_log_evidence_is_finite_centred_and_in_the_order_of_the_probabilities():
    p = np.array([[0.0, 1.0, 0.0], [0.2, 0.3, 0.5]])
    E = log_evidence(p)
    assert np.isfinite(E).all()
    assert_allclose(E.sum(axis=1), 0, atol=1e-12)
    assert_array_equal(E.argmax(axis=1), p.argmax(axis=1))


# Shares -----------------------------------------------------------------------------------------------------------


def seen(rng, shares, sharpness, per_class=10, n=4000):
    """Probabilities on tested rows (balanced) and their mean on data with these shares, of an imaginary expert."""
    c = len(shares)

    def predictions(codes):
        F = rng.normal(size=(len(codes), c))
        F[np.arange(len(codes)), codes] += sharpness
        return softmax(sharpness * F / 2, axis=1)

    tested = np.repeat(np.arange(c), per_class)
    return predictions(tested), tested, predictions(rng.choice(c, n, p=shares)).mean(axis=0)


def test_shares_of_the_data_are_found_where_classes_are_told_apart(rng):
    true = np.array([0.7, 0.2, 0.1])
    q = suggested_shares(*seen(rng, true, 4.0), np.full(3, 1 / 3))
    assert_allclose(q, true, atol=0.08)
    assert q.sum() == pytest.approx(1)


def test_shares_stay_those_of_the_labels_where_classes_cannot_be_told_apart(rng):
    q = suggested_shares(*seen(rng, np.array([0.8, 0.2]), 0.05), np.full(2, 0.5))
    assert_allclose(q, 0.5, atol=0.05)


def test_shares_of_labels_that_are_like_the_data_stay(rng):
    true = np.array([0.6, 0.3, 0.1])
    q = suggested_shares(*seen(rng, true, 4.0, per_class=30), true)
    assert_allclose(q, true, atol=0.05)


def test_a_class_that_was_never_tested_has_a_share_too(rng):
    p, codes, mean = seen(rng, np.array([0.5, 0.3, 0.2]), 4.0)
    keep = codes < 2
    q = suggested_shares(p[keep], codes[keep], mean, np.full(3, 1 / 3))
    assert (q > 0).all()
    assert np.isfinite(q).all()


# Confidence -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [0.5, 0.8, 0.99])
def test_scores_are_scaled_to_a_confidence(rng, wanted):
    E = rng.normal(size=(300, 4))
    t = scale_to_confidence(E, wanted)
    assert softmax(t * E, axis=1).max(axis=1).mean() == pytest.approx(wanted, abs=1e-3)


def test_a_confidence_out_of_reach_gives_finite_scores(rng):
    assert np.isfinite(scale_to_confidence(np.zeros((5, 2)), 0.9))
    assert np.isfinite(scale_to_confidence(rng.normal(size=(5, 2)), 1.0))
    assert np.isfinite(scale_to_confidence(rng.normal(size=(5, 2)), 0.1))


def test_the_largest_probability_is_that_of_the_class_where_scores_tie_but_for_rounding():
    F = np.array([[-1.06926379467216, 0.53463189733608, 0.5346318973360801]])
    decoder = LogDecoder(np.arange(3))
    assert decoder.probabilities(F, None).argmax(axis=1) == decoder.classify(F, None)
