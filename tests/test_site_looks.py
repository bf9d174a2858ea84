"""The site in a browser: every page, wide and narrow, light and dark; nothing is cut off or fetched elsewhere."""

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

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
    ...[...document.querySelectorAll(".prev-next-area a, pre.commands")]
      .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => `cut off: ${one.textContent.trim()}`),
  ];
}"""
MOVED = """() => [...document.querySelectorAll(".pst-scrollable-table-container, pre.commands")]
  .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent.trim().slice(0, 60))"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def base(site):
    """The address of the site."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


def pages(folder):
    """All but the one that leads to the first."""
    names = [str(path.relative_to(folder)) for path in sorted(folder.rglob("*.html"))]
    return [name for name in names if name != "index.html" and not name.startswith("_static")]


def flaws_of(page, url, widths):
    """What is wrong with a page as it opens in a window of the first width, and when the window takes the others."""
    found = []
    for width in widths:
        page.set_viewport_size({"width": width, "height": 900})
        if width == widths[0]:
            page.goto(url)
        assert page.evaluate("innerWidth") == width
        found += [f"{url}, {width} wide: {flaw}" for flaw in page.evaluate(FLAWS)]
    return found


def errors_and_strangers(page, base):
    """A list that fills: errors in the console, and requests that go elsewhere, each with the page it was on."""
    heard = []

    def hear(text):
        heard.append(f"{page.url}: {text}")

    page.on("console", lambda message: hear(message.text) if message.type == "error" else None)
    page.on("request", lambda request: None if request.url.startswith((base, "data:")) else hear(request.url))
    return heard


def test_every_page_is_looked_at_but_the_one_that_leads_to_the_first(tmp_path):
    for name in ("index.html", "README.html", "docs/examples/index.html", "_static/webpack-macros.html"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert pages(tmp_path) == ["README.html", "docs/examples/index.html"]


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "widths"), [("light", (1400, 400)), ("dark", (400, 1400))])
def test_every_page_fits_its_window_and_is_complete(browser, base, site, scheme, widths):
    page = browser.new_page(color_scheme=scheme)
    found, heard = [], errors_and_strangers(page, base)
    for name in pages(site):
        found += flaws_of(page, base + name, widths)
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
    page.close()
    assert found + heard == []


@pytest.mark.slow
@pytest.mark.browser
def test_tables_and_commands_of_the_first_pages_are_in_full_sight(browser, base):
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    for name in FIT_WHEN_WIDE:
        page.goto(base + name)
        assert page.evaluate(MOVED) == [], name
    page.close()


@pytest.mark.slow
@pytest.mark.browser
def test_the_search_finds_a_page(browser, base):
    page = browser.new_page()
    page.goto(f"{base}search.html?q=relabel")
    page.locator("#search-results li a").nth(3).wait_for(timeout=60_000)  # one after the other
    page.close()
