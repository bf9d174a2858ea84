"""The packages: a wheel and an sdist that install and run in a clean environment, core alone and with one extra.

Every environment is a real one, made by pip from the wheel. One extra builds on another, so its environment begins as a
copy of that one's, by hard links, and pip adds what is missing; that nothing else is in it is part of the test.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import greenlabel
from helpers.pages import ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
FOR_DEVELOPERS = {"docs", "test", "dev", "peers"}
CORE = """
import greenlabel as gl
from greenlabel.datasets import balance_scale, keep_labels
X, y = balance_scale()
few = keep_labels(y, per_class=10, random_state=0)
names = [name for name in gl.__all__ if name.endswith("Classifier")]
for name in names:
    model = getattr(gl, name)(random_state=0).fit(X, few)
    assert model.predict(X[:3]).shape == (3,) and "labels given" in model._repr_html_()
    print(gl.suggest(model, 2), gl.explain(model, 5), gl.suspects(model), gl.leave_one_out(model).shape)
print(len(names), "classifiers")
"""
LABEL = """
import polars
from greenlabel import label_table
print(label_table(polars.DataFrame({"x": [0.0, 0.1, 9.0, 9.1], "y": ["a", None, "b", None]}), "y")[0]["y"].to_list())
"""
BLOCKS = """
import dask.array as da, numpy as np
from greenlabel import AnchoredGreenClassifier
from greenlabel.blocks import connect, distribute
X = np.random.default_rng(0).normal(size=(40, 2)) + 9 * (np.arange(40) % 2)[:, None]
y = np.where(np.arange(40) < 8, np.arange(40) % 2, -1)
model = AnchoredGreenClassifier(8, 3, random_state=0).fit(da.from_array(X, chunks=(10, 2)), y)
print((model.transduction_ == np.arange(40) % 2).all())
"""
SERVER = """
from greenlabel.annotate.app.routes import MEDIA, STATIC
from greenlabel.annotate.app.server import Server
print("greenlabel annotate", len(list(STATIC.glob("*.js"))))
"""
TRIALS = {  # of an extra, after the one it builds on: code, or words of the command line; and what comes out
    "": ["-c", CORE, "5 classifiers"],
    "tables": ["-c", LABEL, "['a', 'a', 'b', 'b']"],
    "annotate": ["-c", SERVER, "greenlabel annotate"],
    "cli": ["-m", "greenlabel", "label", "t.csv", "--target", "y", "-o", "-", "x,y,y_source"],
    "paper": ["-m", "greenlabel", "paper", "list", "accuracy"],
    "dask": ["-c", BLOCKS, "True"],
}


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True, capture_output=True)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def base_of(extra: str) -> str:
    """The extra that another one builds on; "" is the core."""
    bases = [name for line in EXTRAS[extra] for name in Requirement(line).extras if line.startswith("greenlabel[")]
    return bases[0] if bases else ""


def environment(folder: Path, wheel: Path, extra: str) -> Path:
    """The interpreter of a new environment with the wheel and this extra in it, without pip."""
    if extra:
        shutil.copytree(folder / (base_of(extra) or "core"), folder / extra, symlinks=True, copy_function=os.link)
    else:
        venv.create(folder / "core")
    python = folder / (extra or "core") / "bin" / "python"
    into = ["-m", "pip", "--python", str(python), "install", "-q", "--no-compile", "--disable-pip-version-check"]
    found = said(Path(sys.executable), [*into, f"{wheel}[{extra}]" if extra else str(wheel)], folder)
    assert found.returncode == 0, found.stderr
    return python


def installed_in(python: Path) -> dict[str, list[Requirement]]:
    """{name: requirements} of all that is installed beside this interpreter."""
    (site,) = python.parents[1].glob("lib/python*/site-packages")
    found = {canonicalize_name(one.name): one.requires or () for one in distributions(path=[str(site)])}
    return {name: [*map(Requirement, lines)] for name, lines in found.items()}


def needed_by(extra: str, installed: dict[str, list[Requirement]]) -> set[str]:
    """Names of all that the package with this extra needs, by what each distribution says of itself."""
    found, ahead = set(), [("greenlabel", each) for each in {"", extra}]
    while ahead:
        name, its_extra = ahead.pop()
        if (name, its_extra) not in found:
            found.add((name, its_extra))
            lines = [one for one in installed[name] if not one.marker or one.marker.evaluate({"extra": its_extra})]
            ahead += [(canonicalize_name(one.name), each) for one in lines for each in {"", *one.extras}]
    return {name for name, _ in found}


def said(python: Path, words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run([str(python), *words], cwd=folder, env=clean, capture_output=True, text=True)


def test_every_extra_for_users_has_a_trial():
    assert set(TRIALS) == {"", *EXTRAS} - FOR_DEVELOPERS


def test_the_version_stands_in_one_place():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["project"]["dynamic"] == ["version"]
    assert settings["tool"]["hatch"]["version"]["path"] == "src/greenlabel/__init__.py"
    assert f"\nversion: {greenlabel.__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.slow
def test_wheel_and_sdist_hold_what_they_should(packages):
    wheel, sdist = packages  # build makes the wheel from the sdist, so the wheel is complete only if both are
    assert f"-{greenlabel.__version__}-" in wheel.name
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    files = {str(path.relative_to(source)) for path in (source / "greenlabel").rglob("*") if path.is_file()}
    assert {name for name in files if "__pycache__" not in name} <= names
    assert {name.split("/")[0] for name in names} == {"greenlabel", f"greenlabel-{greenlabel.__version__}.dist-info"}
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "LICENSE", "README.md", "CITATION.cff", "tests/conftest.py", "docs/conf.py"} <= inside


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler here")
@pytest.mark.parametrize(
    ("setting", "reason"), [({"PATH": ""}, "no C compiler was found"), ({"GREENLABEL_PURE": "1"}, "not wanted")]
)
def test_the_wheel_carries_compiled_kernels_and_without_a_compiler_it_is_pure(packages, tmp_path, setting, reason):
    library = "greenlabel/kernels/_library.so"
    wheel = packages[0]
    assert re.search(r"-py3-none-(?!any)\w+\.whl$", wheel.name)
    assert library in zipfile.ZipFile(wheel).namelist()
    with tarfile.open(packages[1]) as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / packages[1].name.removesuffix(".tar.gz")
    words = [sys.executable, "-m", "build", "--wheel", "--outdir", str(tmp_path), str(source)]
    without = {name: value for name, value in os.environ.items() if name != "CC"} | setting
    built = subprocess.run(words, env=without, capture_output=True, text=True, check=True)
    assert "without compiled kernels" in (said := built.stdout + built.stderr)
    assert reason in said
    (pure,) = tmp_path.glob("*.whl")
    assert pure.name.endswith("-py3-none-any.whl")
    assert library not in zipfile.ZipFile(pure).namelist()


@pytest.mark.slow
def test_it_runs_in_a_clean_environment_with_each_extra_alone(packages, tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n0.0,a\n0.1,\n0.2,a\n9.0,b\n9.1,\n9.2,b\n")
    for extra, (*words, expected) in TRIALS.items():  # one test, so that no other process makes the same ones again
        python = environment(tmp_path, packages[0], extra)
        installed = installed_in(python)
        assert installed.keys() == needed_by(extra, installed), extra
        found = said(python, words, tmp_path)
        assert found.returncode == 0, f"{extra or 'core'}: {found.stderr}"
        assert expected in found.stdout, extra
        if not extra:
            names_what_is_missing(python, tmp_path)


def names_what_is_missing(python: Path, folder: Path) -> None:
    """With the core alone the command line says in one sentence which extra it needs, and so does label_table."""
    for words in (["-m", "greenlabel", "label", "t.csv", "--target", "y"], ["-m", "greenlabel", "--help"]):
        found = said(python, words, folder)
        assert found.returncode == 1
        assert re.fullmatch(r"greenlabel: [^\n]*pip install 'greenlabel\[cli\]'[^\n]*\n", found.stderr)
    found = said(python, ["-c", "import greenlabel; greenlabel.label_table"], folder)
    assert "MissingLibraryError" in found.stderr.splitlines()[-1]
    assert "greenlabel[tables]" in found.stderr.splitlines()[-1]
