"""Sources that are corrupt, changed, odd or missing: one sentence each, and the model stays as it was."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from greenlabel import AnchoredGreenClassifier
from greenlabel.blocks.parquet import AsMatrix, ParquetBlocks
from greenlabel.blocks.rows import ArrayBlocks, NpyBlocks
from greenlabel.errors import DataError, LabelError, ParameterError


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = np.where(np.arange(800) < 30, np.arange(800) % 3, -1)
    return rng.normal(size=(800, 4)) + np.arange(800)[:, None] % 3, y


@pytest.fixture
def model():
    return AnchoredGreenClassifier(20, random_state=0)


def tables(X, folder, files=4, group=100, **columns):
    for i, rows in enumerate(np.array_split(np.arange(len(X)), files)):
        numbers = {f"x{j}": X[rows, j] for j in range(X.shape[1])}
        more = {name: values[rows] for name, values in columns.items()}
        pq.write_table(pa.table({**numbers, **more}), folder / f"part-{i}.parquet", row_group_size=group)
    return folder


def refused(model, X, y, error, message):
    """With a model that is fitted before, and is as it was after."""
    before = dict(vars(model))
    with pytest.raises(error, match=message) as caught:
        model.fit(X, y)
    assert vars(model).keys() == before.keys()
    assert "\n" not in str(caught.value)


def test_nan_is_named_by_its_row_in_the_whole(model, data, tmp_path):
    X, y = data
    for row, kind, value in [(765, "NaN", np.nan), (3, "infinity", -np.inf)]:
        bad = X.copy()
        bad[row, 2] = value
        np.save(tmp_path / "rows.npy", bad)
        message = f"X holds {kind} at row {row}, column 2 .1 value of NaN or infinity in its block.; fill them"
        for source in (ArrayBlocks(bad, 100), tmp_path / "rows.npy", NpyBlocks(tmp_path / "rows.npy", 100)):
            refused(model, source, y, DataError, message)


def test_nan_is_found_in_rows_that_are_not_in_the_sample(data):
    X, y = data
    bad = np.vstack([X] * 20)
    bad[765, 2] = np.nan
    model = AnchoredGreenClassifier(6, anchors="random", random_state=0)
    refused(model, ArrayBlocks(bad, 100), np.tile(y, 20), DataError, "NaN at row 765, column 2")


def test_an_empty_cell_of_a_table_is_nan(model, data, tmp_path):
    X, y = data
    column = pa.array(np.arange(800), mask=np.arange(800) == 512)
    pq.write_table(pa.table({"a": column, "b": X[:, 0]}), tmp_path / "rows.parquet", row_group_size=100)
    refused(model, tmp_path / "rows.parquet", y, DataError, "NaN at row 512, column 0")


@pytest.mark.parametrize("kind", [pa.float32(), pa.int64()])
def test_an_empty_cell_of_lists_is_nan(model, data, tmp_path, kind):
    X, y = data
    lists = [None if i == 512 else row for i, row in enumerate(X.astype(int).tolist())]
    table = pa.table({"a": X[:, 0], "v": pa.array(lists, pa.list_(kind, 4))})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=100)
    refused(model, tmp_path / "rows.parquet", y, DataError, r"NaN at row 512, column 1 \(4 values of NaN")
    source = ParquetBlocks(tmp_path / "rows.parquet").through(AsMatrix("rows"))
    ((_, rows),) = source.take(np.arange(510, 514))
    assert np.isnan(rows[2, 1:]).all()
    np.testing.assert_array_equal(rows[[0, 1, 3], 1:], X.astype(int)[[510, 511, 513]])


def test_lists_of_any_length_are_told_to_be_of_a_fixed_size(model, data, tmp_path):
    X, y = data
    pq.write_table(pa.table({"v": X.tolist()}), tmp_path / "rows.parquet")
    message = r"column 'v' of .* holds lists of any length \(list<.*\); store it as lists of a fixed size"
    refused(model, tmp_path / "rows.parquet", y, DataError, message)


def test_files_without_a_feature_are_refused(model, data, tmp_path):
    X, y = data
    np.save(tmp_path / "rows.npy", X[:, :0])
    pq.write_table(pa.table({"y": y}), tmp_path / "rows.parquet")
    message = "Found rows with 0 features, a minimum of 1 is required; give more data."
    refused(model, tmp_path / "rows.npy", y, DataError, message)
    refused(model, tmp_path / "rows.parquet", "y", DataError, message)


def test_a_block_of_another_width_is_named(model, data):
    X, y = data
    blocks = ArrayBlocks(X, 100).through(lambda rows, block: block[:, :3] if rows[0] == 700 else block)
    refused(model, blocks, y, DataError, "rows 700 to 799 has 3 columns, the others 4 columns; give the same columns")


def test_a_block_that_loses_rows_is_named(model, data):
    X, y = data
    blocks = ArrayBlocks(X, 100).through(lambda rows, block: block[:90] if rows[0] == 700 else block)
    refused(model, blocks, y, DataError, "rows 700 to 799 has 90 rows; give back as many rows")


def test_a_block_of_text_is_refused(model, data):
    X, y = data
    refused(model, ArrayBlocks(X.astype(str), 100), y, DataError, "X holds values of type .*convert them to numbers")


def test_files_with_other_columns_are_named(model, data, tmp_path):
    X, y = data
    tables(X, tmp_path)
    pq.write_table(pa.table({"x0": X[:200, 0], "z": X[:200, 1]}), tmp_path / "part-2.parquet")
    refused(model, tmp_path, y, DataError, r"part-2.parquet has 2 columns, .*part-0.parquet 4, and they differ in x1")
    tables(X[:, ::-1], tmp_path)
    pq.write_table(pa.table({f"x{j}": X[:200, j] for j in (1, 0, 2, 3)}), tmp_path / "part-2.parquet")
    refused(model, tmp_path, y, DataError, "they are in another order")


def test_a_column_of_text_is_named(model, data, tmp_path):
    X, y = data
    tables(X, tmp_path, name=np.array(["a"] * 800))
    refused(model, tmp_path, y, DataError, r"column 'name' of .* holds values of type .*string; encode it as numbers")


@pytest.mark.parametrize("keep", [0, 4, 500, -20])
def test_a_corrupt_parquet_file_is_named(model, data, tmp_path, keep):
    X, y = data
    corrupt = tables(X, tmp_path) / "part-2.parquet"
    corrupt.write_bytes(corrupt.read_bytes()[:keep])
    refused(model, tmp_path, y, DataError, r"part-2.parquet is corrupt, or no Parquet file \(.*\); write it again")


def test_a_parquet_file_with_a_hole_is_named(model, data, tmp_path):
    """Its end is whole, so that only reading shows it."""
    X, y = data
    corrupt = tables(X, tmp_path) / "part-2.parquet"
    content = bytearray(corrupt.read_bytes())
    content[4:2000] = bytes(1996)
    corrupt.write_bytes(content)
    refused(model, tmp_path, y, DataError, r"part-2.parquet is corrupt, or no Parquet file")


def test_a_corrupt_npy_file_is_named(model, data, tmp_path):
    X, y = data
    np.save(tmp_path / "rows.npy", X)
    whole = (tmp_path / "rows.npy").read_bytes()
    for content in (whole[:1000], whole[:20], b"", b"text", b"\x93NUMPY\x01\x00\x10\x00{'descr': ((((\n  "):
        (tmp_path / "rows.npy").write_bytes(content)
        refused(
            model,
            tmp_path / "rows.npy",
            y,
            DataError,
            r"rows.npy is corrupt, or no .npy file of numbers \((?!.*pickle)",
        )


@pytest.mark.parametrize("change", ["add", "remove", "rewrite"])
def test_a_folder_that_changes_under_the_run_is_noticed(model, data, tmp_path, change):
    X, y = data
    source = ParquetBlocks(tables(X, tmp_path))

    def meddle(rows, table):
        if rows[0] == 700 and change == "add":
            (tmp_path / "part-9.parquet").write_bytes((tmp_path / "part-0.parquet").read_bytes())
        if rows[0] == 0 and change == "remove":
            (tmp_path / "part-3.parquet").unlink(missing_ok=True)
        if rows[0] == 0 and change == "rewrite":
            tables(X[:, :], tmp_path, group=50)
        return np.column_stack([column.to_numpy() for column in table.columns])

    message = {
        "add": "files were added to .* or taken away while it was read; start again",
        "remove": "part-3.parquet was removed while it was read",
        "rewrite": "part-.*.parquet was changed while it was read",
    }
    anchors = X[:20]
    refused(model.set_params(anchors=anchors), source.through(meddle), y, DataError, message[change])


def test_a_file_that_changes_under_the_run_is_noticed(model, data, tmp_path):
    X, y = data
    np.save(tmp_path / "rows.npy", X)

    def meddle(rows, block):
        if rows[0] == 700:
            np.save(tmp_path / "rows.npy", X[:500])
        return np.array(block)

    refused(model, NpyBlocks(tmp_path / "rows.npy", 100).through(meddle), y, DataError, "rows.npy was changed while")


def test_labels_for_rows_that_do_not_exist_are_refused(model, data, tmp_path):
    X, y = data
    np.save(tmp_path / "rows.npy", X)
    for source in (tmp_path / "rows.npy", tables(X, tmp_path)):
        refused(model, source, np.append(y, 1), LabelError, "y has 801 entries, X has 800 rows; give one label per row")
    refused(model, tmp_path, "label", LabelError, "has no column 'label'; it has x0, x1, x2, x3")
    refused(model, tmp_path / "rows.npy", "label", LabelError, "names a column, which only Parquet files have")


def test_labels_are_never_features(model, data, tmp_path):
    X, y = data
    tables(X, tmp_path, label=y)
    refused(model, ParquetBlocks(tmp_path), "label", LabelError, "'label' are among the features; open .* without=")
    assert model.fit(ParquetBlocks(tmp_path, without="label"), "label").n_features_in_ == 4


def test_fewer_rows_than_anchors_are_refused(data, tmp_path):
    X, y = data
    np.save(tmp_path / "rows.npy", X[:50])
    model = AnchoredGreenClassifier(60, random_state=0)
    refused(model, tmp_path / "rows.npy", y[:50], ParameterError, "n_anchors=60 needs at least 60 rows, got 50")


def test_paths_that_lead_nowhere_are_refused(model, data, tmp_path):
    y = data[1]
    (tmp_path / "empty").mkdir()
    for path, message in [
        (tmp_path / "rows.npy", "rows.npy cannot be read .No such file or directory.; check the path"),
        (tmp_path / "rows.parquet", "rows.parquet names no Parquet file"),
        (tmp_path / "empty", "empty names no Parquet file; give a file, a folder of .parquet files, or a pattern"),
        (tmp_path / "rows.csv", "rows.csv is of no known kind; give a .npy, .parquet or .zarr path"),
        (tmp_path / "rows.zarr", "rows.zarr cannot be read as a zarr array"),
    ]:
        refused(model, path, y, DataError, message)
    np.save(tmp_path / "line.npy", np.arange(5))
    refused(model, tmp_path / "line.npy", y, DataError, r"holds an array of shape \(5,\); give one row of numbers")


def test_a_refused_source_leaves_a_fitted_model_as_it_was(model, data, tmp_path):
    X, y = data
    before = model.fit(X, y).scores_.copy()
    bad = X.copy()
    bad[700] = np.nan
    with pytest.raises(DataError, match="NaN at row 700"):
        model.fit(ArrayBlocks(bad, 100), y)
    assert_array_equal(model.scores_, before)
    assert_array_equal(model.predict(X), model.predict(ArrayBlocks(X, 100)))
    with pytest.raises(DataError, match="NaN at row 700"):
        model.predict(ArrayBlocks(bad, 100))
    with pytest.raises(DataError, match="X has 3 features, but AnchoredGreenClassifier is expecting 4"):
        model.predict(ArrayBlocks(X[:, :3], 100))


def test_columns_of_other_names_are_refused_for_new_rows(model, data, tmp_path):
    X, y = data
    model.fit(tables(X, tmp_path), y)
    table = pa.table({f"z{j}": X[:, j] for j in range(4)})
    pq.write_table(table, tmp_path / "new.pq")
    with pytest.raises(DataError, match="feature names of X are not those of the fit; give the columns"):
        model.predict(tmp_path / "new.pq")


@pytest.mark.parametrize("memory_limit", [-1, "much", None, np.nan])
def test_a_memory_limit_that_is_none_is_refused(data, memory_limit):
    with pytest.raises(ParameterError, match=r"memory_limit=.* bytes, or 'auto'"):
        AnchoredGreenClassifier(20, memory_limit=memory_limit).fit(*data)


@pytest.mark.parametrize("path", ["rows.npy", Path("rows.npy")], ids=["text", "path"])
def test_a_path_is_refused_where_rows_must_be_in_memory(KnnModel, path):
    with pytest.raises(DataError, match=r"X is a path, 'rows.npy', and .* takes rows in memory here; load them"):
        KnnModel().fit(path, [0, 1, -1])
