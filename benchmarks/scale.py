"""Millions of rows: time, memory and growth of the anchored fit on row blocks, beside the bare product.

    GREENLABEL_DATA=... python benchmarks/scale.py                  everything, 8.1 million rows (about half an hour)
    GREENLABEL_DATA=... python benchmarks/scale.py --rows 1000000   a smaller run, which writes nothing
    GREENLABEL_DATA=... python benchmarks/scale.py --only dask

The rows are synthetic: images of MNIST, each shifted by up to two pixels and noised, as uint8 in a memory map under a
temporary folder, which is removed at the end. Each measure runs in a process of its own. What came out is kept in
benchmarks/scale.json, and written to the section "Millions of rows" of RESULTS.md and to docs/scale.md.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from basics import Array, load
from greenlabel import AnchoredGreenClassifier, GreenClassifier
from greenlabel.datasets import keep_labels
from greenlabel.graph.distances import row_blocks
from run import commit

FOLDER = Path(__file__).parent
KEPT = FOLDER / "scale.json"
CORES = 2
ROWS, COLUMNS, M, K = 8_100_000, 784, 1024, 5
SHIFTS = [(dx, dy) for dx in range(-2, 3) for dy in range(-2, 3)]
NOISE = 32  # grey values below this are added to every pixel
GROWTH = (1_000_000, 2_000_000, 4_000_000, 8_100_000)
GRID_M = (256, 1024, 4096)
Results = dict[str, dict[str, Any]]


# Rows


def make_rows(folder: Path, n: int) -> None:
    """rows.npy (n, 784) uint8 and y.npy (n,): digits of MNIST, shifted and noised."""
    images, digit = load("mnist")
    images = images.astype(np.uint8).reshape(-1, 28, 28)
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(folder / "rows.npy", "w+", np.uint8, (n, COLUMNS))
    y = np.empty(n, np.int64)
    for start in range(0, n, 2**16):
        rows = slice(start, min(start + 2**16, n))
        chosen = rng.integers(0, len(images), rows.stop - start)
        X[rows] = noised(shifted(images[chosen], rng), rng).reshape(len(chosen), COLUMNS)
        y[rows] = digit[chosen]
    X.flush()
    np.save(folder / "y.npy", y)


def shifted(images: Array, rng: np.random.Generator) -> Array:
    which = rng.integers(0, len(SHIFTS), len(images))
    for i, shift in enumerate(SHIFTS):
        images[which == i] = np.roll(images[which == i], shift, axis=(1, 2))
    return images


def noised(images: Array, rng: np.random.Generator) -> Array:
    noise = rng.integers(0, NOISE, images.shape, np.uint8)
    return np.minimum(images, 255 - noise) + noise


def few_labels(folder: Path, n: int) -> tuple[Array, Array]:
    """Ten labels per class among the first 100,000 rows; and all classes."""
    y = np.load(folder / "y.npy")[:n]
    few = np.full(n, -1)
    few[:100_000] = keep_labels(y[:100_000], 10, random_state=0)
    return few, y


# Measures


@contextmanager
def peak_of_own_memory() -> Iterator[list[float]]:
    """GiB of memory beyond the page cache (RssAnon), the largest seen every 20 ms."""
    peak, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            status = Path("/proc/self/status").read_text()
            peak[0] = max(peak[0], int(status.split("RssAnon:")[1].split()[0]) / 2**20)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


def fit(folder: Path, n: int, m: int = M) -> dict[str, float]:
    """Fit and the class of every row, of the first n rows of the memory map."""
    X = np.load(folder / "rows.npy", mmap_mode="r")[:n]
    few, y = few_labels(folder, n)
    with peak_of_own_memory() as peak:
        start = time.perf_counter()
        found = AnchoredGreenClassifier(m, K, random_state=0).fit(X, few).transduction_
        seconds = time.perf_counter() - start
    return {"n": n, "m": m, "seconds": seconds, "gib": peak[0], "accuracy": float((found == y)[few == -1].mean())}


def product(folder: Path, n: int, m: int = M) -> dict[str, float]:
    """The bare product of the same rows, in float32 and in the blocks in which they are searched."""
    X = np.load(folder / "rows.npy", mmap_mode="r")[:n]
    P = X[:m].astype(np.float32).T.copy()
    size = next(row_blocks(n, COLUMNS)).stop
    block, out = np.empty((size, COLUMNS), np.float32), np.empty((size, m), np.float32)
    start = time.perf_counter()
    for rows in row_blocks(n, COLUMNS):
        length = rows.stop - rows.start
        block[:length] = X[rows]
        np.matmul(block[:length], P, out=out[:length])
    return {"seconds": time.perf_counter() - start}


def dask(folder: Path, n: int) -> dict[str, float]:
    """Two worker processes of one thread each, which read the same file; all predictions come to the client."""
    from greenlabel.blocks.on_dask import distribute, start_local
    from greenlabel.blocks.rows import NpyBlocks

    few, y = few_labels(folder, n)
    with start_local(2) as client:
        client.run(lambda: __import__("greenlabel"))
        rows = distribute(NpyBlocks(folder / "rows.npy"))
        start = time.perf_counter()
        found = AnchoredGreenClassifier(M, K, random_state=0).fit(rows, few).transduction_
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "accuracy": float((found == y)[few == -1].mean())}


def path(folder: Path, n: int) -> dict[str, float]:
    """The same rows by the path of their file: read, not mapped."""
    few, _ = few_labels(folder, n)
    with peak_of_own_memory() as peak:
        start = time.perf_counter()
        AnchoredGreenClassifier(M, K, random_state=0).fit(folder / "rows.npy", few).transduction_  # noqa: B018
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "gib": peak[0]}


def graph(folder: Path, n: int) -> dict[str, float]:
    """`GreenClassifier` on all rows, in memory."""
    X = np.load(folder / "rows.npy", mmap_mode="r")[:n]
    few, y = few_labels(folder, n)
    with peak_of_own_memory() as peak:
        start = time.perf_counter()
        found = GreenClassifier(10, random_state=0).fit(X, few).transduction_
        seconds = time.perf_counter() - start
    return {"n": n, "seconds": seconds, "gib": peak[0], "accuracy": float((found == y)[few == -1].mean())}


MEASURES: dict[str, Callable[..., dict[str, float]]] = {
    "fit": fit,
    "product": product,
    "dask": dask,
    "path": path,
    "graph": graph,
}


# All of them


def jobs(rows: int) -> dict[str, tuple[Any, ...]]:
    """Name: measure and its numbers. The product is taken before and after the fit that is divided by it."""
    growth = [n for n in GROWTH if n < rows]
    return {
        "product before": ("product", rows),
        "fit": ("fit", rows),
        "product after": ("product", rows),
        "path": ("path", rows),
        "dask": ("dask", rows),
        "graph": ("graph", min(rows, GROWTH[0])),
        **{f"fit {n}": ("fit", n) for n in growth},
        **{f"anchors {m}": ("fit", min(rows, GROWTH[0]), m) for m in GRID_M},
    }


def alone(folder: Path, words: tuple[Any, ...]) -> dict[str, Any]:
    command = [sys.executable, __file__, "--measure", words[0], "--folder", str(folder)]
    done = subprocess.run([*command, "--numbers", *map(str, words[1:])], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def check_disk(folder: Path, rows: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < 1.2 * rows * COLUMNS:
        raise SystemExit(
            f"{rows:,} rows need {rows * COLUMNS / 2**30:.1f} GiB in {folder}, {free / 2**30:.1f} are free."
        )


def run_all(rows: int, only: list[str]) -> None:
    results = json.loads(KEPT.read_text()) if KEPT.exists() and rows == ROWS else {}
    with TemporaryDirectory(prefix="greenlabel-scale-", dir=os.environ.get("TMPDIR")) as name:
        folder = Path(name)
        check_disk(folder, rows)
        make_rows(folder, rows)
        for name, words in jobs(rows).items():
            if only and not any(name.startswith(start) for start in only):
                continue
            results[name] = {**alone(folder, words), "commit": commit(), "date": str(date.today())}
            print(f"{name:16} {results[name]}", flush=True)
            if rows == ROWS:
                KEPT.write_text(json.dumps(results, indent=1) + "\n")
    if rows == ROWS:
        write_pages(results)


# The section of the page


def markdown(header: tuple[str, ...], lines: list[tuple[str, ...]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, tuple("---" for _ in header), *lines])


def bars(r: Results) -> list[tuple[str, str, str, str]]:
    """What is measured, the bar, the aim, and what came out."""
    fit, floor = r["fit"], min(r["product before"]["seconds"], r["product after"]["seconds"])
    seconds = {r[name]["n"]: r[name]["seconds"] for name in r if name.startswith("fit")}
    exponent = np.polyfit(np.log(list(seconds)), np.log(list(seconds.values())), 1)[0]
    product = "the bare product of the same rows in the same blocks"
    workers = "Dask on two local worker processes over the plain run on two threads"
    return [
        (f"fit and all predictions over {product}", "<= 1.5", "<= 0.6", f"{fit['seconds'] / floor:.2f}"),
        ("the same in minutes", "<= 4", "<= 3", f"{fit['seconds'] / 60:.1f}"),
        ("peak memory of that run beyond the page cache", "<= 3 GiB", "<= 1.5 GiB", f"{fit['gib']:.2f} GiB"),
        ("exponent of the time in n, 1 to 8.1 million rows", "<= 1.05", "1.0", f"{exponent:.2f}"),
        (workers, "<= 1.5", "<= 1.1", f"{r['dask']['seconds'] / fit['seconds']:.2f}"),
    ]


def sizes(r: Results) -> str:
    """Time and memory by rows and anchors."""
    found = [
        r[name] for name in [*(f"fit {n}" for n in GROWTH[:-1]), "fit", *(f"anchors {m}" for m in GRID_M if m != M)]
    ]
    lines = [
        (f"{one['n']:,}", f"{one['m']:,}", f"{one['seconds']:.0f} s", f"{one['gib']:.2f} GiB", f"{one['accuracy']:.1%}")
        for one in found
    ]
    return markdown(("rows", "anchors", "time", "memory", "accuracy"), lines)


def section(r: Results) -> str:
    """Millions of rows and few anchors, for RESULTS.md."""
    commits = ", ".join(sorted({entry["commit"] for entry in r.values()}))
    return "\n\n".join(
        [
            f"`python benchmarks/scale.py`, commit {commits}.\n"
            f"{ROWS:,} x {COLUMNS} uint8 rows in a memory map, synthetic: images of MNIST, each shifted by up to two\n"
            f"pixels and noised. `AnchoredGreenClassifier({M}, {K})`, ten labels per class. The product is\n"
            "the better of one before and one after the fit; each ran once, in a process of its own.",
            markdown(("measure", "bar", "aim", "measured"), bars(r)),
            f"By its path, read and not mapped, the same takes {r['path']['seconds'] / 60:.1f} minutes and\n"
            f"{r['path']['gib']:.2f} GiB. That predictions are equal to the last bit over blocks, threads, sources\n"
            "and workers, and that killed workers change nothing, are tests (`tests/test_blocks.py`,\n"
            "`tests/test_dask_blocks.py`).",
            sizes(r),
            *full_graph(r),
        ]
    )


def full_graph(r: Results) -> list[str]:
    """The graph of all rows beside the anchored one, where it was measured."""
    if "graph" not in r:
        return []
    one = r["graph"]
    return [
        f"`GreenClassifier(10)` on all of {one['n']:,} rows: {one['seconds']:.0f} s, {one['gib']:.2f} GiB, "
        f"{one['accuracy']:.1%}."
    ]


def measured(r: Results) -> str:
    """Time and memory, for docs/scale.md."""
    text = (
        f"On two cores, {COLUMNS} columns of uint8 in a memory map, k = {K}, ten labels per class: synthetic rows, "
        "images of MNIST shifted by up to two pixels and noised. Time is the fit and the class of every row, memory "
        "the peak of the process beyond the page cache. More in the [benchmarks](../benchmarks/RESULTS.md)."
    )
    return f"{textwrap.fill(text, 120)}\n\n{sizes(r)}"


def on_paper(r: Results) -> str:
    """A billion rows by the measured figures, for docs/scale.md."""
    per_million = r["fit"]["seconds"] * CORES / ROWS * 1e6  # core seconds
    core_hours, block_rows, sum_bytes = per_million * 1000 / 3600, 2**27 // COLUMNS, 8 * M * (M + 1)
    blocks, disk = 1e9 / block_rows, COLUMNS * 1e9 / (core_hours * 3600 / 64) / 2**30
    text = (
        f"The run above takes {per_million:.0f} seconds per million rows and core, so a billion such rows are "
        f"{core_hours:.1f} core hours: {60 * core_hours / 64:.0f} minutes on 64 cores, if the disk gives them "
        f"{disk:.1f} GiB a second. A row is {COLUMNS} bytes to read and 34 to keep: 34 GB on all workers together, or "
        "nothing if predictions are computed by a second pass. A sum is 8 m (m + 1) bytes, "
        f"{sum_bytes / 1e6:.1f} MB at m = {M:,}; with blocks of 128 MB ({block_rows:,} rows) there are "
        f"{blocks:,.0f} of them, and if each had to travel once on its way up the tree, "
        f"{blocks * sum_bytes / 1e9:.0f} GB would cross the network; larger blocks make that less. "
        "Predictions are 8 bytes for the class and 8 for each probability. The sum counts exactly up to 4.29 billion "
        "rows. This paragraph is arithmetic: it has not been run."
    )
    return textwrap.fill(text, 120)


def fill(page: Path, name: str, text: str) -> None:
    """Put a text between its marks on a page."""
    pattern = rf"(<!-- {name}: .*? -->\n).*?(<!-- end -->)"
    page.write_text(re.sub(pattern, lambda marks: f"{marks[1]}\n{text}\n\n{marks[2]}", page.read_text(), flags=re.S))


def write_pages(r: Results) -> None:
    fill(FOLDER.parent / "docs" / "scale.md", "measured", measured(r))
    fill(FOLDER.parent / "docs" / "scale.md", "on paper", on_paper(r))
    fill(FOLDER / "RESULTS.md", "few anchors", section(r))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--only", nargs="*", default=[], help="names of measures, or how they start")
    parser.add_argument("--measure", choices=MEASURES, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--numbers", type=int, nargs="*", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.measure:
        print(json.dumps(MEASURES[words.measure](words.folder, *words.numbers)))
    else:
        run_all(words.rows, words.only)


if __name__ == "__main__":
    main()
