"""The same predictions from a Dask cluster of real processes, also when some of them are killed."""

import os
import signal
import time
from threading import Thread

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import zarr
from distributed import Client, LocalCluster
from numpy.testing import assert_array_equal

from greenlabel import AnchoredGreenClassifier
from greenlabel.blocks.on_dask import connect, distribute, start_local
from greenlabel.blocks.parquet import AsMatrix, ParquetBlocks
from greenlabel.blocks.rows import ArrayBlocks, NpyBlocks
from greenlabel.errors import DataError
from helpers.block_rows import assert_same, fitted, fitted_in_memory, labelled_images, npy, parquet

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("fast_search")]


@pytest.fixture(scope="module")
def data():
    return labelled_images()


@pytest.fixture(scope="module")
def expected():
    return fitted_in_memory()


def cluster_of(n_workers):
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50)


@pytest.fixture(scope="module")
def client():
    with cluster_of(2) as cluster, Client(cluster) as client:
        yield client


@pytest.mark.parametrize("n_workers", [1, 4])
def test_the_number_of_workers_does_not_change_a_bit(n_workers, data, expected):
    X, y = data
    with cluster_of(n_workers) as cluster, Client(cluster):
        assert_same(fitted(da.from_array(X, chunks=(500, -1)), y), expected)


@pytest.mark.parametrize("chunks", [(1000, -1), (77, 90), (-1, -1), ((1, 2999), -1)])
def test_chunks_do_not_change_a_bit(chunks, client, data, expected):
    X, y = data
    model = fitted(da.from_array(X, chunks=chunks), y)
    assert_same(model, expected)
    assert_same(model.relabel(y), expected)


def test_zarr_files_and_the_parts_of_other_sources_can_be_read_by_the_workers(client, data, expected, tmp_path):
    X, y = data
    stored = zarr.create_array(tmp_path / "rows.zarr", shape=X.shape, dtype=X.dtype, chunks=(600, 100))
    stored[:] = X
    tables = ParquetBlocks(parquet(X, tmp_path)).through(AsMatrix("rows"))
    rows = [tmp_path / "rows.zarr", stored, distribute(tables), distribute(NpyBlocks(npy(X, tmp_path), 800))]
    for source in rows:
        assert_same(fitted(source, y), expected)


def test_chunks_of_unknown_length_are_counted(client, data, expected):
    X, y = data
    more = da.from_array(np.vstack([X, np.zeros_like(X)]), chunks=(500, -1))
    assert_same(fitted(more[more.sum(axis=1) > 0], y), expected)


def test_a_dask_frame_has_blocks_too(client, data, expected):
    X, y = data
    frame = dd.from_pandas(pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]), npartitions=5)
    model = fitted(frame, y)
    assert_same(model, expected)
    assert model.feature_names_in_[3] == "x3"


def test_predictions_are_lazy(client, data, expected):
    X, y = data
    model = fitted(da.from_array(X, chunks=(500, -1)), y, memory_limit=0)
    new = da.from_array(X[:999], chunks=(100, -1))
    for lazy, whole in [
        (model.predict(new), expected.predict(X[:999])),
        (model.predict_proba(new), expected.predict_proba(X[:999])),
        (model.decision_function(new), expected.decision_function(X[:999])),
    ]:
        assert isinstance(lazy, da.Array)
        assert lazy.shape == whole.shape
        assert_array_equal(lazy.compute(), whole)
    blocks = list(model.answers())
    assert [block.rows[0] for block in blocks] == list(range(0, 3000, 500))
    assert_array_equal(np.concatenate([block.probabilities for block in blocks]), expected.label_distributions_)


def test_more_rows_may_come_from_anywhere(client, data, expected):
    X, y = data
    model = AnchoredGreenClassifier(anchors=expected.anchors_)
    model.partial_fit(da.from_array(X[:1300], chunks=(200, -1)), y[:1300])
    model.partial_fit(X[1300:2000], y[1300:2000]).partial_fit(ArrayBlocks(X[2000:], 300), y[2000:])
    assert_same(model, fitted(X, y, anchors=expected.anchors_))


def test_tasks_have_readable_names(client, data):
    X, y = data
    fitted(da.from_array(X, chunks=(500, -1)), y).answers().__next__()
    names = client.run_on_scheduler(lambda dask_scheduler: set(dask_scheduler.task_prefixes))
    assert {"take-rows", "nearest-anchors", "sum-products", "add-up", "predict-rows"} <= names


def test_bad_blocks_are_named_by_their_rows(client, data):
    X, y = data
    with_nan = X.astype(np.float32)
    with_nan[2222, 17] = np.nan
    with pytest.raises(DataError, match="NaN at row 2222, column 17"):
        fitted(da.from_array(with_nan, chunks=(300, -1)), y)
    narrow = da.from_array(X, chunks=(300, -1)).map_blocks(
        lambda block, block_info=None: block[:, :-1] if block_info[0]["chunk-location"][0] == 7 else block,
        dtype=X.dtype,
    )
    with pytest.raises(DataError, match=r"rows 2100 to 2399.* has 199 columns, the others 200"):
        fitted(narrow, y, anchors=X[:300].astype(float), memory_limit=0)
    with pytest.raises(DataError, match="1 dimensions"):
        fitted(da.from_array(X[0], chunks=10), y)


# Lost workers ------------------------------------------------------------------------------------------------------


def slowly(X, chunk=100):
    """A Dask array whose chunks take their time, so that a worker can die while they are in work."""
    return da.from_array(X, chunks=(chunk, -1)).map_blocks(lambda block: time.sleep(0.05) or block, dtype=X.dtype)


class KillAWorker(Thread):
    """Kills one worker process when some, but not all, tasks of a name are done."""

    def __init__(self, client, name):
        super().__init__(daemon=True)
        self._client, self._name, self.killed_after = client, name, None

    def _done(self):
        def count(dask_scheduler, name=self._name):
            prefix = dask_scheduler.task_prefixes.get(name)
            return sum(prefix.state_counts.get(state, 0) for state in ("memory", "released")) if prefix else 0

        return self._client.run_on_scheduler(count)

    def run(self):
        while not 2 <= (done := self._done()) < 25:
            time.sleep(0.01)
        os.kill(next(iter(self._client.cluster.workers.values())).pid, signal.SIGKILL)
        self.killed_after = done


def test_killed_workers_change_nothing(data, expected):
    """One is killed during the sums, another during the predictions, which compute everything again."""
    X, y = data
    with cluster_of(2) as cluster, Client(cluster) as client:
        killer = KillAWorker(client, "sum-products")
        killer.start()
        model = fitted(slowly(X), y, memory_limit=0)
        killer.join(5)
        assert killer.killed_after is not None
        killer = KillAWorker(client, "predict-rows")
        killer.start()
        blocks = list(model.answers())
        killer.join(5)
        assert killer.killed_after is not None
        assert_array_equal(np.concatenate([block.classes for block in blocks]), expected.transduction_)
        assert_same(model, expected)


def test_kept_neighbours_that_are_lost_with_a_worker_are_found_again(data, expected):
    X, y = data
    with cluster_of(2) as cluster, Client(cluster):
        model = fitted(da.from_array(X, chunks=(100, -1)), y)
        os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
        assert_same(model, expected)


def test_workers_of_a_local_cluster_keep_their_memory(client):
    with start_local(1) as other:
        (environment,) = other.run(lambda: dict(os.environ)).values()
    assert environment["MALLOC_MMAP_THRESHOLD_"] == str(2**30)
    assert environment["OMP_NUM_THREADS"] == "1"


def test_connect_finds_a_scheduler(client):
    with connect(client.scheduler.address) as other:
        assert len(other.scheduler_info()["workers"]) == 2
