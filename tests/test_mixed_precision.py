"""Conjugate gradients in mixed precision against dense elimination: as exact, on any number of threads and columns."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from greenlabel._common.threads import Team
from greenlabel.graph.neighbors import graph_search
from greenlabel.graph.similarity import knn_graph
from greenlabel.kernels import library
from greenlabel.operators import coarse as coarse_module
from greenlabel.operators import descent, mixed_precision
from greenlabel.operators.coarse import (
    DAMPING,
    NEAR_DAMPING,
    CoarseSystem,
    NearGroups,
    chain,
    grouped,
    joined,
    small_groups,
)
from greenlabel.operators.compiled_descent import CompiledDescent, can_multiply
from greenlabel.operators.conjugate_gradients import SparseSystem, scale_both_sides
from greenlabel.operators.descent import ColumnFactors, NumpyDescent, added_up, column_sums, row_parts
from greenlabel.operators.mixed_precision import MixedPrecision, column_parts, in_single

SHIFT = 0.01


@pytest.fixture(scope="module")
def graph():
    X = np.random.default_rng(0).normal(size=(700, 3))
    return knn_graph(graph_search(X, np.random.default_rng(0)), 8, "adaptive", 1.0)


@pytest.fixture
def group(graph):
    """Groups of rows that are near, by the first coordinate of the order of the graph; one number is not used."""
    number = np.argsort(np.argsort(np.asarray(graph.S.sum(axis=0)).ravel())) // 40
    return np.where(number == 3, 4, number)


@pytest.fixture(autouse=True, params=["NumPy", "compiled"])
def rounds_of_both_kinds(monkeypatch, request):
    """By NumPy, and compiled where that is installed; in small blocks."""
    is_compiled = request.param == "compiled"
    if is_compiled and library() is None:
        pytest.skip("this installation has no compiled rounds: no C compiler was there")
    monkeypatch.setattr(mixed_precision, "can_multiply", lambda A: is_compiled and can_multiply(A))
    for rows in ("MIXED_ROWS", "COMPILED_ROWS"):
        monkeypatch.setattr(f"greenlabel.operators.conjugate_gradients.{rows}", 0)
    monkeypatch.setattr(descent, "SUM_ROWS", 128)
    monkeypatch.setattr(descent, "SLAB_ROWS", 24)
    monkeypatch.setattr(descent, "BLOCK_VALUES", 128 * 16)  # fewer columns have larger blocks
    monkeypatch.setattr(descent, "GROUPS_AT_ONCE", 4)


def system(graph, group=None, shift=SHIFT):
    return SparseSystem(graph.S, graph.degree + shift, "no advice", group)


def scaled(graph, shift=SHIFT):
    """T and what it hardly changes."""
    root = np.sqrt(graph.degree + shift)
    return sp.csr_array(sp.diags_array(1 / root) @ graph.S @ sp.diags_array(1 / root)), root


def less(T):
    """A = I - T."""
    return sp.csr_array(sp.eye_array(T.shape[0], format="csr") - T)


@pytest.mark.parametrize("is_grouped", [False, True])
@pytest.mark.parametrize("n_columns", [1, 2, 3, 16, 17, 40])
def test_solutions_equal_elimination_to_the_last_digits(graph, group, rng, is_grouped, n_columns):
    B = rng.normal(size=(graph.n, n_columns)) * np.logspace(-8, 8, n_columns)
    X = system(graph, group if is_grouped else None).solve(B)
    expected = np.linalg.solve(np.diag(graph.degree + SHIFT) - graph.S.toarray(), B)
    assert (abs(X - expected).max(axis=0) <= 1e-11 * abs(expected).max(axis=0)).all()


@pytest.mark.parametrize("is_grouped", [False, True])
@pytest.mark.parametrize("tolerance", [1e-13, 1e-6, 1e-2])
def test_neither_threads_nor_other_columns_change_a_bit(graph, group, rng, is_grouped, tolerance):
    B = rng.normal(size=(graph.n, 19))
    solver = system(graph, group if is_grouped else None)
    with threadpool_limits(1):
        X = solver.solve(B, tolerance)
    with threadpool_limits(2):
        assert_array_equal(solver.solve(B, tolerance), X)
    for columns in ([0], [17], [2, 5], [18, 1, 4], list(range(3, 15))):
        assert_array_equal(solver.solve(B[:, columns], tolerance), X[:, columns])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shift", [1e-9, 1e-4])
def test_a_system_too_hard_for_single_precision_is_finished_in_double(shift, rng):
    """A chain of 400 rows: without the shift its condition is 1e5, and single precision loses its way."""
    S = sp.diags_array([np.ones(399), np.ones(399)], offsets=[-1, 1]).tocsr()
    diagonal = np.asarray(S.sum(axis=1)).ravel() + shift
    B = rng.normal(size=(400, 3))
    B -= B.mean(axis=0)
    X = SparseSystem(S, diagonal, "no advice").solve(B)
    expected = np.linalg.solve(np.diag(diagonal) - S.toarray(), B)
    assert_allclose(X - X.mean(axis=0), expected - expected.mean(axis=0), atol=1e-8 * abs(expected).max())


def test_a_direction_is_kept_when_the_residual_is_taken_anew(graph, rng, monkeypatch):
    """Twice as many corrections hardly cost rounds."""
    T, _ = scaled(graph)
    R = rng.normal(size=(graph.n, 4))
    with Team(1) as team:
        _, _, few = MixedPrecision(less(T), team, R.shape[1]).solve(R, 1e-13, 1000)
        monkeypatch.setattr(mixed_precision, "DROP", 5e-3)
        monkeypatch.setattr(mixed_precision, "DEEP_DROP", 5e-3)
        _, left, many = MixedPrecision(less(T), team, R.shape[1]).solve(R, 1e-13, 1000)
    assert many < 1.25 * few
    assert (np.linalg.norm(left, axis=0) <= 1e-13 * np.linalg.norm(R, axis=0)).all()


def test_a_column_that_falls_fast_falls_deeper_and_does_not_hang_on_one_that_does_not(graph, rng, monkeypatch):
    """A chain beside the graph: a column on it takes many rounds, one on the graph few."""
    chain_of = sp.diags_array([np.ones(299), np.ones(299)], offsets=[-1, 1])
    S = sp.block_diag([graph.S, chain_of], format="csr")
    diagonal = np.asarray(S.sum(axis=1)).ravel() + SHIFT
    B = np.zeros((graph.n + 300, 2))
    B[: graph.n, 0], B[graph.n :, 1] = rng.normal(size=graph.n), rng.normal(size=300)
    goals = []
    for kind in (NumpyDescent, CompiledDescent):

        def watched(self, goal, max_rounds, rounds=kind.rounds):
            goals.append(goal.copy())
            return rounds(self, goal, max_rounds)

        monkeypatch.setattr(kind, "rounds", watched)
    solver = SparseSystem(sp.csr_array(S), diagonal, "no advice")
    X = solver.solve(B)
    assert_array_equal(goals[1], [mixed_precision.DEEP_DROP, mixed_precision.DROP])
    for column in (0, 1):
        assert_array_equal(solver.solve(B[:, [column]]), X[:, [column]])
    expected = np.linalg.solve(np.diag(diagonal) - S.toarray(), B)
    assert_allclose(X, expected, atol=1e-11 * abs(expected).max())


def test_column_factors_multiply_columns_of_any_number_of_rows(rng):
    for n in (1, 6, 64, 100, 4096):
        for c in (1, 3, 12, 100, 5000):
            A, values = rng.normal(size=(n, c)).astype(np.float32), rng.normal(size=c).astype(np.float32)
            expected = A * values
            out = np.empty_like(A)
            assert_array_equal(ColumnFactors(values).times(A, out), expected)
            assert_array_equal(ColumnFactors(values).times(A), expected)


def test_what_is_left_is_the_residual(graph, rng):
    T, _ = scaled(graph)
    R = rng.normal(size=(graph.n, 3))
    with Team(2) as team:
        X, left, n_rounds = MixedPrecision(less(T), team, R.shape[1]).solve(R, 1e-13, 5)
    assert n_rounds == 5
    assert_allclose(left, R - X + T @ X, atol=1e-14)


def test_groups_of_near_rows_save_rounds(rng):
    X = np.sort(rng.uniform(size=(3000, 1)), axis=0)  # a long thin graph
    graph = knn_graph(graph_search(X, rng), 8, "adaptive", 1.0)
    T, root = scaled(graph, 1e-3)
    R = rng.normal(size=(graph.n, 4))
    with Team(1) as team:
        coarse = CoarseSystem(T, root, np.arange(3000) // 20)
        rounds = [MixedPrecision(less(T), team, R.shape[1], known).solve(R, 1e-12, 5000)[2] for known in (None, coarse)]
    assert rounds[1] < 0.6 * rounds[0]


def test_the_system_of_groups_equals_its_formula(graph, group, rng):
    T, root = scaled(graph)
    P = np.zeros((graph.n, group.max() + 1))
    P[np.arange(graph.n), group] = root
    length = np.linalg.norm(P, axis=0)
    P = np.divide(P, length, out=P, where=length > 0)
    assert_allclose(grouped(T, P[np.arange(graph.n), group], group, P.shape[1]), P.T @ T @ P, atol=1e-14)
    coarse = CoarseSystem(T, root, group)
    assert_allclose(coarse.P.toarray(), P, atol=1e-7)
    residual = P.T @ rng.normal(size=(graph.n, 3))  # zero for the group without rows
    used = length > 0
    A = (P.T @ P - P.T @ T @ P)[np.ix_(used, used)]
    expected = DAMPING * np.linalg.solve(A, residual[used])
    found = coarse.solve(residual.astype(np.float32), Team(1))
    assert_allclose(found[used], expected, atol=1e-3 * abs(expected).max())
    assert (found[~used] == 0).all()


def test_each_group_follows_the_one_it_is_most_similar_to():
    between = np.zeros((5, 5))
    for a, b, similarity in [(0, 3, 0.5), (3, 1, 0.2), (1, 4, 0.9)]:  # 2 is an island
        between[a, b] = between[b, a] = similarity
    assert_array_equal(np.argsort(chain(between)), [0, 3, 1, 4, 2])


def test_rows_in_their_order_are_together_with_their_group(graph, group, rng):
    T, root = scaled(graph)
    coarse = CoarseSystem(T, root, group)
    assert_array_equal(np.sort(coarse.order), np.arange(graph.n))
    assert np.count_nonzero(np.diff(group[coarse.order])) == len(np.unique(group)) - 1
    ordered = coarse.reordered(coarse.order)
    assert_array_equal(ordered.P.toarray(), coarse.P.toarray()[coarse.order])
    assert_array_equal(ordered.restriction.toarray(), ordered.P.toarray().T)


def test_small_groups_equal_their_formula(graph, group, rng):
    T, root = scaled(graph)
    near = NearGroups(T, root, group)
    N, A = near.P.toarray().astype(float), np.eye(graph.n) - T.toarray()
    assert_allclose(N.T @ N, np.eye(N.shape[1]), atol=1e-6)
    numbers = near.P.indices
    _, cluster = small_groups(joined(T), group)
    assert (np.diff(numbers[near.order]) >= 0).all()
    assert np.count_nonzero(np.diff(cluster[near.order])) == len(np.unique(cluster)) - 1
    P = np.zeros((graph.n, group.max() + 1))
    P[np.arange(graph.n), cluster] = root
    P = P[:, P.any(axis=0)] / np.linalg.norm(P[:, P.any(axis=0)], axis=0)
    inverse = (
        NEAR_DAMPING * np.diag(1 / np.diag(N.T @ A @ N)) + DAMPING * N.T @ P @ np.linalg.inv(P.T @ A @ P) @ P.T @ N
    )
    residual = N.T @ rng.normal(size=(graph.n, 3))
    with Team(2) as team:
        found = near.solve(residual.astype(np.float32), team)
    assert_allclose(found, inverse @ residual, atol=1e-3 * abs(inverse @ residual).max())


@pytest.mark.parametrize("n_alone", [1, 3, 20])
def test_small_groups_without_any_weight_stay_out(graph, group, rng, monkeypatch, n_alone):
    """Rows without similarity and shift, such as anchors that nobody uses: they stay 0."""
    monkeypatch.setattr(coarse_module, "NEAR_ROWS", 0)
    monkeypatch.setattr(coarse_module, "NEAR_AT_ONCE", 7)
    alone = np.sort(rng.choice(graph.n + n_alone, n_alone, replace=False))
    used = np.setdiff1d(np.arange(graph.n + n_alone), alone)
    S = sp.csr_array((graph.n + n_alone, graph.n + n_alone)).tolil()
    S[np.ix_(used, used)] = graph.S
    diagonal, groups = np.zeros(graph.n + n_alone), np.zeros(graph.n + n_alone, int)
    diagonal[used], groups[used] = graph.degree + SHIFT, group
    B = np.zeros((graph.n + n_alone, 3))
    B[used] = rng.normal(size=(graph.n, 3))
    found = SparseSystem(sp.csr_array(S), diagonal, "no advice", groups).solve(B)
    expected = np.linalg.solve(np.diag(graph.degree + SHIFT) - graph.S.toarray(), B[used])
    assert (found[alone] == 0).all()
    assert_allclose(found[used], expected, rtol=1e-9, atol=1e-11 * abs(expected).max())


def test_rows_are_together_with_the_one_that_they_are_most_similar_to():
    T = np.zeros((7, 7))
    for a, b, similarity in [(0, 3, 0.5), (3, 1, 0.2), (1, 4, 0.9), (4, 5, 0.1)]:  # 2 and 6 are alone
        T[a, b] = T[b, a] = similarity
    found = joined(sp.csr_array(T))
    assert [np.flatnonzero(found == number).tolist() for number in range(found.max() + 1)] == [
        [0, 3],
        [1, 4, 5],
        [2],
        [6],
    ]
    assert_array_equal(joined(sp.csr_array((3, 3))), [0, 1, 2])


def test_what_is_too_large_for_one_group_is_cut_along_them(monkeypatch):
    monkeypatch.setattr(coarse_module, "MAX_NEAR", 3)
    near, cluster = small_groups(np.array([0, 0, 0, 0, 1, 1, 1]), np.array([0, 1, 0, 1, 0, 1, 1]))
    assert_array_equal(near[:4] == near[0], [True, False, True, False])
    assert_array_equal(cluster, [0, 1, 0, 1, 0, 0, 0])
    assert len(np.unique(near)) == 3


def test_small_groups_save_rounds_among_copies(rng):
    X = np.repeat(rng.normal(size=(500, 4)), 6, axis=0)
    X += rng.normal(0, 0.02, X.shape)
    graph = knn_graph(graph_search(X, rng), 8, "adaptive", 1.0)
    T, root = scaled(graph, 1e-3)
    R, clusters = rng.normal(size=(graph.n, 4)), np.argsort(np.argsort(X[:, 0])) // 100
    with Team(1) as team:
        systems = [kind(T, root, clusters) for kind in (CoarseSystem, NearGroups)]
        rounds = [MixedPrecision(less(T), team, R.shape[1], known).solve(R, 1e-12, 5000)[2] for known in systems]
    assert rounds[1] < 0.8 * rounds[0]


def test_small_groups_change_no_solution_and_no_bit_with_the_threads(graph, group, rng, monkeypatch):
    B = rng.normal(size=(graph.n, 5))
    expected = np.linalg.solve(np.diag(graph.degree + SHIFT) - graph.S.toarray(), B)
    monkeypatch.setattr(coarse_module, "NEAR_ROWS", 0)
    monkeypatch.setattr("greenlabel.operators.conjugate_gradients.ALONE_VALUES", 0)
    found = []
    for n_threads in (1, 2):
        monkeypatch.setattr("greenlabel.operators.conjugate_gradients.n_threads", lambda n=n_threads: n)
        found.append(system(graph, group).solve(B))
    assert_allclose(found[0], expected, rtol=1e-9, atol=1e-11 * abs(expected).max())
    assert_array_equal(found[0], found[1])


@pytest.mark.parametrize(
    ("n", "c", "widest"), [(100, 200, 112), (100, 3, 3), (32_768, 100, 32), (70_000, 200, 16), (10**7, 40, 16)]
)
def test_parts_cover_all_columns_in_whole_lines(n, c, widest):
    parts = list(column_parts(n, c))
    assert_array_equal(np.concatenate([np.arange(c)[part] for part in parts]), np.arange(c))
    assert max(part.stop - part.start for part in parts) == widest
    assert all(part.start % 16 == 0 for part in parts)
    assert list(column_parts(n, 0)) == []


def test_row_parts_are_the_rows(graph):
    T = graph.S
    parts = row_parts(T, 100)
    assert_array_equal(sp.vstack([part for _, part in parts]).toarray(), T.toarray())
    assert [rows.start for rows, _ in parts] == list(range(0, graph.n, 100))
    assert_array_equal(in_single(T).toarray(), T.toarray().astype(np.float32))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 128, 129, 256, 300])
def test_column_sums_are_those_of_every_so_many_rows(rng, n):
    A = rng.normal(size=(n, 3))
    sums = column_sums(A.copy())
    assert len(sums) == -(-n // 128)
    assert_allclose(added_up([sums]), A.sum(axis=0), atol=1e-12)
    assert_array_equal(sums, np.concatenate([column_sums(A[start : start + 128].copy()) for start in range(0, n, 128)]))


@pytest.mark.parametrize("n_members", [1, 2, 3])
def test_a_team_keeps_the_order_of_the_blocks_and_hands_errors_on(n_members):
    with Team(n_members) as team:
        assert team.run(lambda i: i * i, list(range(7))) == [i * i for i in range(7)]
        assert team.run(lambda i: i, []) == []
        with pytest.raises(ZeroDivisionError):
            team.run(lambda i: 1 / (6 - i), list(range(7)))


def test_a_matrix_is_scaled_on_both_sides_in_place(rng):
    dense = np.where(rng.random((40, 40)) < 0.2, rng.random((40, 40)), 0)
    factor = np.where(np.arange(40) == 7, 0, rng.random(40))
    T = sp.csr_array(dense)
    scale_both_sides(T, factor)
    assert_array_equal(T.toarray(), dense * factor[:, None] * factor)
