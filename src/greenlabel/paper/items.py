"""The items of the paper: what each shows, and which trials it needs.

Items share trials: accuracy, f1, time and margin are four views of the same ones.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product

from greenlabel.errors import ParameterError
from greenlabel.paper.checks import CHECKS
from greenlabel.paper.protocol import EVERYDAY, NEIGHBORS, OURS, PER_CLASS, SUMMED
from greenlabel.paper.published import GRAPH_METHODS, LARGE, LARGE_METHODS, SMALL, anchors
from greenlabel.paper.sources import GREY_LEVELS
from greenlabel.paper.store import Trial

LABEL_COUNTS = range(1, 21)
MAX_ANCHORS = 4096
ROWS = {"Balance": 625, "MobileKSD": 2856}  # where fewer rows than MAX_ANCHORS limit the anchors
GREY_METHODS = ("LLGC", "HF", "GF(G)")  # GF has the scores of GF(G), and no scale changes GF(A)
MARGIN_METHODS = ("LLGC", "GF(G)")
LABEL_METHODS = (*GRAPH_METHODS, OURS[0])
LARGE_LABEL_METHODS = (*LARGE_METHODS, *OURS)
CHECKED = {
    "conclusion 1": ("Balance", "MobileKSD"),
    "conclusion 2": ("Balance", "MobileKSD", "PhishingWeb"),
    "conclusion 3": ("rings", "rings-connected"),
    "conclusion 5": ("Balance", "MobileKSD", "PhishingWeb"),
}

Trials = Iterator[Trial]


@dataclass(frozen=True)
class Item:
    """``trials`` lists what an item needs, given the seeds; ``data`` are the sets it speaks of."""

    where: str
    title: str
    data: tuple[str, ...]
    trials: Callable[[range], Trials]


def anchor_counts(name: str) -> list[int]:
    """Doubling numbers of anchors, more than there are neighbours, with the paper's own among them."""
    largest = min(MAX_ANCHORS, ROWS.get(name, MAX_ANCHORS))
    doubling = {2**power for power in range(5, 13) if 2**power <= largest}
    return sorted(doubling | {anchors(name), NEIGHBORS + 1} | ({largest} if name in ROWS else set()))


def _scores(data: tuple[str, ...], methods: tuple[str, ...]) -> Callable[[range], Trials]:
    return lambda seeds: (Trial(name, method, PER_CLASS, seed) for name, method, seed in product(data, methods, seeds))


def _small(seeds: range) -> Trials:
    yield from _scores(SMALL, (*GRAPH_METHODS, *OURS, *EVERYDAY))(seeds)
    yield from _scores((GREY_LEVELS,), GREY_METHODS)(seeds)


def _curves(data: tuple[str, ...], methods: tuple[str, ...]) -> Callable[[range], Trials]:
    return lambda seeds: (
        Trial(name, method, count, seed) for name, method, count, seed in product(data, methods, LABEL_COUNTS, seeds)
    )


def _margins(seeds: range) -> Trials:
    yield from _scores((*SMALL, GREY_LEVELS), MARGIN_METHODS)(seeds)
    yield from _scores(tuple(map(summed_data, SMALL)), tuple(f"{name}{SUMMED}" for name in MARGIN_METHODS))(seeds)


def summed_data(name: str) -> str:
    """The data on which margins are compared once more, both directions of the graph added."""
    return GREY_LEVELS if name == "USPS" else name


def _anchors(seeds: range) -> Trials:
    for name in SMALL:
        yield from (Trial(name, "GF(A)", PER_CLASS, seed, m) for m, seed in product(anchor_counts(name), seeds))


def _checks(seeds: range) -> Trials:
    for method in CHECKS:
        yield from (Trial(name, method, PER_CLASS, seed) for name, seed in product(CHECKED[method], seeds))
    yield from _scores(SMALL, ("LLGC", "GF", "GF(G)"))(seeds)


def _none(seeds: range) -> Trials:
    return iter(())


LARGE_ALL = (*LARGE_METHODS, *OURS, "logistic", "extra trees")
ITEMS = {
    "datasets": Item("Tables I and VI", "The data sets", (*SMALL, *LARGE), _none),
    "accuracy": Item("Table II", "Accuracy, ten labels per class", SMALL, _small),
    "f1": Item("Table III", "F1-macro, ten labels per class", SMALL, _small),
    "time": Item("Table IV", "Time of a fit", SMALL, _small),
    "labels": Item("Figure", "Accuracy versus labels per class", SMALL, _curves(SMALL, LABEL_METHODS)),
    "rings": Item("Figure", "Two rings that do not touch", ("rings",), _none),
    "rings-connected": Item("Figure", "Two rings that touch", ("rings-connected",), _none),
    "margin": Item("Table V", "Label margins", SMALL, _margins),
    "anchors": Item("Figure", "Accuracy and time versus anchors", SMALL, _anchors),
    "large-accuracy": Item("Table VII", "Accuracy on large data", LARGE, _scores(LARGE, LARGE_ALL)),
    "large-f1": Item("Table VIII", "F1-macro on large data", LARGE, _scores(LARGE, LARGE_ALL)),
    "labels-large": Item(
        "Figure", "Accuracy versus labels per class, large data", LARGE, _curves(LARGE, LARGE_LABEL_METHODS)
    ),
    "conclusions": Item("Conclusions 1 to 5", "The conclusions as numbers", (*SMALL, "rings"), _checks),
}


def choose_items(names: list[str]) -> list[str]:
    """The named items in the paper's order, all of them where none is named."""
    for name in names:
        nearest("item", name, list(ITEMS))
    return [name for name in ITEMS if name in names or not names]


def nearest(what: str, name: str, known: list[str]) -> str:
    """The known name that was meant (capitals do not count), or an error that suggests the nearest one."""
    spelled = {other.lower(): other for other in known}
    if name.lower() in spelled:
        return spelled[name.lower()]
    close = get_close_matches(name.lower(), spelled, n=1, cutoff=0.5)
    hint = f"did you mean {spelled[close[0]]}?" if close else f"choose one of {', '.join(known)}."
    raise ParameterError(f"there is no {what} {name!r}; {hint}")
