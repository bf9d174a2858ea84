import os
from importlib.util import find_spec
from pathlib import Path

# Threads that wait for work by spinning take the processors from the other workers. This is read when SciPy,
# scikit-learn and faiss are loaded; for NumPy it comes too late where a plugin has loaded it before.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

import numpy as np
import pytest
import scipy.linalg
from sklearn.datasets import make_blobs, make_moons

from greenlabel.datasets import keep_labels
from greenlabel.errors import MissingLibraryError
from greenlabel.graph import compiled_search, neighbors
from greenlabel.kernels import library
from helpers.annotate_page import visits
from helpers.browser import chromium
from helpers.estimators import ESTIMATORS, FEW_TREES, GRAPH_ESTIMATORS, KNN_ESTIMATORS
from helpers.pages import ROOT
from helpers.scripts import script
from helpers.shared import made_once


class ModuleOfTests(pytest.Module):
    """A module of tests, which skips as a whole where the library of an extra that it imports is not there."""

    def collect(self):
        try:
            return [*super().collect()]
        except self.CollectError as error:
            missing = missing_library(error.__cause__)
            if missing is None:
                raise
            pytest.skip(f"{missing} is not installed, which comes with an extra", allow_module_level=True)


def missing_library(error):
    """The library that an import failed for want of, said by Python or by greenlabel; None if it is something else."""
    if isinstance(error, MissingLibraryError):
        error = error.__cause__
    name = error.name.partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    return None if name in ("", "greenlabel", "helpers") or find_spec(name) else name


def pytest_addoption(parser):
    parser.addoption("--without-extras", action="store_true", help="skip modules whose libraries come with an extra")


def pytest_pycollect_makemodule(module_path, parent):
    if parent.config.getoption("--without-extras"):
        return ModuleOfTests.from_parent(parent, path=module_path)
    return None


@pytest.fixture(params=["NumPy", "compiled"])
def way(request, monkeypatch):
    """A search by NumPy alone, and by what is compiled where that is installed."""
    if request.param == "NumPy":
        monkeypatch.setattr(compiled_search, "library", lambda: None)
    elif library() is None:
        pytest.skip("this installation has no kernels: no C compiler was there")


@pytest.fixture
def extras(request):
    """What a test asks for that needs libraries of extras, in a module that does not."""
    if request.config.getoption("--without-extras"):
        pytest.skip("needs the libraries of the extras")


@pytest.fixture(autouse=True)
def few_trees(monkeypatch, request):
    """A blend of few trees keeps the same promises, sooner; a test that asks for all_trees gets them."""
    if "all_trees" not in request.fixturenames:
        monkeypatch.setattr("greenlabel.blend.experts.TREES", FEW_TREES)


@pytest.fixture
def all_trees():
    """As many trees as users get."""


@pytest.fixture(params=ESTIMATORS, ids=lambda model: model.__name__)
def Model(request):
    return request.param


@pytest.fixture(params=GRAPH_ESTIMATORS, ids=lambda model: model.__name__)
def GraphModel(request):
    return request.param


@pytest.fixture(params=KNN_ESTIMATORS, ids=lambda model: model.__name__)
def KnnModel(request):
    return request.param


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The folder of the site, built strictly."""

    def build(folder):
        assert script(ROOT / "docs" / "make_site.py").build(folder / "site")

    return made_once(tmp_path_factory, "built", build) / "site"


@pytest.fixture(scope="module")
def browser():
    """Chromium, or a skip that says what is missing."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def visit(browser):
    """Opens the page of a table that is served; in the end no page had an error or asked elsewhere."""
    with visits(browser) as visit:
        yield visit


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def moons():
    """120 rows in the plane and their two classes."""
    return make_moons(120, noise=0.08, random_state=0)


@pytest.fixture(scope="session")
def clouds():
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
    return scipy.linalg.block_diag(*blocks)


@pytest.fixture
def blobs():
    """60 rows of three clouds that touch, and their classes."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    centres = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    return centres[y] + rng.normal(size=(60, 2)), y


@pytest.fixture
def few(blobs):
    """Four labels of each class of the blobs, -1 elsewhere."""
    y = blobs[1]
    return np.where(np.arange(60) % 20 < 4, y, -1)


@pytest.fixture
def islands():
    """90 rows of three clouds far from each other, and their classes."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], 30)
    return 1000.0 * y[:, None] + rng.normal(size=(90, 2)), y


@pytest.fixture
def similarity():
    """A symmetric similarity of 30 rows in one component, and labels of two classes on six of them."""
    rng = np.random.default_rng(2)
    S = rng.uniform(size=(30, 30)) * (rng.uniform(size=(30, 30)) < 0.3)
    S = S + S.T + np.diag(np.ones(29), 1) + np.diag(np.ones(29), -1)
    return S, np.where(np.arange(30) % 5 == 0, np.arange(30) % 2, -1)


@pytest.fixture
def noisy():
    """Overlapping classes with many labels: a mu above the usual one is better."""
    X, y = make_moons(240, noise=0.35, random_state=1)
    return X, keep_labels(y, 90, random_state=0)


@pytest.fixture
def fast_search(monkeypatch):
    """The search of many rows, however few there are."""
    monkeypatch.setattr(neighbors, "FLOAT64_PAIRS", 0)


@pytest.fixture
def saved(tmp_path):
    """A blend of every kind of column as a model file."""
    from helpers.model_data import saved_blend  # polars, which the core does not need

    path = tmp_path / "model.green"
    path.write_bytes(saved_blend())
    return path


def load(name):
    """One of the paper's data sets, or a skip that says where it would have been read from."""
    folder = os.environ.get("GREENLABEL_DATA")
    if not folder or not (Path(folder) / f"{name}.npz").exists():
        pytest.skip(f"{name}.npz is not there; point GREENLABEL_DATA at the folder of the paper's data sets")
    with np.load(Path(folder) / f"{name}.npz") as file:
        return file["X"], file["y"].astype(int)


@pytest.fixture
def data_folder():
    """The folder of the paper's data sets, or a skip."""
    folder = os.environ.get("GREENLABEL_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("point GREENLABEL_DATA at the folder of the paper's data sets")
    return Path(folder)


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
