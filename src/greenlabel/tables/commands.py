"""`greenlabel label` and `greenlabel predict`: options, files and the terminal around the library."""

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from greenlabel._common.process import loading
from greenlabel.errors import UnreachedWarning
from greenlabel.tables.io.paths import check_model, check_table

if TYPE_CHECKING:
    from greenlabel.tables.progress import Bar

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
Encoding = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Encoding of a CSV or TSV file that is not UTF-8: cp1252, latin-1, utf-16, …"),
]
Sheet = Annotated[
    str | None,
    typer.Option(metavar="NAME|N", help="The sheet of a workbook, by its name or number; the first if not given."),
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
    context: typer.Context,
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
    encoding: Encoding = None,
    sheet: Sheet = None,
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
    they are; COLUMN_source, COLUMN_confidence, COLUMN_margin and COLUMN_predicted are added.

    The output may be corrected and labelled again: cells that were changed, or whose source says given or checked, are
    labels; the others are filled in anew.

    A table that would not fit in memory is read in blocks and labelled by --method anchored.
    """
    check_table(table)
    with loading():
        from greenlabel.tables.io.blocks import must_stream, read_size
        from greenlabel.tables.io.files import after, check_apart, check_output, check_reading
        from greenlabel.tables.opening import AtOnce, in_blocks
        from greenlabel.tables.progress import progress
        from greenlabel.tables.report.summary import summary_text
        from greenlabel.tables.streaming import check_options, label_stream

    check_reading(table, encoding, sheet)
    beside = [path for path in (save, report) if path is not None]
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
    with progress(quiet, report is not None, context.obj) as bar, threads(jobs), told:
        if must_stream(str(table), scheduler, limit):
            check_options(shares=shares, vectors=vectors, method=None if method in ("auto", "anchored") else method)
            with in_blocks(str(table), out, beside, scheduler, jobs, force, bar, encoding) as blocks:
                result = label_stream(blocks.run, target, blocks.write, memory_limit=limit, **options)
            out, left = blocks.name, blocks.left_out
        else:
            whole = AtOnce(str(table), out, force, encoding, sheet)
            check_apart(whole.path, *beside)
            result, left = label_at_once(whole, target, vectors, method, shares, bar, options)
            out = whole.name
        result.warnings += warn_left_out(out, left)
        if save is not None:
            with bar.stages("saving"), after([out], beside):
                result.save(save)
        if report is not None:
            result.seconds = bar.stages.seconds
            title = target if str(table) == "-" else table.name if table.is_file() else str(table)
            with bar.stages("report"), after([out, *beside[:-1]], [report]):
                result.report(report, title=title)
    wrote = [str(path) for path in (out, report, save) if path is not None and str(path) != "-"]
    result.seconds = bar.stages.seconds
    tell(result.summary(), summary_text(result), wrote, as_json, quiet, out)


def label_at_once(
    whole: Any, target: str, vectors: Path | None, method: str, shares: str | None, bar: "Bar", options: dict[str, Any]
) -> tuple[Any, list[str]]:
    """Read, label and write a table that fits in memory; the result, and columns that the output cannot hold."""
    from greenlabel.tables.io.files import read_shares, read_vectors
    from greenlabel.tables.labelling import label_table

    with bar.stages("reading"):
        frame = whole.read()
        embeddings = None if vectors is None else read_vectors(vectors)
        class_shares = shares if shares in (None, "labels", "balanced") else read_shares(Path(shares))
    filled, result = label_table(
        frame,
        target,
        vectors=embeddings,
        method=method,
        class_shares=class_shares,
        announce=bar.stages,
        **options,
    )
    with bar.stages("writing"):
        return result, whole.write(filled)


def predict(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="A model saved by greenlabel label --save.", readable=False)],
    table: Annotated[
        Path,
        typer.Argument(help="New rows, in any format that label reads; - is CSV from standard input.", readable=False),
    ],
    out: Out = None,
    only_confident: Confident = None,
    vectors: Vectors = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    scheduler: Scheduler = None,
    memory_limit: MemoryLimit = None,
    jobs: Jobs = None,
    as_json: Json = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Label new rows with a saved model.

    All columns of the table are kept, and the same ones are added as by label. Labels that the table holds already
    are kept too. A table that would not fit in memory is read in blocks.
    """
    check_model(model)
    check_table(table)
    with loading():
        from greenlabel.tables.io.blocks import must_stream, read_size
        from greenlabel.tables.io.files import check_apart, check_reading
        from greenlabel.tables.model_files.saved import load_model
        from greenlabel.tables.opening import AtOnce, in_blocks
        from greenlabel.tables.progress import progress
        from greenlabel.tables.report.summary import prediction_text
        from greenlabel.tables.streaming import check_options, predict_stream

    check_reading(table, encoding, sheet)
    with progress(quiet, False, context.obj) as bar, threads(jobs):
        if must_stream(str(table), scheduler, read_size(memory_limit)):
            check_options(vectors=vectors)
            with bar.stages("reading"):
                saved = load_model(model)
            with in_blocks(str(table), out, [model], scheduler, jobs, force, bar, encoding) as blocks:
                facts = predict_stream(blocks.run, saved, blocks.write, only_confident)
            out, left = blocks.name, blocks.left_out
        else:
            whole = AtOnce(str(table), out, force, encoding, sheet)
            check_apart(whole.path, model)
            facts, left = predict_at_once(model, whole, vectors, only_confident, bar)
            out = whole.name
        facts["warnings"] += warn_left_out(out, left)
    facts["seconds"] = bar.stages.seconds
    tell(facts, prediction_text(facts), [out] if out != "-" else [], as_json, quiet, out)


def predict_at_once(
    model: Path, whole: Any, vectors: Path | None, only_confident: float | None, bar: "Bar"
) -> tuple[dict[str, Any], list[str]]:
    """Read, label and write new rows that fit in memory; the facts, and columns that the output cannot hold."""
    from greenlabel.tables.io.files import read_vectors
    from greenlabel.tables.labelling import predict_table
    from greenlabel.tables.model_files.saved import load_model

    with bar.stages("reading"):
        saved = load_model(model)
        frame = whole.read()
        embeddings = None if vectors is None else read_vectors(vectors)
    with bar.stages("labels"):
        filled, facts = predict_table(saved, frame, vectors=embeddings, only_confident=only_confident)
    with bar.stages("writing"):
        return facts, whole.write(filled)


def warn_left_out(out: str, columns: list[str]) -> list[str]:
    if not columns:
        return []
    names = ", ".join(map(repr, columns))
    return [f"Plain cells alone fit into {out}: column {names} is left out; write .parquet to keep it."]


def tell(facts: dict[str, Any], text: str, wrote: list[str], as_json: bool, quiet: bool, out: str) -> None:
    """The summary on standard output, or beside it where the table itself goes there."""
    stream = sys.stderr if out == "-" else sys.stdout
    if as_json:
        print(json.dumps(facts, ensure_ascii=False, indent=2), file=stream)
    elif not quiet:
        print(text, file=stream)
        if wrote:
            print(f"\nWrote {', '.join(wrote)}", file=stream)


@contextmanager
def threads(jobs: int | None) -> Iterator[None]:
    from threadpoolctl import threadpool_limits

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
