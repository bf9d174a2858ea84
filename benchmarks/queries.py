"""Which rows to label: learning curves of the rule against random rows and against other rules; writes queries.md.

    GREENLABEL_DATA=... python benchmarks/queries.py                     everything that is not measured yet
    GREENLABEL_DATA=... python benchmarks/queries.py --again wine mnist  these data sets once more
    GREENLABEL_DATA=... python benchmarks/queries.py --page              only the page, from what was measured

Accuracy is that of `GreenClassifier()` on the rows without a label, by 1, 2, 5 and 10 labels per class. Random rows do
not know the classes (ten draws). Each data set is measured in a process of its own; what was measured stays in
queries.json with its commit. GraphLearning is an extra, `pip install '.[peers]'`; without it its columns stay empty.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from accuracy import PAPERS, TITLES
from greenlabel.graph.scaling import find_scaling
from measures import load
from query_rules import PEERS, PER_CLASS, Task, coverage, v_optimality
from run import commit, machine, markdown

FOLDER = Path(__file__).parent
KEPT = FOLDER / "queries.json"
DRAWS = 10
MAX_ROWS = 20_000
PEER_ROWS = 3_000  # the other rules hold a dense n x n operator
PEER_DRAWS = 3
SAMPLES = 5
SAMPLE_SHARE, SAMPLE_ROWS = 0.85, 1_500
SAMPLE_DRAWS = 5
BUNDLED = ["digits", "wine", "breast_cancer", "iris"]
GENERATED = ["skewed clouds", "many clouds", "noise columns", "moons"]
SEVEN = ["digits", *PAPERS]  # of the bar
Array = np.ndarray[Any, Any]


# Data


def clouds(sizes: Array, d: int, distance: float, n_noise: int = 0) -> tuple[Array, Array]:
    """Gaussian clouds of these sizes, one to a class, and columns that say nothing."""
    rng = np.random.default_rng(1)
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = distance * rng.normal(size=(len(sizes), d))[y] + rng.normal(size=(len(y), d))
    return np.hstack([X, rng.normal(size=(len(y), n_noise))]), y


def generated(name: str) -> tuple[Array, Array]:
    from sklearn.datasets import make_moons

    makers: dict[str, Callable[[], tuple[Array, Array]]] = {
        "skewed clouds": lambda: clouds(np.array([1500, 600, 200, 80, 40, 20]), 8, 2.0),
        "many clouds": lambda: clouds(np.full(30, 80), 12, 1.6),
        "noise columns": lambda: clouds(np.full(4, 500), 5, 2.0, n_noise=30),
        "moons": lambda: make_moons(2000, noise=0.12, random_state=0),
    }
    return makers[name]()


def data(name: str, max_rows: int) -> tuple[Array, Array]:
    """Features scaled by the blend's rule, classes 0 to c - 1; a sample where there are more rows."""
    import sklearn.datasets

    if name in PAPERS:
        X, y = load(name)
    elif name in GENERATED:
        X, y = generated(name)
    else:
        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    rows = np.sort(np.random.default_rng(0).permutation(len(X))[:max_rows])
    X = np.asarray(X, np.float32)[rows]
    return find_scaling(X, np.random.default_rng(0)).apply(X), np.unique(y[rows], return_inverse=True)[1]


# Measuring


def measure_set(name: str) -> dict[str, Any]:
    task = Task(*data(name, MAX_ROWS))
    rng, n = np.random.default_rng(0), len(task.y)
    start = time.perf_counter()
    ours = coverage(task, max(task.budgets))
    seconds = time.perf_counter() - start
    draws = [task.curve([int(row) for row in rng.permutation(n)[: max(task.budgets)]]) for _ in range(DRAWS)]
    seen = [task.n_until_all_seen(rng.permutation(n)) for _ in range(100)]
    return {
        "rows": n,
        "budgets": task.budgets,
        "ours": task.curve(ours),
        "random": draws,
        "seen": task.n_until_all_seen(ours),
        "seen_random": float(np.mean([number for number in seen if number is not None])),
        "seconds": seconds,
        "samples": measure_samples(name, task.budgets),
        "peers": measure_peers(name),
    }


def measure_samples(name: str, budgets: list[int]) -> dict[str, Any]:
    """Ours once, and some random draws, on each of several samples of the rows: how much of a gain is luck."""
    X, y = data(name, MAX_ROWS)
    ours, drawn = [], []
    for sample in range(SAMPLES):
        rng = np.random.default_rng(100 + sample)
        rows = np.sort(rng.permutation(len(y))[: min(SAMPLE_ROWS, int(SAMPLE_SHARE * len(y)))])
        task = Task(X[rows], y[rows])
        ours.append(task.curve(coverage(task, max(budgets)), budgets))
        orders = [[int(row) for row in rng.permutation(len(rows))[: max(budgets)]] for _ in range(SAMPLE_DRAWS)]
        drawn.append([task.curve(order, budgets) for order in orders])
    return {"ours": ours, "random": drawn}


def measure_peers(name: str) -> dict[str, Any]:
    """All rules on the same rows; those that begin at random are averaged over their draws."""
    task = Task(*data(name, PEER_ROWS))
    found: dict[str, Any] = {"ours": task.curve(coverage(task, max(task.budgets)))}
    for title, rule in PEERS.items():
        try:
            draws = [
                task.curve(rule(task, max(task.budgets), np.random.default_rng(draw)))
                for draw in range(1 if rule is v_optimality else PEER_DRAWS)
            ]
        except ImportError:
            continue
        found[title] = np.mean(draws, axis=0).tolist()
    return found


def measure(again: list[str]) -> None:
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for name in [*PAPERS, *BUNDLED, *GENERATED]:
        if name in kept and name not in again:
            continue
        job = subprocess.run([sys.executable, __file__, "--one", name], check=True, capture_output=True, text=True)
        kept[name] = json.loads(job.stdout) | {"commit": commit(), "date": str(date.today())}
        KEPT.write_text(json.dumps(kept, indent=1))


# The page


def gain(entry: dict[str, Any]) -> Array:
    """Ours less the mean of random rows, in points, by budget."""
    return 100 * (np.array(entry["ours"]) - np.mean(entry["random"], axis=0))


def curves(kept: dict[str, Any]) -> str:
    lines = []
    for name, entry in kept.items():
        chosen, drawn = 100 * np.array(entry["ours"]), 100 * np.mean(entry["random"], axis=0)
        cells = [f"{a:.1f} / {b:.1f}" for a, b in zip(chosen, drawn, strict=True)]
        cells += [""] * (len(PER_CLASS) - len(cells))
        seen = "" if entry["seen"] is None else f"{entry['seen'] / entry['seen_random']:.2f}"
        lines.append((TITLES.get(name, name.capitalize()), *cells, seen))
    header = ("chosen / random, %", *(f"{per} per class" for per in PER_CLASS), "labels until all classes are seen")
    return markdown(header, lines)


def against_peers(kept: dict[str, Any]) -> str:
    """Mean over data sets and budgets, and at how many data sets ours is ahead, behind."""
    lines = []
    for title in PEERS:
        gaps = [
            100 * np.mean(np.array(entry["peers"]["ours"]) - entry["peers"][title])
            for entry in kept.values()
            if title in entry["peers"]
        ]
        if gaps:
            lines.append(
                (title, f"{np.mean(gaps):+.1f}", str(sum(g > 0.5 for g in gaps)), str(sum(g < -0.5 for g in gaps)))
            )
    return markdown(("ours less", "mean, points", "data sets ahead", "behind"), lines)


def sample_gains(entry: dict[str, Any]) -> Array:
    """Of each sample (samples, budgets): ours less the mean of its random draws, in points."""
    return 100 * (np.array(entry["samples"]["ours"]) - np.mean(entry["samples"]["random"], axis=1))


def luck_of_random(entry: dict[str, Any]) -> Array:
    """Of each random draw (samples, draws, budgets): its accuracy less the mean of the others in its sample."""
    drawn = 100 * np.array(entry["samples"]["random"])
    n_draws = drawn.shape[1]
    return (drawn - drawn.mean(axis=1, keepdims=True)) * n_draws / (n_draws - 1)


def by_sample(kept: dict[str, Any]) -> str:
    lines = []
    for name, entry in kept.items():
        points = sample_gains(entry)
        cells = [f"{mean:+.1f} ({low:+.1f})" for mean, low in zip(points.mean(axis=0), points.min(axis=0), strict=True)]
        lines.append((TITLES.get(name, name.capitalize()), *cells, *[""] * (len(PER_CLASS) - len(cells))))
    return markdown(("gain, mean (lowest), points", *(f"{per} per class" for per in PER_CLASS)), lines)


def single_runs(kept: dict[str, Any]) -> str:
    """How often one run loses more than the bar allows, ours and a random draw."""

    def share(points: Callable[[dict[str, Any]], Array], wanted: Callable[[int], bool], bar: float) -> str:
        runs = [
            points(entry)[..., i].ravel()
            for entry in kept.values()
            for i, budget in enumerate(entry["budgets"])
            if wanted(budget)
        ]
        return f"{100 * np.mean(np.concatenate(runs) < bar):.0f} %"

    lines = [
        (title, share(points, lambda b: b >= 20, -3), share(points, lambda b: b < 20, -9))
        for title, points in (("chosen", sample_gains), ("random", luck_of_random))
    ]
    return markdown(
        ("single runs that lose", "more than 3 points, from 20 labels on", "more than 9, with fewer"), lines
    )


def worst(kept: dict[str, Any], points: Callable[[dict[str, Any]], Array], wanted: Callable[[int], bool]) -> str:
    losses = [
        (float(value), name, budget)
        for name, entry in kept.items()
        for value, budget in zip(points(entry), entry["budgets"], strict=True)
        if wanted(budget)
    ]
    value, name, budget = min(losses)
    return f"{value:+.1f} ({TITLES.get(name, name)}, {budget} labels)"


def at_20(entry: dict[str, Any], curve: Array) -> str:
    return f"{100 * curve[entry['budgets'].index(20)]:.1f}"


def all_seen(kept: dict[str, Any]) -> str:
    if "meu_mobile_ksd" not in kept:
        return "not measured"
    keys = kept["meu_mobile_ksd"]
    return "not all" if keys["seen"] is None else f"{keys['seen'] / keys['seen_random']:.2f} x"


def bars(kept: dict[str, Any]) -> str:
    """By one run on all rows, and by the mean of the samples."""

    def sample_mean(entry: dict[str, Any]) -> Array:
        return sample_gains(entry).mean(axis=0)

    def line(*words: str, of: Callable[[Callable[[dict[str, Any]], Array]], str]) -> tuple[str, ...]:
        return *words, of(gain), of(sample_mean)

    seven = [kept[name] for name in SEVEN if name in kept]
    images = [kept["digits"], kept["usps"]]
    lines = [
        (
            "digits / USPS, 20 labels, %",
            ">= 97 / >= 91",
            "98.5 / 94",
            " / ".join(at_20(entry, np.array(entry["ours"])) for entry in images),
            " / ".join(at_20(entry, np.mean(entry["samples"]["ours"], axis=0)) for entry in images),
        ),
        line(
            f"mean gain over random, 2 labels per class, {len(seven)} of the seven data sets",
            ">= +8",
            "+15",
            of=lambda points: f"{np.mean([points(entry)[1] for entry in seven]):+.1f}",
        ),
        line(
            "worst loss against random, from 20 labels on",
            ">= -3",
            ">= 0",
            of=lambda points: worst(kept, points, lambda b: b >= 20),
        ),
        line(
            "worst loss against random, fewer than 20 labels",
            ">= -9",
            ">= -3",
            of=lambda points: worst(kept, points, lambda b: b < 20),
        ),
        ("labels until every class is seen, MobileKSD, against random", "<= 0.6 x", "<= 0.4 x", all_seen(kept), ""),
    ]
    return markdown(("measure", "bar", "aim", "one run, all rows", "mean of the samples"), lines)


def missing(kept: dict[str, Any]) -> str:
    names = [TITLES.get(name, name.capitalize()) for name in [*PAPERS, *BUNDLED, *GENERATED] if name not in kept]
    return f"Not measured yet: {', '.join(names)}. " if names else ""


def page(kept: dict[str, Any]) -> str:
    commits = ", ".join(sorted({entry["commit"] for entry in kept.values()}))
    day = max(entry["date"] for entry in kept.values())
    return "\n\n".join(
        [
            "# Which rows to label: learning curves",
            f"Measured on {day}, commit {commits}, on {machine()}.\n`python benchmarks/queries.py` writes this page. "
            f"Accuracy of `GreenClassifier()` on the rows without a label; random is the\nmean of {DRAWS} draws that "
            f"do not know the classes. At most {MAX_ROWS:,} rows of each data set, scaled by the blend's rule.",
            bars(kept),
            missing(kept) + "What was tried and what it changed is in [what was tried](queries_tried.md).",
            "## Learning curves",
            curves(kept),
            "## How much of it is luck",
            f"Ours once and {SAMPLE_DRAWS} random draws on each of {SAMPLES} samples of the rows "
            f"({SAMPLE_SHARE:.0%} of them, at most {SAMPLE_ROWS:,}). Where the graph says little about the\nclasses, "
            "one run is worth little: the same rule on another sample of the same data may be ten points off.",
            by_sample(kept),
            single_runs(kept),
            "## Other rules",
            f"On {PEER_ROWS:,} rows of each data set at most, all on the same k-NN graph, judged by "
            "the same classifier; mean over the budgets.\nRules that need labels to begin with get random rows until "
            f"two classes are seen ({PEER_DRAWS} draws).",
            against_peers(kept) + "\n",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", nargs="+", default=[], metavar="NAME", help="measure these once more")
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.one:
        warnings.simplefilter("ignore")
        print(json.dumps(measure_set(words.one)))
        return
    if not words.page:
        measure(words.again)
    (FOLDER / "queries.md").write_text(page(json.loads(KEPT.read_text())))


if __name__ == "__main__":
    main()
