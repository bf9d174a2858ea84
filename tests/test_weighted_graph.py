"""The blend's graphs: what they may know when they are tested, which mu they have, and what they cost."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax
from threadpoolctl import threadpool_limits

from greenlabel import AnchoredGreenClassifier, BlendedClassifier, GreenClassifier, leave_one_out
from greenlabel._common.parameters import check_seed
from greenlabel.blend.experts import WHOLE, usual_experts
from greenlabel.blend.task import Task, learn_all
from greenlabel.blend.weights import NEW, blend, divide, divide_again, joint_parts
from greenlabel.datasets import keep_labels
from greenlabel.graph.neighbors import ClusterSearch
from greenlabel.labels.encoding import Labels, read_labels
from greenlabel.labels.label_shift import suggested_shares
from greenlabel.propagators.knn import KnnPropagator

SEED = int(check_seed(0).integers(2**31))  # of a blend with random_state=0
MODELS = {"candidates": GreenClassifier, "anchored": AnchoredGreenClassifier}


# mu ---------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("max_rows", "module"), [(200_000, "candidates"), (100, "anchored")], ids=["knn", "anchored"])
def test_mu_of_the_blend_is_the_one_that_its_graph_chose(max_rows, module, noisy, monkeypatch):
    monkeypatch.setattr("greenlabel.blend.experts.ANCHORED_ROWS", max_rows)
    monkeypatch.setattr(  # the largest mu, as soon as labels are many: whether it is better does not matter here
        f"greenlabel.propagators.{module}.choose", lambda values, codes, _: values[-1 if len(codes) > 30 else 0]
    )
    X, few = noisy
    model = BlendedClassifier(random_state=0).fit(X, few)
    chosen = model.mu_
    assert chosen == model.experts_["graph"].mu_
    model.relabel(keep_labels(few, 5, random_state=0))  # too few labels to choose by
    assert model.mu_ == model.experts_["graph"].mu_
    assert chosen == pytest.approx(10 * model.mu_)


@pytest.mark.slow
@pytest.mark.parametrize(("max_rows", "module"), [(200_000, "candidates"), (100, "anchored")], ids=["knn", "anchored"])
def test_refinement_has_the_mu_of_the_given_labels(max_rows, module, noisy, monkeypatch):
    """Decisions on all rows are no labels: they choose nothing."""
    monkeypatch.setattr("greenlabel.blend.experts.ANCHORED_ROWS", max_rows)
    monkeypatch.setattr(
        f"greenlabel.propagators.{module}.choose", lambda values, codes, _: values[-1 if len(codes) > 30 else 0]
    )
    X, few = noisy
    few = keep_labels(few, 12, random_state=0)
    model = BlendedClassifier(class_shares="balanced", refine=True, random_state=0).fit(X, few)
    refined = model.fitted_.predictor.refined
    assert refined.mu_ == model.mu_ == MODELS[module](random_state=0).fit(X, few).mu_
    assert len(refined.fitted_.labels.codes) == 240


# What a graph is tested with --------------------------------------------------------------------------------------


def out_of_fold_accuracy(seed, leak=False):
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
    return (learned.out_of_fold[0].argmax(axis=1) == codes).mean()


@pytest.mark.slow
def test_on_noise_the_weighted_graph_is_right_by_chance_only():
    """The importances know labels. Had they known those of a fold, its rows would be recognised in noise."""
    honest = [out_of_fold_accuracy(seed) for seed in range(10)]
    assert np.mean(honest) < 0.5 + 3 * 0.5 / np.sqrt(10 * 40)
    leaking = [out_of_fold_accuracy(seed, leak=True) for seed in range(10)]
    assert np.mean(leaking) > np.mean(honest) + 0.1


def test_all_labels_of_a_fold_are_unknown_to_its_weighted_graph():
    """Also where many labels choose a mu: others in the fold of a row change nothing in its evidence."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 6)) + y[:, None] * [2, 1, 0, 0, 0, 0]
    rows = np.arange(120)
    fold = rows[None] % 5

    def out_of_fold(codes):
        learned = learn_all(usual_experts(X, 0)[:3], Task(X, Labels(300, np.arange(3), rows, codes), fold))
        assert learned[2].name == "weighted graph"
        return learned[2].out_of_fold[0]

    straight = out_of_fold(y[rows])
    other = np.where(fold[0] == 2, (y[rows] + 1) % 3, y[rows])
    changed = out_of_fold(other)
    assert_array_equal(changed[fold[0] == 2], straight[fold[0] == 2])
    assert (changed[fold[0] != 2] != straight[fold[0] != 2]).any()


# Other labels ------------------------------------------------------------------------------------------------------


def task_of(X, y, before=None):
    """The labels as the blend divides them with this seed; ``before``: in which folds rows were (n,)."""
    labels, rng = read_labels(y, len(X), "test"), np.random.default_rng(SEED)
    coded = Labels(labels.n, np.arange(len(labels.classes)), labels.rows, labels.codes)
    if before is None:
        return Task(X, coded, divide(labels.codes, rng))
    return Task(X, coded, divide_again(labels.codes, before[labels.rows], rng)[:1], is_first=False)


def blend_with_the_importances_of(first, X, other):
    """Scores and out-of-fold scores of a blend that learns ``other`` from the start, but for the feature weights."""
    first_task = task_of(X, first)
    before = np.full(len(X), NEW)
    before[first_task.labels.rows] = first_task.folds[0]
    task, experts = task_of(X, other, before), usual_experts(X, SEED)
    trees = experts[1].learn(first_task, {})
    learned = [expert.learn(task, {"trees": trees}) for expert in experts]
    out = task.folds >= 0
    codes = np.broadcast_to(task.labels.codes, out.shape)[out]
    b = blend(
        np.stack([e.out_of_fold[out] for e in learned]),
        codes,
        np.array([e.trust for e in learned]),
        joint_parts(task.folds),
    )
    F = sum(scale * expert.own_evidence for scale, expert in zip(b.scales, learned, strict=True))
    given = task.labels.shares
    shares = suggested_shares(softmax(b.out_of_fold, axis=1), codes, softmax(F, axis=1).mean(axis=0), given, 1)
    H = np.zeros((*out.shape, len(given)))
    H[out] = b.out_of_fold
    return F + np.log(shares / given), H.sum(axis=0) / np.maximum(out.sum(axis=0), 1)[:, None]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["more", "changed", "fewer", "other classes"])
def test_other_labels_are_learned_anew_but_for_the_weights_of_the_features(kind, noisy_columns):
    X, y = noisy_columns
    few = keep_labels(y, 10, random_state=0)
    other = relabelled(kind, few, y)
    model = BlendedClassifier(random_state=0).fit(X, few)
    model.relabel(keep_labels(y, 20, random_state=5))  # what was there in between does not matter
    scores, out_of_fold = blend_with_the_importances_of(few, model.fitted_.features, other)
    assert_allclose(model.relabel(other).scores_, scores, rtol=1e-10, atol=1e-10)
    assert_allclose(leave_one_out(model), out_of_fold, rtol=1e-10, atol=1e-10)


def relabelled(kind, few, y):
    rng, free, known = np.random.default_rng(3), np.flatnonzero(few == -1), np.flatnonzero(few != -1)
    other = few.copy()
    if kind == "more":
        other[free[:12]] = y[free[:12]]
    elif kind == "changed":
        other[known[:5]] = (few[known[:5]] + 1) % 3
    elif kind == "fewer":
        other[rng.permutation(known)[:15]] = -1
    else:
        other = np.where(few == -1, -1, few % 2)
        other[free[:5]] = 2
    return other


@pytest.fixture
def noisy_columns():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    return (rng.normal(size=(300, 6)) + y[:, None] * [2, 1, 0, 0, 0, 0]), y


def test_relabel_builds_no_graph(noisy_columns, monkeypatch):
    X, y = noisy_columns
    model = BlendedClassifier(random_state=0).fit(X, keep_labels(y, 10, random_state=0))

    def fail(*args, **kwargs):
        raise AssertionError("relabel built something again")

    for name in ("graph_search", "knn_graph", "make_graph"):
        monkeypatch.setattr(f"greenlabel.propagators.knn.{name}", fail)
    monkeypatch.setattr("greenlabel.graph.neighbors.Search.nearest", fail)
    monkeypatch.setattr("scipy.linalg.cho_factor", fail)
    model.relabel(keep_labels(y, 10, random_state=1))
    assert (model.transduction_ == y).mean() > 0.7


def accuracy_on_noise_after_relabel(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, 100)).astype(np.float32), rng.permutation(np.repeat([0, 1], 30))
    first, more = (np.where(np.arange(60) < stop, y, -1) for stop in (40, 46))
    return BlendedClassifier(random_state=0).fit(X, first).relabel(more).expert_scores_["weighted graph"]["accuracy"]


@pytest.mark.slow
def test_on_noise_the_weighted_graph_stays_right_by_chance_when_labels_are_added(monkeypatch):
    """Rows whose labels weighted the features stay in their folds. In others, they would be recognised in noise."""
    honest = [accuracy_on_noise_after_relabel(seed) for seed in range(10)]
    assert np.mean(honest) < 0.5 + 3 * 0.5 / np.sqrt(10 * 46)
    monkeypatch.setattr("greenlabel.blend.fitted.divide_again", lambda codes, before, rng: divide(codes, rng))
    leaking = [accuracy_on_noise_after_relabel(seed) for seed in range(10)]
    assert np.mean(leaking) > np.mean(honest) + 0.1


def test_a_fit_with_one_label_per_class_can_get_more(noisy_columns):
    """It had no folds, so no graph of any fold."""
    X, y = noisy_columns
    model = BlendedClassifier(random_state=0).fit(X, keep_labels(y, 1, random_state=0))
    model.relabel(keep_labels(y, 10, random_state=0))
    assert (model.transduction_ == y).mean() > 0.7
    assert model.estimated_accuracy_.low > 0.5


def test_graphs_of_folds_keep_neither_features_nor_a_second_similarity(noisy_columns):
    X, y = noisy_columns
    model = BlendedClassifier(random_state=0).fit(X, keep_labels(y, 10, random_state=0))
    propagators = [graph.default for graph in weighted_expert(model).graphs.values()]
    assert [made.neighbourhood.search is None for made in propagators] == [False, *[True] * 5]
    assert [made.graph.S.nnz > 0 for made in propagators] == [True, *[False] * 5]
    assert "graphs" not in vars(weighted_expert(model.for_prediction()))


def weighted_expert(model):
    return model.fitted_.predictor.experts[2]


# Cost -------------------------------------------------------------------------------------------------------------


def test_the_weighted_graph_is_a_green_function_of_the_usual_mu(blobs, few):
    model = BlendedClassifier(random_state=0).fit(blobs[0], few)
    found, factor = model.experts_["weighted graph"], weighted_expert(model).factor
    expected = GreenClassifier(10, mu=0.01 / 60).fit(model.fitted_.features * factor, few)
    assert found.mu_ == pytest.approx(0.01 / 60)
    assert_allclose(found.scores_, expected.scores_, atol=1e-6 * np.abs(expected.scores_).max())


def test_weighted_graphs_have_one_operator_each_and_approximate_neighbours(monkeypatch, clouds):
    monkeypatch.setattr("greenlabel.propagators.knn.QUICK_OPERATIONS", 0)
    X, y = clouds
    model = BlendedClassifier(random_state=0).fit(X, keep_labels(y, 15, random_state=0))
    plain, weighted = (model.fitted_.predictor.experts[number] for number in (0, 2))
    assert [len(group) for group in plain.candidates.groups] == [3]
    assert [len(group) for group in weighted.graphs[WHOLE].groups] == [1]
    assert not isinstance(plain.candidates.default.neighbourhood.search, ClusterSearch)
    assert isinstance(weighted.graphs[WHOLE].default.neighbourhood.search, ClusterSearch)
    assert (model.predict(X) == model.transduction_).mean() > 0.9


def test_scores_of_a_fold_are_rough_and_those_of_all_labels_are_not(monkeypatch, blobs, few):
    tolerances = []
    propagate = KnnPropagator.propagate

    def seen(propagator, labels, tolerance):
        tolerances.append(tolerance)
        return propagate(propagator, labels, tolerance)

    monkeypatch.setattr(KnnPropagator, "propagate", seen)
    BlendedClassifier(random_state=0).fit(blobs[0], few)
    assert sorted(tolerances) == [1e-13, 1e-8, *[1e-3] * 5]


@pytest.mark.slow
@pytest.mark.parametrize("shares", [None, "balanced"])
def test_few_rows_are_predicted_the_same_to_the_bit_on_any_number_of_threads(shares):
    """They have a dense factor, which threads would round otherwise."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 700)
    X, few = rng.normal(size=(700, 5)) + y[:, None], np.where(np.arange(700) < 60, y, -1)
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            model = BlendedClassifier(class_shares=shares, random_state=0).fit(X, few)
        found.append((model.scores_, list(model.weights_.values()), float(model.estimated_accuracy_)))
    for one, two in zip(*found, strict=True):
        assert_array_equal(one, two)
