"""A table in memory to label on, and actions on it."""

from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from greenlabel.annotate.session.opening import open_journal

NUMBERS = count()


@dataclass
class MemorySource:
    """What a session needs of a table, from arrays."""

    X: Any
    classes: list[str] = field(default_factory=list)
    given: list[tuple[int, str]] = field(default_factory=list)
    fingerprint: str = "of the table"
    target: str = "kind"
    name: str = "rows"
    kind: str = "fields"

    @property
    def n(self):
        return self.X.shape[0]

    def fields(self, row):
        return [("row", str(row))]

    def text(self, row):
        return None

    def picture(self, row):
        return None

    def search(self, words, limit):
        return [row for row in range(self.n) if str(row) == words][:limit]

    def save(self, labels, ignored, report, model):
        return {"files": ["out.csv"], "labels": labels, "ignored": ignored}


def action(do, **parts):
    """An action with an id of its own; ``of`` is the class, which is a word of Python's."""
    if "of" in parts:
        parts["class"] = parts.pop("of")
    return {"id": f"a{next(NUMBERS)}", "do": do, **parts}


def small_source(n=20, classes=("red", "green"), **parts):
    return MemorySource(np.arange(n, dtype=float)[:, None], list(classes), **parts)


def opened(path, source=None):
    return open_journal(source or small_source(), path, 0)


def content(state):
    """What a state is, without its history: comparable."""
    return state.classes, state.marks[["label", "origin", "ignored", "kept"]].tolist()
