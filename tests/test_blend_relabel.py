"""A few labels more for a blend: what folds learned stays, evidence is honest, the way there does not matter."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from greenlabel import BlendedClassifier, GreenClassifier
from greenlabel.blend.row_experts import KernelExpert, RowExpert
from greenlabel.blend.task import another_draw, few_added
from greenlabel.datasets import keep_labels
from greenlabel.labels.encoding import read_labels

ROW_EXPERTS = ["trees", "logistic", "rbf kernel", "laplace kernel"]


@pytest.fixture
def clouds():
    """300 rows of three clouds that overlap, their classes, and 20 labels of each."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1, 2], 100))
    few = np.full(300, -1)
    for code in range(3):
        few[np.flatnonzero(y == code)[:20]] = code
    return rng.normal(size=(300, 6)) + y[:, None] * [2, 1, 0, 0, 0, 0], y, few


def with_labels(few, rows, codes):
    other = few.copy()
    other[rows] = codes
    return other


def blend_of(model):
    return {expert.name: expert for expert in model.fitted_.predictor.experts}


def evidence_in_tests(model, row):
    """{expert: evidence (r, c)} that a labelled row was tested with."""
    index = np.searchsorted(model.fitted_.labels.rows, row)
    return {name: blend_of(model)[name].out_of_fold[:, index] for name in ROW_EXPERTS}


@pytest.fixture
def fits(monkeypatch):
    """How many row models were fitted, so far in the list."""
    found = []
    for kind in (RowExpert, KernelExpert):
        fit = kind.fit_model

        def counted(self, X, codes, fit=fit):
            found.append(self.name)
            return fit(self, X, codes)

        monkeypatch.setattr(kind, "fit_model", counted)
    return found


# What is fitted again ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_few_labels_more_fit_one_model_of_each_row_expert(clouds, fits):
    X, y, few = clouds
    model = BlendedClassifier(random_state=0).fit(X, few)
    assert len(fits) == 4 * 11
    fits.clear()
    free = np.flatnonzero(few == -1)
    model.relabel(with_labels(few, free[:6], y[free[:6]]))
    assert sorted(fits) == sorted(ROW_EXPERTS)
    fits.clear()
    model.relabel(few)
    assert not fits
    model.relabel(with_labels(few, free[:7], y[free[:7]]))
    assert len(fits) == 4 * 6 - 5  # five folds; those of the trees have fewer trees, and are not counted


@pytest.mark.slow
@pytest.mark.parametrize("code", [-1, 1], ids=["gone", "changed"])
def test_a_label_that_was_taken_back_is_forgotten_by_all_folds(code, clouds):
    X, _, few = clouds
    wrong = np.flatnonzero(few == 0)[0]
    other = with_labels(few, wrong, code)
    model = BlendedClassifier(random_state=0).fit(X, few)
    before = {name: blend_of(model)[name].out_of_fold for name in ROW_EXPERTS}
    model.relabel(other)
    others, stay = model.fitted_.labels.rows != wrong, np.flatnonzero(few != -1) != wrong
    for name in ROW_EXPERTS:
        assert (blend_of(model)[name].out_of_fold[:, others] != before[name][:, stay]).any(), name


def test_experts_of_ones_own_are_fitted_once_too(clouds, fits):
    X, y, few = clouds
    mine = [("graph", GreenClassifier()), ("bayes", GaussianNB()), ("logistic", LogisticRegression())]
    model = BlendedClassifier(mine, random_state=0).fit(X, few)
    fits.clear()
    free = np.flatnonzero(few == -1)[:6]
    model.relabel(with_labels(few, free, y[free]))
    assert fits == ["bayes", "logistic"]
    assert model.experts_["bayes"].class_count_.sum() == 66
    assert (model.transduction_ == y).mean() > 0.7


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ([0] * 10 + [1] * 10 + [-1] * 4, True),
        ([0] * 10 + [1] * 10 + [0, 1, -1, -1], True),
        ([0] * 10 + [1] * 10 + [0, 1, 1, -1], False),
        ([1] + [0] * 9 + [1] * 10 + [-1] * 4, False),
        ([0] * 10 + [1] * 9 + [-1] * 5, False),
        ([0] * 10 + [1] * 10 + [2, -1, -1, -1], False),
        ([3] * 10 + [4] * 10 + [-1] * 4, False),
    ],
)
def test_tests_stay_with_a_tenth_more_labels_of_the_same_classes(other, expected):
    before, now = (read_labels(y, 24, "test") for y in ([0] * 10 + [1] * 10 + [-1] * 4, other))
    assert few_added(before, now) is expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (range(20, 40), True),
        ([0, 1, *range(20, 38)], True),  # a tenth stays
        ([0, 1, 2, *range(20, 37)], False),  # more than that: the others may have been wrong
        (range(20, 42), True),
        (range(20, 43), False),  # many more labels deserve tests of their own
        (range(20, 37), False),
    ],
)
def test_tests_stay_with_another_draw_of_as_many_labels(rows, expected):
    y = np.arange(60) % 2
    before, now = (
        read_labels(with_labels(np.full(60, -1), list(r), y[list(r)]), 60, "test") for r in (range(20), rows)
    )
    assert another_draw(before, now) is expected
    changed = with_labels(np.full(60, -1), list(rows), y[list(rows)])
    changed[0] = 1  # contradicts the fit
    assert not another_draw(before, read_labels(changed, 60, "test"))


@pytest.mark.slow
def test_another_draw_fits_one_model_of_each_expert_which_the_models_of_the_fit_test(clouds, fits):
    X, y, few = clouds
    other = keep_labels(np.where(few == -1, y, -1), 20, random_state=1)
    model = BlendedClassifier(random_state=0).fit(X, few)
    rows = np.flatnonzero(other != -1)
    of_fit = {name: expert.evidence_on_rows(model.fitted_.features, rows) for name, expert in blend_of(model).items()}
    fits.clear()
    model.relabel(other)
    assert sorted(fits) == sorted(ROW_EXPERTS)
    for name, expert in blend_of(model).items():
        for division in expert.out_of_fold:
            assert_allclose(division, of_fit[name], atol=1e-12, err_msg=name)
    fitted = BlendedClassifier(random_state=0).fit(X, other)
    for name in ROW_EXPERTS:
        assert_array_equal(blend_of(model)[name].evidence(X), blend_of(fitted)[name].evidence(X), err_msg=name)
    assert (model.transduction_ == y).mean() > 0.7


@pytest.mark.slow
def test_on_noise_experts_stay_right_by_chance_after_another_draw():
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(100, 20)), rng.permutation(np.repeat([0, 1], 50))
        first, other = (np.where((np.arange(100) >= start) & (np.arange(100) < start + 50), y, -1) for start in (0, 50))
        scores = BlendedClassifier(random_state=0).fit(X, first).relabel(other).expert_scores_
        found.append([one["accuracy"] for one in scores.values()])
    assert (np.mean(found, axis=0) < 0.5 + 3 * 0.5 / np.sqrt(10 * 50)).all()


@pytest.mark.slow
def test_the_model_of_all_labels_knows_the_new_ones(clouds):
    X, y, few = clouds
    free = np.flatnonzero(few == -1)[:6]
    other = with_labels(few, free, y[free])
    relabelled, fitted = BlendedClassifier(random_state=0).fit(X, few).relabel(other), BlendedClassifier(random_state=0)
    fitted.fit(X, other)
    for name in ROW_EXPERTS:
        assert_array_equal(blend_of(relabelled)[name].evidence(X), blend_of(fitted)[name].evidence(X), err_msg=name)


# Honesty ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_evidence_of_a_new_row_does_not_know_its_label(clouds):
    X, _, few = clouds
    row = np.flatnonzero(few == -1)[3]
    model = BlendedClassifier(random_state=0).fit(X, few)
    straight, *others = (evidence_in_tests(model.relabel(with_labels(few, row, code)), row) for code in range(3))
    for other in others:
        for name in ROW_EXPERTS:
            assert_array_equal(other[name], straight[name], err_msg=name)
            assert np.abs(straight[name]).max() > 0


def accuracy_on_noise(seed, n_new):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 20)), rng.permutation(np.repeat([0, 1], 30))
    first, more = (np.where(np.arange(60) < stop, y, -1) for stop in (50, 50 + n_new))
    scores = BlendedClassifier(random_state=0).fit(X, first).relabel(more).expert_scores_
    return [scores[name]["accuracy"] for name in ROW_EXPERTS]


@pytest.mark.slow
def test_on_noise_row_experts_stay_right_by_chance_when_labels_are_added():
    found = np.mean([accuracy_on_noise(seed, 5) for seed in range(10)], axis=0)
    assert (found < 0.5 + 3 * 0.5 / np.sqrt(10 * 55)).all()


# The way there ----------------------------------------------------------------------------------------------------


def test_labels_in_between_do_not_matter(clouds):
    X, y, few = clouds
    free = np.flatnonzero(few == -1)
    other = with_labels(few, free[:4], y[free[:4]])
    straight = BlendedClassifier(random_state=0).fit(X, few).relabel(other)
    winding = BlendedClassifier(random_state=0).fit(X, few)
    winding.relabel(with_labels(few, free[:90], y[free[:90]])).relabel(with_labels(few, free[5:9], y[free[5:9]]))
    assert_array_equal(winding.relabel(other).scores_, straight.scores_)
    assert float(winding.estimated_accuracy_) == float(straight.estimated_accuracy_)


@pytest.mark.slow
def test_a_label_more_than_are_left_out_in_folds_is_learned_anew(clouds, monkeypatch):
    """One division instead of two: the evidence of the fit has another shape."""
    monkeypatch.setattr("greenlabel.blend.weights.MAX_TESTED", 60)
    X, y, few = clouds
    free = np.flatnonzero(few == -1)[:3]
    model = BlendedClassifier(random_state=0).fit(X, few)
    model.relabel(with_labels(few, free, y[free]))
    assert blend_of(model)["trees"].out_of_fold.shape == (1, 63, 3)
    assert (model.transduction_ == y).mean() > 0.7


def test_a_model_for_new_rows_does_not_keep_the_labels_of_the_fit(clouds):
    X, y, few = clouds
    free = np.flatnonzero(few == -1)[:3]
    model = BlendedClassifier(random_state=0).fit(X, few).relabel(with_labels(few, free, y[free]))
    slim = model.for_prediction()
    assert not any("_first" in vars(expert) for expert in slim.fitted_.predictor.experts)
    assert_array_equal(slim.predict_proba(X), model.predict_proba(X))


def test_a_label_of_three_may_be_corrected():
    """One tested row is left, which has no others to weigh the experts by."""
    X = np.arange(12.0).reshape(6, 2) ** 1.1
    model = BlendedClassifier(random_state=0).fit(X, [0, 0, 1, -1, -1, -1]).relabel([0, 1, 1, -1, -1, -1])
    assert np.isfinite(model.label_distributions_).all()
    assert_array_equal(model.transduction_[:3], [0, 1, 1])
