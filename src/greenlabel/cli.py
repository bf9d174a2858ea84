"""The command line: thin commands around the library."""

import sys
import time
from pathlib import Path
from typing import Annotated

from greenlabel.errors import GreenlabelError

try:
    import typer
    from rich.console import Console

    from greenlabel.paper.commands import paper
    from greenlabel.tables import commands as table_commands
except ImportError as missing:  # the library works without them
    raise SystemExit(
        f"greenlabel: the command line needs {missing.name}, which is not installed; pip install 'greenlabel[cli]'"
    ) from missing

app = typer.Typer(
    help="Label a few rows, get the rest.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
table_commands.register(app)
app.add_typer(paper, name="paper")
say = Console(highlight=False, soft_wrap=True)


def _version(asked: bool) -> None:
    if asked:
        from greenlabel import __version__

        say.print(f"greenlabel {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Label a few rows, get the rest."""


@app.command(epilog="Example: greenlabel demo --out digits-demo")
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the picture and the table.")] = Path(
        "greenlabel-demo"
    ),
    per_class: Annotated[int, typer.Option(min=1, max=100, metavar="N", help="Labels given in each class.")] = 10,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Draws the rows whose label is given.")] = 0,
) -> None:
    """Label 1,797 handwritten digits from ten labels per class, on data that ships with greenlabel."""
    from greenlabel import GreenClassifier
    from greenlabel.datasets import digits, keep_labels
    from greenlabel.metrics import unlabelled_accuracy
    from greenlabel.report import draw_before_and_after, write_labels

    X, y = digits()
    few = keep_labels(y, per_class, random_state=seed)
    given = few != -1
    start = time.perf_counter()
    model = GreenClassifier(random_state=seed).fit(X, few)
    answer, probability = model.transduction_, model.label_distributions_
    seconds = time.perf_counter() - start
    accuracy = unlabelled_accuracy(y, answer, given)
    say.print(f"{len(y):,} handwritten digits, {given.sum()} labels given ({per_class} per class)")
    say.print(f"{(~given).sum():,} labels filled in, {accuracy:.1%} right, in {seconds:.2f} s")
    out.mkdir(parents=True, exist_ok=True)
    with say.status("Drawing"):
        write_labels(out / "digits.csv", answer, probability, given)
        draw_before_and_after(out / "digits.png", X, answer, given, (answer != y) & ~given)
    say.print(f"See {out / 'digits.png'} and {out / 'digits.csv'}")


def main() -> None:
    """Run the command line; what greenlabel refuses is one line and exit code 1."""
    try:
        app(prog_name="greenlabel")
    except (GreenlabelError, OSError) as error:
        print(f"greenlabel: {error}", file=sys.stderr)
        raise SystemExit(1) from None
