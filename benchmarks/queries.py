"""Which rows to label: learning curves of the rule against random rows and against other rules; writes queries.md.

    GREENLABEL_DATA=... python benchmarks/queries.py                     everything that is not measured yet
    GREENLABEL_DATA=... python benchmarks/queries.py --again wine mnist  these data sets once more
    GREENLABEL_DATA=... python benchmarks/queries.py --parts ours --again wine    our rule alone once more on these
    GREENLABEL_DATA=... python benchmarks/queries.py --page              only the page, from what was measured
    GREENLABEL_DATA=... python benchmarks/queries.py --times             what `suggest` costs, on a quiet machine

Accuracy is that of `GreenClassifier()` on the rows without a label, by 1, 2, 5 and 10 labels per class. Random rows do
not know the classes (a hundred draws). Each data set is measured in a process of its own; what was measured stays in
queries.json with its commit. GraphLearning is an extra, `pip install '.[peers]'`; without it its columns stay empty.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from query_data import (
    DRAWS,
    MAX_ROWS,
    NAMES,
    ORDERS,
    PEER_DRAWS,
    PEER_ROWS,
    SAMPLE_DRAWS,
    SAMPLE_ROWS,
    SAMPLE_SHARE,
    SAMPLES,
    data,
    n_starts,
)
from query_page import page
from query_rules import PEERS, Task, suggested, v_optimality
from run import commit

FOLDER = Path(__file__).parent
KEPT = FOLDER / "queries.json"
TIMED = [(1_000_000, 0), (20_000, 2048)]  # rows, anchors; 0 for as many as the classifier chooses


def measure_ours(name: str) -> dict[str, Any]:
    """What depends on our rule, through `suggest` itself."""
    task = Task(*data(name, MAX_ROWS))
    start = time.perf_counter()
    rows = suggested(task, max(task.budgets))
    seconds = time.perf_counter() - start
    on_samples = [(sample, suggested(sample, max(task.budgets))) for sample, _ in samples_of(name)]
    return {
        "ours": task.curve(rows),
        "seen": task.n_until_all_seen(rows),
        "seconds": seconds,
        "samples": [sample.curve(rows, task.budgets) for sample, rows in on_samples],
        "samples_seen": [sample.n_until_all_seen(rows) for sample, rows in on_samples],
    }


def measure_starts(name: str) -> dict[str, Any]:
    """Our rule with several seeds, on which the anchors hang: on all rows, and on those that others get."""
    task = Task(*data(name, MAX_ROWS))
    runs = runs_of(task)
    few = Task(*data(name, PEER_ROWS))
    return {
        "starts": [task.curve(rows) for rows in runs],
        "starts_seen": [task.n_until_all_seen(rows) for rows in runs],
        "beside_peers": np.mean([few.curve(rows) for rows in runs_of(few)], axis=0).tolist(),
    }


def runs_of(task: Task) -> list[list[int]]:
    total = max(task.budgets)
    return [suggested(task, total, seed) for seed in range(n_starts(len(task.y), total))]


def measure_random(name: str) -> dict[str, Any]:
    """What random rows do."""
    task = Task(*data(name, MAX_ROWS))
    rng, n = np.random.default_rng(0), len(task.y)
    draws = [task.curve([int(row) for row in rng.permutation(n)[: max(task.budgets)]]) for _ in range(DRAWS)]
    return {
        "rows": n,
        "budgets": task.budgets,
        "random": draws,
        "seen_random": mean_until_all_seen(task, rng),
        "samples_seen_random": [mean_until_all_seen(sample, rng) for sample, rng in samples_of(name)],
        "samples_random": [
            [
                sample.curve([int(row) for row in rng.permutation(len(sample.y))[: max(task.budgets)]], task.budgets)
                for _ in range(SAMPLE_DRAWS)
            ]
            for sample, rng in samples_of(name)
        ],
    }


def mean_until_all_seen(task: Task, rng: np.random.Generator) -> float | None:
    """Labels on random rows until every class has been seen; None of a sample that has not all classes."""
    seen = [task.n_until_all_seen(rng.permutation(len(task.y))) for _ in range(ORDERS)]
    return None if None in seen else float(np.mean(seen))  # type: ignore[arg-type]


def samples_of(name: str) -> Iterator[tuple[Task, np.random.Generator]]:
    """Several samples of the rows, each with the generator of its random draws: how much of a gain is luck."""
    X, y = data(name, MAX_ROWS)
    for number in range(SAMPLES):
        rng = np.random.default_rng(100 + number)
        rows = np.sort(rng.permutation(len(y))[: min(SAMPLE_ROWS, int(SAMPLE_SHARE * len(y)))])
        yield Task(X[rows], y[rows]), rng


def measure_peers(name: str) -> dict[str, Any]:
    """Rules of others that are not measured yet; those that begin at random are averaged over their draws."""
    task = Task(*data(name, PEER_ROWS))
    found: dict[str, Any] = kept_so_far().get(name, {}).get("peers", {})
    for title, rule in PEERS.items():
        if title in found:
            continue
        n_draws = 1 if rule is v_optimality else PEER_DRAWS
        try:
            draws = [rule(task, max(task.budgets), np.random.default_rng(draw)) for draw in range(n_draws)]
        except ImportError:
            continue
        known = [task.curve(rows) for rows in draws if rows is not None]
        found[title] = np.mean(known, axis=0).tolist() if known else None
    return {"peers": found}


PARTS: dict[str, Callable[[str], dict[str, Any]]] = {
    "random": measure_random,
    "peers": measure_peers,
    "ours": measure_ours,
    "starts": measure_starts,
}


def kept_so_far() -> dict[str, Any]:
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}


def write(kept: dict[str, Any]) -> None:
    """A line for each data set; there are some thousand runs."""
    lines = (f"{json.dumps(name)}: {json.dumps(short(entry))}" for name, entry in kept.items())
    KEPT.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def short(entry: Any) -> Any:
    """Numbers with six decimals, at any depth."""
    if isinstance(entry, dict):
        return {key: short(value) for key, value in entry.items()}
    if isinstance(entry, list):
        return [short(value) for value in entry]
    return round(entry, 6) if isinstance(entry, float) else entry


def for_page() -> dict[str, Any]:
    """The data sets on which our rule and random rows are measured, in the order of the page."""
    kept = kept_so_far()
    return {name: kept[name] for name in NAMES if {"ours", "starts", "random"} <= set(kept.get(name, {}))}


def is_measured(entry: dict[str, Any], part: str) -> bool:
    return set(entry.get("peers", {})) >= set(PEERS) if part == "peers" else part in entry


def forget_peers(name: str) -> None:
    """So that all of them are measured again, not only those that are missing."""
    kept = kept_so_far()
    entry = kept.get(name, {})
    entry.get("commits", {}).pop("peers", None)
    entry.pop("peers", None)
    write(kept)


def keep(name: str, part: str, found: dict[str, Any], measured_at: str) -> None:
    """Rules of others may be of several commits: those that were there are not measured again."""
    kept = kept_so_far()
    entry = kept.setdefault(name, {})
    older = [entry["commits"][part]] if part == "peers" and part in entry.get("commits", {}) else []
    commits = entry.get("commits", {}) | {part: " and ".join(dict.fromkeys([*older, measured_at]))}
    entry |= found | {"commits": commits, "date": str(date.today())}
    write(kept)


def measure_times() -> None:
    """What `suggest` takes, each size in a process of its own."""
    runs = []
    for n, m in TIMED:
        command = [sys.executable, str(FOLDER / "query_times.py"), str(n), str(m)]
        runs.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    write(kept_so_far() | {"times": {"runs": runs, "commit": commit()}})


def measure(parts: list[str], again: list[str]) -> None:
    """These parts of all data sets, as far as they are missing, and of those named ``again``."""
    for part in parts:
        for name in NAMES:
            if name not in again and is_measured(kept_so_far().get(name, {}), part):
                continue
            if name in again and part == "peers":
                forget_peers(name)
            job = subprocess.run([sys.executable, __file__, "--one", part, name], check=True, capture_output=True)
            keep(name, part, json.loads(job.stdout), commit())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", nargs="+", default=[], metavar="NAME", help="measure these once more")
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS, help="only these, in this order")
    parser.add_argument("--times", action="store_true", help="only measure what suggest takes; wants a quiet machine")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.one:
        warnings.simplefilter("ignore")
        part, name = words.one
        print(json.dumps(PARTS[part](name)))
        return
    if words.times:
        measure_times()
    elif not words.page:
        measure(words.parts, words.again)
    (FOLDER / "queries.md").write_text(page(for_page(), kept_so_far().get("times")))


if __name__ == "__main__":
    main()
