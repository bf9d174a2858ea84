"""``greenlabel paper`` from the outside: exit codes, messages, files, and the same numbers twice."""

import csv
import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from greenlabel import cli
from greenlabel.errors import GreenlabelError
from greenlabel.paper.items import ITEMS
from greenlabel.paper.published import DATASETS


def paper(*words):
    no_data = {"GREENLABEL_DATA": None}
    return CliRunner().invoke(cli.app, ["paper", *map(str, words)], env=no_data, prog_name="greenlabel")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Everything that needs no data, two trials; the folder and what was printed."""
    folder = tmp_path_factory.mktemp("paper") / "new"
    result = paper("--out", folder, "--trials", 2)
    assert result.exit_code == 0, result.output
    return folder, result.output


def numbers(folder):
    """Results without times."""
    records = map(json.loads, (folder / "results.jsonl").read_text().splitlines())
    return [
        {**record, "result": {name: value for name, value in record["result"].items() if "seconds" not in name}}
        for record in records
    ]


@pytest.mark.slow
def test_all_items_are_on_the_page_and_every_figure_and_table_is_a_file(whole):
    folder, output = whole
    text = (folder / "page.md").read_text()
    assert re.findall(r"^## .*\(`([\w-]+)`", text, re.M) == list(ITEMS)
    figures = {"labels", "labels-large", "anchors", "rings", "rings-connected"}
    assert {path.stem for path in folder.glob("*.png")} == {path.stem for path in folder.glob("*.svg")} == figures
    assert {path.stem for path in folder.glob("*.csv")} == set(ITEMS) - {"rings", "rings-connected"}
    assert output.endswith("page.md\n")
    assert "Not in greenlabel-data: MobileKSD, USPS, CsMap" in output.replace("\n", " ")


@pytest.mark.slow
def test_rows_without_data_say_so(whole):
    text = (whole[0] / "page.md").read_text()
    assert "| Swarm | published | 93.76±2.68 |" in text
    assert "data not available here" in text


@pytest.mark.slow
def test_the_html_page_needs_no_other_file(whole):
    text = (whole[0] / "page.html").read_text()
    assert not re.findall(r"""(?:src|href)\s*=\s*['"]?(?!data:)[^'"\s>]+""", text)
    assert "http://" not in text
    assert "https://" not in text
    assert text.count("data:image/png;base64,") == 5
    assert not re.search(r"@import|url\(", text)


@pytest.mark.slow
def test_versions_seeds_and_machine_are_told(whole):
    text = (whole[0] / "page.md").read_text()
    for part in (r"greenlabel \d", r"numpy \d", r"scikit-learn \d", r"\d+ cores", "2 trials, seeds 0 to 1"):
        assert re.search(part, text), part


@pytest.mark.slow
def test_csv_holds_published_and_measured_numbers(whole):
    with (whole[0] / "accuracy.csv").open() as file:
        rows = {(row["data"], row["method"]): row for row in csv.DictReader(file)}
    row = rows["Balance", "GF(A)"]
    assert row["published"] == "69.71±2.39"
    assert float(row["measured"]) - 69.71 == pytest.approx(float(row["difference"]), abs=1e-3)
    assert rows["Swarm", "LLGC"]["measured"] == ""


@pytest.mark.slow
def test_two_clean_runs_give_the_same_numbers(whole, tmp_path):
    assert paper("accuracy", "margin", "--out", tmp_path, "--trials", 2).exit_code == 0
    again = numbers(tmp_path)
    first = [record for record in numbers(whole[0]) if {**record} in again]
    assert len(again) > 10
    assert len(first) == len(again)


@pytest.mark.slow
def test_a_second_run_computes_nothing_and_another_seed_does(whole):
    folder = whole[0]
    before = (folder / "results.jsonl").read_text()
    assert paper("f1", "--out", folder, "--trials", 2).exit_code == 0
    assert (folder / "results.jsonl").read_text() == before
    assert paper("margin", "--out", folder, "--trials", 1, "--seed", 7).exit_code == 0
    assert len((folder / "results.jsonl").read_text()) > len(before)


def test_list_names_items_and_data():
    result = paper("list")
    assert result.exit_code == 0
    assert all(name in result.output for name in [*ITEMS, *DATASETS])
    assert "Balance          there" in result.output


@pytest.mark.parametrize("words", [["-h"], ["run", "-h"], ["list", "-h"], ["fetch", "-h"]])
def test_every_command_has_help(words):
    result = paper(*words)
    assert result.exit_code == 0
    assert "Usage: greenlabel paper" in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["acuracy"], "there is no item 'acuracy'; did you mean accuracy?"),
        (["xyz"], "there is no item 'xyz'; choose one of datasets, "),
        (["fetch", "mnits"], "there is no data set 'mnits'; did you mean MNIST?"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(words, message):
    result = paper(*words)
    assert isinstance(result.exception, GreenlabelError)
    assert message in str(result.exception)


@pytest.mark.slow
def test_a_refusal_is_one_line_and_exit_1(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", "from greenlabel.cli import main; main()", "paper", "acuracy"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert (run.returncode, run.stdout) == (1, "")
    assert run.stderr == "greenlabel: there is no item 'acuracy'; did you mean accuracy?\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["--trials", "0"], ["--jobs", "0"], ["--data", "no-such-folder"], ["--nonsense"]])
def test_bad_usage_is_exit_2(words):
    assert paper(*words).exit_code == 2


def test_fetching_what_is_generated_says_so():
    result = paper("fetch", "balance")
    assert (result.exit_code, result.output) == (0, "Balance is generated; there is nothing to fetch.\n")


def test_fetch_without_a_network_is_a_clear_line(tmp_path, monkeypatch):
    def no_network(*args, **kwargs):
        raise OSError("Network is unreachable")

    monkeypatch.setattr("greenlabel.paper.fetch.urlopen", no_network)
    result = paper("fetch", "USPS", "--data", tmp_path / "new")
    assert "no connection to hastie.su.domains (Network is unreachable)" in str(result.exception)


def test_fetch_takes_what_is_there_and_compares_it(tmp_path):
    (tmp_path / "zip.train").write_text("1 0.5\n2 0.25\n")
    (tmp_path / "zip.test").write_text("1 0\n")
    result = paper("fetch", "usps", "--data", tmp_path)
    assert "differs from the copy that greenlabel was tested on" in str(result.exception)
