"""Accuracy and time of AnchoredGreenClassifier over the number of anchors, on MNIST and on a million rows.

    GREENLABEL_DATA=... python benchmarks/anchors.py                 everything (about a quarter of an hour)
    GREENLABEL_DATA=... python benchmarks/anchors.py --only mnist    what begins so; the rest is kept
    GREENLABEL_DATA=... python benchmarks/anchors.py --folder DIR    million rows that are there already stay there
    python benchmarks/anchors.py --page                              only table and figure, from what was measured

Each measure is a fit and the class of every row, in a process of its own, by the clock and by the processor, of both
cores together; the latter can be compared on a machine that others use. Accuracy is the mean of five draws of labels
from all rows. The million rows are those of scale.py, in a memory map. What came out is kept in
benchmarks/anchors.json, and written to docs/parameters.md with its figure.
"""

import argparse
import json
import subprocess
import sys
from contextlib import ExitStack
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from basics import load
from greenlabel import AnchoredGreenClassifier, GreenClassifier
from many_anchors import DRAWS, MILLION, accuracy, measure, rows_in
from run import commit
from scale import fill, markdown

FOLDER = Path(__file__).parent
DOCS = FOLDER.parent / "docs"
KEPT = FOLDER / "anchors.json"
K = 5
SIZES = {
    "mnist": [(m, K) for m in (512, 1024, 2048, 4096, 8192, 16_384, 32_768)] + [(32_768, 3)],
    "million": [(m, K) for m in (1024, 4096, 16_384, 65_536, 250_000, 400_000)],
}
BESIDE: dict[
    tuple[bool, bool], dict[str, Any]
] = {  # the line, not on it: whether it comes from the right, and goes there
    (False, False): {"xytext": (8, -3)},
    (False, True): {"xytext": (6, -10)},
    (True, False): {"xytext": (8, 4)},
    (True, True): {"xytext": (-8, -3), "ha": "right"},
}
Results = dict[str, dict[str, Any]]


def one(data: str, m: int, k: int, folder: Path | None) -> dict[str, Any]:
    """Accuracy, time and memory with m anchors; the full graph where m is 0."""
    if data == "mnist":
        X, y = load("mnist")
    else:
        assert folder is not None
        X, y = np.load(folder / "rows.npy", mmap_mode="r")[:MILLION], np.load(folder / "y.npy")[:MILLION]
    model = AnchoredGreenClassifier(m, k, random_state=0) if m else GreenClassifier(k, random_state=0)
    return {"data": data, "m": m, "k": k, **measure(model, X, y, DRAWS)}


def alone(data: str, m: int, k: int, folder: Path | None) -> dict[str, Any]:
    command = [sys.executable, __file__, "--measure", data, str(m), str(k)]
    command += [] if folder is None else ["--folder", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def run_all(folder: Path | None, only: list[str]) -> None:
    jobs = {f"{data} {m} {k}": (data, m, k) for data, sizes in SIZES.items() for m, k in sizes}
    jobs |= {f"{data} 0 10": (data, 0, 10) for data in SIZES}
    jobs = {name: job for name, job in jobs.items() if not only or any(name.startswith(start) for start in only)}
    with ExitStack() as stack:
        if any(data == "million" for data, *_ in jobs.values()):
            folder = stack.enter_context(rows_in(folder, MILLION))
        results: Results = json.loads(KEPT.read_text()) if KEPT.exists() else {}
        for name, job in jobs.items():
            results[name] = {**alone(*job, folder), "commit": commit(), "date": str(date.today())}
            print(f"{name:16} {results[name]}", flush=True)
            KEPT.write_text(json.dumps(results, indent=1) + "\n")
    write_page(results)


def lines(results: Results, data: str) -> list[dict[str, Any]]:
    found = [entry for entry in results.values() if entry["data"] == data]
    return sorted(found, key=lambda entry: (entry["m"] or np.inf, -entry["k"]))


def name_of(found: dict[str, Any]) -> str:
    if not found["m"]:
        return "`GreenClassifier`"
    return f"{found['m']:,}" if found["k"] == K else f"{found['m']:,}, `n_neighbors={found['k']}`"


def table(results: Results, data: str) -> str:
    return markdown(
        ("anchors", "accuracy", "time", "processor time", "memory"),
        [
            (
                name_of(found),
                f"{accuracy(found):.1%}",
                seconds(found["seconds"]),
                seconds(found["cpu_s"]),
                f"{found['gib']:.2f} GiB",
            )
            for found in lines(results, data)
        ],
    )


def seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def page(results: Results) -> str:
    commits = ", ".join(sorted({one["commit"] for one in results.values()}))
    return "\n\n".join(
        [
            "![Accuracy against processor time, one point for each number of anchors, on MNIST and on a million rows.]"
            "(../benchmarks/anchors.png)",
            f"MNIST (70,000 x 784), ten labels per class, mean of {DRAWS} draws; memory includes the data:",
            table(results, "mnist"),
            "A million rows of 784 columns in a memory map (images of MNIST, shifted and noised), ten labels per\n"
            f"class, mean of {DRAWS} draws; memory is without the page cache:",
            table(results, "million"),
            f"`python benchmarks/anchors.py`, commit {commits}. Processor time is that of both cores together; where\n"
            "the clock says more than half of it, others used the machine, or one thread did the work.",
        ]
    )


def draw(results: Results, path: Path) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    for axes, (data, title) in zip(
        figure.subplots(1, 2), {"mnist": "MNIST", "million": "a million rows"}.items(), strict=True
    ):
        points = [found for found in lines(results, data) if found["m"] and found["k"] == K]
        places = [(found["cpu_s"], 100 * accuracy(found)) for found in points]
        axes.plot(*zip(*places, strict=True), "o-", color="#0072B2")
        for found, place, before, after in zip(
            points, places, [(0, 0), *places[:-1]], [*places[1:], (0, 0)], strict=True
        ):
            words = BESIDE[before[0] > place[0], after[0] > place[0]]
            axes.annotate(f"{found['m']:,}", place, textcoords="offset points", fontsize=8, **words)
        axes.set(xscale="log", title=title, xlabel="processor time, seconds", ylabel="accuracy, %")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(color="0.9")
        axes.margins(x=0.25, y=0.1)
    figure.savefig(path, dpi=110)


def write_page(results: Results) -> None:
    draw(results, FOLDER / "anchors.png")
    fill(DOCS / "parameters.md", "anchors", page(results))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="names of measures, or how they start")
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--page", action="store_true", help="only write table and figure")
    parser.add_argument("--folder", type=Path, help="where the million rows are, or are to be made and kept")
    words = parser.parse_args()
    if words.measure:
        print(json.dumps(one(words.measure[0], *map(int, words.measure[1:]), words.folder)))
    elif words.page:
        write_page(json.loads(KEPT.read_text()))
    else:
        run_all(words.folder, words.only)


if __name__ == "__main__":
    main()
