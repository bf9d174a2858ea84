"""The blend's graphs: what they may know when they are tested, which mu they have, and what they cost."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons
from threadpoolctl import threadpool_limits

from greenlabel import AnchoredGreenClassifier, BlendedClassifier, GreenClassifier
from greenlabel.blend import divide
from greenlabel.datasets import keep_labels
from greenlabel.experts import Task, learn_all, usual_experts
from greenlabel.labels import Labels
from greenlabel.neighbors import ClusterSearch

MODELS = {"estimators": GreenClassifier, "anchored": AnchoredGreenClassifier}


@pytest.fixture
def noisy():
    """Overlapping classes with many labels: a mu above the usual one is better."""
    X, y = make_moons(240, noise=0.35, random_state=1)
    return X, keep_labels(y, 90, random_state=0)


# mu ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [200_000, 100], ids=["knn", "anchored"])
def test_mu_of_the_blend_is_the_one_that_its_graph_chose(most, noisy, monkeypatch):
    monkeypatch.setattr("greenlabel.experts.ANCHORED_ROWS", most)
    X, few = noisy
    model = BlendedClassifier(random_state=0).fit(X, few)
    chosen = model.mu_
    assert chosen == model.experts_["graph"].mu_
    model.relabel(keep_labels(few, 5, random_state=0))  # too few labels to choose by
    assert model.mu_ == model.experts_["graph"].mu_
    assert chosen == pytest.approx(10 * model.mu_)


@pytest.mark.parametrize(("most", "module"), [(200_000, "estimators"), (100, "anchored")], ids=["knn", "anchored"])
def test_refinement_has_the_mu_of_the_given_labels(most, module, noisy, monkeypatch):
    """Decisions on all rows are no labels: they choose nothing."""
    monkeypatch.setattr("greenlabel.experts.ANCHORED_ROWS", most)
    monkeypatch.setattr(f"greenlabel.{module}.choose", lambda values, codes, _: values[-1 if len(codes) > 30 else 0])
    X, few = noisy
    few = keep_labels(few, 12, random_state=0)
    model = BlendedClassifier(class_shares="balanced", refine=True, random_state=0).fit(X, few)
    assert model._refined.mu_ == model.mu_ == MODELS[module](random_state=0).fit(X, few).mu_
    assert len(model._refined._labels.codes) == 240


# What a graph is tested with --------------------------------------------------------------------------------------


def held_out_accuracy(seed, leak=False):
    """Of the weighted graph, on labels that have nothing to do with any of many columns."""
    rng = np.random.default_rng(seed)
    X, codes = rng.normal(size=(60, 100)).astype(np.float32), rng.permutation(np.repeat([0, 1], 20))
    rows = np.sort(rng.choice(60, 40, replace=False))
    task = Task(X, Labels(60, np.arange(2), rows, codes), divide(codes, rng))
    experts = {expert.name: expert for expert in usual_experts(X, seed)}
    trees = experts["trees"].learn(task, {})
    if leak:
        trees.importances = [trees.model.feature_importances_] * len(trees.importances)
    learned = experts["weighted graph"].learn(task, {"trees": trees})
    return (learned.held_out[0].argmax(axis=1) == codes).mean()


def test_on_noise_the_weighted_graph_is_right_by_chance_only():
    """The importances know labels. Had they known those of a fold, its rows would be recognised in noise."""
    honest = [held_out_accuracy(seed) for seed in range(10)]
    assert np.mean(honest) < 0.5 + 3 * 0.5 / np.sqrt(10 * 40)
    told = [held_out_accuracy(seed, leak=True) for seed in range(10)]
    assert np.mean(told) > np.mean(honest) + 0.1


def test_all_labels_of_a_fold_are_unknown_to_its_weighted_graph():
    """Also where many labels choose a mu: others in the fold of a row change nothing in its evidence."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 6)) + y[:, None] * [2, 1, 0, 0, 0, 0]
    rows = np.arange(120)
    fold = rows[None] % 5

    def held_out(codes):
        learned = learn_all(usual_experts(X, 0)[:3], Task(X, Labels(300, np.arange(3), rows, codes), fold))
        assert learned[2].name == "weighted graph"
        return learned[2].held_out[0]

    straight = held_out(y[rows])
    other = np.where(fold[0] == 2, (y[rows] + 1) % 3, y[rows])
    changed = held_out(other)
    assert_array_equal(changed[fold[0] == 2], straight[fold[0] == 2])
    assert (changed[fold[0] != 2] != straight[fold[0] != 2]).any()


# Cost -------------------------------------------------------------------------------------------------------------


def test_the_weighted_graph_is_a_green_function_of_the_usual_mu(blobs, few):
    model = BlendedClassifier(random_state=0).fit(blobs[0], few)
    found, factor = model.experts_["weighted graph"], model._experts[2]._factor
    expected = GreenClassifier(10, mu=0.01 / 60).fit(model._X * factor, few)
    assert found.mu_ == pytest.approx(0.01 / 60)
    assert_allclose(found.scores_, expected.scores_, atol=1e-6 * np.abs(expected.scores_).max())


def test_weighted_graphs_have_one_operator_each_and_approximate_neighbours(monkeypatch, clouds):
    monkeypatch.setattr("greenlabel.estimators.QUICK_OPERATIONS", 0)
    X, y = clouds
    model = BlendedClassifier(random_state=0).fit(X, keep_labels(y, 15, random_state=0))
    plain, weighted = model.experts_["graph"], model.experts_["weighted graph"]
    assert len(plain._operators[10]) == 3
    assert len(weighted._operators[10]) == 1
    assert not isinstance(plain._search, ClusterSearch)
    assert isinstance(weighted._search, ClusterSearch)
    assert (model.predict(X) == model.transduction_).mean() > 0.9


def test_scores_of_a_fold_are_rough_and_those_of_all_labels_are_not(monkeypatch, blobs, few):
    tolerances = []
    solve = GreenClassifier._spread

    def seen(model):
        tolerances.append(model._tolerance)
        solve(model)

    monkeypatch.setattr(GreenClassifier, "_spread", seen)
    BlendedClassifier(random_state=0).fit(blobs[0], few)
    assert sorted(tolerances) == [1e-13, 1e-8, *[1e-3] * 5]


@pytest.mark.parametrize("shares", [None, "balanced"])
def test_few_rows_are_answered_the_same_to_the_bit_on_any_number_of_threads(shares):
    """They have a dense factor, which threads would round otherwise."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 700)
    X, few = rng.normal(size=(700, 5)) + y[:, None], np.where(np.arange(700) < 60, y, -1)
    answers = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            model = BlendedClassifier(class_shares=shares, random_state=0).fit(X, few)
        answers.append((model.scores_, list(model.weights_.values()), float(model.estimated_accuracy_)))
    for one, two in zip(*answers, strict=True):
        assert_array_equal(one, two)
