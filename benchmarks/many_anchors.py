"""Many anchors on millions of rows: accuracy over draws of labels, time, memory and growth, beside the full graph.

    GREENLABEL_DATA=... python benchmarks/many_anchors.py                     everything (about an hour)
    GREENLABEL_DATA=... python benchmarks/many_anchors.py --only fixed        what begins so; the rest is kept
    GREENLABEL_DATA=... python benchmarks/many_anchors.py --folder DIR        rows that are there already stay there

The rows are those of scale.py. Ten labels per class are drawn from all rows, five times: of millions of rows a hundred
labels are few, and one draw is luck. Each measure is a fit and the class of every row, in a process of its own; other
draws are relabelled, which is not timed. A growth compares times of different minutes, so its sizes take turns, and of
each the run of the least processor time counts. What came out is kept in benchmarks/many_anchors.json, and written to
the section "Millions of rows" of RESULTS.md and to docs/scale.md.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from greenlabel import AnchoredGreenClassifier, GreenClassifier
from greenlabel.datasets import keep_labels
from run import commit
from scale import CORES, ROWS, check_disk, fill, make_rows, markdown, peak_of_own_memory

FOLDER = Path(__file__).parent
KEPT = FOLDER / "many_anchors.json"
MILLION = 1_000_000
DRAWS = 5
FORMER_SECONDS = 119  # of the full graph of a million rows, on this machine by the code of the bars, b7902fa
GROWTH = (250_000, 500_000, 1_000_000, 2_000_000)
MIN_POINTS = 3  # by which a growth is told
GROWTH_RUNS = 3
FIXED_M = 16_384
Results = dict[str, dict[str, Any]]


# Measures


@contextmanager
def rows_in(folder: Path | None, n: int) -> Iterator[Path]:
    """A folder with n rows or more: the given one, where they stay, or a temporary one."""
    if folder is None:
        with TemporaryDirectory(prefix="greenlabel-rows-") as name:
            check_disk(Path(name), n)
            make_rows(Path(name), n)
            yield Path(name)
        return
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "y.npy").exists():  # written last
        check_disk(folder, n)
        make_rows(folder, n)
    if len(np.load(folder / "y.npy", mmap_mode="r")) < n:
        raise SystemExit(f"{folder} holds fewer than {n:,} rows; remove what is there, or name another folder.")
    yield folder


def measure(model: Any, X: Any, y: Any, n_draws: int) -> dict[str, Any]:
    """Time and memory of one fit with the class of every row, and the accuracy of each draw of labels."""
    few = keep_labels(y, 10, random_state=0)
    with peak_of_own_memory() as peak:
        cpu, clock = time.process_time(), time.perf_counter()
        found = model.fit(X, few).transduction_
        cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
    accuracies = [float((found == y)[few == -1].mean())]
    for draw in range(1, n_draws):
        few = keep_labels(y, 10, random_state=draw)
        accuracies.append(float((model.relabel(few).transduction_ == y)[few == -1].mean()))
    return {"seconds": clock, "cpu_s": cpu, "gib": peak[0], "accuracies": accuracies}


def one(folder: Path, n: int, m: int, n_draws: int) -> dict[str, Any]:
    """The first n rows with m anchors; the full graph where m is 0, and what n_anchors="auto" takes where it is -1."""
    X = np.load(folder / "rows.npy", mmap_mode="r")[:n]
    y = np.load(folder / "y.npy")[:n]
    model: Any = AnchoredGreenClassifier("auto" if m < 0 else m, random_state=0) if m else GreenClassifier()
    if not m:
        model.set_params(random_state=0)
    found = measure(model, X, y, n_draws)
    return {"n": n, "m": len(model.anchors_) if m else 0, **found}


def jobs() -> dict[str, tuple[int, int, int]]:
    """Name: rows, anchors, draws of labels."""
    return {
        "million": (MILLION, -1, DRAWS),
        "graph": (MILLION, 0, DRAWS),
        "all": (ROWS, -1, DRAWS),
        **{f"fixed {n}": (n, FIXED_M, 1) for n in GROWTH},
        **{f"share {n}": (n, n // 4, 1) for n in GROWTH},
    }


def alone(folder: Path, numbers: tuple[int, ...]) -> dict[str, Any]:
    command = [sys.executable, __file__, "--folder", str(folder), "--measure", *map(str, numbers)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def run_all(folder: Path | None, only: list[str]) -> None:
    results: Results = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    chosen = {name: job for name, job in jobs().items() if not only or any(name.startswith(start) for start in only)}
    with rows_in(folder, max((n for n, *_ in chosen.values()), default=0)) as place:
        for number, name in in_turns(list(chosen)):
            found = {**alone(place, chosen[name]), "commit": commit(), "date": str(date.today())}
            print(f"{name:16} {found}", flush=True)
            if number == 0 or found["cpu_s"] < results[name]["cpu_s"]:
                results[name] = found
            KEPT.write_text(json.dumps(results, indent=1) + "\n")
    write_pages(results)


def in_turns(names: list[str]) -> Iterator[tuple[int, str]]:
    """Numbers of runs and names of measures: each once, and those of a growth several times, in turns."""
    growing = [name for name in names if name.startswith(("fixed", "share"))]
    yield from ((0, name) for name in names)
    yield from ((number, name) for number in range(1, GROWTH_RUNS) for name in growing)


# Pages


def accuracy(found: dict[str, Any]) -> float:
    return float(np.mean(found["accuracies"]))


def exponent(points: list[dict[str, Any]]) -> float:
    """The power of the rows with which processor time grows, by least squares."""
    return float(np.polyfit(*(np.log([point[key] for point in points]) for key in ("n", "cpu_s")), 1)[0])


def judged(value: float, bar: float, write: Callable[[float], str], *, at_least: bool = False) -> str:
    """A figure, and a word where it misses its bar."""
    return write(value) + ("" if (value >= bar if at_least else value <= bar) else ", missed")


def time_taken(found: dict[str, Any], unit: float, bar: float) -> str:
    """By the clock; where others used the machine, what the processor says, which is no measure of the clock."""
    if found["seconds"] <= found["cpu_s"]:
        return judged(found["seconds"] / unit, bar, "{:.2f}".format)
    shared = found["cpu_s"] / CORES / unit
    return (
        f"{found['seconds'] / unit:.2f} on a busy machine, not judged; {shared:.2f} of processor time on {CORES} cores"
    )


def bars(r: Results) -> list[tuple[str, str, str, str]]:
    """What is measured, the bar, the aim, and what came out; what was not measured is left out."""
    lines = []
    for name, accuracies, times, memories in (
        ("million", (0.90, 0.915), (0.5, 0.25), (3, 2)),
        ("all", (0.88, 0.90), (20, 10), (4, 3)),
    ):
        if name not in r:
            continue
        found = r[name]
        what = f"{found['n']:,} rows, {found['m']:,} anchors"
        right = judged(accuracy(found), accuracies[0], "{:.1%}".format, at_least=True)
        lines.append((f"{what}: accuracy", f">= {accuracies[0]:.1%}", f"{accuracies[1]:.1%}", right))
        is_ratio = name == "million"
        unit = f"time over the {FORMER_SECONDS} s of the full graph by the code of the bars" if is_ratio else "minutes"
        taken = time_taken(found, FORMER_SECONDS if is_ratio else 60, times[0])
        lines.append((f"{what}: {unit}", f"<= {times[0]}", f"{times[1]}", taken))
        gib = judged(found["gib"], memories[0], "{:.2f} GiB".format)
        lines.append((f"{what}: memory", f"<= {memories[0]} GiB", f"{memories[1]} GiB", gib))
    if "graph" in r:
        what = f"{r['graph']['n']:,} rows, `GreenClassifier`: time over those {FORMER_SECONDS} s"
        lines.append((what, "<= 0.6", "0.35", time_taken(r["graph"], FORMER_SECONDS, 0.6)))
    for name, limit, words in (("fixed", 1.05, f"{FIXED_M:,}"), ("share", 1.25, "a quarter of the rows")):
        points = [r[f"{name} {n}"] for n in GROWTH if f"{name} {n}" in r]
        what = f"exponent of the time in n, {words} as anchors"
        if len(points) < MIN_POINTS:
            lines.append((what, f"<= {limit}", "", "not measured"))
        else:
            sizes = f"{points[0]['n']:,} to {points[-1]['n']:,} rows"
            found_power = judged(exponent(points), limit, "{:.2f}".format)
            lines.append((f"{what}, {sizes}", f"<= {limit}", "", found_power))
    return lines


def sizes(r: Results) -> str:
    """Everything that was measured."""
    header = ("rows", "anchors", "time", "processor time", "memory", "accuracy: mean, lowest, highest")
    return markdown(
        header,
        [
            (
                f"{found['n']:,}",
                f"{found['m']:,}" if found["m"] else "`GreenClassifier`",
                f"{found['seconds']:.0f} s",
                f"{found['cpu_s']:.0f} s",
                f"{found['gib']:.2f} GiB",
                ", ".join(f"{right:.1%}" for right in spread(found["accuracies"])),
            )
            for found in (r[name] for name in jobs() if name in r)
        ],
    )


def spread(accuracies: list[float]) -> list[float]:
    """Mean, lowest and highest of several draws; the one of a single draw."""
    return [float(np.mean(accuracies)), min(accuracies), max(accuracies)] if len(accuracies) > 1 else accuracies


def section(r: Results) -> str:
    commits = ", ".join(sorted({entry["commit"] for entry in r.values()}))
    return "\n\n".join(
        [
            "### Many anchors",
            f"`python benchmarks/many_anchors.py`, commit {commits}.\n"
            "The same rows, `AnchoredGreenClassifier()`, and for the growth with a number of anchors. Ten labels per\n"
            f"class, drawn from all rows: the mean of {DRAWS} draws where a lowest and a highest are named. Processor\n"
            f"time is that of {CORES} cores together; a growth is by it, the least of {GROWTH_RUNS} runs in turns.\n"
            "Where the clock says more than half of it, others used the machine, or a step ran on one core.",
            markdown(("measure", "bar", "aim", "measured"), bars(r)),
            sizes(r),
        ]
    )


def write_pages(r: Results) -> None:
    fill(FOLDER / "RESULTS.md", "many anchors", section(r))
    fill(FOLDER.parent / "docs" / "scale.md", "many anchors", sizes(r))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="names of measures, or how they start")
    parser.add_argument("--folder", type=Path, help="where the rows are, or are to be made and kept")
    parser.add_argument("--measure", nargs=3, type=int, help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.measure:
        print(json.dumps(one(words.folder, *words.measure)))
    else:
        run_all(words.folder, words.only)


if __name__ == "__main__":
    main()
