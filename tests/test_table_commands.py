"""`greenlabel label` and `greenlabel predict`, run as a user runs them."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

from helpers.command_line import refusal, run

HEADER = "row,size,price,color,note,when,kind"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with shop.csv: mixed columns, half of the kinds unknown."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    words = {"toy": ["small", "red", "ball", "for", "children"], "tool": ["heavy", "steel", "hammer", "for", "nails"]}
    lines = [HEADER]
    for i in range(120):
        kind = "toy" if i % 2 else "tool"
        note = " ".join(rng.choice(words[kind], 4))
        shown = kind if i < 24 else ""
        size, color = rng.normal() + 8 * (i % 2), "red" if i % 2 else "grey"
        lines.append(f"{i},{size:.3f},{1000 * size:.1f},{color},{note},2024-0{1 + i % 9}-11,{shown}")
    (tmp_path / "shop.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def is_right(frame):
    return frame["kind"].to_list() == ["tool", "toy"] * 60


@pytest.mark.slow
def test_label_report_save_and_predict(folder, capsys):
    code = run("label", "shop.csv", "--target", "kind", "-o", "out.parquet", "--report", "r.html", "--save", "m.green")
    assert code == 0
    said = capsys.readouterr()
    assert "120" in said.out
    assert "numbers the rows" in said.out
    assert "Wrote out.parquet, r.html, m.green" in said.out
    assert said.err == ""
    frame = pl.read_parquet("out.parquet")
    assert is_right(frame)
    assert frame.columns == [*HEADER.split(","), "kind_source", "kind_confidence", "kind_margin", "kind_predicted"]
    assert frame["kind_source"].to_list() == ["given"] * 24 + ["predicted"] * 96
    assert run("predict", "m.green", "shop.csv", "-o", "new.csv") == 0
    assert is_right(pl.read_csv("new.csv"))
    assert sorted(path.name for path in folder.iterdir()) == ["m.green", "new.csv", "out.parquet", "r.html", "shop.csv"]


def test_the_output_is_named_after_the_input(folder):
    assert run("label", "shop.csv", "-t", "kind") == 0
    text = (folder / "shop-labelled.csv").read_text().splitlines()
    before = (folder / "shop.csv").read_text().splitlines()
    assert [line.rsplit(",", 5)[0] for line in text] == [line.rsplit(",", 1)[0] for line in before]


def test_an_output_is_not_overwritten_without_force(folder, capsys):
    (folder / "out.csv").write_text("mine")
    assert run("label", "shop.csv", "-t", "kind", "-o", "out.csv") == 1
    assert "out.csv exists already; give --force to overwrite it" in capsys.readouterr().err
    assert (folder / "out.csv").read_text() == "mine"
    assert run("label", "shop.csv", "-t", "kind", "-o", "out.csv", "--force") == 0
    assert is_right(pl.read_csv("out.csv"))


@pytest.mark.slow
def test_json_is_json_and_quiet_is_quiet(folder, capsys):
    assert run("label", "shop.csv", "-t", "kind", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["rows"] == 120
    assert facts["labels_given"] == {"tool": 12, "toy": 12}
    assert facts["labels_predicted"] == {"tool": 48, "toy": 48}
    assert facts["columns"]["note"]["kind"] == "text"
    assert facts["estimated_accuracy"]["low"] <= facts["estimated_accuracy"]["share"]
    assert run("label", "shop.csv", "-t", "kind", "--quiet", "--force") == 0
    said = capsys.readouterr()
    assert said.out == said.err == ""


@pytest.mark.slow
def test_a_pipe_carries_the_table_and_nothing_else(folder):
    command = [sys.executable, "-m", "greenlabel", "label", "-", "--target", "kind"]
    done = subprocess.run(command, input=(folder / "shop.csv").read_bytes(), capture_output=True, check=True)
    assert is_right(pl.read_csv(done.stdout))
    assert b"120" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("extension", ["tsv", "parquet", "jsonl", "xlsx"])
def test_every_format_goes_in_and_out(folder, extension):
    assert run("label", "shop.csv", "-t", "kind", "-o", "first.csv", "-q") == 0
    from greenlabel.tables.io.files import read_table, typed, write_table

    write_table(folder / f"shop.{extension}", typed(read_table(folder / "shop.csv")))
    assert run("label", f"shop.{extension}", "-t", "kind", "-q") == 0
    filled = read_table(folder / f"shop-labelled.{extension}")
    assert is_right(filled)


@pytest.mark.slow
def test_a_vector_column_and_vectors_beside_the_table(folder):
    V = np.random.default_rng(0).normal(size=(120, 5)) + 6 * (np.arange(120) % 2)[:, None]
    kinds = pl.read_csv("shop.csv").select("kind")
    kinds.with_columns(emb=V).write_parquet("emb.parquet")
    kinds.write_csv("kinds.csv")
    np.save("emb.npy", V.astype(np.float32))
    np.savez("emb.npz", X=V, kind=np.array(kinds["kind"].fill_null("").to_list()))
    assert run("label", "emb.parquet", "-t", "kind", "--save", "m.green") == 0
    assert is_right(pl.read_parquet("emb-labelled.parquet"))
    assert run("predict", "m.green", "emb.parquet", "-o", "p.parquet") == 0
    assert run("label", "kinds.csv", "--vectors", "emb.npy", "-t", "kind", "--save", "v.green") == 0
    assert is_right(pl.read_csv("kinds-labelled.csv"))
    assert run("predict", "v.green", "kinds.csv", "--vectors", "emb.npy", "-o", "q.csv") == 0
    assert is_right(pl.read_csv("q.csv"))
    assert run("label", "emb.npz", "-t", "kind") == 0
    assert is_right(pl.read_csv("emb-labelled.csv"))


def test_columns_can_be_chosen_and_unsure_rows_left_empty(folder, capsys):
    assert run("label", "shop.csv", "-t", "kind", "--features", "whe*", "--only-confident", "0.95", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert list(facts["columns"]) == ["when"]
    frame = pl.read_csv("shop-labelled.csv")
    assert 0 < facts["rows_left_empty"] == frame["kind"].null_count()


@pytest.mark.slow
def test_shares_come_from_a_file(folder):
    (folder / "shares.csv").write_text("kind,share\ntool,0.7\ntoy,0.3\n")
    (folder / "shares.json").write_text('{"tool": [0.65, 0.75], "toy": [0.25, 0.35]}')
    for name in ("shares.csv", "shares.json"):
        assert run("label", "shop.csv", "-t", "kind", "--shares", name, "-f", "-q") == 0
        kinds = pl.read_csv("shop-labelled.csv")["kind"].to_list()
        assert 0.6 < kinds.count("tool") / 120 < 0.76  # without shares it is one half; given labels stay as they are


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("[1]", "no JSON object"),
        ("{", "no JSON"),
        ('{"rose": 1}', "class 'rose', which no label has"),
        (None, "not exist"),
    ],
)
def test_shares_that_cannot_be_used_are_refused(folder, capsys, content, sentence):
    if content:
        (folder / "shares.json").write_text(content)
    assert run("label", "shop.csv", "-t", "kind", "--shares", "shares.json") == 1
    assert sentence in capsys.readouterr().err


@pytest.mark.slow
def test_the_same_seed_writes_the_same_file(folder):
    for name in ("a.csv", "b.csv"):
        assert run("label", "shop.csv", "-t", "kind", "-o", name, "--seed", "3", "-q") == 0
    assert (folder / "a.csv").read_bytes() == (folder / "b.csv").read_bytes()


def test_stray_blanks_are_warned_about_and_not_merged(folder, capsys):
    text = (folder / "shop.csv").read_text().splitlines()
    text[1] = text[1].replace(",tool", ",Tool ")
    (folder / "shop.csv").write_text("\n".join(text) + "\n")
    assert run("label", "shop.csv", "-t", "kind") == 0
    assert "'Tool ' and 'tool' differ by blanks or capitals alone" in capsys.readouterr().out


def edit(folder, change):
    path = folder / "shop.csv"
    path.write_text(change(path.read_text()))


TABLE = ["shop.csv", "-t", "kind"]
BAD = {  # what is wrong: (what is done to the table, further words, the sentence)
    "no file": (None, ["shp.csv", "-t", "kind"], "shp.csv does not exist; did you mean shop.csv?"),
    "no column": (None, ["shop.csv", "-t", "kinds"], "no column 'kinds'; did you mean 'kind'?"),
    "corrupt row": (lambda text: text[:-20], TABLE, "line 121 has"),
    "full": (lambda text: text.replace("-11,\n", "-11,toy\n"), TABLE, "has a label already"),
    "empty": (
        lambda text: text.replace(",toy\n", ",\n").replace(",tool\n", ",\n"),
        TABLE,
        "no label",
    ),
    "one class": (lambda text: text.replace(",tool\n", ",\n"), TABLE, "single class (toy)"),
    "mixed": (lambda text: text.replace(",tool\n", ",3\n", 1), TABLE, "mixes numbers and text"),
    "no feature": (None, [*TABLE, "--features", "row", "--id", "row"], "No column can serve"),
    "names twice": (
        lambda text: text.replace("size,price", "size,size"),
        TABLE,
        "more than one column",
    ),
    "no folder": (None, [*TABLE, "-o", "no/out.csv"], "folder no does not exist; make it"),
    "no format": (None, [*TABLE, "-o", "out.doc"], "ends in one of .csv"),
    "report folder": (None, [*TABLE, "--report", "no/r.html"], "folder no does not exist"),
    "no vectors": (None, [*TABLE, "--vectors", "v.npy"], "v.npy does not exist"),
    "report on standard output": (None, [*TABLE, "--report", "-"], "takes the table alone"),
    "one file twice": (None, [*TABLE, "--report", "x", "--save", "x"], "x is named for two things"),
    "over the input": (None, [*TABLE, "--save", "shop.csv", "--force"], "shop.csv is named for two things"),
    "drop": (None, [*TABLE, "--drop", "colour"], "did you mean 'color'?"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_line_and_writes_nothing(folder, capsys, what):
    change, words, sentence = BAD[what]
    if change:
        edit(folder, change)
    assert run("label", *words) == 1
    assert sentence in refusal(capsys)
    assert [path.name for path in folder.iterdir()] == ["shop.csv"]


def test_bad_usage_is_exit_code_2(folder, capsys):
    for words in (
        ["label", "shop.csv"],
        ["label", "shop.csv", "-t", "kind", "--method", "magic"],
        ["lable"],
        ["predict"],
    ):
        assert run(*words) == 2
    assert list(folder.iterdir()) == [folder / "shop.csv"]


@pytest.mark.slow
def test_predict_refuses_what_does_not_fit_and_counts_what_is_new(folder, capsys):
    assert run("label", "shop.csv", "-t", "kind", "--save", "m.green", "-q") == 0
    (folder / "few.csv").write_text("size,color\n1,red\n")
    assert run("predict", "m.green", "few.csv") == 1
    assert "lacks 3 of the columns that the model needs: 'price', 'note', 'when'" in capsys.readouterr().err
    assert run("predict", "shop.csv", "shop.csv", "-o", "new.csv") == 1
    assert "no greenlabel model" in capsys.readouterr().err
    edit(folder, lambda text: text.replace("grey", "pink"))
    assert run("predict", "m.green", "shop.csv", "--json", "--force") == 0
    assert json.loads(capsys.readouterr().out)["values_never_seen"] == {"color": 60}
    assert not (folder / "few-labelled.csv").exists()


def test_predict_says_what_the_output_cannot_hold(folder, capsys):
    V = np.random.default_rng(0).normal(size=(120, 5)) + 6 * (np.arange(120) % 2)[:, None]
    pl.read_csv("shop.csv").select("kind").with_columns(emb=V).write_parquet("emb.parquet")
    assert run("label", "emb.parquet", "-t", "kind", "--save", "m.green", "-q") == 0
    assert run("predict", "m.green", "emb.parquet", "-o", "p.csv") == 0
    assert "column 'emb' is left out" in capsys.readouterr().out


def test_a_table_that_is_full_already_is_passed_on(folder, capsys):
    assert run("label", "shop.csv", "-t", "kind", "-o", "full.csv", "--save", "m.green", "-q") == 0
    pl.read_csv("full.csv").select(HEADER.split(",")).write_csv("new.csv")
    assert run("predict", "m.green", "new.csv") == 0
    assert "120 rows: 120 had a label, 0 filled in" in capsys.readouterr().out


def test_a_full_disk_names_the_file(folder, capsys, monkeypatch):
    def full(*words):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("zipfile.ZipFile.writestr", full)
    assert run("label", "shop.csv", "-t", "kind", "--save", "m.green") == 1
    assert "m.green cannot be written: No space left on device" in capsys.readouterr().err
    assert not (folder / "m.green").exists()


@pytest.mark.slow
def test_the_home_folder_is_left_alone(folder):
    home = folder / "home"
    home.mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SKB_")}
    command = [sys.executable, "-m", "greenlabel", "label", "shop.csv", "-t", "kind", "-q"]
    subprocess.run(command, env=environment | {"HOME": str(home)}, check=True)
    assert not (home / "skrub_data").exists()


@pytest.mark.parametrize("command", ["label", "predict"])
def test_help_is_broken_by_the_terminal_and_not_by_the_source(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "240")
    monkeypatch.setenv("TERMINAL_WIDTH", "240")
    assert run(command, "-h") == 0
    said = capsys.readouterr().out
    assert {"label": "The other columns stay as they are", "predict": "holds already are kept too"}[command] in said


@pytest.mark.slow
def test_an_interrupt_leaves_no_half_file(folder):
    code = (
        "import time, greenlabel.tables.io.files as t; from pathlib import Path\n"
        "write = t.WRITERS['.csv']\n"
        "def slow(frame, path, style):\n"
        "    write(frame, path, style); Path('writing').touch(); time.sleep(60)\n"
        "t.WRITERS['.csv'] = slow\n"
        "import sys; sys.argv = ['greenlabel', 'label', 'shop.csv', '-t', 'kind', '-o', 'out.csv']\n"
        "from greenlabel.cli import main; main()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
    while not (folder / "writing").exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    said = process.communicate(timeout=30)[1]
    assert process.returncode not in (0, None)
    assert b"Traceback" not in said
    assert sorted(path.name for path in folder.iterdir()) == ["shop.csv", "writing"]
