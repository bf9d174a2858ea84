"""Wrong labels found: greenlabel's ``suspects`` and cleanlab. Writes benchmarks/suspects.md.

    GREENLABEL_DATA=... python benchmarks/suspects.py       minutes; cleanlab is of the extra peers

Twenty labels per class, one in ten of them replaced by another class at random; the same labels for all. cleanlab gets
out-of-fold probabilities, as its documentation asks: those of logistic regression on the labelled rows (five folds),
and greenlabel's leave-one-out ones, so that the rule and the probabilities can be told apart.
"""

import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from cleanlab.filter import find_label_issues
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.preprocessing import StandardScaler

from basics import title_of
from estimates import real_data
from greenlabel import BlendedClassifier, GreenClassifier, suspects
from run import commit, machine, markdown

DATA = ["digits", "wine", "breast_cancer", "balance", "usps", "crowdsourced_mapping", "phishing_websites"]
SCALED = {"wine", "breast_cancer", "crowdsourced_mapping"}  # columns of different units
PER_CLASS, WRONG, DRAWS = 20, 0.1, 5
Array = np.ndarray[Any, Any]
Finder = Callable[[Array, Array, Array], Array]  # X, y with -1, labelled rows -> rows whose label is doubted


def given_labels(truth: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Labels, -1 where there is none, and the rows whose label is wrong."""
    rows = [rng.permutation(np.flatnonzero(truth == k))[:PER_CLASS] for k in np.unique(truth)]
    labelled = np.concatenate(rows)
    wrong = rng.choice(labelled, round(WRONG * len(labelled)), replace=False)
    y = np.full(len(truth), -1)
    y[labelled] = truth[labelled]
    n_classes = truth.max() + 1
    y[wrong] = (truth[wrong] + rng.integers(1, n_classes, len(wrong))) % n_classes
    return y, wrong


def by_graph(X: Array, y: Array, rows: Array) -> Array:
    return np.array([one.row for one in suspects(GreenClassifier(random_state=0).fit(X, y))], int)


def by_blend(X: Array, y: Array, rows: Array) -> Array:
    return np.array([one.row for one in suspects(BlendedClassifier(random_state=0).fit(X, y))], int)


def by_cleanlab_and_logistic(X: Array, y: Array, rows: Array) -> Array:
    P = cross_val_predict(LogisticRegression(max_iter=2000), X[rows], y[rows], cv=5, method="predict_proba")
    return rows[find_label_issues(y[rows], P, n_jobs=1)]


def by_cleanlab_and_graph(X: Array, y: Array, rows: Array) -> Array:
    model = GreenClassifier(random_state=0).fit(X, y)
    tested, codes, P = model.cross_validated(len(rows))
    return tested[find_label_issues(codes, P, n_jobs=1)]


FINDERS: dict[str, Finder] = {
    "`suspects`, `GreenClassifier`": by_graph,
    "`suspects`, `BlendedClassifier`": by_blend,
    "cleanlab, logistic regression": by_cleanlab_and_logistic,
    "cleanlab, greenlabel's leave-one-out": by_cleanlab_and_graph,
}


def found(name: str) -> dict[str, tuple[float, float]]:
    """{finder: (share of what it doubts that is wrong, share of what is wrong that it doubts)}, over all draws."""
    counts = {finder: np.zeros(3) for finder in FINDERS}
    for seed in range(DRAWS):
        rng = np.random.default_rng(seed)
        X, truth = real_data(name, rng)
        X = StandardScaler().fit_transform(X) if name in SCALED else X / (np.abs(X).max() or 1)
        y, wrong = given_labels(truth, rng)
        for finder, find in FINDERS.items():
            doubted = find(X, y, np.flatnonzero(y >= 0))
            counts[finder] += len(np.intersect1d(doubted, wrong)), len(doubted), len(wrong)
    return {finder: (hits / max(1, n), hits / wrong) for finder, (hits, n, wrong) in counts.items()}


def page(results: dict[str, dict[str, tuple[float, float]]]) -> str:
    lines = [(title_of(name), *(f"{p:.0%} / {r:.0%}" for p, r in of.values())) for name, of in results.items()]
    means = np.mean([list(of.values()) for of in results.values()], axis=0)
    lines.append(("mean", *(f"{p:.0%} / {r:.0%}" for p, r in means)))
    return "\n\n".join(
        [
            "# Wrong labels found",
            f"Measured on {date.today()}, commit {commit()}, on {machine()}.\n`python benchmarks/suspects.py` "
            f"writes this page. {PER_CLASS} labels per class, of at most 1,500 rows; one label in {1 / WRONG:.0f} is "
            f"wrong,\nat random; {DRAWS} draws. First number: how much of what is doubted is wrong (precision). "
            "Second: how much of what is\nwrong is doubted (recall).",
            markdown(("data", *FINDERS), lines),
            "cleanlab needs probabilities from somewhere: out-of-fold ones of logistic regression on the labelled "
            "rows, or those\nthat greenlabel's graph gives. `suspects` doubts each label whose row is predicted "
            "otherwise by the other labels;\ncleanlab's rule also asks how sure a class usually is.\n",
        ]
    )


def main() -> None:
    warnings.simplefilter("ignore")
    results = {name: found(name) for name in DATA}
    (Path(__file__).parent / "suspects.md").write_text(page(results))


if __name__ == "__main__":
    main()
