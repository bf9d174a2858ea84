"""Labels of chosen rows: weights with which they stand for all rows, and what comes of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import rankdata

from greenlabel import AnchoredGreenClassifier, GreenClassifier, suggest
from greenlabel.labels import offsets
from greenlabel.labels.chosen import places, representative_weights
from greenlabel.propagators.base import unlabelled_sample


def test_a_place_is_how_many_of_the_others_are_smaller():
    others = np.array([3.0, 1.0, 2.0, 2.0])
    assert_allclose(places(np.array([0.5, 1.0, 2.0, 2.5, 9.0]), others) / np.sqrt(12), [-0.5, -0.375, 0, 0.25, 0.5])
    assert_array_equal(places(np.array([1.0, 2.0]), np.empty(0)), [0, 0])
    assert_array_equal(places(np.zeros(2), np.zeros(3)), [0, 0])


@pytest.mark.filterwarnings("error")
def test_a_label_with_far_more_around_it_than_all_others_has_the_last_place():
    assert_allclose(places(np.array([1e50, 0.5]), np.array([1.0, 2.0])) / np.sqrt(12), [0.5, -0.5])


def test_places_of_all_rows_have_mean_0_and_variance_1(rng):
    density = rng.exponential(size=2000)
    place = places(density, density)
    assert_allclose(place, np.sqrt(12) * ((rankdata(density) - 0.5) / 2000 - 0.5), atol=1e-12)
    assert_allclose([place.mean(), place.var()], [0, 1], atol=1e-5)


def test_what_rounding_adds_to_a_density_is_no_order(rng):
    others = rng.integers(1, 5, 300).astype(float)
    known = np.array([1.0, 2.0, 3.0, 4.0])
    noise = 1 + 1e-14 * rng.normal(size=300)
    assert_array_equal(places(known, others * noise), places(known, others))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 60), shift=st.floats(-1.7, 1.7))
def test_the_weights_are_the_minimum_of_the_formula(seed, n, shift):
    place = np.clip(np.random.default_rng(seed).normal(shift, 0.5, n), -np.sqrt(3), np.sqrt(3))
    w = representative_weights(place)
    slopes = np.linspace(-1, 1, 20_001)
    J = n * np.log(np.exp(-np.outer(slopes, place)).sum(axis=1)) + slopes**2 / 2
    slope = slopes[J.argmin()]
    assert_allclose(w, n * np.exp(-slope * place) / np.exp(-slope * place).sum(), rtol=1e-3)
    assert_allclose(w.mean(), 1)


def test_a_few_labels_that_differ_from_the_others_do_not_stand_for_everything():
    place = np.r_[np.full(99, 1.7), -1.7]  # the one label at the other end would count as all others together
    w = representative_weights(place)
    assert_allclose(w[-1] / w[0], np.exp(2 * 1.7))
    assert_allclose(representative_weights(-place), w)


def test_with_these_weights_many_labels_have_the_place_of_all_rows(rng):
    place = rng.uniform(-np.sqrt(3), 1, 400)
    assert place.mean() < -0.2
    w = representative_weights(place)
    assert abs(w @ place / w.sum()) < 0.003
    assert (np.diff(w[np.argsort(place)]) > 0).all()


def test_labels_at_random_stand_for_nearly_equal_parts(rng):
    place = rng.uniform(-np.sqrt(3), np.sqrt(3), 1000)
    assert_allclose(representative_weights(place), 1, atol=0.2)
    assert_array_equal(representative_weights(np.zeros(5)), np.ones(5))


def test_labels_that_are_all_at_one_end_stand_for_equal_parts():
    assert_allclose(representative_weights(np.full(500, np.sqrt(3))), 1)
    assert_allclose(representative_weights(np.array([-np.sqrt(3)])), 1)


# Densities


def labelled(n, rows):
    few = np.full(n, -1)
    few[rows] = np.arange(len(rows)) % 2
    return few


def test_the_density_around_a_row_is_its_similarity_to_all_others(rng):
    X = np.repeat(rng.normal(size=(60, 3)), rng.integers(1, 4, 60), axis=0)
    rows = np.sort(rng.choice(len(X), 12, replace=False))
    model = GreenClassifier().fit(X, labelled(len(X), rows))
    propagation, graph = model.fitted_.propagation, model.graph_
    of_row = np.unique(X, axis=0, return_inverse=True)[1].ravel()
    first = [int(np.flatnonzero(of_row == number)[0]) for number in of_row]
    nodes = graph.nodes.numbers(np.arange(len(X)))
    assert_array_equal(nodes, nodes[first])  # equal rows are one node
    degree = graph.S.toarray().sum(axis=1)[nodes]
    assert_allclose(propagation.label_densities(np.arange(12)), degree[rows])
    F, of_sample = propagation.sampled()
    others = unlabelled_sample(propagation.labels)
    assert_allclose(of_sample, degree[others])
    assert_allclose(F, model.scores_[others])


@pytest.mark.parametrize("memory_limit", ["auto", 0])
def test_on_anchors_it_is_how_many_rows_these_hold(rng, memory_limit):
    X = rng.normal(size=(300, 3))
    rows = np.sort(rng.choice(300, 12, replace=False))
    model = AnchoredGreenClassifier(40, random_state=0, memory_limit=memory_limit).fit(X, labelled(300, rows))
    Z, propagation = model.operator_.Z.toarray(), model.fitted_.propagation
    degree = Z @ Z.sum(axis=0)
    assert_allclose(propagation.label_densities(np.array([3, 0, 7])), degree[rows[[3, 0, 7]]])
    F, of_sample = propagation.sampled()
    others = unlabelled_sample(propagation.labels)
    assert_allclose(of_sample, degree[others])
    assert_allclose(F, model.scores_[others], atol=1e-12)


def test_without_unlabelled_rows_there_is_nothing_to_stand_for(rng):
    X, y = rng.normal(size=(40, 2)), np.repeat([0, 1], [30, 10])
    for Model in (GreenClassifier, AnchoredGreenClassifier):
        model = Model(random_state=0).fit(X, y)
        F, degree = model.fitted_.propagation.sampled()
        assert F.shape == (0, 2)
        assert degree.shape == (0,)
        assert np.isfinite(model.class_offsets_).all()


# What it is for


def around(n, d, seed):
    """Half of the rows a compact cloud, the other half a cloud four times as wide (in variance) around it."""
    rng, y = np.random.default_rng(seed), np.repeat([0, 1], n // 2)
    return rng.normal(size=(n, d)) * np.where(y == 0, 2.0, 1.0)[:, None] + 0.5 * (y == 1)[:, None], y


def with_suggested_labels(X, y, n_labels):
    rows = [0, len(y) - 1]
    few = np.full(len(y), -1)
    few[rows] = y[rows]
    model = GreenClassifier(random_state=0).fit(X, few)
    while len(rows) < n_labels:
        rows += [one.row for one in suggest(model, max(1, len(rows) // 10))]
        few[rows] = y[rows]
        model.relabel(few)
    return model, few


@pytest.mark.parametrize("seed", range(3))
def test_suggested_labels_of_a_wide_class_do_not_take_the_rows_of_the_class_within(seed, monkeypatch):
    X, y = around(600, 20, seed)
    model, few = with_suggested_labels(X, y, 80)
    assert np.mean(y[few != -1] == 0) > 0.7  # the wide class: half of the rows, most of the labels
    known = few != -1
    assert np.mean((model.transduction_ == y)[~known]) > 0.52
    monkeypatch.setattr(offsets, "representative_weights", lambda place: np.ones(len(place)))
    model.relabel(few)
    assert np.mean((model.transduction_ == y)[~known]) < 0.48
    assert np.mean(model.transduction_[~known] == 0) > 0.9


def test_offsets_have_to_be_clear_with_equal_weights_too(rng):
    codes = np.repeat([0, 1], [50, 50])
    H = rng.normal(size=(100, 2)) + 0.5 * np.eye(2)[codes]
    counts, F = np.array([50, 49]), rng.normal(size=(300, 2))
    place = np.where(codes == 0, -1.5, 1.5) + 0.2 * rng.normal(size=100)
    lean = np.r_[place[:50], place[50:] + 3]  # as if labels of class 1 stood for next to nothing
    offsets_found, odds = offsets.fitted_offsets(H, codes, representative_weights(lean))
    assert odds > np.log(offsets.ODDS)
    assert offsets_found[0] > offsets_found[1]
    assert_array_equal(offsets.class_offsets(H, codes, counts, F, lean), [0, 0])
