"""Scaling: columns in different units are put on one scale, columns in the same unit are left as they are.

    x -> (clip(x, low, high) - centre) / spread          column by column; columns that never vary are dropped

Distances and linear models compare columns with each other, so milliseconds beside metres must be scaled. Pixels and
embeddings must not: there a column of small numbers says little, and scaling would make it as loud as the others.
The ranges of the columns tell the two cases apart. Where they differ tenfold, each column is clipped at its 1st and
99th percentile and divided by its own standard deviation; otherwise one number divides all columns.

X (n, d) features     low, high, centre, spread (kept columns)     labels play no part
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from greenlabel.graph.distances import working
from greenlabel.graph.features import FAR
from greenlabel.graph.projection import sample_rows

Floats = NDArray[np.floating]

SCALING_ROWS = 10_000  # rows of the sample that gives ranges, percentiles and deviations
SCALING_VALUES = 20_000_000  # numbers in it; the sample is dense
FAR_APART = 10.0  # ratio of ranges from which on units are taken to differ
TAILS = (0.01, 0.99)  # quantiles at which columns of different units are clipped


@dataclass(frozen=True)
class Scaling:
    """What is done to each column. Sparse features are only divided, and stay sparse."""

    kept: NDArray[np.intp]  # indices of the columns that vary, or of the first where none does
    low: Floats
    high: Floats
    centre: Floats
    spread: Floats
    units_differ: bool
    only_divides: bool

    def apply(self, X: Any) -> Any:
        """X on the new scale, a copy, in the precision that a search would use."""
        if len(self.kept) < X.shape[1]:
            X = X[:, self.kept]
        if self.only_divides:
            X = X.astype(np.float64) / self.spread
            return sp.csr_array(X) if sp.issparse(X) else X
        X = np.array(working(X.toarray() if sp.issparse(X) else X))
        low, high, centre, spread = (part.astype(X.dtype) for part in (self.low, self.high, self.centre, self.spread))
        if self.units_differ:
            np.clip(X, low, high, out=X)
        X -= centre
        X /= spread
        return np.clip(X, -FAR, FAR, out=X)  # new rows so far away that their squares would overflow


def find_scaling(X: Any, rng: np.random.Generator) -> Scaling:
    """The scaling of the columns of X, from a sample of its rows."""
    return scaling_from(X[scaling_rows(X.shape[0], X.shape[1], rng)])


def scaling_rows(n: int, d: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """The rows of the sample, of n rows with d columns."""
    return sample_rows(n, max(100, min(SCALING_ROWS, SCALING_VALUES // d)), rng)


def scaling_from(sample: Any) -> Scaling:
    """The scaling of the columns of which these rows are a sample."""
    is_sparse = sp.issparse(sample)
    sample = (sample.toarray() if is_sparse else sample).astype(np.float64, copy=False)
    low, high = sample.min(axis=0), sample.max(axis=0)
    kept = np.flatnonzero(high > low) if (high > low).any() else np.arange(1)
    sample, low, high = sample[:, kept], low[kept], high[kept]
    differ = units_differ(high - low)
    if differ and not is_sparse:
        low, high = cut_tails(sample, low, high)
        sample = np.clip(sample, low, high)
    spread = sample.std(axis=0)
    if not differ:
        spread = np.full_like(spread, np.sqrt((spread**2).mean()))
    # A column without any spread may be divided by anything.
    return Scaling(kept, low, high, sample.mean(axis=0), np.where(spread > 0, spread, 1.0), differ, is_sparse)


def units_differ(ranges: Floats) -> bool:
    """Whether the ranges (d,) of the columns lie so far apart that their units must be different.

    Either the widest and the narrowest columns are compared, or the widest and the usual one.
    """
    ranges = ranges[ranges > 0]
    if len(ranges) < 2:
        return False
    narrow, usual = np.quantile(ranges, [0.1, 0.5], method="lower")  # the ends themselves where columns are few
    wide = np.quantile(ranges, 0.9, method="higher")
    return bool(wide > FAR_APART * narrow or ranges.max() > FAR_APART * usual)


def cut_tails(sample: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The quantiles at which columns are clipped. A column that is nearly constant keeps its rare values."""
    # With few rows, the outermost one at each end is clipped.
    first = np.quantile(sample, TAILS[0], axis=0, method="higher")
    last = np.quantile(sample, TAILS[1], axis=0, method="lower")
    is_constant = last <= first
    return np.where(is_constant, low, first), np.where(is_constant, high, last)
