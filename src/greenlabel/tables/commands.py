"""`greenlabel label`, `greenlabel suggest` and `greenlabel predict`: options and the terminal around the library."""

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from greenlabel._common.process import loading
from greenlabel.errors import UnreachedWarning
from greenlabel.tables import options as of
from greenlabel.tables.io.paths import check_model, check_table


def label(
    context: typer.Context,
    table: of.Table,
    target: of.Target,
    out: of.Out = None,
    report: of.Report = None,
    save: of.Save = None,
    features: of.Features = None,
    drop: of.Drop = None,
    id: of.Id = None,
    vectors: of.Vectors = None,
    encoding: of.Encoding = None,
    sheet: of.Sheet = None,
    unlabelled: of.Unlabelled = None,
    method: of.Method = "auto",
    shares: of.Shares = None,
    scale: of.Scale = "auto",
    only_confident: of.Confident = None,
    seed: of.Seed = 0,
    scheduler: of.Scheduler = None,
    memory_limit: of.MemoryLimit = None,
    jobs: of.Jobs = None,
    as_json: of.Json = False,
    quiet: of.Quiet = False,
    force: of.Force = False,
) -> None:
    """Fill in the missing labels of a table.

    Rows in which the target column is empty get a label, from the rows in which it is not. The other columns stay as
    they are; COLUMN_source, COLUMN_confidence, COLUMN_margin and COLUMN_predicted are added.

    The output may be corrected and labelled again: cells that were changed, or whose source says given or checked, are
    labels; the others are filled in anew.

    A table that would not fit in memory is read in blocks, by --method auto or anchored.
    """
    check_table(table)
    with loading():
        from greenlabel.tables.from_files import Files, label_files
        from greenlabel.tables.progress import progress
        from greenlabel.tables.report.summary import summary_text

    files = Files(table, out, vectors, encoding, sheet, scheduler, memory_limit, jobs, force)
    files.check_beside(save, report)
    options: dict[str, Any] = {"features": features, "drop": drop, "id": id, "unlabelled": unlabelled}
    options |= {"scale": scale, "only_confident": only_confident, "random_state": seed}
    unreached = warnings.catch_warnings(action="ignore", category=UnreachedWarning)  # the summary has them
    with progress(quiet, report is not None, context.obj) as bar, threads(jobs), unreached:
        result, written = label_files(files, target, method, shares, options, save, report, bar)
        if result.can_inspect and report is None and (as_json or not quiet):
            with bar.stages("next rows"):
                result.summary()  # which keeps the rows to label next; a report has done so
    result.seconds = bar.stages.seconds
    print_summary(result.summary(), summary_text(result), written, as_json, quiet)


def suggest(
    context: typer.Context,
    table: of.Table,
    target: of.Target,
    rows: of.NextRows = 20,
    out: of.OutOfRows = None,
    features: of.Features = None,
    drop: of.Drop = None,
    id: of.Id = None,
    vectors: of.Vectors = None,
    encoding: of.Encoding = None,
    sheet: of.Sheet = None,
    unlabelled: of.Unlabelled = None,
    method: of.Method = "auto",
    scale: of.Scale = "auto",
    seed: of.Seed = 0,
    scheduler: of.Scheduler = None,
    memory_limit: of.MemoryLimit = None,
    jobs: of.Jobs = None,
    as_json: of.Json = False,
    quiet: of.Quiet = False,
    force: of.Force = False,
) -> None:
    """Say which rows of a table to label next, and why.

    The target column may be empty in all rows, or hold labels already: rows that stand for much of what no label tells
    about yet come first. Each has a rank, its row number (row 1 is the first one below the column names), a reason, how
    many rows it stands for, and the classes that it would decide between.

    A table that would not fit in memory is read in blocks, by --method auto or anchored.
    """
    check_table(table)
    with loading():
        from greenlabel.tables.from_files import Files, suggest_files
        from greenlabel.tables.progress import progress
        from greenlabel.tables.report.suggestions import suggestion_text

    files = Files(table, out, vectors, encoding, sheet, scheduler, memory_limit, jobs, force)
    options: dict[str, Any] = {"features": features, "drop": drop, "id": id, "unlabelled": unlabelled}
    options |= {"scale": scale, "random_state": seed}
    with progress(quiet, False, context.obj) as bar, threads(jobs):
        found, facts, written = suggest_files(files, target, rows, method, options, bar)
    facts["seconds"] = bar.stages.seconds
    print_summary(facts, suggestion_text(facts, found), written, as_json, quiet)


def predict(
    context: typer.Context,
    model: of.Model,
    table: of.NewRows,
    out: of.Out = None,
    only_confident: of.Confident = None,
    vectors: of.Vectors = None,
    encoding: of.Encoding = None,
    sheet: of.Sheet = None,
    scheduler: of.Scheduler = None,
    memory_limit: of.MemoryLimit = None,
    jobs: of.Jobs = None,
    as_json: of.Json = False,
    quiet: of.Quiet = False,
    force: of.Force = False,
) -> None:
    """Label new rows with a saved model.

    All columns of the table are kept, and the same ones are added as by label. Labels that the table holds already
    are kept too. A table that would not fit in memory is read in blocks.
    """
    check_model(model)
    check_table(table)
    with loading():
        from greenlabel.tables.from_files import Files, predict_files
        from greenlabel.tables.progress import progress
        from greenlabel.tables.report.summary import prediction_text

    files = Files(table, out, vectors, encoding, sheet, scheduler, memory_limit, jobs, force)
    with progress(quiet, False, context.obj) as bar, threads(jobs):
        facts, written = predict_files(files, model, only_confident, bar)
    facts["seconds"] = bar.stages.seconds
    print_summary(facts, prediction_text(facts), written, as_json, quiet)


def print_summary(facts: dict[str, Any], text: str, written: list[str], as_json: bool, quiet: bool) -> None:
    """Print the summary on standard output, or beside it where the table itself goes there."""
    stream = sys.stderr if "-" in written else sys.stdout
    if as_json:
        print(json.dumps(facts, ensure_ascii=False, indent=2), file=stream)
    elif not quiet:
        print(text, file=stream)
        if files := [name for name in written if name != "-"]:
            print(f"\nWrote {', '.join(files)}", file=stream)


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
    app.command(help=paragraphs(suggest), epilog="Example: greenlabel suggest flowers.csv --target species -n 10")(
        suggest
    )
    app.command(
        help=paragraphs(predict), epilog="Example: greenlabel predict flowers.green new.csv -o new-labelled.csv"
    )(predict)


def paragraphs(command: Callable[..., None]) -> str:
    """The docstring with one line for each paragraph, so that the terminal's width breaks it and not the source's."""
    return "\n\n".join(" ".join(part.split()) for part in (command.__doc__ or "").split("\n\n"))
