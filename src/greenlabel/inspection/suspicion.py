"""Given labels that the other labels contradict: each label against what all others predict for its row."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel.estimators.base import TransductiveClassifier
from greenlabel.inspection.checks import check_model
from greenlabel.inspection.printing import ListAsTable, Table, plain


@dataclass(frozen=True)
class Suspect:
    """A label that the others contradict."""

    row: int
    given: Any
    suggested: Any
    probability: float  # of the suggested class


class Suspects(ListAsTable[Suspect]):
    """A list that prints as a table, and so do its slices."""

    def as_table(self) -> Table:
        lines = [(one.row, one.given, one.suggested, f"{one.probability:.0%}") for one in self]
        return ("row", "given", "suggested", "probability"), lines


def suspects(model: TransductiveClassifier) -> Suspects:
    """Given labels that the others contradict, the most probable mistakes first.

    Each label is left out, and its row predicted by the others: leave-one-out in closed form, out-of-fold for a blend.
    A label that nothing can contradict is no suspect: the only one of its class, or one that no other label reaches.

    Parameters
    ----------
    model : classifier
        A fitted greenlabel classifier.

    Returns
    -------
    suspects : list of Suspect
        Each has ``row``, ``given``, ``suggested`` and ``probability``, that of the suggested class.

    Examples
    --------
    >>> from greenlabel import GreenClassifier, suspects
    >>> X = [[0.0], [0.1], [0.2], [0.3], [5.0], [5.1], [5.2], [5.3]]
    >>> model = GreenClassifier(n_neighbors=2).fit(X, ["a", "a", "b", "a", "b", "b", "b", "b"])
    >>> [(one.row, str(one.given), str(one.suggested)) for one in suspects(model)]
    [(2, 'b', 'a')]
    """
    fitted = check_model(model, "suspects")
    return contradicted(fitted, model.classes_)


def contradicted(fitted: Any, classes: NDArray[Any], max_tested: int | None = None) -> Suspects:
    """What ``suspects`` finds, from labels on a graph or a blend, and the names (c,) of the classes.

    Of more than ``max_tested`` labels an even choice is tested.
    """
    rows, codes, p = fitted.cross_validated(max_tested or len(fitted.labels.rows), tests_all=True)
    best = p.argmax(axis=1)
    found = np.flatnonzero(best != codes)
    order = found[np.argsort(-p[found, best[found]], kind="stable")]
    names = plain(classes)
    return Suspects(Suspect(int(rows[i]), names[codes[i]], names[best[i]], float(p[i, best[i]])) for i in order)
