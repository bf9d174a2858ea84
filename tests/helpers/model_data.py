"""A small table of every kind of column, and the model files in tests/data that must load for ever.

PYTHONPATH=tests python -m helpers.model_data      writes them anew; only for a format that has not been released
"""

import datetime
import io
import json
import zipfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from greenlabel.tables.model_files.container import ARRAYS, FACTS

FOLDER = Path(__file__).parents[1] / "data"
ROWS = 48


def mixed_table(rows=ROWS):
    """Numbers, a category, a text, dates as such and as text, vectors; half of the labels of two classes."""
    rng = np.random.default_rng(7)
    code = np.arange(rows) % 2
    day = [datetime.date(2020, 1, 1) + datetime.timedelta(int(i)) for i in rng.integers(0, 900, rows)]
    words = np.array([["red", "car", "tree"], ["sea", "blue", "wave"]])
    return pl.DataFrame(
        {
            "size": (rng.normal(size=rows) + 2 * code).round(2),
            "price": np.where(rng.uniform(size=rows) < 0.1, np.nan, (1000 * rng.normal(size=rows)).round()),
            "color": rng.choice(["red", "blue", "green"], rows).tolist(),
            "note": [" ".join(rng.choice(words[k], 3)) for k in code],
            "when": day,
            "stamp": [f"{d} {10 + i % 9}:30:00" for i, d in enumerate(day)],
            "place": (rng.normal(size=(rows, 2)) + code[:, None]).astype(np.float32).round(2),
            "kind": [None if i % 4 > 1 else ["land", "water"][k] for i, k in enumerate(code)],
        }
    ).with_columns(pl.col("price").fill_nan(None))


def new_rows(table):
    """Rows that differ from those of the fit, with gaps and values never seen."""
    new = table.drop("kind").head(12).with_columns(pl.col("size") + 0.25, pl.col("note") + " boat")
    return new.with_columns(color=pl.Series(["pink", None, *new["color"].to_list()[2:]]))


@cache
def saved_blend():
    """The bytes of a model file: a blend of every kind of column."""
    from greenlabel import label_table

    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.green"
        label_table(mixed_table(), "kind")[1].save(path)
        return path.read_bytes()


def parts_of(model):
    with zipfile.ZipFile(io.BytesIO(model)) as archive:
        return json.loads(archive.read(FACTS)), bytearray(archive.read(ARRAYS))


def joined(facts, data, rng=None):
    """A file of these parts with right check sums."""
    out = io.BytesIO()
    method = zipfile.ZIP_STORED if rng is None else rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr(FACTS, facts if isinstance(facts, (str, bytes)) else json.dumps(facts))
        archive.writestr(ARRAYS, bytes(data))
    return out.getvalue()


def changed(path, change, **facts):
    """The same file with other facts; ``change`` works on them and on the bytes of the arrays."""
    known, data = parts_of(path.read_bytes())
    known |= facts
    change(known, data)
    path.write_bytes(joined(known, data))


def nothing(facts, data):
    """As it is."""


def write_fixtures():
    import greenlabel.blend.experts
    from greenlabel import label_table
    from greenlabel.tables import load_model

    greenlabel.blend.experts.TREES = 5
    FOLDER.mkdir(exist_ok=True)
    table = mixed_table()
    for name, method in (("blend", "auto"), ("anchored", "anchored"), ("harmonic", "harmonic")):
        path = FOLDER / f"model-v2-{name}.green"
        label_table(table, "kind", method=method)[1].save(path)
        saved = load_model(path)
        p = saved.model.predict_proba(saved.features.transform(new_rows(table))[0])
        path.with_suffix(".json").write_text(json.dumps(p.round(10).tolist()) + "\n")


if __name__ == "__main__":
    write_fixtures()
