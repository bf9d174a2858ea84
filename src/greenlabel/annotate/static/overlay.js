// The sheet over the map: names of classes, the shape of a selection, the current row and why it is predicted so.

import { nameOf } from "./store.js";
import { shortened, visible } from "./words.js";

const INK = { light: "28, 34, 33", dark: "240, 244, 242" };
const PAPER = { light: "255, 255, 255", dark: "16, 20, 22" };
const FONT = '600 13px "Inter", system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';
const ABOVE = 18; // pixels between a name and the middle of its rows, which may be one small heap

export class Overlay {
  constructor(canvas, camera) {
    this.canvas = canvas;
    this.camera = camera;
    this.context = canvas.getContext("2d");
    this.theme = "light";
    this.names = []; // {id, x, y, size}
    this.shape = null; // being drawn: {points of the screen, isBox}
  }

  resize() {
    const ratio = Math.min(2, devicePixelRatio || 1);
    this.canvas.width = Math.round(this.canvas.clientWidth * ratio);
    this.canvas.height = Math.round(this.canvas.clientHeight * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  /** where(row) -> position of a row on the map now. */
  draw(store, where, colourOf) {
    const { context, canvas } = this;
    context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    if (store.selection) this.drawOutlines(store.selection.outlines);
    this.drawNames(store, colourOf);
    if (!store.selection || store.hovered !== null) this.drawReasons(store, where, colourOf);
    if (store.hovered !== null) this.drawRing(where(store.hovered), 8, 1.5);
    if (store.current && !store.selection) this.drawCurrent(where(store.current.row)); // beside the map is the selection then
    if (this.shape) this.drawShape(this.shape);
  }

  ink(share) {
    return `rgba(${INK[this.theme]}, ${share})`;
  }

  paper(share) {
    return `rgba(${PAPER[this.theme]}, ${share})`;
  }

  screen([x, y]) {
    return this.camera.toScreen(x, y);
  }

  drawRing(place, radius, width) {
    const { context } = this;
    const [x, y] = this.screen(place);
    for (const [colour, thickness] of [[this.paper(0.9), width + 2.5], [this.ink(0.95), width]]) {
      context.strokeStyle = colour;
      context.lineWidth = thickness;
      context.beginPath();
      context.arc(x, y, radius, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  /** Two rings, so that the row is found at a glance among thousands. */
  drawCurrent(place) {
    this.drawRing(place, 9, 2.4);
    const { context } = this;
    const [x, y] = this.screen(place);
    context.strokeStyle = this.ink(0.28);
    context.lineWidth = 1.5;
    context.beginPath();
    context.arc(x, y, 17, 0, 2 * Math.PI);
    context.stroke();
  }

  /** Lines from the row to the given labels with the largest share in its prediction. */
  drawReasons({ card, current, hovered, hoveredCard }, where, colourOf) {
    const shown = hoveredCard ?? card;
    if (!shown || shown.hidden || shown.row !== (hovered ?? current?.row)) return;
    const [x, y] = this.screen(where(shown.row));
    const { context } = this;
    for (const { row, share, class: id } of shown.why ?? []) {
      const [rx, ry] = this.screen(where(row));
      context.strokeStyle = colourOf(id) ?? this.ink(0.5);
      context.globalAlpha = 0.35 + 0.5 * Math.min(1, Math.abs(share));
      context.lineWidth = 1 + 3 * Math.min(1, Math.abs(share));
      context.beginPath();
      context.moveTo(x, y);
      context.lineTo(rx, ry);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /** The largest classes first; a name that would cover another one is left out until there is room. */
  drawNames(store, colourOf) {
    const { context } = this;
    context.font = FONT;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    const taken = [];
    const inFocus = new Set(store.focus);
    const byImportance = [...this.names].sort((a, b) => inFocus.has(b.id) - inFocus.has(a.id) || b.size - a.size);
    for (const { id, x, y } of byImportance) {
      const [sx, middle] = this.screen([x, y]);
      const sy = middle - ABOVE;
      const text = shortened(visible(nameOf(store, id)), 24);
      const colour = colourOf(id);
      const width = context.measureText(text).width + (colour ? 16 : 0);
      const room = colour ? 6 : 14; // names in grey are many: only where they stand free
      const box = [sx - width / 2 - room, sy - 5 - room, sx + width / 2 + room, sy + 5 + room];
      if (taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) continue;
      taken.push(box);
      this.drawName(text, colour, sx, sy, width);
    }
  }

  drawName(text, colour, sx, sy, width) {
    const { context } = this;
    context.fillStyle = this.paper(colour ? 0.9 : 0.78);
    context.beginPath();
    context.roundRect(sx - width / 2 - 7, sy - 11.5, width + 14, 23, 11.5);
    context.fill();
    context.strokeStyle = this.ink(colour ? 0.16 : 0.08);
    context.lineWidth = 1;
    context.stroke();
    if (colour) {
      context.fillStyle = colour;
      context.beginPath();
      context.arc(sx - width / 2 + 4, sy, 4.5, 0, 2 * Math.PI);
      context.fill();
    }
    context.fillStyle = this.ink(colour ? 0.95 : 0.6);
    context.fillText(text, sx + (colour ? 8 : 0), sy + 0.5);
  }

  drawOutlines(outlines) {
    for (const points of outlines) this.trace(points.map((point) => this.screen(point)), 0.07);
  }

  drawShape(points) {
    this.trace(points, 0.1);
  }

  trace(points, filling) {
    const { context } = this;
    context.beginPath();
    points.forEach(([x, y], index) => (index === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
    context.closePath();
    context.fillStyle = this.ink(filling);
    context.fill("evenodd");
    context.strokeStyle = this.ink(0.75);
    context.lineWidth = 1.5;
    context.setLineDash([5, 4]);
    context.stroke();
    context.setLineDash([]);
  }
}
