"""`greenlabel annotate` as people use it: the command in a process of its own, and its page in a browser."""

import csv
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np

import greenlabel

SECONDS = 60  # after which something will not come any more
IS_READY = "window.greenlabel && greenlabel.flow.row !== null"
IS_SETTLED = (  # the second map is the one that stays; its stage is told before it is fetched
    "greenlabel.store.state.stage.name === 'ready' && greenlabel.store.mapVersion === 2"
    " && greenlabel.scene.map.progress === 1"
)
WITHOUT_WEBGL = (  # a script that runs before those of a page
    "const real = HTMLCanvasElement.prototype.getContext;"
    "HTMLCanvasElement.prototype.getContext = function (kind, ...rest)"
    "{ return kind === 'webgl2' ? null : real.call(this, kind, ...rest); };"
)


def write_table(path, names, n=300, n_labels=0, **columns):
    """Groups of rows, one for each name, in six columns of numbers; the first rows may have their label already."""
    rng = np.random.default_rng(len(names))
    kinds = np.arange(n) % len(names)
    X = 5 * rng.normal(size=(len(names), 6))[kinds] + rng.normal(size=(n, 6))
    with open(path, "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow([*columns, *(f"x{j}" for j in range(6)), "kind"])
        for row in range(n):
            label = names[kinds[row]] if row < n_labels else ""
            table.writerow([*(column[row] for column in columns.values()), *np.round(X[row], 4), label])
    return path


class Served:
    """The command, running."""

    def __init__(self, *arguments, folder, port=None):
        self._arguments, self._folder = [str(argument) for argument in arguments], folder
        self.visits = []
        self.start(port)

    def start(self, port=None):
        """Also again after ``kill``; with the port of before, an open page finds it."""
        environment = os.environ | {
            "PYTHONPATH": str(Path(greenlabel.__file__).parents[1]),
            "XDG_CACHE_HOME": str(self._folder / "cache"),
            "OMP_NUM_THREADS": "1",
        }
        command = [sys.executable, "-m", "greenlabel", "annotate", *self._arguments, "--no-browser"]
        command += ["--port", str(port)] if port else []
        with open(self._folder / "errors.txt", "a") as errors:
            self._process = subprocess.Popen(
                command, cwd=self._folder, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        self.url = self._process.stdout.readline().strip()
        assert self.url, (self._folder / "errors.txt").read_text()
        self.port = urlsplit(self.url).port

    def fresh_url(self):
        """An address with a token that works: the printed one, or another one, which a stranger at the door brings."""
        url, self.url = self.url, None
        if url is None:
            with suppress(HTTPError):
                urlopen(f"http://127.0.0.1:{self.port}/", timeout=SECONDS)
            url = self._process.stdout.readline().strip()
        return url

    def kill(self):
        """As kill -9 does: no farewell."""
        self._process.kill()
        self._process.wait(SECONDS)
        self._process.stdout.close()

    def stop(self):
        """Ctrl-C, when nobody looks any more: a page would say that the server is gone."""
        for visit in self.visits:
            if not visit.page.is_closed():
                visit.page.close()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(SECONDS)
            self._process.stdout.close()


@contextmanager
def serving(*arguments, folder, port=None):
    served = Served(*arguments, folder=folder, port=port)
    try:
        yield served
    finally:
        served.stop()


class Visit:
    """A page, what its console said, and where its requests went."""

    def __init__(self, page):
        self.page, self.errors, self.hosts = page, [], set()
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))

    def open(self, url, is_ready=IS_READY):
        self.page.goto(url)
        self.page.wait_for_url(lambda address: "token" not in address)
        return self.until(is_ready)

    def now(self, expression):
        return self.page.evaluate(f"() => ({expression})")

    def until(self, condition):
        """Waits until an expression holds. playwright's own wait compiles it in the page, which the policy forbids."""
        end = time.monotonic() + SECONDS
        while not self.now(f"Boolean({condition})"):
            assert time.monotonic() < end, f"never came: {condition}\n{self.errors}"
            time.sleep(0.02)
        return self

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)
        return self

    def state(self, name):
        return self.now(f"greenlabel.store.state.{name}")

    @property
    def row(self):
        return self.now("greenlabel.store.current.row")

    def label(self, key):
        """Press the key of a class, and wait until the next row is there."""
        row, n = self.row, self.state("labels")
        self.press(key)
        return self.until(f"greenlabel.store.state.labels === {n + 1} && ![null, {row}].includes(greenlabel.flow.row)")

    def choose_tool(self, name):
        self.page.click(f"#tool-{name}")

    def draw(self, points):
        """Drag over points of the map, in pixels of it."""
        self.until(IS_SETTLED)
        box = self.page.locator("#map").bounding_box()
        mouse = self.page.mouse
        (x, y), *rest = [(box["x"] + x, box["y"] + y) for x, y in points]
        mouse.move(x, y)
        mouse.down()
        for x, y in rest:
            mouse.move(x, y, steps=4)
        mouse.up()

    def positions(self):
        """Where rows stand on the map, in pixels of it."""
        n = self.until(IS_SETTLED).state("n")
        return np.array(self.now(f"Array.from({{length: {n}}}, (_, row) => greenlabel.scene.screenPosition(row))"))

    def colours(self):
        """{colour: pixels} of the map as it is drawn, without marks."""
        self.until(f"{IS_SETTLED} && greenlabel.scene.map.drawn === greenlabel.scene.map.n")
        pairs = self.now(
            "(() => { const bytes = greenlabel.scene.map.shown.pixels(), found = new Map();"
            "for (let i = 0; i < bytes.length; i += 4) { const c = bytes[i] + ',' + bytes[i+1] + ',' + bytes[i+2];"
            "found.set(c, (found.get(c) ?? 0) + 1); } return [...found]; })()"
        )
        return {tuple(map(int, colour.split(","))): n for colour, n in pairs}

    @property
    def is_scrolled_sideways(self):
        return self.now("document.documentElement.scrollWidth > innerWidth")


class Visits:
    """Opens pages; each in a browser of its own, as it were, unless it is a second tab of another one."""

    def __init__(self, browser):
        self._browser, self.all, self._contexts = browser, [], []

    def __call__(self, served, *, beside=None, context=None, script=None, is_ready=IS_READY, **options):
        """``beside``: a visit whose cookie this tab shares; ``context``: a browser that has none of this server yet;
        ``script``: run before the page's own."""
        known = beside.page.context if beside else context
        context = known or self._browser.new_context(**{"viewport": WINDOW} | options)
        if not known:
            self._contexts.append(context)
        if script:
            context.add_init_script(script)
        visit = Visit(context.new_page())
        visit.may_lose_the_server = False
        self.all.append(visit)
        served.visits.append(visit)
        return visit.open(f"http://127.0.0.1:{served.port}/" if beside else served.fresh_url(), is_ready)

    def close(self):
        for context in self._contexts:
            context.close()


WINDOW = {"width": 1200, "height": 800}


@contextmanager
def visits(browser):
    """For a test: pages that in the end have no error in the console and asked nobody else for anything."""
    opened = Visits(browser)
    try:
        yield opened
        for visit in opened.all:
            assert len(visit.hosts) == 1, visit.hosts
            refused = "Failed to load resource"
            assert [text for text in visit.errors if not (visit.may_lose_the_server and refused in text)] == []
    finally:
        opened.close()
