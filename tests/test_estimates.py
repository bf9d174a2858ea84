"""The estimated accuracy: its rule against slow and obvious versions, and the promises that it makes."""

import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy.stats import beta

from greenlabel import AnchoredGreenClassifier, BlendedClassifier, GreenClassifier, label_table
from greenlabel.datasets import digits
from greenlabel.errors import UnreachedWarning
from greenlabel.labels.estimates import (
    DEPENDENCE,
    Filled,
    estimate_accuracy,
    interval,
    is_drawn_by_class,
    unseen_share,
)
from greenlabel.tables.report.page import report_html
from greenlabel.tables.report.words import SPACE, percent

DRAWN = np.array([60, 40])  # labels of two classes, drawn at random


def validated(n_right, n_wrong, confidence=0.9):
    """Codes and probabilities of tested rows of class 0, all with this confidence."""
    p = np.array([[confidence, 1 - confidence]] * n_right + [[1 - confidence, confidence]] * n_wrong).reshape(-1, 2)
    return np.zeros(n_right + n_wrong, int), p


def filled(n, confidence, c=2, n_unreached=0):
    predictions = np.full(c, n // c)
    predictions[0] += n % c
    return Filled(predictions, n * confidence, n_unreached)


# The rule -----------------------------------------------------------------------------------------------------------


def test_the_estimate_lies_between_the_tested_rows_and_the_confidence():
    found = estimate_accuracy(*validated(80, 20), DRAWN, filled(1000, 0.9))
    assert float(found) == pytest.approx((0.85 * 80 + 0.5) / 81)  # 100 tested rows are worth 80
    assert found.low < 0.8
    assert found.high > 0.9


def test_where_all_readings_agree_the_interval_is_that_of_jeffreys():
    n = 10**9
    low, high = interval(0.9, 100, n, 0.0)
    assert (low, high) == pytest.approx(tuple(beta.ppf([0.05, 0.95], 90.5, 10.5)), abs=1e-6)
    found = estimate_accuracy(*validated(90, 10), DRAWN, filled(n, 0.9))
    assert (found.low, found.high) == pytest.approx(interval(0.9, 100 / DEPENDENCE, n, 0.0))


def test_the_interval_has_the_mean_and_the_spread_that_it_is_made_from(rng):
    """Slow and obvious: a share drawn from its beta distribution, seen in n rows, moved by the doubt."""
    k, n, p, doubt = 40, 60, 0.8, 0.03
    shares = rng.beta(p * k + 0.5, (1 - p) * k + 0.5, 200_000)
    seen = rng.binomial(n, shares) / n + rng.normal(scale=doubt, size=200_000)
    low, high = interval(p, k, n, doubt)
    assert low == pytest.approx(np.quantile(seen, 0.05), abs=0.02)
    assert high == pytest.approx(np.quantile(seen, 0.95), abs=0.02)


def test_readings_that_disagree_widen_the_interval():
    agree = estimate_accuracy(*validated(85, 15), DRAWN, filled(1000, 0.85))
    apart = estimate_accuracy(*validated(75, 25), DRAWN, filled(1000, 0.95))
    assert float(agree) == pytest.approx(float(apart))
    assert agree.low < float(agree) < agree.high
    assert apart.high - apart.low > 1.2 * (agree.high - agree.low)


def test_few_rows_to_fill_in_widen_it_and_its_ends_are_whole_rows():
    few, many = (estimate_accuracy(*validated(90, 10), DRAWN, filled(n, 0.9)) for n in (10, 10_000))
    assert few.high - few.low > 1.5 * (many.high - many.low)
    assert (few.low * 10) % 1 == pytest.approx(0)
    assert few.high == 1.0


def test_where_no_tested_row_is_wrong_all_may_be_right():
    assert estimate_accuracy(*validated(50, 0), DRAWN, filled(10_000, 0.95)).high == 1.0


def test_few_tested_rows_never_earn_certainty():
    few, many = (estimate_accuracy(*validated(k, 0), DRAWN, filled(500, 1.0)) for k in (10, 1000))
    assert float(few) < 0.95
    assert float(many) > 0.999


def test_without_a_tested_row_anything_is_possible():
    found = estimate_accuracy(*validated(0, 0), np.array([1, 1]), filled(100, 0.7))
    assert (float(found), found.low, found.high) == (pytest.approx(0.7), 0.0, 1.0)


def test_without_a_row_filled_in_there_is_nothing_to_estimate():
    assert estimate_accuracy(*validated(9, 1), DRAWN, filled(0, 0.0)) is None


def test_unreached_rows_are_right_as_often_as_the_most_frequent_label():
    found = estimate_accuracy(*validated(100, 0), DRAWN, filled(100, 1.0, n_unreached=300))
    assert float(found) == pytest.approx(0.25 * 80.5 / 81 + 0.75 * 0.6)
    assert found.high < 0.8
    alone = estimate_accuracy(*validated(100, 0), DRAWN, filled(0, 0.0, n_unreached=300))
    assert float(alone) == pytest.approx(0.6)


def test_only_confident_tested_rows_count_where_only_confident_rows_are_filled_in():
    confident, doubtful = validated(50, 0, 0.97), validated(20, 30, 0.6)
    codes, p = (np.concatenate(parts) for parts in zip(confident, doubtful, strict=True))
    assert float(estimate_accuracy(codes, p, DRAWN, filled(500, 0.97), 0.9)) > 0.97
    assert float(estimate_accuracy(codes, p, DRAWN, filled(1000, 0.78))) < 0.8


def test_filled_rows_of_blocks_add_up(rng):
    predictions, confidence, reached = rng.integers(-1, 4, 200), rng.random(200), rng.random(200) < 0.7
    whole = Filled.of(predictions, confidence, reached, 4)
    parts = [
        Filled.of(predictions[rows], confidence[rows], reached[rows], 4) for rows in (slice(0, 77), slice(77, 200))
    ]
    total = parts[0] + parts[1]
    assert_array_equal(total.n_predicted, whole.n_predicted)
    assert total.confidence == pytest.approx(whole.confidence)
    assert total.n_unreached == whole.n_unreached == (~reached & (predictions >= 0)).sum()


# How labels were drawn ------------------------------------------------------------------------------------------------


def test_labels_drawn_by_class_differ_from_labels_drawn_at_random(rng):
    assert is_drawn_by_class(np.full(200, 3))
    assert is_drawn_by_class(np.minimum(rng.integers(1, 20, 100), 5))  # small classes have fewer
    at_random = [is_drawn_by_class(np.bincount(rng.integers(0, 100, 300), minlength=100)) for _ in range(200)]
    assert np.mean(at_random) < 0.05


def test_labels_alone_in_their_class_estimate_the_rows_of_classes_without_any(rng):
    """Good and Turing, against a count: rows of classes that a draw of labels missed."""
    stated, true = [], []
    for _ in range(200):
        shares = rng.dirichlet(np.ones(80))
        counts = rng.multinomial(150, shares)
        right = np.zeros(150, bool)
        stated.append(unseen_share(counts[counts > 0], right, ~right))
        true.append(shares[counts == 0].sum())
    assert np.mean(stated) == pytest.approx(np.mean(true), abs=0.01)


def test_a_tested_row_that_leaves_its_class_poorer_counts_less():
    codes, p = np.arange(30) % 3, np.eye(3)[(np.arange(30) + (np.arange(30) < 6)) % 3]
    few = estimate_accuracy(codes, p, np.full(3, 2), filled(300, 0.8, c=3))
    many = estimate_accuracy(codes, p, np.full(3, 100), filled(300, 0.8, c=3))
    assert float(few) > float(many) + 0.01
    assert float(many) == pytest.approx(0.8, abs=0.02)


def test_classes_count_as_often_as_they_are_filled_in():
    codes = np.repeat([0, 1], 50)
    p = np.eye(2)[np.concatenate([np.zeros(50, int), np.arange(50) % 2])]  # class 0 is always right, class 1 half
    rare = estimate_accuracy(codes, p, np.array([50, 50]), Filled(np.array([950, 50]), 750.0))
    often = estimate_accuracy(codes, p, np.array([50, 50]), Filled(np.array([50, 950]), 750.0))
    assert float(rare) > 0.8 > 0.72 > float(often)


# Models and tables ----------------------------------------------------------------------------------------------------


def islands(rng, rows=200, apart=1000.0):
    """Two groups of rows far from each other: the first labelled, the second (as large) without any label."""
    X = rng.normal(size=(2 * rows, 2))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += 6 * y
    X[rows:] += apart
    given = np.where((np.arange(2 * rows) < rows) & (np.arange(2 * rows) % 5 == 0), y, -1)
    return X, y, given


def frame_of(X, given, names):
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    return pl.DataFrame({**columns, "kind": [None if code < 0 else names[code] for code in given]})


@pytest.mark.parametrize("method", ["green", "anchored"])
def test_unreached_rows_lower_the_stated_accuracy_of_a_table(rng, method):
    X, y, given = islands(rng)
    with pytest.warns(UnreachedWarning, match="200 of 400 rows are reached by no label"):
        _, result = label_table(frame_of(X, given, "ab"), "kind", method=method)
    share, low, high = result.estimated_accuracy
    true = (result.predictions == y)[given < 0].mean()
    assert true < 0.85
    assert share < 0.9
    assert low <= true <= high
    assert any("200 of 400" in warning for warning in result.warnings)


@pytest.mark.slow
@pytest.mark.parametrize("model", [GreenClassifier(), AnchoredGreenClassifier(random_state=0)])
def test_many_unreached_rows_are_a_python_warning_that_says_what_to_do(rng, model):
    X, y, given = islands(rng)
    with pytest.warns(UnreachedWarning, match="label a row of each group"):
        model.fit(X, given)
    given[200:220] = y[200:220]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, given)


def test_a_blend_has_other_experts_for_unreached_rows(rng):
    X, _, given = islands(rng, rows=60)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnreachedWarning)
        model = BlendedClassifier([("graph", GreenClassifier())], random_state=0).fit(X, given)
        _, result = label_table(frame_of(X, given, "ab"), "kind")
    assert not model.reached_.all()
    assert result.tally.estimated.n_unreached == 0


def test_the_blend_and_the_table_state_the_same(rng):
    X, _, given = islands(rng, rows=60, apart=0.0)
    _, result = label_table(frame_of(X, given, "ab"), "kind")
    stated = result.model.estimated_accuracy_
    assert result.estimated_accuracy == (float(stated), stated.low, stated.high)


@pytest.mark.slow
def test_only_confident_states_the_accuracy_of_the_rows_filled_in():
    X, y = digits()
    y = y[:600]
    given = np.where(np.random.default_rng(0).random(600) < 0.15, y, -1)
    frame = frame_of(X[:600] + np.random.default_rng(1).normal(scale=5, size=(600, 64)), given, "0123456789")
    stated = {}
    for level in (None, 0.9):
        _, result = label_table(frame, "kind", method="green", only_confident=level)
        rows = (given < 0) & (result.predictions >= 0)
        share, low, high = result.estimated_accuracy
        assert low <= (result.predictions == y)[rows].mean() <= high
        stated[level] = share
    assert stated[0.9] > stated[None] + 0.05
    assert "with at least 90.0 % confidence" in " ".join(str(result).split())


def many_classes(rng, c=200, rows=8, labels=3):
    centres = rng.normal(size=(c, 6)) * 2.2
    y = np.repeat(np.arange(c), rows)
    X = centres[y] + rng.normal(size=(len(y), 6))
    return X, y, np.where(np.arange(len(y)) % rows < labels, y, -1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("model", [GreenClassifier(), AnchoredGreenClassifier(random_state=0)])
def test_the_interval_holds_with_three_labels_of_each_of_200_classes(seed, model):
    X, y, given = many_classes(np.random.default_rng(seed))
    model.fit(X, given)
    true = (model.transduction_ == y)[given < 0].mean()
    found = estimate_of(model, given)
    assert found.low <= true <= found.high
    assert found.high - found.low < 0.25


def estimate_of(model, given):
    _, codes, p_tested = model.cross_validated(2000)
    free = given < 0
    p = model.label_distributions_[free]
    rows = Filled.of(p.argmax(axis=1), p.max(axis=1), model.reached_[free], p.shape[1])
    return estimate_accuracy(codes, p_tested, np.bincount(given[~free])[model.classes_], rows)


@pytest.mark.slow
def test_intervals_hold_as_often_as_they_say_on_generated_data():
    """Twelve classes or two, few labels or many, by class or at random: 80 fits, of which 68 is 85 %."""
    inside, widths = [], []
    for seed in range(80):
        rng = np.random.default_rng([seed, 1])
        c, k, by_class = (2, 12)[seed % 2], (3, 10)[seed // 2 % 2], seed // 4 % 2
        y = np.sort(np.concatenate([np.arange(c).repeat(k), rng.integers(0, c, 400)]))
        X = (rng.normal(size=(c, 4)) * rng.uniform(1, 3))[y] + rng.normal(size=(len(y), 4))
        order = rng.permutation(len(y))
        chosen = np.concatenate([order[y[order] == j][:k] for j in range(c)]) if by_class else order[: k * c]
        given = np.full(len(y), -1)
        given[chosen] = y[chosen]
        if len(np.unique(y[chosen])) < 2:
            continue
        model = GreenClassifier().fit(X, given)
        found = estimate_of(model, given)
        inside.append(found.low <= (model.transduction_ == y)[given < 0].mean() <= found.high)
        widths.append(found.high - found.low)
    assert np.mean(inside) >= 0.85
    assert np.mean(widths) < 0.35


@pytest.mark.slow
def test_twenty_labels_of_a_mixed_table_state_neither_too_much_nor_too_little(monkeypatch):
    """Forty tables, labels drawn at random and by class. Weights from the tested rows state 3 points more."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    from mixed_tables import mixed_table

    gaps, inside = [], []
    for seed in range(40):
        frame, true, _ = mixed_table(seed)
        filled, result = label_table(frame, "kind")
        share, low, high = result.estimated_accuracy
        right = (filled["kind"] == true).filter(frame["kind"].is_null()).mean()
        gaps.append(share - right)
        inside.append(low <= right <= high)
    assert abs(np.mean(gaps)) < 0.02
    assert np.mean(inside) >= 0.85


# One story ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_page_terminal_and_json_tell_one_story():
    X, _, given = many_classes(np.random.default_rng(0), c=40, rows=20)
    _, result = label_table(frame_of(X, given, [f"kind {j}" for j in range(40)]), "kind", method="green")
    facts = result.summary()["estimated_accuracy"]
    right, labels = facts["labels_held_out_right"], facts["labels_held_out"]
    assert labels == 120
    assert 0 < right < labels
    page, shares = report_html(result, result.frame, "kind"), [percent(facts[key]) for key in ("share", "low", "high")]
    assert f"{right} of 120 came out right ({percent(right / labels)})" in page
    assert f"Expect about {shares[0]} of the labels filled in to be right ({shares[1]} to {shares[2]})" in page
    assert (
        "The two shares differ because the confidence on the rows filled in counts too; a class has one label" in page
    )
    terminal = " ".join(str(result).split())
    assert f"about {shares[0]} (90 % interval {shares[1]} to {shares[2]})".replace(SPACE, " ") in terminal
    assert f"hiding 120 given labels in turn: {right} came out right" in terminal


@pytest.mark.slow
def test_the_page_names_unreached_rows_and_classes_of_one_label(rng):
    X, y, given = islands(rng)
    given[given == 1] = -1
    given[np.flatnonzero(y[:200] == 1)[0]] = 1
    with pytest.warns(UnreachedWarning):
        _, result = label_table(frame_of(X, given, "ab"), "kind", method="green")
    page = report_html(result, result.frame, "kind")
    assert "1 class has a single label, so others may have none" in page
    assert "rows that no label reaches got the most frequent label" in page
    assert "that no label reaches, thought right as often as the most frequent label" in str(result)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["anchored", "auto"])
def test_a_table_in_blocks_states_what_the_same_table_in_memory_states(method, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    X = 2.5 * rng.normal(size=(3, 4))[y] + rng.normal(size=(400, 4))
    frame = frame_of(X, np.where(rng.random(400) < 0.15, y, -1), "abc")
    frame.write_parquet("rows.parquet", row_group_size=90)
    words = ["rows.parquet", "-t", "kind", "--method", method, "--only-confident", "0.6", "--json", "-q"]
    facts = []
    for more in (["-o", "one.parquet"], ["--memory-limit", "0", "-o", "two.parquet"]):
        stated = run_for_json(*words, *more)
        facts.append(stated["estimated_accuracy"])
    assert facts[0] == pytest.approx(facts[1])
    assert facts[0]["labels_held_out_right"] <= facts[0]["labels_held_out"]


def run_for_json(*words):
    done = subprocess.run(
        [sys.executable, "-m", "greenlabel", "label", *words], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)
