"""Model files: what is saved answers as before, and what a stranger wrote can do nothing but answer."""

import io
import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression

from greenlabel import AnchoredGreenClassifier, BlendedClassifier, GreenClassifier, label_table
from greenlabel.blend.array_models import Logistic, Trees
from greenlabel.errors import ModelFileError
from greenlabel.graph.inverted import InvertedSearch
from greenlabel.graph.neighbors import ClusterSearch, FlatSearch, Float64Search, ReducedSearch
from greenlabel.graph.projection import principal_axes
from greenlabel.tables import load_model, predict_table
from greenlabel.tables.labelling import METHODS
from greenlabel.tables.model_files.classifiers import read_search, write_search
from greenlabel.tables.model_files.container import ARRAYS, FACTS, FORMAT, Arrays, Part, described, split_arrays
from greenlabel.tables.model_files.saved import SavedModel
from helpers.model_data import FOLDER, changed, mixed_table, new_rows, nothing
from helpers.sparse import sparse_rows

FIXTURES = sorted(FOLDER.glob("model-v2-*.green"))


@pytest.fixture(scope="module")
def table():
    return mixed_table()


# What is saved answers as before


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_loaded_model_answers_as_the_one_that_was_saved_to_the_last_bit(table, tmp_path, method):
    result = label_table(table, "kind", method=method)[1]
    result.save(tmp_path / "m.green")
    loaded = load_model(tmp_path / "m.green")
    (X, unseen), (again, unseen_again) = (
        steps.transform(new_rows(table)) for steps in (result.features, loaded.features)
    )
    assert_array_equal(again, X)
    assert unseen_again == unseen == {"color": 1}
    for ask in ("predict", "predict_proba", "decision_function"):
        assert_array_equal(getattr(loaded.model, ask)(X), getattr(result.model, ask)(X))


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_loaded_model_shows_itself_and_can_be_cloned(table, tmp_path, method):
    model = label_table(table, "kind", method=method)[1].model
    SavedModel("kind", ["land", "water"], *features_and(table, model)).save(tmp_path / "m.green")
    loaded = load_model(tmp_path / "m.green").model
    assert repr(loaded) == repr(model)
    assert loaded.get_params() == model.get_params()
    assert repr(clone(loaded)) == repr(model)
    assert_array_equal(loaded.classes_, model.classes_)
    with pytest.raises(AttributeError, match="for new rows keeps no transduction of the rows of its fit; use predict"):
        loaded.transduction_  # noqa: B018


def features_and(table, model):
    return label_table(table, "kind", method="green")[1].features, model


@pytest.mark.slow
def test_a_loaded_blend_knows_what_it_is_made_of(table, saved):
    model, loaded = label_table(table, "kind")[1].model, load_model(saved).model
    assert loaded.weights_ == model.weights_
    assert repr(loaded.estimated_accuracy_) == repr(model.estimated_accuracy_)
    assert_array_equal(loaded.class_shares_, model.class_shares_)
    assert loaded.refined_ is model.refined_ is False


@pytest.mark.slow
def test_a_blend_that_was_refined_is_saved(table, tmp_path):
    result = label_table(table, "kind")[1]
    model = BlendedClassifier(class_shares={0: 0.5, 1: (0.4, 0.6)}, refine=True, random_state=0).fit(
        result.X, result.given
    )
    SavedModel("kind", ["land", "water"], result.features, model).save(tmp_path / "m.green")
    loaded = load_model(tmp_path / "m.green").model
    assert loaded.refined_
    assert_array_equal(loaded.predict_proba(result.X), model.predict_proba(result.X))
    assert loaded.get_params() == model.get_params()


def test_a_loaded_model_can_be_saved_again(saved, tmp_path):
    load_model(saved).save(tmp_path / "again.green")
    assert (tmp_path / "again.green").read_bytes() == saved.read_bytes()


def test_a_file_holds_json_and_arrays_and_no_name_of_code(saved):
    with zipfile.ZipFile(saved) as archive:
        assert archive.namelist() == [FACTS, ARRAYS]
        text = archive.read(FACTS).decode()
    assert json.loads(text)["format"] == FORMAT
    assert not any(word in text for word in ("sklearn", "numpy", "Classifier", "module", "__", "import"))


def test_what_only_the_fit_needs_is_not_saved(saved):
    slim = load_model(saved).model
    assert not {"_X", "_F", "_graph", "_blank"} & set(vars(slim))
    for expert in slim.fitted_.predictor.experts:
        assert not {"_graph", "_operator", "_component", "_near"} & set(vars(expert.model))


@pytest.mark.parametrize("kind", [FlatSearch, Float64Search, ReducedSearch, ClusterSearch, InvertedSearch])
def test_a_search_is_made_again_from_its_arrays_with_the_same_answers(rng, kind):
    P, X = (rng.normal(size=(n, 12)).astype(np.float32) for n in (600, 50))
    more = {ReducedSearch: [principal_axes(P, 5)], ClusterSearch: [principal_axes(P, 5), 7]}
    search = kind(P, *more.get(kind, []))
    again = read_search(through_json(write_search, search), 12)
    assert type(again) is kind
    for found, expected in zip(again.nearest(X, 9), search.nearest(X, 9), strict=True):
        assert_array_equal(found, expected)


def through_json(write, thing):
    """A part as a file holds it."""
    arrays = Arrays()
    values = json.loads(json.dumps(write(thing, arrays)))
    entries = [described([array.dtype.str, list(array.shape)]) for array in arrays.held]
    data = b"".join(array.tobytes() for array in arrays.held)
    return Part(values, "", split_arrays([[dtype.str, list(shape)] for dtype, shape in entries], data))


def test_models_of_sparse_rows_are_saved(rng, table, tmp_path):
    features = label_table(table, "kind", method="green")[1].features
    d = sum(column.n_features for column in features.used)
    X = sparse_rows(60, d, 0.3, rng)
    y = np.where(np.arange(60) < 20, np.arange(60) % 2, -1)
    for model in (GreenClassifier(random_state=0), AnchoredGreenClassifier(n_anchors=12, random_state=0)):
        SavedModel("y", ["u", "v"], features, model.fit(X, y)).save(tmp_path / "m.green")
        assert_array_equal(load_model(tmp_path / "m.green").model.predict_proba(X), model.predict_proba(X))


def test_a_model_of_nearly_empty_rows_is_not_saved(rng, table, tmp_path):
    X = sparse_rows(60, 3000, 0.003, rng)
    model = GreenClassifier(random_state=0).fit(X, np.where(np.arange(60) < 20, np.arange(60) % 2, -1))
    with pytest.raises(ModelFileError, match="less than one number among 100 cells cannot be saved"):
        SavedModel("y", ["u", "v"], label_table(table, "kind")[1].features, model).save(tmp_path / "m.green")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("classes", [["u", "v"], [3, 7], [0.0, 1.0], [False, True]])
def test_classes_keep_their_type(table, tmp_path, classes):
    result = label_table(table, "kind")[1]
    y = np.array([*classes, None], dtype=object)[result.given]
    model = GreenClassifier().fit(result.X, y if isinstance(classes[0], str) else y.tolist())
    SavedModel("kind", classes, result.features, model).save(tmp_path / "m.green")
    loaded = load_model(tmp_path / "m.green")
    assert loaded.classes == classes
    assert list(map(type, loaded.classes)) == list(map(type, classes))
    assert loaded.model.classes_.dtype == model.classes_.dtype
    assert_array_equal(loaded.model.predict(result.X), model.predict(result.X))


def test_experts_of_ones_own_are_saved_if_they_are_of_greenlabel(table, tmp_path):
    result = label_table(table, "kind")[1]
    mine = BlendedClassifier([("g", GreenClassifier(5)), ("a", AnchoredGreenClassifier(n_anchors=12))], random_state=0)
    mine.fit(result.X, result.given)
    SavedModel("kind", result.classes, result.features, mine).save(tmp_path / "m.green")
    loaded = load_model(tmp_path / "m.green").model
    assert repr(loaded) == repr(mine)
    assert_array_equal(loaded.predict_proba(result.X), mine.predict_proba(result.X))
    foreign = BlendedClassifier([("g", GreenClassifier()), ("l", LogisticRegression())], random_state=0)
    foreign.fit(result.X, result.given)
    with pytest.raises(ModelFileError, match=r"LogisticRegression\(\) among its parameters cannot be saved"):
        SavedModel("kind", result.classes, result.features, foreign).save(tmp_path / "n.green")
    assert not (tmp_path / "n.green").exists()


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_trees_and_logistic_regression_answer_as_those_of_scikit_learn_to_the_last_bit(rng, n_classes, dtype):
    X = rng.normal(size=(900, 7)).astype(dtype)
    y = (X[:200] @ rng.normal(size=(7, n_classes))).argmax(axis=1)
    forest = ExtraTreesClassifier(20, random_state=0).fit(X[:200], y)
    assert_array_equal(Trees.of(forest).predict_proba(X), forest.predict_proba(X))
    assert_array_equal(Trees.of(forest).predict_proba(sp.csr_array(X)), forest.predict_proba(X))
    linear = LogisticRegression().fit(X[:200], y)
    assert_array_equal(Logistic.of(linear).predict_proba(X), linear.predict_proba(X))


# Files of other versions


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_a_file_of_this_format_loads_for_ever(path):
    saved = load_model(path)
    table = mixed_table()
    filled, facts = predict_table(saved, new_rows(table))
    p = saved.model.predict_proba(saved.features.transform(new_rows(table))[0])
    assert_allclose(p, json.loads(path.with_suffix(".json").read_text()), atol=1e-6)
    assert facts["values_never_seen"] == {"color": 1}
    assert set(filled["kind"]) <= {"land", "water"}


def test_there_are_files_of_this_format():
    assert {path.stem for path in FIXTURES} == {"model-v2-blend", "model-v2-anchored", "model-v2-harmonic"}
    assert max(path.stat().st_size for path in FIXTURES) < 25_000


def test_a_model_from_a_newer_version_is_refused(saved):
    changed(saved, nothing, format=99, greenlabel="9.0")
    with pytest.raises(ModelFileError, match=r"greenlabel 9.0, in format 99; .* upgrade greenlabel"):
        load_model(saved)


@pytest.mark.parametrize("number", ["2", None, True, 2.0, [2]])
def test_a_model_of_no_known_format_is_refused(saved, number):
    changed(saved, nothing, format=number)
    with pytest.raises(ModelFileError, match="is no greenlabel model"):
        load_model(saved)


# What the format before this one could be made to do. Its files held a schema that named types and functions.


def node(module, name, loader, content, **more):
    return {"__module__": module, "__class__": name, "__loader__": f"{loader}Node", "content": content, **more}


def called(module, name, word):
    """What a function gives for one word."""
    return node(module, name, "ConstructorFromReduce", node("builtins", "tuple", "Tuple", [said(word)]))


def said(word):
    return {"__loader__": "JsonNode", "__module__": "builtins", "__class__": "str", "content": json.dumps(word)}


def old_exploit(module, name, word, method, key):
    """name(word).method(key): a dictionary calls the types of its keys."""
    call = node(module, name, "Method", {"func": method, "obj": called(module, name, word)})
    kinds = node("builtins", "list", "List", [call])
    return node("builtins", "dict", "Dict", {key: said("x")}, key_types=kinds, protocol=2, _skops_version="0.13.0")


def old_exploits(folder):
    return {
        "a command": old_exploit("greenlabel", "_import_module", "os", "system", f"touch {folder}/hacked"),
        "a file": old_exploit("greenlabel._common.files", "Path", f"{folder}/hacked", "write_text", "hacked"),
    }


@pytest.mark.parametrize("number", [1, FORMAT])
@pytest.mark.parametrize("name", ["a command", "a file"])
def test_files_that_ran_commands_once_are_refused_and_run_nothing(tmp_path, name, number):
    schema = old_exploits(tmp_path)[name]
    objects = io.BytesIO()
    with zipfile.ZipFile(objects, "w") as archive:
        archive.writestr("schema.json", json.dumps(schema))
    facts = {"format": number, "greenlabel": "0.1.0", "target": "y", "classes": ["a", "b"], "unlabelled": []}
    path = tmp_path / "old.green"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(FACTS, json.dumps(facts | {"features": schema, "model": schema}))
        archive.writestr("model.skops", objects.getvalue())
    with pytest.raises(ModelFileError, match="older greenlabel.*label again with --save" if number == 1 else "no gre"):
        load_model(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["old.green"]


@pytest.mark.slow
def test_no_library_that_builds_objects_from_names_is_imported(saved):
    code = f"""if True:
        import sys
        from greenlabel.tables import load_model
        load_model({str(saved)!r}).model
        print([name for name in ("skops", "skrub", "pickle", "joblib.numpy_pickle") if name in sys.modules])
    """
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "skops" not in said.stdout
    assert "skrub" not in said.stdout


# Files that are corrupt, or none of ours


def test_a_model_that_was_cut_is_refused_wherever_it_was_cut(saved):
    whole = saved.read_bytes()
    for size in np.linspace(0, len(whole) - 1, 12).astype(int):
        saved.write_bytes(whole[:size])
        with pytest.raises(ModelFileError, match="corrupt, or no greenlabel model"):
            load_model(saved)


def test_a_model_with_a_flipped_byte_is_refused(saved):
    whole = bytearray(saved.read_bytes())
    whole[-3000] ^= 0xFF
    saved.write_bytes(whole)
    with pytest.raises(ModelFileError, match="corrupt"):
        load_model(saved)


def test_what_is_no_model_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("x.txt", "hello")
    (tmp_path / "a.txt").write_text("hello")
    os.mkfifo(tmp_path / "pipe")
    names = {
        "a.zip": "no greenlabel model",
        "a.txt": "no greenlabel model",
        "b": "does not exist",
        "pipe": "is no file",
    }
    for name, reason in names.items():
        with pytest.raises(ModelFileError, match=reason):
            load_model(tmp_path / name)


@pytest.mark.slow
def test_predicting_imports_neither_pandas_nor_skrub_of_its_own(saved, table, tmp_path):
    """scikit-learn itself may import pandas; nothing of ours does."""
    rows = tmp_path / "rows.parquet"
    new_rows(table).write_parquet(rows)
    code = f"""if True:
        import sys
        import sklearn.utils.validation
        before = set(sys.modules)
        import polars as pl
        from greenlabel.tables.labelling import predict_table
        from greenlabel.tables.model_files.saved import load_model
        predict_table(load_model({str(saved)!r}), pl.read_parquet({str(rows)!r}))
        heavy = {{"pandas", "skrub", "skops", "matplotlib", "dask", "sklearn.ensemble", "sklearn.linear_model"}}
        print(sorted(heavy & (set(sys.modules) - before)))
    """
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_new_rows_beyond_all_numbers_have_answers(saved, table):
    new = new_rows(table).with_columns(size=pl.lit(1e38), price=pl.lit(-1e38))
    loaded = load_model(saved)
    p = loaded.model.predict_proba(loaded.features.transform(new)[0])
    assert_allclose(p.sum(axis=1), 1)
