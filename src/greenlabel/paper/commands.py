"""``greenlabel paper``: thin commands around the reproduction."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from greenlabel._common.process import loading

DATA_FOLDER = Path("greenlabel-data")
say = Console(highlight=False, soft_wrap=True)


class ItemGroup(TyperGroup):
    """A word that is no command is an item: ``greenlabel paper f1`` means ``greenlabel paper run f1``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        known = {*self.commands, *ctx.help_option_names}
        return super().parse_args(ctx, args if args and args[0] in known else ["run", *args])


paper = typer.Typer(
    cls=ItemGroup,
    help="Rebuild the paper's tables and figures from data, published and measured numbers side by side.",
    epilog="Examples: greenlabel paper; greenlabel paper accuracy labels --data DIR; greenlabel paper fetch USPS",
)
DataOption = Annotated[
    Path | None,
    typer.Option("--data", envvar="GREENLABEL_DATA", file_okay=False, metavar="DIR", help="Folder of the data sets."),
]


@paper.command(epilog="Example: greenlabel paper accuracy --data data --trials 1")
def run(
    items: Annotated[list[str] | None, typer.Argument(help="Items (greenlabel paper list); all without any.")] = None,
    data: DataOption = None,
    trials: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Draws of the labelled rows.")] = 5,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Seed of the first draw; the others follow it.")] = 0,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the page, the figures and the results.")] = Path(
        "greenlabel-paper"
    ),
    jobs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Methods at work side by side; times are fair with 1 only.")
    ] = 1,
) -> None:
    """Rebuild the items named, or all of them. An interrupted run goes on where it stopped. (The default command.)"""
    folder = _existing(data)
    with loading():
        from greenlabel.paper.items import ITEMS, choose_items
        from greenlabel.paper.page import write_page
        from greenlabel.paper.run import available, carry_out
        from greenlabel.paper.sources import SOURCES
        from greenlabel.paper.store import Store, Trial

    chosen = choose_items(items or [])
    seeds = range(seed, seed + trials)
    wanted = {name: set(ITEMS[name].trials(seeds)) for name in chosen}
    names = [name for item in chosen for name in (*ITEMS[item].data, *(trial.data for trial in wanted[item]))]
    found = available(names, folder)
    out.mkdir(parents=True, exist_ok=True)
    with _bars({name: sum(trial.data in found for trial in wanted[name]) for name in chosen}) as advance:

        def done(trial: Trial) -> None:
            for name in chosen:
                if trial in wanted[name]:
                    advance(name)

        every = [trial for name in chosen for trial in ITEMS[name].trials(seeds)]
        results = carry_out(every, found, Store(out / "results.jsonl"), jobs, done)
    with say.status("Drawing"):
        write_page(out, chosen, results, seeds, found)
    missing = [name for name in dict.fromkeys(names) if name in SOURCES and name not in found]
    if missing:
        say.print(f"Not in {folder}: {', '.join(missing)}. Try greenlabel paper fetch NAME.")
    say.print(f"See {out / 'page.html'} and {out / 'page.md'}")


@paper.command("list")
def list_items(data: DataOption = None) -> None:
    """List the items, and the data sets that are there."""
    with loading():
        from greenlabel.paper.items import ITEMS
        from greenlabel.paper.published import DATASETS
        from greenlabel.paper.sources import is_there

    for name, item in ITEMS.items():
        say.print(f"{name:16} {item.where:18} {item.title}")
    folder = data or DATA_FOLDER
    say.print()
    for name in DATASETS:
        say.print(f"{name:16} {'there' if is_there(name, folder) else f'not in {folder}'}")


@paper.command(epilog="Example: greenlabel paper fetch USPS --data data")
def fetch(
    name: Annotated[str, typer.Argument(help="A data set (greenlabel paper list).")],
    data: DataOption = None,
) -> None:
    """Download a data set from its public source, go on where a download stopped, and check it."""
    with loading():
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        from greenlabel.paper.fetch import fetch as bring
        from greenlabel.paper.items import nearest
        from greenlabel.paper.sources import GENERATED, SOURCES

    name = nearest("data set", name, [*SOURCES, "Balance"])
    if name in GENERATED:
        say.print(f"{name} is generated; there is nothing to fetch.")
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=say, disable=not say.is_terminal) as progress:
        tasks: dict[str, Any] = {}

        def show(file: str, have: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = progress.add_task(file)
            progress.update(tasks[file], completed=have, total=total)

        found = bring(name, data or DATA_FOLDER, show)
    checked = "as tested" if SOURCES[name].content else f"no reference to compare with, checksum {found.content}"
    say.print(f"{name}: {found.X.shape[0]:,} rows x {found.X.shape[1]:,}, {found.y.max() + 1} classes ({checked})")


def _existing(data: Path | None) -> Path:
    """The data folder; a folder that was named has to exist."""
    if data is not None and not data.is_dir():
        raise typer.BadParameter(f"{data} is no folder; greenlabel paper fetch makes and fills one.")
    return data or DATA_FOLDER


@contextmanager
def _bars(totals: dict[str, int]) -> Iterator[Callable[[str], None]]:
    """A progress bar for each item, on a terminal only."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:16}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=say, disable=not say.is_terminal) as progress:
        tasks = {name: progress.add_task(name, total=total) for name, total in totals.items() if total}
        yield lambda name: progress.advance(tasks[name])
