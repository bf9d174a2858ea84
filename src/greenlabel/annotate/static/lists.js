// The lists below the classes: what next, suspects, rows of a class.

import { element, icon, replaceChildren } from "./dom.js";
import { className, face, firstWords, keyCap } from "./pieces.js";
import { nameOf } from "./store.js";
import { count, many, percent, visible } from "./words.js";

const TABS = [
  { id: "next", name: "Next" },
  { id: "suspects", name: "Suspects" },
  { id: "class", name: "By class" },
];

export function renderTabs(place, view, flow) {
  const { tab, state } = view.store;
  const tabs = TABS.map(({ id, name }) =>
    element(
      "button",
      { type: "button", role: "tab", id: `tab-${id}`, data: { key: id }, tabindex: id === tab ? "0" : "-1", aria: { selected: String(id === tab), controls: "list" }, onclick: () => flow.openTab(id), onkeydown: (event) => moveTab(event, id, flow) },
      name,
      id === "suspects" && state?.suspects > 0 ? element("span", { class: "bubble" }, count(state.suspects)) : null,
    ),
  );
  replaceChildren(place, tabs);
}

function moveTab(event, id, flow) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const index = TABS.findIndex((tab) => tab.id === id);
  const next = TABS[(index + step + TABS.length) % TABS.length].id;
  event.preventDefault();
  flow.openTab(next);
  setTimeout(() => document.getElementById(`tab-${next}`)?.focus());
}

export function renderList(place, view, flow) {
  const { tab, state } = view.store;
  if (!state) return;
  place.setAttribute("aria-labelledby", `tab-${tab}`);
  const parts = { next: queue, suspects, class: byClass }[tab](view, flow);
  replaceChildren(place, parts);
}

/** A line of a list: the row's face, what is said about it, a click makes it the current one. */
function rowLine(view, flow, entry, ...children) {
  const isCurrent = view.store.current?.row === entry.row;
  return element(
    "li",
    {},
    element(
      "button",
      { type: "button", class: isCurrent ? "row-line current" : "row-line", data: { key: `row-${entry.row}` }, aria: isCurrent ? { current: "true" } : {}, onclick: () => flow.goTo(entry), onpointerenter: () => flow.store.set({ hovered: entry.row, hoveredCard: null }), onpointerleave: () => flow.store.set({ hovered: null }) },
      face(view, entry.row),
      element("span", { class: "row-words" }, firstWords(view, entry.row), element("span", { class: "row-says" }, children)),
    ),
  );
}

function queue(view, flow) {
  const entries = view.store.queue;
  if (entries.length === 0) return element("p", { class: "quiet-text" }, view.store.state.stage.name === "graph" ? "The first rows come in a moment." : "Nothing is left to ask.");
  return element("ol", { class: "rows" }, entries.map((entry) => rowLine(view, flow, flow.entry(entry), element("span", {}, visible(entry.reason)), entry.audit ? element("span", { class: "badge audit" }, "Random check") : null)));
}

function suspects(view, flow) {
  const list = view.store.suspects;
  if (list === null) return element("p", { class: "quiet-text" }, "Looking for labels that the others contradict");
  if (list.length === 0) return element("p", { class: "quiet-text" }, "No given label is contradicted by the others.");
  const hint = element("p", { class: "hint" }, keyCap("="), " keeps a label, ", keyCap("Enter"), " changes it to what the others say, a class key to any other.");
  const lines = list.map((suspect) =>
    rowLine(view, flow, flow.suspectEntry(suspect), element("span", { class: "from-to" }, className(view, suspect.given), "→", className(view, suspect.suggested)), element("span", { class: "quiet-text" }, percent(suspect.probability))),
  );
  return [hint, element("ol", { class: "rows" }, lines)];
}

function byClass(view, flow) {
  const { state, listed } = view.store;
  if (state.classes.length === 0) return element("p", { class: "quiet-text" }, "There are no classes yet.");
  const choice = element("select", { data: { key: "class-choice" }, aria: { label: "Class" }, onchange: (event) => flow.list(Number(event.target.value)) }, state.classes.map(({ id, name }) => element("option", { value: id, selected: id === listed.class }, visible(name))));
  const all = element("button", { type: "button", class: "small", data: { key: "select-all" }, title: "Select all rows predicted so", onclick: () => flow.selectClass(listed.class) }, icon("box"), "Select all");
  const words = listed.total > 0 ? `${many(listed.total, "row")} predicted ${visible(nameOf(view.store, listed.class))}, least confident first` : "No row is predicted so.";
  const faces = listed.rows.map((row) => {
    const isCurrent = view.store.current?.row === row;
    return element("button", { type: "button", class: isCurrent ? "face-button current" : "face-button", data: { key: `row-${row}` }, aria: { label: `Row ${row}` }, onclick: () => flow.goTo({ row, source: "class" }), onpointerenter: () => flow.store.set({ hovered: row, hoveredCard: null }), onpointerleave: () => flow.store.set({ hovered: null }) }, face(view, row));
  });
  const rows = state.kind === "text" ? textLines(view, flow, listed.rows) : element("div", { class: "faces" }, faces);
  return [element("div", { class: "list-head" }, choice, all), element("p", { class: "hint" }, words), rows];
}

/** Texts are recognised by how they begin, one below the other. */
function textLines(view, flow, rows) {
  return element("ol", { class: "rows" }, rows.map((row) => rowLine(view, flow, { row, source: "class" })));
}
