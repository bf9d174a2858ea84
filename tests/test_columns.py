"""Columns -> features: each kind, each scale, and new rows."""

import datetime

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from greenlabel.errors import ParameterError, TableError
from greenlabel.tables.columns.features import TableFeatures, choose_columns, stacked

N = 80


@pytest.fixture
def table(rng):
    words = np.array(["red", "fast", "car", "green", "tree", "leaf", "blue", "sea", "wave", "gold"])
    return pl.DataFrame(
        {
            "row": range(N),
            "size": rng.normal(size=N),
            "price": 1000 * rng.normal(size=N),
            "color": rng.choice(["red", "blue", "green"], N),
            "note": [" ".join(rng.choice(words, 5)) for _ in range(N)],
            "when": [datetime.date(2020, 1, 1) + datetime.timedelta(int(i)) for i in rng.integers(0, 900, N)],
            "empty": [None] * N,
            "same": ["x"] * N,
            "key": [f"u{i:05d}" for i in rng.permutation(N)],
        }
    )


def kinds(steps):
    return {column.name: column.kind for column in steps.columns}


def test_every_column_becomes_what_it_is_or_says_why_not(table):
    steps = TableFeatures()
    X = steps.fit_transform(table, table.columns)
    assert kinds(steps) == {
        "row": "dropped",
        "size": "number",
        "price": "number",
        "color": "category",
        "note": "text",
        "when": "date",
        "empty": "dropped",
        "same": "dropped",
        "key": "dropped",
    }
    why = {column.name: column.why for column in steps.columns if column.why}
    assert why["row"] == "numbers the rows"
    assert why["empty"] == "is empty"
    assert why["same"] == "is constant"
    assert "names the rows" in why["key"]
    assert X.shape == (N, sum(column.n_features for column in steps.columns))
    assert np.isfinite(X).all()


def test_a_column_that_was_asked_for_is_not_dropped(table):
    steps = TableFeatures()
    steps.fit_transform(table, ["row", "key"], {"row", "key"})
    assert "dropped" not in kinds(steps).values()


def test_columns_in_different_units_say_as_much_as_each_other(table):
    X = TableFeatures().fit_transform(table, ["size", "price"])
    assert_allclose(X.std(axis=0), 1, atol=0.1)


def test_columns_in_one_unit_keep_their_geometry(rng):
    P = rng.normal(size=(N, 5)) * [1, 2, 1, 3, 1]
    frame = pl.DataFrame(P, schema=[f"p{i}" for i in range(5)])
    X = TableFeatures().fit_transform(frame, frame.columns)
    ratio = np.linalg.norm(X[1:] - X[0], axis=1) / np.linalg.norm(P[1:] - P[0], axis=1)
    assert_allclose(ratio, ratio[0], rtol=1e-5)


def test_the_scale_can_be_chosen(table):
    assert_allclose(TableFeatures("none").fit_transform(table, ["size", "price"])[:, 1], table["price"], rtol=1e-6)
    X = TableFeatures("standard").fit_transform(table, ["size", "price"])
    assert_allclose(X.mean(axis=0), 0, atol=1e-6)
    assert_allclose(X.std(axis=0), 1, rtol=1e-5)
    with pytest.raises(ParameterError, match="scale='robust' is unknown; choose one of 'auto', 'none', 'standard'"):
        TableFeatures("robust")


def test_an_outlier_does_not_flatten_its_column(rng):
    sizes = rng.normal(size=N)
    frame = pl.DataFrame({"a": np.append(sizes[1:], 1e6), "b": 1000 * rng.normal(size=N)})
    X = TableFeatures().fit_transform(frame, ["a", "b"])
    assert X[:-1, 0].std() > 0.3


def test_a_gap_becomes_the_median():
    frame = pl.DataFrame({"a": ["1", "2", "NA", "9", "3", "4"] * 5, "b": [float(i) for i in range(30)]})
    X = TableFeatures("none").fit_transform(frame, ["a", "b"], {"b"})
    assert X[2, 0] == 3


def test_one_embedding_alone_is_left_as_it_is(rng):
    V = rng.normal(size=(N, 6)).astype(np.float32)
    X = TableFeatures().fit_transform(pl.DataFrame({"v": V}), ["v"])
    assert X.dtype == np.float32
    assert_array_equal(X, V)


def test_embeddings_beside_other_columns_count_as_much_as_all_of_them(rng, table):
    V = 50 * rng.normal(size=(N, 6))
    X = TableFeatures().fit_transform(table.with_columns(v=V), ["size", "price", "note", "when", "v"])
    variance = X.var(axis=0)
    assert_allclose(variance[:6].sum(), variance[6:].sum(), rtol=1e-3)
    assert_allclose(variance[8:38].sum(), 1, rtol=1e-3)  # a text counts as one number
    assert_allclose(variance[38:].sum(), 1, rtol=1e-3)  # and so does a date


def test_new_rows_get_the_features_of_the_old_ones(table, rng):
    table = table.with_columns(v=rng.normal(size=(N, 3)))
    steps = TableFeatures()
    X = steps.fit_transform(table, table.columns)
    again, unseen = steps.transform(table.sample(20, seed=0, shuffle=False).select(reversed(table.columns)))
    rows = table.with_row_index().sample(20, seed=0, shuffle=False)["index"].to_numpy()
    assert_allclose(again, X[rows], atol=1e-6)
    assert unseen == {}


def test_new_rows_from_a_text_file_are_understood(table):
    steps = TableFeatures()
    X = steps.fit_transform(table, table.columns)
    text = table.select(pl.all().cast(pl.String))
    assert_allclose(steps.transform(text)[0], X, atol=1e-5)


def test_values_never_seen_are_counted(table):
    steps = TableFeatures()
    steps.fit_transform(table, ["color", "size"])
    new = table.head(10).with_columns(color=pl.lit("pink"))
    X, unseen = steps.transform(new)
    assert unseen == {"color": 10}
    assert np.isfinite(X).all()


def test_new_rows_that_do_not_fit_are_refused(table, rng):
    table = table.with_columns(v=rng.normal(size=(N, 3)))
    steps = TableFeatures()
    steps.fit_transform(table, ["size", "color", "v"])
    for new, reason in [
        (table.drop("size"), "lacks 1 of the columns that the model needs: 'size'"),
        (table.with_columns(size=pl.lit("abc")), "'size' holds 'abc' in row 1, the model learned numbers"),
        (table.with_columns(v=rng.normal(size=(N, 4))), "holds vectors of 4 numbers, the model needs 3"),
        (table.with_columns(v=pl.lit(1)), "holds no vectors"),
    ]:
        with pytest.raises(TableError, match=reason):
            steps.transform(new)


def test_vectors_of_different_lengths_and_with_gaps_are_refused():
    for values, reason in [
        ([[1.0, 2.0], [1.0]], "a vector of 1 numbers in row 2, where 2 are needed"),
        ([[1.0, 2.0], None], "no vector in row 2"),
        ([[1.0, 2.0], [1.0, None]], "a gap or infinity in the vector of row 2"),
        ([[1.0, 2.0], [1.0, float("inf")]], "a gap or infinity in the vector of row 2"),
    ]:
        with pytest.raises(TableError, match=reason):
            stacked(pl.Series("v", values))


def test_a_table_without_a_usable_column_is_refused(table):
    with pytest.raises(TableError, match=r"No column can serve as a feature \('empty' is empty; 'same' is constant\)"):
        TableFeatures().fit_transform(table, ["empty", "same"])


def test_a_table_of_text_alone_is_usable(table):
    assert TableFeatures().fit_transform(table, ["note"]).shape == (N, 30)


def test_columns_are_chosen_by_names_and_patterns():
    names = ["id", "p1", "p2", "note", "y"]
    assert choose_columns(names, "y", None, None, None) == ["id", "p1", "p2", "note"]
    assert choose_columns(names, "y", ["p*"], None, None) == ["p1", "p2"]
    assert choose_columns(names, "y", None, ["note"], ["id"]) == ["p1", "p2"]
    with pytest.raises(TableError, match=r"--drop 'nota' matches no column; did you mean 'note'\?"):
        choose_columns(names, "y", None, ["nota"], None)


def test_the_same_seed_gives_the_same_features(table):
    first, second = (TableFeatures(seed=3).fit_transform(table, table.columns) for _ in range(2))
    assert_array_equal(first, second)


def test_dates_that_are_all_different_are_dates_and_no_names():
    days = [str(datetime.date(2020, 1, 1) + datetime.timedelta(i)) for i in range(N)]
    stamps = [f"{day}T10:00:00" for day in days]
    steps = TableFeatures()
    steps.fit_transform(pl.DataFrame({"day": days, "stamp": stamps}), ["day", "stamp"])
    assert kinds(steps) == {"day": "date", "stamp": "date"}


def test_text_of_a_language_without_blanks_is_text():
    steps = TableFeatures()
    steps.fit_transform(pl.DataFrame({"note": [f"今日は良い天気です第{i}回" for i in range(N)]}), ["note"])
    assert kinds(steps) == {"note": "text"}


def test_raw_bytes_are_dropped():
    steps = TableFeatures()
    steps.fit_transform(
        pl.DataFrame({"raw": [bytes([i]) for i in range(N)], "size": range(N, 0, -1)}), ["raw", "size"], {"size"}
    )
    assert kinds(steps) == {"raw": "dropped", "size": "number"}


@pytest.mark.parametrize("as_text", [True, False])
def test_dates_that_are_none_are_counted(table, as_text):
    old = table.select(pl.col("when").cast(pl.String) if as_text else "when", "size")
    steps = TableFeatures()
    steps.fit_transform(old, old.columns)
    for words, count in ([["no date", "never"], 2], [["2020-05-06", "never"], 1], [["2020-05-06", None], 0]):
        X, unseen = steps.transform(pl.DataFrame({"when": words, "size": [0.0, 1.0]}))
        assert unseen == ({"when": count} if count else {})
        assert np.isfinite(X).all()


EMPTY = pl.Series([None, None])


@pytest.mark.parametrize("name", ["size", "color", "note", "when"])
def test_a_column_that_is_all_gaps_needs_no_type(table, name):
    names = ["size", "color", "note", "when"]
    for old in (table, table.with_columns(pl.col("when").cast(pl.String))):
        steps = TableFeatures()
        steps.fit_transform(old, names)
        X, unseen = steps.transform(old.head(2).with_columns(EMPTY.alias(name)))
        assert np.isfinite(X).all()
        assert unseen == {}


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("size", [[1.0], [2.0]]),
        ("size", [datetime.date(2020, 1, 1)] * 2),
        ("color", [[1.0], [2.0]]),
        ("color", [b"\xff"] * 2),
        ("note", [{"x": 1}, {"x": 2}]),
        ("when", [5, 6]),
    ],
)
def test_a_column_of_another_kind_is_refused_by_name(table, name, values):
    names = ["size", "color", "note", "when"]
    steps = TableFeatures()
    steps.fit_transform(table, names)
    with pytest.raises(TableError, match=f"Column '{name}' holds .* the model learned"):
        steps.transform(table.head(2).with_columns(pl.Series(name, values)))


@pytest.mark.slow
def test_features_of_text_are_the_same_on_any_number_of_threads(rng):
    words = np.array(["red", "fast", "car", "green", "tree", "leaf", "blue", "sea", "wave", "gold"])
    frame = pl.DataFrame({"note": [" ".join(rng.choice(words, 5)) for _ in range(3000)]})
    results = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            steps = TableFeatures()
            results += [steps.fit_transform(frame, ["note"]), steps.transform(frame)[0]]
    for result in results[1:]:
        assert_array_equal(result, results[0])


def test_rows_in_a_block_are_named_by_their_number_in_the_whole(table):
    steps = TableFeatures()
    steps.fit_transform(table, ["size", "color"])
    block = pl.DataFrame({"size": ["1", "large", None], "color": ["red", "pink", None]})
    with pytest.raises(TableError, match="'large' in row 502"):
        steps.transform(block, range(500, 503))
    X, unseen = steps.transform(block, range(500, 503), strict=False)
    gap, _ = steps.transform(block.with_columns(size=pl.Series(["1", None, None])))
    assert_array_equal(X, gap)
    assert unseen == steps.unseen(block) == {"size": 1, "color": 1}
