// The map, drawn with WebGL 2: rows in slices of a shuffled order into a kept picture, marks on top of it.
//
// A machine with a graphics card draws all rows in one slice. Software needs 2 s for a million, so what can be drawn in
// about 50 ms (found by measuring) is shown at once and the rest over the next frames. While the camera moves, the
// picture of a moment ago moves along, and a first slice fills what came into sight.

import { LEVELS } from "./palette.js";
import { shuffled } from "./picking.js";
import { Picture } from "./pictures.js";
import { pointSize } from "./pointsize.js";
import { programs } from "./shaders.js";

const BUDGET = 45; // ms per slice
const MOVING_BUDGET = 18; // ms for the points of a frame while the camera moves
const REST = 140; // ms without movement until the map is drawn anew
const MOVE_OVER = 900; // ms that rows take from one map to the next
const SHOWN_FROM = 0.2; // share of the rows from which a picture drawn after a zoom is shown

export class PointMap {
  constructor(canvas, camera) {
    this.canvas = canvas;
    this.camera = camera;
    this.gl = canvas.getContext("webgl2", { antialias: false, alpha: false, depth: false, powerPreference: "high-performance" });
    if (!this.gl) throw new Error("no WebGL 2");
    this.n = 0;
    this.rate = 400; // points per ms, a guess until measured
    this.background = [1, 1, 1];
    this.table = null;
    this.marks = null;
    this.onFrame = () => {};
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => this.restore());
    this.setUp();
  }

  setUp() {
    const { gl } = this;
    this.programs = programs(gl);
    this.buffers = Object.fromEntries(["before", "now", "look", "mark"].map((name) => [name, gl.createBuffer()]));
    this.points = gl.createVertexArray();
    this.markArray = gl.createVertexArray();
    this.tableTexture = gl.createTexture();
    this.shown = new Picture(gl);
    this.making = new Picture(gl);
    this.isMeasured = 0;
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  /** After the driver lost everything: the same buffers again, from what the page has. */
  restore() {
    this.setUp();
    if (this.now) this.uploadPositions(this.now, this.now);
    if (this.look) this.upload(this.buffers.look, this.look);
    if (this.table) this.setTable(this.table);
    this.setMarks(this.marks);
    this.resize();
  }

  get renderer() {
    const { gl } = this;
    const info = gl.getExtension("WEBGL_debug_renderer_info");
    return gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER);
  }

  // What is drawn -----------------------------------------------------------------------------------------------

  setPositions(positions, isAnimated) {
    const n = positions.length / 2;
    if (n !== this.n) this.order = shuffled(n);
    const now = new Float32Array(2 * n);
    this.order.forEach((row, i) => {
      now[2 * i] = positions[2 * row];
      now[2 * i + 1] = positions[2 * row + 1];
    });
    const before = isAnimated && this.n === n ? this.now : now;
    Object.assign(this, { n, now, startedAt: before === now ? null : performance.now(), progress: before === now ? 1 : 0 });
    this.uploadPositions(before, now);
    this.redraw();
  }

  uploadPositions(before, now) {
    const { gl, buffers } = this;
    this.upload(buffers.now, now);
    if (before !== now) this.upload(buffers.before, before);
    this.bindPoints(before === now ? buffers.now : buffers.before);
  }

  bindPoints(before) {
    const { gl, buffers } = this;
    gl.bindVertexArray(this.points);
    this.attribute(before, 0, 2, 8, 0);
    this.attribute(buffers.now, 1, 2, 8, 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffers.look);
    gl.enableVertexAttribArray(2);
    gl.vertexAttribIPointer(2, 2, gl.UNSIGNED_BYTE, 2, 0);
    gl.bindVertexArray(null);
  }

  attribute(buffer, index, size, stride, offset, type = this.gl.FLOAT, normalized = false) {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.enableVertexAttribArray(index);
    gl.vertexAttribPointer(index, size, type, normalized, stride, offset);
  }

  upload(buffer, array) {
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.bufferData(gl.ARRAY_BUFFER, array, gl.DYNAMIC_DRAW);
  }

  /** Class and confidence of every row, in the table's order. */
  setLook(classes, confidence) {
    const { order, n } = this;
    const look = new Uint8Array(2 * n);
    for (let i = 0; i < n; i++) {
      look[2 * i] = classes[order[i]];
      look[2 * i + 1] = confidence[order[i]];
    }
    this.look = look;
    this.upload(this.buffers.look, look);
    this.repaint();
  }

  setTable(table) {
    const { gl } = this;
    this.table = table;
    gl.bindTexture(gl.TEXTURE_2D, this.tableTexture);
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, LEVELS, 256, 0, gl.RGBA, gl.UNSIGNED_BYTE, table);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    this.repaint();
  }

  setBackground(rgb) {
    this.background = rgb.map((byte) => byte / 255);
    this.redraw();
  }

  /** marks: {rows, bytes, n} of marks.js, 32 bytes a mark; positions are filled in here. */
  setMarks(marks) {
    const { gl, buffers } = this;
    this.marks = marks;
    if (!marks) return;
    this.upload(buffers.mark, marks.bytes);
    gl.bindVertexArray(this.markArray);
    this.attribute(buffers.mark, 0, 2, 32, 0);
    this.attribute(buffers.mark, 1, 2, 32, 8);
    this.attribute(buffers.mark, 2, 4, 32, 16, gl.UNSIGNED_BYTE, true);
    this.attribute(buffers.mark, 3, 4, 32, 20, gl.UNSIGNED_BYTE, true);
    this.attribute(buffers.mark, 4, 2, 32, 24);
    gl.bindVertexArray(null);
    this.wake();
  }

  // When it is drawn --------------------------------------------------------------------------------------------

  resize() {
    const ratio = Math.min(2, devicePixelRatio || 1);
    const width = Math.max(1, Math.round(this.canvas.clientWidth * ratio));
    const height = Math.max(1, Math.round(this.canvas.clientHeight * ratio));
    Object.assign(this, { ratio });
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    this.camera.resize(this.canvas.clientWidth, this.canvas.clientHeight);
    this.shown.resize(width, height);
    this.making.resize(width, height);
    this.redraw();
  }

  /** From nothing: other positions, another background, another size. */
  redraw() {
    this.making.camera = null;
    this.shown.camera = null;
    this.drawn = 0;
    this.wake();
  }

  /** New colours at the same places are drawn over the old ones, so that nothing flickers. */
  repaint() {
    if (this.capacity >= this.n) this.shown.camera = null;
    this.drawn = 0;
    this.wake();
  }

  moved() {
    this.movedAt = performance.now();
    this.wake();
  }

  wake() {
    if (this.isAwake) return;
    this.isAwake = true;
    requestAnimationFrame((time) => this.frame(time));
  }

  get capacity() {
    return Math.max(2000, Math.floor(this.rate * BUDGET));
  }

  frame() {
    this.isAwake = false;
    if (this.gl.isContextLost() || this.n === 0 || !this.look || !this.table) return;
    if (this.progress < 1) this.advance();
    const isMoving = performance.now() - (this.movedAt ?? -REST) < REST;
    const isLight = this.capacity >= this.n;
    if (this.progress < 1 || (isMoving && !isLight)) this.drawMoving();
    else this.drawResting();
    this.onFrame();
  }

  advance() {
    const time = Math.min(1, (performance.now() - this.startedAt) / MOVE_OVER);
    this.progress = time < 0.5 ? 4 * time ** 3 : 1 - (2 - 2 * time) ** 3 / 2;
    if (time === 1) this.bindPoints(this.buffers.now);
    this.redraw();
  }

  drawMoving() {
    const { gl, shown } = this;
    this.target(null);
    gl.clear(gl.COLOR_BUFFER_BIT);
    this.drawPoints(0, Math.min(this.n, Math.floor((this.capacity * MOVING_BUDGET) / BUDGET)));
    if (shown.camera) this.drawPicture(shown);
    this.drawMarks();
    this.drawn = 0;
    this.making.camera = null;
    this.wake();
  }

  drawResting() {
    const camera = this.camera.copy();
    if (!isSame(this.shown.camera, camera)) this.begin(camera);
    if (this.drawn < this.n) this.drawSlice(this.making.camera ? this.making : this.shown);
    const isReady = this.making.camera && (this.isSeeded || this.drawn >= Math.min(this.n, SHOWN_FROM * this.n));
    if (isReady) {
      [this.shown, this.making] = [this.making, this.shown];
      this.making.camera = null;
    }
    this.present();
    if (this.drawn < this.n) this.wake();
  }

  /** A new picture. Where the zoom is the same, what was in sight before is right already and is taken over. */
  begin(camera) {
    const { gl, making, shown } = this;
    if (making.camera && isSame(making.camera, camera)) return;
    making.camera = camera;
    this.drawn = 0;
    this.target(making);
    gl.clear(gl.COLOR_BUFFER_BIT);
    this.isSeeded = shown.camera === null || shown.camera.unit === camera.unit;
    if (shown.camera && this.isSeeded && this.capacity < this.n) this.drawPicture(shown);
  }

  drawSlice(picture) {
    this.target(picture);
    const begin = performance.now();
    const size = Math.min(this.n - this.drawn, this.capacity);
    this.drawPoints(this.drawn, size);
    picture.finish();
    this.measure(size, performance.now() - begin);
    this.drawn += size;
  }

  /** Points per ms; the first slices pay for compiling and uploading and count little. */
  measure(size, time) {
    if (size < 500) return;
    this.isMeasured += 1;
    const rate = Math.min(1e6, size / Math.max(0.05, time));
    this.rate = this.isMeasured < 3 ? Math.max(rate, 100) : 0.6 * this.rate + 0.4 * rate;
  }

  /** The kept picture on the canvas, where it belongs for this camera, and the marks. */
  present() {
    const { gl, shown } = this;
    this.target(null);
    gl.clear(gl.COLOR_BUFFER_BIT);
    if (shown.camera) this.drawPicture(shown);
    this.drawMarks();
  }

  // Drawing -----------------------------------------------------------------------------------------------------

  target(picture) {
    const { gl, canvas } = this;
    gl.bindFramebuffer(gl.FRAMEBUFFER, picture ? picture.buffer : null);
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(...this.background, 1);
  }

  drawPoints(first, size) {
    const { gl } = this;
    const diameter = pointSize(this.n, this.camera, this.ratio);
    const { made, at } = diameter < 3 ? this.programs.squares : this.programs.discs;
    gl.useProgram(made);
    gl.uniform1f(at.progress, this.progress);
    gl.uniform2f(at.centre, this.camera.x, this.camera.y);
    gl.uniform2fv(at.scale, this.camera.scale);
    gl.uniform1f(at.size, diameter);
    if (at.rim) gl.uniform3fv(at.rim, this.background);
    gl.bindTexture(gl.TEXTURE_2D, this.tableTexture);
    gl.bindVertexArray(this.points);
    if (diameter >= 3) gl.enable(gl.BLEND);
    gl.drawArrays(gl.POINTS, first, size);
    gl.disable(gl.BLEND);
    gl.bindVertexArray(null);
  }

  drawMarks() {
    const { gl, marks } = this;
    if (!marks?.n) return;
    const { made, at } = this.programs.marks;
    gl.useProgram(made);
    gl.uniform1f(at.progress, this.progress);
    gl.uniform1f(at.ratio, this.ratio);
    gl.uniform2f(at.centre, this.camera.x, this.camera.y);
    gl.uniform2fv(at.scale, this.camera.scale);
    gl.bindVertexArray(this.markArray);
    gl.enable(gl.BLEND);
    gl.drawArrays(gl.POINTS, 0, marks.n);
    gl.disable(gl.BLEND);
    gl.bindVertexArray(null);
  }

  /** A picture drawn with an earlier camera, where that part of the plane is now. */
  drawPicture(picture) {
    const { gl, camera } = this;
    const { made, at } = this.programs.picture;
    const stretch = camera.unit / picture.camera.unit;
    const [kx, ky] = camera.scale;
    gl.useProgram(made);
    gl.uniform2f(at.offset, (picture.camera.x - camera.x) * kx, (picture.camera.y - camera.y) * ky);
    gl.uniform2f(at.stretch, stretch, stretch);
    gl.bindTexture(gl.TEXTURE_2D, picture.texture);
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  }
}

function isSame(one, other) {
  return one !== null && ["x", "y", "unit", "width", "height"].every((key) => one[key] === other[key]);
}
