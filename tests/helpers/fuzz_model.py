"""Model files with a flaw, and a loop that opens them: the worker of the fuzz tests.

    PYTHONPATH=tests python -m helpers.fuzz_model MODEL SEED COUNT

prints a line for each try: its number, and "refused", "answered", "does not fit" (the table has not the columns that
the file asks for), or what went wrong. Check sums of the members are right, so that the flaws reach the reader.
"""

import io
import json
import math
import random
import resource
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from greenlabel.tables.model_files.container import ARRAYS, FACTS, RATIO, TYPES
from helpers.model_data import joined, mixed_table, new_rows, parts_of

MEMORY = 2**29  # bytes that opening a file of some KB may need beyond what the process had
SPECIAL = [float("nan"), float("inf"), -1.0, 0.0, 1e308, -1e308, 1e-308, 3.4e38]
FAR_OUT = [0.0, 1.0, -1.0, 1e-45, 1e-29, 9e15, 9e16, -9e16, 9e17, -9e17, 9e29, 9e99, -9e99]  # large, and yet legal
WHOLE = [-1, 0, 1, 2**15, 2**16 - 1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
ODD = [
    *(None, True, False, -1, 0, 1, 2, 10**30, -(10**30), 2**31, 2**63, 1e308, -1e308, 1e-320, 0.5),
    *("", "x", "\ud800", "\x00", "%", "%Y%Q", "../x", "a" * 10_000, "os.system", "object", "<f4", "|O"),
    *([], {}, [[]], [None], {"x": 1}, {"kind": "blend"}, {"array": 0}, {"list": [1]}, {"pairs": [[1]]}, [0] * 100),
]


def places(value, way=()):
    """Every place in a JSON value: the keys and numbers that lead there."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield (*way, key)
        yield from places(inner, (*way, key))


def some_place(facts, rng):
    """A place among the parts; seldom in the table of arrays, which is most of them."""
    parts = facts if rng.random() < 0.1 else {name: value for name, value in facts.items() if name != "arrays"}
    return rng.choice(list(places(parts)))


def holder(facts, way):
    for key in way[:-1]:
        facts = facts[key]
    return facts


# Each takes facts, data and a source of chance, and gives the bytes of a file.


def flip_bytes(facts, data, rng):
    for _ in range(rng.choice([1, 1, 4, 64])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return joined(facts, data)


def spans(facts):
    """Where each array that is not empty stands: (start, type, bytes of a number, numbers)."""
    start, found = 0, []
    for name, shape in facts["arrays"]:
        size, count = TYPES[name].itemsize, math.prod(shape)
        found.append((start, name, size, count))
        start += size * count
    return [span for span in found if span[3]]


def odd_numbers(facts, data, rng):
    """Numbers of an array that no model has."""
    start, name, size, count = rng.choice(spans(facts))
    for _ in range(rng.choice([1, 1, 3, count])):
        place = start + size * rng.randrange(count)
        whole = (rng.choice(WHOLE) % 2 ** (8 * size)).to_bytes(size, "little")
        data[place : place + size] = number(rng.choice(SPECIAL), name) if name[1] == "f" else whole
    return joined(facts, data)


def number(value, name):
    with np.errstate(over="ignore"):
        return np.array(value).astype(name).tobytes()


def far_numbers(facts, data, rng):
    """Numbers that a model could have, but never has."""
    for start, name, size, count in rng.sample(spans(facts), rng.choice([1, 1, 2, 5])):
        for _ in range(rng.choice([1, 3, count])):
            place, other = (start + size * rng.randrange(count) for _ in range(2))
            data[place : place + size] = (
                number(rng.choice(FAR_OUT), name) if name[1] == "f" else data[other : other + size]
            )
    return joined(facts, data)


def mixed_numbers(facts, data, rng):
    """Numbers of one array in another one of the same type."""
    start, name, size, count = rng.choice(spans(facts))
    other, _, _, there = rng.choice([span for span in spans(facts) if span[1] == name])
    length = size * rng.randint(1, min(count, there))
    data[start : start + length] = data[other : other + length]
    return joined(facts, data)


def odd_value(facts, data, rng):
    way = some_place(facts, rng)
    holder(facts, way)[way[-1]] = rng.choice(ODD)
    return joined(facts, data)


def near_value(facts, data, rng):
    """A value of the right type that is a little off."""
    ways = (some_place(facts, rng) for _ in range(1000))
    way = next(way for way in ways if isinstance(holder(facts, way)[way[-1]], (int, float)))
    holder(facts, way)[way[-1]] += rng.choice([-1, 1, 2, 10, 1000])
    return joined(facts, data)


def lost_value(facts, data, rng):
    way = some_place(facts, rng)
    del holder(facts, way)[way[-1]]
    return joined(facts, data)


def swapped_values(facts, data, rng):
    one, other = some_place(facts, rng), some_place(facts, rng)
    if one == other[: len(one)] or other == one[: len(other)]:
        return joined(facts, data)
    first, second = holder(facts, one), holder(facts, other)
    first[one[-1]], second[other[-1]] = second[other[-1]], first[one[-1]]
    return joined(facts, data)


def swapped_arrays(facts, data, rng):
    """Parts that name each other's arrays, or the table's entries changed places."""
    table = facts["arrays"]
    one, other = rng.sample(range(len(table)), 2)
    table[one], table[other] = table[other], table[one]
    return joined(facts, data)


def other_types(facts, data, rng):
    entry = rng.choice(facts["arrays"])
    same_size = [name for name, dtype in TYPES.items() if dtype.itemsize == TYPES[entry[0]].itemsize]
    entry[0] = rng.choice([*same_size, *TYPES])
    return joined(facts, data)


def other_shape(facts, data, rng):
    entry = rng.choice(facts["arrays"])
    entry[1] = rng.choice([entry[1][::-1], [], [1, *entry[1]], [0], [2**40, 2**40], [0, 2**40], [*entry[1], 1]])
    return joined(facts, data)


def other_length(facts, data, rng):
    cut = rng.randrange(len(data))
    return joined(facts, data[:cut] if rng.random() < 0.5 else data + data[:cut])


def odd_text(facts, data, rng):
    text = json.dumps(facts)
    cut = rng.randrange(len(text))
    digits = '{"format": 2, "arrays": ' + "9" * 5000 + "}"
    deep = '{"format": ' + "[" * 100_000
    odd = [text[:cut], "", "[]", "2", '{"format": NaN}', digits, deep, text.replace(":", ":" + "[" * 3000, 1)]
    return joined(rng.choice([*odd, text[:cut] + "\x00" + text[cut:], text.encode("utf-16")]), data)


def odd_members(facts, data, rng):
    """Members that are missing, doubled, of other names, or far larger than the file."""
    out = io.BytesIO()
    names = [(FACTS, json.dumps(facts)), (ARRAYS, bytes(data))]
    more = [names[0], names[1], ("../x", "x"), ("/etc/x", "x"), ("a\x00b", "x"), (FACTS + "/", ""), ("x" * 60_000, "")]
    bomb = bytes(2**20 * RATIO + 1)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in rng.choice(
            [names[:1], names[1:], [], [*names, rng.choice(more)], [names[0], (ARRAYS, bomb)]]
        ):
            archive.writestr(zipfile.ZipInfo(name), text, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def flip_file(facts, data, rng):
    """Bytes of the archive itself; here the check sums may be wrong."""
    whole = bytearray(joined(facts, data, rng))
    for _ in range(rng.choice([1, 4, 16])):
        where = rng.choice([len(whole), 80, -200])  # anywhere, in the first header, in the directory at the end
        whole[rng.randrange(where) if where > 0 else rng.randrange(len(whole) + where, len(whole))] ^= rng.randrange(
            256
        )
    return bytes(whole)


MUTATIONS = [
    *([flip_bytes, far_numbers] * 5),
    *([odd_value, near_value, swapped_values] * 3),
    *([odd_numbers, mixed_numbers, lost_value] * 2),
    *(swapped_arrays, other_types, other_shape, other_length, odd_text, odd_members, flip_file),
]


def mutated(model, seed):
    """A file with one to three flaws."""
    rng = random.Random(seed)
    facts, data = parts_of(model)
    for _ in range(rng.choice([0, 0, 1, 2])):
        changed = rng.choice([flip_bytes, far_numbers, mixed_numbers, near_value])(facts, data, rng)
        facts, data = parts_of(changed)
    return rng.choice(MUTATIONS)(facts, data, rng)


def outcome(path, rows):
    """What opening a file and asking it came to, in a word."""
    from greenlabel.errors import LabelError, ModelFileError, TableError
    from greenlabel.tables import load_model, predict_table

    try:
        saved = load_model(path)
    except ModelFileError as error:
        return "refused" if str(error).startswith(str(path)) else f"an odd refusal: {error}"
    try:
        repr(saved.model)
        predict_table(saved, rows)
        X, _ = saved.features.transform(rows)
        p = saved.model.predict_proba(X)
        saved.model.decision_function(X)
        saved.model.predict(X)
    except (TableError, LabelError):
        return "does not fit"
    return "answered" if np.isfinite(p).all() and (p >= 0).all() else "no probabilities"


def main(model, first, count):
    import warnings

    warnings.simplefilter("ignore")
    rows = new_rows(mixed_table())
    whole = Path(model).read_bytes()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "fuzz.green"
        path.write_bytes(whole)
        assert outcome(path, rows) == "answered"  # whatever is loaded on first use is loaded
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        for seed in range(first, first + count):
            path.write_bytes(mutated(whole, seed))
            try:
                said = outcome(path, rows)
            except BaseException as error:
                said = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            print(seed, said, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
