"""What others take for the same task: MNIST, ten labels per class, the same rows and labels.

    python benchmarks/peers.py label_spreading       prints one line of JSON

The peers are an extra, `pip install '.[peers]'`. Each runs once in a process of its own; those that want a graph get
greenlabel's k-NN graph (k = 10), and their time is what comes after it.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from basics import load, peak_beyond
from greenlabel.datasets import keep_labels

Array = np.ndarray[Any, Any]


def task() -> tuple[Array, Array, Array]:
    X, y = load("mnist")
    return X, y, keep_labels(y, 10, random_state=0)


def compared(job: Callable[[], Array], y: Array, few: Array, *, has_graph: bool = False) -> dict[str, Any]:
    """Time, memory and accuracy of a job that returns the classes of all rows, -1 where it has none.

    The peak of the memory is known for the process as a whole: after a graph was built in it, it says nothing.
    """
    predictions: list[Array] = []
    start = time.perf_counter()
    memory = peak_beyond(lambda: predictions.append(job()))
    seconds = time.perf_counter() - start
    unlabelled = few == -1
    right = (predictions[0] == y)[unlabelled].mean()
    n_missing = int((predictions[0] == -1).sum())
    mib = None if has_graph else memory / 2**20
    return {"seconds": seconds, "accuracy": float(right), "mib": mib, "rows_without_answer": n_missing}


def greenlabel() -> dict[str, Any]:
    from greenlabel import GreenClassifier

    X, y, few = task()
    return compared(lambda: GreenClassifier(10, random_state=0).fit(X, few).transduction_, y, few)


def label_spreading() -> dict[str, float]:
    from sklearn.semi_supervised import LabelSpreading

    assert "faiss" not in sys.modules, "with faiss loaded scikit-learn would search on one thread"
    X, y, few = task()

    def job() -> Array:
        model = LabelSpreading(kernel="knn", n_neighbors=10).fit(X, few)
        return np.where(model.label_distributions_.sum(axis=1) > 0, model.transduction_, -1)

    return compared(job, y, few)


def shared_graph(X: Array, few: Array) -> sp.csr_matrix:
    """greenlabel's graph, as an old-style matrix with long indices, which the peers expect."""
    from greenlabel import GreenClassifier

    return sp.csr_matrix(GreenClassifier(10, random_state=0).fit(X, few).graph_.S)


def poisson() -> dict[str, float]:
    import graphlearning

    X, y, few = task()
    W = shared_graph(X, few)
    rows = np.flatnonzero(few != -1)
    return compared(lambda: graphlearning.ssl.poisson(W).fit_predict(rows, few[rows]), y, few, has_graph=True)


def diffusion() -> dict[str, float]:
    from sknetwork.classification import DiffusionClassifier

    X, y, few = task()
    W = shared_graph(X, few)
    return compared(lambda: DiffusionClassifier().fit_predict(W, labels=few), y, few, has_graph=True)


def page_rank() -> dict[str, float]:
    from sknetwork.classification import PageRankClassifier

    X, y, few = task()
    W = shared_graph(X, few)
    return compared(lambda: PageRankClassifier().fit_predict(W, labels=few), y, few, has_graph=True)


def same_graph() -> dict[str, float]:
    """greenlabel after the graph, to compare with the peers that start there."""
    from greenlabel import GreenClassifier

    X, y, few = task()
    W = shared_graph(X, few)
    return compared(lambda: GreenClassifier(graph="precomputed").fit(W, few).transduction_, y, few, has_graph=True)


PEERS: dict[str, Callable[[], dict[str, float]]] = {
    "greenlabel": greenlabel,
    "label_spreading": label_spreading,
    "same_graph": same_graph,
    "poisson": poisson,
    "diffusion": diffusion,
    "page_rank": page_rank,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=PEERS)
    print(json.dumps(PEERS[parser.parse_args().peer]()))


if __name__ == "__main__":
    main()
