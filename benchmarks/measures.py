"""What is measured: each function is one row of the table, run in a process of its own by run.py.

    python benchmarks/measures.py anchored       prints one line of JSON

A measure returns {name: number}. Times that are compared are taken in one process, in turns, best of three.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import reduce
from importlib import import_module
from threading import current_thread, main_thread
from typing import Any

import numpy as np

from basics import Array, load, peak_beyond
from command_line import predicting, quick_start, streaming
from greenlabel import AnchoredGreenClassifier, GreenClassifier, explain
from greenlabel._common.stages import OTHER, Stages
from greenlabel.datasets import keep_labels
from greenlabel.metrics import unlabelled_accuracy

ROUNDS = 3
DRAWS = 5


# Data


def mixture(n: int, d: int = 64, c: int = 10) -> tuple[Array, Array]:
    """Synthetic rows: 40 Gaussian clouds in d dimensions, four to a class; made in place, float32."""
    rng = np.random.default_rng(0)
    centres = rng.normal(scale=3, size=(4 * c, d)).astype(np.float32)
    cloud = rng.integers(0, 4 * c, n)
    X = np.empty((n, d), np.float32)
    for start in range(0, n, 2**16):
        rows = slice(start, min(start + 2**16, n))
        rng.standard_normal(out=X[rows], dtype=np.float32)
        X[rows] += centres[cloud[rows]]
    return X, cloud % c


# Clocks


def best_in_turns(*jobs: Callable[[], Any], rounds: int = ROUNDS) -> list[float]:
    """The shortest time of each job; the jobs take turns, so that a noisy minute hits them all."""
    times = [[] for _ in jobs]
    for _ in range(rounds):
        for job, taken in zip(jobs, times, strict=True):
            start = time.perf_counter()
            job()
            taken.append(time.perf_counter() - start)
    return [min(taken) for taken in times]


def bare_product(X: Array) -> float:
    """Seconds of X P', the floor of the search. Taken first: threads of a search before it would slow it down."""
    P = X[:1024].copy()
    return best_in_turns(lambda: X @ P.T)[0]


def fit_all(model: Any, X: Array, y: Array) -> Any:
    """Everything a user waits for: the fit, and the class of every row."""
    model.fit(X, y).transduction_  # noqa: B018
    return model


# The rows of the table


def anchored(n_neighbors: int = 5) -> dict[str, float]:
    X, y = load("mnist")
    few = keep_labels(y, 10, random_state=0)
    model = AnchoredGreenClassifier(1024, n_neighbors, random_state=0)
    product = bare_product(X)
    (fit,) = best_in_turns(lambda: fit_all(model, X, few))
    return {"fit_s": fit, "product_s": product, "ratio": fit / product, "accuracy": accuracy_over_draws(model, y)}


def anchored_20() -> dict[str, float]:
    return anchored(20)


def green() -> dict[str, float]:
    X, y = load("mnist")
    few = keep_labels(y, 10, random_state=0)
    model = GreenClassifier(10, random_state=0)
    product = bare_product(X)
    (fit,) = best_in_turns(lambda: fit_all(model, X, few))
    found = {"fit_s": fit, "product_s": product, "ratio": fit / product}
    return found | {"recall": recall(model, X), "accuracy": accuracy_over_draws(model, y)}


def many_anchors() -> dict[str, float]:
    """The anchored classifier as it comes beside the full graph, on MNIST."""
    X, y = load("mnist")
    few = keep_labels(y, 10, random_state=0)
    anchored, green = AnchoredGreenClassifier(random_state=0), GreenClassifier(random_state=0)
    times = best_in_turns(lambda: fit_all(anchored, X, few), lambda: fit_all(green, X, few))
    return {"fit_s": times[0], "ratio": times[0] / times[1], "accuracy": accuracy_over_draws(anchored, y)}


def accuracy_over_draws(model: Any, y: Array) -> float:
    results = []
    for seed in range(DRAWS):
        few = keep_labels(y, 10, random_state=seed)
        results.append(unlabelled_accuracy(y, model.relabel(few).transduction_, few != -1))
    return float(np.mean(results))


def recall(model: Any, X: Array, n_rows: int = 3000, k: int = 10) -> float:
    """Share of the true k nearest rows that the search of the graph finds, on a sample of rows."""
    from greenlabel.graph.neighbors import FlatSearch

    rows = np.sort(np.random.default_rng(0).choice(len(X), n_rows, replace=False))
    _, exact = FlatSearch(X).nearest(X[rows], k, rows)
    found = model.propagator_.neighbourhood.search.nearest_to_own(k + 1)[1][rows, :k]
    return float(np.mean([np.isin(a, b).mean() for a, b in zip(exact, found, strict=True)]))


def explaining(model: Any = None, n_rows: int = 100) -> dict[str, float]:
    """Seconds in which rows are explained, of a k-NN graph by default, and how far the sums are from the scores.

    ``first_s`` is right after other labels, of which nothing may be remembered yet, ``one_row_s`` that of a single row
    then; ``one_more_s`` is right after a single label more.
    """
    X, y = load("mnist")
    model = (model or GreenClassifier(10, random_state=0)).fit(X, keep_labels(y, 10, random_state=0))
    rows = np.sort(np.random.default_rng(0).choice(len(X), n_rows, replace=False))
    one_row, first, one_more = [], [], []
    for seed in range(ROUNDS):
        few = keep_labels(y, 10, random_state=seed)
        model.relabel(few).transduction_  # noqa: B018
        one_row += best_in_turns(lambda: explain(model, rows[0]), rounds=1)
        first += best_in_turns(lambda: explain(model, rows), rounds=1)
        few[rows[0]] = y[rows[0]]
        model.relabel(few).transduction_  # noqa: B018
        one_more += best_in_turns(lambda: explain(model, rows), rounds=1)
    (seconds,) = best_in_turns(lambda: explain(model, rows))
    error = abs(explain(model, rows).scores - model.scores_[rows]).max() / abs(model.scores_[rows]).max()
    return {
        "first_s": min(first),
        "seconds": seconds,
        "one_more_s": min(one_more),
        "one_row_s": min(one_row),
        "relative_error": float(error),
    }


def explaining_anchored() -> dict[str, float]:
    return explaining(AnchoredGreenClassifier(1024, random_state=0))


def explaining_many() -> dict[str, float]:
    """With as many anchors as the classifier chooses."""
    return explaining(AnchoredGreenClassifier(random_state=0))


def solver() -> dict[str, float]:
    import scipy.linalg

    from greenlabel.operators.green import centred, laplacian

    X, y = load("usps")
    model = GreenClassifier(solver="cg").fit(X, keep_labels(y, 10, random_state=0))
    graph, Y = model.graph_, model.fitted_.labels.Y
    A = laplacian(graph).toarray()
    A[np.diag_indices(graph.n)] += graph.n * model.mu_
    scores: dict[str, Array] = {}
    cg, dense = best_in_turns(
        lambda: scores.update(cg=model.operator_.solve(Y)),
        lambda: scores.update(dense=scipy.linalg.solve(A, centred(Y), assume_a="general")),
    )
    error = np.linalg.norm(scores["cg"] - scores["dense"]) / np.linalg.norm(scores["dense"])
    return {"cg_s": cg, "dense_s": dense, "ratio": dense / cg, "relative_error": float(error)}


def relabel() -> dict[str, float]:
    X, y = mixture(1_000_000)
    model = AnchoredGreenClassifier(1024, random_state=0)
    few = [keep_labels(y, 10, random_state=seed) for seed in range(2)]
    (fit,) = best_in_turns(lambda: fit_all(model, X, few[0]))
    (again,) = best_in_turns(lambda: model.relabel(few[1]).transduction_)
    return {"fit_s": fit, "relabel_s": again, "ratio": again / fit}


SIZES = (125_000, 250_000, 500_000, 1_000_000, 2_000_000)


def growth() -> dict[str, float]:
    X, y = mixture(SIZES[-1])
    few = keep_labels(y[: SIZES[0]], 10, random_state=0)
    found = {}
    for n in SIZES:
        labels = np.concatenate([few, np.full(n - len(few), -1)])
        model = AnchoredGreenClassifier(1024, random_state=0)
        (found[f"{n}_s"],) = best_in_turns(lambda model=model, n=n, y=labels: fit_all(model, X[:n], y))
    times = [found[f"{n}_s"] for n in SIZES]
    exponent = np.polyfit(np.log(SIZES), np.log(times), 1)[0]
    return found | {"exponent": float(exponent)}


def memory(n: int = 2_000_000) -> dict[str, float]:
    X, y = mixture(n)
    few = np.concatenate([keep_labels(y[:20_000], 10, random_state=0), np.full(n - 20_000, -1)])
    model = AnchoredGreenClassifier(1024, random_state=0)
    fit_all(AnchoredGreenClassifier(1024, random_state=0), X[:20_000], few[:20_000])  # libraries and their buffers
    taken = peak_beyond(lambda: fit_all(model, X, few))
    return {"bytes_per_row": taken / n}


def cold_start() -> dict[str, float]:
    code = (
        "from greenlabel import GreenClassifier; from greenlabel.datasets import digits, keep_labels\n"
        "X, y = digits(); GreenClassifier().fit(X, keep_labels(y, 10, random_state=0)).transduction_"
    )
    (seconds,) = best_in_turns(lambda: subprocess.run([sys.executable, "-c", code], check=True))
    return {"seconds": seconds}


# Beside the table


PARTS = {  # of the anchored fit, each on the main thread: where it is found, and its name
    "greenlabel.estimators.anchored:AnchoredGreenClassifier._open": "checks of X",
    "greenlabel.propagators.anchored_graph:_sample": "sample of the rows",
    "greenlabel.propagators.anchored_graph:principal_axes": "principal axes",
    "greenlabel.graph.anchors:split_coordinates": "coordinates of the rows",
    "greenlabel.graph.anchors:bkhk_groups": "balanced splits",
    "greenlabel.graph.anchors:group_means": "means of the groups",
    "greenlabel.propagators.anchored_graph:anchor_search": "coordinates of the anchors",
    "greenlabel.propagators.anchored_graph:AnchorSearch.kept_near": "nearest anchors of all rows",
    "greenlabel.blocks.rows:Blocks.sum": "Z'Z",
    "greenlabel.estimators.anchored:anchored_candidates": "the system of the anchors",
    "greenlabel.propagators.anchored:AnchoredCandidates.propagate": "mu, and scores of the anchors",
    "greenlabel.propagators.anchored:AnchoredPropagation.classify": "classes of all rows",
}


def stages() -> dict[str, float]:
    """Where the time of the anchored fit goes: seconds that add up to the whole, of the quickest of three fits."""
    X, y = load("mnist")
    few = keep_labels(y, 10, random_state=0)
    model = AnchoredGreenClassifier(1024, random_state=0)
    fit_all(model, X, few)
    found = [shared_out(lambda: fit_all(model, X, few)) for _ in range(ROUNDS)]
    return min(found, key=lambda seconds: seconds["everything"]) | {"load": round(os.getloadavg()[0], 1)}


def shared_out(job: Callable[[], Any], parts: dict[str, str] = PARTS) -> dict[str, float]:
    """Seconds of each part of a job and of what is no part, and of everything, which is their sum by construction."""
    clock = Stages()
    with ExitStack() as stack:
        for where, name in parts.items():
            stack.enter_context(watched(where, name, clock))
        job()
    seconds = clock.seconds
    return {name: seconds.get(name, 0.0) for name in [*parts.values(), OTHER]} | {"everything": sum(seconds.values())}


@contextmanager
def watched(where: str, name: str, clock: Stages) -> Iterator[None]:
    """A function whose calls are a stage of the clock."""
    module, _, path = where.partition(":")
    *owners, last = path.split(".")
    owner = reduce(getattr, owners, import_module(module))
    function = getattr(owner, last)

    def timed(*args: Any, **kwargs: Any) -> Any:
        if current_thread() is not main_thread():
            return function(*args, **kwargs)
        with clock(name):
            return function(*args, **kwargs)

    setattr(owner, last, timed)
    try:
        yield
    finally:
        setattr(owner, last, function)


def switch() -> dict[str, Any]:
    """The exact search for a k-NN graph beside the approximate one, below and above the size where one takes over."""
    images, clouds = load("mnist")[0], mixture(60_000)[0]
    sizes = [(images, n) for n in (4_000, 8_000, 11_000, 16_000)] + [
        (clouds, n) for n in (10_000, 20_000, 40_000, 60_000)
    ]
    return {f"{n:,} x {X.shape[1]}": exact_beside_approximate(X[:n].copy()) for X, n in sizes}


def exact_beside_approximate(X: Array, k: int = 10) -> dict[str, float]:
    from greenlabel.graph import neighbors

    found: dict[str, Array] = {}

    def search(name: str, limit: float) -> None:
        neighbors.EXACT_OPERATIONS = limit
        engine = neighbors.graph_search(X, np.random.default_rng(0))
        found[name] = engine.nearest_to_own(k + 1)[1][:, :k]

    exact, approximate = best_in_turns(lambda: search("exact", np.inf), lambda: search("approximate", 0), rounds=2)
    pairs = zip(found["exact"][:3000], found["approximate"][:3000], strict=True)
    share = float(np.mean([np.isin(a, b).mean() for a, b in pairs]))
    return {"operations": float(len(X)) ** 2 * X.shape[1], "ratio": exact / approximate, "recall": share}


def one_fit(n: int, m: int) -> dict[str, float]:
    X, y = mixture(n)
    few = keep_labels(y, 10, random_state=0)
    seconds: list[float] = []

    def job() -> None:
        start = time.perf_counter()
        fit_all(AnchoredGreenClassifier(m, random_state=0), X, few)
        seconds.append(time.perf_counter() - start)

    return {"n": n, "m": m, "mib": peak_beyond(job) / 2**20, "seconds": seconds[0]}


MEASURES: dict[str, Callable[..., dict[str, Any]]] = {
    "anchored": anchored,
    "anchored_20": anchored_20,
    "many_anchors": many_anchors,
    "green": green,
    "explaining": explaining,
    "explaining_anchored": explaining_anchored,
    "explaining_many": explaining_many,
    "solver": solver,
    "relabel": relabel,
    "growth": growth,
    "memory": memory,
    "cold_start": cold_start,
    "quick_start": quick_start,
    "predicting": predicting,
    "streaming": streaming,
    "stages": stages,
    "switch": switch,
    "one_fit": one_fit,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measure", choices=MEASURES)
    parser.add_argument("numbers", type=int, nargs="*", help="arguments of the measure, such as n and m of one_fit")
    words = parser.parse_args()
    print(json.dumps(MEASURES[words.measure](*words.numbers)))


if __name__ == "__main__":
    main()
