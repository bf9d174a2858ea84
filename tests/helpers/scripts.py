"""Scripts outside the package, as modules."""

import importlib.util
from pathlib import Path
from typing import Any


def script(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
