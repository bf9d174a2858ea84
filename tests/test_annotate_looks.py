"""The page of `greenlabel annotate` in a real browser: how it looks, and what tables may hold without harm."""

import re
from pathlib import Path

import numpy as np
import pytest

import greenlabel
from helpers.annotate_page import WITHOUT_WEBGL, serving, write_table

STATIC = Path(greenlabel.__file__).parent / "annotate" / "static"
HOSTILE = [
    "<img src=x onerror='window.harm = 1'>",
    "</script><script>window.harm = 1</script>",
    "\u202eleft to right\u2066 or not",
    "a" * 3000,
    "bell\u0007 and escape\u001b[31m",
    "javascript:window.harm=1",
]


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees")
    write_table(folder / "trees.csv", ["oak", "ash", "elm"], n_labels=12)
    with serving("trees.csv", "--target", "kind", folder=folder) as served:
        yield served


# Without a browser


def theme_colours():
    """{theme: {name: (r, g, b)}} from the stylesheet."""
    text = (STATIC / "style.css").read_text(encoding="utf-8")
    blocks = {"light": r":root \{(.*?)\n\}", "dark": r':root\[data-theme="dark"\] \{(.*?)\n\}'}
    return {
        theme: {
            name: tuple(bytes.fromhex(value))
            for name, value in re.findall(r"--([\w-]+): #(\w{6});", re.search(pattern, text, re.DOTALL).group(1))
        }
        for theme, pattern in blocks.items()
    }


def luminance(colour):
    """Of WCAG 2: linear light, weighted as eyes weigh it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (value / 255 for value in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_stands_out_from_what_it_stands_on(theme):
    colours = theme_colours()[theme]
    pairs = [(ink, paper) for ink in ("ink", "soft") for paper in ("paper", "sheet", "sunk", "accent-wash")]
    pairs += [("accent", "accent-wash"), ("accent-ink", "accent"), ("warn", "warn-wash"), ("danger", "sheet")]
    assert {pair: value for pair in pairs if (value := contrast(colours[pair[0]], colours[pair[1]])) < 4.5} == {}


def test_the_map_and_the_page_agree_on_colours():
    palette = (STATIC / "palette.js").read_text(encoding="utf-8")
    for theme, colours in theme_colours().items():
        line = re.search(rf"{theme}: \{{(.*?)\}},\n", palette).group(1)
        for ours, theirs in {"background": "paper", "doubt": "doubt", "neutral": "neutral", "rest": "rest"}.items():
            assert re.search(rf'{ours}: "#(\w+)"', line).group(1) == bytes(colours[theirs]).hex()


# The map


@pytest.mark.browser
def test_the_map_is_drawn_by_webgl_and_is_not_empty(trees, visit):
    page = visit(trees)
    assert "SwiftShader" in page.now("greenlabel.scene.map.renderer") or page.now("greenlabel.scene.map.renderer")
    colours = page.colours()
    background = theme_colours()["light"]["paper"]
    n_drawn = sum(n for colour, n in colours.items() if colour != background)
    assert n_drawn > 300 * 9  # 300 rows, no point smaller than 3 x 3
    assert len(colours) > 50


@pytest.mark.browser
def test_classes_have_colours_that_stay_when_they_are_renamed_or_others_go(tmp_path, visit):
    write_table(tmp_path / "t.csv", ["oak", "ash", "elm"], n_labels=9)
    with serving("t.csv", "--target", "kind", folder=tmp_path) as served:
        page = visit(served)

        def colours():
            return page.now(
                "Object.fromEntries(greenlabel.store.state.classes.map(({ id, name }) =>"
                "[name, greenlabel.scene.focus.colour(id, 'light')]))"
            )

        before = colours()
        assert len(set(before.values())) == 3
        page.page.click(".class-line:nth-child(2) .class-edit")
        page.page.fill("#dialog input[name=name]", "fir")
        page.press("Enter").until("greenlabel.store.state.classes.some(({ name }) => name === 'fir')")
        assert colours() == {"oak": before["oak"], "fir": before["ash"], "elm": before["elm"]}
        page.page.click(".class-line:nth-child(1) .class-edit")
        page.page.click("#dialog .danger")
        page.until("greenlabel.store.state.classes.length === 2")
        page.page.reload()
        page.until("window.greenlabel && greenlabel.flow.row !== null")
        assert colours() == {"fir": before["ash"], "elm": before["elm"]}


@pytest.mark.browser
def test_a_row_is_found_under_the_pointer_and_a_click_makes_it_the_current_one(trees, visit):
    page = visit(trees)
    row = 57
    x, y = page.positions()[row]
    box = page.page.locator("#map").bounding_box()
    page.page.mouse.move(box["x"] + x, box["y"] + y)
    page.until("greenlabel.store.hoveredCard && !document.getElementById('tooltip').hidden")
    found = page.now("greenlabel.store.hovered")
    assert ((page.positions()[found] - (x, y)) ** 2).sum() <= 1
    page.page.mouse.click(box["x"] + x, box["y"] + y)
    page.until(f"greenlabel.flow.row === {found}")


@pytest.mark.browser
def test_the_wheel_zooms_to_the_pointer_a_drag_pans_and_0_fits(trees, visit):
    page = visit(trees)
    fitted = page.positions()
    box = page.page.locator("#map").bounding_box()
    x, y = fitted[57]
    page.page.mouse.move(box["x"] + x, box["y"] + y)
    page.page.mouse.wheel(0, -240)
    page.until("greenlabel.scene.camera.zoom > 1.5")
    zoomed = page.positions()
    np.testing.assert_allclose(zoomed[57], (x, y), atol=1)
    assert np.ptp(zoomed[:, 0]) > 1.5 * np.ptp(fitted[:, 0])
    page.draw([(300, 300), (340, 320)])
    np.testing.assert_allclose(page.positions(), zoomed + np.array([40, 20]), atol=1)
    page.press("0").until("greenlabel.scene.camera.zoom === 1")
    np.testing.assert_allclose(page.positions(), fitted, atol=1)


@pytest.mark.browser
def test_every_view_colours_the_rows_that_it_is_about(trees, visit):
    page = visit(trees)
    page.label("1")
    n = page.state("labels")
    seen = (
        "[greenlabel.store.view, greenlabel.scene.look().classes.filter((index) => index < 255).length,"
        "greenlabel.store.changed.length, greenlabel.store.suspects?.length ?? 0]"
    )
    found = {}
    for _ in range(5):
        view, coloured, n_changed, n_suspects = page.now(seen)
        expected = {"prediction": 300, "confidence": 300, "given": n, "suspects": n_suspects, "changed": n_changed}
        found[view] = coloured == expected[view]
        page.press("]").until(f"greenlabel.store.view !== '{view}'")
    assert found == dict.fromkeys(("prediction", "confidence", "given", "suspects", "changed"), True)
    page.press("Control+z").until(f"greenlabel.store.state.labels === {n - 1}")


@pytest.mark.browser
def test_the_map_comes_back_when_the_driver_lost_it(trees, visit):
    page = visit(trees)
    before = page.colours()
    page.now("(window.lost = greenlabel.scene.map.gl.getExtension('WEBGL_lose_context')).loseContext()")
    page.until("greenlabel.scene.map.gl.isContextLost()")
    page.now("lost.restoreContext()")
    page.until("!greenlabel.scene.map.gl.isContextLost() && greenlabel.scene.map.shown.camera")
    assert page.colours() == before


@pytest.mark.browser
def test_without_webgl_the_page_says_so_and_draws_a_coarse_map(trees, visit):
    page = visit(trees, script=WITHOUT_WEBGL)
    assert "no WebGL 2" in page.page.inner_text("#no-webgl")
    page.until("greenlabel.store.state.stage.name === 'ready'")
    n_colours = page.now(
        "new Set(new Uint32Array(greenlabel.scene.map.context.getImageData(0, 0, greenlabel.scene.map.canvas.width,"
        "greenlabel.scene.map.canvas.height).data.buffer)).size"
    )
    assert n_colours > 3
    n = page.state("labels")
    page.label("1")
    page.press("Control+z").until(f"greenlabel.store.state.labels === {n}")


@pytest.mark.browser
def test_a_hundred_classes_are_found_by_name_and_eight_have_colours(tmp_path, visit):
    names = [f"kind {i:03d}" for i in range(100)]
    write_table(tmp_path / "t.csv", names, n=600, n_labels=300)
    with serving("t.csv", "--target", "kind", folder=tmp_path) as served:
        page = visit(served)
        assert len(page.state("classes")) == 100
        assert page.now("greenlabel.store.focus.length") == 8
        page.until("greenlabel.scene.overlay.names.length > 50")
        last = page.state("classes")[99]
        assert last["key"] is None
        row = page.row
        page.press("/")
        page.page.keyboard.type(last["name"])
        page.press("Enter").until(
            f"![null, {row}].includes(greenlabel.flow.row) && greenlabel.store.state.labels === 301"
        )
        given = dict(zip(page.state("given_rows.rows"), page.state("given_rows.classes"), strict=True))
        assert given[row] == last["id"]
        page.page.locator(".class-pin").last.click()
        page.until(f"greenlabel.store.focus.includes({last['id']})")
        assert page.now("greenlabel.store.focus.length") == 8
        assert not page.is_scrolled_sideways


@pytest.mark.browser
def test_a_class_is_seen_in_its_colour_or_in_grey_whichever_classes_are_in_focus(trees, visit):
    page = visit(trees)
    must, home = [9, 3, 1], [[id, id % 8] for id in range(10)]  # 1 and 9 share a home, and both must be seen
    slots = dict(
        page.page.evaluate(
            "async ([must, home]) => { const { assignSlots } = await import('/static/palette.js');"
            "return [...assignSlots(must, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], new Map(home))]; }",
            [must, home],
        )
    )
    assert len(slots) == 8 == len(set(slots.values()))
    assert set(must) <= set(slots)
    assert [id for id, slot in slots.items() if slot != id % 8] == [1]


# The page


@pytest.mark.browser
def test_the_page_is_dark_where_the_system_is_and_a_button_turns_it(trees, visit):
    page = visit(trees, color_scheme="dark")
    dark, light = (theme_colours()[theme]["paper"] for theme in ("dark", "light"))
    colours = page.colours()
    assert max(colours, key=colours.get) == dark
    page.page.click("#theme")
    colours = page.colours()
    assert max(colours, key=colours.get) == light
    page.page.reload()
    page.until("window.greenlabel && greenlabel.flow.row !== null")
    assert page.now("document.documentElement.dataset.theme") == "light"


@pytest.mark.browser
def test_a_narrow_window_stacks_and_does_not_scroll_sideways(trees, visit):
    page = visit(trees, viewport={"width": 420, "height": 800})
    assert not page.is_scrolled_sideways
    map_area, panel = (page.page.locator(name).bounding_box() for name in ("#map-area", "#panel"))
    assert panel["y"] >= map_area["y"] + map_area["height"] - 1
    assert map_area["width"] == panel["width"] == 420
    line, accuracy = (page.page.locator(name).first.bounding_box() for name in ("#list .row-line", "#accuracy"))
    assert page.now("document.getElementById('list').clientHeight") > 100
    assert line["y"] + line["height"] <= accuracy["y"]


@pytest.mark.browser
def test_the_head_of_a_card_stays_inside_it_whatever_stands_there(trees, visit):
    page = visit(trees, viewport={"width": 1280, "height": 800})
    long = "a class with a name that goes on and on"
    page.now(f"greenlabel.store.state.classes[0].name = '{long}'")
    page.now("greenlabel.store.set({ current: { row: 3, source: 'suspects', reason: 'x', given: 0, suggested: 1 } })")
    page.until("greenlabel.flow.row === 3 && document.querySelector('#card [data-key=Keep]')")
    edge = page.page.locator("#panel").bounding_box()
    for part in page.page.locator(".card-head button, .card-head h2, .predicted").all():
        box = part.bounding_box()
        assert box["x"] + box["width"] <= edge["x"] + edge["width"]
        assert box["height"] < 60
    assert page.page.locator("#card h2").bounding_box()["height"] < 30  # one line


@pytest.mark.browser
def test_the_name_of_the_only_class_stands_where_its_label_is(tmp_path, visit):
    write_table(tmp_path / "t.csv", ["oak", "ash", "elm"])
    with serving("t.csv", "--target", "kind", "--classes", "oak", folder=tmp_path) as served:
        page = visit(served)
        row = page.row
        page.label("1").until("greenlabel.scene.overlay.names.length === 1")
        positions = page.positions()
        (name,) = page.now("greenlabel.scene.overlay.names.map(({x, y}) => greenlabel.scene.camera.toScreen(x, y))")
        nearest = np.hypot(*(positions - name).T).argmin()
        assert nearest % 3 == row % 3


@pytest.mark.browser
def test_every_button_and_field_has_a_name(trees, visit):
    page = visit(trees)
    nameless = page.now(
        "[...document.querySelectorAll('button, input, select')].filter((node) =>"
        "!node.textContent.trim() && !node.getAttribute('aria-label') && !node.labels?.length)"
        ".map((node) => node.outerHTML)"
    )
    assert nameless == []


@pytest.mark.browser
def test_space_after_a_click_on_a_button_skips_and_does_not_press_it_again(trees, visit):
    page = visit(trees)
    n, row = page.state("labels"), page.row
    page.page.click(".class-line:nth-child(1) .class-button")
    page.until(f"greenlabel.store.state.labels === {n + 1} && ![null, {row}].includes(greenlabel.flow.row)")
    row = page.row
    page.press(" ").until(f"![null, {row}].includes(greenlabel.flow.row)")
    assert page.state("labels") == n + 1
    page.press("Control+z", "Control+z").until(f"greenlabel.store.state.labels === {n}")


@pytest.mark.browser
def test_the_help_lists_keys_and_escape_closes_it(trees, visit):
    page = visit(trees)
    page.press("?").until("document.getElementById('dialog').open")
    shown = page.page.inner_text("#dialog")
    assert "Ctrl-Z" in shown
    assert "Random check" in shown
    page.press("Escape").until("!document.getElementById('dialog').open")


@pytest.mark.browser
def test_hostile_contents_are_shown_as_text_and_do_nothing(tmp_path, visit):
    name = "<img src=x onerror=window.harm=1>.csv"
    cells = [HOSTILE[row % len(HOSTILE)] for row in range(120)]
    kinds = [HOSTILE[0], HOSTILE[1], HOSTILE[2]]
    write_table(tmp_path / name, kinds, n=120, n_labels=30, **{HOSTILE[0]: cells, "text": cells})
    with serving(name, "--target", "kind", "--text", "text", folder=tmp_path) as served:
        page = visit(served)
        for row in range(len(HOSTILE)):
            page.now(f"greenlabel.store.set({{ current: {{ row: {row}, source: 'map' }} }})")
            page.until(f"greenlabel.flow.row === {row}")
            page.now(f"greenlabel.store.set({{ hovered: {row}, hoveredCard: greenlabel.store.card }})")
            page.until("!document.getElementById('tooltip').hidden")
        for tab in ("suspects", "class", "next"):
            page.page.click(f"#tab-{tab}")
        page.press("/")
        page.page.keyboard.type("<img src=x onerror=window.harm=2>")
        page.press("Enter").until("greenlabel.store.state.classes.length === 4")
        page.page.click(".class-line:nth-child(1) .class-edit")
        page.until("document.getElementById('dialog').open")
        assert HOSTILE[0] in page.page.input_value("#dialog input[name=name]")
        page.press("Escape")
        assert page.now("window.harm") is None
        assert page.now("document.querySelectorAll('img[src=x], script:not([src])').length") == 0
        assert "\u202e" not in page.page.inner_text("body")
        assert name in page.page.inner_text("#title")
        assert not page.is_scrolled_sideways
