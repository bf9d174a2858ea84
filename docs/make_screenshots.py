"""Pictures of `greenlabel annotate` for the README and docs/annotate.md, made by a browser that labels.

    python docs/make_screenshots.py [name ...]      all of them, or those named; needs Chromium and playwright

A picture is a function in PICTURES that gets a page and yields whenever it is as it is to be seen. Where that happens
more than once, the picture moves: an animated PNG, whose last frame is what a program shows that knows no animation.
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
from io import BytesIO
from math import cos, sin, tau
from pathlib import Path
from typing import Any

from PIL import Image
from sklearn.datasets import load_digits

FOLDER = Path(__file__).parent / "figures"
FRAMES = [0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 17, 20, 23, 26]  # labels that are given before a frame
FIRST, NEXT, LAST = 1200, 700, 4000  # milliseconds of a frame
TIMES = 2  # a moving picture is shown, then it stands still
PATIENCE = 300.0
IS_SETTLED = (
    "greenlabel.store.state.stage.name === 'ready' && greenlabel.store.mapVersion === 2"
    " && greenlabel.scene.map.progress === 1"
    " && greenlabel.scene.map.drawn === greenlabel.scene.map.n"
)


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


def label_digits(page: Any) -> Iterator[None]:
    """The map from no label to some tens: how each label flows over all rows."""
    given = 0
    for n in FRAMES:
        label_rows(page, n - given)
        given = n
        yield
    while page.evaluate("() => Boolean(greenlabel.store.current.audit)"):  # its prediction would be hidden
        label_rows(page, 1)
    yield


def select_rows(page: Any) -> Iterator[None]:
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
    yield


@dataclass(frozen=True)
class Picture:
    """What is done on the page of the demo, and how the page is opened."""

    act: Callable[[Any], Iterator[None]]
    scheme: str
    width: int
    height: int


PICTURES = {
    "annotate-flow": Picture(label_digits, "light", 1200, 750),  # letters are as large as a README of 850 pixels needs
    "annotate-selection": Picture(select_rows, "dark", 1360, 850),
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


def frames_of(browser: Any, wanted: Picture) -> Iterator[Image.Image]:
    with tempfile.TemporaryDirectory() as folder, demo(folder) as url:
        window = {"width": wanted.width, "height": wanted.height}
        page = browser.new_page(viewport=window, color_scheme=wanted.scheme)
        page.goto(url)
        page.wait_for_url(lambda address: "token" not in address)
        until(page, f"window.greenlabel?.store.card && {IS_SETTLED}")
        for _ in wanted.act(page):
            until(page, f"{IS_SETTLED} && document.querySelectorAll('.toast').length === 0")
            yield Image.open(BytesIO(page.screenshot())).convert("RGB")
        page.close()


def with_one_palette(frames: list[Image.Image]) -> list[Image.Image]:
    """The same 256 colours for all frames, so that what stands still on the page does in the picture too."""
    width, height = frames[0].size
    column = Image.new("RGB", (width, height * len(frames)))
    for i, frame in enumerate(frames):
        column.paste(frame, (0, i * height))
    palette = column.quantize(256, dither=Image.Dither.NONE)
    return [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]


def save(frames: list[Image.Image], path: Path) -> None:
    small = with_one_palette(frames)
    if len(small) == 1:
        small[0].save(path, optimize=True)
        return
    durations = [FIRST, *[NEXT] * (len(small) - 2), LAST]
    moving = {"save_all": True, "append_images": small, "duration": durations, "loop": TIMES, "default_image": True}
    small[-1].save(path, optimize=True, **moving)


def main(names: list[str]) -> None:
    from playwright.sync_api import sync_playwright

    unknown = [name for name in names if name not in PICTURES]
    if unknown:
        raise SystemExit(f"no picture is called {', '.join(unknown)}; choose from {', '.join(PICTURES)}")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    options = ["--enable-unsafe-swiftshader", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=program, args=options)
        for name in names or PICTURES:
            save([*frames_of(browser, PICTURES[name])], FOLDER / f"{name}.png")
            print(f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
