// Things that open over the page: the keys, saving, changing a class. All are <dialog>, which keeps the focus inside.

import * as api from "./api.js";
import { byId, element, replaceChildren } from "./dom.js";
import { KEYS } from "./keys.js";
import { keyCap, swatch } from "./pieces.js";
import { classOf } from "./store.js";
import { count, many, visible } from "./words.js";

const SIGNS = [
  ["near on the map", "alike: rows that share much"],
  ["grey", "doubt; the lightest grey: no given label reaches the row yet"],
  ["a dot with a rim", "a given label"],
  ["a thin ring", "a row that is asked soon"],
  ["two rings", "the row beside the map; lines lead to the labels that its prediction comes from"],
  ["4 / 77 on a class", "labels given / rows predicted"],
  ["Random check", "a row drawn at random, its prediction hidden until you have answered: the honest test"],
  ["Live, settled model", "quick predictions after each key; slower ones that replace them where they are clearly better"],
];

export class Dialogs {
  constructor(view, flow, notices) {
    Object.assign(this, { view, flow, notices });
    this.dialog = byId("dialog");
    this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.close()); // the shade around it
  }

  get isOpen() {
    return this.dialog.open;
  }

  close() {
    this.dialog.close();
  }

  open(title, ...children) {
    const close = element("button", { type: "button", class: "icon-button", aria: { label: "Close" }, onclick: () => this.close() }, "✕");
    replaceChildren(this.dialog, element("header", {}, element("h2", { id: "dialog-title" }, title), close), ...children);
    if (!this.dialog.open) this.dialog.showModal();
  }

  openHelp() {
    const lines = KEYS.map(([keys, says]) => element("div", {}, element("dt", {}, keys.split(", ").map(keyCap)), element("dd", {}, says)));
    const mouse = "Drag moves the map, the wheel zooms. Lasso and box select; Shift adds to the selection, Alt takes away, with a click a single row.";
    const signs = SIGNS.map(([sign, says]) => element("div", {}, element("dt", {}, sign), element("dd", {}, says)));
    this.open("Keys and signs", element("dl", { class: "keys" }, lines), element("p", { class: "quiet-text" }, mouse), element("dl", { class: "keys signs" }, signs));
  }

  // Saving ------------------------------------------------------------------------------------------------------

  openSave() {
    const { state, pending } = this.view.store;
    const box = (name, says) => element("label", { class: "check" }, element("input", { type: "checkbox", name }), element("span", {}, says));
    const waiting = pending > 0 ? element("p", { class: "problem-text" }, `${many(pending, "action")} still waiting for the server: saved is what it knows.`) : null;
    const result = element("div", { class: "result", aria: { live: "polite" } });
    const submit = element("button", { type: "submit", class: "primary", autofocus: true }, "Save", keyCap("Enter"));
    const form = element(
      "form",
      { method: "dialog", onsubmit: (event) => this.save(event, result, submit) },
      element("p", {}, "Writes ", element("code", {}, visible(state.out ?? "the labelled table")), `: your ${many(state.labels, "label")} and a prediction for every other row, with its confidence.`),
      waiting,
      box("report", "and a report (HTML): how far the predictions can be trusted"),
      box("model", "and the model, to label new rows with"),
      result,
      element("footer", {}, element("button", { type: "button", class: "small", onclick: () => this.close() }, "Close"), submit),
    );
    this.open("Save", form);
    submit.focus();
  }

  async save(event, result, submit) {
    event.preventDefault();
    const form = event.target;
    submit.disabled = true;
    replaceChildren(result, element("p", { class: "quiet-text" }, "Saving. With a report or a model this may take a moment."));
    try {
      const saved = await api.save(form.elements.report.checked, form.elements.model.checked);
      const files = saved.files.map((file) => element("li", {}, element("code", {}, visible(file))));
      replaceChildren(result, element("p", { class: "saved" }, visible(saved.sentence)), element("ul", {}, files));
    } catch (error) {
      replaceChildren(result, element("p", { class: "problem-text", role: "alert" }, error.message));
    }
    submit.disabled = false;
  }

  // Classes -----------------------------------------------------------------------------------------------------

  openClass(id) {
    const one = classOf(this.view.store, id);
    if (!one) return;
    const name = element("input", { name: "name", value: one.name, autocomplete: "off", maxlength: "200", aria: { label: "Name" } });
    const rename = element("form", { class: "one-line", onsubmit: (event) => this.rename(event, one, name) }, element("label", {}, "Name", name), element("button", { type: "submit", class: "small" }, "Rename"));
    const facts = element("p", { class: "quiet-text" }, swatch(this.view, id), ` ${many(one.given, "label")} given, ${many(one.predicted, "row")} predicted.`);
    const list = element("button", { type: "button", class: "small", onclick: () => this.listRows(id) }, `List the ${count(one.predicted)} rows predicted so`);
    this.open("Class", facts, rename, this.mergeForm(one), element("footer", {}, list, this.removeButton(one)));
    name.select();
  }

  rename(event, one, name) {
    event.preventDefault();
    const wanted = name.value.trim();
    if (wanted && wanted !== one.name) this.flow.change({ do: "rename_class", class: one.id, name: wanted });
    this.close();
  }

  mergeForm(one) {
    const others = this.view.store.state.classes.filter(({ id }) => id !== one.id);
    if (others.length === 0) return null;
    const choice = element("select", { aria: { label: "Merge into" } }, others.map(({ id, name }) => element("option", { value: id }, visible(name))));
    const merge = (event) => {
      event.preventDefault();
      this.flow.change({ do: "merge_classes", class: one.id, into: Number(choice.value) });
      this.close();
    };
    return element("form", { class: "one-line", onsubmit: merge }, element("label", {}, "Merge into", choice), element("button", { type: "submit", class: "small" }, "Merge"));
  }

  removeButton(one) {
    const remove = () => {
      this.flow.change({ do: "remove_class", class: one.id });
      this.notices.say(`Class ${visible(one.name)} removed; its labels are taken away.`, { action: "Undo", run: () => this.flow.undo() });
      this.close();
    };
    return element("button", { type: "button", class: "small danger", onclick: remove }, "Remove");
  }

  listRows(id) {
    this.close();
    this.view.store.set({ listed: { class: id, rows: [], total: 0 } });
    this.flow.openTab("class");
  }
}
