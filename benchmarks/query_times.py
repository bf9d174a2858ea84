"""What `suggest` costs, for queries.py: the first batch after a fit, and a pick after one more label.

python benchmarks/query_times.py ROWS ANCHORS        -> JSON; 0 anchors are as many as the classifier chooses
"""

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from greenlabel import AnchoredGreenClassifier, suggest

COLUMNS, CLOUDS = 64, 10
BATCH, PICKS = 10, 7


def rows_in_clouds(n: int) -> tuple[Any, Any]:
    """Rows of overlapping clouds (n, COLUMNS) and the cloud of each."""
    rng = np.random.default_rng(0)
    y = rng.integers(CLOUDS, size=n)
    X = rng.standard_normal(size=(n, COLUMNS), dtype=np.float32)
    X += 0.7 * rng.standard_normal(size=(CLOUDS, COLUMNS), dtype=np.float32)[y]
    return X, y


def timed(do: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds by the clock and of the processor, and what came out."""
    clock, processor = time.perf_counter(), time.process_time()
    found = do()
    return time.perf_counter() - clock, time.process_time() - processor, found


def measure(n: int, m: int) -> dict[str, Any]:
    X, y = rows_in_clouds(n)
    few = np.full(n, -1)
    few[: 2 * CLOUDS] = y[: 2 * CLOUDS]
    shell = AnchoredGreenClassifier(m or "auto", random_state=0)
    fit, _, model = timed(lambda: shell.fit(X, few))
    clock, processor, found = timed(lambda: suggest(model, BATCH))
    picks = []
    for one in found[:PICKS]:
        few[one.row] = y[one.row]
        model.relabel(few)
        picks.append(timed(lambda: suggest(model, 1))[:2])
    pick, pick_processor = np.median(picks, axis=0).tolist()
    return {
        "rows": n,
        "columns": COLUMNS,
        "anchors": len(model.anchors_),
        "fit": fit,
        "first batch": clock,
        "first batch, processor": processor,
        "pick": pick,
        "pick, processor": pick_processor,
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(measure(*map(int, sys.argv[1:]))))
