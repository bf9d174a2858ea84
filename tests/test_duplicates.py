"""Equal rows are one node: predictions do not depend on how often each row comes in the data."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs

import greenlabel.graph.duplicates
from greenlabel import (
    AnchoredGreenClassifier,
    BlendedClassifier,
    ConsistencyClassifier,
    GreenClassifier,
    HarmonicClassifier,
    label_table,
    leave_one_out,
)
from greenlabel.graph.duplicates import distinct_rows, perhaps_equal
from greenlabel.graph.similarity import Graph, make_graph
from greenlabel.labels.encoding import read_labels
from greenlabel.operators.green import SOLVERS
from greenlabel.operators.repeated import NodeOperator
from greenlabel.paper.protocol import METHODS, PaperAnchored
from helpers import reference

TIMES = 20


@pytest.fixture(scope="module")
def hard():
    """300 rows of six clouds that overlap, their classes, and ten labels of each."""
    X, y = make_blobs(300, n_features=5, centers=6, cluster_std=3.2, random_state=0)
    few, rng = np.full(300, -1), np.random.default_rng(0)
    for label in range(6):
        few[rng.choice(np.flatnonzero(y == label), 10, replace=False)] = label
    return X, y, few


def often(X, few, times=TIMES):
    """Every row so many times, the label on the last one."""
    many = np.full((times, len(few)), -1)
    many[-1] = few
    return (sp.vstack([X] * times).tocsr() if sp.issparse(X) else np.tile(X, (times, 1))), many.ravel()


@pytest.fixture
def uneven(blobs):
    """Some rows of the blobs up to 30 times, shuffled; labels on 20 of them, on equal rows too, and contradictory."""
    X, y = blobs
    rng = np.random.default_rng(5)
    times = np.where(np.arange(60) % 4 == 0, 30, rng.integers(1, 4, 60))
    rows = rng.permutation(np.repeat(np.arange(60), times))
    few = np.full(len(rows), -1)
    for row, labels in {0: [0, 0], 4: [0, 1], 20: [1], 24: [1, 1, 0], 40: [2, 2], 44: [2], 48: [2]}.items():
        few[np.flatnonzero(rows == row)[: len(labels)]] = labels
    return X[rows], y[rows], few


# Finding equal rows


def slow_nodes(X):
    """The number of each row among those that first come."""
    known = {}
    return [known.setdefault(tuple(row), len(known)) for row in X.tolist()]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64"])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_nodes_are_the_distinct_rows_in_the_order_in_which_they_come(rng, dtype, as_sparse):
    X = rng.integers(0, 3, (200, 4)).astype(dtype)
    nodes = distinct_rows(sp.csr_array(X) if as_sparse else X)
    assert_array_equal(nodes.of_row, slow_nodes(X))
    assert_array_equal(X[nodes.first][nodes.of_row], X)
    assert (np.diff(nodes.first) > 0).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30, 4e307])
def test_two_equal_rows_are_found_among_many_wherever_they_stand(rng, scale):
    X = scale * rng.uniform(-1, 1, size=(5000, 7))  # some sums of the largest overflow
    X[4321] = X[17]
    nodes = distinct_rows(X)
    assert len(nodes.first) == 4999
    assert nodes.of_row[4321] == nodes.of_row[17] == 17


def test_rows_whose_sums_are_equal_are_told_apart():
    step = np.finfo(np.float64).eps
    X = np.array([[1.0, 0.0], [1.0 + step, 0.0], [1.0 - step, 0.0], [1e9, 0.0]])
    assert len(perhaps_equal(X)) == 3
    assert distinct_rows(X) is None
    assert_array_equal(distinct_rows(X[[0, 1, 2, 1]]).of_row, [0, 1, 2, 1])


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_rows_that_all_differ_have_no_nodes(rng, make):
    assert distinct_rows(make(rng.normal(size=(50, 3)))) is None


def test_minus_zero_is_zero():
    assert_array_equal(distinct_rows(np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 0.0]])).of_row, [0, 0, 1])


def test_sparse_rows_are_equal_however_they_are_written():
    """Columns in any order, some of them twice, and zeros that are written out; the matrix is left as it is."""
    data, indices, indptr = [1.0, 2.0, 2.0, 1.0, 0.5, 0.5, 0.0, 2.0], [0, 2, 2, 0, 0, 0, 1, 2], [0, 2, 4, 8]
    X = sp.csr_array((np.array(data), np.array(indices), np.array(indptr)), shape=(3, 3))
    assert_array_equal(distinct_rows(X).of_row, [0, 0, 0])
    assert X.nnz == 8


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_equal_hashes_do_not_make_rows_equal(rng, make, monkeypatch):
    monkeypatch.setattr(greenlabel.graph.duplicates, "hash", lambda row: len(row) % 5, raising=False)
    X = rng.integers(0, 3, (60, 2)).astype(float)
    assert_array_equal(distinct_rows(make(X)).of_row, slow_nodes(X))
    assert distinct_rows(make(np.arange(1.0, 20.0)[:, None])) is None


# The operator


def dense_nodes(X):
    """E (n, u)."""
    numbers = np.array(slow_nodes(X))
    return np.eye(numbers.max() + 1)[numbers]


@pytest.mark.parametrize("solver", SOLVERS)
def test_operator_on_nodes_equals_the_dense_formula(uneven, solver):
    X, _, few = uneven
    nodes, E, Y = distinct_rows(X), dense_nodes(X), read_labels(few, len(X), "test").Y.toarray()
    S = reference.knn_similarity(X[nodes.first], 5, "adaptive")
    G = E @ reference.green(S, 0.01) @ E.T
    graph: Graph = make_graph(sp.csr_array(S))
    operator = NodeOperator(SOLVERS[solver](graph, 60 * 0.01), nodes)
    rows = np.array([3, 3, 100, 7])
    assert_allclose(operator.solve(Y), G @ Y, atol=1e-9)
    assert_allclose(operator.solve(sp.csr_array(Y)), G @ Y, atol=1e-9)
    assert_allclose(operator.columns(rows), G[:, rows], atol=1e-9)
    assert_allclose(operator.diagonal(rows), G[rows, rows], atol=1e-9)
    other = operator.with_shift(graph, 60 * 0.1)
    assert_allclose(other.solve(Y), E @ reference.green(S, 0.1) @ E.T @ Y, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("weights", ["adaptive", "gaussian", "binary"])
def test_scores_of_uneven_rows_equal_the_dense_formula(uneven, solver, weights):
    X, _, few = uneven
    E, distinct = dense_nodes(X), X[distinct_rows(X).first]
    model = GreenClassifier(5, weights=weights, solver=solver, mu=0.01).fit(X, few)
    G = reference.green(reference.knn_similarity(distinct, 5, weights), 0.01)
    assert_allclose(model.scores_, E @ G @ E.T @ read_labels(few, len(X), "test").Y.toarray(), atol=1e-9)


def test_harmonic_rows_are_clamped_to_the_mean_of_the_labels_on_equal_ones(uneven):
    X, _, few = uneven
    E, distinct = dense_nodes(X), X[distinct_rows(X).first]
    counts = E.T @ read_labels(few, len(X), "test").Y.toarray()
    carried = counts.sum(axis=1)
    Y = counts / np.maximum(carried, 1)[:, None]
    F = reference.harmonic(reference.knn_similarity(distinct, 5, "adaptive"), Y, carried > 0)
    assert_allclose(HarmonicClassifier(5).fit(X, few).scores_, E @ F, atol=1e-9)
    assert ((Y > 0) & (Y < 1)).sum() == 4  # two nodes carry contradictory labels


# Every row so many times


@pytest.mark.parametrize("as_sparse", [False, True])
def test_rows_so_many_times_get_the_classes_of_rows_once(KnnModel, hard, as_sparse):
    X, y, few = hard
    X = sp.csr_array(X) if as_sparse else X
    once, model = KnnModel().fit(X, few), KnnModel().fit(*often(X, few))
    assert model.reached_.all()
    assert model.n_components_ == once.n_components_
    assert_allclose(model.scores_, np.tile(once.scores_, (TIMES, 1)), atol=1e-9)
    assert_array_equal(model.transduction_, np.tile(once.transduction_, TIMES))
    assert_allclose(model.label_distributions_, np.tile(once.label_distributions_, (TIMES, 1)), atol=1e-6)
    assert (model.transduction_ == np.tile(y, TIMES)).mean() > 0.75


@pytest.mark.slow
@pytest.mark.parametrize("anchors", ["bkhk", "kmeans", "random"])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_anchors_of_rows_so_many_times_make_no_islands(hard, anchors, as_sparse):
    X, y, few = hard
    X = sp.csr_array(X) if as_sparse else X
    once = AnchoredGreenClassifier(anchors=anchors, random_state=0).fit(X, few)
    many, many_few = often(X, few)
    model = AnchoredGreenClassifier(anchors=anchors, random_state=0).fit(many, many_few)
    assert model.reached_.all()
    assert distinct_rows(model.anchors_) is None
    free = many_few < 0
    right = (model.transduction_ == np.tile(y, TIMES))[free].mean()
    assert right > (once.transduction_ == y)[few < 0].mean() - 0.03


def test_anchors_asked_for_beyond_the_distinct_rows_are_all_of_these(hard):
    X, _, few = hard
    with pytest.warns(UserWarning, match="n_anchors=1500 is too many for 300 distinct rows; 300 are used"):
        model = AnchoredGreenClassifier(1500, random_state=0).fit(*often(X, few))
    assert model.anchors_.shape == (300, 5)
    assert model.reached_.all()


def test_given_anchors_that_coincide_are_one(hard):
    X, _, few = hard
    with pytest.warns(UserWarning, match="anchors hold 60 rows that repeat an earlier one"):
        model = AnchoredGreenClassifier(anchors=np.repeat(X[:10], 7, axis=0)).fit(X, few)
    assert_array_equal(model.anchors_, X[:10])
    assert_array_equal(model.scores_, AnchoredGreenClassifier(anchors=X[:10]).fit(X, few).scores_)


def test_anchors_are_the_same_in_files_and_in_memory(hard, tmp_path):
    X, few = often(hard[0], hard[2])
    np.save(tmp_path / "X.npy", X)
    model, streamed = (AnchoredGreenClassifier(random_state=0).fit(rows, few) for rows in (X, tmp_path / "X.npy"))
    assert streamed.reached_.all()
    assert_array_equal(streamed.anchors_, model.anchors_)
    assert_array_equal(streamed.scores_, model.scores_)


def test_rows_that_come_in_parts_stand_on_distinct_anchors(hard):
    X, few = often(hard[0], hard[2])
    model = AnchoredGreenClassifier(random_state=0).partial_fit(X[:3000], few[:3000])
    model.partial_fit(X[3000:], few[3000:])
    assert model.reached_.all()
    assert distinct_rows(model.anchors_) is None


@pytest.mark.slow
@pytest.mark.parametrize("as_sparse", [False, True])
def test_a_blend_of_rows_so_many_times_is_as_good_as_of_rows_once(hard, as_sparse):
    X, y, few = hard
    X = sp.csr_array(X) if as_sparse else X
    once, model = (BlendedClassifier(random_state=0).fit(*data) for data in ((X, few), often(X, few, 12)))
    assert model.reached_.all()
    assert all(model.experts_[name].reached_.all() for name in ("graph", "weighted graph"))
    assert (model.transduction_ == np.tile(y, 12)).mean() > (once.transduction_ == y).mean() - 0.02


def test_a_table_of_rows_so_many_times_is_filled_as_well(hard):
    pl = pytest.importorskip("polars")
    X, y, few = hard
    many, many_few = often(X, few, 12)
    columns = {f"x{j}": column for j, column in enumerate(many.T)}
    target = [None if label < 0 else f"class {label}" for label in many_few]
    frame = pl.DataFrame(columns | {"kind": pl.Series(target, dtype=pl.String)})
    frame, _ = label_table(frame, "kind", method="green", random_state=0)
    filled = frame["kind"].to_numpy()
    assert (filled == np.array([f"class {label}" for label in np.tile(y, 12)])).mean() > 0.75


# What follows from it


@pytest.mark.parametrize("Knn", [GreenClassifier, ConsistencyClassifier, HarmonicClassifier])
def test_leave_one_out_equals_refitting_where_rows_are_equal(uneven, Knn):
    X, _, few = uneven
    model = Knn(5, mu=0.01).fit(X, few) if Knn is GreenClassifier else Knn(5).fit(X, few)
    found = leave_one_out(model)
    for index, row in enumerate(np.flatnonzero(few >= 0)):
        other = few.copy()
        other[row] = -1
        assert_allclose(found[index], model.relabel(other).scores_[row], atol=1e-8)


def test_relabelling_equals_fitting_where_rows_are_equal(uneven, KnnModel):
    X, y, few = uneven
    other = np.where(np.arange(len(y)) % 9 == 0, y, -1)
    relabelled, fitted = KnnModel(5).fit(X, few).relabel(other), KnnModel(5).fit(X, other)
    assert_array_equal(relabelled.scores_, fitted.scores_)


def test_equal_rows_get_equal_predictions(uneven, KnnModel):
    X, _, few = uneven
    model, nodes = KnnModel(5).fit(X, few), distinct_rows(X)
    for found in (model.scores_, model.transduction_, model.reached_, model.label_distributions_):
        assert len(found) == len(X)
        assert_array_equal(found[nodes.first][nodes.of_row], found)


@pytest.mark.slow
def test_new_rows_go_by_distinct_neighbours(KnnModel, hard, rng):
    X, _, few = hard
    new = X[:40] + rng.normal(scale=0.5, size=(40, 5))
    once, model = KnnModel().fit(X, few), KnnModel().fit(*often(X, few))
    assert_array_equal(model.predict(new), once.predict(new))
    assert_allclose(model.decision_function(new), once.decision_function(new), atol=1e-9)
    assert_array_equal(model.for_prediction().predict_proba(new), model.predict_proba(new))


def test_what_new_rows_need_holds_distinct_rows_only(KnnModel, hard):
    model = KnnModel().fit(*often(hard[0], hard[2])).for_prediction()
    predictor = model.fitted_.predictor
    assert predictor.neighbourhood.search.P.shape[0] == len(predictor.F) == len(predictor.reached) == 300


def test_all_rows_equal_get_the_most_frequent_label(GraphModel):
    X, y = np.full((12, 2), 3.5), [0, 1, 1] + [-1] * 9
    model = GraphModel(2, random_state=0) if GraphModel is not AnchoredGreenClassifier else GraphModel(random_state=0)
    model.fit(X, y)
    assert_array_equal(model.transduction_[3:], 1)
    assert_array_equal(model.predict([[3.5, 3.5], [0.0, 9.0]]), [1, 1])
    p = model.label_distributions_
    assert np.isfinite(p).all()
    assert (p[3:, 1] > 0.5).all()
    assert np.isfinite(leave_one_out(model)).all()


def test_leave_one_out_equals_refitting_where_all_rows_are_equal(GraphModel):
    X, y = np.full((12, 2), 3.5), np.array([0, 1, 1, 0, 1] + [-1] * 7)
    params = {"mu": 0.1} if GraphModel in (GreenClassifier, AnchoredGreenClassifier) else {}
    model = GraphModel(**({} if GraphModel is AnchoredGreenClassifier else {"n_neighbors": 2}), **params).fit(X, y)
    found = leave_one_out(model)
    for index in range(5):
        other = y.copy()
        other[index] = -1
        assert_allclose(found[index], model.relabel(other).scores_[index], atol=1e-12)


def test_two_distinct_rows_get_their_labels(GraphModel):
    X = np.tile([[0.0, 0.0], [1.0, 2.0]], (15, 1))
    y = np.full(30, -1)
    y[[4, 7]] = 0, 1
    model = GraphModel(random_state=0).fit(X, y)
    assert_array_equal(model.transduction_, np.tile([0, 1], 15))
    assert_array_equal(model.predict([[0.1, 0.1], [1.0, 1.9]]), [0, 1])
    assert model.reached_.all()


def test_rows_that_differ_are_predicted_as_without_looking_for_equal_ones(KnnModel, blobs, few, monkeypatch):
    found = KnnModel(5).fit(blobs[0], few).scores_
    monkeypatch.setattr(KnnModel, "merge_equal_rows", False)
    assert_array_equal(found, KnnModel(5).fit(blobs[0], few).scores_)


def test_a_given_graph_keeps_all_its_nodes(similarity):
    """Equal rows of a similarity matrix are different items."""
    S, y = np.ones((30, 30)) - np.eye(30), similarity[1]
    assert GreenClassifier(graph="precomputed").fit(S, y).graph_.n == 30


@pytest.mark.parametrize("method", ["LLGC", "HF", "GF", "GF(G)"])
def test_in_the_papers_graphs_every_row_is_a_node(blobs, method):
    X, few = np.repeat(blobs[0][::3], 3, axis=0), np.where(np.arange(60) % 7 == 0, np.arange(60) // 20, -1)
    S = reference.knn_similarity(X, 20, "gaussian")
    Y = read_labels(few, len(X), "test").Y.toarray()
    F = {
        "LLGC": lambda: reference.consistency(S, 1.0, Y),
        "HF": lambda: reference.harmonic(S, Y, few >= 0),
        "GF": lambda: reference.green(S, 1e-5) @ Y,
        "GF(G)": lambda: reference.green(S, 1e-5) @ Y,
    }[method]()
    model = METHODS[method].make("Balance", 0).fit(X, few)
    assert_allclose(model.scores_, F, atol=1e-9 * np.abs(F).max())


def test_the_papers_anchors_may_coincide():
    X, few = np.repeat(np.arange(50.0)[:, None], 20, axis=0), np.repeat([0, 1] + [-1] * 18, 50)
    ours, papers = (Anchored(100, 5, random_state=0) for Anchored in (AnchoredGreenClassifier, PaperAnchored))
    with pytest.warns(UserWarning, match="distinct rows"):
        assert ours.fit(X, few).anchors_.shape == (50, 1)
    assert papers.fit(X, few).anchors_.shape == (100, 1)
