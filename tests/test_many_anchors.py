"""Many anchors: a sparse system and an approximate search make the promises of the dense system and the exact one."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from greenlabel import AnchoredGreenClassifier, explain, leave_one_out, suggest, suspects
from greenlabel.blocks.rows import ArrayBlocks
from greenlabel.datasets import digits, keep_labels
from greenlabel.errors import GraphError
from greenlabel.graph import compiled_search
from greenlabel.graph.anchor_search import anchor_search, is_exact
from greenlabel.graph.anchors import few_number, usual_number
from greenlabel.graph.clusters import sorted_pairs
from greenlabel.graph.compiled_search import clustered_points
from greenlabel.graph.inverted import InvertedSearch
from greenlabel.graph.mixing import GramSum, Near, SparseGramSum
from greenlabel.graph.search import Search
from greenlabel.operators.anchored import AnchoredGreen, AnchorSystem
from greenlabel.operators.mixed_precision import MixedPrecision
from greenlabel.operators.sparse_anchored import SparseAnchorSystem
from greenlabel.propagators.anchored import usual_shift
from greenlabel.tables import label_table, load_model
from helpers import reference
from helpers.block_rows import assert_same, labelled_images, npy, parquet
from helpers.model_data import mixed_table, new_rows


@pytest.fixture
def many(monkeypatch):
    """Twenty anchors are many: the system is sparse, the search approximate."""
    monkeypatch.setattr("greenlabel.graph.mixing.DENSE_ANCHORS", 20)
    monkeypatch.setattr("greenlabel.operators.anchored.DENSE_ANCHORS", 20)
    monkeypatch.setattr("greenlabel.graph.anchor_search.EXACT_POINTS", 20)


@pytest.fixture(scope="module")
def data():
    return labelled_images()


def fitted(X, y, **options):
    return AnchoredGreenClassifier(**{"n_anchors": 500, "random_state": 0, **options}).fit(X, y)


# The system


@pytest.fixture
def mixing(clouds):
    return sp.csr_array(reference.mixing_matrix(clouds[0], clouds[0][:60], 4))


@pytest.mark.parametrize("mu", [1e-3, 1e-5])
def test_sparse_scores_are_those_of_the_equation(mixing, clouds, mu, many):
    n = mixing.shape[0]
    Y = np.eye(4)[clouds[1]] * (np.arange(n) % 7 == 0)[:, None]
    operator = AnchoredGreen.of(mixing, n * mu, 1)
    assert isinstance(operator.system, SparseAnchorSystem)
    assert_allclose(operator.solve(Y), reference.bordered(mixing.toarray(), mu, Y), atol=1e-10)
    G = reference.green(mixing.toarray() / mixing.sum(axis=0) @ mixing.toarray().T, mu)
    rows = np.array([3, 100, 7])
    assert_allclose(operator.columns(rows), G[:, rows], atol=1e-9)
    assert_allclose(operator.diagonal(rows), np.diag(G)[rows], atol=1e-9)


def both_systems(Z, shift, n_components=1):
    gram = sp.csr_array(Z.T @ Z)
    n = Z.shape[0]
    return AnchorSystem(gram.toarray(), n, shift, n_components), SparseAnchorSystem(gram, n, shift, n_components)


def test_no_mu_is_allowed_in_one_piece_and_refused_in_several(mixing, rng):
    dense, sparse = both_systems(mixing, 0.0)
    Y = rng.normal(size=(200, 3))
    ZY, ybar = mixing.T @ Y, Y.mean(axis=0)
    assert_allclose(sparse.coefficients(ZY, ybar), dense.coefficients(ZY, ybar), rtol=1e-8, atol=1e-8)
    with pytest.raises(GraphError, match="mu=0 on a graph of 2 components"):
        both_systems(sp.block_diag([mixing, mixing], format="csr"), 0.0, 2)


def test_an_anchor_that_no_row_uses_changes_nothing(mixing, rng):
    wide = sp.csr_array(sp.hstack([mixing, sp.csr_array((200, 1))]))
    Y = rng.normal(size=(200, 3))
    (_, with_it), (_, without) = both_systems(wide, 0.03), both_systems(mixing, 0.03)
    C = with_it.coefficients(wide.T @ Y, Y.mean(axis=0))
    assert np.isfinite(C).all()
    assert_allclose(C[:-1], without.coefficients(mixing.T @ Y, Y.mean(axis=0)), atol=1e-12)
    assert_allclose(with_it.own_share(wide), without.own_share(mixing), atol=1e-12)


def test_own_shares_come_in_parts_and_roughly_from_few_columns(mixing, monkeypatch):
    dense, sparse = both_systems(mixing, 0.3)
    exact = dense.own_share(mixing)
    monkeypatch.setattr("greenlabel.operators.sparse_anchored.COLUMNS_AT_ONCE", 7)
    assert_allclose(sparse.own_share(mixing), exact, atol=1e-10)
    assert len(sparse.own_share(mixing[:0])) == 0
    monkeypatch.setattr("greenlabel.operators.sparse_anchored.ROUGH_WORK", 60 * 50)
    assert np.abs(sparse.rough_own_share(mixing, 1e-2) - exact).mean() < 0.04 < exact.std()


# The sum


def some_near(rng, n=400, m=50, k=4):
    dist2 = np.sort(rng.random((n, k + 1)), axis=1)
    dist2[:9] = 1.0  # all equally far
    return Near.found(dist2, np.argsort(rng.random((n, m)), axis=1)[:, : k + 1], m)


def test_the_sparse_sum_is_that_of_the_dense_one(rng):
    near = some_near(rng)
    gram = SparseGramSum.of(50, near).gram()
    assert_allclose(gram.toarray(), GramSum.of(50, near).gram(), atol=1e-9)
    assert_array_equal(gram.toarray(), gram.toarray().T)


def test_sparse_sums_do_not_depend_on_their_order(rng, monkeypatch):
    near = some_near(rng)
    whole = SparseGramSum.of(50, near).gram()
    monkeypatch.setattr("greenlabel.graph.mixing.ROWS_AT_ONCE", 50)
    monkeypatch.setattr("greenlabel.graph.mixing.SPARSE_PAIRS_AT_ONCE", 64)
    parts = [SparseGramSum.of(50, near.pick(part)) for part in np.array_split(rng.permutation(400), 17)]
    total = sum(parts[1:], start=parts[0])
    assert total.n == 400
    for name in ("data", "indices", "indptr"):
        assert_array_equal(getattr(total.gram(), name), getattr(whole, name))


def test_sparse_sums_lose_no_edge():
    near = Near(np.array([[0, 1]]), np.array([[0.0, 1 - 1e-15, 1.0]]))
    assert SparseGramSum.of(2, near).gram()[0, 1] > 0


def test_a_row_that_is_an_anchor_on_a_lattice_still_joins_its_neighbours():
    lattice = np.array([[x, y] for x in range(9) for y in range(9)], float)
    labels = np.full(81, -1)
    labels[[0, 80]] = [0, 1]
    model = AnchoredGreenClassifier(81, 4, anchors="random", class_offsets=None).fit(lattice, labels)
    assert model.n_components_ == 1
    towards = lattice.sum(axis=1)
    assert_array_equal(model.transduction_[towards < 6], 0)
    assert_array_equal(model.transduction_[towards > 10], 1)


# The search


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [3, 200])
def test_the_inverted_file_finds_most_neighbours_and_true_distances(rng, dtype, d):
    P = (rng.normal(size=(2000, 8)) @ rng.normal(size=(8, d))).astype(dtype)
    X = P[::7] + 0.01
    dist2, index = InvertedSearch(P).nearest(X, 6)
    true = reference.squared_distances(X, P)
    assert_allclose(dist2, np.take_along_axis(true, index, axis=1), rtol=1e-3)
    assert (np.diff(dist2, axis=1) >= 0).all()
    expected = reference.nearest(true, 6)
    assert np.mean([len({*one} & {*two}) for one, two in zip(index, expected, strict=True)]) > 0.9 * 6


@pytest.mark.usefixtures("way")
def test_what_is_found_for_a_row_does_not_depend_on_the_rows_beside_it(rng, data):
    X = data[0].astype(np.float32)
    search = InvertedSearch(X[::3])
    dist2, index = search.nearest(X, 6)
    for rows in (np.array([5]), np.arange(300, 319), rng.permutation(3000)[:1000]):
        some = search.nearest(X[rows], 6)
        assert_array_equal(some[0], dist2[rows])
        assert_array_equal(some[1], index[rows])
    again = pickle.loads(pickle.dumps(search)).nearest(X, 6)
    assert_array_equal(again[1], index)
    assert_array_equal(again[0], dist2)


@pytest.mark.usefixtures("way")
def test_equally_near_points_are_found_alike_in_any_company(rng):
    lattice = np.stack(np.meshgrid(*[np.arange(20.0)] * 3), axis=-1).reshape(-1, 3).astype(np.float32)
    search = InvertedSearch(lattice)
    X = np.concatenate([lattice, lattice + 0.5])
    index = search.nearest(X, 6)[1]
    for rows in (rng.permutation(len(X)), np.arange(4000, 4001), np.arange(len(X) - 777, len(X))):
        assert_array_equal(search.nearest(X[rows], 6)[1], index[rows])


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_all_that_is_compared_is_whole_and_small_enough_for_exact_sums(rng, monkeypatch, scale):
    """Coordinates of points, of centres and of rows, so that no product is rounded; rows may be far from all points.

    By products of matrices, that is; what is compiled takes every sum by itself.
    """
    monkeypatch.setattr(compiled_search, "library", lambda: None)
    seen = []

    def watched(Q, nearest, group):
        seen.extend((Q, nearest.centres[:, :-1]))
        points = clustered_points(Q, nearest, group)
        candidates = points.candidates
        monkeypatch.setattr(points, "candidates", lambda Q, *words: seen.append(Q) or candidates(Q, *words))
        return points

    monkeypatch.setattr("greenlabel.graph.inverted.clustered_points", watched)
    P = (scale * rng.normal(size=(2000, 9))).astype(np.float32)
    InvertedSearch(P).nearest(np.concatenate([P[:50] + 0.3 * scale, 1e5 * P[50:60]]), 4)
    points, centres, rows = seen
    assert all((np.rint(Q) == Q).all() for Q in seen)
    longest, row = (float((Q**2).sum(axis=1).max()) ** 0.5 for Q in (np.concatenate([points, centres]), rows))
    assert row * longest + longest**2 / 2 < 2**52
    assert longest > 2**24  # and so large that near points are told apart


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("far", [False, True])
def test_points_on_a_line_are_told_apart_though_one_is_far_away(rng, far):
    P = np.sort(rng.uniform(0, 1, size=(20_000, 1)), axis=0)
    if far:
        P[-1] = 1e9
    X = P[:-1:50] + 1e-7
    index = InvertedSearch(P).nearest(X, 6)[1]
    expected = reference.nearest(reference.squared_distances(X, P), 6)
    assert np.mean([len({*one} & {*two}) for one, two in zip(index, expected, strict=True)]) > 0.99 * 6


def test_pairs_are_sorted_by_row_then_distance_then_point(rng):
    n, m = 50, 2**22
    row, point, dist2 = rng.integers(0, n, 3000), rng.integers(0, m, 3000), rng.integers(0, 9, 3000) / 4
    found = sorted_pairs(row, point, dist2, n, m)
    order = np.lexsort((point, dist2, row))
    assert_array_equal(found[0], row[order])
    assert_array_equal(found[1], point[order])


def test_groups_of_near_anchors_save_rounds_and_change_nothing(rng, monkeypatch):
    for rows in ("MIXED_ROWS", "COMPILED_ROWS"):
        monkeypatch.setattr(f"greenlabel.operators.conjugate_gradients.{rows}", 1)
    X = np.sort(rng.uniform(size=(3000, 1)), axis=0)
    Z = sp.csr_array(reference.mixing_matrix(X, X[::5], 4))
    gram, group = sp.csr_array(Z.T @ Z), np.arange(600) // 20
    rounds, found = [], []
    solve = MixedPrecision.solve
    monkeypatch.setattr(MixedPrecision, "solve", lambda *words: rounds.append(result := solve(*words)) or result)
    Y = np.eye(2)[(X[:, 0] > 0.5).astype(int)] * (np.arange(3000) % 300 == 0)[:, None]
    for of_anchor in (None, group):
        system = SparseAnchorSystem(gram, 3000, 1e-4, 1, of_anchor)
        found.append(system.coefficients(np.asarray(Z.T @ Y), Y.mean(axis=0)))
    assert_allclose(found[1], found[0], rtol=1e-8, atol=1e-10)
    assert rounds[1][2] < 0.7 * rounds[0][2]


@pytest.mark.usefixtures("way")
def test_where_clusters_hold_too_few_points_all_are_searched(rng, monkeypatch):
    monkeypatch.setattr("greenlabel.graph.clusters.CLUSTERS_PROBED", 1)
    P = rng.normal(size=(100, 3)).astype(np.float32)
    dist2, index = InvertedSearch(P).nearest(P[:20], 40)
    assert_array_equal(index, reference.nearest(reference.squared_distances(P[:20], P), 40))
    assert np.isfinite(dist2).all()
    own = InvertedSearch(P).nearest_to_own(40)[1]
    assert (own != np.arange(100)[:, None]).all()


def test_the_kind_of_search_depends_on_the_anchors_alone(monkeypatch, data):
    assert is_exact(2048, 784)
    assert is_exact(16_384, 100)
    assert not is_exact(16_385, 2)
    assert not is_exact(16_384, 784)
    monkeypatch.setattr("greenlabel.graph.anchor_search.EXACT_POINTS", 500)
    P = data[0].astype(np.float32)
    for n_rows in (10, 10**9):
        assert isinstance(anchor_search(P[:501], n_rows, None), InvertedSearch)
        found: Search = anchor_search(P[:500], n_rows, None)
        assert not isinstance(found, InvertedSearch)


# The classifier


SOURCES = {
    "blocks of 1,000": lambda X, folder: ArrayBlocks(X, 1000),
    "blocks of 7": lambda X, folder: ArrayBlocks(X, 7),
    "path of a .npy file": npy,
    "Parquet folder": parquet,
}


@pytest.mark.parametrize("memory_limit", ["auto", 0])
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_bits(many, source, memory_limit, data, tmp_path):
    X, y = data
    expected = fitted(X, y)
    assert isinstance(expected.graph_.anchor_search.search, InvertedSearch)
    assert sp.issparse(expected.graph_.gram())
    model = fitted(SOURCES[source](X, tmp_path), y, memory_limit=memory_limit)
    assert_same(model, expected)
    assert_array_equal(leave_one_out(model), leave_one_out(expected))
    assert_array_equal(model.predict_proba(X[:5]), expected.predict_proba(X[:5]))


def test_one_thread_and_two_give_the_same_bits(many, data):
    X, y = data
    with threadpool_limits(1):
        one = fitted(X, y)
    with threadpool_limits(2):
        assert_same(fitted(X, y), one)


@pytest.mark.cluster
@pytest.mark.parametrize("points", [20, 10**6], ids=["approximate", "exact"])
def test_a_cluster_gives_the_same_bits(points, data, monkeypatch):
    import dask.array as da
    from distributed import Client, LocalCluster

    monkeypatch.setattr("greenlabel.graph.anchor_search.EXACT_POINTS", points)
    X, y = data
    expected = fitted(X, y, n_anchors=2500)  # sparse for the workers, too
    assert sp.issparse(expected.graph_.gram())
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
        model = fitted(da.from_array(X, chunks=(700, -1)), y, n_anchors=2500)
        assert_same(model, expected)
        assert_array_equal(model.predict(da.from_array(X, chunks=(700, -1))).compute(), expected.predict(X))


def test_parts_and_merged_models_equal_one_fit(many, data):
    X, y = data
    anchors = fitted(X, y).anchors_
    whole = AnchoredGreenClassifier(anchors=anchors).fit(X, y)
    model, parts = AnchoredGreenClassifier(anchors=anchors), np.array_split(np.arange(len(X)), 3)
    for part in parts:
        model.partial_fit(X[part], y[part])
    assert_same(model, whole)
    first, *others = (AnchoredGreenClassifier(anchors=anchors).partial_fit(X[part], y[part]) for part in parts)
    for other in others:
        first.merge(other)
    assert_same(first, whole)


def test_other_labels_are_those_of_another_fit(many, data):
    X, y = data
    other = np.roll(y, 1)
    assert_same(fitted(X, y).relabel(other), fitted(X, other))


@pytest.mark.parametrize("k", [3, 5])
def test_sparse_and_dense_systems_agree(many, monkeypatch, data, k):
    X, y = data
    sparse = fitted(X, y, n_neighbors=k)
    monkeypatch.setattr("greenlabel.graph.mixing.DENSE_ANCHORS", 10**6)
    dense = fitted(X, y, n_neighbors=k)
    assert not sp.issparse(dense.graph_.gram())
    assert sparse.mu_ == dense.mu_
    assert_allclose(sparse.scores_, dense.scores_, atol=1e-8)
    assert_allclose(leave_one_out(sparse), leave_one_out(dense), atol=1e-8)
    assert_allclose(sparse.label_distributions_, dense.label_distributions_, atol=0.05)  # a rough temperature
    assert_allclose(explain(sparse, [1, 2]).influence, explain(dense, [1, 2]).influence, atol=1e-8)
    assert [one.row for one in suspects(sparse)] == [one.row for one in suspects(dense)]


def test_leave_one_out_is_a_fit_without_the_label(many, data):
    X, y = data
    model = fitted(X, y, mu=1e-4)
    for i, row in enumerate(np.flatnonzero(y >= 0)[:3]):
        without = y.copy()
        without[row] = -1
        assert_allclose(leave_one_out(model)[i], model.relabel(without).scores_[row], atol=1e-8)
        model.relabel(y)


def test_shares_of_labels_add_up_to_the_scores(many, data, monkeypatch):
    monkeypatch.setattr("greenlabel.propagators.base.LABELS_AT_ONCE", 16)
    X, y = data
    model = fitted(X, y)
    rows = np.array([0, 17, int(np.flatnonzero(y >= 0)[0])])
    assert_allclose(explain(model, rows).scores, model.scores_[rows], atol=1e-9)
    decided = model.decision_function(X[:4]) - model.class_offsets_
    assert_allclose(explain(model, X=X[:4]).scores, decided, atol=1e-9)


def test_rows_to_label_come_from_a_sketch_of_the_anchors(many, data, monkeypatch):
    monkeypatch.setattr("greenlabel.inspection.suggesting.MAX_ANCHORS", 100)
    monkeypatch.setattr("greenlabel.inspection.sketch.MAX_ANCHORS", 100)
    X, y = data
    model = fitted(X, y)
    found = suggest(model, 6)
    rows = [one.row for one in found]
    assert len({*rows}) == 6
    assert (y[rows] == -1).all()
    assert rows == [one.row for one in suggest(model, 6)]


def test_models_of_many_anchors_can_be_saved(many, tmp_path):
    result = label_table(mixed_table(96), "kind", method="anchored")[1]
    result.save(tmp_path / "many.green")
    loaded = load_model(tmp_path / "many.green")
    assert isinstance(loaded.model.fitted_.predictor.anchor_search.search, InvertedSearch)
    X, _ = result.features.transform(new_rows(mixed_table(96)))
    assert_array_equal(loaded.model.predict_proba(X), result.model.predict_proba(X))
    assert_array_equal(loaded.model.anchors_, result.model.anchors_)


# What "auto" means


@pytest.mark.parametrize(("third", "expected"), [(1.0, "near"), (9.0, "far")])
def test_the_third_of_three_rows_takes_the_label_of_the_nearer_one(third, expected):
    X, y = [[0.0], [third], [10.0]], ["near", "", "far"]
    model = AnchoredGreenClassifier(n_neighbors=2).fit(X, y)
    assert model.transduction_[1] == expected
    assert len(model.anchors_) == 3
    with pytest.warns(UserWarning, match="n_neighbors=5 is too many for 3 anchors"):
        assert AnchoredGreenClassifier().fit(X, y).transduction_[1] == expected


@pytest.mark.filterwarnings("ignore:n_neighbors=5 is too many")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("d", [1, 3])
def test_the_third_row_takes_the_label_of_the_nearer_one_wherever_it_lies(form, d, rng):
    for X in rng.normal(size=(20, 3, d)):
        y = np.array([0, 1, -1])
        to_labels = reference.squared_distances(X[2:], X[:2])
        assert AnchoredGreenClassifier().fit(form(X), y).transduction_[2] == to_labels.argmin()


@pytest.mark.filterwarnings("ignore:n_neighbors=5 is too many")
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("has_copies", [False, True])
@pytest.mark.parametrize("d", [1, 3])
def test_two_to_twenty_rows_take_the_label_of_the_nearer_one(form, has_copies, d, rng):
    for n in range(2, 21):
        side = np.arange(n) % 2
        X = rng.random((n, d)) + 20.0 * side[:, None]
        if has_copies:  # of the row before on the same side, every second time
            X[2::4], X[3::4] = X[: n - 2 : 4], X[1 : n - 2 : 4]
        y = np.where(np.arange(n) < 2, side, -1)
        assert_array_equal(AnchoredGreenClassifier().fit(form(X), y).transduction_, side)


def test_all_of_few_rows_are_anchors_half_of_more_and_a_quarter_of_many():
    sizes = (2, 3, 1024, 1500, 10_000, 70_000, 131_072, 400_000, 1_000_000, 8_100_000)
    expected = [2, 3, 1024, 1024, 5000, 32_768, 32_768, 100_000, 250_000, 262_144]
    assert [usual_number(n, 784) for n in sizes] == expected
    assert usual_number(10_000_000, 4096) == 65_536  # a gigabyte
    assert usual_number(10_000_000, 10**6) == 32_768
    assert few_number(10**6, 5) == 2048


def test_anchors_of_auto_are_rows_and_means_are_those_that_are_asked_for(rng):
    X = rng.normal(size=(1200, 4))
    y = np.where(np.arange(1200) < 40, np.arange(1200) % 2, -1)

    def n_rows(model):
        return int((reference.squared_distances(model.fit(X, y).anchors_, X).min(axis=1) == 0).sum())

    assert n_rows(AnchoredGreenClassifier(random_state=0)) == 1024
    assert n_rows(AnchoredGreenClassifier(300, random_state=0)) < 10
    means = AnchoredGreenClassifier(anchors="kmeans", random_state=0)
    assert n_rows(means) < 300
    assert len(means.anchors_) == 300
    sparse = AnchoredGreenClassifier(random_state=0).fit(sp.csr_array(X), y)
    assert len(sparse.anchors_) == 300


def test_many_anchors_are_rows_even_where_means_would_be_found(monkeypatch, rng):
    monkeypatch.setattr("greenlabel.propagators.anchored_graph.MEAN_ANCHORS", 99)
    X, y = rng.normal(size=(400, 4)), np.where(np.arange(400) < 40, np.arange(400) % 2, -1)
    monkeypatch.setattr("greenlabel.propagators.anchored_graph.MEAN_ROWS", 4)  # in a group of so many, means again
    for m, is_row in ((99, False), (100, False), (101, True)):
        anchors = AnchoredGreenClassifier(m, random_state=0).fit(X, y).anchors_
        assert bool((reference.squared_distances(anchors, X).min(axis=1) == 0).all()) == is_row


def test_the_usual_mu_falls_where_labels_have_more_anchors_to_cross():
    assert usual_shift(100) == usual_shift(8192) == 0.03
    assert usual_shift(4 * 8192) == pytest.approx(0.015)


def test_anchors_are_read_only_and_by_default_better_than_few(data):
    X, y = digits()
    few = keep_labels(y, 10, random_state=0)
    model = AnchoredGreenClassifier(random_state=0).fit(X, few)
    with pytest.raises(ValueError, match="read-only"):
        model.anchors_[0] = 0
    fewer = AnchoredGreenClassifier(449, random_state=0).fit(X, few)
    assert (model.transduction_ == y).mean() > (fewer.transduction_ == y).mean()
