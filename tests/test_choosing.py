"""Parameters chosen by leave-one-out, against refitting without each label in turn."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss

from greenlabel import AnchoredGreenClassifier, GreenClassifier
from greenlabel.datasets import keep_labels
from greenlabel.labels.choosing import TIMES_OF_MU, choose, comparison_labels, log_losses
from greenlabel.labels.encoding import evidence, read_labels
from greenlabel.propagators.knn import CHOICE_WORK, NEIGHBORS

MODELS = [
    GreenClassifier(random_state=0),
    GreenClassifier(random_state=0, solver="cg"),
    GreenClassifier(random_state=0, solver="eigen"),
    AnchoredGreenClassifier(60, random_state=0),
]
kinds = pytest.mark.parametrize("model", MODELS, ids=["direct", "cg", "eigen", "anchored"])


def refitted_losses(model, X, few):
    """-log p of each labelled row, from a fit in which it has no label: slow, and nothing to go wrong."""
    F = []
    for row in np.flatnonzero(few != -1):
        without = few.copy()
        without[row] = -1
        F.append(model.fit(X, without).scores_[row])
    return log_losses(evidence(np.array(F)), few[few != -1])


@pytest.mark.parametrize(
    "model",
    [*(pytest.param(model, marks=pytest.mark.slow) for model in MODELS[:-1]), MODELS[-1]],
    ids=["direct", "cg", "eigen", "anchored"],
)
def test_mu_is_the_one_that_refitting_without_each_label_prefers(model, noisy):
    X, few = noisy
    chosen = model.fit(X, few).mu_
    anchors = {"anchors": model.anchors_} if hasattr(model, "anchors_") else {}
    usual = sorted(propagator.mu for propagator in model.propagators(X).groups[0])[1]
    losses = {}
    for times in TIMES_OF_MU:
        losses[times] = refitted_losses(type(model)(mu=usual * times, **anchors), X, few)
    best = min(losses, key=lambda times: losses[times].mean())
    assert best != 1
    gain = losses[1] - losses[best]
    assert gain.mean() > 2 * gain.std() / np.sqrt(len(gain))
    assert chosen == usual * best


@pytest.mark.slow
@kinds
def test_relabel_chooses_as_a_fit_does(model, noisy):
    X, few = noisy
    other = np.where(np.arange(len(few)) % 2 == 0, few, -1)
    again = model.fit(X, other).relabel(few)
    scores, mu = again.scores_, again.mu_
    model.fit(X, few)
    assert mu == model.mu_
    assert_array_equal(scores, model.scores_)


@pytest.mark.slow
def test_neighbours_are_those_that_refitting_without_each_label_prefers(noisy):
    X, few = noisy
    model = GreenClassifier("auto", mu=1e-3).fit(X, few)
    losses = {k: refitted_losses(GreenClassifier(k, mu=1e-3), X, few) for k in NEIGHBORS}
    best = min(losses, key=lambda k: losses[k].mean())
    gain = losses[NEIGHBORS[0]] - losses[best]
    expected = best if gain.mean() > 2 * gain.std() / np.sqrt(len(gain)) else NEIGHBORS[0]
    assert expected != NEIGHBORS[0]  # or nothing is tested
    assert_array_equal(model.scores_, GreenClassifier(int(expected), mu=1e-3).fit(X, few).scores_)
    new = X[:7] + 0.01
    assert_array_equal(model.predict_proba(new), GreenClassifier(int(expected), mu=1e-3).fit(X, few).predict_proba(new))


@pytest.mark.slow
def test_few_labels_choose_nothing(noisy):
    X, few = noisy
    few = keep_labels(few, 9, random_state=1)
    model = GreenClassifier("auto").fit(X, few)
    assert_array_equal(model.scores_, GreenClassifier(mu=model.mu_).fit(X, few).scores_)
    assert model.mu_ == GreenClassifier().fit(X, few).mu_
    assert model.propagator_.k == NEIGHBORS[0]


def test_nothing_is_tried_where_it_would_cost_more_than_the_graph(monkeypatch, noisy):
    X, few = noisy
    monkeypatch.setattr("greenlabel.propagators.knn.CHOICE_WORK", 240 * 19)
    model = GreenClassifier("auto", solver="cg").fit(X, few)
    assert [[propagator.mu for propagator in group] for group in model.propagators(X).groups] == [[model.mu_]]
    assert len(comparison_labels(read_labels(few, 240, "test"), CHOICE_WORK // 240)) == 180


def test_among_many_anchors_only_the_usual_mu_is_tried(monkeypatch, noisy):
    monkeypatch.setattr("greenlabel.graph.mixing.DENSE_ANCHORS", 59)
    monkeypatch.setattr("greenlabel.propagators.anchored.CHOICE_WORK", 60 * 19)
    model = AnchoredGreenClassifier(60, random_state=0).fit(*noisy)
    assert [propagator.mu for propagator in model.propagators(noisy[0]).groups[0]] == [model.mu_]
    assert model.mu_ == pytest.approx(0.03 / 240)


def test_neighbours_by_themselves_are_no_more_than_the_rows_allow():
    X = np.arange(8.0).reshape(-1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GreenClassifier("auto").fit(X, [0, 0, 0, -1, -1, 1, 1, 1])
    assert_array_equal(model.transduction_, [0, 0, 0, 0, 1, 1, 1, 1])


def test_the_first_value_gives_way_only_to_one_that_is_plainly_better(rng):
    codes = np.arange(60) % 3
    right = np.eye(3)[codes]
    blind = rng.normal(size=(60, 3))
    assert choose(["usual", "other"], codes, {"usual": blind, "other": right}.get) == "other"
    assert choose(["usual", "other"], codes, {"usual": right, "other": blind}.get) == "usual"
    swapped = (blind + right).reshape(10, 6, 3)[:, [3, 4, 5, 0, 1, 2]].reshape(60, 3)  # as good, on other rows
    assert choose(["usual", "other"], codes, {"usual": blind + right, "other": swapped + 1e-3 * right}.get) == "usual"
    hesitant = right * rng.uniform(0.001, 1, (60, 1))  # all right, but not all with confidence
    gain = log_losses(evidence(hesitant), codes) - log_losses(evidence(right), codes)
    assert gain.mean() > 2 * gain.std() / np.sqrt(len(gain))
    assert choose(["usual", "other"], codes, {"usual": hesitant, "other": right}.get) == "usual"
    assert choose(["usual", "other"], codes[:0], None) == "usual"


def test_losses_are_those_of_the_best_temperature(rng):
    codes = rng.integers(0, 3, 200)
    E = rng.normal(size=(200, 3)) + np.eye(3)[codes]
    at = [log_loss(codes, np.exp(t * E) / np.exp(t * E).sum(axis=1, keepdims=True)) for t in np.linspace(0.1, 3, 200)]
    assert_allclose(log_losses(E, codes).mean(), min(at), rtol=5e-3)  # the target is smoothed, theirs is not
    assert_allclose(log_losses(np.zeros((4, 2)), np.array([0, 1, 0, 1])), np.log(2))


def test_a_warning_names_the_line_of_the_caller():
    with pytest.warns(UserWarning, match="n_neighbors=40 is too many") as caught:
        GreenClassifier(40).fit(np.arange(8.0).reshape(-1, 1), [0, 0, 0, -1, -1, 1, 1, 1])
    assert caught[0].filename == __file__
