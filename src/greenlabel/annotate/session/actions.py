"""What a person does on the page, checked: a dict of anyone in, an Action out.

    label {rows, class, audit}   unlabel {rows}   ignore {rows}   unignore {rows}   skip {row}   keep {row}
    add_class {name, then_label, audit}   rename_class {class, name}   merge_classes {class, into}
    remove_class {class}   undo   redo

The same check reads requests and lines of a journal, which may both come from strangers.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greenlabel.errors import ParameterError

Ints = NDArray[np.integer]

MAX_NAME = 200  # characters of a class
MAX_ID = 100
MAX_CLASS_ID = 2**31 - 1

# What each action needs. Those with "?" may be missing.
NEEDS: dict[str, tuple[str, ...]] = {
    "label": ("rows", "class", "audit?"),
    "unlabel": ("rows",),
    "ignore": ("rows",),
    "unignore": ("rows",),
    "skip": ("row",),
    "keep": ("row",),
    "add_class": ("name", "then_label?", "audit?"),
    "rename_class": ("class", "name"),
    "merge_classes": ("class", "into"),
    "remove_class": ("class",),
    "undo": (),
    "redo": (),
}


def no_rows() -> Ints:
    return np.empty(0, np.intp)


@dataclass(frozen=True)
class Action:
    """One thing that was done; rows ascend, each once."""

    id: str
    do: str
    rows: Ints = field(default_factory=no_rows)
    class_id: int = -1
    into: int = -1
    name: str = ""
    audit: bool = False

    def as_line(self) -> dict[str, Any]:
        """As the journal has it."""
        values: dict[str, Any] = {
            "rows": self.rows.tolist(),
            "row": self.rows[0].item() if len(self.rows) else None,
            "class": self.class_id,
            "into": self.into,
            "name": self.name,
            "then_label?": self.rows.tolist(),
            "audit?": self.audit,
        }
        needed = {name: values[name] for name in NEEDS[self.do] if values[name] or not name.endswith("?")}
        return {"id": self.id, "do": self.do} | {name.rstrip("?"): value for name, value in needed.items()}


def read_action(raw: Any, n: int) -> Action:
    """An action on a table of n rows; anything else is refused in one sentence."""
    if not isinstance(raw, dict):
        raise ParameterError("an action is a JSON object with id and do; send one.")
    do = raw.get("do")
    if not (isinstance(do, str) and do in NEEDS):
        raise ParameterError(f"the action do={shown(do)} is unknown; choose one of {', '.join(NEEDS)}.")
    identity = raw.get("id")
    if not (isinstance(identity, str) and 0 < len(identity) <= MAX_ID):
        raise ParameterError(
            f"the id of an action is text of 1 to {MAX_ID} characters, got {shown(identity)}; send one."
        )
    values: dict[str, Any] = {"id": identity, "do": do}
    for name in NEEDS[do]:
        values |= READERS[name](raw, n)
    return Action(**values)


def read_rows(raw: dict[str, Any], n: int) -> dict[str, Any]:
    return {"rows": checked_rows(raw.get("rows"), n)}


def read_row(raw: dict[str, Any], n: int) -> dict[str, Any]:
    return {"rows": checked_rows([raw.get("row")], n)}


def read_then_label(raw: dict[str, Any], n: int) -> dict[str, Any]:
    return {"rows": checked_rows(raw["then_label"], n) if raw.get("then_label") else no_rows()}


def read_class(raw: dict[str, Any], n: int) -> dict[str, Any]:
    return {"class_id": checked_class(raw.get("class"))}


def read_into(raw: dict[str, Any], n: int) -> dict[str, Any]:
    return {"into": checked_class(raw.get("into"))}


def read_name(raw: dict[str, Any], n: int) -> dict[str, Any]:
    return {"name": checked_name(raw.get("name"))}


def read_audit(raw: dict[str, Any], n: int) -> dict[str, Any]:
    audit = raw.get("audit", False)
    if not isinstance(audit, bool):
        raise ParameterError(f"audit is true or false, got {shown(audit)}; send one of the two.")
    return {"audit": audit}


READERS = {
    "rows": read_rows,
    "row": read_row,
    "class": read_class,
    "into": read_into,
    "name": read_name,
    "audit?": read_audit,
    "then_label?": read_then_label,
}


def checked_rows(rows: Any, n: int) -> Ints:
    """Row numbers, ascending and each once."""
    if not isinstance(rows, list) or not rows:
        raise ParameterError(f"rows is a list of at least one row number, got {shown(rows)}; send the rows.")
    wrong = next((row for row in rows if type(row) is not int or not 0 <= row < n), None)
    if wrong is not None or None in rows:
        raise ParameterError(f"row {shown(wrong)} is not in this table; rows are numbered 0 to {n - 1}.")
    return np.unique(np.array(rows, np.intp))


def checked_class(number: Any) -> int:
    if type(number) is not int or not 0 <= number <= MAX_CLASS_ID:
        raise ParameterError(f"class {shown(number)} is no id of a class; send one of those in the state.")
    return number


def checked_name(name: Any) -> str:
    """The name of a class, without blanks around it."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ParameterError(f"{shown(name)} is no name of a class; give one line of text.")
    if len(name) > MAX_NAME:
        raise ParameterError(f"a class name of {len(name)} characters is too long; give at most {MAX_NAME}.")
    return name.strip()


def shown(value: Any) -> str:
    """What came, in a few characters."""
    if isinstance(value, int) and abs(value) >= 10**20:
        return "a number of more than 20 digits"
    text = repr(value) if not isinstance(value, list | dict) else f"a {type(value).__name__} of {len(value)}"
    return text if len(text) <= 40 else f"{text[:39]}…"
