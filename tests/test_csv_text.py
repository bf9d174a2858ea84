"""CSV in blocks: the same frame as at once, wherever the blocks end."""

import csv
import io

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from greenlabel.errors import DataError, TableError
from greenlabel.tables.io import csv_text
from greenlabel.tables.io.csv_text import CsvBlocks, CsvLayout, first_end, last_end, read_csv

TEXTS = {
    "plain": "a,b\n1,x\n2,y\n3,z\n",
    "no end": "a,b\n1,x\n2,y",
    "quotes": 'a,b\n1,"x, y"\n2,"two\nlines"\n3,"say ""no"""\n4,"\n\n"\n5,z\n',
    "quoted header": '"a\nb",c\n1,x\n2,y\n',
    "Windows": 'a,b\r\n1,x\r\n2,"y\r\nz"\r\n\r\n3,z\r\n',
    "an old Mac": 'a;b\r1;x\r2;"y\rz"\r3;x,y,z\r',
    "blank lines": "a,b\n\n1,x\n\n\n2,y\n\n",
    "one column": "a\n1\n\n3\n\n",
    "semicolons": "a;b\n1;x,y\n;z\n007;\n",
    "mark": "\ufeffa,b\n1,ä\n2,漢字\n",
    "gaps": 'a,b\n,\n"",x\n3,\n',
    "inches": 'a,b\n1,5" disk\n2,"5"" disk"\n3,3.5" or 5"\n4,"two\n"" lines"\n5,z\n',
    "one inch": 'a,b\n5" disk,x\n2,y\n3,"z\nz"\n',
    "quotes in the middle": 'a;b\n1;x"y"z\n2;"abc"def\n3;"abc"d"e\n4;";"\n',
    "quotes and a mark": '\ufeff"a",b\n1,5" disk\n"2",y\n',
}


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 13, 21, 1000])
@pytest.mark.parametrize("kind", TEXTS)
def test_blocks_hold_what_the_whole_holds(tmp_path, kind, size):
    path = tmp_path / "rows.csv"
    path.write_bytes(TEXTS[kind].encode())
    whole = read_csv("rows.csv", path.read_bytes())
    blocks = CsvBlocks(path, block_bytes=size)
    assert blocks.n == whole.height
    frames = list(blocks.map(lambda rows, frame: frame))
    assert pl.concat(frames).equals(whole)
    assert [len(blocks.rows(i)) for i in range(len(blocks))] == [frame.height for frame in frames]
    last = whole.columns[-1]
    assert pl.concat(list(blocks.only([last]).map(lambda rows, frame: frame))).equals(whole.select(last))


@pytest.mark.parametrize("size", [4, 9, 1000])
@pytest.mark.parametrize(
    "text", ["a,b\n1,x\n2,y\n3\n4,z\n", "a,b\n1,x\n2,y\n3,z,z\n", 'a,b\n1,"x\nx"\n2\n', "a,b\n1,x\n2,x\n3,x\n4,x\n5\n"]
)
def test_the_line_of_a_corrupt_row_is_that_of_the_whole(tmp_path, text, size):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(TableError) as whole:
        read_csv(str(path), path.read_bytes())
    with pytest.raises(TableError) as blocks:
        CsvBlocks(path, block_bytes=size)
    assert str(blocks.value) == str(whole.value)


def test_a_file_that_changes_or_lacks_what_it_must_have_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "rows.csv"
    for content, sentence in [
        (b"", "has no header"),
        (b"\xff\xfea", "is UTF-16 text"),
        (b"a,a\n1,2\n", "more than one column named 'a'"),
        (b'a,b\n1,"x\n2,y\n', "a quote is opened and never closed"),
        (b'a,b\r1,"x\nx"\r2,y\r', "rows.csv has lines that end in a carriage return alone beside line feeds"),
        (b"a,b\r1,x\n2,y\n", "carriage return alone .* save it with one kind of line end, or give it more memory"),
    ]:
        path.write_bytes(content)
        with pytest.raises(TableError, match=sentence):
            CsvBlocks(path)
    path.write_text("a,b\n1,x\n2,y\n")
    blocks = CsvBlocks(path)
    path.write_text("a,b\n1,x\n")
    with pytest.raises(DataError, match="was changed while it was read"):
        list(blocks.map(lambda rows, frame: frame))
    monkeypatch.setattr(csv_text, "LONGEST_ROW", 50)
    path.write_text('a,b\n1,"' + 100 * "x\n")
    with pytest.raises(TableError, match="a quote is opened and never closed"):
        CsvBlocks(path, block_bytes=10)


def test_ends_are_found_outside_quotes():
    layout = CsvLayout("rows.csv", ",", False)
    assert first_end(b'"a\nb",c\n1,2\n', layout) == 8
    assert first_end(b"a,b", layout) is None
    assert last_end(b'1,2\n3,"x\ny', layout) == 4
    assert last_end(b'"x\ny', layout) is None
    mac = CsvLayout.of("rows.csv", b"a,b\r1,2\r", None)
    assert first_end(b'"a\rb",c\r1,2\r', mac) == 8
    assert last_end(b'1,2\r3,"x\ry', mac) == 4
    assert last_end(b'5" disk,"x\n",y\n3" disk,"z\n', layout) == 15


def test_a_quote_within_a_cell_is_a_letter():
    rows = read_csv("rows.csv", b'a,b\n1,5" disk\n2,"5"" disk"\n3,"abc"def\n4,x"y"z\n')
    assert rows["b"].to_list() == ['5" disk', '5" disk', "abcdef", 'x"y"z']


@pytest.mark.parametrize("size", [9, 1000])
def test_a_missing_quote_loses_no_rows(tmp_path, size):
    path = tmp_path / "rows.csv"
    path.write_text('a,b\n1,"x\n2,y\n3,"z\n4,z\n')
    for read in (lambda: read_csv("rows.csv", path.read_bytes()), lambda: CsvBlocks(path, block_bytes=size)):
        with pytest.raises(TableError, match="the cell that begins with 'x' has several lines and text behind"):
            read()


@pytest.mark.slow
@given(
    st.lists(st.sampled_from(['"', '""', ",", "\n", "a", '5" x', '"b"', ',"', '",']), max_size=30), st.integers(1, 9)
)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_quotes_mean_what_they_mean_to_others(tmp_path, pieces, size):
    """The rows of Python's own reader, or a refusal; of blocks the same."""
    text = "a,b\n1,2\n" + "".join(pieces) + "\n"
    path = tmp_path / "rows.csv"
    path.write_text(text)
    try:
        whole = read_csv(str(path), text.encode())
    except TableError:
        with pytest.raises(TableError):
            CsvBlocks(path, block_bytes=size)
        return
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    assert whole.rows() == [tuple(field or None for field in row) for row in rows[1:]]
    assert pl.concat(list(CsvBlocks(path, block_bytes=size).map(lambda rows, frame: frame))).equals(whole)
