"""What the benchmarks say of themselves: parts that add up, by names that exist."""

import re
from pathlib import Path

import numpy as np
import pytest

from greenlabel import AnchoredGreenClassifier, GreenClassifier, suggest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def measures(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import measures

    return measures


@pytest.mark.usefixtures("extras")
def test_the_parts_of_a_fit_add_up_to_everything_and_all_of_them_exist(measures):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 40)).astype(np.float32) + 9 * (np.arange(2000) % 2)[:, None]
    y = np.where(np.arange(2000) < 20, np.arange(2000) % 2, -1)
    model = AnchoredGreenClassifier(128, random_state=0)
    found = measures.shared_out(lambda: measures.fit_all(model, X, y))
    whole = found.pop("everything")
    assert sum(found.values()) == pytest.approx(whole, rel=1e-9)
    assert list(found) == [*measures.PARTS.values(), "other"]
    assert min(found.values()) > 0
    assert found["other"] < whole / 2


def test_the_page_shows_parts_that_add_up():
    section = (FOLDER / "RESULTS.md").read_text().partition("\n## Where the time goes\n")[2].partition("\n## ")[0]
    rows = {name: float(taken) for name, taken in re.findall(r"^\| (.+?) \| ([\d.]+) s \|$", section, re.M)}
    whole = rows.pop("everything")
    assert len(rows) > 5
    assert sum(rows.values()) == pytest.approx(whole, abs=0.005 * (len(rows) + 1))


def test_suggested_rows_are_those_of_suggest_and_depend_on_no_other_label(monkeypatch, islands):
    """The benchmark asks one by one before two classes are seen, and the classes of rows not asked for play no part."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import query_rules

    X, y = islands
    rows = query_rules.suggested(query_rules.Task(X, y), 12)
    assert len(set(rows)) == 12
    assert rows[0] == suggest(X, 1, random_state=0)[0].row
    before = np.full(len(y), -1)
    before[rows[:11]] = y[rows[:11]]
    assert suggest(GreenClassifier(random_state=0).fit(X, before), 1)[0].row == rows[11]
    others = np.setdiff1d(np.arange(len(y)), rows)
    shuffled = y.copy()
    shuffled[others] = np.random.default_rng(0).permutation(y[others])
    assert query_rules.suggested(query_rules.Task(X, shuffled), 12) == rows


@pytest.mark.usefixtures("extras")
def test_the_page_of_queries_is_that_of_its_figures(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import queries
    import query_page

    kept = queries.for_page()
    page = (FOLDER / "queries.md").read_text()
    tables = (
        query_page.bars,
        query_page.curves,
        query_page.by_start,
        query_page.by_sample,
        query_page.single_runs,
        query_page.against_peers,
    )
    for table in tables:
        assert table(kept) in page
