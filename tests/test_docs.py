"""The pages keep their promises: snippets run and print what they show, links lead somewhere, figures can be rebuilt.

In a page's ```python blocks, which run in order in one namespace,

    print(...)  # value      must print that value (a number: to the digits that are shown)
    ```text                  right after a python block is all else that the block prints

A block under a line <!-- not run --> is only shown.
"""

import ast
import io
import re
import tokenize
from contextlib import redirect_stdout
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

import greenlabel
from helpers.pages import FENCE, PAGES, ROOT
from helpers.scripts import script

WITH_CODE = [page for page in PAGES if "```python" in page.read_text()]
ESTIMATORS = [
    "GreenClassifier",
    "AnchoredGreenClassifier",
    "ConsistencyClassifier",
    "HarmonicClassifier",
    "BlendedClassifier",
]
LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass
class Snippet:
    code: str
    line: int  # of the page, where the code starts
    printed: str | None  # the text block that follows


def snippets(page: Path) -> list[Snippet]:
    text = page.read_text()
    blocks = list(FENCE.finditer(text))
    found = []
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block["language"] != "python" or block["mark"] == "not run":
            continue
        touches = following is not None and not text[block.end() : following.start()].strip()
        printed = following["body"] if touches and following["language"] == "text" else None
        line = text.count("\n", 0, block.start("body")) + 1
        found.append(Snippet(block["body"], line, printed))
    return found


def comments(code: str) -> dict[int, str]:
    """The comment on each line of code that has one."""
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}


def is_print(statement: ast.stmt) -> bool:
    call = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "print"


def run(snippet: Snippet, page: Path, names: dict[str, Any]) -> list[tuple[int, str, str]]:
    """Run a snippet. Returns (line of the page, what it shows, what it printed) for all that it shows."""
    shown, rest, remarks = [], "", comments(snippet.code)
    for statement in ast.parse(snippet.code).body:
        output = io.StringIO()
        with redirect_stdout(output):
            exec(compile(ast.Module([statement], []), f"{page.name} (snippet, line {snippet.line})", "exec"), names)
        remark = remarks.get(statement.end_lineno or 0)
        if is_print(statement) and remark is not None:
            shown.append((snippet.line + statement.lineno - 1, remark, output.getvalue()))
        else:
            rest += output.getvalue()
    if rest or snippet.printed is not None:
        shown.append((snippet.line, snippet.printed or "", rest))
    return shown


def agrees(shown: str, printed: str) -> bool:
    """Equal up to spaces at the ends; a number that is shown is the printed one, rounded."""
    shown, printed = shown.strip(), printed.strip()
    if re.fullmatch(r"-?\d+\.\d+", shown):
        digits = len(shown.partition(".")[2])
        return shown == f"{float(printed):.{digits}f}"
    return [line.rstrip() for line in shown.splitlines()] == [line.rstrip() for line in printed.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_snippets_run_and_print_what_they_show(page, tmp_path, monkeypatch, all_trees):
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for snippet in snippets(page):
        for line, shown, printed in run(snippet, page, names):
            assert agrees(shown, printed), f"{page.name}, line {line}: shows {shown!r}, printed {printed!r}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_exist(page):
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        if "://" in target:
            continue
        name, _, section = target.partition("#")
        place = (page.parent / name).resolve() if name else page
        assert place.exists(), f"{page.name} leads to {target}, which does not exist"
        if section:
            assert section in sections(place), f"{page.name} leads to {target}; {place.name} has no such section"


def sections(page: Path) -> set[str]:
    """Names of the headings of a page, as links write them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.usefixtures("extras")
def test_the_command_reference_says_what_the_commands_say():
    maker = script(ROOT / "docs" / "make_reference.py")
    assert maker.PAGE.read_text() == maker.reference(), "run python docs/make_reference.py"


@pytest.mark.usefixtures("extras")
def test_every_figure_is_shown_small_and_made_by_the_script():
    files = {path.stem: path for path in (ROOT / "docs" / "figures").glob("*")}
    shown = {Path(target).stem for page in PAGES for target in LINK.findall(page.read_text()) if "figures/" in target}
    drawn, taken = (script(ROOT / "docs" / f"make_{kind}.py") for kind in ("figures", "screenshots"))
    made = {*drawn.FIGURES, *taken.PICTURES}
    assert set(files) == made == shown
    moving = files.pop("annotate-flow")
    assert all(path.suffix == ".png" and path.stat().st_size < 150_000 for path in files.values())
    assert moving.stat().st_size < 1_500_000


@pytest.mark.usefixtures("extras")
def test_the_moving_picture_ends_on_what_a_program_shows_that_knows_no_animation():
    from PIL import Image

    with Image.open(ROOT / "docs" / "figures" / "annotate-flow.png") as picture:
        assert picture.default_image
        assert picture.info["loop"] > 0  # it comes to rest
        still = picture.convert("RGB").tobytes()
        picture.seek(picture.n_frames - 1)
        assert picture.convert("RGB").tobytes() == still


@pytest.mark.parametrize("name", ESTIMATORS)
def test_parameter_page_has_every_parameter_with_its_default(name):
    page = (ROOT / "docs" / "parameters.md").read_text()
    lines = page[page.index("| parameter |") :].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in takewhile(bool, lines)]
    column = rows[0].index(f"`{name}`")
    table = {row[0]: row[column] for row in rows[2:] if row[column]}
    defaults = getattr(greenlabel, name)().get_params()
    assert table == {f"`{key}`": "`" + repr(value).replace("'", '"') + "`" for key, value in defaults.items()}
    for key in defaults:
        assert re.search(rf"^### .*`{key}`", page, re.MULTILINE), f"docs/parameters.md has no section on {key}"
