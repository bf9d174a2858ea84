"""The journal: what was acknowledged is there, whatever happens; what is not sound is refused in a sentence."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from greenlabel.annotate.session import journal as module
from greenlabel.annotate.session.journal import Journal
from greenlabel.annotate.session.opening import open_journal
from greenlabel.errors import GreenlabelError, TableError
from helpers.annotating import action, content, opened, small_source

HEADER = {"table": "t", "n": 20, "target": "kind", "classes": ["red", "green"], "seed": 1}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.labels.jsonl"


def written(path, *actions):
    """A journal with these actions; returns the state that they make."""
    found = opened(path)
    for one in actions:
        act(found, one)
    found.journal.close()
    return found.state


def act(found, raw):
    from greenlabel.annotate.session.actions import read_action

    wanted = read_action(raw, found.state.n)
    change = found.state.change(wanted)
    found.journal.append(wanted.as_line())
    found.state.apply(wanted, change)
    found.ids.add(wanted.id)


def reopened(path, source=None):
    found = opened(path, source)
    found.journal.close()
    return found


SOME = [
    action("label", rows=[3, 5], of=0),
    action("label", rows=[7], of=1),
    action("ignore", rows=[9]),
    action("undo"),
    action("add_class", name="blue", then_label=[11]),
]


def test_a_journal_gives_back_the_state(path):
    state = written(path, *SOME)
    found = reopened(path)
    assert content(found.state) == content(state)
    assert found.notes == ["Went on with 4 labels from the last time; undo works, too."]
    assert [change.sentence for change in found.state.done] == [change.sentence for change in state.done]


def test_a_new_journal_says_nothing_and_holds_no_path(path):
    found = reopened(path)
    assert found.notes == []
    (line,) = path.read_text().splitlines()
    assert json.loads(line)["n"] == 20
    assert str(path.parent) not in line


def test_cut_at_every_byte_of_its_last_line_it_loses_that_line_alone_and_says_so(path):
    state = written(path, *SOME[:-1])
    before = path.stat().st_size
    written_again = opened(path)
    act(written_again, SOME[-1])
    written_again.journal.close()
    whole = path.read_bytes()
    for size in range(before, len(whole)):
        path.write_bytes(whole[:size])
        found = reopened(path)
        assert content(found.state) == content(state)
        assert any("half written" in note for note in found.notes) == (size > before)
        assert path.stat().st_size == before
    path.write_bytes(whole)
    assert len(reopened(path).state.labelled) == 4


def test_cut_inside_its_first_line_it_begins_anew(path):
    written(path)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        assert content(reopened(path).state)[0]
        assert path.read_bytes() == whole


def test_after_a_cut_the_next_action_stands_on_a_line_of_its_own(path):
    written(path, *SOME)
    with path.open("ab") as file:
        file.write(b'{"id": "half')
    found = opened(path)
    act(found, action("label", rows=[0], of=1))
    found.journal.close()
    assert 0 in reopened(path).state.labelled


@pytest.mark.parametrize("number", [2, 4])
@pytest.mark.parametrize("line", [b"{", b"\x00\x00", b"\xff\xfe", b"[]", b"7", b'{"id": NaN}'])
def test_a_corrupt_line_in_the_middle_is_refused_by_its_number(path, number, line):
    written(path, *SOME)
    lines = path.read_bytes().split(b"\n")
    lines[number - 1] = line
    path.write_bytes(b"\n".join(lines))
    before = path.read_bytes()
    with pytest.raises(TableError, match=f"^line {number} of {path.name} .*; restore the file"):
        reopened(path)
    assert path.read_bytes() == before


STRANGE = {
    "a row out of range": {"do": "label", "rows": [20], "class": 0},
    "a negative row": {"do": "label", "rows": [-1], "class": 0},
    "a row that is no number": {"do": "label", "rows": ["0"], "class": 0},
    "a row that is true": {"do": "label", "rows": [True], "class": 0},
    "a row with a fraction": {"do": "label", "rows": [1.5], "class": 0},
    "no rows": {"do": "label", "rows": [], "class": 0},
    "rows that are none": {"do": "ignore", "rows": None},
    "an unknown class": {"do": "label", "rows": [0], "class": 7},
    "a huge class": {"do": "label", "rows": [0], "class": 10**30},
    "a huge row": {"do": "skip", "row": 10**400},
    "an unknown action": {"do": "explode"},
    "an action that is no text": {"do": ["label"]},
    "a class without a name": {"do": "add_class", "name": " "},
    "a name of two lines": {"do": "add_class", "name": "a\nb"},
    "a name too long": {"do": "add_class", "name": "a" * 1000},
    "a name that is there": {"do": "add_class", "name": "red"},
    "an undo of nothing": {"do": "undo"},
    "a redo of nothing": {"do": "redo"},
    "an audit of many": {"do": "label", "rows": [1, 2], "class": 0, "audit": True},
    "an audit that is a number": {"do": "label", "rows": [1], "class": 0, "audit": 1},
    "a class merged into itself": {"do": "merge_classes", "class": 0, "into": 0},
}


@pytest.mark.parametrize("line", STRANGE.values(), ids=STRANGE)
def test_a_line_of_a_stranger_is_refused_in_one_sentence(path, line):
    written(path)
    with path.open("a") as file:
        file.write(json.dumps({"id": "strange", **line}) + "\n")
    with pytest.raises(TableError) as error:
        reopened(path)
    assert str(error.value).startswith(f"line 2 of {path.name} ")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    "text",
    [
        '{"id": "a", "do": "skip", "row": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"id": "a", "do": "skip", "row": ' + "9" * 10_000 + "}",
        '{"id": "a", "do": "skip", "row": 1e999}',
        '{"id": "a", "do": "undo"}' + " " * 2_000_000,
        '{"do": "undo"}',
        '{"id": 7, "do": "undo"}',
    ],
    ids=["deep nesting", "many digits", "infinity", "a long line", "no id", "an id that is a number"],
)
def test_text_of_a_stranger_is_refused_in_one_sentence(path, text):
    written(path)
    with path.open("a") as file:
        file.write(text + "\n")
    with pytest.raises(TableError, match=r"^line 2 of "):
        reopened(path)


def test_an_id_that_comes_twice_is_refused(path):
    written(path)
    line = json.dumps({"id": "same", "do": "label", "rows": [1], "class": 0}) + "\n"
    with path.open("a") as file:
        file.write(line + line)
    with pytest.raises(TableError, match=r"^line 3 .*its id was used before"):
        reopened(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"fingerprint": "another"}, "belongs to another table"),
        ({"n": 21}, "it had 20 rows, now 21"),
        ({"target": "size"}, "give that column as --target"),
    ],
)
def test_a_journal_of_another_table_is_refused_and_says_what_to_do(path, change, words):
    written(path, *SOME)
    with pytest.raises(TableError, match=words) as error:
        reopened(path, small_source(**change))
    assert "away to start anew" in str(error.value)


@pytest.mark.parametrize("text", ["a,b\n1,2\n", '{"greenlabel": 1}\n', "[1]\n", "plain", "\n"])
def test_a_file_that_is_no_journal_is_refused_and_stays_as_it_is(path, text):
    path.write_text(text)
    with pytest.raises(TableError):
        reopened(path)
    assert path.read_text() == text


@pytest.mark.parametrize(
    "change", [{"format": 2}, {"classes": [1]}, {"classes": None}, {"seed": "x"}, {"seed": -1}, {"seed": 10**40}]
)
def test_a_header_that_is_not_sound_is_refused(path, change):
    written(path)
    header = json.loads(path.read_text()) | change
    path.write_text(json.dumps(header) + "\n")
    with pytest.raises(TableError):
        reopened(path)


def test_a_second_process_is_refused_while_the_first_has_the_journal(path):
    first = opened(path)
    with pytest.raises(TableError, match="in use by another greenlabel annotate"):
        opened(path)
    first.journal.close()
    reopened(path)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a permission there, and pipes have no names")
@pytest.mark.parametrize("is_there", [False, True])
def test_a_link_or_a_pipe_in_its_place_is_refused_and_what_it_leads_to_is_not_touched(path, is_there):
    goal = path.with_name("goal")
    if is_there:
        goal.touch()
    path.symlink_to(goal)
    with pytest.raises(TableError, match="a link or a pipe"):
        opened(path)
    assert goal.exists() == is_there
    assert not is_there or goal.read_bytes() == b""
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(TableError, match="a link or a pipe"):
        opened(path)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(TableError, match="cannot be opened for writing"):
        opened(tmp_path / "nowhere" / "j.jsonl")


def test_classes_that_are_named_later_are_added_once(path):
    written(path, *SOME)
    more = small_source(classes=("red", "green", "white"))
    assert [one.name for one in reopened(path, more).state.classes] == ["red", "green", "blue", "white"]
    assert [one.name for one in reopened(path, more).state.classes] == ["red", "green", "blue", "white"]


# A disk that is full


def refused_writes(monkeypatch, name, error):
    """os.NAME writes half, if anything, and fails."""
    write = os.write

    def fail(fd, data=b""):
        if name == "write":
            write(fd, data[: len(data) // 2])
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(module.os, name, fail)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("name", ["write", "fsync"])
def test_a_write_that_fails_refuses_the_action_and_the_next_one_works(path, monkeypatch, name, error):
    found = opened(path)
    act(found, SOME[0])
    before, was = path.read_bytes(), content(found.state)
    with monkeypatch.context() as patch:
        refused_writes(patch, name, error)
        for _ in range(2):
            with pytest.raises(TableError, match=r"cannot be written .*so this was not done"):
                act(found, SOME[1])
        assert content(found.state) == was
    assert path.read_bytes() == before
    act(found, SOME[1])
    found.journal.close()
    assert content(reopened(path).state) == content(found.state)


def test_half_a_line_that_could_not_be_removed_is_removed_before_the_next_one(path, monkeypatch):
    found = opened(path)
    with monkeypatch.context() as patch:
        refused_writes(patch, "write", errno.ENOSPC)
        truncate, calls = os.ftruncate, []

        def first_alone(fd, size):
            calls.append(size)
            if len(calls) > 1:
                raise OSError(errno.EIO, "no")
            truncate(fd, size)

        patch.setattr(module.os, "ftruncate", first_alone)
        with pytest.raises(TableError):
            act(found, SOME[0])
    assert not path.read_bytes().endswith(b"\n")
    act(found, SOME[1])
    found.journal.close()
    assert reopened(path).state.labelled.tolist() == [7]


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of file sizes")
def test_a_file_that_may_not_grow_refuses_and_goes_on_when_it_may(path):
    found = opened(path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = path.stat().st_size
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, limits[1]))
        with pytest.raises(TableError, match="cannot be written"):
            act(found, SOME[0])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.stat().st_size == size
    act(found, SOME[0])
    found.journal.close()
    assert reopened(path).state.labelled.tolist() == [3, 5]


# A process that is killed

STREAM = """
import sys
from pathlib import Path
from greenlabel.annotate.session.journal import Journal
journal = Journal(Path(sys.argv[1]), {header})
for number in range(int(sys.argv[2]), 10**9):
    journal.append({{"id": str(number), "do": "label", "rows": [number % 20], "class": number % 2}})
    print(number, flush=True)
"""


def test_lines_are_acknowledged_after_they_are_on_the_disk(path, monkeypatch):
    order = []
    journal = Journal(path, HEADER)
    fsync, write = os.fsync, os.write
    monkeypatch.setattr(module.os, "fsync", lambda fd: (order.append("fsync"), fsync(fd)))
    monkeypatch.setattr(module.os, "write", lambda fd, data: (order.append("write"), write(fd, data))[1])
    journal.append({"id": "1", "do": "undo"})
    assert order == ["write", "fsync"]
    journal.close()


def test_the_name_of_a_new_journal_is_on_the_disk_too(path, monkeypatch):
    synced = []
    fsync = os.fsync
    monkeypatch.setattr(module.os, "fsync", lambda fd: (synced.append(os.fstat(fd).st_ino), fsync(fd)))
    Journal(path, HEADER).close()
    assert synced == [path.stat().st_ino, path.parent.stat().st_ino]


def killed_while_writing(path, start, seconds):
    """The number of the last line that a process acknowledged before it was killed."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    script = STREAM.format(header=HEADER)
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(path), str(start)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    )
    first = process.stdout.readline()
    time.sleep(seconds)
    os.kill(process.pid, signal.SIGKILL)
    lines, errors = process.communicate()
    assert first, errors.decode()
    whole = [line for line in (first + lines).splitlines(keepends=True) if line.endswith(b"\n")]
    return int(whole[-1])


def labels_there(path):
    journal = Journal(path, HEADER)
    numbers = [int(line["id"]) for _, line in journal.lines]
    journal.close()
    return numbers


def check_kills(path, times):
    rng = np.random.default_rng(0)
    start = 0
    for _ in range(times):
        acknowledged = killed_while_writing(path, start, float(rng.uniform(0, 0.02)))
        there = labels_there(path)
        assert there == list(range(len(there)))
        assert len(there) > acknowledged
        start = len(there)


def test_nothing_acknowledged_is_lost_when_the_process_is_killed(path):
    check_kills(path, 3)


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_in_two_hundred_kills(path):
    check_kills(path, 200)


def test_the_package_of_the_journal_is_light():
    """Killing is tested many times: no heavy library may be loaded with it."""
    script = "import sys, greenlabel.annotate.session.journal; print('numpy' in sys.modules)"
    env = os.environ | {"PYTHONPATH": str(Path(module.__file__).parents[3])}
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=env, check=True)
    assert found.stdout.strip() == "False"


def test_errors_of_an_opening_let_go_of_the_journal(path):
    written(path)
    with pytest.raises(GreenlabelError):
        open_journal(small_source(target="size"), path, 0)
    reopened(path)
