"""The journal: every action on disk before it counts.

    {"greenlabel": "annotate", "format": 1, "table": …, "n": …, "target": …, "classes": […], "seed": …}
    {"id": …, "do": "label", "rows": [5], "class": 3}
    {"id": …, "do": "undo"}

JSON lines, appended and never changed; `append` returns when the line is on the disk (fsync). A line that was not
written to its end, newline included, was never acknowledged: it is cut off. One process at a time holds the file.
"""

import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from greenlabel.errors import TableError

FORMAT = 1
MARK = "annotate"
START = b'{"greenlabel": "annotate"'  # of every journal
BYTES_PER_ROW = 24  # of a line that names every row, with room to spare
BYTES_PER_LINE = 2**20
LOCKED_BYTE = 2**30  # far behind the end: Windows locks bytes, and would let nobody read them


class Journal:
    """An open journal. ``header`` and ``lines`` are what it held when it was opened."""

    def __init__(self, path: Path, header: dict[str, Any]):
        """``header`` is that of a new journal; one that is there must be of the same table."""
        self.path, self.notes = path, []
        self._fd = open_locked(path)
        try:
            content = read_all(self._fd)
            if is_half_header(content):
                content = b""
            self._size = 0
            if content:
                self.header, self.lines = self._continue(content, header)
            else:
                self.header, self.lines = header, []
                self._begin(header)
        except BaseException:
            self.close()
            raise

    notes: list[str]  # sentences for the user
    header: dict[str, Any]
    lines: list[tuple[int, Any]]  # number in the file from 1, and what was read

    def _begin(self, header: dict[str, Any]) -> None:
        self.append({"greenlabel": MARK, "format": FORMAT, **header})
        sync_folder(self.path.parent)

    def _continue(self, content: bytes, header: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[int, Any]]]:
        self._size = content.rfind(b"\n") + 1
        max_bytes = BYTES_PER_LINE + BYTES_PER_ROW * int(header["n"])
        values = list(read_lines(content[: self._size], max_bytes, self.path.name))
        found = check_header(values[0][1] if values else None, header, self.path.name)
        if self._size < len(content):
            os.ftruncate(self._fd, self._size)
            self.notes.append(
                "The last line of the journal was only half written, when a program or machine stopped; "
                "it was cut off. Nothing that the page had confirmed is lost."
            )
        return found, values[1:]

    def append(self, value: dict[str, Any]) -> None:
        """Write a line; when this returns it is on the disk. Refused, it leaves no trace."""
        line = json.dumps(value).encode() + b"\n"
        try:
            os.ftruncate(self._fd, self._size)  # of a line that could not be removed before
            write_all(self._fd, line)
            os.fsync(self._fd)
        except OSError as error:
            self._remove_partial_line()
            raise TableError(
                f"{self.path.name} cannot be written ({error.strerror or error}), so this was not done; "
                "make room on the disk or mend what hinders it, and do it again."
            ) from error
        self._size += len(line)

    def _remove_partial_line(self) -> None:
        with suppress(OSError):  # the next append tries again before it writes
            os.ftruncate(self._fd, self._size)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def open_locked(path: Path) -> int:
    """A file descriptor at the end of the file, which is made where there is none, for this process alone.

    In a folder that others may write to, a link could lead to any file of the user, and a pipe would never be read.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        fd = os.open(path, flags, 0o644)
    except OSError as error:
        if path.is_symlink():
            raise no_plain_file(path) from error
        raise TableError(
            f"{path.name}, which keeps the labels, cannot be opened for writing ({error.strerror}); check its "
            "permissions, or copy the table to a folder of your own."
        ) from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise no_plain_file(path)
    try:
        lock(fd)
    except OSError as error:
        os.close(fd)
        raise TableError(
            f"{path.name} is in use by another greenlabel annotate; go on in its window, or end it first."
        ) from error
    return fd


def no_plain_file(path: Path) -> TableError:
    return TableError(f"{path.name} is a link or a pipe, and the journal a plain file; move it away to start anew.")


def lock(fd: int) -> None:
    """Take the file for this process, until it ends; OSError where another one has it."""
    if os.name == "nt":
        import msvcrt

        os.lseek(fd, LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def read_all(fd: int) -> bytes:
    parts = []
    os.lseek(fd, 0, os.SEEK_SET)
    while part := os.read(fd, 2**24):
        parts.append(part)
    return b"".join(parts)


def write_all(fd: int, data: bytes) -> None:
    """All of it; the system may take less at a time."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def sync_folder(folder: Path) -> None:
    """The name of a new file is on the disk, too. Windows has no such thing."""
    if os.name == "nt":
        return
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def is_half_header(content: bytes) -> bool:
    """Whether a program stopped while it wrote the very first line."""
    return b"\n" not in content and (content.startswith(START) or START.startswith(content))


def read_lines(content: bytes, max_bytes: int, name: str) -> Iterator[tuple[int, Any]]:
    """The values of whole lines, with their numbers from 1."""
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        if len(line) > max_bytes:
            raise corrupt(name, number, "is longer than any action on this table")
        try:
            value = json.loads(line.decode(), parse_constant=no_constant)
        except (ValueError, RecursionError) as error:
            raise corrupt(name, number, "is not JSON") from error
        if not isinstance(value, dict):
            raise corrupt(name, number, "is no JSON object")
        yield number, value


def no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def corrupt(name: str, number: int, what: str) -> TableError:
    return TableError(
        f"line {number} of {name} {what}; restore the file from a copy, or move it away to start anew "
        f"(its first {number - 1} lines can be kept)."
    )


def check_header(found: Any, wanted: dict[str, Any], name: str) -> dict[str, Any]:
    """The header of a journal of this table."""
    away = f"move {name} away to start anew"
    if not isinstance(found, dict) or found.get("greenlabel") != MARK:
        raise TableError(f"{name} is no journal of greenlabel annotate; {away}.")
    if found.get("format") != FORMAT:
        raise TableError(
            f"{name} has format {short(found.get('format'))}, this greenlabel reads {FORMAT}; update greenlabel, "
            f"or {away}."
        )
    if found.get("target") != wanted["target"]:
        raise TableError(
            f"{name} holds labels of the column {short(found.get('target'))}, not of {short(wanted['target'])}; "
            f"give that column as --target, or {away}."
        )
    if found.get("table") != wanted["table"] or found.get("n") != wanted["n"]:
        raise TableError(
            f"{name} belongs to another table, or the table has changed since (it had {short(found.get('n'))} rows, "
            f"now {wanted['n']}); put the table back as it was, or {away}."
        )
    return check_start(found, name)


def check_start(header: dict[str, Any], name: str) -> dict[str, Any]:
    """What a session starts from, of the right types."""
    classes, seed = header.get("classes"), header.get("seed")
    is_sound = isinstance(classes, list) and all(isinstance(one, str) for one in classes)
    if not is_sound or type(seed) is not int or not 0 <= seed < 2**63:
        raise corrupt(name, 1, "does not say the classes and the seed that labelling began with")
    return header


def short(value: Any) -> str:
    """A value of a stranger's file, in a few characters."""
    text = repr(value) if not isinstance(value, str) else f"'{value}'"
    return text if len(text) <= 40 else f"{text[:39]}…"
