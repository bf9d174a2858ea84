"""The rooms of the package and the direction of imports between them, read from the drawing in CONTRIBUTING.md."""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import greenlabel

PACKAGE = Path(greenlabel.__file__).parent
DRAWING = Path(__file__).parents[1] / "CONTRIBUTING.md"
SOURCES = sorted(
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    for path in PACKAGE.rglob("*.py")
    if path.name not in ("__init__.py", "__main__.py")
)
ROOMS = sorted(".".join(path.parent.relative_to(PACKAGE).parts) for path in PACKAGE.rglob("*/__init__.py"))
EDGES = {"tables", "paper", "demo", "annotate", "cli"}  # files, pictures, terminal
TERMINAL = {"cli", "paper.commands", "annotate.command", "tables.commands", "tables.options", "tables.progress"}
MAX_MODULE_LINES, MAX_FUNCTION_LINES = 400, 60


@cache
def imported(module, *, at_import_only=False):
    """Dotted names that the source of a module imports; also those inside functions, unless told otherwise."""
    tree = ast.parse((PACKAGE / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not is_for_types(node)]
    names = set()
    for node in tree.body if at_import_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively; write the full name"
            within = {f"{node.module}.{alias.name}" for alias in node.names}  # a name of a room may be a module
            modules = {name for name in within if name.removeprefix("greenlabel.") in SOURCES}
            names |= modules or {node.module}
    return names


def is_for_types(node):
    """Imports that type checkers see and nobody else."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def own(module):
    """What a module imports of the package, without the package's name; "" is the package itself."""
    return {name.partition(".")[2] for name in imported(module) if name.split(".")[0] == "greenlabel"}


def outsiders(module, **kwargs):
    return {name.split(".")[0] for name in imported(module, **kwargs)} - {"greenlabel"}


def drawn_rooms():
    """{room: its line} from the drawing, lowest first; a room inside another one stands indented below it."""
    section = re.search(r"## How the code is laid out(.*?)\n## ", DRAWING.read_text(encoding="utf-8"), re.S)
    (drawing,) = re.findall(r"```\n(.*?)```", section.group(1), re.S)
    place, outer = {}, ""
    for number, line in enumerate(drawing.splitlines()):
        names = re.split(r"\s{2,}", line.strip())[0].split(", ")
        is_inside = line.startswith(" ")
        place |= {f"{outer}.{name}" if is_inside else name: number for name in names}
        outer = outer if is_inside else names[0]
    return place


ORDER = drawn_rooms()


def room(module):
    """The innermost room of the drawing in which a module is, or the module itself where it is drawn."""
    inner = [name for name in ORDER if module == name or module.startswith(f"{name}.")]
    return max(inner, key=len, default=None)


def test_the_drawing_names_what_exists():
    assert set(ORDER) <= {*ROOMS, *SOURCES}
    assert len(ORDER) >= 12


def test_every_room_is_drawn():
    assert set(ROOMS) <= set(ORDER)


@pytest.mark.parametrize("module", SOURCES)
def test_every_file_has_a_room_and_imports_from_lower_ones_alone(module):
    here = room(module)
    assert here is not None, f"{module} is in no room of the drawing"
    for name in own(module):
        there = room(name)
        if there is None:  # the public names of the package
            assert here.split(".")[0] in EDGES
        elif there != here:
            assert ORDER[there] < ORDER[here] or here.startswith(f"{there}.") or there.startswith(f"{here}.")


@pytest.mark.parametrize("name", [name for name in ORDER if "." in name])
def test_a_room_inside_another_imports_nothing_of_what_stands_around_it(name):
    outer = name.split(".")[0]
    around = {module for module in SOURCES if room(module) == outer}
    inside = [module for module in SOURCES if room(module) == name]
    assert not {found for module in inside for found in own(module)} & around


@pytest.mark.parametrize("name", ROOMS)
def test_every_room_says_what_it_is_for(name):
    tree = ast.parse((PACKAGE / name.replace(".", "/") / "__init__.py").read_text(encoding="utf-8"))
    assert len(ast.get_docstring(tree) or "") > 40


def test_no_module_imports_itself_in_a_circle():
    try:
        TopologicalSorter({module: own(module) & set(SOURCES) for module in SOURCES}).prepare()
    except CycleError as cycle:
        pytest.fail(f"modules import each other: {' <- '.join(cycle.args[1])}")


def test_only_the_blocks_of_a_cluster_import_dask():
    assert {module for module in SOURCES if outsiders(module) & {"dask", "distributed"}} == {"blocks.on_dask"}


def test_only_parquet_imports_pyarrow_among_the_blocks():
    blocks = {module for module in SOURCES if room(module) == "blocks"}
    assert {module for module in blocks if "pyarrow" in outsiders(module)} == {"blocks.parquet"}


def test_faiss_is_loaded_in_one_place():
    found = {module for module in SOURCES if "faiss" in outsiders(module)}
    assert found == {"_common.threads"}


@pytest.mark.parametrize("module", [name for name in SOURCES if name.split(".")[0] not in EDGES])
def test_pure_modules_import_nothing_of_the_terminal_of_pictures_or_of_frames(module):
    assert not outsiders(module) & {"typer", "rich", "matplotlib", "pandas", "polars"}


def test_only_the_command_line_imports_typer_and_rich():
    assert {module for module in SOURCES if outsiders(module) & {"typer", "rich"}} <= TERMINAL


def test_only_fetch_reaches_for_the_network_and_only_the_server_of_the_page_listens():
    network = {"urllib", "http", "socket", "httpx"}
    assert {module for module in SOURCES if outsiders(module) & network} == {"paper.fetch", "annotate.app.server"}


def test_only_the_app_imports_a_web_framework():
    web = {module for module in SOURCES if outsiders(module) & {"starlette", "uvicorn", "h11"}}
    assert {room(module) for module in web} == {"annotate.app"}


def test_pictures_are_imported_where_they_are_drawn_not_before():
    assert not any("matplotlib" in outsiders(module, at_import_only=True) for module in SOURCES)


def test_only_the_shells_import_scikit_learn_estimator_classes():
    shells = {module for module in SOURCES if "sklearn.base" in imported(module)}
    assert {room(module) for module in shells} <= {"estimators", "blend"}


# Privacy

OTHERS = [path for folder in ("benchmarks", "tests") for path in sorted((DRAWING.parent / folder).rglob("*.py"))]
FOREIGN = {
    "_safe_indexing",
    "_getframe",
    "_exit",
    "_replace",
    "_asdict",
    "_fields",
    "_make",
    "_repr_html_",
    "_repr_mimebundle_",
}  # of other libraries


def private_uses(source):
    """``thing._name`` where the name is neither the thing's own (self, cls) nor of a class in the same file."""
    tree = ast.parse(source)
    at_home = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            at_home |= {part.target.id for part in node.body if isinstance(part, ast.AnnAssign)}
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_own(node.value):
            at_home.add(node.attr)
    return {
        f"{ast.unparse(node)} in line {node.lineno}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not is_own(node.value)
        and node.attr not in at_home | FOREIGN
    }


def is_own(node):
    return (isinstance(node, ast.Name) and node.id in ("self", "cls")) or (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    )


@pytest.mark.parametrize("path", [*sorted(PACKAGE.rglob("*.py")), *OTHERS], ids=lambda path: "/".join(path.parts[-2:]))
def test_no_file_uses_a_private_attribute_of_what_another_file_defines(path):
    assert not private_uses(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("text", ["a._b", "self.model._b", "f(x)._b", "model._b()", "parts[0]._b = 1"])
def test_private_uses_are_found(text):
    assert private_uses(text)


def test_private_attributes_at_home_are_not_found():
    assert not private_uses(
        "class A:\n    def f(self, other):\n        self._x = other._x + other._f\n    def _f(self): pass"
    )


def test_only_private_modules_of_ours_are_imported():
    names = {name for module in SOURCES for name in imported(module) if name.startswith("greenlabel.")}
    assert {name.split(".")[1] for name in names if name.split(".")[1].startswith("_")} <= {"_common"}
    assert not any(part.startswith("_") for name in names for part in name.split(".")[2:])


FILES = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))


def lines_without_docstring(function):
    """Lines of a function from its ``def`` to its end; the docstring does not count."""
    n_lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is None:
        return n_lines
    docstring = function.body[0]
    return n_lines - (docstring.end_lineno - docstring.lineno + 1)


@pytest.mark.parametrize("file", FILES)
def test_no_module_is_longer_than_400_lines(file):
    n_lines = len((PACKAGE / file).read_text(encoding="utf-8").splitlines())
    assert n_lines <= MAX_MODULE_LINES, f"{file} has {n_lines} lines; make two files of it"


@pytest.mark.parametrize("file", FILES)
def test_no_function_is_longer_than_60_lines_without_its_docstring(file):
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = [(function.name, lines_without_docstring(function)) for function in functions]
    assert [(name, n_lines) for name, n_lines in lengths if n_lines > MAX_FUNCTION_LINES] == []


def test_a_docstring_does_not_count_and_nothing_else_is_left_out():
    source = 'def f(\n    x,\n):\n    """One.\n\n    Two.\n    """\n    # why\n\n    return x\n'
    (function,) = ast.parse(source).body
    assert lines_without_docstring(function) == 6
