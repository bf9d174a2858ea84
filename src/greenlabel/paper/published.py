"""The numbers that the paper prints, digit for digit, as data.

A cell is the printed text: "65.78±3.61" (mean and deviation), "0.6148" (no deviation), or "OM" (out of memory).
"""

import re
from dataclasses import dataclass

SMALL = ("Balance", "MobileKSD", "USPS", "CsMap", "PhishingWeb", "Swarm")
LARGE = ("MNIST", "SensIT", "EMNIST")
GRAPH_METHODS = ("LLGC", "HF", "GF", "GF(G)", "GF(A)")
LARGE_METHODS = ("1NN", "PolySVM", "RbfSVM", "GF(A)")


@dataclass(frozen=True)
class Number:
    """A printed mean; the deviation is None where the paper prints none."""

    mean: float
    deviation: float | None


def number(cell: str) -> Number | None:
    """What a printed cell says; None where it is no number ("OM")."""
    match = re.fullmatch(r"([\d.]+)(?:±([\d.]+))?", cell.replace(",", ""))
    return Number(float(match[1]), float(match[2]) if match[2] else None) if match else None


def _table(columns: tuple[str, ...], text: str) -> dict[str, dict[str, str]]:
    """{data set: {column: cell}} from one line per data set."""
    lines = (line.split() for line in text.strip().splitlines())
    return {name: dict(zip(columns, cells, strict=True)) for name, *cells in lines}


# Tables I and VI
DATASETS = _table(
    ("rows", "classes", "dimensions", "anchors"),
    """
    Balance     625     3  4    21
    MobileKSD   2,856   56 71   2,856
    USPS        9,298   10 256  1,024
    CsMap       10,846  6  29   1,024
    PhishingWeb 11,055  2  30   50
    Swarm       24,016  4  2400 1024
    MNIST       70,000  10 784  1,024
    SensIT      98,528  2  100  50
    EMNIST      814,255 47 784  2,048
    """,
)

# Table II, %
ACCURACY = _table(
    GRAPH_METHODS,
    """
    Balance     65.78±3.61 66.72±5.73 64.87±1.26 64.87±1.26 69.71±2.39
    MobileKSD   34.04±0.83 35.23±0.89 31.45±0.71 31.45±0.71 35.78±0.52
    USPS        91.14±0.71 89.14±1.07 91.61±0.46 91.61±0.46 89.69±1.02
    CsMap       58.94±1.40 54.76±3.07 54.70±4.47 54.70±4.47 59.63±1.09
    PhishingWeb 69.90±3.92 56.40±6.14 65.22±6.13 64.98±6.05 72.71±9.84
    Swarm       93.76±2.68 92.70±2.18 OM         86.31±5.56 96.58±0.89
    """,
)

# Table III
F1 = _table(
    GRAPH_METHODS,
    """
    Balance     0.6148 0.6152 0.5937 0.5937 0.5941
    MobileKSD   0.3305 0.3506 0.3119 0.3119 0.3513
    USPS        0.9052 0.8883 0.9108 0.9108 0.8878
    CsMap       0.648  0.6297 0.6025 0.6025 0.6545
    PhishingWeb 0.7004 0.6033 0.6581 0.6562 0.7232
    Swarm       0.9205 0.9131 OM     0.8594 0.9415
    """,
)

# Table IV, seconds on an i7-7700 at 3.6 GHz
TIME = _table(
    GRAPH_METHODS,
    """
    Balance     0.03   0.02   0.13   0.02  0.26
    MobileKSD   0.86   0.59   7.37   0.44  0.62
    USPS        16.86  16.75  140.86 7.18  1.24
    CsMap       273.6  235.99 211.88 10.65 0.87
    PhishingWeb 26.99  26.76  223.01 11.7  0.83
    Swarm       311.14 283.44 OM     98.22 20.48
    """,
)

# Table V
MARGIN_COLUMNS = ("LM_l LLGC", "LM_l GF(G)", "LM_u LLGC", "LM_u GF(G)")
MARGIN = _table(
    MARGIN_COLUMNS,
    """
    Balance     1.678  13.2357 0.0049 1.3686
    MobileKSD   0.0693 0.0776  0.0129 0.0189
    USPS        0.0651 0.0775  0.0077 0.0174
    CsMap       0.0685 0.0845  0.0051 0.0118
    PhishingWeb 0.4754 1.7166  0.001  0.0464
    Swarm       0.0822 0.208   0.0045 0.0482
    """,
)

# Table VII, %
LARGE_ACCURACY = _table(
    LARGE_METHODS,
    """
    MNIST  73.13±0.61 57.97±3.00 76.07±1.17 86.30±1.09
    SensIT 57.39±4.77 50.40±0.55 67.07±3.20 74.30±4.88
    EMNIST 44.10±1.32 41.24±1.02 49.21±1.15 50.25±1.66
    """,
)

# Table VIII
LARGE_F1 = _table(
    LARGE_METHODS,
    """
    MNIST  0.7348 0.6518 0.7636 0.8622
    SensIT 0.6031 0.5592 0.6894 0.7472
    EMNIST 0.4078 0.4128 0.4573 0.4583
    """,
)


def anchors(name: str) -> int:
    return int(DATASETS[name]["anchors"].replace(",", ""))
