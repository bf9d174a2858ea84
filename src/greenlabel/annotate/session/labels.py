"""State: the classes, the label of each row, what is ignored; and the way back.

    state.change(action) -> Change        what an action would do; refuses what cannot be done
    state.apply(change)                   do it

A change holds what the rows it touches were before and are after, so undo and redo are the same change in either
direction, and a history costs as much as what was changed. Nothing here reads a file or a clock: the same actions give
the same state.

Classes have ids that stay through all renaming and are never given twice, also not after an undo.
"""

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from greenlabel.annotate.session.actions import Action, shown
from greenlabel.errors import LabelError, ParameterError

Ints = NDArray[np.integer]
Bools = NDArray[np.bool_]

MAX_CLASSES = 254  # a class is one byte on the page, and 255 means none
NO_LABEL = -1
NOBODY, TABLE, HAND, AUDIT = range(
    4
)  # who gave a label: nobody, the table, the user, the user to a row drawn at random

Marks = np.ndarray  # of MARK
MARK = np.dtype(
    [
        ("label", np.int32),  # id of a class
        ("origin", np.uint8),
        ("ignored", np.bool_),
        ("kept", np.bool_),  # a suspect that is right
        ("skipped", np.int32),  # number of the action, 0 where it was not
        ("stamp", np.int32),  # number of the action that gave the label
    ]
)


@dataclass(frozen=True)
class Class:
    id: int
    name: str


@dataclass(frozen=True, eq=False)
class Change:
    """What one action does to the rows it touches and to the classes."""

    do: str
    sentence: str
    rows: Ints
    before: Marks  # of these rows
    after: Marks
    classes_before: tuple[Class, ...]
    classes_after: tuple[Class, ...]

    def reversed(self) -> "Change":
        return replace(
            self,
            before=self.after,
            after=self.before,
            classes_before=self.classes_after,
            classes_after=self.classes_before,
        )

    @property
    def only_row(self) -> int | None:
        """The row that it is about; None where there are several, or none."""
        return int(self.rows[0]) if len(self.rows) == 1 else None

    @property
    def is_labelling(self) -> bool:
        """Whether a person gave labels; or did, and takes them back."""
        return self.do in ("label", "add_class") and len(self.rows) > 0

    @cached_property
    def changes_labels(self) -> bool:
        return bool((self.before["label"] != self.after["label"]).any())

    @property
    def keeps_classes(self) -> bool:
        """Whether classes that were there before stand where they stood: others may have come or gone behind them."""
        before, after = ([one.id for one in part] for part in (self.classes_before, self.classes_after))
        shared = min(len(before), len(after))
        return before[:shared] == after[:shared]


class State:
    """Labels of n rows. ``given`` are those that the table came with."""

    def __init__(self, n: int, class_names: Iterable[str], given: Iterable[tuple[int, str]] = ()):
        self.n, self.n_actions = n, 0
        self.classes = tuple(Class(number, name) for number, name in enumerate(class_names))
        if len(self.classes) > MAX_CLASSES:
            raise too_many_classes(len(self.classes))
        self.next_id = len(self.classes)
        self.marks = np.zeros(n, MARK)
        self.marks["label"] = NO_LABEL
        self.done: list[Change] = []
        self.undone: list[Change] = []
        self.answered: set[int] = set()  # audits, also those taken back: their prediction was seen
        code = {one.name: one.id for one in self.classes}
        for row, name in given:
            self.marks["label"][row], self.marks["origin"][row] = code[name], TABLE

    # Reading

    def class_of(self, number: int) -> Class:
        found = next((one for one in self.classes if one.id == number), None)
        if found is None:
            raise ParameterError(f"class {shown(number)} is not there (any more); take one of those in the state.")
        return found

    @property
    def labelled(self) -> Ints:
        """Rows with a label, ascending."""
        return np.flatnonzero(self.marks["origin"])

    def rows_of(self, origin: int) -> Ints:
        return np.flatnonzero(self.marks["origin"] == origin)

    @property
    def audits(self) -> Ints:
        """Rows drawn at random and labelled before their prediction was seen, in the order in which they were."""
        rows = self.rows_of(AUDIT)
        return rows[np.argsort(self.marks["stamp"][rows], kind="stable")]

    @property
    def n_turns(self) -> int:
        """How many times labels were given, as far as it was not undone."""
        return sum(change.is_labelling for change in self.done)

    def members(self) -> dict[int, Ints]:
        """Labelled rows of each class that has some."""
        return members_of(self.marks)

    def before_last(self, count: int) -> "list[State]":
        """As things were before each of the last ``count`` times that labels were given, the oldest first."""
        past = self._without_history()
        found: list[State] = []
        for change in reversed(self.done):
            if len(found) == count or not change.keeps_classes:
                break
            past = past._without_history()
            past.marks[change.rows] = change.before
            if change.is_labelling:
                found.append(past)
        return found[::-1]

    def _without_history(self) -> "State":
        """A copy without the way back; the classes are those of now."""
        other = copy(self)
        other.marks, other.done, other.undone = self.marks.copy(), [], []
        return other

    def if_labelled(self, rows: Ints, class_id: int, origin: int) -> "State":
        """A copy in which some rows have a label."""
        other = self._without_history()
        other.marks["label"][rows], other.marks["origin"][rows] = class_id, origin
        return other

    # Changing

    def change(self, action: Action) -> Change:
        """What an action would do."""
        if action.do in ("undo", "redo"):
            return self._way_back(action.do)
        return CHANGES[action.do](self, action)

    def apply(self, action: Action, change: Change) -> None:
        """Do what ``change(action)`` was."""
        self.marks[change.rows] = change.after
        self.classes = change.classes_after
        self.next_id = max([self.next_id, *(one.id + 1 for one in self.classes)])
        self.n_actions += 1
        if action.audit:
            self.answered.add(int(action.rows[0]))
        if action.do == "undo":
            self.undone.append(self.done.pop())
        elif action.do == "redo":
            self.done.append(self.undone.pop())
        else:
            self.done.append(change)
            self.undone.clear()

    def _way_back(self, do: str) -> Change:
        stack = self.done if do == "undo" else self.undone
        if not stack:
            raise ParameterError(f"there is nothing to {do}; label a row first." if do == "undo" else NOTHING_TO_REDO)
        return stack[-1].reversed() if do == "undo" else stack[-1]

    def made(self, action: Action, sentence: str, rows: Ints, after: Marks, classes: tuple[Class, ...]) -> Change:
        return Change(action.do, sentence, rows, self.marks[rows], after, self.classes, classes)

    def touched(self, rows: Ints) -> Marks:
        """A copy of the marks of some rows, to be changed."""
        return self.marks[rows].copy()

    def stamped(self, after: Marks, label: int, origin: int) -> Marks:
        """Marks with another label."""
        after["label"], after["origin"], after["kept"] = label, origin, False
        after["stamp"] = self.n_actions + 1 if origin else 0
        return after


def members_of(marks: Marks) -> dict[int, Ints]:
    rows = np.flatnonzero(marks["origin"])
    labels = marks["label"][rows]
    order = np.argsort(labels, kind="stable")
    numbers, starts = np.unique(labels[order], return_index=True)
    return dict(zip(numbers.tolist(), np.split(rows[order], starts[1:]), strict=True)) if len(rows) else {}


NOTHING_TO_REDO = "there is nothing to redo; undo something first."


def too_many_classes(count: int) -> LabelError:
    return LabelError(
        f"{count} classes are more than the {MAX_CLASSES} that the page can show; label a coarser column first, or "
        "merge classes."
    )


def n_rows(rows: Ints) -> str:
    return f"{len(rows):,} rows" if len(rows) > 1 else f"row {rows[0]}"


def label(state: State, action: Action) -> Change:
    given = state.class_of(action.class_id)
    after = state.stamped(state.touched(action.rows), given.id, checked_origin(state, action))
    after["ignored"], after["skipped"] = False, 0
    return state.made(action, f"label {n_rows(action.rows)} as {given.name}", action.rows, after, state.classes)


def checked_origin(state: State, action: Action) -> int:
    """Who gives the labels of an action; an audit is of one row that nobody has labelled."""
    if not action.audit:
        return HAND
    if len(action.rows) != 1:
        raise ParameterError("an audit is of one row; send its label alone, or no audit.")
    if state.marks["origin"][action.rows[0]]:
        raise ParameterError(
            f"row {action.rows[0]} has a label by now and is no random check any more; label it without audit."
        )
    return AUDIT


def unlabel(state: State, action: Action) -> Change:
    rows = action.rows[state.marks["origin"][action.rows] > 0]
    if not len(rows):
        raise ParameterError("none of these rows has a label; choose rows that have one.")
    after = state.stamped(state.touched(rows), NO_LABEL, NOBODY)
    return state.made(action, f"take the label from {n_rows(rows)}", rows, after, state.classes)


def ignore(state: State, action: Action) -> Change:
    after = state.stamped(state.touched(action.rows), NO_LABEL, NOBODY)
    after["ignored"] = True
    return state.made(action, f"ignore {n_rows(action.rows)}", action.rows, after, state.classes)


def unignore(state: State, action: Action) -> Change:
    rows = action.rows[state.marks["ignored"][action.rows]]
    if not len(rows):
        raise ParameterError("none of these rows is ignored; choose rows that are.")
    after = state.touched(rows)
    after["ignored"] = False
    return state.made(action, f"no longer ignore {n_rows(rows)}", rows, after, state.classes)


def skip(state: State, action: Action) -> Change:
    after = state.touched(action.rows)
    after["skipped"] = state.n_actions + 1
    return state.made(action, f"skip {n_rows(action.rows)}", action.rows, after, state.classes)


def keep(state: State, action: Action) -> Change:
    if not state.marks["origin"][action.rows[0]]:
        raise ParameterError(f"row {action.rows[0]} has no label to keep; label it.")
    after = state.touched(action.rows)
    after["kept"] = True
    return state.made(action, f"keep the label of {n_rows(action.rows)}", action.rows, after, state.classes)


def add_class(state: State, action: Action) -> Change:
    check_new_name(state, action.name)
    if len(state.classes) >= MAX_CLASSES:
        raise too_many_classes(len(state.classes) + 1)
    new = Class(state.next_id, action.name)
    after, origin = state.touched(action.rows), checked_origin(state, action)
    sentence = f"add the class {new.name}"
    if len(action.rows):
        after = state.stamped(after, new.id, origin)
        after["ignored"], after["skipped"] = False, 0
        sentence += f" and label {n_rows(action.rows)}"
    return state.made(action, sentence, action.rows, after, (*state.classes, new))


def rename_class(state: State, action: Action) -> Change:
    old = state.class_of(action.class_id)
    check_new_name(state, action.name)
    classes = tuple(replace(one, name=action.name) if one is old else one for one in state.classes)
    sentence = f"rename {old.name} to {action.name}"
    return state.made(action, sentence, action.rows, state.touched(action.rows), classes)


def merge_classes(state: State, action: Action) -> Change:
    old, into = state.class_of(action.class_id), state.class_of(action.into)
    if old is into:
        raise ParameterError(f"{old.name} cannot be merged into itself; choose another class.")
    rows = np.flatnonzero(state.marks["label"] == old.id)
    after = state.touched(rows)
    after["label"], after["kept"] = into.id, False
    return state.made(action, f"merge {old.name} into {into.name}", rows, after, without(state.classes, old))


def remove_class(state: State, action: Action) -> Change:
    old = state.class_of(action.class_id)
    rows = np.flatnonzero(state.marks["label"] == old.id)
    after = state.stamped(state.touched(rows), NO_LABEL, NOBODY)
    return state.made(action, f"remove the class {old.name}", rows, after, without(state.classes, old))


def without(classes: tuple[Class, ...], old: Class) -> tuple[Class, ...]:
    return tuple(one for one in classes if one is not old)


def check_new_name(state: State, name: str) -> None:
    if any(one.name == name for one in state.classes):
        raise ParameterError(f"there is a class {name} already; choose another name, or merge the two.")


CHANGES = {
    "label": label,
    "unlabel": unlabel,
    "ignore": ignore,
    "unignore": unignore,
    "skip": skip,
    "keep": keep,
    "add_class": add_class,
    "rename_class": rename_class,
    "merge_classes": merge_classes,
    "remove_class": remove_class,
}
