"""suggest, explain and suspects of a labelled table, and what the report and the terminal make of them."""

import html
import json
import re
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from greenlabel import explain, label_table, suggest, suspects
from greenlabel.errors import ParameterError
from greenlabel.inspection.suggesting import suggest_without_labels
from greenlabel.tables import suggest_table
from greenlabel.tables.outcome import SUGGESTED
from greenlabel.tables.report.summary import summary_text
from helpers.command_line import run
from helpers.reports import STRANGE, outcome_of, page_of

METHODS = ["auto", "green", "anchored"]
WRONG = 7  # a row of ants that is called a bee


def insects(names=("ant", "bee"), n=90):
    """Two groups of rows, every third one labelled, one of them wrongly."""
    rng = np.random.default_rng(0)
    group = np.arange(n) % 2
    X = 6.0 * group[:, None] + rng.normal(size=(n, 2))
    kinds = [names[g] if i % 3 == 1 else None for i, g in enumerate(group)]
    kinds[WRONG] = names[0]
    return pl.DataFrame({"x": X[:, 0], "y": X[:, 1], "kind": kinds})


@pytest.fixture(scope="module", params=METHODS)
def result(request):
    return label_table(insects(), "kind", method=request.param)[1]


# TableResult


@pytest.mark.slow
def test_suggestions_are_those_of_the_model_with_names_for_codes(result):
    found, plain = result.suggest(6), suggest(result.model, 6)
    assert [one.row for one in found] == [one.row for one in plain]
    assert [one.covers for one in found] == [one.covers for one in plain]
    assert [one.between for one in found] == [tuple(("ant", "bee")[code] for code in one.between) for one in plain]
    assert re.search(r"\b(ant|bee)\b", found[0].reason)
    assert not any(result.is_given[one.row] for one in found)
    with pytest.raises(ParameterError):
        result.suggest(0)


@pytest.mark.slow
def test_an_explanation_names_the_classes(result):
    found, plain = result.explain(4), explain(result.model, 4)
    assert_allclose(found.influence, plain.influence)
    assert found.classes.tolist() == ["ant", "bee"]
    assert found.predicted.tolist() == [result.classes[plain.predicted[0]]]
    assert found.labels.tolist() == [result.classes[result.given[row]] for row in found.labelled]
    assert found.top(1)[0][0].label in ("ant", "bee")


@pytest.mark.slow
def test_suspects_name_the_classes_and_the_wrong_label_comes_first(result):
    found = result.suspects()
    assert (found[0].row, found[0].given, found[0].suggested) == (WRONG, "ant", "bee")
    assert [one.row for one in found] == [one.row for one in suspects(result.model)]


def test_numbers_stay_numbers_as_classes():
    frame = insects().with_columns(kind=pl.col("kind").replace_strict({"ant": 10, "bee": 20}))
    found = label_table(frame, "kind")[1]
    assert set(found.suggest(3)[0].between) == {10, 20}
    assert found.suspects()[0].suggested == 20


def test_labels_that_say_otherwise_are_of_the_class_that_they_say_and_never_the_row_itself(result):
    (found, *_) = result.contradicted()
    (labels, *_) = result.say_otherwise([found])
    assert found["row"] == WRONG
    assert 0 < len(labels) <= 3
    assert {one.label for one in labels} == {"bee"}
    assert WRONG not in {one.row for one in labels}
    whole = result.explain(WRONG)
    support = np.maximum(whole.influence[0], 0) * (whole.labelled != WRONG)
    shares = dict(zip(whole.labelled.tolist(), support / support.sum(), strict=True))
    assert_allclose([one.share for one in labels], [shares[one.row] for one in labels])
    assert_array_equal([one.share for one in labels], sorted((one.share for one in labels), reverse=True))


@pytest.mark.parametrize("method", ["green", "anchored", "harmonic"])
def test_a_label_that_is_contradicted_has_no_share_in_what_says_otherwise(method):
    """Three groups in a row: far from all labels but its own, every other influence on a row may be negative."""
    x = np.r_[np.linspace(0, 1, 150), np.linspace(1, 2, 8), np.linspace(2, 3, 150)]
    kinds = [None] * len(x)
    for row, kind in {5: "a", 305: "a", 240: "b", 250: "b", 260: "b", 280: "b"}.items():
        kinds[row] = kind
    noise = 0.01 * np.random.default_rng(0).normal(size=len(x))
    result = label_table(pl.DataFrame({"x": x, "z": noise, "kind": kinds}), "kind", method=method)[1]
    contradicted = result.contradicted()
    everyone = [{**one, "others_say": kind} for one in contradicted for kind in "ab"]
    found = result.say_otherwise(everyone, max_labels=9)
    for one, of_a, of_b in zip(contradicted, found[::2], found[1::2], strict=True):
        assert one["row"] not in {label.row for label in of_a + of_b}
        assert sum(label.share for label in of_a + of_b) == pytest.approx(1)
    assert contradicted


# Terminal and report


def test_the_summary_names_rows_to_label_next_as_people_count(result):
    first = result.suggest(SUGGESTED)
    text = summary_text(result)
    numbers = [str(one.row + 1) for one in first[:5]]
    assert f"label next  rows {', '.join(numbers[:4])} and {numbers[4]}; row {numbers[0]}: " in text
    said = result.summary()["label_next"]
    assert [one["row"] - 1 for one in said] == [one.row for one in first]
    json.dumps(said)


def table_of(page, key):
    """Cells of the table in a section, row by row."""
    section = re.search(f'<section[^>]*id="{key}".*?</section>', page, re.S)
    lines = re.findall(r"<tr>(.*?)</tr>", section[0], re.S)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.S) for line in lines]
    return [[html.unescape(re.sub(r"<[^>]+>", "", text)).replace("\u00a0", " ") for text in line] for line in cells]


def report_of(result, tmp_path):
    result.report(tmp_path / "r.html")
    return (tmp_path / "r.html").read_text(encoding="utf-8")


def test_the_report_shows_rows_to_label_next_and_keeps_the_least_confident(result, tmp_path):
    page = report_of(result, tmp_path)
    head, *lines = table_of(page, "next")
    assert head[:5] == ["rank", "row", "reason", "covers", "between"]
    assert [(int(line[0]), int(line[1]) - 1, line[2], int(line[3]), line[4]) for line in lines] == [
        (rank, one.row, one.reason, one.covers, " or ".join(one.between))
        for rank, one in enumerate(result.suggest(SUGGESTED), start=1)
    ]
    assert [int(line[0]) - 1 for line in table_of(page, "uncertain")[1:]] == result.least_confident().tolist()
    assert "a good choice to label next" not in page


def test_the_report_shows_which_labels_say_otherwise(result, tmp_path):
    head, first, *_ = table_of(report_of(result, tmp_path), "contradicted")
    assert head[:5] == ["row", "given", "others say", "confidence", "because of"]
    labels = result.say_otherwise(result.contradicted())[0]
    assert first[4] == ", ".join(f"row {one.row + 1} ({one.share:.0%})".replace("%", " %") for one in labels)


@pytest.mark.slow
def test_classes_of_any_text_cannot_become_part_of_the_page(tmp_path):
    names = [text.replace("\ud800", "") for text in STRANGE]
    for pair in pairwise(names):
        result = label_table(insects(pair), "kind", method="green")[1]
        page = report_of(result, tmp_path)
        assert "<script" not in page
        assert not re.search("[\x00-\x08\x1b\u202a-\u202e]", page)
        assert not re.search("[\x00-\x08\x1b\u202a-\u202e]", summary_text(result))
        assert max(len(line[2]) for line in table_of(page, "next")) <= 120


def test_hostile_cells_come_out_of_suggest_as_one_line_of_text(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    insects((STRANGE[0], "\x1b[31mred\nline")).write_csv("t.csv")
    assert run("suggest", "t.csv", "-t", "kind", "-n", "4", "-o", "out.parquet") == 0
    assert "\x1b" not in capsys.readouterr().out
    out = pl.read_parquet("out.parquet")
    assert not any("\n" in text or "\x1b" in text for text in [*out["reason"], *out["between"]])


def test_without_a_model_the_page_is_as_before():
    page = page_of(outcome_of(["ant", "bee", "cat"]))
    assert 'id="next"' not in page
    assert "because of" not in page
    assert "a good choice to label next" in page


@pytest.mark.slow
def test_a_table_in_blocks_keeps_the_least_confident_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    insects().write_csv("t.csv")
    words = ["label", "t.csv", "-t", "kind", "-o", "out.csv", "--report", "r.html", "--json"]
    assert run(*words, "--memory-limit", "0") == 0
    assert "label_next" not in json.loads(capsys.readouterr().out)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert 'id="next"' not in page
    assert 'id="uncertain"' in page
    assert run(*words, "--force") == 0
    assert len(json.loads(capsys.readouterr().out)["label_next"]) == SUGGESTED


def test_rows_without_labels_are_looked_at_on_the_scale_that_was_asked_for(rng):
    X = (rng.normal(size=(300, 4)) * [1, 1, 1, 200]).astype(np.float32)
    frame = pl.DataFrame(X, schema=list("abcd")).with_columns(kind=pl.lit(None, dtype=pl.String))
    found = suggest_table(frame, "kind", 8, scale="none")[0]["row"].to_list()
    assert found == [one.row + 1 for one in suggest_without_labels(X, 8, (), 0, is_scaled=True)]
    assert found != [one.row + 1 for one in suggest(X, 8, random_state=0)]  # which puts the columns on one scale
