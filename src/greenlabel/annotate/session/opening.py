"""From a table and its journal to the state in which labelling goes on."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4
from zlib import crc32

from greenlabel.annotate.session.accuracy import Curve
from greenlabel.annotate.session.actions import Action, checked_name, read_action
from greenlabel.annotate.session.journal import Journal, corrupt
from greenlabel.annotate.session.labels import MAX_CLASSES, State, too_many_classes
from greenlabel.annotate.session.sources import Source
from greenlabel.errors import GreenlabelError


@dataclass
class Opened:
    """A journal, and the state that its lines make."""

    journal: Journal
    state: State
    ids: set[str] = field(default_factory=set)  # of all actions
    curve: Curve = field(default_factory=Curve)
    notes: list[str] = field(default_factory=list)


def open_journal(source: Source, path: Path, random_state: int) -> Opened:
    """Go on where the journal stopped, or begin one."""
    if len(source.classes) > MAX_CLASSES:
        raise too_many_classes(len(source.classes))
    seed = crc32(f"{random_state} {source.fingerprint}".encode())
    start = {"table": source.fingerprint, "n": source.n, "target": source.target}
    journal = Journal(path, start | {"classes": list(source.classes), "seed": seed})
    try:
        return replayed(journal, source)
    except BaseException:
        journal.close()
        raise


def replayed(journal: Journal, source: Source) -> Opened:
    name = journal.path.name
    try:
        state = State(source.n, journal.header["classes"], source.given)
    except (GreenlabelError, KeyError) as error:
        raise corrupt(name, 1, "names other classes than the table has") from error
    opened = Opened(journal, state)
    for number, raw in journal.lines:
        try:
            replay(opened, raw)
        except GreenlabelError as error:
            raise corrupt(name, number, f"says what cannot be ({str(error).rstrip('.')})") from error
    add_new_classes(opened, source)
    opened.notes = [*journal.notes, *went_on(state, len(journal.lines))]
    journal.lines = []
    return opened


def replay(opened: Opened, raw: dict[str, Any]) -> None:
    """Do again what a line says."""
    action = read_action(raw, opened.state.n)
    if action.id in opened.ids:
        raise GreenlabelError("its id was used before")
    do(opened, action)
    point: Any = raw.get("accuracy")
    if is_point(point):
        opened.curve.add(*point)


def do(opened: Opened, action: Action) -> None:
    opened.state.apply(action, opened.state.change(action))
    opened.ids.add(action.id)


def is_point(point: Any) -> bool:
    """[labels, audits, right] in this order of size."""
    is_whole = isinstance(point, list) and len(point) == 3 and all(type(number) is int for number in point)
    return is_whole and 2**31 > point[0] >= point[1] >= point[2] >= 0


def add_new_classes(opened: Opened, source: Source) -> None:
    """Classes that the user names for the first time now."""
    known = {*opened.journal.header["classes"], *(one.name for one in opened.state.classes)}
    for name in source.classes:
        if name not in known:
            action = Action(str(uuid4()), "add_class", name=checked_name(name))
            opened.state.change(action)  # refuses one too many
            opened.journal.append(action.as_line())
            do(opened, action)


def went_on(state: State, n_lines: int) -> list[str]:
    if not n_lines:
        return []
    labels = len(state.labelled)
    return [f"Went on with {labels:,} label{'s' if labels != 1 else ''} from the last time; undo works, too."]
