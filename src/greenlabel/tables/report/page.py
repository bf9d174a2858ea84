"""The report of one labelling: a page in a single file, which loads nothing and needs no script."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from greenlabel import __version__
from greenlabel._common.optional import requires
from greenlabel.labels.estimates import LEVEL
from greenlabel.tables.io.files import new_file
from greenlabel.tables.outcome import Outcome
from greenlabel.tables.report.charts import (
    Mark,
    confidence_chart,
    legend,
    map_chart,
    reliability_chart,
    swatch,
    symbols,
)
from greenlabel.tables.report.markup import Markup, element
from greenlabel.tables.report.page_tables import (
    class_table,
    column_table,
    confidence_table,
    confusion_list,
    confusion_table,
    expert_table,
    named,
    reliability_table,
)
from greenlabel.tables.report.plane import positions, sample_for_map
from greenlabel.tables.report.row_tables import contradiction_table, suggestion_table, uncertain_table
from greenlabel.tables.report.summary import class_rows, graph_facts, reasons
from greenlabel.tables.report.words import count, counted, duration, name, one_line, percent, whole_percent

with requires("tables"):
    import polars as pl

STYLE = Path(__file__).with_name("page.css")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"  # a browser then loads nothing, whatever comes
FRAGMENT_STYLE = """
.greenlabel-summary table { border-collapse: collapse; margin: 0 2em .5em 0; display: inline-table }
.greenlabel-summary table { vertical-align: top }
.greenlabel-summary caption { font-weight: bold; text-align: left; caption-side: top; color: inherit; padding: .2em 0 }
.greenlabel-summary th, .greenlabel-summary td { text-align: right; padding: .15em .8em .15em 0; background: none }
.greenlabel-summary tr > :first-child, .greenlabel-summary .facts td { text-align: left; font-weight: normal }
.greenlabel-summary thead tr > :nth-child(n) { font-weight: bold; border-bottom: 1px solid }
"""
CLASSES_ON_MAP = 12
NO_ESTIMATE = (
    "No label could be hidden and predicted from the others; that needs two labels of a class that reach each other."
)


@dataclass(frozen=True)
class Section:
    key: str
    heading: str
    parts: list[Any]
    is_wide: bool = True


def write_report(path: Path, outcome: Outcome, frame: pl.DataFrame, title: str) -> None:
    """The page of an outcome. ``frame`` is the table as it came, to show rows of it."""
    page = report_html(outcome, frame, title)
    with new_file(path) as draft:
        draft.write_text(page, encoding="utf-8", newline="\n")


def report_html(outcome: Outcome, frame: pl.DataFrame, title: str) -> str:
    missing = [_experts] * (not outcome.experts) + [_next] * (not outcome.can_inspect)
    sections = [make(outcome, frame) for make in SECTIONS if make not in missing]
    links = [element("a", section.heading, href=f"#{section.key}") for section in sections]
    body = element(
        "body",
        symbols(),
        element("header", element("h1", element("bdi", one_line(title))), *_summary(outcome)),
        element("nav", *links, aria_label="Sections"),
        element("main", *map(_section, sections)),
        element("footer", f"Made by greenlabel {__version__}. This page is one file and loads nothing."),
    )
    return f"<!doctype html>\n{element('html', _head(title), body, lang='en')}\n"


def _head(title: str) -> Markup:
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("link", rel="icon", href="data:,"),
        element("title", one_line(title)),
        element("style", Markup(STYLE.read_text(encoding="utf-8"))),
    )


def _section(section: Section) -> Markup:
    heading = element("h2", section.heading, id=f"{section.key}-heading")
    return element(
        "section",
        heading,
        *section.parts,
        id=section.key,
        class_="wide" if section.is_wide else None,
        aria_labelledby=f"{section.key}-heading",
    )


# Summary


def _summary(outcome: Outcome) -> Iterator[Markup]:
    yield element("p", *_sentences(outcome), class_="lead")
    if outcome.numbers is not None:
        yield element("p", element("b", "Made from a sample. "), _sample_note(outcome))
    yield element("dl", *(_figure(*figure) for figure in key_figures(outcome)), class_="figures")
    if outcome.warnings:
        said = [element("li", one_line(warning)) for warning in outcome.warnings]
        yield element("div", element("h2", "Warnings"), element("ul", *said), class_="warnings")


def _sample_note(outcome: Outcome) -> str:
    return (
        f"The table was read in blocks, and {count(len(outcome.given))} of its {counted(outcome.n_rows, 'row')} were "
        "kept for this page: confidences, the map and the least confident rows are those of the sample. Rows and "
        "labels are counted in the whole table."
    )


def _sentences(outcome: Outcome) -> Iterator[Any]:
    given, filled = (int(part.sum()) for part in outcome.counts)
    yield f"Of {counted(outcome.n_rows, 'row')}, {count(given)} came with a label in "
    yield element("b", named(outcome.target))
    yield f" and {count(filled)} {'was' if filled == 1 else 'were'} filled in. "
    labels, right = outcome.hidden_and_right
    accuracy = outcome.estimated_accuracy
    if accuracy is not None:
        share, low, high = map(percent, accuracy)
        confident = f" with at least {percent(outcome.only_confident)} confidence" if outcome.only_confident else ""
        yield f"When given labels were hidden in turn and predicted from the others{confident}, {count(right)} of "
        yield f"{count(labels)} came out right{f' ({percent(right / labels)})' if labels else ''}. "
        yield f"Expect about {share} of the labels filled in to be right ({low} to {high}), as far as the labelled "
        yield f"rows are like the others. The two shares differ because {'; '.join(reasons(outcome))}."
    else:
        yield NO_ESTIMATE


def key_figures(outcome: Outcome) -> Iterator[tuple[str, str, str]]:
    """Name, figure and remark."""
    given, filled = (int(part.sum()) for part in outcome.counts)
    accuracy = outcome.estimated_accuracy
    if accuracy is not None:
        share, low, high = map(percent, accuracy)
        yield "estimated accuracy", share, f"{whole_percent(LEVEL)} interval {low} to {high}"
    else:
        yield "estimated accuracy", "unknown", "too few labels"
    yield "rows", count(outcome.n_rows), counted(len(outcome.classes), "class", "classes")
    yield "labels given", count(given), f"{percent(given / max(1, outcome.n_rows))} of the rows"
    confidence = outcome.confidence[~outcome.is_given & ~outcome.is_empty]
    yield (
        "labels filled in",
        count(filled),
        f"median confidence {percent(float(np.median(confidence)))}" if filled else "none",
    )
    if outcome.tally.empty:
        yield "left empty", count(outcome.tally.empty), "rows without a label"
    if outcome.tally.unreached:
        yield "unreached", count(outcome.tally.unreached), "rows that no label reaches"


def _figure(title: str, figure: str, remark: str) -> Markup:
    return element("div", element("dt", title), element("dd", element("b", figure), element("small", remark)))


def summary_html(outcome: Outcome) -> str:
    """The outcome in short, for notebooks, in the text and colours of what is around it."""
    figures = [(title, f"{figure} ({remark})") for title, figure, remark in key_figures(outcome)]
    head, *classes = class_rows(outcome)
    warnings = [element("p", element("b", "Warning: "), one_line(warning)) for warning in outcome.warnings]
    return element(
        "div",
        element("style", Markup(FRAGMENT_STYLE)),
        element(
            "table", element("caption", "Labels filled in"), element("tbody", *map(_line, figures)), class_="facts"
        ),
        element(
            "table",
            element("caption", "Classes"),
            element("thead", _line(head)),
            element("tbody", *map(_line, classes)),
        ),
        *warnings,
        class_="greenlabel-summary",
    )


def _line(cells: Sequence[str]) -> Markup:
    first, *rest = cells
    return element("tr", element("th", element("bdi", first), scope="row"), *(element("td", said) for said in rest))


# Sections


def _classes(outcome: Outcome, frame: pl.DataFrame) -> Section:
    return Section("classes", "Classes", [class_table(outcome)], is_wide=False)


def _confidence(outcome: Outcome, frame: pl.DataFrame) -> Section:
    rows = ~outcome.is_given
    if not rows.any():
        return Section("confidence", "Confidence", [element("p", "Every row came with a label.")], is_wide=False)
    confidence, is_empty = outcome.confidence[rows], outcome.is_empty[rows]
    note = "Rows without a given label, by the probability of their most likely class."
    if is_empty.any():
        note += " Hatched: left empty."
    parts = [element("p", note), confidence_chart(confidence, is_empty), confidence_table(confidence, is_empty)]
    return Section("confidence", "Confidence", parts, is_wide=False)


def _reliability(outcome: Outcome, frame: pl.DataFrame) -> Section:
    bins = outcome.reliability()
    if not bins:
        return Section("reliability", "Can the confidence be trusted?", [element("p", NO_ESTIMATE)], is_wide=False)
    confidence = outcome.validation.confidence.mean()
    right = outcome.validation.is_right.mean()
    note = (
        f"Given labels, each predicted from the others: {percent(float(confidence))} mean confidence, "
        f"{percent(float(right))} right. Points near the diagonal mean that a confidence can be taken at its word. "
        f"Lines are {whole_percent(LEVEL)} intervals, the numbers at the foot count the labels."
    )
    parts = [element("p", note), reliability_chart(bins, LEVEL), reliability_table(bins)]
    return Section("reliability", "Can the confidence be trusted?", parts, is_wide=False)


def _confusions(outcome: Outcome, frame: pl.DataFrame) -> Section:
    if not len(outcome.validation.rows):
        return Section("confusions", "Confusions", [element("p", NO_ESTIMATE)], is_wide=False)
    words = confusion_list(outcome) or element("p", "None: every hidden label was predicted right.")
    note = (
        "Down: the label that was given. Across: the prediction from the other labels. The diagonal is right; "
        "the stronger the colour, the larger the share of the row."
    )
    return Section("confusions", "Confusions", [element("p", note), confusion_table(outcome), words], is_wide=False)


def _map(outcome: Outcome, frame: pl.DataFrame) -> Section:
    rows = sample_for_map(outcome.is_given)
    shown = outcome.largest_classes(CLASSES_ON_MAP)
    names = [name(outcome.classes[j]) for j in shown]
    marks = map_marks(outcome, rows, shown)
    some = f"{count(len(rows))} of " if len(rows) < outcome.n_rows else ""
    note = f"{some}{counted(outcome.n_rows, 'row')} by their features: near means alike, the axes have no unit."
    drawing = element("div", map_chart(marks, names), _map_legend(marks, names, len(outcome.classes)), class_="beside")
    return Section("map", "Map of the rows", [element("p", note, " Point at a mark to see its row."), drawing])


def map_marks(outcome: Outcome, rows: Any, shown: Any) -> list[Mark]:
    """The sampled rows as marks: the index of the class among those shown, and what is said when pointed at."""
    colours = {int(j): index for index, j in enumerate(shown)}
    marks = []
    for row, (x, y) in zip(rows.tolist(), positions(outcome.X[rows]).tolist(), strict=True):
        prediction = int(outcome.predictions[row])
        likely = name(outcome.classes[outcome.probabilities[row].argmax()])
        if outcome.is_given[row]:
            said = f"{name(outcome.classes[outcome.given[row]])} (given)"
        elif prediction < 0:
            said = f"left empty (most likely {likely}, {percent(outcome.confidence[row])})"
        else:
            said = f"{name(outcome.classes[prediction])}, {percent(outcome.confidence[row])}"
        colour = colours.get(prediction, -1) if prediction >= 0 else -2
        marks.append(Mark(x, y, colour, bool(outcome.is_given[row]), f"Row {outcome.number(row):,}: {said}"))
    return marks


def _map_legend(marks: list[Mark], names: list[str], n_classes: int) -> Markup:
    drawn = {mark.colour for mark in marks}
    entries: list[tuple[Markup, Any]] = [(swatch(index), named(title, 24)) for index, title in enumerate(names)]
    if n_classes > len(names):
        entries.append((swatch(-1), f"{counted(n_classes - len(names), 'other class', 'other classes')}"))
    if -2 in drawn:
        entries.append((swatch(-2), "left empty"))
    entries.append((swatch(0, is_given=True), "larger, outlined: given"))
    return legend(entries)


def _next(outcome: Outcome, frame: pl.DataFrame) -> Section:
    heading = "Rows to label next"
    if not outcome.to_label:
        return Section("next", heading, [element("p", "None: every row came with a label.")])
    note = (
        "The best first: each stands for as many rows as it can that no label tells about yet, the ones before it "
        "counted as labelled. Label some of them, and fill the table in again."
    )
    return Section("next", heading, [element("p", note), suggestion_table(outcome, frame)])


def _uncertain(outcome: Outcome, frame: pl.DataFrame) -> Section:
    heading = "Least confident rows"
    if outcome.is_given.all():
        return Section("uncertain", heading, [element("p", "Every row came with a label.")])
    note = "The least confident predictions first: these rows are worth a look"
    note += "." if outcome.can_inspect else ", and a good choice to label next."
    return Section("uncertain", heading, [element("p", note), uncertain_table(outcome, frame)])


def _contradicted(outcome: Outcome, frame: pl.DataFrame) -> Section:
    heading = "Given labels that the others contradict"
    if not len(outcome.validation.rows):
        return Section("contradicted", heading, [element("p", NO_ESTIMATE)])
    wrong = int((~outcome.validation.is_right).sum())
    if not wrong:
        return Section("contradicted", heading, [element("p", "None: the other labels agree with each of them.")])
    share = f"{counted(wrong, 'given label')} of {count(len(outcome.validation.rows))}"
    note = f"{share}, the most confident contradiction first: mistakes or hard cases."
    if outcome.can_inspect:
        note += " Because of: the labels that say otherwise, and their shares of all that the graph says there."
    return Section("contradicted", heading, [element("p", note), contradiction_table(outcome, frame)])


def _experts(outcome: Outcome, frame: pl.DataFrame) -> Section:
    if len(outcome.validation.rows):
        note = "Several models are blended, weighted by how each does on given labels that were hidden from it."
    else:
        note = f"Several models are blended. {NO_ESTIMATE} So they weigh as they do before anything is known of them."
    return Section("experts", "Experts", [element("p", note), expert_table(outcome)])


def _columns(outcome: Outcome, frame: pl.DataFrame) -> Section:
    return Section("columns", "Columns", [column_table(outcome)])


def _making(outcome: Outcome, frame: pl.DataFrame) -> Section:
    seed = None if outcome.seed is None else str(outcome.seed)
    facts = [("method", one_line(outcome.method)), *graph_facts(outcome), ("seed", seed), ("greenlabel", __version__)]
    stages = [(one_line(stage), duration(seconds)) for stage, seconds in outcome.seconds.items()]
    if stages:
        stages.append(("all stages", duration(sum(outcome.seconds.values()))))
    lists = [
        element(
            "div", element("h3", title), element("dl", *(_fact(*fact) for fact in group if fact[1]), class_="facts")
        )
        for title, group in (("Method and graph", facts), ("Time", stages))
        if group
    ]
    return Section("making", "How it was made", [element("div", *lists, class_="beside")])


def _fact(key: str, value: Any) -> Markup:
    return element("div", element("dt", key), element("dd", value))


SECTIONS: list[Callable[[Outcome, pl.DataFrame], Section]] = [
    _classes,
    _confusions,
    _confidence,
    _reliability,
    _map,
    _next,
    _uncertain,
    _contradicted,
    _experts,
    _columns,
    _making,
]
