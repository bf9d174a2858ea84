"""Dask where no cluster runs: arrays are read all the same, and a scheduler that is not there is one sentence."""

import socket
import time
from contextlib import closing

import dask.array as da
import numpy as np
import pytest
from numpy.testing import assert_array_equal

from greenlabel.blocks.on_dask import PATIENCE, connect, current_client
from greenlabel.errors import ClusterError
from helpers.block_rows import assert_same, fitted, fitted_in_memory, labelled_images

pytestmark = pytest.mark.usefixtures("fast_search")


def test_dask_works_without_a_cluster():
    X, y = labelled_images()
    expected = fitted_in_memory()
    assert current_client() is None
    model = fitted(da.from_array(X, chunks=(500, -1)), y)
    assert_same(model, expected)
    assert_array_equal(np.concatenate([block.classes for block in model.answers()]), expected.transduction_)


def test_patience_with_a_scheduler_is_ten_seconds():
    assert PATIENCE == 10


@pytest.mark.slow
@pytest.mark.parametrize("listens", [True, False])
def test_a_scheduler_that_does_not_answer_is_one_sentence(listens):
    with closing(socket.socket()) as silent:
        silent.bind(("127.0.0.1", 0))
        if listens:
            silent.listen()
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        start = time.monotonic()
        with pytest.raises(ClusterError, match=rf"no Dask scheduler answers at {address} within 0.5 seconds; check"):
            connect(address, patience=0.5)
        assert time.monotonic() - start < 5
    assert current_client() is None


def test_an_address_that_is_none_is_refused_at_once():
    with pytest.raises(ClusterError, match="no Dask scheduler answers at nonsense"):
        connect("nonsense")
