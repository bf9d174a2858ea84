"""The blend on a Dask cluster of real processes: the bits of memory, also when some of them are killed."""

import os
import signal
import time
from threading import Thread

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from numpy.testing import assert_array_equal

from greenlabel import BlendedClassifier
from greenlabel.blocks.on_dask import distribute
from greenlabel.blocks.rows import NpyBlocks
from greenlabel.datasets import keep_labels
from helpers.block_rows import npy

pytestmark = pytest.mark.cluster


@pytest.fixture(autouse=True)
def in_blocks(monkeypatch):
    """Few rows count as many: they are in blocks, and the sample is a part of them."""
    monkeypatch.setattr("greenlabel.blend.in_blocks.MEMORY_ROWS", 100)
    monkeypatch.setattr("greenlabel.blend.in_blocks.SAMPLE_ROWS", 300)
    monkeypatch.setattr("greenlabel.blend.experts.ANCHORED_ROWS", 100)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 1200)
    X = rng.normal(size=(1200, 5)) + 2 * np.eye(3)[y] @ rng.normal(size=(3, 5))
    return X.astype(np.float32), keep_labels(y, 15, random_state=0)


def fitted(X, y, **options):
    return BlendedClassifier(random_state=0, **options).fit(X, y)


def assert_same(model, expected):
    """Bit by bit."""
    assert model.weights_ == expected.weights_
    assert_array_equal(model.scores_, expected.scores_)
    assert_array_equal(model.label_distributions_, expected.label_distributions_)
    assert_array_equal(model.class_shares_, expected.class_shares_)
    assert repr(model.estimated_accuracy_) == repr(expected.estimated_accuracy_)


def cluster_of(n_workers):
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50)


@pytest.fixture(scope="module")
def client():
    with cluster_of(2) as cluster, Client(cluster) as client:
        yield client


@pytest.mark.parametrize("memory_limit", ["auto", 0])
@pytest.mark.parametrize("chunks", [(500, -1), (77, 2)])
def test_chunks_and_what_is_kept_do_not_change_a_bit(chunks, memory_limit, client, data):
    X, few = data
    expected = fitted(X, few)
    model = fitted(da.from_array(X, chunks=chunks), few, memory_limit=memory_limit)
    assert_same(model, expected)
    assert_same(model.relabel(few), expected)


def test_workers_read_files_and_predictions_are_lazy(client, data, tmp_path):
    X, few = data
    expected = fitted(X, few)
    model = fitted(distribute(NpyBlocks(npy(X, tmp_path), 250)), few)
    assert_same(model, expected)
    assert [block.rows[0] for block in model.answers()] == [0, 250, 500, 750, 1000]
    new = da.from_array(X[:333], chunks=(100, -1))
    for name in ("predict", "predict_proba", "decision_function"):
        lazy, whole = getattr(model, name)(new), getattr(expected, name)(X[:333])
        assert isinstance(lazy, da.Array)
        assert lazy.shape == whole.shape
        assert_array_equal(lazy.compute(), whole)


class KillAWorker(Thread):
    """Kills one worker process when a task of a name, but not all of them, is done."""

    def __init__(self, client, name, n_tasks):
        super().__init__(daemon=True)
        self._client, self._name, self._n_tasks, self.killed_after = client, name, n_tasks, None

    def _done(self):
        def count(dask_scheduler, name=self._name):
            prefix = dask_scheduler.task_prefixes.get(name)
            return sum(prefix.state_counts.get(state, 0) for state in ("memory", "released")) if prefix else 0

        return self._client.run_on_scheduler(count)

    def run(self):
        while not 2 <= (done := self._done()) < self._n_tasks - 3:
            time.sleep(0.01)
        os.kill(next(iter(self._client.cluster.workers.values())).pid, signal.SIGKILL)
        self.killed_after = done


def slowly(X, chunk=50):
    """A Dask array whose chunks take their time, so that a worker can die while they are in work."""
    return da.from_array(X, chunks=(chunk, -1)).map_blocks(lambda block: time.sleep(0.05) or block, dtype=X.dtype)


def test_killed_workers_change_nothing(data):
    """One is killed during the sums of the shares, another during the predictions; both begin with the rows again."""
    X, few = data
    expected = fitted(X, few)
    with cluster_of(2) as cluster, Client(cluster) as client:
        killer = KillAWorker(client, "sum-probabilities", 24)
        killer.start()
        model = fitted(slowly(X), few, memory_limit=0)
        killer.join(5)
        assert killer.killed_after is not None
        killer = KillAWorker(client, "predict-rows", 24)
        killer.start()
        blocks = list(model.answers())
        killer.join(5)
        assert killer.killed_after is not None
        assert_array_equal(np.concatenate([block.probabilities for block in blocks]), expected.label_distributions_)
        assert_same(model, expected)


def test_what_is_lost_with_a_worker_is_computed_again(data):
    X, few = data
    with cluster_of(2) as cluster, Client(cluster):
        model = fitted(da.from_array(X, chunks=(100, -1)), few)
        os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
        assert_same(model, fitted(X, few))
