// The small card beside the pointer: what a row on the map is, without leaving the current one.

import { element, replaceChildren } from "./dom.js";
import { className, picture } from "./pieces.js";
import { count, percent, shortened, visible } from "./words.js";

const AWAY = 16; // pixels from the point
const FIELDS = 4;

export function renderTooltip(place, view, scene) {
  const { hovered, hoveredCard } = view.store;
  place.hidden = hovered === null || hoveredCard === null;
  if (place.hidden) return;
  replaceChildren(place, contents(view, hoveredCard), element("p", { class: "tooltip-words" }, `Row ${count(hovered)}`), verdict(view, hoveredCard));
  const [x, y] = scene.screenPosition(hovered);
  const { width, height } = scene.camera;
  const left = x + AWAY + place.offsetWidth < width ? x + AWAY : x - AWAY - place.offsetWidth;
  const top = Math.min(Math.max(8, y - place.offsetHeight / 2), height - place.offsetHeight - 8);
  place.style.setProperty("transform", `translate(${Math.max(4, left)}px, ${top}px)`);
}

function contents(view, card) {
  if (card.picture) return picture(view, card.row, "");
  if (card.text) return element("p", { class: "tooltip-text", dir: "auto" }, shortened(visible(card.text), 140));
  const fields = card.fields.slice(0, FIELDS).map(([name, value]) => element("div", {}, element("dt", {}, visible(name)), element("dd", {}, visible(value))));
  return element("dl", { class: "fields" }, fields);
}

function verdict(view, card) {
  if (card.hidden) return element("p", { class: "quiet-text" }, "asked at random: hidden");
  if (card.given !== null) return element("p", {}, className(view, card.given), element("span", { class: "quiet-text" }, " given"));
  if (card.prediction === null) return element("p", { class: "quiet-text" }, "not reached yet");
  return element("p", {}, className(view, card.prediction), element("span", { class: "quiet-text" }, ` ${percent(card.confidence)}`));
}
