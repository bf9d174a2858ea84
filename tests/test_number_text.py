"""Numbers and moments as people write them: read where they can mean nothing else, in new rows and blocks alike."""

import datetime
import json

import numpy as np
import polars as pl
import pytest

from greenlabel.errors import TableError
from greenlabel.tables import label_table, load_model, predict_table
from greenlabel.tables.columns.features import TableFeatures
from greenlabel.tables.columns.iso_dates import holds_zones, read_dates
from greenlabel.tables.io.number_text import MARKS, Writing, read_numbers, writing_of
from helpers.command_line import run

WRITTEN = [  # values, how they are written, what they are
    (["12.3%", "4 %", "0"], "1234.5 %", [0.123, 0.04, 0.0]),
    (["12,3 %", "-4 %"], "1234,5 %", [0.123, -0.04]),
    (["1,234", "999"], "1,234.5", [1234, 999]),
    (["1,234", "-12,345,678.5", "n/a"], "1,234.5", [1234, -12345678.5, None]),
    (["0,123", "1,234"], "1234,5", [0.123, 1.234]),
    (["0,5", "12"], "1234,5", [0.5, 12]),
    (["1.234,5", "12"], "1.234,5", [1234.5, 12]),
    (["1.234.567", "999"], "1.234,5", [1234567, 999]),
    (["1'234.50", "12"], "1'234.5", [1234.5, 12]),
    (["1 234", "12"], "1 234.5", [1234, 12]),
    (["€1,234.56", "€5"], "1,234.5 €", [1234.56, 5]),
    (["1 234,56 €", "5 €"], "1 234,5 €", [1234.56, 5]),
    (["1\u202f234,56\u00a0€", "\u22125 €"], "1 234,5 €", [1234.56, -5]),
    (["$-5", "-$6", "($1,234)"], "1,234.5 $", [-5, -6, -1234]),
    (["(1,234)", "5"], "1,234.5", [-1234, 5]),
    (["USD 1,200", "5 USD"], "1,234.5 USD", [1200, 5]),
    (["99 kr", "1.200 kr"], "1.234,5 kr", [99, 1200]),
    (["0.899 €", "1.399 €"], "1234.5 €", [0.899, 1.399]),
    (["10:00:00", "9:30:01.5"], "h:mm:ss", [36000, 34201.5]),
    (["9:30", "-0:15"], "h:mm", [34200, -900]),
]
OTHERS = {
    "dashes": ["12-34-56", "11-22-33"],
    "telephones": ["555 123 456", "555 123 777"],
    "telephones abroad": ["+49 123 456", "+49 123"],
    "versions": ["1.2.3", "1.10.0"],
    "addresses": ["192.168.100.100", "10.100.200.101"],
    "numbers of passports": ["12.345.678", "11.222.333"],
    "several currencies": ["€5", "$5"],
    "some shares": ["12%", "4"],
    "a list": ["(1)", "(2)"],
    "codes": ["007 €", "1 €"],
    "sizes": ["5 kg", "6 kg"],
    "dates": ["2024-01-05", "2024-01-06"],
    "lists of numbers": ["1,2,3", "1"],
    "fractions": ["1/2", "3/4"],
    "words": ["5%", "many"],
    "scores": ["2:1", "0:0"],
}


@pytest.mark.parametrize(("values", "how", "numbers"), WRITTEN, ids=[" ".join(values) for values, _, _ in WRITTEN])
def test_numbers_are_read_as_they_are_written(values, how, numbers):
    writing = writing_of(pl.Series(values))
    assert str(writing) == how
    assert writing.marks in MARKS
    assert read_numbers(pl.Series(values), writing).to_list() == pytest.approx(numbers)
    for value, number in zip(values, numbers, strict=True):  # one by one, as in blocks
        assert read_numbers(pl.Series([value]), writing).to_list() == pytest.approx([number])


@pytest.mark.parametrize("kind", OTHERS)
def test_what_may_be_something_else_stays_text(kind):
    assert writing_of(pl.Series(OTHERS[kind])) is None


@pytest.mark.parametrize(
    ("writing", "unknown"),
    [
        (Writing("1234.5", "%"), ["4", "5 €", "1,5 %"]),
        (Writing("1,234.5"), ["1,5", "12,34", "1.234,5", "0,123", "5%"]),
        (Writing("1,234.5", "€"), ["$5", "5 kr"]),
        (Writing(unit="h:mm:ss"), ["1:30", "10:61:00", "5"]),
    ],
    ids=str,
)
def test_a_value_written_in_another_way_is_a_gap(writing, unknown):
    assert read_numbers(pl.Series(unknown), writing).to_list() == [None] * len(unknown)


def shop(rng, n=120):
    """Two kinds of goods that differ in columns which are numbers only to whoever can read them."""
    kind = rng.integers(0, 2, n)
    price = np.where(kind, rng.uniform(2_000, 90_000, n), rng.uniform(1, 500, n))
    return pl.DataFrame(
        {
            "price": [f"€{p:,.2f}" for p in price],
            "share": [f"{s:.1f}%" for s in rng.uniform(0, 30, n) + 60 * kind],
            "sold": [f"{s:,.0f}" for s in rng.uniform(1, 900, n) + 50_000 * kind],
            "lasts": [f"{h}:{m:02}:{s:02}" for h, m, s in zip(8 * kind, *rng.integers(0, 60, (2, n)), strict=True)],
            "when": [f"202{d % 3}-0{1 + d % 9}-11T{d % 24:02}:00:00{'Z' if d % 2 else '+02:00'}" for d in range(n)],
            "kind": ["b" if k else "a" for k in kind],
        }
    ).with_columns(kind=pl.when(pl.int_range(n) % 6 == 0).then("kind"))


def kinds(result):
    return {column.name: column.kind for column in result.columns}


EXPECTED = {"price": "number", "share": "number", "sold": "number", "lasts": "number", "when": "date"}


def test_a_table_as_people_write_it_is_numbers_and_dates(rng, tmp_path):
    frame = shop(rng)
    filled, result = label_table(frame, "kind", method="green")
    assert kinds(result) == EXPECTED
    assert filled.select("price", "share", "sold", "lasts", "when").equals(frame.drop("kind"))  # as they came
    result.report(tmp_path / "page.html")
    assert "written like 1,234.5 €" in (tmp_path / "page.html").read_text()
    result.save(tmp_path / "shop.green")
    again, facts = predict_table(load_model(tmp_path / "shop.green"), frame.drop("kind"))
    assert facts["values_never_seen"] == {}
    assert (again["kind"] == filled["kind"]).mean() > 0.95
    with pytest.raises(TableError, match="'sold' holds '1,5' in row 1, the model learned numbers"):
        predict_table(result_model(tmp_path), frame.with_columns(sold=pl.lit("1,5")))


def result_model(folder):
    return load_model(folder / "shop.green")


def test_new_rows_and_blocks_are_read_as_the_column_was_learned(rng):
    frame = shop(rng).drop("kind")
    steps = TableFeatures()
    steps.fit_transform(frame, frame.columns)
    whole, unseen = steps.transform(frame)
    assert unseen == {}
    blocks = [steps.transform(frame[start : start + 7])[0] for start in range(0, frame.height, 7)]
    assert np.array_equal(np.vstack(blocks), whole)
    odd = frame.with_columns(
        price=pl.lit("$5"), share=pl.lit("5"), sold=pl.lit("1,5"), lasts=pl.lit("1:30"), when=pl.lit("2024-13-01")
    )
    assert steps.transform(odd.head(3), strict=False)[1] == dict.fromkeys(frame.columns, 3)


def test_the_same_is_learned_from_a_stream(rng, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    frame = shop(rng, 400).with_columns(sold=pl.when(pl.int_range(400) == 399).then(pl.lit("1,5")).otherwise("sold"))
    monkeypatch.setattr("greenlabel.tables.streaming.SAMPLE_ROWS", 50)
    monkeypatch.setattr("greenlabel.tables.streaming.MIN_SAMPLE", 50)
    frame.write_csv("shop.csv")
    assert run("label", "shop.csv", "-t", "kind", "-o", "out.csv", "--memory-limit", "0", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["stream"]["values_never_seen"] == {"sold": 1}
    assert {name: column["kind"] for name, column in facts["columns"].items()} == EXPECTED
    assert pl.read_csv("out.csv", infer_schema=False)["sold"].to_list() == frame["sold"].to_list()


# Moments


def test_moments_of_any_zone_are_read_as_the_same_moment():
    text = pl.Series(
        "when",
        [
            *("2024-01-05T10:00:00Z", "2024-01-05T10:00:00.25z", "2024-01-05T10:00:00.123456789Z"),
            *("2024-01-05T12:00:00+02:00", "2024-01-05 04:30-0530", "2024-01-05T11:00+01", "2024-01-05", None, ""),
        ],
    )
    ten = datetime.datetime(2024, 1, 5, 10)
    assert holds_zones(text)
    assert read_dates(text).to_list() == [
        ten,
        ten.replace(microsecond=250_000),
        ten.replace(microsecond=123_456),
        *[ten] * 3,
        ten.replace(hour=0),
        None,
        None,
    ]


@pytest.mark.parametrize(
    "values", [["2024-01-05"], ["5Z", "2024-01-05T10:00:00Z"], ["2024-13-05T10:00:00Z"], ["A-12"], [None]]
)
def test_what_has_no_zone_or_is_no_date_is_left_to_others(values):
    assert not holds_zones(pl.Series(values, dtype=pl.String))


# Numbers of rows


def dropped(**columns):
    frame = pl.DataFrame(columns).with_columns(size=pl.Series(np.linspace(0, 1, len(next(iter(columns.values()))))))
    steps = TableFeatures()
    steps.fit_transform(frame, frame.columns)
    return {column.name: column.why for column in steps.columns if column.kind == "dropped"}


def test_whole_numbers_that_are_all_different_and_close_together_number_the_rows(rng):
    n = 200
    assert dropped(code=rng.permutation(n)) == {"code": "numbers the rows (all different, and close together)"}
    assert dropped(code=7_000 + rng.permutation(3 * n)[:n]) != {}
    assert dropped(customer_id=rng.choice(10**9, n, replace=False)) == {
        "customer_id": "numbers the rows (all different, and so its name says)"
    }


@pytest.mark.parametrize("name", ["id", "row id", "PassengerId", "order_no", "KundenNr"])
def test_a_name_tells_numbers_of_rows(name, rng):
    assert name in dropped(**{name: rng.choice(10**9, 50, replace=False)})


@pytest.mark.parametrize(
    "values",
    [
        lambda rng: rng.choice(10**7, 200, replace=False),  # cents
        lambda rng: 1_700_000_000 + rng.choice(10**6, 200, replace=False),  # seconds
        lambda rng: np.exp(rng.normal(10, 2, 50)).astype(int),  # inhabitants
        lambda rng: np.array([3, 1, 4, 7, 5]),  # five of anything may be different
    ],
    ids=["cents", "seconds", "inhabitants", "few"],
)
@pytest.mark.parametrize("name", ["paid", "madrid", "ego"])
def test_a_measurement_that_is_all_different_is_kept(name, values, rng):
    assert dropped(**{name: values(rng)}) == {}


def test_numbers_of_rows_are_said_in_the_summary_and_kept_if_asked_for(rng):
    n = 60
    frame = pl.DataFrame(
        {"code": rng.permutation(n), "size": rng.normal(size=n), "kind": ["a", "b", *[None] * (n - 2)]}
    )
    _, result = label_table(frame, "kind", method="green")
    assert "dropped     code (numbers the rows (all different, and close together))" in str(result)
    _, result = label_table(frame, "kind", method="green", features=["code", "size"])
    assert kinds(result) == {"code": "number", "size": "number"}
