"""Tables: published | measured | difference, marked where it exceeds twice the pooled deviation.

    pooled deviation = sqrt((s_published^2 + s_measured^2) / 2)

Where the paper prints no deviation, the measured one stands for both. Deviations are those of a sample (n - 1).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise, product

import numpy as np

from greenlabel.paper import published
from greenlabel.paper.items import CHECKED, GREY_METHODS, anchor_counts, summed_data
from greenlabel.paper.protocol import OURS, PER_CLASS, SUMMED
from greenlabel.paper.run import REFUSED, Results
from greenlabel.paper.sources import GREY_LEVELS, SOURCES, Data
from greenlabel.paper.store import Trial

MARK = "≠"
ABSENT = "data not available here"
CONCLUSION_NOTE = "Differences are the largest over all trials; other numbers are means."
FIRST_EXPONENT_ANCHORS = 256  # below, time hardly depends on the anchors


@dataclass
class Table:
    """Rows of text; a row whose first cell is empty belongs to the one above."""

    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    note: str = ""


@dataclass(frozen=True)
class Measured:
    """Mean and deviation over trials."""

    mean: float
    deviation: float
    trials: int


@dataclass(frozen=True)
class Comparison:
    """One cell: what the paper prints, what was measured (None without data, or "OM"), and the mark."""

    data: str
    method: str
    printed: str
    measured: Measured | str | None

    @property
    def difference(self) -> float | None:
        number = published.number(self.printed)
        return self.measured.mean - number.mean if number and isinstance(self.measured, Measured) else None

    @property
    def exceeds(self) -> bool:
        number = published.number(self.printed)
        if number is None or not isinstance(self.measured, Measured) or self.measured.trials < 2:
            return False
        return is_apart(number, self.measured)


def is_apart(number: published.Number, measured: Measured) -> bool:
    """Whether two means differ by more than twice the pooled deviation."""
    theirs = measured.deviation if number.deviation is None else number.deviation
    pooled = np.sqrt((theirs**2 + measured.deviation**2) / 2)
    return bool(abs(measured.mean - number.mean) > 2 * pooled)


def measure(results: Results, seeds: range, quantity: str, name: str, method: str, m: int = 0) -> Measured | str | None:
    """Mean and deviation of a quantity over the trials of ten labels per class."""
    return summary(results, (Trial(name, method, PER_CLASS, seed, m) for seed in seeds), quantity)


def summary(results: Results, trials: Iterable[Trial], quantity: str) -> Measured | str | None:
    found = [results[trial] for trial in trials if trial in results]
    if any(REFUSED in result for result in found):
        return "OM"
    values = [result[quantity] for result in found]
    if not values:
        return None
    return Measured(float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0, len(values))


def compare(
    results: Results, seeds: range, quantity: str, printed: dict[str, dict[str, str]], split: bool = False
) -> list[Comparison]:
    """All cells of a published table. With ``split``, columns are "quantity method" (Table V)."""
    cells = []
    for name, columns in printed.items():
        for (label, source, suffix), (column, text) in product(_variants(name, quantity), columns.items()):
            what, method = _margin_column(column) if split else (quantity, column)
            if source != GREY_LEVELS or method in GREY_METHODS:
                measured = measure(results, seeds, what, source, method + suffix)
                cells.append(Comparison(label, column, text, measured))
    return cells


def _variants(name: str, quantity: str) -> Iterator[tuple[str, str, str]]:
    """Rows that are compared with one printed row: their label, their data, and what the method's name gains."""
    yield name, name, ""
    if name == "USPS" and quantity != "seconds":
        yield GREY_LEVELS, GREY_LEVELS, ""
    if quantity == "margin":
        yield f"{summed_data(name)}{SUMMED}", summed_data(name), SUMMED


def _margin_column(column: str) -> tuple[str, str]:
    part, _, method = column.partition(" ")
    return part.replace("LM", "margin"), method


def comparison_table(cells: list[Comparison], decimals: int) -> Table:
    """Three lines for each data set, the paper's columns."""
    columns = list(dict.fromkeys(cell.method for cell in cells))
    table = Table(["data", "", *columns])
    for name in dict.fromkeys(cell.data for cell in cells):
        of = {cell.method: cell for cell in cells if cell.data == name}
        table.rows.append([name, "published", *(of[c].printed if c in of else "" for c in columns)])
        if all(cell.measured is None for cell in of.values()):
            table.rows.append(["", "measured", ABSENT, *[""] * (len(columns) - 1)])
            continue
        table.rows.append(["", "measured", *(show(of[c].measured, decimals) if c in of else "" for c in columns)])
        table.rows.append(["", "difference", *(_difference(of[c], decimals) if c in of else "" for c in columns)])
    return table


def show(measured: Measured | str | None, decimals: int) -> str:
    if measured is None:
        return ""
    if isinstance(measured, str):
        return measured
    return f"{measured.mean:.{decimals}f}" + (f"±{measured.deviation:.{decimals}f}" if measured.trials > 1 else "")


def _difference(cell: Comparison, decimals: int) -> str:
    gap = cell.difference
    return "" if gap is None else f"{gap:+.{decimals}f}{f' {MARK}' if cell.exceeds else ''}"


def time_table(results: Results, seeds: range) -> Table:
    """Published and measured seconds; machines differ, so there is no difference to take."""
    cells = compare(results, seeds, "seconds", published.TIME)
    table = comparison_table(cells, 2)
    table.rows = [_without_deviation(row) for row in table.rows if row[1] != "difference"]
    return table


def _without_deviation(row: list[str]) -> list[str]:
    return [cell.partition("±")[0] if row[1] == "measured" else cell for cell in row]


def beside_table(
    results: Results, seeds: range, quantity: str, names: tuple[str, ...], decimals: int, everyday: tuple[str, ...]
) -> Table:
    """Ours and the everyday alternatives on the same labels; the best mean of a row is bold."""
    methods = (*OURS, *everyday)
    table = Table(["data", *methods])
    for name in names:
        cells = [measure(results, seeds, quantity, name, method) for method in methods]
        if all(cell is None for cell in cells):
            table.rows.append([name, ABSENT, *[""] * (len(methods) - 1)])
            continue
        pick = min if quantity == "seconds" else max
        best = pick((cell.mean for cell in cells if isinstance(cell, Measured)), default=None)
        texts = [show(cell, decimals) for cell in cells]
        if quantity == "seconds":
            texts = [text.partition("±")[0] for text in texts]
        bold = [isinstance(cell, Measured) and cell.mean == best for cell in cells]
        table.rows.append([name, *(f"**{text}**" if b else text for text, b in zip(texts, bold, strict=True))])
    return table


def dataset_table(data: dict[str, Data]) -> Table:
    """Sizes as printed and as loaded."""
    table = Table(["data", "", "rows", "classes", "dimensions", "anchors", "remarks"])
    for name, printed in published.DATASETS.items():
        table.rows.append([name, "published", *printed.values(), ""])
        if name not in data:
            table.rows.append(["", "loaded", ABSENT, "", "", "", ""])
            continue
        X, y = data[name].X, data[name].y
        sizes = [f"{len(X):,}", str(y.max() + 1), str(X.shape[1]), printed["anchors"]]
        table.rows.append(["", "loaded", *sizes, _remarks(data[name], printed, sizes)])
    return table


def _remarks(data: Data, printed: dict[str, str], sizes: list[str]) -> str:
    labels = ("rows", "classes", "dimensions")
    differing = [
        what
        for what, size in zip(labels, sizes, strict=False)
        if printed[what].replace(",", "") != size.replace(",", "")
    ]
    remarks = [f"{' and '.join(differing)} differ"] if differing else []
    expected = SOURCES[data.name].content if data.name in SOURCES else None
    if expected is not None and expected != data.content:
        remarks.append("other values than in the reference copy")
    if data.is_test is not None:
        remarks.append(f"scored on its {data.is_test.sum()} test rows")
    return "; ".join(remarks)


@dataclass(frozen=True)
class AnchorPoint:
    """GF(A) with m anchors: accuracy in %, and seconds without the graph."""

    m: int
    accuracy: Measured
    seconds: Measured


def anchor_points(results: Results, seeds: range, name: str) -> list[AnchorPoint]:
    points = []
    for m in anchor_counts(name):
        accuracy, seconds = (measure(results, seeds, q, name, "GF(A)", m) for q in ("accuracy", "solve_seconds"))
        if isinstance(accuracy, Measured) and isinstance(seconds, Measured):
            points.append(AnchorPoint(m, accuracy, seconds))
    return points


def exponent(points: list[AnchorPoint]) -> float | None:
    """The b of time ~ m^b, fitted where there are enough anchors to matter; None without two points."""
    far = [point for point in points if point.m >= FIRST_EXPONENT_ANCHORS]
    if len(far) < 2:
        return None
    return float(np.polyfit(np.log([p.m for p in far]), np.log([p.seconds.mean for p in far]), 1)[0])


def anchor_table(results: Results, seeds: range) -> Table:
    table = Table(["data", "anchors", "accuracy, %", "seconds without the graph", "exponent of time in m"])
    for name in published.SMALL:
        points = anchor_points(results, seeds, name)
        if not points:
            table.rows.append([name, ABSENT, "", "", ""])
            continue
        b = exponent(points)
        rows = [["", f"{p.m:,}", show(p.accuracy, 2), f"{p.seconds.mean:.4f}", ""] for p in points]
        rows[0][0], rows[0][-1] = name, "" if b is None else f"{b:.2f}"
        table.rows += rows
    return table


def conclusion_table(results: Results, seeds: range) -> Table:
    """Each conclusion with its numbers over all trials."""
    table = Table(["conclusion", "data", "what", "number"], note=CONCLUSION_NOTE)
    claims = {
        "conclusion 1": "1: GF and GF(G) are one method",
        "conclusion 2": "2: both codings of the labels agree",
        "conclusion 3": "3: the original method balances every connected block",
        "conclusion 5": "5: LLGC at gamma = n mu is GF(G)",
    }
    for method, claim in claims.items():
        for name in CHECKED[method]:
            table.rows += _numbers(results, seeds, method, name, claim)
    table.rows += _agreement(results, seeds) + _margin_ratio(results, seeds)
    table.rows.sort(key=lambda row: row[0])
    for above, row in reversed(list(pairwise(table.rows))):
        row[0] = "" if row[0] == above[0] else row[0]
    return table


def _numbers(results: Results, seeds: range, method: str, name: str, claim: str) -> list[list[str]]:
    found = [results[trial] for seed in seeds if (trial := Trial(name, method, PER_CLASS, seed)) in results]
    if not found:
        return [[claim, name, ABSENT, ""]]
    pick = {what: max if "differ" in what else np.mean for what in found[0]}
    return [[claim, name, what, f"{pick[what]([result[what] for result in found]):.3g}"] for what in pick]


def _agreement(results: Results, seeds: range) -> list[list[str]]:
    """Conclusion 1 on all data: how far the accuracies of GF and GF(G) are apart at most."""
    gaps = [
        abs(results[trial]["accuracy"] - results[other]["accuracy"])
        for name in published.SMALL
        for seed in seeds
        if (trial := Trial(name, "GF", PER_CLASS, seed)) in results
        and (other := Trial(name, "GF(G)", PER_CLASS, seed)) in results
        and REFUSED not in results[trial] | results[other]
    ]
    claim = "1: GF and GF(G) are one method"
    return [[claim, f"all sets, {len(gaps)} trials", "difference of accuracy, %", f"{max(gaps):.3g}"]] if gaps else []


def _margin_ratio(results: Results, seeds: range) -> list[list[str]]:
    """Conclusion 4: the smallest ratio of GF(G)'s margin to LLGC's."""
    rows = []
    for quantity in ("margin_l", "margin_u"):
        of = partial(measure, results, seeds, quantity)
        pairs = [(of(name, "GF(G)"), of(name, "LLGC")) for name in published.SMALL]
        ratios = [a.mean / b.mean for a, b in pairs if isinstance(a, Measured) and isinstance(b, Measured)]
        if ratios:
            what = f"smallest ratio of {quantity.replace('margin', 'LM')}, GF(G) to LLGC"
            rows.append(["4: margins exceed those of LLGC", f"{len(ratios)} sets", what, f"{min(ratios):.3g}"])
    return rows
