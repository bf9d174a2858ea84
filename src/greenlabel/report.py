"""Results as pictures and tables."""

import csv
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from greenlabel.files import whole_file
from greenlabel.report_words import (
    SPACE,
    aligned,
    count,
    counted,
    duration,
    listed,
    name,
    one_line,
    percent,
    shorten,
    whole_percent,
)

if TYPE_CHECKING:
    from greenlabel.outcome import Outcome  # which needs the libraries of tables; the demo does not

PALETTE = "tab10"
CLASSES, NAMES, WARNINGS = 6, 4, 4  # shown in the terminal; of the others the number
WIDTH, INDENT = 100, 12


def write_labels(path: Path, y: NDArray[Any], probability: NDArray[np.floating], given: NDArray[np.bool_]) -> None:
    """One line per row: its number, its label, where that came from, and how sure it is."""
    with whole_file(path) as draft, draft.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "label", "source", "confidence"])
        sources = np.where(given, "given", "predicted")
        confidence = np.where(given, 1.0, probability.max(axis=1))
        writer.writerows(
            (i, *line) for i, line in enumerate(zip(y, sources, (f"{p:.4f}" for p in confidence), strict=True))
        )


def draw_before_and_after(
    path: Path, X: NDArray[Any], y: NDArray[np.integer], given: NDArray[np.bool_], wrong: NDArray[np.bool_]
) -> None:
    """Two maps of the rows in the plane: the labels that were given, and all labels, wrong ones circled."""
    from matplotlib.figure import Figure
    from sklearn.manifold import TSNE

    place = TSNE(init="pca", max_iter=500, random_state=0).fit_transform(X)
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    before, after = figure.subplots(1, 2)
    dots = {"cmap": PALETTE, "vmin": y.min(), "vmax": y.max()}
    before.scatter(*place.T, s=9, color="0.85", linewidths=0)
    before.scatter(*place[given].T, s=34, c=y[given], edgecolors="black", linewidths=0.6, **dots)
    before.set_title(f"{given.sum():,} labels given")
    shown = after.scatter(*place.T, s=9, c=y, linewidths=0, **dots)
    after.scatter(*place[wrong].T, s=42, facecolors="none", edgecolors="black", linewidths=0.8)
    after.set_title(f"{(~given).sum():,} labels filled in, {wrong.sum():,} wrong (circled)")
    after.legend(*shown.legend_elements(num=None), loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    for axes in (before, after):
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    with whole_file(path) as draft:
        figure.savefig(draft, dpi=130)


def summary_text(outcome: "Outcome") -> str:
    """What came out, for the terminal: about 15 lines."""
    facts = [
        fill(f"{label:<{INDENT}}{text}", WIDTH, subsequent_indent=" " * INDENT, break_on_hyphens=False)
        for label, text in _facts(outcome)
    ]
    return "\n".join([_headline(outcome), "", *aligned(class_rows(outcome)), "", *facts]).replace(SPACE, " ")


def _headline(outcome: "Outcome") -> str:
    given, filled = (int(part.sum()) for part in outcome.counts)
    return f"{counted(outcome.n_rows, 'row')}: {counted(given, 'label')} given, {count(filled)} filled in"


def class_rows(outcome: "Outcome") -> list[tuple[str, str, str, str]]:
    """A small table: head, classes, and the others together."""
    shown = outcome.largest_classes(CLASSES)
    rest = np.setdiff1d(np.arange(len(outcome.classes)), shown)
    groups = [(name(outcome.classes[j], 32), np.array([j])) for j in shown]
    if len(rest):
        groups.append((f"and {len(rest):,} more", rest))
    given, filled = outcome.counts
    total = max(1, filled.sum())
    rows = [
        (title, count(given[j].sum()), count(filled[j].sum()), percent(filled[j].sum() / total)) for title, j in groups
    ]
    return [(name(outcome.target, 32), "given", "predicted", "share"), *rows]


def _facts(outcome: "Outcome") -> Iterator[tuple[str, str]]:
    estimate = outcome.summary()["estimated_accuracy"]
    if estimate:
        share, low, high = (percent(estimate[key]) for key in ("share", "low", "high"))
        interval = f"{whole_percent(estimate['level'])} interval {low} to {high}"
        labels = counted(estimate["labels_held_out"], "given label")
        yield "accuracy", f"about {share} ({interval}), by hiding {labels} in turn"
    else:
        yield "accuracy", "cannot be estimated: that needs two labels of a class that lead to each other"
    if outcome.is_empty.any():
        yield "empty", f"{counted(int(outcome.is_empty.sum()), 'row')} left without a label"
    if outcome.is_lost.any():
        yield "unreached", f"{counted(int(outcome.is_lost.sum()), 'row')} to which no label leads"
    yield from _feature_facts(outcome)
    yield "method", name(outcome.method, 200)
    if outcome.graph:
        yield "graph", ", ".join(f"{key} {value}" for key, value in graph_facts(outcome))
    stages = ", ".join(f"{name(stage)} {duration(seconds)}" for stage, seconds in outcome.seconds.items())
    if stages:
        yield "time", f"{duration(sum(outcome.seconds.values()))} ({stages})"
    for warning in outcome.warnings[:WARNINGS]:
        yield "warning", shorten(one_line(warning), 300)
    if len(outcome.warnings) > WARNINGS:
        yield "", f"and {counted(len(outcome.warnings) - WARNINGS, 'more warning')}"


def _feature_facts(outcome: "Outcome") -> Iterator[tuple[str, str]]:
    by_kind: dict[str, list[str]] = {}
    for column in outcome.columns:
        why = f" ({name(column.why, 60)})" if column.why else ""
        by_kind.setdefault(column.kind, []).append(name(column.name, 30) + why)
    dropped = by_kind.pop("dropped", [])
    kinds = "; ".join(f"{listed(names, NAMES)} ({kind})" for kind, names in by_kind.items())
    yield "features", f"{count(outcome.X.shape[1])} from {kinds}"
    if dropped:
        yield "dropped", listed(dropped, NAMES)


def graph_facts(outcome: "Outcome") -> list[tuple[str, str]]:
    """What the graph is, as words."""
    return [(name(key).replace("_", " "), _value(value)) for key, value in outcome.graph.items()]


def _value(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return count(int(value))
    return f"{float(value):.3g}" if isinstance(value, float | np.floating) else name(value, 60)
