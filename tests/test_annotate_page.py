"""The page of `greenlabel annotate` in a real browser: what keys, hands and accidents do."""

import csv
import re
import time
from pathlib import Path

import numpy as np
import pytest

import greenlabel
from helpers.annotate_page import serving, write_table

STATIC = Path(greenlabel.__file__).parent / "annotate" / "static"
THREE = ["oak", "ash", "elm"]


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    """A table with three classes and a few labels. Tests that change it leave it as they found it."""
    folder = tmp_path_factory.mktemp("trees")
    write_table(folder / "trees.csv", THREE, n_labels=12)
    with serving("trees.csv", "--target", "kind", folder=folder) as served:
        yield served


def inside(points, polygon):
    """Which points are in a polygon, one edge after the other (even-odd rule)."""
    found = np.zeros(len(points), bool)
    for (x1, y1), (x2, y2) in zip(polygon, [*polygon[1:], polygon[0]], strict=True):
        with np.errstate(divide="ignore", invalid="ignore"):
            at = x1 + (points[:, 1] - y1) / (y2 - y1) * (x2 - x1)
        found ^= ((y1 > points[:, 1]) != (y2 > points[:, 1])) & (points[:, 0] < at)
    return np.flatnonzero(found)


# Without a browser


def sources():
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(STATIC.iterdir())}


def test_no_module_makes_markup_from_text_or_code_from_strings():
    """Cells hold anything; textContent is the only way in."""
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|setHTML|srcdoc"
    assert {name: found for name, text in sources().items() if (found := re.findall(forbidden, text))} == {}


def test_nothing_comes_from_another_place():
    addresses = {name: re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"'`]*", text) for name, text in sources().items()}
    of_svg = "http://www.w3.org/2000/svg"  # a name, not an address
    assert {name: left for name, found in addresses.items() if (left := set(found) - {of_svg})} == {}


def test_the_page_needs_no_exception_from_a_strict_policy():
    page = sources()["index.html"]
    assert not re.search(r"\son\w+=|\sstyle=|<style|<script(?![^>]*\ssrc=)", page)


def test_what_modules_import_is_there_and_does_not_run_in_circles():
    imports = {
        name: set(re.findall(r'from "\./([\w.]+)"', text)) for name, text in sources().items() if name.endswith(".js")
    }
    left = dict(imports)
    while ready := [name for name, needed in left.items() if not needed & set(left)]:
        for name in ready:
            del left[name]
    assert left == {}
    assert set().union(*imports.values()) <= set(imports)


def test_elements_that_modules_look_up_are_on_the_page():
    there = set(re.findall(r'\bid="([\w-]+)"', sources()["index.html"]))
    asked = {name for text in sources().values() for name in re.findall(r'byId\("([\w-]+)"\)', text)}
    assert asked
    assert asked <= there


def test_modules_are_short():
    assert {name: n for name, text in sources().items() if (n := len(text.splitlines())) > 400} == {}


# Labels


@pytest.mark.browser
def test_a_key_labels_the_row_and_goes_on_to_the_next(trees, visit):
    page = visit(trees)
    row, n = page.row, page.state("labels")
    page.label("2")
    assert page.state("given_rows.rows").count(row) == 1
    assert page.state("classes")[1]["given"] == 5
    assert page.row != row
    page.press("Control+z").until(f"greenlabel.store.state.labels === {n} && greenlabel.flow.row === {row}")


@pytest.mark.browser
def test_new_colours_are_on_the_canvas_after_a_label(trees, visit):
    page = visit(trees)
    before, n, row = page.colours(), page.state("labels"), page.row
    index = page.now(f"greenlabel.scene.map.order.indexOf({row})")
    other = (page.now(f"greenlabel.store.classes[{row}]") + 1) % 3  # not what is predicted
    page.label(str(other + 1))
    page.until("greenlabel.scene.map.generation === greenlabel.store.state.generation")
    assert page.colours() != before
    assert page.now(f"Array.from(greenlabel.scene.map.look.slice({2 * index}, {2 * index + 2}))") == [other, 255]
    page.press("Control+z").until(f"greenlabel.store.state.labels === {n}")


@pytest.mark.browser
def test_a_key_held_down_labels_one_row(trees, visit):
    page = visit(trees)
    n = page.state("labels")
    for _ in range(5):
        page.page.keyboard.down("1")  # without a way up, the later ones are repetitions
    page.page.keyboard.up("1")
    page.until(f"greenlabel.store.state.labels === {n + 1}")
    time.sleep(0.5)
    assert page.state("labels") == n + 1
    page.press("Control+z").until(f"greenlabel.store.state.labels === {n}")


@pytest.mark.browser
def test_enter_accepts_the_prediction_and_space_skips_and_x_ignores(trees, visit):
    page = visit(trees)
    page.until("!greenlabel.store.card.hidden && greenlabel.store.card.prediction !== null")
    row, predicted, n = page.row, page.now("greenlabel.store.card.prediction"), page.state("labels")
    page.press("Enter").until(
        f"greenlabel.store.state.labels === {n + 1} && ![null, {row}].includes(greenlabel.flow.row)"
    )
    given = dict(zip(page.state("given_rows.rows"), page.state("given_rows.classes"), strict=True))
    assert given[row] == predicted
    row = page.row
    page.press(" ").until(f"![null, {row}].includes(greenlabel.flow.row)")
    row = page.row
    page.press("x").until(f"greenlabel.store.state.ignored === 1 && ![null, {row}].includes(greenlabel.flow.row)")
    assert page.state("ignored_rows") == [row]
    page.press("Control+z", "Control+z", "Control+z")
    page.until(f"greenlabel.store.state.labels === {n} && greenlabel.store.state.ignored === 0")


@pytest.mark.browser
def test_redo_brings_back_what_undo_took(trees, visit):
    page = visit(trees)
    n, row = page.state("labels"), page.row
    page.label("3")
    page.press("Control+z").until(f"greenlabel.store.state.labels === {n}")
    page.press("Control+Shift+Z").until(f"greenlabel.store.state.labels === {n + 1}")
    assert row in page.state("given_rows.rows")
    page.page.click("#undo")
    page.until(f"greenlabel.store.state.labels === {n}")


@pytest.mark.browser
def test_a_row_drawn_at_random_shows_no_prediction_before_it_is_answered(trees, visit):
    page = visit(trees)
    page.until("greenlabel.store.queue.some((entry) => entry.audit)")
    row = page.now("greenlabel.store.queue.find((entry) => entry.audit).row")
    page.page.click(f"#list [data-key='row-{row}']")
    page.until(f"greenlabel.flow.row === {row} && greenlabel.store.current.audit")
    assert page.now("greenlabel.store.card.prediction") is None
    assert "hidden" in page.page.inner_text("#card")
    assert page.now("greenlabel.scene.look().classes") is not None
    index = page.now(f"greenlabel.scene.map.order.indexOf({row})")
    assert page.now(f"greenlabel.scene.map.look[{2 * index}]") == 255


@pytest.mark.browser
def test_a_new_class_for_a_row_drawn_at_random_counts(tmp_path, visit):
    write_table(tmp_path / "t.csv", THREE, n_labels=6)
    with serving("t.csv", "--target", "kind", folder=tmp_path) as served:
        page = visit(served)
        while not page.now("greenlabel.store.current.audit"):
            page.label("1")
        n, row = page.state("labels"), page.row
        page.press("/")
        page.page.keyboard.type("yew")
        page.press("Enter").until(
            f"greenlabel.store.state.labels === {n + 1} && ![null, {row}].includes(greenlabel.flow.row)"
        )
        assert (page.state("accuracy.audits"), page.state("accuracy.right")) == (1, 0)


@pytest.mark.browser
def test_a_row_asked_at_random_that_another_tab_has_labelled_is_no_check_any_more(tmp_path, visit):
    write_table(tmp_path / "t.csv", THREE, n_labels=6)
    with serving("t.csv", "--target", "kind", folder=tmp_path) as served:
        one = visit(served)
        while not one.now("greenlabel.store.current.audit"):
            one.label("1")
        row = one.row
        other = visit(served, beside=one)
        assert other.row == row
        one.label("2")
        other.until("greenlabel.store.current.audit === false && greenlabel.store.card.given !== null")
        other.press("3").until("greenlabel.store.state.accuracy.audits === 0")
        assert other.now("document.querySelectorAll('.toast.problem').length") == 0


@pytest.mark.browser
def test_a_suspect_is_kept_with_one_key(tmp_path, visit):
    names = ["oak", "ash"]
    write_table(tmp_path / "t.csv", names, n_labels=40)
    lines = (tmp_path / "t.csv").read_text().splitlines()
    lines[1] = lines[1].replace("oak", "ash")  # row 0 lies among oaks
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    with serving("t.csv", "--target", "kind", folder=tmp_path) as served:
        page = visit(served)
        page.page.click("#tab-suspects")
        page.until("greenlabel.store.current?.source === 'suspects' && greenlabel.store.card.row === 0")
        page.now("greenlabel.flow.setView('suspects')")
        page.until("greenlabel.scene.map.marks.n === greenlabel.store.suspects.length")  # and no other label hides them
        page.press("=").until("greenlabel.store.suspects.every(({ row }) => row !== 0)")
        assert page.state("labels") == 40


@pytest.mark.browser
def test_a_suspect_is_changed_with_one_key(tmp_path, visit):
    write_table(tmp_path / "t.csv", ["oak", "ash"], n_labels=40)
    lines = (tmp_path / "t.csv").read_text().splitlines()
    lines[1] = lines[1].replace("oak", "ash")
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    with serving("t.csv", "--target", "kind", folder=tmp_path) as served:
        page = visit(served)
        page.page.click("#tab-suspects")
        page.until("greenlabel.store.current?.source === 'suspects' && greenlabel.flow.row === 0")
        oak = page.now("greenlabel.store.state.classes.find(({ name }) => name === 'oak').id")
        page.press("Enter").until("greenlabel.store.suspects.every(({ row }) => row !== 0)")
        assert page.state("given_rows.classes[0]") == oak


@pytest.mark.browser
def test_rows_of_a_class_are_listed_selected_and_its_class_merged(tmp_path, visit):
    write_table(tmp_path / "t.csv", THREE, n=90, n_labels=12)
    with serving("t.csv", "--target", "kind", folder=tmp_path) as served:
        page = visit(served)
        one = page.state("classes[1]")
        page.page.click(".class-line:nth-child(2) .class-edit")
        page.page.click("#dialog footer .small:not(.danger)")
        page.until(f"greenlabel.store.listed.class === {one['id']} && greenlabel.store.listed.rows.length > 0")
        assert page.now("greenlabel.store.listed.total") == one["predicted"]
        least = page.now("greenlabel.store.listed.rows.map((row) => greenlabel.store.confidence[row])")
        assert least == sorted(least)
        page.page.click("[data-key=select-all]")
        page.until(f"greenlabel.store.selection?.rows.length === {one['predicted'] + one['given']}")
        page.press("Escape").until("greenlabel.store.selection === null")
        page.page.click(".class-line:nth-child(2) .class-edit")
        page.page.select_option("#dialog select", label="oak")
        page.page.click("#dialog form:has(select) button")
        page.until("greenlabel.store.state.classes.length === 2")
        assert (page.state("classes[0].given"), page.state("labels")) == (8, 12)


# Many at once


@pytest.mark.browser
def test_a_lasso_selects_what_is_inside_it(trees, visit):
    page = visit(trees)
    polygon = [(200, 150), (500, 120), (620, 400), (400, 360), (250, 600)]
    page.choose_tool("lasso")
    page.draw([*polygon, polygon[0]])
    page.until("greenlabel.store.selected")
    chosen = page.now("Array.from(greenlabel.store.selection.rows)")
    assert chosen == inside(page.positions(), polygon).tolist() != []
    assert page.now("greenlabel.store.selected.size") == len(chosen)


@pytest.mark.browser
def test_a_box_selects_and_shift_adds_and_alt_subtracts(trees, visit):
    page = visit(trees)
    at = page.positions()
    middle = np.median(at[:, 0])

    def within(left, right):
        return set(np.flatnonzero((at[:, 0] > left) & (at[:, 0] < right) & (at[:, 1] > 5) & (at[:, 1] < 700)).tolist())

    def drag(left, right, key=None):
        page.choose_tool("box")
        if key:
            page.page.keyboard.down(key)
        page.draw([(left, 5), (right, 700)])
        if key:
            page.page.keyboard.up(key)
        page.until("greenlabel.store.selected")
        return set(page.now("Array.from(greenlabel.store.selection.rows)"))

    assert drag(100, middle) == within(100, middle) != set()
    assert drag(middle, 780, "Shift") == within(100, middle) | within(middle, 780)
    assert drag(100, middle, "Alt") == within(middle, 780)
    page.press("Escape").until("greenlabel.store.selection === null")


@pytest.mark.browser
def test_a_class_key_shows_what_a_selection_would_change_and_assigns_it_the_second_time(trees, visit):
    page = visit(trees)
    n = page.state("labels")
    page.choose_tool("box")
    page.draw([(300, 100), (500, 500)])
    page.until("greenlabel.store.selected")
    size = page.now("greenlabel.store.selection.rows.length")
    page.press("2").until("greenlabel.store.preview?.changes")
    assert page.state("labels") == n
    total = page.now("greenlabel.store.preview.changes.total")
    assert f"{total} prediction" in page.page.inner_text("#selection") or total == 0
    page.press("2").until(f"greenlabel.store.state.labels > {n} && greenlabel.store.selection === null")
    assert len(page.state("given_rows.rows")) >= size
    page.press("Control+z").until(f"greenlabel.store.state.labels === {n}")


@pytest.mark.browser
def test_rows_are_found_by_words_of_their_text_and_selected_all_at_once(tmp_path, visit):
    texts = [f"about {'onions' if row % 5 == 0 else 'leeks'}, number {row}" for row in range(60)]
    write_table(tmp_path / "t.csv", THREE, n=60, n_labels=6, text=texts)
    with serving("t.csv", "--target", "kind", "--text", "text", folder=tmp_path) as served:
        page = visit(served)
        assert "about" in page.page.inner_text("#list")
        page.press("/")
        page.page.keyboard.type("onion")
        page.until("document.querySelectorAll('#found .choice').length === 10")
        assert "about onions, number 5" in page.page.inner_text("#found")
        page.press("ArrowDown", "Enter").until("greenlabel.store.selection?.rows.length === 12")
        page.until("greenlabel.store.selected")
        assert "about onions" in page.page.inner_text("#selection")


@pytest.mark.browser
def test_shapes_of_many_edges_select_as_the_slow_rule_does(trees, visit):
    page = visit(trees)
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, size=(4000, 2)).astype(np.float32)
    angles = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    polygon = (rng.uniform(0.2, 1, size=200) * np.array([np.cos(angles), np.sin(angles)])).T
    found = page.page.evaluate(
        "async ([points, polygon]) => { const { rowsInside } = await import('/static/picking.js');"
        "return Array.from(rowsInside(Float32Array.from(points), polygon)); }",
        [points.ravel().tolist(), polygon.tolist()],
    )
    assert found == inside(points.astype(float), polygon.tolist()).tolist()


# Accidents


@pytest.mark.browser
def test_a_reload_keeps_labels_and_undo(trees, visit):
    page = visit(trees)
    n = page.state("labels")
    page.label("1")
    page.page.reload()
    page.until("window.greenlabel && greenlabel.flow.row !== null").until(f"greenlabel.store.state.labels === {n + 1}")
    page.press("Control+z").until(f"greenlabel.store.state.labels === {n}")


@pytest.mark.browser
def test_two_tabs_are_in_step(trees, visit):
    one = visit(trees)
    other = visit(trees, beside=one)
    n = one.state("labels")
    one.label("1")
    other.until(f"greenlabel.store.state.labels === {n + 1}")
    other.press("Control+z").until(f"greenlabel.store.state.labels === {n}")
    one.until(f"greenlabel.store.state.labels === {n}")


@pytest.mark.browser
def test_what_is_typed_while_the_server_is_gone_is_done_once_when_it_is_back(tmp_path, visit):
    write_table(tmp_path / "t.csv", THREE, n_labels=6)
    with serving("t.csv", "--target", "kind", folder=tmp_path) as served:
        page = visit(served)
        page.may_lose_the_server = True
        page.label("1")
        served.kill()
        page.press("2").until("!document.getElementById('banner').hidden && greenlabel.store.pending === 1")
        assert "does not answer" in page.page.inner_text("#banner")
        served.start(served.port)
        page.until("greenlabel.store.connection === 'locked'")
        other = visit(served, is_ready="window.greenlabel?.store.state", beside=None)
        other.page.close()
        again = page.page.context.new_page()  # the new address in the browser that has the page open
        again.goto(served.fresh_url())
        page.until("greenlabel.store.connection === 'fine' && greenlabel.store.pending === 0")
        page.until("greenlabel.store.state.labels === 8 && document.getElementById('banner').hidden")
        page.press("Control+z").until("greenlabel.store.state.labels === 7")


@pytest.mark.browser
def test_another_table_at_the_same_address_gets_neither_labels_nor_pictures_of_this_one(tmp_path, visit):
    pixels = [{f"p{j}": [value] * 60 for j in range(4)} for value in (0, 9)]
    for name, columns in zip(("first.csv", "second.csv"), pixels, strict=True):
        columns["p3"] = [10 * (row % 2) for row in range(60)]
        write_table(tmp_path / name, THREE, n=60, n_labels=6, **columns)
    options = ("--target", "kind", "--image-shape", "2x2")
    with serving("first.csv", *options, folder=tmp_path) as served:
        page = visit(served)
        page.may_lose_the_server = True
        shown = page.until("document.querySelector('#card img')?.complete").now(PIXEL)
        served.kill()
        page.press("2").until("greenlabel.store.pending === 1")
        with serving("second.csv", *options, folder=tmp_path, port=served.port) as second:
            other = visit(second, context=page.page.context)
            page.until("greenlabel.store.connection === 'other'")
            assert "Another table" in page.page.inner_text("#banner")
            row = other.row
            page.now(f"greenlabel.flow.pin({row})")
            other.until("document.querySelector('#card img')?.complete")
            assert other.now(PIXEL) != shown
            assert other.state("labels") == 6
            assert page.now("greenlabel.store.pending") == 1
            assert page.now("greenlabel.store.card.row") != row
        served.start(served.port)
        page.page.context.new_page().goto(served.fresh_url())
        page.until("greenlabel.store.connection === 'fine' && greenlabel.store.state.labels === 7")


PIXEL = (  # the first one of the picture on the card
    "(() => { const canvas = document.createElement('canvas'), context = canvas.getContext('2d');"
    "context.drawImage(document.querySelector('#card img'), 0, 0);"
    "return context.getImageData(0, 0, 1, 1).data[0]; })()"
)


@pytest.mark.browser
def test_what_a_closed_tab_could_not_send_is_sent_by_the_next_one(trees, visit):
    page = visit(trees)
    n, row, table = page.state("labels"), page.row, page.now("greenlabel.flow.outbox.table")
    action = {"id": "of-a-closed-tab", "do": "label", "rows": [row], "class": page.state("classes")[0]["id"]}
    kept = {"table": table, "actions": [action]}
    page.page.evaluate("(kept) => localStorage.setItem('greenlabel.outbox.other', JSON.stringify(kept))", kept)
    other = visit(trees, beside=page)
    other.until(f"greenlabel.store.state.labels === {n + 1} && greenlabel.store.pending === 0")
    assert row in other.state("given_rows.rows")
    assert other.now("Object.keys(localStorage).filter((key) => key.includes('outbox'))") == []
    other.press("Control+z").until(f"greenlabel.store.state.labels === {n}")


@pytest.mark.browser
def test_replies_that_come_late_are_dropped(trees, visit):
    page = visit(trees)
    generation = page.now(
        "(async () => { const { Sync } = await import('/static/sync.js');"
        "const state = { generation: 7, classes: [] };"
        "const store = { state, mapVersion: 9, set(values) { Object.assign(this, values); } };"
        "const sync = new Sync(store, {});"
        "sync.take({ state: { generation: 6, classes: [], map: 0 }, classes: [], confidence: [] });"
        "return store.state.generation; })()"
    )
    assert generation == 7


# From nothing to a file


@pytest.mark.browser
def test_the_keyboard_alone_leads_from_no_class_to_a_saved_table(tmp_path, visit):
    write_table(tmp_path / "t.csv", THREE)
    with serving("t.csv", "--target", "kind", "--out", "done.csv", folder=tmp_path) as served:
        page = visit(served)
        assert page.state("classes") == []
        first = page.row
        page.page.keyboard.type(THREE[first % 3])  # the field has the focus where there is no class
        page.press("Enter").until(f"![null, {first}].includes(greenlabel.flow.row)")
        page.until("greenlabel.store.state.labels === 1 && greenlabel.store.classes.some((c) => c < 255)")
        while (n := page.state("labels")) < 9:
            row, names = page.row, [one["name"] for one in page.state("classes")]
            name = THREE[row % 3]
            if name in names:
                page.press(str(names.index(name) + 1))
            else:
                page.press("/")
                page.page.keyboard.type(name)
                page.press("Enter")
            page.until(f"greenlabel.store.state.labels === {n + 1} && ![null, {row}].includes(greenlabel.flow.row)")
        page.press("Control+s").until("document.getElementById('dialog').open")
        page.press("Enter").until("document.querySelector('#dialog .saved')")
        page.press("Escape").until("!document.getElementById('dialog').open")
    with open(tmp_path / "done.csv", newline="", encoding="utf-8") as file:
        saved = list(csv.DictReader(file))
    assert len(saved) == 300
    assert saved[first]["kind"] == THREE[first % 3]
    assert np.mean([line["kind"] == THREE[row % 3] for row, line in enumerate(saved)]) > 0.9
