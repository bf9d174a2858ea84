"""The container of a model file: one JSON object and plain arrays, every value of which is checked as it is read.

    a zip archive of two members:   greenlabel.json    format, version, and the parts of the model; not compressed
                                    arrays.bin         the arrays one after the other, little-endian

    {"format": 2, "greenlabel": "0.1.0", …, "arrays": [["<f4", [150, 4]], …]}

Parts name arrays by their number in that list. No class, module or function is named anywhere: a part has a kind, a
word, and the code that reads this kind builds it (model_parts, feature_parts). What it takes from the file it takes
through a Part, which refuses anything but a value of the asked-for type, shape and range. An archive declares no more
than RATIO bytes for each byte of the file, and an array is part of one part, so that reading never needs much more
memory than the file is large.
"""

import json
import math
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from greenlabel.errors import ModelFileError

FORMAT = 2
FACTS, ARRAYS = "greenlabel.json", "arrays.bin"
RATIO, SLACK = 20, 2**20  # bytes of arrays that may come of one compressed byte; bytes that may come of any number
TYPES = {name: np.dtype(name) for name in ("<f4", "<f8", "|b1", "|u1", "<u2", "<i4", "<i8")}
HUGE = 1e100  # no number of a model is larger: sums and products of such numbers are finite
MAX_ROWS = 2**40


class Flaw(ValueError):
    """What is wrong with a file, as half a sentence."""


# Writing


@dataclass
class Arrays:
    """Arrays on their way into a file; parts name them by their number."""

    held: list[NDArray[Any]] = field(default_factory=list)

    def add(self, array: Any) -> int:
        array = np.asarray(array)
        name = array.dtype.newbyteorder("<").str
        if name not in TYPES:
            name = {"b": "|b1", "u": "<i8", "i": "<i8"}.get(array.dtype.kind, "<f8")
        self.held.append(np.ascontiguousarray(array, dtype=TYPES[name]).reshape(array.shape))
        return len(self.held) - 1

    def add_lines(self, lines: list[str]) -> int:
        """Many short texts, none of which holds a line break."""
        return self.add(np.frombuffer("\n".join(lines).encode(), np.uint8))


def write_archive(path: Path, facts: dict[str, Any], arrays: Arrays) -> None:
    table = [[array.dtype.str, list(array.shape)] for array in arrays.held]
    text = json.dumps({**facts, "arrays": table}, ensure_ascii=False, allow_nan=False)
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):  # as it is where packing would make it too small
        with zipfile.ZipFile(path, "w", method, compresslevel=1) as archive:
            archive.writestr(zipfile.ZipInfo(FACTS), text.encode())
            with archive.open(ARRAYS, "w", force_zip64=True) as member:
                for array in arrays.held:
                    member.write(array.tobytes())
            packed = archive.getinfo(ARRAYS)
        if packed.file_size <= RATIO * packed.compress_size:
            return


# Reading


def read_archive(path: Path) -> "Part":
    """The facts and arrays of a file in the present format; anything else is refused in one sentence."""
    if not path.is_file():
        problem = "is no file" if path.exists() else "does not exist"
        raise ModelFileError(f"{path} {problem}; give a file written by greenlabel label --save.")
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            text = read_member(archive, members, FACTS, 1)
            facts = as_facts(text)
            check_format(path, facts)
            if len(members) > 2:
                raise Flaw(f"it has {len(members)} members instead of two")
            data = read_member(archive, members, ARRAYS, RATIO)
    except (Flaw, ModelFileError):
        raise
    except Exception as error:  # zipfile has errors of many kinds for a file that is none; all of them mean this
        reason = " ".join(str(error).split())[:200]
        raise ModelFileError(
            f"{path} is corrupt, or no greenlabel model ({reason}); save it anew by greenlabel label --save."
        ) from error
    return Part(facts, "", split_arrays(facts.get("arrays"), data))


def read_member(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], name: str, ratio: int) -> bytes:
    found = [member for member in members if member.filename == name]
    if len(found) != 1:
        raise Flaw(f"it has {len(found)} members named {name} instead of one")
    if found[0].file_size > max(SLACK, ratio * found[0].compress_size):
        raise Flaw(f"its {name} declares {found[0].file_size:,} bytes from {found[0].compress_size:,}")
    if found[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Flaw(f"its {name} is packed in another way than by deflate")
    with archive.open(found[0]) as member:
        return member.read(found[0].file_size)  # all of it, or as much as was declared: no more is unpacked


def as_facts(text: bytes) -> dict[str, Any]:
    def refuse(constant: str) -> NoReturn:
        raise Flaw(f"its {FACTS} holds {constant}")

    try:
        facts = json.loads(text.decode(), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        raise Flaw(f"its {FACTS} is no JSON") from error
    if not isinstance(facts, dict) or type(facts.get("format")) is not int:
        raise Flaw(f"its {FACTS} names no format")
    return facts


def check_format(path: Path, facts: dict[str, Any]) -> None:
    """Refuse files of older and newer formats."""
    number, version = facts["format"], facts.get("greenlabel")
    is_name = isinstance(version, str) and len(version) <= 40 and version.isprintable()
    writer = f"greenlabel {version}" if is_name else "another greenlabel"
    if number < FORMAT:
        raise ModelFileError(
            f"{path} was written by an older greenlabel, in format {number}, which is not read any more; "
            "label again with --save."
        )
    if number > FORMAT:
        shown = number if number < 10**9 else "beyond all numbers"
        raise ModelFileError(
            f"{path} was written by {writer}, in format {shown}; this one reads format {FORMAT}: upgrade greenlabel."
        )


def split_arrays(table: Any, data: bytes) -> list[NDArray[Any]]:
    """The arrays that a table of types and shapes describes; together they are all of the data."""
    if not isinstance(table, list):
        raise Flaw("it has no table of arrays")
    arrays, start = [], 0
    for entry in table:
        dtype, shape = described(entry)
        count = math.prod(shape)
        if start + count * dtype.itemsize > len(data):
            raise Flaw("its arrays are longer than its data")
        arrays.append(np.frombuffer(data, dtype, count, start).reshape(shape))
        start += count * dtype.itemsize
    if start != len(data):
        raise Flaw("its arrays are shorter than its data")
    return arrays


def described(entry: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    if not (isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], str) and isinstance(entry[1], list)):
        raise Flaw("an entry of its table of arrays is no pair of a type and a shape")
    name, shape = entry
    if name not in TYPES:
        raise Flaw(f"an array is of the unknown type {name[:10]!r}")
    if len(shape) > 2 or not all(type(size) is int and 0 <= size <= MAX_ROWS for size in shape):
        raise Flaw("an array has an impossible shape")
    return TYPES[name], tuple(shape)


@dataclass(frozen=True)
class Part:
    """An object of the JSON. Every value is asked for by its name, its type and its range, and refused otherwise."""

    values: dict[str, Any]
    where: str
    arrays: Sequence[NDArray[Any]]
    taken: set[int] = field(default_factory=set)  # numbers of the arrays that were asked for, by whatever part

    def refuse(self, name: str, problem: str) -> NoReturn:
        raise Flaw(f"{self.where}{name} {problem}")

    def has(self, name: str) -> bool:
        return self.values.get(name) is not None

    def get(self, name: str) -> Any:
        if name not in self.values:
            self.refuse(name, "is missing")
        return self.values[name]

    def part(self, name: str) -> "Part":
        return self._as_part(self.get(name), name)

    def parts(self, name: str) -> "Iterator[Part]":
        return (self._as_part(value, f"{name}[{i}]") for i, value in enumerate(self.items(name)))

    def _as_part(self, value: Any, name: str) -> "Part":
        if not isinstance(value, dict):
            self.refuse(name, "is no object")
        return Part(value, f"{self.where}{name}.", self.arrays, self.taken)

    def items(self, name: str) -> list[Any]:
        value = self.get(name)
        if not isinstance(value, list):
            self.refuse(name, "is no list")
        return value

    def text(self, name: str, choices: Any = None) -> str:
        value = self.get(name)
        if not is_text(value):
            self.refuse(name, "is no text")
        if choices is not None and value not in choices:
            self.refuse(name, f"is {value[:20]!r}, not one of {', '.join(choices)}")
        return value

    def texts(self, name: str) -> list[str]:
        values = self.items(name)
        if not all(map(is_text, values)):
            self.refuse(name, "holds what is no text")
        return values

    def truth(self, name: str) -> bool:
        value = self.get(name)
        if not isinstance(value, bool):
            self.refuse(name, "is neither true nor false")
        return value

    def whole(self, name: str, low: int, high: int) -> int:
        value = self.get(name)
        if type(value) is not int:
            self.refuse(name, "is no whole number")
        if not low <= value <= high:
            self.refuse(name, f"is outside {low:,} to {high:,}")
        return value

    def real(self, name: str, low: float, high: float) -> float:
        value = self.get(name)
        if type(value) not in (int, float) or not low <= value <= high:  # NaN is in no range
            self.refuse(name, f"is no number from {low:g} to {high:g}")
        return float(value)

    def array(self, name: str, kind: str, shape: tuple[int | None, ...], low: float = -HUGE, high: float = HUGE) -> Any:
        """An array of a kind (f numbers, i whole numbers, b true and false) and a shape; None stands for any size."""
        number = self.whole(name, 0, len(self.arrays) - 1)
        if number in self.taken:
            self.refuse(name, "is an array of another part too")
        self.taken.add(number)
        array = self.arrays[number]
        if array.dtype.kind not in {"f": "f", "i": "iu", "b": "b"}[kind]:
            self.refuse(name, f"is an array of type {array.dtype.str}")
        if array.ndim != len(shape) or any(
            want not in (None, size) for want, size in zip(shape, array.shape, strict=True)
        ):
            self.refuse(name, f"is an array of the wrong shape, {array.shape}")
        plain = array.view(np.uint8) if kind == "b" else array
        low, high = (0, 1) if kind == "b" else (low, high)
        if array.size and not (low <= float(plain.min()) and float(plain.max()) <= high):  # NaN is in no range
            self.refuse(name, f"holds numbers that are not from {low:g} to {high:g}")
        return array.copy()

    def lines(self, name: str) -> list[str]:
        """Many short texts."""
        try:
            return self.array(name, "i", (None,), 0, 255).astype(np.uint8).tobytes().decode().split("\n")
        except UnicodeDecodeError:
            self.refuse(name, "is no text")


def is_text(value: Any) -> bool:
    """Whether a value is text that can be written: JSON has halves of characters."""
    try:
        return isinstance(value, str) and value.encode() is not None
    except UnicodeEncodeError:
        return False
