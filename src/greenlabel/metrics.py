"""The paper's measures. Only unlabelled rows count, unless said otherwise.

LM   label margin: mean score of a class on its own rows minus that on other rows, averaged over classes
F1   harmonic mean of macro precision and macro recall (not the mean of the classes' F1)
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.metrics import precision_score, recall_score

from greenlabel.errors import LabelError

Floats = NDArray[np.floating]


def label_margin(scores: Floats, y_true: Any, classes: Any) -> float:
    """Label margin of some rows: LM_l of the labelled ones, LM_u of the unlabelled ones.

    Classes that no row or every row belongs to have no margin and are left out.

    Parameters
    ----------
    scores : (n, c) array
        Scores of the rows.
    y_true : (n,) array
        Their true classes.
    classes : (c,) array
        The class of each column of the scores.
    """
    scores, y_true = np.asarray(scores, dtype=np.float64), np.asarray(y_true)
    if len(scores) != len(y_true):
        raise LabelError(f"scores have {len(scores)} rows, y_true has {len(y_true)}; give one class per row.")
    of_class = {j: y_true == name for j, name in enumerate(classes)}
    gaps = [scores[own, j].mean() - scores[~own, j].mean() for j, own in of_class.items() if 0 < own.sum() < len(own)]
    if not gaps:
        raise LabelError("a label margin needs rows of at least two classes; give more rows.")
    return float(np.mean(gaps))


def f1_macro(y_true: Any, y_pred: Any) -> float:
    """2 p r / (p + r) of macro precision p and macro recall r; a class that is never predicted has precision 0.

    Parameters
    ----------
    y_true : (n,) array
        True classes.
    y_pred : (n,) array
        Predicted ones.
    """
    precision = precision_score(y_true, y_pred, average="macro", zero_division=0)
    recall = recall_score(y_true, y_pred, average="macro", zero_division=0)
    return float(2 * precision * recall / (precision + recall)) if precision + recall > 0 else 0.0


def unlabelled_accuracy(y_true: Any, y_pred: Any, labelled: Any) -> float:
    """Share of right predictions among the rows that carry no label.

    Parameters
    ----------
    y_true : (n,) array
        True classes.
    y_pred : (n,) array
        Predicted ones.
    labelled : (n,) array of bool
        Which rows carry a label and do not count.
    """
    y_true, y_pred, labelled = np.asarray(y_true), np.asarray(y_pred), np.asarray(labelled, dtype=bool)
    if labelled.all():
        raise LabelError("every row is labelled, so no row is left to count; mark fewer rows as labelled.")
    return float((y_true == y_pred)[~labelled].mean())


def share_interval(hits: int, trials: int, level: float) -> tuple[float, float, float]:
    """A share, and the interval that holds the true one at this level (Wilson's, good for few trials too).

    Parameters
    ----------
    hits : int
        How many trials came out right.
    trials : int
        How many there were.
    level : float
        How often the interval must hold the true share, such as 0.9.

    Returns
    -------
    share, low, high : float
    """
    z = float(ndtri((1 + level) / 2))
    share = hits / trials
    centre = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    return share, max(0.0, float(centre - half)), min(1.0, float(centre + half))
