"""Loaders on small files of the public formats, and downloads from a server on this machine."""

import bz2
import gzip
import hashlib
import struct
import threading
import zipfile
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from greenlabel.errors import DataError
from greenlabel.paper import sources
from greenlabel.paper.fetch import check_file, fetch, transfer, unpack
from greenlabel.paper.sources import (
    GREY_LEVELS,
    SOURCES,
    Download,
    MissingDataError,
    Source,
    is_there,
    load,
    load_public,
    save,
)


def quiet(file, have, total):
    pass


def idx(values):
    """The bytes of an idx file."""
    head = struct.pack(">HBB", 0, 8, values.ndim) + struct.pack(f">{values.ndim}i", *values.shape)
    return head + values.astype(np.uint8).tobytes()


def write_images(folder, files):
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (size, 28, 28)) for size in (6, 3)]
    labels = [np.arange(size) % 3 for size in (6, 3)]
    for file, values in zip(files, [images[0], labels[0], images[1], labels[1]], strict=True):
        (folder / f"{file}.gz").write_bytes(gzip.compress(idx(values)))
    return np.concatenate(images).reshape(9, 784), np.concatenate(labels)


@pytest.mark.parametrize("name", ["MNIST", "EMNIST"])
def test_idx_files(tmp_path, name):
    X, y = write_images(tmp_path, SOURCES[name].files)
    data = load_public(name, tmp_path)
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y)
    assert data.X.dtype == np.uint8
    assert data.is_test is None


def test_emnist_is_the_bymerge_organisation():
    assert SOURCES["EMNIST"].files == (
        "emnist-bymerge-train-images-idx3-ubyte",
        "emnist-bymerge-train-labels-idx1-ubyte",
        "emnist-bymerge-test-images-idx3-ubyte",
        "emnist-bymerge-test-labels-idx1-ubyte",
    )


def test_a_broken_idx_file_is_refused(tmp_path):
    files = SOURCES["MNIST"].files
    write_images(tmp_path, files)
    (tmp_path / f"{files[0]}.gz").unlink()
    (tmp_path / files[0]).write_bytes(idx(np.zeros((6, 28, 28)))[:-5])
    with pytest.raises(DataError, match=r"holds 4,699 values, its head says 4,704"):
        load_public("MNIST", tmp_path)
    (tmp_path / files[0]).write_bytes(b"<html>")
    with pytest.raises(DataError, match="is no idx file"):
        load_public("MNIST", tmp_path)


def test_libsvm_files(tmp_path):
    (tmp_path / "combined.bz2").write_bytes(bz2.compress(b"1 1:0.5 100:-2\n3 2:1\n"))
    (tmp_path / "combined.t").write_text("2 1:1e-1 3:4\n")
    data = load_public("SensIT", tmp_path)
    assert data.X.shape == (3, 100)
    np.testing.assert_array_equal(data.X[0, [0, 99]], np.float32([0.5, -2]))
    assert data.y.tolist() == [0, 2, 1]


def test_swarm_has_four_classes_of_two_files(tmp_path):
    for file, classes in {"Aligned.csv": (0, 0, 1, 1), "Grouped.csv": (0, 1, 0, 1)}.items():
        rows = "\n".join(f"{i}.5,{-i},{label}" for i, label in enumerate(classes))
        (tmp_path / file).write_text(f"x1,y1,Class\n{rows}\n")
    data = load_public("Swarm", tmp_path)
    assert data.y.tolist() == [0, 1, 2, 3]
    assert data.X.tolist() == [[0.5, 0], [1.5, -1], [2.5, -2], [3.5, -3]]


def test_mapping_files_keep_their_test_rows_apart(tmp_path):
    (tmp_path / "training.csv").write_text("class,max_ndvi,20150720_N\nwater,997.904,637.595\nfarm,1,2\n")
    (tmp_path / "testing.csv").write_text("class,max_ndvi,20150720_N\nforest,3,4\n")
    data = load_public("CsMap", tmp_path)
    assert data.y.tolist() == [2, 0, 1]  # farm, forest, water
    assert data.is_test.tolist() == [False, False, True]
    np.testing.assert_allclose(data.X[0], [997.904, 637.595], rtol=1e-6)


def test_arff_file(tmp_path):
    text = "@relation phishing\n@attribute a { -1,1 }\n@attribute Result { -1,1 }\n\n@DATA\n-1,1\n1,-1\n\n"
    (tmp_path / "Training Dataset.arff").write_text(text)
    data = load_public("PhishingWeb", tmp_path)
    assert data.X.tolist() == [[-1], [1]]
    assert data.y.tolist() == [1, 0]


def test_zip_code_digits(tmp_path):
    rows = "6.0000 " + "-1.0000 " * 255 + "0.3320 \n"
    (tmp_path / "zip.train.gz").write_bytes(gzip.compress((rows + rows.replace("6.0", "2.0")).encode()))
    (tmp_path / "zip.test").write_text(rows.replace("6.0000", "9"))
    data = load_public("USPS", tmp_path)
    assert data.X.shape == (3, 256)
    assert data.y.tolist() == [1, 0, 2]
    assert data.X[0, -1] == np.float32(0.332)


def test_spreadsheet(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["Subject", "H.", "Pressure"], [2, 91.5, 0.25], [1, 80, 0.5]):
        book.active.append(row)
    book.save(tmp_path / "MEU-Mobile KSD 2016.xlsx")
    data = load_public("MobileKSD", tmp_path)
    assert data.X.tolist() == [[91.5, 0.25], [80, 0.5]]
    assert data.y.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        ("CsMap", "training.csv", "class,a\nfarm,apple\n"),
        ("CsMap", "training.csv", "kind,a\nfarm,1\n"),
        ("PhishingWeb", "Training Dataset.arff", "@relation x\n1,2\n"),
        ("SensIT", "combined", "<html>\n"),
    ],
)
def test_a_file_that_is_not_as_published_is_refused_by_name(tmp_path, name, file, text):
    for other in SOURCES[name].files:
        (tmp_path / other).write_text(text)
    with pytest.raises(DataError, match=file):
        load_public(name, tmp_path)


def test_npz_and_public_files_give_the_same_content(tmp_path):
    X, y = write_images(tmp_path, SOURCES["MNIST"].files)
    from_files = load_public("MNIST", tmp_path)
    (tmp_path / "packed").mkdir()
    np.savez(tmp_path / "packed" / "mnist.npz", X=X.astype(np.float64), y=y.astype(np.int16))
    assert load("MNIST", tmp_path / "packed").content == from_files.content


def test_test_rows_survive_being_saved(tmp_path):
    (tmp_path / "training.csv").write_text("class,a\nwater,1.5\nfarm,1\n")
    (tmp_path / "testing.csv").write_text("class,a\nforest,3\n")
    data = load_public("CsMap", tmp_path)
    assert is_there("CsMap", tmp_path)
    assert not is_there("USPS", tmp_path)
    (tmp_path / "packed").mkdir()
    save(data, tmp_path / "packed")
    again = load("CsMap", tmp_path / "packed")
    assert again.content == data.content
    assert again.is_test.tolist() == [False, False, True]


def test_missing_data_says_what_to_do(tmp_path):
    with pytest.raises(MissingDataError, match=r"neither usps.npz nor zip.train, zip.test; run greenlabel paper fetch"):
        load("USPS", tmp_path)


def test_balance_needs_no_file_and_grey_levels_come_from_usps(tmp_path):
    assert load("Balance", tmp_path).X.shape == (625, 4)
    np.savez(tmp_path / "usps.npz", X=np.float32([[-1, 0], [1, 0.5]]), y=[0, 1])
    assert load(GREY_LEVELS, tmp_path).X.tolist() == [[0, 127.5], [255, 191.25]]


@pytest.mark.slow
def test_the_files_at_hand_are_those_that_were_tested(data_folder):
    for name, source in SOURCES.items():
        if source.content and (data_folder / f"{source.stem}.npz").exists():
            assert load(name, data_folder).content == source.content


class Server(BaseHTTPRequestHandler):
    """Serves {path: bytes}, parts of a file where they are asked for."""

    def __init__(self, *args, files, ranges, asked):
        self.files, self.ranges, self.asked = files, ranges, asked
        super().__init__(*args)

    def do_GET(self):
        self.asked.append(self.headers["Range"])
        content = self.files.get(self.path)
        if content is None:
            return self.send_error(404)
        start = int(self.headers["Range"][6:-1]) if self.headers["Range"] and self.ranges else 0
        if start and start >= len(content):
            return self.send_error(416)
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start:])

    def log_message(self, *args):
        pass


@pytest.fixture(params=[True, False], ids=["parts", "whole"])
def server(request):
    """(address, files, ranges asked for) of a web server on this machine."""
    files, asked = {}, []
    handler = partial(Server, files=files, ranges=request.param, asked=asked)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        threading.Thread(target=served.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{served.server_port}", files, asked
        served.shutdown()


@pytest.mark.slow
def test_a_download_goes_on_where_it_stopped(server, tmp_path):
    address, files, asked = server
    files["/a.bin"] = bytes(range(256)) * 1000
    (tmp_path / "a.bin.part").write_bytes(files["/a.bin"][:100_000])
    seen = []
    transfer(f"{address}/a.bin", tmp_path / "a.bin", lambda *state: seen.append(state))
    assert asked == ["bytes=100000-"]
    assert (tmp_path / "a.bin").read_bytes() == files["/a.bin"]
    assert seen[-1] == ("a.bin", 256_000, 256_000)
    assert not (tmp_path / "a.bin.part").exists()
    transfer(f"{address}/a.bin", tmp_path / "a.bin", quiet)
    assert len(asked) == 1, "what is there is not asked for again"


@pytest.mark.slow
def test_a_missing_page_is_named(server, tmp_path):
    with pytest.raises(DataError, match=r"answers 404 .* by hand and put it at"):
        transfer(f"{server[0]}/none.zip", tmp_path / "none.zip", quiet)


def test_without_a_network_the_message_says_what_to_do(tmp_path):
    with pytest.raises(DataError, match=r"no connection to 127.0.0.1 .* download http.*by hand and put it at .*a\.zip"):
        transfer("http://127.0.0.1:9/a.zip", tmp_path / "a.zip", quiet)


def test_a_damaged_file_is_removed(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(b"good")
    check_file(path, hashlib.md5(b"good").hexdigest())
    with pytest.raises(DataError, match="is damaged"):
        check_file(path, hashlib.md5(b"better").hexdigest())
    assert not path.exists()


def test_an_archive_without_the_file_says_what_it_holds(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("folder/other.csv", "1")
    with pytest.raises(DataError, match=r"holds no wanted.csv; it holds other.csv"):
        unpack(tmp_path / "a.zip", ("wanted.csv",), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("content", [None, "another"])
def test_fetch_unpacks_reads_and_checks(server, tmp_path, monkeypatch, content):
    address, files, _ = server
    with zipfile.ZipFile(tmp_path / "made.zip", "w") as archive:
        archive.writestr("inner/zip.train", "1 0.5\n2 0.25\n")
        archive.writestr("inner/zip.test", "1 0\n")
    files["/usps.zip"] = (tmp_path / "made.zip").read_bytes()
    download = Download(f"{address}/usps.zip", members=("zip.train", "zip.test"))
    source = Source("usps", ("zip.train", "zip.test"), SOURCES["USPS"].read, (download,), content)
    monkeypatch.setitem(sources.SOURCES, "USPS", source)
    if content:
        with pytest.raises(DataError, match="differs from the copy"):
            fetch("USPS", tmp_path / "data", quiet)
        return
    data = fetch("USPS", tmp_path / "data", quiet)
    assert data.X.tolist() == [[0.5], [0.25], [0]]
    files.clear()  # from here on nothing may be asked of the server
    assert load("USPS", tmp_path / "data").content == fetch("USPS", tmp_path / "data", quiet).content == data.content
    assert sorted(path.name for path in (tmp_path / "data" / "usps").iterdir()) == ["zip.test", "zip.train"]


def test_every_address_is_https_and_every_member_is_a_file_that_is_read():
    for source in SOURCES.values():
        assert all(download.url.startswith("https://") for download in source.downloads)
        brought = [file for download in source.downloads for file in download.members or (download.file,)]
        assert {file.removesuffix(".gz").removesuffix(".bz2") for file in brought} == set(source.files)
