"""Work and memory grow as promised: counted, not timed."""

import tracemalloc

import numpy as np
import pytest

from greenlabel import AnchoredGreenClassifier, GreenClassifier
from greenlabel.graph import clusters, compiled_search, distances, inverted, neighbors, products
from greenlabel.operators.mixed_precision import MixedPrecision


@pytest.fixture(scope="module")
def rows():
    """80,000 rows of eight clouds in 16 dimensions, and one label in each of the first ones."""
    rng = np.random.default_rng(0)
    centre = rng.normal(scale=4, size=(8, 16))
    cloud = rng.integers(0, 8, 80_000)
    X = (centre[cloud] + rng.normal(size=(80_000, 16))).astype(np.float32)
    y = np.full(80_000, -1)
    y[:40] = cloud[:40] % 2
    return X, y


def fit(rows, n):
    X, y = rows
    return AnchoredGreenClassifier(256, random_state=0).fit(X[:n], y[:n])


@pytest.mark.slow
def test_an_anchored_fit_compares_each_row_with_each_anchor_once(rows, monkeypatch):
    compared = []
    monkeypatch.setattr(compiled_search, "library", lambda: None)  # both ways are given the same rows and points
    nearest = products.nearest_points
    monkeypatch.setattr(
        products, "nearest_points", lambda X, P, w: compared.append(len(X) * len(P)) or nearest(X, P, w)
    )
    for n in (65_536 + 1, 80_000):  # beyond the size that is searched in double precision
        compared.clear()
        fit(rows, n)
        assert sum(compared) == n * 256


def test_a_row_is_compared_with_about_as_many_points_however_many_there_are(rng, monkeypatch):
    monkeypatch.setattr(inverted, "POINTS_PER_CLUSTER", 10)
    monkeypatch.setattr(compiled_search, "library", lambda: None)  # both ways look into the same clusters
    look = clusters.ByProducts.in_cluster
    compared = []

    def counted(points, cluster, rows, queries, bound):
        found = look(points, cluster, rows, queries, bound)
        compared.append(len(rows) * np.count_nonzero(points_search.group == cluster))
        return found

    monkeypatch.setattr(clusters.ByProducts, "in_cluster", counted)
    per_row = []
    for m in (4_000, 16_000):
        points_search = inverted.InvertedSearch(rng.normal(size=(m, 3)))
        assert len(points_search.centres) == m // 10
        compared.clear()
        points_search.nearest(rng.normal(size=(500, 3)), 5)
        per_row.append(sum(compared) / 500)
    assert per_row[1] < 1.2 * per_row[0]


def peak(job):
    tracemalloc.start()
    try:
        job()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_memory_of_an_anchored_fit_grows_by_few_bytes_a_row(rows, monkeypatch):
    monkeypatch.setattr(distances, "BLOCK_VALUES", 2**18)  # many blocks, as with millions of rows
    small, large = (peak(lambda n=n: fit(rows, n).transduction_) for n in (66_000, 80_000))
    assert (large - small) / 14_000 < 250


def test_other_labels_touch_no_row_of_features_and_no_factor(rows, monkeypatch):
    model = fit(rows, 20_000)
    monkeypatch.setattr(neighbors.Search, "nearest", None)
    monkeypatch.setattr("scipy.linalg.cho_factor", None)
    assert len(model.relabel(np.roll(rows[1][:20_000], 7)).transduction_) == 20_000


@pytest.mark.slow
def test_rounds_of_the_sparse_solver_do_not_grow_with_the_rows(rows, monkeypatch):
    """n mu is a part of the degree, so the condition of the system is the same for few rows and for many."""
    X, y = rows
    rounds = {}
    solve = MixedPrecision.solve

    def counted(system, R, *limits):
        found = solve(system, R, *limits)
        rounds[len(R)] = rounds.get(len(R), 0) + found[2]
        return found

    for rows in ("MIXED_ROWS", "COMPILED_ROWS"):
        monkeypatch.setattr(f"greenlabel.operators.conjugate_gradients.{rows}", 0)
    monkeypatch.setattr(MixedPrecision, "solve", counted)
    for n in (2000, 16_000):
        GreenClassifier(solver="cg").fit(X[:n], y[:n])
    assert rounds[16_000] < 1.3 * rounds[2000]
