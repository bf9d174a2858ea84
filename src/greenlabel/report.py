"""Results as pictures and tables."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel.files import whole_file

PALETTE = "tab10"


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
