"""Data and memory for every benchmark.

No classifier of greenlabel is imported here: it would load faiss, and with faiss in its process scikit-learn searches
neighbours on one thread instead of all.
"""

import os
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil

TITLES = {  # as the paper calls its data sets
    "meu_mobile_ksd": "MobileKSD",
    "crowdsourced_mapping": "CsMap",
    "phishing_websites": "PhishingWeb",
    "usps": "USPS",
    "mnist": "MNIST",
}
Array = np.ndarray[Any, Any]


def load(name: str) -> tuple[Array, Array]:
    folder = os.environ.get("GREENLABEL_DATA")
    if not folder:
        raise SystemExit("GREENLABEL_DATA is not set; point it at the folder of the paper's data sets (.npz).")
    with np.load(Path(folder) / f"{name}.npz") as file:
        return file["X"].astype(np.float32), file["y"].astype(int)


def title_of(name: str) -> str:
    """What pages call a data set."""
    return TITLES.get(name, name.replace("_", " ").capitalize())


def peak_beyond(job: Callable[[], Any]) -> float:
    """Bytes that the process takes at its peak during the job, beyond what it held before."""
    before = psutil.Process().memory_info().rss
    job()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
