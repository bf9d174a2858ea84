"""Tables that are read in blocks: the predictions of memory, output that is whole or not there, plain refusals."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from distributed import Client, LocalCluster

from greenlabel.blocks.on_dask import connect, current_client
from greenlabel.blocks.parquet import ParquetBlocks
from greenlabel.tables import streaming
from greenlabel.tables.io import blocks as table_blocks
from greenlabel.tables.io import csv_text
from greenlabel.tables.io.blocks import must_stream, read_size
from greenlabel.tables.progress import Bar, progress
from greenlabel.tables.streaming import sample_of
from helpers.command_line import refusal, run
from helpers.estimators import FEW_TREES

N = 600
WORDS = np.array([["small", "red", "ball", "for", "children"], ["heavy", "steel", "hammer", "for", "nails"]])


BLOCKS = ["--memory-limit", "0"]  # nothing fits
ROWS = ["rows", "-t", "kind", "-o", "out/", *BLOCKS]
CSV = ["goods.csv", "-t", "kind", "--memory-limit", "0", "-o", "out.csv"]


def goods():
    """Mixed columns with gaps, and a kind that one row in ten has."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, N)
    return pl.DataFrame(
        {
            "row": np.arange(N),
            "size": pl.Series(rng.normal(size=N) + 2 * kind).set(pl.Series(np.arange(N) % 17 == 3), None),
            "price": 1000 * (rng.normal(size=N) + kind),
            "color": np.array(["red", "grey", "green"])[(kind + (rng.random(N) < 0.3)) % 3],
            "note": [" ".join(WORDS[i][rng.integers(0, 5, 3)]) for i in kind],
            "when": [f"2024-0{1 + i % 9}-1{i % 3}" for i in range(N)],
            "kind": [("toy", "tool")[i] if rng.random() < 0.1 else None for i in kind],
        }
    )


def write_all(frame, folder):
    """The same table as one CSV, one Parquet file, and a folder of them with small row groups."""
    frame.write_csv(folder / "goods.csv")
    frame.write_parquet(folder / "goods.parquet", row_group_size=100)
    (folder / "rows").mkdir(exist_ok=True)
    for i, part in enumerate(np.array_split(np.arange(N), 3)):
        frame[part].write_parquet(folder / "rows" / f"r{i}.parquet", row_group_size=90)


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The table labelled in memory by the blend, with its model; by the anchored graph; by a blend with such graphs."""
    folder = tmp_path_factory.mktemp("memory")
    write_all(goods(), folder)
    before = Path.cwd()
    os.chdir(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("greenlabel.blend.experts.TREES", FEW_TREES)  # as in all tests
        words = ["-t", "kind", "-q"]
        assert run("label", "goods.csv", *words, "-o", "memory.csv", "--save", "memory.green") == 0
        assert run("label", "goods.parquet", *words, "-o", "memory.parquet") == 0
        assert run("label", "goods.parquet", *words, "-o", "anchored.parquet", "--method", "anchored") == 0
        patch.setattr("greenlabel.blend.experts.ANCHORED_ROWS", 100)
        patch.setattr("greenlabel.blend.in_blocks.SAMPLE_ROWS", 200)
        assert run("label", "goods.parquet", *words, "-o", "beyond.parquet") == 0
    os.chdir(before)
    return folder


@pytest.fixture
def beyond(monkeypatch):
    """Few rows are too many to be read at once."""
    monkeypatch.setattr("greenlabel.blend.in_blocks.MEMORY_ROWS", 100)
    monkeypatch.setattr("greenlabel.blend.in_blocks.SAMPLE_ROWS", 200)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with the table in all forms; a CSV has about ten blocks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(csv_text, "BLOCK_BYTES", 4000)
    write_all(goods(), tmp_path)
    return tmp_path


INPUTS = ("goods.csv", "goods.parquet", "goods.xlsx", "rows")


def left(folder):
    """What is new in the folder; hidden names too."""
    return sorted(path.name for path in folder.iterdir() if path.name not in INPUTS)


# The same predictions -----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("table", ["rows", "rows/r*.parquet", "goods.parquet"])
def test_blocks_of_parquet_give_the_answers_of_memory(folder, expected, table):
    assert run("label", table, "-t", "kind", "--memory-limit", "0", "-o", "out/", "-q") == 0
    parts = sorted((folder / "out").iterdir())
    assert [part.name for part in parts] == [f"part-{i:05}.parquet" for i in range(6 if "goods" in table else 9)]
    assert pl.read_parquet("out/*.parquet").equals(pl.read_parquet(expected / "memory.parquet"))


def test_text_of_digits_stays_text_at_once_and_in_blocks(folder):
    kind = pl.col("kind").replace({"toy": "1", "tool": "2"})
    goods().with_columns(kind, pl.col("row").cast(pl.String)).write_parquet("codes.parquet", row_group_size=100)
    for out, *words in (["memory.parquet"], ["blocks.parquet", *BLOCKS]):
        assert run("label", "codes.parquet", "-t", "kind", "-o", out, "-q", *words) == 0
    at_once = pl.read_parquet("memory.parquet")
    assert at_once.schema["kind"] == at_once.schema["row"] == at_once.schema["kind_predicted"] == pl.String
    assert pl.read_parquet("blocks.parquet").equals(at_once)


@pytest.mark.usefixtures("beyond")
def test_blocks_beyond_memory_give_the_answers_of_an_array_of_as_many_rows(folder, expected):
    assert run("label", "rows", "-t", "kind", "--memory-limit", "0", "-o", "out/", "-q") == 0
    assert pl.read_parquet("out/*.parquet").equals(pl.read_parquet(expected / "beyond.parquet"))
    assert run("label", "rows", "-t", "kind", "--memory-limit", "70kB", "-o", "out/", "-q", "--force") == 0
    assert pl.read_parquet("out/*.parquet").equals(pl.read_parquet(expected / "beyond.parquet"))


def test_the_anchored_graph_alone_is_there_by_its_option(folder, expected):
    assert run("label", "rows", "-t", "kind", "--memory-limit", "0", "--method", "anchored", "-o", "out/", "-q") == 0
    assert pl.read_parquet("out/*.parquet").equals(pl.read_parquet(expected / "anchored.parquet"))


@pytest.mark.slow
@pytest.mark.usefixtures("beyond")
def test_a_model_and_a_report_of_blocks_beyond_memory(folder, capsys):
    words = ["--save", "m.green", "--report", "r.html", "--json"]
    assert run("label", *ROWS, *words) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["method"] == "BlendedClassifier"
    assert set(facts["experts"]) == {
        *("graph", "weighted graph", "trees", "logistic", "rbf kernel", "laplace kernel", "blend")
    }
    assert facts["graph"]["anchors"] > 50
    assert "Experts" in (folder / "r.html").read_text()
    goods().drop("kind").write_parquet("new.parquet", row_group_size=70)
    assert run("predict", "m.green", "new.parquet", "-o", "a.parquet", "-q") == 0
    assert run("predict", "m.green", "new.parquet", "--memory-limit", "0", "-o", "b/", "-q") == 0
    assert pl.read_parquet("a.parquet").equals(pl.read_parquet("b/*.parquet"))


@pytest.mark.slow
def test_blocks_of_csv_give_the_file_of_memory(folder, expected):
    assert run("label", "goods.csv", "-t", "kind", "--memory-limit", "1kB", "-q") == 0
    assert (folder / "goods-labelled.csv").read_bytes() == (expected / "memory.csv").read_bytes()
    assert run("label", "goods.csv", "-t", "kind", "--memory-limit", "0", "-o", "parts/", "-q") == 0
    parts = [pl.read_csv(path) for path in sorted((folder / "parts").iterdir())]
    assert len(parts) > 5
    assert pl.concat(parts).equals(pl.read_csv(expected / "memory.csv"))


@pytest.mark.slow
@pytest.mark.parametrize("out", ["out.csv", "out.tsv", "out.parquet"])
def test_blocks_become_one_file_too(folder, expected, out):
    assert run("label", "rows", "-t", "kind", "-o", out, "-q", *BLOCKS) == 0
    whole = pl.read_parquet(expected / "memory.parquet")
    if out == "out.parquet":
        assert pl.read_parquet(out).equals(whole)
    else:
        separator = {".csv": ",", ".tsv": "\t"}[out[3:]]
        assert Path(out).read_text() == whole.write_csv(separator=separator)


@pytest.mark.slow
def test_all_options_mean_what_they_mean_in_memory(folder):
    frame = goods().with_columns(kind=pl.col("kind").fill_null("?"))
    frame.write_csv("goods.csv")
    options = ["--id", "row", "--drop", "when", "--features", "*", "--unlabelled", "?", "--scale", "standard"]
    options += ["--only-confident", "0.9", "--seed", "3", "-t", "kind", "--json"]
    for name, more in [("a.csv", []), ("b.csv", ["--memory-limit", "0"])]:
        assert run("label", "goods.csv", *options, *more, "-o", name) == 0
    first, second = (pl.read_csv(name) for name in ("a.csv", "b.csv"))
    assert first.equals(second)
    assert 0 < first["kind"].null_count() < N / 2


@pytest.mark.slow
def test_the_summary_is_that_of_memory_and_counts_speed(folder, capsys):
    facts = []
    for more in (["goods.parquet", "-o", "a.csv"], ["rows", "-o", "b/", *BLOCKS]):
        assert run("label", *more, "-t", "kind", "--json") == 0
        facts.append(json.loads(capsys.readouterr().out))
    memory, stream = facts
    speed = stream.pop("stream")
    for one in facts:
        one.pop("seconds")
    assert len(memory.pop("label_next")) == 10  # which would take a pass more in blocks
    assert stream == memory
    assert speed["blocks"] == 9
    assert speed["sample_rows"] == N
    assert speed["values_never_seen"] == {}
    size = sum(path.stat().st_size for path in (folder / "rows").iterdir())
    assert speed["bytes_per_second"] / speed["rows_per_second"] == pytest.approx(size / N)
    assert run("label", "rows", "-t", "kind", *BLOCKS) == 0
    said = capsys.readouterr().out
    assert "rows/s" in said
    assert "Wrote rows-labelled/" in said


@pytest.mark.slow
def test_a_model_of_blocks_is_that_of_memory_and_predicts_in_blocks(folder, expected):
    assert run("label", *ROWS, "--save", "m.green", "-q") == 0
    new = goods().drop("kind")
    new.write_parquet("new.parquet", row_group_size=70)
    new.write_csv("new.csv")
    assert run("predict", "m.green", "new.parquet", "-o", "a.parquet", "-q") == 0
    assert run("predict", expected / "memory.green", "new.csv", "-o", "a.csv", "-q") == 0
    assert run("predict", "m.green", "new.parquet", "--memory-limit", "0", "-o", "b/", "-q") == 0
    assert run("predict", "m.green", "new.csv", "--memory-limit", "0", "-o", "b.csv", "-q") == 0
    assert pl.read_parquet("a.parquet").equals(pl.read_parquet("b/*.parquet"))
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


@pytest.mark.slow
def test_predict_keeps_labels_and_adds_up_what_it_says(folder, capsys):
    assert run("label", *ROWS, "--save", "m.green", "-q") == 0
    goods().with_columns(color=pl.lit("pink")).write_parquet("new.parquet", row_group_size=70)
    facts = []
    for name, more in [("a.csv", []), ("b.csv", ["--memory-limit", "0"])]:
        assert run("predict", "m.green", "new.parquet", "--only-confident", "0.8", "--json", "-o", name, *more) == 0
        facts.append(json.loads(capsys.readouterr().out))
    speed = facts[1].pop("stream")
    assert speed["blocks"] == 9
    for found in facts:
        assert found.pop("seconds")["writing"] > 0
    assert facts[0] == facts[1]
    assert facts[0]["values_never_seen"] == {"color": N}
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


@pytest.mark.slow
def test_an_empty_column_of_numbers_becomes_the_classes_in_every_block(folder):
    """The type is decided by all rows: a block without labels must not have another than the next."""
    assert run("label", *ROWS, "--save", "m.green", "-q") == 0
    goods().with_columns(kind=pl.lit(None, dtype=pl.Float64)).write_parquet("new.parquet", row_group_size=100)
    assert run("predict", "m.green", "new.parquet", "--memory-limit", "0", "-o", "b.parquet", "-q") == 0
    assert set(pl.read_parquet("b.parquet")["kind"]) == {"toy", "tool"}


@pytest.mark.slow
def test_the_report_says_that_it_is_made_from_a_sample(folder, monkeypatch):
    monkeypatch.setattr(streaming, "PAGE_ROWS", 50)
    assert run("label", *ROWS, "--report", "r.html", "-q") == 0
    page = (folder / "r.html").read_text()
    assert "Made from a sample." in page
    assert "of its 600 rows were kept for this page" in page
    assert "Of 600 rows" in page
    numbers = {int(text.split(":")[0]) for text in page.split(">Row ")[1:]}
    assert max(numbers) > 200, "rows are numbered as in the whole table"


# The sample ---------------------------------------------------------------------------------------------------------


def small_sample(monkeypatch, size):
    monkeypatch.setattr(streaming, "SAMPLE_ROWS", size)
    monkeypatch.setattr(streaming, "MIN_SAMPLE", size)


def test_the_sample_holds_labelled_rows_and_depends_on_the_seed_alone():
    given = np.where(np.arange(10_000) % 100 == 0, 1, -1)
    first = sample_of(given, 500, 0)
    assert np.isin(np.flatnonzero(given >= 0), first).all()
    assert (np.diff(first) > 0).all()
    assert 500 <= len(first) <= 600
    assert np.array_equal(first, sample_of(given, 500, 0))
    assert not np.array_equal(first, sample_of(given, 500, 1))


@pytest.mark.slow
def test_values_unlike_the_sample_are_gaps_and_counted_and_go_out_as_they_came(folder, monkeypatch, capsys):
    small_sample(monkeypatch, 40)
    frame = goods().with_columns(pl.col("price").cast(pl.String))
    given = np.where(frame["kind"].is_null().to_numpy(), -1, 0)
    unknown = np.setdiff1d(np.arange(N), sample_of(given, 40, 0))[[5, 200, 300]]
    marked = pl.Series(np.isin(np.arange(N), unknown))
    frame.with_columns(price=frame["price"].set(marked, "dear"), color=frame["color"].set(marked, "pink")).write_csv(
        "goods.csv"
    )
    assert run("label", "goods.csv", "-t", "kind", "--memory-limit", "0", "-o", "a.csv", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["stream"]["values_never_seen"] == {"price": 3, "color": 3}
    assert facts["stream"]["sample_rows"] < 120
    assert pl.read_csv("a.csv", infer_schema=False)["price"].to_list().count("dear") == 3
    frame.with_columns(price=frame["price"].set(marked, None), color=frame["color"].set(marked, None)).write_csv(
        "goods.csv"
    )
    assert run("label", "goods.csv", "-t", "kind", "--memory-limit", "0", "-o", "b.csv") == 0
    first, second = (pl.read_csv(name, infer_schema=False) for name in ("a.csv", "b.csv"))
    columns = ["kind", "kind_confidence", "kind_margin"]
    assert first.filter(~marked).select(columns).equals(second.filter(~marked).select(columns))
    assert "unlike the sample" not in capsys.readouterr().out


def test_a_decimal_comma_is_known_from_the_sample(folder, monkeypatch):
    """A block may hold 1,234 alone, which by itself could be a thousand."""
    frame = goods().select("kind", price=pl.col("price").map_elements(lambda x: f"{x / 1000:.3f}".replace(".", ",")))
    frame = frame.with_columns(price=pl.when(pl.int_range(N) == 7).then(pl.lit("0,5")).otherwise("price"))
    frame.write_csv("goods.csv", separator=";")
    for name, more in [("a.csv", []), ("b.csv", ["--memory-limit", "0"])]:
        assert run("label", "goods.csv", "-t", "kind", "-q", "-o", name, *more) == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


# When ---------------------------------------------------------------------------------------------------------------


def test_a_table_is_read_in_blocks_when_it_does_not_fit(folder, monkeypatch):
    size = csv_text.TEXT_GROWS * (folder / "goods.csv").stat().st_size
    for several in ("rows", "rows/*.parquet"):
        fits = table_blocks.PARQUET_GROWS * ParquetBlocks(several).unpacked_bytes
        assert not must_stream(several, None, None)
        assert not must_stream(several, None, fits)
        assert must_stream(several, None, fits - 1)
        assert must_stream(several, "local", None)
    assert not must_stream("goods.csv", None, None)
    assert not must_stream("goods.csv", None, size)
    assert must_stream("goods.csv", None, size - 1)
    assert must_stream("goods.csv", "local", None)
    assert not must_stream("goods.xlsx", None, 0)
    assert not must_stream("-", None, 0)
    free = type("Free", (), {"available": 2 * size - 2})
    monkeypatch.setattr(table_blocks.psutil, "virtual_memory", lambda: free)
    assert must_stream("goods.csv", None, None), "half of what is free"
    free.available = 2 * size
    assert not must_stream("goods.csv", None, None)


@pytest.mark.parametrize(
    ("text", "size"), [("4GB", 4 * 10**9), ("500 mb", 5 * 10**8), ("1.5k", 1500), ("0", 0), ("7", 7), (None, None)]
)
def test_sizes_are_read(text, size):
    assert read_size(text) == size


def test_a_bar_shows_the_time_left_of_blocks_alone(monkeypatch):
    from rich.console import Console

    with progress(True, False, None) as bar:
        assert isinstance(bar, Bar)
    monkeypatch.setenv("COLUMNS", "100")
    shown = []
    for counted in (False, True):
        console = Console(force_terminal=True, width=100, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
        monkeypatch.setattr("greenlabel.tables.progress.Console", lambda console=console, **options: console)
        with progress(False, False, None) as bar:
            if counted:
                bar.expect(10)
            with bar.stages("reading"):
                for _ in range(8):
                    time.sleep(0.02)
                    bar.tick()
            bar.shown.refresh()
            shown.append(console.export_text())
    assert " left" in shown[1]
    assert " left" not in shown[0]


# Output that is whole, or not there ---------------------------------------------------------------------------------

SLOW = """
import sys, time
from pathlib import Path
from greenlabel.blocks.on_dask import connect, current_client
from greenlabel.blocks.parquet import ParquetBlocks
from greenlabel.tables.io import csv_text
from greenlabel.tables.io import parts
csv_text.BLOCK_BYTES = 4000
def slow(writer):
    def opened(draft, suffix, style):
        write, close = writer(draft, suffix, style)
        def slowly(frame):
            write(frame)
            Path("writing").touch()
            time.sleep(60)
        return slowly, close
    return opened
parts.WRITERS.update({name: slow(writer) for name, writer in parts.WRITERS.items() if name != "folder"})
sys.argv = ["greenlabel", *sys.argv[1:]]
from greenlabel.cli import main
main()
"""


def interrupted(folder, sign, *words, send=os.kill):
    """The command, sent a signal when it has written its first block."""
    process = subprocess.Popen([sys.executable, "-c", SLOW, *words], stderr=subprocess.PIPE, start_new_session=True)
    while not (folder / "writing").exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    send(process.pid, sign)
    said = process.communicate(timeout=60)[1]
    assert process.returncode not in (0, None)
    (folder / "writing").unlink()
    return said


@pytest.mark.slow
def test_a_killed_run_leaves_the_old_output_whole(folder):
    (folder / "out").mkdir()
    (folder / "out" / "part-00000.parquet").write_text("mine")
    interrupted(folder, signal.SIGKILL, "label", *ROWS, "--force")
    assert [name for name in left(folder) if not name.startswith(".")] == ["out"]
    assert [path.name for path in (folder / "out").iterdir()] == ["part-00000.parquet"]
    assert (folder / "out" / "part-00000.parquet").read_text() == "mine"
    assert run("label", *ROWS, "--force", "-q") == 0, "what it left is in nobody's way"
    assert pl.read_parquet("out/*.parquet").height == N


@pytest.mark.slow
def test_an_interrupt_leaves_nothing(folder):
    said = interrupted(folder, signal.SIGINT, "label", *ROWS)
    assert b"Traceback" not in said
    assert left(folder) == []


@pytest.mark.slow
@pytest.mark.parametrize("has_exchange", [True, False])
def test_a_forced_folder_takes_the_place_of_the_old_one(folder, monkeypatch, has_exchange):
    if not has_exchange:
        monkeypatch.setattr("greenlabel._common.files.exchange", lambda one, other: False)
    (folder / "out").mkdir()
    (folder / "out" / "part-00099.parquet").write_text("mine")
    assert run("label", *ROWS, "--force", "-q") == 0
    assert pl.read_parquet("out/*.parquet").height == N
    assert left(folder) == ["out"]


@pytest.mark.slow
def test_a_full_disk_is_one_sentence_and_leaves_nothing(folder):
    """A limit on the size of files stands for the disk."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))\n"
        "from greenlabel.cli import main\n"
        "for out in ('out/', 'out.parquet', 'out.csv'):\n"
        "    sys.argv = ['greenlabel', 'label', 'rows', '-t', 'kind', '-o', out, '--memory-limit', '0']\n"
        "    try: main()\n"
        "    except SystemExit as end: print(end.code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.stdout == "1\n1\n1\n"
    said = done.stderr.splitlines()
    assert len(said) == 3
    for sentence, name in zip(said, ("out", "out.parquet", "out.csv"), strict=True):
        assert sentence.startswith(f"greenlabel: {name} cannot be written: ")
        assert "File too large" in sentence
        assert sentence.endswith("nothing was written.")
    assert left(folder) == []


# Refusals -----------------------------------------------------------------------------------------------------------


def rewrite(number, change):
    def do():
        path = f"rows/r{number}.parquet"
        change(pl.read_parquet(path)).write_parquet(path)

    return do


def everywhere(change):
    def do():
        for number in range(3):
            rewrite(number, change)()

    return do


def tear():
    path = Path("rows/r1.parquet")
    path.write_bytes(path.read_bytes()[:-20])


BAD = {  # what is wrong: (what is done before, the words, the sentence)
    "no match": (None, ["no*.parquet", "-t", "kind"], "no*.parquet names no Parquet file"),
    "a pattern of CSV": (None, ["*.csv", "-t", "kind", "-o", "out/"], "is a pattern of .csv files; give one of them"),
    "other columns": (rewrite(1, lambda frame: frame.drop("size")), ROWS, "r1.parquet has 6 columns, "),
    "other types": (rewrite(2, lambda frame: frame.cast({"size": pl.String})), ROWS, "r2.parquet holds String values"),
    "corrupt": (tear, ROWS, "r1.parquet is corrupt, or no Parquet file"),
    "no target": (None, ["rows", "-t", "kinds"], "no column 'kinds'; did you mean 'kind'?"),
    "full": (everywhere(lambda frame: frame.with_columns(kind=pl.col("row") % 2)), ROWS, "has a label already"),
    "empty": (everywhere(lambda frame: frame.with_columns(kind=pl.lit(None))), ROWS, "holds no label in 600 rows"),
    "one class": (
        everywhere(lambda frame: frame.with_columns(kind=pl.when(pl.col("kind") == "toy").then("kind"))),
        ROWS,
        "holds a single class (toy)",
    ),
    "no features": (None, [*ROWS, "--features", "row", "--id", "row"], "No column can serve"),
    "taken name": (
        everywhere(lambda frame: frame.with_columns(kind_source=pl.lit(1))),
        ROWS,
        "has a column 'kind_source' already",
    ),
    "a vector with a gap": (
        everywhere(
            lambda frame: frame.select(
                "kind", v=pl.concat_list(pl.col("row").cast(pl.Float64), pl.when(pl.col("row") != 345).then(1.0))
            )
        ),
        ROWS,
        "Column 'v' has a gap or infinity in the vector of row 346",
    ),
    "vectors": (None, [*ROWS, "--vectors", "v.npy"], "--vectors v.npy is not for a table that is read in blocks"),
    "shares": (None, [*ROWS, "--shares", "balanced"], "--shares balanced is not for a table"),
    "method": (None, [*ROWS, "--method", "green"], "--method green is not for a table"),
    "memory": (None, [*ROWS[:-2], "--memory-limit", "much"], "--memory-limit much is no number of bytes"),
    "standard output": (None, ["rows", "-t", "kind", "-o", "-", *BLOCKS], "not written to standard output"),
    "no format": (None, ["rows", "-t", "kind", "-o", "out.xlsx", *BLOCKS], "give a folder (ending in /), or a name"),
    "no folder": (None, ["rows", "-t", "kind", "-o", "no/out/"], "The folder no does not exist"),
    "into the input": (None, ["rows", "-t", "kind", "-o", "rows/out/"], "lies in the folder that is read"),
    "over the input": (None, ["rows", "-t", "kind", "-o", "rows/", "--force"], "holds the table that is read"),
    "over a file": (None, ["rows/*.parquet", "-t", "kind", "-o", "rows/r0.parquet", "-f"], "holds the table that"),
    "no blocks": (
        lambda: goods().write_excel("goods.xlsx"),
        ["goods.xlsx", "-t", "kind", "--scheduler", "local"],
        "cannot be read in blocks",
    ),
    "a corrupt row": (
        lambda: Path("goods.csv").write_bytes(Path("goods.csv").read_bytes()[:-40]),
        CSV,
        "goods.csv: line 601 has",
    ),
    "a row in the middle": (
        lambda: Path("goods.csv").write_text(Path("goods.csv").read_text().replace("\n300,", "\n1\n300,")),
        CSV,
        "goods.csv: line 302 has 1 fields, the header has 7",
    ),
    "no UTF-8": (
        lambda: Path("goods.csv").write_bytes(Path("goods.csv").read_bytes().replace(b"\n300,", b"\n\xff300,")),
        CSV,
        "goods.csv: line 302 is not UTF-8",
    ),
    "no UTF-8 in a cell": (
        lambda: Path("goods.csv").write_bytes(Path("goods.csv").read_bytes().replace(b",red,", b",\xff,", 1)),
        CSV,
        "goods.csv: line ",
    ),
    "an open quote": (
        lambda: Path("goods.csv").write_text(Path("goods.csv").read_text().replace("\n300,", '\n"300,')),
        CSV,
        "a quote is opened and never closed",
    ),
    "a header alone": (lambda: Path("goods.csv").write_text("a,kind\n"), [*CSV, "--scheduler", "x"], "no Dask"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_one_sentence_and_writes_nothing(folder, capsys, what):
    before, words, sentence = BAD[what]
    if before:
        before()
    assert run("label", *words) == 1
    assert sentence in refusal(capsys)
    assert left(folder) == []
    assert len(list((folder / "rows").iterdir())) == 3


def test_an_output_that_exists_needs_force_and_is_a_folder_of_parts(folder, capsys):
    (folder / "out").mkdir()
    (folder / "out" / "thesis.txt").write_text("mine")
    assert run("label", *ROWS) == 1
    assert "out exists already; give --force" in capsys.readouterr().err
    assert run("label", *ROWS, "--force") == 1
    assert "out holds 'thesis.txt', which is no part that greenlabel wrote" in capsys.readouterr().err
    assert (folder / "out" / "thesis.txt").read_text() == "mine"


def test_a_folder_that_changes_under_the_run_is_noticed(folder, capsys, monkeypatch):
    fit = streaming.BlendedClassifier.fit

    def meddle(self, *data):
        (folder / "rows" / "r9.parquet").write_bytes((folder / "rows" / "r0.parquet").read_bytes())
        return fit(self, *data)

    monkeypatch.setattr(streaming.BlendedClassifier, "fit", meddle)
    assert run("label", *ROWS) == 1
    assert "files were added to rows or taken away while it was read" in capsys.readouterr().err
    assert left(folder) == []


@pytest.mark.slow
def test_files_may_differ_as_numbers_do_and_where_a_column_is_empty(folder):
    change = {
        0: lambda frame: frame.with_columns(kind=pl.lit(None)),
        1: lambda frame: frame.with_columns(pl.col("price").cast(pl.Float32)),
    }
    for number, one in change.items():
        rewrite(number, one)()
    assert run("label", *ROWS, "-q") == 0
    frame = pl.read_parquet("out/*.parquet")
    assert frame.schema["kind"] == pl.String
    assert frame.schema["price"] == pl.Float64
    assert frame["kind"].null_count() == 0


EMPTY = {"kind": pl.Float64, "color": pl.Float64, "size": pl.String, "when": pl.Array(pl.Float32, 2)}


def test_what_holds_nothing_in_a_file_may_have_any_type_there(folder):
    for part in ("r0", "r2"):
        frame = pl.read_parquet(f"rows/{part}.parquet").with_columns(
            pl.lit(None).cast(EMPTY[name]).alias(name) for name in EMPTY
        )
        frame.write_parquet(f"rows/{part}.parquet", statistics=part == "r0", row_group_size=90)
    blocks = table_blocks.open_table("rows").only(["row", *EMPTY])
    goods_types = goods().select(blocks.names).schema
    frame = pl.concat(list(blocks.map(lambda rows, block: block)))
    assert frame.schema == blocks.schema == goods_types
    part = pl.col("row").is_between(200, 399)
    assert frame.equals(goods().select("row", *[pl.when(part).then(name).alias(name) for name in EMPTY]))


def test_an_empty_file_of_fractions_leaves_whole_numbers_whole(folder):
    codes = pl.col("kind").replace_strict({"toy": 1, "tool": 2})
    for part, kind in (("r0", codes), ("r1", pl.lit(None).cast(pl.Float64)), ("r2", codes)):
        pl.read_parquet(f"rows/{part}.parquet").with_columns(kind=kind).write_parquet(f"rows/{part}.parquet")
    assert table_blocks.open_table("rows").schema["kind"] == pl.Int64


@pytest.mark.slow
@pytest.mark.parametrize("words", [BLOCKS, []])
def test_a_file_without_labels_gives_the_answers_of_its_proper_type(folder, words):
    outputs = []
    for kind in (pl.String, pl.Float64):
        empty = [pl.lit(None).cast(kind).alias(name) for name in ("kind", "color")]
        rewrite(1, lambda frame, empty=empty: frame.with_columns(empty))()
        assert run("label", "rows", "-t", "kind", "-o", "out.parquet", "--save", "m.green", "-f", "-q", *words) == 0
        assert run("suggest", "rows", "-t", "kind", "-o", "next.parquet", "-f", "-q", *words) == 0
        assert run("predict", "m.green", "rows", "-o", "new.parquet", "-f", "-q", *words) == 0
        outputs.append([pl.read_parquet(name) for name in ("out.parquet", "next.parquet", "new.parquet")])
    for proper, found in zip(*outputs, strict=True):
        assert found.equals(proper)
        assert found.schema == proper.schema


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 3, 7])
def test_a_few_rows_are_enough(folder, n):
    pl.DataFrame({"x": [float(i) for i in range(n + 2)], "kind": ["a", "b", *[None] * n]}).write_csv("goods.csv")
    assert run("label", *CSV, "--method", "anchored", "-q") == 0
    assert run("label", "goods.csv", "-t", "kind", "--method", "anchored", "-o", "a.csv", "-q") == 0
    assert Path("out.csv").read_bytes() == Path("a.csv").read_bytes()


# On a cluster -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scheduler():
    """The address of a cluster of two worker processes."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(**options) as cluster:
        yield cluster.scheduler_address


@pytest.mark.cluster
def test_a_cluster_gives_the_answers_of_memory(folder, expected, scheduler):
    words = ["-t", "kind", "--scheduler", scheduler, "--save", "m.green", "-q"]
    assert run("label", "rows", *words, "-o", "out/", "--report", "r.html") == 0
    assert pl.read_parquet("out/*.parquet").equals(pl.read_parquet(expected / "memory.parquet"))
    assert run("label", "goods.csv", *words[:-3], "-q", "-o", "out.csv") == 0
    assert Path("out.csv").read_bytes() == (expected / "memory.csv").read_bytes()
    assert run("predict", "m.green", "goods.csv", "--scheduler", scheduler, "-q", "-o", "a.csv") == 0
    assert run("predict", "m.green", "goods.csv", "-q", "-o", "b.csv") == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert run("label", "rows", *words, "--method", "anchored", "-o", "out/", "--force") == 0
    assert pl.read_parquet("out/*.parquet").equals(pl.read_parquet(expected / "anchored.parquet"))
    with Client(scheduler, set_as_default=False) as client:
        names = client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))
    assert {
        "find-labels",
        "take-rows",
        "nearest-anchors",
        "sum-products",
        "predict-all-rows",
        "predict-new-rows",
    } <= names


@pytest.mark.cluster
@pytest.mark.usefixtures("beyond")
def test_a_cluster_gives_the_answers_of_memory_beyond_it(folder, expected, scheduler):
    assert run("label", "rows", "-t", "kind", "--scheduler", scheduler, "-o", "out/", "-q") == 0
    assert pl.read_parquet("out/*.parquet").equals(pl.read_parquet(expected / "beyond.parquet"))
    with Client(scheduler, set_as_default=False) as client:
        names = client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))
    assert {"add-up", "sum-probabilities", "nearest-anchors", "predict-all-rows"} <= names


@pytest.mark.cluster
def test_what_a_worker_refuses_is_one_sentence(folder, scheduler, capsys):
    before, _, sentence = BAD["a vector with a gap"]
    before()
    assert run("label", *ROWS, "--scheduler", scheduler) == 1
    said = capsys.readouterr().err
    assert sentence in said
    assert left(folder) == []


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_one_sentence(folder, capsys, monkeypatch):
    monkeypatch.setattr("greenlabel.blocks.on_dask.connect", lambda address: connect(address, 0.5))
    with closing(socket.socket()) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        assert run("label", *ROWS, "--scheduler", address) == 1
    assert f"no Dask scheduler answers at {address}" in capsys.readouterr().err
    assert left(folder) == []


@pytest.mark.cluster
def test_an_interrupt_of_a_local_cluster_is_silent(folder):
    words = "label", *ROWS, "--jobs", "2", "-q"
    said = interrupted(folder, signal.SIGINT, *words, "--scheduler", "local", send=os.killpg)  # as a terminal does
    assert said == b""
    assert left(folder) == []


@pytest.mark.cluster
def test_a_local_cluster_is_started_and_ended(folder, expected):
    assert run("label", *ROWS, "--scheduler", "local", "--jobs", "1", "-q") == 0
    assert current_client() is None
    assert pl.read_parquet("out/*.parquet").equals(pl.read_parquet(expected / "memory.parquet"))
