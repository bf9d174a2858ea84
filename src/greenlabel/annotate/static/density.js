// The map where there is no WebGL 2: cells of a grid, each in the colour of a row in it.

import { LEVELS } from "./palette.js";
import { shuffled } from "./picking.js";

const CELL = 4; // pixels

export class DensityMap {
  constructor(canvas, camera) {
    this.canvas = canvas;
    this.camera = camera;
    this.context = canvas.getContext("2d");
    this.n = 0;
    this.progress = 1;
    this.renderer = "2D canvas";
    this.onFrame = () => {};
    this.background = "#fff";
  }

  setPositions(positions) {
    const n = positions.length / 2;
    if (n !== this.n) this.order = shuffled(n); // tables are often sorted, and one class must not hide another
    Object.assign(this, { positions, n });
    this.wake();
  }

  setLook(classes, confidence) {
    Object.assign(this, { classes: classes.slice(), confidence: confidence.slice() });
    this.wake();
  }

  setTable(table) {
    this.table = table;
    this.wake();
  }

  setBackground([r, g, b]) {
    this.background = `rgb(${r}, ${g}, ${b})`;
    this.wake();
  }

  setMarks(marks) {
    this.marks = marks;
    this.wake();
  }

  resize() {
    this.canvas.width = this.canvas.clientWidth;
    this.canvas.height = this.canvas.clientHeight;
    this.camera.resize(this.canvas.clientWidth, this.canvas.clientHeight);
    this.wake();
  }

  moved() {
    this.wake();
  }

  wake() {
    if (this.isAwake) return;
    this.isAwake = true;
    requestAnimationFrame(() => this.frame());
  }

  frame() {
    this.isAwake = false;
    const { context, canvas } = this;
    context.fillStyle = this.background;
    context.fillRect(0, 0, canvas.width, canvas.height);
    if (this.n > 0 && this.classes && this.table) this.drawCells();
    if (this.marks) this.drawMarks();
    this.onFrame();
  }

  /** The first row of a cell, in the shuffled order, colours it; how full the colour is tells how many there are. */
  drawCells() {
    const { camera, positions, classes, confidence, table, context, canvas, order } = this;
    const width = Math.ceil(canvas.width / CELL);
    const counts = new Map();
    for (const row of order) {
      const [x, y] = camera.toScreen(positions[2 * row], positions[2 * row + 1]);
      if (x < 0 || y < 0 || x >= canvas.width || y >= canvas.height) continue;
      const cell = Math.floor(y / CELL) * width + Math.floor(x / CELL);
      const found = counts.get(cell);
      if (found) found.n += 1;
      else counts.set(cell, { n: 1, row });
    }
    for (const [cell, { n, row }] of counts) {
      const at = 4 * (classes[row] * LEVELS + (confidence[row] >> 2));
      context.fillStyle = `rgb(${table[at]}, ${table[at + 1]}, ${table[at + 2]})`;
      context.globalAlpha = Math.min(1, 0.45 + 0.2 * n);
      context.fillRect((cell % width) * CELL, Math.floor(cell / width) * CELL, CELL - 0.5, CELL - 0.5);
    }
    context.globalAlpha = 1;
  }

  /** The same bytes as the shader reads: place before and now, fill, ring, diameter and width of the ring. */
  drawMarks() {
    const { context, camera, marks } = this;
    const floats = new Float32Array(marks.bytes.buffer);
    const css = (at) => `rgba(${marks.bytes.slice(at, at + 3).join()}, ${marks.bytes[at + 3] / 255})`;
    for (let k = 0; k < marks.n; k++) {
      const [x, y] = camera.toScreen(floats[8 * k + 2], floats[8 * k + 3]);
      const [diameter, width] = floats.slice(8 * k + 6, 8 * k + 8);
      context.beginPath();
      context.arc(x, y, (diameter - width) / 2, 0, 2 * Math.PI);
      context.fillStyle = css(32 * k + 16);
      context.strokeStyle = css(32 * k + 20);
      context.lineWidth = width;
      context.fill();
      context.stroke();
    }
  }
}
