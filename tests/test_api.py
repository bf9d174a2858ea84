"""The API page: every public name stands on it, and every parameter is documented with its type and default."""

import importlib
import inspect
import re
from typing import Any

import pytest

from greenlabel.estimators.base import TransductiveClassifier
from helpers.pages import ROOT

LISTED = re.findall(r"^<!-- api: ([\w.]+) -->$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
FIELD = re.compile(r"^(?P<names>\w+(?:, \w+)*) : (?P<type>.+)$")
DEFAULT = re.compile(r", default (?P<value>.+)$")
SKLEARN = {"get_params", "set_params", "get_metadata_routing"}


def public_names() -> set[str]:
    """Names in ``__all__``, and what the modules without one define."""
    packages = ("greenlabel", "greenlabel.tables", "greenlabel.blocks")
    names = {f"{package}.{name}" for package in packages for name in importlib.import_module(package).__all__}
    for name in ("greenlabel.datasets", "greenlabel.metrics", "greenlabel.errors"):
        module = importlib.import_module(name)
        names |= {f"{name}.{key}" for key, thing in vars(module).items() if getattr(thing, "__module__", "") == name}
    return {name for name in names if not name.rpartition(".")[2].startswith("_")}


def named(dotted: str) -> Any:
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(module), name)


def documented(thing: Any) -> dict[str, str]:
    """{parameter: its type} of the section Parameters of a docstring in numpydoc's form."""
    text = inspect.getdoc(thing) or ""
    found = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+$|\Z)", text, re.DOTALL | re.MULTILINE)
    lines = found[1].splitlines() if found else []
    fields = [match for line in lines if (match := FIELD.match(line))]
    return {name: match["type"] for match in fields for name in match["names"].split(", ")}


def flaws(thing: Any, signature: inspect.Signature) -> list[str]:
    types = documented(thing)
    wanted = {name: one for name, one in signature.parameters.items() if name != "self"}
    return [
        *(f"{name} is not documented" for name in wanted if name not in types),
        *(f"there is no {name}" for name in types if name not in wanted),
        *(
            f"{name}: {flaw}"
            for name, one in wanted.items()
            if name in types
            if (flaw := default_flaw(one, types[name]))
        ),
    ]


def default_flaw(parameter: inspect.Parameter, text: str) -> str | None:
    stated = DEFAULT.search(text)
    if parameter.default is inspect.Parameter.empty:
        return f"{parameter.name} has no default, and {text!r} states one" if stated else None
    shown = repr(parameter.default).replace("'", '"')
    return (
        None
        if stated and stated["value"] == shown
        else f"{parameter.name} is {shown} by default, documented is {text!r}"
    )


def methods(thing: Any) -> list[tuple[str, Any]]:
    inner = re.search(r"^INNER = \{(.*?)^\}", (ROOT / "docs" / "conf.py").read_text(), re.DOTALL | re.MULTILINE)
    assert inner
    left_out = {*re.findall(r'"(\w+)"', inner[1]), *SKLEARN}
    found = inspect.getmembers(thing, inspect.isfunction)
    return [
        (name, one)
        for name, one in found
        if not name.startswith("_") and not name.endswith("_request") and name not in left_out
    ]


def test_every_public_name_is_on_the_page_and_nothing_twice():
    things = [id(named(name)) for name in LISTED]
    assert len(things) == len(set(things))
    assert {name for name in public_names() if id(named(name)) not in things} == set()


def test_the_page_lists_public_names_alone():
    assert set(LISTED) <= public_names()


@pytest.mark.parametrize("name", [name for name in LISTED if callable(named(name))])
def test_parameters_are_documented_with_types_and_defaults(name):
    thing = named(name)
    assert inspect.getdoc(thing)
    is_error = inspect.isclass(thing) and issubclass(thing, BaseException)
    assert is_error or flaws(thing, inspect.signature(thing)) == []


CLASSES = [name for name in LISTED if inspect.isclass(named(name)) and not issubclass(named(name), BaseException)]


@pytest.mark.parametrize("name", CLASSES)
def test_public_methods_have_a_docstring(name):
    assert [method for method, function in methods(named(name)) if not inspect.getdoc(function)] == []


@pytest.mark.parametrize("name", [name for name in CLASSES if issubclass(named(name), TransductiveClassifier)])
def test_methods_of_classifiers_document_their_parameters(name):
    found = {method: flaws(function, inspect.signature(function)) for method, function in methods(named(name))}
    assert {method: what for method, what in found.items() if what} == {}


def test_flaws_are_found():
    def function(a, b=1, c="x"):
        """Something.

        Parameters
        ----------
        a : int
        b : int, default 2
        d : int
        """

    assert len(flaws(function, inspect.signature(function))) == 3
