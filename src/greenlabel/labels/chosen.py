"""Chosen labels: rows far from all others may be among them more often than they are in the data, or less often.

Whoever looks for the labels that tell most also asks for rows that stand for few others. If one class has more of
these, its share among the labels is not that in the data. Surveys weight such a sample by what is known of everyone:
here by the place z_i of each row in the order of degrees. The weights are those with which the mean place of the labels
is that of the rows without a label, 0, as far as the prior b ~ N(0, 1) lets it be:

    w_i = exp(-b z_i)         J(b) = l log sum_i exp(-b z_i) + b^2 / 2, smallest where sum w_i z_i / sum w_i = b / l

z_i is uniform, with mean 0 and variance 1, where labels are drawn at random; b is then near 0 and all weights near 1.

l labels
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]

DIGITS = 9  # to which degrees are told apart: what rounding adds is no order


def places(of_labels: Floats, of_others: Floats) -> Floats:
    """z (l,) of labelled rows of these degrees in the order of those of the others (r,); 0 where there are none."""
    if not len(of_others):
        return np.zeros(len(of_labels))
    scale = np.abs(of_others).max() or 1.0
    known, order = np.round(of_labels / scale, DIGITS), np.sort(np.round(of_others / scale, DIGITS))
    below = (np.searchsorted(order, known, "left") + np.searchsorted(order, known, "right")) / (2 * len(order))
    return np.sqrt(12) * (below - 0.5)


def representative_weights(z: Floats) -> Floats:
    """w (l,), 1 on average, with which labels at these places stand for all rows."""
    from scipy.optimize import brentq  # slow to import
    from scipy.special import softmax

    if not z.any():
        return np.ones(len(z))
    slope = brentq(lambda b: b - len(z) * (softmax(-b * z) @ z), -2.0 * len(z), 2.0 * len(z))
    return len(z) * softmax(-slope * z)
