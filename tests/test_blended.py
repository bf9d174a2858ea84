"""The blend: experts that never see what they are tested on, weights that follow the data, shares, and its promises."""

import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC

from greenlabel import AnchoredGreenClassifier, BlendedClassifier, GreenClassifier, HarmonicClassifier, leave_one_out
from greenlabel.blend.experts import importance_factor, usual_experts
from greenlabel.blend.row_experts import INTERCEPT, RIDGE, KernelRidge, some_of_each
from greenlabel.blend.task import Task, learn_all
from greenlabel.datasets import digits, keep_labels, two_rings
from greenlabel.errors import ParameterError
from greenlabel.labels.encoding import Labels
from greenlabel.metrics import unlabelled_accuracy
from helpers import reference

NAMES = {"graph", "weighted graph", "trees", "logistic", "rbf kernel", "laplace kernel"}


def accuracy(model, y, few):
    return unlabelled_accuracy(y, model.transduction_, few != -1)


# Experts ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_expert_sees_the_label_it_is_tested_on(blobs):
    """Another label on a row changes nothing in the evidence that the row has out-of-fold."""
    X, y = blobs
    rows = np.flatnonzero(np.arange(60) % 20 < 5)
    fold = np.stack([np.arange(15) % 5, np.arange(15)[::-1] % 5])
    experts = usual_experts(X, 0)
    assert {expert.name for expert in experts} == NAMES

    def out_of_fold(codes):
        learned = learn_all(experts, Task(X, Labels(60, np.arange(3), rows, codes), fold))
        return {expert.name: expert.out_of_fold for expert in learned}

    straight = out_of_fold(y[rows])
    for index in (0, 7, 14):
        other = y[rows].copy()
        other[index] = (other[index] + 1) % 3
        changed = out_of_fold(other)
        for name in NAMES:
            assert_allclose(changed[name][:, index], straight[name][:, index], rtol=1e-9, atol=1e-9, err_msg=name)
            assert not np.allclose(changed[name], straight[name]), name


@pytest.mark.parametrize("absolute", [True, False])
def test_kernel_ridge_equals_the_dense_formula(absolute, rng):
    P, X, codes = rng.normal(size=(20, 3)), rng.normal(size=(7, 3)), rng.integers(0, 4, 20)
    codes[:4] = range(4)
    found = KernelRidge(absolute=absolute, seed=0).fit(P, codes).scores(X)
    assert_allclose(found, reference.kernel_ridge(X, P, codes, absolute, INTERCEPT, RIDGE), rtol=1e-9)


@pytest.mark.parametrize("absolute", [True, False])
def test_kernels_of_many_rows_equal_those_of_few(absolute, rng):
    P, X = rng.normal(size=(300, 8)).astype(np.float32), rng.normal(size=(4000, 8)).astype(np.float32)
    model = KernelRidge(absolute=absolute, seed=0).fit(P, np.arange(300) % 2)
    assert_allclose(model.scores(X)[:50], model.scores(X[:50]), atol=1e-3)


def test_a_sample_of_labels_takes_the_same_number_of_each_class(rng):
    codes = np.repeat([0, 1, 2], [1000, 500, 20])
    chosen = some_of_each(codes, 200, rng)
    assert_array_equal(np.bincount(codes[chosen]), [90, 90, 20])
    assert len(np.unique(chosen)) == 200


def test_importances_become_factors_of_mean_square_one():
    assert_allclose(importance_factor(np.array([0.1, 0.3, 0.0])), np.sqrt([0.75, 2.25, 0]))
    assert_array_equal(importance_factor(np.zeros(3)), np.ones(3))


@pytest.mark.slow
def test_beyond_a_number_of_rows_the_graph_is_anchored(monkeypatch, blobs, few):
    monkeypatch.setattr("greenlabel.blend.experts.ANCHORED_ROWS", 50)
    model = BlendedClassifier(random_state=0).fit(*blobs[:1], few)
    assert isinstance(model.experts_["graph"], AnchoredGreenClassifier)
    assert accuracy(model, blobs[1], few) > 0.8
    refined = BlendedClassifier(class_shares="balanced", refine=True, random_state=0).fit(blobs[0], few)
    assert refined.refined_
    assert_array_equal(refined.predict(blobs[0])[few == -1], refined.transduction_[few == -1])


def test_beyond_a_number_of_values_there_is_no_weighted_graph(monkeypatch, blobs, few):
    monkeypatch.setattr("greenlabel.blend.experts.WEIGHTED_VALUES", 100)
    assert set(BlendedClassifier(random_state=0).fit(blobs[0], few).weights_) == NAMES - {"weighted graph"}


# Weights ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_graph_leads_where_it_is_the_better_model():
    X, y = two_rings(random_state=0)
    few = keep_labels(y, 10, random_state=0)
    model = BlendedClassifier(random_state=0).fit(X, few)
    assert model.weights_["graph"] > model.weights_["logistic"] + model.weights_["trees"]
    assert accuracy(model, y, few) > 0.99


@pytest.mark.slow
def test_the_graph_does_not_lead_where_it_knows_nothing():
    X, y = make_classification(600, 60, n_informative=2, n_redundant=0, class_sep=2, shuffle=False, random_state=3)
    X[:, 10:] *= 5  # loud columns that mean nothing
    few = keep_labels(y, 30, random_state=0)
    model = BlendedClassifier(random_state=0).fit(X, few)
    assert model.weights_["graph"] < 0.05
    assert accuracy(model, y, few) > accuracy(GreenClassifier().fit(X, few), y, few) + 0.1


@pytest.mark.slow
def test_columns_of_different_units_are_put_on_one_scale(blobs, few):
    X, y = blobs
    wider = np.column_stack([X, 1e4 * np.random.default_rng(0).normal(size=60)])
    model = BlendedClassifier(random_state=0).fit(wider, few)
    assert accuracy(model, y, few) > 0.8
    twin = BlendedClassifier(random_state=0).fit(wider * [1, 1, 0.1], few)
    assert_allclose(twin.label_distributions_, model.label_distributions_, atol=0.02)


@pytest.mark.slow
def test_digits(all_trees):
    X, y = digits()
    right, inside, errors = [], [], []
    for seed in range(3):
        few = keep_labels(y, 10, random_state=seed)
        model = BlendedClassifier(random_state=seed).fit(X, few)
        right.append(accuracy(model, y, few))
        inside.append(model.estimated_accuracy_.low <= right[-1] <= model.estimated_accuracy_.high)
        errors.append(model.label_distributions_[few == -1].max(axis=1).mean() - right[-1])
    assert np.mean(right) > 0.95
    assert np.mean(inside) > 0.5
    assert np.abs(np.mean(errors)) < 0.05


@pytest.mark.slow
def test_where_a_graph_is_a_poor_model_the_blend_is_none(mobile, all_trees):
    X, y = mobile
    few = keep_labels(y, 10, random_state=0)
    assert accuracy(BlendedClassifier(random_state=0).fit(X, few), y, few) > 0.86


# What it shows ----------------------------------------------------------------------------------------------------


def test_the_table_names_every_expert_and_the_blend(blobs, few):
    model = BlendedClassifier(random_state=0).fit(blobs[0], few)
    assert set(model.weights_) == set(model.experts_) == NAMES
    assert sum(model.weights_.values()) == pytest.approx(1)
    assert set(model.expert_scores_) == NAMES | {"blend"}
    for row in model.expert_scores_.values():
        assert set(row) == {"accuracy", "log_loss", "weight"}
        assert 0 <= row["accuracy"] <= 1
        assert row["log_loss"] > 0
    found = leave_one_out(model)
    assert found.shape == (12, 3)
    assert model.expert_scores_["blend"]["accuracy"] > 0.5


def test_the_estimate_is_a_number_with_an_interval(blobs, few):
    model = BlendedClassifier(random_state=0).fit(blobs[0], few)
    stated = model.estimated_accuracy_
    assert isinstance(stated, float)
    assert 0 <= stated.low < stated < stated.high <= 1
    again = pickle.loads(pickle.dumps(stated))
    assert (float(again), again.low, again.high) == (float(stated), stated.low, stated.high)
    assert re.fullmatch(r"0\.\d{3} \(0\.\d{3} to \d\.\d{3}\)", repr(stated))


def test_one_label_per_class_has_the_documented_weights(blobs):
    X, y = blobs
    few = np.where(np.arange(60) % 20 == 0, y, -1)
    model = BlendedClassifier(random_state=0).fit(X, few)
    assert model.weights_["graph"] == pytest.approx(4 / 9)
    assert model.weights_["trees"] == pytest.approx(1 / 9)
    assert np.isnan(model.expert_scores_["blend"]["accuracy"])
    assert (model.estimated_accuracy_.low, model.estimated_accuracy_.high) == (0, 1)
    assert accuracy(model, y, few) > 0.8
    assert_array_equal(leave_one_out(model), np.zeros((3, 3)))


@pytest.mark.slow
@pytest.mark.parametrize("per_class", [2, 3])
def test_few_labels_per_class_work(per_class, blobs):
    X, y = blobs
    few = np.where(np.arange(60) % 20 < per_class, y, -1)
    assert accuracy(BlendedClassifier(random_state=0).fit(X, few), y, few) > 0.8


def test_a_class_of_one_label_among_larger_ones_works(blobs, few):
    only = np.where((few == 2) & (np.arange(60) != 40), -1, few)
    model = BlendedClassifier(random_state=0).fit(blobs[0], only)
    assert accuracy(model, blobs[1], only) > 0.7
    assert np.isfinite(model.label_distributions_).all()


def test_many_labels_are_left_out_once(monkeypatch, clouds):
    monkeypatch.setattr("greenlabel.blend.weights.MAX_TESTED", 50)
    monkeypatch.setattr("greenlabel.blend.row_experts.KERNEL_ROWS", 40)
    X, y = clouds
    model = BlendedClassifier(random_state=0).fit(X, np.where(np.arange(200) < 150, y, -1))
    folds = model.fitted_.folds
    assert folds.shape == (1, 150)
    assert 20 < (folds >= 0).sum() < 80
    assert (model.transduction_ == y)[150:].mean() > 0.3


def test_unreached_rows_are_predicted_by_other_experts(islands):
    X = islands[0]
    few = np.full(90, -1)
    few[[0, 1, 2, 30, 31, 32]] = [0, 0, 0, 1, 1, 1]  # the third island has no label and lies beyond the second
    model = BlendedClassifier(random_state=0).fit(X, few)
    assert_array_equal(model.reached_, np.arange(90) < 60)
    assert (model.transduction_[60:] == 1).all()
    assert (model.predict(X[60:]) == 1).all()


# Shares -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("refine", [True, False])
@pytest.mark.parametrize(
    ("shares", "low", "high"),
    [
        ("balanced", [1 / 3] * 3, [1 / 3] * 3),
        ([0.5, 0.25, 0.25], [0.5, 0.25, 0.25], [0.5, 0.25, 0.25]),
        ({0: (0.1, 0.25)}, [0.1, 0, 0], [0.25, 1, 1]),
    ],
)
def test_predictions_have_the_wanted_shares(refine, shares, low, high, blobs, few):
    model = BlendedClassifier(class_shares=shares, refine=refine, random_state=0).fit(blobs[0], few)
    assert model.refined_ is refine
    assert_allclose(model.class_shares_, np.bincount(model.transduction_) / 60)
    assert (model.class_shares_ >= np.array(low) - 0.03).all()
    assert (model.class_shares_ <= np.array(high) + 0.03).all()


@pytest.mark.slow
def test_true_shares_make_digits_more_accurate():
    X, y = digits()
    few = keep_labels(y, 1, random_state=0)
    plain = BlendedClassifier(random_state=0).fit(X, few)
    known = BlendedClassifier(class_shares=np.bincount(y) / len(y), random_state=0).fit(X, few)
    assert known.refined_
    assert accuracy(known, y, few) > accuracy(plain, y, few)
    assert (known.predict(X) == known.transduction_).mean() > 0.97


def test_relabel_takes_shares_that_follow_the_labels(blobs, few):
    model = BlendedClassifier(class_shares="labels", random_state=0).fit(blobs[0], few)
    model.relabel(np.where(few == 2, -1, few))
    assert_allclose(model.class_shares_, 0.5, atol=0.03)


def test_shares_of_other_classes_are_refused_by_relabel(blobs, few):
    model = BlendedClassifier(class_shares=[0.3, 0.3, 0.4], random_state=0).fit(blobs[0], few)
    with pytest.raises(ParameterError, match="3 entries, y has 2 classes"):
        model.relabel(np.where(few == 2, -1, few))
    assert model.scores_.shape == (60, 3)


# Experts of one's own ---------------------------------------------------------------------------------------------


def test_experts_of_ones_own_are_asked(blobs, few):
    experts = [("spread", HarmonicClassifier(5)), ("line", LogisticRegression()), ("blind", DummyClassifier())]
    model = BlendedClassifier(experts, random_state=0).fit(blobs[0], few)
    assert list(model.weights_) == ["spread", "line", "blind"]
    assert model.expert_scores_["blind"]["accuracy"] < model.expert_scores_["blend"]["accuracy"]
    assert isinstance(model.experts_["line"], LogisticRegression)
    assert not hasattr(experts[1][1], "coef_")  # the user's own is not fitted
    assert accuracy(model, blobs[1], few) > 0.8


def test_experts_without_a_graph_work(blobs, few):
    model = BlendedClassifier([("bayes", GaussianNB())], random_state=0).fit(blobs[0], few)
    assert model.weights_ == {"bayes": 1.0}
    assert model.n_components_ == 1
    assert np.isnan(model.mu_)
    assert model.reached_.all()
    assert_array_equal(model.predict(blobs[0]), model.transduction_)


@pytest.mark.parametrize(
    ("experts", "pattern"),
    [
        ("best", "experts='best' is unknown; give 'auto' or a list"),
        (None, "experts=None is unknown; give"),
        ([], "experts is empty; give"),
        ([GaussianNB()], "GaussianNB(), which is no pair of a name and an estimator; give"),
        ([("svm", LinearSVC())], "expert 'svm' (LinearSVC()) has no predict_proba; give"),
        ([("svm", SVC())], "has no predict_proba; give"),
        ([("bayes", GaussianNB)], "has no predict_proba; give"),
        ([("a", GaussianNB()), ("a", GaussianNB())], "named ['a', 'a']; give each a name of its own"),
        ([("blend", GaussianNB())], "other than 'blend'"),
        ([("b", BlendedClassifier())], "expert 'b' is a blend or has a graph of its own; give"),
        ([("g", GreenClassifier(graph="precomputed"))], "expert 'g' is a blend or has a graph of its own; give"),
    ],
)
def test_experts_that_cannot_predict_are_refused(experts, pattern, blobs, few):
    with pytest.raises(ParameterError, match=re.escape(pattern)):
        BlendedClassifier(experts).fit(blobs[0], few)


@pytest.mark.parametrize("refine", ["maybe", None, 1])
def test_a_refine_that_is_no_choice_is_refused(refine, blobs, few):
    with pytest.raises(ParameterError, match=re.escape(f"refine={refine!r} is unknown; choose one of 'auto', True")):
        BlendedClassifier(refine=refine).fit(blobs[0], few)
