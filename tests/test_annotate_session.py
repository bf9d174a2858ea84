"""A session as a server uses it: live predictions against the slow way, previews, cards, queue, audits, the blend."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.special import softmax
from sklearn.datasets import make_blobs

from greenlabel.annotate.session import accuracy, frames
from greenlabel.annotate.session import live as live_module
from greenlabel.annotate.session.child import Child
from greenlabel.annotate.session.frames import NONE
from greenlabel.annotate.session.live import LiveGraph
from greenlabel.annotate.session.queue import AUDIT_EVERY, Audits, typical_rows
from greenlabel.annotate.session.session import Session
from greenlabel.annotate.session.settled import is_better
from greenlabel.errors import GreenlabelError, ParameterError
from greenlabel.estimators.labelled import LabelledGraph
from greenlabel.labels.encoding import Labels, evidence
from greenlabel.labels.estimates import LEVEL
from helpers.annotating import MemorySource, action

NAMES = ["zero", "one", "two", "three"]


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(240, 3, centers=4, cluster_std=1.6, random_state=0)
    return X.astype(np.float32), y


@pytest.fixture
def source(blobs):
    return MemorySource(blobs[0], list(NAMES))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "j.jsonl"


@pytest.fixture
def start(path, source):
    """Open sessions, which are closed at the end."""
    opened = []

    def open_session(of=source, **kwargs):
        session = Session(of, path, **kwargs)
        opened.append(session)
        session.prepare()
        return session

    yield open_session
    for session in opened:
        session.close()


def give(session, rows, y, **parts):
    """The true label of each row, one after the other."""
    for row in np.atleast_1d(rows).tolist():
        session.act(action("label", rows=[row], of=int(y[row]), **parts))


# Live predictions


def slow_way(session, blobs, rows):
    """Labels on the whole operator as LabelledGraph decodes them, without anything kept from before."""
    graph = LiveGraph(blobs[0], 0)
    y = blobs[1]
    rows = np.sort(rows)
    labels = Labels(len(y), np.unique(y[rows]), rows, np.searchsorted(np.unique(y[rows]), y[rows]))
    Y = np.zeros((len(y), len(labels.classes)))
    Y[rows, labels.codes] = 1
    F = graph.operator.solve(Y)
    F[rows, labels.codes] -= graph.operator.own
    fitted = LabelledGraph(dense_propagation(graph, labels, F), True)
    return labels, fitted.calibrated.probabilities(F, np.ones(len(y), bool))


def dense_propagation(graph, labels, F):
    """Leave-one-out by taking the label away and solving again."""
    propagation = live_module.LivePropagation(graph, labels, np.zeros((graph.m, F.shape[1])))

    def leave_one_out(indices, tolerance=0):
        found = []
        for i in indices:
            others = np.flatnonzero(np.arange(len(labels.rows)) != i)
            Y = np.zeros(F.shape)
            Y[labels.rows[others], labels.codes[others]] = 1
            found.append(graph.operator.solve(Y)[labels.rows[i]])
        return np.array(found)

    propagation.leave_one_out = leave_one_out
    propagation.sampled_scores = lambda: np.delete(F, labels.rows, axis=0)
    return propagation


def test_predictions_are_those_of_the_slow_way_after_every_label(start, blobs):
    session, y = start(), blobs[1]
    rows = np.random.default_rng(1).permutation(len(y))[:14]
    for count, row in enumerate(rows, 1):
        give(session, row, y)
        if len(np.unique(y[rows[:count]])) < 2:
            continue
        labels, p = slow_way(session, blobs, rows[:count])
        frame = session.frame()
        others = np.setdiff1d(np.arange(len(y)), rows[:count])
        top = np.sort(p[others], axis=1)
        clear = others[top[:, -1] - top[:, -2] > 1e-4]
        assert len(clear) > 0.8 * len(others)
        assert np.array_equal(frame.classes[clear], labels.classes[p[clear].argmax(axis=1)])
        assert_allclose(frame.confidence[others] / 255, p[others].max(axis=1), atol=0.004)


def test_labelled_rows_show_their_label(start, blobs):
    session = start()
    session.act(action("label", rows=[5, 6], of=3))
    session.act(action("label", rows=[7], of=0))
    frame = session.frame()
    assert frame.classes[[5, 6, 7]].tolist() == [3, 3, 0]
    assert frame.confidence[[5, 6, 7]].tolist() == [255] * 3


def test_a_label_changes_the_scores_of_its_class_alone(start, blobs):
    live, y = LiveGraph(blobs[0], 0), blobs[1]
    members = {k: np.flatnonzero(y == k)[:3] for k in range(4)}
    before = live.spread(members)
    after = live.spread(members | {2: np.flatnonzero(y == 2)[:4]}, before)
    assert [after.F[k] is before.F[k] for k in range(4)] == [True, True, False, True]
    assert_allclose(after.F[2], live.spread(after.members).F[2], atol=1e-6)


def test_scores_that_do_not_fit_in_memory_are_mixed_with_the_same_result(blobs, monkeypatch):
    live, y = LiveGraph(blobs[0], 0), blobs[1]
    members = {k: np.flatnonzero(y == k)[:3] for k in range(4)}
    held = live.spread(members).predictions
    monkeypatch.setattr(live_module, "HELD_BYTES", 0)
    monkeypatch.setattr(frames, "ROWS_AT_ONCE", 50)
    mixed = live.spread(members)
    assert not mixed.F
    assert np.array_equal(mixed.predictions[0], held[0])
    assert_allclose(mixed.predictions[1].astype(int), held[1].astype(int), atol=1)


def test_the_largest_probability_is_that_of_the_formula():
    F = np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32)
    offsets = np.array([0, 0.1, 0, -0.2, 0.3])
    codes, confidence = frames.decide(frames.HeldColumns(list(F.T)), offsets, 1.7)
    p = softmax(1.7 * evidence(F + offsets), axis=1)
    assert np.array_equal(codes, p.argmax(axis=1))
    assert_allclose(confidence / 255, p.max(axis=1), atol=0.003)


def test_equal_scores_have_equal_probabilities():
    codes, confidence = frames.decide(frames.HeldColumns([np.zeros(3, np.float32)] * 4), np.zeros(4), 5.0)
    assert codes.tolist() == [0, 0, 0]
    assert confidence.tolist() == [64] * 3


def test_from_no_label_to_one_class_to_two(start, blobs):
    session, y = start(of=MemorySource(blobs[0])), blobs[1]
    assert (session.frame().classes == NONE).all()
    assert session.queue(1)
    first, second = np.flatnonzero(y == 0)[0], np.flatnonzero(y == 1)[0]
    session.act(action("add_class", name="a", then_label=[int(first)]))
    frame = session.frame()
    assert (frame.classes == 0).all()
    near = y == 0
    assert frame.confidence[near].mean() > 2 * frame.confidence[~near].mean()
    session.act(action("add_class", name="b", then_label=[int(second)]))
    assert set(session.frame().classes.tolist()) == {0, 1}
    assert (session.frame().classes[y == 1] == 1).mean() > 0.9
    session.act(action("undo"))
    session.act(action("undo"))
    assert (session.frame().classes == NONE).all()


def test_rows_that_no_label_reaches_have_no_prediction(start):
    islands = np.random.default_rng(0).normal(size=(80, 2)) + np.repeat([[0, 0], [1e3, 0]], 40, axis=0)
    session = start(of=MemorySource(islands, ["a", "b"]))
    session.act(action("label", rows=[0], of=0))
    session.act(action("label", rows=[1], of=1))
    frame = session.frame()
    assert (frame.classes[:40] != NONE).all()
    assert (frame.classes[40:] == NONE).all()
    assert (frame.confidence[40:] == 0).all()
    assert session.state()["unreached"] == 40
    card = session.card(50)
    assert (card["prediction"], card["reached"], card["why"]) == (None, False, [])


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_a_few_rows_are_enough(start, n):
    session = start(of=MemorySource(np.arange(float(n))[:, None], ["a", "b"]))
    session.act(action("label", rows=[0], of=0))
    session.act(action("label", rows=[n - 1], of=1))
    assert session.frame().classes[n - 1] == 1
    session.settle_map()
    assert np.isfinite(session.positions()[1]).all()
    session.queue(5)
    session.state()


def test_equal_rows_get_the_most_frequent_label(start):
    session = start(of=MemorySource(np.ones((30, 3)), ["a", "b"]))
    session.act(action("label", rows=[0], of=0))
    session.act(action("label", rows=[1, 2, 3], of=1))
    assert (session.frame().classes[4:] == 1).all()
    session.settle_map()
    session.card(7)


def test_a_table_without_rows_is_refused(path):
    session = Session(MemorySource(np.zeros((0, 3))), path)
    with pytest.raises(GreenlabelError, match="no rows to label"):
        session.prepare()
    session.close()


def test_sparse_features_are_taken(start, blobs):
    session = start(of=MemorySource(sp.csr_array(blobs[0]), list(NAMES)))
    give(session, [0, 1, 2, 3, 4], blobs[1])
    assert session.positions()[0] == 1
    assert session.queue(3)


# Previews and cards


def test_a_preview_says_what_the_label_then_changes_and_changes_nothing(start, blobs, path):
    session, y = start(), blobs[1]
    give(session, np.flatnonzero(y == 0)[:2], y)
    give(session, np.flatnonzero(y == 1)[:2], y)
    before, state, lines = session.frame(), session.state(), path.read_bytes()
    rows = np.flatnonzero(y == 2)[:5].tolist()
    found = session.selection(rows, 2)
    assert np.array_equal(session.frame().classes, before.classes)
    assert session.state() == state
    assert path.read_bytes() == lines
    session.act(action("label", rows=rows, of=2))
    changed = session.frame().classes != before.classes
    assert found["changes"]["total"] == changed.sum() > 5
    to, counts = np.unique(session.frame().classes[changed], return_counts=True)
    assert dict(found["changes"]["to"]) == dict(zip(to, counts, strict=True))


def test_a_selection_tells_its_mix_and_its_least_typical_rows(start, blobs):
    session, y = start(), blobs[1]
    for k in range(4):
        give(session, np.flatnonzero(y == k)[:2], y)
    stranger = int(np.flatnonzero(y == 3)[-1])
    found = session.selection([*np.flatnonzero(y == 1).tolist(), stranger])
    assert found["size"] == (y == 1).sum() + 1
    assert found["labelled"] == 2
    assert found["mix"][0][0] == 1
    assert sum(count for _, count in found["mix"]) == found["size"]
    assert stranger in found["least_typical"]
    assert found["changes"] is None
    with pytest.raises(ParameterError):
        session.selection([])
    with pytest.raises(ParameterError):
        session.selection([0], 99)


def test_a_card_names_the_labels_that_make_the_scores(start, blobs):
    session, y = start(), blobs[1]
    rows = np.concatenate([np.flatnonzero(y == k)[:3] for k in range(4)])
    give(session, rows, y)
    asked = int(np.flatnonzero(y == 2)[10])
    card = session.card(asked)
    assert card["prediction"] == 2
    assert card["why"][0]["class"] == 2
    graph = LiveGraph(blobs[0], 0)
    labelled = np.sort(rows)
    influence = graph.operator.columns(labelled)[asked]  # exact, by solving
    support = np.maximum(influence, 0)
    best = labelled[np.argsort(-support)][: len(card["why"])]
    assert [one["row"] for one in card["why"]] == best.tolist()
    assert_allclose(
        [one["share"] for one in card["why"]], np.sort(support / support.sum())[::-1][: len(best)], atol=1e-3
    )


def test_the_card_of_a_labelled_row_tells_what_the_others_say(start, blobs):
    session, y = start(), blobs[1]
    rows = np.concatenate([np.flatnonzero(y == k)[:3] for k in range(4)])
    give(session, rows, y)
    wrong = session.of_class(0, 240)[-1]
    session.act(action("label", rows=[wrong], of=3))
    card = session.card(wrong)
    assert (card["given"], card["prediction"]) == (3, 0)
    assert wrong not in [one["row"] for one in card["why"]]
    assert session.suspects()[0]["row"] == wrong
    assert session.suspects()[0]["suggested"] == 0
    session.act(action("keep", row=wrong))
    assert wrong not in [one["row"] for one in session.suspects()]


def test_a_hidden_card_tells_nothing(start, blobs):
    session = start()
    give(session, [0, 1, 2, 3], blobs[1])
    card = session.card(9, hide=True)
    assert (card["hidden"], card["prediction"], card["probabilities"], card["why"]) == (True, None, [], [])
    assert card["fields"] == [["row", "9"]]


def test_rows_of_a_class_come_with_the_least_confident_first(start, blobs):
    session, y = start(), blobs[1]
    give(session, np.concatenate([np.flatnonzero(y == k)[:3] for k in range(4)]), y)
    rows = session.of_class(1, 10)
    frame = session.frame()
    assert (frame.classes[rows] == 1).all()
    assert (np.diff(frame.confidence[rows].astype(int)) >= 0).all()
    assert not set(rows) & set(session.state()["given_rows"]["rows"])


# Actions


def test_the_same_id_twice_is_done_once(start, blobs):
    session = start()
    one = action("label", rows=[3], of=1)
    session.act(one)
    generation = session.frame().generation
    session.act(one)
    assert session.frame().generation == generation
    assert session.state()["labels"] == 1


def test_a_refused_action_changes_nothing(start, blobs, monkeypatch):
    session = start()
    give(session, [0, 1, 2], blobs[1])
    before, frame = session.state(), session.frame()

    def fail(fd):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("greenlabel.annotate.session.journal.os.fsync", fail)
        for one in (action("label", rows=[9], of=0), action("undo"), action("remove_class", of=0)):
            with pytest.raises(GreenlabelError, match="No space left"):
                session.act(one)
    assert session.state() == before
    assert session.frame() is frame
    session.act(action("label", rows=[9], of=0))
    assert session.state()["labels"] == 4


def test_a_restart_goes_on_where_it_stopped(start, blobs):
    session, y = start(), blobs[1]
    for _ in range(30):
        answer(session, y)
    session.act(action("merge_classes", of=3, into=2))
    session.act(action("undo"))
    before, frame, queue = session.state(), session.frame(), session.queue(8)
    session.close()
    again = start()
    after = again.state()
    assert after.pop("notes") == [f"Went on with {before['labels']} labels from the last time; undo works, too."]
    before.pop("notes")
    for numbers_of_this_run in (before, after):
        numbers_of_this_run.pop("generation"), numbers_of_this_run.pop("labelled")
    before["accuracy"].pop("changed"), after["accuracy"].pop("changed")  # forgotten by the merge
    assert after == before
    assert np.array_equal(again.frame().classes, frame.classes)
    assert np.array_equal(again.frame().confidence, frame.confidence)
    assert again.queue(8) == queue


def test_other_features_of_the_same_table_go_on_with_its_journal(start, blobs):
    X, y = blobs
    session = start()
    give(session, np.concatenate([np.flatnonzero(y == k)[:2] for k in range(4)]), y)
    given = session.given_now()
    session.close()
    again = start(of=MemorySource(X[:, :2], list(NAMES)))  # as with another --drop, --features or --vectors
    assert again.given_now() == given
    assert (again.frame().classes != NONE).all()


def test_what_changed_lately_is_known_after_a_restart(start, blobs):
    session, y = start(), blobs[1]
    for _ in range(16):
        answer(session, y)
    changed = session.state()["accuracy"]["changed"]
    assert 0 < changed < 1
    session.close()
    assert start().state()["accuracy"]["changed"] == changed


def test_labels_of_the_table_are_there_from_the_start(start, blobs):
    X, y = blobs
    given = [(int(row), NAMES[y[row]]) for row in np.random.default_rng(0).permutation(len(y))[:12]]
    session = start(of=MemorySource(X, list(NAMES), given))
    state = session.state()
    assert (state["labels"], state["from_table"]) == (12, 12)
    assert (session.frame().classes == y).mean() > 0.7
    session.act(action("label", rows=[given[0][0]], of=3))
    assert session.state()["from_table"] == 11
    assert session.given_now()[0][given[0][0]] == "three"


def test_the_state_counts_given_and_predicted_rows(start, blobs):
    session, y = start(), blobs[1]
    give(session, np.concatenate([np.flatnonzero(y == k)[:2] for k in range(4)]), y)
    session.act(action("ignore", rows=[int(np.flatnonzero(y == 0)[9])]))
    state = session.state()
    assert [one["given"] for one in state["classes"]] == [2] * 4
    assert sum(one["given"] + one["predicted"] for one in state["classes"]) == len(y)
    assert [one["key"] for one in state["classes"]] == list("1234")
    assert state["ignored"] == 1
    assert state["undo"].startswith("ignore row")


def test_the_state_says_which_row_an_undo_took_back(start):
    session = start()
    assert session.state()["redo_row"] is None
    session.act(action("label", rows=[7], of=1))
    session.act(action("label", rows=[8, 9], of=1))
    assert session.state()["redo_row"] is None
    session.act(action("undo"))
    assert session.state()["redo_row"] is None  # two rows
    session.act(action("undo"))
    assert session.state()["redo_row"] == 7


def test_the_state_says_when_labels_changed_last(start, blobs):
    session, y = start(), blobs[1]
    give(session, np.concatenate([np.flatnonzero(y == k)[:4] for k in range(4)]), y)
    labelled = session.state()["labelled"]
    assert labelled == session.frame().generation
    row = int(np.flatnonzero(y == 0)[9])
    for one in (action("skip", row=row), action("rename_class", of=0, name="nil"), action("add_class", name="four")):
        session.act(one)
        assert session.state()["labelled"] == labelled
    wait_for(session.rest)  # the blend changes what is shown, and no label
    assert session.state()["labelled"] == labelled < session.frame().generation
    give(session, row, y)
    assert session.state()["labelled"] == session.frame().generation
    session.act(action("undo"))
    assert session.state()["labelled"] == session.frame().generation


def test_a_table_and_a_column_are_known_by_their_identity(start, blobs, path, tmp_path):
    first = start().state()["identity"]
    found = {first}
    for number, other in enumerate(({"fingerprint": "of another"}, {"target": "colour"})):
        session = Session(MemorySource(blobs[0], list(NAMES), **other), tmp_path / f"{number}.jsonl")
        found.add(session.state()["identity"])
        session.close()
    assert len(found) == 3


def test_what_changed_says_over_how_many_labels(start, blobs):
    session, y = start(), blobs[1]
    assert session.state()["accuracy"]["times"] == 0
    for count in range(1, 13):
        answer(session, y)
        assert session.state()["accuracy"]["times"] == min(count, 10)


def test_keys_go_around_the_one_that_ignores(start, blobs):
    session = start(of=MemorySource(blobs[0], [f"c{i}" for i in range(36)]))
    keys = [one["key"] for one in session.state()["classes"]]
    assert keys[:9] == list("123456789")
    assert keys[9:34] == list("abcdefghijklmnopqrstuvwyz")
    assert keys[34:] == [None, None]


def test_many_labels_at_once_stay_affordable(start, blobs, monkeypatch):
    monkeypatch.setattr("greenlabel.annotate.session.session.MAX_TESTED", 20)
    monkeypatch.setattr("greenlabel.annotate.session.queue.COVER_LABELS", 30)
    session, y = start(), blobs[1]
    for k in range(4):
        session.act(action("label", rows=np.flatnonzero(y == k)[:40].tolist(), of=k))
    assert len(session.queue(5)) == 5
    assert len(session.suspects()) <= 20
    assert session.state()["labels"] == 160


# What next, and how good


def answer(session, y):
    """A person who knows the truth and answers what is asked."""
    (asked,) = session.queue(1)
    session.act(action("label", rows=[asked["row"]], of=int(y[asked["row"]]), audit=asked["audit"]))
    return asked


def test_equal_rows_whose_labels_contradict_are_asked_for_again(start, rng):
    X = np.concatenate([np.zeros((40, 3)), rng.normal(size=(20, 3)) + 9]).astype(np.float32)
    session = start(of=MemorySource(X, ["a", "b"]))
    for row, of in ((0, 0), (50, 1), (51, 1), (1, 1)):
        session.act(action("label", rows=[row], of=of))
    (asked,) = (one for one in session.queue(4) if one["row"] < 40 and not one["audit"])
    assert asked["covers"] == 38
    assert asked["reason"].startswith("equals labelled rows, which want another label")
    session.act(action("skip", row=asked["row"]))
    assert not [one for one in session.queue(4) if one["row"] < 40 and not one["audit"]]  # nor any of its equals
    session.act(action("undo"))
    assert asked in session.queue(4)
    session.act(action("label", rows=[2, 3], of=1))
    assert not [one for one in session.queue(4) if one["row"] < 40 and not one["audit"]]


def test_the_queue_asks_one_row_in_five_at_random(start, blobs):
    session, y = start(), blobs[1]
    asked = [answer(session, y) for _ in range(40)]
    audits = [one for one in asked if one["audit"]]
    assert len(audits) == 40 // AUDIT_EVERY - 1
    assert all(one["reason"] == "drawn at random: tells how good the predictions are" for one in audits)
    assert session.state()["accuracy"]["audits"] == len(audits)


def test_rows_drawn_at_random_do_not_depend_on_features(blobs, path, tmp_path):
    drawn = []
    for number, X in enumerate((blobs[0], np.random.default_rng(0).normal(size=blobs[0].shape))):
        session = Session(MemorySource(X, list(NAMES)), tmp_path / f"{number}.jsonl")
        session.prepare()
        drawn.append([one["row"] for one in session.queue(60) if one["audit"]])
        session.close()
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) == 11


def test_rows_drawn_at_random_spread_evenly_over_all_rows():
    counts = np.zeros(20)
    is_open = np.ones(20, bool)
    is_open[:10] = False
    for seed in range(600):
        counts[Audits(20, seed).next_rows(1, is_open)] += 1
    assert not counts[:10].any()
    assert counts[10:].min() > 30


def test_a_turn_in_every_group_of_five_is_at_random_and_not_always_the_same():
    audits = Audits(10, 7)
    turns = np.array([audits.is_turn(turn) for turn in range(500)])
    assert not turns[:AUDIT_EVERY].any()
    assert (turns.reshape(-1, AUDIT_EVERY)[1:].sum(axis=1) == 1).all()
    assert (turns.reshape(-1, AUDIT_EVERY).sum(axis=0) > 5).all()


def test_only_rows_that_were_drawn_can_be_audits(start, blobs):
    session = start()
    with pytest.raises(ParameterError, match="was not drawn at random"):
        session.act(action("label", rows=[3], of=0, audit=True))
    assert session.state()["labels"] == 0


def asked_at_random(session, y):
    """The first row that is asked as an audit; those before it are labelled."""
    while not (asked := session.queue(1)[0])["audit"]:
        answer(session, y)
    return asked["row"]


@pytest.mark.parametrize("n", [1, 10])
def test_the_label_of_a_row_that_was_asked_at_random_counts_after_a_restart(start, blobs, n):
    y, session = blobs[1], start()
    row = asked_at_random(session, y)
    drawn = [one["row"] for one in session.queue(n) if one["audit"]]
    session.close()
    session = start()
    for row in drawn:
        session.act(action("label", rows=[row], of=int(y[row]), audit=True))
    assert session.state()["accuracy"]["audits"] == len(drawn) > 0


def test_a_row_drawn_at_random_that_is_of_a_new_class_counts_and_was_not_predicted_right(start, blobs):
    session, y = start(), blobs[1]
    row = asked_at_random(session, y)
    session.act(action("add_class", name="never seen", then_label=[row], audit=True))
    found = session.state()["accuracy"]
    assert (found["audits"], found["right"]) == (1, 0)
    near = [one["row"] for one in session.queue(60) if one["audit"]]  # drawn next
    other = next(row for row in range(240) if row not in [*session.state()["given_rows"]["rows"], *near])
    with pytest.raises(ParameterError, match="was not drawn at random"):
        session.act(action("add_class", name="another", then_label=[other], audit=True))


def test_undo_takes_an_audit_back_and_clicked_labels_are_none(start, blobs):
    session, y = start(), blobs[1]
    while not answer(session, y)["audit"]:
        pass
    assert session.state()["accuracy"]["audits"] == 1
    session.act(action("undo"))
    assert session.state()["accuracy"]["audits"] == 0
    (asked,) = session.queue(1)
    assert asked["audit"]
    give(session, asked["row"], y)
    assert session.state()["accuracy"]["audits"] == 0


def test_an_answer_that_was_taken_back_is_no_random_check_any_more_for_its_prediction_was_seen(start, blobs):
    session, y = start(), blobs[1]
    row = asked_at_random(session, y)
    answer(session, y)
    session.act(action("undo"))
    for _ in range(2):  # a restart changes nothing
        assert session.queue(1)[0]["audit"]
        assert row not in [one["row"] for one in session.queue(60) if one["audit"]]
        with pytest.raises(ParameterError, match="was answered before"):
            session.act(action("label", rows=[row], of=int(y[row]), audit=True))
        session.close()
        session = start()
    session.act(action("redo"))  # the first answer was given before
    assert session.state()["accuracy"]["audits"] == 1


def test_a_skipped_row_is_no_answer(start, blobs):
    session, y = start(), blobs[1]
    row = asked_at_random(session, y)
    session.act(action("skip", row=row))
    assert session.state()["accuracy"]["audits"] == 0
    assert session.queue(1)[0]["audit"]
    assert session.queue(1)[0]["row"] != row


def test_rows_of_a_class_do_not_give_away_what_is_predicted_for_those_drawn_at_random(start, blobs):
    session, y = start(), blobs[1]
    give(session, np.concatenate([np.flatnonzero(y == k)[:3] for k in range(4)]), y)
    drawn = {one["row"] for one in session.queue(30) if one["audit"]}
    listed = [row for k in range(4) for row in session.of_class(k, 240)]
    assert drawn
    assert len(listed) == 240 - 12 - len(drawn)
    assert not drawn & set(listed)


def test_accuracy_is_by_leave_one_out(start, blobs):
    session, y = start(), blobs[1]
    audits = [one["row"] for one in (answer(session, y) for _ in range(40)) if one["audit"]]
    rows = np.array(session.state()["given_rows"]["rows"])
    graph = LiveGraph(blobs[0], 0)
    right = 0
    for audit in audits:  # each label taken away, and all others spread anew
        Y = np.eye(4)[y] * np.isin(np.arange(len(y)), rows[rows != audit])[:, None]
        right += graph.operator.solve(Y)[audit].argmax() == y[audit]
    found = session.state()["accuracy"]
    assert (found["audits"], found["right"]) == (len(audits), right)
    assert found["low"] <= found["estimate"] == right / len(audits) <= found["high"]
    assert f"{right} of {len(audits)} rows" in found["sentence"]
    points = [point[0] for point in found["curve"]]
    assert points == sorted(set(points))
    assert points[-1] == 40


@pytest.mark.slow
def test_nine_of_ten_intervals_hold_the_share_of_rows_that_is_predicted_right(blobs, tmp_path):
    y, held = blobs[1], []
    for seed in range(30):
        session = Session(MemorySource(blobs[0], list(NAMES)), tmp_path / f"{seed}.jsonl", random_state=seed)
        session.prepare()
        for _ in range(45):
            answer(session, y)
        found = session.state()["accuracy"]
        predicted = session.frame().classes.copy()
        for row in session.state()["given_rows"]["rows"]:
            predicted[row] = session.card(row)["prediction"]
        held.append(found["low"] <= (predicted == y).mean() <= found["high"])
        session.close()
    assert np.mean(held) >= 0.8


def test_the_documentation_names_the_intervals_that_the_page_shows():
    text = (Path(__file__).parents[1] / "docs" / "annotate.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) % and (\d+) % \|$", text, re.MULTILINE)
    assert len(lines) == 4
    for audits, right, low, high in (map(int, line) for line in lines):
        found = accuracy.facts(audits, right)
        assert [round(100 * found["low"]), round(100 * found["high"])] == [low, high]
        assert f"{LEVEL:.0%} interval" in found["sentence"]
    assert f"with a {100 * LEVEL:.0f} % interval" in text


def test_with_few_audits_nothing_is_claimed(start, blobs):
    session, y = start(), blobs[1]
    for _ in range(10):
        answer(session, y)
    found = session.state()["accuracy"]
    assert (found["estimate"], found["low"], found["high"], found["curve"]) == (None, 0.0, 1.0, [])
    assert "too few to tell" in found["sentence"]


def test_skipped_rows_come_back_when_no_others_are_left(start):
    session = start(of=MemorySource(np.arange(8.0)[:, None], ["a", "b"]))
    first = session.queue(1)[0]["row"]
    session.act(action("skip", row=first))
    assert first not in [one["row"] for one in session.queue(7)]
    assert sorted(one["row"] for one in session.queue(8)) == list(range(8))
    session.act(action("ignore", rows=[first]))
    assert first not in [one["row"] for one in session.queue(8)]


def test_the_queue_ends_when_all_rows_have_labels(start):
    session = start(of=MemorySource(np.arange(8.0)[:, None], ["a", "b"]))
    session.act(action("label", rows=list(range(7)), of=0))
    assert [one["row"] for one in session.queue(5)] == [7]
    session.act(action("label", rows=[7], of=1))
    assert session.queue(5) == []


def test_typical_rows_of_many_are_some_for_each_anchor(monkeypatch):
    monkeypatch.setattr("greenlabel.annotate.session.queue.ALL_ROWS", 10)
    rng = np.random.default_rng(0)
    Z = rng.random((200, 4)).astype(np.float32)
    rows = typical_rows(sp.csr_array(Z))
    own = Z * (Z.max(axis=1, keepdims=True) == Z)
    best = {row for anchor in range(4) for row in np.argsort(-own[:, anchor])[:8].tolist()}
    assert rows.tolist() == sorted(best)


def test_rows_that_are_not_typical_come_when_the_typical_are_used_up(start, blobs, monkeypatch):
    monkeypatch.setattr("greenlabel.annotate.session.queue.ALL_ROWS", 10)
    monkeypatch.setattr("greenlabel.annotate.session.queue.ROWS_PER_ANCHOR", 1)
    session = start()
    assert len({one["row"] for one in session.queue(240)}) == 240


# The blend


def test_the_blend_is_fitted_while_hands_rest_and_a_label_shows_the_live_answer(start, blobs):
    session, y = start(), blobs[1]
    assert not session.rest()
    give(session, np.concatenate([np.flatnonzero(y == k)[:4] for k in range(4)]), y)
    before = session.frame().generation
    wait_for(session.rest)
    assert session.frame().generation > before
    shown = session.state()["shown"]
    assert shown["live"] is not None
    assert shown["blend"] is not None
    assert "held-out labels" in shown["why"]
    give(session, np.flatnonzero(y == 0)[9], y)
    assert session.state()["shown"]["model"] == "live"
    assert session.state()["shown"]["blend"] is None


@pytest.mark.slow
def test_the_blend_is_shown_where_a_column_matters_that_the_graph_cannot_see(start):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12))
    y = (X[:, 0] > 0).astype(int)
    session = start(of=MemorySource(X, ["no", "yes"]))
    give(session, np.arange(60), y)
    live = (session.frame().classes == y).mean()
    wait_for(session.rest)
    assert session.state()["shown"]["model"] == "blend"
    assert (session.frame().classes == y).mean() > live + 0.05
    assert session.frame().confidence[:60].tolist() == [255] * 60
    card = session.card(100)
    assert card["prediction"] == session.frame().classes[100]


def test_a_blend_is_better_where_it_wins_more_than_chance():
    yes, no = np.ones(30, bool), np.zeros(30, bool)
    assert is_better(yes, no)
    assert not is_better(yes, yes)
    assert not is_better(no, yes)
    assert not is_better(np.arange(30) < 2, np.arange(30) == 5)


def test_closing_ends_what_is_under_way(start, blobs):
    session, y = start(), blobs[1]
    give(session, np.concatenate([np.flatnonzero(y == k)[:4] for k in range(4)]), y)
    before = set(psutil.Process().children())
    session.rest()
    (child,) = set(psutil.Process().children()) - before
    folder = Path(child.cmdline()[-1])
    assert folder.exists()
    session.close()
    assert not is_running(child.pid)
    assert not folder.exists()


def test_a_child_ends_when_its_parent_is_killed(tmp_path):
    script = (
        "import sys, numpy as np, time\n"
        "from greenlabel.annotate.session.child import Child\n"
        "child = Child('plane', {'points': np.random.default_rng(0).normal(size=(4000, 50))})\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=env)
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.communicate()
    wait_for(lambda: not is_running(pid))


def is_running(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_a_child_that_fails_gives_nothing():
    child = Child("plane", {"wrong": np.zeros(3)})
    assert child.result() is None
    child.close()


def wait_for(happens, seconds=120):
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.05)
