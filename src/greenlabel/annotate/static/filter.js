// One field for finding and making: type a part of a class or of a cell, choose with the arrows, Enter does it.

import * as api from "./api.js";
import { byId, element, icon } from "./dom.js";
import { face, firstWords, keyCap, swatch } from "./pieces.js";
import { count, visible } from "./words.js";

const MAX_CLASSES = 8;
const MAX_ROWS = 8;
const MAX_SELECTED = 10_000; // rows that the server lists at once
const ROOM = 310; // pixels that the list may need below the field
const TYPING = 200; // ms of rest before rows are searched

export class Filter {
  constructor(view, flow) {
    Object.assign(this, { view, flow, choices: [], chosen: 0, rows: [], total: 0 });
    this.field = byId("filter");
    this.list = byId("found");
    this.field.addEventListener("input", () => this.onInput());
    this.field.addEventListener("focus", () => this.onInput());
    this.field.addEventListener("keydown", (event) => this.onKey(event));
    this.field.addEventListener("blur", () => setTimeout(() => this.hide(), 150)); // a click on a choice comes first
  }

  open() {
    this.field.focus();
    this.field.select();
  }

  close() {
    this.field.value = "";
    this.rows = [];
    this.hide();
    if (document.activeElement === this.field) this.field.blur();
  }

  hide() {
    this.list.hidden = true;
    this.field.setAttribute("aria-expanded", "false");
    this.field.removeAttribute("aria-activedescendant");
  }

  onInput() {
    this.chosen = 0;
    this.rows = [];
    clearTimeout(this.timer);
    const words = this.field.value.trim();
    if (words.length >= 2) this.timer = setTimeout(() => this.search(words), TYPING);
    this.render();
  }

  async search(words) {
    const reply = await this.flow.ask(() => api.search(words, MAX_ROWS));
    if (reply === null || this.field.value.trim() !== words) return;
    this.rows = reply.rows;
    this.total = reply.total;
    this.render();
  }

  /** Classes that match, a new class of that name, all rows that hold the words, some of them; in this order. */
  collect() {
    const words = this.field.value.trim();
    if (words === "") return [];
    const { classes } = this.view.store.state;
    const small = words.toLowerCase();
    const matching = classes.filter(({ name }) => name.toLowerCase().includes(small));
    const rank = ({ name }) => (name.toLowerCase() === small ? 0 : name.toLowerCase().startsWith(small) ? 1 : 2);
    matching.sort((a, b) => rank(a) - rank(b));
    const found = matching.slice(0, MAX_CLASSES).map((one) => ({ kind: "class", one }));
    const add = classes.some(({ name }) => name === words) ? [] : [{ kind: "add", words }];
    const all = this.rows.length > 1 && this.total <= MAX_SELECTED ? [{ kind: "all", words }] : [];
    return [...found, ...add, ...all, ...this.rows.map((row) => ({ kind: "row", row }))];
  }

  render() {
    this.choices = this.collect();
    this.chosen = Math.min(this.chosen, Math.max(0, this.choices.length - 1));
    const isShown = this.choices.length > 0 && document.activeElement === this.field;
    this.list.hidden = !isShown;
    const { top, bottom } = this.field.getBoundingClientRect();
    this.list.classList.toggle("above", innerHeight - bottom < ROOM && top > innerHeight - bottom);
    this.field.setAttribute("aria-expanded", String(isShown));
    this.list.replaceChildren(...this.choices.map((choice, index) => this.line(choice, index)));
    if (isShown) this.field.setAttribute("aria-activedescendant", `found-${this.chosen}`);
    this.list.children[this.chosen]?.scrollIntoView({ block: "nearest" });
  }

  line(choice, index) {
    const isChosen = index === this.chosen;
    return element("li", { id: `found-${index}`, role: "option", class: isChosen ? "choice chosen" : "choice", aria: { selected: String(isChosen) }, onpointerdown: (event) => this.click(event, choice) }, this.words(choice));
  }

  words({ kind, one, words, row }) {
    const goal = this.view.store.selection ? `label ${count(this.view.store.selection.rows.length)} rows` : "label this row";
    if (kind === "class") return [swatch(this.view, one.id), element("bdi", { class: "name" }, visible(one.name)), element("span", { class: "quiet-text" }, goal), one.key ? keyCap(one.key) : null].filter(Boolean);
    if (kind === "add") return [element("span", { class: "plus" }, "+"), element("span", { class: "name" }, "New class ", element("bdi", {}, visible(words))), element("span", { class: "quiet-text" }, goal)];
    if (kind === "all") return [icon("box"), element("span", { class: "name" }, `All ${count(this.total)} rows with these words`), element("span", { class: "quiet-text" }, "select")];
    return [face(this.view, row), element("span", { class: "name" }, firstWords(this.view, row) ?? `Row ${count(row)}`), element("span", { class: "quiet-text" }, "show")];
  }

  onKey(event) {
    if (event.key === "/" && this.field.value === "") return event.preventDefault(); // the key that leads here, pressed twice
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps && this.choices.length > 0) {
      this.chosen = (this.chosen + steps[event.key] + this.choices.length) % this.choices.length;
      this.render();
    } else if (event.key === "Enter" && this.choices.length > 0) {
      this.run(this.choices[this.chosen]);
    } else if (event.key === "Escape") {
      this.close();
    } else {
      return undefined;
    }
    event.preventDefault();
    return event.stopPropagation();
  }

  click(event, choice) {
    event.preventDefault();
    this.run(choice);
  }

  run({ kind, one, words, row }) {
    const hadNone = this.view.store.state.classes.length === 0;
    if (kind === "class") this.flow.assign(one.id);
    else if (kind === "add") this.flow.addClass(words);
    else if (kind === "all") this.flow.selectFound(words, this.total);
    else this.flow.goTo({ row, source: "found" });
    this.close();
    if (hadNone) byId("map").focus({ preventScroll: true }); // from now on keys are classes
  }
}
