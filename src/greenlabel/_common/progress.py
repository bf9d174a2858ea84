"""Progress of long work, by the logging of Python: silent unless somebody listens.

logging.basicConfig(level=logging.INFO)      a line at the beginning and at the end of each step
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

LOG = logging.getLogger("greenlabel")


@contextmanager
def logged(step: str) -> Iterator[None]:
    """A step, with the seconds that it took; one that fails has no end."""
    LOG.info("%s ...", step)
    began = perf_counter()
    yield
    LOG.info("%s: %.1f s", step, perf_counter() - began)
