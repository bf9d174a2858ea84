"""What takes long to make and is only read: one of the workers makes it, all use it."""

import os
import time

import pytest

SECONDS = 300  # after which a worker that makes something will not be done any more


def made_once(tmp_path_factory, name, make):
    """The folder ``name`` that ``make`` filled, in whichever worker came first; the others wait for it."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # each worker has a folder in that of the run
    folder, done, failed = base / name, base / f"{name}.done", base / f"{name}.failed"
    try:
        folder.mkdir()
    except FileExistsError:
        return _waited_for(folder, done, failed)
    try:
        make(folder)
    except BaseException:
        failed.touch()
        raise
    done.touch()
    return folder


def _waited_for(folder, done, failed):
    end = time.monotonic() + SECONDS
    while not done.exists():
        if failed.exists() or time.monotonic() > end:
            pytest.fail(f"{folder.name} could not be made; the test that came first says why")
        time.sleep(0.05)
    return folder
