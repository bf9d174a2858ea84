"""Rows that need not fit in memory: sum over their blocks, map over their blocks.

    rows          the two verbs; arrays, memory maps and .npy files
    parquet       Parquet files
    on_dask       a cluster: ``connect``, ``distribute``
    sources       whatever holds rows -> blocks: ``open_rows``

The names in ``__all__`` are public. May import ``_common`` and ``errors``.
"""

from importlib import import_module as _import_module
from typing import Any

_ON_FIRST_USE = {  # a cluster and Parquet need the libraries of an extra
    "ArrayBlocks": "rows",
    "Blocks": "rows",
    "ParquetBlocks": "parquet",
    "connect": "on_dask",
    "distribute": "on_dask",
    "open_rows": "sources",
}
__all__ = ["ArrayBlocks", "Blocks", "ParquetBlocks", "connect", "distribute", "open_rows"]


def __getattr__(name: str) -> Any:
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module 'greenlabel.blocks' has no attribute {name!r}")
    return getattr(_import_module(f"greenlabel.blocks.{_ON_FIRST_USE[name]}"), name)
