"""Compiled rounds and sums against those in NumPy: the same to the bit, for every kind of processor at hand.

Without a compiler nothing but time is lost.
"""

import ctypes
import os
import platform
import shutil
import sys
from threading import Barrier
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from greenlabel import kernels
from greenlabel._common.threads import Team
from greenlabel.graph import mixing
from greenlabel.graph.mixing import GramSum, Largest, Near
from greenlabel.graph.neighbors import graph_search
from greenlabel.graph.similarity import knn_graph
from greenlabel.kernels import library
from greenlabel.operators import compiled_descent, descent, mixed_precision
from greenlabel.operators.coarse import CoarseSystem, NearGroups
from greenlabel.operators.compiled_descent import CompiledDescent, can_multiply
from greenlabel.operators.conjugate_gradients import SparseSystem
from greenlabel.operators.descent import NumpyDescent

if platform.machine().lower() in ("x86_64", "amd64"):
    assert_same = assert_array_equal
else:  # SciPy's products are fused with their sums there

    def assert_same(found, expected):
        assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


needs_library = pytest.mark.skipif(library() is None, reason="no kernels are installed: no C compiler was there")
WIDTHS = [width for width in kernels.WIDTHS if library(width)]  # of processors


def test_they_are_installed_where_there_is_a_compiler():
    if not any(map(shutil.which, ("cc", "gcc", "clang"))) or sys.platform == "win32":
        pytest.skip("no C compiler here")
    if os.environ.get("GREENLABEL_PURE"):
        pytest.skip("GREENLABEL_PURE is set")
    assert library() is not None, "install the package again: pip install -e '.[dev]'"


def some_rounds(kind, A, coarse, R, n_members):
    """What is left after rounds, a restart and more rounds, in the columns of R; and how many rounds each took."""
    r = np.zeros((len(R), kind.n_lanes(R.shape[1])), np.float32)
    r[:, : R.shape[1]] = R
    length = np.sqrt((R**2).sum(axis=0))
    with Team(n_members) as team:
        done = kind(A, team, coarse, r)
        found = [done.rounds(length * np.linspace(0.05, 0.5, len(length)), 5)]
        found += [state[:, : len(length)].copy() for state in (done.x, done.r, done.p, done.found())]
        done.restart(np.linspace(0, 1, len(length)))
        found += [done.rounds(length * 1e-3, 7)]
        found += [state[:, : len(length)].copy() for state in (done.x, done.r, done.p, done.found())]
    return found


def system_and_groups(rng, n, groups):
    """A = I - T (n, n), with groups of its rows of a kind."""
    T = sp.random_array((n, n), density=0.2, rng=rng, format="csr")
    T = sp.csr_array(T + T.T) * (0.45 / max(1, n * 0.2))
    A = sp.csr_array(sp.eye_array(n) - T).astype(np.float32)
    A.indices, A.indptr = A.indices.astype(np.int32), A.indptr.astype(np.int32)
    group = np.unique(rng.integers(0, 7, n), return_inverse=True)[1]
    return A, groups and groups(T, rng.random(n) + 0.1, group)


@needs_library
def test_every_machine_can_do_what_narrower_ones_do():
    assert [width for width in kernels.WIDTHS if width <= WIDTHS[0]] == WIDTHS
    assert WIDTHS[-1] == 4


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("groups", [None, CoarseSystem, NearGroups])
@pytest.mark.parametrize("c", [1, 2, 16, 17, 40])
@pytest.mark.parametrize("n", [1, 5, 63, 64, 65, 128, 300])
def test_rounds_are_the_same_to_the_bit(monkeypatch, rng, n, c, groups, width):
    monkeypatch.setattr(compiled_descent, "library", lambda: library(width))
    monkeypatch.setattr(descent, "SUM_ROWS", 64)
    monkeypatch.setattr(descent, "SLAB_ROWS", 24)
    words = (*system_and_groups(rng, n, groups), rng.normal(size=(n, c)))
    expected = some_rounds(NumpyDescent, *words, 1)
    for n_members in (1, 2, 3):
        for ours, theirs in zip(some_rounds(CompiledDescent, *words, n_members), expected, strict=True):
            assert_same(ours, theirs)


@needs_library
def test_rounds_are_the_same_in_many_calls(monkeypatch, rng):
    words = (*system_and_groups(rng, 300, CoarseSystem), rng.normal(size=(300, 3)))
    expected = some_rounds(CompiledDescent, *words, 2)
    monkeypatch.setattr(compiled_descent, "VALUES_AT_ONCE", 1)
    for ours, theirs in zip(some_rounds(CompiledDescent, *words, 2), expected, strict=True):
        assert_array_equal(ours, theirs)


@needs_library
def test_nobody_waits_for_a_member_that_was_stopped(rng):
    """As Ctrl-C does, when it comes before the first member has begun."""
    A, _ = system_and_groups(rng, 300, None)

    class Interrupted(Team):
        def run(self, work, blocks):
            def stop(member):
                if member == 0:
                    raise KeyboardInterrupt
                return work(member)

            return super().run(stop, blocks)

    with Interrupted(2) as team:
        stopped = CompiledDescent(A, team, None, rng.normal(size=(300, 16)).astype(np.float32))
        with pytest.raises(KeyboardInterrupt):
            stopped.rounds(np.full(16, 1e-9), 10**9)


@needs_library
@pytest.mark.parametrize("failing", range(3))
def test_nobody_waits_for_a_member_that_fails(monkeypatch, rng, failing):
    A, _ = system_and_groups(rng, 300, None)

    def rounds(state, member, *words):
        if member == failing:
            raise MemoryError
        return library().rounds(state, member, *words)

    monkeypatch.setattr(compiled_descent, "library", lambda: SimpleNamespace(rounds=rounds))
    with Team(3) as team:
        failed = CompiledDescent(A, team, None, rng.normal(size=(300, 16)).astype(np.float32))
        with pytest.raises(MemoryError):
            failed.rounds(np.full(16, 1e-9), 10**9)


def test_each_member_of_a_team_has_a_thread_of_its_own():
    for _ in range(50):
        with Team(5) as team:
            here = Barrier(5)
            assert sorted(team.run(lambda member, here=here: here.wait(10), range(5))) == list(range(5))


@needs_library
def test_the_library_takes_arrays_and_no_addresses():
    """An address says nothing of how long there is something."""
    x, step = np.zeros((3, 16), np.float32), np.zeros(16, np.float32)
    library().follow(3, 1, x, x, step)
    with pytest.raises(ctypes.ArgumentError):
        library().follow(3, 1, x, x, step.ctypes.data)
    with pytest.raises(ctypes.ArgumentError, match="apart in memory"):
        library().follow(3, 1, x, x, np.zeros(32, np.float32)[::2])


@needs_library
@pytest.mark.parametrize("c", [0, 1040])
def test_more_columns_than_there_is_room_for_are_refused(rng, c):
    with Team(1) as team, pytest.raises(ValueError, match="from 1 to 1024"):
        CompiledDescent(sp.csr_array(np.eye(3)), team, None, np.zeros((3, c), np.float32))


@needs_library
@pytest.mark.parametrize("c", [2, 17, 30])
def test_solutions_are_the_same_to_the_bit(monkeypatch, rng, c):
    for rows in ("MIXED_ROWS", "COMPILED_ROWS"):
        monkeypatch.setattr(f"greenlabel.operators.conjugate_gradients.{rows}", 0)
    X = rng.normal(size=(5000, 3))
    graph = knn_graph(graph_search(X, np.random.default_rng(0)), 8, "adaptive", 1.0)
    system = SparseSystem(graph.S, graph.degree + 0.01, "no advice", np.argsort(np.argsort(X[:, 0])) // 100)
    B = rng.normal(size=(5000, c))
    found = system.solve(B)
    monkeypatch.setattr(mixed_precision, "can_multiply", lambda A: False)
    assert_same(system.solve(B), found)


@pytest.fixture
def looked_up_anew():
    library.cache_clear()
    yield
    library.cache_clear()


def test_a_file_that_is_no_library_is_none(looked_up_anew, tmp_path):
    text = tmp_path / "_library.so"
    text.write_text("no library")
    assert library(path=text) is None
    assert library(path=tmp_path / "nowhere.so") is None


def test_without_a_library_that_fits_numpy_does_the_work(looked_up_anew, monkeypatch):
    monkeypatch.setattr(kernels, "INTERFACE", -1)  # as if it were made from another library.c
    A = sp.csr_array(np.diag([1.0, 2.0, 4.0]))
    assert not can_multiply(A)
    with Team(1) as team:
        X, _, _ = mixed_precision.MixedPrecision(A, team, 1).solve(np.ones((3, 1)), 1e-13, 10)
    assert_allclose(X[:, 0], [1, 0.5, 0.25], rtol=1e-12)


@needs_library
def test_long_indices_are_left_to_numpy():
    A = sp.csr_array(np.eye(3))
    assert can_multiply(A)
    for name in ("indices", "indptr"):
        wide = A.copy()
        setattr(wide, name, getattr(A, name).astype(np.int64))
        assert not can_multiply(wide)


@needs_library
@pytest.mark.parametrize(("c", "kind"), [(1, NumpyDescent), (2, CompiledDescent)])
def test_a_single_column_is_left_to_numpy_too(monkeypatch, rng, c, kind):
    used = []
    monkeypatch.setattr(kind, "found", lambda self, found=kind.found: used.append(type(self)) or found(self))
    with Team(1) as team:
        mixed_precision.MixedPrecision(sp.csr_array(np.eye(3)), team, c).solve(rng.normal(size=(3, c)), 1e-13, 10)
    assert set(used) == {kind}


@needs_library
@pytest.mark.parametrize(("n", "n_members"), [(1, 1), (4096, 2), (70_000, 2), (70_000, 64), (10**6, 3)])
def test_blocks_are_whole_sums_one_for_each_member(n, n_members):
    size = compiled_descent.block_rows(n, n_members)
    assert size % descent.SUM_ROWS == 0
    assert size * n_members >= n


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(("m", "k"), [(1, 1), (40, 3), (300, 20)])
def test_products_of_weights_add_up_the_same_to_the_bit(monkeypatch, rng, m, k, width):
    index = np.array([rng.permutation(m)[:k] for _ in range(500)]).astype(np.uint16)
    near = Near(index, np.asfortranarray(np.sort(rng.random((500, k + 1)), axis=1)))
    monkeypatch.setattr(mixing, "library", lambda: library(width))
    found = GramSum.of(m, near).gram()
    monkeypatch.setattr(mixing, "library", lambda: None)
    assert_array_equal(found, GramSum.of(m, near).gram())


def rows_near_anchors(rng, n, m, k, index_type, number):
    """Rows on a lattice of distances: many weights are equal, some are 0, some rows are a mix of one anchor alone."""
    index = np.array([rng.permutation(m)[:k] for _ in range(n)]).reshape(n, k)
    return Near(index.astype(index_type), np.asfortranarray(np.sort(rng.integers(0, 3, (n, k + 1)), axis=1), number))


@pytest.mark.parametrize("width", [None, *WIDTHS])
@pytest.mark.parametrize(("n", "m", "k", "c"), [(1, 1, 1, 1), (300, 40, 1, 3), (300, 40, 5, 8), (70_000, 9, 9, 17)])
@pytest.mark.parametrize("types", [(np.uint16, np.float32), (np.int32, np.float64)], ids=["short", "long"])
@pytest.mark.parametrize("are_reached", [True, False])
def test_the_largest_score_is_that_of_all_scores_to_the_bit(monkeypatch, rng, width, n, m, k, c, types, are_reached):
    near = rows_near_anchors(rng, n, m, k, *types)
    C, offsets = np.asfortranarray(rng.integers(0, 3, (m, c)) / 7), rng.integers(0, 2, c) / 7
    reached = np.ones(m, bool) if are_reached else rng.random(m) < 0.3
    F = near.matrix(m) @ C + offsets
    expected = np.where(near.matrix(m) @ reached > 0, F.argmax(axis=1), c - 1)
    monkeypatch.setattr(mixing, "library", lambda: width and library(width))
    assert_array_equal(Largest(C, offsets, reached, c - 1)(near), expected)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_class_is_sought_at_an_anchor_that_is_not_there(monkeypatch, width):
    monkeypatch.setattr(mixing, "library", lambda: library(width))
    largest = Largest(np.zeros((4, 2)), np.zeros(2), np.ones(4, bool), 0)
    for index in (np.full((3, 1), 4, np.uint16), np.full((3, 1), -1, np.int32)):
        with pytest.raises(IndexError, match="there are 4"):
            largest(Near(index, np.zeros((3, 2), order="F")))
    assert len(largest(Near(np.zeros((0, 1), np.uint16), np.zeros((0, 2), order="F")))) == 0


@needs_library
def test_an_anchor_that_is_not_there_is_refused():
    with pytest.raises(IndexError, match="there are 4"):
        GramSum.of(4, Near(np.full((70_000, 1), 65_535, np.uint16), np.zeros((70_000, 2), order="F")))
