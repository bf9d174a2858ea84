"""Given labels that the other labels contradict: each label against what all others predict for its row."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from greenlabel.estimators.base import TransductiveClassifier
from greenlabel.inspection.checks import check_model


@dataclass(frozen=True)
class Suspect:
    """A label that the others contradict."""

    row: int
    given: Any
    suggested: Any
    probability: float  # of the suggested class


def suspects(model: TransductiveClassifier) -> list[Suspect]:
    """Given labels that the others contradict, the most probable mistakes first.

    Each label is left out, and its row predicted by the others: leave-one-out in closed form, out-of-fold for a blend.
    A label that nothing can contradict is no suspect: the only one of its class, or one that no other label reaches.

    Examples
    --------
    >>> from greenlabel import GreenClassifier, suspects
    >>> X = [[0.0], [0.1], [0.2], [0.3], [5.0], [5.1], [5.2], [5.3]]
    >>> model = GreenClassifier(n_neighbors=2).fit(X, ["a", "a", "b", "a", "b", "b", "b", "b"])
    >>> [(one.row, str(one.given), str(one.suggested)) for one in suspects(model)]
    [(2, 'b', 'a')]
    """
    fitted = check_model(model, "suspects")
    rows, codes, p = fitted.cross_validated(len(fitted.labels.rows), tests_all=True)
    best = p.argmax(axis=1)
    found = np.flatnonzero(best != codes)
    order = found[np.argsort(-p[found, best[found]], kind="stable")]
    classes = model.classes_
    return [Suspect(int(rows[i]), classes[codes[i]], classes[best[i]], float(p[i, best[i]])) for i in order]
