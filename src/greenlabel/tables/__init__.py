"""Tables: a half-empty column in, the filled table out.

files       read and write; csv_text, table_blocks, parts in blocks; encodings of text
columns     columns -> features; kinds of columns, dates, encoders
targets     the column to fill; rounds where it was filled before
outcome     answers, and how far they can be trusted
words, charts, plane, page  the report
saved       models as files: model_file, model_parts, blend_parts, feature_parts
filling     answers into the table
labelling   label_table, predict_table
streaming   the same in blocks; opening its input and output
commands    the terminal
"""

from importlib import import_module
from typing import Any

_ON_FIRST_USE = {
    "label_table": "greenlabel.tables.labelling",
    "predict_table": "greenlabel.tables.labelling",
    "load_model": "greenlabel.tables.saved",
}
__all__ = ["label_table", "load_model", "predict_table"]


def __getattr__(name: str) -> Any:
    if name not in _ON_FIRST_USE:
        raise AttributeError(f"module 'greenlabel.tables' has no attribute {name!r}")
    return getattr(import_module(_ON_FIRST_USE[name]), name)
