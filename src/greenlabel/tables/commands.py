"""`greenlabel label` and `greenlabel predict`: options, files and the terminal around ``label_table``."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from threadpoolctl import threadpool_limits

STAGES = {  # what a stage is called while it lasts
    "reading": "Reading the table",
    "features": "Turning columns into features",
    "graph": "Building the graph",
    "labels": "Spreading the labels",
    "check": "Checking on the given labels",
    "writing": "Writing",
    "report": "Drawing the report",
}

Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FILE", help="The labelled table, TABLE-labelled if not given; - is standard output."
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
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite files that exist.")]
Jobs = Annotated[int | None, typer.Option(min=1, metavar="N", help="Threads to use; all cores if not given.")]


def label(
    table: Annotated[
        Path,
        typer.Argument(
            help="CSV, TSV, Parquet, Excel (.xlsx), JSON lines, .npz or .npy; - is CSV from standard input.",
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
    jobs: Jobs = None,
    as_json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Fill in the missing labels of a table.

    Rows in which the target column is empty get a label, from the rows in which it is not. The other columns stay as
    they are; COLUMN_source, COLUMN_confidence and COLUMN_margin are added.
    """
    leave_home_alone()
    from greenlabel.tables.files import (
        WRITERS,
        check_apart,
        check_output,
        left_out,
        read_shares,
        read_table,
        read_vectors,
        write_table,
    )
    from greenlabel.tables.labelling import label_table
    from greenlabel.tables.summary import summary_text

    out = out or default_output(table)
    check_output(out, force, WRITERS)
    beside = [path for path in (report, save) if path is not None]
    for path in beside:
        check_output(path, force)
    check_apart(out, *beside)
    check_apart(table, *beside)
    with stages(quiet, report is not None) as announce, threads(jobs):
        announce("reading")
        frame = read_table(table)
        embeddings = None if vectors is None else read_vectors(vectors)
        filled, result = label_table(
            frame,
            target,
            features=features,
            drop=drop,
            id=id,
            unlabelled=unlabelled,
            vectors=embeddings,
            scale=scale,
            method=method,
            class_shares=shares if shares in (None, "labels", "balanced") else read_shares(Path(shares)),
            only_confident=only_confident,
            random_state=seed,
            announce=announce,
        )
        result.warnings += warn_left_out(out, left_out(out, filled))
        announce("writing")
        write_table(out, filled)
        if save is not None:
            result.save(save)
        if report is not None:
            announce("report")
            result.report(report, title=table.name if str(table) != "-" else target)
    wrote = [str(path) for path in (out, report, save) if path is not None and str(path) != "-"]
    tell(result.summary(), summary_text(result), wrote, as_json, quiet, out)


def predict(
    model: Annotated[Path, typer.Argument(help="A model saved by greenlabel label --save.", readable=False)],
    table: Annotated[
        Path,
        typer.Argument(help="New rows, in any format that label reads; - is CSV from standard input.", readable=False),
    ],
    out: Out = None,
    only_confident: Confident = None,
    vectors: Vectors = None,
    jobs: Jobs = None,
    as_json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Label new rows with a saved model.

    All columns of the table are kept, and the same ones are added as by label. Labels that the table holds already
    are kept too.
    """
    leave_home_alone()
    from greenlabel.tables.files import WRITERS, check_output, left_out, read_table, read_vectors, write_table
    from greenlabel.tables.labelling import predict_table
    from greenlabel.tables.saved import load_model
    from greenlabel.tables.summary import prediction_text

    out = out or default_output(table)
    check_output(out, force, WRITERS)
    with stages(quiet, False) as announce, threads(jobs):
        announce("reading")
        saved = load_model(model)
        frame = read_table(table)
        embeddings = None if vectors is None else read_vectors(vectors)
        announce("labels")
        filled, facts = predict_table(saved, frame, vectors=embeddings, only_confident=only_confident)
        facts["warnings"] = warn_left_out(out, left_out(out, filled))
        announce("writing")
        write_table(out, filled)
    tell(facts, prediction_text(facts), [str(out)] if str(out) != "-" else [], as_json, quiet, out)


def leave_home_alone() -> None:
    """skrub makes a folder for downloads in the home folder, which may be read-only; nothing is downloaded here."""
    os.environ.setdefault("SKB_DATA_DIRECTORY", gettempdir())


def warn_left_out(out: Path, columns: list[str]) -> list[str]:
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


def tell(facts: dict[str, Any], text: str, wrote: list[str], as_json: bool, quiet: bool, out: Path) -> None:
    """The summary on standard output, or beside it where the table itself goes there."""
    stream = sys.stderr if str(out) == "-" else sys.stdout
    if as_json:
        print(json.dumps(facts, ensure_ascii=False, indent=2), file=stream)
    elif not quiet:
        print(text, file=stream)
        if wrote:
            print(f"\nWrote {', '.join(wrote)}", file=stream)


@contextmanager
def stages(quiet: bool, with_report: bool) -> Iterator[Callable[[str], None]]:
    """A bar on the terminal that names the stage; nothing where there is no terminal."""
    console = Console(stderr=True)
    parts = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*parts, console=console, transient=True, disable=quiet or not console.is_terminal) as progress:
        task = progress.add_task("", total=len(STAGES) - (not with_report))

        def announce(name: str) -> None:
            done = list(STAGES).index(name)
            progress.update(task, description=STAGES[name], completed=done)

        yield announce


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
