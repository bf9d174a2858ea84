"""The import direction that CONTRIBUTING.md promises, read from its own drawings: of greenlabel and its packages."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import greenlabel

PACKAGE = Path(greenlabel.__file__).parent
PACKAGES = ["tables", "paper"]  # in the order of their drawings
PARTS = {
    name: sorted(f"{name}.{path.stem}" for path in (PACKAGE / name).glob("*.py") if path.stem != "__init__")
    for name in PACKAGES
}
INSIDE = [part for parts in PARTS.values() for part in parts]
MODULES = sorted([*(path.stem for path in PACKAGE.glob("*.py")), *PACKAGES])
SOURCES = [*(name for name in MODULES if name not in PACKAGES), *INSIDE]  # one file each
EDGE = {"report", "cli", *PACKAGES, *INSIDE}  # pictures, files, terminal
TERMINAL = {"cli", "paper.commands", "tables.commands", "tables.progress"}
BESIDE = {"labels", "metrics", "datasets"}
DRAWING = Path(__file__).parents[1] / "CONTRIBUTING.md"


def imported(module, *, at_import_only=False):
    """Dotted names that the source of a module imports; also those inside functions, unless told otherwise."""
    tree = ast.parse((PACKAGE / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not is_for_types(node)]
    nodes = tree.body if at_import_only else ast.walk(tree)
    names = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively; write the full name"
            names.add(node.module)
            # a name of the package may be a module
            within = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name for name in within if name.removeprefix("greenlabel.") in {*MODULES, *INSIDE}}
    return names


def is_for_types(node):
    """Imports that type checkers see and nobody else."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def own(module):
    """What a module imports of the package, without the package's name; "" is the package itself."""
    names = {name for name in imported(module) if name.split(".")[0] == "greenlabel"}
    return {name.partition(".")[2] for name in names}


def siblings(module):
    """Modules of the package that a module imports; "__init__" where it imports the package itself."""
    parts = PARTS.get(module, [module])
    return {name.split(".")[0] or "__init__" for part in parts for name in own(part)} - ({module} & set(PACKAGES))


def outsiders(module, **kwargs):
    return {name.split(".")[0] for name in imported(module, **kwargs)} - {"greenlabel"}


def drawn_order(number=0):
    """The modules in the order of a drawing in CONTRIBUTING.md, lowest first, with their indentation."""
    section = re.search(r"## How the code is laid out(.*?)\n## ", DRAWING.read_text(encoding="utf-8"), re.S)
    order = {}
    for line in re.findall(r"```\n(.*?)```", section.group(1), re.S)[number].splitlines():
        depth = len(line) - len(line.lstrip())
        names = re.split(r"\s{2,}", line.strip())[0]
        order |= {name: (depth, len(order) + place) for place, name in enumerate(names.split(", "))}
    return order


def test_the_drawing_names_modules_that_exist():
    order = drawn_order()
    assert len(order) >= 10
    assert set(order) <= set(MODULES)


def test_every_module_has_a_place_in_the_drawing():
    assert set(MODULES) - {"__init__", "__main__"} == set(drawn_order()) | BESIDE


@pytest.mark.parametrize("module", [name for name in MODULES if name not in BESIDE | {"__init__", "__main__"}])
def test_imports_run_one_way(module):
    order = drawn_order()
    lower = {name for name, place in order.items() if place < order[module]}
    allowed = lower | (BESIDE if order[module][0] > 0 else set()) | ({"__init__"} if module in EDGE else set())
    assert siblings(module) <= allowed


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_of_a_package_has_a_place_in_its_drawing(package):
    assert {f"{package}.{name}" for name in drawn_order(1 + PACKAGES.index(package))} == set(PARTS[package])


@pytest.mark.parametrize("module", INSIDE)
def test_imports_inside_a_package_run_one_way(module):
    package = module.split(".")[0]
    order = {f"{package}.{name}": place for name, place in drawn_order(1 + PACKAGES.index(package)).items()}
    lower = {name for name, place in order.items() if place < order[module]}
    assert {name for name in own(module) if name.startswith(f"{package}.")} <= lower


@pytest.mark.parametrize("module", sorted(BESIDE))
def test_what_stands_beside_needs_only_errors_checks_and_labels(module):
    assert siblings(module) <= {"errors", "checks", "labels"} - {module}


def test_no_module_imports_itself_in_a_circle():
    try:
        TopologicalSorter({module: siblings(module) for module in MODULES}).prepare()
    except CycleError as cycle:
        pytest.fail(f"modules import each other: {' <- '.join(cycle.args[1])}")


def test_only_dask_blocks_imports_dask():
    assert {module for module in SOURCES if outsiders(module) & {"dask", "distributed"}} == {"dask_blocks"}


def test_only_parquet_blocks_imports_pyarrow_among_the_blocks():
    assert "pyarrow" in outsiders("parquet_blocks")
    assert not any("pyarrow" in outsiders(module) for module in ("blocks", "dask_blocks", "sources", "anchored"))


def test_only_neighbors_imports_faiss():
    assert {module for module in SOURCES if "faiss" in outsiders(module)} == {"neighbors"}


@pytest.mark.parametrize("module", [name for name in MODULES if name not in EDGE])
def test_pure_modules_import_nothing_of_the_terminal_of_pictures_or_of_frames(module):
    assert not outsiders(module) & {"typer", "rich", "matplotlib", "pandas", "polars"}


def test_only_the_command_line_imports_typer_and_rich():
    assert {module for module in SOURCES if outsiders(module) & {"typer", "rich"}} <= TERMINAL


def test_only_fetch_reaches_for_the_network():
    assert {module for module in SOURCES if outsiders(module) & {"urllib", "http", "socket"}} == {"paper.fetch"}


def test_pictures_are_imported_where_they_are_drawn_not_before():
    assert not any("matplotlib" in outsiders(module, at_import_only=True) for module in SOURCES)


def test_only_the_shells_import_scikit_learn_estimator_classes():
    shells = {module for module in SOURCES if "sklearn.base" in imported(module)}
    assert shells <= {"base", "estimators", "anchored", "experts", "blended"}
