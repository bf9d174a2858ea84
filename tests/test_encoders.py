"""Columns as numbers, against skrub's TableVectorizer as the slow, obvious one."""

import datetime
import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from greenlabel.tables.columns.dates import date_format
from greenlabel.tables.columns.encoders import CategoryEncoder, DateEncoder, fit_encoder

N = 120
KINDS = {"numeric": "number", "datetime": "date", "low_cardinality": "category", "high_cardinality": "text"}
WORDS = np.array(["red", "fast", "car", "green", "tree", "leaf", "blue", "sea", "Wave", "ÄÖ"])
DAY = datetime.datetime(2020, 1, 1)


def drawn(seed=0):
    rng = np.random.default_rng(seed)
    stamps = [DAY + datetime.timedelta(seconds=int(s)) for s in rng.integers(0, 10**8, N)]
    texts = [" ".join(rng.choice(WORDS, 5)) for _ in range(N)]
    gap = rng.uniform(size=N) < 0.2
    with_gaps = [None if is_gap else value for is_gap, value in zip(gap, rng.choice(["u", "v", "w"], N), strict=True)]
    return {
        "floats": rng.normal(size=N),
        "whole numbers": rng.integers(-(10**9), 10**9, N),
        "numbers with gaps": pl.Series([None if is_gap else 1.5 * i for i, is_gap in enumerate(gap)]),
        "true and false": rng.uniform(size=N) < 0.5,
        "codes": [f"{i:03d}" for i in rng.integers(0, 99, N)],
        "spans": [datetime.timedelta(milliseconds=int(i)) for i in rng.integers(0, 10**9, N)],
        "times": [stamp.time() for stamp in stamps],
        "three values": rng.choice(["u", "v", "w"], N),
        "two values": rng.choice(["yes", "no"], N),
        "one value and gaps": ["x" if is_gap else None for is_gap in gap],
        "values and gaps": with_gaps,
        "signs of gaps": rng.choice(["u", "NA", "v", "?", "  ", "N/A"], N),
        "days": [stamp.date() for stamp in stamps],
        "stamps": stamps,
        "midnights": [datetime.datetime.combine(stamp.date(), datetime.time()) for stamp in stamps],
        "stamps in a zone": pl.Series(stamps).dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo"),
        "days as text": [str(stamp.date()) for stamp in stamps],
        "days first": [f"{stamp:%d/%m/%Y}" for stamp in stamps],
        "months first": [f"{stamp:%m/%d/%Y}" for stamp in stamps],
        "stamps as text": [f"{stamp:%Y-%m-%d %H:%M:%S}" for stamp in stamps],
        "fractions as text": [f"{stamp:%Y-%m-%dT%H:%M:%S}.25" for stamp in stamps],
        "offsets as text": [f"{stamp:%Y-%m-%dT%H:%M:%S}+02:00" for stamp in stamps],
        "days as text with gaps": ["NA" if is_gap else str(s.date()) for s, is_gap in zip(stamps, gap, strict=True)],
        "texts": texts,
        "texts with gaps": [None if is_gap else text for text, is_gap in zip(texts, gap, strict=True)],
        "few letters": rng.choice(["aa", "ab", "ba", "bb", "a", "b", "ac", "ca", "cc", "c", "bc", "cb", "ad"], N),
        "signs alone": rng.choice(["NA", "?"], N),
    }


def by_skrub(old, new, most=12):
    """The kind, and the features of new rows."""
    from skrub import StringEncoder, TableVectorizer

    text = StringEncoder(random_state=0)
    vectorizer = TableVectorizer(cardinality_threshold=most, high_cardinality=text, n_jobs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        vectorizer.fit(pl.DataFrame({"x": old}))
        X = vectorizer.transform(pl.DataFrame({"x": new})).to_numpy().astype(np.float64)
    kind = next((KINDS[kind] for kind, names in vectorizer.kind_to_columns_.items() if "x" in names), "text")
    return kind, X.reshape(len(new), -1)


@pytest.mark.slow
@pytest.mark.parametrize("name", drawn())
def test_features_are_those_of_the_reference(name):
    old, new = pl.Series("x", drawn()[name]), pl.Series("x", drawn(1)[name])
    kind, encoder = fit_encoder(old, 12, 0)
    for rows in (old, new):
        expected_kind, expected = by_skrub(old, rows)
        assert kind == expected_kind
        assert encoder.n_features == expected.shape[1]
        assert_allclose(encoder.encode(rows), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("new", [["u", "pink", None], ["pink"] * 3, [None] * 3])
@pytest.mark.parametrize("old", ["three values", "two values", "values and gaps", "one value and gaps"])
def test_values_never_seen_are_those_of_the_reference(old, new):
    old, new = pl.Series("x", drawn()[old]), pl.Series("x", new, dtype=pl.String)
    assert_array_equal(fit_encoder(old, 12, 0)[1].encode(new), by_skrub(old, new)[1])


def test_a_value_has_a_column_and_of_two_the_second():
    assert CategoryEncoder.fit(pl.Series(["b", "a", "c"])).encode(pl.Series(["c", "a", "z"])).tolist() == [
        [0, 0, 1],
        [1, 0, 0],
        [0, 0, 0],
    ]
    assert CategoryEncoder.fit(pl.Series(["b", "a"])).encode(pl.Series(["b", "a", "z"])).tolist() == [[1], [0], [0]]


def test_dates_of_another_precision_or_zone_are_read_as_those_that_were_learned():
    day = DateEncoder.fit(pl.Series([datetime.date(2020, 1, 2)]), None)
    assert day.encode(pl.Series([datetime.datetime(2020, 1, 2, 13)]))[0, :3].tolist() == [2020, 1, 2]
    tokyo = pl.Series([DAY]).dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo")
    stamp = DateEncoder.fit(tokyo, None)
    assert stamp.encode(pl.Series([DAY]))[0, :4].tolist() == [2020, 1, 1, 9]
    assert DateEncoder.fit(pl.Series([DAY]), None).encode(tokyo)[0, :3].tolist() == [2020, 1, 1]


@pytest.mark.parametrize("words", [["red", "blue"], ["2020-01-01", "soon"], [None, None], []])
def test_words_are_no_dates(words):
    assert date_format(pl.Series(words, dtype=pl.String)) is None
