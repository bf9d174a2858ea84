"""The published numbers, the marking rule, and the page."""

import re
from pathlib import Path

import pytest

from greenlabel.paper import published
from greenlabel.paper.items import ITEMS
from greenlabel.paper.published import Number, number
from greenlabel.paper.run import available
from greenlabel.paper.sources import GREY_LEVELS
from greenlabel.paper.store import Trial
from greenlabel.paper.tables import (
    ABSENT,
    AnchorPoint,
    Comparison,
    Measured,
    compare,
    comparison_table,
    dataset_table,
    exponent,
    is_apart,
    measure,
    time_table,
)

SEEDS = range(2)


@pytest.mark.parametrize(
    ("table", "data", "column", "printed"),
    [
        (published.ACCURACY, "Balance", "LLGC", "65.78±3.61"),
        (published.ACCURACY, "USPS", "HF", "89.14±1.07"),
        (published.ACCURACY, "PhishingWeb", "GF", "65.22±6.13"),
        (published.ACCURACY, "PhishingWeb", "GF(G)", "64.98±6.05"),
        (published.ACCURACY, "Swarm", "GF", "OM"),
        (published.ACCURACY, "Swarm", "GF(A)", "96.58±0.89"),
        (published.F1, "CsMap", "LLGC", "0.648"),
        (published.F1, "USPS", "GF(A)", "0.8878"),
        (published.TIME, "CsMap", "LLGC", "273.6"),
        (published.TIME, "USPS", "GF", "140.86"),
        (published.TIME, "PhishingWeb", "GF(G)", "11.7"),
        (published.MARGIN, "Balance", "LM_l GF(G)", "13.2357"),
        (published.MARGIN, "PhishingWeb", "LM_u LLGC", "0.001"),
        (published.MARGIN, "Swarm", "LM_l GF(G)", "0.208"),
        (published.LARGE_ACCURACY, "MNIST", "PolySVM", "57.97±3.00"),
        (published.LARGE_ACCURACY, "EMNIST", "GF(A)", "50.25±1.66"),
        (published.LARGE_F1, "SensIT", "RbfSVM", "0.6894"),
        (published.DATASETS, "CsMap", "rows", "10,846"),
        (published.DATASETS, "EMNIST", "anchors", "2,048"),
    ],
)
def test_published_numbers_are_those_of_the_paper(table, data, column, printed):
    assert table[data][column] == printed


def test_every_table_speaks_of_all_its_data_sets_and_methods():
    for table in (published.ACCURACY, published.F1, published.TIME):
        assert tuple(table) == published.SMALL
        assert all(tuple(row) == published.GRAPH_METHODS for row in table.values())
    for table in (published.LARGE_ACCURACY, published.LARGE_F1):
        assert tuple(table) == published.LARGE
        assert all(tuple(row) == published.LARGE_METHODS for row in table.values())
    assert tuple(published.MARGIN) == published.SMALL
    assert tuple(published.DATASETS) == published.SMALL + published.LARGE


def test_cells_are_read():
    assert number("65.78±3.61") == Number(65.78, 3.61)
    assert number("10,846") == Number(10846, None)
    assert number("OM") is None


@pytest.mark.parametrize(
    ("mean", "deviation", "theirs", "apart"),
    [
        (16.9, 4.0, 3.0, False),  # pooled sqrt((9 + 16) / 2) = 3.54, twice that 7.07
        (17.1, 4.0, 3.0, True),
        (2.9, 4.0, 3.0, True),
        (17.9, 4.0, None, False),  # no deviation printed: the measured one stands for both
        (18.1, 4.0, None, True),
    ],
)
def test_a_difference_of_more_than_twice_the_pooled_deviation_is_marked(mean, deviation, theirs, apart):
    assert is_apart(Number(10, theirs), Measured(mean, deviation, 5)) is apart


def test_one_trial_has_no_deviation_and_so_no_mark():
    assert not Comparison("USPS", "HF", "89.14±1.07", Measured(10.0, 0.0, 1)).exceeds


def results(**accuracy):
    return {
        Trial("USPS", method, 10, seed): {"accuracy": value + seed, "f1": 0.5, "seconds": value}
        for method, value in accuracy.items()
        for seed in SEEDS
    }


def test_means_and_sample_deviations():
    measured = measure(results(HF=80.0), SEEDS, "accuracy", "USPS", "HF")
    assert measured == Measured(80.5, pytest.approx(0.5**0.5), 2)
    assert measure(results(HF=80.0), SEEDS, "accuracy", "USPS", "GF") is None


def test_a_table_has_published_measured_difference_and_says_where_data_is_absent():
    table = comparison_table(compare(results(HF=80.0, GF=90.0), SEEDS, "accuracy", published.ACCURACY), 2)
    start = next(i for i, row in enumerate(table.rows) if row[0] == "USPS")
    names, measured, difference = table.rows[start : start + 3]
    assert names == ["USPS", "published", *published.ACCURACY["USPS"].values()]
    assert measured == ["", "measured", "", "80.50±0.71", "90.50±0.71", "", ""]
    assert difference == ["", "difference", "", "-8.64 ≠", "-1.11", "", ""]
    assert [row[0] for row in table.rows if row[0]] == [*published.SMALL[:3], GREY_LEVELS, *published.SMALL[3:]]
    assert table.rows[-1][2] == ABSENT


def test_a_method_that_did_not_fit_in_memory_is_om():
    refused = {Trial("USPS", "GF", 10, 0): {"refused": 1.0}}
    table = comparison_table(compare(refused, range(1), "accuracy", published.ACCURACY), 2)
    assert ["", "measured", "", "", "OM", "", ""] in table.rows


def test_times_have_no_difference():
    rows = time_table(results(HF=80.0), SEEDS).rows
    assert {row[1] for row in rows} == {"published", "measured"}
    assert ["", "measured", "", "80.00", "", "", ""] in rows


def test_the_exponent_of_time_is_that_of_a_power():
    points = [AnchorPoint(m, Measured(0, 0, 1), Measured(3e-9 * m**2.0, 0, 1)) for m in (256, 512, 1024, 4096)]
    assert exponent(points) == pytest.approx(2)
    assert exponent(points[:1]) is None


def test_data_sets_at_hand_and_their_differences(data_folder):
    rows = dataset_table(available(["CsMap", "Balance"], data_folder)).rows
    start = next(i for i, row in enumerate(rows) if row[0] == "CsMap")
    if rows[start + 1][2] != ABSENT:
        assert rows[start + 1][2:5] == ["10,845", "6", "28"]
        assert rows[start + 1][-1] == "rows and dimensions differ; scored on its 300 test rows"


def ignored_by_git():
    """What the command writes there and the repository does not keep."""
    folder = Path(__file__).parents[1] / "docs" / "paper"
    patterns = (folder / ".gitignore").read_text().split()
    return {".gitignore", *(path.name for pattern in patterns for path in folder.glob(pattern))}


def test_the_committed_page_is_complete():
    folder = Path(__file__).parents[1] / "docs" / "paper"
    text = (folder / "page.md").read_text(encoding="utf-8")
    assert all(f"`{item}`" in text for item in ITEMS)
    for picture in re.findall(r"\]\((\S+\.png)\)", text):
        assert (folder / picture).exists()
    names = {path.suffix for path in folder.iterdir() if path.name not in ignored_by_git()}
    assert names == {".md", ".png", ".jsonl"}  # the command makes all else of the trials
