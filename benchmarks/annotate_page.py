"""The page of `greenlabel annotate`, measured in headless Chromium with software rendering.

    python benchmarks/annotate_page.py digits 10000 100000 1000000      digits, or numbers of rows; into annotate.json
    python benchmarks/annotate.py --page                                and from there onto the page

command    seconds from the command to the first map with colours
key        ms from a key press to the first new colours on the canvas, median; and what of that is the page's own
pan        ms, longest and median time between two frames while the map is dragged
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import psutil

from greenlabel.datasets import digits
from measures import mixture
from run import commit

KEPT = Path(__file__).parent / "annotate.json"

N_LABELS = 200  # that the table comes with, so that its first map has colours
PRESSES = 9
PAN_SECONDS = 4.0
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 900.0

HAS_COLOURS = "window.greenlabel?.scene.map.drawn > 0 && greenlabel.store.classes?.some((index) => index < 255)"
IS_AT_REST = (
    "greenlabel.flow.row !== null && greenlabel.store.state.stage.name === 'ready'"
    " && greenlabel.scene.map.progress === 1"
    " && greenlabel.scene.map.drawn === greenlabel.scene.map.n && greenlabel.store.pending === 0"
)
# A key's own time of day, and the moment when a frame with the new generation is drawn: reading a pixel waits for it.
WATCH_KEYS = """() => {
  const { map } = greenlabel.scene, seen = [], after = map.onFrame;
  const { hooks } = greenlabel.flow.outbox, take = hooks.onFrame;
  let pressed = null, generation = null, replied = null;
  hooks.onFrame = (...reply) => { replied = performance.now(); take(...reply); };
  window.keyTimes = seen;
  addEventListener("keydown", (event) => { pressed = event.timeStamp; generation = map.generation; }, true);
  map.onFrame = () => {
    after();
    if (pressed === null || map.generation === generation || map.drawn === 0) return;
    map.gl.readPixels(0, 0, 1, 1, map.gl.RGBA, map.gl.UNSIGNED_BYTE, new Uint8Array(4));
    const now = performance.now();
    seen.push({ whole: now - pressed, page: now - replied });
    pressed = null;
  };
}"""
WATCH_FRAMES = """() => {
  let last = performance.now();
  window.frameTimes = [];
  const tick = () => {
    const now = performance.now();
    frameTimes.push(now - last);
    last = now;
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}"""


def write_table(folder: Path, size: str) -> Path:
    """The digits, or a mixture of so many rows and 64 columns, with some labels."""
    X, y = digits() if size == "digits" else mixture(int(size))
    kinds = [f"kind {label}" if row < N_LABELS else None for row, label in enumerate(y)]
    path = folder / "table.parquet"
    pl.DataFrame(X, schema=[f"x{j}" for j in range(X.shape[1])]).with_columns(kind=pl.Series(kinds)).write_parquet(path)
    return path


@contextmanager
def serving(table: Path) -> Iterator[str]:
    """The address of the command on a table."""
    command = [sys.executable, "-m", "greenlabel", "annotate", str(table), "--target", "kind", "--no-browser"]
    environment = os.environ | {"XDG_CACHE_HOME": str(table.parent / "cache")}  # no map of an earlier run
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


@contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        raise SystemExit("No Chromium is installed; the page cannot be measured.")
    with sync_playwright() as player:
        options = ["--enable-unsafe-swiftshader", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        browser = player.chromium.launch(executable_path=program, args=options)
        yield browser
        browser.close()


def until(page: Any, condition: str) -> None:
    """Waits for an expression; playwright's own wait would compile it in the page, which its policy forbids."""
    end = time.monotonic() + PATIENCE
    while not page.evaluate(f"() => Boolean({condition})"):
        if time.monotonic() > end:
            raise SystemExit(f"never came: {condition}")
        time.sleep(0.01)


def key_times(page: Any) -> list[dict[str, float]]:
    """ms of presses of class keys, each when the page is at rest: the whole, and the page's part since the reply."""
    page.evaluate(WATCH_KEYS)
    for press in range(PRESSES):
        until(page, IS_AT_REST)
        page.keyboard.press(str(1 + press % 9))
        until(page, f"keyTimes.length === {press + 1}")
    return page.evaluate("() => keyTimes")


def pan_times(page: Any) -> list[float]:
    """ms between frames while a hand drags the map."""
    until(page, IS_AT_REST)
    page.mouse.move(500, 400)
    page.mouse.down()
    page.mouse.move(520, 410)
    page.evaluate(WATCH_FRAMES)
    end, step = time.monotonic() + PAN_SECONDS, 0
    while time.monotonic() < end:
        step += 1
        page.mouse.move(500 + 3 * (step % 80), 400 + 2 * (step % 50))
    times = page.evaluate("() => frameTimes")
    page.mouse.up()
    return times


def measured(size: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        table = write_table(Path(folder), size)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        start = time.monotonic()
        with serving(table) as url:
            page.goto(url)
            page.wait_for_url(lambda address: "token" not in address)
            until(page, HAS_COLOURS)
            command = time.monotonic() - start
            keys, pans = key_times(page), pan_times(page)
            page.close()
    return {
        "size": "digits" if size == "digits" else f"{int(size):,} rows",
        "command s": round(command, 2),
        "key ms": statistics.median(key["whole"] for key in keys),
        "key best ms": min(key["whole"] for key in keys),
        "key page ms": statistics.median(key["page"] for key in keys),
        "pan longest ms": max(pans),
        "pan median ms": statistics.median(pans),
        "load": round(psutil.getloadavg()[0], 1),
    }


def entries(found: dict[str, Any]) -> dict[str, dict[str, float]]:
    """By the names that annotate.py lists; the first value is the one of its table."""
    size, load = found["size"], {"load": found["load"]}
    names = {"key best ms": "best", "key page ms": "of that, the page since the reply"}
    return {
        f"key press to new colours, {size}, ms": {"value": found["key ms"]}
        | {names[name]: found[name] for name in names}
        | load,
        f"command to a map with colours in the browser, {size}, s": {"value": found["command s"]} | load,
        f"longest frame while panning, {size}, ms": {"value": found["pan longest ms"], "median": found["pan median ms"]}
        | load,
    }


def main(sizes: list[str]) -> None:
    for size in sizes:
        found = measured(size)
        print(json.dumps(found), flush=True)
        kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
        for name, values in entries(found).items():
            kept[name] = {"commit": commit(), "date": str(date.today()), "values": values}
        KEPT.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:] or ["digits", "10000", "100000", "1000000"])
