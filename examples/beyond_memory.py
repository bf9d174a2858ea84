"""More rows than memory, on two local workers

200,000 rows in a folder of Parquet files, read by two worker processes and never held at once. The predictions are, to
the last bit, those of a single process; more rows, or workers on other machines, change nothing but the time.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from dask.distributed import Client

from greenlabel import AnchoredGreenClassifier
from greenlabel.blocks import distribute, open_rows

FILES, ROWS, CLASSES = 8, 25_000, 6


def write_file(path, seed):
    """Points on spirals, one arm for each class; one in a thousand has a label."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, CLASSES, ROWS)
    turn = rng.random(ROWS) ** 0.5
    angle = 2 * np.pi * (kind / CLASSES + 0.6 * turn) + rng.normal(scale=0.07, size=ROWS)
    label = pa.array(kind, mask=rng.random(ROWS) > 0.001)
    columns = {"x": turn * np.cos(angle), "y": turn * np.sin(angle), "kind": label}
    pq.write_table(pa.table(columns), path, row_group_size=5_000)
    return kind


def main():
    with tempfile.TemporaryDirectory() as folder:
        truth = np.concatenate([write_file(Path(folder) / f"rows-{i}.parquet", i) for i in range(FILES)])
        with Client(n_workers=2, threads_per_worker=1, dashboard_address=None):
            source, y = open_rows(folder, "kind")
            model = AnchoredGreenClassifier(512, random_state=0).fit(distribute(source), y)
            sizes, right, sample = [], 0, []
            for rows, classes, _ in model.answers():  # block by block
                sizes.append(len(rows))
                right += (classes == truth[rows]).sum()
                sample.append(classes[::50])
        alone = AnchoredGreenClassifier(512, random_state=0).fit(folder, "kind")
        print(f"{sum(sizes):,} rows in {len(sizes)} blocks, {right / sum(sizes):.1%} right")
        print("a single process says the same:", np.array_equal(alone.transduction_[::50], np.concatenate(sample)))
        points = np.concatenate(
            [np.column_stack([t["x"], t["y"]]) for t in map(pq.read_table, sorted(Path(folder).iterdir()))]
        )[::50]
    figure, axis = plt.subplots(figsize=(5, 5))
    axis.scatter(*points.T, c=np.concatenate(sample), s=3, cmap="tab10", vmax=9)
    axis.axis("equal")
    axis.axis("off")
    axis.set_title(f"One row in fifty of {sum(sizes):,}")
    figure.tight_layout()
    figure.savefig("beyond_memory.png", dpi=100)


if __name__ == "__main__":  # worker processes import this file
    main()
