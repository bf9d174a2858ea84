"""Rebuild the figures of the documentation, on data that needs no download.

    python docs/make_figures.py              all of them
    python docs/make_figures.py mu gamma     some of them

Every figure is one function in FIGURES that writes one PNG file into docs/figures/. Accuracy is that on unlabelled
rows, over DRAWS draws of the labelled rows.
"""

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, TwoSlopeNorm
from matplotlib.figure import Figure
from PIL import Image
from threadpoolctl import threadpool_limits

from greenlabel import AnchoredGreenClassifier, BlendedClassifier, ConsistencyClassifier, GreenClassifier, suggest
from greenlabel.datasets import balance_scale, digits, keep_labels, two_rings
from greenlabel.demo import draw_before_and_after, map_of
from greenlabel.graph.anchors import bkhk_groups, mixing_matrix, mixing_weights
from greenlabel.graph.neighbors import exact_search
from greenlabel.graph.similarity import Graph, edge_weights_of_new_rows, gaussian_width, knn_graph
from greenlabel.metrics import unlabelled_accuracy
from greenlabel.operators.green import DirectGreen

FOLDER = Path(__file__).parent / "figures"
DPI = 120
DRAWS = 5
MAX_BYTES = 150_000

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLUE, ORANGE, GREEN, PURPLE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9"
GREY, LIGHT, DARK = "0.72", "0.87", "0.25"
CLASSES = np.array([BLUE, ORANGE])  # class 0, the outer ring, and class 1, the inner one
LINES = (BLUE, ORANGE, GREEN, PURPLE)
MARKERS = ("o", "s", "^", "D")
STROKES = ("-", "-", "--", "-.")
DIVERGING = LinearSegmentedColormap.from_list("classes", [BLUE, "0.93", ORANGE])
STYLE = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "axes.axisbelow": True,
}

Array = np.ndarray[Any, Any]


# What figures share


def canvas(width: float, height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **options)


def save(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=DPI)
    shrink(path)


def shrink(path: Path) -> None:
    """A picture of too many bytes in 256 colours, which takes a third of them."""
    if path.stat().st_size < MAX_BYTES:
        return
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def plane(axes: Axes, title: str) -> None:
    """A map of rows: equal units, no ticks."""
    axes.set(title=title, xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set_visible(False)


def mark_labels(axes: Axes, X: Array, few: Array, size: float = 75) -> None:
    given = few != -1
    axes.scatter(*X[given].T, s=size, c=CLASSES[few[given]], edgecolors="black", linewidths=1.1, zorder=5)


def draw_edges(axes: Axes, X: Array, graph: Graph, widths: float | Callable[[Array], Array] = 0.8) -> None:
    edges = graph.S.tocoo()
    one_way = edges.row < edges.col
    lines = X[np.column_stack([edges.row[one_way], edges.col[one_way]])]
    linewidths = widths(edges.data[one_way]) if callable(widths) else widths
    axes.add_collection(LineCollection(lines, colors=GREY, linewidths=linewidths, zorder=1))


def lines_to(axes: Axes, start: Array, ends: Array, widths: Array, color: str) -> None:
    segments = [(start, end) for end in ends]
    axes.add_collection(LineCollection(segments, colors=color, linewidths=widths, zorder=1))


def small_rings() -> tuple[Array, Array, Array]:
    """The running example: 150 rows of the blurred rings, three labels on each."""
    X, y = two_rings(connected=True)
    X, y = X[::10], y[::10]
    return X, y, keep_labels(y, 3, random_state=20)


def graph_of(X: Array, k: int, weights: str = "adaptive") -> Graph:
    return knn_graph(exact_search(X, len(X)), k, weights, gaussian_width(X))


def draws(y: Array, per_class: int) -> list[Array]:
    return [keep_labels(y, per_class, random_state=draw) for draw in range(DRAWS)]


def relabelled_accuracy(model: Any, X: Array, y: Array, per_class: int) -> list[float]:
    """Accuracy in percent over the draws of labels, all on one graph."""
    found = []
    for few in draws(y, per_class):
        model = model.relabel(few) if hasattr(model, "classes_") else model.fit(X, few)
        found.append(100 * unlabelled_accuracy(y, model.transduction_, is_given(few)))
    return found


def is_given(few: Array) -> Array:
    return few != ("" if few.dtype.kind == "U" else -1)


def curve(axes: Axes, x: Iterable[float], runs: Iterable[list[float]], which: int, label: str) -> None:
    """Mean over the draws, and a band from the worst to the best."""
    x, Y = list(x), np.array(list(runs))
    axes.fill_between(x, Y.min(axis=1), Y.max(axis=1), color=LINES[which], alpha=0.12, linewidth=0)
    axes.plot(x, Y.mean(axis=1), label=label, **stroke(which))


def stroke(which: int) -> dict[str, Any]:
    return {"color": LINES[which], "marker": MARKERS[which], "linestyle": STROKES[which], "markersize": 4.5}


def measured(axes: Axes, title: str, xlabel: str, ticks: Iterable[float] | None = None) -> None:
    axes.set(title=title, xlabel=xlabel, xscale="log", ylabel="accuracy on unlabelled rows, %")
    axes.grid(color=LIGHT, linewidth=0.6)
    if ticks is not None:
        ticks = list(ticks)
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.minorticks_off()


def best_of(times: int, work: Callable[[], Any]) -> float:
    """Seconds of the fastest of a few runs."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


# The README


def draw_digits(path: Path) -> None:
    """What ``greenlabel demo`` draws."""
    X, y = digits()
    few = keep_labels(y, 10, random_state=0)
    given = few != -1
    answer = GreenClassifier(random_state=0).fit(X, few).transduction_
    draw_before_and_after(path, map_of(X), answer, given, (answer != y) & ~given)
    shrink(path)


# How it works


def draw_rows(path: Path) -> None:
    X, y, few = small_rings()
    figure, (given, wanted) = canvas(8, 3.9, 1, 2)
    given.scatter(*X.T, s=16, color=GREY, linewidths=0)
    mark_labels(given, X, few)
    plane(given, f"what we have: {len(X)} rows, {(few != -1).sum()} labels")
    wanted.scatter(*X.T, s=16, c=CLASSES[y], linewidths=0)
    mark_labels(wanted, X, few)
    plane(wanted, "what we want: the label of every row")
    save(figure, path)


def draw_graph(path: Path) -> None:
    X, _, few = small_rings()
    figure, panels = canvas(11, 3.9, 1, 3)
    for axes, k in zip(panels, (2, 5, 20), strict=True):
        graph = graph_of(X, k)
        draw_edges(axes, X, graph)
        axes.scatter(*X.T, s=10, color=DARK, linewidths=0, zorder=2)
        mark_labels(axes, X, few)
        pieces = "one piece" if graph.n_components == 1 else f"{graph.n_components} pieces"
        plane(axes, f"{k} neighbours: {pieces}")
    save(figure, path)


def draw_weights(path: Path) -> None:
    X, _, few = small_rings()
    k, row = 10, 12
    figure, (profile, picture) = canvas(9.5, 4, 1, 2, width_ratios=[1.25, 1])
    dist2, _ = exact_search(X, len(X)).nearest(X[[row]], k + 2, np.array([row]))
    ranks = np.arange(1, k + 1)
    gaussian = np.exp(-dist2[0, :k] / gaussian_width(X))
    choices = {"adaptive": mixing_weights(dist2[:, : k + 1])[0], "gaussian": gaussian, "binary": np.ones(k)}
    for which, (name, weight) in enumerate(choices.items()):
        profile.plot(ranks, weight / weight.max(), label=f'"{name}"', **stroke(which))
    profile.set(xlabel="neighbour of one row, nearest first", ylabel="weight (largest = 1)", xticks=ranks)
    profile.set(ylim=(0, 1.05), title="three ways to weigh ten neighbours")
    profile.grid(color=LIGHT, linewidth=0.6)
    profile.legend(loc="lower left")
    draw_edges(picture, X, graph_of(X, 5), lambda weight: 5 * weight)
    picture.scatter(*X.T, s=9, color=DARK, linewidths=0, zorder=2)
    mark_labels(picture, X, few)
    plane(picture, "adaptive weights, five neighbours\n(thicker line: more alike)")
    save(figure, path)


def draw_green(path: Path) -> None:
    X, _, few = small_rings()
    graph = graph_of(X, 5)
    rows = np.array([np.flatnonzero(few == 1)[0], np.flatnonzero(few == 0)[0]])
    G = DirectGreen(graph, 0.01 * graph.mean_degree).columns(rows)
    outline = {"edgecolors": GREY, "linewidths": 0.4}
    figure, panels = canvas(9.4, 4, 1, 2)
    scale = TwoSlopeNorm(0, 2 * G.min(), np.quantile(G, 0.99))
    for axes, column, row in zip(panels, G.T, rows, strict=True):
        draw_edges(axes, X, graph, 0.4)
        shown = axes.scatter(*X.T, s=30, c=column, cmap="PRGn", norm=scale, zorder=3, **outline)
        axes.scatter(*X[row], s=130, facecolors="none", edgecolors="black", linewidths=1.6, zorder=5)
        plane(axes, f"one label on the {'inner' if few[row] == 1 else 'outer'} ring (circled)")
    figure.colorbar(shown, ax=panels, label="influence: a column of G", shrink=0.85, ticks=[-1, -0.5, 0, 2, 4, 6])
    save(figure, path)


def draw_scores(path: Path) -> None:
    X, y, few = small_rings()
    model = GreenClassifier(5).fit(X, few)
    lead = model.scores_[:, 1] - model.scores_[:, 0]
    wrong = (model.transduction_ != y) & (few == -1)
    figure, (scores, decision) = canvas(9.4, 4, 1, 2)
    top = np.quantile(np.abs(lead), 0.95)
    shown = scores.scatter(*X.T, s=30, c=lead, cmap=DIVERGING, vmin=-top, vmax=top, linewidths=0)
    mark_labels(scores, X, few)
    plane(scores, "scores: F of the inner class minus F of the outer")
    figure.colorbar(shown, ax=scores, shrink=0.85)
    decision.scatter(*X.T, s=30, c=CLASSES[model.transduction_], linewidths=0)
    decision.scatter(*X[wrong].T, s=90, facecolors="none", edgecolors="black", linewidths=1.2)
    mark_labels(decision, X, few)
    plane(decision, f"decision: the larger score ({wrong.sum()} wrong, circled)")
    save(figure, path)


def draw_probability(path: Path) -> None:
    figure, (picture, reliability) = canvas(9.8, 4.1, 1, 2)
    X, _, few = small_rings()
    model = GreenClassifier(5).fit(X, few)
    p_inner = model.label_distributions_[:, 1]
    shown = picture.scatter(*X.T, s=30, c=p_inner, cmap=DIVERGING, vmin=0, vmax=1, linewidths=0)
    mark_labels(picture, X, few)
    plane(picture, "probability of the inner class")
    figure.colorbar(shown, ax=picture, shrink=0.85)
    draw_reliability(reliability)
    save(figure, path)


def draw_reliability(axes: Axes) -> None:
    """How often digits are right, by how sure the model is, over all draws."""
    X, y = digits()
    edges = np.array([0.6, 0.8, 0.9, 0.95])
    axes.plot([0, 1], [0, 1], color=GREY, linestyle="--", linewidth=1)
    for which, per_class in enumerate((3, 10, 30)):
        sure, right = confidence_and_truth(X, y, per_class)
        group = np.digitize(sure, edges)
        size = np.bincount(group)
        x, share = np.bincount(group, sure) / size, np.bincount(group, right) / size
        axes.plot(x, share, label=f"{per_class} labels per class", **stroke(which))
    axes.set(
        xlabel="probability of the chosen class",
        ylabel="share that is right",
        title="digits: what it says, and what is true",
    )
    axes.set(xlim=(0.27, 1.02), ylim=(0.27, 1.02), aspect="equal")
    axes.grid(color=LIGHT, linewidth=0.6)
    axes.legend(loc="lower right")


def confidence_and_truth(X: Array, y: Array, per_class: int) -> tuple[Array, Array]:
    """Of all unlabelled rows in all draws: the largest probability, and whether its class is right."""
    sure, right = [], []
    for few in draws(y, per_class):
        model = GreenClassifier().fit(X, few)
        sure.append(model.label_distributions_.max(axis=1)[few == -1])
        right.append((model.transduction_ == y)[few == -1])
    return np.concatenate(sure), np.concatenate(right)


def draw_two_rings(path: Path) -> None:
    X, y = two_rings()
    few = keep_labels(y, 10, random_state=0)
    models = {
        "original method (mu = 0)": GreenClassifier(20, mu=0, solver="eigen").fit(X, few),
        'improved method (mu = "auto")': GreenClassifier(20).fit(X, few),
    }
    figure, panels = canvas(9, 6.6, 2, 2, height_ratios=[1.75, 1])
    for (name, model), (picture, spread) in zip(models.items(), panels.T, strict=True):
        right = unlabelled_accuracy(y, model.transduction_, few != -1)
        picture.scatter(*X.T, s=7, c=CLASSES[model.transduction_], linewidths=0)
        mark_labels(picture, X, few, 45)
        plane(picture, f"{name}: {right:.0%} right")
        draw_spread(spread, model.scores_[:, 1] - model.scores_[:, 0], y)
    panels[1, 0].set_ylabel("rows")
    panels[1, 1].legend(loc="upper right")
    save(figure, path)


def draw_spread(axes: Axes, lead: Array, y: Array) -> None:
    """The lead of the inner class in each ring, as two histograms."""
    low, high = np.quantile(lead, [0.005, 0.995])
    bins = np.linspace(low, high, 60)
    for ring, name in ((0, "rows of the outer ring"), (1, "rows of the inner ring")):
        axes.hist(lead[y == ring], bins, color=CLASSES[ring], alpha=0.75, label=name)
    axes.axvline(0, color="black", linewidth=1)
    axes.set_xlabel("score of the inner class minus score of the outer")


def draw_mu_on_two_rings(path: Path) -> None:
    X, y = two_rings()
    mus = np.logspace(-12, 1, 14)
    models = [GreenClassifier(20, mu=mu, solver="direct") for mu in mus]
    original = GreenClassifier(20, mu=0, solver="eigen")
    figure, axes = canvas(6, 3.9)
    for which, per_class in enumerate((1, 10)):
        label = f"{per_class} label{'s' * (per_class > 1)} per class"
        curve(axes, mus, [relabelled_accuracy(model, X, y, per_class) for model in models], which, label)
        level = np.mean(relabelled_accuracy(original, X, y, per_class))
        axes.axhline(level, color=LINES[which], linestyle=":", linewidth=1.5, label="mu = 0 (original)")
    mark_default(axes, GreenClassifier(20).fit(X, keep_labels(y, 1, random_state=0)).mu_)
    measured(axes, "two rings in two pieces", "mu")
    axes.set_ylim(33, 104)
    axes.legend(loc="center left")
    save(figure, path)


def mark_default(axes: Axes, value: float, name: str = '"auto"') -> None:
    axes.axvline(value, color="black", linewidth=1, linestyle=":")
    axes.annotate(f" {name}", (value, 0.01), xycoords=("data", "axes fraction"))


def draw_bkhk(path: Path) -> None:
    X, _ = two_rings()
    figure, panels = canvas(11.5, 3.2, 1, 4)
    colours = ListedColormap([BLUE, ORANGE, GREEN, PURPLE, SKY, "#E69F00", "#F0E442", "0.45"])
    for axes, m in zip(panels, (2, 4, 8, 64), strict=True):
        group = bkhk_groups(X, m, np.random.default_rng(0))
        sizes = np.bincount(group)
        P = np.array([X[group == g].mean(axis=0) for g in range(m)])
        axes.scatter(*X.T, s=5, c=group % 8, cmap=colours, vmin=0, vmax=7, linewidths=0)
        axes.scatter(*P.T, s=34, color="white", edgecolors="black", linewidths=1.2, zorder=3)
        rows = f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()} or {sizes.max()}"
        plane(axes, f"{m} groups of {rows} rows")
    save(figure, path)


def draw_anchored_graph(path: Path) -> None:
    X, _, few = small_rings()
    model = AnchoredGreenClassifier(32, 3, random_state=0).fit(X, few)
    P = model.anchors_
    Z = mixing_matrix(X, exact_search(P, len(X)), 3)
    row = Z.data.reshape(-1, 3).min(axis=1).argmax()  # the row whose three weights are the most alike
    mass = np.asarray(Z.sum(axis=0)).ravel()
    figure, (mixing, similarity) = canvas(9.4, 4, 1, 2)
    for i, x in enumerate(X):
        width, colour = (8, GREEN) if i == row else (3, GREY)
        lines_to(mixing, x, P[Z[[i]].indices], width * Z[[i]].data, colour)
    mixing.scatter(*X.T, s=10, color=DARK, linewidths=0, zorder=2)
    mixing.scatter(*P.T, s=45, color="white", edgecolors=DARK, linewidths=1.2, zorder=3)
    mixing.scatter(*X[row], s=50, color=GREEN, edgecolors="black", zorder=4)
    plane(mixing, "Z: each row is a mix of 3 of the 32 anchors (white)")
    S_row = (Z[[row]].toarray() / mass) @ Z.T.toarray()
    shown = similarity.scatter(*X.T, s=30, c=S_row[0], cmap="Greens", vmin=0, edgecolors=LIGHT, linewidths=0.5)
    similarity.scatter(*X[row], s=50, color=GREEN, edgecolors="black", zorder=4)
    plane(similarity, "S = B B': how similar other rows are to the green one")
    figure.colorbar(shown, ax=similarity, shrink=0.85)
    save(figure, path)


def draw_new_rows(path: Path) -> None:
    X, _, few = small_rings()
    new = np.array([[-1.35, 0.55]])
    model = GreenClassifier(5).fit(X, few)
    figure, (ties, field) = canvas(9.8, 4.1, 1, 2)
    tie = edge_weights_of_new_rows(exact_search(X, len(X)), new, 5, "adaptive", 1.0)
    ties.scatter(*X.T, s=60, c=CLASSES[model.transduction_], linewidths=0, zorder=2)
    lines_to(ties, new[0], X[tie.indices], 12 * tie.data, DARK)
    ties.scatter(*new.T, s=240, marker="*", color="white", edgecolors="black", linewidths=1.2, zorder=5)
    plane(ties, f"a new row and its five nearest rows:\ninner with probability {model.predict_proba(new)[0, 1]:.2f}")
    ties.set(xlim=(-2.4, -0.4), ylim=(-0.45, 1.55))
    ties.spines[:].set(visible=True, color=GREY)
    side = np.linspace(-2.7, 2.7, 220)
    grid = np.array(np.meshgrid(side, side)).reshape(2, -1).T
    p_inner = model.predict_proba(grid)[:, 1].reshape(len(side), -1)
    shown = field.imshow(p_inner, cmap=DIVERGING, vmin=0, vmax=1, origin="lower", extent=(-2.7, 2.7) * 2, alpha=0.55)
    field.contour(side, side, p_inner, [0.5], colors="black", linewidths=1)
    field.scatter(*X.T, s=7, color=DARK, linewidths=0)
    mark_labels(field, X, few)
    plane(field, "probability of the inner class\nfor every place in the plane")
    figure.colorbar(shown, ax=field, shrink=0.85)
    save(figure, path)


# Parameters


def shipped() -> dict[str, tuple[Array, Array]]:
    return {"digits": digits(), "two rings, blurred": two_rings(connected=True), "balance scale": balance_scale()}


def draw_n_neighbors(path: Path) -> None:
    figure, panels = canvas(12, 3.9, 1, 3)
    ks = (2, 3, 5, 10, 20, 40, 80)
    for axes, (name, (X, y)) in zip(panels, shipped().items(), strict=True):
        for which, weights in enumerate(("adaptive", "gaussian", "binary")):
            runs = [relabelled_accuracy(GreenClassifier(k, weights=weights), X, y, 10) for k in ks]
            curve(axes, ks, runs, which, f'"{weights}"')
        measured(axes, f"{name}, 10 labels per class", "n_neighbors", ks)
    for axes in panels[1:]:
        axes.set_ylabel("")
    panels[0].legend(title="weights", loc="lower left")
    save(figure, path)


def draw_mu(path: Path) -> None:
    figure, panels = canvas(12, 3.9, 1, 3)
    shifts = np.logspace(-5, 2, 15)  # n mu, in parts of the mean degree; "auto" is 0.01
    for axes, (name, (X, y)) in zip(panels, shipped().items(), strict=True):
        auto = GreenClassifier().fit(X, keep_labels(y, 1, random_state=0)).mu_
        mus = shifts / 0.01 * auto
        models = [GreenClassifier(mu=mu, solver="direct") for mu in mus]
        for which, per_class in enumerate((1, 3, 10, 30)):
            label = f"{per_class} label{'s' * (per_class > 1)} per class"
            curve(axes, mus, [relabelled_accuracy(model, X, y, per_class) for model in models], which, label)
        mark_default(axes, auto)
        measured(axes, name, "mu")
    for axes in panels[1:]:
        axes.set_ylabel("")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    save(figure, path)


def draw_n_anchors(path: Path) -> None:
    X, y = digits()
    sizes = (32, 64, 128, 256, 512, 1024)
    figure, (accuracy, cost) = canvas(9.4, 4, 1, 2)
    for which, how in enumerate(("bkhk", "kmeans", "random")):
        runs = [anchored_accuracy(X, y, m, 5, how) for m in sizes]
        curve(accuracy, sizes, runs, which, f'"{how}"')
    seconds = {how: [anchored_seconds(X, y, m, how) for m in sizes] for how in ("bkhk", "kmeans", "random")}
    for which, (how, taken) in enumerate(seconds.items()):
        ratio = np.array(taken) / seconds["bkhk"][0]
        cost.plot(sizes, ratio, label=f'"{how}"', **stroke(which))
    accuracy.axhline(knn_accuracy(X, y), color="black", linestyle=":", linewidth=1)
    accuracy.annotate("GreenClassifier", (32, knn_accuracy(X, y)), xytext=(0, 3), textcoords="offset points")
    measured(accuracy, "digits, 10 labels per class", "n_anchors", sizes)
    measured(cost, 'time of fit ("bkhk" with 32 anchors = 1)', "n_anchors", sizes)
    plain_log(cost, (0.5, 1, 2, 5, 10))
    accuracy.legend(title="anchors", loc="lower right")
    save(figure, path)


def anchored_accuracy(X: Array, y: Array, m: int, k: int, how: str = "bkhk") -> list[float]:
    """Accuracy over the draws of labels, each with its own draw of anchors."""
    found = []
    for draw, few in enumerate(draws(y, 10)):
        model = AnchoredGreenClassifier(m, k, anchors=how, random_state=draw).fit(X, few)
        found.append(100 * unlabelled_accuracy(y, model.transduction_, few != -1))
    return found


def anchored_seconds(X: Array, y: Array, m: int, how: str) -> float:
    few = keep_labels(y, 10, random_state=0)
    return best_of(15, lambda: AnchoredGreenClassifier(m, anchors=how, random_state=0).fit(X, few))


def knn_accuracy(X: Array, y: Array) -> float:
    return float(np.mean(relabelled_accuracy(GreenClassifier(), X, y, 10)))


def draw_anchored_neighbors(path: Path) -> None:
    X, y = digits()
    ks = (2, 3, 5, 10, 20, 40)
    figure, axes = canvas(5.6, 4)
    for which, m in enumerate((64, 256, 1024)):
        curve(axes, ks, [anchored_accuracy(X, y, m, k) for k in ks], which, f"{m:,} anchors")
    measured(axes, "digits, 10 labels per class", "n_neighbors of AnchoredGreenClassifier", ks)
    axes.legend(loc="lower left")
    save(figure, path)


def draw_many_rows(path: Path) -> None:
    copies = (1, 4, 16, 64)
    X, y = digits()
    sizes = [len(y) * times for times in copies]
    figure, axes = canvas(5.8, 4)
    rivals = {
        "GreenClassifier": lambda n: GreenClassifier(random_state=0),
        "AnchoredGreenClassifier": lambda n: AnchoredGreenClassifier(min(2048, n // 4), random_state=0),
    }
    seconds = {name: [seconds_on_copies(model, X, y, times) for times in copies] for name, model in rivals.items()}
    for which, (name, taken) in enumerate(seconds.items()):
        axes.plot(sizes, np.array(taken) / seconds["GreenClassifier"][0], label=name, **stroke(which))
    measured(axes, "time of fit (GreenClassifier on 1,797 rows = 1)", "rows (blurred copies of the digits)", sizes)
    plain_log(axes, (0.2, 0.5, 1, 2, 5, 10, 20, 50))
    axes.legend()
    save(figure, path)


def plain_log(axes: Axes, ticks: tuple[float, ...]) -> None:
    axes.set(yscale="log", ylabel="times as long")
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()


def seconds_on_copies(model: Any, X: Array, y: Array, times: int) -> float:
    X, y = np.tile(X, (times, 1)), np.tile(y, times)
    X = (X + np.random.default_rng(0).normal(scale=2, size=X.shape)).astype(np.float32)
    few = keep_labels(y, 10, random_state=0)
    return best_of(2, lambda: model(len(y)).fit(X, few))


def draw_gamma(path: Path) -> None:
    figure, panels = canvas(12, 3.9, 1, 3)
    gammas = np.logspace(-4, 2, 13)
    for axes, (name, (X, y)) in zip(panels, shipped().items(), strict=True):
        models = [ConsistencyClassifier(gamma=gamma) for gamma in gammas]
        for which, per_class in enumerate((1, 3, 10, 30)):
            label = f"{per_class} label{'s' * (per_class > 1)} per class"
            curve(axes, gammas, [relabelled_accuracy(model, X, y, per_class) for model in models], which, label)
        mark_default(axes, 1, "default")
        measured(axes, name, "gamma")
    for axes in panels[1:]:
        axes.set_ylabel("")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    save(figure, path)


# The blend


def expert_accuracy(model: BlendedClassifier, y: Array, few: Array) -> dict[str, float]:
    """Accuracy in % on unlabelled rows of each expert alone, and of the blend."""
    free = ~is_given(few)
    alone = model.fitted_.codes_of_experts()
    found = {name: 100 * (model.classes_[codes] == y)[free].mean() for name, codes in alone.items()}
    return found | {"blend": 100 * (model.transduction_ == y)[free].mean()}


def band() -> tuple[Array, Array]:
    """A band along the first of eight columns; the others are noise, and louder."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 8)) * ([1.0] + [2.0] * 7)
    return X, (np.abs(X[:, 0]) < 0.5).astype(int)


def mixed_clouds() -> tuple[Array, Array]:
    """Two clouds in ten columns, so near that neighbours mix and a plane between them does not."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    return rng.normal(size=(600, 10)) + 1.8 * y[:, None] * (np.arange(10) < 2), y


def draw_graph_or_not(path: Path) -> None:
    figure, panels = canvas(12, 4.2, 1, 3)
    rings = two_rings(connected=True)
    sets = {"classes that bend": rings, "one boundary, blurred": mixed_clouds(), "noise in most columns": band()}
    for axes, (title, (X, y)) in zip(panels, sets.items(), strict=True):
        few = keep_labels(y, 20, random_state=0)
        model = BlendedClassifier(random_state=0).fit(X, few)
        right = expert_accuracy(model, y, few)
        axes.scatter(X[:, 0], X[:, 1], s=7, c=CLASSES[y], linewidths=0)
        axes.scatter(*X[is_given(few), :2].T, s=60, c=CLASSES[y[is_given(few)]], edgecolors="black", linewidths=1.2)
        names = ("graph", "trees", "logistic", "blend")
        axes.set(title=f"{title}\n" + "   ".join(f"{name} {right[name]:.0f}" for name in names), xticks=[], yticks=[])
    save(figure, path)


def draw_blend(path: Path) -> None:
    from sklearn.datasets import load_breast_cancer, load_wine

    sets = shipped() | {"wine": load_wine(return_X_y=True), "breast cancer": load_breast_cancer(return_X_y=True)}
    figure, axes = canvas(11, 3.9)
    for place, (X, y) in enumerate(sets.values()):
        runs = []
        for seed, few in enumerate(draws(y, 10)):
            runs.append(expert_accuracy(BlendedClassifier(random_state=seed).fit(X, few), y, few))
        names = list(runs[0])
        for which, name in enumerate(names):
            mean = np.mean([run[name] for run in runs])
            color = "black" if name == "blend" else (*LINES, SKY, GREY)[which]
            bar = axes.bar(place + 0.12 * (which - 3), mean, 0.11, color=color, label=name if place == 0 else None)
            if name == "blend":
                axes.bar_label(bar, fmt="%.1f", fontsize=8)
    axes.set(xticks=range(len(sets)), xticklabels=sets, ylim=(40, 103), ylabel="accuracy, %")
    axes.grid(axis="y", color="0.92")
    figure.legend(loc="outside lower center", ncols=7)
    save(figure, path)


# Which rows to label


def with_labels(y: Array, rows: Array) -> Array:
    few = np.full(len(y), -1)
    few[rows] = y[rows]
    return few


def accuracy_over(model: Any, y: Array, order: Array, counts: Iterable[int]) -> list[float]:
    """Accuracy in percent on the rows without a label, by the first rows of an order; one class predicts itself."""
    found = []
    for count in counts:
        few = with_labels(y, order[:count])
        known = np.unique(y[order[:count]])
        predicted = model.relabel(few).transduction_ if len(known) > 1 else np.full(len(y), known[0])
        found.append(100 * unlabelled_accuracy(y, predicted, is_given(few)))
    return found


def suggested_order(model: Any, X: Array, y: Array, counts: Iterable[int]) -> Array:
    """Rows in the order in which they are suggested, labelled after each of these counts."""
    order = np.empty(0, int)
    for count in counts:
        n = count - len(order)
        if len(np.unique(y[order])) > 1:
            found = suggest(model.relabel(with_labels(y, order)), n)
        else:
            found = suggest(X, n, exclude=order, random_state=0)
        order = np.concatenate([order, [one.row for one in found]])
    return order


def draw_which_rows(path: Path) -> None:
    counts = (10, 20, 30, 50, 70, 100)
    sets = {"digits": digits(), "balance scale": balance_scale()}
    figure, panels = canvas(9.5, 4, 1, 2)
    for axes, (title, (X, y)) in zip(panels, sets.items(), strict=True):
        y = np.unique(y, return_inverse=True)[1]
        model = GreenClassifier().fit(X, y)  # the graph, for labels to come
        orders = [np.random.default_rng(draw).permutation(len(y)) for draw in range(10)]
        random = np.array([accuracy_over(model, y, order, counts) for order in orders])
        suggested = accuracy_over(model, y, suggested_order(model, X, y, counts), counts)
        axes.plot(counts, suggested, label="suggested", **stroke(0))
        curve(axes, counts, random.T.tolist(), 1, "random, ten draws")
        measured(axes, title, "labels", counts)
        axes.legend(loc="lower right")
    save(figure, path)


FIGURES: dict[str, Callable[[Path], None]] = {
    "graph_or_not": draw_graph_or_not,
    "blend": draw_blend,
    "digits": draw_digits,
    "rows": draw_rows,
    "graph": draw_graph,
    "weights": draw_weights,
    "green": draw_green,
    "scores": draw_scores,
    "probability": draw_probability,
    "two_rings": draw_two_rings,
    "mu_on_two_rings": draw_mu_on_two_rings,
    "bkhk": draw_bkhk,
    "anchored_graph": draw_anchored_graph,
    "new_rows": draw_new_rows,
    "n_neighbors": draw_n_neighbors,
    "mu": draw_mu,
    "n_anchors": draw_n_anchors,
    "anchored_neighbors": draw_anchored_neighbors,
    "many_rows": draw_many_rows,
    "gamma": draw_gamma,
    "which_rows": draw_which_rows,
}


def main(names: list[str]) -> None:
    unknown = [name for name in names if name not in FIGURES]
    if unknown:
        raise SystemExit(f"no figure is called {', '.join(unknown)}; choose from {', '.join(FIGURES)}")
    matplotlib.rcParams.update(STYLE)
    FOLDER.mkdir(exist_ok=True)
    for name in names or FIGURES:
        start = time.perf_counter()
        with threadpool_limits(1):  # times that depend less on what else the machine does
            FIGURES[name](FOLDER / f"{name}.png")
        print(f"{name}.png  {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
