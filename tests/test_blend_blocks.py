"""The blend of rows beyond memory: the bits of memory, over blocks, files, memory limits and threads."""

import re

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_limits

from greenlabel import AnchoredGreenClassifier, BlendedClassifier, GreenClassifier, explain, suggest, suspects
from greenlabel.blend.in_blocks import RowsInBlocks, learnable
from greenlabel.blocks.rows import ArrayBlocks, NpyBlocks
from greenlabel.datasets import keep_labels
from greenlabel.errors import DataError, ParameterError
from greenlabel.labels.encoding import read_labels
from greenlabel.tables.model_files.blends import read_model, write_model
from greenlabel.tables.model_files.container import FORMAT, Arrays, read_archive, write_archive
from helpers.block_rows import npy, parquet

N, D = 900, 6


@pytest.fixture(scope="module")
def data():
    """Three classes in two columns of different units, noise in the others; and 15 labels of each."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, N)
    X = rng.normal(size=(N, D)) + 2 * np.eye(3)[y] @ rng.normal(size=(3, D))
    return (X * [1, 100, 1, 1, 1, 1]).astype(np.float32), y, keep_labels(y, 15, random_state=0)


@pytest.fixture
def in_blocks(monkeypatch):
    """Few rows count as many: they are in blocks, and the sample is a part of them."""
    monkeypatch.setattr("greenlabel.blend.in_blocks.MEMORY_ROWS", 100)
    monkeypatch.setattr("greenlabel.blend.in_blocks.SAMPLE_ROWS", 300)
    monkeypatch.setattr("greenlabel.blend.experts.ANCHORED_ROWS", 100)


def fitted(X, y, **options):
    return BlendedClassifier(random_state=0, **options).fit(X, y)


def assert_same(model, expected):
    """Bit by bit."""
    assert model.weights_ == expected.weights_
    assert_array_equal(model.scores_, expected.scores_)
    assert_array_equal(model.transduction_, expected.transduction_)
    assert_array_equal(model.label_distributions_, expected.label_distributions_)
    assert_array_equal(model.reached_, expected.reached_)
    assert_array_equal(model.class_shares_, expected.class_shares_)
    assert repr(model.estimated_accuracy_) == repr(expected.estimated_accuracy_)


SOURCES = {
    "array in blocks of 250": lambda X, folder: ArrayBlocks(X, 250),
    "array in blocks of 7": lambda X, folder: ArrayBlocks(X, 7),
    "memory map": lambda X, folder: np.load(npy(X, folder), mmap_mode="r"),
    "path of a .npy file": npy,
    "blocks of a .npy file": lambda X, folder: NpyBlocks(npy(X, folder), 333),
    "Dask array without a cluster": lambda X, folder: da.from_array(X, chunks=(400, -1)),
    "Parquet folder": lambda X, folder: parquet(X, folder, 100, 2),
}


@pytest.mark.parametrize("source", SOURCES)
def test_where_all_rows_are_held_every_source_gives_what_memory_gives(source, data, tmp_path):
    X, _, few = data
    expected = fitted(X, few)
    model = fitted(SOURCES[source](X, tmp_path), few)
    assert isinstance(model.experts_["graph"], GreenClassifier)
    assert_same(model, expected)
    assert_same(model.relabel(few), expected)


@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize("source", SOURCES)
def test_beyond_memory_every_source_gives_what_an_array_gives(source, data, tmp_path):
    X, _, few = data
    model = fitted(SOURCES[source](X, tmp_path), few)
    assert isinstance(model.fitted_.features, RowsInBlocks)
    assert isinstance(model.experts_["graph"], AnchoredGreenClassifier)
    assert_same(model, fitted(X, few))


@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize("memory_limit", [0, 40_000, 60_000, 90_000])
def test_what_does_not_fit_is_computed_again_with_the_same_bits(memory_limit, data, tmp_path):
    X, _, few = data
    path = npy(X, tmp_path)
    assert_same(fitted(NpyBlocks(path, 200), few, memory_limit=memory_limit), fitted(path, few))


@pytest.mark.usefixtures("in_blocks")
def test_scores_are_the_evidence_of_the_experts_added_up(data):
    """Each expert by itself, on all rows at once."""
    X, _, few = data
    fit = fitted(ArrayBlocks(X, 100), few, memory_limit=0).fitted_
    predictor = fit.predictor
    Xs = predictor.scaled(X)
    F = np.tile(predictor.class_offsets, (N, 1))
    for expert, scale in zip(predictor.experts, predictor.blend.scales, strict=True):
        if expert.name in ("graph", "weighted graph"):
            centred = expert.model.scores_ - expert.model.scores_.mean(axis=1, keepdims=True)
            F += scale * centred / np.sqrt(centred.max(axis=1, keepdims=True))
        else:
            F += scale * expert.evidence(Xs)
    assert_allclose(fit.scores, F, rtol=1e-6, atol=1e-6)
    alone = AnchoredGreenClassifier(random_state=predictor.experts[0].shell.random_state).fit(Xs, few)
    assert_array_equal(predictor.experts[0].model.scores_, alone.scores_)
    weighted = predictor.experts[2]
    shell = AnchoredGreenClassifier(mu=0.03 / N, random_state=weighted.shell.random_state)
    assert_array_equal(weighted.model.scores_, shell.fit(Xs * weighted.factor.astype(np.float32), few).scores_)


@pytest.mark.usefixtures("in_blocks")
def test_one_thread_and_two_give_the_same_bits(data, tmp_path):
    X, _, few = data
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append(fitted(NpyBlocks(npy(X, tmp_path), 300), few))
    assert_same(*found)


@pytest.mark.slow
def test_mobile_in_blocks_is_as_accurate_as_in_memory(mobile, monkeypatch, all_trees):
    X, y = mobile
    few = keep_labels(y, 10, random_state=0)
    monkeypatch.setattr("greenlabel.blend.in_blocks.SAMPLE_ROWS", 1000)
    right = []
    for rows in (50_000, 500):
        monkeypatch.setattr("greenlabel.blend.in_blocks.MEMORY_ROWS", rows)
        model = fitted(ArrayBlocks(np.ascontiguousarray(X), 500), few)
        assert isinstance(model.fitted_.features, RowsInBlocks) == (rows == 500)
        right.append((model.transduction_ == y)[few == -1].mean())
    assert abs(right[0] - right[1]) <= 0.005
    assert min(right) > 0.86


@pytest.mark.usefixtures("in_blocks")
def test_units_and_scales_are_those_of_an_array(data):
    X, _, few = data
    for factor in (1e-20, 1e20):
        scaled = X.astype(np.float64) * factor
        assert_same(fitted(ArrayBlocks(scaled, 200), few), fitted(scaled, few))


# What can be asked -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("in_blocks")
def test_new_rows_may_come_in_blocks_and_alone(data, tmp_path):
    X, _, few = data
    model = fitted(ArrayBlocks(X, 250), few)
    new = X[::-1][:333].copy()
    for rows in (ArrayBlocks(new, 100), npy(new, tmp_path), parquet(new, tmp_path)):
        assert_array_equal(model.predict(rows), model.predict(new))
        assert_array_equal(model.predict_proba(rows), model.predict_proba(new))
        assert_array_equal(model.decision_function(rows), model.decision_function(new))
    assert_array_equal(model.predict_proba(new[7:8]), model.predict_proba(new)[7:8])
    with pytest.raises(DataError, match="X has 2 features, but BlendedClassifier is expecting 6"):
        model.predict(ArrayBlocks(new[:, :2], 100))


@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize("memory_limit", ["auto", 0])
def test_predictions_come_block_by_block(data, memory_limit):
    X, _, few = data
    model = fitted(ArrayBlocks(X, 400), few, memory_limit=memory_limit)
    blocks = list(model.answers())
    assert [block.rows for block in blocks] == [range(0, 400), range(400, 800), range(800, 900)]
    assert_array_equal(np.concatenate([block.classes for block in blocks]), model.transduction_)
    assert_array_equal(np.concatenate([block.probabilities for block in blocks]), model.label_distributions_)
    p, is_reached = map(np.concatenate, zip(*model.predict_proba_all_rows(), strict=True))
    assert_array_equal(p, model.label_distributions_)
    assert_array_equal(is_reached, model.reached_)


@pytest.mark.usefixtures("in_blocks")
def test_labels_may_be_a_column_of_the_files(data, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, _, few = data
    table = {f"x{j}": X[:, j] for j in range(D)} | {"kind": pa.array(few, mask=few == -1)}
    pq.write_table(pa.table(table), tmp_path / "rows.parquet", row_group_size=200)
    model = fitted(tmp_path / "rows.parquet", "kind")
    assert_same(model, fitted(X, few))
    assert model.feature_names_in_.tolist() == [f"x{j}" for j in range(D)]


@pytest.mark.usefixtures("in_blocks")
def test_other_labels_on_rows_in_blocks_give_what_an_array_gives(data):
    """More of them, others, changed ones, and those of the fit again."""
    X, y, few = data
    whole, model = fitted(X, few), fitted(ArrayBlocks(X, 250), few, memory_limit=0)
    free, known = np.flatnonzero(few == -1), np.flatnonzero(few != -1)
    more, changed = few.copy(), few.copy()
    more[free[:4]] = y[free[:4]]
    changed[free[:30]] = y[free[:30]]
    changed[known[:3]] = -1
    for other in (more, changed, keep_labels(y, 15, random_state=9), few):
        assert_same(model.relabel(other), whole.relabel(other))
    assert_same(model, fitted(X, few))


@pytest.mark.usefixtures("in_blocks")
def test_labels_are_inspected_as_in_memory(data):
    X, _, few = data
    whole, model = fitted(X, few), fitted(ArrayBlocks(X, 250), few)
    assert suspects(model) == suspects(whole)
    rows = [700, 3, 500, 3]
    found, expected = explain(model, rows), explain(whole, rows)
    assert_array_equal(found.predicted, model.transduction_[rows])
    assert_array_equal(found.influence, expected.influence)
    assert_allclose(sum(found.evidence.values()), model.scores_[rows], rtol=1e-6, atol=1e-6)
    assert list(explain(model, X=X[:2]).evidence) == list(found.evidence)
    assert suggest(model, 5) == suggest(whole, 5)


@pytest.mark.usefixtures("in_blocks")
def test_a_model_file_of_rows_in_blocks_predicts_the_same(data, tmp_path):
    X, _, few = data
    model = fitted(ArrayBlocks(X, 250), few, memory_limit=10_000)
    arrays = Arrays()
    write_archive(tmp_path / "m.green", {"format": FORMAT, "model": write_model(model, arrays)}, arrays)
    loaded = read_model(read_archive(tmp_path / "m.green").part("model"))
    assert_array_equal(loaded.predict_proba(X[:200]), model.predict_proba(X[:200]))
    assert_array_equal(loaded.predict(ArrayBlocks(X, 111)), model.predict(X))
    assert_array_equal(loaded.class_shares_, model.class_shares_)
    assert repr(loaded.estimated_accuracy_) == repr(model.estimated_accuracy_)
    assert loaded.memory_limit == 10_000
    with pytest.raises(AttributeError, match="keeps no rows of the rows of its fit; use predict_proba"):
        loaded.answers()


# Labels and shares -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("in_blocks")
def test_one_label_per_class_has_the_documented_weights(data):
    X, y, _ = data
    few = keep_labels(y, 1, random_state=0)
    model = fitted(ArrayBlocks(X, 250), few)
    assert model.weights_["graph"] == pytest.approx(4 / 9)
    assert_same(model, fitted(X, few))


@pytest.mark.usefixtures("in_blocks")
def test_wanted_shares_are_met(data):
    X, _, few = data
    shares = [0.5, 0.3, 0.2]
    model = fitted(ArrayBlocks(X, 250), few, class_shares=shares)
    assert not model.refined_
    assert_allclose(model.class_shares_, shares, atol=0.01)
    assert_same(model, fitted(X, few, class_shares=shares, refine=False))
    with pytest.raises(ParameterError, match="refine=True needs all rows in memory, got rows in blocks; give"):
        fitted(ArrayBlocks(X, 250), few, class_shares=shares, refine=True)


def test_of_very_many_labels_some_of_each_class_are_learned(monkeypatch):
    monkeypatch.setattr("greenlabel.blend.in_blocks.MAX_LABELS", 100)
    labels = read_labels(np.repeat([0, 1, 2, -1], [600, 400, 3, 50]), 1053, "test")
    with pytest.warns(UserWarning, match=r"y holds 1,003 labels; the experts learn from an even choice of 102\."):
        chosen = learnable(labels, 4, 0)
    assert_array_equal(chosen.counts, [60, 40, 2])
    assert np.isin(chosen.rows, labels.rows).all()
    assert_array_equal(chosen.codes, np.repeat([0, 1, 2], [60, 40, 2]))


# Experts of one's own ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("in_blocks")
def test_experts_of_ones_own_see_blocks(data):
    X, _, few = data
    experts = [("spread", AnchoredGreenClassifier(50, random_state=0)), ("bayes", GaussianNB())]
    model = fitted(ArrayBlocks(X, 250), few, experts=experts)
    assert_same(model, fitted(X, few, experts=experts))
    bayes = fitted(ArrayBlocks(X, 250), few, experts=experts[1:])
    assert_same(bayes, fitted(X, few, experts=experts[1:]))
    with pytest.raises(ParameterError, match="suggest needs an anchored graph of rows in blocks, and no expert"):
        suggest(bayes, 2)


@pytest.mark.usefixtures("in_blocks")
def test_an_expert_that_needs_all_rows_in_memory_is_refused(data):
    X, _, few = data
    pattern = "expert 'g' (GreenClassifier) needs all rows in memory, got rows in blocks; give an Anchored"
    with pytest.raises(ParameterError, match=re.escape(pattern)):
        fitted(ArrayBlocks(X, 250), few, experts=[("g", GreenClassifier())])


@pytest.mark.parametrize("memory_limit", [-1, "much", None])
def test_a_memory_limit_that_is_no_number_of_bytes_is_refused(memory_limit, blobs, few):
    with pytest.raises((ParameterError, TypeError), match="memory_limit"):
        fitted(blobs[0], few, memory_limit=memory_limit)


@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize("row", [5, 850])
def test_a_bad_number_is_named_by_its_row_and_the_model_stays(row, data):
    X, _, few = data
    model = fitted(ArrayBlocks(X, 250), few)
    before = model.scores_
    bad = X.copy()
    bad[row, 2] = np.nan
    with pytest.raises(DataError, match=f"NaN at row {row}, column 2"):
        model.fit(ArrayBlocks(bad, 250), few)
    assert_array_equal(model.scores_, before)
