"""BlendedClassifier: the graph and ordinary models, weighted by what the labels say. A shell around experts."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from greenlabel._common.parameters import check_seed
from greenlabel._common.threads import one_thread
from greenlabel.blend.experts import GraphExpert, WeightedGraph, usual_experts
from greenlabel.blend.row_experts import RowExpert
from greenlabel.blend.task import Expert, Task, few_added, learn_all
from greenlabel.blend.weights import (
    DIVISIONS,
    NEW,
    Blend,
    accuracy_and_loss,
    blend,
    blend_blindly,
    divide,
    divide_again,
    judged_together,
    probabilities_of,
    scale_to_confidence,
)
from greenlabel.errors import ParameterError
from greenlabel.estimators.anchored import AnchoredGreenClassifier
from greenlabel.estimators.base import Bools, Floats, GraphClassifier, Ints
from greenlabel.estimators.knn import GreenClassifier
from greenlabel.graph.scaling import Scaling, find_scaling
from greenlabel.labels.encoding import Labels, evenly, evidence
from greenlabel.labels.estimates import Filled, estimate_accuracy
from greenlabel.labels.label_shift import suggested_shares
from greenlabel.labels.shares import offsets, read_shares, refine, refinement_pays

ESTIMATE_ROWS = 2_000  # held-out rows that the accuracy is estimated from; more tell no more
GRAPH_MAY_TRAIL = 0.02  # refine="auto": held-out accuracy that the graph may lie behind the blend


class BlendedClassifier(GraphClassifier):
    """The Green function and ordinary models, weighted by how each does on labelled rows it has not seen.

    On some data a graph is the best model, on other data trees or a linear model are. The blend needs no such
    knowledge: it asks them all, weights each by the labelled rows held out from it, and is usually about as good
    as the best of them.

    Parameters
    ----------
    experts : "auto" or list of (name, estimator), default "auto"
        "auto" scales the features where their units differ and asks the Green function on the graph of the rows, the
        same on features weighted by their importance (while rows x columns is at most five million), extra trees,
        logistic regression and two kernels. A list names your own: greenlabel classifiers, which see all rows, and
        scikit-learn classifiers with predict_proba, which see the labelled ones; they get the features as they are.
    class_shares : None, "labels", "balanced", mapping or array, default None
        Shares of the classes that the answer for all rows must have: those among the given labels, equal ones, or
        {class: share}, or one share per class in the order of ``classes_``. A share may be a range (low, high). With
        None they are estimated, and only lean on the answer.
    refine : "auto" or bool, default "auto"
        Whether answers under class_shares are refined over the graph: spread and decided anew until they stay. "auto"
        does so where the graph is about as good as the blend on held-out rows, and refined about as good as before.
    random_state : int, RandomState or None
        Seeds the folds, the trees and the search for neighbours.

    Attributes
    ----------
    classes_, scores_, label_distributions_, transduction_, n_features_in_
        As in GreenClassifier; scores are log-probabilities up to a constant of the row.
    mu_, n_components_, reached_
        Of the first expert that is a graph. A row that its labels do not reach is answered by the other experts.
    weights_ : {name: weight}
        The part of each expert in the evidence that is added up; they sum to 1.
    experts_ : {name: fitted model}
    expert_scores_ : {name: {"accuracy", "log_loss", "weight"}} on held-out rows, and the same of the "blend"
    estimated_accuracy_ : float with ``low`` and ``high``
        Share of unlabelled rows that are right, as held-out rows and confidences suggest, and a 90 % interval.
    class_shares_ : (c,) the shares of the classes among the answers
    refined_ : whether the answers were refined over the graph

    With a single label per class nothing can be held out: the graph then counts four times as much as each other
    expert, probabilities are an order and no promise, and the interval is (0, 1). ``leave_one_out`` of a blend gives
    its out-of-fold scores.

    ``relabel`` keeps the graphs, the weighted ones too: the weights of the features stay as the labels of the fit made
    them, and everything else is learned anew. With the labels of the fit it gives the answer of the fit, with others
    that of a fit with these feature weights; where at most a tenth are added to those of the fit, models that see
    labelled rows only are still judged by what they said of held-out rows at the fit. Where labels have become many
    more, ``fit`` again.

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

        The rows of the fit's labels stay in their folds, so held-out answers stay honest. Without a weighted graph
        among the experts, the answer is that of a new fit, unless at most a tenth of the labels are added.
        """
        return super().relabel(y)

    def _check_parameters(self) -> None:
        check_seed(self.random_state)
        check_experts(self.experts)
        if not (isinstance(self.refine, (bool, np.bool_)) or (isinstance(self.refine, str) and self.refine == "auto")):
            raise ParameterError(f"refine={self.refine!r} is unknown; choose one of 'auto', True, False.")

    def _build(self, X: Any) -> None:
        self._seed = int(check_seed(self.random_state).integers(2**31))
        self._wanted = self.class_shares
        self._may_refine = self.refine if isinstance(self.refine, str) else bool(self.refine)
        self._scaling: Scaling | None = None
        if isinstance(self.experts, str):
            self._scaling = find_scaling(X, np.random.default_rng(self._seed))
            X = self._scaling.apply(X)
            self._experts = usual_experts(X, self._seed)
        else:
            self._experts = [given_expert(name, estimator, X) for name, estimator in self.experts]
        self._X = X
        self._first_labels: Labels | None = None  # those of the fit
        self._first_folds: Ints = np.empty(0, np.int8)  # (n,) of the labels of the fit; NEW where there was none
        graph = next((expert.model for expert in self._experts if isinstance(expert, GraphExpert)), None)
        self._graph = graph
        self.n_components_ = 1 if graph is None else graph.n_components_

    def _spread(self) -> None:
        labels = self._labels
        bounds = None if self._wanted is None else read_shares(self._wanted, labels)
        extends_first = self._first_labels is not None and few_added(self._first_labels, labels)
        folds = self._divide(labels, extends_first)
        coded = Labels(labels.n, np.arange(len(labels.classes)), labels.rows, labels.codes)
        task = Task(self._X, coded, folds, keeps_folds=extends_first)
        self._experts = learn_all(self._experts, task)
        self.mu_ = float("nan") if self._graph is None else getattr(self._first_graph(), "mu_", float("nan"))
        self._folds, self._told = folds, folds >= 0
        with one_thread():  # many small steps, between which threads would only wait for each other
            self._blend = self._weigh()
        self._F: Floats = np.zeros((labels.n, len(labels.classes)))
        for expert, scale in zip(self._experts, self._blend.scales, strict=True):
            self._F += scale * expert.own_evidence
            del expert.own_evidence  # as large as the answer, and part of it now
        self._tell()
        self._lean()
        self._refined: GraphClassifier | None = None
        if bounds is not None:
            self._meet_shares(*bounds)
        self._estimate()

    def _divide(self, labels: Labels, extends_first: bool) -> Ints:
        """Folds of the labels; where something was made for the first ones that stays, rows stay in theirs."""
        rng = np.random.default_rng(self._seed)
        if self._first_labels is None:
            folds = divide(labels.codes, rng)
            self._first_labels, self._first_folds = replace(labels), np.full(labels.n, NEW, np.int8)
            self._first_folds[labels.rows] = folds[0]
            return folds
        if extends_first or any(isinstance(expert, WeightedGraph) for expert in self._experts):
            return divide_again(labels.codes, self._first_folds[labels.rows], rng)
        return divide(labels.codes, rng)

    def _weigh(self) -> Blend:
        trust = np.array([expert.trust for expert in self._experts])
        if not self._told.any():
            leads = np.array([typical_lead(expert.own_evidence) for expert in self._experts])
            return blend_blindly(leads, len(self.classes_), trust)
        codes = np.broadcast_to(self._labels.codes, self._told.shape)[self._told]
        held_out = np.stack([expert.held_out[self._told] for expert in self._experts])
        return blend(held_out, codes, trust, judged_together(self._folds))

    def _tell(self) -> None:
        """The experts, their weights, and how each alone and the blend do on held-out rows."""
        names, b = [expert.name for expert in self._experts], self._blend
        self.experts_ = {expert.name: expert.model for expert in self._experts}
        self.weights_ = dict(zip(names, b.weights.tolist(), strict=True))
        self.expert_scores_ = {
            expert.name: {**accuracy_and_loss(own * expert.held_out[self._told], b.codes), "weight": float(w)}
            for expert, own, w in zip(self._experts, b.own, b.weights, strict=True)
        }
        self.expert_scores_["blend"] = {**accuracy_and_loss(b.held_out, b.codes), "weight": 1.0}

    def _lean(self) -> None:
        """Towards the shares of the classes that the data suggests, unless the user said which ones."""
        b, given = self._blend, self._labels.shares
        self._shares: Floats = given
        self._shift: Floats = np.zeros(len(given))
        if self._wanted is None and len(b.codes):
            p_mean = probabilities_of(self._F).mean(axis=0)
            self._shares = suggested_shares(probabilities_of(b.held_out), b.codes, p_mean, given, DIVISIONS)
            self._shift = np.log(self._shares / given)
            self._F += self._shift

    def _meet_shares(self, low: Floats, high: Floats) -> None:
        """Decisions with the wanted shares: by offsets, or by refinement over the graph."""
        graph = self._graph_to_refine_on(low, high)
        if graph is None:
            self._shift = offsets(self._F, low, high)
            self._F += self._shift
            return
        sure = self._confidence()
        decided = refine(self._F, self._labels, low, high, graph._solve)
        n, c = self._F.shape
        self._refined = graph._as_chosen()._take(Labels(n, np.arange(c), np.arange(n), decided))
        self._shift = offsets(self._refined.scores_, low, high)
        E = evidence(self._refined.scores_ + self._shift)
        self._scale = scale_to_confidence(E[self._unlabelled()], sure)
        self._F = self._scale * E

    def _graph_to_refine_on(self, low: Floats, high: Floats) -> Any:
        """The first expert that is a Green function, if answers are to be refined on it."""
        kinds = (GreenClassifier, AnchoredGreenClassifier)
        graphs = [e for e in self._experts if isinstance(e, GraphExpert) and isinstance(e.model, kinds)]
        if not graphs or self._may_refine is False:
            return None
        graph = graphs[0].model
        if self._may_refine != "auto":
            return graph
        of_graph, of_blend = (self.expert_scores_[name]["accuracy"] for name in (graphs[0].name, "blend"))
        if of_blend - of_graph > GRAPH_MAY_TRAIL:  # both are nan where nothing was held out, and this is false
            return None
        return graph if refinement_pays(graph._labels, self._folds[0], low, high, graph._solve) else None

    def _estimate(self) -> None:
        labels = self._labels
        self.refined_ = self._refined is not None
        self.class_shares_ = np.bincount(self._F.argmax(axis=1), minlength=len(self.classes_)) / labels.n
        _, codes, p_held = self.held_out(ESTIMATE_ROWS)
        free = self._unlabelled()
        p, c = probabilities_of(self._F[free]), len(self.classes_)
        filled = Filled.of(p.argmax(axis=1), p.max(axis=1), np.ones(len(p), bool), c)
        estimate = estimate_accuracy(codes, p_held, labels.counts, filled)
        assert estimate is not None  # there is always a row
        self.estimated_accuracy_ = estimate

    def _confidence(self) -> float:
        """The mean probability of the answer on unlabelled rows."""
        return float(probabilities_of(self._F[self._unlabelled()]).max(axis=1).mean())

    def _unlabelled(self) -> Bools:
        """Rows without a label; where every row has one, all."""
        free = np.ones(self._labels.n, bool)
        free[self._labels.rows] = False
        return free if free.any() else ~free

    def _warn_unreached(self) -> Self:
        return self  # the other experts answer such rows

    def _label_components(self) -> Ints:
        if self._graph is None:
            return np.zeros(len(self._labels.rows), np.intp)
        return self._first_graph()._label_components()

    def _reached(self) -> Bools:
        return np.ones(self._labels.n, bool) if self._graph is None else self._first_graph().reached_

    def _first_graph(self) -> GraphClassifier:
        return next(expert.model for expert in self._experts if isinstance(expert, GraphExpert))

    def _all_scores(self) -> Floats:
        return self._F

    def _extend(self, X: Any) -> tuple[Floats, Bools]:
        if self._scaling is not None:
            X = self._scaling.apply(X)
        if self._refined is not None:
            F = self._scale * evidence(self._refined._extend(X)[0] + self._shift)
        else:
            parts = (scale * e.evidence(X) for e, scale in zip(self._experts, self._blend.scales, strict=True))
            F = sum(parts) + self._shift
        return F, np.ones(X.shape[0], bool)

    def _held_out(self, places: Ints, tolerance: float) -> Floats:
        """Out-of-fold scores, the mean over divisions; zero where a row is the only one of its class."""
        F = np.zeros((*self._told.shape, len(self.classes_)))
        F[self._told] = self._blend.held_out
        return (F.sum(axis=0) / np.maximum(self._told.sum(axis=0), 1)[:, None])[places]

    # By the scores alone: where the graph has nothing to say, other experts have.

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class for each new row."""
        return self.answer_new_rows(X)[0]

    def answer_new_rows(self, X: Any) -> tuple[Floats, Bools]:
        F, is_reached = self._new_rows(X)
        return probabilities_of(F), is_reached

    def held_out(self, most: int) -> tuple[Ints, Ints, Floats]:
        told = evenly(np.flatnonzero(self._told.any(axis=0)), most)
        return self._labels.rows[told], self._labels.codes[told], probabilities_of(self._held_out(told, 0.0))

    _only_for_fit = (
        "_X",
        "_F",
        "_graph",
        "_folds",
        "_first_labels",
        "_first_folds",
        "_told",
        "experts_",
        "expert_scores_",
    )

    def for_new_rows(self) -> Self:
        self._check_fitted()
        slim = self._slim()
        slim._experts = [expert.for_new_rows() for expert in self._experts]
        slim._refined = None if self._refined is None else self._refined._slim()
        slim._blend = replace(self._blend, held_out=self._blend.held_out[:0], codes=self._blend.codes[:0])
        return slim

    def _transduce(self) -> Any:
        return self.classes_[self._F.argmax(axis=1)]

    def _distribute(self) -> Floats:
        return probabilities_of(self._F)


def typical_lead(A: Floats) -> float:
    """The evidence (n, c) for the best class of a usual row among those on which there is any."""
    lead = A.max(axis=1)
    return float(np.median(lead[lead > 0])) if (lead > 0).any() else 0.0


def given_expert(name: str, estimator: Any, X: Any) -> Expert:
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
        raise ParameterError(f"experts is empty, so nobody is asked; {wanted}.")
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
