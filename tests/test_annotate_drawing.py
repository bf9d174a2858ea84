"""The map of `greenlabel annotate` in a real browser: what is drawn, in which colours, in which order."""

import re
from pathlib import Path

import numpy as np
import pytest

import greenlabel
from helpers.annotate_page import WITHOUT_WEBGL, serving, write_table

STATIC = Path(greenlabel.__file__).parent / "annotate" / "static"
OKABE_ITO = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7"]  # and yellow and black, per theme
CROWD = """(() => {
  const { map } = greenlabel.scene, n = 20000, positions = new Float32Array(2 * n);
  clearTimeout(greenlabel.scene.namesTimer); // names are those of the table's rows
  let state = 7;
  const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
  for (let i = 0; i < 2 * n; i++) positions[i] = 0.2 * random();
  map.setPositions(positions, false);
  map.setLook(Uint8Array.from({ length: n }, (_, row) => Number(row >= n / 2)), new Uint8Array(n).fill(255));
})()"""  # many rows in a small place; in the table, those of one class come after those of the other


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """A table with eight classes and a few labels, which no test changes."""
    folder = tmp_path_factory.mktemp("trees")
    names = ["oak", "ash", "elm", "fir", "yew", "asp", "fig", "bay"]
    write_table(folder / "trees.csv", names, n_labels=32)
    with serving("trees.csv", "--target", "kind", folder=folder) as served:
        yield served


def module(page, name, expression, *arguments):
    """What an expression of a module's exports is."""
    return page.page.evaluate(
        f"async (given) => {{ const it = await import('/static/{name}.js'); return ({expression}); }}", arguments
    )


def in_colours(colours, wanted):
    """How many pixels have one of some colours, a step or two of rounding aside."""
    near = [n for colour, n in colours.items() if np.abs(np.subtract(colour, wanted)).max() <= 2]
    return sum(near)


def rgb(text):
    return tuple(bytes.fromhex(text[1:]))


# Order


@pytest.mark.browser
def test_rows_are_drawn_in_one_shuffled_order_that_is_the_same_every_time(trees, visit):
    page = visit(trees)
    order = np.array(page.now("Array.from(greenlabel.scene.map.order)"))
    assert np.array_equal(np.sort(order), np.arange(300))
    assert abs(np.corrcoef(order, np.arange(300))[0, 1]) < 0.2
    assert module(page, "picking", "Array.from(it.shuffled(300))") == order.tolist()
    page.until("greenlabel.store.mapVersion === 2")  # the second map keeps it
    assert page.now("Array.from(greenlabel.scene.map.order)") == order.tolist()
    large = np.array(module(page, "picking", "Array.from(it.shuffled(100000))"))
    share = [np.mean(large[:2000] < limit) for limit in (25_000, 50_000, 75_000)]  # a prefix is a fair sample
    np.testing.assert_allclose(share, (0.25, 0.5, 0.75), atol=0.05)


@pytest.mark.browser
@pytest.mark.parametrize("has_webgl", [True, False])
def test_no_class_hides_another_where_a_table_is_sorted_by_class(trees, visit, has_webgl):
    page = visit(trees, script=None if has_webgl else WITHOUT_WEBGL)
    page.until("greenlabel.store.state.stage.name === 'ready' && greenlabel.scene.map.progress === 1")
    page.now(CROWD)
    if has_webgl:
        page.until("greenlabel.scene.map.drawn === 20000 && greenlabel.scene.map.shown.camera")
        read = "greenlabel.scene.map.shown.pixels()"
    else:
        page.until("!greenlabel.scene.map.isAwake")
        canvas = "greenlabel.scene.map.canvas"
        read = f"greenlabel.scene.map.context.getImageData(0, 0, {canvas}.width, {canvas}.height).data"
    colours = dict(
        page.now(
            f"(() => {{ const bytes = {read}, found = new Map();"
            "for (let i = 0; i < bytes.length; i += 4) { const c = [bytes[i], bytes[i + 1], bytes[i + 2]].join();"
            "found.set(c, (found.get(c) ?? 0) + 1); } return [...found]; })()"
        )
    )
    colours = {tuple(map(int, key.split(","))): n for key, n in colours.items()}
    first, second = (in_colours(colours, rgb(page.now(f"greenlabel.scene.focus.colour({k}, 'light')"))) for k in (0, 1))
    assert first + second > 1000
    assert 0.4 < first / (first + second) < 0.6


@pytest.mark.browser
def test_a_slow_machine_draws_a_prefix_at_once_and_the_rest_in_slices_with_the_same_outcome(trees, visit):
    page = visit(trees)
    page.until("greenlabel.store.state.stage.name === 'ready' && greenlabel.scene.map.progress === 1")
    page.now("Object.assign(greenlabel.scene.map, { measure() {}, rate: 1e5 })")
    page.now(CROWD)
    page.until("greenlabel.scene.map.drawn === 20000 && !greenlabel.scene.map.isAwake")
    at_once = page.now("greenlabel.scene.map.shown.pixels().reduce((sum, byte, i) => (sum * 31 + byte + i) % 1e9, 7)")
    page.now(
        "(() => { const { map } = greenlabel.scene, draw = map.drawPoints; map.rate = 1; map.slices = [];"
        "map.drawPoints = function (first, size) { map.slices.push([first, size]); draw.call(map, first, size); }; })()"
    )
    page.now(CROWD)
    page.until("greenlabel.scene.map.drawn === 20000 && !greenlabel.scene.map.isAwake")
    slices = page.now("greenlabel.scene.map.slices")
    assert slices == [[2000 * k, 2000] for k in range(10)]
    again = page.now("greenlabel.scene.map.shown.pixels().reduce((sum, byte, i) => (sum * 31 + byte + i) % 1e9, 7)")
    assert again == at_once
    page.now("(greenlabel.scene.map.slices.length = 0, greenlabel.scene.camera.pan(9, 0), greenlabel.scene.moved())")
    page.until("greenlabel.scene.map.slices.length > 0")
    assert page.now("greenlabel.scene.map.slices[0]") == [0, 800]  # while it moves, a part of the prefix alone


# Colours


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_eight_classes_have_the_colours_of_okabe_and_ito(trees, visit, theme):
    page = visit(trees)
    colours = page.now(f"greenlabel.scene.focus.colours('{theme}')")
    assert colours[:6] == OKABE_ITO
    assert len(set(colours)) == 8


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_fade_to_grey_with_doubt_and_not_to_transparency(trees, visit, theme):
    page = visit(trees)
    asked = {"colours": [*OKABE_ITO[:2], None], "view": "prediction", "theme": theme}
    table = np.array(module(page, "palette", "Array.from(it.colourTable(given[0]))", asked)).reshape(256, 64, 4)
    grey = {
        name: rgb(value)
        for name, value in module(page, "palette", "it.themeColours(given[0])", theme).items()
        if name in ("doubt", "neutral", "rest")
    }
    assert (table[..., 3] == 255).all()
    np.testing.assert_allclose(table[0, -1, :3], rgb(OKABE_ITO[0]), atol=2)
    np.testing.assert_allclose(
        table[0, : 64 // 3, :3], [grey["doubt"]] * (64 // 3), atol=2
    )  # a third is a guess of three
    saturation = np.ptp(table[0, :, :3].astype(int), axis=1)
    assert (np.diff(saturation[21:]) >= -1).all()
    assert saturation[-1] > 100
    np.testing.assert_allclose(table[2, -1, :3], grey["rest"], atol=2)  # a class out of focus
    np.testing.assert_allclose(table[255, :, :3], [grey["neutral"]] * 64, atol=2)  # a row that no label reaches


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_given_label_stands_out_whatever_the_colour_of_its_class(trees, visit, theme):
    page = visit(trees)
    colours = page.now(f"greenlabel.scene.focus.colours('{theme}')")
    layers = {"selected": [], "suggested": [], "given": [[row, colour] for row, colour in enumerate(colours)]}
    made = module(
        page,
        "marks",
        f"Array.from(it.buildMarks(given[0], {{ theme: '{theme}', size: 5, where: () => [0, 0, 0, 0] }}).bytes)",
        layers,
    )
    marks = np.array(made).reshape(8, 32)
    fill, ring = marks[:, 16:19].astype(int), marks[:, 20:23].astype(int)
    assert (np.abs(fill - ring).max(axis=1) > 60).all()
    assert (marks[:, [19, 23]] == 255).all()


@pytest.mark.browser
@pytest.mark.parametrize("has_webgl", [True, False])
def test_labels_suggestions_and_the_selection_are_drawn_on_top(trees, visit, has_webgl):
    page = visit(trees, script=None if has_webgl else WITHOUT_WEBGL)
    page.until("greenlabel.store.queue.length === 10 && greenlabel.scene.map.marks?.n === 42")
    page.until("greenlabel.store.mapVersion === 2 && greenlabel.scene.map.progress === 1")
    row = page.state("given_rows.rows[0]")
    x, y = page.now(f"greenlabel.scene.screenPosition({row})")
    dark = (
        "(() => { const { canvas } = greenlabel.scene.map, copy = document.createElement('canvas');"
        "Object.assign(copy, { width: canvas.width, height: canvas.height });"
        "const context = copy.getContext('2d'); greenlabel.scene.map.frame(); context.drawImage(canvas, 0, 0);"
        f"const {{ data }} = context.getImageData({int(x)} - 8, {int(y)} - 8, 17, 17); let n = 0;"
        "for (let i = 0; i < data.length; i += 4) n += data[i] < 60 && data[i + 1] < 70 && data[i + 2] < 70;"
        "return n; })()"
    )
    assert page.now(dark) > 8  # its rim
    page.now("greenlabel.flow.select(Uint32Array.of(100, 101, 102), [])")
    page.until("greenlabel.scene.map.marks.n === 45")
    page.press("Escape").until("greenlabel.scene.map.marks.n === 42")


@pytest.mark.browser
def test_a_class_that_a_selection_may_get_has_its_colour_among_many(tmp_path, visit):
    write_table(tmp_path / "t.csv", [f"k{i:02d}" for i in range(30)], n=300, n_labels=90)
    with serving("t.csv", "--target", "kind", folder=tmp_path) as served:
        page = visit(served)
        page.now("greenlabel.flow.select(Uint32Array.of(1, 2, 3), [])")
        page.until("greenlabel.store.selected")
        for one in page.state("classes")[:12]:
            page.press(one["key"]).until(f"greenlabel.store.armed === {one['id']}")
            page.until(f"greenlabel.scene.focus.colour({one['id']}, 'light') !== null")
        last = page.state("classes")[29]["id"]
        page.page.hover(f"[data-class-id='{last}']")
        page.until(f"greenlabel.scene.focus.colour({last}, 'light') !== null")


def test_the_scale_of_the_legend_has_the_colours_of_the_map():
    style = (STATIC / "style.css").read_text(encoding="utf-8")
    ramps = re.findall(r'ramp: \["(#\w+)", "(#\w+)", "(#\w+)"\]', (STATIC / "palette.js").read_text(encoding="utf-8"))
    assert len(ramps) == 2
    assert all(", ".join(ramp) in style for ramp in ramps)
