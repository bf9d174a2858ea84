"""What is labelled by hand: tables with pictures and texts, the demo, and what is saved."""

import io
import os
import struct
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from greenlabel._common.stages import Stages
from greenlabel.annotate.source import files, pictures, saving
from greenlabel.annotate.source.demo import demo_options
from greenlabel.annotate.source.files import Fingerprint, free_name, journal_of
from greenlabel.annotate.source.options import Options
from greenlabel.annotate.source.pictures import as_grey, media_type, png, read_picture, read_shape
from greenlabel.annotate.source.saving import outcome_of, task_of
from greenlabel.annotate.source.table import open_source
from greenlabel.errors import GreenlabelError, LabelError, MemoryLimitError, ParameterError, TableError
from greenlabel.tables import label_table, load_model

PNG = png(np.arange(4, dtype=np.uint8).reshape(2, 2))
JPEG, GIF, WEBP = b"\xff\xd8\xff\xe0 jpeg", b"GIF89a gif", b"RIFF\x10\x00\x00\x00WEBPVP8 "


def opened(path, target="kind", **options):
    return open_source(Options(Path(path), target, **options), Stages())


def two_groups(n=40, seed=0):
    rng = np.random.default_rng(seed)
    middle = np.repeat([0.0, 8.0], n // 2)
    return pl.DataFrame({"size": middle + rng.normal(size=n), "weight": middle + rng.normal(size=n)})


@pytest.fixture
def table(tmp_path):
    """A table without a label, and with other columns."""
    frame = two_groups().with_columns(pl.Series("name", [f"Row {i}" for i in range(40)]), pl.lit("").alias("kind"))
    path = tmp_path / "table.csv"
    frame.write_csv(path)
    return path


# Reading


def test_a_table_is_read_as_label_reads_it(table):
    source = opened(table)
    assert (source.name, source.target, source.n, source.kind) == ("table.csv", "kind", 40, "fields")
    assert source.X.shape[0] == 40
    assert (source.given, source.classes) == ([], [])
    frame = (
        pl.read_csv(table)
        .with_columns(kind=pl.Series(["a", "b"] * 20))[:39]
        .extend(pl.read_csv(table).with_columns(kind=pl.lit(None, pl.String))[39:])
    )
    frame.write_csv(table)
    again, result = opened(table), label_table(pl.read_csv(table), "kind")[1]
    np.testing.assert_array_equal(again.X, result.X)
    assert dict(again.given) == {i: "ab"[i % 2] for i in range(39)}


def test_classes_are_those_of_the_command_then_those_of_the_table_as_they_appear(table):
    lines = table.read_text().splitlines()
    for row, name in ((3, "zebra"), (1, "ape"), (7, "zebra")):
        lines[row + 1] += name
    table.write_text("\n".join(lines))
    source = opened(table, classes=["new", "zebra"])
    assert source.classes == ["new", "zebra", "ape"]
    assert source.given == [(1, "ape"), (3, "zebra"), (7, "zebra")]


def test_unlabelled_values_are_no_labels(table):
    text = table.read_text().splitlines()
    table.write_text("\n".join([text[0], *(line + ("?" if i else "yes") for i, line in enumerate(text[1:]))]))
    source = opened(table, unlabelled=["?"])
    assert source.given == [(0, "yes")]


def test_a_column_that_is_not_there_yet_is_added_and_said(table):
    source = opened(table, "colour")
    assert source.notes == ["The table has no column 'colour' yet; it is added when you save."]
    assert source.given == []
    with pytest.raises(TableError, match="did you mean 'kind'"):
        opened(table, "kinds")


def test_labels_that_mix_numbers_and_words_are_fine_here(table):
    lines = table.read_text().splitlines()
    lines[1] += "1"
    lines[2] += "other"
    table.write_text("\n".join(lines))
    assert opened(table).classes == ["1", "other"]


def test_numbers_are_named_without_a_fraction(tmp_path):
    two_groups().with_columns(kind=pl.Series([1.0, 2.0, *[None] * 38])).write_parquet(tmp_path / "t.parquet")
    assert opened(tmp_path / "t.parquet").classes == ["1", "2"]


def test_more_classes_than_a_map_can_show_are_refused(tmp_path):
    frame = pl.DataFrame({"x": np.arange(300.0), "kind": [f"c{i}" for i in range(300)]})
    frame.write_csv(tmp_path / "t.csv")
    with pytest.raises(LabelError, match=r"300 classes.*254 at most"):
        opened(tmp_path / "t.csv")


def test_vectors_beside_the_table_are_features(table, tmp_path):
    vectors = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    np.save(tmp_path / "v.npy", vectors)
    source = opened(table, vectors=tmp_path / "v.npy", drop=["size", "weight", "name"])
    np.testing.assert_array_equal(source.X, vectors)
    assert "vectors" not in dict(source.fields(0))


def test_a_table_that_was_saved_before_goes_on(table):
    source = opened(table)
    labels = {0: "a", 1: "a", 39: "b"}
    source.save(labels, set(), False, False)
    again = opened(table.with_name("table-labelled.csv"))
    assert dict(again.given) == labels
    assert "kind_source" not in dict(again.fields(0))
    assert again.X.shape == source.X.shape


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"images": "nothing"}, "--images 'nothing' matches no column"),
        ({"text": "nme"}, "did you mean 'name'"),
        ({"images": "size"}, None),
        ({"text": "kind"}, "name the same column"),
        ({"image_shape": "28x28"}, "needs 784 columns of pixels, the table has 2"),
        ({"image_shape": "28"}, "is no shape"),
        ({"image_shape": "0x5"}, "is no shape"),
        ({"images": "name", "image_shape": "1x2"}, "both given"),
        ({"images": "name", "drop": ["size", "weight"]}, "--vectors"),
        ({"out": "-"}, "name a file by --out"),
        ({"out": "nowhere/t.csv"}, "nowhere does not exist"),
        ({"encoding": "utf-99"}, "utf-99"),
    ],
)
def test_what_cannot_be_is_one_sentence(table, options, sentence, monkeypatch):
    monkeypatch.chdir(table.parent)
    if sentence is None:
        assert opened(table, **options).picture(0) is None
        return
    with pytest.raises(GreenlabelError, match=sentence):
        opened(table, **options)


def test_standard_input_has_no_place_for_a_journal():
    with pytest.raises(ParameterError, match="needs a file"):
        opened("-")


def test_a_table_beyond_memory_is_refused_before_it_is_read(table, monkeypatch):
    monkeypatch.setattr(files.psutil, "virtual_memory", lambda: SimpleNamespace(available=table.stat().st_size * 20))
    with pytest.raises(MemoryLimitError, match="annotate a sample"):
        opened(table)
    monkeypatch.setattr(files.psutil, "virtual_memory", lambda: SimpleNamespace(available=table.stat().st_size * 30))
    assert opened(table).n == 40


def test_a_table_too_large_for_the_blend_is_saved_by_the_anchored_graph_as_label_does(table, monkeypatch):
    source = opened(table)
    monkeypatch.setattr(saving, "must_stream", lambda *options: True)
    source.save({0: "a", 1: "a", 38: "b", 39: "b"}, set(), False, True)
    assert type(load_model(table.with_name("table-labelled.green")).model).__name__ == "AnchoredGreenClassifier"


def test_several_parquet_files_are_one_table(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    frame = two_groups().with_columns(kind=pl.lit(None, pl.String))
    frame[:20].write_parquet(folder / "a.parquet")
    frame[20:].write_parquet(folder / "b.parquet")
    source = opened(folder)
    assert source.n == 40
    source.save({0: "a", 30: "b"}, set(), False, False)
    assert sorted(path.suffix for path in (tmp_path / "rows-labelled").iterdir()) == [".parquet", ".parquet"]


# What is shown


def test_fields_are_text_without_the_target(table):
    source = opened(table)
    fields = source.fields(3)
    assert [name for name, _ in fields] == ["size", "weight", "name"]
    assert fields[2] == ("name", "Row 3")
    assert all(isinstance(value, str) for _, value in fields)


def test_the_text_is_shown_in_full_and_apart(tmp_path):
    long = ["word " * 1000, *["short <b>text</b>"] * 39]
    two_groups().with_columns(note=pl.Series(long), kind=pl.lit(None, pl.String)).write_parquet(tmp_path / "t.parquet")
    source = opened(tmp_path / "t.parquet", text="note")
    assert source.kind == "text"
    assert source.text(0) == "word " * 1000
    assert source.text(1) == "short <b>text</b>"
    assert "note" not in dict(source.fields(0))


def test_the_text_is_searched_and_recognised_by_how_it_begins(tmp_path):
    long = ["an  onion\n in   two lines " * 50, *["short <b>text</b>"] * 39]
    two_groups().with_columns(note=pl.Series(long), kind=pl.lit("onion")).write_parquet(tmp_path / "t.parquet")
    source = opened(tmp_path / "t.parquet", text="note", unlabelled=["onion"])
    assert source.search("onion", 100) == [0]
    assert source.words(0).startswith("an onion in two lines an onion")
    assert len(source.words(0)) == 120
    assert source.words(1) == "short <b>text</b>"
    assert opened(tmp_path / "t.parquet", unlabelled=["onion"]).words(1) is None


def test_cells_are_cut_and_gaps_are_empty(tmp_path):
    frame = two_groups().with_columns(note=pl.Series(["x" * 5000, *[None] * 39]), kind=pl.lit(None, pl.String))
    frame.write_parquet(tmp_path / "t.parquet")
    source = opened(tmp_path / "t.parquet")
    assert len(dict(source.fields(0))["note"]) == 2000
    assert dict(source.fields(1))["note"] == ""


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        ("row 39", [39]),
        ("ROW 1", [1, *range(10, 20), 21, 31]),
        ("nothing", []),
        ("", []),
        (".*", []),
        ("(", []),
        ("row row", range(40)),
    ],
)
def test_words_are_found_in_capitals_or_not_and_are_no_patterns(table, words, rows):
    source = opened(table, drop=["size", "weight"])
    frame = pl.read_csv(table).select("name", "kind")
    frame.write_csv(table)
    found = opened(table, features=["name"]).search(words, 1000)
    assert found == list(rows)
    assert source.search("row", 3) == [0, 1, 2]


# Pictures


@pytest.mark.parametrize(
    ("content", "media"),
    [
        (PNG, "image/png"),
        (JPEG, "image/jpeg"),
        (GIF, "image/gif"),
        (WEBP, "image/webp"),
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", None),
        (b"<!doctype html><script>alert(1)</script>", None),
        (b"%PDF-1.7", None),
        (b"BM bitmap", None),
        (b"RIFF\x10\x00\x00\x00WAVE", None),
        (b"", None),
        (b"   \x89PNG\r\n\x1a\n", None),
    ],
)
def test_the_type_of_a_picture_is_found_from_its_content(tmp_path, content, media):
    assert media_type(content) == media
    (tmp_path / "a.png").write_bytes(content)
    assert read_picture(tmp_path, "a.png") == (None if media is None else (media, content))


@pytest.fixture
def outside(tmp_path):
    """A folder of a table, and a picture that lies outside of it."""
    folder = tmp_path / "table"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "a.png").write_bytes(PNG)
    (tmp_path / "secret.png").write_bytes(PNG)
    (tmp_path / "table-2").mkdir()
    (tmp_path / "table-2" / "secret.png").write_bytes(PNG)
    return folder


@pytest.mark.parametrize("name", ["inner/a.png", "./inner/a.png", "inner/../inner/a.png", "{folder}/inner/a.png"])
def test_pictures_below_the_folder_of_the_table_are_shown(outside, name):
    assert read_picture(outside, name.format(folder=outside)) == ("image/png", PNG)


@pytest.mark.parametrize(
    "name",
    [
        "../secret.png",
        "inner/../../secret.png",
        "{folder}/../secret.png",
        "../table-2/secret.png",
        "nothing.png",
        "inner",
        "",
        ".",
        "a\x00.png",
        "http://evil.example/a.png",
        "file:///etc/passwd",
        "/etc/passwd",
        "x" * 5000,
        "~/secret.png",
    ],
)
def test_pictures_elsewhere_are_not(outside, name):
    assert read_picture(outside, name.format(folder=outside)) is None


def test_links_that_lead_out_are_not_followed(outside):
    (outside / "file.png").symlink_to(outside.parent / "secret.png")
    (outside / "folder").symlink_to(outside.parent)
    (outside / "within.png").symlink_to(outside / "inner" / "a.png")
    assert read_picture(outside, "file.png") is None
    assert read_picture(outside, "folder/secret.png") is None
    assert read_picture(outside, "within.png") == ("image/png", PNG)


def test_a_pipe_does_not_stop_the_server(outside):
    os.mkfifo(outside / "pipe.png")
    assert read_picture(outside, "pipe.png") is None
    writer = os.open(outside / "pipe.png", os.O_RDWR)
    os.write(writer, PNG)  # what comes out of it is no file of the table, either
    assert read_picture(outside, "pipe.png") is None
    os.close(writer)


def test_large_pictures_are_not_shown(outside, monkeypatch):
    monkeypatch.setattr(pictures, "MAX_BYTES", len(PNG) - 1)
    assert read_picture(outside, "inner/a.png") is None


def test_a_column_of_paths_gives_pictures_and_is_no_feature(table):
    folder = table.parent / "photos"
    folder.mkdir()
    (folder / "a.png").write_bytes(PNG)
    frame = pl.read_csv(table).with_columns(photo=pl.Series(["photos/a.png", "../x.png", None, *["b.png"] * 37]))
    frame.write_csv(table)
    source = opened(table, images="photo")
    assert source.kind == "images"
    assert source.picture(0) == ("image/png", PNG)
    assert [source.picture(row) for row in (1, 2, 3)] == [None] * 3
    np.testing.assert_array_equal(source.X, opened(table, drop=["photo"]).X)
    assert "photo" not in dict(source.fields(0))
    assert source.search("a.png", 10) == [0]
    assert source.notes == []


def test_paths_that_lead_nowhere_are_said_at_the_start(table):
    pl.read_csv(table).with_columns(photo=pl.lit("elsewhere/a.png")).write_csv(table)
    (note,) = opened(table, images="photo").notes
    assert "None of the first pictures in 'photo' can be shown" in note
    assert "below the folder of the table" in note


@pytest.mark.parametrize("is_struct", [False, True])
def test_a_column_of_bytes_gives_pictures(tmp_path, is_struct):
    contents = pl.Series("photo", [PNG, JPEG, None, b"<svg/>", *[GIF] * 36], dtype=pl.Binary)
    if is_struct:
        contents = pl.DataFrame({"bytes": contents, "path": ["x"] * 40}).to_struct("photo")
    two_groups().with_columns(contents, kind=pl.lit(None, pl.String)).write_parquet(tmp_path / "t.parquet")
    source = opened(tmp_path / "t.parquet", images="photo")
    found = [source.picture(row) for row in range(5)]
    assert [one and one[0] for one in found] == ["image/png", "image/jpeg", None, None, "image/gif"]


def decoded(content):
    """The pixels of one of our own PNG files, read by matplotlib."""
    image = pytest.importorskip("matplotlib.image")
    return np.round(255 * image.imread(io.BytesIO(content), format="png"))


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (28, 28), (5, 300)])
def test_pictures_of_pixels_are_sound_png_files(shape):
    grey = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    content = png(grey)
    np.testing.assert_array_equal(decoded(content), grey)
    position = 8
    while position < len(content):  # every part has its checksum
        (length,) = struct.unpack(">I", content[position : position + 4])
        body = content[position + 4 : position + 8 + length]
        assert struct.unpack(">I", content[position + 8 + length : position + 12 + length])[0] == zlib.crc32(body)
        position += 12 + length


def test_grey_values_reach_from_black_to_white():
    assert as_grey([-1, 0, 1], -1, 1).tolist() == [0, 128, 255]
    assert as_grey([3, 3], 3, 3).tolist() == [0, 0]
    assert as_grey([np.nan, 5], 0, 5).tolist() == [0, 255]


def test_shapes_are_read():
    assert read_shape("28x20") == (28, 20)
    assert read_shape(" 8 X 8 ") == (8, 8)


@pytest.mark.parametrize("extra", [False, True])
def test_columns_of_pixels_are_drawn(tmp_path, extra):
    X = np.random.default_rng(0).integers(0, 17, (30, 6))
    X[0, 0], X[0, 1] = 0, 16
    frame = pl.DataFrame(X, schema=[f"pixel{i}" for i in range(6)]).with_columns(kind=pl.lit(""))
    if extra:
        frame = frame.with_columns(height=pl.Series(np.arange(30.0)), code1=pl.Series(np.arange(30)))
    frame.write_csv(tmp_path / "t.csv")
    source = opened(tmp_path / "t.csv", image_shape="2x3")
    media, content = source.picture(4)
    assert media == "image/png"
    np.testing.assert_allclose(decoded(content), np.round(X[4].reshape(2, 3) * 255 / 16), atol=1)
    assert [name for name, _ in source.fields(0)] == (["height", "code1"] if extra else [])


def test_vectors_of_pixels_are_drawn(tmp_path):
    X = np.random.default_rng(0).random((30, 6)).astype(np.float32)
    np.savez(tmp_path / "t.npz", X=X, kind=np.full(30, ""))
    source = opened(tmp_path / "t.npz", image_shape="2x3")
    assert decoded(source.picture(3)[1]).shape == (2, 3)


# Files


def test_the_fingerprint_is_that_of_the_content(table):
    one = Fingerprint.of(table)
    copy = table.with_name("copy.csv")
    copy.write_bytes(table.read_bytes())
    assert Fingerprint.of(copy).text == one.text
    os.utime(table, (1, 1))
    assert not one.has_changed(table)
    table.write_text(table.read_text().replace("Row 1", "Row X"))
    assert one.has_changed(table)
    assert Fingerprint.of(table).text != one.text
    table.unlink()
    assert one.has_changed(table)


def test_every_column_has_a_journal_of_its_own():
    names = {
        journal_of(Path("a/t.csv"), target).name for target in ("x", "x y", "x_y", "x/y", "../x", "X", "ü", "x" * 300)
    }
    assert len(names) == 8
    assert all(name.startswith("t.csv.") and name.endswith(".labels.jsonl") and "/" not in name for name in names)
    assert max(map(len, names)) < 120
    assert journal_of(Path("a/t.csv"), "x") == Path("a/t.csv.x.labels.jsonl")


def test_a_free_name_is_one_that_nothing_has(tmp_path):
    path = tmp_path / "t-labelled.csv"
    assert free_name(path) == str(path)
    path.touch()
    (tmp_path / "t-labelled-2.html").touch()
    assert free_name(path) == str(tmp_path / "t-labelled-3.csv")


# The demo


def test_where_nothing_may_be_written_a_sentence_says_what_to_do(table, monkeypatch):
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and real(path, mode))  # root may everything
    with pytest.raises(TableError, match=r"labels are kept beside the table; copy table.csv to a folder of your own"):
        opened(table)


def test_a_demo_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "demo").write_text("a file, and no folder")
    with pytest.raises(TableError, match=r"cannot be written here \(File exists\); run it in a folder of your own"):
        demo_options(tmp_path / "demo")


def test_the_demo_needs_nothing_else(tmp_path):
    options = demo_options(tmp_path / "demo")
    source = open_source(options, Stages())
    assert (source.n, source.kind, source.given) == (1797, "images", [])
    assert source.classes == list("1234567890")
    assert decoded(source.picture(0)[1]).shape == (8, 8)
    assert open_source(demo_options(tmp_path / "demo"), Stages()).fingerprint == source.fingerprint


# Saving


def read(path):
    return pl.read_csv(path, infer_schema=False)


def test_labels_given_by_hand_are_given_and_the_rest_is_filled_in(table):
    source = opened(table)
    labels = {0: "small", 5: "small", 39: "large", 30: "large"}
    saved = source.save(labels, {7, 8}, False, False)
    assert saved["files"] == ["table-labelled.csv"] == [source.out]
    assert saved["sentence"] == "Wrote table-labelled.csv: 4 labels given, 34 filled in, 2 left empty."
    filled = read(table.with_name("table-labelled.csv"))
    assert filled.columns[:4] == read(table).columns
    assert filled.drop("kind", "kind_source", "kind_confidence", "kind_margin", "kind_predicted").equals(
        read(table).drop("kind")
    )
    source_words = filled["kind_source"].to_list()
    assert {row for row, word in enumerate(source_words) if word == "given"} == set(labels)
    assert {row for row, word in enumerate(source_words) if word is None} == {7, 8}
    expected = ["small"] * 20 + ["large"] * 20
    expected[7] = expected[8] = None
    assert filled["kind"].to_list() == expected
    for name in ("kind_confidence", "kind_margin", "kind_predicted"):
        assert filled[name][7] is None


def test_what_is_saved_is_what_label_would_write(table):
    labels = {0: "small", 5: "small", 39: "large", 30: "large", 20: "large"}
    opened(table).save(labels, set(), False, False)
    frame = pl.read_csv(table).with_columns(kind=pl.Series([labels.get(i) for i in range(40)]))
    wanted, _ = label_table(frame, "kind")
    got = pl.read_csv(table.with_name("table-labelled.csv"))
    assert got["kind"].to_list() == wanted["kind"].to_list()
    np.testing.assert_allclose(got["kind_confidence"], wanted["kind_confidence"], atol=1e-4)
    assert got["kind_source"].to_list() == wanted["kind_source"].to_list()


def test_a_report_and_a_model_are_written_if_asked_for(table):
    source = opened(table)
    saved = source.save({0: "a", 1: "a", 38: "b", 39: "b"}, set(), True, True)
    assert saved["files"] == ["table-labelled.csv", "table-labelled.green", "table-labelled.html"]
    assert all((table.parent / name).stat().st_size for name in saved["files"])
    again = source.save({0: "a", 1: "a", 38: "b", 39: "c"}, set(), True, True)  # over its own files
    assert again["files"] == saved["files"]
    assert "c" in read(table.with_name("table-labelled.csv"))["kind"].to_list()


def test_files_that_were_there_are_not_written_over(table):
    mine = table.with_name("table-labelled.csv")
    mine.write_text("mine")
    source = opened(table)
    assert source.out == "table-labelled-2.csv"
    source.save({0: "a", 39: "b"}, set(), False, False)
    assert mine.read_text() == "mine"
    with pytest.raises(TableError, match="exists already"):
        opened(table, out=str(mine))
    assert opened(table, out=str(mine), force=True).out == "table-labelled.csv"
    other = opened(table, out=str(table.with_name("new.csv")))
    table.with_name("new.html").write_text("mine")
    with pytest.raises(TableError, match="exists already"):
        other.save({0: "a", 39: "b"}, set(), True, False)
    assert not table.with_name("new.csv").exists()


def test_the_table_itself_is_not_written_over(table):
    with pytest.raises(TableError, match="two things"):
        opened(table, out=str(table), force=True)


def test_without_a_label_there_is_nothing_to_save(table):
    with pytest.raises(LabelError, match="no label yet"):
        opened(table).save({}, set(), False, False)
    assert not table.with_name("table-labelled.csv").exists()


@pytest.mark.parametrize("is_full", [False, True])
def test_one_class_or_a_full_table_are_saved_without_predictions(table, is_full):
    labels = {i: "ab"[i % 2] for i in range(40)} if is_full else {3: "a", 4: "a"}
    saved = opened(table).save(labels, set(), True, True)
    assert saved["files"] == ["table-labelled.csv"]
    assert "neither a report nor a model" in saved["sentence"]
    assert ("one class" in saved["sentence"]) is not is_full
    filled = read(table.with_name("table-labelled.csv"))
    assert {row for row, word in enumerate(filled["kind_source"]) if word == "given"} == set(labels)
    assert filled["kind"].to_list() == [labels.get(i) for i in range(40)]
    assert dict(opened(table.with_name("table-labelled.csv")).given) == labels


def test_a_table_that_changed_on_disk_is_said(table):
    source = opened(table)
    table.write_text(table.read_text().replace("Row 1", "Row X"))
    saved = source.save({0: "a", 39: "b"}, set(), False, False)
    assert "table.csv has changed on disk" in saved["sentence"]
    assert "Row X" not in table.with_name("table-labelled.csv").read_text()


def test_checked_labels_stay_checked_unless_they_change(tmp_path):
    frame = two_groups().with_columns(
        kind=pl.Series(["a", "a", "b", *["b"] * 37]),
        kind_source=pl.Series(["checked", "checked", "given", *["predicted"] * 37]),
        kind_predicted=pl.Series(["a", "a", None, *["b"] * 37]),
    )
    frame.write_csv(tmp_path / "t.csv")
    source = opened(tmp_path / "t.csv")
    assert dict(source.given) == {0: "a", 1: "a", 2: "b"}
    source.save({0: "a", 1: "b", 2: "b", 3: "a"}, {39}, False, False)
    filled = read(tmp_path / "t-labelled.csv")
    assert filled["kind_source"].to_list()[:4] == ["checked", "given", "given", "given"]
    assert (filled["kind"][39], filled["kind_source"][39]) == ("b", "predicted")  # ignored: as it was


def test_an_ignored_row_keeps_the_label_of_the_table(tmp_path):
    two_groups().with_columns(kind=pl.Series(["odd", *[None] * 39])).write_csv(tmp_path / "t.csv")
    opened(tmp_path / "t.csv").save({1: "a", 39: "b"}, {0}, False, False)
    filled = read(tmp_path / "t-labelled.csv")
    assert filled["kind"][0] == "odd"
    assert filled["kind_source"][0] is None
    assert set(filled["kind"].to_list()) == {"odd", "a", "b"}


@pytest.mark.parametrize(
    ("values", "names", "dtype"),
    [
        ([1, 2], ["1", "2", "3"], pl.Int64),
        ([1.0, 2.0], ["1", "2"], pl.Float64),
        ([True, False], ["true", "false"], pl.Boolean),
        ([1, 2], ["1", "2", "other"], pl.String),
        ([1, 2], ["1", "02"], pl.String),
        ([True, False], ["true", "false", "maybe"], pl.String),
        (["a", "b"], ["a", "b", "1"], pl.String),
    ],
)
def test_the_column_keeps_its_type_where_it_can(tmp_path, values, names, dtype):
    column = pl.Series("kind", [*values, *[None] * (40 - len(values))])
    two_groups().with_columns(column).write_parquet(tmp_path / "t.parquet")
    source = opened(tmp_path / "t.parquet")
    saved = source.save(dict(enumerate(names * 2)), set(), False, False)
    filled = pl.read_parquet(tmp_path / "t-labelled.parquet")
    if dtype == pl.String and column.dtype != pl.String:
        assert "is text now" in saved["sentence"]
    else:
        assert "is text now" not in saved["sentence"]
        assert filled["kind"].dtype in (dtype, pl.Int64 if dtype == pl.Float64 else dtype)
    assert len(set(filled["kind"].to_list())) == len(names)


def test_names_of_classes_are_text_whatever_they_hold(table):
    names = ["=1+1", "<script>", 'a,"b"', "a\nb", "ü 日本", "NA"]
    opened(table).save({i: names[i % 6] for i in range(12)}, set(), False, False)
    filled = read(table.with_name("table-labelled.csv"))
    assert filled["kind"].to_list()[:12] == [names[i % 6] for i in range(12)]


def test_a_disk_that_is_full_leaves_no_half_of_a_file(table, monkeypatch):
    source = opened(table)

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("greenlabel.tables.io.csv_style.CsvStyle.write", fail)
    with pytest.raises(TableError, match="No space left"):
        source.save({0: "a", 39: "b"}, set(), False, False)
    assert sorted(path.name for path in table.parent.iterdir()) == ["table.csv"]


def test_no_file_is_begun_after_the_end(table):
    source = opened(table)
    assert source.finish_writing(1)
    assert not source.finish_writing(0.01)


def test_the_outcome_does_not_depend_on_the_order_of_labels(table):
    options = Options(table, "kind")
    source = open_source(options, Stages())
    saver = source.saver
    one, other = (
        task_of(saver.table, saver.labels, labels, saver.steps, source.X, options)
        for labels in ({0: "a", 39: "b"}, {39: "b", 0: "a"})
    )
    assert one.classes == other.classes
    assert outcome_of(saver.frame, one, 0)[0].equals(outcome_of(saver.frame, other, 0)[0])
