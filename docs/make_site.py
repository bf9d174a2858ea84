"""Build the site and check it: python docs/make_site.py [FOLDER] [--serve]

A warning is an error: a broken link, a page outside the navigation, a docstring that cannot be read. So is a public
name that is missing on the API page, and anything that a page would load from a network.
"""

import re
import shutil
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).parents[1]
API = re.compile(r"^<!-- api: ([\w.]+) -->$", re.MULTILINE)
LOADING = {  # what a browser fetches by itself; a link that a reader may click is none of it
    "script": "src",
    "link": "href",
    "img": "src",
    "source": "src",
    "iframe": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
    "object": "data",
}
IN_STYLES = re.compile(r"""(?:url\(|@import)\s*["']?(?P<address>(?:https?:)?//[^"')\s]+)""")


class Loads(HTMLParser):
    """Addresses in a network that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        address = values.get(LOADING.get(tag, "")) or ""
        if re.match(r"(https?:)?//", address) and values.get("rel") != "canonical":
            self.found.append(address)
        self.found += [match["address"] for match in IN_STYLES.finditer(values.get("style") or "")]


def loads_from_network(folder: Path) -> Iterator[str]:
    for path in sorted([*folder.rglob("*.html"), *folder.rglob("*.css"), *folder.rglob("*.svg")]):
        text = path.read_text(encoding="utf-8")
        found = [match["address"] for match in IN_STYLES.finditer(text)] if path.suffix != ".html" else []
        if path.suffix == ".html":
            page = Loads()
            page.feed(text)
            found = page.found
        yield from (f"{path.relative_to(folder)} loads {address}" for address in found)


def missing_names(folder: Path) -> Iterator[str]:
    page = (folder / "docs" / "api.html").read_text(encoding="utf-8")
    names = API.findall((ROOT / "docs" / "api.md").read_text(encoding="utf-8"))
    yield from (f"docs/api.html does not show {name}" for name in names if f'id="{name}"' not in page)


def build(folder: Path, source: Path = ROOT) -> bool:
    """Whether all pages could be built without a warning. Sphinx says what is wrong."""
    from sphinx.cmd.build import main

    if (folder / "objects.inv").exists():  # pages that are gone would stay
        shutil.rmtree(folder)
    quiet_and_strict = ["-q", "-W", "--keep-going", "-E", "-d", str(folder.with_name(f"{folder.name}-doctrees"))]
    return main([*quiet_and_strict, "-b", "html", "-c", str(ROOT / "docs"), str(source), str(folder)]) == 0


def serve(folder: Path, port: int = 8000) -> None:
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        print(f"http://127.0.0.1:{port}/ shows it; Ctrl-C ends it.")
        server.serve_forever()


def main() -> int:
    parser = ArgumentParser(description="Build the site strictly, and check it.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "site")
    parser.add_argument("--serve", action="store_true", help="then show it on this machine")
    options = parser.parse_args()
    if not build(options.folder):
        return 1
    troubles = [*loads_from_network(options.folder), *missing_names(options.folder)]
    print("\n".join(troubles) or f"{options.folder / 'index.html'} is the first page.")
    if options.serve and not troubles:
        serve(options.folder)
    return int(bool(troubles))


if __name__ == "__main__":
    sys.exit(main())
