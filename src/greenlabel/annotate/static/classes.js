// Buttons of the classes: key, colour, name, how many labels are given and how many rows predicted.

import { element, icon, replaceChildren } from "./dom.js";
import { MAX_COLOURS } from "./palette.js";
import { keyCap, swatch } from "./pieces.js";
import { count, visible } from "./words.js";

const SHORT = 5; // characters; with longer names the classes stand one below the other

export function renderClasses(place, view, { flow, focus, dialogs }) {
  const { state } = view.store;
  if (!state) return;
  const isWide = state.classes.some(({ name }) => name.length > SHORT);
  place.classList.toggle("wide", isWide);
  place.classList.toggle("many", state.classes.length > (isWide ? 7 : 14));
  if (state.classes.length === 0) {
    return replaceChildren(place, element("p", { class: "quiet-text" }, "No classes yet. Type a name above and press Enter: the class is added and this row gets it."));
  }
  return replaceChildren(place, state.classes.map((one) => classLine(one, view, { flow, focus, dialogs })));
}

function classLine(one, view, { flow, focus, dialogs }) {
  const { state, armed, selection, pinnedFocus } = view.store;
  const isMany = state.classes.length > MAX_COLOURS;
  const name = visible(one.name);
  const says = `${name}: ${count(one.given)} given, ${count(one.predicted)} predicted${one.key ? `, key ${one.key}` : ""}`;
  const assign = element(
    "button",
    {
      type: "button",
      class: armed === one.id && selection ? "class-button armed" : "class-button",
      data: { key: `class-${one.id}`, classId: one.id },
      title: says,
      aria: { label: says },
      onclick: () => flow.assign(one.id),
      onpointerenter: () => lookAt(one.id, flow, focus),
      onpointerleave: () => focus.hover(null),
      onfocus: () => flow.preview(one.id),
    },
    element("span", { class: "key-cap" }, one.key ? keyCap(one.key) : ""),
    swatch(view, one.id),
    element("bdi", { class: "name" }, name),
    element("span", { class: "counts" }, element("b", {}, count(one.given)), element("span", {}, count(one.predicted))),
  );
  const pin = isMany && pinButton(one, name, pinnedFocus.includes(one.id), focus);
  const edit = element("button", { type: "button", class: "class-edit", data: { key: `edit-${one.id}` }, aria: { label: `Change class ${name}` }, title: "Rename, merge, remove, list", onclick: () => dialogs.openClass(one.id) }, icon("more"));
  return element("div", { class: "class-line" }, assign, pin, edit);
}

function pinButton(one, name, isPinned, focus) {
  return element("button", { type: "button", class: "class-pin", data: { key: `pin-${one.id}` }, aria: { pressed: String(isPinned), label: `Keep ${name} coloured on the map` }, title: "Keep coloured on the map", onclick: () => focus.togglePin(one.id) }, icon("eye"));
}

/** A class under the pointer gets its colour, and with a selection the page says what assigning it would do. */
function lookAt(id, flow, focus) {
  focus.hover(id);
  flow.preview(id);
}
