"""Which columns of a table are pictures: one of paths or bytes, or many of pixels."""

import re
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from greenlabel._common.optional import requires
from greenlabel.annotate.source.pictures import Picture, as_grey, as_picture, png, read_picture
from greenlabel.errors import TableError
from greenlabel.tables.columns.kinds import stacked
from greenlabel.tables.io.files import typed

with requires("tables"):
    import polars as pl


class Pictures(Protocol):
    columns: list[str]  # that need not be shown as cells

    def of(self, row: int) -> Picture | None: ...


class NoPictures:
    columns: list[str]

    def __init__(self) -> None:
        self.columns = []

    def of(self, row: int) -> Picture | None:
        return None


class PathPictures:
    """A column of paths, relative to the folder of the table."""

    def __init__(self, paths: pl.Series, folder: Path):
        self._paths, self._folder = paths, folder
        self.columns = [paths.name]

    def of(self, row: int) -> Picture | None:
        name: Any = self._paths[row]
        return read_picture(self._folder, str(name)) if name else None


class BytePictures:
    """A column of the pictures themselves."""

    def __init__(self, contents: pl.Series):
        self._contents = contents
        self.columns = [contents.name]

    def of(self, row: int) -> Picture | None:
        return as_picture(self._contents[row])


class PixelPictures:
    """Pixels (n, h w), line after line."""

    def __init__(self, pixels: NDArray[np.uint8], shape: tuple[int, int], columns: list[str]):
        self._pixels, self._shape = pixels, shape
        self.columns = columns

    def of(self, row: int) -> Picture | None:
        return "image/png", png(self._pixels[row].reshape(self._shape))


def pictures_of(
    table: pl.DataFrame, names: list[str], images: str | None, shape: tuple[int, int] | None, folder: Path
) -> Pictures:
    """The pictures of a table; ``names`` are the columns among which pixels are looked for."""
    if images is not None:
        return from_column(table[images], folder)
    if shape is None:
        return NoPictures()
    columns, values = pixel_values(table, names, shape)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    return PixelPictures(as_grey(values, low, high), shape, columns)


def from_column(column: pl.Series, folder: Path) -> Pictures:
    if column.dtype == pl.Binary:
        return BytePictures(column)
    if isinstance(column.dtype, pl.Struct) and "bytes" in column.struct.fields:  # as data sets of pictures come
        return BytePictures(column.struct.field("bytes").alias(column.name))
    if column.dtype in (pl.String, pl.Categorical, pl.Enum):
        return PathPictures(column, folder)
    raise TableError(
        f"--images {column.name!r} holds {column.dtype} values; give a column of paths, or of the bytes of pictures."
    )


def pixel_values(
    table: pl.DataFrame, names: list[str], shape: tuple[int, int]
) -> tuple[list[str], NDArray[np.float32]]:
    """The columns of pixels, and their values (n, h w)."""
    n_pixels = shape[0] * shape[1]
    for name in names:
        if isinstance(table[name].dtype, (pl.Array, pl.List)):
            values = stacked(table[name])
            if values.shape[1] == n_pixels:
                return [name], values.astype(np.float32)
    numbers = [column for column in typed(table.select(names)) if column.dtype.is_numeric()]
    chosen = pixel_columns([column.name for column in numbers], n_pixels)
    if chosen is None:
        raise TableError(
            f"--image-shape {shape[0]}x{shape[1]} needs {n_pixels:,} columns of pixels, the table has {len(numbers):,} "
            "columns of numbers to learn from; say which are pixels by --features ('pixel*'), or correct the shape."
        )
    by_name = {column.name: column for column in numbers}
    return chosen, pl.DataFrame([by_name[name].cast(pl.Float32) for name in chosen]).to_numpy()


def pixel_columns(names: list[str], n_pixels: int) -> list[str] | None:
    """All columns where their number is right, or else those whose names begin alike and end in a number."""
    if len(names) == n_pixels:
        return names
    groups: dict[str, list[str]] = {}
    for name in names:
        if found := re.fullmatch(r"(.*?)\d+", name):
            groups.setdefault(found[1], []).append(name)
    return next((group for group in groups.values() if len(group) == n_pixels), None)
