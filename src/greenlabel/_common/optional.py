"""Libraries that not everyone needs: a missing one is one sentence that says what to install."""

from collections.abc import Iterator
from contextlib import contextmanager

from greenlabel.errors import MissingLibraryError


@contextmanager
def requires(extra: str) -> Iterator[None]:
    """Imports of the libraries of an extra."""
    try:
        yield
    except ImportError as missing:
        raise MissingLibraryError(
            f"This needs {missing.name}, which is not installed; pip install 'greenlabel[{extra}]'."
        ) from missing
