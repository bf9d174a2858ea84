"""The process at its edges: Ctrl-C and a closed pipe end it without a word. Light, so that it is there from the start.

while libraries load     Ctrl-C ends the process at once: there is nothing to clean up yet, and what a library does
                         with an exception in the middle of its import is its own affair
while work is done       Ctrl-C is a KeyboardInterrupt, so that drafts of files are removed
while a page is served   what a page was told is on disk, so Ctrl-C may end the process at once here, too
"""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EPIPE
from typing import Any

INTERRUPTED = 128 + signal.SIGINT  # the exit code, as shells have it


@contextmanager
def loading() -> Iterator[None]:
    """Imports that take their time: Ctrl-C ends the process at once, and the garbage collector rests."""
    with ending_at_once():
        gc.disable()
        try:
            yield
        finally:
            gc.enable()


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Ctrl-C ends the process, whatever it is doing."""
    try:
        before = signal.signal(signal.SIGINT, leave)
    except ValueError:  # not the main thread, which alone has signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def leave(number: int, frame: Any) -> None:
    os._exit(INTERRUPTED)


def flush() -> None:
    """What was printed goes out now, while a closed pipe can still be handled."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def is_closed_pipe(error: BaseException) -> bool:
    """Whether nobody reads the output any more; polars says so by its words alone."""
    return isinstance(error, OSError) and (error.errno == EPIPE or os.strerror(EPIPE) in str(error))


def forget_output() -> None:
    """What is still to be written goes nowhere, and the interpreter does not complain of it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
