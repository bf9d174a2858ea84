"""A table of text is written as it came: separator, decimal comma, line ends and mark; at once, in blocks, new rows."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from greenlabel.tables.io.csv_style import HEAD, CsvStyle
from greenlabel.tables.io.files import read_table
from helpers.command_line import run

ADDED = ["kind_source", "kind_confidence", "kind_margin", "kind_predicted"]


def german(n=90):
    """A table as a spreadsheet writes it where the comma is a decimal one."""
    rng = np.random.default_rng(0)
    kind = np.arange(n) % 2
    size = rng.normal(size=n) + 8 * kind
    lines = ["name;size;disk;kind"]
    for i in range(n):
        label = ("tool", "toy")[kind[i]] if i % 6 < 2 else ""
        lines.append(f'"screw; {i}";{f"{size[i]:.2f}".replace(".", ",")};{5 - 2 * kind[i]}" disk;{label}')
    return b"\xef\xbb\xbf" + "".join(f"{line}\r\n" for line in lines).encode()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("goods.csv").write_bytes(german())
    return tmp_path


def check(raw, n=90):
    assert raw.startswith(b"\xef\xbb\xbfname;size;disk;kind;kind_source;kind_confidence;kind_margin;kind_predicted\r\n")
    assert raw.count(b"\r\n") == raw.count(b"\n") == n + 1
    assert raw.count(b"\xef\xbb\xbf") == 1
    lines = raw.decode("utf-8-sig").split("\r\n")
    came = german(n).decode("utf-8-sig").split("\r\n")
    for line, before in zip(lines[1:-1], came[1:-1], strict=True):
        assert line.split(";")[:3] == before.split(";")[:3]  # a name, which has a semicolon, and the size
        *_, confidence, margin = line.split(";")
        assert "." not in confidence + margin
        assert 0 < float(confidence.replace(",", ".")) <= 1
    assert "1,0" in lines[1]


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--memory-limit", "0"]], ids=["at once", "in blocks"])
def test_a_table_is_written_as_it_came(folder, monkeypatch, more):
    monkeypatch.setattr("greenlabel.tables.io.csv_text.BLOCK_BYTES", 1000)
    assert run("label", "goods.csv", "-t", "kind", "-q", "-o", "out.csv", "--save", "m.green", *more) == 0
    check(Path("out.csv").read_bytes())
    assert run("predict", "m.green", "goods.csv", "-q", "-o", "new.csv", *more) == 0
    check(Path("new.csv").read_bytes())


@pytest.mark.slow
def test_standard_output_has_the_style_of_standard_input(folder):
    command = [sys.executable, "-m", "greenlabel", "label", "-", "--target", "kind", "--method", "green"]
    done = subprocess.run(command, input=german(), capture_output=True, check=True)
    check(done.stdout)


def test_parts_of_a_folder_have_the_style_too(folder, monkeypatch):
    monkeypatch.setattr("greenlabel.tables.io.csv_text.BLOCK_BYTES", 1000)
    assert run("label", "goods.csv", "-t", "kind", "-q", "-o", "parts/", "--memory-limit", "0") == 0
    parts = sorted(Path("parts").iterdir())
    assert len(parts) > 1
    assert all(part.read_bytes().startswith(b"\xef\xbb\xbfname;size;") for part in parts)


@pytest.mark.slow
def test_the_name_of_the_output_decides_about_tabs(folder):
    assert run("label", "goods.csv", "-t", "kind", "-q", "-o", "out.tsv", "--method", "green") == 0
    head, first, *_ = Path("out.tsv").read_text(encoding="utf-8-sig").splitlines()
    assert head.split("\t") == ["name", "size", "disk", "kind", *ADDED]
    assert first.endswith("given\t1,0\t1,0\t")  # nothing was predicted
    read_table(Path("goods.csv")).write_csv("tabs.tsv", separator="\t")
    assert run("label", "tabs.tsv", "-t", "kind", "-q", "-o", "out.csv", "--method", "green") == 0
    assert Path("out.csv").read_text().startswith("name,size,disk,kind,kind_source")


def test_the_usual_style_is_left_alone(folder):
    frame = pl.DataFrame({"a": ["1.5", "2.5"], "b": ["x", "1,234"]})
    assert CsvStyle.of(frame.write_csv().encode()) == CsvStyle()
    frame.write_parquet("a.parquet")
    assert CsvStyle.of_file(Path("a.parquet")) == CsvStyle()


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_the_style_of_other_encodings_is_seen_too(folder, encoding):
    Path("a.csv").write_bytes(("größe;b\r\n" + "1,5;ü\r\n" * HEAD).encode(encoding))
    assert CsvStyle.of_file(Path("a.csv"), encoding) == CsvStyle(";", True, "\r\n")


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("a;b\n1,5;x\n", CsvStyle(";", True)),
        ("a;b\n1.5;x\n", CsvStyle(";")),
        ('a,b\n"1,5",x\n', CsvStyle(",", True)),
        ("a|b\n1|2\n", CsvStyle("|")),
        ("a\tb\r\n1.234,5 €\t2\r\n", CsvStyle("\t", True, "\r\n")),
        ("\ufeffa,b\n1,2\n", CsvStyle(has_mark=True)),
        ("a;b\r1,5;x\r", CsvStyle(";", True, "\r")),
    ],
)
def test_the_style_is_that_of_the_first_rows(text, style):
    assert CsvStyle.of(text.encode()) == style
    rows = text + text.split(style.line_end, 1)[1] * (HEAD // 3)
    assert len(rows) > HEAD
    assert CsvStyle.of(rows.encode()) == style
