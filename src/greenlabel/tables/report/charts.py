"""Charts of a report as SVG: arrays in, markup out. Colours and sizes of text are those of the page's style sheet.

No chart speaks by colour alone: bars carry their number, classes on the map a shape and a name, and a mark that is
pointed at says which row it is.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.text import shorten
from greenlabel.metrics import share_interval
from greenlabel.tables.report.markup import Markup, element, joined
from greenlabel.tables.report.words import count, counted, percent, width

Floats = NDArray[np.floating]
Bools = NDArray[np.bool_]

WIDE, HIGH = 400, 286  # of the two small charts
LEFT, RIGHT, TOP, FOOT = 52, 374, 34, 218  # where their axes are
BINS = 10
COLOURS = 8
SHAPES = (  # drawn around (0, 0): circle, square, triangle, diamond
    "M-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0 -6.4 0z",
    "M-2.9 -2.9h5.8v5.8h-5.8z",
    "M0 -3.9l3.6 6.4h-7.2z",
    "M0 -4.1l4.1 4.1l-4.1 4.1l-4.1 -4.1z",
)
SIZES = ("small", "large")  # of a predicted and of a given label
CROSS = "M-3 -3l6 6M3 -3l-6 6"
MAP_WIDE, MAP_HIGH, MAP_EDGE = 640, 520, 18
WIDTHS = (("WMwm@%…", 1.15), ("iIjlftr.,:;'|!()[] ", 0.5))  # of letters that are wider and narrower than others
ISOLATED = "\u2068{}\u2069"  # keeps text from right to left apart from what is around it


@dataclass(frozen=True)
class Axis:
    """Values from low to high as pixels from start to end."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: Any) -> Any:
        return self.start + (value - self.low) / ((self.high - self.low) or 1) * (self.end - self.start)


@dataclass(frozen=True)
class Mark:
    """One row on the map; its colour is the index of its class among those shown, -1 for others, -2 for no label."""

    x: float
    y: float
    colour: int
    is_given: bool
    title: str


def confidence_chart(confidence: Floats, is_empty: Bools) -> Markup:
    """Confidence of the predictions: rows without a given label, those left empty hatched."""
    index = confidence_bins(confidence)
    filled, empty = (np.bincount(index[rows], minlength=BINS) for rows in (~is_empty, is_empty))
    tallest = int((filled + empty).max())
    step = round_step(tallest)
    x, y = Axis(0, 1, LEFT, RIGHT), Axis(0, max(tallest, step), FOOT, TOP)
    bars = [
        part
        for b in range(BINS)
        if filled[b] + empty[b]
        for part in _bar(x(b / BINS) + 1.5, x((b + 1) / BINS) - 1.5, y, int(filled[b]), int(empty[b]))
    ]
    heights = range(0, max(tallest, step) + 1, step)
    return _svg(
        f"Histogram of the confidence of {counted(len(confidence), 'row')} without a given label; "
        "the numbers are in the table below it.",
        HATCH,
        *_axes(x, y, [(h, short_count(h)) for h in heights], "confidence", "rows"),
        *bars,
    )


def confidence_bins(confidence: Floats) -> NDArray[np.integer]:
    return np.minimum((confidence * BINS).astype(int), BINS - 1)


def _bar(left: float, right: float, y: Axis, filled: int, empty: int) -> Iterable[Markup]:
    tops = y(0), y(filled), y(filled + empty)
    for style, low, high in (("bar", tops[0], tops[1]), ("bar-empty", tops[1], tops[2])):
        if low > high:
            yield element("rect", class_=style, x=left, y=high, width=right - left, height=low - high)
    yield text((left + right) / 2, tops[2] - 4, bin_count(filled + empty), "middle", "number")


def reliability_chart(bins: Sequence[dict[str, float]], level: float) -> Markup:
    """Hidden labels by confidence: how often the prediction was right, with its interval; below, how many they were."""
    x, y = Axis(0, 1, LEFT, RIGHT), Axis(0, 1, FOOT, TOP)
    marks: list[Markup] = []
    for part in bins:
        rows = int(part["rows"])
        _, low, high = share_interval(round(part["accuracy"] * rows), rows, level)
        at, right = x(part["confidence"]), y(part["accuracy"])
        said = f"{percent(part['confidence'])} confidence, {percent(part['accuracy'])} right ({counted(rows, 'label')})"
        marks += [
            line(at, y(low), at, y(high), "whisker"),
            element("circle", element("title", said), class_="dot", cx=at, cy=right, r=5),
            text(x((part["from"] + part["to"]) / 2), FOOT + 36, bin_count(rows), "middle", "number"),
        ]
    return _svg(
        f"How often hidden labels were predicted right, by confidence, in {counted(len(bins), 'group')}; "
        "the numbers are in the table below it.",
        *_axes(x, y, [(t / 5, f"{t * 20}\u00a0%") for t in range(6)], "confidence", "right", is_counted=True),
        line(x(0), y(0), x(1), y(1), "ideal"),
        text(LEFT - 6, FOOT + 36, "labels", "end", "tick"),
        text(RIGHT, TOP - 16, "above the line: underconfident", "end", "note"),
        *marks,
    )


def map_chart(marks: Sequence[Mark], names: Sequence[str]) -> Markup:
    """Rows in the plane; given labels are drawn last, larger and with an outline, and the classes are named."""
    x, y = _map_axes(marks)
    groups: dict[tuple[bool, int], list[Markup]] = {}
    for mark in marks:
        title = element("title", mark.title)
        drawn = element(
            "use", title, href=f"#{symbol(mark.colour, mark.is_given)}", x=f"{x(mark.x):.1f}", y=f"{y(mark.y):.1f}"
        )
        groups.setdefault((mark.is_given, mark.colour), []).append(drawn)
    layers = [
        element("g", *drawn, class_=f"{'given' if is_given else 'predicted'} {paint(colour)}")
        for (is_given, colour), drawn in sorted(groups.items())
    ]
    given = sum(mark.is_given for mark in marks)
    return element(
        "svg",
        *layers,
        *_class_names(marks, names, x, y),
        viewBox=f"0 0 {MAP_WIDE} {MAP_HIGH}",
        class_="map crowded" if is_crowded(names) else "map",
        role="img",
        aria_label=f"Map of {counted(len(marks), 'row')}, {count(given)} of them with a given label; "
        f"classes shown: {', '.join(names)}.",
    )


def _map_axes(marks: Sequence[Mark]) -> tuple[Axis, Axis]:
    spans = [(min(values), max(values)) for values in ([m.x for m in marks], [m.y for m in marks])]
    (left, right), (low, high) = spans
    return (
        Axis(left, right, MAP_EDGE, MAP_WIDE - MAP_EDGE) if right > left else Axis(left, left + 1, MAP_WIDE / 2, 0),
        Axis(low, high, MAP_HIGH - MAP_EDGE, MAP_EDGE) if high > low else Axis(low, low + 1, MAP_HIGH / 2, 0),
    )


def is_crowded(names: Sequence[str]) -> bool:
    return sum(map(len, names)) > 60


def _class_names(marks: Sequence[Mark], names: Sequence[str], x: Axis, y: Axis) -> Iterable[Markup]:
    """The name of each class at its middle row; a name for which others leave no room there is in the legend alone."""
    taken: list[tuple[float, float, float]] = []
    size = 12 if is_crowded(names) else 20  # of letters, on the screen where they are largest
    high = 1.25 * size
    for colour, name in enumerate(names):
        own = np.array([(x(mark.x), y(mark.y)) for mark in marks if mark.colour == colour])
        if not len(own):
            continue
        shown = shorten(name, 18, tail=6)
        half = size * letter_widths(shown) / 2 + 3
        centre = own[np.abs(own - np.median(own, axis=0)).sum(axis=1).argmin()]
        across = float(np.clip(centre[0], half, MAP_WIDE - half))
        for offset in (0, high, -high, 2 * high, -2 * high):
            down = float(np.clip(centre[1] + offset, 20, MAP_HIGH - 8))
            if all(abs(down - v) >= high or abs(across - u) >= half + h for u, v, h in taken):
                taken.append((across, down, half))
                yield text(across, down, ISOLATED.format(shown), "middle", "class-name")
                break


def letter_widths(said: str) -> float:
    """At most how wide a text is in bold, in heights of its letters, whichever of the page's fonts there is."""
    return sum(
        1.4 if width(mark) > 1 else next((size for marks, size in WIDTHS if mark in marks), 0.85 - 0.1 * mark.islower())
        for mark in said
    )


def symbols() -> Markup:
    """The shapes of the map and its legend, to be put into the page once."""
    shapes = [
        element("path", id=f"{size}-{key}", d=shape, class_=size)
        for size in SIZES
        for key, shape in [*enumerate(SHAPES), ("none", CROSS)]
    ]
    return element("svg", element("defs", *shapes), class_="symbols", width=0, height=0, aria_hidden="true")


def swatch(colour: int, is_given: bool = False) -> Markup:
    """One mark of the map, for the legend."""
    drawn = element("use", href=f"#{symbol(colour, is_given)}", x=0, y=0)
    group = element("g", drawn, class_=f"{'given' if is_given else 'predicted'} {paint(colour)}")
    return element("svg", group, viewBox="-7 -7 14 14", width=18, height=18, class_="swatch", aria_hidden="true")


def symbol(colour: int, is_given: bool) -> str:
    """The shape of a class; colours come back after eight classes, then with another shape."""
    size = SIZES[is_given]
    if colour < 0:
        return f"{size}-0" if colour == -1 else f"{size}-none"
    return f"{size}-{(colour + colour // COLOURS) % len(SHAPES)}"


def paint(colour: int) -> str:
    return f"k{colour % COLOURS}" if colour >= 0 else "other" if colour == -1 else "none"


# Parts


HATCH = element(
    "defs",
    element(
        "pattern",
        element("rect", class_="hatch-ground", width=6, height=6),
        element("path", class_="hatch", d="M0 0v6"),
        id="hatch",
        width=6,
        height=6,
        patternUnits="userSpaceOnUse",
        patternTransform="rotate(45)",
    ),
)


def _svg(label: str, *children: Any) -> Markup:
    return element("svg", *children, viewBox=f"0 0 {WIDE} {HIGH}", class_="chart", role="img", aria_label=label)


def _axes(
    x: Axis, y: Axis, heights: Sequence[tuple[float, str]], across: str, up: str, is_counted: bool = False
) -> list[Markup]:
    """Lines and numbers of both axes; across always runs from 0 to 100 %, with room for counts below if asked for."""
    return [
        *(line(LEFT, y(value), RIGHT, y(value), "grid") for value, _ in heights),
        *(text(LEFT - 6, y(value) + 4, said, "end", "tick") for value, said in heights),
        *(text(x(t / 5), FOOT + 18, f"{t * 20}\u00a0%" if t else "0", "middle", "tick") for t in range(6)),
        line(LEFT, FOOT, RIGHT, FOOT, "axis"),
        text((LEFT + RIGHT) / 2, FOOT + (58 if is_counted else 42), across, "middle", "axis-name"),
        text(LEFT - 6, TOP - 16, up, "end", "axis-name"),
    ]


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> Markup:
    return element("line", class_=style, x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2))


def text(x: float, y: float, said: str, anchor: str, style: str) -> Markup:
    return element("text", said, class_=style, x=float(x), y=float(y), text_anchor=anchor)


def round_step(largest: int, max_steps: int = 5) -> int:
    """The smallest of 1, 2, 5, 10, 20, … that reaches the largest value in ``max_steps`` steps."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power * max_steps >= largest:
                return factor * power
        power *= 10


def short_count(number: int) -> str:
    """Where there is little room: 12345 -> 12k."""
    if number < 10_000:
        return count(number)
    return f"{number / 1e6:.3g}M" if number >= 999_500 else f"{number / 1e3:.0f}k"


def bin_count(number: int) -> str:
    """Where there is room for four characters: 1234 -> 1.2k."""
    if number >= 9_950:
        return short_count(max(number, 10_000))
    return f"{number / 1e3:.1f}k" if number >= 1_000 else str(number)


def legend(entries: Iterable[tuple[Markup, Any]]) -> Markup:
    return element("ul", *(element("li", joined(mark, " ", said)) for mark, said in entries), class_="legend")
