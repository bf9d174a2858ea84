"""The site in a browser: every page, wide and narrow, light and dark; nothing is cut off or fetched elsewhere."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from helpers.browser import chromium
from helpers.pages import ROOT
from helpers.scripts import script

SITE = script(ROOT / "docs" / "make_site.py")
FIT_WHEN_WIDE = ["README.html", "docs/compared.html", "docs/parameters.html"]  # tables and commands in full sight
FLAWS = """() => {
  const width = document.documentElement.clientWidth;
  const isBox = (one) => /auto|scroll/.test(getComputedStyle(one).overflowX);
  const canBeMoved = (one) => one && (isBox(one) || canBeMoved(one.parentElement));
  const cut = (one) => one.getBoundingClientRect().right > width + 1 && !canBeMoved(one.parentElement);
  return [
    ...(document.documentElement.scrollWidth > width ? ["the page is wider than the window"] : []),
    ...[...document.images].filter((one) => !one.naturalWidth).map((one) => `no picture: ${one.src}`),
    ...[...document.querySelectorAll("table, pre, img")].filter(cut).map((one) => `cut off: ${one.tagName}`),
  ];
}"""
MOVED = """() => [...document.querySelectorAll(".pst-scrollable-table-container, .commands pre")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent.trim().slice(0, 60))"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("built") / "site"
    assert SITE.build(folder)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/", folder
        server.shutdown()


def pages(folder):
    """All but the one that leads to the first."""
    names = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*.html"))]
    return [name for name in names if name != "index.html" and not name.startswith("_static")]


def flaws_of(page, base, name):
    heard = []
    page.on("console", lambda message: heard.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: None if request.url.startswith((base, "data:")) else heard.append(request.url))
    page.goto(base + name)
    return [f"{name}: {flaw}" for flaw in [*page.evaluate(FLAWS), *heard]]


def test_every_page_is_looked_at_but_the_one_that_leads_to_the_first(tmp_path):
    for name in ("index.html", "README.html", "docs/examples/index.html", "_static/webpack-macros.html"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert pages(tmp_path) == ["README.html", "docs/examples/index.html"]


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 400])
def test_every_page_fits_its_window_and_is_complete(address, width, scheme):
    base, folder = address
    found = []
    with chromium() as browser:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        for name in pages(folder):
            page = context.new_page()
            found += flaws_of(page, base, name)
            assert page.evaluate("document.documentElement.dataset.theme") == scheme
            page.close()
    assert found == []


@pytest.mark.slow
@pytest.mark.browser
def test_tables_and_commands_of_the_first_pages_are_in_full_sight(address):
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        for name in FIT_WHEN_WIDE:
            page.goto(address[0] + name)
            assert page.evaluate(MOVED) == [], name


@pytest.mark.slow
@pytest.mark.browser
def test_the_search_finds_a_page(address):
    with chromium() as browser:
        page = browser.new_page()
        page.goto(f"{address[0]}search.html?q=relabel")
        page.locator("#search-results li a").nth(3).wait_for(timeout=30_000)  # one after the other
