"""The summary of a labelling, for the terminal."""

from collections.abc import Iterator
from textwrap import fill
from typing import Any

import numpy as np

from greenlabel.labels.estimates import is_drawn_by_class
from greenlabel.tables.outcome import Outcome
from greenlabel.tables.report.words import (
    SPACE,
    aligned,
    amount,
    count,
    counted,
    listed,
    name,
    one_line,
    percent,
    shorten,
    time_text,
    whole_percent,
)

CLASSES, NAMES, WARNINGS, NEXT = 6, 4, 4, 5  # shown; the others are counted
WIDTH, INDENT = 100, 12


def summary_text(outcome: Outcome) -> str:
    """What came out, for the terminal: about 15 lines."""
    facts = [
        fill(f"{label:<{INDENT}}{text}", WIDTH, subsequent_indent=" " * INDENT, break_on_hyphens=False)
        for label, text in _facts(outcome)
    ]
    return "\n".join([_headline(outcome), "", *aligned(class_rows(outcome)), "", *facts]).replace(SPACE, " ")


def _headline(outcome: Outcome) -> str:
    given, filled = (int(part.sum()) for part in outcome.counts)
    sources = sources_text(outcome.label_sources)
    labels = f"{counted(given, 'label')} {sources or 'given'}"
    return f"{counted(outcome.n_rows, 'row')}: {labels}, {count(filled)} filled in"


def class_rows(outcome: Outcome) -> list[tuple[str, str, str, str]]:
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


def sources_text(sources: dict[str, int]) -> str:
    """The sources of the labels, for a table that was corrected: (20 given, 3 checked, 2 changed by hand)."""
    if sum(sources.values()) == sources.get("given", 0):
        return ""
    parts = [f"{count(number)} {key.replace('_', ' ')}" for key, number in sources.items()]
    return f"({', '.join(parts)})"


def _facts(outcome: Outcome) -> Iterator[tuple[str, str]]:
    estimate = outcome.summary()["estimated_accuracy"]
    if estimate:
        share, low, high = (percent(estimate[key]) for key in ("share", "low", "high"))
        interval = f"{whole_percent(estimate['level'])} interval {low} to {high}"
        labels = counted(estimate["labels_held_out"], "given label")
        confident = f" with at least {percent(outcome.only_confident)} confidence" if outcome.only_confident else ""
        right = f"{count(estimate['labels_held_out_right'])} came out right"
        how = f"by hiding {labels} in turn{confident}: {right}, and by the confidence on the rows filled in"
        yield "accuracy", f"about {share} ({interval}), {how}"
    else:
        yield "accuracy", "cannot be estimated: that needs two labels of a class that reach each other"
    if outcome.tally.empty:
        yield "empty", f"{counted(outcome.tally.empty, 'row')} left without a label"
    if outcome.tally.unreached:
        by_shares = (
            ", thought right as often as the most frequent label is" if outcome.tally.estimated.n_unreached else ""
        )
        yield "unreached", f"{counted(outcome.tally.unreached, 'row')} that no label reaches{by_shares}"
    if outcome.to_label:
        yield "label next", next_text(outcome)
    yield from _feature_facts(outcome)
    yield "method", name(outcome.method, 200)
    if outcome.experts:
        weights = {key: facts["weight"] for key, facts in outcome.experts.items() if key != "blend"}
        heaviest = sorted(weights, key=lambda key: -weights[key])
        yield "experts", ", ".join(f"{name(key, 30)} {whole_percent(weights[key])}" for key in heaviest)
    if outcome.graph:
        yield "graph", ", ".join(f"{key} {value}" for key, value in graph_facts(outcome))
    if outcome.seconds:
        yield "time", time_text(outcome.seconds)
    if outcome.stream:
        yield from _stream_facts(outcome.stream)
    for warning in outcome.warnings[:WARNINGS]:
        yield "warning", shorten(one_line(warning), 300)
    if len(outcome.warnings) > WARNINGS:
        yield "", f"and {counted(len(outcome.warnings) - WARNINGS, 'more warning')}"


def next_text(outcome: Outcome) -> str:
    """The rows to label next in one line, and why the first of them."""
    first = outcome.to_label[:NEXT]
    numbers = [count(outcome.number(one.row)) for one in first]
    rows = f"rows {', '.join(numbers[:-1])} and {numbers[-1]}" if len(numbers) > 1 else f"row {numbers[0]}"
    return f"{rows}; row {numbers[0]}: {shorten(one_line(first[0].reason), 120)}"


def reasons(outcome: Outcome) -> list[str]:
    """Why the share of labels filled in that are right is not that of the hidden ones."""
    given = outcome.tally.given
    unreached = outcome.tally.estimated.n_unreached
    single = int((given == 1).sum())
    found = ["the confidence on the rows filled in counts too"]
    if is_drawn_by_class(given):
        found.append("a class has one label less when one is hidden, and counts as often as it was filled in")
    elif single:
        found.append(f"{counted(single, 'class has', 'classes have')} a single label, so others may have none")
    if unreached:
        found.append(f"{counted(unreached, 'row')} that no label reaches got the most frequent label")
    return found


def _stream_facts(stream: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "speed", speed_text(stream)
    sample, blocks = counted(stream["sample_rows"], "row"), counted(stream["blocks"], "block")
    yield "streamed", f"in {blocks}; columns became features by a sample of {sample}"
    for column, values in stream["values_never_seen"].items():
        yield "unknown", f"column {name(column, 32)}: {counted(values, 'value')} unlike the sample, taken as missing"


def speed_text(stream: dict[str, Any]) -> str:
    return f"{count(stream['rows_per_second'])} rows/s, {amount(stream['bytes_per_second'])}/s"


def _feature_facts(outcome: Outcome) -> Iterator[tuple[str, str]]:
    by_kind: dict[str, list[str]] = {}
    for column in outcome.columns:
        why = f" ({name(column.why, 60)})" if column.why else ""
        by_kind.setdefault(column.kind, []).append(name(column.name, 30) + why)
    dropped = by_kind.pop("dropped", [])
    kinds = "; ".join(f"{listed(names, NAMES)} ({kind})" for kind, names in by_kind.items())
    yield "features", f"{count(outcome.X.shape[1])} from {kinds}"
    if dropped:
        yield "dropped", listed(dropped, NAMES)


def graph_facts(outcome: Outcome) -> list[tuple[str, str]]:
    """What the graph is, as words."""
    return [(name(key).replace("_", " "), _value(value)) for key, value in outcome.graph.items()]


def _value(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return count(int(value))
    return f"{float(value):.3g}" if isinstance(value, float | np.floating) else name(value, 60)


def prediction_text(facts: dict[str, Any]) -> str:
    """What new rows were given, for the terminal."""
    filled = facts["labels_predicted"]
    total = sum(filled.values())
    largest = sorted(filled, key=lambda label: -filled[label])[:CLASSES]
    rows = [(name(facts["target"], 32), "predicted", "share")]
    rows += [(name(label, 32), count(filled[label]), percent(filled[label] / max(1, total))) for label in largest]
    if len(filled) > len(largest):
        rest = sum(filled.values()) - sum(filled[label] for label in largest)
        rows.append((f"and {len(filled) - len(largest):,} more", count(rest), percent(rest / max(1, total))))
    had = f"{count(facts['labels_given'])} had a label {sources_text(facts['label_sources'])}".rstrip()
    headline = f"{counted(facts['rows'], 'row')}: {had}, {count(total)} filled in"
    lines = [headline, "", *aligned(rows)]
    if facts["rows_left_empty"]:
        lines += ["", f"{counted(facts['rows_left_empty'], 'row')} left without a label"]
    if facts["rows_not_reached"]:
        lines += ["", f"{counted(facts['rows_not_reached'], 'row')} that no label reaches"]
    for column, values in facts["values_never_seen"].items():
        lines += ["", f"column {name(column, 32)}: {counted(values, 'value')} that the model has never seen"]
    if "seconds" in facts:
        lines += ["", fill(f"time: {time_text(facts['seconds'])}", WIDTH)]
    if "stream" in facts:
        lines += ["", f"{speed_text(facts['stream'])}, in {counted(facts['stream']['blocks'], 'block')}"]
    for warning in facts.get("warnings", []):
        lines += ["", fill(f"warning: {one_line(warning)}", WIDTH)]
    return "\n".join(lines).replace(SPACE, " ")
