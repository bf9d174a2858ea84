"""The contract: what every estimator promises, run over all of them."""

import importlib
import inspect
import pickle
import pkgutil
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

import greenlabel
from greenlabel import (
    UNLABELED,
    AnchoredGreenClassifier,
    BlendedClassifier,
    ConsistencyClassifier,
    GreenClassifier,
    HarmonicClassifier,
    leave_one_out,
)
from greenlabel.errors import LabelError, ParameterError
from greenlabel.graph import neighbors
from helpers.estimators import ESTIMATORS, GRAPH_ESTIMATORS

SIGNATURES = {
    GreenClassifier: (
        {"n_neighbors": 10},
        {
            "weights": "adaptive",
            "mu": "auto",
            "solver": "auto",
            "graph": "knn",
            "random_state": None,
            "class_offsets": "auto",
        },
    ),
    AnchoredGreenClassifier: (
        {"n_anchors": "auto", "n_neighbors": 5},
        {"mu": "auto", "anchors": "bkhk", "random_state": None, "memory_limit": "auto", "class_offsets": "auto"},
    ),
    ConsistencyClassifier: (
        {"n_neighbors": 10},
        {"weights": "adaptive", "gamma": 1.0, "graph": "knn", "random_state": None, "class_offsets": None},
    ),
    HarmonicClassifier: (
        {"n_neighbors": 10},
        {"weights": "adaptive", "graph": "knn", "random_state": None, "class_offsets": None},
    ),
    BlendedClassifier: (
        {"experts": "auto"},
        {"class_shares": None, "refine": "auto", "random_state": None, "memory_limit": "auto"},
    ),
}
GRAPH_VARIANTS = {
    "green eigen": GreenClassifier(solver="eigen"),
    "green direct": GreenClassifier(solver="direct"),
    "green cg": GreenClassifier(solver="cg"),
    "green gaussian": GreenClassifier(weights="gaussian"),
    "green binary": GreenClassifier(weights="binary", mu=1e-3),
    "green original": GreenClassifier(solver="eigen", mu=0),
    "anchored": AnchoredGreenClassifier(20, 3, random_state=0),
    "anchored kmeans": AnchoredGreenClassifier(20, 3, anchors="kmeans", random_state=0),
    "anchored random": AnchoredGreenClassifier(20, 3, anchors="random", mu=1e-3, random_state=0),
    "consistency": ConsistencyClassifier(),
    "consistency weak": ConsistencyClassifier(gamma=0.01, weights="binary"),
    "harmonic": HarmonicClassifier(),
    "harmonic gaussian": HarmonicClassifier(weights="gaussian"),
}
BLENDS = {
    "blend": BlendedClassifier(random_state=0),
    "blend of shares": BlendedClassifier(class_shares="labels", refine=False, random_state=0),
    "blend refined": BlendedClassifier(class_shares="balanced", refine=True, random_state=0),
    "blend of two": BlendedClassifier([("harmonic", HarmonicClassifier()), ("bayes", GaussianNB())], random_state=0),
}
VARIANTS = GRAPH_VARIANTS | BLENDS
KEEP_WEIGHTED_GRAPHS = [name for name, blend in BLENDS.items() if blend.experts == "auto"]  # see test_weighted_graph.py

HEAVY = ["matplotlib", "typer", "rich", "pandas", "polars", "pyarrow", "skrub", "dask"]


SLOW_VARIANTS = [pytest.param(BLENDS[name], marks=pytest.mark.slow) for name in ("blend of shares", "blend refined")]


@pytest.fixture(
    params=[*GRAPH_VARIANTS.values(), BLENDS["blend"], *SLOW_VARIANTS, BLENDS["blend of two"]], ids=VARIANTS
)
def variant(request):
    return clone(request.param)


@pytest.fixture(params=GRAPH_VARIANTS.values(), ids=GRAPH_VARIANTS)
def graph_variant(request):
    return clone(request.param)


@pytest.fixture
def new_rows():
    return np.random.default_rng(9).uniform(-2, 6, size=(25, 2))


# scikit-learn -----------------------------------------------------------------------------------------------------


def known_exceptions(estimator):
    return {"check_classifiers_classes": "uses -1 as a class; -1 marks a row without a label here"}


@pytest.mark.slow
@parametrize_with_checks([GreenClassifier(), AnchoredGreenClassifier()], expected_failed_checks=known_exceptions)
def test_scikit_learn_is_satisfied(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [ConsistencyClassifier(), HarmonicClassifier(), BlendedClassifier()], expected_failed_checks=known_exceptions
)
def test_scikit_learn_is_satisfied_by_the_others(estimator, check):
    check(estimator)


def test_the_signature_is_the_contract(Model):
    ordered, named = SIGNATURES[Model]
    parameters = inspect.signature(Model).parameters.values()
    assert [(p.name, p.default, p.kind) for p in parameters] == [
        *((name, default, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name, default in ordered.items()),
        *((name, default, inspect.Parameter.KEYWORD_ONLY) for name, default in named.items()),
    ]
    assert Model().get_params() == ordered | named


def test_set_params_and_clone_carry_every_parameter(Model):
    ordered, named = SIGNATURES[Model]
    odd = {name: object() for name in ordered | named} | {"anchors": "x", "mu": "y"}
    odd = {name: value for name, value in odd.items() if name in ordered | named}
    model = Model().set_params(**odd)
    assert model.get_params() == odd
    twin = clone(Model(**{name: str(name) for name in odd}))
    assert twin.get_params() == {name: str(name) for name in odd}


def test_given_anchors_survive_a_clone(blobs, few):
    model = clone(AnchoredGreenClassifier(anchors=blobs[0][:12])).fit(blobs[0], few)
    assert_array_equal(model.anchors_, blobs[0][:12])


def test_fit_returns_the_model_and_sets_what_is_promised(Model, blobs, few):
    model = Model(random_state=0)
    assert model.fit(blobs[0], few) is model
    assert model.relabel(few) is model
    assert model.n_features_in_ == 2
    assert_array_equal(model.classes_, [0, 1, 2])
    assert model.scores_.shape == model.label_distributions_.shape == (60, 3)
    assert model.transduction_.shape == model.reached_.shape == (60,)
    assert model.reached_.dtype == bool
    assert isinstance(model.n_components_, int)
    if "mu" in model.get_params():
        assert isinstance(model.mu_, float)
        assert model.mu_ > 0
    if Model is AnchoredGreenClassifier:
        assert model.anchors_.shape == (60, 2)  # of few rows all are anchors


def test_mu_auto_goes_by_the_mean_degree(blobs, few):
    assert AnchoredGreenClassifier().fit(blobs[0], few).mu_ * 60 == pytest.approx(0.03)
    S = np.ones((60, 60)) - np.eye(60)
    assert GreenClassifier(graph="precomputed").fit(S, few).mu_ * 60 == pytest.approx(0.59)


def test_only_labelled_rows_are_scored(Model, blobs, few):
    X, y = blobs
    model = Model(random_state=0).fit(X, few)
    known = few != -1
    assert model.score(X, few) == (model.predict(X) == y)[known].mean()
    assert model.score(X, y) == (model.predict(X) == y).mean()
    assert model.score(X, few, sample_weight=np.where(y == 0, 1, 0)) == (model.predict(X) == y)[known & (y == 0)].mean()
    with pytest.raises(LabelError, match="no label to score against"):
        model.score(X, np.full(60, -1))
    with pytest.raises(LabelError, match="X has 60 rows, y 3, sample_weight 60"):
        model.score(X, y[:3])
    with pytest.raises(LabelError, match="X has 60 rows, y 60, sample_weight 2"):
        model.score(X, y, sample_weight=[1, 2])


def test_what_kind_of_graph_a_model_was_fitted_on_stays_with_it(KnnModel, blobs, few, similarity):
    S, y = similarity
    given = KnnModel(graph="precomputed").fit(S, y)
    before = given.predict_proba(S)
    assert_array_equal(given.set_params(graph="knn").predict_proba(S), before)
    built = KnnModel().fit(blobs[0] * 1e12, few)
    before = built.predict_proba(blobs[0] * 1e12)
    assert_array_equal(built.set_params(graph="precomputed").predict_proba(blobs[0] * 1e12), before)


def test_a_grid_search_over_half_labelled_data_tells_settings_apart(blobs, few):
    X, _ = blobs
    search = GridSearchCV(GreenClassifier(), {"n_neighbors": [5, 40]}, cv=2).fit(X, few)
    assert (search.cv_results_["mean_test_score"] > 0.5).any()


def test_leave_one_out_of_a_pipeline_names_its_last_step(blobs, few):
    pipeline = make_pipeline(StandardScaler(), GreenClassifier()).fit(blobs[0], few)
    with pytest.raises(ParameterError, match=r"got Pipeline; .*pipeline\[-1\]"):
        leave_one_out(pipeline)
    assert leave_one_out(pipeline[-1]).shape == (12, 3)


def test_a_given_mu_is_the_mu_that_is_used(blobs, few):
    assert GreenClassifier(mu=0.25).fit(blobs[0], few).mu_ == 0.25
    assert AnchoredGreenClassifier(mu=0.25).fit(blobs[0], few).mu_ == 0.25


def test_a_pickle_predicts_as_the_model(variant, blobs, few, new_rows):
    model = variant.fit(blobs[0], few)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(new_rows), model.predict_proba(new_rows))
    assert_array_equal(again.scores_, model.scores_)
    assert_array_equal(again.relabel(blobs[1]).scores_, model.relabel(blobs[1]).scores_)


@pytest.mark.slow
def test_a_pipeline_predicts_as_its_steps(Model, blobs, few, new_rows):
    scaler = StandardScaler().fit(blobs[0])
    pipeline = make_pipeline(StandardScaler(), Model(random_state=0)).fit(blobs[0], few)
    model = Model(random_state=0).fit(scaler.transform(blobs[0]), few)
    assert_array_equal(pipeline.predict_proba(new_rows), model.predict_proba(scaler.transform(new_rows)))


@pytest.mark.slow
def test_a_grid_search_over_neighbours_finds_the_best(GraphModel, blobs):
    X, y = blobs
    search = GridSearchCV(GraphModel(random_state=0), {"n_neighbors": [2, 4]}, cv=3, error_score="raise").fit(X, y)
    assert search.best_params_["n_neighbors"] in (2, 4)
    assert search.best_score_ > 0.8
    assert_array_equal(search.predict(X), search.best_estimator_.predict(X))


def test_cross_validation_cuts_a_precomputed_graph_in_both_directions(KnnModel, blobs):
    X, y = blobs
    S = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    assert cross_val_score(KnnModel(graph="precomputed"), S, y, cv=3, error_score="raise").mean() > 0.8


def test_what_a_model_learned_does_not_change_with_its_parameters_before_the_next_fit(Model, blobs, few, new_rows):
    model = Model(random_state=0).fit(blobs[0], few)
    before = model.decision_function(new_rows)
    other = {"n_neighbors": 1, "weights": "binary", "mu": 5.0, "gamma": 50.0, "graph": "precomputed"}
    model.set_params(**{name: value for name, value in other.items() if name in model.get_params()})
    assert_array_equal(model.decision_function(new_rows), before)


# relabel ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in KEEP_WEIGHTED_GRAPHS])
def test_relabel_equals_refit(name, blobs, few, new_rows):
    X, y = blobs
    other = np.where(np.arange(60) % 3 == 0, y, -1)
    relabelled = clone(VARIANTS[name]).fit(X, few)
    assert_array_equal(relabelled.transduction_.shape, (60,))  # what was computed for the old labels must not stay
    assert relabelled.label_distributions_.shape == (60, 3)
    assert_same_predictions(relabelled.relabel(other), clone(VARIANTS[name]).fit(X, other), new_rows)


@pytest.mark.slow
def test_relabel_with_the_labels_of_the_fit_equals_the_fit(variant, blobs, few, new_rows):
    """Whatever labels there were in between."""
    X, y = blobs
    relabelled = clone(variant).fit(X, few)
    relabelled.relabel(np.where(np.arange(60) % 3 == 0, y, -1)).relabel(np.where(y == 2, -1, y))
    assert_same_predictions(relabelled.relabel(few), variant.fit(X, few), new_rows)


def assert_same_predictions(found, expected, new_rows):
    assert_array_equal(found.scores_, expected.scores_)
    assert_array_equal(found.label_distributions_, expected.label_distributions_)
    assert_array_equal(found.transduction_, expected.transduction_)
    assert_array_equal(found.predict_proba(new_rows), expected.predict_proba(new_rows))


def test_relabel_takes_other_classes(Model, blobs, few):
    model = Model(random_state=0).fit(blobs[0], few)
    model.relabel(np.where(np.arange(60) % 20 < 4, np.where(blobs[1] == 0, "no", "yes"), ""))
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.scores_.shape == (60, 2)
    assert set(model.transduction_) == {"no", "yes"}
    assert set(model.predict(blobs[0])) <= {"no", "yes"}


def test_relabel_touches_no_feature(graph_variant, monkeypatch, blobs, few):
    """Neither the search nor the graph nor a factor is made again."""
    model = graph_variant.fit(blobs[0], few)
    operator = model.operator_

    def fail(*args, **kwargs):
        raise AssertionError("relabel built something again")

    for name in ("nearest", "nearest_to_own"):
        monkeypatch.setattr(f"greenlabel.graph.neighbors.Search.{name}", fail)
    for name in ("knn.graph_search", "knn.knn_graph", "knn.make_graph", "anchored_graph.anchor_search"):
        monkeypatch.setattr(f"greenlabel.propagators.{name}", fail)
    monkeypatch.setattr(type(model), "_fit_graph", fail)
    monkeypatch.setattr("scipy.linalg.cho_factor", fail)
    monkeypatch.setattr("scipy.linalg.eigh", fail)
    model.relabel(blobs[1])
    assert np.isfinite(model.label_distributions_).all()
    assert model.relabel(few).operator_ is operator  # of several mu where that one is chosen


# Scores, classes, probabilities -----------------------------------------------------------------------------------


def test_decision_function_has_a_column_per_class_beyond_two(variant, blobs, few, new_rows):
    model = variant.fit(blobs[0], few)
    F = model.decision_function(new_rows)
    assert F.shape == (25, 3)
    assert_array_equal(model.classes_[F.argmax(axis=1)], model.predict(new_rows))


def test_decision_function_is_positive_for_the_second_of_two_classes(variant, blobs, few, new_rows):
    two = np.where(few == 2, np.arange(60) % 2, few)  # the third cloud is half and half
    model = variant.fit(blobs[0], two)
    assert model.reached_.all()
    F = model.decision_function(new_rows)
    assert F.shape == (25,)
    assert_array_equal(F > 0, model.predict(new_rows) == 1)
    assert {True, False} == set(F > 0)


def test_the_most_probable_class_is_the_predicted_one(variant, blobs, few, new_rows):
    model = variant.fit(blobs[0], few)
    assert model.reached_.all()
    assert_array_equal(model.classes_[model.predict_proba(new_rows).argmax(axis=1)], model.predict(new_rows))
    assert_array_equal(model.classes_[model.label_distributions_.argmax(axis=1)], model.transduction_)


def test_the_transduction_is_the_class_of_the_highest_score(variant, blobs, few):
    model = variant.fit(blobs[0], few)
    assert_array_equal(model.transduction_, model.classes_[model.scores_.argmax(axis=1)])


def rises_with(p, F):
    """Sorted by score, the probabilities of each row do not fall."""
    sorted_p = np.take_along_axis(p, np.argsort(F, axis=1, kind="stable"), axis=1)
    return (np.diff(sorted_p, axis=1) >= -1e-15).all()


def test_probabilities_rise_with_scores(variant, blobs, few, new_rows):
    model = variant.fit(blobs[0], few)
    assert rises_with(model.label_distributions_, model.scores_)
    assert rises_with(model.predict_proba(new_rows), model.decision_function(new_rows))


def test_new_rows_have_the_scale_of_the_scores(Model, blobs, few):
    """A row beside an unlabelled row of the graph has about its score."""
    X = blobs[0]
    model = Model(random_state=0).fit(X, few)
    free = few == -1
    gap = np.abs(model.decision_function(X[free] + 1e-9) - model.scores_[free])
    assert np.median(gap) < 0.25 * np.abs(model.scores_[free]).max()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["bkhk", "kmeans", "random", "given"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "uint8"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_anchored_prediction_of_unlabelled_training_rows_is_their_transduction(how, dtype, kind):
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, size=300)
    X = (rng.normal(scale=15, size=(300, 40)) + 60 + 20 * y[:, None] * (np.arange(40) < 5)).clip(0, 255).astype(dtype)
    few = np.where(rng.uniform(size=300) < 0.1, y, -1)
    anchors = X[::10] if how == "given" else how
    X = kind(X)
    model = AnchoredGreenClassifier(30, 4, anchors=anchors, random_state=0).fit(X, few)
    free = np.flatnonzero(few == -1)
    F = model.decision_function(X[free])
    assert_array_equal(model.predict(X[free]), model.transduction_[free])
    assert_allclose(F, model.scores_[free], rtol=1e-6, atol=1e-6 * np.abs(F).max())
    assert_allclose(model.predict_proba(X[free]), model.label_distributions_[free], atol=1e-6)


@pytest.mark.slow
def test_a_row_is_predicted_alike_alone_and_among_others(variant, blobs, few, new_rows):
    model = variant.fit(blobs[0], few)
    together = model.decision_function(new_rows)
    alone = np.concatenate([model.decision_function(row[None]) for row in new_rows])
    assert_allclose(alone, together, rtol=1e-9, atol=1e-12)


def test_small_data_with_uneven_labels_is_labelled_by_default(Model, blobs):
    """Three clouds, two classes, twice as many labels in one: every class has labels."""
    X, y = blobs[0], np.minimum(blobs[1], 1)
    few = np.where(np.arange(60) % 20 < 4, y, -1)
    model = Model(random_state=0).fit(X, few)
    assert (model.transduction_ == y)[few == -1].mean() > 0.8


# leave_one_out ----------------------------------------------------------------------------------------------------


def test_leave_one_out_equals_refitting_without_each_label(graph_variant, blobs, few):
    X = blobs[0]
    labelled = np.flatnonzero(few != -1)
    expected = []
    for row in labelled:
        without = few.copy()
        without[row] = -1
        expected.append(clone(graph_variant).fit(X, without).scores_[row])
    found = leave_one_out(graph_variant.fit(X, few))
    assert found.shape == (12, 3)
    assert_allclose(found, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())


def test_leave_one_out_holds_where_a_component_has_a_single_label(GraphModel, islands):
    X = islands[0]
    few = np.full(90, -1)
    few[[0, 1, 2, 3, 30, 60]] = [0, 0, 1, 1, 0, 1]
    model = GraphModel(5, random_state=0)
    if GraphModel is AnchoredGreenClassifier:
        model = GraphModel(30, 3, random_state=0)
    found = leave_one_out(clone(model).fit(X, few))
    for index, row in enumerate(np.flatnonzero(few != -1)):
        without = few.copy()
        without[row] = -1
        expected = clone(model).fit(X, without).scores_[row]
        assert_allclose(found[index], expected, rtol=1e-6, atol=1e-7 * np.abs(found).max())


def test_leave_one_out_changes_nothing_in_the_model(variant, blobs, few):
    model = variant.fit(blobs[0], few)
    before = model.scores_.copy()
    leave_one_out(model)
    assert_array_equal(model.scores_, before)


def test_scores_without_a_fold_equal_refitting_without_its_labels(graph_variant, blobs, few):
    X, labelled = blobs[0], np.flatnonzero(few != -1)
    fold = np.arange(12) % 3
    fold[4] = -1
    found = graph_variant.fit(X, few).fitted_.propagation.out_of_fold(fold, 1e-13)
    for number in range(3):
        without = few.copy()
        without[labelled[fold == number]] = -1
        expected = clone(graph_variant).fit(X, without).scores_[labelled[fold == number]]
        assert_allclose(found[fold == number], expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())
    assert_array_equal(found[4], 0)


def test_out_of_fold_scores_are_zero_where_no_other_label_reaches(GraphModel, islands):
    few = np.full(90, -1)
    few[[0, 1, 30, 31, 60]] = [0, 1, 0, 1, 0]
    model = GraphModel(30, 3, random_state=0) if GraphModel is AnchoredGreenClassifier else GraphModel(5)
    found = model.fit(islands[0], few).fitted_.propagation.out_of_fold(np.array([0, 1, 0, 0, 1]), 1e-13)
    assert_array_equal(np.abs(found).max(axis=1) > 0, [True, True, False, False, False])


def test_leave_one_out_follows_relabel(Model, blobs, few):
    blank = BLENDS["blend of two"] if Model is BlendedClassifier else Model(random_state=0)
    model = clone(blank).fit(blobs[0], few)
    leave_one_out(model)
    other = np.where(np.arange(60) % 3 == 0, blobs[1], -1)
    assert_allclose(leave_one_out(model.relabel(other)), leave_one_out(clone(blank).fit(blobs[0], other)), rtol=1e-12)


# Properties -------------------------------------------------------------------------------------------------------


def some_rows(seed, n, c):
    """Rows, few labels with each class twice at least, and a source of chance."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.repeat(np.arange(c), 2), rng.integers(0, c, n - 2 * c)])
    X = rng.normal(size=(n, 3)) + y[:, None]
    y[2 * c :][rng.uniform(size=n - 2 * c) < 0.8] = -1
    return X, y, rng


def made(Model, X):
    """A model whose graph does not depend on the order of rows: anchors are given."""
    if Model is AnchoredGreenClassifier:
        return AnchoredGreenClassifier(anchors=X[np.lexsort(X.T)][::2], n_neighbors=3)
    return Model(4)


sizes = given(seed=st.integers(0, 2**32 - 1), n=st.integers(16, 40), c=st.integers(2, 4))
few_examples = settings(max_examples=15, deadline=None, derandomize=True, database=None)


@pytest.mark.slow
@pytest.mark.parametrize("Model", GRAPH_ESTIMATORS)
@few_examples
@sizes
def test_permuting_rows_permutes_the_predictions(Model, seed, n, c):
    X, y, rng = some_rows(seed, n, c)
    order = rng.permutation(n)
    straight, permuted = made(Model, X).fit(X, y), made(Model, X).fit(X[order], y[order])
    scale = np.abs(straight.scores_).max()
    assert_allclose(permuted.scores_, straight.scores_[order], rtol=1e-6, atol=1e-7 * scale)
    assert_array_equal(permuted.reached_, straight.reached_[order])
    assert permuted.n_components_ == straight.n_components_


@pytest.mark.slow
@pytest.mark.parametrize("Model", GRAPH_ESTIMATORS)
@few_examples
@sizes
def test_renaming_classes_renames_the_predictions(Model, seed, n, c):
    X, y, rng = some_rows(seed, n, c)
    names = rng.permutation(["delta", "alpha", "charlie", "bravo"][:c])
    straight = made(Model, X).fit(X, y)
    renamed = made(Model, X).fit(X, np.where(y == -1, "", names[y]))
    columns = np.argsort(names)  # the class that each column of the renamed predictions stands for
    scale = np.abs(straight.scores_).max()
    assert_array_equal(renamed.classes_, names[columns])
    assert_allclose(renamed.scores_, straight.scores_[:, columns], rtol=1e-9, atol=1e-10 * scale)
    assert_allclose(renamed.label_distributions_, straight.label_distributions_[:, columns], atol=1e-6)


@pytest.mark.parametrize("Model", GRAPH_ESTIMATORS)
@few_examples
@sizes
def test_probabilities_are_probabilities(Model, seed, n, c):
    X, y, rng = some_rows(seed, n, c)
    model = made(Model, X).fit(X, y)
    for p in (model.label_distributions_, model.predict_proba(rng.normal(size=(7, 3)))):
        assert np.isfinite(p).all()
        assert (p >= 0).all()
        assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-9)
    reached = model.reached_
    assert rises_with(model.label_distributions_[reached], model.scores_[reached])


@pytest.mark.slow
@pytest.mark.parametrize("Model", GRAPH_ESTIMATORS)
@few_examples
@sizes
def test_moving_and_turning_the_rows_changes_nothing(Model, seed, n, c):
    X, y, rng = some_rows(seed, n, c)
    Q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    anchors = {"anchors": X[::2], "n_neighbors": 3}
    if Model is AnchoredGreenClassifier:
        one = Model(**anchors).fit(X, y)
        other = Model(anchors=X[::2] @ Q + 5, n_neighbors=3).fit(X @ Q + 5, y)
    else:
        one, other = Model(4).fit(X, y), Model(4).fit(X @ Q + 5, y)
    assert_allclose(other.scores_, one.scores_, rtol=1e-5, atol=1e-6 * np.abs(one.scores_).max())


@few_examples
@sizes
def test_scores_of_the_green_function_sum_to_zero_over_rows(seed, n, c):
    X, y, _ = some_rows(seed, n, c)
    for model in (made(GreenClassifier, X), made(AnchoredGreenClassifier, X)):
        F = model.fit(X, y).scores_
        assert_allclose(F.sum(axis=0), 0, atol=1e-8 * np.abs(F).max() * n)


# Same predictions -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_random_state_gives_the_same_predictions(variant, blobs, few, new_rows):
    one, other = (clone(variant).set_params(random_state=7).fit(blobs[0], few) for _ in range(2))
    assert_array_equal(one.scores_, other.scores_)
    assert_array_equal(one.predict_proba(new_rows), other.predict_proba(new_rows))


def test_the_random_state_draws_the_anchors(blobs, few):
    one, other = (
        AnchoredGreenClassifier(12, anchors="random", random_state=seed).fit(blobs[0], few) for seed in (0, 1)
    )
    assert not np.array_equal(one.anchors_, other.anchors_)


def clouds(rng):
    """Enough rows for the search by faiss."""
    y = rng.integers(0, 3, size=4200)
    return rng.normal(size=(4200, 4)) + 2 * y[:, None], y


def grid(rng):
    """Nearly all distances occur many times."""
    y = rng.integers(0, 3, size=6000)
    return (rng.uniform(size=(6000, 31)) < 0.2 + 0.2 * y[:, None]).astype(np.float32), y


def wide(rng):
    """Principal axes take part, and products of odd shapes."""
    y = rng.integers(0, 3, size=6000)
    return (rng.normal(size=(6000, 20)) @ rng.normal(size=(20, 211)) + y[:, None]).astype(np.float32), y


def on_threads(n_threads, model, X, y):
    with threadpool_limits(n_threads):
        fitted = clone(model).fit(X, y)
        return fitted.scores_, fitted.transduction_, fitted.predict_proba(X[:500] + 0.01)


@pytest.mark.parametrize("data", [clouds, grid, wide])
@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(GreenClassifier(random_state=0), marks=pytest.mark.slow),
        pytest.param(ConsistencyClassifier(random_state=0), marks=pytest.mark.slow),
        pytest.param(HarmonicClassifier(random_state=0), marks=pytest.mark.slow),
        AnchoredGreenClassifier(n_anchors=300, random_state=0),
        pytest.param(AnchoredGreenClassifier(n_anchors=300, anchors="kmeans", random_state=0), marks=pytest.mark.slow),
        pytest.param(BlendedClassifier(random_state=0), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_number_of_threads_does_not_change_the_predictions(model, approximate, data, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = data(rng)
    few = np.where(rng.uniform(size=len(y)) < 0.02, y, -1)
    monkeypatch.setattr(neighbors, "FLOAT64_PAIRS", 0)
    if approximate:
        monkeypatch.setattr(neighbors, "EXACT_OPERATIONS", 0)
    (F, classes, p), (F2, classes2, p2) = (on_threads(n, model, X, few) for n in (1, 2))
    assert_array_equal(classes, classes2)
    assert_allclose(F, F2, rtol=1e-9, atol=1e-11 * np.abs(F).max())
    assert_allclose(p, p2, rtol=1e-6, atol=1e-9)


# Names ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("extras")
def test_all_names_are_true():
    assert greenlabel.__all__ == sorted(greenlabel.__all__, key=lambda name: (not name.isupper(), name))
    assert all(hasattr(greenlabel, name) for name in greenlabel.__all__)
    modules = {module.name for module in pkgutil.iter_modules(greenlabel.__path__)}
    public = {name for name in vars(greenlabel) if not name.startswith("_")} - modules
    assert public == set(greenlabel.__all__)
    assert {Model.__name__ for Model in ESTIMATORS} | {"leave_one_out", "UNLABELED"} <= set(greenlabel.__all__)
    assert UNLABELED == -1


def public_things():
    """(name, thing) for every public class, function, method and property of the package."""
    for module in pkgutil.iter_modules(greenlabel.__path__):
        home = importlib.import_module(f"greenlabel.{module.name}")
        yield home.__name__, home
    for name in greenlabel.__all__:
        thing = getattr(greenlabel, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            yield name, thing
        if inspect.isclass(thing):
            yield from ((f"{name}.{part}", getattr(thing, part)) for part in dir(thing) if not part.startswith("_"))
    for home in (importlib.import_module(f"greenlabel.{name}") for name in ("datasets", "metrics", "errors")):
        for name, thing in vars(home).items():
            is_ours = getattr(thing, "__module__", None) == home.__name__
            if is_ours and not name.startswith("_"):
                yield f"{home.__name__}.{name}", thing


@pytest.mark.usefixtures("extras")
def test_every_public_name_has_a_docstring():
    silent = [
        name
        for name, thing in public_things()
        if (callable(thing) or isinstance(thing, property) or inspect.ismodule(thing)) and not inspect.getdoc(thing)
    ]
    assert silent == []


def test_every_parameter_and_attribute_is_documented(Model):
    """By name in the docstring of the class, or by reference to GreenClassifier where they are the same."""
    doc = Model.__doc__
    assert [name for name in Model().get_params() if name not in doc] == []
    elsewhere = GreenClassifier.__doc__ if "GreenClassifier" in doc else ""
    promised = ["classes_", "scores_", "label_distributions_", "transduction_", "n_components_", "reached_"]
    assert [name for name in [*promised, "n_features_in_"] if name not in doc + elsewhere] == []


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_importing_the_library_imports_nothing_heavy_that_scikit_learn_has_not():
    code = f"""
import sys, sklearn.base, sklearn.neighbors, sklearn.metrics
before = set(sys.modules)
from greenlabel import {", ".join(Model.__name__ for Model in ESTIMATORS)}, leave_one_out
print([name for name in {HEAVY} if name in set(sys.modules) - before])
print("matplotlib" in sys.modules, "typer" in sys.modules, "polars" in sys.modules)
"""
    assert run(code).stdout.splitlines() == ["[]", "False False False"]


@pytest.mark.slow
def test_the_library_works_where_nothing_but_its_core_is_installed():
    code = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {HEAVY}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import greenlabel
X = [[0.0], [0.1], [5.0], [5.1]]
for Model in ({", ".join(f"greenlabel.{Model.__name__}" for Model in ESTIMATORS)}):
    params = {{"n_neighbors": 1}} if "n_neighbors" in Model().get_params() else {{}}
    model = Model(**params).fit(X, ["a", None, "b", ""])
    print(*model.predict(X), len(greenlabel.leave_one_out(model)))
"""
    done = run(code)
    assert done.stdout.splitlines() == ["a a b b 2"] * len(ESTIMATORS), done.stderr


def test_the_library_prints_nothing(Model, blobs, few, capfd):
    model = Model(random_state=0).fit(blobs[0], few)
    model.predict_proba(blobs[0])
    leave_one_out(model)
    assert capfd.readouterr() == ("", "")
