"""The table commands: encodings, sheets, folders that fit in memory, links, full disks, doubtful labels."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import xlsxwriter

from greenlabel import label_table
from greenlabel.errors import ParameterError, TableError
from greenlabel.tables.columns.targets import doubts
from greenlabel.tables.io import csv_text
from greenlabel.tables.io.encodings import as_utf8, check_cuttable, check_encoding
from greenlabel.tables.io.files import read_table
from helpers.command_line import refusal, run

N = 60
FAST = ["-t", "größe", "--method", "anchored"]


def clothes():
    """Two clouds; names beyond ASCII in the head, the cells and the classes."""
    rng = np.random.default_rng(0)
    kind = np.arange(N) % 2
    return pl.DataFrame(
        {
            "weight": (rng.normal(size=N) + 8 * kind).round(4),
            "café": np.array(["été", "noël"])[kind],
            "größe": [("groß", "übergroß")[k] if i < 20 else None for i, k in enumerate(kind)],
        }
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(csv_text, "BLOCK_BYTES", 200)
    return tmp_path


# Encodings ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16", "mac_roman", "UTF8"])
def test_text_of_another_encoding_is_read_as_the_same_table(folder, encoding):
    text = clothes().write_csv()
    Path("t.csv").write_bytes(text.encode())
    Path("other.csv").write_bytes(text.encode(encoding))
    assert read_table(Path("other.csv"), encoding).equals(read_table(Path("t.csv")))
    assert run("label", "t.csv", *FAST, "-o", "a.csv", "--save", "m.green", "-q") == 0
    assert run("label", "other.csv", *FAST, "--encoding", encoding, "-o", "b.csv", "-q") == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    for name, more in [("t.csv", []), ("other.csv", ["--encoding", encoding])]:
        assert run("predict", "m.green", name, *more, "-o", "p.csv", "-q", "--force") == 0
        assert set(pl.read_csv("p.csv")["größe"]) == {"groß", "übergroß"}


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_text_of_another_encoding_is_read_in_blocks_too(folder, encoding, capsys):
    text = clothes().write_csv()
    Path("t.csv").write_bytes(text.encode(encoding))
    words = ["label", "t.csv", *FAST, "--encoding", encoding, "--json"]
    assert run(*words, "-o", "a.csv") == 0
    capsys.readouterr()
    assert run(*words, "-o", "b.csv", "--memory-limit", "0") == 0
    assert json.loads(capsys.readouterr().out)["stream"]["blocks"] > 3
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


@pytest.mark.slow
def test_standard_input_has_an_encoding_too(folder):
    command = [sys.executable, "-m", "greenlabel", "label", "-", *FAST, "--encoding", "cp1252", "-q"]
    raw = clothes().write_csv().encode("cp1252")
    done = subprocess.run(command, input=raw, capture_output=True, check=True)
    assert pl.read_csv(done.stdout)["größe"].null_count() == 0


def test_text_that_is_not_utf8_names_the_option(folder, capsys):
    raw = clothes().write_csv()
    Path("t.csv").write_bytes(raw.encode("cp1252"))
    assert run("label", "t.csv", *FAST) == 1
    assert "is not UTF-8 text; save the table as UTF-8, or name its --encoding (cp1252, latin-1, …)." in refusal(capsys)
    Path("t.csv").write_bytes(raw.encode("utf-16"))
    assert run("label", "t.csv", *FAST) == 1
    assert "t.csv is UTF-16 text; save the table as UTF-8, or give --encoding utf-16." in refusal(capsys)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["t.csv", "--encoding", "latin-11"], "--encoding latin-11 is unknown; did you mean latin-1"),
        (["t.csv", "--encoding", "klingon"], "--encoding klingon is unknown; usual ones are utf-8, utf-16, latin-1"),
        (["t.csv", "--encoding", "base64"], "--encoding base64 is unknown"),
        (["t.csv", "--encoding", "cp1252"], "is UTF-8 text, as greenlabel writes it; leave --encoding cp1252 out"),
        (["t.csv", "--encoding", "latin-1", "--memory-limit", "0"], "is UTF-8 text, as greenlabel writes it"),
        (["t.csv", "--encoding", "ascii"], "t.csv is no ascii text (it holds the byte 0xc3); name another --encoding"),
        (["t.parquet", "--encoding", "latin-1"], "--encoding is for .csv and .tsv files; leave it out for t.parquet"),
        (["t.csv", "--encoding", "utf-16", "--memory-limit", "0"], "utf-16 is not for a table that is read in blocks"),
        (["t.csv", "--sheet", "2"], "--sheet is for .xlsx files; leave it out for t.csv"),
        (["rows", "--sheet", "2"], "--sheet is for .xlsx files; leave it out for rows"),
    ],
)
@pytest.mark.parametrize("command", ["label", "predict"])
def test_an_option_that_cannot_be_followed_is_one_sentence(folder, capsys, command, words, sentence):
    clothes().write_csv("t.csv")
    clothes().write_parquet("t.parquet")
    label_table(clothes(), "größe", method="anchored")[1].save("m.green")
    Path("rows").mkdir()
    clothes().write_parquet("rows/a.parquet")
    before = sorted(folder.iterdir())
    table, *options = words
    named = [table, *FAST] if command == "label" else ["m.green", table]
    assert run(command, *named, *options) == 1
    assert sentence in refusal(capsys)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-7", "iso-2022-jp", "cp037", "utf-16-le"])
def test_encodings_whose_bytes_mean_something_else_are_not_cut(encoding):
    with pytest.raises(ParameterError, match="not for a table that is read in blocks"):
        check_cuttable(check_encoding(encoding))


@pytest.mark.parametrize("encoding", [None, "utf-8", "latin-1", "cp1251", "shift-jis", "gb18030", "big5", "euc-kr"])
def test_the_usual_ones_are(encoding):
    check_cuttable(check_encoding(encoding))
    text = 'a,"b\n"'
    assert as_utf8(text.encode(check_encoding(encoding)), check_encoding(encoding), "t") == text.encode()


# Sheets -------------------------------------------------------------------------------------------------------------


def write_book(path, **sheets):
    with xlsxwriter.Workbook(path) as book:
        for name, frame in sheets.items():
            sheet = book.add_worksheet(name)
            for i, row in enumerate([frame.columns, *frame.rows()]):
                sheet.write_row(i, 0, ["" if value is None else value for value in row])


def test_a_sheet_is_read_by_its_name_or_number(folder, capsys):
    table = clothes()
    write_book("book.xlsx", Notes=pl.DataFrame({"note": ["hello"]}), Wares=table, **{"2024": table.head(30)})
    table.write_csv("t.csv")
    assert run("label", "t.csv", *FAST, "-o", "t-out.csv", "--save", "m.green", "-q") == 0
    expected = pl.read_csv("t-out.csv")
    for sheet in ("Wares", "2"):
        assert run("label", "book.xlsx", *FAST, "--sheet", sheet, "-o", "out.csv", "-q", "--force") == 0
        assert pl.read_csv("out.csv").equals(expected)
    assert read_table(Path("book.xlsx"), sheet="2024").height == 30, "a name comes before a number"
    assert read_table(Path("book.xlsx")).columns == ["note"]
    assert run("predict", "m.green", "book.xlsx", "--sheet", "Wares", "-o", "p.csv", "-q") == 0
    for sheet in ("wares", "4", "0"):
        assert run("label", "book.xlsx", *FAST, "--sheet", sheet) == 1
        assert f"book.xlsx has no sheet {sheet!r}; its sheets are 'Notes', 'Wares', '2024'." in refusal(capsys)


# A folder that fits in memory ---------------------------------------------------------------------------------------


@pytest.fixture
def rows(folder):
    """The same table as one file and as a folder of three, with two row groups each."""
    table = clothes()
    table.write_parquet("t.parquet")
    Path("rows").mkdir()
    for i in range(3):
        table[20 * i : 20 * i + 20].write_parquet(f"rows/r{i}.parquet", row_group_size=10)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("table", ["rows", "rows/r*.parquet"])
def test_a_folder_that_fits_is_labelled_as_one_file(rows, capsys, table):
    facts = []
    for name, out in [("t.parquet", "a.parquet"), (table, "out/")]:
        assert run("label", name, "-t", "größe", "-o", out, "--json") == 0
        facts.append(json.loads(capsys.readouterr().out) | {"seconds": None})
    assert facts[0] == facts[1]
    assert facts[1]["method"] == "BlendedClassifier"
    assert sorted(path.name for path in Path("out").iterdir()) == [f"part-{i:05}.parquet" for i in range(6)]
    assert pl.read_parquet("out/*.parquet").equals(pl.read_parquet("a.parquet"))


@pytest.mark.slow
def test_a_folder_that_fits_takes_all_options_and_formats(rows, capsys):
    assert run("label", "rows", "-t", "größe", "--method", "green", "-o", "a.parquet", "-q", "--save", "m.green") == 0
    for out in ("b.csv", "b.xlsx", "b.jsonl"):
        assert run("label", "rows", "-t", "größe", "--method", "green", "-o", out, "-q") == 0
        assert read_table(Path(out))["größe"].to_list() == pl.read_parquet("a.parquet")["größe"].to_list()
    np.save("v.npy", np.eye(N))
    assert run("label", "rows", "-t", "größe", "--vectors", "v.npy", "--shares", "balanced", "-o", "v/", "-q") == 0
    assert run("predict", "m.green", "rows") == 0
    assert "Wrote rows-labelled/" in capsys.readouterr().out
    assert pl.read_parquet("rows-labelled/*.parquet").height == N


@pytest.mark.slow
def test_a_folder_that_fits_goes_to_standard_output_too(rows):
    command = [sys.executable, "-m", "greenlabel", "label", ".", *FAST, "-o", "-"]
    done = subprocess.run(command, cwd="rows", capture_output=True, check=True)
    assert pl.read_csv(done.stdout)["größe"].null_count() == 0
    assert b"60 rows: 20 labels given, 40 filled in" in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["rows", "-o", "rows/out/"], "lies in the folder that is read"),
        (["rows", "-o", "rows/out.csv"], "lies in the folder that is read"),
        (["rows/*.parquet", "-o", "rows/r0.parquet", "-f"], "holds the table that is read"),
        (["rows", "-o", "rows/", "-f"], "holds the table that is read"),
        (["rows", "-o", "out.doc"], "ends in one of"),
        (["rows", "-o", "no/out.csv"], "The folder no does not exist"),
        (["rows", "-o", "t.parquet"], "t.parquet exists already"),
        (["rows", "-o", "x.csv", "--save", "x.csv"], "x.csv is named for two things"),
        (["no*.parquet"], "names no Parquet file"),
    ],
)
def test_a_folder_that_fits_is_written_where_nothing_is_lost(rows, capsys, words, sentence):
    assert run("label", *words, *FAST) == 1
    assert sentence in refusal(capsys)
    assert sorted(path.name for path in rows.iterdir()) == ["rows", "t.parquet"]
    assert len(list(Path("rows").iterdir())) == 3


def test_predict_does_not_write_over_its_model(rows, capsys):
    assert run("label", "t.parquet", *FAST, "--save", "m.csv", "-o", "a.parquet", "-q") == 0
    assert run("predict", "m.csv", "t.parquet", "-o", "m.csv", "--force") == 1
    assert "m.csv is named for two things" in refusal(capsys)


# Links and full disks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("option", "name"), [("-o", "out.csv"), ("--save", "m.green"), ("--report", "r.html")])
def test_a_link_that_leads_nowhere_is_not_replaced_without_force(folder, capsys, option, name):
    clothes().write_csv("t.csv")
    Path(name).symlink_to("elsewhere")
    assert run("label", "t.csv", *FAST, option, name) == 1
    assert f"{name} exists already; give --force to overwrite it" in refusal(capsys)
    assert Path(name).is_symlink()
    assert run("label", "t.csv", *FAST, option, name, "--force", "-q") == 0
    assert Path(name).is_file()
    assert not Path("elsewhere").exists()


@pytest.mark.parametrize("more", [[], ["--memory-limit", "0"]])
def test_a_link_that_leads_nowhere_is_no_folder_for_parts(rows, capsys, more):
    Path("out").symlink_to("elsewhere")
    for force in ([], ["--force"]):
        assert run("label", "rows", *FAST, "-o", "out/", *more, *force) == 1
        assert "out is a link that leads nowhere; remove it, or give another name." in refusal(capsys)
    assert Path("out").is_symlink()


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--memory-limit", "0"]])
@pytest.mark.parametrize(
    ("full", "sentence", "there"),
    [
        (
            "m.green",
            "m.green cannot be written: No space left on device; out.csv is written, m.green and r.html are not.",
            {"out.csv"},
        ),
        (
            "r.html",
            "r.html cannot be written: No space left on device; out.csv and m.green are written, r.html is not.",
            {"out.csv", "m.green"},
        ),
        ("out.csv", "out.csv cannot be written: No space left on device; nothing was written.", set()),
    ],
)
def test_a_full_disk_says_what_is_there_and_what_is_not(folder, capsys, monkeypatch, full, sentence, there, more):
    clothes().write_csv("t.csv")
    replace = Path.replace

    def no_space(draft, path):
        if path.name == full:
            raise OSError(28, "No space left on device")
        return replace(draft, path)

    monkeypatch.setattr(Path, "replace", no_space)
    assert run("label", "t.csv", *FAST, "-o", "out.csv", "--save", "m.green", "--report", "r.html", *more) == 1
    assert refusal(capsys) == f"greenlabel: {sentence}\n"
    assert {path.name for path in folder.iterdir()} == {"t.csv"} | there


@pytest.mark.slow
def test_a_disk_that_runs_full_in_the_middle_of_a_model_is_the_same(folder):
    """A limit on the size of files stands for the disk."""
    clothes().write_csv("t.csv")
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4500, 4500))\n"
        "from greenlabel.cli import main\n"
        "sys.argv = ['greenlabel', 'label', 't.csv', '-t', 'größe', '-o', 'out.csv', '--save', 'm.green']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 1
    assert "m.green cannot be written: File too large; out.csv is written, m.green is not." in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["out.csv", "t.csv"]


# Labels that may not be meant ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [[-1, 0, 1], [-1.0, 2.0, 3.0], ["-1", "0", "1"], ["-1", "1", "10"]])
def test_minus_one_among_numbers_is_asked_about(classes):
    assert any("-1' is taken" in text or "-1 is taken" in text for text in doubts(classes))
    assert any(text.endswith("say --unlabelled -1.") for text in doubts(classes))


@pytest.mark.parametrize("classes", [[-1, 1], [0, 1, 2], ["-1", "low", "high"], [-2, 0, 2], [False, True]])
def test_other_numbers_are_not(classes):
    assert doubts(classes) == []


def test_minus_one_is_asked_about_where_it_is_seen(folder, capsys):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(N) < 20, np.arange(N) % 2, -1)
    frame = pl.DataFrame({"x": rng.normal(size=N) + 9 * (np.arange(N) % 2), "y": y})
    frame.write_csv("t.csv")
    assert run("label", "t.csv", "-t", "y") == 1
    assert "has a label already" in (sentence := refusal(capsys))
    assert "If -1 means no label, say --unlabelled -1." in sentence
    assert run("label", "t.csv", "-t", "y", "--unlabelled", "-1", "-o", "a.csv") == 0
    assert "--unlabelled" not in capsys.readouterr().out
    assert set(pl.read_csv("a.csv")["y"]) == {0, 1}
    some = frame.with_columns(y=pl.when(pl.int_range(N) < 50).then("y"))
    _, result = label_table(some, "y", method="green")
    assert any("--unlabelled -1" in warning for warning in result.warnings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("labels", "question"),
    [
        ([100 * i for i in range(30)], "All 30 labels are different numbers; is this a number to predict?"),
        ([str(i) for i in range(30)], "All 30 labels are different numbers; is this a number to predict?"),
        ([f"name {i}" for i in range(30)], "All 30 labels are different, so each is a class of its own"),
        ([0, 1], None),
        (["a", "b", "c", "a"], None),
    ],
)
@pytest.mark.parametrize("more", [[], ["--memory-limit", "0"]])
def test_as_many_classes_as_labels_is_a_warning(folder, capsys, labels, question, more):
    rng = np.random.default_rng(0)
    pl.DataFrame({"x": rng.normal(size=40), "y": labels + [None] * (40 - len(labels))}).write_csv("t.csv")
    assert run("label", "t.csv", "-t", "y", "--method", "anchored", "--json", *more) == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    if question:
        assert any(text.startswith(question) for text in warnings)
    else:
        assert not any("labels are different" in text for text in warnings)


def test_a_sheet_of_a_file_that_has_none_is_refused_in_python(folder):
    clothes().write_csv("t.csv")
    with pytest.raises(TableError, match=r"--sheet is for \.xlsx files"):
        read_table(Path("t.csv"), sheet="2")
