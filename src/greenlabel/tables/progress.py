"""Progress of a run: a bar on the terminal, and the clock of its stages."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from greenlabel._common.stages import Stages

STAGES = {  # what a stage is called while it lasts
    "reading": "Reading the table",
    "features": "Turning columns into features",
    "graph": "Building the graph",
    "experts": "Fitting the graph and the ordinary models",
    "labels": "Spreading the labels",
    "check": "Checking on the given labels",
    "writing": "Writing",
    "saving": "Saving the model",
    "report": "Drawing the report",
    "next rows": "Choosing rows to label next",
}

PASSES = {  # how often a stage reads a table in blocks; "graph" stands in place of "experts", where there are none
    "reading": 1,
    "features": 1,
    "graph": 3,
    "experts": 3,
    "labels": 0,
    "check": 0,
    "writing": 2,
    "saving": 0,
    "report": 0,
    "next rows": 0,
}


class Bar:
    """A bar on the terminal that names the stage; for a table in blocks it shows the time left too."""

    def __init__(self, shown: Progress, with_report: bool, began: float | None):
        self.stages = Stages(self._announce, began)
        self.shown = shown
        self._task = shown.add_task("", total=len(STAGES) - (not with_report))
        self._n_blocks = 0
        self._stop = 0

    def expect(self, n_blocks: int) -> None:
        """From now on count blocks."""
        self._n_blocks = n_blocks
        self.shown.update(self._task, total=n_blocks * passes_of(list(STAGES)))

    def _announce(self, name: str) -> None:
        before = list(STAGES).index(name)
        if self._n_blocks:
            before = self._n_blocks * passes_of(list(STAGES)[:before])
            self._stop = before + self._n_blocks * PASSES[name]
        self.shown.update(self._task, description=STAGES[name], completed=before)

    def tick(self) -> None:
        """Another block was read; a stage that reads more of them than was thought waits for the next one."""
        if self.shown.tasks[self._task].completed < self._stop:
            self.shown.advance(self._task)


def passes_of(stages: list[str]) -> int:
    """How often these stages read a table."""
    return sum(PASSES[stage] for stage in stages if stage != "graph")


@contextmanager
def progress(quiet: bool, with_report: bool, began: float | None) -> Iterator[Bar]:
    """Nothing is shown where there is no terminal. ``began`` is when the process did, for the clock."""
    console = Console(stderr=True)
    parts = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeLeft()
    with Progress(*parts, console=console, transient=True, disable=quiet or not console.is_terminal) as shown:
        yield Bar(shown, with_report, began)


class TimeLeft(TimeRemainingColumn):
    """The time left where blocks are counted; for other work it is unknown."""

    def render(self, task: Any) -> Text:
        is_counted = task.total is not None and task.total > len(STAGES) and task.time_remaining is not None
        return Text(f"{timedelta(seconds=int(task.time_remaining))} left" if is_counted else "", style="cyan")
