"""From whatever holds the rows to row blocks: the one place that knows the kinds.

source, y = open_rows(X, y)

X                                     blocks
a path to a .npy file, a memory map   slices of the map
a path to Parquet files               row groups; y may be the name of a column
a Dask array, a path to .zarr         chunks, on Dask's scheduler
blocks already                        as they are
anything else                         None: X is in memory, and scikit-learn's checks apply
"""

from pathlib import Path
from typing import Any

import numpy as np

from greenlabel.blocks.rows import ArrayBlocks, Blocks, NpyBlocks
from greenlabel.errors import DataError, LabelError


def open_rows(X: Any, y: Any = None, block_rows: int | None = None) -> tuple[Blocks | None, Any]:
    """The blocks of whatever holds the rows, and the labels.

    Parameters
    ----------
    X : path, memory map, Dask or zarr array, or Blocks
        A .npy file, Parquet files or a .zarr folder by its path. Anything else is in memory already.
    y : (n,) array, str or None, default None
        Labels, or the column of Parquet files that holds them.
    block_rows : int or None, default None
        Rows of a block of an array; None is a quarter of a million.

    Returns
    -------
    blocks : Blocks or None
        None where X is in memory.
    y : (n,) array or None
        The labels.
    """
    source = _as_blocks(X, y if isinstance(y, str) else None, block_rows)
    if isinstance(y, str):
        if not hasattr(source, "column"):
            raise LabelError(f"y={y!r} names a column, which only Parquet files have; give one label per row.")
        if y in source.names:  # of blocks that the caller opened
            raise LabelError(f"the labels {y!r} are among the features; open the files with without={y!r}.")
        y = source.column(y)
    return _numbers(X, source), y


def _as_blocks(X: Any, target: str | None, block_rows: int | None) -> Any:
    if isinstance(X, Blocks):
        return X
    if isinstance(X, (str, Path)):
        return _open_path(Path(X), target, block_rows)
    kind = type(X).__module__.partition(".")[0]
    if kind in ("dask", "zarr"):
        from greenlabel.blocks.on_dask import from_dask, from_zarr

        return from_zarr(X) if kind == "zarr" else from_dask(X)
    if isinstance(X, np.memmap) and X.ndim == 2:
        return ArrayBlocks(X, block_rows)
    return None


def _open_path(path: Path, target: str | None, block_rows: int | None) -> Blocks:
    if path.suffix == ".npy":
        return NpyBlocks(path, block_rows)
    if path.suffix == ".zarr":
        from greenlabel.blocks.on_dask import from_zarr

        return from_zarr(path)
    if path.suffix in (".parquet", ".pq") or path.is_dir():
        from greenlabel.blocks.parquet import ParquetBlocks

        return ParquetBlocks(path, without=target)
    raise DataError(f"{path} is of no known kind; give a .npy, .parquet or .zarr path, or a folder of .parquet files.")


def _numbers(X: Any, source: Any) -> Blocks | None:
    """Tables as arrays of all their columns; blocks of the caller's own are taken as they are."""
    if source is not None and hasattr(source, "column") and not isinstance(X, Blocks):
        from greenlabel.blocks.parquet import AsMatrix

        names = source.names
        source = source.through(AsMatrix(str(X)))
        source.names = names
    return source
