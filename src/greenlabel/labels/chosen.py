"""Chosen labels: rows far from all others may be among them more often than they are in the data, or less often.

Whoever looks for the labels that tell most also asks for rows that stand for few others. If one class has more of
these, its share among the labels is not that in the data. Surveys weight such a sample by what is known of everyone:
here by the place of each row in the order of densities. The weights are those with which the mean place of the labels
comes as near to that of the rows without a label, 0, as a prior and a bound on the slope a let it:

    w_i = exp(-a place_i)     J(a) = l log sum_i exp(-a place_i) + a^2 / 2, smallest where the mean place is a / l

Places are uniform, with mean 0 and variance 1, where labels are drawn at random; a is then near 0 and all weights near
1. Labels that are nearly all at one end cannot stand for the others: the bound keeps a few of them from all weight.

l labels
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

Floats = NDArray[np.floating]

MAX_SLOPE = 1.0  # one end of the order then counts 32 times as much as the other; suggested labels have 0.2 to 0.9


def places(of_labels: Floats, of_others: Floats) -> Floats:
    """Places (l,) of labelled rows of these densities in the order of those of the others (r,); 0 without others."""
    if not len(of_others):
        return np.zeros(len(of_labels))
    largest = np.abs(of_others).max() or 1.0
    # In single precision what rounding adds to a density is no order. A label beyond all others is last, however far.
    known = np.minimum(of_labels / largest, 2).astype(np.float32)
    order = np.sort((of_others / largest).astype(np.float32))
    below = (np.searchsorted(order, known, "left") + np.searchsorted(order, known, "right")) / (2 * len(order))
    return np.sqrt(12) * (below - 0.5)


def representative_weights(place: Floats) -> Floats:
    """w (l,), 1 on average, with which labels at these places stand for all rows."""
    from scipy.optimize import brentq  # slow to import

    def derivative(slope: float) -> float:
        return float(slope - len(place) * (softmax(-slope * place) @ place))

    if derivative(MAX_SLOPE) <= 0:
        slope = MAX_SLOPE
    elif derivative(-MAX_SLOPE) >= 0:
        slope = -MAX_SLOPE
    else:
        slope = brentq(derivative, -MAX_SLOPE, MAX_SLOPE)
    return np.asarray(len(place) * softmax(-slope * place))
