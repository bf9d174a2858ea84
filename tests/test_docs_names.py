"""The pages name only what exists: commands and their options, Python names, files of this repository.

Looked at is what stands between backticks, and lines of blocks without a language that begin with greenlabel.
"""

import importlib
import inspect
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

import greenlabel
from greenlabel.cli import app
from helpers.pages import FENCE, PAGES, ROOT

PACKAGE = Path(greenlabel.__file__).parent
PAGES = [*PAGES, ROOT / "CHANGELOG.md"]
FOREIGN = {"--install-completion"}  # typer's own
FOREIGN_CLASSES = {"SelfTrainingClassifier"}  # of scikit-learn
OPTION = re.compile(r"(?<![\w-])--?[a-z][\w-]*")
SOURCE = "\n".join(path.read_text() for path in sorted(PACKAGE.rglob("*.py")))
MODULES = {".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in PACKAGE.rglob("*.py")}


def quoted(page: Path) -> list[str]:
    return re.findall(r"`([^`\n]+)`", FENCE.sub("", page.read_text()))


def commands(page: Path) -> list[str]:
    """greenlabel … as a shell would get it, without what follows a # or a |."""
    blocks = [block["body"] for block in FENCE.finditer(page.read_text()) if not block["language"]]
    lines = [line.strip() for block in blocks for line in block.splitlines()] + quoted(page)
    found = [re.match(r"(?:\S*/)?greenlabel (?=[a-z-])(.*)", line) for line in lines]
    return [re.split(r"[#|]", match[1])[0] for match in found if match]


@cache
def tree() -> Any:
    return typer.main.get_command(app)


def options_of(command: Any) -> set[str]:
    return {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {"-h", "--help"}


def all_options(command: Any) -> set[str]:
    return options_of(command).union(*(all_options(sub) for sub in getattr(command, "commands", {}).values()))


def command_of(words: str) -> Any:
    """The command that the first words name; a group that runs a command of its own takes other words as its own."""
    command = tree()
    for word in words.split():
        if word in getattr(command, "commands", {}):
            command = command.commands[word]
    return command


def trouble_of_command(words: str) -> str | None:
    command = command_of(words)
    if command is tree() and not words.startswith("-"):
        return f"greenlabel has no command {words.split()[0]}"
    known = all_options(command)  # greenlabel paper alone runs what greenlabel paper run does
    unknown = [option for option in OPTION.findall(words) if option not in known]
    return f"greenlabel {words.strip()} has no option {unknown[0]}" if unknown else None


def holds(place: Any, name: str) -> bool:
    if hasattr(place, name):
        return True
    if not inspect.isclass(place):
        return False
    within = any(name in getattr(base, "__annotations__", {}) for base in place.__mro__)
    return within or f"self.{name}" in inspect.getsource(place)


def trouble_of_name(dotted: str) -> str | None:
    """Of module.name or Class.name; other words with dots are files, numbers or objects of a snippet."""
    first, *rest = dotted.removeprefix("greenlabel.").split(".")
    if first in MODULES:
        place: Any = importlib.import_module(f"greenlabel.{first}")
    elif hasattr(greenlabel, first) or re.search(rf"^class {first}\b", SOURCE, re.MULTILINE):
        place = getattr(greenlabel, first, None) or class_named(first)
    else:
        return f"greenlabel has no {first}" if dotted.startswith("greenlabel.") else None
    for name in rest:
        if f"{first}.{name}" in MODULES:
            place = importlib.import_module(f"greenlabel.{first}.{name}")
        elif holds(place, name):
            place = getattr(place, name, None)
        else:
            return f"{dotted} does not exist"
    return None


def class_named(name: str) -> Any:
    module = next(module for module in sorted(MODULES) if re.search(rf"^class {name}\b", text_of(module), re.MULTILINE))
    return getattr(importlib.import_module(f"greenlabel.{module}"), name)


def text_of(module: str) -> str:
    return (PACKAGE / f"{module.replace('.', '/')}.py").read_text()


def troubles(page: Path) -> list[str | None]:
    spans = quoted(page)
    options = {name for span in spans if span.startswith("-") for name in OPTION.findall(span) if name[:2] == "--"}
    dotted = [match[0] for span in spans if (match := re.match(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+(?=$|\()", span))]
    classes = {span for span in spans if re.fullmatch(r"[A-Z]\w+(Classifier|Blocks)", span)} - FOREIGN_CLASSES
    inner = [span for span in spans if re.fullmatch(r"_[a-z]\w*|[a-z]\w*_", span)]  # _prepare, classes_
    files = [span for span in spans if re.fullmatch(r"[\w./-]+\.(py|md)", span)]
    dotted = [name for name in dotted if name not in files]
    return [
        *(trouble_of_command(words) for words in commands(page)),
        *(f"no command has {option}" for option in options - all_options(tree()) - FOREIGN),
        *(trouble_of_name(name) for name in [*dotted, *classes]),
        *(f"there is no {name}" for name in classes if not re.search(rf"^class {name}\b", SOURCE, re.MULTILINE)),
        *(f"there is no {name}" for name in inner if not re.search(rf"\b{name}\b", SOURCE)),
        *(f"there is no file {name}" for name in files if not is_file(name)),
    ]


def is_file(name: str) -> bool:
    if "/" in name:
        return (ROOT / name).exists()
    return (ROOT / name).exists() or any(
        path.name == name for folder in ("src", "docs", "tests", "benchmarks") for path in (ROOT / folder).rglob(name)
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_only_what_exists(page):
    assert [trouble for trouble in troubles(page) if trouble] == []


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("```\ngreenlabel label t.csv --target y --colour\n```\n", "has no option --colour"),
        ("```\n.venv/bin/greenlabel predict m t -t y\n```\n", "has no option -t"),
        ("`greenlabel lable t.csv`", "greenlabel has no command lable"),
        ("`--colour`", "no command has --colour"),
        ("`--colour red`", "no command has --colour"),
        ("`greenlabel.magic`", "greenlabel has no magic"),
        ("`greenlabel.datasets.magic(3)`", "greenlabel.datasets.magic does not exist"),
        ("`graph.anchors.magic`", "graph.anchors.magic does not exist"),
        ("`GreenClassifier.magic`", "GreenClassifier.magic does not exist"),
        ("`MagicClassifier`", "there is no MagicClassifier"),
        ("`magic_`", "there is no magic_"),
        ("`tests/test_magic.py`", "there is no file tests/test_magic.py"),
        ("`magic.py`", "there is no file magic.py"),
    ],
)
def test_what_does_not_exist_is_found(tmp_path, text, trouble):
    page = tmp_path / "page.md"
    page.write_text(text)
    assert [trouble in found for found in troubles(page) if found] == [True]


def test_what_exists_is_not_held_against_a_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "`greenlabel label t.csv --target y -o out.csv`, `--seed`, `greenlabel --version`, `GreenClassifier.fit`, "
        "`anchors.halve`, `greenlabel.tables.load_model`, `np.load(path)`, `results.jsonl`, `green.py`, `classes_`\n"
    )
    assert [trouble for trouble in troubles(page) if trouble] == []
