"""`greenlabel annotate`: options and the terminal around the page."""

import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from greenlabel._common.process import loading
from greenlabel.errors import ParameterError
from greenlabel.tables import options as of
from greenlabel.tables.commands import paragraphs

if TYPE_CHECKING:
    from greenlabel.annotate.source.options import Options

Table = Annotated[
    Path | None,
    typer.Argument(
        help="CSV, TSV, Parquet, Excel (.xlsx), JSON lines, .npz or .npy; a folder of Parquet files, or a pattern.",
        readable=False,
    ),
]
Target = Annotated[
    str | None,
    typer.Option("--target", "-t", metavar="COLUMN", help="The column to fill; it is added if the table has none yet."),
]
Images = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="A column of pictures: their paths below the table's folder, or their bytes."),
]
ImageShape = Annotated[
    str | None,
    typer.Option("--image-shape", metavar="HxW", help="Columns of numbers are the pixels of pictures: 28x28."),
]
Text = Annotated[str | None, typer.Option(metavar="COLUMN", help="A column of text that is shown in full.")]
Classes = Annotated[str | None, typer.Option(metavar="A,B,C", help="Classes to begin with; more can be added.")]
Out = Annotated[
    str | None,
    typer.Option("--out", "-o", metavar="FILE", help="Where Save writes; TABLE-labelled, or a free name like it."),
]
Port = Annotated[
    int | None,
    typer.Option(min=1, max=65535, metavar="N", help="The port; 8321 if not given, or a free one if that is taken."),
]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Print the address alone; open no browser.")]
Host = Annotated[
    str, typer.Option(metavar="ADDRESS", help="The address to listen on; others can reach any but this machine's own.")
]
AllowNetwork = Annotated[
    bool,
    typer.Option(
        "--allow-network",
        help="Allow a --host that others can reach. There is no encryption: whoever sees the address may see "
        "and change everything.",
    ),
]
Demo = Annotated[bool, typer.Option("--demo", help="Label 1,797 handwritten digits; nothing else is needed.")]


def annotate(
    context: typer.Context,
    table: Table = None,
    target: Target = None,
    images: Images = None,
    image_shape: ImageShape = None,
    text: Text = None,
    vectors: of.Vectors = None,
    classes: Classes = None,
    out: Out = None,
    features: of.Features = None,
    drop: of.Drop = None,
    id: of.Id = None,
    encoding: of.Encoding = None,
    sheet: of.Sheet = None,
    unlabelled: of.Unlabelled = None,
    scale: of.Scale = "auto",
    seed: of.Seed = 0,
    port: Port = None,
    no_browser: NoBrowser = False,
    host: Host = "127.0.0.1",
    allow_network: AllowNetwork = False,
    demo: Demo = False,
    force: of.Force = False,
) -> None:
    """Label a table on a page in the browser; every label shows at once what it does to all rows.

    One line with the address is printed. Labels are kept in a journal beside the table, each before the page shows it:
    Ctrl-C ends the page at any time, and the same command goes on where it stopped. Save on the page writes what
    greenlabel label would write.
    """
    with loading():
        from greenlabel.annotate.app.server import check_host
        from greenlabel.annotate.session.actions import checked_name
        from greenlabel.annotate.source.demo import FOLDER, demo_options
        from greenlabel.annotate.source.options import Options

    where = Where(check_host(host, allow_network), port, not no_browser)
    if demo:
        refuse_with_demo(table=table, target=target, images=images, image_shape=image_shape, text=text, vectors=vectors)
        refuse_with_demo(classes=classes, features=features, drop=drop, id=id, encoding=encoding, sheet=sheet)
        options = demo_options(FOLDER, out, force, seed)
    else:
        more: dict[str, Any] = {"images": images, "image_shape": image_shape, "text": text, "vectors": vectors}
        more |= {"features": features, "drop": drop, "id": id, "unlabelled": unlabelled, "scale": scale, "seed": seed}
        names = [checked_name(name) for name in read_classes(classes)]
        more |= {"encoding": encoding, "sheet": sheet, "out": out, "force": force, "classes": names}
        path, column = needed(table, target)
        options = Options(path, column, **more)
    serve(options, where, context.obj)


class Where(NamedTuple):
    """Where the page is served, and whether a browser is opened."""

    host: str
    port: int | None
    browser: bool


def serve(options: "Options", where: Where, began: float | None) -> None:
    with loading():
        from greenlabel.annotate.app.server import is_open, listen, run
        from greenlabel.annotate.source.files import journal_of

    with closing(listen(where.host, where.port)) as listening:
        service = service_of(options, began)
        if is_open(where.host):
            tell("Others can reach this page, and nothing is encrypted: whoever sees the address can use it.", True)
        tell(f"Labels are kept in {journal_of(options.table, options.target)}. Ctrl-C ends.")
        run(service, listening, where.host, where.browser)


def service_of(options: "Options", began: float | None) -> Any:
    """The table read, its journal opened; the graph comes when the page is served."""
    with loading():
        from greenlabel.annotate.app.service import Service
        from greenlabel.annotate.session.session import Session
        from greenlabel.annotate.source.files import journal_of
        from greenlabel.annotate.source.table import open_source
        from greenlabel.tables.progress import progress

    with progress(False, False, began) as bar:
        source = open_source(options, bar.stages)
    session = Session(
        source, journal_of(options.table, options.target), cache_dir=cache_folder(), random_state=options.seed
    )
    return Service(session, source)


def needed(table: Path | None, target: str | None) -> tuple[Path, str]:
    if table is None:
        raise ParameterError("annotate needs a table; name one, or give --demo to try it on digits.")
    if target is None:
        raise ParameterError("annotate needs the column to fill; name it by --target, it need not exist yet.")
    return table, target


def refuse_with_demo(**options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            option = "a table" if name == "table" else f"--{name.replace('_', '-')}"
            raise ParameterError(f"--demo brings its own table, got {option} too; leave out one of them.")


def read_classes(text: str | None) -> list[str]:
    """Names between commas, each once."""
    names = [name.strip() for name in (text or "").split(",")]
    return list(dict.fromkeys(name for name in names if name))


PLACES = {"win32": ("LOCALAPPDATA", ".cache"), "darwin": ("XDG_CACHE_HOME", "Library/Caches")}


def cache_folder() -> Path | None:
    """Where maps are kept for the next time; None where there is no place for it."""
    variable, below_home = PLACES.get(sys.platform, ("XDG_CACHE_HOME", ".cache"))
    try:
        folder = Path(os.environ.get(variable) or Path.home() / below_home) / "greenlabel"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: nobody knows where home is, as in some containers
        return None
    return folder


def tell(sentence: str, always: bool = False) -> None:
    """Something beside the address, for people who look."""
    if always or sys.stderr.isatty():
        print(sentence, file=sys.stderr, flush=True)


def register(app: typer.Typer) -> None:
    app.command(
        help=paragraphs(annotate),
        epilog="Example: greenlabel annotate flowers.csv --target species --images photo",
    )(annotate)
