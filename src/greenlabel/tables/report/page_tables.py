"""Tables of a report: outcome in, markup out. Each is in a box of its own that scrolls on a narrow screen."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel.tables.columns.features import Column
from greenlabel.tables.outcome import BINS, Outcome
from greenlabel.tables.report.charts import confidence_bins
from greenlabel.tables.report.markup import Markup, element, joined
from greenlabel.tables.report.words import SPACE, count, counted, name, one_line, percent

CLASSES_LISTED, CLASSES_CROSSED, CONFUSIONS, COLUMNS_LISTED = 20, 10, 8, 20


def named(value: Any, max_length: int = 40) -> Markup:
    """A name or value that keeps its own direction; the whole of a long one shows when it is pointed at."""
    said, whole = name(value, max_length), one_line(value)
    return element("bdi", said, title=whole[:500] if said != whole else None)


def table(caption: Any, head: Sequence[Any], rows: Iterable[Sequence[Any]], *, style: str = "", label: str) -> Markup:
    """A table whose first column names its rows; cells and heads that are elements already stay as they are."""
    heading = element("tr", *(title if _is(title, "th") else element("th", title, scope="col") for title in head))
    body = [
        element("tr", element("th", first, scope="row"), *(td if _is(td, "td") else element("td", td) for td in rest))
        for first, *rest in rows
    ]
    parts = element("caption", element("span", caption)), element("thead", heading), element("tbody", *body)
    return element(
        "div",
        element("table", *parts, class_=style or None),
        class_="scroll",
        role="region",
        tabindex=0,
        aria_label=label,
    )


def _is(value: Any, tag: str) -> bool:
    return isinstance(value, Markup) and value.startswith(f"<{tag}")


def number(value: str) -> Markup:
    return element("td", value, class_="number")


def number_head(title: Any) -> Markup:
    return element("th", title, class_="number", scope="col")


# Classes


def class_table(outcome: Outcome) -> Markup:
    """Given and predicted labels of each class, with bars on one scale."""
    shown = outcome.largest_classes(CLASSES_LISTED)
    rest = np.setdiff1d(np.arange(len(outcome.classes)), shown)
    parts = [(labels, max(1, int(labels.sum()))) for labels in outcome.counts]
    longest = max(float(labels[shown].max() / total) for labels, total in parts)
    groups: list[tuple[Any, Any, float]] = [(named(outcome.classes[j]), j, longest) for j in shown]
    if len(rest):
        groups.append((f"and {counted(len(rest), 'more class', 'more classes')}", rest, 0))
    groups.append(("all", slice(None), 0))
    rows = [
        (title, *(_share(int(labels[j].sum()), total, full) for labels, total in parts)) for title, j, full in groups
    ]
    caption = "Labels of each class" + (f", the {len(shown)} largest of {len(outcome.classes):,}" if len(rest) else "")
    head = (named(outcome.target), "given", "predicted")
    return table(caption, head, rows, style="classes", label="Labels of each class")


def _share(rows: int, total: int, longest: float) -> Markup:
    share = rows / total
    bar = element("span", class_="bar", style=f"width:{100 * share / longest:.1f}%") if longest else None
    said = joined(element("b", count(rows)), " ", element("span", percent(share), class_="muted"))
    return element("td", said, bar and element("span", bar, class_="track"), class_="number")


# Confidence


def confidence_table(confidence: NDArray[np.floating], is_empty: NDArray[np.bool_]) -> Markup:
    """The numbers of the histogram."""
    index = confidence_bins(confidence)
    lines = [
        (f"{b * 100 // BINS} to {(b + 1) * 100 // BINS}{SPACE}%", *(number(count(int(part.sum()))) for part in parts))
        for b in range(BINS)
        for parts in [(~is_empty & (index == b), is_empty & (index == b))]
    ]
    return _folded(
        table(
            "Rows by confidence",
            ("confidence", number_head("filled in"), number_head("left empty")),
            lines,
            label="Rows by confidence",
        )
    )


def reliability_table(bins: Sequence[dict[str, float]]) -> Markup:
    """The numbers of the reliability chart."""
    lines = [
        (
            f"{part['from']:.0%} to {part['to']:.0%}".replace("%", f"{SPACE}%"),
            number(count(part["rows"])),
            number(percent(part["confidence"])),
            number(percent(part["accuracy"])),
        )
        for part in bins
    ]
    head = ("confidence", *map(number_head, ("labels", "mean confidence", "right")))
    return _folded(table("Hidden labels by confidence", head, lines, label="Hidden labels by confidence"))


def _folded(content: Markup) -> Markup:
    return element("details", element("summary", "Numbers"), content)


# Confusions


def confusion_table(outcome: Outcome) -> Markup:
    """Hidden labels by given class (down) and predicted class (across); where there are many, the rest together."""
    crossed, names = crossed_classes(outcome)
    is_upright = max(len(name(title)) for title in names) > 4
    heads = [element("span", named(title, 16), class_="upright" if is_upright else None) for title in names]
    size = np.maximum(crossed.sum(axis=1), 1)
    rows = [
        (named(title, 16), *(_crossing(int(rows), rows / size[i], kinds[i, j]) for j, rows in enumerate(crossed[i])))
        for kinds in [_kinds_of_crossing(len(names), len(outcome.classes))]
        for i, title in enumerate(names)
    ]
    rest = len(outcome.classes) - len(names) + 1
    caption = f"Hidden labels: the {len(names) - 1} classes confused most, and {rest} others together"
    return table(
        caption if rest > 1 else "Hidden labels",
        (joined("given ↓", element("br"), "predicted →"), *heads),
        rows,
        style="confusion",
        label="Confusion matrix of hidden labels",
    )


def crossed_classes(outcome: Outcome) -> tuple[NDArray[np.integer], list[Any]]:
    """The confusion matrix of the classes that are confused most, and one row and column for all others."""
    full = outcome.confusion()
    c = len(full)
    if c <= CLASSES_CROSSED + 1:
        return full, outcome.classes
    size = full.sum(axis=0) + full.sum(axis=1)
    right = full.diagonal()
    kept = np.lexsort((np.arange(c), -size, 2 * right - size))[:CLASSES_CROSSED]
    group = np.full(c, CLASSES_CROSSED)
    group[kept] = np.arange(CLASSES_CROSSED)
    crossed = np.zeros((CLASSES_CROSSED + 1, CLASSES_CROSSED + 1), dtype=int)
    np.add.at(crossed, (group[:, None], group[None, :]), full)
    return crossed, [*(outcome.classes[j] for j in kept), f"{c - CLASSES_CROSSED:,} others"]


def _kinds_of_crossing(size: int, c: int) -> NDArray[np.str_]:
    """The diagonal is right, but where the other classes meet, both is counted."""
    kinds = np.where(np.eye(size, dtype=bool), "right", "wrong")
    if size < c:
        kinds[-1, -1] = "mixed"
    return kinds


def _crossing(rows: int, share: float, kind: str) -> Markup:
    style = f"--share:{share:.3f}" if rows else None
    return element("td", count(rows) if rows else "·", class_=kind, style=style)


def confusion_list(outcome: Outcome) -> Markup | None:
    """The commonest confusions in words."""
    wrong = outcome.confusion() * (1 - np.eye(len(outcome.classes), dtype=int))
    order = np.argsort(-wrong, axis=None, kind="stable")[:CONFUSIONS]
    pairs = [divmod(int(index), len(wrong)) for index in order if wrong.flat[index]]
    if not pairs:
        return None
    said = [
        element(
            "li",
            named(outcome.classes[i]),
            " taken for ",
            named(outcome.classes[j]),
            f": {counted(int(wrong[i, j]), 'time')}",
        )
        for i, j in pairs
    ]
    return element("div", element("h3", "Commonest confusions"), element("ul", *said, class_="plain"))


# Columns


def expert_table(outcome: Outcome) -> Markup:
    """Each expert: its weight, and how it does on hidden labels; the blend last."""
    blend = outcome.experts["blend"]
    others = sorted((key for key in outcome.experts if key != "blend"), key=lambda key: -outcome.experts[key]["weight"])
    rows = [(named(key), *(number(cell) for cell in _expert_cells(outcome.experts[key]))) for key in others]
    rows.append((element("b", "all together"), *(number(cell) for cell in _expert_cells(blend))))
    caption = "Each expert alone, and all together"
    return table(
        f"{caption}, on labels that it had not seen." if len(outcome.validation.rows) else f"{caption}.",
        ("expert", number_head("weight"), number_head("right"), number_head("log-loss")),
        rows,
        label="Experts",
    )


def _expert_cells(facts: dict[str, float]) -> list[str]:
    is_known = not np.isnan(facts["accuracy"])
    return [
        percent(facts["weight"]),
        *([percent(facts["accuracy"]), f"{facts['log_loss']:.3f}"] if is_known else ["–", "–"]),
    ]


def column_table(outcome: Outcome) -> Markup:
    """What each column became; where there are many, those not used and those of the rarer kinds come first."""
    columns = list(outcome.columns)
    if len(columns) > COLUMNS_LISTED:
        kinds = Counter(column.kind for column in columns)
        columns.sort(key=lambda column: (column.kind != "dropped", kinds[column.kind], column.kind))
    rows: list[tuple[Any, ...]] = [
        (named(column.name), _kind(column), number(count(column.n_features)), _remark(column))
        for column in columns[:COLUMNS_LISTED]
    ]
    rest = columns[COLUMNS_LISTED:]
    if rest:
        named_kinds = ", ".join(sorted({_kind(column) for column in rest}))
        features = sum(column.n_features for column in rest)
        rows.append((f"and {counted(len(rest), 'more column')}", named_kinds, number(count(features)), ""))
    caption = f"{counted(len(columns), 'column')} beside the labels became {counted(outcome.X.shape[1], 'feature')}."
    return table(
        caption,
        ("column", "kind", number_head("features"), "remark"),
        rows,
        style="columns",
        label="What each column became",
    )


def _kind(column: Column) -> str:
    return "not used" if column.kind == "dropped" else column.kind


def _remark(column: Column) -> Any:
    if column.why:
        return named(column.why, 120)
    if column.categories:
        shown = [part for value in column.categories[:6] for part in (named(value, 20), ", ")][:-1]
        return joined(*shown, f" and {len(column.categories) - 6:,} more" if len(column.categories) > 6 else "")
    if column.kind == "number" and (column.unit or column.marks not in ("", "1234.5")):
        return f"written like {column.writing}"
    return ""
