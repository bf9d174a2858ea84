"""The report page and the summaries for notebooks and the terminal: what they say, whatever a table holds."""

import html
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp

from greenlabel.tables.columns.features import Column
from greenlabel.tables.outcome import Validation
from greenlabel.tables.report.charts import symbol
from greenlabel.tables.report.markup import Markup, element
from greenlabel.tables.report.page import summary_html, write_report
from greenlabel.tables.report.page_tables import crossed_classes
from greenlabel.tables.report.plane import positions, principal_components, sample_for_map
from greenlabel.tables.report.row_tables import telling_columns
from greenlabel.tables.report.summary import summary_text
from helpers.browser import dumped
from helpers.reports import STRANGE, frame_of, outcome_of, page_of
from helpers.sparse import sparse_rows

VOID = {"meta", "link", "br"}


class Reader(HTMLParser):
    """Tags must close in order; text by the section it stands in."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.attributes, self.rows = [], [], [], []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attributes]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    def table(self, *head):
        """Rows below a head that starts with these cells."""
        start = next(i for i, row in enumerate(self.rows) if tuple(row[: len(head)]) == head)
        return self.rows[start + 1 :]


def numbers(text):
    return int(re.match(r"[\d,]+", text)[0].replace(",", ""))


# What it says


def test_labels_in_the_class_table_add_up():
    outcome = outcome_of(["ant", "bee", "cat"])
    rows = Reader(page_of(outcome)).table("kind", "given", "predicted")
    given, filled = (sum(numbers(row[column]) for row in rows[:3]) for column in (1, 2))
    assert [row[0] for row in rows[:4]] == ["ant", "bee", "cat", "all"]
    assert (given, filled) == (12, 48) == (numbers(rows[3][1]), numbers(rows[3][2]))


@pytest.mark.slow
def test_of_many_classes_the_rest_is_counted():
    outcome = outcome_of([f"c{i}" for i in range(100)], n=1000)
    rows = Reader(page_of(outcome)).table("kind", "given", "predicted")
    assert rows[20][0] == "and 80 more classes"
    assert sum(numbers(row[2]) for row in rows[:21]) == numbers(rows[21][2]) == 600
    crossed, names = crossed_classes(outcome)
    assert len(names) == 11
    assert names[-1] == "90 others"
    assert crossed.sum() == outcome.confusion().sum() == 400


def test_crossed_classes_are_those_confused_most():
    held = Validation(np.arange(4), np.array([17, 17, 3, 5]), np.eye(20)[[9, 9, 4, 5]])
    outcome = replace(outcome_of(range(20), n=100), validation=held)
    crossed, names = crossed_classes(outcome)
    assert names[:2] == [9, 17]
    assert crossed[1, 0] == 2
    assert crossed.shape == (11, 11)


def test_confusion_matrix_and_reliability_show_every_hidden_label():
    outcome = outcome_of(["ant", "bee", "cat"])
    reader = Reader(page_of(outcome))
    matrix = reader.table("given ↓predicted →", "ant", "bee", "cat")[:3]
    assert [[0 if said == "·" else int(said) for said in row[1:]] for row in matrix] == outcome.confusion().tolist()
    bins = reader.table("confidence", "labels")[: len(outcome.reliability())]
    assert sum(numbers(row[1]) for row in bins) == len(outcome.validation.rows)


def test_confidence_table_counts_every_row_without_a_given_label():
    outcome = outcome_of(["ant", "bee"])
    outcome.predictions[-3:] = -1
    rows = Reader(page_of(outcome)).table("confidence", "filled in", "left empty")[:10]
    assert sum(numbers(row[1]) for row in rows) == 49
    assert sum(numbers(row[2]) for row in rows) == 3
    assert "Hatched: left empty." in page_of(outcome)


def test_uncertain_and_contradicted_rows_are_shown_with_their_columns():
    outcome = outcome_of(["ant", "bee", "cat"])
    reader, frame = Reader(page_of(outcome)), frame_of(outcome)
    uncertain = reader.table("row", "most likely")[: len(outcome.least_confident())]
    assert [numbers(row[0]) - 1 for row in uncertain] == outcome.least_confident().tolist()
    assert [row[-1] for row in uncertain] == [frame["colour"][int(i)] for i in outcome.least_confident()]
    found = outcome.contradicted()
    said = reader.table("row", "given", "others say")[: len(found)]
    assert [(numbers(row[0]) - 1, row[1], row[2]) for row in said] == [
        (one["row"], one["given"], one["others_say"]) for one in found
    ]


def test_what_columns_became_and_how_it_was_made():
    text = Reader(page_of(outcome_of(["ant", "bee"], warnings=["Mind the <gap>."]))).text
    for said in ("numbers the rows", "red, blue", "a method", "adaptive", "0.00123", "2.5\u00a0s", "Mind the <gap>."):
        assert said in text


def test_telling_columns_name_a_row_before_they_measure_it():
    columns = [Column(f"x{i}", "number", 1) for i in range(9)] + [Column("word", "text", 30), Column("flat", "dropped")]
    columns[-1].why = "is constant"
    outcome = outcome_of(["ant", "bee"], columns=columns)
    frame = pl.DataFrame(
        {**{f"x{i}": [0.5] * 60 for i in range(9)}, "key": range(60), "word": "a", "flat": 1, "kind": "ant"}
    )
    assert telling_columns(outcome, frame) == ["x0", "x1", "x2", "key", "word"]


def test_of_many_columns_the_rare_kinds_are_named_and_the_rest_is_counted():
    columns = [Column(f"x{i}", "number", 1) for i in range(70)]
    columns += [Column("word", "text", 30), Column("flat", "dropped", why="is constant")]
    rows = Reader(page_of(outcome_of(["ant", "bee"], columns=columns))).table("column", "kind")
    assert [row[:3] for row in rows[:2]] == [["flat", "not used", "0"], ["word", "text", "30"]]
    assert rows[20][:3] == ["and 52 more columns", "number", "52"]


# Whatever comes


@pytest.mark.slow
@pytest.mark.parametrize(
    "outcome",
    [
        pytest.param(outcome_of(STRANGE, n=140), id="strange names"),
        pytest.param(outcome_of([1, 2.5, True]), id="classes that are no text"),
        pytest.param(outcome_of(["ant", "bee"], per_class=1), id="nothing held out"),
        pytest.param(outcome_of(["ant", "bee"], n=8), id="every label given"),
        pytest.param(
            outcome_of(["ant", "bee"], predictions=np.where(np.arange(60) < 8, np.arange(60) % 2, -1)), id="all empty"
        ),
        pytest.param(outcome_of(["ant", "bee"], X=np.zeros((60, 1))), id="rows all alike"),
        pytest.param(outcome_of(["ant", "bee"], X=sparse_rows(60, 500, 0.05, np.random.default_rng(0))), id="sparse"),
        pytest.param(outcome_of(["ant", "bee"], graph={}, seconds={}, columns=[]), id="no facts"),
        pytest.param(outcome_of(["ant", "bee"], is_reached=np.arange(60) < 50), id="unreached rows"),
        pytest.param(outcome_of(["ant", "bee"], n=3, per_class=1), id="three rows"),
        pytest.param(outcome_of([f"class {i}" for i in range(120)], n=600), id="many classes"),
    ],
)
def test_page_holds_together(outcome):
    page, fragment, text = page_of(outcome), summary_html(outcome), summary_text(outcome)
    reader = Reader(page)
    assert not {"script", "iframe", "img", "object", "form"} & set(reader.tags)
    assert "nan" not in (reader.text + text).lower().replace("nand", "")
    assert "None" not in reader.text.replace("None:", "") + text
    assert reader.tags.count("caption") == reader.tags.count("table")
    assert sum(key == "aria-label" for _, key, _ in reader.attributes) >= reader.tags.count("table")
    assert Reader(fragment).tags.count("table") == 2
    assert (page + fragment + text).encode()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", page + text)


def test_names_are_escaped_and_whole_ones_are_kept_to_be_pointed_at():
    page = page_of(outcome_of(STRANGE, n=140))
    assert "<script" not in page
    assert html.escape(STRANGE[0]) in page
    assert html.escape(STRANGE[1]) in page
    assert f'title="{"W" * 200}"' in page
    assert f"<bdi>{STRANGE[5]}</bdi>" in page


def test_text_of_a_table_cannot_become_an_attribute_or_an_element():
    assert element("p", '<b a="1">', title='"><i>') == '<p title="&quot;&gt;&lt;i&gt;">&lt;b a=&quot;1&quot;&gt;</p>'
    assert element("p", Markup("<b></b>"), None, hidden=None) == "<p><b></b></p>"


def test_page_loads_nothing():
    reader = Reader(page_of(outcome_of(["ant", "bee"])))
    links = [value for _, key, value in reader.attributes if key in ("href", "src", "action", "data", "srcset")]
    assert all(link.startswith("#") or link == "data:," for link in links)
    page = page_of(outcome_of(["ant", "bee"]))
    assert not re.search(r"https?://|@import|url\((?!#)", page)
    assert any(value.startswith("default-src 'none'") for _, key, value in reader.attributes if key == "content")
    ids = [value for _, key, value in reader.attributes if key == "id"]
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)


@pytest.mark.slow
def test_two_writes_are_equal_and_leave_one_file(tmp_path):
    outcome = outcome_of(["ant", "bee", "cat"], n=200)
    for title in ("one.html", "two.html"):
        write_report(tmp_path / title, replace(outcome), frame_of(outcome), "things")
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.html", "two.html"]


# The map


def test_map_shows_all_given_rows_up_to_half():
    is_given = np.arange(5000) < 300
    rows = sample_for_map(is_given, 1000)
    assert (len(rows), is_given[rows].sum()) == (1000, 300)
    rows = sample_for_map(np.arange(5000) < 4000, 1000)
    assert (len(rows), (rows < 4000).sum()) == (1000, 500)
    rows = sample_for_map(np.arange(5000) < 4900, 1000)
    assert (len(rows), (rows < 4900).sum()) == (1000, 900)
    assert sample_for_map(is_given[:400], 1000).tolist() == list(range(400))
    assert len(set(rows)) == 1000


def test_principal_components_are_those_of_the_centred_rows(rng):
    X = rng.normal(size=(40, 6)) @ np.diag([9, 5, 3, 2, 1, 0.5]) + 100
    U, size, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    for rows in (X, sp.csr_array(X)):
        Q = principal_components(rows)[:, :6]
        assert abs(Q / Q.std(axis=0)[0]) == pytest.approx(abs(U * size) / (U * size).std(axis=0)[0], abs=1e-5)


def test_map_keeps_groups_apart_and_is_the_same_every_time(rng):
    X = np.repeat([[0.0] * 5, [50.0] * 5], 40, axis=0) + rng.normal(size=(80, 5))
    drawn = positions(X)
    assert np.array_equal(drawn, positions(X))
    first, second = drawn[:40], drawn[40:]
    gap = np.linalg.norm(first.mean(axis=0) - second.mean(axis=0))
    assert gap > first.std() + second.std()


def test_every_row_of_the_map_says_which_it_is():
    page = page_of(outcome_of(["ant", "bee"], n=60))
    assert len(re.findall(r"<title>Row \d+: (?:ant|bee)", page)) == 60
    assert page.count("(given)</title>") == 8


def test_classes_on_the_map_differ_in_colour_or_shape():
    assert len({(colour % 8, symbol(colour, False)) for colour in range(12)}) == 12


# The terminal


def test_terminal_summary_says_it_all_in_few_lines():
    outcome = outcome_of([f"class {i}" for i in range(100)], n=1000, warnings=["Beware."])
    outcome.is_reached[-7:] = False
    outcome.predictions[-7:] = -1
    text = summary_text(outcome)
    for said in (
        "1,000 rows: 400 labels given, 593 filled in",
        "and 94 more",
        "90 % interval",
        "hiding 400 given labels",
        "7 rows left without a label",
        "7 rows that no label reaches",
        "size (number); colour (category)",
        "id (numbers the rows)",
        "neighbors 10, weights adaptive, mu 0.00123, symmetric yes",
        "2.5 s (read 12 ms, graph 2.5 s)",
        "Beware.",
    ):
        assert said in text
    assert len(text.splitlines()) <= 22
    assert max(map(len, text.splitlines())) <= 100


def test_terminal_summary_says_when_accuracy_is_unknown():
    text = summary_text(outcome_of(["ant", "bee"], per_class=1))
    assert "accuracy    cannot be estimated" in text
    assert len(text.splitlines()) <= 15


def test_terminal_summary_sends_no_control_characters():
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", summary_text(outcome_of(STRANGE, n=140)))


# A browser


@pytest.mark.browser
@pytest.mark.parametrize("classes", [["ant", "bee", "cat"], [*STRANGE, *(f"class number {i}" for i in range(53))]])
def test_page_fits_screens_of_any_width_without_a_word_on_the_console(tmp_path, classes):
    """Frames of three widths in one page, because a window has a least width; each frame reports into the title."""
    outcome = outcome_of(classes, n=600)
    page = page_of(outcome)
    probe = "<script>parent.postMessage([innerWidth, document.documentElement.scrollWidth], '*')</script>"
    probed = re.sub(r"<meta http-equiv[^>]*>", "", page).replace("</body>", f"{probe}</body>")
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    (tmp_path / "probed.html").write_text(probed, encoding="utf-8")
    frames = "".join(
        f'<iframe src="probed.html" style="width:{w}px;height:900px;border:0"></iframe>' for w in (320, 390, 1280)
    )
    collect = "onmessage = event => document.title += ' ' + event.data.join('/')"
    wrapper = f'<!doctype html><title>widths</title><script>{collect}</script>{frames}<iframe src="page.html"></iframe>'
    (tmp_path / "wrapper.html").write_text(wrapper, encoding="utf-8")
    done = dumped(tmp_path / "wrapper.html")
    widths = re.search("<title>widths ([^<]*)</title>", done.stdout)[1].split()
    assert sorted(int(pair.split("/")[0]) for pair in widths) == [320, 390, 1280]
    assert all(int(used) <= int(offered) for offered, used in (pair.split("/") for pair in widths))
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []


@pytest.mark.parametrize("per_class", [1, 4])
def test_experts_are_said_to_be_tested_only_where_labels_could_be_hidden(per_class):
    unknown = {"weight": 0.5, "accuracy": float("nan"), "log_loss": float("nan")}
    page = page_of(
        outcome_of(["a", "b"], per_class=per_class, experts={"graph": unknown, "trees": unknown, "blend": unknown})
    )
    is_tested = per_class > 1
    assert ("labels that were hidden from it" in page) == is_tested
    assert ("on labels that it had not seen" in page) == is_tested
    assert ("weigh as they do before anything is known" in page) == (not is_tested)
