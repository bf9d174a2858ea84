"""`greenlabel label` and `greenlabel predict`: options, files and the terminal around the library."""

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import gettempdir
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text
from threadpoolctl import threadpool_limits

from greenlabel.errors import UnreachedWarning

STAGES = {  # what a stage is called while it lasts
    "reading": "Reading the table",
    "features": "Turning columns into features",
    "graph": "Building the graph",
    "labels": "Spreading the labels",
    "check": "Checking on the given labels",
    "writing": "Writing",
    "report": "Drawing the report",
}

PASSES = {  # how often a stage reads a table in blocks
    "reading": 1,
    "features": 1,
    "graph": 3,
    "labels": 0,
    "check": 0,
    "writing": 2,
    "report": 0,
}

Out = Annotated[
    str | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE|FOLDER/",
        help="The labelled table, TABLE-labelled if not given; - is standard output. Of a table that is read in "
        "blocks, a folder of parts or one file (.parquet, .csv, .tsv).",
    ),
]
Vectors = Annotated[
    Path | None,
    typer.Option(metavar="NPY", help="Embeddings beside the table: a .npy file with one row for each.", readable=False),
]
Confident = Annotated[
    float | None,
    typer.Option("--only-confident", min=0, max=1, metavar="P", help="Leave a cell empty below this confidence."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS|local",
        help="Read the table in blocks, on the Dask cluster at tcp://host:8786, or on one started here (local).",
    ),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        "--memory-limit",
        metavar="SIZE",
        help="Read the table in blocks if it would take more memory than this (4GB, 500MB); half of what is free if "
        "not given.",
    ),
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite files that exist.")]
Jobs = Annotated[int | None, typer.Option(min=1, metavar="N", help="Threads to use; all cores if not given.")]


def label(
    table: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV, Parquet, Excel (.xlsx), JSON lines, .npz or .npy; a folder of Parquet files, or a pattern "
            "('rows/*.parquet'); - is CSV from standard input.",
            readable=False,  # what cannot be read is bad data, which read_table says
        ),
    ],
    target: Annotated[str, typer.Option("--target", "-t", metavar="COLUMN", help="The column to fill.")],
    out: Out = None,
    report: Annotated[
        Path | None, typer.Option(metavar="HTML", help="Write a page that shows whether to trust it.")
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="MODEL", help="Save a model for greenlabel predict.")] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Learn from these columns alone; a name or a pattern (pixel*), may be repeated."
        ),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Do not learn from these columns; as --features.")
    ] = None,
    id: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Columns that name the rows and say nothing about them; as --features."),
    ] = None,
    vectors: Vectors = None,
    unlabelled: Annotated[
        list[str] | None,
        typer.Option(metavar="VALUE", help="A value of the target that means no label; may be repeated."),
    ] = None,
    method: Annotated[
        Literal["auto", "green", "anchored", "consistency", "harmonic"],
        typer.Option(
            metavar="auto|green|anchored|consistency|harmonic",
            help="How labels spread; auto blends the graph with ordinary models.",
        ),
    ] = "auto",
    shares: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|labels|balanced",
            help="Shares of the classes that the answer must have: a file of classes and shares (CSV or JSON), "
            "those among the given labels, or equal ones.",
        ),
    ] = None,
    scale: Annotated[
        Literal["auto", "none", "standard"],
        typer.Option(metavar="auto|none|standard", help="Bring columns to one scale; auto where their units differ."),
    ] = "auto",
    only_confident: Confident = None,
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="Seeds what is drawn at random; same seed, same answer.")
    ] = 0,
    scheduler: Scheduler = None,
    memory_limit: MemoryLimit = None,
    jobs: Jobs = None,
    as_json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Fill in the missing labels of a table.

    Rows in which the target column is empty get a label, from the rows in which it is not. The other columns stay as
    they are; COLUMN_source, COLUMN_confidence and COLUMN_margin are added.

    A folder, a pattern, or a table that would not fit in memory is read in blocks and labelled by --method anchored.
    """
    leave_home_alone()
    from greenlabel.tables.files import check_apart, check_output
    from greenlabel.tables.opening import in_blocks
    from greenlabel.tables.streaming import check_options, label_stream
    from greenlabel.tables.summary import summary_text
    from greenlabel.tables.table_blocks import must_stream, read_size

    beside = [path for path in (report, save) if path is not None]
    for path in beside:
        check_output(path, force)
    check_apart(table, *beside)
    limit = read_size(memory_limit)
    options: dict[str, Any] = {
        "features": features,
        "drop": drop,
        "id": id,
        "unlabelled": unlabelled,
        "scale": scale,
        "only_confident": only_confident,
        "random_state": seed,
    }
    told = warnings.catch_warnings(action="ignore", category=UnreachedWarning)  # the summary tells it
    with progress(quiet, report is not None) as bar, threads(jobs), told:
        if must_stream(str(table), scheduler, limit):
            check_options(shares=shares, vectors=vectors, method=None if method in ("auto", "anchored") else method)
            with in_blocks(str(table), out, beside, scheduler, jobs, force, bar) as blocks:
                result = label_stream(blocks.run, target, blocks.write, memory_limit=limit, **options)
            out, left = blocks.name, blocks.left_out
        else:
            out = out or str(default_output(table))
            check_apart(Path(out), *beside)
            result, left = label_at_once(table, target, Path(out), vectors, method, shares, force, bar, options)
        result.warnings += warn_left_out(out, left)
        if save is not None:
            result.save(save)
        if report is not None:
            bar.announce("report")
            result.report(report, title=target if str(table) == "-" else table.name if table.is_file() else str(table))
    wrote = [str(path) for path in (out, report, save) if path is not None and str(path) != "-"]
    tell(result.summary(), summary_text(result), wrote, as_json, quiet, out)


def label_at_once(
    table: Path,
    target: str,
    out: Path,
    vectors: Path | None,
    method: str,
    shares: str | None,
    force: bool,
    bar: "Bar",
    options: dict[str, Any],
) -> tuple[Any, list[str]]:
    """Read, label and write a table that fits in memory; the result, and columns that the output cannot hold."""
    from greenlabel.tables.files import (
        WRITERS,
        check_output,
        left_out,
        read_shares,
        read_table,
        read_vectors,
        write_table,
    )
    from greenlabel.tables.labelling import label_table

    check_output(out, force, WRITERS)
    bar.announce("reading")
    filled, result = label_table(
        read_table(table),
        target,
        vectors=None if vectors is None else read_vectors(vectors),
        method=method,
        class_shares=shares if shares in (None, "labels", "balanced") else read_shares(Path(shares)),
        announce=bar.announce,
        **options,
    )
    bar.announce("writing")
    write_table(out, filled)
    return result, left_out(out, filled)


def predict(
    model: Annotated[Path, typer.Argument(help="A model saved by greenlabel label --save.", readable=False)],
    table: Annotated[
        Path,
        typer.Argument(help="New rows, in any format that label reads; - is CSV from standard input.", readable=False),
    ],
    out: Out = None,
    only_confident: Confident = None,
    vectors: Vectors = None,
    scheduler: Scheduler = None,
    memory_limit: MemoryLimit = None,
    jobs: Jobs = None,
    as_json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Label new rows with a saved model.

    All columns of the table are kept, and the same ones are added as by label. Labels that the table holds already
    are kept too. A folder, a pattern, or a table that would not fit in memory is read in blocks.
    """
    leave_home_alone()
    from greenlabel.tables.opening import in_blocks
    from greenlabel.tables.saved import load_model
    from greenlabel.tables.streaming import check_options, predict_stream
    from greenlabel.tables.summary import prediction_text
    from greenlabel.tables.table_blocks import must_stream, read_size

    with progress(quiet, False) as bar, threads(jobs):
        if must_stream(str(table), scheduler, read_size(memory_limit)):
            check_options(vectors=vectors)
            saved = load_model(model)
            with in_blocks(str(table), out, [model], scheduler, jobs, force, bar) as blocks:
                facts = predict_stream(blocks.run, saved, blocks.write, only_confident)
            out, left = blocks.name, blocks.left_out
        else:
            out = out or str(default_output(table))
            facts, left = predict_at_once(model, table, Path(out), vectors, only_confident, force, bar)
        facts["warnings"] = warn_left_out(out, left)
    tell(facts, prediction_text(facts), [out] if out != "-" else [], as_json, quiet, out)


def predict_at_once(
    model: Path, table: Path, out: Path, vectors: Path | None, only_confident: float | None, force: bool, bar: "Bar"
) -> tuple[dict[str, Any], list[str]]:
    """Read, label and write new rows that fit in memory; the facts, and columns that the output cannot hold."""
    from greenlabel.tables.files import WRITERS, check_output, left_out, read_table, read_vectors, write_table
    from greenlabel.tables.labelling import predict_table
    from greenlabel.tables.saved import load_model

    check_output(out, force, WRITERS)
    bar.announce("reading")
    saved = load_model(model)
    frame = read_table(table)
    embeddings = None if vectors is None else read_vectors(vectors)
    bar.announce("labels")
    filled, facts = predict_table(saved, frame, vectors=embeddings, only_confident=only_confident)
    bar.announce("writing")
    write_table(out, filled)
    return facts, left_out(out, filled)


def leave_home_alone() -> None:
    """skrub makes a folder for downloads in the home folder, which may be read-only; nothing is downloaded here."""
    os.environ.setdefault("SKB_DATA_DIRECTORY", gettempdir())


def warn_left_out(out: str, columns: list[str]) -> list[str]:
    if not columns:
        return []
    names = ", ".join(map(repr, columns))
    return [f"Plain cells alone fit into {out}: column {names} is left out; write .parquet to keep it."]


def default_output(table: Path) -> Path:
    """Beside the input, in its format where that can be written."""
    if str(table) == "-":
        return table
    from greenlabel.tables.files import WRITERS

    suffix = table.suffix if table.suffix.lower() in WRITERS else ".csv"
    return table.with_name(f"{table.stem}-labelled{suffix}")


def tell(facts: dict[str, Any], text: str, wrote: list[str], as_json: bool, quiet: bool, out: str) -> None:
    """The summary on standard output, or beside it where the table itself goes there."""
    stream = sys.stderr if out == "-" else sys.stdout
    if as_json:
        print(json.dumps(facts, ensure_ascii=False, indent=2), file=stream)
    elif not quiet:
        print(text, file=stream)
        if wrote:
            print(f"\nWrote {', '.join(wrote)}", file=stream)


class Bar:
    """A bar on the terminal that names the stage; of a table in blocks it shows the time left too."""

    def __init__(self, shown: Progress, with_report: bool):
        self._shown, self._task = shown, shown.add_task("", total=len(STAGES) - (not with_report))
        self._n_blocks, self._stop = 0, 0

    def expect(self, n_blocks: int) -> None:
        """From now on count blocks."""
        self._n_blocks = n_blocks
        self._shown.update(self._task, total=n_blocks * sum(PASSES.values()))

    def announce(self, name: str) -> None:
        before = list(STAGES).index(name)
        if self._n_blocks:
            before = self._n_blocks * sum(PASSES[stage] for stage in list(STAGES)[:before])
            self._stop = before + self._n_blocks * PASSES[name]
        self._shown.update(self._task, description=STAGES[name], completed=before)

    def tick(self) -> None:
        """Another block was read; a stage that reads more of them than was thought waits for the next one."""
        if self._shown.tasks[self._task].completed < self._stop:
            self._shown.advance(self._task)


@contextmanager
def progress(quiet: bool, with_report: bool) -> Iterator[Bar]:
    """Nothing is shown where there is no terminal."""
    console = Console(stderr=True)
    parts = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeLeft()
    with Progress(*parts, console=console, transient=True, disable=quiet or not console.is_terminal) as shown:
        yield Bar(shown, with_report)


class TimeLeft(TimeRemainingColumn):
    """The time left where blocks are counted; of other work nobody knows."""

    def render(self, task: Any) -> Text:
        is_counted = task.total is not None and task.total > len(STAGES) and task.time_remaining is not None
        return Text(f"{timedelta(seconds=int(task.time_remaining))} left" if is_counted else "", style="cyan")


@contextmanager
def threads(jobs: int | None) -> Iterator[None]:
    with threadpool_limits(jobs):
        yield


def register(app: typer.Typer) -> None:
    app.command(
        help=paragraphs(label),
        epilog="Example: greenlabel label flowers.csv --target species -o labelled.parquet --report report.html",
    )(label)
    app.command(
        help=paragraphs(predict), epilog="Example: greenlabel predict flowers.green new.csv -o new-labelled.csv"
    )(predict)


def paragraphs(command: Callable[..., None]) -> str:
    """The docstring with one line for each paragraph, so that the terminal's width breaks it and not the source's."""
    return "\n\n".join(" ".join(part.split()) for part in (command.__doc__ or "").split("\n\n"))
