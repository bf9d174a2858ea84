"""The tests themselves: which carry a marker, where their helpers are, and the commands that run them."""

import ast
import re
import shlex
import subprocess
import tomllib
from collections import defaultdict
from functools import cache
from itertools import pairwise

import pytest

from helpers.pages import PAGES, ROOT

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
MARKERS = {text.partition(":")[0] for text in SETTINGS["markers"]}
TESTS = sorted((ROOT / "tests").glob("test_*.py"))
CONFTEST = ROOT / "tests" / "conftest.py"
HELPERS = sorted((ROOT / "tests" / "helpers").glob("*.py"))
by_name = pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem)


@cache
def parsed(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path):
    return [node for node in parsed(path).body if isinstance(node, ast.FunctionDef)]


def imported(path):
    """(module, name) of every import, inside functions too; of ``import x`` the name is x."""
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, alias.asname or alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.asname or alias.name) for alias in node.names)


def markers(node):
    """Names x of all pytest.mark.x below a node."""
    found = (inner for inner in ast.walk(node) if isinstance(inner, ast.Attribute))
    return {inner.attr for inner in found if ast.unparse(inner.value) == "pytest.mark"}


def marked(path, marker):
    """Tests of a file with this marker: on the test itself, or on the whole module."""
    whole = [node for node in parsed(path).body if isinstance(node, ast.Assign) and "pytestmark" in ast.unparse(node)]
    return {
        test.name
        for test in functions(path)
        if test.name.startswith("test")
        and marker in set().union(*map(markers, [*whole, *test.decorator_list]))  # those of single cases count too
    }


def named(function):
    """All names in a function, and those of its arguments, which may be fixtures."""
    arguments = {argument.arg for argument in function.args.args}
    return arguments | {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}


def reached(path, is_start):
    """Functions that come to a start: it is in their body, or in a function or fixture of the module that they name."""
    uses = {function.name: named(function) for function in functions(path)}
    found = {function.name for function in functions(path) if any(map(is_start, ast.walk(function)))}
    while more := {name for name, names in uses.items() if names & found} - found:
        found |= more
    return found


def reaching(path, is_start):
    """Tests that come to a start."""
    return {name for name in reached(path, is_start) if name.startswith("test")}


def starts_workers(path):
    """Whether a node starts Dask workers: by a name of distributed, by start_local, or by --scheduler local."""
    names = {name for module, name in imported(path) if "distributed" in module.split(".")} | {"start_local"}

    def is_start(node):
        if isinstance(node, ast.Call):
            words = [word.value for word in node.args if isinstance(word, ast.Constant)]
            return ("--scheduler", "local") in pairwise(words)
        return isinstance(node, ast.Name) and node.id in names

    return is_start


def starts_browser(path):
    """Whether a node starts a browser: by a name of helpers.browser, or as an argument, by a fixture that does."""
    names = {name for module, name in imported(path) if module == "helpers.browser"}
    fixtures = reached(CONFTEST, starts_browser(CONFTEST)) if path != CONFTEST else set()

    def is_start(node):
        return (isinstance(node, ast.Name) and node.id in names) or (isinstance(node, ast.arg) and node.arg in fixtures)

    return is_start


# Markers ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@by_name
def test_what_starts_dask_workers_is_marked_and_nothing_else(path):
    assert marked(path, "cluster") == reaching(path, starts_workers(path))


@by_name
def test_what_starts_a_browser_is_marked_and_nothing_else(path):
    assert marked(path, "browser") == reaching(path, starts_browser(path))


def test_the_rules_see_what_they_are_about():
    """Were a start written in another way, the rules above would hold of nothing."""
    for marker in ("cluster", "browser", "slow"):
        assert any(marked(path, marker) for path in TESTS), marker


def test_browsers_are_started_in_one_place():
    programs = re.compile(r'"(?:chromium|chrome|google-chrome)')
    found = [path.stem for path in [*TESTS, *HELPERS] if programs.search(path.read_text(encoding="utf-8"))]
    assert found == ["browser"]


def quick(path):
    tests = {function.name for function in functions(path) if function.name.startswith("test")}
    return tests.difference(*(marked(path, marker) for marker in MARKERS))


def test_every_module_has_quick_tests_but_those_of_a_cluster_and_of_thousands_of_files():
    assert [path.stem for path in TESTS if not quick(path)] == [
        "test_dask_blend",
        "test_dask_blocks",
        "test_model_fuzz",
    ]


# Commands -----------------------------------------------------------------------------------------------------------


def test_without_arguments_the_quick_tests_run_and_no_plugin_is_needed():
    words = shlex.split(SETTINGS["addopts"])
    assert words[words.index("-m") + 1] == " and ".join(f"not {marker}" for marker in sorted(MARKERS))
    assert not {"-n", "--dist", "--numprocesses"} & set(words)


def test_ci_runs_the_test_command_of_the_readme_and_that_is_all_tests():
    (line,) = re.findall(r"^test_command=\$\((grep .*)\)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)
    found = subprocess.run(["bash", "-c", line], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    command = shlex.split(found)
    rest = command[len(command) - command[::-1].index("pytest") :]
    assert rest == ["-m", "", "-n", "auto", "--dist", "worksteal"]  # "": no marker is left out
    assert found in PAGES[0].read_text()


# Helpers ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*TESTS, *HELPERS], ids=lambda path: path.stem)
def test_nothing_imports_a_test_module(path):
    others = {other.stem for other in TESTS} | {"conftest"}
    assert not {module for module, _ in imported(path)} & others


def test_no_helper_is_written_twice():
    """Of more than one statement; the same code under the same name."""
    homes = defaultdict(list)
    for path in [*TESTS, *HELPERS, ROOT / "tests" / "conftest.py"]:
        for node in functions(path):
            if len(node.body) > 1 and not node.name.startswith("test"):
                homes[ast.dump(node)].append(f"{path.stem}.{node.name}")
    assert [names for names in homes.values() if len(names) > 1] == []
