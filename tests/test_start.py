"""The command line at its edges: what loads before it speaks, Ctrl-C while it loads, and a reader that has gone."""

import os
import pickle
import random
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
import typer

import greenlabel
from greenlabel.cli import app
from greenlabel.kernels import library

HEAVY = ["numpy", "scipy", "sklearn", "faiss", "polars", "pandas", "skrub", "pyarrow", "matplotlib", "dask", "psutil"]
LABEL = ["label", "shop.csv", "--target", "kind"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a small table."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{i % 2 * 9 + i / 100},{'ab'[i % 2] if i < 20 else ''}" for i in range(60)]
    (tmp_path / "shop.csv").write_text("\n".join(["size,kind", *rows]) + "\n")
    return tmp_path


def commands(command, name=()):
    """Every command by its words, those below it too."""
    yield name
    for child, sub in getattr(command, "commands", {}).items():
        yield from commands(sub, (*name, child))


COMMANDS = list(commands(typer.main.get_command(app)))
QUICK = [
    ["--version"],
    ["lable"],
    ["label", "nofile.csv", "--target", "y"],
    ["label", "shop.csv"],
    ["label", "shop.csv", "--target", "kind", "--method", "magic"],
    ["predict", "nomodel.green", "shop.csv"],
    ["predict", "shop.csv", "nofile.csv"],
    ["paper", "run", "--data", "nofolder"],
    *([*words, "--help"] for words in COMMANDS),
    *([*words, "--no-such-option"] for words in COMMANDS),
]


@pytest.mark.slow
def test_help_and_refusals_load_no_numerical_library(folder):
    code = f"""
import contextlib, io, sys
from greenlabel.cli import main
for words in {QUICK!r}:
    sys.argv = ["greenlabel", *words]
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    with contextlib.suppress(SystemExit):
        main()
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    loaded = [name for name in {HEAVY!r} if name in sys.modules]
    if loaded:
        raise SystemExit(f"{{words}} loaded {{loaded}}")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_command_is_among_those():
    assert {("demo",), ("label",), ("predict",), ("paper",), ("paper", "list")} <= set(COMMANDS)


NO_FAISS = """
import sys
import numpy as np
from greenlabel import AnchoredGreenClassifier, GreenClassifier
from greenlabel.graph import anchor_search, neighbors

neighbors.EXACT_OPERATIONS = 1e6  # approximate searches too
anchor_search.EXACT_POINTS = 100
X = np.random.default_rng(0).normal(size=(4000, 70))
y = np.where(np.arange(4000) < 10, np.arange(4000) % 2, -1)
for model in (GreenClassifier(), AnchoredGreenClassifier(64), AnchoredGreenClassifier(1000)):
    model.fit(X, y).predict(X[:5] + 0.1)
assert "faiss" not in sys.modules
"""


@pytest.mark.skipif(library() is None, reason="this installation has no kernels: no C compiler was there")
def test_classifiers_of_one_graph_do_not_load_faiss():
    """With which scikit-learn would search neighbours on one thread, in the whole process."""
    done = subprocess.run([sys.executable, "-c", NO_FAISS], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["label", "shp.csv", "-t", "kind"], "shp.csv does not exist; did you mean shop.csv?"),
        (["label", "hi.csv", "-t", "kind"], "hi.csv does not exist; check the name.\n"),
        (["label", "shop.csv", "-t", "kind", "--shares", "no/s.json"], "no/s.json does not exist; check the name.\n"),
        (["label", "no/t.csv", "-t", "kind"], "no/t.csv does not exist; check the name."),
        (
            ["predict", "no.green", "shop.csv"],
            "no.green does not exist; give a file written by greenlabel label --save.",
        ),
        (["predict", "shop.csv", "nofile.csv"], "nofile.csv does not exist"),
    ],
)
def test_a_missing_file_is_one_sentence(folder, words, sentence):
    done = greenlabel_process(*words, capture_output=True, text=True)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def greenlabel_process(*words, **options):
    return subprocess.run([sys.executable, "-m", "greenlabel", *words], **options)


# Names of the package


@pytest.mark.slow
def test_names_are_there_before_their_modules_are():
    code = f"""
import sys, greenlabel
assert set(greenlabel.__all__) <= set(dir(greenlabel))
assert not [name for name in {HEAVY!r} if name in sys.modules]
from greenlabel import GreenClassifier, UNLABELED, leave_one_out
assert GreenClassifier is greenlabel.GreenClassifier is sys.modules["greenlabel.estimators.knn"].GreenClassifier
assert "GreenClassifier" in vars(greenlabel)
assert not hasattr(greenlabel, "nothing")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_names_know_where_they_come_from():
    for name in greenlabel.__all__:
        thing = getattr(greenlabel, name)
        assert getattr(thing, "__module__", "greenlabel").startswith("greenlabel")
        assert pickle.loads(pickle.dumps(thing)) == thing


# Ctrl-C

KILL_AT = """
import os, signal, sys
class KillAt:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, KillAt())
sys.argv = ["greenlabel", *{words!r}]
from greenlabel.__main__ import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "greenlabel._common.process",
        "greenlabel.cli",
        "typer",
        "rich.console",
        "polars",
        "numpy",
        "sklearn.base",
    ],
)
def test_an_interrupt_while_a_library_loads_is_silent(folder, name):
    code = KILL_AT.format(name=name, words=LABEL)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.slow
@pytest.mark.parametrize("words", [["demo"], ["paper", "list"], ["paper", "run", "rings"]])
def test_every_command_loads_its_libraries_so(folder, words):
    code = KILL_AT.format(name="scipy", words=words)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.slow
def test_an_interrupt_at_ten_moments_of_the_start_is_silent(folder):
    code = "import sys, greenlabel.__main__ as door; print(flush=True); sys.argv[0] = 'greenlabel'; door.main()"
    moments = random.Random(0)
    for _ in range(10):
        process = subprocess.Popen(
            [sys.executable, "-c", code, *LABEL, "--force"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        process.stdout.readline()
        time.sleep(moments.uniform(0.005, 0.8))
        is_over = process.poll() is not None
        os.kill(process.pid, signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        assert said == b""
        assert is_over or process.returncode == 130


def test_the_script_is_the_door_that_hears_interrupts():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    assert project["project"]["scripts"] == {"greenlabel": "greenlabel.__main__:main"}


# A closed pipe

OUT, BOTH = ["stdout"], ["stdout", "stderr"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "closed"),
    [
        (["--help"], OUT),
        (["--help"], BOTH),
        (["paper", "list"], OUT),
        ([*LABEL, "--json"], OUT),
        ([*LABEL, "--json"], BOTH),
        ([*LABEL, "-o", "-", "-q"], OUT),
        ([*LABEL, "-o", "-"], BOTH),
        (["label", "nofile", "-t", "y"], BOTH),
    ],
)
def test_a_reader_that_has_gone_is_no_news(folder, words, closed):
    ours, theirs = os.pipe()
    os.close(ours)
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | dict.fromkeys(closed, theirs)
    done = greenlabel_process(*words, **streams)
    os.close(theirs)
    assert not done.stderr
    assert done.returncode == 1


def test_faiss_runs_on_one_thread_where_linear_algebra_does_however_late_it_is_loaded():
    code = """
from greenlabel._common.threads import load_faiss, n_threads, one_thread
n_threads()
faiss = load_faiss()
faiss.omp_set_num_threads(2)
with one_thread():
    assert faiss.omp_get_max_threads() == 1
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_one_thread_lasts_until_the_last_that_asked_for_it_has_ended():
    code = """
from threading import Event, Thread
import scipy.linalg
from threadpoolctl import ThreadpoolController, threadpool_limits
from greenlabel._common.threads import one_thread

def threads():
    return [each.num_threads for each in ThreadpoolController().select(user_api="blas").lib_controllers]

def long():
    with one_thread():
        began.set()
        ended.wait()
        inside.append(threads())

def together():
    global began, ended, inside
    began, ended, inside = Event(), Event(), []
    with one_thread():
        other = Thread(target=long, daemon=True)
        other.start()
        began.wait()
    assert set(threads()) == {1}, threads()
    ended.set()
    other.join()
    assert set(inside[0]) == {1}, inside

def after_another():
    global began, ended, inside
    began, ended, inside = Event(), Event(), []
    other = Thread(target=long, daemon=True)
    other.start()
    began.wait()
    with one_thread():
        assert set(threads()) == {1}, threads()
        ended.set()
        other.join()
        assert set(threads()) == {1}, threads()

threadpool_limits(2)
before = threads()
assert 2 in before, before
for meeting in (together, after_another, together):
    meeting()
    assert threads() == before, (meeting, threads())
    with threadpool_limits(2):  # of which this thread keeps control
        meeting()
        assert threads() == before, (meeting, threads())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_threads_that_come_first_together_count_together():
    code = """
from threading import Barrier, Thread
from greenlabel._common.threads import libraries
gate, made = Barrier(8), []

def first():
    gate.wait()
    made.append(libraries())

comers = [Thread(target=first) for _ in range(8)]
for one in comers: one.start()
for one in comers: one.join()
assert len(made) == 8 and len({id(one) for one in made}) == 1, made
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
