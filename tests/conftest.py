import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_blobs, make_moons

from greenlabel import AnchoredGreenClassifier, ConsistencyClassifier, GreenClassifier, HarmonicClassifier

KNN_CLASSIFIERS = [GreenClassifier, ConsistencyClassifier, HarmonicClassifier]
CLASSIFIERS = [*KNN_CLASSIFIERS, AnchoredGreenClassifier]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def moons():
    """120 rows in the plane and their two classes."""
    return make_moons(120, noise=0.08, random_state=0)


@pytest.fixture(scope="session")
def blobs():
    """Four overlapping groups in five dimensions."""
    return make_blobs(200, n_features=5, centers=4, cluster_std=4, random_state=1)


@pytest.fixture
def two_islands(rng):
    """A weighted graph of two components, of 30 and 20 rows, as a dense matrix."""
    blocks = []
    for size in (30, 20):
        A = rng.random((size, size)) * (rng.random((size, size)) < 0.4)
        A += np.diag(np.ones(size - 1), 1)  # a path through all rows keeps the block in one piece
        blocks.append(np.triu(A, 1) + np.triu(A, 1).T)
    return sp.block_diag(blocks).toarray()


def load(name):
    """One of the paper's data sets, or a skip that says where it would have been read from."""
    folder = os.environ.get("GREENLABEL_DATA")
    if not folder or not (Path(folder) / f"{name}.npz").exists():
        pytest.skip(f"{name}.npz is not there; point GREENLABEL_DATA at the folder of the paper's data sets")
    with np.load(Path(folder) / f"{name}.npz") as file:
        return file["X"], file["y"].astype(int)


@pytest.fixture
def usps():
    return load("usps")


@pytest.fixture
def phishing():
    return load("phishing_websites")


@pytest.fixture
def mobile():
    return load("meu_mobile_ksd")


@pytest.fixture
def balance_file():
    return load("balance")
