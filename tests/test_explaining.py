"""The influence of every label: exact, whatever the classifier, for fitted rows and for new ones."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits

from greenlabel import (
    AnchoredGreenClassifier,
    BlendedClassifier,
    GreenClassifier,
    HarmonicClassifier,
    explain,
)
from greenlabel.blocks import ArrayBlocks
from greenlabel.datasets import keep_labels
from greenlabel.errors import ParameterError
from greenlabel.inspection.explaining import Explanation, explain_by_others
from greenlabel.operators.anchored import AnchoredGreen
from helpers import reference

ROWS = np.array([0, 59, 21, 7, 45])


def graph_of(model):
    """The classifier whose graph is explained."""
    return model.experts_["graph"] if hasattr(model, "experts_") else model


def is_sum_of_influences(explanation, scores):
    """Whether labels of a class add up to its score."""
    for code, label in enumerate(explanation.classes):
        total = explanation.influence[:, explanation.labels == label].sum(axis=1)
        assert_allclose(total, scores[:, code], rtol=0, atol=1e-9 * np.abs(scores).max())


def test_influences_of_a_class_add_up_to_its_score(Model, blobs, few):
    model = Model(random_state=0).fit(blobs[0], few)
    found = explain(model, ROWS)
    is_sum_of_influences(found, graph_of(model).scores_[ROWS])
    assert_array_equal(found.labelled, np.flatnonzero(few >= 0))
    assert_array_equal(found.labels, few[few >= 0])
    assert_array_equal(found.predicted, model.transduction_[ROWS])
    assert_array_equal(found.rows, ROWS)


def test_other_labels_have_other_influences(Model, blobs, few):
    """What was solved for the first ones is not taken for the second."""
    model = Model(random_state=0).fit(blobs[0], few)
    explain(model, ROWS)
    other = np.where(np.arange(60) % 20 < 4, blobs[1], -1)
    model.relabel(other)
    for found in (explain(model, ROWS), explain(model, ROWS)):
        is_sum_of_influences(found, graph_of(model).scores_[ROWS])
        assert_array_equal(found.labelled, np.flatnonzero(other >= 0))


def solved_columns(monkeypatch):
    """How many columns are solved, one number for each time."""
    solved, of_labels = [], AnchoredGreen.of_labels

    def counted(self, Z, *words):
        solved.append(Z.shape[0])
        return of_labels(self, Z, *words)

    monkeypatch.setattr(AnchoredGreen, "of_labels", counted)
    return solved


@pytest.mark.parametrize("is_new", [False, True])
def test_a_row_costs_a_column_until_the_labels_would_have_cost_as_much(monkeypatch, blobs, few, is_new):
    n_labels = int((few >= 0).sum())
    model = AnchoredGreenClassifier(12, random_state=0).fit(blobs[0], few)
    solved = solved_columns(monkeypatch)
    for row in range(60):
        explain(model, X=blobs[0][[row]]) if is_new else explain(model, row)
    assert solved == [1] * (n_labels - 1) + [n_labels]


def test_after_the_labels_are_solved_rows_count_anew(monkeypatch, blobs, few):
    model = AnchoredGreenClassifier(12, random_state=0, mu=1e-3).fit(blobs[0], few)
    for row in range(5):
        explain(model, row)
    explain(model, np.arange(60))
    others = np.where(few >= 0, -1, few)
    rows = np.flatnonzero(few < 0)[::4]  # none of them had a label
    others[rows] = blobs[1][rows]
    solved = solved_columns(monkeypatch)
    model.relabel(others).transduction_  # noqa: B018
    solved.clear()
    for row in range(len(rows) - 1):
        explain(model, row)
    assert solved == [1] * (len(rows) - 1)


def test_after_another_label_only_its_own_column_is_solved(monkeypatch, blobs, few):
    first, fresh = few.copy(), np.array([50, 51])
    first[fresh] = -1
    model = AnchoredGreenClassifier(12, random_state=0, mu=1e-3).fit(blobs[0], first)
    explain(model, np.arange(60))
    for rows in (fresh[:1], fresh):  # one more, then another one
        changed = first.copy()
        changed[rows] = blobs[1][rows]
        model.relabel(changed)
        solved = solved_columns(monkeypatch)
        found = explain(model, np.arange(60)).influence
        assert solved == [1]
        expected = AnchoredGreenClassifier(12, random_state=0, mu=1e-3).fit(blobs[0], changed)
        assert_allclose(found, explain(expected, np.arange(60)).influence, atol=1e-12)
    model.relabel(first)
    solved = solved_columns(monkeypatch)
    is_sum_of_influences(explain(model, ROWS), model.scores_[ROWS])
    assert solved == []


def test_what_was_solved_to_explain_rows_is_no_part_of_a_saved_model(monkeypatch, blobs, few):
    model = AnchoredGreenClassifier(12, random_state=0).fit(blobs[0], few)
    explain(model, 0)  # has all else that explain needs made
    saved = pickle.dumps(model)
    expected = explain(model, np.arange(60)).influence
    assert len(pickle.dumps(model)) == len(saved)
    restored, solved = pickle.loads(pickle.dumps(model)), solved_columns(monkeypatch)
    assert_array_equal(explain(restored, np.arange(60)).influence, expected)
    assert solved == [int((few >= 0).sum())]


def test_labels_that_are_too_many_to_remember_are_solved_each_time(monkeypatch, blobs, few):
    monkeypatch.setattr("greenlabel.propagators.influences.REMEMBERED_VALUES", 0)
    model = AnchoredGreenClassifier(12, random_state=0).fit(blobs[0], few)
    solved, n_labels = solved_columns(monkeypatch), int((few >= 0).sum())
    first, second = (explain(model, np.arange(30)).influence for _ in range(2))
    assert solved == [n_labels, n_labels]
    assert_array_equal(first, second)


@pytest.mark.parametrize("n_anchors", [12, 40])
def test_solved_for_rows_or_for_labels_influences_are_the_same(monkeypatch, blobs, few, n_anchors):
    """Of a dense system and of a sparse one, for rows of the fit, labelled ones among them, and for new ones."""
    monkeypatch.setattr("greenlabel.graph.mixing.DENSE_ANCHORS", 20)
    model = AnchoredGreenClassifier(n_anchors, random_state=0).fit(blobs[0], few)
    assert model.operator_.is_direct == (n_anchors == 12)
    rows, new = np.r_[np.flatnonzero(few >= 0)[:2], 10, 50], blobs[0][:5] + 0.2
    by_rows = [explain(model, rows).influence, explain(model, X=new).influence]
    explain(model, np.arange(60))  # from here on by labels
    for one, influence in zip(by_rows, (explain(model, rows).influence, explain(model, X=new).influence), strict=True):
        assert_allclose(one, influence, atol=1e-10 * np.abs(influence).max())
    is_sum_of_influences(explain(model, rows), model.scores_[rows])


def test_a_new_row_near_an_anchor_that_no_row_uses_is_explained_by_its_scores(blobs, few):
    """Whichever is solved: what a label there would do to others is not what they do to it."""
    anchors = np.vstack([blobs[0][::5], [[30.0, 30.0]]])
    model = AnchoredGreenClassifier(n_neighbors=2, anchors=anchors, class_offsets=None).fit(blobs[0], few)
    assert (model.operator_.Z.sum(axis=0) == 0).any()
    new = np.array([[29.0, 30.0], [20.0, 25.0], [0.0, 0.0]])
    for row in new:
        is_sum_of_influences(explain(model, X=row[None]), model.decision_function(row[None]))
    is_sum_of_influences(explain(model, X=new), model.decision_function(new))


def test_influences_on_new_rows_add_up_to_their_scores(GraphModel, blobs, few, rng):
    new = blobs[0][::7] + 0.1 * rng.normal(size=(9, 2))
    model = GraphModel(random_state=0, class_offsets=None).fit(blobs[0], few)
    found = explain(model, X=new)
    is_sum_of_influences(found, model.decision_function(new))
    assert_array_equal(found.predicted, model.predict(new))
    assert found.rows is None


@pytest.mark.parametrize("solver", ["direct", "cg"])
def test_influences_are_entries_of_the_operator(blobs, few, solver):
    model = GreenClassifier(mu=1e-3, solver=solver).fit(blobs[0], few)
    G = reference.green(model.graph_.S.toarray(), 1e-3)
    expected = G[np.ix_(ROWS, few >= 0)]
    assert_allclose(explain(model, ROWS).influence, expected, atol=1e-9 * np.abs(expected).max())


def test_influences_whose_sums_are_not_the_scores_are_solved_again(blobs, few, monkeypatch):
    monkeypatch.setattr("greenlabel.propagators.knn.NEARLY_EXACT", 1e-2)
    model = GreenClassifier(solver="cg").fit(blobs[0], few)
    is_sum_of_influences(explain(model, ROWS), model.scores_[ROWS])
    is_sum_of_influences(explain(model, np.arange(60)), model.scores_[:60])
    entries = model.operator_.columns(np.flatnonzero(few >= 0))[ROWS]
    assert_allclose(explain(model, ROWS).influence, entries, atol=1e-9 * np.abs(entries).max())


def test_influences_are_those_of_labels_given_one_by_one(blobs, few):
    """HF clamps all labelled rows; a label alone is one of them, the others being 0."""
    model = HarmonicClassifier().fit(blobs[0], few)
    S, labelled = model.graph_.S.toarray(), np.flatnonzero(few >= 0)
    Y = np.zeros((60, len(labelled)))
    Y[labelled, np.arange(len(labelled))] = 1
    assert_allclose(explain(model, ROWS).influence, reference.harmonic(S, Y, few >= 0)[ROWS], atol=1e-9)


@pytest.mark.parametrize("n_rows", [3, 40])
def test_more_rows_than_labels_or_fewer_makes_no_difference(n_rows, blobs, few):
    model = GreenClassifier(solver="cg").fit(blobs[0], few)
    found = explain(model, np.arange(n_rows)).influence
    one_by_one = np.vstack([explain(model, row).influence for row in range(n_rows)])
    assert_allclose(found, one_by_one, atol=1e-9 * np.abs(found).max())


def test_many_labels_and_rows_are_taken_in_parts(monkeypatch, GraphModel, blobs, few):
    model = GraphModel(random_state=0).fit(blobs[0], few)
    whole = explain(model, np.arange(60)), explain(model, X=blobs[0][:9] + 0.2)
    monkeypatch.setattr("greenlabel.propagators.base.LABELS_AT_ONCE", 5)
    parts = explain(model, np.arange(60)), explain(model, X=blobs[0][:9] + 0.2)
    for one, other in zip(whole, parts, strict=True):
        assert_allclose(one.influence, other.influence, atol=1e-9 * np.abs(one.influence).max())


def test_equal_rows_share_their_influences(GraphModel, blobs, few):
    X, y = np.repeat(blobs[0], 3, axis=0), np.repeat(few, 3)
    y[1::3] = -1
    model = GraphModel(random_state=0).fit(X, y)
    found = explain(model, np.arange(0, 180, 10))
    is_sum_of_influences(found, model.scores_[::10])


def test_rows_that_no_label_reaches_are_explained_by_all_alike(GraphModel, islands):
    y = np.full(90, -1)
    y[[0, 1, 30, 31]] = [0, 0, 1, 1]
    model = GraphModel(n_neighbors=5, random_state=0).fit(islands[0], y)
    found = explain(model, [70, 5])
    is_sum_of_influences(found, model.scores_[[70, 5]])


def test_a_given_graph_is_explained(similarity):
    S, y = similarity
    model = GreenClassifier(graph="precomputed").fit(S, y)
    is_sum_of_influences(explain(model, np.arange(30)), model.scores_)
    is_sum_of_influences(explain(model, X=S[:4]), model.fitted_.predictor.scores(S[:4])[0])


def test_rows_in_blocks_are_explained_as_rows_in_memory(blobs, few):
    expected = explain(AnchoredGreenClassifier(16, random_state=0).fit(blobs[0], few), ROWS)
    found = explain(
        AnchoredGreenClassifier(16, random_state=0, memory_limit=0).fit(ArrayBlocks(blobs[0], 17), few), ROWS
    )
    assert_array_equal(found.influence, expected.influence)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"class_shares": "balanced", "refine": True}], ids=["plain", "refined"])
def test_evidence_of_experts_adds_up_to_the_scores_of_a_blend(options, blobs, few):
    model = BlendedClassifier(random_state=0, **options).fit(blobs[0], few)
    new = blobs[0][:7] + 0.1
    of_rows, of_new = explain(model, ROWS), explain(model, X=new)
    assert_allclose(sum(of_rows.evidence.values()), model.scores_[ROWS], atol=1e-9)
    assert_allclose(sum(of_new.evidence.values()), model.decision_function(new), atol=1e-9)
    assert set(of_rows.evidence) == ({"refined graph"} if options else {*model.weights_, "class shares"})


def test_the_top_labels_are_those_of_the_largest_influence(blobs, few):
    found = explain(GreenClassifier().fit(blobs[0], few), ROWS)
    for top, influence in zip(found.top(3), found.influence, strict=True):
        best = np.argsort(-influence)[:3]
        assert [one.row for one in top] == found.labelled[best].tolist()
        assert [one.label for one in top] == found.labels[best].tolist()
        assert_allclose([one.share for one in top], influence[best] / np.maximum(influence, 0).sum())


def test_a_labelled_row_is_explained_by_its_own_label_first(blobs, few):
    labelled = np.flatnonzero(few >= 0)
    found = explain(GreenClassifier().fit(blobs[0], few), labelled)
    assert [top[0].row for top in found.top(1)] == labelled.tolist()


def test_an_explanation_prints_as_a_table(blobs, few):
    lines = str(explain(GreenClassifier().fit(blobs[0], few), [3, 50])).splitlines()
    assert lines[0].split()[:2] == ["row", "predicted"]
    assert [line.split()[0] for line in lines[1:]] == ["3", "50"]
    assert "%" in lines[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either numbers of rows or new rows"),
        ({"rows": [1], "X": [[0.0, 0.0]]}, "either numbers of rows or new rows"),
        ({"rows": [60]}, "row 60, there are rows 0 to 59"),
        ({"rows": [-1]}, "row -1"),
        ({"rows": [0.5]}, "whole row numbers"),
        ({"X": [[0.0]]}, "1 features"),
    ],
)
def test_what_cannot_be_explained_is_refused(arguments, message, blobs, few):
    model = GreenClassifier().fit(blobs[0], few)
    with pytest.raises(ValueError, match=message):
        explain(model, **arguments)


def test_models_without_rows_are_refused(blobs, few):
    model = GreenClassifier().fit(blobs[0], few)
    with pytest.raises(ParameterError, match="a model for new rows does not keep"):
        explain(model.for_prediction(), 1)
    with pytest.raises(ParameterError, match="takes a fitted greenlabel classifier, got str"):
        explain("model", 1)


def test_no_rows_have_an_empty_explanation(Model, blobs, few):
    found = explain(Model(random_state=0).fit(blobs[0], few), [])
    assert found.influence.shape == (0, (few >= 0).sum())
    assert found.top() == []


def test_rows_far_from_every_label_have_reasons_too():
    """All influences on a row may be negative: what is least negative decides, and is named."""
    X, y = load_digits(return_X_y=True)
    model = AnchoredGreenClassifier(random_state=0).fit(X, keep_labels(y, per_class=3, random_state=0))
    found = explain(model, np.flatnonzero(model.reached_))
    far = np.flatnonzero((found.influence < 0).all(axis=1))
    assert len(far)
    tops = found.top(1)
    for row in far:
        (top,) = tops[row]
        assert top.row == found.labelled[found.influence[row].argmax()]
        assert 0 < top.share <= 1


def test_rows_that_all_labels_say_the_same_of_have_no_reason():
    influence = np.array([[-0.3, -0.3 - 1e-12, -0.3], [-0.3, -0.1, -0.2], [0.5, -1.0, 0.0]])
    words = (np.arange(3), np.array(list("abc")), np.array(list("abc")), np.zeros((3, 3)), np.array(list("abc")))
    top = Explanation(influence, *words).top()
    assert top[0] == []
    assert [(one.label, round(one.share, 3)) for one in top[1]] == [("b", 0.667), ("c", 0.333)]
    assert [(one.label, one.share) for one in top[2]] == [("a", 1.0)]


@pytest.mark.parametrize("n", [0, -1, 1.5, None])
def test_how_many_reasons_is_a_number(n, blobs, few):
    with pytest.raises(ParameterError, match="n="):
        explain(GreenClassifier().fit(blobs[0], few), 0).top(n)


def test_a_path_is_told_to_be_read_first(blobs, few):
    with pytest.raises(ParameterError, match=r"explain takes new rows as an array, got the path 'rows\.npy'"):
        explain(GreenClassifier().fit(blobs[0], few), X="rows.npy")


def test_rows_that_no_label_reaches_have_no_reason(GraphModel, islands):
    y = np.full(90, -1)
    y[[0, 1, 30]] = [0, 0, 1]
    model = GraphModel(n_neighbors=5, random_state=0).fit(islands[0], y)
    for found in (explain(model, [70, 5]), explain(model, X=islands[0][[70, 5]] + 0.01)):
        unreached, reached = found.top()
        assert unreached == []
        assert {one.label for one in reached} == {0}


def test_others_explain_a_row_as_if_it_had_no_label(GraphModel, blobs, few):
    model = GraphModel(random_state=0).fit(blobs[0], few)
    rows = np.flatnonzero(few >= 0)[[0, 5, 9]]
    for row, found in zip(rows, explain_by_others(model, rows), strict=True):
        assert_array_equal(found.labelled, np.setdiff1d(np.flatnonzero(few >= 0), row))
        if GraphModel is HarmonicClassifier:  # where leaving a label out is more than leaving its influence out
            without = GraphModel(random_state=0).fit(blobs[0], np.where(np.arange(60) == row, -1, few))
            assert_allclose(found.influence, explain(without, row).influence, atol=1e-6)
        else:
            is_other = explain(model, row).labelled != row
            assert_allclose(found.influence, explain(model, row).influence[:, is_other], atol=1e-9)
