"""Files and folders that appear whole or not at all, and files that must not change while they are read."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from greenlabel.errors import DataError

HERE, EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of renameat2


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A path to write to; what was written takes its name only when the block ends without an error."""
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        draft = Path(folder) / path.name
        yield draft
        draft.replace(path)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """The same for a folder: one that was there before is removed when the new one has its name."""
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        draft = Path(folder) / path.name
        draft.mkdir()
        yield draft
        if path.exists():
            swap_names(draft, path)
        else:
            draft.rename(path)


def swap_names(one: Path, other: Path) -> None:
    """Two folders swap their names, at once where the system can, so that neither name is ever without a folder."""
    if not exchange(one, other):
        aside = one.with_name(f"{one.name}.before")
        other.rename(aside)
        one.rename(other)
        aside.rename(one)


def exchange(one: Path, other: Path) -> bool:
    """Linux's own swap of two names; False where system or disk have none."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # another system
        return False
    return bool(rename(HERE, os.fsencode(one), HERE, os.fsencode(other), EXCHANGE) == 0)


@dataclass(frozen=True)
class FileMark:
    """A file as it was when it was first seen, to notice when it changes while it is being read."""

    path: Path
    size: int
    changed: int  # in nanoseconds since 1970

    @classmethod
    def of(cls, path: Path) -> Self:
        try:
            state = path.stat()
        except OSError as error:
            raise DataError(f"{path} cannot be read ({error.strerror}); check the path.") from error
        return cls(path, state.st_size, state.st_mtime_ns)

    def check(self) -> None:
        if not self.path.exists():
            raise DataError(f"{self.path} was removed while it was read; put it back and start again.")
        if FileMark.of(self.path) != self:
            raise DataError(f"{self.path} was changed while it was read; start again when it is whole.")
