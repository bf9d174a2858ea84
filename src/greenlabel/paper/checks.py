"""The paper's Conclusions 1, 2, 3 and 5 as numbers (Conclusion 4, larger margins, is Table V).

A check takes a data set and one draw of labels, and returns numbers. Differences of scores are relative to the largest
score.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel.labels.encoding import signed
from greenlabel.paper.protocol import GAUSSIAN, MU, PaperGreen, PaperLLGC, draw_labels, score
from greenlabel.paper.sources import Data
from greenlabel.paper.store import Result, Trial

Array = NDArray[Any]


class Models:
    """Models of one data set: each is fitted once, and takes the labels of later draws anew."""

    def __init__(self, data: Data):
        self._X = data.X
        self._fitted: dict[str, Any] = {}

    def __call__(self, model: Any, few: Array) -> Any:
        name = repr(model)
        if name in self._fitted:
            return self._fitted[name].relabel(few)
        return self._fitted.setdefault(name, model.fit(self._X, few))


def same_scores(data: Data, few: Array, fitted: Models) -> Result:
    """Conclusion 1: elimination (GF(G)) gives what the eigendecomposition (GF) gives."""
    eigen, direct = (fitted(PaperGreen(mu=MU, solver=solver, **GAUSSIAN), few) for solver in ("eigen", "direct"))
    return _compare(eigen.scores_, direct.scores_)


def same_classes(data: Data, few: Array, fitted: Models) -> Result:
    """Conclusion 2: labels coded 1 and 0, or +1, -1 and 0, give the same classes."""
    model = fitted(PaperGreen(mu=MU, solver="direct", **GAUSSIAN), few)
    other = model.operator_.solve(signed(model.fitted_.labels))
    return {"rows that differ": float((model.scores_.argmax(axis=1) != other.argmax(axis=1)).sum())}


def block_constraint(data: Data, few: Array, fitted: Models) -> Result:
    """Conclusion 3: the original method balances every connected block, and so splits it; the improved one does not."""
    result: Result = {}
    for name, solver, mu in ("original", "eigen", 0.0), ("improved", "direct", MU):
        model = fitted(PaperGreen(mu=mu, solver=solver, **GAUSSIAN), few)
        F = model.scores_
        component = model.propagator_.components_of(np.arange(len(F)))
        means = [F[component == block].mean(axis=0) for block in range(model.n_components_)]
        result |= {
            "blocks": float(model.n_components_),
            f"{name}: mean score of a block": float(np.abs(means).max() / np.abs(F).max()),
            f"{name}: accuracy": score(data, few, model.transduction_)["accuracy"],
        }
    return result


def same_as_llgc(data: Data, few: Array, fitted: Models) -> Result:
    """Conclusion 5: LLGC with gamma = n mu differs from GF(G) by one constant, so gives the same classes."""
    green = fitted(PaperGreen(mu=MU, solver="direct", **GAUSSIAN), few)
    llgc = fitted(PaperLLGC(gamma=len(data.X) * MU, **GAUSSIAN), few)
    return _compare(green.scores_, llgc.scores_ - (llgc.scores_ - green.scores_).mean())


def _compare(F: Array, other: Array) -> Result:
    return {
        "difference of scores": float(np.abs(F - other).max() / np.abs(F).max()),
        "rows that differ": float((F.argmax(axis=1) != other.argmax(axis=1)).sum()),
    }


CHECKS: dict[str, Callable[[Data, Array, Models], Result]] = {
    "conclusion 1": same_scores,
    "conclusion 2": same_classes,
    "conclusion 3": block_constraint,
    "conclusion 5": same_as_llgc,
}


def run_checks(data: Data, method: str, trials: Iterable[Trial]) -> Iterator[tuple[Trial, Result]]:
    fitted = Models(data)
    for trial in trials:
        result = CHECKS[method](data, draw_labels(data, trial.per_class, trial.seed), fitted)
        yield trial, {name: float(f"{value:.6g}") for name, value in result.items()}
