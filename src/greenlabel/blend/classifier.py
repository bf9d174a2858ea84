"""BlendedClassifier: the graph and ordinary models, weighted by what the labels say. A shell around experts."""

from typing import Any, Self

import numpy as np
from sklearn.base import clone

from greenlabel._common.parameters import check_seed
from greenlabel.blend.experts import GraphExpert, usual_experts
from greenlabel.blend.fitted import BlendForPrediction, BlendSetup, FittedBlend, fit_blend
from greenlabel.blend.row_experts import RowExpert
from greenlabel.blend.task import Expert
from greenlabel.errors import ParameterError
from greenlabel.estimators.base import GraphClassifier, TransductiveClassifier
from greenlabel.graph.scaling import find_scaling
from greenlabel.labels.encoding import Labels


class BlendedClassifier(TransductiveClassifier):
    """The Green function and ordinary models, weighted by how well each predicts labelled rows that it has not seen.

    On some data a graph is the best model, on other data trees or a linear model are. The blend needs no such
    knowledge: it fits them all, weights each by its out-of-fold predictions, and is usually about as good as the best
    of them.

    Parameters
    ----------
    experts : "auto" or list of (name, estimator), default "auto"
        "auto" scales the features where their units differ and takes the Green function on the graph of the rows, the
        same on features weighted by their importance (while rows x columns is at most five million), extra trees,
        logistic regression and two kernels. A list names your own: greenlabel classifiers, which see all rows, and
        scikit-learn classifiers with predict_proba, which see the labelled ones; they get the features as they are.
    class_shares : None, "labels", "balanced", mapping or array, default None
        Shares of the classes that the predictions for all rows must have: those among the given labels, equal ones, or
        {class: share}, or one share per class in the order of ``classes_``. A share may be a range (low, high). With
        None they are estimated, and predictions are adjusted to them as far as the estimate is certain.
    refine : "auto" or bool, default "auto"
        Whether predictions under class_shares are refined over the graph: spread and decided anew until they stay.
        "auto" does so where the graph is about as good as the blend out-of-fold, and refinement makes it no worse.
    random_state : int, RandomState or None
        Seeds the folds, the trees and the search for neighbours.

    Attributes
    ----------
    classes_, scores_, label_distributions_, transduction_, n_features_in_
        As in GreenClassifier; scores are log-probabilities up to a constant of the row.
    mu_, n_components_, reached_
        Those of the first expert that is a graph. The other experts predict the rows that it leaves unreached.
    weights_ : {name: weight}
        The part of each expert in the evidence that is added up; they sum to 1.
    experts_ : {name: fitted model}
    expert_scores_ : {name: {"accuracy", "log_loss", "weight"}} out-of-fold, and the same of the "blend"
    estimated_accuracy_ : float with ``low`` and ``high``
        Share of right predictions on unlabelled rows, from out-of-fold ones and confidence, and a 90 % interval.
    class_shares_ : (c,) the shares of the classes among the predictions
    refined_ : whether the predictions were refined over the graph

    With a single label per class nothing can be tested: the graph then counts four times as much as each other
    expert, probabilities are an order and no promise, and the interval is (0, 1). ``leave_one_out`` of a blend gives
    its out-of-fold scores.

    ``relabel`` keeps the graphs, the weighted ones too: the weights of the features stay as the labels of the fit made
    them. With a few labels more, or another draw of about as many, experts keep the weights that tests of the fit's
    models give them; with other labels they are tested anew, once instead of twice. With the labels of the fit the
    result is that of the fit. Where labels have become many more, ``fit`` again.

    Examples
    --------
    >>> from greenlabel import BlendedClassifier
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> BlendedClassifier(random_state=0).fit(X, [0, 0, -1, 1, 1, -1]).transduction_.tolist()
    [0, 0, 0, 1, 1, 1]
    """

    def __init__(
        self, experts: Any = "auto", *, class_shares: Any = None, refine: Any = "auto", random_state: Any = None
    ):
        self.experts = experts
        self.class_shares = class_shares
        self.refine = refine
        self.random_state = random_state

    def relabel(self, y: Any) -> Self:
        """Other labels on the same graphs; features keep the weights that the labels of the fit gave them.

        All experts learn the new labels. Only their tests are cheaper than those of a fit, see above.
        """
        return super().relabel(y)

    def check_parameters(self) -> None:
        check_seed(self.random_state)
        check_experts(self.experts)
        if not (isinstance(self.refine, (bool, np.bool_)) or (isinstance(self.refine, str) and self.refine == "auto")):
            raise ParameterError(f"refine={self.refine!r} is unknown; choose one of 'auto', True, False.")

    def _fit_graph(self, X: Any) -> None:
        seed = int(check_seed(self.random_state).integers(2**31))
        scaling = None
        if isinstance(self.experts, str):
            scaling = find_scaling(X, np.random.default_rng(seed))
            X = scaling.apply(X)
            experts = usual_experts(X, seed)
        else:
            experts = [own_expert(name, estimator, X) for name, estimator in self.experts]
        wanted_refine = self.refine if isinstance(self.refine, str) else bool(self.refine)
        self._setup = BlendSetup(X, experts, scaling, seed, self.class_shares, wanted_refine)

    def _fit_labels(self, labels: Labels) -> None:
        fitted, self._setup = fit_blend(self._setup, labels)
        self._set_fitted(fitted)

    def _set_fitted(self, fitted: BlendForPrediction) -> None:
        super()._set_fitted(fitted)
        names = [expert.name for expert in fitted.predictor.experts]
        self.weights_ = dict(zip(names, fitted.predictor.blend.weights.tolist(), strict=True))
        self.refined_ = fitted.predictor.refined is not None
        if isinstance(fitted, FittedBlend):
            self._set_expert_attributes(fitted)
        else:
            for name in ("_setup", "experts_", "expert_scores_"):
                self.__dict__.pop(name, None)

    def _set_expert_attributes(self, fitted: FittedBlend) -> None:
        """What only the rows of the fit can tell."""
        graph = fitted.graph
        self.mu_ = float("nan") if graph is None or graph.propagator.mu is None else graph.propagator.mu
        self.n_components_ = 1 if graph is None else graph.propagator.n_components
        self.experts_ = {expert.name: expert.model for expert in fitted.predictor.experts}
        self.expert_scores_ = fitted.expert_scores()
        self.class_shares_ = fitted.class_shares
        self.estimated_accuracy_ = fitted.estimated_accuracy()


def own_expert(name: str, estimator: Any, X: Any) -> Expert:
    if isinstance(estimator, GraphClassifier):
        return GraphExpert(name, clone(estimator), X)
    return RowExpert(name, estimator)


def check_experts(experts: Any) -> None:
    """The word "auto", or (name, estimator) pairs whose estimators can be asked for probabilities."""
    if isinstance(experts, str) and experts == "auto":
        return
    wanted = "give 'auto' or a list of (name, estimator)"
    if isinstance(experts, str) or not hasattr(experts, "__iter__"):
        raise ParameterError(f"experts={experts!r} is unknown; {wanted}.")
    pairs = list(experts)
    if not pairs:
        raise ParameterError(f"experts is empty; {wanted}.")
    for pair in pairs:
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and isinstance(pair[0], str)):
            raise ParameterError(f"experts holds {pair!r}, which is no pair of a name and an estimator; {wanted}.")
        check_estimator(*pair)
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names) or "blend" in names:
        raise ParameterError(f"experts are named {names}; give each a name of its own, other than 'blend'.")


def check_estimator(name: str, estimator: Any) -> None:
    if isinstance(estimator, BlendedClassifier) or getattr(estimator, "graph", "knn") == "precomputed":
        raise ParameterError(f"expert {name!r} is a blend or has a graph of its own; give classifiers of features.")
    if isinstance(estimator, type) or not (hasattr(estimator, "fit") and hasattr(estimator, "predict_proba")):
        raise ParameterError(
            f"expert {name!r} ({estimator!r}) has no predict_proba; give a scikit-learn classifier that has "
            "(for an SVC, set probability=True)."
        )
