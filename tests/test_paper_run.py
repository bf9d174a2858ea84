"""Trials: their labels, scores and results on disk; each promise of the protocol on data small enough to be quick."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from sklearn.svm import SVC

from greenlabel import AnchoredGreenClassifier, GreenClassifier
from greenlabel.datasets import digits
from greenlabel.errors import MemoryLimitError
from greenlabel.paper import protocol, run
from greenlabel.paper.checks import CHECKS, Models, run_checks
from greenlabel.paper.items import CHECKED, ITEMS, anchor_counts
from greenlabel.paper.protocol import METHODS, KernelSVM, draw_labels, features, run_trials, scored_rows, units_differ
from greenlabel.paper.published import DATASETS
from greenlabel.paper.run import REFUSED, carry_out
from greenlabel.paper.sources import Data, load
from greenlabel.paper.store import PROTOCOL, Store, Trial

NOWHERE = Path("no-such-folder")


@pytest.fixture
def balance():
    return load("Balance", NOWHERE)


@pytest.fixture
def with_test_rows(balance):
    return Data("CsMap", balance.X, balance.y, np.arange(625) % 5 == 0, "x")


def ignore(trial):
    pass


def test_labels_depend_on_the_seed_alone_and_leave_test_rows_out(with_test_rows):
    few = draw_labels(with_test_rows, 5, 3)
    np.testing.assert_array_equal(few, draw_labels(with_test_rows, 5, 3))
    assert (few != draw_labels(with_test_rows, 5, 4)).any()
    assert np.bincount(few[few != -1]).tolist() == [5, 5, 5]
    assert (few[with_test_rows.is_test] == -1).all()
    np.testing.assert_array_equal(scored_rows(with_test_rows, few), with_test_rows.is_test)


def test_without_test_rows_all_unlabelled_rows_count(balance):
    few = draw_labels(balance, 5, 3)
    np.testing.assert_array_equal(scored_rows(balance, few), few == -1)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_every_method_answers_better_than_chance(balance, method):
    trial = Trial("Balance", method, 10, 0)
    [(_, result)] = run_trials(balance, method, 0, [trial])
    assert result["accuracy"] > 40
    assert 0 < result["f1"] <= 1
    assert ("margin_l" in result) == method.startswith(("LLGC", "GF(G)"))


def test_a_trial_is_the_same_whichever_came_before_it(balance):
    trials = [Trial("Balance", "GF(A)", count, seed) for count in (1, 10, 20) for seed in range(2)]
    together = dict(run_trials(balance, "GF(A)", 0, trials))
    for trial in trials:
        [(_, alone)] = run_trials(balance, "GF(A)", 0, [trial])
        assert {**alone, "seconds": 0} == {**together[trial], "seconds": 0}


def test_a_slow_fit_is_made_once_and_relabelled(balance, monkeypatch):
    monkeypatch.setattr(protocol, "QUICK", 0.0)
    trials = [Trial("Balance", "GF", count, seed) for count in (9, 10) for seed in range(3)]
    results = dict(run_trials(balance, "GF", 0, trials))
    assert len({result["seconds"] for result in results.values()}) == 1


def test_the_papers_parameters():
    for method, solver in {"GF": "eigen", "GF(G)": "direct"}.items():
        model = METHODS[method].make("USPS", 0)
        assert (model.n_neighbors, model.weights, model.mu, model.solver) == (20, "gaussian", 1e-5, solver)
    anchored = METHODS["GF(A)"].make("PhishingWeb", 0)
    assert (anchored.n_anchors, anchored.n_neighbors, anchored.mu) == (50, 20, 1e-5)
    assert METHODS["LLGC"].make("USPS", 0).gamma == 1


def test_ours_are_the_defaults_without_class_offsets():
    for Model in (GreenClassifier, AnchoredGreenClassifier):
        usual = Model(random_state=0, class_offsets=None).get_params()
        assert METHODS[Model.__name__].make("USPS", 0).get_params() == usual


def test_the_summed_graph_counts_mutual_neighbours_twice(balance):
    S = protocol.summed_graph(balance.X)
    union = METHODS["LLGC"].make("Balance", 0).fit(balance.X, draw_labels(balance, 5, 0)).graph_.S
    assert ((S > 0) != (union > 0)).nnz == 0
    edges = union.nonzero()
    assert set(np.round(S[edges] / union[edges], 6).tolist()) == {1.0, 2.0}


def test_units_differ_where_ranges_do_and_hardly_used_columns_do_not_decide():
    rng = np.random.default_rng(0)
    X = rng.random((50, 20))
    assert not units_differ(X)
    assert not units_differ(np.column_stack([X, X[:, :1] / 1e6]))
    assert not units_differ(np.zeros((5, 3)))
    assert units_differ(X * np.repeat([1, 1000], 10))
    assert not units_differ(np.array([[-128, 0], [127, 100]], np.int8))


def test_ours_standardise_only_where_units_differ(balance):
    X = features(balance, ours=True)
    np.testing.assert_allclose(X, balance.X / balance.X.std(), rtol=1e-6)
    mixed = Data("x", balance.X * np.float32([1, 1, 1000, 1000]), balance.y, None, "")
    np.testing.assert_allclose(features(mixed, ours=True).std(axis=0), 1, rtol=1e-5)
    assert features(mixed, ours=False) is mixed.X


@pytest.mark.slow
def test_standardised_sets_at_hand(data_folder):
    names = [name for name in DATASETS if name in run.available(DATASETS, data_folder)]
    assert {name for name in names if units_differ(load(name, data_folder).X)} <= {"MobileKSD", "Swarm"}


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_support_vectors_by_products_are_those_of_scikit_learn(kernel):
    X, y = digits()
    chosen = np.random.default_rng(0).permutation(len(y))[:80]
    method = {"rbf": "RbfSVM", "poly": "PolySVM"}[kernel]
    ours = METHODS[method].make("MNIST", 0).estimator
    assert isinstance(ours, KernelSVM)
    theirs = SVC(kernel=kernel).fit(X[chosen], y[chosen])
    assert (ours.fit(X[chosen], y[chosen]).predict(X) == theirs.predict(X)).all()


def test_anchor_counts_hold_the_papers_own_and_leave_room_for_the_neighbours():
    for name in ("Balance", "MobileKSD", "USPS", "CsMap", "PhishingWeb", "Swarm"):
        counts = anchor_counts(name)
        assert int(DATASETS[name]["anchors"].replace(",", "")) in counts
        assert min(counts) == 21
        assert max(counts) <= int(DATASETS[name]["rows"].replace(",", ""))


@pytest.mark.slow
@pytest.mark.parametrize("method", CHECKS)
def test_conclusions_hold(method):
    data = load(CHECKED[method][0], NOWHERE)
    result = CHECKS[method](data, draw_labels(data, 10, 0), Models(data))
    assert result.get("rows that differ", 0) == 0
    assert result.get("difference of scores", 0) < 1e-6
    if method == "conclusion 3":
        assert result["blocks"] == 2
        assert result["original: mean score of a block"] < 1e-12 < 0.1 < result["improved: mean score of a block"]
        assert result["original: accuracy"] < 80
        assert result["improved: accuracy"] == 100


@pytest.mark.slow
@pytest.mark.parametrize("method", CHECKS)
def test_checks_of_several_draws_are_those_of_each_alone(method):
    data = load(CHECKED[method][0], NOWHERE)
    trials = [Trial(data.name, method, 10, seed) for seed in range(2)]
    together = dict(run_checks(data, method, trials))
    for trial in trials:
        alone = dict(run_checks(data, method, [trial]))[trial]
        assert alone == pytest.approx(together[trial], abs=1e-9)


def test_items_share_their_trials():
    seeds = range(5)
    assert set(ITEMS["accuracy"].trials(seeds)) == set(ITEMS["f1"].trials(seeds)) == set(ITEMS["time"].trials(seeds))
    plain = {trial for trial in ITEMS["margin"].trials(seeds) if "A + A'" not in trial.method}
    assert plain <= set(ITEMS["accuracy"].trials(seeds))


def wanted():
    return [Trial("Balance", *key) for key in product(("LLGC", "GF(A)"), (2, 10), (0, 1))]


@pytest.mark.slow
def test_results_are_kept_and_not_computed_again(balance, tmp_path, monkeypatch):
    first = carry_out(wanted(), {"Balance": balance}, Store(tmp_path / "r.jsonl"), 1, ignore)
    monkeypatch.setattr(run, "run_batch", lambda data, batch: pytest.fail("computed again"))
    seen = []
    again = carry_out(wanted(), {"Balance": balance}, Store(tmp_path / "r.jsonl"), 1, seen.append)
    assert again == first
    assert seen == wanted()


def test_an_interrupted_run_goes_on_where_it_stopped(balance, tmp_path):
    class Stop(Exception):
        pass

    def stop_at_third(trial):
        count.append(trial)
        if len(count) == 3:
            raise Stop

    count, path = [], tmp_path / "r.jsonl"
    with pytest.raises(Stop):
        carry_out(wanted(), {"Balance": balance}, Store(path), 1, stop_at_third)
    with path.open("a") as file:
        file.write('{"protocol": 1, "content"')  # a line that was not finished
    assert len(path.read_text().splitlines()) == 4
    carry_out(wanted(), {"Balance": balance}, Store(path), 1, ignore)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == len(wanted())
    assert len({json.dumps({**line, "result": 0}) for line in lines}) == len(wanted())


def test_results_of_other_data_or_another_protocol_are_not_taken(tmp_path, monkeypatch):
    trial, path = Trial("Balance", "HF", 10, 0), tmp_path / "r.jsonl"
    Store(path).put(trial, "abc", {"accuracy": 1.0})
    assert Store(path).get(trial, "abc") == {"accuracy": 1.0}
    assert Store(path).get(trial, "abd") is None
    monkeypatch.setattr("greenlabel.paper.store.PROTOCOL", PROTOCOL + 1)
    assert Store(path).get(trial, "abc") is None


@pytest.mark.slow
def test_jobs_do_not_change_the_numbers(balance, tmp_path):
    numbers = [
        {trial: (result["accuracy"], result["f1"]) for trial, result in results.items()}
        for jobs in (1, 3)
        if (results := carry_out(wanted(), {"Balance": balance}, Store(tmp_path / f"{jobs}"), jobs, ignore))
    ]
    assert numbers[0] == numbers[1]


def test_what_does_not_fit_in_memory_is_said_and_not_kept(balance, tmp_path, monkeypatch):
    def refuse(*args):
        raise MemoryLimitError("too large")

    monkeypatch.setattr(run, "run_trials", refuse)
    trial, store = Trial("Balance", "GF", 10, 0), Store(tmp_path / "r.jsonl")
    assert REFUSED in carry_out([trial], {"Balance": balance}, store, 1, ignore)[trial]
    assert store.get(trial, balance.content) is None


def test_trials_without_data_are_left_out(tmp_path):
    assert carry_out([Trial("Swarm", "GF", 10, 0)], {}, Store(tmp_path / "r.jsonl"), 1, ignore) == {}
