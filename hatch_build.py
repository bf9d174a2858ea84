"""Compiles the steps of conjugate gradients into the wheel where there is a C compiler; without one the wheel is pure.

The library needs nothing but a processor: no header of Python, no other library. So one wheel serves every Python on a
platform (py3-none-PLATFORM). GREENLABEL_PURE=1 asks for the pure wheel in any case.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

FOLDER, SOURCE, LIBRARY = Path("src/greenlabel/operators"), "steps.c", "_steps.so"
# Each operation is rounded by itself, as in NumPy: results are the same to the bit on every processor.
FLAGS = ["-O3", "-std=gnu11", "-ffp-contract=off", "-fPIC", "-shared"]


class CompiledSteps(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """An editable install finds the library beside its source, a wheel carries one that is made elsewhere."""
        self._elsewhere = TemporaryDirectory()
        folder = FOLDER if version == "editable" else Path(self._elsewhere.name)
        library = Path(self.root) / folder / LIBRARY
        if is_wanted() and compiled(Path(self.root) / FOLDER / SOURCE, library):
            if version != "editable":
                build_data["force_include"][str(library)] = f"greenlabel/operators/{LIBRARY}"
            build_data["tag"] = f"py3-none-{next(iter(platform_tags()))}"
            build_data["pure_python"] = False
        else:
            self.app.display_warning("greenlabel is built without compiled steps: large graphs take twice as long.")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._elsewhere.cleanup()


def is_wanted() -> bool:
    return not os.environ.get("GREENLABEL_PURE") and sys.platform != "win32"


def compiled(source: Path, library: Path) -> bool:
    """Whether a compiler was found and made the library, which appears whole or not at all."""
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", ""), "cc", "gcc", "clang"))), None)
    if compiler is None:
        return False
    with TemporaryDirectory(dir=library.parent) as folder:
        new = Path(folder) / library.name
        done = subprocess.run([compiler, *FLAGS, str(source), "-o", str(new)], capture_output=True, check=False)
        if done.returncode == 0:
            new.replace(library)
    return done.returncode == 0
