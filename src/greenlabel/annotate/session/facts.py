"""What the page is told, as JSON: the state, a row's card, a selection."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel.annotate.session.frames import NONE, Frame
from greenlabel.annotate.session.labels import TABLE, State
from greenlabel.annotate.session.live import Solved
from greenlabel.inspection.coverage import Kernel
from greenlabel.inspection.explaining import Explanation

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

KEYS = "123456789abcdefghijklmnopqrstuvwyz"  # x ignores a row
MAX_GIVEN = 20_000  # labels that are drawn on top
MAX_NAMED = 5  # classes of a row, and labels that explain it
MAX_UNTYPICAL = 8


def class_facts(state: State, frame: Frame) -> list[dict[str, Any]]:
    """Every class with its key and how many rows have it, given and predicted."""
    shown = np.bincount(frame.classes, minlength=NONE + 1)
    labels = state.marks["label"][state.labelled]
    given = np.bincount(labels, minlength=state.next_id)
    return [
        {
            "id": one.id,
            "name": one.name,
            "key": KEYS[i] if i < len(KEYS) else None,
            "given": int(given[one.id]),
            "predicted": int(shown[i] - given[one.id]),
        }
        for i, one in enumerate(state.classes)
    ]


def label_facts(state: State, frame: Frame) -> dict[str, Any]:
    """What was given and what was not."""
    marks, labelled = state.marks, state.labelled
    newest = labelled[np.argsort(-marks["stamp"][labelled], kind="stable")[:MAX_GIVEN]]
    drawn = np.sort(newest)
    ignored = np.flatnonzero(marks["ignored"])
    return {
        "labels": len(labelled),
        "from_table": len(state.rows_of(TABLE)),
        "ignored": len(ignored),
        "unreached": int(np.count_nonzero(frame.classes == NONE)),
        "undo": state.done[-1].sentence if state.done else None,
        "redo": state.undone[-1].sentence if state.undone else None,
        "redo_row": state.undone[-1].only_row if state.undone else None,
        "given_rows": {"rows": drawn.tolist(), "classes": marks["label"][drawn].tolist()},
        "ignored_rows": ignored[:MAX_GIVEN].tolist(),
    }


def row_facts(state: State, row: int) -> dict[str, Any]:
    mark = state.marks[row]
    return {
        "row": row,
        "given": int(mark["label"]) if mark["origin"] else None,
        "from_table": bool(mark["origin"] == TABLE),
        "ignored": bool(mark["ignored"]),
    }


HIDDEN: dict[str, Any] = {
    "hidden": True,
    "prediction": None,
    "confidence": None,
    "probabilities": [],
    "reached": None,
    "why": [],
}


def prediction_facts(solved: Solved, row: int, ids: list[int], p: Floats, is_known: bool) -> dict[str, Any]:
    """What is predicted for a row, from the probabilities (c,) of these classes, and why."""
    order = np.argsort(-p, kind="stable")[:MAX_NAMED] if is_known else np.arange(0)
    best = [[ids[i], round(float(p[i]), 4)] for i in order]
    is_reached = bool(solved.members) and bool(solved.is_reached(np.array([row]))[0])
    return {
        "hidden": False,
        "prediction": best[0][0] if best else None,
        "confidence": best[0][1] if best else 0.0,
        "probabilities": best,
        "reached": is_reached,
        "why": reasons(solved, row, best[0][0]) if is_reached else [],
    }


def reasons(solved: Solved, row: int, predicted: int) -> list[dict[str, Any]]:
    """The labels with the largest shares in the scores of a row; of a labelled row, of all others.

    Far from all labels none supports the row. Then those of the predicted class are named by how far they reach, which
    is the influence without the constant that centring takes from all.
    """
    labels = solved.labels
    influence = solved.propagation.influence(np.array([row]))
    influence[:, labels.rows == row] = -solved.live.constant
    if influence.max() <= 0:
        is_other = labels.classes[labels.codes] != predicted
        influence = np.where(is_other, 0, influence + solved.live.constant)
    given = labels.classes[labels.codes]
    scores, best = np.empty((1, 0)), labels.classes[:1]  # of which nothing is asked here
    found = Explanation(influence, labels.rows, given, labels.classes, scores, best).top(MAX_NAMED)[0]
    return [{"row": one.row, "class": int(one.label), "share": round(one.share, 4)} for one in found]


def mix_of(ids: list[int], classes: NDArray[np.uint8]) -> list[list[int | None]]:
    """[class or None, how many rows], the largest first; ``classes`` are indices as in a frame."""
    counts = np.bincount(classes, minlength=NONE + 1)
    order = np.argsort(-counts, kind="stable")
    return [[None if i == NONE else ids[i], int(counts[i])] for i in order.tolist() if counts[i]]


def least_typical(kernel: Kernel, Z: Any, rows: Ints) -> list[int]:
    """The rows that are least like the others of a selection, by the Green kernel; Z (r, m) are theirs."""
    mean = np.asarray(Z.sum(axis=0)).ravel() / len(rows)
    alike = np.asarray(Z @ (kernel.K @ mean.astype(kernel.K.dtype)))
    return rows[np.argsort(alike, kind="stable")[:MAX_UNTYPICAL]].tolist()
