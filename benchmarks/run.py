"""Run the benchmarks and write benchmarks/RESULTS.md with its figure.

    GREENLABEL_DATA=... python benchmarks/run.py            everything (about half an hour, peers included)
    GREENLABEL_DATA=... python benchmarks/run.py --only anchored green
    GREENLABEL_DATA=... python benchmarks/run.py --without-peers

Each measure runs in a process of its own. What is not measured this time keeps its place from benchmarks/results.json,
with the commit it was taken on.
"""

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import psutil

FOLDER = Path(__file__).parent
KEPT = FOLDER / "results.json"
GRID = [(10_000, 1024), (30_000, 1024), (100_000, 1024), (300_000, 1024), (1_000_000, 1024)]
GRID_M = [(200_000, m) for m in (256, 512, 1024, 2048, 4096)]
TABLE = [
    "anchored",
    "anchored_20",
    "many_anchors",
    "green",
    "explaining",
    "explaining_anchored",
    "explaining_many",
    "solver",
    "relabel",
    "growth",
    "memory",
]
TABLE += ["cold_start", "quick_start", "predicting", "streaming"]
PEERS = ["greenlabel", "label_spreading", "same_graph", "poisson", "diffusion", "page_rank"]

Results = dict[str, dict[str, Any]]


def alone(script: str, *words: Any) -> dict[str, Any]:
    """One measure in a process of its own."""
    command = [sys.executable, str(FOLDER / script), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or ["no message"])[-1]}  # type: ignore[dict-item]
    return json.loads(done.stdout.splitlines()[-1])


def commit() -> str:
    """The commit that is measured, marked where its code was changed; what the benchmarks write is no code."""
    name, changed = (
        subprocess.run(["git", *words], capture_output=True, text=True, cwd=FOLDER).stdout.strip()
        for words in (["describe", "--always"], ["diff", "--name-only", "HEAD", "--", ":/*.py", ":/*.c"])
    )
    return f"{name}-dirty" if changed else name or "unknown"


def jobs(peers: bool) -> dict[str, Callable[[], dict[str, float]]]:
    found: dict[str, Callable[[], dict[str, float]]] = {
        name: lambda name=name: alone("measures.py", name)  # type: ignore[misc]
        for name in [*TABLE, "stages", "switch"]
    }
    for n, m in [*GRID, *GRID_M]:
        found[f"fit {n} {m}"] = lambda n=n, m=m: alone("measures.py", "one_fit", n, m)  # type: ignore[misc]
    if peers:
        for name in PEERS:
            found[f"peer {name}"] = lambda name=name: alone("peers.py", name)  # type: ignore[misc]
    return found


def measure(names: list[str], peers: bool) -> Results:
    taken_on = {"commit": commit(), "date": str(date.today())}
    results: Results = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    chosen = {name: job for name, job in jobs(peers).items() if not names or any(name.startswith(n) for n in names)}
    for name, job in chosen.items():
        results[name] = {**job(), **taken_on}
        print(f"{name:24} {results[name]}", flush=True)
        KEPT.write_text(json.dumps(results, indent=1) + "\n")
    return results


# The page


def rows(r: Results) -> list[tuple[str, str, str, str]]:
    """What is measured, the bar, the aim, and what came out."""
    anchored, wide, green, solver = r["anchored"], r["anchored_20"], r["green"], r["solver"]
    many = r["many_anchors"]
    spreading = r.get("peer label_spreading", {}).get("seconds")
    ahead = f"{spreading / green['fit_s']:.0f}" if spreading else "not run"
    explained, few, chosen = (
        f"{r[name]['first_s']:.2g} s, {r[name]['seconds']:.1g}, {r[name]['one_more_s']:.2g}, {r[name]['one_row_s']:.2g}"
        if name in r
        else "not run"
        for name in ("explaining", "explaining_anchored", "explaining_many")
    )
    product = "the bare product X P' (float32, 70,000 x 784 by 784 x 1,024)"
    return [
        (f"`AnchoredGreenClassifier(1024)` on MNIST, over {product}", "<= 2.0", "<= 1.0", f"{anchored['ratio']:.2f}"),
        ("the same with `n_neighbors=20`", "<= 3.0", "<= 2.0", f"{wide['ratio']:.2f}"),
        ("accuracy of `AnchoredGreenClassifier()` there, five draws", ">= 93 %", ">= 94 %", f"{many['accuracy']:.1%}"),
        ("that fit over that of `GreenClassifier`", "<= 1.0", "<= 0.6", f"{many['ratio']:.2f}"),
        ("scikit-learn's `LabelSpreading` over `GreenClassifier`, MNIST, k = 10", ">= 75", ">= 100", ahead),
        ("accuracy of `GreenClassifier` on MNIST, five draws", ">= 93.5 %", ">= 94.5 %", f"{green['accuracy']:.1%}"),
        ("that fit over the bare product", "<= 7", "<= 3", f"{green['ratio']:.1f}"),
        ('dense elimination over `solver="cg"`, USPS', ">= 30", ">= 100", f"{solver['ratio']:.0f}"),
        ("difference of their scores, relative", "<= 1e-6", "", f"{solver['relative_error']:.0e}"),
        (
            "`relabel` and `transduction_` over `fit`, anchored, 1,000,000 x 64",
            "<= 1/30",
            "<= 1/100",
            f"1/{1 / r['relabel']['ratio']:.0f}",
        ),
        (
            "exponent of the time of anchored `fit` in n, 125,000 to 2,000,000 rows",
            "<= 1.05",
            "1.0",
            f"{r['growth']['exponent']:.2f}",
        ),
        (
            "peak memory of anchored `fit` beyond X, per row, k = 5, 2,000,000 rows",
            "<= 250 bytes",
            "<= 120 bytes",
            f"{r['memory']['bytes_per_row']:.0f} bytes",
        ),
        (
            "first `fit` in a fresh process on digits, import included",
            "<= 2.5 s",
            "<= 1.5 s",
            f"{r['cold_start']['seconds']:.2f} s",
        ),
        (
            'the slowest of `greenlabel --help`, a wrong option and a missing file, over `python -c "import typer, '
            'rich.console"`',
            "<= 3.0",
            "",
            f"{r['quick_start']['ratio']:.1f}",
        ),
        (
            "`greenlabel predict` on 2,000 rows over the imports that it needs",
            "<= 2.0",
            "",
            f"{r['predicting']['ratio']:.2f}",
        ),
        (
            "`greenlabel label` in blocks by the blend over `--method anchored`, 1,000,000 x 20 as CSV, processor time",
            "<= 4",
            "<= 2",
            f"{r['streaming']['ratio']:.2f}",
        ),
        ("recall of the approximate neighbours, MNIST", ">= 0.97", ">= 0.99", f"{green['recall']:.3f}"),
        (
            "`explain` of 100 rows there, after other labels, once more, after one more label; of one row after others",
            "<= 3 s",
            "",
            explained,
        ),
        (
            "the same of `AnchoredGreenClassifier(1024)`, and with the anchors it chooses",
            "<= 0.1 s",
            "",
            f"{few}; {chosen}",
        ),
    ]


PEER_NAMES = {
    "greenlabel": "greenlabel, graph included",
    "label_spreading": "scikit-learn LabelSpreading, graph included",
    "same_graph": "greenlabel, after the graph",
    "poisson": "GraphLearning Poisson learning, on greenlabel's graph",
    "diffusion": "scikit-network DiffusionClassifier, on greenlabel's graph",
    "page_rank": "scikit-network PageRankClassifier, on greenlabel's graph",
}


def peer_rows(r: Results) -> list[tuple[str, ...]]:
    found = []
    for name, title in PEER_NAMES.items():
        peer = r.get(f"peer {name}")
        if peer is None:
            continue
        if "failed" in peer:
            found.append((title, "failed", peer["failed"], "", ""))
            continue
        memory = "" if peer["mib"] is None else f"{peer['mib']:,.0f} MiB"
        cells = (f"{peer['accuracy']:.1%}", f"{peer['seconds']:.1f} s", memory)
        found.append((title, *cells, f"{peer['rows_without_answer']:,}"))
    return found


def markdown(header: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    table = [header, tuple("---" for _ in header), *lines]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in table)


def page(r: Results) -> str:
    stages = {name: taken for name, taken in r["stages"].items() if isinstance(taken, float)}
    load = stages.pop("load")
    parts = [(name, f"{taken:.2f} s") for name, taken in stages.items()]
    commits = ", ".join(sorted({entry["commit"] for entry in r.values()}))
    peers = ", ".join(sorted({entry["commit"] for name, entry in r.items() if name.startswith("peer ")})) or "none"
    day = max(entry["date"] for entry in r.values())
    return "\n\n".join(
        [
            "# Benchmarks",
            f"Measured on {day}, commits {commits},\non {machine()}. `python benchmarks/run.py` writes this page.\n"
            "Times are for comparing with each other. Ratios are taken within one process, best of three, and those\n"
            "of commands in turns, of processor time; only LabelSpreading ran once, in a process of its own, as all\n"
            f"peers did, on commit {peers}.",
            markdown(("measure", "bar", "aim", "measured"), rows(r)),
            "What was done for them, and what was tried for the aims, is told in [what was tried](tried.md#speed).",
            "## Others on the same task",
            "MNIST (70,000 x 784), ten labels per class, one draw. Memory is the peak beyond the data.",
            markdown(("method", "accuracy", "time", "memory", "rows without a prediction"), peer_rows(r)),
            "## Growth",
            "![Time and memory of the anchored fit against the number of rows and of anchors.](growth.png)",
            "Synthetic rows (a mixture of 40 Gaussian clouds in 64 dimensions), k = 5. Left: 1,024 anchors; few rows\n"
            "are searched in double precision, which takes more memory. Right: 200,000 rows.",
            "## Exact or approximate",
            "A k-NN graph is searched exactly up to rows^2 x columns = 10^11 and approximately beyond. Below, the\n"
            "exact search costs little; above, its time grows with the square of the rows.",
            markdown(("rows x columns", "rows^2 x columns", "exact over approximate, time", "recall"), switch_rows(r)),
            "## Where the time goes",
            "`AnchoredGreenClassifier(1024)` on MNIST. The parts share out the whole: they add up to everything.\n"
            f"Taken at a load of {load:.0f} on {psutil.cpu_count()} cores; at more than the cores, compare the parts "
            "with each other alone.",
            markdown(("stage", "time"), parts) + "\n",
        ]
    )


def write_page(r: Results) -> None:
    """All sections; the last one, which scale.py writes, stays as it is."""
    path, mark = FOLDER / "RESULTS.md", "\n## Millions of rows\n"
    kept = path.read_text().partition(mark)
    path.write_text(page(r) + kept[1] + kept[2])


def switch_rows(r: Results) -> list[tuple[str, ...]]:
    sizes = {name: found for name, found in r["switch"].items() if isinstance(found, dict)}
    return [
        (name, f"{found['operations']:.1e}", f"{found['ratio']:.1f}", f"{found['recall']:.3f}")
        for name, found in sizes.items()
    ]


def machine() -> str:
    memory = psutil.virtual_memory().total / 2**30
    return f"{platform.machine()}, {psutil.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}"


def draw_growth(r: Results, path: Path) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    figure = Figure(figsize=(10, 3.8), layout="constrained")
    for axes, grid, key, title in zip(figure.subplots(1, 2), (GRID, GRID_M), "nm", ("rows", "anchors"), strict=True):
        points = [r[f"fit {n} {m}"] for n, m in grid]
        x = [point[key] for point in points]
        axes.plot(x, [point["seconds"] for point in points], "o-", color="#0072B2", label="time")
        axes.set(xscale="log", yscale="log", xlabel=title, ylabel="time of fit, seconds")
        memory = axes.twinx()
        memory.plot(x, [point["mib"] for point in points], "s--", color="#D55E00", label="memory")
        memory.set(yscale="log", ylabel="peak memory beyond X, MiB")
        axes.set_xticks(x, [f"{value:,}" for value in x])
        axes.grid(color="0.9")
        for scale in (axes.yaxis, memory.yaxis):
            scale.set_major_locator(LogLocator(subs=(1, 2, 5)))
            scale.set_major_formatter("{x:,g}")
        for either in (axes, memory):
            either.minorticks_off()
        lines = [*axes.get_lines(), *memory.get_lines()]
        axes.legend(lines, [str(line.get_label()) for line in lines], frameon=False, loc="upper center")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="measures whose names begin so")
    parser.add_argument("--without-peers", action="store_true", help="only greenlabel itself")
    words = parser.parse_args()
    results = measure(words.only, not words.without_peers)
    missing = [name for name in jobs(peers=False) if name not in results or "failed" in results[name]]
    if missing:
        raise SystemExit(f"no page yet: {', '.join(missing)} not measured or failed; run them with --only.")
    draw_growth(results, FOLDER / "growth.png")
    write_page(results)
    print(markdown(("measure", "bar", "aim", "measured"), rows(results)))


if __name__ == "__main__":
    main()
