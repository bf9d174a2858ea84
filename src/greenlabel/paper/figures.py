"""The paper's figures, drawn from the same results as the tables. Colours are those of Okabe and Ito."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel import GreenClassifier
from greenlabel._common.files import whole_file
from greenlabel.paper.items import LABEL_COUNTS, LABEL_METHODS, LARGE_LABEL_METHODS
from greenlabel.paper.protocol import GAUSSIAN, MU, PER_CLASS, draw_labels, score
from greenlabel.paper.published import LARGE, SMALL
from greenlabel.paper.run import Results
from greenlabel.paper.sources import Data
from greenlabel.paper.store import Trial
from greenlabel.paper.tables import ABSENT, Measured, anchor_points, exponent, summary

Axes = Any  # matplotlib is imported where something is drawn, not before

BLUE, ORANGE, GREEN, PURPLE, SKY, YELLOW, BLACK = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000",
)  # fmt: skip
LINES: dict[str, Any] = {  # colour, marker, stroke
    "LLGC": (SKY, "s", "-"),
    "HF": (YELLOW, "^", "-"),
    "GF": (PURPLE, "D", "-"),
    "GF(G)": (GREEN, "v", "--"),
    "GF(A)": (BLUE, "o", "-"),
    "1NN": (YELLOW, "^", "-"),
    "PolySVM": (PURPLE, "D", "-"),
    "RbfSVM": (GREEN, "v", "-"),
    "GreenClassifier": (BLACK, "", ":"),
    "AnchoredGreenClassifier": (BLACK, "", "-."),
}
RINGS = np.array([BLUE, ORANGE])  # class 0, the outer ring, and class 1, the inner one
STYLE: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "greenlabel",  # the same picture is the same file
    "svg.fonttype": "none",
}
DPI = 110


@contextmanager
def drawing(stem: Path, width: float, height: float) -> Iterator[Any]:
    """A figure that is written as SVG and PNG when the block ends."""
    import matplotlib
    from matplotlib.figure import Figure
    from PIL import Image

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        with whole_file(stem.with_suffix(".svg")) as draft:
            figure.savefig(draft, dpi=DPI, metadata={"Date": None})
        with whole_file(stem.with_suffix(".png")) as draft:
            figure.savefig(draft, dpi=DPI)
            with Image.open(draft) as picture:  # 256 colours are a third of the bytes
                small = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
            small.save(draft, optimize=True)


def label_curves(stem: Path, results: Results, seeds: range, names: tuple[str, ...], methods: tuple[str, ...]) -> None:
    """Accuracy versus labels per class, one panel for each data set."""
    rows = (len(names) + 2) // 3
    with drawing(stem, 10.5, 3.1 * rows + 0.4) as figure:
        panels = figure.subplots(rows, 3, squeeze=False).ravel()
        for axes, name in zip(panels, names, strict=True):
            axes.set_title(name)
            drawn = [_curve(axes, results, seeds, name, method) for method in methods]
            if not any(drawn):
                _say_absent(axes)
                continue
            axes.set(xlabel="labels per class", ylabel="accuracy, %", xticks=[1, 5, 10, 15, 20])
            axes.grid(color="0.92")
        _legend(figure, methods)


def _curve(axes: Axes, results: Results, seeds: range, name: str, method: str) -> bool:
    points = [
        (count, cell.mean)
        for count in LABEL_COUNTS
        if isinstance(
            cell := summary(results, (Trial(name, method, count, seed) for seed in seeds), "accuracy"), Measured
        )
    ]
    colour, marker, stroke = LINES[method]
    axes.plot(*zip(*points, strict=True), stroke, color=colour, marker=marker, ms=3.5, lw=1.4) if points else None
    return bool(points)


def _legend(figure: Any, methods: tuple[str, ...]) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=c, marker=m, linestyle=s, ms=4) for c, m, s in (LINES[method] for method in methods)]
    names = [f"{name} (ours)" if name.endswith("Classifier") else name for name in methods]
    figure.legend(lines, names, loc="outside lower center", ncols=len(methods))


def _say_absent(axes: Axes) -> None:
    axes.text(0.5, 0.5, ABSENT, ha="center", va="center", transform=axes.transAxes, color="0.45")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_color("0.85")


def anchor_curves(stem: Path, results: Results, seeds: range) -> None:
    """Accuracy (left axis) and time without the graph (right axis) versus the number of anchors."""
    with drawing(stem, 11.5, 6.4) as figure:
        for axes, name in zip(figure.subplots(2, 3).ravel(), SMALL, strict=True):
            axes.set_title(name)
            points = anchor_points(results, seeds, name)
            if not points:
                _say_absent(axes)
                continue
            m = [point.m for point in points]
            axes.plot(m, [point.accuracy.mean for point in points], "-o", color=BLUE, ms=4)
            axes.set(xlabel="anchors", xscale="log")
            axes.set_xticks(ticks := [32, 128, 512, 2048], map(str, ticks))
            axes.set_xticks([], minor=True)
            axes.set_ylabel("accuracy, %", color=BLUE)
            time = axes.twinx()
            time.plot(m, [1000 * point.seconds.mean for point in points], "--s", color=ORANGE, ms=4)
            time.set(yscale="log", ylim=(1, 2000))
            time.yaxis.set_major_formatter("{x:g}")
            time.spines["right"].set_visible(True)
            time.set_ylabel("time without the graph, ms", color=ORANGE)
            b = exponent(points)
            if b is not None:
                axes.set_title(f"{name}: time ∝ m$^{{{b:.1f}}}$ from m = 256")
            axes.grid(color="0.92")


def rings(stem: Path, data: Data, seed: int) -> None:
    """Truth, connections, the original GF and the improved one; crosses are the labelled rows."""
    from matplotlib.collections import LineCollection

    X = data.X
    few = draw_labels(data, PER_CLASS, seed)
    models: dict[str, Any] = {
        "Original GF": GreenClassifier(mu=0.0, solver="eigen", **GAUSSIAN).fit(X, few),
        "Improved GF": GreenClassifier(mu=MU, **GAUSSIAN).fit(X, few),
    }
    graph = models["Improved GF"].graph_
    with drawing(stem, 11.5, 3.3) as figure:
        truth, edges, *predicted = figure.subplots(1, 4)
        _scatter(truth, X, data.y, few, "Ground truth")
        pairs = graph.S.tocoo()
        one_way = pairs.row < pairs.col
        lines = X[np.column_stack([pairs.row[one_way], pairs.col[one_way]])]
        edges.add_collection(LineCollection(lines, colors="0.35", linewidths=0.25, rasterized=True))
        blocks = "one block" if graph.n_components == 1 else f"{graph.n_components} blocks"
        _scatter(edges, X, None, few, f"Connections: {blocks}")
        for axes, (name, model) in zip(predicted, models.items(), strict=True):
            right = score(data, few, model.transduction_)["accuracy"]
            _scatter(axes, X, model.transduction_, few, f"{name}: {right:.1f}% right")


def _scatter(axes: Axes, X: NDArray[Any], y: NDArray[Any] | None, few: NDArray[Any], title: str) -> None:
    colours = "0.55" if y is None else RINGS[y]
    axes.scatter(*X.T, s=3 if y is not None else 1, c=colours, linewidths=0, rasterized=True)
    if y is not None:
        axes.scatter(*X[few != -1].T, s=48, marker="x", color="black", linewidths=1.6)
    axes.set(title=title, xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set_visible(False)


def draw(item: str, folder: Path, results: Results, seeds: range, data: dict[str, Data]) -> bool:
    """Draw the figure of an item, ``<item>.svg`` and ``<item>.png``; False for an item without one."""
    stem = folder / item
    if item == "labels":
        label_curves(stem, results, seeds, SMALL, LABEL_METHODS)
    elif item == "labels-large":
        label_curves(stem, results, seeds, LARGE, LARGE_LABEL_METHODS)
    elif item == "anchors":
        anchor_curves(stem, results, seeds)
    elif item in ("rings", "rings-connected"):
        rings(stem, data[item], seeds[0])
    return item in ("labels", "labels-large", "anchors", "rings", "rings-connected")
