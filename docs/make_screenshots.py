"""Screenshots of `greenlabel annotate` for the README and docs/annotate.md, made by a browser that labels.

    python docs/make_screenshots.py [name ...]      all of them, or those named; needs Chromium and playwright

Every screenshot is one function in SCREENSHOTS that gets a page and leaves it as it is to be seen.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import cos, sin, tau
from pathlib import Path
from typing import Any

from PIL import Image
from sklearn.datasets import load_digits

FOLDER = Path(__file__).parent / "figures"
WINDOW = {"width": 1360, "height": 850}
PATIENCE = 300.0
IS_SETTLED = (
    "greenlabel.store.state.stage.name === 'ready' && greenlabel.store.mapVersion === 2"
    " && greenlabel.scene.map.progress === 1"
    " && greenlabel.scene.map.drawn === greenlabel.scene.map.n"
)


@dataclass(frozen=True)
class Screenshot:
    """What is done on the page of the demo before it is looked at, and the browser's options."""

    act: Callable[[Any], None]
    scheme: str = "light"


def until(page: Any, condition: str) -> None:
    """Waits for an expression; playwright's own wait would compile it in the page, which its policy forbids."""
    end = time.monotonic() + PATIENCE
    while not page.evaluate(f"() => Boolean({condition})"):
        if time.monotonic() > end:
            raise SystemExit(f"never came: {condition}")
        time.sleep(0.05)


def label_rows(page: Any, n: int) -> None:
    """As a person would who knows digits: the row that the page proposes, by the key of its class."""
    digits = load_digits().target
    for _ in range(n):
        until(page, "greenlabel.flow.row !== null")
        row = page.evaluate("() => greenlabel.flow.row")
        key = page.evaluate(
            "(name) => greenlabel.store.state.classes.find((one) => one.name === name).key", str(digits[row])
        )
        page.keyboard.press(key)
        until(page, f"![null, {row}].includes(greenlabel.flow.row)")


def draw_digits(page: Any) -> None:
    label_rows(page, 26)
    while page.evaluate("() => Boolean(greenlabel.store.current.audit)"):  # its prediction would be hidden
        label_rows(page, 1)


def draw_selection(page: Any) -> None:
    """A lasso around rows, and what a class would change."""
    label_rows(page, 12)
    until(page, IS_SETTLED)
    x, y = page.evaluate("""() => {
      const { names } = greenlabel.scene.overlay;
      const { x, y } = names[0];
      const box = document.getElementById("map").getBoundingClientRect();
      const [sx, sy] = greenlabel.scene.camera.toScreen(x, y);
      return [box.left + sx, box.top + sy];
    }""")
    page.click("#tool-lasso")
    corners = [(x + 120 * cos(tau * k / 40) * (1 + 0.1 * sin(3 * k)), y + 95 * sin(tau * k / 40)) for k in range(41)]
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*corner)
    page.mouse.up()
    until(page, "greenlabel.store.selected")
    page.hover(".class-button >> nth=0")
    until(page, "greenlabel.store.preview?.changes")


SCREENSHOTS = {
    "annotate-digits": Screenshot(draw_digits),
    "annotate-selection": Screenshot(draw_selection, "dark"),
}


@contextmanager
def demo(folder: str) -> Iterator[str]:
    """The address of a demo that begins without a label."""
    command = [sys.executable, "-m", "greenlabel", "annotate", "--demo", "--no-browser"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def take(browser: Any, screenshot: Screenshot, path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, demo(folder) as url:
        page = browser.new_page(viewport=WINDOW, color_scheme=screenshot.scheme)
        page.goto(url)
        page.wait_for_url(lambda address: "token" not in address)
        until(page, f"window.greenlabel?.store.card && {IS_SETTLED}")
        screenshot.act(page)
        until(page, f"{IS_SETTLED} && document.querySelectorAll('.toast').length === 0")
        page.screenshot(path=path)
        page.close()
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def main(names: list[str]) -> None:
    from playwright.sync_api import sync_playwright

    unknown = [name for name in names if name not in SCREENSHOTS]
    if unknown:
        raise SystemExit(f"no screenshot is called {', '.join(unknown)}; choose from {', '.join(SCREENSHOTS)}")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    options = ["--enable-unsafe-swiftshader", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=program, args=options)
        for name in names or SCREENSHOTS:
            take(browser, SCREENSHOTS[name], FOLDER / f"{name}.png")
            print(f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
