"""Compiles the kernels into the wheel where there is a C compiler; without one the wheel is pure.

The library needs nothing but a processor: no header of Python, no other library. So one wheel serves every Python on a
platform (py3-none-PLATFORM). GREENLABEL_PURE=1 asks for the pure wheel in any case.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import platform_tags

FOLDER, SOURCE, LIBRARY = Path("src/greenlabel/kernels"), "library.c", "_library.so"
# Each operation is rounded by itself, as in NumPy, where it is not said otherwise (library.c).
FLAGS = ["-O3", "-std=gnu11", "-ffp-contract=off", "-fPIC", "-shared"]


class CompiledKernels(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """An editable install finds the library beside its source, a wheel carries one that is made elsewhere."""
        self._elsewhere = TemporaryDirectory()
        is_editable = version == "editable"
        source = Path(self.root) / FOLDER / SOURCE
        library = (source.parent if is_editable else Path(self._elsewhere.name)) / LIBRARY
        trouble = compiled(source, library)
        if trouble:
            self.app.display_warning(f"greenlabel is built without compiled kernels, large data take longer: {trouble}")
            return
        if not is_editable:
            build_data["force_include"][str(library)] = f"greenlabel/kernels/{LIBRARY}"
        build_data["tag"] = f"py3-none-{platform_tag()}"
        build_data["pure_python"] = False

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        self._elsewhere.cleanup()


def platform_tag() -> str:
    """That of this machine; whether the library also runs on older systems is for auditwheel to say."""
    return next(tag for tag in platform_tags() if not tag.startswith(("manylinux", "musllinux")))


def compiled(source: Path, library: Path) -> str:
    """Makes the library, or says why there is none; a former one is gone in any case."""
    try:
        library.unlink(missing_ok=True)
        if os.environ.get("GREENLABEL_PURE") or sys.platform == "win32":
            return "it is not wanted here"
        if not (compiler := compiler_words()):
            return "no C compiler was found"
        with TemporaryDirectory(dir=library.parent) as folder:
            new = Path(folder) / library.name
            done = subprocess.run([*compiler, *FLAGS, str(source), "-o", str(new)], capture_output=True, text=True)
            if done.returncode == 0:
                new.replace(library)
                return ""
            return f"{compiler[0]} failed ({(done.stderr.strip().splitlines() or ['no word'])[-1]})"
    except OSError as error:
        return str(error)


def compiler_words() -> list[str]:
    """CC with its flags, if it is set; otherwise the first of the usual ones that is there."""
    if words := shlex.split(os.environ.get("CC", "")):
        return words
    return [found] if (found := next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), "")) else []
