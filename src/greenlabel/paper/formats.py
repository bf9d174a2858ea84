"""Readers of the public files, as published: idx, LIBSVM, ARFF, CSV, ZIP-code digits, spreadsheets, .npz.

Each returns X (n, d) and the labels as they stand in the file. Files that end in .gz or .bz2 are unpacked on the way.
"""

import bz2
import gzip
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from greenlabel.errors import DataError

Array = NDArray[Any]
OPENERS = {".gz": gzip.open, ".bz2": bz2.open}
IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def open_binary(path: Path) -> BinaryIO:
    return OPENERS.get(path.suffix, open)(path, "rb")  # type: ignore[operator]


def read_idx(path: Path) -> Array:
    """An idx file (MNIST, EMNIST): two zero bytes, the type, the number of axes, their lengths, the values."""
    with open_binary(path) as file:
        head = file.read(4)
        if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in IDX_TYPES:
            raise DataError(f"{path} is no idx file (it starts with {head.hex()}); download it again.")
        shape = np.frombuffer(file.read(4 * head[3]), ">i4")
        values = np.frombuffer(file.read(), IDX_TYPES[head[2]])
    if values.size != shape.prod(dtype=np.int64):
        raise DataError(f"{path} holds {values.size:,} values, its head says {shape.prod():,}; download it again.")
    return values.reshape(shape).astype(values.dtype.newbyteorder("="), copy=False)


def read_images(images: Path, labels: Path) -> tuple[Array, Array]:
    """Images as rows of pixels, and their labels, from two idx files."""
    X, y = read_idx(images), read_idx(labels)
    if len(X) != len(y):
        raise DataError(f"{images} holds {len(X):,} images, {labels} {len(y):,} labels; they belong to different sets.")
    return X.reshape(len(X), -1), y.astype(np.int64)


def read_libsvm(path: Path, n_features: int) -> tuple[Array, Array]:
    """LIBSVM's sparse lines, ``label column:value ...``, as a dense matrix."""
    from sklearn.datasets import load_svmlight_file

    with open_binary(path) as file:
        X, y = _parsed(path, lambda: load_svmlight_file(file, n_features=n_features, zero_based=False))
    return X.toarray().astype(np.float32), y


def read_arff(path: Path) -> tuple[Array, Array]:
    """Numbers of a dense ARFF file; the last column is the label."""
    with open_binary(path) as file:
        lines = file.read().decode("utf-8", "replace").splitlines()
    start = next((i for i, line in enumerate(lines) if line.strip().lower() == "@data"), None)
    if start is None:
        raise DataError(f"{path} has no line @data; it is no ARFF file.")
    table = _parsed(path, lambda: np.loadtxt(lines[start + 1 :], delimiter=",", comments="%", ndmin=2))
    return table[:, :-1], table[:, -1]


def read_csv(path: Path, label: str) -> tuple[Array, Array]:
    """A table with a head line; the column ``label`` holds the labels, as text."""
    with open_binary(path) as file:
        head = [name.strip().strip('"') for name in file.readline().decode("utf-8-sig").split(",")]
        if label not in head:
            raise DataError(f"{path} has no column {label!r}; its first columns are {', '.join(head[:5])}.")
        index = head.index(label)
        columns = [i for i in range(len(head)) if i != index]
        lines = [line for line in file.read().decode("utf-8").splitlines() if line.strip()]
    X = _parsed(path, lambda: np.loadtxt(lines, delimiter=",", usecols=columns, ndmin=2))
    return X, np.array([line.split(",")[index].strip().strip('"') for line in lines])


def read_zip_digits(path: Path) -> tuple[Array, Array]:
    """The ZIP-code digits of The Elements of Statistical Learning: digit and 256 grey levels, split by spaces."""
    with open_binary(path) as file:
        table = _parsed(path, lambda: np.loadtxt(file, ndmin=2))
    return table[:, 1:].astype(np.float32), table[:, 0].astype(np.int64)


def read_spreadsheet(path: Path, label: str) -> tuple[Array, Array]:
    """The first sheet of an .xlsx file; the column ``label`` holds the labels."""
    try:
        from openpyxl import load_workbook
    except ImportError as missing:
        raise DataError(f"{path} needs openpyxl to be read; pip install 'greenlabel[paper]'.") from missing
    head, *rows = load_workbook(path, read_only=True, data_only=True).worksheets[0].iter_rows(values_only=True)
    names = [str(name).strip() for name in head]
    if label not in names:
        raise DataError(f"{path} has no column {label!r}; its first columns are {', '.join(names[:5])}.")
    table = _parsed(path, lambda: np.array([row for row in rows if row[0] is not None], dtype=np.float64))
    return np.delete(table, names.index(label), axis=1).astype(np.float32), table[:, names.index(label)]


def _parsed(path: Path, parse: Any) -> Any:
    try:
        return parse()
    except (ValueError, TypeError) as error:
        raise DataError(f"{path} is not as published ({error}); download it again.") from error
