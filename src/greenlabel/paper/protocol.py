"""One trial: draw the labels, predict, score. The paper's parameters, greenlabel's defaults, everyday alternatives.

    the paper's     k = 20, Gaussian weights, mu = 1e-5, LLGC's gamma = 1, the anchors of its tables, raw features,
                    and equal rows as nodes of their own, which greenlabel's defaults make one
    ours            greenlabel's defaults without class offsets; features standardised where their ranges differ
                    (``units_differ``)
    everyday        what a user would try without a graph, with scikit-learn's defaults, on the features of ours

Labels are drawn by the seed alone, so all methods see the same ones. Nothing before them depends on them: a graph is
built once for all trials. Only unlabelled rows count; where a data set has test rows, only these.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from greenlabel import AnchoredGreenClassifier, ConsistencyClassifier, GreenClassifier, HarmonicClassifier
from greenlabel.datasets import keep_labels
from greenlabel.graph.distances import working
from greenlabel.graph.neighbors import graph_search, neighbour_matrix
from greenlabel.graph.similarity import gaussian_width
from greenlabel.labels.encoding import UNLABELED, signed
from greenlabel.metrics import f1_macro, label_margin
from greenlabel.operators.anchored import AnchoredGreen
from greenlabel.paper import published
from greenlabel.paper.sources import Data
from greenlabel.paper.store import Result, Trial

Array = NDArray[Any]

PER_CLASS = 10
NEIGHBORS, MU, GAMMA = 20, 1e-5, 1.0
SEED_OF_ANCHORS = 0
UNITS = 10.0  # features are standardised where the ranges of columns differ by more
QUICK = 1.0  # seconds: a fit that takes less is repeated in every timed trial
GAUSSIAN: dict[str, Any] = {"n_neighbors": NEIGHBORS, "weights": "gaussian", "class_offsets": None}


class Model(Protocol):
    """Classes of all rows, from features and few labels; or from other labels on the same features."""

    def fit(self, X: Array, few: Array) -> Any: ...
    def relabel(self, few: Array) -> Any: ...
    @property
    def transduction_(self) -> Array: ...


class Supervised:
    """A model that learns from the labelled rows alone."""

    def __init__(self, estimator: Any):
        self.estimator = estimator

    def fit(self, X: Array, few: Array) -> "Supervised":
        self._X = X
        return self.relabel(few)

    def relabel(self, few: Array) -> "Supervised":
        given = few != UNLABELED
        self.transduction_ = self.estimator.fit(self._X[given], few[given]).predict(self._X)
        return self


class KernelSVM:
    """scikit-learn's SVC, its kernel taken as a matrix product: the same predictions, many times faster on many rows.

    ``kernel`` is one of scikit-learn's; its width is SVC's default, 1 / (d Var X) of the labelled rows.
    """

    def __init__(self, kernel: Callable[..., Array]):
        self.kernel = kernel

    def fit(self, X: Array, y: Array) -> "KernelSVM":
        self._X = np.asarray(X, dtype=np.float64)
        self._gamma = 1 / (X.shape[1] * self._X.var() or 1)
        self._svc = SVC(kernel="precomputed").fit(self._to_labelled(X), y)
        return self

    def predict(self, X: Array) -> Array:
        blocks = (X[start : start + 20_000] for start in range(0, len(X), 20_000))
        return np.concatenate([self._svc.predict(self._to_labelled(block)) for block in blocks])

    def _to_labelled(self, X: Array) -> Array:
        return self.kernel(np.asarray(X, dtype=np.float64), self._X, gamma=self._gamma)


def summed_graph(X: Array) -> sp.csr_array:
    """The paper's graph with both directions added, S = A + A': mutual neighbours count twice.

    Eq. S_rbf takes their union; the margins that Table V prints are those of the sum.
    """
    X = working(X)
    # One neighbour more is looked for, as for every graph, so that ties fall the same way.
    dist2, index = graph_search(X, np.random.default_rng(SEED_OF_ANCHORS)).nearest_to_own(NEIGHBORS + 1)
    A = neighbour_matrix(index[:, :-1], np.exp(-dist2[:, :-1] / gaussian_width(X)), len(X))
    return sp.csr_array(A + A.T)


class EveryRow:
    """The paper's graphs: every row is a node, equal rows too, and anchors may coincide."""

    merge_equal_rows = False


class PaperLLGC(EveryRow, ConsistencyClassifier):
    pass


class PaperHF(EveryRow, HarmonicClassifier):
    pass


class PaperGreen(EveryRow, GreenClassifier):
    pass


class PaperAnchored(EveryRow, AnchoredGreenClassifier):
    pass


class SummedLLGC(ConsistencyClassifier):
    def fit(self, X: Array, y: Array) -> Self:
        return super().fit(summed_graph(X), y)


class SummedGreen(GreenClassifier):
    def fit(self, X: Array, y: Array) -> Self:
        return super().fit(summed_graph(X), y)


@dataclass(frozen=True)
class Method:
    """How a model is made for a data set and a number of anchors (0: the paper's), and on which features it works."""

    make: Callable[[str, int], Model]
    ours: bool = False  # standardised features where units differ
    margins: bool = False  # its scores have a label margin in Table V


def _anchored(name: str, anchors: int) -> Model:
    name = name.partition(" ")[0]
    return PaperAnchored(
        anchors or published.anchors(name), NEIGHBORS, mu=MU, random_state=SEED_OF_ANCHORS, class_offsets=None
    )


def _plain(make: Callable[[], Model]) -> Callable[[str, int], Model]:
    return lambda name, anchors: make()


def _supervised(make: Callable[[], Any]) -> Callable[[str, int], Model]:
    return lambda name, anchors: Supervised(make())


METHODS = {
    "LLGC": Method(_plain(lambda: PaperLLGC(gamma=GAMMA, **GAUSSIAN)), margins=True),
    "HF": Method(_plain(lambda: PaperHF(**GAUSSIAN))),
    "GF": Method(_plain(lambda: PaperGreen(mu=MU, solver="eigen", **GAUSSIAN))),
    "GF(G)": Method(_plain(lambda: PaperGreen(mu=MU, solver="direct", **GAUSSIAN)), margins=True),
    "GF(A)": Method(_anchored),
    "LLGC, A + A'": Method(_plain(lambda: SummedLLGC(gamma=GAMMA, graph="precomputed")), margins=True),
    "GF(G), A + A'": Method(_plain(lambda: SummedGreen(mu=MU, graph="precomputed", class_offsets=None)), margins=True),
    "1NN": Method(_supervised(lambda: KNeighborsClassifier(1))),
    "PolySVM": Method(_supervised(lambda: KernelSVM(partial(polynomial_kernel, degree=3, coef0=0)))),
    "RbfSVM": Method(_supervised(lambda: KernelSVM(rbf_kernel))),
    "GreenClassifier": Method(
        _plain(lambda: GreenClassifier(random_state=SEED_OF_ANCHORS, class_offsets=None)), ours=True
    ),
    "AnchoredGreenClassifier": Method(
        _plain(lambda: AnchoredGreenClassifier(random_state=SEED_OF_ANCHORS, class_offsets=None)), ours=True
    ),
    "1-NN": Method(_supervised(lambda: KNeighborsClassifier(1)), ours=True),
    "logistic": Method(_supervised(lambda: LogisticRegression(max_iter=1000)), ours=True),
    "extra trees": Method(_supervised(lambda: ExtraTreesClassifier(random_state=0)), ours=True),
    "RBF SVM": Method(_supervised(SVC), ours=True),
}
SUMMED = ", A + A'"  # added to the name of a method
OURS = ("GreenClassifier", "AnchoredGreenClassifier")
EVERYDAY = ("1-NN", "logistic", "extra trees", "RBF SVM")


def units_differ(X: Array) -> bool:
    """Whether columns are measured on different scales: ranges (of columns that vary) more than tenfold apart.

    The tenth part of the columns at either end is left out, so that a few hardly used pixels do not decide.
    """
    ranges = X.max(axis=0).astype(np.float64) - X.min(axis=0)
    ranges = ranges[ranges > 0]
    if not len(ranges):
        return False
    low, high = np.quantile(ranges, [0.1, 0.9])
    return bool(high > UNITS * low)


def features(data: Data, ours: bool) -> Array:
    """The features that a method works on; they do not depend on labels or classes.

    Ours are standardised column by column where units differ, and otherwise divided by one number, which no graph
    notices, but logistic regression needs.
    """
    if not ours:
        return data.X
    X = data.X.astype(np.float32)
    return StandardScaler().fit_transform(X) if units_differ(X) else X / (X.std(dtype=np.float64) or 1)


def draw_labels(data: Data, per_class: int, seed: int) -> Array:
    """Labels of ``per_class`` rows of each class, -1 elsewhere. Test rows keep none."""
    few = np.full(len(data.y), UNLABELED)
    pool = np.ones(len(data.y), bool) if data.is_test is None else ~data.is_test
    few[pool] = keep_labels(data.y[pool], per_class, random_state=seed)
    return few


def scored_rows(data: Data, few: Array) -> NDArray[np.bool_]:
    return few == UNLABELED if data.is_test is None else data.is_test


def run_trials(data: Data, method: str, anchors: int, trials: Iterable[Trial]) -> Iterator[tuple[Trial, Result]]:
    """All trials of one method on one data set: the first fits, the others take the labels anew.

    "seconds" is a whole fit with its predictions. Where that is quick, every trial of ten labels per class has its own
    fit; otherwise one fit serves all of them.
    """
    how = METHODS[method]
    X = features(data, how.ours)
    model = how.make(data.name, anchors)
    seconds = None
    for trial in sorted(trials, key=lambda trial: trial.per_class != PER_CLASS):
        few = draw_labels(data, trial.per_class, trial.seed)
        start = time.perf_counter()
        if seconds is None or (trial.per_class == PER_CLASS and seconds < QUICK):
            predictions = model.fit(X, few).transduction_
            seconds = time.perf_counter() - start
        else:
            predictions = model.relabel(few).transduction_
        result = score(data, few, predictions) | {"seconds": round(seconds, 4)}
        if how.margins and trial.per_class == PER_CLASS:
            result |= margins(model, data, few)
        if anchors:
            result["solve_seconds"] = round(time_to_solve(model), 5)
        yield trial, result


def score(data: Data, few: Array, predictions: Array) -> Result:
    """Accuracy in % and the paper's F1-macro on the rows that count."""
    rows = scored_rows(data, few)
    truth, predicted = data.y[rows], predictions[rows]
    accuracy = 100 * float((truth == predicted).mean())
    return {"accuracy": round(accuracy, 6), "f1": round(f1_macro(truth, predicted), 8)}


def margins(model: Any, data: Data, few: Array) -> Result:
    """LM_l and LM_u with labels coded +1 and -1, as in Table V."""
    F = model.operator_.solve(signed(model.fitted_.labels))
    parts = {"margin_l": few != UNLABELED, "margin_u": scored_rows(data, few)}
    return {name: float(f"{label_margin(F[part], data.y[part], model.classes_):.8g}") for name, part in parts.items()}


def time_to_solve(model: Any) -> float:
    """Seconds of GF(A) without its graph: Z'Z, the m x m system, and the scores. The best of three."""
    Z, Y = model.graph_.mixing_matrix(), model.fitted_.labels.Y
    times = []
    for _ in range(3):
        start = time.perf_counter()
        AnchoredGreen.of(Z, Z.shape[0] * model.mu_, model.n_components_).solve(Y)
        times.append(time.perf_counter() - start)
    return min(times)
