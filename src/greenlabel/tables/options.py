"""Arguments and options of ``greenlabel label``, ``suggest`` and ``predict``: what each takes, and its help."""

from pathlib import Path
from typing import Annotated, Literal

import typer

Table = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV, Parquet, Excel (.xlsx), JSON lines, .npz or .npy; a folder of Parquet files, or a pattern "
        "('rows/*.parquet'); - is CSV from standard input.",
        readable=False,  # what cannot be read is bad data, which read_table says
    ),
]
NewRows = Annotated[
    Path,
    typer.Argument(help="New rows, in any format that label reads; - is CSV from standard input.", readable=False),
]
Model = Annotated[Path, typer.Argument(help="A model saved by greenlabel label --save.", readable=False)]
Target = Annotated[str, typer.Option("--target", "-t", metavar="COLUMN", help="The column to fill.")]
Report = Annotated[Path | None, typer.Option(metavar="HTML", help="Write a page that shows whether to trust it.")]
Save = Annotated[Path | None, typer.Option(metavar="MODEL", help="Save a model for greenlabel predict.")]
Features = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Learn from these columns alone; a name or a pattern (pixel*), may be repeated."),
]
Drop = Annotated[list[str] | None, typer.Option(metavar="NAME", help="Do not learn from these columns; as --features.")]
Id = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Columns that name the rows and say nothing about them; as --features."),
]
Unlabelled = Annotated[
    list[str] | None,
    typer.Option(metavar="VALUE", help="A value of the target that means no label; may be repeated."),
]
Method = Annotated[
    Literal["auto", "green", "anchored", "consistency", "harmonic"],
    typer.Option(
        metavar="auto|green|anchored|consistency|harmonic",
        help="How labels spread; auto blends the graph with ordinary models.",
    ),
]
Shares = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|labels|balanced",
        help="Shares of the classes that the predictions must have: a file of classes and shares (CSV or JSON), "
        "those among the given labels, or equal ones.",
    ),
]
Scale = Annotated[
    Literal["auto", "none", "standard"],
    typer.Option(metavar="auto|none|standard", help="Bring columns to one scale; auto where their units differ."),
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Seeds what is drawn at random; same seed, same result.")]
Out = Annotated[
    str | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE|FOLDER/",
        help="The labelled table, TABLE-labelled if not given; - is standard output. For a table that is "
        "read in blocks, a folder of parts or one file (.parquet, .csv, .tsv).",
    ),
]
NextRows = Annotated[
    int, typer.Option("--rows", "-n", min=1, metavar="N", help="How many rows; fewer where no more are left.")
]
OutOfRows = Annotated[
    str | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Write the rows with all their columns (.csv, .tsv, .parquet, .xlsx, .jsonl); - is CSV on standard "
        "output. Nothing is written if not given.",
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
