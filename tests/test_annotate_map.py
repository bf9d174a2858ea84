"""The map: rows near their anchors, kept on disk, the same every time."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.datasets import make_blobs

from greenlabel.annotate.session import anchoring, plane
from greenlabel.annotate.session.anchoring import largest_entries, mix, scaled_rows
from greenlabel.annotate.session.session import Session
from helpers.annotating import MemorySource


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(90, 5, centers=3, random_state=0)
    return X.astype(np.float32), y


@pytest.fixture
def few_anchors(monkeypatch):
    """As with many rows: fewer anchors than rows, and the anchors laid out."""
    monkeypatch.setattr(anchoring, "MAX_ANCHORS", 40)
    monkeypatch.setattr(plane, "MAX_ANCHORS", 40)
    monkeypatch.setattr(plane, "ROWS_THEMSELVES", 50)


def is_grouped(positions, y):
    """Whether most rows have a row of their own class as their nearest on the map."""
    apart = np.linalg.norm(positions[:, None] - positions[None], axis=2) + 10 * np.eye(len(y))
    return (y[apart.argmin(axis=1)] == y).mean() > 0.95


@pytest.fixture
def session(blobs, tmp_path):
    session = Session(MemorySource(blobs[0]), tmp_path / "j.jsonl", cache_dir=tmp_path / "cache")
    yield session
    session.close()


def check_positions(found, n):
    assert found.dtype == np.float32
    assert found.shape == (n, 2)
    assert np.abs(found).max() <= 1
    assert np.ptp(found, axis=0).max() > 1.8


def test_first_the_plane_of_principal_axes_then_the_map_that_stays(session, blobs):
    assert session.positions()[0] == 0
    session.prepare()
    version, first = session.positions()
    assert version == 1
    check_positions(first, 90)
    session.settle_map()
    version, settled = session.positions()
    assert version == 2
    check_positions(settled, 90)
    assert is_grouped(settled, blobs[1])


def test_the_first_plane_is_that_of_the_principal_axes(blobs):
    X = blobs[0].astype(float)
    mixing = mix(blobs[0], 0)
    one = sp.csr_array((np.ones(90, np.float32), mixing.plain.indices[mixing.plain.indptr[:-1]], np.arange(91)))
    exact = anchoring.Mixing(mixing.anchors, one, mixing.Z, mixing.gram, mixing.component, mixing.n_components)
    found = plane.first_plane(exact)
    U = np.linalg.svd(X - X.mean(axis=0))[2]
    wanted = (X - X.mean(axis=0)) @ U[:2].T
    assert abs(np.corrcoef(found[:, 0], wanted[:, 0])[0, 1]) > 0.999
    assert abs(np.corrcoef(found[:, 1], wanted[:, 1])[0, 1]) > 0.999


def test_anchors_are_laid_out_where_rows_are_many(blobs, few_anchors, tmp_path):
    session = Session(MemorySource(blobs[0]), tmp_path / "j.jsonl")
    session.prepare()
    session.settle_map()
    found = session.positions()[1]
    session.close()
    check_positions(found, 90)
    assert len(np.unique(found, axis=0)) == 90
    assert is_grouped(found, blobs[1])


def test_the_same_rows_have_the_same_map(blobs, few_anchors):
    maps = []
    for _ in range(2):
        mixing = mix(blobs[0], 0)
        Q = plane.layout(plane.points_to_lay_out(mixing, blobs[0]), None, lambda child: None)
        maps.append(plane.settled_plane(mixing, Q, 0))
    assert np.array_equal(*maps)


def test_a_process_of_its_own_makes_the_same_map(blobs, monkeypatch):
    here = plane.layout(blobs[0], None, lambda child: None)
    monkeypatch.setattr(plane, "AT_ONCE", 0)
    children = []
    there = plane.layout(blobs[0], None, children.append)
    assert len(children) == 1
    assert_allclose(there, here, rtol=1e-5)


def no_map(points):
    raise AssertionError("made anew")


def test_a_map_is_kept_for_the_same_features_alone(blobs, tmp_path, monkeypatch):
    X = blobs[0]
    made = plane.layout(X, tmp_path, lambda child: None)
    (file,) = tmp_path.iterdir()
    monkeypatch.setattr(plane, "tsne", no_map)
    assert np.array_equal(plane.layout(X, tmp_path, lambda child: None), made)
    with pytest.raises(AssertionError, match="made anew"):
        plane.layout(X + 1, tmp_path, lambda child: None)
    monkeypatch.setattr(plane, "VERSION", plane.VERSION + 1)
    with pytest.raises(AssertionError, match="made anew"):
        plane.layout(X, tmp_path, lambda child: None)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    "content",
    [b"", b"nonsense", b"\x93NUMPY\x01\x00", None, np.zeros((3, 2)), np.full((90, 2), np.nan), np.array(["a"], object)],
    ids=["empty", "nonsense", "cut", "cut later", "other rows", "NaN", "objects"],
)
def test_a_corrupt_map_is_made_anew(blobs, tmp_path, content):
    made = plane.layout(blobs[0], tmp_path, lambda child: None)
    (file,) = tmp_path.iterdir()
    if isinstance(content, np.ndarray):
        np.save(file, content, allow_pickle=True)
    else:
        file.write_bytes(file.read_bytes()[:-100] if content is None else content)
    assert np.array_equal(plane.layout(blobs[0], tmp_path, lambda child: None), made)
    assert np.array_equal(np.load(file), made)


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(blobs, tmp_path):
    (tmp_path / "file").touch()
    assert plane.layout(blobs[0], tmp_path / "file", lambda child: None).shape == (90, 2)


def test_a_row_stands_at_the_mean_of_those_anchors_that_are_near_its_heaviest(monkeypatch):
    monkeypatch.setattr(plane, "JITTER", 0.0)
    Q = np.concatenate([np.arange(8.0), [1000.0]])[:, None] * [1, 0]
    found = plane.place_rows(Q, np.array([[1, 2, 8], [8, 0, 1]]), np.array([[0.5, 0.25, 0.25], [0.6, 0.2, 0.2]]), 0)
    # Anchor 8 is torn from row 0's heaviest one. Its own spacing is so large that all are near it.
    assert_allclose(found[0], [4 / 3, 0])
    assert_allclose(found[1], [0.6 * 1000 + 0.2, 0])


def test_the_jitter_is_a_disc_of_the_local_spacing():
    found = plane.jitter(np.full(5000, 2.0), 0)
    size = np.hypot(*found.T)
    assert size.max() <= 2
    assert_allclose((size < 1).mean(), 0.25, atol=0.03)
    assert np.array_equal(found, plane.jitter(np.full(5000, 2.0), 0))


def test_copies_stand_beside_each_other():
    Q = np.random.default_rng(0).normal(size=(10, 2))
    found = plane.at_heaviest(Q, np.array([[0], [1], [1], [1]]), np.ones((4, 1)), 0)
    assert np.array_equal(found[:2], Q[:2])
    assert (np.hypot(*(found[2:] - Q[1]).T) <= plane.COPY_JITTER * plane.local_spacing(Q)[1]).all()
    assert len(np.unique(found, axis=0)) == 4


def test_a_point_is_in_the_middle():
    assert plane.in_square(np.ones((3, 2))).tolist() == [[0, 0]] * 3


# Mixing weights


def test_the_largest_entries_of_rows_of_different_length():
    A = sp.csr_array([[0.1, 0.4, 0.3, 0.0], [0, 0, 0.5, 0], [0.2, 0.2, 0.2, 0.2], [0, 0, 0, 0]])
    wanted = [[0, 4 / 7, 3 / 7, 0], [0, 0, 1, 0], [0.5, 0.5, 0, 0], [0, 0, 0, 0]]
    assert_allclose(largest_entries(A, 2).toarray(), wanted)


def test_rows_are_scaled_to_one():
    assert_allclose(scaled_rows(sp.csr_array([[1.0, 3.0], [0.0, 0.0]])).toarray(), [[0.25, 0.75], [0, 0]])


def test_mixing_weights_sum_to_one_and_equal_rows_have_equal_ones(blobs):
    X = np.concatenate([blobs[0], blobs[0][:5]])
    mixing = mix(X, 0)
    Z = mixing.Z.toarray()
    assert_allclose(Z.sum(axis=1), 1, rtol=1e-6)
    assert (Z >= 0).all()
    assert (np.count_nonzero(Z, axis=1) <= anchoring.MAX_ENTRIES).all()
    assert np.array_equal(Z[90:], Z[:5])
    assert mixing.Z.shape[1] == 90
    assert_allclose(mixing.gram, Z.T.astype(float) @ Z, atol=1e-6)


def test_many_rows_keep_the_plain_weights(blobs, monkeypatch):
    monkeypatch.setattr(anchoring, "SMOOTHED_ROWS", 50)
    mixing = mix(blobs[0], 0)
    assert mixing.Z is mixing.plain
    assert_allclose(mixing.gram, (mixing.Z.T @ mixing.Z).toarray(), atol=1e-4)


def test_closing_ends_the_making_of_a_map(blobs, tmp_path, monkeypatch):
    session = Session(MemorySource(blobs[0]), tmp_path / "j.jsonl")
    session.prepare()
    monkeypatch.setattr(plane, "AT_ONCE", 0)
    session.close()
    session.settle_map()
    assert session.positions()[0] == 1
