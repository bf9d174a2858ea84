"""BlendedClassifier: the graph and ordinary models, weighted by what the labels say. A shell around experts."""

import warnings
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from greenlabel._common.parameters import check_real, check_seed
from greenlabel.blend.adding import ClassesOf
from greenlabel.blend.experts import GraphExpert, is_beyond_memory, usual_experts
from greenlabel.blend.fitted import BlendSetup, FittedBlend, fit_blend
from greenlabel.blend.in_blocks import RowsInBlocks, fits_in_memory, learnable, open_in_blocks
from greenlabel.blend.predictor import BlendForPrediction, ScoresOfNewRows
from greenlabel.blend.row_experts import RowExpert
from greenlabel.blend.task import Expert
from greenlabel.blocks.rows import ArrayBlocks, Blocks
from greenlabel.blocks.sources import open_rows
from greenlabel.errors import ParameterError
from greenlabel.estimators.anchored import AnchoredGreenClassifier
from greenlabel.estimators.base import Bools, Floats, GraphClassifier, TransductiveClassifier
from greenlabel.estimators.checks import check_new_stream, check_stream
from greenlabel.graph.features import CheckFeatures
from greenlabel.graph.scaling import find_scaling
from greenlabel.labels.encoding import Labels
from greenlabel.labels.estimates import Estimate
from greenlabel.operators.predictions import BlockPredictions, Decisions, Probabilities


class BlendedClassifier(TransductiveClassifier):
    """The Green function and ordinary models, weighted by how well each predicts labelled rows that it has not seen.

    On some data a graph is the best model, on other data trees or a linear model are. The blend needs no such
    knowledge: it fits them all, weights each by its out-of-fold predictions, and is usually about as good as the best
    of them.

    Rows may be in memory, or wherever AnchoredGreenClassifier takes them from. Up to 50,000 rows of files are read at
    once; beyond, as beyond 200,000 rows in memory, graphs are anchored and rows are read block by block.

    Parameters
    ----------
    experts : "auto" or list of (name, estimator), default "auto"
        "auto" scales the features where their units differ and takes the Green function on the graph of the rows, the
        same on features weighted by their importance (while rows x columns is at most five million, or both graphs are
        anchored), extra trees,
        logistic regression and two kernels. A list names your own: greenlabel classifiers, which see all rows, and
        scikit-learn classifiers with predict_proba, which see the labelled ones; they get the features as they are.
    class_shares : None, "labels", "balanced", mapping or array, default None
        Shares of the classes that the predictions for all rows must have: those among the given labels, equal ones, or
        {class: share}, or one share per class in the order of ``classes_``. A share may be a range (low, high). With
        None they are estimated, and predictions are adjusted to them as far as the estimate is certain.
    refine : "auto" or bool, default "auto"
        Whether predictions under class_shares are refined over the graph: spread and decided anew until they stay.
        "auto" does so where the graph is about as good as the blend out-of-fold, and refinement makes it no worse.
    random_state : int, RandomState or None, default None
        Seeds the folds, the trees, the search for neighbours and samples of many rows.
    memory_limit : int or "auto", default "auto"
        Bytes for what is held of rows that are in files or on a cluster: features, nearest anchors and scores. What
        does not fit is computed again when it is needed. "auto" is half of the free memory.

    Attributes
    ----------
    classes_, scores_, label_distributions_, transduction_, n_features_in_
        As in GreenClassifier; scores are log-probabilities up to a constant of the row.
    mu_, n_components_, reached_
        Those of the first expert that is a graph. The other experts predict the rows that it leaves unreached.
    weights_ : {name: weight}
        The part of each expert in the evidence that is added up; they sum to 1.
    experts_ : {name: fitted model}
        The experts, each fitted to all labels.
    expert_scores_ : {name: {"accuracy", "log_loss", "weight"}}
        Out-of-fold, and the same of the "blend".
    estimated_accuracy_ : float with ``low`` and ``high``
        Share of right predictions on unlabelled rows, from out-of-fold ones and confidence, and a 90 % interval.
    class_shares_ : (c,) array
        The shares of the classes among the predictions.
    refined_ : bool
        Whether the predictions were refined over the graph.

    Notes
    -----
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

    _setup: BlendSetup | None  # what is there before the labels
    _rows: Any  # of a fit that has no setup yet

    def __init__(
        self,
        experts: Any = "auto",
        *,
        class_shares: Any = None,
        refine: Any = "auto",
        random_state: Any = None,
        memory_limit: int | str = "auto",
    ):
        self.experts = experts
        self.class_shares = class_shares
        self.refine = refine
        self.random_state = random_state
        self.memory_limit = memory_limit

    def relabel(self, y: Any) -> Self:
        """Other labels on the same graphs; features keep the weights that the labels of the fit gave them.

        All experts learn the new labels. Only their tests are cheaper than those of a fit, see above.

        Parameters
        ----------
        y : (n,) array
            Labels of all rows of the fit, as in ``fit``.

        Returns
        -------
        self : BlendedClassifier
        """
        return super().relabel(y)

    def check_parameters(self) -> None:
        check_seed(self.random_state)
        check_experts(self.experts)
        if not (isinstance(self.refine, (bool, np.bool_)) or (isinstance(self.refine, str) and self.refine == "auto")):
            raise ParameterError(f"refine={self.refine!r} is unknown; choose one of 'auto', True, False.")
        if not (isinstance(self.memory_limit, str) and self.memory_limit == "auto"):
            check_real("memory_limit", self.memory_limit, 0, offer=" bytes, or 'auto'")

    def answers(self) -> Iterator[BlockPredictions]:
        """Class and probabilities of all rows of the fit, block by block: (rows, classes, probabilities).

        Use it to write predictions that would not fit in memory: nothing of the size of the data is held.
        """
        return self._of_rows("rows").answers()

    def predict_proba_all_rows(self) -> Iterator[tuple[Floats, Bools]]:
        """The same as (probabilities, is_reached), as ``predict_proba_reached`` gives them for new rows."""
        return self._of_rows("rows").probabilities_in_blocks()

    def predict(self, X: Any) -> Any:
        """The class of each new row; for a Dask array a Dask array, not yet computed.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path or Dask array
            New rows of any kind that ``fit`` takes.
        """
        rows = self._new_blocks(X)
        return (
            super().predict(X)
            if rows is None
            else rows.collect(ClassesOf(self._step, self.classes_), self.classes_[:0])
        )

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class for each new row; for a Dask array a Dask array, not yet computed.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path or Dask array
            New rows of any kind that ``fit`` takes.
        """
        rows = self._new_blocks(X)
        if rows is None:
            return super().predict_proba(X)
        return rows.collect(Probabilities(self._step, self._fitted.decoder), np.empty((0, len(self.classes_))))

    def decision_function(self, X: Any) -> Any:
        """Scores of new rows, on the scale of ``scores_``; the largest is the class of the row.

        For two classes it is one column, positive for the second.

        Parameters
        ----------
        X : array, sparse matrix, data frame, path or Dask array
            New rows of any kind that ``fit`` takes.
        """
        rows = self._new_blocks(X)
        if rows is None:
            return super().decision_function(X)
        c = len(self.classes_)
        return rows.collect(Decisions(self._step, self._fitted.decoder), np.empty((0, c) if c > 2 else 0))

    @property
    def class_shares_(self) -> Floats:
        """Shares of the classes among the predictions (c,)."""
        return self.fitted_.class_shares

    @property
    def estimated_accuracy_(self) -> Estimate:
        """Share of right predictions on unlabelled rows, and a 90 % interval."""
        return self.fitted_.accuracy

    @property
    def _step(self) -> Any:
        """Scores of new rows, block by block."""
        return ScoresOfNewRows(self.fitted_.predictor.for_prediction())

    def _new_blocks(self, X: Any) -> Blocks | None:
        """New rows outside memory, checked; None for others."""
        source, _ = open_rows(X)
        return None if source is None else check_new_stream(self, source, self.unit_)

    def _open(self, X: Any, y: Any) -> tuple[Any, int, Any]:
        """Few rows of files are read at once: they are an array like any other."""
        source, y = open_rows(X, y)
        if source is None:
            return super()._open(X, y)
        source = check_stream(self, source)
        self._is_graph, self._unit = False, None
        if not fits_in_memory(source.n, self.n_features_in_):
            return source, source.n, y
        names = source.names
        X, _ = source.through(CheckFeatures(self.n_features_in_)).some(np.arange(source.n))
        opened = super()._open(X, y)
        if names is not None and len(names) == self.n_features_in_:
            self.feature_names_in_ = np.array(names, dtype=object)
        return opened

    def _fit_graph(self, X: Any) -> None:
        """Nothing yet: rows in blocks are sampled once, together with those that carry labels."""
        self._rows, self._setup = X, None

    def _fit_labels(self, labels: Labels) -> None:
        if self._setup is None:
            self._setup, self._rows = self._set_up(self._rows, labels), None
        if isinstance(self._setup.X, RowsInBlocks):
            labels = learnable(labels, self.n_features_in_, self._setup.seed)
        fitted, self._setup = fit_blend(self._setup, labels)
        self._set_fitted(fitted)

    def _set_up(self, X: Any, labels: Labels) -> BlendSetup:
        """Scaled features, and experts with their graphs. Labels are used to read their rows, and for nothing else."""
        seed = int(check_seed(self.random_state).integers(2**31))
        is_auto, scaling = isinstance(self.experts, str), None
        if isinstance(X, Blocks) or (is_beyond_memory(X) and takes_blocks(self.experts)):
            rows, d = X if isinstance(X, Blocks) else ArrayBlocks(X), self.n_features_in_
            with warnings.catch_warnings(action="ignore"):  # which the fit is about to give
                labelled = learnable(labels, d, seed).rows
            X, scaling, self._unit = open_in_blocks(rows, d, self._unit, is_auto, labelled, seed, self.memory_limit)
        elif is_auto:
            scaling = find_scaling(X, np.random.default_rng(seed))
            X = scaling.apply(X)
        if is_auto:
            experts = usual_experts(X, seed)
        else:
            experts = [own_expert(name, estimator, X) for name, estimator in self.experts]
        wanted_refine = self.refine if isinstance(self.refine, str) else bool(self.refine)
        return BlendSetup(X, experts, scaling, seed, self.class_shares, wanted_refine)

    def _set_fitted(self, fitted: BlendForPrediction) -> None:
        super()._set_fitted(fitted)
        names = [expert.name for expert in fitted.predictor.experts]
        self.weights_ = dict(zip(names, fitted.predictor.blend.weights.tolist(), strict=True))
        self.refined_ = fitted.predictor.refined is not None
        if isinstance(fitted, FittedBlend):
            self._set_expert_attributes(fitted)
        else:
            for name in ("_setup", "_rows", "experts_", "expert_scores_"):
                self.__dict__.pop(name, None)

    def _set_expert_attributes(self, fitted: FittedBlend) -> None:
        """What only the rows of the fit can tell."""
        graph = fitted.graph
        self.mu_ = float("nan") if graph is None or graph.propagator.mu is None else graph.propagator.mu
        self.n_components_ = 1 if graph is None else graph.propagator.n_components
        self.experts_ = {expert.name: expert.model for expert in fitted.predictor.experts}
        self.expert_scores_ = fitted.expert_scores()


def takes_blocks(experts: Any) -> bool:
    """Whether all experts take rows in blocks."""
    if isinstance(experts, str):
        return True
    graphs = [estimator for _, estimator in experts if isinstance(estimator, GraphClassifier)]
    return all(isinstance(estimator, AnchoredGreenClassifier) for estimator in graphs)


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
