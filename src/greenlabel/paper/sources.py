"""The paper's data sets: where they come from, and how they are read.

A data set is looked for in one folder, first as ``<stem>.npz`` (X, y, perhaps is_test), then as its public files, in
the folder itself or in ``<stem>/``. Balance and the rings are generated. ``content`` is the checksum of X and y,
whichever way they were read.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.files import whole_file
from greenlabel.datasets import balance_scale, two_rings
from greenlabel.errors import DataError
from greenlabel.paper.formats import (
    read_arff,
    read_csv,
    read_images,
    read_libsvm,
    read_spreadsheet,
    read_zip_digits,
)

Array = NDArray[Any]
Parts = tuple[Array, Array, NDArray[np.bool_] | None]  # X, y, is_test
UCI = "https://archive.ics.uci.edu/static/public"
MNIST_FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
EMNIST_FILES = tuple(f"emnist-bymerge-{file}".replace("t10k", "test") for file in MNIST_FILES)
PACKED = ("", ".gz", ".bz2")


class MissingDataError(DataError):
    """A data set that is not in the folder."""


@dataclass(frozen=True)
class Data:
    """Rows and their classes. Where ``is_test`` is given, only those rows are scored, and none of them is labelled."""

    name: str
    X: Array  # (n, d)
    y: NDArray[np.int64]  # (n,) codes of the classes, 0..c-1
    is_test: NDArray[np.bool_] | None
    content: str


@dataclass(frozen=True)
class Download:
    """A public file, or the members of an archive that are wanted."""

    url: str
    md5: str | None = None
    members: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class Source:
    """How a data set is named, read and fetched. ``content`` is None where no copy could be checked."""

    stem: str
    files: tuple[str, ...]
    read: Callable[[list[Path]], Parts]
    downloads: tuple[Download, ...]
    content: str | None = None


def stacked(parts: list[tuple[Array, Array]]) -> Parts:
    """Training rows, then test rows."""
    X, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return X, y, np.repeat([False, True], [len(part[1]) for part in parts])


def _images(paths: list[Path]) -> Parts:
    X, y, _ = stacked([read_images(*paths[:2]), read_images(*paths[2:])])
    return X, y, None


def _digits(paths: list[Path]) -> Parts:
    X, y, _ = stacked([read_zip_digits(path) for path in paths])
    return X, y, None


def _mapping(paths: list[Path]) -> Parts:
    return stacked([read_csv(path, "class") for path in paths])


def _vehicle(paths: list[Path]) -> Parts:
    X, y, _ = stacked([read_libsvm(path, 100) for path in paths])
    return X, y, None


def _swarm(paths: list[Path]) -> Parts:
    """Four classes: aligned or not, grouped or not."""
    (X, aligned), (_, grouped) = (read_csv(path, "Class") for path in paths)
    if len(aligned) != len(grouped):
        raise DataError(f"{paths[0]} has {len(aligned):,} rows, {paths[1]} {len(grouped):,}; they must be the same.")
    return X, 2 * aligned.astype(float) + grouped.astype(float), None


SOURCES = {
    "MobileKSD": Source(
        "meu_mobile_ksd",
        ("MEU-Mobile KSD 2016.xlsx",),
        lambda paths: (*read_spreadsheet(paths[0], "Subject"), None),
        (Download(f"{UCI}/399/meu+mobile+ksd.zip", members=("MEU-Mobile KSD 2016.xlsx",)),),
        "b760b354e6d27379",
    ),
    "USPS": Source(
        "usps",
        ("zip.train", "zip.test"),
        _digits,
        tuple(
            Download(f"https://hastie.su.domains/ElemStatLearn/datasets/zip.{part}.gz") for part in ("train", "test")
        ),
        "628184fb2f88058f",
    ),
    "CsMap": Source(
        "crowdsourced_mapping",
        ("training.csv", "testing.csv"),
        _mapping,
        (Download(f"{UCI}/400/crowdsourced+mapping.zip", members=("training.csv", "testing.csv")),),
        "ceae22889baec978",
    ),
    "PhishingWeb": Source(
        "phishing_websites",
        ("Training Dataset.arff",),
        lambda paths: (*read_arff(paths[0]), None),
        (Download(f"{UCI}/327/phishing+websites.zip", members=("Training Dataset.arff",)),),
        "af87288d5201baf6",
    ),
    "Swarm": Source(
        "swarm_behaviour",
        ("Aligned.csv", "Grouped.csv"),
        _swarm,
        (Download(f"{UCI}/524/swarm+behaviour.zip", members=("Aligned.csv", "Grouped.csv")),),
    ),
    "MNIST": Source(
        "mnist",
        MNIST_FILES,
        _images,
        tuple(
            Download(f"https://ossci-datasets.s3.amazonaws.com/mnist/{file}.gz", md5)
            for file, md5 in zip(
                MNIST_FILES,
                (
                    "f68b3c2dcbeaaa9fbdd348bbdeb94873",
                    "d53e105ee54ea40749a09fcbcd1e9432",
                    "9fb629c4189551a2d022fa330f9573f3",
                    "ec29112dd5afa0611ce80d1b7f02629c",
                ),
                strict=True,
            )
        ),
        "e42aabceb9591544",
    ),
    "SensIT": Source(
        "sensit_vehicle",
        ("combined", "combined.t"),
        _vehicle,
        tuple(
            Download(f"https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/vehicle/{file}.bz2")
            for file in ("combined", "combined.t")
        ),
    ),
    "EMNIST": Source(
        "emnist_bymerge",
        EMNIST_FILES,
        _images,
        (
            Download(
                "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip",
                "58c8d27c78d21e728a6bc7b3cc06412e",
                tuple(f"{file}.gz" for file in EMNIST_FILES),
            ),
        ),
    ),
}

GENERATED: dict[str, Callable[[], tuple[Array, Array]]] = {
    "Balance": balance_scale,
    "rings": two_rings,
    "rings-connected": lambda: two_rings(connected=True),
}
GREY_LEVELS = "USPS 0-255"  # USPS as grey levels 0 to 255 instead of -1 to 1


@cache
def load(name: str, folder: Path) -> Data:
    """A data set by the paper's name; MissingDataError where the folder does not hold it."""
    if name == GREY_LEVELS:
        usps = load("USPS", folder)
        return _data(name, (usps.X + 1) * 127.5, usps.y, None)
    if name in GENERATED:
        X, y = GENERATED[name]()
        return _data(name, X, y, None)
    source = SOURCES[name]
    packed = folder / f"{source.stem}.npz"
    if packed.exists():
        with np.load(packed) as file:
            is_test = file["is_test"] if name == "CsMap" and "is_test" in file else None
            return _data(name, file["X"], file["y"], is_test)
    return load_public(name, folder)


def is_there(name: str, folder: Path) -> bool:
    """Whether a data set can be loaded, without reading it."""
    if name in GENERATED:
        return True
    source = SOURCES[name]
    return (folder / f"{source.stem}.npz").exists() or all(find(folder, source.stem, file) for file in source.files)


def save(data: Data, folder: Path) -> None:
    """Keep a data set as one .npz file, which is read faster than its public files."""
    is_test: dict[str, Any] = {} if data.is_test is None else {"is_test": data.is_test}
    with whole_file(folder / f"{SOURCES[data.name].stem}.npz") as draft, draft.open("wb") as file:
        np.savez_compressed(file, X=data.X, y=data.y, **is_test)


def load_public(name: str, folder: Path) -> Data:
    """A data set from its public files."""
    source = SOURCES[name]
    paths = [find(folder, source.stem, file) for file in source.files]
    missing = [file for file, path in zip(source.files, paths, strict=True) if path is None]
    if missing:
        raise MissingDataError(
            f"{name} is not in {folder}: neither {source.stem}.npz nor {', '.join(missing)}; "
            f"run greenlabel paper fetch {name}."
        )
    return _data(name, *source.read([path for path in paths if path]))


def find(folder: Path, stem: str, file: str) -> Path | None:
    """A public file of a data set, packed or not, in the folder or in one of its own inside it."""
    paths = (parent / f"{file}{end}" for parent in (folder / stem, folder) for end in PACKED)
    return next((path for path in paths if path.exists()), None)


def _data(name: str, X: Array, y: Array, is_test: NDArray[np.bool_] | None) -> Data:
    X = X.astype(np.float32) if X.dtype.kind == "f" else X
    codes = np.unique(y, return_inverse=True)[1].ravel().astype(np.int64)
    return Data(name, X, codes, is_test, content_of(X, codes))


def content_of(X: Array, y: NDArray[np.int64]) -> str:
    """Checksum of the values, whatever file and type they came in."""
    digest = hashlib.sha256(repr(X.shape).encode())
    for start in range(0, len(X), 10_000):
        digest.update(np.ascontiguousarray(X[start : start + 10_000], dtype="<f4").tobytes())
    digest.update(y.astype("<i8").tobytes())
    return digest.hexdigest()[:16]
