"""Legal but degenerate input works: finite predictions, probabilities that sum to 1, no warning of arithmetic."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.base import clone

from greenlabel import (
    AnchoredGreenClassifier,
    BlendedClassifier,
    ConsistencyClassifier,
    GreenClassifier,
    GreenlabelError,
    HarmonicClassifier,
    leave_one_out,
)
from greenlabel.blocks import ArrayBlocks
from greenlabel.graph.distances import working
from greenlabel.graph.neighbors import exact_search, graph_search
from helpers.estimators import SLOW_BLEND

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

WEIGHTS = ["adaptive", "gaussian", "binary"]


def check_probabilities(p, shape):
    assert p.shape == shape
    assert np.isfinite(p).all()
    assert (p >= 0).all()
    assert_allclose(p.sum(axis=1), 1, rtol=0, atol=1e-9)


def sound(model, X=None):
    """The model, after all its predictions were looked at: about its own rows, and about X as new rows."""
    n, c = model.scores_.shape
    assert c == len(model.classes_)
    assert np.isfinite(model.scores_).all()
    assert np.isfinite(leave_one_out(model)).all()
    assert model.reached_.shape == (n,)
    assert model.n_components_ >= 1
    assert set(model.transduction_) <= set(model.classes_)
    check_probabilities(model.label_distributions_, (n, c))
    if X is not None:
        check_probabilities(model.predict_proba(X), (X.shape[0], c))
        assert np.isfinite(model.decision_function(X)).all()
        assert set(model.predict(X)) <= set(model.classes_)
    return model


def small(Model, n_neighbors=2, **params):
    """A model that works on few rows without a warning."""
    if Model is BlendedClassifier:
        return Model(random_state=0)
    if Model is AnchoredGreenClassifier and "anchors" not in params:
        params = {"n_anchors": 4, **params}
    return Model(n_neighbors=n_neighbors, random_state=0, **params)


def same_predictions(one, other, rtol=1e-7):
    assert_array_equal(one.classes_, other.classes_)
    assert_array_equal(one.transduction_, other.transduction_)
    assert_allclose(one.scores_, other.scores_, rtol=rtol, atol=rtol * np.abs(other.scores_).max())


# Rows -------------------------------------------------------------------------------------------------------------


def test_equal_rows_work(Model):
    X = np.full((12, 3), 7.5)
    sound(small(Model).fit(X, [0, 0, 1] + [-1] * 9), X)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_equal_rows_work_with_all_weights(KnnModel, weights):
    X = np.zeros((12, 1))
    model = sound(small(KnnModel, weights=weights).fit(X, [0, 0, 1] + [-1] * 9), X)
    assert model.reached_.any()


@pytest.mark.parametrize("how", ["bkhk", "kmeans", "random"])
def test_equal_rows_work_with_all_ways_to_find_anchors(how):
    X = np.full((12, 3), -2.0)
    model = sound(small(AnchoredGreenClassifier, anchors=how, n_anchors=5).fit(X, [0, 0, 1] + [-1] * 9), X)
    assert model.anchors_.shape == (5, 3)
    assert_allclose(model.anchors_, -2.0)


def test_many_more_duplicates_than_neighbours_work(Model):
    X = np.repeat([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0], [6.0, 5.0]], 25, axis=0)
    y = np.full(100, -1)
    y[[0, 25, 50, 75]] = 0, 0, 1, 1
    params = {"n_anchors": 8} if Model is AnchoredGreenClassifier else {}
    model = sound(small(Model, n_neighbors=3, **params).fit(X, y), X)
    is_sure = model.reached_
    assert_array_equal(model.transduction_[is_sure], np.repeat([0, 1], 50)[is_sure])


def test_no_row_is_its_own_neighbour_among_duplicates():
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    dist2, index = graph_search(working(X), np.random.default_rng(0)).nearest_to_own(5)
    assert not (index == np.arange(40)[:, None]).any()
    assert_array_equal(dist2, 0)
    assert all(len(set(row)) == 5 for row in index)


def test_a_duplicate_of_a_labelled_row_gets_its_class(GraphModel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 4)) + 9.0 * (np.arange(20) % 2)[:, None]
    X, y = np.concatenate([X, X]), np.concatenate([np.arange(20) % 2, np.full(20, -1)])
    params = {"anchors": X[:20]} if GraphModel is AnchoredGreenClassifier else {}
    model = sound(small(GraphModel, n_neighbors=1, **params).fit(X, y), X)
    assert_array_equal(model.transduction_, np.tile(np.arange(20) % 2, 2))


@pytest.mark.slow
def test_a_constant_column_changes_nothing(Model, blobs, few):
    X = blobs[0]
    wider = np.column_stack([np.full(60, 3.0), X, np.zeros(60)])
    model = sound(small(Model, n_neighbors=5, **_twelve(Model)).fit(wider, few), wider)
    same_predictions(model, small(Model, n_neighbors=5, **_twelve(Model)).fit(X, few), rtol=1e-6)


def _twelve(Model):
    return {"n_anchors": 12} if Model is AnchoredGreenClassifier else {}


@pytest.mark.parametrize("weights", WEIGHTS)
def test_constant_columns_work_with_all_weights(KnnModel, weights, blobs, few):
    wider = np.column_stack([np.full(60, 3.0), blobs[0], np.zeros(60)])
    sound(KnnModel(weights=weights).fit(wider, few), wider)


def test_two_rows_work(GraphModel):
    X = np.array([[0.0], [1.0]])
    with pytest.warns(UserWarning, match="n_neighbors"):
        model = GraphModel(random_state=0).fit(X, ["no", "yes"])
    sound(model, X)
    assert_array_equal(model.transduction_, ["no", "yes"])


def test_two_equal_rows_of_two_classes_work(GraphModel):
    X = np.zeros((2, 2))
    with pytest.warns(UserWarning, match="n_neighbors"):
        model = GraphModel(random_state=0).fit(X, [0, 1])
    sound(model, X)


def test_two_rows_per_class_work(GraphModel):
    X = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 5.0], [5.1, 5.0]])
    with pytest.warns(UserWarning, match="n_neighbors"):
        model = GraphModel(random_state=0).fit(X, [0, -1, 1, -1])
    sound(model, X)
    assert_array_equal(model.transduction_, [0, 0, 1, 1])
    assert_array_equal(model.predict([[0.2, 0.1], [4.9, 5.2]]), [0, 1])


def test_a_single_feature_works(Model, blobs):
    y = blobs[1]
    X = 10.0 * y[:, None] + np.linspace(0, 1, 60)[:, None]
    model = sound(small(Model, n_neighbors=3, **_twelve(Model)).fit(X, np.where(np.arange(60) % 10 == 0, y, -1)), X)
    assert_array_equal(model.transduction_, y)


@pytest.mark.slow
def test_a_thousand_classes_work(Model):
    """A labelled row of each class, and a copy moved a little for 400 of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 6))
    X = np.concatenate([X, X[:400] + 1e-3 * rng.normal(size=(400, 6))])
    params = {"anchors": X[:1000]} if Model is AnchoredGreenClassifier else {}
    model = small(Model, n_neighbors=2, **params).fit(X, np.concatenate([np.arange(1000), np.full(400, -1)]))
    assert len(model.classes_) == 1000
    assert np.isfinite(model.scores_).all()
    check_probabilities(model.label_distributions_, (1400, 1000))
    check_probabilities(model.predict_proba(X[1300:]), (100, 1000))
    assert (model.transduction_[1000:] == np.arange(400)).mean() > 0.9


# Labels -----------------------------------------------------------------------------------------------------------


def test_one_label_per_class_works(Model, blobs):
    X, y = blobs
    sound(Model(random_state=0).fit(X, np.where(np.arange(60) % 20 == 0, y, -1)), X)


def test_every_row_labelled_works(Model, blobs):
    X, y = blobs
    model = sound(Model(random_state=0).fit(X, y), X)
    assert model.reached_.all()


@pytest.mark.parametrize("solver", ["eigen", "direct", "cg"])
def test_every_row_labelled_and_one_class_of_one_label_works_with_all_solvers(solver, blobs):
    X = blobs[0]
    sound(GreenClassifier(solver=solver).fit(X, [1] + [0] * 59), X)


LABELS = {
    "list": ["cat", "dog", "", "cat", "dog", ""],
    "list with None": ["cat", "dog", None, "cat", "dog", None],
    "list with NaN": ["cat", "dog", np.nan, "cat", "dog", float("nan")],
    "list with -1": ["cat", "dog", -1, "cat", "dog", -1],
    "array": np.array(["cat", "dog", "", "cat", "dog", ""]),
    "bytes": np.array([b"cat", b"dog", b"", b"cat", b"dog", b""]),
    "objects": np.array(["cat", "dog", None, "cat", "dog", np.nan], dtype=object),
    "all signs at once": np.array(["cat", "dog", -1, "cat", "dog", pd.NA], dtype=object),
    "variable strings": np.array(["cat", "dog", "", "cat", "dog", ""], dtype=np.dtypes.StringDType()),
    "pandas": pd.Series(["cat", "dog", None, "cat", "dog", ""]),
    "pandas object": pd.Series(["cat", "dog", np.nan, "cat", "dog", pd.NA], dtype=object),
    "pandas string": pd.Series(["cat", "dog", pd.NA, "cat", "dog", ""], dtype="string"),
    "pandas category": pd.Series(["cat", "dog", None, "cat", "dog", None], dtype="category"),
    "pandas other index": pd.Series(["cat", "dog", None, "cat", "dog", None], index=range(6, 0, -1)),
    "polars": pl.Series(["cat", "dog", None, "cat", "dog", ""]),
    "polars category": pl.Series(["cat", "dog", None, "cat", "dog", None], dtype=pl.Categorical),
    "polars enum": pl.Series(["cat", "dog", None, "cat", "dog", None], dtype=pl.Enum(["dog", "cat"])),
}
NUMBERS = {
    "list": [3, 8, -1, 3, 8, -1],
    "list with None": [3, 8, None, 3, 8, None],
    "list with NaN": [3, 8, np.nan, 3, 8, np.nan],
    "int8": np.array([3, 8, -1, 3, 8, -1], dtype=np.int8),
    "float": np.array([3, 8, np.nan, 3, 8, -1]),
    "float32": np.array([3, 8, np.nan, 3, 8, -1], dtype=np.float32),
    "objects": np.array([3, 8, None, 3, 8, -1], dtype=object),
    "column": pd.Series([3, 8, -1, 3, 8, -1]),
    "pandas nullable": pd.Series([3, 8, pd.NA, 3, 8, pd.NA], dtype="Int64"),
    "pandas nullable float": pd.Series([3, 8, pd.NA, 3, 8, pd.NA], dtype="Float64"),
    "pandas category": pd.Series([3, 8, None, 3, 8, None], dtype="category"),
    "polars": pl.Series([3, 8, None, 3, 8, None]),
    "polars with -1": pl.Series([3, 8, -1, 3, 8, None]),
}
TRUTHS = {
    "list with None": [False, True, None, False, True, None],
    "objects": np.array([False, True, None, False, True, -1], dtype=object),
    "pandas nullable": pd.Series([False, True, pd.NA, False, True, pd.NA], dtype="boolean"),
    "polars": pl.Series([False, True, None, False, True, None]),
}
SIX_ROWS = np.array([[0.0], [5.0], [0.1], [0.2], [5.1], [5.2]])


def predictions_for(Model, y, classes):
    first, second = classes
    model = sound(small(Model).fit(SIX_ROWS, y), SIX_ROWS)
    assert model.classes_.tolist() == [first, second]
    assert model.transduction_.tolist() == [first, second, first, first, second, second]
    assert model.predict(SIX_ROWS[2:3]).tolist() == [first]
    assert model.relabel(y).classes_.tolist() == [first, second]


@SLOW_BLEND
@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
def test_text_labels_work_in_every_container(Model, y):
    text = (b"cat", b"dog") if getattr(y, "dtype", None) == np.dtype("S3") else ("cat", "dog")
    predictions_for(Model, y, text)


@SLOW_BLEND
@pytest.mark.parametrize("y", NUMBERS.values(), ids=NUMBERS)
def test_number_labels_work_in_every_container(Model, y):
    predictions_for(Model, y, (3, 8))


@SLOW_BLEND
@pytest.mark.parametrize("y", TRUTHS.values(), ids=TRUTHS)
def test_truth_labels_work_in_every_container(Model, y):
    predictions_for(Model, y, (False, True))


def test_truth_labels_on_all_rows_work(Model):
    y = np.array([False, True, False, False, True, True])
    assert sound(small(Model).fit(SIX_ROWS, y)).classes_.tolist() == [False, True]


def test_unsigned_labels_on_all_rows_work(Model):
    y = np.array([3, 255, 3, 3, 255, 255], dtype=np.uint8)
    assert sound(small(Model).fit(SIX_ROWS, y)).classes_.tolist() == [3, 255]


def test_other_negative_numbers_are_classes(Model):
    assert sound(small(Model).fit(SIX_ROWS, [-2, 0, -1, -2, 0, -1])).classes_.tolist() == [-2, 0]


def test_a_missing_date_among_dates_is_unlabelled(Model):
    y = np.array(["2020", "2021", "NaT", "2020", "2021", "NaT"], dtype="datetime64[Y]")
    assert sound(small(Model).fit(SIX_ROWS, y)).classes_.astype(str).tolist() == ["2020", "2021"]


def test_a_column_of_labels_is_read_as_labels(Model):
    with pytest.warns(UserWarning, match="column-vector"):
        model = small(Model).fit(SIX_ROWS, np.array([[3], [8], [-1], [3], [8], [-1]]))
    assert model.transduction_.tolist() == [3, 8, 3, 3, 8, 8]


# Components without a label ---------------------------------------------------------------------------------------


@pytest.fixture
def forlorn(islands):
    """Three islands; labels of two classes on the first two, none on the third."""
    y = np.full(90, "", dtype="<U1")
    y[[0, 1, 2, 3, 30]] = ["a", "a", "a", "b", "b"]
    return islands[0], y


def _on_islands(Model):
    if Model is BlendedClassifier:
        return Model(random_state=0)
    return Model(30, 3, random_state=0) if Model is AnchoredGreenClassifier else Model(5, random_state=0)


def test_rows_that_no_label_reaches_get_the_shares_of_the_labels(GraphModel, forlorn):
    X, y = forlorn
    model = sound(_on_islands(GraphModel).fit(X, y), X)
    assert model.n_components_ == 3
    assert_array_equal(model.reached_, np.arange(90) < 60)
    assert_allclose(model.label_distributions_[60:], [[0.6, 0.4]] * 30, rtol=1e-15)
    assert set(model.transduction_[60:]) == {"a"}


def test_new_rows_near_a_component_without_a_label_get_the_shares_of_the_labels(GraphModel, forlorn):
    X, y = forlorn
    model = _on_islands(GraphModel).fit(X, y)
    new = [[2000.0, 2000.0], [2000.5, 1999.5]]
    assert_allclose(model.predict_proba(new), [[0.6, 0.4]] * 2, rtol=1e-15)
    assert_array_equal(model.predict(new), ["a", "a"])


def test_relabel_moves_what_is_reached(GraphModel, forlorn):
    X, y = forlorn
    model = _on_islands(GraphModel).fit(X, y)
    model.relabel(np.where(np.arange(90) == 70, "c", np.where(np.arange(90) == 40, "b", "")))
    assert_array_equal(model.reached_, np.arange(90) >= 30)
    assert_allclose(model.label_distributions_[:30], 0.5)
    assert set(model.transduction_[60:]) == {"c"}


@pytest.mark.parametrize("solver", ["eigen", "direct", "cg"])
def test_all_solvers_agree_on_what_no_label_reaches(solver, forlorn):
    X, y = forlorn
    model = sound(GreenClassifier(5, solver=solver).fit(X, y), X)
    assert_array_equal(model.reached_, np.arange(90) < 60)
    same_predictions(model, GreenClassifier(5, solver="direct").fit(X, y), rtol=1e-6)


def test_the_original_method_works_on_a_disconnected_graph(forlorn):
    X, y = forlorn
    sound(GreenClassifier(5, solver="eigen", mu=0).fit(X, y), X)


def test_mu_of_zero_works_on_a_connected_graph(blobs, few):
    models = [sound(GreenClassifier(mu=0, solver=solver).fit(blobs[0], few)) for solver in ("eigen", "direct", "cg")]
    assert models[0].n_components_ == 1
    for model in models[1:]:
        assert_allclose(model.scores_, models[0].scores_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mu", [1e-300, 1e-20, 1e-14, 1e-6, 1e6, 1e300])
@pytest.mark.parametrize("solver", ["eigen", "direct", "cg"])
def test_an_extreme_mu_gives_finite_predictions_or_refused(solver, mu, forlorn):
    X, y = forlorn
    model = GreenClassifier(5, mu=mu, solver=solver)
    try:
        model.fit(X, y)
    except GreenlabelError as error:
        assert "mu" in str(error)  # noqa: PT017
    else:
        sound(model, X)


@pytest.mark.parametrize("mu", [1e-300, 1e-20, 1e-14, 1e-6, 1e6, 1e300])
def test_an_extreme_mu_of_anchors_gives_finite_predictions_or_refused(mu, forlorn):
    X, y = forlorn
    model = AnchoredGreenClassifier(30, 3, mu=mu, random_state=0)
    try:
        model.fit(X, y)
    except GreenlabelError as error:
        assert "mu" in str(error)  # noqa: PT017
    else:
        sound(model, X)


@pytest.mark.parametrize("max_direct", [0, 100])  # conjugate gradients or the series, and elimination
@pytest.mark.parametrize("gamma", [1e-300, 1e-14, 1e-6, 1e6, 1e300])
def test_an_extreme_gamma_gives_finite_predictions(gamma, max_direct, forlorn, monkeypatch):
    monkeypatch.setattr("greenlabel.operators.classics.DIRECT_ROWS", max_direct)
    X, y = forlorn
    sound(ConsistencyClassifier(5, gamma=gamma).fit(X, y), X)


@pytest.mark.parametrize("max_direct", [0, 100])
def test_a_gamma_that_drowns_in_rounding_gives_the_classes_of_a_small_one(max_direct, monkeypatch):
    """Each group is of the class of which it has more labels; its matrix alone would have no inverse."""
    monkeypatch.setattr("greenlabel.operators.classics.DIRECT_ROWS", max_direct)
    X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0, 0], [50, 0]], 30, axis=0)
    y = np.full(60, -1)
    y[[0, 1, 2, 30, 31]] = [0, 0, 1, 1, 1]
    models = [ConsistencyClassifier(5, gamma=gamma).fit(X, y) for gamma in (1e-6, 1e-300)]
    for model in models:
        assert_array_equal(model.transduction_, np.repeat([0, 1], 30))
        assert (model.scores_ >= 0).all()


def test_isolated_rows_of_a_graph_work(KnnModel, similarity):
    S, y = similarity
    alone = [3, 4, 20]  # row 20 is labelled, 3 and 4 are not
    S[alone], S[:, alone] = 0, 0
    model = sound(KnnModel(graph="precomputed").fit(S, y), S)
    assert_array_equal(np.flatnonzero(~model.reached_), [3, 4])
    counts = np.bincount(y[y >= 0])
    assert_allclose(model.label_distributions_[[3, 4]], [counts / counts.sum()] * 2)
    assert model.transduction_[20] == y[20]


def test_a_graph_without_any_edge_works(KnnModel):
    model = sound(KnnModel(graph="precomputed").fit(np.zeros((5, 5)), [0, 1, 1, -1, -1]), np.zeros((2, 5)))
    assert_array_equal(model.transduction_, [0, 1, 1, 1, 1])
    assert_allclose(model.label_distributions_[3:], [[1 / 3, 2 / 3]] * 2)


def test_a_new_row_tied_to_nothing_gets_the_shares_of_the_labels(KnnModel, similarity):
    S, y = similarity
    model = KnnModel(graph="precomputed").fit(S, y)
    counts = np.bincount(y[y >= 0])
    assert_allclose(model.predict_proba(np.zeros((1, 30))), [counts / counts.sum()])


@pytest.mark.parametrize("scale", [1e-150, 1e-12, 1e12, 1e150])
def test_the_unit_of_a_precomputed_graph_does_not_matter(scale, similarity):
    S, y = similarity
    models = [GreenClassifier(graph="precomputed").fit(S * unit, y) for unit in (1, scale)]
    sound(models[1], S * scale)
    assert_array_equal(models[0].transduction_, models[1].transduction_)
    assert_allclose(models[0].label_distributions_, models[1].label_distributions_, rtol=1e-6)


@pytest.mark.parametrize("weak", [1e-6, 1e-14, 1e-100, 1e-300])
def test_halves_that_hang_by_a_thread_work(KnnModel, weak):
    S = np.kron(np.eye(2), np.ones((5, 5)))
    S[0, 9] = S[9, 0] = weak
    sound(KnnModel(graph="precomputed").fit(S, [0, 1] + [-1] * 8), S)


def test_the_diagonal_of_a_precomputed_graph_does_not_matter(KnnModel, similarity):
    S, y = similarity
    same_predictions(
        KnnModel(graph="precomputed").fit(S + 5 * np.eye(30), y), KnnModel(graph="precomputed").fit(S, y), rtol=1e-9
    )


# Neighbours -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_neighbors", [60, 61, 10**6, 2**40])
def test_too_many_neighbours_are_cut_with_a_warning(KnnModel, n_neighbors, blobs, few):
    X = blobs[0]
    with pytest.warns(UserWarning, match=f"n_neighbors={n_neighbors} .* 60 rows; 59 are used"):
        model = KnnModel(n_neighbors, random_state=0).fit(X, few)
    same_predictions(sound(model, X), KnnModel(59, random_state=0).fit(X, few), rtol=1e-9)


def test_too_many_neighbours_for_anchors_of_the_librarys_choice_are_cut_with_a_warning(blobs, few):
    with pytest.warns(UserWarning, match="n_neighbors=60 .* 60 anchors; 59 are used"):
        model = AnchoredGreenClassifier(n_neighbors=60, random_state=0).fit(blobs[0], few)
    sound(model, blobs[0])


def test_as_many_neighbours_as_there_can_be_need_no_warning(KnnModel, blobs, few, recwarn):
    sound(KnnModel(59).fit(blobs[0], few), blobs[0])
    assert not recwarn


@pytest.mark.parametrize("weights", WEIGHTS)
def test_a_single_neighbour_works(KnnModel, weights, blobs, few):
    sound(KnnModel(1, weights=weights).fit(blobs[0], few), blobs[0])


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 4200])  # in double precision at once; in single precision first
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_small_distances_survive_large_features(n, offset):
    rng = np.random.default_rng(0)
    X = offset + np.where(np.arange(n) % 2, 50_000.0, 0.0)[:, None] + rng.normal(scale=0.01, size=(n, 3))
    dist2, index = graph_search(working(X), rng).nearest_to_own(8)
    true = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(true, np.inf)
    assert_allclose(dist2, np.sort(true, axis=1)[:, :8], rtol=1e-9)
    assert_allclose(np.take_along_axis(true, index, axis=1), dist2, rtol=1e-9)


def test_small_distances_to_anchors_survive_large_features():
    rng = np.random.default_rng(0)
    X = np.where(np.arange(400) % 2, 50_000.0, 0.0)[:, None] + rng.normal(scale=0.01, size=(400, 3))
    for P in (X[:60], sp.csr_array(X[:60])):
        dist2, index = exact_search(P, 400).nearest(X, 6)
        true = cdist(X, X[:60], "sqeuclidean")
        assert_allclose(dist2, np.sort(true, axis=1)[:, :6], rtol=1e-9, atol=1e-20)
        assert_allclose(np.take_along_axis(true, index, axis=1), dist2, rtol=1e-9, atol=1e-20)


@pytest.mark.slow
def test_rows_far_from_zero_are_labelled_by_their_small_differences(Model):
    """Four clouds of 0.01 around 1e5; only small differences tell the two at the same point apart."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], 25)
    X = 1e5 + np.where(y < 2, 0.0, 50_000.0)[:, None] + np.where(y % 2, 0.2, 0.0)[:, None]
    X = X + rng.normal(scale=0.01, size=(100, 2))
    model = sound(_on_islands(Model).fit(X, np.where(np.arange(100) % 25 < 3, y, -1)), X)
    assert_array_equal(model.transduction_, y)
    assert_array_equal(model.predict(X), y)


# Types and containers ---------------------------------------------------------------------------------------------


@pytest.fixture
def whole_numbers(blobs):
    """120 rows of numbers from 0 to 200, which all types of number hold, in two clouds."""
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], 60)
    X = rng.integers(0, 100, size=(120, 8)) + 60 * y[:, None]
    return X, np.where(np.arange(120) % 60 < 4, y, -1)


def _default(Model):
    return Model(random_state=0)


@pytest.mark.slow
@SLOW_BLEND
@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "uint8", "int16", "int32", "uint64", "longdouble", ">f4", ">f8", "object"]
)
def test_the_type_of_the_numbers_does_not_matter(Model, dtype, whole_numbers):
    X, y = whole_numbers
    typed = X.astype(dtype)
    model, double = sound(_default(Model).fit(typed, y), typed), _default(Model).fit(X.astype(float), y)
    same_predictions(model, double, rtol=1e-4)
    assert_allclose(model.predict_proba(typed), double.predict_proba(X.astype(float)), atol=1e-4)


@pytest.fixture
def three_clouds():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    X = 4 * rng.normal(size=(3, 5))[y] + rng.normal(size=(600, 5))
    few = np.full(600, -1)
    for k in range(3):
        few[np.flatnonzero(y == k)[:8]] = k
    return X / np.abs(X).max(), few, y


@pytest.mark.parametrize("scale", [1.7e38, 2.6e38, np.finfo(np.float32).max])
def test_numbers_next_to_the_largest_of_their_type_work(GraphModel, three_clouds, scale):
    X, few, y = three_clouds
    X = (X * scale).astype(np.float32)
    assert (sound(_default(GraphModel).fit(X, few), X).transduction_ == y).mean() > 0.95


@pytest.mark.parametrize(
    ("dtype", "mark"),
    [("float32", 1e25), ("float32", -np.finfo(np.float32).max), ("float64", 1e100), ("float64", -1e300)],
)
@SLOW_BLEND
def test_a_mark_for_no_data_does_not_swallow_the_other_rows(Model, three_clouds, dtype, mark):
    X, few, y = three_clouds
    X = X.astype(dtype)
    X[300, 2] = mark
    assert (sound(_default(Model).fit(X, few), X).transduction_ == y).mean() > 0.95


@pytest.mark.parametrize("block_rows", [100, 600])
def test_a_mark_for_no_data_is_the_same_in_any_blocks(three_clouds, block_rows):
    X, few, _ = three_clouds
    X = X.astype(np.float32)
    X[300, 2] = -np.finfo(np.float32).max
    model = AnchoredGreenClassifier(100, random_state=0)
    expected = clone(model).fit(X, few).scores_
    assert_array_equal(clone(model).fit(ArrayBlocks(X, block_rows), few).scores_, expected)


@pytest.mark.parametrize("kind", ["f4", "f8", "i2"])
def test_the_order_of_bytes_changes_no_bit(three_clouds, kind):
    X, few, _ = three_clouds
    X = (100 * X).astype(f"<{kind}")
    expected = GreenClassifier().fit(X, few).scores_
    assert_array_equal(GreenClassifier().fit(X.astype(f">{kind}"), few).scores_, expected)


def test_scores_that_are_all_equal_have_no_slope():
    X, y = [[0.0]] * 9 + [[1.0]], [0, 1, 2, 2] + [-1] * 6
    assert GreenClassifier().fit(X, y).transduction_[:9].tolist() == [2] * 9


@pytest.mark.slow
def test_truth_values_as_features_are_zeros_and_ones(Model):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 40)
    X = rng.uniform(size=(80, 30)) < np.where(y, 0.7, 0.3)[:, None]
    few = np.where(np.arange(80) % 40 < 4, y, -1)
    same_predictions(sound(_default(Model).fit(X, few), X), _default(Model).fit(X.astype(float), few), rtol=1e-4)


@pytest.mark.slow
def test_the_order_in_memory_does_not_matter(Model, blobs, few):
    X = blobs[0]
    doubled = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)
    model = _default(Model).fit(X, few)
    for other in (np.asfortranarray(X), doubled[::2, ::2], X[::-1][::-1]):
        same = _default(Model).fit(other, few)
        same_predictions(sound(same, other), model, rtol=1e-12)
        assert_allclose(same.decision_function(other), model.decision_function(X), rtol=1e-9, atol=1e-12)


def test_features_that_must_not_be_written_to_work(Model, blobs, few):
    X, y = blobs[0].copy(), few.copy()
    X.setflags(write=False)
    y.setflags(write=False)
    sound(_default(Model).fit(X, y), X)


SPARSE = [sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.csr_array, sp.csc_array, sp.coo_array]


@pytest.mark.slow
@SLOW_BLEND
@pytest.mark.parametrize("kind", SPARSE, ids=lambda kind: kind.__name__)
def test_sparse_features_give_the_dense_predictions(Model, kind):
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1], 40)
    X = rng.normal(size=(80, 12)) * (rng.uniform(size=(80, 12)) < 0.4) + np.where(y, 2.0, 0.0)[:, None] * np.eye(12)[0]
    few = np.where(np.arange(80) % 40 < 5, y, -1)
    dense, sparse = _default(Model).fit(X, few), _default(Model).fit(kind(X), few)
    near = 1e-3 if Model is BlendedClassifier else 1e-6  # logistic regression stops a little before its optimum
    same_predictions(sound(sparse, kind(X)), dense, rtol=near)
    assert_allclose(sparse.predict_proba(kind(X)), dense.predict_proba(X), atol=near)
    assert_allclose(sparse.predict_proba(X), dense.predict_proba(kind(X)), atol=near)


@SLOW_BLEND
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "uint8"])
def test_sparse_features_of_every_type_work(Model, dtype):
    X = (np.random.default_rng(0).uniform(size=(40, 50)) < 0.2).astype(dtype)
    y = np.where(np.arange(40) % 5 == 0, np.arange(40) % 2, -1)
    model = sound(_default(Model).fit(sp.csr_array(X), y), sp.csr_array(X))
    assert model.n_features_in_ == 50


@pytest.mark.parametrize("weights", WEIGHTS)
def test_sparse_features_work_with_all_weights(KnnModel, weights, blobs, few):
    X = sp.csr_array(blobs[0])
    dense = KnnModel(weights=weights).fit(blobs[0], few)
    same_predictions(sound(KnnModel(weights=weights).fit(X, few), X), dense, rtol=1e-6)


def test_sparse_rows_without_any_entry_work(Model):
    X = sp.csr_array((12, 5))
    sound(small(Model).fit(X, [0, 0, 1] + [-1] * 9), X)


@pytest.mark.parametrize("kind", SPARSE, ids=lambda kind: kind.__name__)
def test_a_sparse_graph_gives_the_dense_predictions(KnnModel, kind, similarity):
    S, y = similarity
    dense, sparse = KnnModel(graph="precomputed").fit(S, y), KnnModel(graph="precomputed").fit(kind(S), y)
    same_predictions(sound(sparse, kind(S)), dense, rtol=1e-9)
    assert_allclose(sparse.predict_proba(kind(S[:4])), dense.predict_proba(S[:4]), rtol=1e-9)


@SLOW_BLEND
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_give_the_predictions_of_their_values(Model, frame, blobs, few):
    X = frame({"a": blobs[0][:, 0], "b": blobs[0][:, 1]})
    model = sound(_default(Model).fit(X, few), X)
    same_predictions(model, _default(Model).fit(blobs[0], few), rtol=1e-12)
    assert_array_equal(model.feature_names_in_, ["a", "b"])


@pytest.mark.slow
def test_a_frame_of_mixed_number_types_works(Model, blobs, few):
    X = pd.DataFrame({"a": blobs[0][:, 0], "b": np.arange(60, dtype="int8"), "c": np.arange(60) % 2 == 0})
    sound(_default(Model).fit(X, few), X)
    nullable = X.astype({"a": "Float64", "b": "Int64", "c": "boolean"})
    same_predictions(_default(Model).fit(nullable, few), _default(Model).fit(X.astype(float), few), rtol=1e-9)


@pytest.mark.slow
def test_a_list_of_lists_works(Model, blobs, few):
    same_predictions(
        _default(Model).fit(blobs[0].tolist(), few.tolist()), _default(Model).fit(blobs[0], few), rtol=1e-12
    )


# Scale ------------------------------------------------------------------------------------------------------------


@SLOW_BLEND
@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e-20, 1e20, 1e100, 1e150])
def test_the_unit_of_the_features_does_not_matter(Model, scale, blobs, few):
    X = blobs[0] * scale
    model = sound(_default(Model).fit(X, few), X)
    assert_array_equal(model.transduction_, _default(Model).fit(blobs[0], few).transduction_)


def right_or_refused(model, X, scale, y):
    """X times scale has the predictions of X, or is refused with the word scale; never others."""
    usual = clone(model).fit(X, y)
    scaled = (X * scale).astype(X.dtype)
    try:
        model.fit(scaled, y)
    except GreenlabelError as error:
        assert "scale" in str(error)  # noqa: PT017
    else:
        sound(model, scaled)
        assert (model.transduction_ == usual.transduction_).mean() > 0.98


# Squares of these are beyond double precision, or vanish.
@pytest.mark.parametrize("scale", [1e-200, 1e155, 1e300])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_features_whose_squares_do_not_fit_get_the_usual_predictions_or_are_refused(
    KnnModel, weights, scale, blobs, few
):
    right_or_refused(KnnModel(weights=weights), blobs[0], scale, few)


@pytest.mark.parametrize("scale", [1e-200, 1e155, 1e300])
def test_anchors_of_features_whose_squares_do_not_fit_get_the_usual_predictions_or_are_refused(scale, blobs, few):
    right_or_refused(AnchoredGreenClassifier(random_state=0), blobs[0], scale, few)


@pytest.mark.parametrize("scale", [1e-150, 1e-80, 1e80, 1e150])
def test_features_whose_fourth_powers_do_not_fit_get_gaussian_weights_or_are_refused(KnnModel, scale, blobs, few):
    right_or_refused(KnnModel(weights="gaussian"), blobs[0], scale, few)


@SLOW_BLEND
@pytest.mark.parametrize("scale", [1e-30, 1e-23, 1e-18, 1e18, 1e22, 1e37])
def test_single_precision_features_of_extreme_scale_get_the_usual_predictions_or_are_refused(Model, scale, blobs, few):
    right_or_refused(_default(Model), blobs[0].astype(np.float32), scale, few)


@SLOW_BLEND
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_features_of_the_smallest_numbers_there_are_give_finite_predictions_or_are_refused(Model, dtype, blobs, few):
    X = np.round(blobs[0]).astype(dtype) * np.finfo(dtype).smallest_subnormal
    try:
        model = _default(Model).fit(X, few)
    except GreenlabelError as error:
        assert "scale" in str(error)  # noqa: PT017
    else:
        sound(model, X)


@SLOW_BLEND
@pytest.mark.parametrize("far", [1e20, 1e150])
def test_new_rows_far_away_get_finite_predictions(Model, far, blobs, few):
    model = _default(Model).fit(blobs[0], few)
    check_probabilities(model.predict_proba([[far, -far], [0.0, far]]), (2, 3))


@SLOW_BLEND
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_of_rows_that_are_too_far_the_direction_counts(Model, form):
    """Rows along an axis and along the diagonal; what lies beyond the last of them is of the same class."""
    along, aside = np.arange(1.0, 41.0)[:, None], np.random.default_rng(0).normal(scale=0.1, size=(80, 2))
    X = np.vstack([along * [1.0, 0.0], along * [1.0, 1.0]]) + aside
    model = _default(Model).fit(X, np.where(np.arange(80) % 40 % 4 == 3, np.arange(80) // 40, -1))
    near = model.predict(np.array([[1e14, 1e6], [1e14, 1e14]]))
    assert near.tolist() == [0, 1]
    far = np.array([[1e25, 1e17], [1e25, 1e25], [1e100, 0.0]])
    assert model.predict(form(far)).tolist() == [0, 1, 0]


@SLOW_BLEND
@pytest.mark.parametrize("far", [np.float32(1), 1e300])
def test_of_rows_beyond_all_numbers_in_the_unit_of_the_fit_the_direction_counts(Model, far):
    rng = np.random.default_rng(0)
    X = np.vstack([np.arange(1.0, 41.0)[:, None] * axis for axis in np.eye(2)]) + rng.normal(scale=0.1, size=(80, 2))
    model = _default(Model).fit(X * 1e-40, np.where(np.arange(80) % 4 == 3, np.arange(80) // 40, -1))
    assert model.predict(far * np.eye(2, dtype=type(far))).tolist() == [0, 1]


def test_new_rows_too_far_for_a_distance_get_finite_predictions_or_are_refused(Model, blobs, few):
    model = _default(Model).fit(blobs[0], few)
    try:
        p = model.predict_proba([[1e200, -1e200], [0.0, 0.0]])
    except GreenlabelError as error:
        assert "scale" in str(error)  # noqa: PT017
    else:
        check_probabilities(p, (2, 3))


def test_harmonic_scores_stay_between_the_labels(blobs, few):
    F = HarmonicClassifier().fit(blobs[0], few).scores_
    assert F.min() >= -1e-9
    assert F.max() <= 1 + 1e-9
    assert_allclose(F.sum(axis=1), 1, atol=1e-7)
