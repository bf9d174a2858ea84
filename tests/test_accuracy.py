"""What the method reaches on real data: ten labels per class, five draws, unlabelled rows only."""

import numpy as np
import pytest

from greenlabel import AnchoredGreenClassifier, GreenClassifier
from greenlabel.datasets import digits, keep_labels
from greenlabel.metrics import unlabelled_accuracy


def mean_accuracy(model, X, y, per_class=10):
    results = []
    for seed in range(5):
        few = keep_labels(y, per_class, random_state=seed)
        model = model.relabel(few) if seed else model.fit(X, few)
        results.append(unlabelled_accuracy(y, model.transduction_, few != -1))
    return np.mean(results)


def calibration_error(model, y, unlabelled):
    """Mean gap between confidence and accuracy over ten bins of confidence."""
    confidence = model.label_distributions_[unlabelled].max(axis=1)
    right = (model.transduction_ == y)[unlabelled]
    bins = np.minimum((10 * confidence).astype(int), 9)
    return sum(abs(confidence[bins == b].sum() - right[bins == b].sum()) for b in range(10)) / len(confidence)


def test_digits():
    assert mean_accuracy(GreenClassifier(), *digits()) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 4])
def test_digits_on_a_graph_of_two_components(k):
    model = GreenClassifier(k)
    assert mean_accuracy(model, *digits(), per_class=5) >= 0.92
    assert model.n_components_ == 2


def test_digits_on_an_anchored_graph():
    assert mean_accuracy(AnchoredGreenClassifier(random_state=0), *digits()) >= 0.90


@pytest.mark.slow
def test_usps(usps):
    assert mean_accuracy(GreenClassifier(), *usps) >= 0.93


@pytest.mark.slow
def test_gf_a_of_the_paper_on_usps(usps):
    model = AnchoredGreenClassifier(1024, 20, mu=1e-5, random_state=0)
    assert mean_accuracy(model, *usps) >= 0.88


@pytest.mark.slow
def test_more_than_half_of_the_rows_are_duplicates(phishing):
    X, y = phishing
    assert len(np.unique(X, axis=0)) == 5785
    few = keep_labels(y, 10, random_state=0)
    model = GreenClassifier().fit(X, few)
    assert np.isfinite(model.label_distributions_).all()
    assert (model.graph_.S.diagonal() == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("model", [GreenClassifier(), AnchoredGreenClassifier(random_state=0)])
def test_confidence_on_digits_is_what_it_says(model):
    X, y = digits()
    errors = []
    for seed in range(5):
        few = keep_labels(y, 10, random_state=seed)
        errors.append(calibration_error(model.fit(X, few), y, few == -1))
    assert np.mean(errors) < 0.05
