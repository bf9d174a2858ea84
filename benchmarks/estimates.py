"""Does the stated accuracy hold? Fits many data sets and writes benchmarks/estimates.md.

    GREENLABEL_DATA=... python benchmarks/estimates.py                   about ten minutes
    GREENLABEL_DATA=... python benchmarks/estimates.py --keep FOLDER     fits are kept there, and not repeated

One trial is a seed: a real data set or a generated one, its variant, the number of labels and the way they are drawn
all follow from it. The blend, which takes ten times as long, is fitted on some of the trials only, and on mixed tables
with twenty labels. What is kept of a fit is what the estimate is made of, so that a rule can be changed without fitting
again. The truth is agreement with the labels as they would have been given: noise is part of them.
"""

import argparse
import os
import pickle
import warnings
from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.datasets

from greenlabel import AnchoredGreenClassifier, BlendedClassifier, GreenClassifier, label_table
from greenlabel.labels.estimates import Filled, estimate_accuracy
from mixed_tables import mixed_table
from run import commit, machine, markdown

FOLDER = Path(__file__).parent
GRAPHS = {"GreenClassifier": GreenClassifier, "AnchoredGreenClassifier": AnchoredGreenClassifier}
ALL = {**GRAPHS, "BlendedClassifier": BlendedClassifier}
SEEDS = {**dict.fromkeys(range(0, 156, 2), ALL), **dict.fromkeys(range(401, 658), GRAPHS)}  # of the trials
TABLES = range(1000, 1040)  # seeds of the mixed tables
BUNDLED = ["digits", "wine", "breast_cancer", "iris"]
REAL = [*BUNDLED, "balance", "meu_mobile_ksd", "usps", "crowdsourced_mapping", "phishing_websites", "mnist"]
VARIANTS = ["plain", "skewed", "duplicates", "noise"]
PER_CLASS = (3, 5, 10, 20, 50)
MAX_PER_CLASS = {2: 50, 3: 50, 5: 50, 10: 50, 30: 10, 100: 5, 200: 5}  # by the number of classes
MAX_ROWS = 3000
MAX_TESTED = 2000
Array = np.ndarray[Any, Any]
Fit = dict[str, Any]


# Trials


def real_data(name: str, rng: np.random.Generator) -> tuple[Array, Array]:
    if name in BUNDLED:
        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    else:
        with np.load(Path(os.environ["GREENLABEL_DATA"]) / f"{name}.npz") as file:
            X, y = file["X"].astype(np.float32), file["y"].astype(int)
    rows = rng.permutation(len(X))[: MAX_ROWS // 2]
    return X[rows], np.unique(y[rows], return_inverse=True)[1]


def generated_data(c: int, is_skewed: bool, rng: np.random.Generator) -> tuple[Array, Array]:
    """Gaussian clouds, one to three for each class, as far apart as chance has it; some columns say nothing."""
    n = int(np.clip(15 * c, 600, MAX_ROWS)) if c > 20 else int(rng.choice([600, 1000, 1500]))
    d = int(rng.choice([2, 5, 10, 30] if c <= 10 else [5, 10, 30]))
    y = rng.choice(c, n, p=class_shares(c, is_skewed, rng))
    for j in range(c):  # every class occurs
        if not (y == j).any():
            y[rng.integers(n)] = j
    clouds = rng.integers(1, 4) if c <= 30 else 1
    apart = rng.uniform(0.7, 3.0) * np.sqrt(10 / max(d, 4)) * c ** (0.7 / max(d, 3))
    centres = rng.normal(size=(c * clouds, d)) * apart
    X = centres[y * clouds + rng.integers(0, clouds, n)] + rng.normal(size=(n, d))
    kind = rng.integers(3)
    if kind == 1:
        X = np.column_stack([X, rng.normal(size=(n, d))])
    if kind == 2:
        X = X * np.exp(2 * rng.normal(size=d))  # units that differ
    return X, y


def class_shares(c: int, is_skewed: bool, rng: np.random.Generator) -> Array:
    if not is_skewed:
        return np.full(c, 1 / c)
    shares = 1 / np.arange(1, c + 1) ** rng.uniform(0.5, 1.2)
    return rng.permutation(shares / shares.sum())


def varied(X: Array, y: Array, variant: str, c: int, rng: np.random.Generator) -> tuple[Array, Array]:
    if variant == "duplicates":
        different = max(len(X) // int(rng.choice([2, 5, 20])), 3 * c)
        rows = np.concatenate([np.arange(different), rng.integers(0, different, len(X) - different)])
        return X[rows], y[rows]
    if variant == "noise":
        is_off = rng.random(len(y)) < rng.uniform(0.05, 0.3)
        y = np.where(is_off, rng.integers(0, c, len(y)), y)
    return X, y


def draw_labels(y: Array, per_class: int, by_class: bool, rng: np.random.Generator) -> Array:
    given = np.full(len(y), -1)
    if not by_class:
        rows = rng.choice(len(y), min(per_class * len(np.unique(y)), len(y) // 2), replace=False)
        given[rows] = y[rows]
        return given
    for j in np.unique(y):
        rows = np.flatnonzero(y == j)
        given[rng.choice(rows, min(per_class, max(1, len(rows) // 2)), replace=False)] = j
    return given


def trial(seed: int) -> tuple[Array, Array, Array, dict[str, Any]]:
    """Rows, true classes, given labels, and what kind of trial it is."""
    rng = np.random.default_rng([seed, 7])
    variant = "real"
    if seed % 4 == 0:
        X, y = real_data(REAL[seed // 4 % len(REAL)], rng)
        per_class = int(rng.choice(PER_CLASS))
        while per_class * (y.max() + 1) > len(y) / 2:
            per_class = max(3, per_class // 2)
    else:
        variant = VARIANTS[rng.integers(len(VARIANTS))]
        c = int(rng.choice(list(MAX_PER_CLASS)))
        X, y = generated_data(c, variant == "skewed", rng)
        per_class = int(rng.choice([k for k in PER_CLASS if k <= MAX_PER_CLASS[c]]))
        X, y = varied(X, y, variant, c, rng)
    by_class = bool(rng.integers(2))
    given = draw_labels(y, per_class, by_class, rng)
    kind = {"variant": variant, "classes": len(np.unique(y)), "per_class": per_class, "by_class": by_class}
    return X, y, given, kind


def fits(seed: int) -> list[Fit]:
    """The models of one trial: what their estimates are made of, and which rows are right."""
    if seed in TABLES:
        return [fit_table(seed)]
    X, y, given, kind = trial(seed)
    if len(np.unique(given[given >= 0])) < 2:
        return []
    return [
        {**kind, "method": name, **kept_of(make(random_state=0).fit(X, given), y, given)}
        for name, make in SEEDS[seed].items()
    ]


def fit_table(seed: int) -> Fit:
    frame, true, kind = mixed_table(seed)
    _, result = label_table(frame, "kind")
    codes = {name: code for code, name in enumerate(result.classes)}
    y = np.array([codes.get(name, -2) for name in true])  # a class without a label is never predicted
    return {**kind, "method": "BlendedClassifier", **kept_of(result.model, y, result.given)}


def kept_of(model: Any, y: Array, given: Array) -> Fit:
    free = given < 0
    p = model.label_distributions_[free]
    _, codes, p_tested = model.cross_validated(MAX_TESTED)
    is_blend = isinstance(model, BlendedClassifier)  # which has other experts for rows that no label reaches
    return {
        "codes": codes,
        "p_tested": p_tested.astype(np.float32),
        "counts": np.bincount(given[~free])[model.classes_],
        "confidence": p.max(axis=1).astype(np.float32),
        "predictions": p.argmax(axis=1),
        "is_reached": np.ones(len(p), bool) if is_blend else model.reached_[free],
        "is_right": model.classes_[p.argmax(axis=1)] == y[free],
    }


# Results


def stated(found: Fit, only_confident: float = 0.0) -> tuple[float, float, float, float] | None:
    """Estimate, its ends, and the truth; None where nothing was tested, or fewer than twenty rows filled in."""
    is_filled = found["confidence"] >= only_confident
    if not len(found["codes"]) or is_filled.sum() < 20:
        return None
    predictions = np.where(is_filled, found["predictions"], -1)
    filled = Filled.of(predictions, found["confidence"].astype(float), found["is_reached"], len(found["counts"]))
    p_tested = found["p_tested"].astype(float)
    estimate = estimate_accuracy(found["codes"], p_tested, found["counts"], filled, only_confident)
    assert estimate is not None
    return float(estimate), estimate.low, estimate.high, float(found["is_right"][is_filled].mean())


def groups(found: Fit) -> Iterator[str]:
    c, k = found["classes"], found["per_class"]
    yield f"method: {found['method']}"
    yield f"classes: {'2' if c == 2 else '3 to 10' if c <= 10 else '11 to 100' if c <= 100 else '101 to 200'}"
    yield f"labels per class: {'3' if k == 3 else '4 to 9' if k < 10 else '10 to 19' if k < 20 else '20 to 50'}"
    yield f"drawn: {'by class' if found['by_class'] else 'at random'}"
    yield f"data: {found['variant']}"


def table(kept: list[Fit], only_confident: float = 0.0) -> str:
    rows: dict[str, list[tuple[bool, float, float]]] = defaultdict(list)
    for found in kept:
        said = stated(found, only_confident)
        if said is None:
            continue
        p, low, high, true = said
        for group in ("all", *groups(found)):
            rows[group].append((low - 1e-9 <= true <= high + 1e-9, high - low, p - true))
    lines = []
    for group in sorted(rows, key=lambda name: (name != "all", name)):
        inside, width, gap = (np.array(column, float) for column in zip(*rows[group], strict=True))
        numbers = 100 * np.array([inside.mean(), width.mean(), gap.mean(), np.abs(gap).mean()])
        lines.append((group, str(len(inside)), *(f"{number:.1f}" for number in numbers)))
    head = ("group", "fits", "true share inside, %", "width, points", "stated - true", "abs(stated - true)")
    return markdown(head, lines)


def page(kept: list[Fit], trials: int) -> str:
    return "\n\n".join(
        [
            "# Does the stated accuracy hold?",
            f"Measured on {date.today()}, commit {commit()}, on {machine()}.\n`python benchmarks/estimates.py` writes "
            f"this page: {trials} trials, {len(kept)} fits, each with its stated accuracy, 90 % interval and\nthe true "
            "share on the rows filled in. Ten real data sets, at most 1,500 rows of each, and generated ones:\n"
            "Gaussian clouds of 2 to 200 classes, some with classes of very different size (skewed), with rows that "
            "stand\nthere 2 to 20 times (duplicates), or with 5 to 30 % of the labels wrong (noise; the truth is then "
            "the agreement\nwith labels that are as wrong); and tables of numbers, categories, dates, a text and gaps, "
            "given to the blend.\nThe rule is in [`estimates.py`](../src/greenlabel/labels/estimates.py).\n"
            "Its constants were chosen on most of these trials; no data set has a constant of its own.",
            table(kept),
            "## Only confident rows",
            "The same fits where only rows of at least 90 % confidence are filled in (twenty of them or more).",
            table(kept, 0.9) + "\n",
        ]
    )


def all_fits(keep: Path | None) -> tuple[list[Fit], int]:
    """The fits of all trials, and how many trials had any."""
    kept: list[Fit] = []
    used = 0
    for seed in (*SEEDS, *TABLES):
        file = None if keep is None else keep / f"{seed}.pkl"
        if file is not None and file.exists():
            found = pickle.loads(file.read_bytes())
        else:
            found = fits(seed)
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(pickle.dumps(found))
        used += bool(found)
        kept += found
    return kept, used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", type=Path, help="folder of fits that are not repeated")
    words = parser.parse_args()
    warnings.simplefilter("ignore")
    kept, trials = all_fits(words.keep)
    (FOLDER / "estimates.md").write_text(page(kept, trials))


if __name__ == "__main__":
    main()
