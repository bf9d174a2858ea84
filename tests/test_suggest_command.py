"""`greenlabel suggest` and `suggest_table`: rows of a table to label next, from no label on."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

from greenlabel import suggest
from greenlabel.errors import ParameterError, TableError
from greenlabel.tables import suggest_table
from greenlabel.tables.io.files import read_table
from helpers.command_line import refusal, run

SAID = ["rank", "row", "reason", "covers", "between"]
SIZES = {"ant": 60, "bee": 40, "cat": 20}
KINDS = [kind for kind, size in SIZES.items() for _ in range(size)]


def islands(kinds=None):
    """Three groups of rows far apart; ``kinds`` are the labels by their rows."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(3), list(SIZES.values()))
    X = 50.0 * group[:, None] + rng.normal(size=(len(group), 2))
    labels = pl.Series("kind", [(kinds or {}).get(i) for i in range(len(group))], dtype=pl.String)
    return pl.DataFrame({"x": X[:, 0], "y": X[:, 1]}).with_columns(labels)


def kinds_of(rows):
    return [KINDS[row - 1] for row in rows]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with tables of no label, of one class, of three, and one that is full."""
    monkeypatch.chdir(tmp_path)
    islands().write_csv("none.csv")
    islands({0: "ant", 5: "ant"}).write_csv("one.csv")
    islands({0: "ant", 61: "bee", 62: "bee"}).write_csv("two.csv")
    islands(dict(enumerate(KINDS))).write_csv("full.csv")
    return tmp_path


# What comes


def test_every_group_comes_once_before_any_label_is_there():
    table, facts = suggest_table(islands(), "kind", 3)
    assert table.columns == [*SAID, "x", "y", "kind"]
    assert table["rank"].to_list() == [1, 2, 3]
    assert kinds_of(table["row"]) == ["ant", "bee", "cat"]  # larger groups first
    assert table["covers"].to_list() == [60, 40, 20]
    assert table["reason"][0] == "stands for about 60 rows"
    assert table["between"].null_count() == 3
    assert facts["labels_given"] == {}


def test_rows_are_those_of_the_table_with_their_own_columns():
    frame = islands({0: "ant", 61: "bee"})
    table, facts = suggest_table(frame, "kind", 5)
    assert table["x"].to_list() == [frame["x"][row - 1] for row in table["row"]]
    assert [one["row"] for one in facts["suggestions"]] == table["row"].to_list()


def test_one_class_counts_as_seen():
    table, facts = suggest_table(islands({0: "ant", 5: "ant"}), "kind", 2)
    assert kinds_of(table["row"]) == ["bee", "cat"]
    assert facts["labels_given"] == {"ant": 2}


def test_with_two_classes_the_model_says_between_which_it_is():
    table, facts = suggest_table(islands({0: "ant", 61: "bee", 62: "bee"}), "kind", 6)
    assert kinds_of(table["row"])[0] == "cat"  # of which no label tells
    assert set(table["between"]) <= {"ant or bee", "bee or ant"}
    assert facts["suggestions"][0]["between"] in (["ant", "bee"], ["bee", "ant"])
    assert facts["labels_given"] == {"ant": 1, "bee": 2}
    assert not {1, 62, 63} & set(table["row"])


def test_without_labels_it_is_what_suggest_says_of_the_features():
    frame = islands()
    table, _ = suggest_table(frame, "kind", 7, scale="none", random_state=3)
    found = suggest(frame.select("x", "y").to_numpy(), 7, random_state=3)
    assert table["row"].to_list() == [one.row + 1 for one in found]


def test_no_more_rows_come_than_have_no_label():
    table, _ = suggest_table(islands({0: "ant", 5: "ant"}), "kind", 1000)
    assert sorted(table["row"]) == [i for i in range(1, 121) if i not in (1, 6)]


def test_names_that_the_table_has_already_are_kept_apart():
    frame = islands().with_columns(row=pl.lit("mine"), suggested_row=pl.lit("mine too"))
    table, _ = suggest_table(frame, "kind", 2)
    assert table.columns[:3] == ["rank", "suggested_suggested_row", "reason"]
    assert table["row"].to_list() == ["mine"] * 2


@pytest.mark.parametrize("words", [[], ["--memory-limit", "0"]], ids=["at once", "in blocks"])
def test_columns_that_filling_would_add_are_in_nobodys_way(folder, capsys, words):
    islands().with_columns(kind_confidence=pl.lit(0.5), kind_predicted=pl.lit("mine")).write_csv("own.csv")
    assert run("suggest", "own.csv", "-t", "kind", "-n", "2", "-o", "next.csv", "-q", *words) == 0
    assert pl.read_csv("next.csv")["kind_predicted"].to_list() == ["mine"] * 2
    assert run("label", "own.csv", "-t", "kind", "-o", "out.csv") == 1
    assert "has a column 'kind_confidence' already" in capsys.readouterr().err


def test_rows_of_a_matrix_have_no_label_yet(folder, capsys):
    np.save("rows.npy", islands().select("x", "y").to_numpy())
    assert run("suggest", "rows.npy", "-t", "kind", "-n", "3", "-o", "next.parquet", "-q") == 0
    found = pl.read_parquet("next.parquet")
    assert found.columns == [*SAID, "vectors", "kind"]
    assert kinds_of(found["row"]) == ["ant", "bee", "cat"]
    assert run("suggest", "rows.npy", "-t", "vectors") == 1
    assert "Column 'vectors' holds" in capsys.readouterr().err


def test_pandas_stays_pandas_and_keeps_its_index():
    frame = islands().to_pandas().set_index(np.arange(120) + 1000)
    table, _ = suggest_table(frame, "kind", 3)
    assert isinstance(table, pd.DataFrame)
    assert list(table.columns) == [*SAID, "x", "y", "kind"]
    assert (table.index == table["row"] + 999).all()
    levels = frame.set_axis(pd.MultiIndex.from_tuples([("a", "x"), ("a", "y"), ("kind", "")]), axis=1)
    table, _ = suggest_table(levels, "('kind', '')", 3)
    assert table["row"].tolist() == suggest_table(frame, "kind", 3)[0]["row"].tolist()


def test_cells_that_were_filled_in_are_no_labels():
    filled = islands(dict(enumerate(KINDS))).with_columns(
        kind_source=pl.Series(["given"] * 2 + ["predicted"] * 118), kind_predicted=pl.Series([None] * 2 + KINDS[2:])
    )
    table, facts = suggest_table(filled, "kind", 2)
    assert facts["labels_given"] == {"ant": 2}
    assert kinds_of(table["row"]) == ["bee", "cat"]
    assert table.columns[-2:] == ["kind_source", "kind_predicted"]


@pytest.mark.parametrize("dtype", [pl.Null, pl.Int64, pl.Float64])
def test_an_empty_column_may_be_of_any_type(dtype):
    frame = islands().with_columns(kind=pl.Series([None] * 120, dtype=dtype))
    assert kinds_of(suggest_table(frame, "kind", 3)[0]["row"]) == ["ant", "bee", "cat"]


def test_what_cannot_be_is_refused():
    with pytest.raises(ParameterError, match="n="):
        suggest_table(islands(), "kind", 0)
    with pytest.raises(TableError, match="Every row of 'kind' has a label already; add rows without a label"):
        suggest_table(islands(dict.fromkeys(range(120), "ant")), "kind")


# The command


def test_the_terminal_shows_the_rows_and_writes_nothing(folder, capsys):
    before = sorted(folder.iterdir())
    assert run("suggest", "none.csv", "--target", "kind", "-n", 3) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0] == "120 rows, no label so far; label these next:"
    assert lines[2].split()[:4] == ["rank", "row", "reason", "covers"]
    assert [line.split()[0] for line in lines[3:6]] == ["1", "2", "3"]
    assert "stands for about 60 rows" in lines[3]
    assert said.err == ""
    assert sorted(folder.iterdir()) == before


def test_the_headline_counts_labels_and_names_classes(folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")  # a narrow terminal shows fewer columns
    assert run("suggest", "two.csv", "-t", "kind", "-n", 2) == 0
    said = capsys.readouterr().out
    assert said.startswith("120 rows, 3 labels so far (ant, bee); label these next:")
    assert "between" in said
    assert "no label reaches it" in said


@pytest.mark.parametrize("extension", ["csv", "tsv", "parquet", "xlsx", "jsonl"])
def test_every_format_is_written(folder, capsys, extension):
    name = f"next.{extension}"
    assert run("suggest", "one.csv", "-t", "kind", "-n", 4, "-o", name) == 0
    assert f"Wrote {name}" in capsys.readouterr().out
    table = read_table(folder / name)
    assert table.columns == [*SAID, "x", "y", "kind"]
    assert table["rank"].cast(pl.Int64).to_list() == [1, 2, 3, 4]
    assert kinds_of(table["row"].cast(pl.Int64)[:2]) == ["bee", "cat"]


def test_a_pipe_carries_the_table_alone(folder, capfdbinary):
    assert run("suggest", "none.csv", "-t", "kind", "-n", 3, "-o", "-") == 0
    said = capfdbinary.readouterr()
    assert kinds_of(pl.read_csv(said.out)["row"]) == ["ant", "bee", "cat"]
    assert b"label these next" in said.err


def test_json_is_json_and_quiet_is_quiet(folder, capsys):
    assert run("suggest", "two.csv", "-t", "kind", "-n", 2, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"], facts["target"], len(facts["suggestions"])) == (120, "kind", 2)
    assert set(facts["suggestions"][0]) == {"row", "reason", "covers", "between"}
    assert run("suggest", "two.csv", "-t", "kind", "-q") == 0
    assert capsys.readouterr() == ("", "")


def test_an_output_is_not_overwritten_without_force_and_never_the_table(folder, capsys):
    (folder / "out.csv").write_text("mine")
    words = ["suggest", "none.csv", "-t", "kind", "-n", "2", "-q", "-o"]
    assert run(*words, "out.csv") == 1
    assert "out.csv exists already; give --force" in refusal(capsys)
    assert (folder / "out.csv").read_text() == "mine"
    assert run(*words, "out.csv", "--force") == 0
    assert pl.read_csv("out.csv").height == 2
    before = (folder / "none.csv").read_text()
    assert run(*words, "none.csv", "--force") == 1
    assert "none.csv is named for two things" in refusal(capsys)
    assert (folder / "none.csv").read_text() == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["none.csv", "-t", "kid"], "The table has no column 'kid'; did you mean 'kind'?"),
        (["full.csv", "-t", "kind"], "Every row of 'kind' has a label already; add rows without a label"),
        (["full.csv", "-t", "kind", "--memory-limit", "0"], "Every row of 'kind' has a label already"),
        (["non.csv", "-t", "kind"], "non.csv does not exist; did you mean none.csv?"),
        (["none.csv", "-t", "kind", "-o", "out/"], "out has no extension that names a format"),
        (["none.csv", "-t", "kind", "--sheet", "1"], "--sheet is for .xlsx files"),
        (["one.csv", "-t", "kind", "--unlabelled", "ant", "--drop", "?"], "No column can serve as a feature"),
        (
            ["none.csv", "-t", "kind", "--memory-limit", "0", "--method", "green"],
            "--method green is not for a table",
        ),
    ],
)
def test_refusals_are_one_sentence(folder, capsys, words, sentence):
    assert run("suggest", *words) == 1
    assert sentence in refusal(capsys)


@pytest.mark.parametrize("command", ["suggest", "label"])
def test_an_empty_name_of_the_output_is_refused(folder, capsys, command):
    assert run(command, "two.csv", "-t", "kind", "-o", "") == 1
    assert "The name given by --out is empty" in refusal(capsys)


def test_a_column_whose_name_begins_as_the_target_is_shown(folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")  # for all columns
    frame = islands({0: "ant", 61: "bee", 62: "bee"}).rename({"x": "kind_len"})
    frame.write_csv("own.csv")
    assert run("suggest", "own.csv", "-t", "kind", "-n", "2") == 0
    assert "kind_len" in capsys.readouterr().out
    frame.with_columns(kind_source=pl.lit("given"), kind_margin=pl.lit(1.0)).write_csv("second.csv")
    assert run("suggest", "second.csv", "-t", "kind", "-n", "2") == 0
    shown = capsys.readouterr().out
    assert "kind_len" in shown
    assert "kind_margin" not in shown


def test_a_number_below_one_is_not_understood(folder, capsys):
    assert run("suggest", "none.csv", "-t", "kind", "-n", "0") == 2


def test_options_are_those_of_label(folder, capsys):
    rng = np.random.default_rng(1)
    np.save("v.npy", islands().select("x", "y").to_numpy().astype(np.float32))
    islands({3: "?"}).with_columns(noise=pl.Series(rng.normal(size=120) * 1e3)).write_csv("noisy.csv", separator=";")
    words = ["-t", "kind", "-n", "3", "--unlabelled", "?", "--json"]
    assert run("suggest", "noisy.csv", *words, "--drop", "noise") == 0
    chosen = json.loads(capsys.readouterr().out)
    assert kinds_of([one["row"] for one in chosen["suggestions"]]) == ["ant", "bee", "cat"]
    assert run("suggest", "noisy.csv", *words, "--features", "none*", "--vectors", "v.npy") == 1
    capsys.readouterr()
    assert (
        run("suggest", "noisy.csv", *words, "--drop", "noise", "--drop", "x", "--drop", "y", "--vectors", "v.npy") == 0
    )
    by_vectors = json.loads(capsys.readouterr().out)
    assert kinds_of([one["row"] for one in by_vectors["suggestions"]]) == ["ant", "bee", "cat"]


# In blocks


@pytest.mark.parametrize("name", ["none.csv", "one.csv"])
def test_before_two_classes_blocks_give_the_same_rows(folder, capsys, name):
    words = ["suggest", name, "-t", "kind", "-n", "5", "-o", "-"]
    assert run(*words) == 0
    at_once = capsys.readouterr().out
    assert run(*words, "--memory-limit", "0") == 0
    assert capsys.readouterr().out == at_once


def test_a_folder_of_files_is_read_in_blocks(folder, capsys):
    (folder / "rows").mkdir()
    frame = islands({0: "ant", 61: "bee", 62: "bee"})
    for i in range(3):
        frame[40 * i : 40 * i + 40].write_parquet(f"rows/{i}.parquet")
    words = ["suggest", "rows", "-t", "kind", "-n", "6", "--json", "--method", "anchored"]
    assert run(*words, "-o", "at_once.parquet") == 0
    at_once = json.loads(capsys.readouterr().out)["suggestions"]
    assert run(*words, "--memory-limit", "0", "-o", "blocks.parquet") == 0
    assert json.loads(capsys.readouterr().out)["suggestions"] == at_once
    table = pl.read_parquet("blocks.parquet")
    assert table.equals(pl.read_parquet("at_once.parquet"))
    assert table["x"].to_list() == [frame["x"][row - 1] for row in table["row"]]


@pytest.mark.cluster
@pytest.mark.slow
def test_a_cluster_gives_the_rows_of_blocks_here(folder, capsys):
    for name in ("none.csv", "two.csv"):
        words = ["suggest", name, "-t", "kind", "-n", "4", "-q", "-o", "-"]
        assert run(*words, "--memory-limit", "0") == 0
        here = capsys.readouterr().out
        assert run(*words, "--scheduler", "local") == 0
        assert capsys.readouterr().out == here
