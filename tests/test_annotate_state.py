"""The state of the labels: pure, and every step can be taken back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greenlabel.annotate.session.actions import MAX_NAME, read_action
from greenlabel.annotate.session.labels import AUDIT, HAND, MAX_CLASSES, TABLE, State
from greenlabel.errors import GreenlabelError, LabelError, ParameterError
from helpers.annotating import action, content

N = 12


def fresh():
    return State(N, ["red", "green", "blue"], [(0, "red"), (1, "green")])


def do(state, raw):
    wanted = read_action(raw, state.n)
    state.apply(wanted, state.change(wanted))
    return state


def after(*actions):
    state = fresh()
    for one in actions:
        do(state, one)
    return state


ROWS = st.lists(st.integers(0, N - 1), min_size=1, max_size=4)
IDS = st.integers(0, 5)
ACTIONS = st.one_of(
    st.builds(lambda rows, of: action("label", rows=rows, of=of), ROWS, IDS),
    st.builds(lambda row, of: action("label", rows=[row], of=of, audit=True), st.integers(0, N - 1), IDS),
    *(st.builds(lambda rows, kind=kind: action(kind, rows=rows), ROWS) for kind in ("unlabel", "ignore", "unignore")),
    *(st.builds(lambda row, kind=kind: action(kind, row=row), st.integers(0, N - 1)) for kind in ("skip", "keep")),
    st.builds(lambda name, rows: action("add_class", name=name, then_label=rows), st.sampled_from("xyz"), ROWS),
    st.builds(
        lambda name, row: action("add_class", name=name, then_label=[row], audit=True),
        st.sampled_from("xyz"),
        st.integers(0, N - 1),
    ),
    st.builds(lambda of, name: action("rename_class", of=of, name=name), IDS, st.sampled_from("uvw")),
    st.builds(lambda of, into: action("merge_classes", of=of, into=into), IDS, IDS),
    st.builds(lambda of: action("remove_class", of=of), IDS),
    st.sampled_from(["undo", "redo"]).map(action),
)


def accepted(state, actions):
    """Those of the actions that could be done, which are done."""
    done = []
    for one in actions:
        try:
            do(state, one | {"id": f"{one['id']}-{len(done)}"})
        except GreenlabelError:
            continue
        done.append(one)
    return done


@given(st.lists(ACTIONS, max_size=30))
@settings(max_examples=150, deadline=None)
def test_the_same_actions_give_the_same_state(actions):
    state = fresh()
    done = accepted(state, actions)
    again = after(*done)
    assert content(again) == content(state)
    assert again.marks.tolist() == state.marks.tolist()
    assert again.next_id == state.next_id


@given(st.lists(ACTIONS, max_size=30))
@settings(max_examples=150, deadline=None)
def test_undo_to_the_start_and_redo_to_the_end_give_equal_states(actions):
    state = fresh()
    accepted(state, actions)
    seen, marks = [content(state)], state.marks.tolist()
    while state.done:
        do(state, action("undo"))
        seen.append(content(state))
    assert seen[-1] == content(fresh())
    for expected in seen[-2::-1]:
        do(state, action("redo"))
        assert content(state) == expected
    assert state.marks.tolist() == marks


@given(st.lists(ACTIONS, max_size=30))
@settings(max_examples=100, deadline=None)
def test_labels_are_always_of_classes_that_are_there(actions):
    state = fresh()
    accepted(state, actions)
    ids = {one.id for one in state.classes}
    assert set(state.marks["label"][state.labelled].tolist()) <= ids
    assert (state.marks["label"][state.marks["origin"] == 0] == -1).all()
    assert not (state.marks["ignored"] & (state.marks["origin"] > 0)).any()
    assert len(ids) == len(state.classes) == len({one.name for one in state.classes})
    assert {row for rows in state.members().values() for row in rows.tolist()} == set(state.labelled.tolist())


@given(ACTIONS)
@settings(max_examples=200, deadline=None)
def test_an_action_goes_through_the_journal_and_back(raw):
    wanted = read_action(raw, N)
    again = read_action(wanted.as_line(), N)
    assert again.as_line() == wanted.as_line()
    assert (again.do, again.class_id, again.into, again.name, again.audit, again.rows.tolist()) == (
        wanted.do,
        wanted.class_id,
        wanted.into,
        wanted.name,
        wanted.audit,
        wanted.rows.tolist(),
    )


def test_what_an_action_would_do_changes_nothing():
    state = fresh()
    before = content(state)
    state.change(read_action(action("label", rows=[2, 3], of=1), N))
    assert content(state) == before


def test_labels_know_who_gave_them():
    state = after(action("label", rows=[2], of=0), action("label", rows=[3], of=0, audit=True))
    assert state.rows_of(TABLE).tolist() == [0, 1]
    assert state.rows_of(HAND).tolist() == [2]
    assert state.rows_of(AUDIT).tolist() == [3]


def test_labels_of_the_table_can_be_changed_and_taken_away():
    state = after(action("label", rows=[0], of=2), action("unlabel", rows=[1]))
    assert state.labelled.tolist() == [0]
    assert state.marks["label"][0] == 2
    do(do(state, action("undo")), action("undo"))
    assert content(state) == content(fresh())


def test_audits_come_in_the_order_in_which_they_were_given_and_go_with_undo():
    state = after(*(action("label", rows=[row], of=0, audit=True) for row in (9, 4, 7)))
    assert state.audits.tolist() == [9, 4, 7]
    assert do(state, action("undo")).audits.tolist() == [9, 4]


def test_a_label_changed_later_is_no_audit_any_more():
    state = after(action("label", rows=[9], of=0, audit=True), action("label", rows=[9], of=1))
    assert not len(state.audits)


def test_a_row_with_a_label_is_no_audit():
    for one in (
        action("label", rows=[0], of=0, audit=True),
        action("add_class", name="white", then_label=[0], audit=True),
    ):
        with pytest.raises(ParameterError, match="no random check any more"):
            after(one)


@pytest.mark.parametrize("rows", [[], [4, 5]])
def test_an_audit_is_of_one_row(rows):
    with pytest.raises(ParameterError, match="an audit is of one row"):
        after(action("add_class", name="white", then_label=rows, audit=True))


def test_a_new_class_for_a_row_drawn_at_random_is_an_audit():
    state = after(action("add_class", name="white", then_label=[4], audit=True))
    assert state.audits.tolist() == [4]
    assert not len(do(state, action("undo")).audits)


def test_ignoring_a_row_takes_its_label_and_labelling_it_brings_it_back():
    state = after(action("ignore", rows=[0, 5]))
    assert state.labelled.tolist() == [1]
    do(state, action("label", rows=[5], of=1))
    assert state.marks["ignored"].nonzero()[0].tolist() == [0]


def test_a_kept_suspect_is_asked_again_when_its_label_changes():
    state = after(action("keep", row=0))
    assert state.marks["kept"][0]
    assert not do(state, action("label", rows=[0], of=1)).marks["kept"][0]
    with pytest.raises(ParameterError, match="no label to keep"):
        do(state, action("keep", row=5))


def test_ids_of_classes_are_never_given_twice():
    state = after(action("add_class", name="white"), action("undo"), action("add_class", name="black"))
    assert [one.id for one in state.classes] == [0, 1, 2, 4]
    state = after(action("remove_class", of=2), action("add_class", name="white"))
    assert [one.id for one in state.classes] == [0, 1, 3]


def test_a_merged_class_leaves_its_labels_to_the_other_and_undo_gives_them_back():
    state = after(action("label", rows=[5, 6], of=1), action("merge_classes", of=1, into=0))
    assert [one.name for one in state.classes] == ["red", "blue"]
    assert state.members()[0].tolist() == [0, 1, 5, 6]
    assert do(state, action("undo")).members()[1].tolist() == [1, 5, 6]


def test_a_removed_class_takes_its_labels_along():
    state = after(action("remove_class", of=1))
    assert state.labelled.tolist() == [0]
    assert do(state, action("undo")).labelled.tolist() == [0, 1]


def test_renaming_changes_the_name_alone():
    state = after(action("rename_class", of=0, name="crimson"))
    assert state.classes[0].name == "crimson"
    assert state.classes[0].id == 0
    with pytest.raises(ParameterError, match="there is a class green already"):
        do(state, action("rename_class", of=0, name="green"))


def test_a_class_added_with_rows_is_one_step():
    state = after(action("add_class", name="white", then_label=[4, 5]))
    assert state.members()[3].tolist() == [4, 5]
    assert content(do(state, action("undo"))) == content(fresh())


def test_more_classes_than_bytes_are_refused_in_a_sentence():
    state = State(N, [f"c{i}" for i in range(MAX_CLASSES)])
    with pytest.raises(LabelError, match="255 classes are more than the 254"):
        do(state, action("add_class", name="one too many"))
    with pytest.raises(LabelError, match="300 classes"):
        State(N, [f"c{i}" for i in range(300)])


def test_a_new_action_ends_what_could_be_redone():
    state = after(action("label", rows=[5], of=1), action("undo"), action("label", rows=[6], of=1))
    with pytest.raises(ParameterError, match="nothing to redo"):
        do(state, action("redo"))


def test_sentences_say_what_undo_would_take_back():
    assert after(action("label", rows=[4, 5, 5, 6, 7], of=1)).done[-1].sentence == "label 4 rows as green"
    assert after(action("label", rows=[4], of=1)).done[-1].sentence == "label row 4 as green"


def test_rows_and_names_are_put_in_order():
    wanted = read_action(action("label", rows=[5, 2, 5], of=1), N)
    assert wanted.rows.tolist() == [2, 5]
    assert read_action(action("add_class", name="  white "), N).name == "white"


@pytest.mark.parametrize("raw", [None, [], "label", {}, {"do": "label"}, action("label", rows=[[1]], of=0)])
def test_what_is_no_action_is_refused(raw):
    with pytest.raises(ParameterError):
        read_action(raw, N)


def test_names_and_ids_have_bounds():
    with pytest.raises(ParameterError, match="too long"):
        read_action(action("add_class", name="a" * (MAX_NAME + 1)), N)
    with pytest.raises(ParameterError, match="id of an action"):
        read_action({"id": "a" * 1000, "do": "undo"}, N)


def test_as_things_were_before_the_last_labels():
    steps = [action("label", rows=[row], of=1) for row in (5, 6, 7)]
    state = after(*steps[:2], action("skip", row=9), steps[2])
    found = state.before_last(2)
    assert [past.labelled.tolist() for past in found] == [[0, 1, 5], [0, 1, 5, 6]]
    assert state.labelled.tolist() == [0, 1, 5, 6, 7]


def test_a_history_is_as_large_as_what_was_changed():
    state = State(100_000, ["a", "b"])
    for row in range(50):
        do(state, action("label", rows=[row], of=row % 2))
    assert sum(change.before.nbytes + change.after.nbytes for change in state.done) < 50 * 100
    assert np.array_equal(np.concatenate(list(state.members().values())) % 2, np.repeat([0, 1], 25))
