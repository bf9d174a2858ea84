"""Accuracy of the blend beside its experts and beside others, and of class shares: writes benchmarks/accuracy.md.

    GREENLABEL_DATA=... python benchmarks/accuracy.py                     everything that is not measured yet
    GREENLABEL_DATA=... python benchmarks/accuracy.py --again wine mnist  these data sets once more
    GREENLABEL_DATA=... python benchmarks/accuracy.py --page              only the page, from what was measured

Ten labels per class, five draws, unlabelled rows only. Each data set is measured in a process of its own; what was
measured stays in benchmarks/accuracy.json with its commit. Peers are an extra, `pip install '.[peers]'`.
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
import scipy.sparse as sp

from basics import load, title_of
from greenlabel import BlendedClassifier, GreenClassifier
from greenlabel.datasets import keep_labels
from greenlabel.labels.shares import read_shares, refine
from measures import DRAWS
from run import commit, machine, markdown

FOLDER = Path(__file__).parent
KEPT = FOLDER / "accuracy.json"
PER_CLASS = 10
SLOW_ROWS = 20_000  # data of more rows is given to scikit-learn's methods once, not for every draw
PAPERS = ["balance", "meu_mobile_ksd", "usps", "crowdsourced_mapping", "phishing_websites", "mnist"]
BUNDLED = ["digits", "wine", "breast_cancer"]
SHARES_PER_CLASS = (1, 5, 10)
Array = np.ndarray[Any, Any]


# Measuring


def data(name: str) -> tuple[Array, Array]:
    if name in PAPERS:
        return load(name)
    import sklearn.datasets

    return getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)


def calibration_error(p: Array, right: Array) -> float:
    """Mean gap between confidence and accuracy over ten bins of confidence."""
    confidence = p.max(axis=1)
    bins = np.minimum((10 * confidence).astype(int), 9)
    return sum(abs(confidence[bins == b].sum() - right[bins == b].sum()) for b in range(10)) / len(confidence)


def predictions_of_experts(model: BlendedClassifier) -> dict[str, Array]:
    """The class that each expert alone gives each row."""
    return {name: model.classes_[codes] for name, codes in model.fitted_.codes_of_experts().items()}


def label_spreading(model: BlendedClassifier, few: Array) -> Array:
    from sklearn.semi_supervised import LabelSpreading

    return LabelSpreading(kernel="knn", n_neighbors=10).fit(model.fitted_.features, few).transduction_


def self_training(model: BlendedClassifier, few: Array) -> Array:
    from sklearn.linear_model import LogisticRegression
    from sklearn.semi_supervised import SelfTrainingClassifier

    return (
        SelfTrainingClassifier(LogisticRegression(max_iter=300))
        .fit(model.fitted_.features, few)
        .predict(model.fitted_.features)
    )


def poisson(model: BlendedClassifier, few: Array) -> Array:
    import graphlearning

    rows = np.flatnonzero(few != -1)
    W = sp.csr_matrix(model.experts_["graph"].graph_.S)
    return graphlearning.ssl.poisson(W).fit_predict(rows, few[rows])


PEERS: dict[str, Callable[[BlendedClassifier, Array], Array]] = {
    "LabelSpreading": label_spreading,
    "SelfTraining": self_training,
    "Poisson": poisson,
}


def one_draw(X: Array, y: Array, draw: int, peers: dict[str, Any]) -> dict[str, Any]:
    few = keep_labels(y, PER_CLASS, random_state=draw)
    free = few == -1

    def share(predictions: Array) -> float:
        return float((predictions == y)[free].mean())

    start = time.perf_counter()
    model = BlendedClassifier(random_state=draw).fit(X, few)
    found: dict[str, Any] = {"seconds": time.perf_counter() - start, "blend": share(model.transduction_)}
    estimate = model.estimated_accuracy_
    found["estimate"] = [float(estimate), estimate.low, estimate.high]
    found["calibration"] = calibration_error(model.label_distributions_[free], (model.transduction_ == y)[free])
    found["experts"] = {expert: share(found) for expert, found in predictions_of_experts(model).items()}
    found["weights"] = model.weights_
    found["peers"] = {
        peer: share(ask(model, few))
        for peer, ask in peers.items()
        if not (peer != "Poisson" and len(X) > SLOW_ROWS and draw)
    }
    return found


def measure_set(name: str, peers: dict[str, Any]) -> dict[str, Any]:
    X, y = data(name)
    return {"rows": len(X), "columns": X.shape[1], "draws": [one_draw(X, y, draw, peers) for draw in range(DRAWS)]}


def with_kept_peers(found: dict[str, Any], kept: dict[str, Any]) -> dict[str, Any]:
    """What was measured just now, beside what the peers had reached before."""
    for draw, before in zip(found["draws"], kept["draws"], strict=True):
        draw["peers"] = before["peers"]
    return {**found, "peers_commit": kept.get("peers_commit", kept["commit"])}


def measure_speed() -> dict[str, Any]:
    """The blend beside GreenClassifier on MNIST, in turns."""
    from measures import best_in_turns, fit_all

    X, y = load("mnist")
    few = keep_labels(y, PER_CLASS, random_state=0)
    green, blend = best_in_turns(
        lambda: fit_all(GreenClassifier(random_state=0), X, few),
        lambda: fit_all(BlendedClassifier(random_state=0), X, few),
    )
    return {"green_s": green, "blend_s": blend, "ratio": blend / green}


def measure_shares() -> dict[str, Any]:
    """MNIST with its true shares: the blend refined, and the refinement alone beside Poisson-MBO on the same graph."""
    import graphlearning

    X, y = load("mnist")
    shares = np.bincount(y) / len(y)
    found: dict[str, Any] = {}
    for per_class in SHARES_PER_CLASS:
        draws = []
        for draw in range(DRAWS):
            few = keep_labels(y, per_class, random_state=draw)
            model = BlendedClassifier(class_shares=shares, random_state=draw).fit(X, few)
            draws.append(float((model.transduction_ == y)[few == -1].mean()))
        few = keep_labels(y, per_class, random_state=0)
        rows, graph = np.flatnonzero(few != -1), model.experts_["graph"].graph_
        W = sp.csr_matrix(graph.S)
        start = time.perf_counter()
        ours = GreenClassifier(graph="precomputed").fit(W, few)
        labels = ours.fitted_.labels
        refined = refine(ours.scores_, labels, *read_shares(shares, labels), ours.operator_.solve)
        middle = time.perf_counter()
        theirs = graphlearning.ssl.poisson_mbo(W, class_priors=shares).fit_predict(rows, few[rows])
        end = time.perf_counter()
        found[str(per_class)] = {
            "blend": draws,
            "refine_s": middle - start,
            "refine": float((refined == y)[few == -1].mean()),
            "mbo_s": end - middle,
            "mbo": float((theirs == y)[few == -1].mean()),
        }
    return found


def letters() -> tuple[Array, Array]:
    """20,000 x 16 rows of 26 classes, two clouds to a class: of the size and difficulty of the letter data."""
    from sklearn.datasets import make_classification

    sizes = {"n_informative": 12, "n_redundant": 2, "n_classes": 26, "n_clusters_per_class": 2, "class_sep": 2.0}
    return make_classification(20_000, 16, **sizes, random_state=0)


def measure_classes() -> dict[str, Any]:
    """Many classes: the blend beside GreenClassifier in turns, few rows, and other labels on the same rows."""
    from measures import best_in_turns, fit_all

    X, y = letters()
    few, other = (keep_labels(y, PER_CLASS, random_state=draw) for draw in range(2))
    small = keep_labels(y[:1500], PER_CLASS, random_state=0)
    model = BlendedClassifier(random_state=0)
    green, blend, relabel, of_few_rows = best_in_turns(
        lambda: fit_all(GreenClassifier(random_state=0), X, few),
        lambda: fit_all(model, X, few),
        lambda: model.relabel(other).transduction_,
        lambda: fit_all(BlendedClassifier(random_state=0), X[:1500], small),
    )
    return {
        "green_s": green,
        "blend_s": blend,
        "ratio": blend / green,
        "relabel_s": relabel,
        "relabel_ratio": relabel / blend,
        "of_1500_rows_s": of_few_rows,
    }


NOT_YET = "not measured yet"
MEASURES = {"speed": measure_speed, "classes": measure_classes, "shares": measure_shares}


def alone(name: str, *options: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, __file__, "--one", name, *options], capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise SystemExit(f"{name} failed with code {done.returncode}: {reason}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(again: list[str], ours: bool) -> None:
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for name in [*BUNDLED, *PAPERS, *MEASURES]:
        if name in kept and name not in again:
            continue
        if ours and name in kept and name not in MEASURES:
            found = with_kept_peers(alone(name, "--ours"), kept[name])
        else:
            found = alone(name)
        kept[name] = {**found, "commit": commit(), "date": str(date.today())}
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")
        print(name, flush=True)


# The page


def mean_of(kept: dict[str, Any], name: str, path: Callable[[dict[str, Any]], float | None]) -> tuple[float, float]:
    values = [value for draw in kept[name]["draws"] if (value := path(draw)) is not None]
    return (100 * float(np.mean(values)), 100 * float(np.std(values))) if values else (float("nan"), 0.0)


def columns_of(kept: dict[str, Any]) -> dict[str, Callable[[dict[str, Any]], float | None]]:
    experts = list(dict.fromkeys(e for name in [*BUNDLED, *PAPERS] for e in kept[name]["draws"][0]["experts"]))
    found: dict[str, Callable[[dict[str, Any]], float | None]] = {"**blend**": lambda draw: draw["blend"]}
    for expert in experts:
        found[expert] = lambda draw, expert=expert: draw["experts"].get(expert)  # type: ignore[misc]
    for peer in PEERS:
        found[peer] = lambda draw, peer=peer: draw["peers"].get(peer)  # type: ignore[misc]
    return found


def table(kept: dict[str, Any]) -> str:
    columns, names = columns_of(kept), [*PAPERS, *BUNDLED]
    lines = []
    for name in names:
        cells = [mean_of(kept, name, path) for path in columns.values()]
        lines.append((title_of(name), *(_cell(*cell) for cell in cells)))
    means = [np.mean([mean_of(kept, name, path)[0] for name in names]) for path in columns.values()]
    lines.append(("mean", *("" if np.isnan(value) else f"{value:.1f}" for value in means)))
    return markdown(("data", *columns), lines)


def _cell(mean: float, deviation: float) -> str:
    return "" if np.isnan(mean) else f"{mean:.1f} ± {deviation:.1f}"


def wins(kept: dict[str, Any]) -> str:
    """On how many data sets the blend's mean is above, within half a point of, or below that of each other column."""
    columns, names = columns_of(kept), [*PAPERS, *BUNDLED]
    blend = {name: mean_of(kept, name, columns["**blend**"])[0] for name in names}
    lines = []
    for title, path in columns.items():
        if title == "**blend**":
            continue
        gaps = np.array([blend[name] - mean_of(kept, name, path)[0] for name in names])
        gaps = gaps[np.isfinite(gaps)]
        lines.append(
            (title, *(str(int(n)) for n in ((gaps > 0.5).sum(), (abs(gaps) <= 0.5).sum(), (gaps < -0.5).sum())))
        )
    return markdown(("the blend against", "better", "within half a point", "worse"), lines)


def gaps_to_best(kept: dict[str, Any]) -> dict[str, float]:
    """Blend minus the expert with the best mean, in points, for each data set."""
    found = {}
    for name in [*PAPERS, *BUNDLED]:
        best = max(
            mean_of(kept, name, lambda draw, e=e: draw["experts"][e])[0] for e in kept[name]["draws"][0]["experts"]
        )
        found[name] = mean_of(kept, name, lambda draw: draw["blend"])[0] - best
    return found


def bars(kept: dict[str, Any]) -> str:
    names = [*PAPERS, *BUNDLED]
    gaps = gaps_to_best(kept)
    worst = min(gaps, key=lambda name: gaps[name])
    draws = [draw for name in names for draw in kept[name]["draws"]]
    inside = np.mean([draw["estimate"][1] <= draw["blend"] <= draw["estimate"][2] for draw in draws])
    error = np.mean([mean_of(kept, name, lambda draw: draw["calibration"])[0] for name in names])
    reached = ratio = speed = classes = relabel = few_rows = NOT_YET
    if "shares" in kept:
        shares = [kept["shares"][str(k)] for k in SHARES_PER_CLASS]
        reached = " / ".join(f"{100 * np.mean(found['blend']):.1f}" for found in shares)
        ratio = f"1/{min(found['mbo_s'] / found['refine_s'] for found in shares):.0f}"
    if "speed" in kept:
        speed = f"{kept['speed']['ratio']:.1f}"
    if "classes" in kept:
        found = kept["classes"]
        classes, relabel = f"{found['ratio']:.1f}", f"{found['relabel_ratio']:.2f}"
        few_rows = f"{found['of_1500_rows_s']:.1f} s"
    lines = [
        (
            "mean of the blend minus mean of the best single expert, points",
            ">= 0",
            ">= +2",
            f"{np.mean(list(gaps.values())):+.1f}",
        ),
        (
            "worst gap to the best single expert, points",
            ">= -3",
            ">= -1",
            f"{gaps[worst]:+.1f} ({title_of(worst)})",
        ),
        ("MNIST with true shares, 1 / 5 / 10 labels per class, %", "91 / 96 / 96", "93 / 97 / 97", reached),
        (
            "time of that refinement over Poisson-MBO, same graph, slowest of the three",
            "<= 1/3",
            "<= 1/10",
            ratio,
        ),
        ("blend over `GreenClassifier`, time on MNIST", "<= 8", "<= 4", speed),
        ("blend over `GreenClassifier`, time on 20,000 x 16 rows of 26 classes", "<= 3", "<= 2", classes),
        ("`relabel` of the blend over its `fit`, same rows, another draw of labels", "<= 1/3", "<= 1/10", relabel),
        ("blend on 1,500 of these rows", "<= 2 s", "<= 1 s", few_rows),
        ("true accuracy inside the stated 90 % interval, share of draws", ">= 80 %", ">= 90 %", f"{inside:.0%}"),
        ("calibration error over ten bins, mean over the data sets, points", "<= 5", "<= 3", f"{error:.1f}"),
    ]
    return markdown(("measure", "bar", "aim", "measured"), lines)


def shares_table(kept: dict[str, Any]) -> str:
    lines = []
    for k in SHARES_PER_CLASS:
        found = kept["shares"][str(k)]
        blend = f"{100 * np.mean(found['blend']):.1f} ± {100 * np.std(found['blend']):.1f}"
        lines.append(
            (
                str(k),
                blend,
                f"{100 * found['refine']:.1f}",
                f"{found['refine_s']:.1f} s",
                f"{100 * found['mbo']:.1f}",
                f"{found['mbo_s']:.1f} s",
            )
        )
    header = (
        "labels per class",
        "blend with shares, five draws",
        "refinement, first draw",
        "its time",
        "Poisson-MBO, first draw",
        "its time",
    )
    return markdown(header, lines)


def estimates(kept: dict[str, Any]) -> str:
    lines = []
    for name in [*PAPERS, *BUNDLED]:
        draws = kept[name]["draws"]
        inside = sum(draw["estimate"][1] <= draw["blend"] <= draw["estimate"][2] for draw in draws)
        stated = " ".join(
            f"{100 * draw['estimate'][0]:.0f} ({100 * draw['estimate'][1]:.0f}-{100 * draw['estimate'][2]:.0f})"
            for draw in draws
        )
        true = " ".join(f"{100 * draw['blend']:.0f}" for draw in draws)
        error = mean_of(kept, name, lambda draw: draw["calibration"])[0]
        lines.append((title_of(name), stated, true, f"{inside} of {len(draws)}", f"{error:.1f}"))
    return markdown(("data", "stated, %", "true, %", "inside", "calibration error"), lines)


def page(kept: dict[str, Any]) -> str:
    commits = ", ".join(
        sorted({entry[key] for entry in kept.values() for key in ("commit", "peers_commit") if key in entry})
    )
    day = max(entry["date"] for entry in kept.values())
    return "\n\n".join(
        [
            "# Accuracy: the blend, its experts, and others",
            f"Measured on {day}, commit {commits}, on {machine()}.\n`python benchmarks/accuracy.py` writes this page. "
            "Ten labels per class, five draws of them, unlabelled rows only;\nmean and standard deviation over the "
            "draws, %. No number here was used to choose anything inside the method\nfor that data set.",
            bars(kept),
            table(kept),
            "The experts are those of `BlendedClassifier()` on features scaled by its own rule, each alone. The peers "
            "get the\nsame features: scikit-learn's `LabelSpreading` (10 neighbours) and `SelfTrainingClassifier` "
            "(logistic regression), both\non MNIST for the first draw only, and GraphLearning's Poisson learning on "
            "greenlabel's graph. MNIST has no weighted\ngraph: its rows x columns are beyond five million.",
            "## Wins and losses",
            "Number of data sets, by the means above.",
            wins(kept),
            *([] if "shares" not in kept else shares_section(kept)),
            "## What is promised, and what came",
            "The accuracy that each fit stated beforehand with its 90 % interval, and the true one, draw by draw.",
            estimates(kept),
            "What was tried for these figures, and what did not help, is told in "
            "[what was tried](tried.md#accuracy).\n",
        ]
    )


def shares_section(kept: dict[str, Any]) -> list[str]:
    return [
        "## Class shares",
        "MNIST, true shares of the ten classes given. The refinement alone starts from the Green function on the "
        "same\ngraph as Poisson-MBO (GraphLearning), which gets the shares too; times include both starts, not "
        "the graph.",
        shares_table(kept),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", nargs="+", default=[], metavar="NAME", help="measure these once more")
    parser.add_argument(
        "--ours", action="store_true", help="the peers, which take longest, keep what they reached before"
    )
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    words = parser.parse_args()
    if words.one:
        warnings.simplefilter("ignore")
        print(
            json.dumps(
                MEASURES[words.one]() if words.one in MEASURES else measure_set(words.one, {} if words.ours else PEERS)
            )
        )
        return
    if not words.page:
        measure(words.again, words.ours)
    (FOLDER / "accuracy.md").write_text(page(json.loads(KEPT.read_text())))


if __name__ == "__main__":
    main()
