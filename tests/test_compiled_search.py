"""Comparisons that are compiled, for every kind of processor that this machine can stand for, against all distances."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from greenlabel import GreenClassifier, kernels
from greenlabel.datasets import digits, keep_labels
from greenlabel.graph import candidates, clusters, compiled_search
from greenlabel.graph.clusters import ByProducts, NearestCentres
from greenlabel.graph.compiled_search import (
    Axes,
    CompiledCentres,
    CompiledClusters,
    Lines,
    clustered_points,
    comparable,
    single_coordinates,
)
from greenlabel.graph.distances import pair_distances
from greenlabel.graph.inverted import InvertedSearch
from greenlabel.graph.products import Points
from greenlabel.graph.projection import Projection
from greenlabel.kernels import LINE, library
from helpers import reference

WIDTHS = [width for width in kernels.WIDTHS if library(width)]
TYPES = [np.float32, np.float64]


@pytest.fixture(params=WIDTHS)
def width(request, monkeypatch):
    monkeypatch.setattr(compiled_search, "library", lambda: library(request.param))
    return request.param


@pytest.fixture
def without_library(monkeypatch):
    monkeypatch.setattr(compiled_search, "library", lambda: None)


def whole(rng, shape, dtype):
    """Coordinates whose products and sums no precision rounds."""
    return rng.integers(-50, 50, shape).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("n", "m", "q", "w"), [(1, 1, 1, 1), (5, 40, 3, 40), (13, 16, 64, 3), (300, 17, 2, 16), (70, 500, 7, 33)]
)
def test_the_nearest_points_are_those_of_all_distances(rng, monkeypatch, width, n, m, q, w, dtype):
    monkeypatch.setattr(compiled_search, "ROWS_AT_ONCE", 32)
    monkeypatch.setattr(compiled_search, "CACHE_BYTES", 1)  # lines come one by one
    Q, P = (whole(rng, (size, q), dtype) for size in (n, m))
    dist2, index = Lines(P).nearest(Q, w)
    expected = reference.squared_distances(Q, P)
    assert_array_equal(index, reference.nearest(expected, w))  # equally near ones in the order of the points
    assert_array_equal(dist2, np.sort(expected, axis=1)[:, :w])


@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_that_round_give_the_same_but_for_rounding(rng, width, dtype):
    Q, P = rng.normal(size=(200, 30)).astype(dtype), rng.normal(size=(1000, 30)).astype(dtype)
    dist2, index = Lines(P).nearest(Q, 20)
    assert_array_equal(np.sort(index), np.sort(Points(P).nearest(Q, 20)[1]))
    expected = np.sort(reference.squared_distances(Q, P), axis=1)[:, :20]
    assert_allclose(dist2, expected, rtol=30 * np.finfo(dtype).eps, atol=100 * np.finfo(dtype).eps)


def test_all_processors_that_fuse_find_the_same_to_the_bit(rng, monkeypatch):
    Q, P = rng.normal(size=(100, 64)).astype(np.float32), rng.normal(size=(700, 64)).astype(np.float32)
    found = []
    for each in WIDTHS[:-1]:
        monkeypatch.setattr(compiled_search, "library", lambda each=each: library(each))
        found.append((*Lines(P).nearest(Q, 9), *compiled_search.closest(Q, P, np.arange(700)[None].repeat(100, 0), 5)))
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            assert_array_equal(one, two)


def test_what_is_found_for_a_row_does_not_depend_on_its_company(rng, width):
    Q, P = rng.normal(size=(100, 64)).astype(np.float32), rng.normal(size=(700, 64)).astype(np.float32)
    dist2, index = Lines(P).nearest(Q, 9)
    for rows in (np.arange(99, 100), rng.permutation(100)[:37]):
        some = Lines(P).nearest(Q[rows], 9)
        assert_array_equal(some[0], dist2[rows])
        assert_array_equal(some[1], index[rows])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("wanted", [1, 16, 50])
def test_clusters_are_looked_into_as_products_do(rng, monkeypatch, width, wanted, dtype):
    """The same clusters, and the same points: equally near ones aside, of which there are few."""
    monkeypatch.setattr(compiled_search, "ROWS_AT_ONCE", 20)
    monkeypatch.setattr(clusters, "CLUSTERS_PROBED", 5)
    Q = whole(rng, (900, 8), dtype)
    nearest = NearestCentres(np.concatenate([Q[:40], 1000 + Q[:1]]))  # the last one has no points
    group = nearest.of(Q)
    ours, theirs = (kind(Q, nearest, group) for kind in (CompiledClusters, ByProducts))
    assert_array_equal(ours.order, theirs.order)
    rows = whole(rng, (333, 8), dtype)
    cluster = np.sort(nearest.of(rows))
    rows = rows[np.argsort(nearest.of(rows), kind="stable")]
    found, expected = (points.candidates(rows, cluster, wanted) for points in (ours, theirs))
    dist2 = [pair_distances(rows, Q, np.maximum(index, 0)) for index in (found, expected)]
    probed_alike = np.mean(dist2[0] == dist2[1])
    assert probed_alike > 0.98  # a tie between the last clusters is broken either way
    assert_array_equal((found < 0).sum(), (expected < 0).sum())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("d", [1, 15, 16, 50, 784])
@pytest.mark.parametrize(("w", "k"), [(1, 1), (4, 4), (11, 3)])
def test_the_closest_candidates_are_those_of_all_their_distances(rng, monkeypatch, width, w, k, d, dtype):
    X, P = whole(rng, (30, d), dtype), whole(rng, (60, d), dtype)
    P[30:] = P[:30]  # equally near
    chosen = np.array([rng.permutation(60)[:w] for _ in range(50)])
    chosen[::7, -1] = -1
    rows, own = rng.integers(0, 30, 50), np.where(np.arange(50) % 3, -5, chosen[:, 0])
    found = candidates.closest(X, P, chosen, k, own, rows)
    monkeypatch.setattr(compiled_search, "library", lambda: None)
    expected = candidates.closest(X, P, chosen, k, own, rows)
    for ours, theirs in zip(found, expected, strict=True):
        assert_array_equal(ours, theirs)
    assert (found[1] == -1).any() == (k == w)


def test_distances_are_as_exact_as_their_precision(rng, width):
    X = 1e4 + rng.normal(size=(50, 333))
    chosen = np.arange(50)[None].repeat(50, 0)
    exact = np.sort(reference.squared_distances(X, X), axis=1)[:, :9]
    for dtype, rtol in ((np.float64, 1e-9), (np.float32, 1e-3)):
        found = candidates.closest(X.astype(dtype), X.astype(dtype), chosen, 9)[0]
        assert_allclose(found, exact, rtol=rtol)


@pytest.mark.parametrize("dtype", TYPES)
def test_near_points_far_from_all_others_are_told_apart(rng, width, dtype):
    """Though the squares of their coordinates are larger by far than their distances, which single precision loses."""
    spots = 1e4 * np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, -1], [-1, 0, 0]])
    Q = (np.repeat(spots, 100, axis=0) + rng.normal(size=(400, 3))).astype(dtype)
    group = np.repeat(np.arange(4), 100)
    centres = np.array([Q[group == each].mean(axis=0) for each in range(4)])
    found = CompiledClusters(Q, NearestCentres(centres), group).candidates(Q, group, 10)
    expected = reference.nearest(reference.squared_distances(Q, Q), 10)
    assert np.mean(found == expected) > 0.99


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n_near", [4, 60, 100])
def test_the_nearest_centre_is_found_among_few_and_among_many(rng, monkeypatch, width, dtype, n_near):
    monkeypatch.setattr(clusters, "MIN_NEAR", n_near)
    C, Q = (rng.normal(size=(n, 2)).astype(dtype) for n in (150, 700))
    found = CompiledCentres(C).of(Q)
    assert_array_equal(found, NearestCentres(C).of(Q))
    exact = reference.squared_distances(Q, C).argmin(axis=1)
    assert np.mean(found == exact) >= (1 if n_near == 100 else 0.9)  # with so many all are compared
    for rows in (np.arange(3, 4), rng.permutation(700)[:99]):
        assert_array_equal(CompiledCentres(C).of(Q[rows]), found[rows])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("n", "d", "q"), [(1, 1, 1), (30, 20, 16), (100, 300, 64), (5, 40, 17)])
def test_coordinates_are_those_of_a_product(rng, monkeypatch, width, dtype, n, d, q):
    monkeypatch.setattr(compiled_search, "ROWS_OF_BLOCK", 7)
    X = (3 + rng.normal(size=(n, d))).astype(dtype)
    projection = Projection(rng.normal(size=d), rng.normal(size=(d, q)))
    found = Axes(projection, dtype).coordinates(X)
    expected = (X - projection.mean) @ projection.axes
    assert_allclose(found, expected, rtol=0, atol=50 * np.finfo(dtype).eps * (1 + abs(expected).max()))
    assert_array_equal(Axes(projection, dtype).coordinates(X[-1:]), found[-1:])


def test_lines_hold_every_point_once_and_nothing_else_comes_near(rng, width):
    sizes = np.array([0, 1, 16, 17, 0, 5])
    order = rng.permutation(39)
    lines = Lines(rng.normal(size=(39, 3)).astype(np.float32), order, sizes)
    assert_array_equal(lines.first, [0, 0, 1, 2, 4, 4, 5])
    assert_array_equal(lines.number[lines.number >= 0], order)
    assert np.isinf(lines.lines[:, -1].ravel()[lines.number < 0]).all()
    assert len(lines.number) == 5 * LINE
    assert (lines.nearest(np.full((3, 3), 1e6, np.float32), 39)[1] >= 0).all()


def test_rows_that_overflow_have_no_candidates_rather_than_wrong_ones(width):
    far = np.full((2, 4), 1e30, np.float32)
    dist2, index = Lines(np.eye(4, dtype=np.float32)).nearest(far * [[1], [-1]], 2)
    assert ((index >= -1) & (index < 4)).all()
    assert not np.isnan(dist2).any()


def test_without_a_library_numpy_does_the_work(without_library, rng):
    Q = rng.normal(size=(20, 3))
    assert isinstance(comparable(Q), Points)
    assert isinstance(clustered_points(Q, NearestCentres(Q[:2]), np.zeros(20, int)), ByProducts)
    assert not compiled_search.can_compare(Q, Q)


def test_a_graph_is_the_same_with_and_without_a_library(monkeypatch):
    """Of rows that lie apart: which of two equally near ones is a neighbour may differ."""
    X, y = digits()
    X = X + np.random.default_rng(0).normal(scale=1e-3, size=X.shape)
    y = keep_labels(y, per_class=3, random_state=0)
    monkeypatch.setattr("greenlabel.graph.neighbors.EXACT_OPERATIONS", 0)
    ours = GreenClassifier(random_state=0).fit(X, y)
    monkeypatch.setattr(compiled_search, "library", lambda: None)
    theirs = GreenClassifier(random_state=0).fit(X, y)
    assert_allclose(ours.scores_, theirs.scores_, atol=1e-3 * abs(theirs.scores_).max())
    assert np.mean(ours.transduction_ == theirs.transduction_) > 0.998


@pytest.mark.parametrize(("dtype", "far"), [(np.float32, 0), (np.float64, 1e9)])
def test_coordinates_in_single_precision_keep_what_is_far_from_zero(rng, width, dtype, far):
    X = (rng.normal(size=(500, 6)) + far).astype(dtype)
    projection = Projection(X.mean(axis=0, dtype=float), np.linalg.qr(rng.normal(size=(6, 2)))[0])
    found = single_coordinates(X, projection)
    assert found.dtype == np.float32
    assert_allclose(found, (X - projection.mean) @ projection.axes, atol=1e-5)


@pytest.mark.parametrize("n_near", [8, 256])
def test_a_row_that_no_number_holds_is_looked_up_somewhere(rng, monkeypatch, width, n_near):
    monkeypatch.setattr(clusters, "MIN_NEAR", n_near)
    P = rng.normal(size=(3000, 8)).astype(np.float32)
    search = InvertedSearch(P)
    far = np.concatenate([P[:2], np.full((1, 8), 1e30, np.float32), np.full((1, 8), np.nan, np.float32)])
    assert CompiledCentres(search.centres).of(far).min() >= 0
    index = search.nearest(far, 3)[1]
    assert_array_equal(index[:2], search.nearest(P[:2], 3)[1])
    assert ((index >= -1) & (index < 3000)).all()
    with np.errstate(over="ignore"):
        assert search.nearest(far[:2].astype(float) * 1e39, 3)[1].max() < 3000


def test_what_would_be_read_beyond_its_end_is_refused(rng, width):
    P = rng.normal(size=(20, 4))
    lines, projection = Lines(P), Projection(np.zeros(4), np.eye(4))
    nearest = NearestCentres(P[:3])
    for call in (
        lambda: lines.nearest(P[:, :3], 2),
        lambda: lines.nearest(P, 0),
        lambda: Lines(P[:0]).nearest(P, 1),
        lambda: Axes(projection, float).coordinates(P[:, :3]),
        lambda: compiled_search.closest(P, P[:, :3].copy(), np.zeros((20, 1), int), 1),
        lambda: CompiledClusters(P, nearest, nearest.of(P)).candidates(P[:, :3], np.zeros(20, int), 1),
    ):
        with pytest.raises(ValueError, match=r"columns|wanted"):
            call()


@pytest.mark.parametrize("is_compiled", [True, False])
def test_too_few_candidates_are_filled_up(rng, monkeypatch, is_compiled):
    if not is_compiled:
        monkeypatch.setattr(compiled_search, "library", lambda: None)
    P = rng.normal(size=(5, 2))
    dist2, index = candidates.closest(P, P, np.array([[1, -1]] * 5), 4)
    assert_array_equal(index, [[1, -1, -1, -1]] * 5)
    assert np.isinf(dist2[:, 1:]).all()
