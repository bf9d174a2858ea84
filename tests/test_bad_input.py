"""Bad input: an error of the right kind that says what came, what was needed and what to do, and nothing lost."""

import re
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from greenlabel import (
    AnchoredGreenClassifier,
    BlendedClassifier,
    ConsistencyClassifier,
    GreenClassifier,
    HarmonicClassifier,
    leave_one_out,
)
from greenlabel._common import parameters
from greenlabel.errors import DataError, GraphError, GreenlabelError, LabelError, MemoryLimitError, ParameterError
from helpers.estimators import ESTIMATORS, GRAPH_ESTIMATORS, KNN_ESTIMATORS, SLOW_BLEND

# A clause that opens with a verb: what to do.
ADVICE = re.compile(
    r"(?:[;.,:]\s+|\n\s*)(?:so )?(?:give|use|raise|lower|fill|drop|choose|label|mark|make|round|convert|encode|reshape|"
    r"fit|add|set|pass|call)\b",
    re.IGNORECASE,
)


@contextmanager
def refuses(kind, *patterns):
    """An error of this kind whose message matches all patterns and says what to do."""
    with pytest.raises(GreenlabelError) as caught:
        yield
    message = str(caught.value)
    assert isinstance(caught.value, kind), f"{type(caught.value).__name__}: {message}"
    for pattern in patterns:
        assert re.search(pattern, message), f"{pattern!r} is not in: {message}"
    assert ADVICE.search(message), f"does not say what to do: {message}"


def of(models, **params):
    """One case for each model."""
    return [pytest.param(Model, params, id=f"{Model.__name__}-{params}") for Model in models]


def each(models, name, values):
    return [case for value in values for case in of(models, **{name: value})]


# Parameters of the wrong type, out of range, unknown by name ------------------------------------------------------


@pytest.mark.parametrize(("Model", "params"), each(GRAPH_ESTIMATORS, "n_neighbors", [0, -1]))
def test_too_few_neighbours_are_refused(Model, params, blobs, few):
    with refuses(ParameterError, f"n_neighbors={params['n_neighbors']}", "integer of at least 1"):
        Model(**params).fit(blobs[0], few)


@pytest.mark.parametrize(
    ("Model", "params"), each(GRAPH_ESTIMATORS, "n_neighbors", [2.5, 5.0, True, "5", None, np.nan])
)
def test_neighbours_that_are_no_whole_number_are_refused(Model, params, blobs, few):
    with refuses(ParameterError, re.escape(f"n_neighbors={params['n_neighbors']!r}"), "whole number", "at least 1"):
        Model(**params).fit(blobs[0], few)


@pytest.mark.parametrize(
    ("Model", "params"),
    each([GreenClassifier, AnchoredGreenClassifier], "mu", [-1, -1e-300, np.nan, np.inf, -np.inf]),
)
def test_a_mu_out_of_range_is_refused(Model, params, blobs, few):
    with refuses(ParameterError, f"mu={float(params['mu'])!r}", "out of range", "a number of at least 0"):
        Model(**params).fit(blobs[0], few)


@pytest.mark.parametrize("solver", ["auto", "eigen", "direct", "cg"])
def test_a_negative_mu_is_refused_whatever_the_solver(solver, blobs, few):
    with refuses(ParameterError, "mu=-0.5", "at least 0"):
        GreenClassifier(mu=-0.5, solver=solver).fit(blobs[0], few)


@pytest.mark.parametrize(
    ("Model", "params"), each([GreenClassifier, AnchoredGreenClassifier], "mu", ["big", "0.1", True, None, [0.1], 1j])
)
def test_a_mu_that_is_no_number_is_refused_and_auto_is_offered(Model, params, blobs, few):
    with refuses(ParameterError, re.escape(f"mu={params['mu']!r}"), "number of at least 0", "'auto'"):
        Model(**params).fit(blobs[0], few)


@pytest.mark.parametrize("gamma", [0, 0.0, -1, np.nan, np.inf])
def test_a_gamma_out_of_range_is_refused(gamma, blobs, few):
    with refuses(ParameterError, f"gamma={float(gamma)!r}", "out of range", "greater than 0"):
        ConsistencyClassifier(gamma=gamma).fit(blobs[0], few)


@pytest.mark.parametrize("gamma", ["1", True, None, [1.0]])
def test_a_gamma_that_is_no_number_is_refused(gamma, blobs, few):
    with refuses(ParameterError, re.escape(f"gamma={gamma!r}"), "not a number", "greater than 0"):
        ConsistencyClassifier(gamma=gamma).fit(blobs[0], few)


@pytest.mark.parametrize("n_anchors", [0, 1, -3, 2.5, 20.0, "many", True, None])
def test_a_number_of_anchors_that_is_none_is_refused_and_auto_is_offered(n_anchors, blobs, few):
    with refuses(ParameterError, re.escape(f"n_anchors={n_anchors!r}"), "integer of at least 2", "'auto'"):
        AnchoredGreenClassifier(n_anchors=n_anchors).fit(blobs[0], few)


@pytest.mark.parametrize(
    ("Model", "params", "known"),
    [
        *((M, {"weights": "cosine"}, ["'adaptive'", "'gaussian'", "'binary'"]) for M in KNN_ESTIMATORS),
        *((M, {"weights": None}, ["'adaptive'", "'gaussian'", "'binary'"]) for M in KNN_ESTIMATORS),
        *((M, {"graph": "radius"}, ["'knn'", "'precomputed'"]) for M in KNN_ESTIMATORS),
        *((M, {"graph": 3}, ["'knn'", "'precomputed'"]) for M in KNN_ESTIMATORS),
        (GreenClassifier, {"solver": "lu"}, ["'auto'", "'eigen'", "'direct'", "'cg'"]),
        (GreenClassifier, {"solver": None}, ["'auto'", "'eigen'", "'direct'", "'cg'"]),
        (AnchoredGreenClassifier, {"anchors": "grid"}, ["'bkhk'", "'kmeans'", "'random'"]),
    ],
)
def test_an_unknown_name_is_refused_and_the_known_ones_are_listed(Model, params, known, blobs, few):
    (name, value), *_ = params.items()
    with refuses(ParameterError, f"{name}={value!r} is unknown", *known):
        Model(**params).fit(blobs[0], few)


@pytest.mark.parametrize(("Model", "params"), each(ESTIMATORS, "random_state", ["seed", -1, 2.5]))
def test_a_random_state_that_seeds_nothing_is_refused(Model, params, blobs, few):
    with refuses(ParameterError, re.escape(f"random_state={params['random_state']!r}"), "integer", "None"):
        Model(**params).fit(blobs[0], few)


def test_parameters_are_not_checked_before_fit():
    GreenClassifier(n_neighbors="five", mu=-1, solver="none")
    AnchoredGreenClassifier(n_anchors=-1, anchors="none")


# Anchors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_anchors", "n_neighbors"), [(5, 5), (4, 5), (16, 20), (2, 2)])
def test_as_many_neighbours_as_anchors_or_more_are_refused(n_anchors, n_neighbors, blobs, few):
    needed = f"n_neighbors={n_neighbors} needs at least {n_neighbors + 1} anchors, got {n_anchors}"
    with refuses(ParameterError, needed, "raise n_anchors or lower n_neighbors"):
        AnchoredGreenClassifier(n_anchors, n_neighbors).fit(blobs[0], few)


@pytest.mark.parametrize("n_anchors", [61, 10**9])
def test_more_anchors_than_rows_are_refused(n_anchors, blobs, few):
    with refuses(ParameterError, f"n_anchors={n_anchors}", f"at least {n_anchors} rows, got 60", "lower n_anchors"):
        AnchoredGreenClassifier(n_anchors).fit(blobs[0], few)


@pytest.mark.parametrize("n_given", [1, 4, 5])
def test_given_anchors_no_more_than_neighbours_are_refused(n_given, blobs, few):
    needed = f"n_neighbors=5 needs at least 6 anchors, got {n_given}"
    with refuses(ParameterError, needed, "give more anchors or lower n_neighbors"):
        AnchoredGreenClassifier(anchors=blobs[0][:n_given]).fit(blobs[0], few)


@pytest.mark.parametrize("width", [1, 3])
def test_given_anchors_of_another_width_are_refused(width, blobs, few):
    with refuses(ParameterError, rf"anchors have shape \(10, {width}\)", "X has 2 columns", r"give an \(m, 2\) array"):
        AnchoredGreenClassifier(anchors=np.zeros((10, width))).fit(blobs[0], few)


@pytest.mark.parametrize("shape", [(10,), (3,), (10, 2, 1)], ids=str)
def test_given_anchors_that_are_no_table_are_refused_by_their_shape(shape, blobs, few):
    with refuses(ParameterError, re.escape(f"anchors have shape {shape}"), r"give an \(m, 2\) array"):
        AnchoredGreenClassifier(anchors=np.zeros(shape)).fit(blobs[0], few)


@pytest.mark.parametrize("anchors", [None, 7, 2.5], ids=repr)
def test_anchors_that_are_neither_a_name_nor_an_array_are_refused_as_such(anchors, blobs, few):
    with refuses(ParameterError, rf"anchors\b.*{anchors!r}", "'bkhk'", r"\(m, 2\) array|\(m, d\) array"):
        AnchoredGreenClassifier(anchors=anchors).fit(blobs[0], few)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_given_anchors_that_are_not_finite_are_refused(bad, blobs, few):
    anchors = blobs[0][:10].copy()
    anchors[3, 1] = bad
    with refuses(DataError, "anchors hold NaN or infinity", "give finite"):
        AnchoredGreenClassifier(anchors=anchors).fit(blobs[0], few)


@pytest.mark.parametrize(
    "anchors",
    [
        np.full((10, 2), "a"),
        np.full((10, 2), {}, dtype=object),
        np.full((10, 2), 1j),
        [[0.0, 1.0]] * 9 + [[0.0]],
    ],
    ids=["text", "objects", "complex", "ragged"],
)
def test_given_anchors_that_are_no_numbers_are_refused(anchors, blobs, few):
    with refuses(ParameterError, "anchors", "numbers", r"give an \(m, \w\) array"):
        AnchoredGreenClassifier(anchors=anchors).fit(blobs[0], few)


# Features ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bad", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.coo_array, pd.DataFrame, np.float32])
def test_features_that_are_not_finite_are_refused_with_their_place(Model, kind, bad, name, blobs, few):
    X = blobs[0].copy()
    X[7, 1] = bad
    with refuses(DataError, name, "row 7, column 1", r"\(1 values?", "fill", "drop"):
        Model().fit(kind(X), few)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_both_infinities_are_refused_without_a_warning_of_arithmetic(Model, blobs, few):
    X = blobs[0].copy()
    X[3, 0], X[5, 1] = np.inf, -np.inf
    with refuses(DataError, "infinity", "row 3, column 0", "2 values"):
        Model().fit(X, few)


@pytest.mark.slow
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_new_rows_that_are_not_finite_are_refused(Model, bad, blobs, few):
    model = Model().fit(blobs[0], few)
    for method in (model.predict, model.predict_proba, model.decision_function):
        with refuses(DataError, "row 1, column 0", "fill"):
            method([[0.0, 0.0], [bad, 0.0]])


def test_missing_values_of_a_frame_are_refused_as_missing(Model, blobs, few):
    X = pd.DataFrame(blobs[0], columns=["a", "b"]).astype("Float64")
    X.loc[7, "b"] = pd.NA
    with refuses(DataError, "NaN", "row 7, column 1", "fill"):
        Model().fit(X, few)


@pytest.mark.parametrize("missing", [None, pd.NA, float("nan")], ids=repr)
def test_missing_values_among_objects_are_refused_as_missing(Model, missing, blobs, few):
    X = blobs[0].astype(object)
    X[7, 1] = missing
    with refuses(DataError, "NaN|missing", "fill"):
        Model().fit(X, few)


@pytest.mark.parametrize("cell", ["red", "", b"red"])
def test_text_features_are_refused(Model, cell, blobs, few):
    X = np.array([[0.5, cell]] * 60, dtype=object)
    with refuses(DataError, "(?i)encode|numeric|numbers"):
        Model().fit(X, few)


def test_a_text_array_is_refused_even_where_it_spells_numbers(Model, blobs, few):
    with refuses(DataError, "strings|text", "numeric|numbers"):
        Model().fit(blobs[0].astype(str), few)


def test_a_frame_with_a_text_column_is_refused(Model, blobs, few):
    X = pd.DataFrame(blobs[0], columns=["a", "b"]).assign(colour="red")
    with refuses(DataError, "red", "(?i)encode|numeric|numbers"):
        Model().fit(X, few)


@pytest.mark.parametrize("kind", ["datetime64[s]", "timedelta64[s]"])
def test_times_as_features_are_refused(Model, kind, blobs, few):
    X = np.arange(120).reshape(60, 2).astype(kind)
    with refuses(DataError, "datetime|timedelta", "numbers|numeric"):
        Model().fit(X, few)


def test_objects_as_features_are_refused(Model, few):
    X = np.array([[0.5, {"a": 1}]] * 60, dtype=object)
    with pytest.raises((DataError, TypeError), match="number"):
        Model().fit(X, few)


def test_complex_features_are_refused(Model, blobs, few):
    with refuses(DataError, "Complex data not supported"):
        Model().fit(blobs[0] + 1j, few)


def test_a_single_column_without_its_second_axis_is_refused(Model, blobs, few):
    with refuses(DataError, "Expected 2D array, got 1D array", r"(?i)reshape\(-1, 1\)"):
        Model().fit(blobs[0][:, 0], few)


def test_features_of_three_axes_are_refused(Model, blobs, few):
    with refuses(DataError, "dim 3|3D|3 dimensions", "2"):
        Model().fit(blobs[0][:, :, None], few)


def test_nothing_as_features_is_refused(Model, few):
    with refuses(DataError, "2D|None"):
        Model().fit(None, few)


def test_ragged_features_are_refused(Model, few):
    with refuses(DataError, "inhomogeneous|sequence|same length"):
        Model().fit([[0.0, 1.0]] * 59 + [[0.0]], few)


def test_features_without_a_column_are_refused(Model, few):
    with refuses(DataError, r"0 feature\(s\)", "minimum of 1"):
        Model().fit(np.empty((60, 0)), few)


def test_a_single_row_is_refused(Model):
    with refuses(DataError, r"1 sample", "minimum of 2"):
        Model().fit([[0.0, 1.0]], [1])


def test_no_row_is_refused(Model):
    with refuses(DataError, r"0 sample", "minimum of"):
        Model().fit(np.empty((0, 2)), [])


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_new_rows_of_another_width_are_refused(Model, width, kind, blobs, few):
    model = Model().fit(blobs[0], few)
    for method in (model.predict, model.predict_proba, model.decision_function):
        with refuses(DataError, f"X has {width} features", "expecting 2 features"):
            method(kind(np.ones((4, width))))


def test_new_rows_under_other_column_names_are_refused(Model, blobs, few):
    model = Model().fit(pd.DataFrame(blobs[0], columns=["a", "b"]), few)
    with refuses(DataError, "feature names", "c"):
        model.predict(pd.DataFrame(blobs[0], columns=["a", "c"]))


# Labels -----------------------------------------------------------------------------------------------------------

BAD_LABELS = {
    "none at all": (np.full(60, -1), ["no label at all", "60 rows", "two classes", "-1"]),
    "only NaN": (np.full(60, np.nan), ["no label at all", "60 rows"]),
    "only empty text": (np.full(60, ""), ["no label at all", "60 rows"]),
    "only None": ([None] * 60, ["no label at all", "60 rows"]),
    "a single class": (np.where(np.arange(60) < 3, 7, -1), ["single class", "7", "3 labels", "another class"]),
    "a single text": (["cat"] + [""] * 59, ["single class", "cat", "1 label", "another class"]),
    "too short": (np.zeros(58, int), ["58 entries", "60 rows", "one label per row", "-1"]),
    "too long": (np.zeros(61, int), ["61 entries", "60 rows", "one label per row"]),
    "empty": ([], ["0 entries", "60 rows"]),
    "None": (None, ["y", "None", "-1"]),
    "two columns": (np.zeros((60, 2), int), [r"\(60, 2\)", "one label per row|1d|one column"]),
    "a scalar": (3, ["shape|scalar|single value", "one label per row|1d"]),
    "text and numbers": (np.array(["a", 1] * 30, dtype=object), ["text and numbers", "all text or all numbers"]),
    "text and numbers in a list": (["a", 1] * 30, ["text and numbers", "all text or all numbers"]),
    "continuous": (np.linspace(0, 1, 60), ["continuous", r"0\.0169492", "whole numbers", "round or bin"]),
    "one fraction": ([0.0, 1.0, 2.5] * 20, ["continuous", "2.5", "whole numbers"]),
    "infinite": ([0.0, 1.0, np.inf] * 20, ["infinity|inf"]),
    "complex": (np.arange(60) + 1j, ["complex", "whole numbers or text|numbers or text"]),
}


@pytest.mark.parametrize(("y", "patterns"), BAD_LABELS.values(), ids=BAD_LABELS)
def test_labels_that_cannot_be_used_are_refused_by_fit(Model, y, patterns, blobs):
    with refuses(LabelError, *patterns):
        Model().fit(blobs[0], y)


@SLOW_BLEND
@pytest.mark.parametrize(("y", "patterns"), BAD_LABELS.values(), ids=BAD_LABELS)
def test_labels_that_cannot_be_used_are_refused_by_relabel(Model, y, patterns, blobs, few):
    model = Model().fit(blobs[0], few)
    with refuses(LabelError, *patterns):
        model.relabel(y)


# Precomputed graphs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csr_array])
class TestPrecomputedGraphs:
    def test_a_graph_that_is_not_square_is_refused(self, KnnModel, kind, similarity):
        S, y = similarity
        with refuses(GraphError, r"\(30, 29\)", "not square", "one row and one column"):
            KnnModel(graph="precomputed").fit(kind(S[:, :29]), y)

    def test_a_negative_similarity_is_refused(self, KnnModel, kind, similarity):
        S, y = similarity
        S[2, 5] = S[5, 2] = -0.25
        with refuses(GraphError, r"negative similarity \(-0.25\)", "at least 0"):
            KnnModel(graph="precomputed").fit(kind(S), y)

    def test_an_asymmetric_graph_is_refused_with_the_worst_pair(self, KnnModel, kind, similarity):
        S, y = similarity
        S[2, 5], S[5, 2] = 8.0, 0.5
        with refuses(GraphError, "not symmetric", r"S\[(2, 5|5, 2)\] = (8|0.5)", r"\(S \+ S'\) / 2"):
            KnnModel(graph="precomputed").fit(kind(S), y)

    def test_a_graph_with_nan_is_refused(self, KnnModel, kind, similarity):
        S, y = similarity
        S[4, 3] = S[3, 4] = np.nan
        with refuses(GreenlabelError, "NaN", "row 3, column 4"):
            KnnModel(graph="precomputed").fit(kind(S), y)

    def test_new_rows_tied_to_another_number_of_rows_are_refused(self, KnnModel, kind, similarity):
        S, y = similarity
        model = KnnModel(graph="precomputed").fit(kind(S), y)
        with refuses(DataError, "29 features", "30 features"):
            model.predict(kind(S[:3, :29]))

    def test_new_rows_with_a_negative_tie_are_refused(self, KnnModel, kind, similarity):
        S, y = similarity
        model = KnnModel(graph="precomputed").fit(kind(S), y)
        with refuses(GraphError, "negative similarity", "at least 0"):
            model.predict(kind(-S[:3]))


@pytest.mark.parametrize("solver", ["direct", "cg", "auto"])
def test_mu_of_zero_on_a_disconnected_graph_is_refused(solver, islands):
    X, y = islands
    with refuses(GraphError, "mu=0", "3 components", "without an inverse", "mu > 0", "mu='auto'", "solver='eigen'"):
        GreenClassifier(mu=0, solver=solver).fit(X, y)


def test_mu_of_zero_on_a_disconnected_precomputed_graph_is_refused():
    with refuses(GraphError, "mu=0", "2 components", "mu='auto'"):
        GreenClassifier(mu=0.0, graph="precomputed").fit(np.kron(np.eye(2), np.ones((3, 3))), [0, 1, -1] * 2)


def test_mu_of_zero_on_disconnected_anchors_is_refused_with_advice_that_this_class_can_follow(islands):
    X, y = islands
    with refuses(GraphError, "mu=0", "3 components", "mu > 0", "mu='auto'", r"^((?!solver=).)*$"):
        AnchoredGreenClassifier(30, 3, mu=0).fit(X, y)


def test_rows_as_far_from_all_other_anchors_are_joined_to_the_first_of_them():
    """One-hot rows: each row is its own anchor, and as far from all others, as on a k-NN graph."""
    X, y = np.repeat(np.eye(4), 5, axis=0), np.repeat([0, 1, 0, 1], 5)
    model = AnchoredGreenClassifier(n_neighbors=2, mu=0, anchors=np.eye(4)).fit(X, y)
    assert model.n_components_ == GreenClassifier(2, mu=0).fit(X, y).n_components_ == 1
    assert_array_equal(model.transduction_, y)


# Memory -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_free_gib(monkeypatch):
    monkeypatch.setattr(parameters.psutil, "virtual_memory", lambda: SimpleNamespace(available=2 * 2**30))


@pytest.fixture
def no_free_memory(monkeypatch):
    monkeypatch.setattr(parameters.psutil, "virtual_memory", lambda: SimpleNamespace(available=0))


@pytest.mark.parametrize("solver", ["eigen", "direct"])
def test_dense_solvers_refuse_what_does_not_fit_and_name_the_gib_and_the_other_solver(solver, two_free_gib):
    n = 20_000  # a ring; a dense matrix of it takes 3.0 GiB
    step = np.roll(np.arange(n), 1)
    S = sp.csr_array((np.ones(n), (np.arange(n), step)), shape=(n, n))
    y = np.full(n, -1)
    y[:2] = 0, 1
    with refuses(MemoryLimitError, f"solver='{solver}'", "20,000 rows", r"\d+\.\d GiB", "2.0 GiB", "solver='cg'"):
        GreenClassifier(graph="precomputed", solver=solver).fit(S + S.T, y)


def test_the_sparse_solver_needs_no_dense_matrix(no_free_memory, blobs, few):
    assert np.isfinite(GreenClassifier(solver="cg").fit(blobs[0], few).scores_).all()


def test_anchors_that_do_not_fit_are_refused(no_free_memory, blobs, few):
    with refuses(MemoryLimitError, "20 anchors", "GiB", "lower n_anchors"):
        AnchoredGreenClassifier(20).fit(blobs[0], few)


def test_the_gib_of_the_refusal_are_those_asked_for(two_free_gib):
    with refuses(MemoryLimitError, "a thing needs 3.0 GiB of memory, 2.0 GiB are free; give up"):
        parameters.check_memory(3 * 2**30, "a thing", "give up")


# Systems that do not converge -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "knobs"),
    [
        (GreenClassifier(solver="cg"), {"mu", "solver"}),
        (ConsistencyClassifier(gamma=0.001), {"gamma"}),
        (HarmonicClassifier(), set()),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_solver_that_stops_early_names_its_residual_and_knobs_that_the_class_has(
    model, knobs, monkeypatch, blobs, few
):
    monkeypatch.setattr("greenlabel.operators.conjugate_gradients.MAX_ROUNDS", 1)
    monkeypatch.setattr("greenlabel.operators.classics.DIRECT_ROWS", 0)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(blobs[0], few)
    message = str(caught[0].message)
    assert re.search(r"after 1 round.*relative residual of \d\.\de[+-]\d+", message)
    named = set(re.findall(r"\b(mu|solver|gamma)\b", message))
    assert named <= knobs, message


# Before fit -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "decision_function", "relabel"])
def test_a_method_before_fit_says_so(Model, ask):
    with pytest.raises(NotFittedError, match=f"{Model.__name__} instance is not fitted yet. Call 'fit'"):
        getattr(Model(), ask)([[0.0, 1.0]])


@pytest.mark.parametrize("name", ["scores_", "label_distributions_", "transduction_"])
def test_a_fitted_attribute_before_fit_says_so(Model, name):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(Model(), name)


def test_leave_one_out_before_fit_says_so(Model):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        leave_one_out(Model())


def test_a_failed_first_fit_leaves_a_model_that_is_not_fitted(Model, blobs):
    model = Model()
    with pytest.raises(LabelError):
        model.fit(blobs[0], np.full(60, -1))
    with pytest.raises(NotFittedError):
        model.predict(blobs[0])


# Nothing lost -----------------------------------------------------------------------------------------------------


def predictions(model, X):
    return {
        "proba": model.predict_proba(X),
        "decision": model.decision_function(X),
        "class": model.predict(X),
        "scores": model.scores_.copy(),
        "distributions": model.label_distributions_.copy(),
        "transduction": model.transduction_.copy(),
        "reached": model.reached_.copy(),
        "classes": model.classes_.copy(),
        "leave-one-out": leave_one_out(model),
        "components": model.n_components_,
        "width": model.n_features_in_,
    }


@contextmanager
def nothing_lost(model, X):
    """The block must be refused, and the model must predict as before."""
    before = predictions(model, X)
    with pytest.raises(GreenlabelError):
        yield
    after = predictions(model, X)
    for name, value in before.items():
        assert_array_equal(after[name], value, err_msg=name)


@SLOW_BLEND
@pytest.mark.parametrize(("y", "patterns"), BAD_LABELS.values(), ids=BAD_LABELS)
def test_a_refused_relabel_leaves_the_model_as_it_was(Model, y, patterns, blobs, few):
    model = Model(random_state=0).fit(blobs[0], few)
    with nothing_lost(model, blobs[0]):
        model.relabel(y)


def test_a_fit_refused_for_its_labels_leaves_the_model_as_it_was(Model, blobs, few):
    model = Model(random_state=0).fit(blobs[0], few)
    with nothing_lost(model, blobs[0]):
        model.fit(blobs[0] + 1, np.full(60, -1))


def test_a_fit_refused_for_its_labels_does_not_forget_the_width(Model, blobs, few):
    model = Model(random_state=0).fit(blobs[0], few)
    with nothing_lost(model, blobs[0]):
        model.fit(np.ones((60, 3)), np.full(60, -1))


def test_a_fit_refused_for_its_labels_does_not_forget_the_column_names(Model, blobs, few):
    X = pd.DataFrame(blobs[0], columns=["a", "b"])
    model = Model(random_state=0).fit(X, few)
    with nothing_lost(model, X):
        model.fit(X.rename(columns={"b": "c"}), np.full(60, -1))


def test_a_fit_refused_for_its_features_leaves_the_model_as_it_was(Model, blobs, few):
    model = Model(random_state=0).fit(blobs[0], few)
    with nothing_lost(model, blobs[0]):
        model.fit(np.full((60, 3), np.nan), few)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("Model", "params"),
    [
        *of(GRAPH_ESTIMATORS, n_neighbors=0),
        *of(GRAPH_ESTIMATORS, n_neighbors="5"),
        *of(KNN_ESTIMATORS, weights="cosine"),
        *of(KNN_ESTIMATORS, graph="radius"),
        *of([GreenClassifier, AnchoredGreenClassifier], mu=-1.0),
        *of([ConsistencyClassifier], gamma=-1.0),
        *of([GreenClassifier], solver="lu"),
        *of([AnchoredGreenClassifier], anchors="grid"),
        *of([AnchoredGreenClassifier], n_anchors=61),
        *of([AnchoredGreenClassifier], n_anchors=4),
        *of([AnchoredGreenClassifier], anchors=np.zeros((10, 3))),
        *of([BlendedClassifier], experts=[]),
        *of([BlendedClassifier], class_shares=[0.5, 0.5]),
        *of([BlendedClassifier], refine="sometimes"),
    ],
)
def test_a_fit_refused_for_its_parameters_leaves_the_model_as_it_was(Model, params, blobs, few):
    model = Model(random_state=0).fit(blobs[0], few)
    with nothing_lost(model, blobs[0]):
        model.set_params(**params).fit(blobs[0] + 1, few)


@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_a_fit_refused_for_mu_of_zero_leaves_the_model_as_it_was(solver, blobs, few, islands):
    model = GreenClassifier(solver=solver, random_state=0).fit(blobs[0], few)
    with nothing_lost(model, blobs[0]):
        model.set_params(mu=0.0, n_neighbors=5).fit(*islands)


def test_a_fit_of_anchors_refused_for_mu_of_zero_leaves_the_model_as_it_was(blobs, few, islands):
    model = AnchoredGreenClassifier(30, 3, random_state=0).fit(blobs[0], few)
    with nothing_lost(model, blobs[0]):
        model.set_params(mu=0.0, n_neighbors=4).fit(*islands)


def test_a_fit_refused_for_its_graph_leaves_the_model_as_it_was(KnnModel, blobs, few, similarity):
    model = KnnModel(random_state=0).fit(blobs[0], few)
    with nothing_lost(model, blobs[0]):
        model.set_params(graph="precomputed").fit(-similarity[0], similarity[1])


@pytest.mark.parametrize("solver", ["eigen", "direct"])
def test_a_fit_refused_for_memory_leaves_the_model_as_it_was(solver, monkeypatch, blobs, few):
    model = GreenClassifier(solver=solver, random_state=0).fit(blobs[0], few)
    monkeypatch.setattr(parameters.psutil, "virtual_memory", lambda: SimpleNamespace(available=0))
    with nothing_lost(model, blobs[0]):
        model.fit(blobs[0][:50] + 1, few[:50])


def test_an_interrupted_relabel_leaves_the_model_as_it_was(Model, blobs, few, monkeypatch):
    model = Model(random_state=0).fit(blobs[0], few)
    before = predictions(model, blobs[0])

    def interrupt(self, fitted):
        self._fitted = fitted
        self.classes_ = self.mu_ = None
        raise KeyboardInterrupt

    monkeypatch.setattr(Model, "_set_fitted", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.relabel(np.where(few == 2, -1, few))
    for name, value in predictions(model, blobs[0]).items():
        assert_array_equal(value, before[name], err_msg=name)


def test_bad_new_rows_leave_the_model_as_it_was(Model, blobs, few):
    model = Model(random_state=0).fit(blobs[0], few)
    with nothing_lost(model, blobs[0]):
        model.predict(np.full((3, 2), np.nan))


def test_what_the_user_passed_is_not_written_to(KnnModel, similarity):
    S, y = similarity
    given = sp.csr_array(S)
    given.data[:5] = 0.0  # explicit zeros, which a graph drops
    given = sp.csr_array((given + given.T) / 2)
    before, labels = given.copy(), y.copy()
    KnnModel(graph="precomputed").fit(given, y).predict(given)
    assert_array_equal(given.indptr, before.indptr)
    assert_allclose(given.toarray(), before.toarray(), rtol=0)
    assert_array_equal(y, labels)
