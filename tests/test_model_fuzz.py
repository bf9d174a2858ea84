"""Model files with any flaw: refused, or they answer. Never a crash, a hang, another error, or much memory."""

import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from helpers.model_data import FOLDER

FIXTURES = sorted(FOLDER.glob("model-v2-*.green"))


class Worker:
    """A process that opens files with flaws; it is ended where a try lasts too long."""

    def __init__(self, model, first, count, patience=120.0):
        self.ended_by_us = False
        folder = Path(__file__).parent
        command = [sys.executable, "-m", "helpers.fuzz_model", str(model), str(first), str(count)]
        path = os.pathsep.join([str(folder), str(folder.parent / "src")])
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        )
        self.patience = patience

    def said(self):
        """What each try came to; the last line tells how the process ended."""
        lines = []
        watch = self._watch()
        for line in self.process.stdout:
            watch.cancel()
            lines.append(line.strip().partition(" ")[2])
            watch = self._watch()
        errors = self.process.stderr.read()
        code = self.process.wait()
        watch.cancel()
        end = "hung" if self.ended_by_us else "well" if code == 0 else f"{signal.strsignal(-code)}: {errors[-500:]}"
        return lines, end

    def _watch(self):
        watch = threading.Timer(self.patience, self._end)
        watch.start()
        return watch

    def _end(self):
        self.ended_by_us = True
        self.process.kill()


def check_fuzz(model, first, count):
    lines, end = Worker(model, first, count).said()
    assert end == "well", f"after try {first + len(lines) - 1}: {end}"
    odd = {first + i: line for i, line in enumerate(lines) if line not in ("refused", "answered", "does not fit")}
    assert not odd
    assert len(lines) == count
    return Counter(lines)


@pytest.mark.slow
def test_a_hundred_files_with_flaws_are_refused_or_answer():
    said = check_fuzz(FOLDER / "model-v2-blend.green", 0, 100)
    assert said["refused"] > 10
    assert said["answered"] > 10


@pytest.mark.slow
@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_thousands_of_files_with_flaws_are_refused_or_answer(path):
    check_fuzz(path, 1000, 600)
