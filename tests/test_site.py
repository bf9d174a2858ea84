"""The site: built without a warning, complete, and nothing in it comes from a network."""

import shutil

import pytest

from helpers.pages import PAGES, ROOT
from helpers.scripts import script

SITE = script(ROOT / "docs" / "make_site.py")


def copied(folder):
    """All pages and what they show, to be changed."""
    for name in ("docs", "benchmarks", "examples", "src"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for page in ROOT.glob("*.md"):
        shutil.copy(page, folder)
    return folder


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script src="https://example.org/a.js"></script>'),
        ("a.html", '<link rel="stylesheet" href="//example.org/a.css">'),
        ("a.html", '<p>x</p><img alt="badge" src="http://example.org/a.svg">'),
        ("a.html", '<p style="background: url(https://example.org/a.png)">x</p>'),
        ("a.css", "@font-face { src: url('https://example.org/a.woff2'); }"),
        ("a.css", '@import "https://example.org/a.css";'),
    ],
)
def test_what_comes_from_a_network_is_found(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    assert len([*SITE.loads_from_network(tmp_path)]) == 1


def test_links_and_own_files_are_no_loading(tmp_path):
    text = '<a href="https://example.org">x</a><img src="../a.png"><script src="_static/a.js"></script>'
    (tmp_path / "a.html").write_text(text)
    assert not [*SITE.loads_from_network(tmp_path)]


def test_every_page_is_in_the_navigation():
    text = (ROOT / "docs" / "conf.py").read_text()
    pages = [page for page in PAGES if page.name != "README.md" or page.parent != ROOT]
    assert [page for page in pages if f'"{page.relative_to(ROOT).with_suffix("")}"' not in text] == []


def test_pages_are_written_for_a_clone_until_there_is_a_release():
    """What a stranger types first must work before the package is on a registry."""
    for page in ("README.md", "docs/quickstart.md", "docs/tables.md"):
        assert "install 'greenlabel" not in (ROOT / page).read_text()
        assert "'.[cli]'" in (ROOT / page).read_text()


@pytest.mark.slow
def test_the_site_is_built_strictly_and_loads_nothing_from_a_network(site):
    assert [*SITE.loads_from_network(site), *SITE.missing_names(site)] == []
    assert len([*site.rglob("*.html")]) > len(PAGES)


@pytest.mark.slow
def test_broken_links_fail_and_each_is_named(tmp_path, capfd):
    source = copied(tmp_path / "source")
    page = source / "README.md"
    page.write_text(f"{page.read_text()}\n[no page](docs/nowhere.md)\n\n[no section](docs/quickstart.md#no-such)\n")
    assert not SITE.build(tmp_path / "site", source)
    warnings = [line for line in capfd.readouterr().err.splitlines() if "WARNING" in line]
    assert len(warnings) == 2  # and either alone would have been an error
    assert "docs/nowhere.md" in warnings[0]
    assert "no-such" in warnings[1]
