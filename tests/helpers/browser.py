"""Pages in Chromium, where it is installed."""

import os
import shutil
import subprocess
from contextlib import contextmanager

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",  # where the console goes
    "--allow-file-access-from-files",
]


def dumped(page, milliseconds=5000, timeout=120):
    """What a browser made of the page at this path, after so much of its own time: the finished process.

    Its output is the document, its errors the console. Where there is no browser, the test skips.
    """
    if BROWSER is None:
        pytest.skip("no Chromium is installed; the page is not looked at in a browser")
    profile = f"--user-data-dir={page.parent / 'profile'}"
    budget = f"--virtual-time-budget={milliseconds}"
    return subprocess.run(
        [BROWSER, *QUIET, profile, "--window-size=1400,1000", "--dump-dom", budget, page.as_uri()],
        capture_output=True,
        encoding="utf-8",
        timeout=timeout,
        check=True,
    )


@contextmanager
def chromium():
    """Chromium in playwright's hands, with WebGL 2 drawn in software. Where one of the two is missing, tests skip."""
    if BROWSER is None:
        pytest.skip("no Chromium is installed; the page is not looked at in a browser")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed; no page is used")
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    options = ["--enable-unsafe-swiftshader", *(["--no-sandbox"] if is_root else [])]
    with playwright.sync_playwright() as player:
        browser = player.chromium.launch(executable_path=BROWSER, args=options)
        yield browser
        browser.close()
