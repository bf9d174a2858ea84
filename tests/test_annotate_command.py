"""`greenlabel annotate` as a command: one printed line, Ctrl-C, what it refuses, and nothing lost when it is killed."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import numpy as np
import polars as pl
import pytest

import greenlabel
from greenlabel.annotate.command import cache_folder
from helpers.annotate import read_frame, until
from helpers.command_line import refusal, run

ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/\?token=[\w-]{20,}\n")
N = 60


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    middle = np.repeat([0.0, 8.0], N // 2)
    frame = pl.DataFrame({"size": middle + rng.normal(size=N), "weight": middle + rng.normal(size=N)})
    frame.with_columns(kind=pl.lit("")).write_csv(tmp_path / "t.csv")
    return tmp_path / "t.csv"


class Running:
    """The command in a process of its own."""

    def __init__(self, folder, *words):
        paths = [str(Path(greenlabel.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        own = {"PYTHONPATH": os.pathsep.join(paths), "XDG_CACHE_HOME": str(folder / "cache"), "OMP_NUM_THREADS": "1"}
        environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "BROWSER")} | own
        browser = {"BROWSER": f"{folder / 'browser'} %s"}  # which notes the address that it is opened with
        (folder / "browser").write_text(f'#!/bin/sh\necho "$1" > {folder / "opened"}\n')
        (folder / "browser").chmod(0o755)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "greenlabel", "annotate", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            cwd=folder,
            env=environment | browser,
        )
        self.address = self.process.stdout.readline()
        self.url = self.address.partition("/?")[0]
        self.client = httpx.Client(base_url=self.url or "http://nowhere", timeout=120, verify=False)

    def enter(self):
        assert self.client.get(self.address.strip()).status_code == 200
        until(lambda: self.client.get("/api/state").json()["stage"]["name"] in ("map", "ready"), 120)
        return self

    def post(self, path, body):
        headers = {"Origin": self.url, "X-Greenlabel": "1", "Content-Type": "application/json"}
        return self.client.post(path, content=json.dumps(body), headers=headers)

    def label(self, row, name="a", number=0):
        return self.post("/api/action", {"id": f"{row}-{name}-{number}", "do": "label", "rows": [row], "class": name})

    def end(self, number=signal.SIGINT):
        """The exit code, and what else was printed."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err


@contextmanager
def running(folder, *words, options=("--no-browser",)):
    one = Running(folder, *words, *options)
    try:
        yield one
    finally:
        one.client.close()
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


def test_one_line_is_printed_and_ctrl_c_ends_it_with_open_streams(table):
    with running(table.parent, table, "--target", "kind", "--classes", "a,b") as one:
        assert ADDRESS.fullmatch(one.address)
        one.enter()
        assert one.label(3, 0).status_code == 200
        with one.client.stream("GET", "/api/events") as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("data:")
            code, out, err = one.end()
            assert all(line.startswith("data:") for line in lines if line)  # and then they end
        assert (code, out, err) == (130, "", "")
    assert table.with_name("t.csv.kind.labels.jsonl").read_text().count("\n") == 2


@pytest.mark.slow
def test_it_goes_on_where_it_stopped_undo_included(table):
    words = (table, "--target", "kind", "--classes", "a,b")
    with running(table.parent, *words) as one:
        one.enter()
        for row in (3, 4, 50):
            assert one.label(row, row > 30).status_code == 400  # true is no class
            assert one.label(row, int(row > 30)).status_code == 200
        one.post("/api/action", {"id": "u", "do": "undo"})
        assert one.end(signal.SIGTERM)[0] == -signal.SIGTERM
    with running(table.parent, *words) as one:
        one.enter()
        state = one.client.get("/api/state").json()
        assert sorted(state["given_rows"]["rows"]) == [3, 4]
        assert state["redo"] is not None
        again = read_frame(one.post("/api/action", {"id": "r", "do": "redo"}).content, N)[0]
        assert sorted(again["given_rows"]["rows"]) == [3, 4, 50]
        saved = one.post("/api/save", {}).json()
        assert saved["files"] == ["t-labelled.csv"]
    filled = pl.read_csv(table.with_name("t-labelled.csv"))
    assert filled["kind"].to_list() == ["a"] * (N // 2) + ["b"] * (N // 2)
    assert filled["kind_source"].to_list().count("given") == 3


@pytest.mark.slow
def test_two_at_once_on_one_table_are_refused(table):
    with (
        running(table.parent, table, "--target", "kind") as one,
        running(table.parent, table, "--target", "kind") as two,
    ):
        assert ADDRESS.fullmatch(one.address)
        assert two.address == ""
        assert two.process.wait(60) == 1
        assert re.fullmatch(r"greenlabel: .*in use by another.*\n", two.process.stderr.read())


@pytest.mark.slow
def test_a_table_that_changed_is_refused(table):
    with running(table.parent, table, "--target", "kind", "--classes", "a") as one:
        one.enter()
        one.label(3, 0)
        one.end()
    table.write_text(table.read_text().replace("1.", "2.", 1))
    with running(table.parent, table, "--target", "kind") as one:
        assert one.process.wait(60) == 1
        assert "belongs to another table" in one.process.stderr.read()


@pytest.mark.slow
def test_a_used_address_makes_the_terminal_show_a_new_one(table):
    with running(table.parent, table, "--target", "kind") as one:
        one.enter()
        with httpx.Client(verify=False, timeout=60) as other:
            assert other.get(one.address.strip()).status_code == 401
            new = one.process.stdout.readline()
            assert ADDRESS.fullmatch(new)
            assert new != one.address
            assert other.get(new.strip()).status_code == 200
        code, out, err = one.end()
        assert (code, out, err) == (130, "", "")


@pytest.mark.slow
def test_the_browser_is_opened_unless_told_not_to(table):
    with running(table.parent, table, "--target", "kind", options=()) as one:
        until(lambda: (table.parent / "opened").exists() and (table.parent / "opened").read_text())
        assert (table.parent / "opened").read_text() == one.address
        one.end()
    (table.parent / "opened").unlink()
    with running(table.parent, table, "--target", "kind") as one:
        one.enter()
        one.end()
    assert not (table.parent / "opened").exists()


@pytest.mark.slow
def test_a_fixed_port_is_used_again_after_a_restart(table):
    port = str(20_000 + os.getpid() % 10_000)  # none that the system gives to others, nor the usual one
    with running(table.parent, table, "--target", "kind", "--port", port) as one:
        one.enter()
        one.process.kill()
        one.process.wait()
        with running(table.parent, table, "--target", "kind", "--port", port) as two:
            assert ADDRESS.fullmatch(two.address)[1] == port
            assert one.client.get("/api/state").status_code == 401  # the old cookie is worth nothing
            assert one.client.get(two.address.strip()).status_code == 200
            assert one.client.get("/api/state").status_code == 200


def test_the_demo_needs_nothing(tmp_path):
    with running(tmp_path, "--demo") as one:
        one.enter()
        state = one.client.get("/api/state").json()
        assert (state["n"], state["kind"], len(state["classes"])) == (1797, "images", 10)
        assert one.client.get("/api/picture/0").headers["content-type"] == "image/png"
        page = one.client.get("/").text
        for name in re.findall(r'(?:src|href)="(/[^"]+)"', page):
            assert one.client.get(name).status_code == 200, name
        assert one.end()[0] == 130
    assert sorted(path.name for path in (tmp_path / "greenlabel-demo").iterdir()) == [
        "digits.csv",
        "digits.csv.digit.labels.jsonl",
    ]


# Killed at any moment


def stream_labels(one, rows, acknowledged):
    """Labels, one after the other, until the server is gone; those that were confirmed are kept."""
    with suppress(httpx.HTTPError):
        for number, row in rows:
            reply = one.post("/api/action", {"id": f"k{number}", "do": "label", "rows": [row], "class": row % 2})
            if reply.status_code == 200:
                acknowledged[row] = row % 2


def kill_rounds(table, n_rounds):
    """Labels that were confirmed before each of many kills, and what is there after each."""
    rng, acknowledged, number = random.Random(0), {}, 0
    for _ in range(n_rounds):
        with running(table.parent, table, "--target", "kind", "--classes", "a,b") as one:
            one.enter()
            found = one.client.get("/api/state").json()["given_rows"]
            assert dict(zip(found["rows"], found["classes"], strict=True)).items() >= acknowledged.items()
            rows = [(number + i, rng.randrange(N)) for i in range(10_000)]
            number += len(rows)
            streaming = threading.Thread(target=stream_labels, args=(one, rows, acknowledged))
            streaming.start()
            time.sleep(rng.random())
            one.process.kill()
            streaming.join(60)
    return acknowledged


@pytest.mark.slow
def test_no_kill_ever_loses_a_label_that_was_confirmed(table):
    assert len(kill_rounds(table, 12)) > N // 2


# Refusals


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "needs a table"),
        (["t.csv"], "needs the column to fill"),
        (["--demo", "--target", "kind"], "--demo brings its own table, got --target too"),
        (["t.csv", "--demo"], "--demo brings its own table, got a table too"),
        (["--demo", "--classes", "a,b"], "--demo brings its own table, got --classes too"),
        (["nothing.csv", "--target", "kind"], "nothing.csv does not exist"),
        (["-", "--target", "kind"], "annotate needs a file"),
        (["t.csv", "--target", "kinds"], "did you mean 'kind'"),
        (["t.csv", "--target", "kind", "--host", "0.0.0.0"], "can be reached from the network, without encryption"),
        (["t.csv", "--target", "kind", "--host", "evil.example", "--allow-network"], "is no address"),
        (["t.csv", "--target", "kind", "--image-shape", "3x3"], "needs 9 columns of pixels"),
        (["t.csv", "--target", "kind", "--vectors", "no.npy"], "no.npy does not exist"),
        (["t.csv", "--target", "kind", "--classes", "a,b\a"], "is no name of a class"),
        (["t.csv", "--target", "kind", "--classes", "a," + 300 * "b"], "a class name of 300 characters is too long"),
    ],
)
def test_what_cannot_be_is_one_line(table, words, sentence, capsys, monkeypatch):
    monkeypatch.chdir(table.parent)
    assert run("annotate", *words, "--no-browser") == 1
    assert sentence in refusal(capsys)
    assert sorted(path.name for path in table.parent.iterdir()) == ["t.csv"]


def test_a_taken_port_is_one_line(table, capsys, monkeypatch):
    from greenlabel.annotate.app.server import listen

    with listen("127.0.0.1", 0) as other:
        port = other.getsockname()[1]
        assert run("annotate", table, "--target", "kind", "--port", port, "--no-browser") == 1
    assert f"Port {port} is taken" in refusal(capsys)


WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in {missing!r}:
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Missing())
sys.argv = ["greenlabel", *{words!r}]
from greenlabel.__main__ import main
main()
"""


def without(missing, words, folder):
    """The command where some libraries are not installed."""
    return scripted(WITHOUT.format(missing=missing, words=words), folder)


def scripted(script, folder):
    environment = os.environ | {"PYTHONPATH": str(Path(greenlabel.__file__).parents[1])}
    command = [sys.executable, "-c", script]
    return subprocess.run(command, capture_output=True, encoding="utf-8", cwd=folder, env=environment)


@pytest.mark.parametrize("library", ["starlette", "uvicorn", "polars"])
def test_a_missing_library_is_one_line(library, tmp_path):
    done = without([library], ["annotate", "--demo"], tmp_path)
    extra = "tables" if library == "polars" else "annotate"
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr == f"greenlabel: This needs {library}, which is not installed; pip install 'greenlabel[{extra}]'.\n"
    )


def test_without_a_home_no_map_is_kept(monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pathlib.Path.home", nowhere)
    assert cache_folder() is None


def test_the_command_line_starts_without_the_libraries_of_the_page(tmp_path):
    done = without(["starlette", "uvicorn"], ["--help"], tmp_path)
    assert done.returncode == 0
    assert "annotate" in done.stdout


INTERRUPTED = """
import signal, sys
import uvicorn
serve = uvicorn.Server.serve
def interrupted(self, sockets=None):
    begun = serve(self, sockets)
    signal.raise_signal(signal.SIGINT)
    return begun
uvicorn.Server.serve = interrupted
sys.argv = ["greenlabel", *{words!r}]
from greenlabel.__main__ import main
main()
"""


def test_ctrl_c_just_before_the_server_runs_is_silent_too(table):
    words = ["annotate", str(table), "--target", "kind", "--no-browser"]
    done = scripted(INTERRUPTED.format(words=words), table.parent)
    assert done.returncode == 130
    assert ADDRESS.fullmatch(done.stdout)
    assert done.stderr == ""


@pytest.mark.slow
def test_an_open_page_says_what_that_means(table):
    words = (table, "--target", "kind", "--host", "0.0.0.0", "--allow-network")
    with running(table.parent, *words) as one:
        assert "/?token=" in one.address
        _, _, err = one.end()
        assert err == "Others can reach this page, and nothing is encrypted: whoever sees the address can use it.\n"
