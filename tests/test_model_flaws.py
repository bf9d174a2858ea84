"""Model files with one flaw each: refused in one sentence, before anything is built of them."""

import json
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest

from greenlabel.errors import ModelFileError
from greenlabel.tables import load_model
from greenlabel.tables.model_files.blends import are_trees
from greenlabel.tables.model_files.container import ARRAYS, FACTS
from helpers import fuzz_model
from helpers.model_data import changed, joined, parts_of


def array_of(facts, way, data, dtype):
    """A view of an array into the data, to be changed."""
    *names, last = way
    part = facts
    for name in names:
        part = part[name]
    return view_of(facts, part[last], data, dtype)


def view_of(facts, number, data, dtype):
    sizes = [np.dtype(name).itemsize * int(np.prod(shape)) for name, shape in facts["arrays"]]
    start = sum(sizes[:number])
    return np.frombuffer(memoryview(data)[start : start + sizes[number]], dtype)


TREES = ("model", "experts", 1)
GRAPH = ("model", "experts", 0, "model")


def put(way, dtype, place, value):
    def change(facts, data):
        array_of(facts, way, data, dtype)[place] = value

    return change


def say(way, value):
    def change(facts, data):
        fuzz_model.holder(facts, way)[way[-1]] = value

    return change


FLAWS = {
    "a child before its parent": put((*TREES, "left"), "<i4", 0, 0),
    "a child that is none": put((*TREES, "right"), "<i4", 0, 10**4),
    "a child of two nodes": lambda facts, data: share_a_child(facts, data),
    "half a leaf": put((*TREES, "right"), "<i4", 0, -1),
    "a feature that is none": put((*TREES, "feature"), "<i4", 0, 46),
    "a threshold that is no number": put((*TREES, "threshold"), "<f8", 0, np.nan),
    "a leaf beyond all shares": put((*TREES, "value"), "<f8", -1, 2.0),
    "roots out of order": put((*TREES, "roots"), "<i4", 1, 0),
    "a row that is none": put((*GRAPH, "labels", "rows"), "<i8", -1, 48),
    "a class that is none": put((*GRAPH, "labels", "codes"), "<i8", 0, -1),
    "a score that is no number": put((*GRAPH, "scores"), "<f8", 3, np.nan),
    "a point at infinity": put((*GRAPH, "search", "points", "dense"), "<f4", 3, np.inf),
    "a truth that is 2": put((*GRAPH, "reached"), "|u1", 3, 2),
    "too many neighbours": say((*GRAPH, "neighbors"), 49),
    "no neighbours": say((*GRAPH, "neighbors"), 0),
    "a negative mu": say((*GRAPH, "mu"), -1.0),
    "weights of no kind": say((*GRAPH, "weights"), "eval"),
    "a search of no kind": say((*GRAPH, "search", "kind"), "os.system"),
    "an expert of no kind": say((*TREES, "kind"), "sklearn.tree"),
    "two experts of a name": say((*TREES, "name"), "graph"),
    "a column that is none": put(("model", "scaling", "kept"), "<i8", 0, 999),
    "a divisor of zero": put(("model", "scaling", "spread"), "<f8", 0, 0.0),
    "a number that is too large": say(("model", "features"), 10**400),
    "a parameter that is none": say(("model", "parameters", "n_jobs"), 4),
    "a parameter of no kind": say(("model", "parameters", "refine"), "x"),
    "a parameter of code": say(("model", "parameters", "experts"), {"model": {"kind": "os", "parameters": {}}}),
    "an array that is none": say(("model", "shift"), 999),
    "an array before the first": say(("model", "shift"), -1),
    "an array of the wrong shape": say(("model", "shift"), 0),
    "classes twice": say(("classes",), ["land", "land"]),
    "classes of two kinds": say(("classes",), ["land", 1]),
    "classes that are lists": say(("classes",), [["land"], ["water"]]),
    "one class": say(("classes",), ["land"]),
    "three classes": say(("classes",), ["land", "water", "air"]),
    "classes beyond 64 bits": say(("classes",), [1, 2**70]),
    "half a letter": say(("classes",), ["land", "\ud800"]),
    "a target that is no text": say(("target",), 3),
    "no target": say(("target",), None),
    "signs that are no text": say(("unlabelled",), [3]),
    "an n-gram twice": lambda facts, data: twice(facts, data),
    "a category twice": say(("features", "encoders", 2, "values"), ["red", "red", "blue"]),
    "a category that is no text": say(("features", "encoders", 2, "values"), ["red", 3, "blue"]),
    "too many categories": say(("features", "encoders", 2, "values"), list(map(str, range(2000)))),
    "more categories than features": say(("features", "encoders", 2, "values"), ["red", "green", "blue", "x"]),
    "a format of no dates": say(("features", "encoders", 5, "format"), "%Y" * 99),
    "a zone that is none": say(("features", "encoders", 5, "zone"), "*"),
    "an hour of days": say(("features", "encoders", 4, "n_parts"), 4),
    "an encoder of another kind": say(("features", "encoders", 2, "kind"), "text"),
    "a column of no kind": say(("features", "columns", 0, "kind"), "code"),
    "two columns of a name": say(("features", "columns", 0, "name"), "price"),
    "a scale of no kind": say(("features", "scale"), "x"),
    "a divisor of NaN": put(("features", "spread"), "<f8", 0, np.nan),
    "bounds upside down": put(("features", "low"), "<f8", 0, np.inf),
    "a type that is none": say(("arrays", 0, 0), "|O"),
    "a shape of no end": say(("arrays", 0, 1), [2**40, 2**40]),
    "a negative shape": say(("arrays", 0, 1), [-1]),
    "no table of arrays": say(("arrays",), {}),
}


def share_a_child(facts, data):
    left, right = (array_of(facts, (*TREES, side), data, "<i4") for side in ("left", "right"))
    right[0] = left[0]


def twice(facts, data):
    letters = array_of(facts, ("features", "encoders", 3, "vocabulary"), data, "|u1")
    stops = np.flatnonzero(np.append(letters, ord("\n")) == ord("\n"))
    lengths = np.diff(stops) - 1  # of all but the first
    one, other = np.flatnonzero(lengths == 3)[:2] + 1
    letters[stops[other] - 3 : stops[other]] = letters[stops[one] - 3 : stops[one]]


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_file_with_a_flaw_is_refused_in_one_sentence(saved, flaw):
    changed(saved, FLAWS[flaw])
    with pytest.raises(ModelFileError, match=r"is no greenlabel model \(.*\); give a file") as caught:
        load_model(saved)
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [b"[" * 10**6, b'{"format": ' + b"9" * 10**6 + b"}", b'{"format": NaN}', b"\xff\xfe", b"2", b"", b'{"format": 2}'],
    ids=["nested", "digits", "NaN", "no letters", "a number", "empty", "no more"],
)
def test_odd_json_is_refused(saved, text):
    saved.write_bytes(joined(text, b""))
    with pytest.raises(ModelFileError, match="is no greenlabel model"):
        load_model(saved)


def with_members(path, *members):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that stand twice
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in members:
                archive.writestr(name, text)


@pytest.mark.parametrize("name", [FACTS, ARRAYS, "../../x", "/etc/x", "x\x00y"])
def test_members_that_are_doubled_or_unknown_are_refused(saved, name):
    facts, data = parts_of(saved.read_bytes())
    with_members(saved, (FACTS, json.dumps(facts)), (ARRAYS, bytes(data)), (name, "x"))
    with pytest.raises(ModelFileError, match="no greenlabel model"):
        load_model(saved)


@pytest.mark.slow
@pytest.mark.parametrize("name", [FACTS, ARRAYS])
def test_a_member_far_larger_than_the_file_is_not_unpacked(saved, name):
    facts, data = parts_of(saved.read_bytes())
    members = {FACTS: json.dumps(facts), ARRAYS: bytes(data)} | {name: " " * 10**8}
    with_members(saved, *members.items())
    assert saved.stat().st_size < 10**6
    with pytest.raises(ModelFileError, match="declares 100,000,000 bytes"):
        load_model(saved)


@pytest.mark.slow
@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_member_larger_than_it_declares_is_not_unpacked_beyond_that(saved, method):
    facts, data = parts_of(saved.read_bytes())
    size = 129 * 2**20  # four times what may be used, and a number that occurs nowhere else in the file
    with zipfile.ZipFile(saved, "w", method) as archive:
        archive.writestr(FACTS, json.dumps(facts), zipfile.ZIP_STORED)
        with archive.open(ARRAYS, "w") as member:
            for _ in range(size // 2**20):
                member.write(bytes(2**20))
    whole = saved.read_bytes()
    assert whole.count(size.to_bytes(4, "little")) == 2  # at the member, and in the directory
    saved.write_bytes(whole.replace(size.to_bytes(4, "little"), len(data).to_bytes(4, "little")))
    assert peak_of_a_refusal(saved) < 2**25


def peak_of_a_refusal(path):
    """Bytes that opening a file needs before it is refused."""
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError):
            load_model(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_an_array_is_part_of_one_part(saved):
    def share(facts, data):
        experts = facts["model"]["experts"]
        experts += [{**experts[1], "name": f"trees {i}"} for i in range(1000)]

    changed(saved, share)
    with pytest.raises(ModelFileError, match="is an array of another part too"):
        load_model(saved)


def test_a_sparse_matrix_far_wider_than_its_numbers_is_refused(saved):
    def widen(facts, data):
        sizes = {"data": np.ones(3), "columns": np.arange(3), "starts": np.arange(4)}
        first = len(facts["arrays"])
        for array in sizes.values():
            facts["arrays"].append([array.dtype.str, [len(array)]])
            data.extend(array.tobytes())
        numbers = {name: first + i for i, name in enumerate(sizes)}
        graph = facts["model"]["experts"][0]["model"]
        graph["features"] = 2**30
        graph["search"] = {"kind": "float64", "points": {"width": 2**30, **numbers}}

    changed(saved, widen)
    with pytest.raises(ModelFileError, match="width is far beyond the numbers of its matrix"):
        load_model(saved)


def test_arrays_that_pack_too_well_are_not_packed(saved):
    model = load_model(saved)
    for expert in model.model.fitted_.predictor.experts[4:]:
        expert.model.points = np.zeros((1000, expert.model.points.shape[1]), np.float32)
        expert.model.coefficients = np.zeros((1000, 2))
    model.save(saved)
    with zipfile.ZipFile(saved) as archive:
        assert archive.getinfo(ARRAYS).compress_type == zipfile.ZIP_STORED
    assert len(load_model(saved).model.fitted_.predictor.experts) == 6


def test_a_tree_without_an_end_in_sight_is_refused():
    n = 2 * 5000 + 1
    left = np.where(np.arange(n) % 2 == 0, np.arange(n) + 1, -1)  # every other node goes on, to the right
    left[-1] = -1
    right = np.where(left >= 0, np.arange(n) + 2, -1)
    assert not are_trees(np.array([0]), left, right)
    short = [np.append(side[:1000], -1) for side in (left, right)]
    assert are_trees(np.array([0]), *short)
