"""Rows in blocks: every source gives the predictions of the array in memory, to the last bit, whatever the blocks."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from greenlabel.blocks.parquet import ParquetBlocks
from greenlabel.blocks.rows import ArrayBlocks, Joined, NpyBlocks
from greenlabel.blocks.sources import open_rows
from greenlabel.datasets import keep_labels
from greenlabel.graph import neighbors
from greenlabel.graph.mixing import GramSum, Near
from helpers import reference
from helpers.block_rows import D, M, N, assert_same, fitted, fitted_in_memory, images, labelled_images, npy, parquet

pytestmark = pytest.mark.usefixtures("fast_search")


@pytest.fixture(scope="module")
def data():
    return labelled_images()


@pytest.fixture(scope="module")
def expected():
    return fitted_in_memory()


def embeddings(X, folder):
    """All numbers of a row in one column of lists."""
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])
    pq.write_table(pa.table({"embedding": lists}), folder / "rows.parquet", row_group_size=999)
    return folder / "rows.parquet"


SOURCES = {
    "array in blocks of 1,000": lambda X, folder: ArrayBlocks(X, 1000),
    "array in blocks of 7": lambda X, folder: ArrayBlocks(X[:, :], 7),
    "array in one block": lambda X, folder: ArrayBlocks(X, 65_536),
    "memory map": lambda X, folder: np.load(npy(X, folder), mmap_mode="r"),
    "path of a .npy file": npy,
    "blocks of a .npy file": lambda X, folder: NpyBlocks(npy(X, folder), 1234),
    "Parquet folder": parquet,
    "Parquet pattern": lambda X, folder: parquet(X, folder) / "part-*.parquet",
    "Parquet with row groups of 64": lambda X, folder: parquet(X, folder, 64, 1) / "part-0.parquet",
    "Parquet with a column of lists": embeddings,
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_bits(source, data, expected, tmp_path):
    X, y = data
    assert_same(fitted(SOURCES[source](X, tmp_path), y), expected)


@pytest.mark.slow
@pytest.mark.parametrize("source", ["array in blocks of 1,000", "path of a .npy file", "Parquet folder"])
def test_neighbours_that_do_not_fit_are_computed_again_with_the_same_bits(source, data, expected, tmp_path):
    X, y = data
    model = fitted(SOURCES[source](X, tmp_path), y, memory_limit=1000)
    searches = []
    nearest = neighbors.Search.nearest
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbors.Search, "nearest", lambda *args: searches.append(1) or nearest(*args))
        assert_same(model, expected)
        assert_same(model.relabel(y), expected)
    assert searches  # else they had been kept after all


def test_one_thread_and_two_give_the_same_bits(data, expected, tmp_path):
    X, y = data
    for threads in (1, 2):
        with threadpool_limits(threads):
            assert_same(fitted(NpyBlocks(npy(X, tmp_path), 1000), y), expected)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.int16, bool])
def test_every_type_of_numbers_gives_the_same_bits_in_blocks(dtype, data, tmp_path):
    X, y = images(dtype)
    y = keep_labels(y, 10, random_state=0)
    assert_same(fitted(NpyBlocks(npy(X, tmp_path), 1000), y), fitted(X, y))


def test_few_columns_and_features_of_any_size_give_the_same_bits_in_blocks(moons, tmp_path):
    X, y = moons
    few = keep_labels(y, 3, random_state=0)
    for scale in (1.0, 1e-20, 1e20):
        whole = fitted(scale * X, few, n_anchors=30)
        assert_same(fitted(ArrayBlocks(scale * X, 50), few, n_anchors=30), whole)
        assert_allclose(whole.scores_, fitted(X, few, n_anchors=30).scores_, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("anchors", ["kmeans", "random", "given"])
def test_all_kinds_of_anchors_are_those_of_the_array(anchors, data, tmp_path):
    X, y = data
    anchors = X[:M].astype(float) if anchors == "given" else anchors
    assert_same(fitted(npy(X, tmp_path), y, anchors=anchors), fitted(X, y, anchors=anchors))


@pytest.mark.slow
def test_sparse_blocks_give_the_same_bits(data):
    X, y = data
    S = sp.csr_array(np.where(X > 160, X, 0).astype(np.float64))
    assert_same(fitted(ArrayBlocks(S, 1000), y), fitted(S, y))


def test_scores_are_those_of_the_dense_formula(data):
    X, y = (part[:400] for part in data)
    y = np.where(np.arange(400) < 40, images()[1][:400], -1)
    model = fitted(ArrayBlocks(X.astype(np.float64), 90), y, n_anchors=40)
    Z = reference.mixing_matrix(X, model.anchors_, 5)
    Y = np.eye(4)[y] * (y >= 0)[:, None]
    F = reference.green(Z / Z.sum(axis=0) @ Z.T, model.mu_) @ Y
    assert_allclose(model.scores_, F, atol=1e-9 * abs(F).max())


# What can be asked -------------------------------------------------------------------------------------------------


def test_new_rows_may_come_in_blocks(data, expected, tmp_path):
    X = data[0][::-1][:999].copy()
    for rows in (ArrayBlocks(X, 100), npy(X, tmp_path), parquet(X, tmp_path)):
        assert_array_equal(expected.predict(rows), expected.predict(X))
        assert_array_equal(expected.predict_proba(rows), expected.predict_proba(X))
        assert_array_equal(expected.decision_function(rows), expected.decision_function(X))


@pytest.mark.parametrize("memory_limit", ["auto", 0])
def test_predictions_come_block_by_block(data, expected, memory_limit):
    X, y = data
    blocks = list(fitted(ArrayBlocks(X, 1000), y, memory_limit=memory_limit).answers())
    assert [block.rows for block in blocks] == [range(0, 1000), range(1000, 2000), range(2000, 3000)]
    assert_array_equal(np.concatenate([block.classes for block in blocks]), expected.transduction_)
    assert_array_equal(np.concatenate([block.probabilities for block in blocks]), expected.label_distributions_)


def test_labels_may_be_a_column_of_the_files(data, expected, tmp_path):
    X, y = data
    for i, rows in enumerate(np.array_split(np.arange(N), 2)):
        columns = {f"x{j}": X[rows, j] for j in range(D)}
        half = y[rows]
        numbers = pa.array(half, mask=half == -1)
        text = pa.array([None if label < 0 else f"class {label}" for label in half])
        pq.write_table(pa.table({**columns, "number": numbers}), tmp_path / f"{i}.parquet")
        (tmp_path / "text").mkdir(exist_ok=True)
        pq.write_table(pa.table({"text": text, **columns}), tmp_path / "text" / f"{i}.parquet")
    texts = fitted(tmp_path / "text", "text")
    assert texts.transduction_.tolist() == [f"class {label}" for label in expected.transduction_]
    for path in (tmp_path / "text").iterdir():
        path.unlink()
    model = fitted(str(tmp_path), "number")
    assert_same(model, expected)
    assert model.feature_names_in_.tolist() == [f"x{j}" for j in range(D)]


@pytest.mark.slow
def test_a_step_makes_features_of_tables_block_by_block(data, expected, tmp_path):
    """What a command for tables does: features fitted on a sample, then rows in blocks."""
    X, y = data
    table = pa.table({f"x{j}": X[:, j] for j in range(D)}).append_column("name", pa.array(["a"] * N))
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=500)
    source = ParquetBlocks(tmp_path / "rows.parquet")
    (_, sample), *_ = source.take(np.array([3, 7, 1800]))
    assert sample.column("x5").to_pylist() == X[[3, 7], 5].tolist()
    for features in (
        lambda rows, table: table.drop(["name"]).to_pandas().to_numpy(),
        lambda rows, table: pl.from_arrow(table).drop("name"),
        lambda rows, table: table.to_pandas().drop(columns="name"),
    ):
        assert_same(fitted(source.through(features), y), expected)


def test_rows_can_be_taken_from_blocks_of_frames():
    frame = pd.DataFrame({"a": np.arange(10), "b": list("abcdefghij")})
    for table in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
        source = ArrayBlocks(np.arange(10)[:, None], 4).through(
            lambda rows, X, table=table: table[rows[0] : rows[-1] + 1]
        )
        pieces = source.keep().take(np.array([1, 5, 9]))
        assert [len(piece) for _, piece in pieces] == [1, 1, 1]
        assert [numbers.tolist() for numbers, _ in pieces] == [[1], [5], [9]]


def test_sums_and_maps_are_general():
    X = np.arange(20.0).reshape(10, 2)
    blocks = ArrayBlocks(X, 3)
    assert blocks.sum(lambda rows, block: block.sum()) == X.sum()
    assert list(blocks.map(lambda rows, block: (rows[0], len(block)))) == [(0, 3), (3, 3), (6, 3), (9, 1)]
    twice = Joined([blocks, blocks.through(lambda rows, block: block * 10).keep()])
    assert twice.n == 20
    assert twice.sum(lambda rows, block: block.sum()) == 11 * X.sum()
    assert [rows[0] for rows in twice.map(lambda rows, block: rows)] == [0, 3, 6, 9, 10, 13, 16, 19]
    (_, first), (numbers, second) = twice.take(np.array([2, 12]))
    assert (first[0, 0], second[0, 0], numbers.tolist()) == (4, 40, [12])


def test_a_source_is_opened_by_what_it_is(data, tmp_path):
    assert open_rows(data[0])[0] is None
    assert isinstance(open_rows(npy(data[0], tmp_path))[0], NpyBlocks)


# Sums in whole numbers ---------------------------------------------------------------------------------------------


def test_the_gram_matrix_is_that_of_z(rng):
    dist2 = np.sort(rng.random((500, 5)), axis=1)
    dist2[:9] = 1.0  # all equally far
    index = np.argsort(rng.random((500, 30)), axis=1)[:, :5]
    near = Near.found(dist2, index, 30)
    Z = near.matrix(30).toarray()
    assert_allclose(Z.sum(axis=1), 1)
    assert_allclose(GramSum.of(30, near).gram(), Z.T @ Z, atol=1e-13)


def test_sums_do_not_depend_on_their_order(rng, monkeypatch):
    monkeypatch.setattr("greenlabel.graph.mixing.ROWS_AT_ONCE", 50)
    near = Near.found(np.sort(rng.random((400, 4)), axis=1), np.argsort(rng.random((400, 20)), axis=1)[:, :4], 20)
    whole = GramSum.of(20, near)
    parts = [GramSum.of(20, near.pick(part)) for part in np.array_split(rng.permutation(400), 17)]
    total = sum(parts[1:], start=parts[0])
    assert total.n == 400
    assert_array_equal(total.gram(), whole.gram())


def test_anchors_with_a_row_in_common_never_look_as_if_they_had_none():
    near = Near(np.array([[0, 1]]), np.array([[0.0, 1 - 1e-15, 1.0]]))
    assert GramSum.of(2, near).gram()[0, 1] > 0


def test_distances_are_kept_without_loss_in_few_bytes(rng):
    index = np.zeros((8, 3), int)
    exact = np.sort(rng.random((8, 3)), axis=1)
    short = exact.astype(np.float32).astype(np.float64)
    assert Near.found(short, index, 5).dist2.dtype == np.float32
    for dist2 in (short, exact, 1e300 * exact):
        near = Near.found(dist2, index, 5)
        assert_array_equal(near.dist2.astype(np.float64), dist2)
    assert near.index.dtype == np.uint16


def test_the_room_of_blocks_offers_its_public_names():
    import greenlabel.blocks as room

    assert {name: getattr(room, name).__name__ for name in room.__all__} == {name: name for name in room.__all__}
    with pytest.raises(ImportError, match="magic"):
        from greenlabel.blocks import magic  # noqa: F401
