"""Threads: one is faster than two where the work is small.

faiss and the linear algebra behind NumPy each keep threads of their own, which wait for work by spinning. A small
factorisation between two searches then waits for a core more than it computes.
"""

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[None]:
    """Linear algebra on one thread inside the block."""
    return _controller().limit(limits=1, user_api="blas")
