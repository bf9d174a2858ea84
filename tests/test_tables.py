"""Files in, frames out, and back: every format, and files that are broken."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
import xlsxwriter
from polars.testing import assert_frame_equal

from greenlabel.errors import TableError
from greenlabel.tables.io.files import (
    WRITERS,
    check_apart,
    check_output,
    left_out,
    nearest_name,
    read_table,
    read_vectors,
    typed,
    write_table,
)

FRAME = pl.DataFrame(
    {
        "code": ["007", "012", "100"],
        "size": [1.5, None, -2.0],
        "count": [1, 2, 3],
        "name": ["a, b", 'say "x"', None],
        "wide": ["ä\nö", "x", "y"],
    }
)


@pytest.mark.parametrize("extension", WRITERS)
def test_every_format_gives_back_what_was_written(tmp_path, extension):
    path = tmp_path / f"table{extension}"
    write_table(path, FRAME)
    assert_frame_equal(typed(read_table(path)), FRAME)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_text_goes_out_as_it_came_in(tmp_path):
    raw = "id,price,when\n007,1.10,2024-01-02\n008,,03/04/24\n"
    (tmp_path / "in.csv").write_text(raw)
    write_table(tmp_path / "out.csv", read_table(tmp_path / "in.csv"))
    assert (tmp_path / "out.csv").read_text() == raw


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_separator_is_read_off_the_header(tmp_path, mark):
    (tmp_path / "a.csv").write_text(f"x{mark}y\n1{mark}2\n")
    assert read_table(tmp_path / "a.csv").to_dict(as_series=False) == {"x": ["1"], "y": ["2"]}


def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_the_table(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfx,y\r\n1,2\r\n")
    assert read_table(tmp_path / "a.csv").to_dict(as_series=False) == {"x": ["1"], "y": ["2"]}


def test_columns_of_numbers_are_numbers_and_signs_for_gaps_are_gaps():
    frame = typed(
        pl.DataFrame({"a": ["1", " 2", "NA"], "b": ["1.5", "?", "2e3"], "c": ["007", "8", "9"], "d": ["x", "1", "2"]})
    )
    assert frame["a"].to_list() == [1, 2, None]
    assert frame["b"].to_list() == [1.5, None, 2000]
    assert frame["c"].dtype == frame["d"].dtype == pl.String


def test_an_empty_line_is_an_empty_cell_where_there_is_one_column(tmp_path):
    (tmp_path / "one.csv").write_text("y\na\n\nb\n")
    (tmp_path / "two.csv").write_text("x,y\n1,a\n\n2,b\n")
    assert read_table(tmp_path / "one.csv")["y"].to_list() == ["a", None, "b"]
    assert read_table(tmp_path / "two.csv")["y"].to_list() == ["a", "b"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", "int64"])
def test_rows_of_an_array_are_vectors(tmp_path, dtype, rng):
    X = rng.integers(0, 200, size=(5, 3)).astype(dtype)
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", X=X, y=np.arange(5), names=np.array(list("abcde")), one=np.array(3))
    assert np.array_equal(np.array(read_table(tmp_path / "x.npy")["vectors"].to_list()), X)
    frame = read_table(tmp_path / "x.npz")
    assert frame.columns == ["X", "y", "names"]
    assert np.array_equal(np.array(frame["X"].to_list()), X)


def test_vectors_are_left_out_of_formats_that_cannot_hold_them(tmp_path):
    frame = pl.DataFrame({"v": [[1.0, 2.0]], "x": [1]})
    assert left_out(tmp_path / "a.csv", frame) == left_out(Path("-"), frame) == ["v"]
    assert left_out(tmp_path / "a.parquet", frame) == left_out(tmp_path / "a.jsonl", frame) == []
    raw = pl.DataFrame({"b": [b"\xff"], "o": pl.Series([object()], dtype=pl.Object)})
    assert left_out(tmp_path / "a.csv", raw) == left_out(tmp_path / "a.jsonl", raw) == ["b", "o"]
    assert left_out(tmp_path / "a.parquet", raw) == ["o"]
    write_table(tmp_path / "a.csv", frame)
    assert read_table(tmp_path / "a.csv").columns == ["x"]


BROKEN = {
    "short.csv": (b"a,b\n1,2\n3\n", "line 3 has 1 fields, the header has 2"),
    "long.csv": (b"a,b\n1,2\n3,4,5\n", "line 3 has 3 fields, the header has 2"),
    "quote.csv": (b'a,b\n1,"x\n', "a quote is opened and never closed"),
    "latin.csv": ("a,b\n1,é\n".encode("latin-1"), "not UTF-8 text; save the table as UTF-8"),
    "wide.csv": ("a,b\n1,2\n".encode("utf-16"), "is UTF-16 text; save the table as UTF-8"),
    "empty.csv": (b"", "has no header"),
    "empty.jsonl": (b"\n", "holds no rows"),
    "header.csv": (b"a,b\n", "holds no rows"),
    "twice.csv": (b"a,b,a\n1,2,3\n", "more than one column named 'a'"),
    "corrupt.parquet": (b"PAR1 and no more", "cannot be read as parquet"),
    "corrupt.xlsx": (b"PK no sheet", "cannot be read as xlsx"),
    "corrupt.jsonl": (b'{"a": 1}\n{"a": 2\n', "line 2 is no JSON"),
    "corrupt.npy": (b"\x93NUMPY", "cannot be read as .npy"),
    "header.npy": (b"\x93NUMPY\x01\x00\x10\x00{'descr': ((((\n  ", "cannot be read as .npy"),
    "text.npy": (b"hello, world", "cannot be read as .npy (the magic string is not correct"),
    "corrupt.npz": (b"PK", "cannot be read as npz"),
    "table.dat": (b"a,b\n1,2\n", "ends in one of .csv, .tsv"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_one_sentence(tmp_path, name):
    content, reason = BROKEN[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError) as error:
        read_table(tmp_path / name)
    assert reason in str(error.value)
    assert "\n" not in str(error.value)


def test_a_pickled_array_is_not_opened(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"x": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(TableError, match=r"cannot be read as \.npy \(Object arrays cannot be loaded"):
        read_table(tmp_path / "a.npy")


def test_an_array_that_is_no_table_of_numbers_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 2, 2)))
    with pytest.raises(TableError, match="2-D array of numbers"):
        read_table(tmp_path / "a.npy")


def test_images_in_an_archive_are_refused_by_their_shape(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.zeros((3, 2, 2)), y=np.arange(3))
    with pytest.raises(TableError, match=r"shape \(3, 2, 2\).*2-D array"):
        read_table(tmp_path / "a.npz")


def test_bytes_in_an_archive_are_text_and_complex_numbers_are_passed_over(tmp_path):
    np.savez(tmp_path / "a.npz", y=np.array([b"u", b"v"]), z=np.array([1j, 2j]))
    assert read_table(tmp_path / "a.npz").to_dict(as_series=False) == {"y": ["u", "v"]}


def test_vectors_are_read_from_an_array_file_alone(tmp_path):
    np.savez(tmp_path / "v.npz", X=np.eye(2))
    with pytest.raises(TableError, match=r"v\.npz cannot be read as \.npy"):
        read_vectors(tmp_path / "v.npz")


def test_names_that_stand_twice_in_a_sheet_are_refused(tmp_path):
    with xlsxwriter.Workbook(tmp_path / "a.xlsx") as book:
        sheet = book.add_worksheet()
        for row, cells in enumerate([("a", "a", "b"), (1, 2, 3)]):
            sheet.write_row(row, 0, cells)
    with pytest.raises(TableError, match="more than one column named 'a'"):
        read_table(tmp_path / "a.xlsx")


@pytest.mark.slow
def test_a_long_field_and_a_long_header_are_read(tmp_path):
    (tmp_path / "field.csv").write_text(f'a,b\n1,"{"x" * 3_000_000}"\n')
    assert read_table(tmp_path / "field.csv")["b"].str.len_chars().to_list() == [3_000_000]
    names = [str(i) for i in range(20_000)]
    (tmp_path / "header.csv").write_text(",".join(names) + "\n" + ",".join(["007"] * 20_000) + "\n")
    assert set(read_table(tmp_path / "header.csv").row(0)) == {"007"}


def test_a_byte_order_mark_before_json_is_no_part_of_it(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'\xef\xbb\xbf{"a": 1}\n')
    assert read_table(tmp_path / "a.jsonl")["a"].to_list() == [1]


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["0,5", "-12,25", "3"], [0.5, -12.25, 3.0]),
        (["1,234", "12"], None),  # a thousand, or a little more than one
        (["0,5", "1.5"], None),
        (["1,2,3", "0,5"], None),
    ],
)
def test_a_decimal_comma_is_understood_where_it_can_mean_nothing_else(values, numbers):
    assert typed(pl.DataFrame({"a": values}))["a"].to_list() == (numbers or values)


def test_a_sheet_that_is_too_small_is_refused(tmp_path):
    with pytest.raises(TableError, match="a sheet holds fewer"):
        write_table(tmp_path / "a.xlsx", pl.DataFrame({"a": ["x" * 2**15]}))
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_brings_the_nearest_name(tmp_path):
    (tmp_path / "flowers.csv").write_text("a\n1\n")
    with pytest.raises(TableError, match=r"flower\.csv does not exist; did you mean .*flowers\.csv\?$"):
        read_table(tmp_path / "flower.csv")
    (tmp_path / "folder.csv").mkdir()
    for folder in (tmp_path / "folder.csv", tmp_path):
        with pytest.raises(TableError, match="is a folder"):
            read_table(folder)


def test_an_output_is_refused_before_any_work(tmp_path):
    (tmp_path / "there.csv").write_text("")
    for path, reason in [
        (tmp_path / "there.csv", "exists already; give --force"),
        (tmp_path / "no" / "a.csv", "does not exist; make it"),
        (tmp_path, "is a folder"),
        (tmp_path / "a.doc", "ends in one of"),
    ]:
        with pytest.raises(TableError, match=reason):
            check_output(path, False, WRITERS)
    check_output(tmp_path / "there.csv", True, WRITERS)
    with pytest.raises(TableError, match="takes the table alone"):
        check_output(Path("-"), False)


def test_a_folder_that_may_not_be_written_to_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may write everywhere
    with pytest.raises(TableError, match="may not be written to"):
        check_output(tmp_path / "a.csv", False, WRITERS)


def test_one_file_for_two_things_is_refused(tmp_path):
    check_apart(tmp_path / "a", tmp_path / "b", Path("-"), Path("-"))
    with pytest.raises(TableError, match="a is named for two things"):
        check_apart(tmp_path / "a", tmp_path / "b" / ".." / "a")


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(frame, path, style):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(WRITERS, ".csv", full)
    with pytest.raises(TableError, match="No space left on device; nothing was written"):
        write_table(tmp_path / "a.csv", FRAME)
    assert list(tmp_path.iterdir()) == []


def test_a_misspelt_name_is_answered_by_the_nearest_or_by_all():
    assert nearest_name("specie", ["species", "size"]) == "did you mean 'species'?"
    assert nearest_name("SIZE", ["species", "size"]) == "did you mean 'size'?"
    assert nearest_name("zzz", ["species", "size"]) == "the columns are 'species', 'size'."
