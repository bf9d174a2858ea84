"""The files around a table that is labelled by hand: its hash, the journal beside it, and where the outcome goes."""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

import psutil

from greenlabel._common.files import FileMark
from greenlabel.errors import DataError, MemoryLimitError, ParameterError, TableError
from greenlabel.tables.io.blocks import bytes_in_memory, is_several, must_stream
from greenlabel.tables.io.files import check_apart, check_output
from greenlabel.tables.io.paths import STANDARD, check_table
from greenlabel.tables.opening import AtOnce, output_at_once

SHARE = (
    0.4  # of the memory that labelling at once takes: reading and features; measured 0.28 for text, 0.37 for Parquet
)
PIECE = 2**20  # bytes that are hashed at a time
REPORT, MODEL = ".html", ".green"  # files beside the outcome


def check_can_annotate(table: Path) -> None:
    """Refuse, before anything is read, a table that cannot be labelled by hand."""
    if table == STANDARD:
        raise ParameterError("annotate needs a file, for labels are kept beside it; save standard input as one first.")
    check_table(table)
    if not os.access(table.parent, os.W_OK):
        raise TableError(
            f"The folder {table.parent} may not be written to, and labels are kept beside the table; copy "
            f"{table.name} to a folder of your own and label it there."
        )
    free = psutil.virtual_memory().available
    if must_stream(str(table), None, int(free / 2 / SHARE)):
        size = SHARE * bytes_in_memory(str(table)) / 2**30
        raise MemoryLimitError(
            f"{table} would take about {size:.1f} GiB of memory, more than half of the {free / 2**30:.1f} GiB that are "
            "free; annotate a sample of its rows, save a model, and label the whole with greenlabel predict."
        )


def files_of(table: Path) -> list[Path]:
    """The files that a table consists of."""
    if not is_several(str(table)):
        return [table]
    folder, pattern = (
        (table, "*.parquet") if table.is_dir() else (Path(table.anchor), str(table.relative_to(table.anchor)))
    )
    return sorted(path for path in folder.glob(pattern) if path.is_file())


@dataclass(frozen=True)
class Fingerprint:
    """The content of a table's files, and how to see cheaply whether they may have changed."""

    text: str
    marks: tuple[FileMark, ...]

    @classmethod
    def of(cls, table: Path, sheet: str | None = None) -> "Fingerprint":
        files = files_of(table)
        marks = tuple(FileMark.of(path) for path in files)
        return cls(hash_of(files, sheet), marks)

    def has_changed(self, table: Path, sheet: str | None = None) -> bool:
        """Whether the table on disk is another one now."""
        try:
            return Fingerprint.of(table, sheet).text != self.text if self._may_have_changed(table) else False
        except (OSError, DataError):
            return True

    def _may_have_changed(self, table: Path) -> bool:
        return tuple(FileMark.of(path) for path in files_of(table)) != self.marks


def hash_of(files: list[Path], sheet: str | None) -> str:
    """One hash of all files in their order; a sheet of a workbook is a table of its own."""
    whole = hashlib.blake2b(digest_size=16)
    whole.update((sheet or "").encode())
    for path in files:
        one = hashlib.blake2b(digest_size=16)
        try:
            with path.open("rb") as file:
                while piece := file.read(PIECE):
                    one.update(piece)
        except OSError as error:
            raise TableError(f"{path} cannot be read ({error.strerror}); check the path.") from error
        whole.update(one.digest())
    return whole.hexdigest()


def folder_of(table: Path) -> Path:
    """The folder in which pictures of a table may lie."""
    return table if table.is_dir() else table.parent


def journal_of(table: Path, target: str) -> Path:
    """The journal of one column of a table, beside the table."""
    word = re.sub(r"[^\w-]+", "_", target)[:60]
    if word != target:  # two columns must not share one
        word += "-" + hashlib.blake2b(target.encode(), digest_size=4).hexdigest()
    name = re.sub(r"[*?\[\]]", "_", table.name)
    return table.with_name(f"{name}.{word}.labels.jsonl")


class Output:
    """Where the outcome goes. A file that was there before is never written over, unless that is asked for."""

    def __init__(self, table: Path, out: str | None, force: bool, encoding: str | None, sheet: str | None):
        if out == str(STANDARD):
            raise ParameterError("annotate writes the table when it is asked to on the page; name a file by --out.")
        self._force = force
        self._written: set[Path] = set()
        if out is None and not force and not is_several(str(table)):
            out = free_name(output_at_once(str(table), None).path)
        self.whole = AtOnce(str(table), out, force, encoding, sheet)
        check_apart(table, self.whole.path)

    @property
    def name(self) -> str:
        """For people, without its folder."""
        return Path(self.whole.name).name

    def beside(self, suffix: str) -> Path:
        """A file of the same name with another suffix; refused where somebody else wrote it."""
        path = self.whole.path.with_suffix(suffix)
        check_output(path, self._force or path in self._written)
        self._written.add(path)
        return path


def free_name(path: Path) -> str:
    """The name, or with -2, -3, …, for which neither the table nor what comes beside it exists."""
    number = 1
    while True:
        one = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        if not any(other.exists() for other in (one, one.with_suffix(REPORT), one.with_suffix(MODEL))):
            return str(one)
        number += 1
