"""The page of `greenlabel annotate` in a real browser: which row a key is meant for, and what the page tells."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest

import greenlabel
from greenlabel.annotate.session.facts import KEYS
from helpers.annotate_page import serving, write_table

THREE = ["oak", "ash", "elm"]
ANSWER = """async (count) => {
  const api = await import("/static/api.js");
  const names = ["oak", "ash", "elm"], { classes } = greenlabel.store.state;
  const ids = Object.fromEntries(classes.map(({ id, name }) => [name, id]));
  for (let i = 0; i < count; i++) {
    const { row, audit } = (await api.getQueue(1)).queue[0];
    await api.act({ id: `answer-${Math.random()}`, do: "label", rows: [row], class: ids[names[row % 3]], audit });
  }
}"""  # a person who knows the truth, and answers what is asked


@pytest.fixture
def trees(tmp_path):
    write_table(tmp_path / "trees.csv", THREE, n_labels=12)
    with serving("trees.csv", "--target", "kind", folder=tmp_path) as served:
        yield served


# Without a browser


def test_the_help_lists_every_key_that_does_something_and_no_other():
    text = (Path(greenlabel.__file__).parent / "annotate" / "static" / "keys.js").read_text(encoding="utf-8")
    listed = {key for keys in re.findall(r'^  \["(.+?)", "', text, re.M) for key in keys.split(", ")}
    signs = {"Space": " ", "−": "-", "←": "ArrowLeft", "→": "ArrowRight", "↑": "ArrowUp", "↓": "ArrowDown"}
    plain = {signs.get(key, key) for key in listed if not key.startswith("Ctrl-")} - {"1 – 9", "a – z", "Escape"}
    done = {key.strip('"') for key in re.findall(r'^      ("[^"]+"|\w+): \(\) => ', text, re.M)}
    assert plain == done
    assert {"1 – 9", "a – z", "Escape", "Ctrl-Z", "Ctrl-Shift-Z", "Ctrl-Y", "Ctrl-S"} <= listed
    assert set(KEYS) == set("123456789abcdefghijklmnopqrstuvwxyz") - done


# With a selection


@pytest.mark.browser
def test_keys_of_a_row_do_nothing_to_one_that_a_selection_hides(trees, visit):
    page = visit(trees)
    undo, row = page.state("undo"), page.row
    page.now("greenlabel.flow.select(Uint32Array.of(0, 1, 2, 50), [])")
    page.until("greenlabel.store.selected")
    assert page.page.locator("#card").is_hidden()
    page.press(" ", "=", "Enter")
    page.press("Delete").until("greenlabel.store.state.labels === 9 && greenlabel.store.selection === null")
    assert page.state("undo") == "take the label from 3 rows"  # and nothing was done before it
    page.press("Control+z").until("greenlabel.store.state.labels === 12")
    assert page.state("undo") == undo
    assert page.row == row


@pytest.mark.browser
def test_the_least_typical_rows_of_a_selection_are_taken_out_with_a_click(trees, visit):
    page = visit(trees)
    rows = [*range(20, 60, 3), 21]  # a stranger among them
    page.now(f"greenlabel.flow.select(Uint32Array.from({sorted(rows)}), [])")
    page.until("greenlabel.store.selected")
    (least, *_) = page.now("greenlabel.store.selected.least_typical")
    assert least == 21
    page.page.click("[data-key=typical-21]")
    page.until(f"greenlabel.store.selected?.size === {len(rows) - 1}")
    assert 21 not in page.now("Array.from(greenlabel.store.selection.rows)")


@pytest.mark.browser
def test_a_click_pins_a_row_and_with_shift_and_alt_adds_it_to_the_selection_and_takes_it_out(trees, visit):
    page = visit(trees)
    positions = page.positions()
    box = page.page.locator("#map").bounding_box()

    def click(row, *keys):
        x, y = positions[row]
        for key in keys:
            page.page.keyboard.down(key)
        page.page.mouse.click(box["x"] + x, box["y"] + y)
        for key in keys:
            page.page.keyboard.up(key)

    apart = np.hypot(*(positions[:, None] - positions[None]).T) + 1e3 * np.eye(300)
    one, other, third = np.argsort(-apart.min(axis=0))[:3].tolist()  # no other row is near them
    click(one, "Shift")
    page.until(f"greenlabel.store.selection?.rows.join() === '{one}'")
    click(other, "Shift")
    page.until("greenlabel.store.selection?.rows.length === 2")
    click(one, "Alt")
    page.until(f"greenlabel.store.selection?.rows.join() === '{other}'")
    click(third)
    page.until(f"greenlabel.store.selection === null && greenlabel.flow.row === {third}")


# Undo


@pytest.mark.browser
def test_undo_leads_back_to_the_row_it_was_about_whoever_labelled_it(trees, visit):
    one = visit(trees)
    other = visit(trees, beside=one)
    one.label("1")
    row = 200
    other.until("greenlabel.store.state.labels === 13").now(f"greenlabel.flow.pin({row})")
    other.until(f"greenlabel.flow.row === {row}").label("2")
    one.until("greenlabel.store.state.labels === 14")
    one.press("Control+z").until(f"greenlabel.store.state.labels === 13 && greenlabel.flow.row === {row}")
    one.page.reload()
    one.until("window.greenlabel && greenlabel.flow.row !== null")
    one.press("Control+z").until("greenlabel.store.state.labels === 12")
    one.until("greenlabel.flow.row === greenlabel.store.state.redo_row")


@pytest.mark.browser
def test_what_the_last_label_changed_stays_seen_when_a_row_is_skipped(trees, visit):
    page = visit(trees)
    assert page.now("greenlabel.store.changed") is None
    row = page.row
    page.label(str((page.now(f"greenlabel.store.classes[{row}]") + 1) % 3 + 1))  # not what is predicted
    changed = page.now("Array.from(greenlabel.store.changed)")
    assert row in changed
    skipped = page.row
    page.press(" ").until(f"![null, {skipped}].includes(greenlabel.flow.row)")
    assert page.state("undo") == f"skip row {skipped}"
    assert page.now("Array.from(greenlabel.store.changed)") == changed


# Keys


@pytest.mark.browser
def test_the_key_that_leads_to_the_field_does_not_become_part_of_a_name(tmp_path, visit):
    write_table(tmp_path / "t.csv", THREE)
    with serving("t.csv", "--target", "kind", folder=tmp_path) as served:
        page = visit(served)
        page.press("/")  # the field has the focus already where there is no class
        page.page.keyboard.type("a/b")
        page.press("Enter").until("greenlabel.store.state.labels === 1")
        assert page.state("classes[0].name") == "a/b"


@pytest.mark.browser
def test_letters_work_on_a_keyboard_that_writes_others(trees, visit):
    page = visit(trees)

    def press(key, code, control=False):
        page.now(
            "document.body.dispatchEvent(new KeyboardEvent('keydown', { bubbles: true, cancelable: true,"
            f"key: '{key}', code: '{code}', ctrlKey: {str(control).lower()} }}))"
        )

    row = page.row
    press("ч", "KeyX")  # x of a Russian keyboard
    page.until(f"greenlabel.store.state.ignored === 1 && ![null, {row}].includes(greenlabel.flow.row)")
    press("я", "KeyZ", True)
    page.until("greenlabel.store.state.ignored === 0")


@pytest.mark.browser
def test_a_row_drawn_at_random_stays_hidden_by_whichever_way_it_is_reached(trees, visit):
    page = visit(trees)
    page.until("greenlabel.store.queue.some((entry) => entry.audit)")
    row = page.now("greenlabel.store.queue.find((entry) => entry.audit).row")
    for source in ("found", "class", "map"):
        page.now(f"greenlabel.flow.goTo({{ row: {row}, source: '{source}' }})")
        page.until(f"greenlabel.flow.row === {row}")
        assert page.now("greenlabel.store.card.hidden") is True
        page.now("greenlabel.flow.goTo({ row: 0, source: 'map' })")
        page.until("greenlabel.flow.row === 0")


# What the page tells


@pytest.mark.browser
def test_a_suspect_is_changed_by_a_button_that_says_to_what(tmp_path, visit):
    write_table(tmp_path / "t.csv", ["oak", "ash"], n_labels=40)
    lines = (tmp_path / "t.csv").read_text().splitlines()
    lines[1] = lines[1].replace("oak", "ash")
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    with serving("t.csv", "--target", "kind", folder=tmp_path) as served:
        page = visit(served)
        page.page.click("#tab-suspects")
        page.until("greenlabel.store.current?.source === 'suspects' && greenlabel.flow.row === 0")
        assert page.page.inner_text("#card .accept").split() == ["Change", "to", "oak", "Enter"]
        page.page.click("#card .accept")
        page.until("greenlabel.store.suspects.every(({ row }) => row !== 0)")
        oak = page.now("greenlabel.store.state.classes.find(({ name }) => name === 'oak').id")
        assert page.state("given_rows.classes[0]") == oak


@pytest.mark.browser
def test_the_honest_accuracy_is_drawn_over_the_number_of_labels_beside_what_the_last_ten_changed(trees, visit):
    page = visit(trees)
    assert page.page.locator("#accuracy .curve").count() == 0
    assert "too few to tell" in page.page.inner_text("#accuracy")
    page.page.evaluate(ANSWER, 45)
    page.until("greenlabel.store.state.labels === 57")
    accuracy = page.state("accuracy")
    assert 7 <= accuracy["audits"] <= 10  # about one in five
    shown = page.page.inner_text("#accuracy")
    assert f"{accuracy['right']} of {accuracy['audits']} rows drawn at random" in shown
    low, high = (round(100 * accuracy[end]) for end in ("low", "high"))
    assert f"accuracy, {low}–{high} %" in shown
    assert "changed by the last 10 labels" in shown
    points = page.page.get_attribute("#accuracy .curve .line", "points").split()
    assert len(points) == len(accuracy["curve"]) > 10
    assert page.page.locator("#accuracy .curve .band").count() == 1


@pytest.mark.browser
def test_labels_that_explain_a_prediction_are_shown_with_their_own_pictures(tmp_path, visit):
    pixels = {f"p{j}": [(row % 3) * 40 + j for row in range(90)] for j in range(4)}
    write_table(tmp_path / "t.csv", THREE, n=90, n_labels=12, **pixels)
    with serving("t.csv", "--target", "kind", "--image-shape", "2x2", folder=tmp_path) as served:
        page = visit(served)
        page.now("greenlabel.flow.pin(50)")
        page.until("greenlabel.flow.row === 50 && document.querySelectorAll('#card .why img').length > 0")
        page.until("[...document.querySelectorAll('#card img')].every((image) => image.naturalWidth === 2)")
        sources = page.now("[...document.querySelectorAll('#card .why img')].map((image) => image.getAttribute('src'))")
        rows = [one["row"] for one in page.now("greenlabel.store.card.why") if one["share"] >= 0.015]
        assert [int(source.split("/")[3].split("?")[0]) for source in sources] == rows
        assert all(row < 12 for row in rows)  # given labels


@pytest.mark.browser
def test_progress_is_shown_until_the_map_is_there(trees, visit):
    page = visit(trees)
    page.until("greenlabel.store.state.stage.name === 'ready'")
    assert page.page.inner_text("#stage") == "Live model"
    for name, sentence in (("graph", "Building the graph"), ("map", "Making the map")):
        stage = f"{{ name: '{name}', sentence: '{sentence}', done: null }}"
        page.now(f"greenlabel.store.set({{ state: {{ ...greenlabel.store.state, stage: {stage} }} }})")
        page.until("document.querySelector('#stage progress')")
        assert page.page.inner_text("#stage") == sentence


@pytest.mark.browser
def test_shares_near_the_ends_do_not_read_as_certain(trees, visit):
    page = visit(trees)
    shares = [0, 0.0001, 0.004, 0.934, 0.995, 0.9999, 1]
    shown = page.page.evaluate(
        "async (shares) => { const { percent } = await import('/static/words.js'); return shares.map(percent); }",
        shares,
    )
    assert shown == ["0 %", "0.1 %", "0.4 %", "93 %", "99.5 %", "99.9 %", "100 %"]


@pytest.mark.slow
@pytest.mark.browser
def test_the_map_says_which_model_it_shows_and_why(tmp_path, visit):
    """One column alone tells the class, which no graph of twelve sees: the blend is better and takes over at rest."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12))
    kinds = np.where(X[:, 0] > 0, "yes", "no")
    with open(tmp_path / "t.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow([*(f"x{j}" for j in range(12)), "kind"])
        table.writerows([*np.round(X[row], 4), kinds[row] if row < 60 else ""] for row in range(300))
    with serving("t.csv", "--target", "kind", folder=tmp_path) as served:
        page = visit(served)
        page.until("greenlabel.store.state.stage.name === 'ready'")
        assert page.page.inner_text("#stage") == "Live model"
        live = page.now("Array.from(greenlabel.store.classes)")
        page.until("greenlabel.store.state.shown.model === 'blend'")
        assert page.page.inner_text("#stage") == "Settled model"
        names = np.array([one["name"] for one in page.state("classes")])
        blend = page.now("Array.from(greenlabel.store.classes)")
        assert (names[blend] == kinds).mean() > (names[live] == kinds).mean()
        assert page.now("greenlabel.store.changed") is None  # no label has changed
        page.page.click("#stage .model")
        assert "held-out labels" in page.page.inner_text("#toasts")
        page.until("document.querySelector('#card .why')")
        assert "live model" in page.page.inner_text("#card .why h3")
        page.label("1")
        assert page.page.inner_text("#stage") == "Live model"
        assert len(page.now("Array.from(greenlabel.store.changed)")) < np.count_nonzero(np.array(live) != blend)
