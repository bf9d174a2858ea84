"""Everything on one page: Markdown, and one HTML file that needs no other; a CSV of each item."""

import base64
import csv
import html
import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import psutil
from threadpoolctl import threadpool_info

from greenlabel import __version__
from greenlabel._common.files import whole_file
from greenlabel.paper import published
from greenlabel.paper.figures import draw
from greenlabel.paper.items import ITEMS, LABEL_COUNTS
from greenlabel.paper.protocol import EVERYDAY, PER_CLASS, units_differ
from greenlabel.paper.run import REFUSED, Results
from greenlabel.paper.sources import Data
from greenlabel.paper.store import PROTOCOL
from greenlabel.paper.tables import (
    MARK,
    Comparison,
    Measured,
    Table,
    anchor_table,
    beside_table,
    compare,
    comparison_table,
    conclusion_table,
    dataset_table,
    time_table,
)

TITLE = "The paper, reproduced"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "faiss-cpu", "matplotlib")
PRINTED = {  # item: quantity, published table, decimals
    "accuracy": ("accuracy", published.ACCURACY, 2),
    "f1": ("f1", published.F1, 4),
    "margin": ("margin", published.MARGIN, 4),
    "large-accuracy": ("accuracy", published.LARGE_ACCURACY, 2),
    "large-f1": ("f1", published.LARGE_F1, 4),
}
BESIDE = {  # item: quantity, decimals, data sets, everyday methods that the paper's columns lack
    "accuracy": ("accuracy", 2, published.SMALL, EVERYDAY),
    "f1": ("f1", 4, published.SMALL, EVERYDAY),
    "time": ("seconds", 2, published.SMALL, EVERYDAY),
    "large-accuracy": ("accuracy", 2, published.LARGE, ("logistic", "extra trees")),
    "large-f1": ("f1", 4, published.LARGE, ("logistic", "extra trees")),
}
NOTES = {
    "accuracy": "Percent of unlabelled rows. USPS 0-255 is USPS in grey levels 0 to 255 instead of -1 to 1, against "
    "the same published numbers: the paper's rule for the Gaussian width is not free of the unit of the features.",
    "f1": "Harmonic mean of macro precision and macro recall.",
    "time": "Seconds of a whole fit, graph and predictions included, on this machine and on the paper's: read them "
    "along a row, not across. HF and LLGC are solved sparsely here.",
    "margin": "Labels coded +1, -1, 0, as in the paper. Rows with A + A' add both directions of the graph, so that "
    "mutual neighbours count twice; the paper's equation takes their union.",
    "labels": "Means over the trials. The curves of GF and GF(G) lie on each other.",
    "anchors": "The exponent b of time ∝ m^b is fitted from 256 anchors on. Time is that of Z'Z, the m x m system and "
    "the scores; Z'Z is sparse here, so the paper's n m² becomes n k² plus m³ / 3.",
    "large-accuracy": "Percent of unlabelled rows. PolySVM and RbfSVM are scikit-learn's SVC with its defaults, which "
    "decides among many classes by the votes of all pairs.",
    "labels-large": "The middle panel of the paper's figure is headed USPS; its text speaks of SensIT.",
    "rings": "k = 20, ten labels per class (crosses). The original method splits both rings.",
    "rings-connected": "k = 20, ten labels per class (crosses). On a connected graph both methods work.",
}
BESIDE_TITLE = "Ours and everyday alternatives, same labels"


@dataclass
class Section:
    """One item on the page."""

    item: str
    tables: list[tuple[str, Table]] = field(default_factory=list)  # with a title each
    figure: bool = False
    cells: list[Comparison] = field(default_factory=list)


def sections(items: list[str], folder: Path, results: Results, seeds: range, data: dict[str, Data]) -> list[Section]:
    """The tables and figures of the items; figures are drawn into the folder."""
    page = []
    for item in items:
        section = Section(item, figure=draw(item, folder, results, seeds, data))
        if item in PRINTED:
            quantity, printed, decimals = PRINTED[item]
            section.cells = compare(results, seeds, quantity, printed, split=item == "margin")
            section.tables.append(("", comparison_table(section.cells, decimals)))
        elif item == "time":
            section.cells = compare(results, seeds, "seconds", published.TIME)
            section.tables.append(("", time_table(results, seeds)))
        elif item == "datasets":
            section.tables.append(("", dataset_table(data)))
        elif item == "anchors":
            section.tables.append(("", anchor_table(results, seeds)))
        elif item == "conclusions":
            section.tables.append(("", conclusion_table(results, seeds)))
        if item in BESIDE:
            quantity, decimals, names, everyday = BESIDE[item]
            table = beside_table(results, seeds, quantity, names, decimals, everyday)
            scaled = [name for name in names if name in data and units_differ(data[name].X)]
            table.note = f"Standardised, because the ranges of columns differ: {', '.join(scaled)}." if scaled else ""
            section.tables.append((BESIDE_TITLE, table))
        page.append(section)
    return page


def machine() -> list[str]:
    """Versions and hardware."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    threads = max((pool["num_threads"] for pool in threadpool_info()), default=1)
    hardware = f"{psutil.cpu_count()} cores, threads {threads}, {psutil.virtual_memory().total / 2**30:.0f} GiB"
    return [
        f"greenlabel {__version__}, protocol {PROTOCOL}; Python {platform.python_version()}, {libraries}",
        f"{platform.system()} on {platform.machine()}, {hardware}; {datetime.now(UTC):%Y-%m-%d}",
    ]


def summary_lines(page: list[Section], seeds: range) -> list[str]:
    """What was run, on what, and how many of the cells agree."""
    cells = [cell for section in page for cell in section.cells if section.item in ("accuracy", "large-accuracy")]
    ours = [cell for cell in cells if cell.method in ("GF(G)", "GF(A)") and cell.data in published.DATASETS]
    known = [cell for cell in ours if isinstance(cell.measured, Measured)]
    agreeing = sum(not cell.exceeds for cell in known)
    lines = [
        *machine(),
        f"{len(seeds)} trial{'s' if len(seeds) > 1 else ''}, seeds {seeds[0]} to {seeds[-1]}; {PER_CLASS} labels per "
        "class unless said otherwise",
        f"{MARK} marks a difference of more than twice the pooled deviation",
    ]
    if known and len(seeds) > 1:
        lines.append(f"accuracy of GF(G) and GF(A): {agreeing} of {len(known)} cells with data agree with the paper")
    return lines


def markdown(page: list[Section], seeds: range) -> str:
    parts = [f"# {TITLE}", "\n".join(f"- {line}" for line in summary_lines(page, seeds))]
    for section in page:
        item = ITEMS[section.item]
        parts.append(f"## {item.title} (`{section.item}`, {item.where})")
        if section.item in NOTES:
            parts.append(NOTES[section.item])
        if section.figure:
            parts.append(f"![{item.title}]({section.item}.png)")
        for title, table in section.tables:
            parts += ([f"**{title}**"] if title else []) + [_markdown_table(table)]
            parts += [table.note] if table.note else []
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    rows = [table.columns, ["---"] * len(table.columns), *table.rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


CSS = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h2 { margin-top: 2.5rem; border-top: 1px solid #ddd; padding-top: 1rem } code { background: #f3f3f3 }
table { border-collapse: collapse; margin: .8rem 0; font-size: 13px; font-variant-numeric: tabular-nums }
th, td { padding: .15rem .6rem; text-align: right; white-space: nowrap } td:last-child { white-space: normal }
th:first-child, td:first-child { text-align: left } tr.first td { border-top: 1px solid #ccc }
td.apart { background: #fbe3d6; font-weight: 600 } img { max-width: 100% } .scroll { overflow-x: auto }
"""


def html_page(page: list[Section], seeds: range, folder: Path) -> str:
    """One file: style and pictures are inside."""
    body = [f"<h1>{TITLE}</h1>", "<ul>", *(f"<li>{html.escape(line)}</li>" for line in summary_lines(page, seeds))]
    body.append("</ul>")
    for section in page:
        item = ITEMS[section.item]
        body.append(
            f"<h2 id='{section.item}'>{item.title} <small>(<code>{section.item}</code>, {item.where})</small></h2>"
        )
        body.append(f"<p>{html.escape(NOTES.get(section.item, ''))}</p>")
        if section.figure:
            picture = base64.b64encode((folder / f"{section.item}.png").read_bytes()).decode()
            body.append(f"<img alt='{item.title}' src='data:image/png;base64,{picture}'>")
        for title, table in section.tables:
            body.append(f"<h3>{title}</h3>" if title else "")
            body.append(_html_table(table))
            body.append(f"<p>{html.escape(table.note)}</p>")
    head = f"<meta charset='utf-8'><meta name='viewport' content='width=device-width'><title>{TITLE}</title>"
    lines = "\n".join(body)
    return f"<!doctype html>\n<html lang='en'><head>{head}<style>{CSS}</style></head><body>\n{lines}\n</body></html>\n"


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in table.columns)
    rows = []
    for row in table.rows:
        cells = "".join(_html_cell(cell) for cell in row)
        rows.append(f"<tr{' class=first' if row[0] else ''}>{cells}</tr>")
    lines = "\n".join(rows)
    return f"<div class='scroll'><table><tr>{head}</tr>\n{lines}\n</table></div>"


def _html_cell(cell: str) -> str:
    text = html.escape(cell)
    if text.startswith("**"):
        text = f"<b>{text.strip('*')}</b>"
    return f"<td{' class=apart' if MARK in cell else ''}>{text}</td>"


def write_csv(path: Path, section: Section, results: Results) -> None:
    """Cells of a comparison; curves point by point; other items as their table stands."""
    if section.cells:
        rows = [["data", "method", "published", "measured", "deviation", "trials", "difference", "exceeds"]]
        rows += [_csv_row(cell) for cell in section.cells]
        if section.item == "time":
            rows = [row[:-2] for row in rows]  # machines differ
    elif section.item.startswith("labels"):
        rows = [["data", "method", "labels_per_class", "seed", "accuracy", "f1"]]
        rows += [
            [t.data, t.method, str(t.per_class), str(t.seed), str(result["accuracy"]), str(result["f1"])]
            for t, result in sorted(results.items())
            if t.data in ITEMS[section.item].data and t.per_class in LABEL_COUNTS and not t.anchors
            and "f1" in result and REFUSED not in result
        ]  # fmt: skip
    else:
        rows = [row for _, table in section.tables for row in (table.columns, *table.rows)]
    with whole_file(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def _csv_row(cell: Comparison) -> list[str]:
    row = [cell.data, cell.method, cell.printed]
    if not isinstance(cell.measured, Measured):
        return [*row, cell.measured or "", "", "", "", ""]
    m, gap = cell.measured, cell.difference
    return [
        *row,
        f"{m.mean:.6g}",
        f"{m.deviation:.6g}",
        str(m.trials),
        "" if gap is None else f"{gap:.6g}",
        str(cell.exceeds),
    ]


def write_page(folder: Path, items: list[str], results: Results, seeds: range, data: dict[str, Data]) -> None:
    """page.md, page.html, and for each item its figure and its CSV."""
    page = sections(items, folder, results, seeds, data)
    for section in page:
        if section.tables or section.item.startswith("labels"):
            write_csv(folder / f"{section.item}.csv", section, results)
    for name, text in {"page.md": markdown(page, seeds), "page.html": html_page(page, seeds, folder)}.items():
        with whole_file(folder / name) as draft:
            draft.write_text(text, encoding="utf-8")
