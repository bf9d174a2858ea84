"""Results of labelling made by hand, and their report pages."""

import numpy as np
import polars as pl

from greenlabel.tables.columns.features import Column
from greenlabel.tables.outcome import Outcome, Validation
from greenlabel.tables.report.page import report_html
from greenlabel.tables.report.words import one_line

STRANGE = [
    "<script>alert('x')</script>",
    "R&D \"quoted\" 'single'",
    "a name that goes on " * 30,
    "W" * 200,
    "🦊👩‍👩‍👧",
    "שלום עולם",
    "\u202eback\x1b[31m\n\x00wards\ud800",
]


def outcome_of(classes, n=60, per_class=4, seed=0, **changes):
    """An outcome by hand: rows of class i % c, the first ones of each class labelled, odd ones of low confidence."""
    rng = np.random.default_rng(seed)
    c = len(classes)
    truth = np.arange(n) % c
    given = np.where(np.arange(n) < per_class * c, truth, -1)
    P = rng.dirichlet(np.ones(c), n) * 0.4
    P[np.arange(n), truth] += 0.6
    rows = np.flatnonzero(given >= 0) if per_class > 1 else np.empty(0, dtype=int)
    held = Validation(rows, given[rows], rng.dirichlet(np.full(c, 0.5), len(rows)).reshape(len(rows), c))
    columns = [Column("size", "number", 1), Column("colour", "category", 2, categories=["red", "blue"])]
    columns += [Column("id", "dropped", why="numbers the rows")]
    facts = {
        "predictions": np.where(given >= 0, given, P.argmax(axis=1)),
        "is_reached": np.ones(n, dtype=bool),
        "validation": held,
        "columns": columns,
        "X": rng.normal(size=(n, 3)) + truth[:, None],
        "method": "a method",
        "graph": {"neighbors": 10, "weights": "adaptive", "mu": 0.00123, "symmetric": True},
        "seconds": {"read": 0.0123, "graph": 2.5},
        **changes,
    }
    return Outcome("kind", list(classes), given, P, **facts)


def frame_of(outcome):
    n = outcome.n_rows
    return pl.DataFrame(
        {
            "id": range(n),
            "size": np.linspace(0, 1, n),
            "colour": ["red" if i % 2 else "<blue>" for i in range(n)],
            "kind": [None if g < 0 else one_line(outcome.classes[g]) for g in outcome.given],
        }
    )


def page_of(outcome):
    return report_html(outcome, frame_of(outcome), "things.csv: kind")
