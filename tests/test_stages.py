"""Times that commands tell: the stages share out the whole time, whatever happens between them."""

import itertools
import json

import numpy as np
import polars as pl
import pytest
from threadpoolctl import threadpool_info

from greenlabel import label_table
from greenlabel._common.stages import Stages
from greenlabel.tables.report.words import SPACE, time_text
from helpers.command_line import run


class Clock:
    """Every reading is a second later than the one before."""

    def __init__(self):
        self.readings = itertools.count(100.0)
        self.first = self.last = None

    def __call__(self):
        self.last = next(self.readings)
        if self.first is None:
            self.first = self.last
        return self.last

    @property
    def whole(self):
        return self.last - self.first


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr("greenlabel._common.stages.perf_counter", found)
    monkeypatch.setattr("greenlabel.cli.perf_counter", found)
    return found


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    size = rng.normal(size=120) + 8 * (np.arange(120) % 2)
    return pl.DataFrame({"size": size, "kind": [("tool", "toy")[i % 2] if i < 24 else None for i in range(120)]})


def test_stages_add_up_to_the_time_since_the_clock_began(clock):
    began = clock()
    stages = Stages(began=began)
    clock()
    with stages("graph"):
        clock()
        with stages("search"):
            clock()
        clock()
    with stages("graph"):
        pass
    seconds = stages.seconds
    assert list(seconds) == ["start", "graph", "search", "other"]
    assert sum(seconds.values()) == clock.last - began
    assert seconds["search"] == 2
    assert seconds["graph"] == 2 + 2 + 1  # what lies inside is not counted twice
    assert sum(stages.seconds.values()) == clock.last - began


def test_a_clock_that_runs_goes_on():
    stages, heard = Stages(), []
    assert Stages.of(stages) is stages
    with Stages.of(heard.append)("graph"):
        assert heard == ["graph"]
    assert list(Stages.of(None).seconds) == ["other"]


def test_the_times_of_label_table_are_all_of_its_time(clock, frame):
    _, result = label_table(frame, "kind")
    assert sum(result.seconds.values()) == clock.whole
    assert list(result.seconds) == ["features", "experts", "labels", "check", "other"]


@pytest.mark.slow
def test_the_times_of_label_are_the_whole_run(clock, frame, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame.write_csv("t.csv")
    assert run("label", "t.csv", "-t", "kind", "--json", "--report", "r.html", "--save", "m.green") == 0
    seconds = json.loads(capsys.readouterr().out)["seconds"]
    assert sum(seconds.values()) == clock.whole
    work = ["features", "experts", "labels", "check"]
    assert list(seconds) == ["start", "reading", *work, "writing", "saving", "report", "other"]
    clock.first = None
    assert run("label", "t.csv", "-t", "kind", "--json", "-f") == 0
    seconds = json.loads(capsys.readouterr().out)["seconds"]
    assert sum(seconds.values()) == clock.whole
    assert list(seconds) == ["start", "reading", *work, "writing", "next rows", "other"]
    clock.first = None
    assert run("suggest", "t.csv", "-t", "kind", "--json") == 0
    seconds = json.loads(capsys.readouterr().out)["seconds"]
    assert sum(seconds.values()) == clock.whole
    assert list(seconds) == ["start", "reading", "features", "experts", "labels", "next rows", "other"]


def test_the_times_of_a_table_in_blocks_and_of_predict_are_the_whole_run(clock, frame, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame.write_csv("t.csv")
    assert run("label", "t.csv", "-t", "kind", "--json", "--memory-limit", "1", "--save", "m.green") == 0
    seconds = json.loads(capsys.readouterr().out)["seconds"]
    assert sum(seconds.values()) == clock.whole
    assert list(seconds) == ["start", "reading", "features", "experts", "check", "writing", "saving", "other"]
    for more in ([], ["--memory-limit", "1"]):
        clock.first = None
        assert run("predict", "m.green", "t.csv", "--json", "--force", *more) == 0
        seconds = json.loads(capsys.readouterr().out)["seconds"]
        assert sum(seconds.values()) == clock.whole
        assert {"start", "reading", "writing", "other"} <= set(seconds)


def test_the_summary_names_what_took_the_time(frame, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame.write_csv("t.csv")
    assert run("label", "t.csv", "-t", "kind", "--save", "m.green") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "time" in text
    assert "(start " in text
    assert " experts " in text
    assert run("predict", "m.green", "t.csv", "--force") == 0
    assert "(start " in capsys.readouterr().out


def test_what_takes_no_time_is_not_named():
    assert (
        time_text({"start": 1.0, "graph": 0.0001, "other": 0.25}).replace(SPACE, " ")
        == "1.3 s (start 1.0 s, other 250 ms)"
    )
    assert time_text({"other": 0.0}).replace(SPACE, " ") == "< 1 ms"


@pytest.mark.slow
def test_the_demo_says_how_long_the_whole_took(clock, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("greenlabel.demo.map_of", lambda X: np.asarray(X)[:, 2:4])
    assert run("demo", "--out", tmp_path) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert said.startswith(f"It took {clock.whole:.1f} s (start 1.0 s, labels 1.0 s, map 1.0 s, picture 1.0 s, other ")


def test_the_map_of_the_demo_runs_on_one_thread(monkeypatch):
    from greenlabel.demo import map_of

    threads = []

    def watched(self, X):
        threads.extend(pool["num_threads"] for pool in threadpool_info())
        return X[:, :2]

    monkeypatch.setattr("sklearn.manifold.TSNE.fit_transform", watched)
    map_of(np.eye(5))
    assert threads
    assert set(threads) == {1}
