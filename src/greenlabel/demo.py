"""Results as pictures and tables."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.files import whole_file
from greenlabel._common.threads import one_thread

PALETTE = "tab10"


def write_labels(path: Path, y: NDArray[Any], probability: NDArray[np.floating], given: NDArray[np.bool_]) -> None:
    """One line per row: its number, its label, and the source and confidence of the label."""
    with whole_file(path) as draft, draft.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["row", "label", "source", "confidence"])
        sources = np.where(given, "given", "predicted")
        confidence = np.where(given, 1.0, probability.max(axis=1))
        writer.writerows(
            (i, *line) for i, line in enumerate(zip(y, sources, (f"{p:.4f}" for p in confidence), strict=True))
        )


def map_of(X: NDArray[Any]) -> NDArray[np.floating]:
    """Positions of the rows in the plane, near where they are alike.

    On one thread: t-SNE's rounds are so short that threads spend their time waiting for each other, four times the
    work on two cores. Against the default settings (perplexity 30, angle 0.5, 500 rounds) no group moves.
    """
    from sklearn.manifold import TSNE

    with one_thread():
        return TSNE(init="pca", perplexity=20, max_iter=350, angle=0.8, random_state=0).fit_transform(X)


def draw_before_and_after(
    path: Path,
    positions: NDArray[np.floating],
    y: NDArray[np.integer],
    given: NDArray[np.bool_],
    wrong: NDArray[np.bool_],
) -> None:
    """Two maps of the rows in the plane: the labels that were given, and all labels, wrong ones circled."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 5.2), layout="constrained")
    before, after = figure.subplots(1, 2)
    dots = {"cmap": PALETTE, "vmin": y.min(), "vmax": y.max()}
    before.scatter(*positions.T, s=9, color="0.85", linewidths=0)
    before.scatter(*positions[given].T, s=34, c=y[given], edgecolors="black", linewidths=0.6, **dots)
    before.set_title(f"{given.sum():,} labels given")
    shown = after.scatter(*positions.T, s=9, c=y, linewidths=0, **dots)
    after.scatter(*positions[wrong].T, s=42, facecolors="none", edgecolors="black", linewidths=0.8)
    after.set_title(f"{(~given).sum():,} labels filled in, {wrong.sum():,} wrong (circled)")
    after.legend(*shown.legend_elements(num=None), loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    for axes in (before, after):
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
    with whole_file(path) as draft:
        figure.savefig(draft, dpi=130)
