"""Which rows to label next: what comes, what never comes, and why."""

import gc
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from greenlabel import AnchoredGreenClassifier, BlendedClassifier, GreenClassifier, explain, suggest, suspects
from greenlabel.blocks import ArrayBlocks
from greenlabel.errors import DataError, ParameterError
from greenlabel.inspection import asking, coverage
from greenlabel.inspection.asking import NEAR
from greenlabel.inspection.sketch import graph_sketch, whole_pieces
from greenlabel.inspection.suggesting import between, in_order_of, reason, sketch_of, stands_for


def rows_of(found):
    return [one.row for one in found]


# Before there is any label ------------------------------------------------------------------------------------------


def test_every_island_is_suggested_before_any_comes_twice(islands):
    X, y = islands
    assert sorted(y[rows_of(suggest(X, 3, random_state=0))]) == [0, 1, 2]


def test_larger_groups_come_first(rng):
    sizes = [50, 200, 100]
    X = np.vstack([100.0 * i + rng.normal(size=(n, 2)) for i, n in enumerate(sizes)])
    group = np.repeat([0, 1, 2], sizes)
    assert_array_equal(group[rows_of(suggest(X, 3, random_state=0))], [1, 2, 0])


def test_a_suggestion_says_how_many_rows_it_stands_for(islands):
    found = suggest(islands[0], 3, random_state=0)
    assert [one.covers for one in found] == [30, 30, 30]
    assert {one.reason for one in found} == {"stands for about 30 rows"}
    assert [one.between for one in found] == [()] * 3


def test_the_same_seed_gives_the_same_rows(blobs):
    X = np.repeat(blobs[0], 5, axis=0) + np.random.default_rng(0).normal(scale=0.1, size=(300, 2))
    assert suggest(X, 20, random_state=3) == suggest(X, 20, random_state=3)


KINDS = {  # whatever fit takes, of the same rows
    "frame": lambda X, folder: pd.DataFrame(X, columns=["a", "b"]),
    "sparse": lambda X, folder: sp.csr_array(X),
    "memory map": lambda X, folder: np.load(saved(X, folder), mmap_mode="r"),
    "file": lambda X, folder: saved(X, folder),
    "blocks": lambda X, folder: ArrayBlocks(X, 13),
}


def saved(X, folder):
    np.save(folder / "X.npy", X)
    return folder / "X.npy"


@pytest.mark.parametrize("kind", KINDS)
def test_rows_may_come_as_fit_takes_them(kind, islands, tmp_path):
    X, y = islands
    assert sorted(y[rows_of(suggest(KINDS[kind](X, tmp_path), 3, random_state=0))]) == [0, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_of_different_units_count_alike(kind, rng, tmp_path):
    y = np.repeat([0, 1], 100)
    X = np.column_stack([y + 0.01 * rng.normal(size=200), 1e6 * rng.normal(size=200)])
    assert sorted(y[rows_of(suggest(KINDS[kind](X, tmp_path), 2, random_state=0))]) == [0, 1]


@pytest.mark.parametrize("kind", ["memory map", "file", "blocks"])
def test_rows_outside_memory_are_suggested_as_those_inside(kind, rng, tmp_path):
    X = rng.normal(size=(600, 2)) * [1, 1e12]  # in a unit of their own, and on one scale
    found = suggest(KINDS[kind](X, tmp_path), 20, random_state=0)
    assert found == suggest(X, 20, random_state=0)


def test_excluded_rows_count_as_seen(islands):
    X, y = islands
    found = rows_of(suggest(X, 2, exclude=[3, 40], random_state=0))
    assert y[found[0]] == 2  # the island of which nothing has been seen
    assert not {3, 40} & set(found)


def test_no_more_rows_come_than_there_are(blobs):
    found = rows_of(suggest(blobs[0], 100, exclude=range(0, 60, 2), random_state=0))
    assert sorted(found) == list(range(1, 60, 2))


@pytest.mark.parametrize("X", [[[0.0], [1.0]], [[1.0, 1.0]] * 6, [[0.0], [0.0], [5.0]]], ids=["two", "equal", "three"])
def test_tiny_data_is_no_problem(X):
    found = rows_of(suggest(X, 10, random_state=0))
    assert sorted(found) == sorted(set(found))
    assert 1 <= len(found) <= len(X)


# With labels --------------------------------------------------------------------------------------------------------


def test_labelled_and_excluded_rows_never_come(Model, blobs, few):
    model = Model(random_state=0).fit(blobs[0], few)
    excluded = np.arange(4, 14)
    found = rows_of(suggest(model, 60, exclude=excluded))
    labelled = np.flatnonzero(few >= 0)
    assert sorted(found) == sorted(set(range(60)) - set(labelled) - set(excluded))


def test_a_group_that_no_label_reaches_comes_first(GraphModel, islands):
    few = np.full(90, -1)
    few[[0, 1, 30, 31]] = [0, 0, 1, 1]
    model = GraphModel(n_neighbors=5, random_state=0).fit(islands[0], few)
    first, second, *_ = suggest(model, 5)
    assert islands[1][first.row] == 2
    assert "no label reaches it" in first.reason
    assert first.covers <= 30
    assert islands[1][second.row] != 2 or second.covers < first.covers


def test_a_batch_spreads_over_the_data(GraphModel, islands):
    """The rows of one batch are no neighbours of one another."""
    few = np.full(90, -1)
    few[[0, 30]] = [0, 1]
    model = GraphModel(n_neighbors=5, random_state=0).fit(islands[0], few)
    assert set(islands[1][rows_of(suggest(model, 4))]) == {0, 1, 2}


def test_undecided_rows_name_the_classes_between_which_they_lie(rng):
    """Two clouds with a bridge between them: the bridge is asked about."""
    left, right = rng.normal(size=(60, 2)), rng.normal(loc=[12, 0], size=(60, 2))
    bridge = np.column_stack([np.linspace(2, 10, 40), np.zeros(40)])
    few = np.full(160, "", dtype=object)
    few[:5] = "left"
    few[60:65] = "right"
    found = suggest(GreenClassifier(n_neighbors=6).fit(np.vstack([left, right, bridge]), few), 3)
    assert any(one.row >= 120 for one in found)
    assert all(set(one.between) == {"left", "right"} for one in found)


def test_the_sketch_is_made_once_for_a_graph(monkeypatch, Model, blobs, few):
    model = Model(random_state=0).fit(blobs[0], few)
    before = suggest(model, 3)
    first = sketch_of(model)
    model.relabel(np.where(np.arange(60) % 20 < 6, blobs[1], -1))
    assert sketch_of(model) is first
    model.relabel(few)
    assert suggest(model, 3) == before


@pytest.mark.slow
def test_a_sketch_goes_with_its_graph(blobs, few):
    from greenlabel.inspection.suggesting import SKETCHES

    gc.collect()
    n_before = len(SKETCHES)
    model = GreenClassifier().fit(blobs[0], few)
    suggest(model)
    assert len(SKETCHES) == n_before + 1
    del model
    gc.collect()
    assert len(SKETCHES) == n_before


def test_rows_stand_for_those_that_they_are_closest_to(islands):
    few = np.full(90, -1)
    few[[0, 30]] = [0, 1]
    look = sketch_of(AnchoredGreenClassifier(random_state=0).fit(islands[0], few))
    counts = stands_for(look, np.array([0, 30]), np.array([60, 61]))
    assert sum(counts) == 30
    assert stands_for(look, np.array([0]), np.array([40, 70])) == [30, 30]


def slow_correlations(look):
    """K (n, n) of rows."""
    G = look.Z @ look.kernel.H @ look.Z.T.toarray()
    return G / np.sqrt(np.outer(np.diag(G), np.diag(G)))


def slow_counts(look, labelled, rows):
    """Row by row: the nearest of ``rows``, where no labelled one is as near."""
    K, counts = slow_correlations(look), np.zeros(len(rows), int)
    for i in range(len(K)):
        if K[i, rows].max() > K[i, labelled].max(initial=0) + 1e-12:
            counts[K[i, rows].argmax()] += 1
    return [max(1, count) for count in counts.tolist()]


def test_rows_are_counted_one_by_one(rng):
    X = rng.normal(size=(300, 3))
    look = sketch_of(GreenClassifier().fit(X, np.where(np.arange(300) < 2, np.arange(300), -1)))
    for n_labels in (2, 20):
        labelled, rows = np.split(rng.permutation(300)[: n_labels + 7], [n_labels])
        assert stands_for(look, labelled, rows) == slow_counts(look, labelled, rows)


@pytest.mark.parametrize("Model", [None, GreenClassifier, AnchoredGreenClassifier, BlendedClassifier])
def test_equal_rows_stand_for_each_other(Model, rng):
    sizes = rng.integers(2, 30, 12)
    node = np.repeat(np.arange(12), sizes)
    X, few = rng.normal(size=(12, 4))[node], np.full(sizes.sum(), -1)
    few[[0, -1]] = [0, 1]
    found = suggest(X, 12) if Model is None else suggest(Model(random_state=0).fit(X, few), 10)
    assert [one.covers for one in found] == sizes[node[rows_of(found)]].tolist()


def test_many_rows_are_counted_by_their_anchors(islands, monkeypatch):
    monkeypatch.setattr(asking, "MAX_COMPARED", 0)
    assert [one.covers for one in suggest(islands[0], 3, random_state=0)] == [30, 30, 30]


def test_only_rows_that_are_far_from_the_labels_are_said_to_be(rng):
    X = np.concatenate([rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + 4])
    few = np.where(np.arange(120) % 20 == 0, np.arange(120) // 60, -1)
    model = GreenClassifier().fit(X, few)
    K, far = slow_correlations(sketch_of(model)), []
    for one in suggest(model, 120):
        if "probably" in one.reason:
            far.append(K[one.row, few >= 0].max() < NEAR)
            assert ("far from the labels" in one.reason) == far[-1]
    assert {False, True} == set(far)


def test_a_given_graph_has_suggestions(similarity):
    S, y = similarity
    found = rows_of(suggest(GreenClassifier(graph="precomputed").fit(S, y), 8))
    assert len(set(found)) == 8
    assert not set(found) & set(np.flatnonzero(y >= 0))


@pytest.mark.parametrize("Kind", [None, GreenClassifier, BlendedClassifier])
def test_equal_rows_are_suggested_once_before_others(Kind, blobs, few):
    X, y = np.repeat(blobs[0], 4, axis=0), np.where(np.arange(240) % 4 == 0, np.repeat(few, 4), -1)
    found = rows_of(suggest(X if Kind is None else Kind(random_state=0).fit(X, y), 50, random_state=0))
    n_others = 50 if Kind is None else 48  # twelve of the sixty have a label
    assert len({row // 4 for row in found[:n_others]}) == n_others
    assert len(set(found)) == 50


@pytest.fixture
def survey():
    """2,000 rows of 23 different ones, the number of each, and labels on one row of each of the four most frequent."""
    rng = np.random.default_rng(1)
    answers = np.array([[a, b, c] for a in range(3) for b in range(3) for c in range(3)], float)
    drawn = rng.choice(27, 2000, p=rng.dirichlet(np.full(27, 0.3)))
    y = np.full(2000, -1)
    for place, number in enumerate(np.argsort(-np.bincount(drawn, minlength=27))[:4]):
        y[np.flatnonzero(drawn == number)[0]] = place % 2
    return answers[drawn], drawn, y


@pytest.mark.parametrize("kind", ["array", "memory map", "file", "blocks"])
def test_each_different_row_of_few_comes_once_wherever_they_are(kind, survey, tmp_path):
    X, number, _ = survey
    given = X if kind == "array" else KINDS[kind](X, tmp_path)
    found = number[rows_of(suggest(given, len(np.unique(number)), random_state=0))]
    assert sorted(found) == np.unique(number).tolist()


def test_no_copy_of_a_label_comes_while_others_are_left(Model, survey):
    X, number, y = survey
    found = number[rows_of(suggest(Model(random_state=0).fit(X, y), len(np.unique(number)) - 4, random_state=0))]
    assert sorted([*found, *number[y >= 0]]) == np.unique(number).tolist()


def test_suggestions_stand_for_no_more_rows_than_differ_from_the_labels(Model, survey):
    X, number, y = survey
    found = suggest(Model(random_state=0).fit(X, y), 19, random_state=0)
    others = (~np.isin(number, number[y >= 0])).sum()
    assert others / 2 < sum(one.covers for one in found) <= others + 19  # each is rounded, and stands for itself


def test_a_blend_of_ordinary_models_has_suggestions(blobs, few):
    from sklearn.naive_bayes import GaussianNB

    model = BlendedClassifier([("bayes", GaussianNB())], random_state=0).fit(blobs[0], few)
    assert len(suggest(model, 5)) == 5


def test_suggestions_print_as_a_table(blobs, few):
    lines = str(suggest(GreenClassifier().fit(blobs[0], few), 2)).splitlines()
    assert lines[0].split() == ["row", "covers", "between", "reason"]
    assert len(lines) == 3


def test_two_well_chosen_labels_per_class_are_worth_many_at_random():
    X, y = load_digits(return_X_y=True)
    few = np.full(len(y), -1)
    rows = rows_of(suggest(X, 20, random_state=0))
    few[rows] = y[rows]
    chosen = (GreenClassifier().fit(X, few).transduction_ == y)[few < 0].mean()
    at_random = np.random.default_rng(0).permutation(len(y))[:20]
    few = np.full(len(y), -1)
    few[at_random] = y[at_random]
    assert chosen > (GreenClassifier().fit(X, few).transduction_ == y)[few < 0].mean() + 0.08


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n=0 is too small"),
        ({"n": 2.5}, "n=2.5 is not a whole number"),
        ({"exclude": [60]}, "exclude names row 60"),
        ({"exclude": ["a"]}, "whole row numbers"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(arguments, message, blobs, few):
    for asked in (blobs[0], GreenClassifier().fit(blobs[0], few)):
        with pytest.raises(ValueError, match=message):
            suggest(asked, **arguments)


def test_models_without_rows_are_refused(blobs, few):
    with pytest.raises(ParameterError, match="a model for new rows does not keep"):
        suggest(GreenClassifier().fit(blobs[0], few).for_prediction())


# What a new user found ----------------------------------------------------------------------------------------------


def test_the_likeliest_class_is_the_one_that_the_model_predicts(monkeypatch):
    X, y = load_digits(return_X_y=True)
    few = np.where(np.random.default_rng(0).random(len(y)) < 0.03, y, -1)
    model = AnchoredGreenClassifier(600, random_state=0).fit(X, few)
    exact = suggest(model, 40)
    monkeypatch.setattr("greenlabel.inspection.suggesting.MAX_ANCHORS", 500)
    for found in (exact, suggest(model, 40)):
        assert [one.between[0] for one in found] == model.transduction_[rows_of(found)].tolist()


def test_where_model_and_sketch_disagree_a_row_is_undecided():
    p = np.array([[0.7, 0.2, 0.1], [0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    F = np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    expected = [[0.7, 0.2, 0.1], [0.1, 0.45, 0.45], [0.1, 0.2, 0.7]]
    dealt = in_order_of(p, F)
    np.testing.assert_allclose(dealt, expected)
    assert dealt[1].argmax() == 2  # the class that the model favours is named first


def test_equal_probabilities_are_dealt_out_in_the_order_of_the_scores():
    dealt = in_order_of(np.full((1, 4), 0.25), np.array([[1.0, 2.0, 3.0, 4.0]]))
    assert between(dealt[0], np.arange(4)) == (3, 2)
    np.testing.assert_allclose(dealt, 0.25)


@pytest.fixture
def ring_and_islands():
    """A ring of 4,000 rows with two labels, and twenty islands of 40 rows that no random anchor needs to hit."""
    n = 4000
    ring = sp.coo_array((np.ones(n), (np.arange(n), np.roll(np.arange(n), -1))), shape=(n, n))
    S = sp.block_diag([ring + ring.T] + [np.ones((40, 40))] * 20, format="csr")
    few = np.full(S.shape[0], -1)
    few[[0, n // 2]] = [0, 1]
    return S, few, np.r_[np.full(n, -1), np.repeat(np.arange(20), 40)]


@pytest.mark.filterwarnings("ignore:.*reached by no label")
def test_every_island_of_a_given_graph_is_asked_for(ring_and_islands, monkeypatch):
    S, few, island = ring_and_islands
    monkeypatch.setattr("greenlabel.inspection.suggesting.graph_sketch", partial(graph_sketch, max_anchors=30))
    found = suggest(GreenClassifier(graph="precomputed").fit(S, few), 60)
    assert set(island[rows_of(found)]) >= set(range(20))
    assert all(one.covers <= 40 for one in found if island[one.row] >= 0)


def test_a_sketch_of_a_graph_joins_no_components(ring_and_islands):
    S, few, island = ring_and_islands
    model = GreenClassifier(graph="precomputed", solver="cg").fit(sp.csr_array(S), np.where(island < 0, few, island))
    component = model.graph_.component
    for max_anchors in (7, 30, 200):
        Z = graph_sketch(model.operator_, component, np.random.default_rng(0), max_anchors)
        np.testing.assert_allclose(np.asarray(Z.sum(axis=1)).ravel(), 1)
        of_anchor = [np.unique(component[rows]) for rows in np.split(Z.tocsc().indices, Z.tocsc().indptr[1:-1])]
        assert all(len(found) <= 1 for found in of_anchor)


def test_the_smallest_of_too_many_pieces_are_seen_as_one():
    component = np.repeat([5, 2, 9, 7], [1, 4, 3, 2])
    assert_array_equal(whole_pieces(component, 10), np.repeat([3, 0, 1, 2], [1, 4, 3, 2]))
    assert_array_equal(whole_pieces(component, 2), np.repeat([1, 0, 1, 1], [1, 4, 3, 2]))


@pytest.mark.parametrize("Model", [GreenClassifier, BlendedClassifier])
@pytest.mark.filterwarnings("ignore")
def test_an_excluded_copy_of_a_row_makes_room_for_the_next(Model):
    X = np.vstack([[[0, 0], [0.1, 0], [0, 0.1], [5, 5], [5.1, 5], [5, 5.1]], np.repeat([[20.0, 20.0]], 60, axis=0)])
    model = Model(random_state=0).fit(X, [0, 0, -1, 1, 1, -1] + [-1] * 60)
    copies = [[row for row in rows_of(suggest(model, 3, exclude=out)) if row >= 6] for out in ([], [6], [7], [6, 7])]
    assert copies == [[6], [7], [6], [8]]


@pytest.mark.parametrize("thing", [None, GreenClassifier, make_pipeline(GreenClassifier()), LogisticRegression()])
def test_what_is_a_model_but_not_ours_is_refused_as_one(thing):
    with pytest.raises(ParameterError, match="suggest takes a fitted greenlabel classifier, got"):
        suggest(thing)


def test_a_frame_may_have_a_column_named_predict(islands):
    frame = pd.DataFrame(islands[0], columns=["predict", "fit"])
    assert len(suggest(frame, 3, random_state=0)) == 3


@pytest.mark.parametrize("exclude", [None, {0, 1}, iter([1, 0]), [0, 1]])
def test_rows_to_exclude_may_come_in_any_collection(exclude, islands):
    seen = () if exclude is None else [0, 1]
    assert suggest(islands[0], 4, exclude=exclude, random_state=0) == suggest(
        islands[0], 4, exclude=seen, random_state=0
    )


def test_a_mask_is_told_what_it_should_be(islands):
    with pytest.raises(ParameterError, match=r"exclude is a mask of shape \(90,\); give row numbers: numpy.flat"):
        suggest(islands[0], exclude=np.ones(90, bool))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_rows_warn_of_nothing_that_nobody_gave(n, rng):
    assert sorted(rows_of(suggest(rng.normal(size=(n, 2)), 9, random_state=0))) == list(range(n))


def test_some_of_the_suggestions_print_as_all_of_them_do(blobs):
    found = suggest(blobs[0], 5, random_state=0)
    assert str(found[:2]) == "\n".join(str(found).splitlines()[:3])
    assert found[:2] == list(found)[:2]
    assert found[-1] is list(found)[-1]


@pytest.mark.parametrize("n_times", [1, 5, 6, 7])
def test_a_row_is_excluded_as_often_as_anybody_says(n_times):
    X = [[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]]
    model = GreenClassifier(n_neighbors=1).fit(X, [0, -1, -1, 1, -1, -1])
    assert rows_of(suggest(model, 9, exclude=[1] * n_times)) == [2, 4, 5]


def test_a_random_state_draws_its_own_sketch(blobs, few):
    model = GreenClassifier().fit(blobs[0], few)
    numbered = sketch_of(model, 3)
    assert sketch_of(model, np.int64(3)) is numbered
    state = np.random.RandomState(3)
    assert sketch_of(model, state) is not sketch_of(model, state)


def test_reasons_tell_long_names_of_classes_apart():
    names = np.array([f"International Business Machines {end}" for end in ("Ltd.", "\x1b[1mGmbH")], dtype=object)
    first, second = reason(1, np.array([0.6, 0.4]), True, False, names).partition("?")[0].split(" or ")
    assert (first[:13], first[-4:], second[:13], second[-4:]) == ("International", "Ltd.", "International", "GmbH")
    assert max(len(first), len(second)) <= 30
    assert "\x1b" not in second


@pytest.mark.parametrize("kind", ["array", "frame", "sparse", "blocks", "list"])
def test_one_row_alone_is_refused_in_words_of_suggest(kind, tmp_path):
    X = np.ones((1, 2))
    given = KINDS[kind](X, tmp_path) if kind in KINDS else X.tolist() if kind == "list" else X
    with pytest.raises(DataError, match="suggest chooses among rows and needs at least 2, got 1; give all rows"):
        suggest(given)


def test_what_was_asked_of_an_expert_changes_nothing_for_its_blend(rng):
    """They stand on one graph, but a blend looks at its rows and the expert at its anchors."""
    X = np.concatenate([rng.normal(size=(100, 3)), rng.normal(size=(100, 3)) + 3])
    few = np.full(200, -1)
    few[[0, 1, 199, 150]] = [0, 0, 1, 1]
    experts = [("graph", AnchoredGreenClassifier(20, random_state=0))]
    models = [BlendedClassifier(experts=experts, random_state=0).fit(X, few) for _ in range(2)]
    of_expert = rows_of(suggest(models[0].experts_["graph"], 5))
    assert rows_of(suggest(models[0], 5)) == rows_of(suggest(models[1], 5))
    assert rows_of(suggest(models[1].experts_["graph"], 5)) == of_expert


def test_unreached_rows_lie_between_the_most_frequent_classes(rng):
    X = rng.normal(size=(2600, 3))
    X[1300:, 0] += 500
    X[-100:, 1] += 900
    few = np.full(2600, -1)
    few[:5], few[1300:1320] = 0, 1
    with pytest.warns(UserWarning, match="reached by no label"):
        model = AnchoredGreenClassifier(2100, random_state=0).fit(X, few)
    unreached = [one for one in suggest(model, 5) if not model.reached_[one.row]]
    assert unreached
    assert {one.between for one in unreached} == {(1, 0)}


def test_classes_may_be_dates(blobs):
    X, y = blobs
    days = np.array(["2020-01-01", "2021-01-01"], "datetime64[ns]")
    few = np.where(np.arange(len(y)) % 7 == 0, days[np.arange(len(y)) % 2], np.datetime64("NaT"))
    model = GreenClassifier().fit(X, few)
    named = {name for one in suggest(model, 5) for name in one.between}
    named |= {one.label for best in explain(model, [3, 4]).top() for one in best}
    named |= {name for one in suspects(model) for name in (one.given, one.suggested)}
    assert named == set(days)


@pytest.mark.parametrize("rows", [[[1, 2], [3]], {1, "a"}])
def test_what_is_no_row_number_is_refused_in_a_sentence(blobs, rows):
    model = GreenClassifier().fit(*blobs)
    for ask in (partial(explain, model, rows), partial(suggest, model, exclude=rows)):
        with pytest.raises(ParameterError, match="give whole row numbers"):
            ask()


def test_many_labels_are_looked_at_some_at_a_time(rng, monkeypatch):
    X = rng.normal(size=(200, 3))
    model = GreenClassifier().fit(X, np.where(np.arange(200) < 60, np.arange(200) % 2, -1))
    at_once = suggest(model, 8)
    monkeypatch.setattr(coverage, "LABELS_AT_ONCE", 7)
    assert suggest(model, 8) == at_once
