"""Sparse rows at random, by the same call in every scipy that is allowed."""

import numpy as np
import scipy.sparse as sp


def sparse_rows(n: int, d: int, density: float, rng: np.random.Generator) -> sp.csr_array:
    """Rows of numbers between 0 and 1, of which about ``density`` are there."""
    return sp.csr_array(rng.random((n, d)) * (rng.random((n, d)) < density))
