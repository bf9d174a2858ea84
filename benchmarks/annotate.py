"""The page to label on: how quick a label is, how soon the map is there, how few labels are enough; writes annotate.md.

    GREENLABEL_DATA=... python benchmarks/annotate.py                    everything that is not measured yet
    GREENLABEL_DATA=... python benchmarks/annotate.py --again label      these measures once more
    GREENLABEL_DATA=... python benchmarks/annotate.py --page             only the page, from what was measured

Each measure runs in a process of its own, without a browser. What was measured stays in annotate.json with its commit;
measures in a browser stand there, too, under names of their own (BROWSER; `python benchmarks/annotate_page.py`).
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import psutil

from basics import load
from greenlabel.annotate.session.session import Session
from greenlabel.datasets import digits
from measures import mixture
from run import commit, machine, markdown

FOLDER = Path(__file__).parent
KEPT = FOLDER / "annotate.json"
N_LABELS = 60  # given before the clock runs, and as many after
TARGET = 0.95
MAX_LABELS = 150
SEEDS = (100, 101, 102, 103, 104)  # none of which has chosen a parameter
Array = np.ndarray[Any, Any]


@dataclass
class Rows:
    """A table in memory."""

    X: Array
    classes: list[str]
    name: str = "rows"
    target: str = "class"
    fingerprint: str = "benchmark"
    kind: str = "fields"
    given: list[tuple[int, str]] = field(default_factory=list)

    @property
    def n(self) -> int:
        return len(self.X)

    def fields(self, row: int) -> list[tuple[str, str]]:
        return []

    def text(self, row: int) -> str | None:
        return None

    def picture(self, row: int) -> tuple[str, bytes] | None:
        return None

    def search(self, words: str, limit: int) -> list[int]:
        return []

    def save(self, labels: dict[int, str], ignored: set[int], report: bool, model: bool) -> dict[str, Any]:
        return {}


def data(name: str) -> tuple[Array, Array]:
    X, y = digits() if name == "digits" else load(name)
    return X.astype(np.float32), np.unique(y, return_inverse=True)[1]


def opened(X: Array, y: Array, folder: str, seed: int = 0) -> Session:
    return Session(Rows(X, [str(k) for k in range(y.max() + 1)]), Path(folder) / "journal.jsonl", random_state=seed)


def give(session: Session, row: int, y: Array, audit: bool = False) -> None:
    session.act({"id": str(uuid4()), "do": "label", "rows": [row], "class": int(y[row]), "audit": audit})


def ready_bytes(session: Session) -> int:
    """What is sent after an action."""
    frame = session.frame()
    return len(json.dumps(session.state()).encode() + frame.classes.tobytes() + frame.confidence.tobytes())


def milliseconds(job: Callable[[], Any]) -> tuple[float, float]:
    """By the clock, and of the processor."""
    wall, cpu = time.perf_counter(), time.process_time()
    job()
    return 1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - cpu)


# Measures


def label(n: int) -> dict[str, float]:
    """A label on n x 64 rows of ten classes: journal, solve, classes, state and bytes ready. And what else is asked."""
    X, y = mixture(n)
    before = psutil.Process().memory_info().rss
    rng = np.random.default_rng(0)
    rows = rng.permutation(n)[: 2 * N_LABELS].tolist()
    with tempfile.TemporaryDirectory() as folder:
        session = opened(X, y, folder)
        prepared = milliseconds(session.prepare)
        for row in rows[:N_LABELS]:
            give(session, row, y)
        held = psutil.Process().memory_info().rss - before

        def one(row: int) -> None:
            give(session, row, y)
            ready_bytes(session)

        taken = np.array([milliseconds(lambda row=row: one(row)) for row in rows[N_LABELS:]])  # type: ignore[misc]
        others = {
            "queue of 1": lambda: session.queue(1),
            "queue of 10": lambda: session.queue(10),
            "card": lambda: session.card(5),
            "preview of 1,000 rows": lambda: session.selection(list(range(1000)), 0),
            "undo": lambda: session.act({"id": str(uuid4()), "do": "undo"}),
        }
        asked = {f"{name}, processor ms": milliseconds(job)[1] for name, job in others.items()}
        session.close()
    peak = psutil.Process().memory_info().rss - before
    return {
        "rows": n,
        "median ms": float(np.median(taken[:, 0])),
        "best ms": float(taken[:, 0].min()),
        "processor ms": float(np.median(taken[:, 1])),
        "first map s": prepared[0] / 1e3,
        "first map processor s": prepared[1] / 1e3,
        "held GiB": max(held, peak) / 2**30,
        "peak GiB": (peak_rss() - before) / 2**30,
        **asked,
        "load": round(psutil.getloadavg()[0], 1),
    }


def peak_rss() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def person(name: str) -> dict[str, Any]:
    """Somebody who labels what is asked, rows drawn at random included: when 95 % of all rows are right and stay so."""
    X, y = data(name)
    found = [shares_right(X, y, seed) for seed in SEEDS]
    return {
        "labels": [reached(right) for right in found],
        "labels to stay": [stays(right) for right in found],
        "lowest after": [None if reached(right) is None else min(right[reached(right) - 1 :]) for right in found],
        "right": {str(count): [right[count - 1] for right in found] for count in (10, 20, 40, 80, 150)},
    }


def shares_right(X: Array, y: Array, seed: int) -> list[float]:
    """The share of rows that are right after each of MAX_LABELS labels."""
    with tempfile.TemporaryDirectory() as folder:
        session = opened(X, y, folder, seed)
        session.prepare()
        right: list[float] = []
        while len(right) < MAX_LABELS:
            (asked,) = session.queue(1)
            give(session, asked["row"], y, asked["audit"])
            right.append(round(float((session.frame().classes == y).mean()), 4))
        session.close()
    return right


def reached(right: list[float]) -> int | None:
    """Labels until TARGET is reached for the first time."""
    return next((count for count, share in enumerate(right, 1) if share >= TARGET), None)


def stays(right: list[float]) -> int | None:
    """Labels from which on it is never below TARGET again, as far as was looked."""
    below = max((count for count, share in enumerate(right, 1) if share < TARGET), default=0)
    return below + 1 if below < len(right) else None


def first_map(name: str) -> dict[str, float]:
    """Seconds until there is a map with colours, and until t-SNE has settled it; libraries are loaded before."""
    X, y = data(name)
    with tempfile.TemporaryDirectory() as folder:
        session = opened(X, y, folder)
        wall, cpu = milliseconds(session.prepare)
        settled, _ = milliseconds(session.settle_map)
        session.close()
    found = {"first map s": wall / 1e3, "processor s": cpu / 1e3, "settled s": (wall + settled) / 1e3}
    return found | {"load": round(psutil.getloadavg()[0], 1)}


MEASURES: dict[str, Callable[[], dict[str, Any]]] = {
    "label 100,000": lambda: label(100_000),
    "label 1,000,000": lambda: label(1_000_000),
    "person digits": lambda: person("digits"),
    "person usps": lambda: person("usps"),
    "map digits": lambda: first_map("digits"),
    "map usps": lambda: first_map("usps"),
}


# The page


def known(kept: dict[str, Any], measure: str, *names: str) -> list[Any]:
    values = kept.get(measure, {}).get("values")
    return ["not measured"] if values is None else [values[name] for name in names]


def number(value: Any, digits: int = 0) -> str:
    return value if isinstance(value, str) else f"{value:,.{digits}f}"


def bars(kept: dict[str, Any]) -> list[tuple[str, ...]]:
    """The table of bars; measures in a browser are added by their own script under the names of BROWSER."""
    names = ("median ms", "processor ms", "held GiB", "peak GiB", "first map s", "first map processor s", "load")
    small, large = (known(kept, f"label {n:,}", *names) for n in (100_000, 1_000_000))
    people = [known(kept, f"person {name}", "labels", "labels to stay") for name in ("digits", "usps")]
    start = known(kept, "map digits", "first map s", "processor s")
    rows: list[tuple[str, ...]] = [
        ("server time of a label, 100,000 rows, ms: clock (processor)", "<= 80", "40", both(small[:2])),
        ("the same, 1,000,000 rows", "<= 300", "150", both(large[:2])),
        ("memory beyond the features, 1,000,000 x 64, GiB: held (peak)", "<= 1.5", "0.7", both(large[2:4], 2)),
        ("first map, digits, s: clock (processor), session alone", "<= 6", "3", both(start, 1)),
        ("the same, 100,000 x 64", "<= 20", "10", both(small[4:6], 1)),
        ("the same, 1,000,000 x 64", "<= 60", "30", both(large[4:6], 1)),
        ("labels until 95 % are right for the first time, digits, five seeds", "<= 25", "15", listed(people[0][0])),
        ("the same, labels until it stays so", "", "", listed(people[0][-1])),
        ("labels until 95 % are right for the first time, USPS, five seeds", "<= 80", "40", listed(people[1][0])),
        ("the same, labels until it stays so", "", "", listed(people[1][-1])),
    ]
    return rows + [(name, bar, aim, number(known(kept, name, "value")[0])) for name, (bar, aim) in BROWSER.items()]


def both(values: list[Any], digits: int = 0) -> str:
    return f"{number(values[0], digits)} ({number(values[1], digits)})" if len(values) > 1 else "not measured"


BROWSER: dict[str, tuple[str, str]] = {  # name of a measure of annotate_page.py, with one "value": bar, aim
    "key press to new colours, 10,000 rows, ms": ("<= 200", "100"),
    "key press to new colours, 100,000 rows, ms": ("<= 400", "200"),
    "key press to new colours, 1,000,000 rows, ms": ("<= 1,000", "500"),
    "command to a map with colours in the browser, digits, s": ("<= 6", "3"),
    "command to a map with colours in the browser, 100,000 rows, s": ("<= 20", "10"),
    "command to a map with colours in the browser, 1,000,000 rows, s": ("<= 60", "30"),
    "longest frame while panning, 1,000,000 rows, ms": ("<= 200", "60"),
}


def listed(found: Any) -> str:
    return found if isinstance(found, str) else ", ".join("more" if one is None else str(one) for one in found)


def details(kept: dict[str, Any]) -> str:
    """Every number that was measured, in a table for each kind of measure."""
    server = side_by_side(kept, {f"{n:,} rows": f"label {n:,}" for n in (100_000, 1_000_000)})
    maps = side_by_side(kept, {name: f"map {name}" for name in ("digits", "usps")})
    people = [f"{name}, by seed:\n\n{by_seed(kept, f'person {name}')}" for name in ("digits", "usps")]
    when = [(measure, one["commit"], one["date"]) for measure, one in kept.items()]
    parts = {
        "A label on the server, and what else is asked": server,
        "The first map, without a browser": maps,
        "The simulated person": "\n\n".join(people),
        "In the browser": in_browser(kept),
        "When": markdown(("measure", "commit", "date"), when),
    }
    return "\n\n".join(f"### {title}\n\n{part}" for title, part in parts.items())


def side_by_side(kept: dict[str, Any], measures: dict[str, str]) -> str:
    """{heading: measure} with the same values."""
    found = {heading: kept[measure]["values"] for heading, measure in measures.items() if measure in kept}
    names = [name for name in next(iter(found.values()), {}) if name != "rows"]
    rows = [(name, *(number(values.get(name, "-"), 2) for values in found.values())) for name in names]
    return markdown(("what", *found), rows)


def by_seed(kept: dict[str, Any], measure: str) -> str:
    values = kept.get(measure, {}).get("values")
    if values is None:
        return "not measured"
    rows = [
        ("labels until 95 % are right", *(shown_count(one) for one in values["labels"])),
        ("labels until it stays so", *(shown_count(one) for one in values["labels to stay"])),
        ("lowest share after the first time", *(shown_share(one) for one in values["lowest after"])),
    ]
    rows += [(f"right after {count} labels", *map(shown_share, part)) for count, part in values["right"].items()]
    return markdown(("what", *map(str, SEEDS)), rows)


def shown_count(value: int | None) -> str:
    return f"not in {MAX_LABELS}" if value is None else str(value)


def shown_share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def in_browser(kept: dict[str, Any]) -> str:
    rows = []
    for size in ("digits", "10,000 rows", "100,000 rows", "1,000,000 rows"):
        command = values_of(kept, f"command to a map with colours in the browser, {size}, s", "value", "load")
        key = values_of(
            kept, f"key press to new colours, {size}, ms", "value", "best", "of that, the page since the reply"
        )
        pan = values_of(kept, f"longest frame while panning, {size}, ms", "value", "median")
        rows.append((size, command[0], *key, *pan, command[1]))
    heads = ("", "command to colours, s", "key press, ms", "best", "since the reply", "longest frame, ms", "median")
    return markdown((*heads, "load"), rows)


def values_of(kept: dict[str, Any], measure: str, *names: str) -> list[str]:
    values = kept.get(measure, {}).get("values", {})
    return [number(values.get(name, "-"), 1) for name in names]


TEXT = """# The page to label on

Measured on {machine}; `python benchmarks/annotate.py` writes this page.
Rows of 64 columns are a mixture of forty clouds in ten classes, 2,048 anchors. A label is the whole of it on the
server: the journal (fsync), the solve, the class of every row, the state as JSON, the bytes to send; the median of {n}
labels. The bars are about the clock. Where the load of the machine (below, with every measure) is above its two cores,
the clock holds the work of others, too, and a bar that it misses is missed here, not excused: the time of the processor
in brackets, which counts both cores, only tells what a quiet machine may be expected to show.

{bars}

## The simulated person

It labels what the page proposes, the rows that are drawn at random included, from no label on; counted are labels until
{target:.0%} of all rows are right, those with a given label included. The seeds decide the anchors and which rows are
drawn at random. How rows are mixed from the anchors of their neighbours (steps, entries, neighbours) was chosen on USPS
with seeds 0 to 2, so these seeds are not counted above; the data set is the same, and another one may need more labels.
What was tried, USPS, labels until 95 % for the first time, by seed (everything tried is here; "-" was not run; at
commit 8e776e0, so these numbers are to be compared with one another):

| steps, entries, row neighbours | seed 0 | seed 1 | seed 2 |
| --- | --- | --- | --- |
| plain weights, 2,048 anchors by BKHK | not in 100 | - | - |
| plain weights, 2,048 anchors drawn at random | not in 80 | - | - |
| plain weights, 4,096 anchors by BKHK | not in 80 | - | - |
| plain weights, 4,096 anchors drawn at random | 79 | - | - |
| the same, a third of mu | 64 | - | - |
| plain weights, 2,048 by BKHK, a tenth of mu | not in 80 | - | - |
| plain weights, 2,048 at random, 3 anchors a row | not in 80 | - | - |
| 3, 16, 10 | 42 | 53 | - |
| 3, 16, 7 | 52 | - | - |
| 5, 16, 10 | 39 | - | - |
| 3, 12, 10 | 30 | - | - |
| 3, 8, 10 | 33 | 42 | 59 |
| **4, 8, 10** (taken) | 29 | 35 | 54 |

The bars count the first time that 95 % are right, which need not last: a label on the border of two classes can turn
others for a while. So the table also has the number of labels from which on the share is never below 95 % again, as far
as {most} labels, and below it stands how low it fell between.

MNIST, 20,000 rows, 80 labels, seed 0, right: 94.5 % (3, 16, 10), 94.1 % (3, 8, 10), 94.7 % (4, 8, 10). The differences
between neighbouring rows are no larger than those between seeds.

## All numbers

{details}
"""


def page(kept: dict[str, Any]) -> str:
    table = markdown(("measure", "bar", "aim", "measured"), bars(kept))
    return TEXT.format(machine=machine(), n=N_LABELS, most=MAX_LABELS, target=TARGET, bars=table, details=details(kept))


def measured(name: str) -> dict[str, Any]:
    """One measure, in a process of its own."""
    found = subprocess.run([sys.executable, __file__, "--one", name], stdout=subprocess.PIPE, text=True, check=True)
    return {"commit": commit(), "date": str(date.today()), "values": json.loads(found.stdout.splitlines()[-1])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", nargs="*", default=[], help="beginnings of names of measures")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.one:
        print(json.dumps(MEASURES[words.one]()))
        return
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for name in [] if words.page else MEASURES:
        if name not in kept or any(name.startswith(again) for again in words.again):
            print(name, file=sys.stderr)
            kept[name] = measured(name)
            KEPT.write_text(json.dumps(kept, indent=1) + "\n")
    (FOLDER / "annotate.md").write_text(page(kept))


if __name__ == "__main__":
    main()
