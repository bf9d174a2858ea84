"""Class shares: decisions that meet known shares of the classes, and their refinement over the graph.

    b (c,)      offsets, so that the classes argmax_j (F_ij + b_j) of all rows have the wanted shares
    D <- G D    refinement: the operator of the graph spreads the decisions as if they were labels, and they are taken
                anew under the shares, until they stay

Offsets that meet shares are the prices of a transport of rows to classes: the sum of the scores that rows get is the
largest possible under the shares. One offset is exact given the others (a quantile), so they are found in turns.
Refinement walks along its own last step as well (momentum), which takes it past slow stretches.

    F (n, c) scores     low, high (c,) shares between which those of the decisions must lie
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel.errors import ParameterError
from greenlabel.labels.encoding import Labels

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

SHARE_SLACK = 0.01  # shares whose sum is no farther from 1 are divided by it
CLOSE_ENOUGH = 0.002  # part of all rows by which decisions may miss the shares
SWEEPS = 60
ROUNDS = 20  # of refinement
MOMENTUM = 1.0
STILL = 2e-4  # part of the rows; where fewer change their class, refinement is done
ROUGHLY = 1e-2  # tolerance of a refining solve, relative to all decisions

Solve = Callable[[Floats, float], Floats]


def read_shares(class_shares: Any, labels: Labels) -> tuple[Floats, Floats]:
    """Lowest and highest shares (c,) from a name, a mapping or an array; a share may be a range.

    A class that a mapping does not name may have any share.
    """
    c = len(labels.classes)
    if isinstance(class_shares, str):
        if class_shares not in NAMED:
            raise ParameterError(
                f"class_shares={class_shares!r} is unknown; "
                f"give one of {', '.join(map(repr, NAMED))}, a mapping or an array."
            )
        low = high = NAMED[class_shares](labels)
    elif isinstance(class_shares, Mapping):
        low, high = _of_mapping(class_shares, labels.classes)
    else:
        low, high = _of_array(class_shares, c)
    return _checked(low, high)


NAMED: dict[str, Callable[[Labels], Floats]] = {
    "labels": lambda labels: labels.shares,
    "balanced": lambda labels: np.full(len(labels.classes), 1 / len(labels.classes)),
}


def _of_mapping(class_shares: Mapping[Any, Any], classes: NDArray[Any]) -> tuple[Floats, Floats]:
    code = {name: j for j, name in enumerate(classes.tolist())}
    unknown = [name for name in class_shares if name not in code]
    if unknown:
        raise ParameterError(
            f"class_shares names {unknown[0]!r}, which no label has; give shares of {', '.join(map(repr, code))}."
        )
    low, high = np.zeros(len(code)), np.ones(len(code))
    for name, share in class_shares.items():
        low[code[name]], high[code[name]] = _range(share)
    return low, high


def _of_array(class_shares: Any, c: int) -> tuple[Floats, Floats]:
    try:
        shares = list(class_shares)
    except TypeError as error:
        raise ParameterError(
            f"class_shares={class_shares!r} holds no shares; "
            "give 'labels', 'balanced', a mapping or one share per class."
        ) from error
    if len(shares) != c:
        raise ParameterError(f"class_shares has {len(shares)} entries, y has {c} classes; give one share per class.")
    low, high = zip(*map(_range, shares), strict=True)
    return np.array(low), np.array(high)


def _range(share: Any) -> tuple[float, float]:
    try:
        ends = np.asarray(share, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        ends = np.array([np.nan])
    if len(ends) not in (1, 2) or not (np.isfinite(ends).all() and 0 <= ends[0] <= ends[-1] <= 1):
        raise ParameterError(f"class_shares holds {share!r}; give a share from 0 to 1, or a range (low, high) of such.")
    return float(ends[0]), float(ends[-1])


def _checked(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    if (low == high).all() and 0 < abs(low.sum() - 1) <= SHARE_SLACK:
        low = high = low / low.sum()
    if low.sum() > 1 + 1e-9 or high.sum() < 1 - 1e-9:
        raise ParameterError(
            f"class_shares sum to {low.sum():.3g} at least and {high.sum():.3g} at most; give shares that can sum to 1."
        )
    return low, high


def offsets(F: Floats, low: Floats, high: Floats, start: Floats | None = None) -> Floats:
    """b (c,) with which the decisions on the rows of F have shares between low and high, up to CLOSE_ENOUGH."""
    columns = np.ascontiguousarray(F.T)  # a class is one stretch of memory
    c, n = columns.shape
    b = np.zeros(c) if start is None else start.copy()
    A = columns + b[:, None]
    min_count, max_count = np.round(low * n), np.round(high * n)
    for _ in range(SWEEPS):
        counts = np.bincount(A.argmax(axis=0), minlength=c)
        missing = np.maximum(min_count - counts, 0) - np.maximum(counts - max_count, 0)
        if np.abs(missing).sum() <= max(c / 2, CLOSE_ENOUGH * n):
            break
        for j in np.argsort(-np.abs(missing)):
            A[j] = -np.inf
            needed = A.max(axis=0) - columns[j]  # the offset above which a row belongs to class j
            count = np.clip((needed < b[j]).sum(), min_count[j], max_count[j])
            b[j] = _offset_for(needed, int(count), b[j])
            A[j] = columns[j] + b[j]
    return b - b.mean()


def _offset_for(needed: Floats, count: int, now: float) -> float:
    """The offset at which ``count`` rows belong to the class; the present one where it is such an offset."""
    if (needed < now).sum() == count:
        return now
    if count == 0 or count == len(needed):
        return float(needed.min() - 1 if count == 0 else needed.max() + 1)
    below, above = np.partition(needed, [count - 1, count])[count - 1 : count + 1]
    return float((below + above) / 2)


def refine(F: Floats, labels: Labels, low: Floats, high: Floats, solve: Solve) -> Ints:
    """Classes (n,) refined over the graph from the scores F under the shares; labelled rows keep their own.

    ``solve(Y, tolerance)`` is the operator of the graph. Only what changed since the last round is solved for.
    """
    n, c = F.shape
    decided = _decide(F, offsets(F, low, high), labels)
    before: Floats = np.zeros((n, c))
    scores: Floats = np.zeros((n, c))
    b: Floats = np.zeros(c)
    for number in range(ROUNDS):
        D = np.eye(c)[decided]
        changed = D - before
        if number and (changed != 0).any(axis=1).mean() < STILL:
            break
        # All of D has the length sqrt(n); what changed is shorter and needs fewer digits in proportion.
        step = solve(changed, min(0.5, ROUGHLY * np.sqrt(n) / np.linalg.norm(changed)))
        before = D
        scores = scores + step
        ahead = scores + MOMENTUM * step if number else scores
        b = offsets(ahead, low, high, b)
        decided = _decide(ahead, b, labels)
    return decided


def refinement_pays(labels: Labels, fold: Ints, low: Floats, high: Floats, solve: Solve) -> bool:
    """Whether refined decisions recognise labelled rows as well as those of offsets alone, out-of-fold.

    Half of the folds is left out at a time. Refinement is given up where it is right less often by more than chance: by
    more than the root of the number of rows on which only one of the two is right. Without a row to test it is taken
    to pay.
    """
    gained: list[Ints] = []
    for half in range(2):
        out = (fold >= 0) & (fold % 2 == half)
        left, rows, codes = labels.without(out), labels.rows[out], labels.codes[out]
        F = solve(left.Y.toarray(), ROUGHLY**2)
        plain, refined = (F + offsets(F, low, high)).argmax(axis=1), refine(F, left, low, high, solve)
        gained.append((refined[rows] == codes).astype(int) - (plain[rows] == codes))
    gain = np.concatenate(gained)
    return bool(gain.sum() >= -np.sqrt(np.abs(gain).sum()))


def _decide(F: Floats, b: Floats, labels: Labels) -> Ints:
    decided = (F + b).argmax(axis=1)
    decided[labels.rows] = labels.codes
    return decided
