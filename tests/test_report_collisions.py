"""Marks and numbers of the report keep clear of each other, whatever there is to show and however narrow the screen."""

import html
import json
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from greenlabel.tables.outcome import Validation
from greenlabel.tables.report.charts import bin_count, confidence_chart, reliability_chart
from greenlabel.tables.report.plane import sample_for_map
from helpers.browser import dumped
from helpers.reports import STRANGE, outcome_of, page_of

SIZES = {"number": 12}  # of letters, where they are largest; of all other texts 14
LETTER, POINT = 0.64, 0.32  # widths by the size: of a digit, and of a point, in the widest of the usual fonts
PROBE = """
const found = [], box = e => e.getBoundingClientRect();
const apart = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) < .5
  || Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) < 2.5;  // what is above letters and below them is empty
for (const svg of document.querySelectorAll('svg.chart, svg.map')) {
  const texts = [...svg.querySelectorAll('text')].filter(t => getComputedStyle(t).display != 'none');
  const marks = svg.matches('.chart') ? [...svg.querySelectorAll('circle, rect.bar, rect.bar-empty')] : [];
  const around = box(svg), all = [...texts, ...marks];
  texts.forEach((text, i) => {
    const own = box(text);
    if (own.left < around.left - .5 || own.right > around.right + .5) found.push(['outside', text.textContent]);
    for (const other of all.slice(i + 1))
      if (!apart(own, box(other))) found.push([text.textContent, other.textContent || other.tagName]);
  });
}
for (const cell of document.querySelectorAll('.classes td, .confusion td'))
  if (cell.scrollWidth > cell.clientWidth + 1) found.push(['cell', cell.textContent]);
parent.postMessage([NAME + ' ' + innerWidth, JSON.stringify(found)], '*');
"""


def everywhere_sure(n=100_000):
    """Thousands of rows and labels in every bin of the confidence."""
    outcome = outcome_of(["a", "b", "c"], n=n, per_class=15_000)
    confidence = (np.arange(n) % 10 + np.random.default_rng(0).random(n)) / 10
    return replace(outcome, probabilities=np.column_stack([confidence, 1 - confidence, 0 * confidence]))


def right_at_both_ends():
    """Labels that are all right where the confidence is low, and all wrong where it is high."""
    outcome = outcome_of(["a", "b", "c"], n=4000, per_class=1000)
    rows = outcome.validation.rows
    given = outcome.given[rows]
    confidence = np.linspace(0.34, 1, len(rows))
    P = np.repeat((1 - confidence[:, None]) / 2, 3, axis=1)
    P[np.arange(len(rows)), np.where(confidence < 0.65, given, (given + 1) % 3)] = confidence
    return replace(outcome, validation=Validation(rows, given, P))


CASES = {
    "two": lambda: outcome_of(["a", "b"], n=300, per_class=40),
    "ten": lambda: outcome_of([f"class {i}" for i in range(10)], n=2000, per_class=60),
    "many": lambda: outcome_of([*STRANGE, *(f"class number {i}" for i in range(49))], n=1500, per_class=8),
    "long": lambda: outcome_of([f"a rather long name of a class, {i}" for i in range(12)], n=900, per_class=20),
    "huge": everywhere_sure,
    "ends": right_at_both_ends,
}


@pytest.mark.browser
def test_nothing_collides_in_a_browser(tmp_path, monkeypatch):
    """Frames of several widths in one page, because a window has a least width; each says what it found."""
    monkeypatch.setattr("greenlabel.tables.report.page.sample_for_map", partial(sample_for_map, max_rows=300))
    frames = []
    for name, make in CASES.items():
        page = re.sub(r"<meta http-equiv[^>]*>", "", page_of(make()))
        probe = f"<script>{PROBE.replace('NAME', repr(name))}</script></body>"
        (tmp_path / f"{name}.html").write_text(page.replace("</body>", probe), encoding="utf-8")
        frames += [f'<iframe src="{name}.html" style="width:{w}px;height:900px"></iframe>' for w in (320, 392, 1282)]
    collect = "onmessage = event => document.getElementById('said').textContent += event.data.join('|') + '\\n'"
    wrapper = f'<!doctype html><meta charset="utf-8"><pre id="said"></pre><script>{collect}</script>{"".join(frames)}'
    (tmp_path / "wrapper.html").write_text(wrapper, encoding="utf-8")
    done = dumped(tmp_path / "wrapper.html", milliseconds=10000, timeout=240)
    said = html.unescape(re.search(r'<pre id="said">(.*?)</pre>', done.stdout, re.S)[1]).splitlines()
    found = {line.split("|", 1)[0]: json.loads(line.split("|", 1)[1]) for line in said}
    assert len(found) == len(frames)
    assert {key: collisions for key, collisions in found.items() if collisions} == {}


# Without a browser: boxes by the size of letters


def boxes(svg):
    """What is said, and left, top, right and bottom of each text and dot."""
    for style, said, x, y, anchor in texts(svg):
        size = SIZES.get(style, 14)
        wide = size * sum(POINT if letter in ".,\u00a0" else LETTER for letter in said)
        left = x - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
        yield said, (left, y - 0.75 * size, left + wide, y)
    for x, y in re.findall(r'<circle class="dot" cx="([\d.]+)" cy="([\d.]+)"', svg):
        yield "dot", (float(x) - 5, float(y) - 5, float(x) + 5, float(y) + 5)


def texts(svg):
    pattern = r'<text class="([\w-]+)" x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">([^<]*)<'
    for style, x, y, anchor, said in re.findall(pattern, svg):
        yield style, html.unescape(said), float(x), float(y), anchor


def collisions(svg):
    all_of_it = list(boxes(svg))
    return [
        (one, other)
        for i, (one, a) in enumerate(all_of_it)
        for other, b in all_of_it[i + 1 :]
        if one != "dot" or other != "dot"
        if min(a[2], b[2]) > max(a[0], b[0]) and min(a[3], b[3]) > max(a[1], b[1])
    ]


@pytest.mark.parametrize("rows", [1, 99, 1_000, 2_345, 9_949, 9_999, 12_345, 99_999])
def test_numbers_of_neighbouring_bars_do_not_touch(rows):
    confidence = np.repeat(np.linspace(0.05, 0.95, 10), rows)
    chart = confidence_chart(confidence, np.zeros(len(confidence), dtype=bool))
    assert len(list(boxes(chart))) >= 20
    assert collisions(chart) == []


@pytest.mark.parametrize("rows", [1, 999, 2_345, 9_999, 123_456])
@pytest.mark.parametrize("accuracy", [0.0, 0.5, 0.93, 1.0])
def test_no_dot_hides_a_word(rows, accuracy):
    bins = [
        {"from": b / 10, "to": (b + 1) / 10, "rows": rows, "confidence": c, "accuracy": accuracy}
        for b in range(10)
        for c in [{0: 0.0, 9: 1.0}.get(b, (b + 0.5) / 10)]
    ]
    assert collisions(reliability_chart(bins, 0.9)) == []


def test_a_number_over_a_bar_has_four_characters_at_most():
    assert [bin_count(k) for k in (999, 1_000, 2_345, 9_949, 9_950, 12_345)] == [
        "999",
        "1.0k",
        "2.3k",
        "9.9k",
        "10k",
        "12k",
    ]
    assert max(len(bin_count(k)) for k in range(0, 990_000, 37)) == 4
