// What is selected, before anything is assigned: how many, what is predicted there, who fits least, what would change.

import { element, icon, replaceChildren } from "./dom.js";
import { bar, className, face, firstWords, keyCap } from "./pieces.js";
import { count, many, percent } from "./words.js";

const MIX = 5;
const TEXTS = 4; // rows that are shown, a line each

export function renderSelection(place, view, flow) {
  const { selection } = view.store;
  place.hidden = selection === null;
  if (selection === null) return;
  replaceChildren(place, head(view, flow), mix(view), leastTypical(view, flow), preview(view, flow));
}

function head(view, flow) {
  const { selection, selected } = view.store;
  const labelled = selected?.labelled ? `${count(selected.labelled)} of them ${selected.labelled === 1 ? "has" : "have"} a label. ` : "";
  return element(
    "header",
    { class: "card-head" },
    element(
      "div",
      { class: "card-title" },
      element("h2", {}, `${many(selection.rows.length, "row")} selected`),
      element("button", { type: "button", class: "small", data: { key: "clear" }, onclick: () => flow.clearSelection() }, "Clear", keyCap("Esc")),
    ),
    element("p", { class: "reason" }, `${labelled}Choose a class to see what it would change.`),
  );
}

function mix(view) {
  const { selected } = view.store;
  if (!selected) return element("p", { class: "quiet-text" }, "Looking at the rows");
  const shown = selected.mix.slice(0, MIX);
  const rest = selected.mix.slice(MIX).reduce((sum, [, size]) => sum + size, 0);
  const line = (id, size) => element("li", {}, className(view, id), bar(view, id, size / selected.size), element("b", {}, count(size)));
  return element(
    "section",
    {},
    element("h3", {}, "Predicted in it"),
    element("ul", { class: "mix" }, shown.map(([id, size]) => line(id, size)), rest > 0 ? element("li", { class: "quiet-text" }, `and ${count(rest)} of other classes`) : null),
  );
}

function leastTypical(view, flow) {
  const rows = view.store.selected?.least_typical ?? [];
  if (rows.length === 0) return null;
  const isText = view.store.state.kind === "text";
  const faces = rows.slice(0, isText ? TEXTS : undefined).map((row) => element("button", { type: "button", class: isText ? "row-line" : "face-button", data: { key: `typical-${row}` }, title: "Take it out of the selection", aria: { label: `Take row ${row} out of the selection` }, onclick: () => flow.unselect(row), onpointerenter: () => flow.hover(row), onpointerleave: () => flow.hover(null) }, face(view, row), firstWords(view, row)));
  return element("section", {}, element("h3", {}, "Least typical: a click takes a row out"), element("div", { class: isText ? "rows" : "faces" }, faces));
}

function preview(view, flow) {
  const { preview: shown, armed, selection, state } = view.store;
  if (!shown || !state.classes.some(({ id }) => id === shown.class)) return null;
  const words = shown.changes === null ? ["…"] : changeWords(view, shown.changes);
  const key = state.classes.find(({ id }) => id === shown.class).key;
  const assign = element("button", { type: "button", class: "primary", data: { key: "assign" }, onclick: () => flow.assign(shown.class) }, icon("check"), `Label ${many(selection.rows.length, "row")}`, armed === shown.class && key ? keyCap(key) : null);
  return element("section", { class: "preview", aria: { live: "polite" } }, element("p", {}, "As ", className(view, shown.class), " it would change ", ...words), assign);
}

function changeWords(view, { total, to }) {
  if (total === 0) return [element("b", {}, "no prediction"), "."];
  const others = view.store.state.n > 0 ? ` (${percent(total / view.store.state.n)} of all rows)` : "";
  const parts = to.slice(0, 4).map(([id, size]) => element("span", { class: "change" }, `${count(size)} to `, className(view, id)));
  return [element("b", {}, many(total, "prediction")), `${others}: `, ...parts];
}
