"""Work in a process of its own: it never delays a key press, and ends with the session whatever happens.

    child = Child("plane", {"X": X})        …        child.is_done()        child.result() -> {name: array}

The process gets arrays as files in a folder of its own and leaves its results there. It has one thread, low priority,
and a pipe from its parent: when that closes, because the parent ended in whatever way, it ends, too.
"""

import os
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Arrays = dict[str, Any]

TASKS = {  # name: module and function, of arrays and giving arrays
    "plane": ("greenlabel.annotate.session.plane", "layout_of_arrays"),
    "blend": ("greenlabel.annotate.session.settled", "blend_of_arrays"),
}
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
DONE = "done"  # a file that says that all results are there


class Child:
    """A task under way in another process."""

    def __init__(self, task: str, inputs: Arrays):
        self._folder = TemporaryDirectory(prefix="greenlabel-", ignore_cleanup_errors=True)
        self.path = Path(self._folder.name)
        save(self.path, inputs, "in")
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, task, str(self.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | dict.fromkeys(THREADS, "1"),
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_done(self) -> bool:
        return self._process.poll() is not None

    def wait(self) -> None:
        self._process.wait()

    def result(self) -> Arrays | None:
        """What the task made; None where it failed or was ended. The process is over."""
        self.wait()
        return load(self.path, "out") if (self.path / DONE).exists() else None

    def close(self) -> None:
        """End the process, if it still runs, and remove its files."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()


def save(folder: Path, arrays: Arrays, side: str) -> None:
    for name, value in arrays.items():
        if sp.issparse(value):
            sp.save_npz(folder / f"{side}-{name}.npz", value, compressed=False)
        else:
            np.save(folder / f"{side}-{name}.npy", value)


def load(folder: Path, side: str) -> Arrays:
    dense = {path.stem: np.load(path, mmap_mode="r") for path in folder.glob(f"{side}-*.npy")}
    sparse = {path.stem: sp.load_npz(path) for path in folder.glob(f"{side}-*.npz")}
    return {name.removeprefix(f"{side}-"): value for name, value in (dense | sparse).items()}


def end_with_parent() -> None:
    """Wait for the parent's end of the pipe to close."""
    sys.stdin.buffer.read()
    os._exit(1)


def main(task: str, folder: str) -> None:
    Thread(target=end_with_parent, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(5)
    module, name = TASKS[task]
    path = Path(folder)
    found: dict[str, NDArray[Any]] = getattr(import_module(module), name)(load(path, "in"))
    save(path, found, "out")
    (path / DONE).touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
