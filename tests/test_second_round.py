"""The second round: label, look, correct a few, label again; as often as one likes, wherever tables go in."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from greenlabel import label_table
from greenlabel.errors import LabelError, TableError
from greenlabel.tables.columns.rounds import (
    CHANGED,
    CHECKED,
    GIVEN,
    NOTHING,
    as_written,
    round_of_columns,
    source_words,
)
from greenlabel.tables.io import csv_text
from greenlabel.tables.io.files import read_table, write_table
from greenlabel.tables.labelling import predict_table
from greenlabel.tables.model_files.saved import load_model
from helpers.command_line import run

N = 90
ADDED = ["kind_source", "kind_confidence", "kind_margin", "kind_predicted"]


def first_table():
    """Three clouds; every sixth row has its kind."""
    rng = np.random.default_rng(0)
    code = np.arange(N) % 3
    return pl.DataFrame(
        {
            "row": np.arange(N),
            "x": (rng.normal(size=N) + 4 * (code == 1)).round(6),  # Excel keeps 15 digits
            "y": (rng.normal(size=N) + 4 * (code == 2)).round(6),
            "kind": [("ant", "bee", "cow")[k] if i % 6 in (0, 1, 2) and i < 60 else None for i, k in enumerate(code)],
        }
    )


@pytest.fixture(scope="module")
def before():
    return first_table()


@pytest.fixture(scope="module")
def filled(before):
    return label_table(before, "kind", method="green")[0]


def edited(frame, **changes):
    """The frame with cells (column, row) set: edited(frame, kind={3: "ant"}, kind_source={4: "checked"})."""
    for name, cells in changes.items():
        values = frame[name].to_list()
        for i, value in cells.items():
            values[i] = value
        frame = frame.with_columns(pl.Series(name, values, dtype=frame.schema[name], strict=False))
    return frame


def other(label):
    return "bee" if label != "bee" else "cow"


# Which cells are labels ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "source", "predicted", "origin"),
    [
        ("ant", "given", None, GIVEN),
        ("ant", " Given ", None, GIVEN),
        ("ant", "predicted", "ant", NOTHING),
        (" ant ", "Predicted", "ant", NOTHING),
        ("bee", "predicted", "ant", CHANGED),
        ("bee", "PREDICTED ", "ant", CHANGED),
        ("bee", None, "ant", CHANGED),
        ("bee", "checked", "ant", CHANGED),
        ("bee", "checked", None, CHECKED),
        ("ant", "Checked ", "ant", CHECKED),
        ("ant", "given", "ant", GIVEN),
        ("ant", None, "ant", GIVEN),  # the source was cleared: nobody says any more that it is a prediction
        ("ant", "nan", None, GIVEN),  # typed into an empty cell, in a program that writes nothing as nan
        ("ant", "", None, GIVEN),
        (None, "given", None, NOTHING),
        (None, "predicted", "ant", NOTHING),
        (" ", "checked", "ant", NOTHING),
        ("?", "predicted", "ant", NOTHING),
        ("ant", "predicted", None, NOTHING),  # what was filled in is not known
    ],
)
def test_a_row_tells_by_itself_whether_it_is_a_label(cell, source, predicted, origin):
    column = pl.Series("kind", [cell], dtype=pl.String)
    words = source_words(pl.Series("kind_source", [source], dtype=pl.String))
    found = round_of_columns(column, words, pl.Series([predicted], dtype=pl.String), ["?"])
    assert found.origin.tolist() == [origin]
    assert found.labels.to_list() == [cell if origin else None]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pl.Series([3]), pl.Series([3.0])),
        (pl.Series(["3"]), pl.Series([3.0])),
        (pl.Series(["3,0"]), pl.Series(["3"])),
        (pl.Series([True]), pl.Series(["TRUE"])),
        (pl.Series(["False"]), pl.Series([False])),
        (pl.Series(["a "]), pl.Series(["a"], dtype=pl.Categorical)),
        (pl.Series([None, ""], dtype=pl.String), pl.Series([float("nan"), None])),
    ],
)
def test_what_spreadsheets_do_to_a_value_is_no_change(one, other):
    assert as_written(one).equals(as_written(other))


@pytest.mark.parametrize(("one", "other"), [("007", "7"), ("Ant", "ant"), ("1.5", "1"), ("-1", "1")])
def test_what_people_do_to_a_value_is_one(one, other):
    assert not as_written(pl.Series([one])).equals(as_written(pl.Series([other])))


# In memory ----------------------------------------------------------------------------------------------------------


def test_without_a_correction_the_second_round_is_the_first(filled):
    again, result = label_table(filled, "kind", method="green")
    assert again.equals(filled)
    assert again.columns == ["row", "x", "y", "kind", *ADDED]
    assert not {column.name for column in result.columns} & set(ADDED)
    assert result.frame.columns == ["row", "x", "y", "kind"]
    assert result.summary()["label_sources"] == {"given": 30, "checked": 0, "changed_by_hand": 0}


def test_corrections_are_labels_and_stay_labels(before, filled):
    rows = [i for i in range(N) if filled["kind_source"][i] == "predicted"]
    changed, checked, emptied, cleared = rows[:4]
    wrong = other(filled["kind"][changed])
    hand = edited(
        filled,
        kind={changed: wrong, emptied: None, 0: None},
        kind_source={checked: "Checked ", cleared: None},
    )
    again, result = label_table(hand, "kind", method="green")
    assert again["kind"][changed] == wrong
    assert again["kind_source"][changed] == again["kind_source"][checked] == "checked"
    assert again["kind_source"][cleared] == "given"
    assert again["kind_source"][emptied] == again["kind_source"][0] == "predicted"
    assert again["kind_confidence"][changed] == 1
    assert again["kind_predicted"][changed] is None
    assert result.summary()["label_sources"] == {"given": 30, "checked": 1, "changed_by_hand": 1}
    assert "90 rows: 32 labels (30 given, 1 checked, 1 changed by hand), 58 filled in" in str(result)

    labels = {changed: wrong, checked: hand["kind"][checked], cleared: hand["kind"][cleared], 0: None}
    afresh, _ = label_table(edited(before, kind=labels), "kind", method="green")
    columns = ["kind", "kind_confidence", "kind_margin", "kind_predicted"]
    assert again.select(columns).equals(afresh.select(columns)), "as if the labels had been there from the start"

    third, result = label_table(again, "kind", method="green")
    assert third.equals(again)
    assert result.summary()["label_sources"] == {"given": 30, "checked": 2, "changed_by_hand": 0}


def test_rows_may_be_sorted_deleted_and_added(filled):
    i = filled["kind_source"].to_list().index("predicted")
    wrong = other(filled["kind"][i])
    hand = edited(filled, kind={i: wrong}).sort("x").filter(pl.col("row") % 7 != 6)
    new = pl.DataFrame({"row": [1000], "x": [0.0], "y": [0.0], "kind": ["dog"]})
    hand = pl.concat([hand, new], how="diagonal")
    again, result = label_table(hand, "kind", method="green")
    assert again.filter(pl.col("row") == i)["kind"].item() == wrong
    assert again.filter(pl.col("row") == 1000)["kind_source"].item() == "given"
    assert result.classes == ["ant", "bee", "cow", "dog"]
    assert result.summary()["label_sources"]["changed_by_hand"] == 1


def test_pandas_comes_back_as_pandas(before, filled):
    frame, _ = label_table(before.to_pandas(), "kind", method="green")
    i = frame["kind_source"].tolist().index("predicted")
    frame.loc[i, "kind"] = other(frame["kind"][i])
    frame = frame.set_index(np.arange(N) + 500)
    again, result = label_table(frame, "kind", method="green")
    assert list(again.columns) == list(frame.columns)
    assert again.index.equals(frame.index)
    assert again["kind"].iloc[i] == frame["kind"].iloc[i]
    assert again["kind_source"].iloc[i] == "checked"
    assert result.summary()["label_sources"] == {"given": 30, "checked": 0, "changed_by_hand": 1}
    third, _ = label_table(again, "kind", method="green")
    pd.testing.assert_frame_equal(third, again)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["Int64", "float64", "object", "category"])
def test_numbers_as_classes_survive_the_gaps_of_pandas(before, dtype):
    """Where a column of whole numbers has gaps, pandas makes fractions of them: 2 becomes 2.0."""
    codes = before["kind"].replace_strict({"ant": 0, "bee": 1, "cow": 2}, return_dtype=pl.Int64).to_pandas()
    frame = before.to_pandas().assign(kind=codes.astype("Int64").astype(dtype))
    filled, _ = label_table(frame, "kind", method="green")
    again, result = label_table(filled, "kind", method="green")
    assert result.summary()["label_sources"] == {"given": 30, "checked": 0, "changed_by_hand": 0}
    pd.testing.assert_frame_equal(again, filled)


def test_names_with_levels_are_recognised(before):
    frame = before.to_pandas()[["x", "y", "kind"]]
    frame.columns = pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("kind", "")])
    target = str(("kind", ""))
    filled, _ = label_table(frame, target, method="green")
    again, result = label_table(filled, target, method="green")
    pd.testing.assert_frame_equal(again, filled)
    assert [column.name for column in result.columns] == ["('a', 'x')", "('a', 'y')"]


def test_unsure_rows_may_be_filled_by_hand(before):
    partly, first = label_table(before, "kind", method="green", only_confident=0.99)
    i = partly["kind"].to_list().index(None)
    assert first.summary()["rows_left_empty"] == partly["kind"].null_count()
    again, result = label_table(edited(partly, kind={i: "ant"}), "kind", method="green")
    assert again["kind_source"][i] == "given"
    assert again["kind"].null_count() == 0
    assert result.summary()["label_sources"] == {"given": 31, "checked": 0, "changed_by_hand": 0}


def test_added_columns_are_no_features_even_when_asked_for(filled):
    with pytest.raises(TableError, match=r"'kind_\*' matches no column"):
        label_table(filled, "kind", features="kind_*")


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (
            pl.Series("kind_source", ["given"] * 4 + ["guessed"] + ["given"] * 85),
            "says 'guessed' in row 5; write given",
        ),
        (pl.Series("kind_source", [1] * N), "says 1 in row 1"),
        (pl.Series("kind_source", [[1]] * N), r"holds List\(Int64\) values"),
        (pl.Series("kind_predicted", [[1]] * N), r"'kind_predicted' already, and it holds List\(Int64\) values"),
    ],
)
def test_a_source_that_says_something_else_is_refused(filled, column, reason):
    with pytest.raises(TableError, match=reason):
        label_table(filled.with_columns(column), "kind")


def test_columns_without_a_source_are_somebody_elses(before):
    for name in ADDED[1:]:
        with pytest.raises(TableError, match=f"column '{name}' already, which greenlabel adds"):
            label_table(before.with_columns(pl.lit(1).alias(name)), "kind")


def test_what_cannot_be_told_is_filled_anew_with_a_warning(filled):
    again, result = label_table(filled.drop("kind_predicted"), "kind", method="green")
    assert again.equals(filled)
    assert "60 cells marked predicted have no value in 'kind_predicted'" in result.warnings[0]
    assert "Write checked into 'kind_source'" in result.warnings[0]
    assert not any("kind_predicted" in warning for warning in label_table(filled, "kind", method="green")[1].warnings)


def test_a_full_table_of_checked_labels_has_nothing_to_fill(filled):
    with pytest.raises(TableError, match="Every row of 'kind' has a label already"):
        label_table(filled.with_columns(kind_source=pl.lit("checked")), "kind")


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        ([0, 1], pl.Int32),
        ([False, True], pl.Boolean),
        (["x", "y"], pl.Categorical),
        (["x", "y"], pl.Enum(["y", "x", "z"])),
        ([1.0, 2.0], pl.Float64),
        ([1, 2], pl.Decimal(10, 2)),
    ],
)
def test_every_type_of_target_goes_through_two_rounds(labels, dtype):
    x = np.concatenate([np.linspace(0, 1, 20), np.linspace(9, 10, 20)])
    kind = pl.Series("kind", [labels[0]] + [None] * 19 + [labels[1]] + [None] * 19, dtype=dtype)
    filled, _ = label_table(pl.DataFrame({"x": x, "kind": kind}), "kind", method="green")
    again, result = label_table(filled, "kind", method="green")
    assert again.equals(filled)
    assert again.schema == filled.schema
    assert result.summary()["label_sources"]["given"] == 2
    hand = edited(filled, kind={5: labels[1]})
    again, result = label_table(hand, "kind", method="green")
    assert again["kind"][5] == hand["kind"][5] == labels[1]
    assert result.summary()["label_sources"]["changed_by_hand"] == 1


def test_a_table_that_lost_all_its_labels_is_refused(filled):
    for nothing in (pl.lit(None), pl.lit(None, dtype=pl.String), pl.lit("")):
        with pytest.raises(LabelError, match="holds no label in 90 rows"):
            label_table(filled.with_columns(kind=nothing), "kind")


# New rows -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model_file(before, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "m.green"
    label_table(before, "kind", method="anchored")[1].save(path)
    return path


def test_new_rows_that_went_through_before_are_read_the_same_way(before, model_file):
    saved = load_model(model_file)
    first, _ = predict_table(saved, before.drop("kind"))
    again, facts = predict_table(saved, first)
    assert again.equals(first)
    assert facts["labels_given"] == 0
    wrong = other(first["kind"][4])
    third, facts = predict_table(saved, edited(first, kind={4: wrong, 6: None}, kind_source={5: "checked"}))
    assert third["kind"][4] == wrong
    assert third["kind_source"][4:7].to_list() == ["checked", "checked", "predicted"]
    assert third["kind"][6] == first["kind"][6]
    assert facts["label_sources"] == {"given": 0, "checked": 1, "changed_by_hand": 1}
    _, facts = predict_table(saved, first.drop("kind_predicted"))
    assert "90 cells marked predicted" in facts["warnings"][0]


def test_a_source_without_its_column_is_somebody_elses(before, model_file):
    new = before.drop("kind").with_columns(kind_source=pl.lit("given"))
    with pytest.raises(TableError, match="has a column 'kind_source' already, which greenlabel adds"):
        predict_table(load_model(model_file), new)


# Files and blocks ---------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch, before):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(csv_text, "BLOCK_BYTES", 700)
    before.write_csv("t.csv")
    return tmp_path


def corrected(path, to):
    """The table as a person gives it back: a cell changed, one checked, one emptied, the rows in another order."""
    frame = read_table(Path(path))
    rows = [i for i in range(N) if frame["kind_source"][i] == "predicted"]
    frame = edited(
        frame,
        kind={rows[0]: other(frame["kind"][rows[0]]), rows[2]: None},
        kind_source={rows[1]: " CHECKED"},
    )
    frame = frame.reverse()
    if Path(to).suffix:
        write_table(Path(to), frame)
    else:
        Path(to).mkdir()
        for i in range(3):
            frame[30 * i : 30 * i + 30].write_parquet(Path(to) / f"p{i}.parquet", row_group_size=12)


@pytest.mark.slow
@pytest.mark.parametrize("extension", ["csv", "tsv", "xlsx", "jsonl", "parquet"])
def test_every_format_goes_through_two_rounds(folder, extension, capsys):
    words = ["-t", "kind", "--method", "green", "--json"]
    assert run("label", "t.csv", *words, "-o", f"one.{extension}") == 0
    assert run("label", f"one.{extension}", *words, "-o", "same.csv") == 0
    assert pl.read_csv("same.csv").equals(pl.read_csv(first(folder, words)))
    capsys.readouterr()
    corrected(f"one.{extension}", f"hand.{extension}")
    assert run("label", f"hand.{extension}", *words, "-o", "two.csv") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["label_sources"] == {"given": 30, "checked": 1, "changed_by_hand": 1}
    two = pl.read_csv("two.csv")
    assert two.columns == ["row", "x", "y", "kind", *ADDED]
    assert two["kind_source"].to_list().count("checked") == 2


@pytest.mark.parametrize("separator", [",", ";"])
def test_another_program_may_save_the_table(folder, capsys, separator):
    """pandas writes 2.0 where a column of whole numbers has gaps, as kind_predicted has; others write semicolons."""
    words = ["-t", "kind", "--method", "green", "--json"]
    codes = pl.col("kind").replace_strict({"ant": 1, "bee": 2, "cow": 30}, return_dtype=pl.Int64)
    first_table().with_columns(codes).write_csv("t.csv")
    assert run("label", "t.csv", *words, "-o", "one.csv") == 0
    frame = pd.read_csv("one.csv")
    assert frame["kind_predicted"].dtype == float
    predicted = frame.index[frame["kind_source"] == "predicted"]
    frame.loc[predicted[0], "kind"] = 1 if frame.loc[predicted[0], "kind"] != 1 else 2
    frame.loc[predicted[1], "kind"] = None  # and so kind is written as 2.0 too
    frame.loc[predicted[2], "kind_source"] = None
    frame.sample(frac=1, random_state=0).to_csv("hand.csv", index=False, sep=separator)
    capsys.readouterr()
    assert run("label", "hand.csv", *words, "-o", "two.csv") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["label_sources"] == {"given": 31, "checked": 0, "changed_by_hand": 1}
    assert len(facts["labels_given"]) == 3


def first(folder, words):
    """The first round as CSV."""
    assert run("label", "t.csv", *words, "-o", "first.csv", "--force") == 0
    return "first.csv"


@pytest.mark.slow
def test_blocks_give_the_second_round_of_memory(folder, capsys):
    words = ["-t", "kind", "--method", "anchored", "--json"]
    assert run("label", "t.csv", *words, "-o", "one.csv") == 0
    corrected("one.csv", "hand.csv")
    capsys.readouterr()
    facts = []
    for name, more in [("a.csv", []), ("b.csv", ["--memory-limit", "0"])]:
        assert run("label", "hand.csv", *words, *more, "-o", name, "--report", f"{name}.html") == 0
        facts.append(json.loads(capsys.readouterr().out))
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert facts[1]["stream"]["blocks"] > 3
    assert facts[0]["label_sources"] == facts[1]["label_sources"] == {"given": 30, "checked": 1, "changed_by_hand": 1}
    assert facts[0]["columns"] == facts[1]["columns"]
    assert "kind_margin" not in Path("b.csv.html").read_text()


@pytest.mark.slow
def test_parts_of_parquet_give_the_second_round_of_memory(folder):
    words = ["-t", "kind", "--method", "anchored", "-q"]
    assert run("label", "t.csv", *words, "-o", "one.parquet") == 0
    corrected("one.parquet", "hand")
    corrected("one.parquet", "hand.parquet")
    assert run("label", "hand", *words, "--memory-limit", "0", "-o", "out/") == 0
    assert run("label", "hand.parquet", *words, "-o", "out.parquet") == 0
    assert pl.read_parquet("out/*.parquet").equals(pl.read_parquet("out.parquet"))


def test_predict_in_blocks_reads_the_second_round_too(folder, model_file, capsys):
    pl.read_csv("t.csv").drop("kind").write_csv("new.csv")
    assert run("predict", model_file, "new.csv", "-o", "one.csv", "-q") == 0
    corrected("one.csv", "hand.csv")
    facts = []
    for name, more in [("a.csv", []), ("b.csv", ["--memory-limit", "0"])]:
        assert run("predict", model_file, "hand.csv", *more, "-o", name, "--json") == 0
        facts.append(json.loads(capsys.readouterr().out))
    assert facts[1].pop("stream")["blocks"] > 3
    for found in facts:
        assert found.pop("seconds")["reading"] > 0
    assert facts[0] == facts[1]
    assert facts[0]["label_sources"] == {"given": 0, "checked": 1, "changed_by_hand": 1}
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert run("predict", model_file, "hand.csv", "-o", "c.csv") == 0
    assert "90 rows: 2 had a label (0 given, 1 checked, 1 changed by hand), 88 filled in" in capsys.readouterr().out


@pytest.mark.parametrize("more", [[], ["--memory-limit", "0"]])
def test_an_unknown_word_is_one_sentence_with_its_row(folder, capsys, more):
    assert run("label", "t.csv", "-t", "kind", "--method", "anchored", "-o", "one.csv", "-q") == 0
    frame = pl.read_csv("one.csv", infer_schema=False)
    edited(frame, kind_source={70: "maybe"}).write_csv("hand.csv")
    assert run("label", "hand.csv", "-t", "kind", "--method", "anchored", *more, "-o", "two.csv") == 1
    said = capsys.readouterr().err
    assert "'kind_source' already, and it says 'maybe' in row 71; write given, checked or predicted" in said
    assert said.count("\n") == 1
    assert not Path("two.csv").exists()
