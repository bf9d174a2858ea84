import csv
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from greenlabel import __version__, cli
from greenlabel._common.files import whole_file


def greenlabel(*words):
    return CliRunner().invoke(cli.app, [str(word) for word in words], prog_name="greenlabel")


@pytest.mark.slow
def test_demo_labels_digits_and_writes_a_picture_and_a_table(tmp_path):
    result = greenlabel("demo", "--out", tmp_path / "new" / "folder")
    assert result.exit_code == 0, result.output
    assert "1,697 labels filled in, 97.8% right" in result.output
    assert (tmp_path / "new" / "folder" / "digits.png").read_bytes()[:4] == b"\x89PNG"
    with (tmp_path / "new" / "folder" / "digits.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 1797
    assert sum(row["source"] == "given" for row in rows) == 100
    assert all(0 < float(row["confidence"]) <= 1 for row in rows)
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == ["digits.csv", "digits.png"]


@pytest.mark.parametrize("words", [["-h"], ["demo", "-h"]])
def test_every_command_has_help(words):
    result = greenlabel(*words)
    assert result.exit_code == 0
    assert "Usage: greenlabel" in result.output


def test_version_is_that_of_the_package():
    assert greenlabel("--version").output == f"greenlabel {__version__}\n"


def test_bad_usage_is_exit_2():
    assert greenlabel("demo", "--per-class", "0").exit_code == 2
    assert greenlabel("nonsense").exit_code == 2


def test_a_refusal_is_one_line_and_exit_1(tmp_path):
    (tmp_path / "file").touch()
    run = subprocess.run(
        [sys.executable, "-c", "from greenlabel.cli import main; main()", "demo", "--out", tmp_path / "file"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    assert run.stderr.startswith("greenlabel: ")
    assert run.stderr.count("\n") == 1


def test_a_file_appears_whole(tmp_path):
    with whole_file(tmp_path / "a.txt") as draft:
        draft.write_text("new")
        assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "a.txt").read_text() == "new"


def test_a_file_that_fails_half_way_leaves_the_old_one(tmp_path):
    (tmp_path / "a.txt").write_text("old")

    def fail_half_way():
        with whole_file(tmp_path / "a.txt") as draft:
            draft.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert (tmp_path / "a.txt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
