// Small parts that several places of the panel show: a row's face, a class with its colour, a bar.

import { pictureAddress } from "./api.js";
import { element } from "./dom.js";
import { nameOf } from "./store.js";
import { percent, visible } from "./words.js";

const PIXEL_ART = 64; // pictures narrower than this are shown with their pixels as squares

/** `view`: {store, colourOf(id) -> "#rrggbb" | null}. */
export function swatch(view, id) {
  const colour = view.colourOf(id);
  return element("span", { class: colour ? "swatch" : "swatch rest", style: colour ? { "--class-colour": colour } : null, aria: { hidden: "true" } });
}

/** A class by colour and name. Names may hold anything, so they are isolated from the direction of the rest. */
export function className(view, id) {
  const name = visible(nameOf(view.store, id));
  return element("span", { class: "class-name", title: name }, swatch(view, id), element("bdi", {}, name));
}

export function picture(view, row, alternative = "") {
  const image = element("img", { src: pictureAddress(view.store.state, row), alt: alternative, class: "picture", draggable: "false", decoding: "async" });
  image.addEventListener("load", () => image.classList.toggle("pixels", image.naturalWidth < PIXEL_ART));
  image.addEventListener("error", () => image.replaceWith(element("span", { class: "picture missing" }, "no picture")));
  return image;
}

/** What stands for a row in a list: its picture, or its number. */
export function face(view, row) {
  return view.store.state.kind === "images"
    ? element("span", { class: "face" }, picture(view, row, `Row ${row}`))
    : element("span", { class: "face number" }, `#${row}`);
}

/** How the text of a row begins, in one line; null where rows are no texts. */
export function firstWords(view, row) {
  const words = view.store.words.get(row);
  return words ? element("span", { class: "first-words", dir: "auto" }, visible(words)) : null;
}

export function bar(view, id, share) {
  const colour = view.colourOf(id);
  const style = { "--share": Math.min(1, Math.max(0, share)), ...(colour ? { "--class-colour": colour } : {}) };
  return element("span", { class: "bar", style, role: "img", aria: { label: percent(share) } }, element("span", {}));
}

export function keyCap(key) {
  return element("kbd", {}, key);
}
