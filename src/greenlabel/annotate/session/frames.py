"""From scores to what the page draws: a class and a confidence for each row, a byte each.

    A_k = F_k + b_k         best = max over k of A_k         largest = best - mean over k of A_k
    confidence = 1 / sum over k of exp(t (A_k - best) / sqrt(largest))

which is the largest of the probabilities that ScoreDecoder gives (labels/encoding.py), without the others. Scores are
held class by class in single precision, because a label changes those of one class alone. Some rows at a time, so that
what is in work stays in the processor's cache.

F_k (n,) scores of class k     b_k class offset     t temperature
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel._common.threads import in_parallel

Floats32 = NDArray[np.float32]
Bytes = NDArray[np.uint8]

NONE = 255  # the class of a row without a prediction
ROWS_AT_ONCE = 2**15


class Frame(NamedTuple):
    """What the page draws of n rows."""

    generation: int
    classes: Bytes  # (n,) index in state.classes, NONE where there is no prediction
    confidence: Bytes  # (n,) 255 times the probability of that class


class Columns(Protocol):
    """Scores, class by class."""

    @property
    def n(self) -> int: ...

    @property
    def c(self) -> int: ...

    def fill(self, part: slice, A: Floats32) -> None:
        """Write the scores of some rows to A (c, rows)."""


@dataclass(frozen=True)
class HeldColumns:
    """Scores in memory."""

    columns: Sequence[Floats32]  # c of (n,)

    @property
    def n(self) -> int:
        return len(self.columns[0])

    @property
    def c(self) -> int:
        return len(self.columns)

    def fill(self, part: slice, A: Floats32) -> None:
        for out, column in zip(A, self.columns, strict=True):
            out[:] = column[part]


@dataclass(frozen=True)
class MixedColumns:
    """Scores mixed from the anchors whenever they are needed, where rows times classes do not fit in memory."""

    Z: sp.csr_array  # (n, m)
    C: Floats32  # (m, c)

    @property
    def n(self) -> int:
        return int(self.Z.shape[0])

    @property
    def c(self) -> int:
        return int(self.C.shape[1])

    def fill(self, part: slice, A: Floats32) -> None:
        A[:] = (self.Z[part] @ self.C).T


def decide(F: Columns, offsets: NDArray[np.floating], temperature: float) -> tuple[Bytes, Bytes]:
    """The code of the class of each row, and its confidence."""
    codes, confidence = np.zeros(F.n, np.uint8), np.empty(F.n, np.uint8)

    def work(part: slice) -> None:
        A = np.empty((F.c, len(codes[part])), np.float32)
        F.fill(part, A)
        if offsets.any():
            A += offsets[:, None].astype(np.float32)
        confidence[part] = as_byte(largest_probability(A, best_of(A, codes[part]), temperature))

    in_parallel(work, [slice(start, start + ROWS_AT_ONCE) for start in range(0, F.n, ROWS_AT_ONCE)])
    return codes, confidence


def best_of(A: Floats32, codes: Bytes) -> Floats32:
    """The largest of each column of A; its index, the first of several, is written to ``codes``."""
    best = A[0].copy()
    for code in range(1, len(A)):
        np.putmask(codes, A[code] > best, np.uint8(code))
        np.maximum(best, A[code], out=best)
    return best


def largest_probability(A: Floats32, best: Floats32, temperature: float) -> Floats32:
    """The probability of the best class; overwrites A. Where nothing is larger than the mean, all are equal."""
    largest = best - A.mean(axis=0)
    root = np.sqrt(np.maximum(largest, 0))
    scale = np.divide(np.float32(temperature), root, out=np.zeros_like(root), where=root > 0)
    total = np.zeros_like(best)
    for row in A:
        row -= best
        row *= scale
        total += np.exp(row, out=row)
    return np.reciprocal(total)


def as_byte(p: NDArray[np.floating]) -> Bytes:
    """Probabilities in 255 steps."""
    return (255 * p + 0.5).astype(np.uint8)
