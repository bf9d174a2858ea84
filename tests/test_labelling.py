"""A half-empty column in, the filled frame out: in Python, for pandas and polars."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_iris

import greenlabel
from greenlabel import label_table
from greenlabel.errors import LabelError, ParameterError, TableError
from greenlabel.tables.labelling import METHODS, predict_table
from greenlabel.tables.model_files.saved import load_model

ADDED = ["species_source", "species_confidence", "species_margin", "species_predicted"]


@pytest.fixture(scope="module")
def iris():
    """Flowers with every seventh species known, and the truth."""
    data = load_iris(as_frame=True)
    truth = data.target_names[data.target]
    frame = data.data.assign(place=np.tile(["wood", "field", "road"], 50), species=truth)
    frame.loc[np.arange(150) % 7 != 0, "species"] = None
    return frame, truth


@pytest.fixture(params=["pandas", "polars", "pandas with an index"])
def flowers(request, iris):
    frame = iris[0]
    if request.param == "polars":
        return pl.from_pandas(frame)
    return frame.set_index(np.arange(500, 650)) if "index" in request.param else frame


def test_the_frame_comes_back_filled_and_as_what_it_was(flowers, iris):
    filled, result = label_table(flowers, "species")
    assert type(filled) is type(flowers)
    assert list(filled.columns) == [*flowers.columns, *ADDED]
    given = np.arange(150) % 7 == 0
    assert (np.asarray(filled["species"])[given] == iris[1][given]).all()
    assert (np.asarray(filled["species"]) == iris[1]).mean() > 0.85
    assert np.array_equal(np.asarray(filled["species_source"]) == "given", given)
    assert (np.asarray(filled["species_confidence"])[given] == 1).all()
    for name in flowers.columns[:-1]:
        assert list(filled[name]) == list(flowers[name])
    if isinstance(flowers, pd.DataFrame):
        assert filled.index.equals(flowers.index)
        assert flowers["species"].isna().sum() == (~given).sum(), "the frame that came is not changed"
    assert result.summary()["rows"] == 150


@pytest.mark.slow
def test_pandas_and_polars_get_the_same_answer(iris):
    first, _ = label_table(iris[0], "species")
    second, _ = label_table(pl.from_pandas(iris[0]), "species")
    assert first["species"].tolist() == second["species"].to_list()
    assert first["species_confidence"].tolist() == second["species_confidence"].to_list()


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_every_method_labels_every_row_and_saves(iris, method, tmp_path):
    filled, result = label_table(iris[0], "species", method=method)
    assert filled["species"].notna().all()
    result.save(tmp_path / "model.green")
    again, facts = predict_table(load_model(tmp_path / "model.green"), iris[0].drop(columns="species"))
    model = result.model
    assert again["species"].tolist() == [result.classes[i] for i in model.predict(result.X)]
    np.testing.assert_allclose(
        again["species_confidence"], model.predict_proba(result.X).max(axis=1), atol=5.1e-5
    )  # rounded to four digits
    assert facts["rows"] == 150
    assert facts["labels_given"] == 0
    assert sum(facts["labels_predicted"].values()) == 150


def test_a_model_of_an_approximate_search_answers_the_same_after_saving(iris, tmp_path, monkeypatch):
    monkeypatch.setattr("greenlabel.graph.neighbors.EXACT_OPERATIONS", 0)
    _, result = label_table(iris[0], "species", method="green")
    result.save(tmp_path / "model.green")
    again, _ = predict_table(load_model(tmp_path / "model.green"), iris[0])
    expected = [result.classes[i] for i in result.model.predict(result.X)]
    given = iris[0]["species"].notna().to_numpy()
    assert np.array_equal(again["species"][~given], np.array(expected)[~given])


def test_labels_that_new_rows_carry_are_kept(iris, tmp_path):
    _, result = label_table(iris[0], "species")
    result.save(tmp_path / "model.green")
    new = iris[0].assign(species=[None] * 149 + ["unheard of"])
    filled, facts = predict_table(load_model(tmp_path / "model.green"), new)
    assert filled["species"].iloc[-1] == "unheard of"
    assert filled["species_source"].tolist() == ["predicted"] * 149 + ["given"]
    assert facts["labels_given"] == 1


@pytest.mark.slow
def test_rows_of_low_confidence_can_be_left_empty(iris):
    everything, _ = label_table(iris[0], "species")
    filled, result = label_table(iris[0], "species", only_confident=0.8)
    is_uncertain = (everything["species_confidence"] < 0.8) & (everything["species_source"] == "predicted")
    assert 0 < is_uncertain.sum() < 128
    assert filled["species"].isna().equals(is_uncertain)
    assert filled["species_source"].isna().equals(is_uncertain)
    assert filled["species_confidence"].equals(everything["species_confidence"])
    assert result.summary()["rows_left_empty"] == is_uncertain.sum()


def test_shares_of_the_classes_can_be_asked_for(iris):
    shares = {"setosa": 0.5, "versicolor": 0.3, "virginica": 0.2}
    filled, _ = label_table(iris[0], "species", class_shares=shares)
    counts = filled["species"].value_counts()
    assert all(abs(counts[name] / 150 - share) < 0.03 for name, share in shares.items())
    for wrong, reason in [
        ({"setosa": 0.5, "rose": 0.5}, "name the class 'rose', which no label has; the classes are 'setosa'"),
        ("half", "class_shares='half' is unknown"),
    ]:
        with pytest.raises(ParameterError, match=reason):
            label_table(iris[0], "species", class_shares=wrong)
    with pytest.raises(ParameterError, match="needs method='auto'"):
        label_table(iris[0], "species", class_shares="labels", method="green")


def test_a_blend_tells_its_experts(iris):
    _, result = label_table(iris[0], "species")
    facts = result.summary()
    assert set(facts["experts"]) == {*result.model.weights_, "blend"}
    assert facts["estimated_accuracy"]["share"] == result.model.estimated_accuracy_
    assert "experts" in str(result)


@pytest.mark.slow
def test_a_value_that_means_no_label_is_filled_or_emptied(iris):
    frame = iris[0].fillna({"species": "?"})
    filled, _ = label_table(frame, "species", unlabelled="?")
    assert "?" not in set(filled["species"])
    filled, _ = label_table(frame, "species", unlabelled=["?"], only_confident=0.8)
    assert "?" not in set(filled["species"].dropna())


def test_rows_nobody_reaches_get_the_share_of_the_labels(rng):
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(30, 2)) + 1000])
    kind = ["a", "a", "a", "b"] + [None] * 86
    filled, result = label_table(pl.DataFrame({"x": X[:, 0], "y": X[:, 1], "kind": kind}), "kind", method="green")
    assert result.summary()["rows_not_reached"] == 30
    assert filled["kind"][60:].to_list() == ["a"] * 30
    assert filled["kind_confidence"][60:].to_list() == [0.75] * 30


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        ([0, 1], pl.Int32),
        ([-1, 1], pl.Int64),
        ([False, True], pl.Boolean),
        (["x", "y"], pl.Categorical),
        ([1.0, 2.0], pl.Float64),
    ],
)
def test_the_target_keeps_its_type(rng, labels, dtype):
    x = np.concatenate([rng.normal(size=20), rng.normal(size=20) + 9])
    kind = pl.Series("kind", [labels[0]] + [None] * 19 + [labels[1]] + [None] * 19, dtype=dtype)
    filled, _ = label_table(pl.DataFrame({"x": x, "kind": kind}), "kind")
    assert filled["kind"].dtype == dtype
    assert filled["kind"].to_list() == [labels[0]] * 20 + [labels[1]] * 20


def test_vectors_beside_the_frame_are_features(rng):
    V = np.concatenate([rng.normal(size=(30, 4)), rng.normal(size=(30, 4)) + 5])
    frame = pl.DataFrame({"kind": ["a"] + [None] * 29 + ["b"] + [None] * 29})
    filled, _ = label_table(frame, "kind", vectors=V)
    assert filled.columns == ["kind", "kind_source", "kind_confidence", "kind_margin", "kind_predicted"]
    assert filled["kind"].to_list() == ["a"] * 30 + ["b"] * 30
    with pytest.raises(TableError, match="vectors have 59 rows, the table has 60"):
        label_table(frame, "kind", vectors=V[1:])


def test_labels_are_validated_where_another_label_of_their_class_reaches_them(iris):
    _, result = label_table(iris[0], "species")
    validation = result.validation
    assert np.array_equal(validation.rows, np.flatnonzero(np.arange(150) % 7 == 0))
    share, low, high = result.estimated_accuracy
    assert low < share <= high <= 1
    assert result.confusion().sum() == len(validation.rows)
    assert sum(part["rows"] for part in result.reliability()) == len(validation.rows)
    assert len(result.contradicted()) == (~validation.is_right).sum()


def test_with_one_label_per_class_nothing_is_estimated(rng):
    x = np.concatenate([rng.normal(size=20), rng.normal(size=20) + 9])
    _, result = label_table(pl.DataFrame({"x": x, "kind": ["a"] + [None] * 38 + ["b"]}), "kind")
    assert result.estimated_accuracy is None
    assert result.summary()["estimated_accuracy"] is None


def test_a_wrong_label_is_contradicted_by_the_others(rng):
    x = np.concatenate([rng.normal(size=40), rng.normal(size=40) + 20])
    kind = [None] * 80
    kind[:10], kind[40:50] = ["a"] * 10, ["b"] * 10
    kind[45] = "a"
    _, result = label_table(pl.DataFrame({"x": x, "kind": kind}), "kind")
    first = result.contradicted()[0]
    assert (first["row"], first["given"], first["others_say"]) == (45, "a", "b")


def test_the_least_confident_rows_come_first(iris):
    _, result = label_table(iris[0], "species")
    rows = result.least_confident(10)
    assert not result.is_given[rows].any()
    assert (np.diff(result.confidence[rows]) >= 0).all()
    assert result.confidence[rows].max() <= np.delete(result.confidence, rows).min() + 1e-12


@pytest.mark.slow
def test_a_result_shows_itself(iris, tmp_path):
    _, result = label_table(iris[0], "species")
    assert "150" in str(result)
    assert "150" in result._repr_html_()
    json.dumps(result.summary())
    result.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size > 1000


def test_stages_are_announced_and_timed(iris):
    heard = []
    _, result = label_table(iris[0], "species", announce=heard.append)
    assert heard == ["features", "experts", "labels", "check"]
    assert list(result.seconds) == [*heard, "other"]
    heard.clear()
    label_table(iris[0], "species", method="green", announce=heard.append)
    assert heard == ["features", "graph", "labels", "check"]


@pytest.mark.parametrize(
    ("change", "options", "error", "reason"),
    [
        ({}, {"target": "specie"}, TableError, r"no column 'specie'; did you mean 'species'\?"),
        ({"species": "setosa"}, {}, LabelError, "single class"),
        ({"species": None}, {}, LabelError, "no label in 150 rows"),
        ({"species": ["a", "b"] * 75}, {}, TableError, "has a label already"),
        ({"species": [1, "a", None] * 50}, {}, LabelError, "mixes numbers and text"),
        ({"species_margin": 1}, {}, TableError, "column 'species_margin' already"),
        ({}, {"features": "nothing*"}, TableError, "matches no column"),
        ({}, {"features": "place", "drop": "place"}, TableError, "No column can serve"),
        ({}, {"method": "magic"}, ParameterError, "method='magic' is unknown"),
        ({}, {"only_confident": 2}, ParameterError, "above 1"),
    ],
)
def test_a_table_that_cannot_be_labelled_is_refused(iris, change, options, error, reason):
    with pytest.raises(error, match=reason):
        label_table(iris[0].assign(**change), **{"target": "species", **options})


def test_what_is_no_frame_is_refused():
    with pytest.raises(TableError, match="a table is a pandas or polars frame, got list"):
        label_table([[1, 2]], "a")


def test_columns_of_the_same_name_are_refused():
    with pytest.raises(TableError, match="more than one column named 'x'"):
        label_table(pd.DataFrame([[1, 2, "a"]], columns=["x", "x", "y"]), "y")


# Model files ------------------------------------------------------------------------------------------------------


@pytest.fixture
def model_file(iris, tmp_path):
    path = tmp_path / "model.green"
    label_table(iris[0], "species")[1].save(path)
    return path


def test_the_name_is_there_without_importing_the_libraries_of_tables():
    assert "label_table" in greenlabel.__all__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        greenlabel.nothing  # noqa: B018


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["Int64", "category", "object", "string"])
def test_a_pandas_target_keeps_its_type(iris, dtype):
    codes = pd.Series(np.arange(150) // 50).where(iris[0]["species"].notna())
    frame = iris[0].assign(species=codes.astype("Int64").astype(dtype))
    before = frame.copy()
    filled, _ = label_table(frame, "species")
    assert filled["species"].dtype == frame["species"].dtype
    assert filled["species"].notna().all()
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.slow
@pytest.mark.parametrize("target", [1, "1"])
def test_names_that_are_numbers_are_kept(iris, target):
    frame = pd.DataFrame({0: iris[0].iloc[:, 2], 1: iris[0]["species"]})
    filled, _ = label_table(frame, target, features=[0])
    assert list(filled.columns) == [0, 1, "1_source", "1_confidence", "1_margin", "1_predicted"]
    assert filled[1].notna().all()


@pytest.mark.slow
def test_names_with_levels_are_kept(iris):
    frame = pd.DataFrame({("a", "b"): iris[0].iloc[:, 2], ("y", ""): iris[0]["species"]})
    filled, _ = label_table(frame, str(("y", "")))
    assert filled[("y", "")].notna().all()
    assert filled.columns.nlevels == 2


def test_columns_of_odd_pandas_types_are_understood(iris):
    frame = iris[0].assign(
        mixed=pd.Series([1, "x", pd.NA] * 50, dtype=object),
        month=pd.period_range("2020", periods=150, freq="M"),
        range=pd.cut(iris[0].iloc[:, 0], 3),
    )
    _, result = label_table(frame, "species")
    kinds = {column.name: column.kind for column in result.columns}
    assert {name: kinds[name] for name in ("mixed", "month", "range")} == {
        "mixed": "category",
        "month": "date",
        "range": "category",
    }


def test_what_means_no_label_may_be_a_number_and_is_saved(rng, tmp_path):
    X = rng.normal(size=40) + 9 * (np.arange(40) % 2)
    frame = pl.DataFrame({"x": X, "y": np.where(np.arange(40) < 10, np.arange(40) % 2, -1)})
    filled, result = label_table(frame, "y", unlabelled=-1)
    assert set(filled["y"]) == {0, 1}
    result.save(tmp_path / "m.green")
    again, facts = predict_table(load_model(tmp_path / "m.green"), frame)
    assert set(again["y"]) == {0, 1}
    assert facts["labels_given"] == 10


def test_vectors_beside_new_rows(iris, tmp_path):
    V = iris[0].iloc[:, :4].to_numpy()
    frame = iris[0][["species"]]
    _, result = label_table(frame, "species", vectors=V)
    result.save(tmp_path / "m.green")
    again, _ = predict_table(load_model(tmp_path / "m.green"), frame, vectors=V)
    assert list(again.columns) == ["species", *ADDED]
    with pytest.raises(TableError, match="give them by --vectors"):
        predict_table(load_model(tmp_path / "m.green"), frame)


@pytest.mark.parametrize("seed", [-1, "x", 1.5])
def test_a_seed_that_is_none_is_refused(iris, seed):
    with pytest.raises(ParameterError, match="random_state"):
        label_table(iris[0], "species", random_state=seed)


def test_decimal_labels_are_saved(rng, tmp_path):
    labels = pl.Series([0, 1] * 5 + [None] * 10).cast(pl.Decimal(10, 2))
    filled, result = label_table(pl.DataFrame({"x": rng.normal(size=20), "y": labels}), "y")
    assert filled["y"].dtype == labels.dtype
    result.save(tmp_path / "m.green")
    assert load_model(tmp_path / "m.green").classes == [0, 1]


def test_few_rows_are_a_warning_in_the_result(recwarn):
    _, result = label_table(pl.DataFrame({"x": [1.0, 2.0, 3.0], "y": ["u", "v", None]}), "y", method="green")
    assert any("too many for 3 rows" in warning for warning in result.warnings)
    assert not recwarn.list


@pytest.mark.slow
@pytest.mark.parametrize(
    "target",
    [
        pl.Series([None] * 3, dtype=pl.Float64),
        pl.Series([None] * 3, dtype=pl.Enum(["q"])),
        pl.Series([None] * 3),
        pl.Series(["", " ", None]),
    ],
)
def test_an_empty_target_of_new_rows_takes_the_labels_whatever_its_type(iris, model_file, target):
    new = pl.from_pandas(iris[0]).head(3).with_columns(target.alias("species"))
    filled, _ = predict_table(load_model(model_file), new)
    assert filled["species"].to_list() == ["setosa"] * 3


@pytest.mark.slow
@pytest.mark.parametrize("values", [[1, 2, 3], [[1.0]] * 3])
def test_a_target_of_new_rows_that_cannot_hold_the_classes_is_refused(iris, model_file, values):
    new = pl.from_pandas(iris[0]).head(3).with_columns(pl.Series("species", values))
    with pytest.raises(LabelError, match="Column 'species' holds"):
        predict_table(load_model(model_file), new)
