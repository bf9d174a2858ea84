"""The examples run, and their pages show what they are and print."""

import importlib.util
import re

import pytest

from helpers.pages import FENCE, ROOT

SPEC = importlib.util.spec_from_file_location("make_examples", ROOT / "docs" / "make_examples.py")
make_examples = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make_examples)
NAMES = make_examples.ORDER
NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


def shown(name):
    """{language: what is fenced off} on the page of an example."""
    text = (make_examples.PAGES / f"{name}.md").read_text()
    return {found["language"]: found["body"] for found in FENCE.finditer(text)}


def without_numbers(text):
    """Lines without their numbers and spacing: those differ between versions of the data and of libraries."""
    return [" ".join(NUMBER.sub("#", line).split()) for line in text.strip().splitlines()]


def test_every_script_is_in_the_gallery():
    assert sorted(NAMES) == sorted(path.stem for path in make_examples.SCRIPTS.glob("*.py"))
    assert (make_examples.PAGES / "index.md").read_text() == make_examples.gallery()


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_the_script_as_it_is(name):
    title, text = make_examples.introduction(name)
    page = (make_examples.PAGES / f"{name}.md").read_text()
    assert page.startswith(f"# {title}\n\n{text}\n")
    assert shown(name)["python"] == make_examples.code(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_example_prints_what_its_page_shows_and_draws(name, tmp_path):
    printed = make_examples.run(name, tmp_path)
    assert without_numbers(printed) == without_numbers(shown(name)["text"])
    assert (tmp_path / f"{name}.png").stat().st_size > 5_000
