"""The page of queries.py, from what was measured."""

from collections.abc import Callable
from typing import Any

import numpy as np

from basics import title_of
from query_data import (
    DRAWS,
    MAX_ROWS,
    NAMES,
    PEER_DRAWS,
    PEER_ROWS,
    QUICK_LABELS,
    QUICK_ROWS,
    QUICK_STARTS,
    SAMPLE_DRAWS,
    SAMPLE_ROWS,
    SAMPLE_SHARE,
    SAMPLES,
    SEVEN,
    STARTS,
)
from query_rules import PEERS, PER_CLASS
from run import machine, markdown

Array = np.ndarray[Any, Any]


def gain(entry: dict[str, Any]) -> Array:
    """Ours less the mean of random rows, in points, by budget."""
    return 100 * (np.array(entry["ours"]) - np.mean(entry["random"], axis=0))


def start_gains(entry: dict[str, Any]) -> Array:
    """Of each start (starts, budgets): ours less the mean of random rows, in points."""
    return 100 * (np.array(entry["starts"]) - np.mean(entry["random"], axis=0))


def curves(kept: dict[str, Any]) -> str:
    lines = []
    for name, entry in kept.items():
        chosen, drawn = 100 * np.array(entry["ours"]), 100 * np.mean(entry["random"], axis=0)
        cells = [f"{a:.1f} / {b:.1f}" for a, b in zip(chosen, drawn, strict=True)]
        cells += [""] * (len(PER_CLASS) - len(cells))
        seen = "" if entry["seen"] is None else f"{entry['seen'] / entry['seen_random']:.2f}"
        lines.append((title_of(name), *cells, seen))
    header = ("chosen / random, %", *(f"{per} per class" for per in PER_CLASS), "labels until all classes are seen")
    return markdown(header, lines)


def against_peers(kept: dict[str, Any]) -> str:
    """Mean over data sets and budgets, and at how many data sets ours is ahead, behind."""
    lines = []
    for title in PEERS:
        gaps = [
            100 * np.mean(np.array(entry["beside_peers"]) - entry["peers"][title])
            for entry in kept.values()
            if entry.get("peers", {}).get(title) is not None
        ]
        if gaps:
            lines.append(
                (
                    title,
                    f"{np.mean(gaps):+.1f}",
                    str(len(gaps)),
                    str(sum(g > 0.5 for g in gaps)),
                    str(sum(g < -0.5 for g in gaps)),
                )
            )
    return markdown(("ours less", "mean, points", "data sets", "ahead", "behind"), lines)


def sample_gains(entry: dict[str, Any]) -> Array:
    """Of each sample (samples, budgets): ours less the mean of its random draws, in points."""
    return 100 * (np.array(entry["samples"]) - np.mean(entry["samples_random"], axis=1))


def luck_of_random(entry: dict[str, Any]) -> Array:
    """Of each random draw (samples, draws, budgets): its accuracy less the mean of the others in its sample."""
    drawn = 100 * np.array(entry["samples_random"])
    n_draws = drawn.shape[1]
    return (drawn - drawn.mean(axis=1, keepdims=True)) * n_draws / (n_draws - 1)


def by_sample(kept: dict[str, Any]) -> str:
    lines = []
    for name, entry in kept.items():
        points = sample_gains(entry)
        cells = [f"{mean:+.1f} ({low:+.1f})" for mean, low in zip(points.mean(axis=0), points.min(axis=0), strict=True)]
        lines.append((title_of(name), *cells, *[""] * (len(PER_CLASS) - len(cells))))
    return markdown(("gain, mean (lowest), points", *(f"{per} per class" for per in PER_CLASS)), lines)


def single_runs(kept: dict[str, Any]) -> str:
    """How often one run is behind random rows by more than the bars allow, ours and a random draw."""

    def share(points: Callable[[dict[str, Any]], Array], wanted: Callable[[int], bool], bar: float) -> str:
        runs = [
            points(entry)[..., i].ravel()
            for entry in kept.values()
            for i, budget in enumerate(entry["budgets"])
            if wanted(budget)
        ]
        return f"{100 * np.mean(np.concatenate(runs) < bar):.0f} %"

    lines = [
        (title, share(points, lambda b: b >= 20, -3), share(points, lambda b: b < 20, -9))
        for title, points in (("chosen", sample_gains), ("random", luck_of_random))
    ]
    header = ("runs behind random", "by more than 3 points, 20 labels or more", "by more than 9 points, fewer labels")
    return markdown(header, lines)


def worst(kept: dict[str, Any], points: Callable[[dict[str, Any]], Array], wanted: Callable[[int], bool]) -> str:
    losses = [
        (float(value), name, budget)
        for name, entry in kept.items()
        for value, budget in zip(points(entry), entry["budgets"], strict=True)
        if wanted(budget)
    ]
    value, name, budget = min(losses)
    return f"{value:+.1f} ({title_of(name)}, {budget} labels)"


def at_20(entry: dict[str, Any], curve: Array) -> str:
    return f"{100 * curve[entry['budgets'].index(20)]:.1f}"


def all_seen(numbers: list[int | None], at_random: list[float]) -> str:
    """Labels until all classes are seen, against random rows."""
    return "not all" if None in numbers else f"{np.mean(np.divide(numbers, at_random)):.2f} x"  # type: ignore[arg-type]


def bars(kept: dict[str, Any]) -> str:
    """By the mean of several starts on all rows, by one of them, and by the mean of the samples."""
    ways: list[Callable[[dict[str, Any]], Array]] = [
        lambda entry: start_gains(entry).mean(axis=0),
        gain,
        lambda entry: sample_gains(entry).mean(axis=0),
    ]

    def line(*words: str, of: Callable[[Callable[[dict[str, Any]], Array]], str]) -> tuple[str, ...]:
        return *words, *map(of, ways)

    seven = [kept[name] for name in SEVEN if name in kept]
    images = [kept["digits"], kept["usps"]]
    of_images = [
        " / ".join(at_20(entry, curve(entry)) for entry in images)
        for curve in (
            lambda entry: np.mean(entry["starts"], axis=0),
            lambda entry: np.array(entry["ours"]),
            lambda entry: np.mean(entry["samples"], axis=0),
        )
    ]
    lines = [
        ("digits / USPS, 20 labels, %", ">= 97 / >= 91", "98.5 / 94", *of_images),
        line(
            "mean gain over random, 2 labels per class, digits and the paper's six data sets",
            ">= +8",
            "+15",
            of=lambda points: f"{np.mean([points(entry)[1] for entry in seven]):+.1f}",
        ),
        line(
            "worst loss against random, from 20 labels on",
            ">= -3",
            ">= 0",
            of=lambda points: worst(kept, points, lambda b: b >= 20),
        ),
        line(
            "worst loss against random, fewer than 20 labels",
            ">= -9",
            ">= -3",
            of=lambda points: worst(kept, points, lambda b: b < 20),
        ),
    ]
    if "meu_mobile_ksd" in kept:
        keys = kept["meu_mobile_ksd"]
        at_random = [keys["seen_random"]]
        seen = (
            all_seen(keys["starts_seen"], at_random),
            all_seen([keys["seen"]], at_random),
            all_seen(keys["samples_seen"], keys["samples_seen_random"]),
        )
        lines.append(("labels until every class is seen, MobileKSD, against random", "<= 0.6 x", "<= 0.4 x", *seen))
    header = (
        "measure",
        "bar",
        "aim",
        f"mean of {STARTS} or {QUICK_STARTS} starts, all rows",
        "one of them",
        "mean of the samples",
    )
    return markdown(header, lines)


def by_start(kept: dict[str, Any]) -> str:
    lines = []
    for name, entry in kept.items():
        points, drawn = start_gains(entry), 100 * np.array(entry["random"])
        error = np.sqrt(sum(of.var(axis=0, ddof=1) / len(of) for of in (points, drawn)))
        cells = [f"{mean:+.1f} ± {e:.1f}" for mean, e in zip(points.mean(axis=0), error, strict=True)]
        lines.append((title_of(name), *cells, *[""] * (len(PER_CLASS) - len(cells))))
    return markdown(("gain, mean of the starts, points", *(f"{per} per class" for per in PER_CLASS)), lines)


def missing(kept: dict[str, Any]) -> str:
    names = [title_of(name) for name in NAMES if name not in kept]
    return f"Not measured yet: {', '.join(names)}. " if names else ""


def times(measured: dict[str, Any]) -> str:
    """By the clock; what `suggest` alone takes, after a `relabel` with one more label."""
    lines = [
        (
            f"{entry['rows']:,} x {entry['columns']}, {entry['anchors']:,} anchors",
            f"{entry['fit']:.1f}",
            f"{entry['first batch']:.2f} ({entry['first batch, processor']:.2f})",
            f"{1000 * entry['pick']:.0f} ({1000 * entry['pick, processor']:.0f})",
        )
        for entry in measured["runs"]
    ]
    header = (
        "fit by `AnchoredGreenClassifier`",
        "fit, s",
        "first batch of ten, s (processor)",
        "a pick after a new label, ms (processor)",
    )
    return markdown(header, lines)


def commits_of(kept: dict[str, Any], part: str) -> str:
    """At which a part was measured; rules of others may be of several for one data set."""
    found = (entry["commits"].get(part, "").split(" and ") for entry in kept.values())
    return ", ".join(sorted({name for names in found for name in names if name}))


def page(kept: dict[str, Any], timed: dict[str, Any] | None) -> str:
    ours, starts, drawn, peers = (commits_of(kept, part) for part in ("ours", "starts", "random", "peers"))
    day = max(entry["date"] for entry in kept.values())
    return "\n\n".join(
        [
            "# Which rows to label: learning curves",
            f"Measured until {day} on {machine()}: our rule at commit {ours},\n"
            f"from several starts at {starts},\n"
            f"random rows at {drawn}, other rules at {peers}.\n"
            "`python benchmarks/queries.py` writes this page.\n"
            "Accuracy of `GreenClassifier()` on the rows without a label. Chosen rows are those of `suggest(X)` until\n"
            "two classes are seen, then of `suggest(model)` after every `relabel`; random is the mean of\n"
            f"{DRAWS} draws that do not know the classes. At most {MAX_ROWS:,} rows of each data set (a sample of\n"
            "MNIST's 70,000), scaled by the blend's rule.",
            bars(kept),
            missing(kept) + "What was tried and what it changed is in [what was tried](tried.md#which-rows-to-label).",
            "## Learning curves",
            curves(kept),
            "## How much of it is luck",
            f"All rows with {STARTS} values of `random_state`, on which the anchors hang, {QUICK_STARTS} of them up to "
            f"{QUICK_ROWS:,}\nrows and {QUICK_LABELS} labels; ± is the standard error, that of random rows included. "
            "Where many rows are as good as\neach other, a start changes what comes; elsewhere all starts are alike. "
            "The table above is for\n`random_state=0`.",
            by_start(kept),
            f"Ours once and {SAMPLE_DRAWS} random draws on each of {SAMPLES} samples of the rows "
            f"({SAMPLE_SHARE:.0%} of them, at most {SAMPLE_ROWS:,}). Where the graph says little about the\nclasses, "
            "one run is worth little: the same rule on another sample of the same data may be ten points off.",
            by_sample(kept),
            "How often one run, on one sample with one number of labels, is behind the mean of the random draws by\n"
            "more than the bars allow. A random draw is set against the other draws of its sample.",
            single_runs(kept),
            "## Other rules",
            f"On {PEER_ROWS:,} rows of each data set at most, all on the same k-NN graph, judged by "
            "the same classifier; mean over the budgets.\nRules that need labels to begin with get random rows until "
            f"two classes are seen ({PEER_DRAWS} draws); ours is the mean of its starts.",
            against_peers(kept),
            "## Time",
            "Bars: the first batch of ten at 1,000,000 x 64 within 2 s (aim 0.5), a pick with 2,048 anchors\n"
            "within 100 ms (aim 30).",
            "Not measured yet." if timed is None else f"Commit {timed['commit']}; the middle one of several picks.",
            *([] if timed is None else [times(timed) + "\n"]),
        ]
    )
