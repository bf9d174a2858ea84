"""The command line: thin commands around the library."""

import sys
from pathlib import Path
from time import perf_counter
from typing import Annotated

from greenlabel._common.process import INTERRUPTED, flush, forget_output, is_closed_pipe, loading
from greenlabel._common.stages import Stages
from greenlabel.errors import GreenlabelError

try:
    import typer
    from rich.console import Console

    from greenlabel.annotate import command as annotate_command
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
annotate_command.register(app)
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
    context: typer.Context,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the picture and the table.")] = Path(
        "greenlabel-demo"
    ),
    per_class: Annotated[int, typer.Option(min=1, max=100, metavar="N", help="Labels given in each class.")] = 10,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Draws the rows whose label is given.")] = 0,
) -> None:
    """Label 1,797 handwritten digits from ten labels per class, on data that ships with greenlabel."""
    out.mkdir(parents=True, exist_ok=True)
    with loading():
        from greenlabel import GreenClassifier
        from greenlabel.datasets import digits, keep_labels
        from greenlabel.demo import draw_before_and_after, map_of, write_labels
        from greenlabel.metrics import unlabelled_accuracy
        from greenlabel.tables.report.words import SPACE, time_text

    stages = Stages(began=context.obj)
    X, y = digits()
    few = keep_labels(y, per_class, random_state=seed)
    given = few != -1
    with stages("labels"):
        model = GreenClassifier(random_state=seed).fit(X, few)
        predictions, probabilities = model.transduction_, model.label_distributions_
    accuracy = unlabelled_accuracy(y, predictions, given)
    say.print(f"{len(y):,} handwritten digits, {given.sum()} labels given ({per_class} per class)")
    say.print(f"{(~given).sum():,} labels filled in, {accuracy:.1%} right")
    write_labels(out / "digits.csv", predictions, probabilities, given)
    with say.status("Drawing"):
        with stages("map"):
            positions = map_of(X)
        with stages("picture"):
            draw_before_and_after(out / "digits.png", positions, predictions, given, (predictions != y) & ~given)
    say.print(f"See {out / 'digits.png'} and {out / 'digits.csv'}")
    say.print(f"It took {time_text(stages.seconds)}".replace(SPACE, " "))


def main(began: float | None = None) -> None:
    """Run the command line; what greenlabel refuses is one line and exit code 1, Ctrl-C and a closed pipe are silent.

    ``began`` is when the process did, by ``time.perf_counter``; the times in summaries count from there.
    """
    began = perf_counter() if began is None else began
    try:
        try:
            app(prog_name="greenlabel", obj=began)
        finally:
            flush()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except (GreenlabelError, OSError) as error:
        if is_closed_pipe(error):
            forget_output()
        else:
            print(f"greenlabel: {error}", file=sys.stderr)
        raise SystemExit(1) from None
