"""What a release rests on: pinned actions, no password, floors that are named, a tag that is the version."""

import re
import subprocess
import tomllib

import pytest

import greenlabel
from helpers.pages import ROOT
from helpers.scripts import script

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TAG = script(ROOT / ".ci" / "check_tag.py")
OLDEST = script(ROOT / ".ci" / "oldest.py")


def every_use(path):
    return re.findall(r"^\s*-?\s*uses: (\S+)(.*)$", path.read_text(), re.MULTILINE)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_to_a_commit_and_say_their_version(path):
    for action, remark in every_use(path):
        if not action.startswith("./"):
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
            assert re.fullmatch(r" # v\d+\.\d+\.\d+", remark), action


def test_one_action_has_one_pin():
    pins = {use for path in WORKFLOWS for use in every_use(path)}
    names = [action.partition("@")[0] for action, _ in pins]
    assert len(names) == len(set(names))


def test_only_publishing_may_ask_for_a_token_and_nothing_is_secret():
    texts = {path.name: path.read_text() for path in WORKFLOWS}
    assert [name for name, text in texts.items() if "id-token: write" in text] == ["release.yml"]
    assert texts["release.yml"].count("id-token: write") == 1
    assert not any("secrets." in text or "password" in text.split("jobs:")[1] for text in texts.values())
    assert all("\npermissions:\n  contents: read\n" in text for text in texts.values())


def test_the_workflow_tries_every_python_that_is_promised():
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    promised = re.findall(r"Python :: (3\.\d+)\"", (ROOT / "pyproject.toml").read_text())
    assert (
        re.findall(r'"(3\.\d+)"', re.search(r"python: \[(.*)\]", text)[1])
        == promised
        == ["3.11", "3.12", "3.13", "3.14"]
    )


def test_a_tag_that_is_not_the_version_is_refused():
    assert any("the tag is v0.0.0" in trouble for trouble in TAG.troubles("v0.0.0"))
    assert not any("tag" in trouble for trouble in TAG.troubles(f"v{greenlabel.__version__}"))
    assert not any("CITATION" in trouble for trouble in TAG.troubles(f"v{greenlabel.__version__}"))


def test_every_dependency_names_its_oldest_version():
    found = {line.partition("==")[0] for line in OLDEST.constraints()}
    assert len(found) == len(OLDEST.constraints())
    assert "numpy" in found
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    needed = {name: {re.match(r"[\w.-]+", line)[0] for line in lines} for name, lines in extras.items()}
    for extra in extras.keys() - OLDEST.FOR_DEVELOPERS:
        assert needed[extra] - {"greenlabel"} <= found, extra


def test_a_dependency_without_an_oldest_version_is_an_error(monkeypatch):
    monkeypatch.setattr(OLDEST, "requirements", lambda: ["numpy"])
    with pytest.raises(SystemExit, match="'numpy' names no oldest version"):
        OLDEST.constraints()


def test_the_citation_names_software_and_paper():
    text = (ROOT / "CITATION.cff").read_text()
    title = re.search(r"\*(Fast Semi-supervised .*?)\*", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    assert " ".join(title.split()) in text
    assert re.findall(r"family-names: (\w+)", text) == ["Nie", "Song", "Chang", "Wang", "Li"]


@pytest.mark.parametrize(
    "part", ["Model files", "Reports", "Tables", "The page to label on", "A Dask cluster", "Pickles"]
)
def test_the_security_page_says_what_is_defended_and_what_is_not(part):
    assert f"**{part}**" in (ROOT / "SECURITY.md").read_text() or f"**{part}.**" in (ROOT / "SECURITY.md").read_text()


def tracked_files():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    return listed.stdout.split() if listed.returncode == 0 else []


def test_no_file_leads_to_a_package_registry():
    registry = re.compile("py" + r"pi\.org|python" + r"hosted\.org|ana" + r"conda\.org")
    texts = {name: (ROOT / name) for name in tracked_files() if not name.endswith((".png", ".npz", ".green"))}
    found = [
        name for name, path in texts.items() if path.is_file() and registry.search(path.read_text(errors="ignore"))
    ]
    assert found == []
