// The line at the top and what floats on the map: name of the table, views, undo, tools, progress.

import { byId, element, icon, replaceChildren } from "./dom.js";
import { VIEWS } from "./store.js";
import { count, many, percent, visible } from "./words.js";

export function renderTitle(view) {
  const { state } = view.store;
  if (!state) return;
  const name = visible(state.table);
  document.title = `${name} · greenlabel`;
  const facts = [many(state.n, "row"), many(state.labels, "label"), state.ignored > 0 ? `${count(state.ignored)} ignored` : null];
  replaceChildren(byId("title"), element("bdi", { class: "table-name", title: name }, name), element("bdi", { class: "target", title: "the column to fill" }, visible(state.target)), element("span", { class: "facts" }, facts.filter(Boolean).join(" · ")));
}

export function renderViews(view, flow) {
  const { view: shown } = view.store;
  const buttons = VIEWS.map(({ id, name, says }) => element("button", { type: "button", data: { key: id }, title: says, aria: { pressed: String(id === shown) }, onclick: () => flow.setView(id) }, name));
  replaceChildren(byId("views"), buttons);
}

const LEGENDS = { prediction: ["doubt", "sure"], confidence: ["doubt", "sure"] };

/** What the colours of this view mean; for the views of few rows, how many there are. */
export function renderLegend(view) {
  const { store } = view;
  const { state } = store;
  if (!state) return;
  const numbers = { given: many(state.labels, "given label"), suspects: `${many(state.suspects, "suspect")}${state.suspects > 0 ? ", in the colour of what the other labels say" : ""}`, changed: store.changed === null ? "No label has changed since this page was opened." : `${many(store.changed.length, "prediction")} changed (${percent(store.changed.length / Math.max(1, state.n))})` };
  const ends = LEGENDS[store.view];
  const scale = ends ? [element("span", {}, ends[0]), element("span", { class: `scale ${store.view}` }), element("span", {}, ends[1]), element("span", { class: "swatch neutral" }), element("span", {}, "not reached")] : [element("span", {}, numbers[store.view])];
  replaceChildren(byId("legend"), scale);
}

export function renderHistory(view) {
  const { state } = view.store;
  if (!state) return;
  for (const [id, word] of [["undo", "Undo"], ["redo", "Redo"]]) {
    const button = byId(id);
    button.disabled = state[id] === null;
    const says = state[id] === null ? `Nothing to ${id}` : `${word}: ${visible(state[id])}`;
    button.title = says;
    button.setAttribute("aria-label", says);
  }
}

export function renderTools(view) {
  for (const button of byId("tools").querySelectorAll("[data-tool]")) {
    button.setAttribute("aria-pressed", String(button.dataset.tool === view.store.tool));
  }
  byId("map").dataset.tool = view.store.tool;
}

/** Progress while the graph and the map are made, and which of the two models is shown. */
export function renderStage(view, flow) {
  const { state } = view.store;
  const place = byId("stage");
  const stage = state?.stage ?? { name: "graph", sentence: "Waiting for the server", done: null };
  const isReady = stage.name === "ready";
  const isBlend = state?.shown?.model === "blend";
  place.hidden = isReady && !state.shown?.why;
  if (place.hidden) return;
  if (isReady) {
    const says = () => flow.notices.say(visible(state.shown.why));
    const model = element("button", { type: "button", class: "model", data: { key: "model" }, title: visible(state.shown.why), onclick: says }, isBlend ? "Settled model" : "Live model");
    return replaceChildren(place, model);
  }
  if (stage.name === "failed") return replaceChildren(place, element("span", { class: "problem-text", role: "alert" }, visible(stage.sentence)));
  const meter = element("progress", stage.done === null || stage.done === undefined ? {} : { value: stage.done, max: 1 });
  return replaceChildren(place, element("span", {}, visible(stage.sentence)), meter);
}

export function fillButtons() {
  const icons = { undo: "undo", redo: "redo", help: "help", "tool-pan": "hand", "tool-lasso": "lasso", "tool-box": "box", "zoom-in": "plus", "zoom-out": "minus", fit: "fit" };
  for (const [id, name] of Object.entries(icons)) byId(id).append(icon(name));
  byId("save").prepend(icon("save"));
}
