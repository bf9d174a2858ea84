"""Tables: a half-empty column in, the filled table out.

io            files <-> frames
columns       columns <-> features, and the column to fill
outcome       predictions, and how far they can be trusted
report        the result as a page, and for the terminal
model_files   models as files

frames        pandas and polars <-> polars
filling       predictions into the table
labelling     label_table, predict_table
next_rows     suggest_table, and the same in blocks
passes, streaming     the same in blocks
opening, from_files   from file to file, at once or in blocks
commands, options, progress    the terminal
"""

from importlib import import_module
from typing import Any

_ON_FIRST_USE = {
    "label_table": "greenlabel.tables.labelling",
    "predict_table": "greenlabel.tables.labelling",
    "suggest_table": "greenlabel.tables.next_rows",
    "load_model": "greenlabel.tables.model_files.saved",
}
__all__ = ["label_table", "load_model", "predict_table", "suggest_table"]


def __getattr__(name: str) -> Any:
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module 'greenlabel.tables' has no attribute {name!r}")
    return getattr(import_module(_ON_FIRST_USE[name]), name)
