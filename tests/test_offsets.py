"""Classes of different size: offsets where the labels clearly ask for them, none elsewhere, one decision everywhere."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.datasets import make_classification, make_moons

from greenlabel import (
    AnchoredGreenClassifier,
    ConsistencyClassifier,
    GreenClassifier,
    HarmonicClassifier,
    leave_one_out,
)
from greenlabel.datasets import digits, keep_labels
from greenlabel.errors import ParameterError
from greenlabel.labels.encoding import ScoreDecoder, make_largest
from greenlabel.labels.offsets import ODDS, Objective, class_offsets, fitted_offsets, label_weights
from greenlabel.operators.green import DirectGreen, SparseGreen
from helpers import reference

OURS = [GreenClassifier, AnchoredGreenClassifier]
ALL = [*OURS, ConsistencyClassifier, HarmonicClassifier]
NO_ROWS = np.empty((0, 2))  # scores of two classes


def offsets_of(H, codes, F):
    return class_offsets(H, codes, np.bincount(codes, minlength=H.shape[1]), F)


def weights_of(H, codes, F):
    return label_weights(H, codes, np.bincount(codes, minlength=H.shape[1]), F)


def skewed(weights, n=2000, seed=0, sep=1.5):
    """Rows of classes of these sizes that touch."""
    return make_classification(
        n,
        10,
        n_informative=5,
        n_redundant=2,
        n_classes=len(weights),
        weights=list(weights),
        class_sep=sep,
        flip_y=0,
        random_state=seed,
    )


def drawn(y, n_labels, seed=0):
    """Labels of rows drawn at random, whatever their class."""
    rows = np.random.default_rng(seed).choice(len(y), n_labels, replace=False)
    few = np.full(len(y), -1)
    few[rows] = y[rows]
    return few


def accuracy(predictions, y, few):
    return np.mean((predictions == y)[few == -1])


def of_largest_score(model):
    return model.classes_[model.scores_.argmax(axis=1)]


# What it is for


@pytest.mark.slow
@pytest.mark.parametrize("Model", OURS)
def test_a_large_class_gets_its_rows_when_labels_are_drawn_at_random(Model):
    gains = []
    for seed in range(3):
        X, y = skewed([0.8, 0.08, 0.07, 0.05], seed=seed)
        few = drawn(y, 200, seed)
        model = Model(random_state=0).fit(X, few)
        before, after = accuracy(of_largest_score(model), y, few), accuracy(model.transduction_, y, few)
        assert before < 0.85
        assert after > 0.88
        gains.append(after - before)
    assert np.mean(gains) > 0.15


@pytest.mark.slow
@pytest.mark.parametrize("Model", OURS)
@pytest.mark.parametrize("seed", range(3))
def test_ninety_nine_to_one_is_no_worse_than_the_larger_class(Model, seed):
    X, y = skewed([0.99, 0.01], 3000, seed, sep=1.0)
    few = drawn(y, 288, seed)
    model = Model(random_state=0).fit(X, few)
    assert accuracy(of_largest_score(model), y, few) < 0.8
    assert accuracy(model.transduction_, y, few) >= np.mean(y[few == -1] == 0) - 0.005


@pytest.mark.slow
@pytest.mark.parametrize("Model", OURS)
def test_a_large_class_gets_its_rows_when_labels_are_drawn_class_by_class(Model):
    changes = []
    for seed in range(4):
        X, y = skewed([0.8, 0.08, 0.07, 0.05], 3000, seed, sep=2.0)
        few = keep_labels(y, 10, random_state=seed)
        model = Model(random_state=0).fit(X, few)
        changes.append(accuracy(model.transduction_, y, few) - accuracy(of_largest_score(model), y, few))
    assert np.mean(changes) > 0.1
    assert min(changes) >= 0


def test_labels_stand_for_as_much_of_the_data_as_their_class_holds(rng):
    def scores(codes):
        return rng.normal(size=(len(codes), 3)) + 4.0 * np.eye(3)[codes]

    codes = np.repeat([0, 1, 2], 20)
    weight = weights_of(scores(codes), codes, scores(np.repeat([0, 1, 2], [800, 150, 50])))
    assert_allclose(weight.mean(), 1)
    assert_allclose(weight[[0, 20, 40]] / 3, [0.8, 0.15, 0.05], atol=0.06)
    even = weights_of(scores(codes), codes, scores(np.repeat([0, 1, 2], 300)))
    assert_allclose(even, 1, atol=0.15)


def test_labels_drawn_at_random_stand_for_equal_parts(rng):
    codes = rng.permutation(np.repeat([0, 1, 2], [31, 18, 11]))
    H, F = (rng.normal(size=(n, 3)) for n in (60, 500))
    assert_array_equal(weights_of(H, codes, F), np.ones(60))


def test_labels_stand_for_equal_parts_where_no_row_tells_otherwise(rng):
    codes = np.repeat([0, 1], 10)
    assert_array_equal(weights_of(rng.normal(size=(20, 2)), codes, NO_ROWS), np.ones(20))
    assert_array_equal(weights_of(np.zeros((20, 2)), codes, rng.normal(size=(50, 2))), np.ones(20))


def test_one_label_of_the_small_class_among_many_of_the_large_one_does_not_take_half_of_the_rows():
    X, y = skewed([0.98, 0.02], seed=1, sep=1.0)
    few = drawn(y, 150)
    few[np.flatnonzero(few == 1)[1:]] = -1
    assert (few == 1).sum() == 1
    model = GreenClassifier().fit(X, few)
    assert np.mean(of_largest_score(model) == 1) > 0.2
    assert np.mean(model.transduction_ == 1) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("Model", OURS)
def test_new_rows_are_decided_as_those_of_the_fit(Model):
    X, y = skewed([0.8, 0.08, 0.07, 0.05], 3000)
    few = drawn(y[:2000], 200)
    model = Model(random_state=0).fit(X[:2000], few)
    assert np.mean(model.predict(X[2000:]) == y[2000:]) > 0.88


# Where it holds back


@pytest.mark.slow
@pytest.mark.parametrize("Model", OURS)
@pytest.mark.parametrize("per_class", [3, 10])
def test_offsets_are_exactly_0_where_classes_are_equal(Model, per_class):
    X, y = digits()
    model = Model(random_state=0).fit(X, keep_labels(y, per_class, random_state=0))
    for seed in range(5):
        assert_array_equal(model.relabel(keep_labels(y, per_class, random_state=seed)).class_offsets_, np.zeros(10))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_ten_labels_each_of_two_classes_do_not_tell_sixty_to_forty(seed):
    X, y = skewed([0.6, 0.4], seed=seed, sep=1.0)
    assert_array_equal(GreenClassifier().fit(X, keep_labels(y, 10, random_state=seed)).class_offsets_, [0, 0])


@pytest.mark.slow
def test_twenty_labels_drawn_from_sixty_to_forty_lose_nothing_that_counts():
    changes, n_taken = [], 0
    for seed in range(8):
        X, y = skewed([0.6, 0.4], 1500, seed, sep=1.0)
        few = drawn(y, 20, seed)
        model = GreenClassifier().fit(X, few)
        changes.append(accuracy(model.transduction_, y, few) - accuracy(of_largest_score(model), y, few))
        n_taken += model.class_offsets_.any()
    assert n_taken <= 2
    assert np.mean(changes) > -0.005


def test_one_label_per_class_tells_nothing():
    X, y = make_moons(200, noise=0.1, random_state=0)
    assert_array_equal(GreenClassifier().fit(X, keep_labels(y, 1, random_state=0)).class_offsets_, [0, 0])


def test_more_classes_than_labels_that_are_asked_tell_nothing(rng):
    offsets, log_odds = fitted_offsets(rng.normal(size=(5, 6)), np.arange(5), np.ones(5))
    assert_array_equal(offsets, np.zeros(6))
    assert log_odds == -np.inf


def test_scores_of_nothing_but_zeros_tell_nothing():
    assert_array_equal(offsets_of(np.zeros((40, 2)), np.repeat([0, 1], [38, 2]), NO_ROWS), [0, 0])


# The fit


def leaning(rng, n_rows=80, c=3):
    """Scores that know the class of each row, with the last class set back."""
    codes = rng.integers(0, c, n_rows)
    H = rng.normal(size=(n_rows, c)) + 2.0 * np.eye(c)[codes]
    H[:, -1] -= 2.5
    return H, codes


@pytest.mark.slow
def test_the_fit_is_the_minimum_of_the_formula(rng):
    H, codes = leaning(rng)
    H -= H.mean(axis=1, keepdims=True)
    scale = np.abs(H).max()
    weight = rng.uniform(0.2, 3, len(codes))
    given = (H / scale, codes, weight)
    best = minimize(reference.offset_loss, [1.0, 0, 0, 0], given, method="BFGS", options={"gtol": 1e-8})
    offsets, log_odds = fitted_offsets(H, codes, weight)
    assert_allclose(offsets, best.x[1:] * scale / best.x[0], rtol=1e-4)
    assert_allclose(offsets.sum(), 0, atol=1e-12)
    assert offsets[2] > 1
    plain = minimize(lambda t: reference.offset_loss(np.r_[t, 0, 0, 0], *given), [1.0], method="BFGS")
    points = (best.x, np.r_[plain.x, 0, 0, 0])
    curvature = [hessian(lambda x: reference.offset_loss(x, *given), x) for x in points]
    by_hand = plain.fun - best.fun - (np.log(np.linalg.det(curvature[0])) - np.log(curvature[1][0, 0])) / 2
    assert_allclose(log_odds, by_hand, rtol=1e-3)


def hessian(f, x, h=1e-3):
    """By differences."""
    steps = np.eye(len(x)) * h
    mixed = [[f(x + a + b) - f(x + a - b) - f(x - a + b) + f(x - a - b) for b in steps] for a in steps]
    return np.array(mixed) / (4 * h * h)


def test_the_derivatives_are_those_of_the_value(rng):
    H, codes = leaning(rng, 20)
    objective, x = Objective(H, np.eye(3)[codes], rng.uniform(0.2, 3, 20)), np.array([0.7, 0.3, -0.4, 0.2])
    slopes = [(objective.value(x + e) - objective.value(x - e)) / 2e-5 for e in 1e-5 * np.eye(4)]
    assert_allclose(objective.gradient(x), slopes, rtol=1e-6)
    assert_allclose(objective.hessian(x), hessian(objective.value, x), rtol=1e-4, atol=1e-6)


def test_scores_that_say_the_opposite_leave_the_decision_to_the_larger_class(rng):
    codes = np.repeat([0, 1], [180, 20])
    H = rng.normal(size=(200, 2)) - 0.5 * np.eye(2)[codes]
    offsets = offsets_of(H, codes, NO_ROWS)
    assert np.isfinite(offsets).all()
    assert ((H + offsets).argmax(axis=1) == 0).all()


def test_offsets_follow_the_unit_of_the_scores(rng):
    H, codes = leaning(rng)
    F = np.tile(H, (3, 1))
    assert_allclose(offsets_of(1e-6 * H, codes, 1e-6 * F), 1e-6 * offsets_of(H, codes, F), rtol=1e-4)
    assert offsets_of(H, codes, F).any()


def test_offsets_are_taken_from_the_odds_on_and_not_before(rng):
    H, codes = leaning(rng, 400)
    odds = [fitted_offsets(H[:n], codes[:n], np.ones(n))[1] for n in range(6, 60)]
    taken = [offsets_of(H[:n], codes[:n], np.empty((0, 3))).any() for n in range(6, 60)]
    assert not any(t for t, o in zip(taken, odds, strict=True) if o <= np.log(ODDS))
    assert any(taken)
    assert not all(taken)


def test_offsets_by_which_fewer_labels_are_recognised_are_not_taken():
    # A few rows that are surely wrong make every score doubtful: the best log-loss says the larger class throughout.
    H = np.zeros((200, 2))
    H[:, 0] = np.repeat([0.1, -0.1, 30.0], [170, 15, 15])
    codes = np.repeat([0, 1], [170, 30])
    offsets, log_odds = fitted_offsets(H, codes, np.ones(200))
    assert log_odds > np.log(ODDS)
    assert (H.argmax(axis=1) == codes).sum() == 185 > ((H + offsets).argmax(axis=1) == codes).sum()
    assert_array_equal(offsets_of(H, codes, NO_ROWS), [0, 0])


# One decision everywhere


@pytest.mark.slow
@pytest.mark.parametrize("Model", ALL)
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), c=st.integers(2, 5), large=st.floats(0.3, 0.95), n_labels=st.integers(10, 80))
def test_predictions_probabilities_and_transduction_agree(Model, seed, c, large, n_labels):
    rng = np.random.default_rng(seed)
    shares = np.r_[large, np.full(c - 1, (1 - large) / (c - 1))]
    y = np.r_[np.arange(c), rng.choice(c, 150 - c, p=shares)]
    X = np.round(rng.normal(size=(c, 3))[y] + rng.normal(size=(150, 3)), seed % 3)  # rounded: rows and scores that tie
    few = np.r_[y[:c], np.where(np.arange(c, 150) < n_labels, y[c:], -1)]
    model = Model(random_state=0, class_offsets="auto").fit(X, few)
    adjusted = model.scores_ + model.class_offsets_
    reached = model.reached_
    assert_array_equal(model.transduction_[reached], model.classes_[adjusted.argmax(axis=1)][reached])
    assert_array_equal(model.classes_[model.label_distributions_.argmax(axis=1)], model.transduction_)
    new = rng.normal(size=(30, 3))
    assert_array_equal(model.classes_[model.predict_proba(new).argmax(axis=1)], model.predict(new))
    assert_allclose(model.label_distributions_.sum(axis=1), 1)
    decision = model.decision_function(X)
    best = (decision > 0).astype(int) if len(model.classes_) == 2 else decision.argmax(axis=1)
    assert_array_equal(model.classes_[best][reached], model.predict(X)[reached])


def test_the_decided_class_is_the_largest_where_rounding_makes_probabilities_equal():
    p = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    make_largest(np.array([1, 2]), p)
    assert_array_equal(p.argmax(axis=1), [1, 2])
    assert_allclose(p, [[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]], rtol=1e-15)
    F = np.array([[1.0, np.nextafter(1.0, 2)]])
    decoder = ScoreDecoder(np.array([0, 1]), np.array([0.5, 0.5]), np.zeros(2), 1e-3)
    assert decoder.classify(F, np.array([True])) == [1]
    assert decoder.probabilities(F, np.array([True])).argmax(axis=1) == [1]


@pytest.mark.slow
@pytest.mark.parametrize("Model", ALL)
def test_without_offsets_the_class_is_exactly_that_of_the_largest_score(Model):
    X, y = skewed([0.9, 0.1])
    model = Model(class_offsets=None, random_state=0).fit(X, drawn(y, 200))
    assert_array_equal(model.class_offsets_, [0, 0])
    assert_array_equal(model.transduction_, of_largest_score(model))
    decision = model.decision_function(X[:50])
    assert_array_equal(model.predict(X[:50]), model.classes_[(decision > 0).astype(int)])


@pytest.mark.parametrize("Model", [ConsistencyClassifier, HarmonicClassifier])
def test_the_classics_are_as_published_unless_asked_otherwise(Model):
    X, y = skewed([0.9, 0.1])
    assert not Model().fit(X, drawn(y, 200)).class_offsets_.any()
    assert Model().get_params()["class_offsets"] is None


@pytest.mark.slow
def test_the_scores_are_the_same_with_offsets_and_without():
    X, y = skewed([0.9, 0.1])
    few = drawn(y, 200)
    with_offsets, without = (GreenClassifier(class_offsets=how).fit(X, few) for how in ("auto", None))
    assert with_offsets.class_offsets_.any()
    assert_array_equal(with_offsets.scores_, without.scores_)
    gap = np.diff(with_offsets.class_offsets_)
    assert_allclose(with_offsets.decision_function(X[:40]), without.decision_function(X[:40]) + gap, rtol=1e-9)
    assert_array_equal(leave_one_out(with_offsets), leave_one_out(without))


def test_other_words_for_offsets_are_refused():
    with pytest.raises(ParameterError, match="class_offsets='yes' is unknown; give 'auto' or None"):
        GreenClassifier(class_offsets="yes").fit([[0.0], [1.0]], [0, 1])


@pytest.mark.slow
@pytest.mark.parametrize("Model", OURS)
def test_leave_one_out_probabilities_go_by_the_same_rule(Model):
    X, y = skewed([0.8, 0.08, 0.07, 0.05])
    model = Model(random_state=0).fit(X, drawn(y, 200))
    _, codes, p = model.cross_validated(500)
    plain = Model(random_state=0, class_offsets=None).fit(X, drawn(y, 200))
    _, _, q = plain.cross_validated(500)
    assert np.mean(p.argmax(axis=1) == codes) > np.mean(q.argmax(axis=1) == codes) + 0.1


@pytest.mark.slow
@pytest.mark.parametrize("Model", OURS)
def test_a_copy_for_new_rows_carries_the_offsets(Model):
    X, y = skewed([0.8, 0.08, 0.07, 0.05])
    model = Model(random_state=0).fit(X, drawn(y, 200))
    slim = model.for_prediction()
    assert model.class_offsets_.any()
    assert_array_equal(slim.class_offsets_, model.class_offsets_)
    assert_array_equal(slim.predict(X[:100]), model.predict(X[:100]))
    assert_array_equal(slim.predict_proba(X[:100]), model.predict_proba(X[:100]))


# Blocks


def test_blocks_partial_fit_and_streamed_predictions_equal_memory_to_the_last_bit(tmp_path):
    X, y = skewed([0.8, 0.08, 0.07, 0.05])
    few = drawn(y, 200)
    whole = AnchoredGreenClassifier(200, random_state=0).fit(X, few)
    assert whole.class_offsets_.any()
    np.save(tmp_path / "rows.npy", X)
    parts = AnchoredGreenClassifier(anchors=whole.anchors_).fit(X, few)
    pieces = AnchoredGreenClassifier(anchors=whole.anchors_).partial_fit(X[:700], few[:700])
    pieces.partial_fit(X[700:], few[700:])
    from_file = AnchoredGreenClassifier(200, random_state=0, memory_limit=0).fit(tmp_path / "rows.npy", few)
    for one, other in ((parts, pieces), (whole, from_file)):
        assert_array_equal(other.class_offsets_, one.class_offsets_)
        assert_array_equal(other.transduction_, one.transduction_)
        assert_array_equal(other.label_distributions_, one.label_distributions_)
        blocks = list(other.answers())
        assert_array_equal(np.concatenate([block.classes for block in blocks]), one.transduction_)
        assert_array_equal(np.concatenate([block.probabilities for block in blocks]), one.label_distributions_)


# Cheap on large graphs


@pytest.mark.slow
@pytest.mark.parametrize("Operator", [DirectGreen, SparseGreen])
def test_the_own_shares_of_many_labels_come_roughly_from_few_columns(Operator, rng):
    X = rng.normal(size=(800, 3))
    graph = GreenClassifier().fit(X, np.r_[0, 1, np.full(798, -1)]).graph_
    operator, rows = Operator(graph, 0.01 * graph.mean_degree), np.sort(rng.choice(800, 60, replace=False))
    exact = operator.diagonal(rows)
    assert_allclose(operator.diagonal_from(60, rows, 1e-12), exact, rtol=1e-8)
    assert_allclose(operator.diagonal_from(12, rows, 1e-6), exact, atol=0.25 * exact.mean())


def test_offsets_of_a_large_graph_need_few_solves(monkeypatch):
    widths = []
    solve = SparseGreen.solve
    monkeypatch.setattr(SparseGreen, "solve", lambda self, Y, *rest: widths.append(Y.shape[1]) or solve(self, Y, *rest))
    monkeypatch.setattr("greenlabel.propagators.knn.OFFSET_WORK", 0)
    X, y = skewed([0.8, 0.08, 0.07, 0.05])
    model = GreenClassifier(mu=1e-5).fit(X, drawn(y, 200))
    widths.clear()
    assert model.class_offsets_.any()
    assert widths == [16]
    assert accuracy(model.transduction_, y, drawn(y, 200)) > 0.88


def test_classes_may_change_their_names():
    """Rows of zeros, which nothing recognises, do not count as recognised where their class is the first one."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        codes = (rng.random(80) < rng.uniform(0.1, 0.5)).astype(int)
        H = rng.normal(size=(80, 2)) + rng.uniform(0, 2) * np.eye(2)[codes] + [0, rng.random()]
        H[rng.random(80) < 0.5] = 0
        there, renamed = offsets_of(H, codes, NO_ROWS), offsets_of(H[:, ::-1], 1 - codes, NO_ROWS)
        assert_allclose(there, renamed[::-1], atol=1e-9)
