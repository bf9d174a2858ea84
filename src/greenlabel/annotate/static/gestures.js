// Hands on the map: drag pans, the wheel zooms to the pointer, lasso and box select, a click pins a row.

import { combined } from "./picking.js";

const CLICK = 4; // pixels; a shorter drag is a click
const STEP = 3; // pixels between two points of a lasso

export class Gestures {
  /** act: {hover(row), pin(row), select(rows, outlines)}. */
  constructor(store, scene, surface, act) {
    Object.assign(this, { store, scene, surface, act, pointers: new Map(), drag: null });
    surface.addEventListener("pointerdown", (event) => this.down(event));
    surface.addEventListener("pointermove", (event) => this.move(event));
    surface.addEventListener("pointerup", (event) => this.up(event));
    surface.addEventListener("pointercancel", (event) => this.cancel(event));
    surface.addEventListener("pointerleave", () => this.act.hover(null));
    surface.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  at(event) {
    const box = this.surface.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  down(event) {
    if (event.button > 0) return;
    this.surface.setPointerCapture(event.pointerId);
    this.surface.focus({ preventScroll: true });
    this.pointers.set(event.pointerId, this.at(event));
    const isPinch = this.pointers.size === 2;
    this.drag = isPinch ? { kind: "pinch", ...this.pinch() } : { kind: this.store.tool, start: this.at(event), points: [this.at(event)] };
    this.scene.overlay.shape = null;
  }

  pinch() {
    const [[x1, y1], [x2, y2]] = [...this.pointers.values()];
    return { distance: Math.hypot(x2 - x1, y2 - y1), centre: [(x1 + x2) / 2, (y1 + y2) / 2] };
  }

  move(event) {
    const here = this.at(event);
    if (!this.drag) return this.hover(here, event);
    const before = this.pointers.get(event.pointerId);
    if (!before) return undefined;
    this.pointers.set(event.pointerId, here);
    const { kind } = this.drag;
    if (kind === "pinch") return this.movePinch();
    if (kind === "pan") return this.movePan(before, here);
    return this.moveShape(here);
  }

  hover(here, event) {
    if (event.pointerType === "mouse") this.act.hover(this.scene.rowAt(...here));
  }

  movePinch() {
    const { distance, centre } = this.drag;
    const now = this.pinch();
    this.scene.camera.pan(now.centre[0] - centre[0], now.centre[1] - centre[1]);
    this.scene.camera.zoomAt(now.distance / (distance || 1), ...now.centre);
    Object.assign(this.drag, now);
    this.scene.moved();
  }

  movePan([x0, y0], [x, y]) {
    this.drag.hasMoved ||= Math.hypot(x - this.drag.start[0], y - this.drag.start[1]) > CLICK;
    if (!this.drag.hasMoved) return;
    this.surface.classList.add("dragging");
    this.scene.camera.pan(x - x0, y - y0);
    this.scene.moved();
  }

  moveShape([x, y]) {
    const { kind, start, points } = this.drag;
    const [lastX, lastY] = points.at(-1);
    if (kind === "lasso" && Math.hypot(x - lastX, y - lastY) >= STEP) points.push([x, y]);
    if (kind === "box") this.drag.points = [start, [x, start[1]], [x, y], [start[0], y]];
    this.scene.overlay.shape = this.drag.points;
    this.scene.drawOverlay();
  }

  up(event) {
    const { drag } = this;
    const here = this.pointers.get(event.pointerId);
    this.cancel(event);
    if (!drag || !here || drag.kind === "pinch") return;
    const isClick = Math.hypot(here[0] - drag.start[0], here[1] - drag.start[1]) <= CLICK && drag.points.length < 4;
    if (isClick) this.click(here, event);
    else if (drag.kind !== "pan") this.finishShape(drag.points, event);
  }

  cancel(event) {
    this.pointers.delete(event.pointerId);
    this.drag = null;
    this.scene.overlay.shape = null;
    this.surface.classList.remove("dragging");
    this.scene.map.wake();
  }

  /** A row by itself: it is pinned, or with Shift and Alt added to the selection and taken from it. */
  click(here, event) {
    const row = this.scene.rowAt(...here);
    if (row === null) return;
    const how = howOf(event);
    if (how === "replace") this.act.pin(row);
    else this.select(Uint32Array.of(row), [], how);
  }

  finishShape(points, event) {
    if (points.length < 3) return;
    const outline = points.map(([x, y]) => this.scene.camera.toPlane(x, y));
    this.select(this.scene.rowsIn(outline), [outline], howOf(event));
  }

  select(rows, outlines, how) {
    const before = how === "replace" ? null : this.store.selection;
    this.act.select(combined(before?.rows ?? null, rows, how), [...(before?.outlines ?? []), ...outlines]);
  }

  wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    const factor = Math.exp(-Math.max(-240, Math.min(240, event.deltaY * lines)) / 400);
    this.scene.camera.zoomAt(factor, ...this.at(event));
    this.afterZoom();
  }

  zoom(factor) {
    const { camera } = this.scene;
    camera.zoomAt(factor, camera.width / 2, camera.height / 2);
    this.afterZoom();
  }

  fit() {
    this.scene.camera.fit();
    this.afterZoom();
  }

  pan(dx, dy) {
    this.scene.camera.pan(dx, dy);
    this.scene.moved();
  }

  afterZoom() {
    this.scene.moved();
    clearTimeout(this.zoomTimer);
    this.zoomTimer = setTimeout(() => this.scene.mark(), 200); // marks grow with the points
  }
}

const howOf = ({ shiftKey, altKey }) => (altKey ? "subtract" : shiftKey ? "add" : "replace");
