// The card of the current row: what it is, what is predicted, and which given labels that comes from.

import { element, icon, replaceChildren } from "./dom.js";
import { bar, className, face, firstWords, keyCap, picture } from "./pieces.js";
import { nameOf } from "./store.js";
import { count, percent, visible } from "./words.js";

const FIELDS = 40; // of one row; more are not shown
const LONG = 14; // characters of a class
const TEXTS = 3; // that explain a prediction
const SHARE = 0.015; // in a prediction; less explains nothing

export function renderCard(place, view, flow) {
  const { card, current, state, connection } = view.store;
  if (!state) return;
  if (current === null) return replaceChildren(place, emptyCard(state));
  if (card?.row !== current.row) {
    const says = connection === "fine" ? "Loading the row" : "The row is shown when the server is back.";
    if (place.dataset.row === undefined || connection !== "fine") replaceChildren(place, element("p", { class: "quiet-text" }, says));
    return;
  }
  place.dataset.row = card.row;
  const body = element("div", { class: card.picture ? "card-body with-picture" : "card-body" }, contents(view, card), prediction(view, card, flow));
  replaceChildren(place, head(view, card, current, flow), body, why(view, card, flow));
}

function emptyCard(state) {
  const isDone = state.labels + state.ignored >= state.n;
  const words = isDone ? "Every row has a label or is ignored. Save when you are ready." : "Choose a row on the map or in the list below.";
  return element("p", { class: "quiet-text" }, state.stage.name === "graph" ? "The rows are being read." : words);
}

const SOURCES = { next: "Next", suspects: "Suspect", class: "By class", map: "From the map", found: "Found" };

function head(view, card, current, flow) {
  const reason = current.reason ? element("p", { class: "reason" }, visible(current.reason)) : null;
  const badge = element("span", { class: current.audit ? "badge audit" : "badge" }, current.audit ? "Random check" : SOURCES[current.source]);
  return element("header", { class: "card-head" }, element("div", { class: "card-title" }, element("h2", {}, `Row ${count(card.row)}`), badge, actions(view, card, flow)), reason);
}

function contents(view, card) {
  const parts = [];
  if (card.picture) parts.push(element("div", { class: "stage" }, picture(view, card.row, `Picture of row ${card.row}`)));
  else if (view.store.state.kind === "images") parts.push(element("p", { class: "hidden-note" }, "The picture of this row cannot be shown: it is not below the folder of the table, too large, or no picture."));
  if (card.text !== null && card.text !== undefined) parts.push(element("blockquote", { class: "text", dir: "auto", tabindex: "0" }, visible(card.text)));
  const fields = card.fields.filter(([, value]) => value !== "");
  const table = element("dl", { class: "fields" }, fields.slice(0, FIELDS).map(([name, value]) => field(name, value)));
  if (fields.length > 0 && (card.picture || card.text)) {
    parts.push(element("details", { class: "more-fields" }, element("summary", {}, `${count(fields.length)} fields`), table));
  } else if (fields.length > 0) {
    parts.push(table);
  }
  return element("div", { class: "contents" }, parts);
}

function field(name, value) {
  return element("div", {}, element("dt", {}, element("bdi", {}, visible(name))), element("dd", {}, element("bdi", {}, visible(value))));
}

function prediction(view, card, flow) {
  if (card.hidden) {
    return element("p", { class: "hidden-note" }, icon("eye"), "The prediction is hidden: your answer here measures how good the predictions are.");
  }
  if (card.given !== null) {
    const origin = card.from_table ? "label of the table" : "label given here";
    return element("div", { class: "prediction" }, element("span", { class: "tag" }, origin), line(view, card.given, null), others(view, card), changeButton(view, flow));
  }
  if (card.ignored) return element("p", { class: "hidden-note" }, "This row is ignored.");
  if (card.prediction === null) {
    const none = view.store.state.labels === 0 ? "No label is given yet. Give the first one: predictions follow at once." : "No given label reaches this row yet.";
    return element("p", { class: "hidden-note" }, none);
  }
  return element("div", { class: "prediction" }, element("span", { class: "tag" }, "predicted"), line(view, card.prediction, card.confidence), others(view, card), acceptButton(flow));
}

function line(view, id, share) {
  const isLong = nameOf(view.store, id).length > LONG; // its name gets a line of its own
  return element("div", { class: isLong ? "predicted long" : "predicted" }, className(view, id), share === null ? null : bar(view, id, share), share === null ? null : element("b", {}, percent(share)));
}

function others(view, card) {
  const rest = (card.probabilities ?? []).filter(([id, p]) => id !== (card.given ?? card.prediction) && p >= 0.005).slice(0, 3);
  return rest.length === 0 ? null : element("div", { class: "others" }, rest.map(([id, p]) => element("span", {}, className(view, id), percent(p))));
}

function acceptButton(flow, ...words) {
  return element("button", { class: "accept", type: "button", data: { key: "accept" }, onclick: () => flow.accept() }, icon("check"), words.length > 0 ? words : "Accept", keyCap("Enter"));
}

/** Of a suspect: the class that the other labels say. */
function changeButton(view, flow) {
  const { source, suggested } = view.store.current;
  return source === "suspects" && suggested !== undefined ? acceptButton(flow, "Change to ", className(view, suggested)) : null;
}

function why(view, card, flow) {
  const isText = view.store.state.kind === "text"; // which take a line each
  const reasons = (card.why ?? []).filter(({ share }) => share >= SHARE).slice(0, isText ? TEXTS : undefined);
  if (card.hidden || reasons.length === 0) return null;
  const items = reasons.map(({ row, class: id, share }) =>
    element(
      "li",
      {},
      element(
        "button",
        { type: "button", class: "reason-row", data: { key: `why-${row}` }, aria: { label: `Row ${row}, share ${percent(share)}` }, onclick: () => flow.pin(row), onpointerenter: () => flow.store.set({ hovered: row }), onpointerleave: () => flow.store.set({ hovered: null }) },
        face(view, row),
        element("span", { class: "reason-words" }, className(view, id), element("b", {}, percent(share))),
        firstWords(view, row),
      ),
    ),
  );
  const isBlend = view.store.state.shown?.model === "blend"; // whose reasons nobody can name
  const words = isBlend ? "The live model goes by these labels, with their share" : "Why: these labels, with their share";
  return element("section", { class: isText ? "why texts" : "why", aria: { label: "Why" } }, element("h3", {}, words), element("ul", {}, items));
}

function actions(view, card, flow) {
  const { current } = view.store;
  const button = (name, key, run, title) => element("button", { type: "button", class: "small", title, data: { key: name }, onclick: run }, name, keyCap(key));
  const isSuspect = current.source === "suspects";
  return element(
    "div",
    { class: "row-actions" },
    isSuspect ? button("Keep", "=", () => flow.onRow("keep"), "The label is right; do not ask again") : null,
    card.given !== null && !isSuspect ? button("Unlabel", "Del", () => flow.onRow("unlabel"), "Take the label away") : null,
    button("Skip", "Space", () => flow.onRow("skip"), "Ask again later"),
    card.ignored ? null : button("Ignore", "x", () => flow.onRow("ignore"), "Leave this row out for good"),
    card.ignored ? button("Take back in", "", () => flow.onRow("unignore"), "Do not ignore this row any more") : null,
  );
}

/** After a label: what had been predicted. Of a random check this is the honest part. */
export function renderLast(place, view) {
  const { last } = view.store;
  place.hidden = last === null;
  if (last === null) return;
  const isRight = last.classId === last.predicted;
  const words = isRight ? "as predicted" : "predicted was";
  replaceChildren(
    place,
    element("span", { class: isRight ? "verdict right" : "verdict wrong", aria: { hidden: "true" } }, isRight ? "✓" : "≠"),
    `Row ${count(last.row)}:`,
    className(view, last.classId),
    element("span", {}, words),
    isRight ? null : className(view, last.predicted),
    element("span", {}, `(${percent(last.confidence)})`),
  );
}
