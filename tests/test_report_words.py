"""Numbers and names as people read them."""

import pytest

from greenlabel.tables.report.charts import round_step, short_count
from greenlabel.tables.report.words import aligned, cell, duration, listed, name, percent, width


@pytest.mark.parametrize(
    ("share", "said"),
    [(0, "0 %"), (0.0004, "< 0.1 %"), (0.934, "93.4 %"), (0.99999, "> 99.9 %"), (1, "100 %"), (0.9989, "99.9 %")],
)
def test_percent_does_not_round_to_nothing_or_everything(share, said):
    assert percent(share).replace("\u00a0", " ") == said


def test_durations_counts_and_lists_read_well():
    said = [duration(s).replace("\u00a0", " ") for s in (0, 0.0123, 0.99951, 2.345, 59.96, 3723)]
    assert said == ["< 1 ms", "12 ms", "1.0 s", "2.3 s", "1 min 0 s", "62 min 3 s"]
    assert [short_count(k) for k in (0, 9999, 12_345, 999_499, 999_500, 12_000_000)] == [
        "0",
        "9,999",
        "12k",
        "999k",
        "1M",
        "12M",
    ]
    assert [round_step(k) for k in (0, 1, 5, 6, 49, 51, 5131)] == [1, 1, 1, 2, 10, 20, 2000]
    assert listed(list("abcd"), 3) == "a, b, c, d"
    assert listed(list("abcde"), 3) == "a, b, c and 2 more"


def test_names_that_differ_at_the_end_still_differ_when_cut():
    cut = [name(f"Category number {i}", 16) for i in range(10, 60)]
    assert len(set(cut)) == 50
    assert max(map(len, cut)) <= 16
    assert name("e\u0301" * 50, 11).count("\u0301") == name("e\u0301" * 50, 11).count("e")


def test_cells_are_short():
    assert cell(0.123456) == "0.1235"
    assert cell(None) == cell("") == "–"
    assert cell([0.5] * 64) == "[0.5, 0.5, 0.5, …] (64 values)"
    assert len(cell("x y " * 100)) <= 60


def test_columns_line_up_whatever_the_letters():
    lines = aligned([("kind", "given"), ("🦊", "1"), ("日本語", "1,234"), ("e\u0301", "12")])
    assert len({width(line) for line in lines}) == 1
