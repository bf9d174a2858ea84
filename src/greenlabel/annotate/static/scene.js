// Joins the store with the map: which row has which look, which marks stand on top, what is under the pointer.

import { Camera } from "./camera.js";
import { classCentres } from "./centres.js";
import { DensityMap } from "./density.js";
import { PointMap } from "./map.js";
import { buildMarks } from "./marks.js";
import { Overlay } from "./overlay.js";
import { bytesOf, colourTable, themeColours } from "./palette.js";
import { Grid, rowsInside } from "./picking.js";
import { pointSize } from "./pointsize.js";

const NONE = 255;
const REACH = 14; // pixels between pointer and row

export class Scene {
  constructor(store, focus, { points, sheet, onNoWebgl }) {
    this.store = store;
    this.focus = focus;
    this.camera = new Camera();
    this.theme = "light";
    this.map = createMap(points, this.camera, onNoWebgl);
    this.overlay = new Overlay(sheet, this.camera);
    this.map.onFrame = () => this.drawOverlay();
    new ResizeObserver(() => this.resize()).observe(sheet);
    this.listen();
    this.resize();
  }

  listen() {
    const { store } = this;
    store.on(["positions"], () => this.takePositions());
    store.on(["classes", "view", "state", "suspects", "queue", "current", "changed"], () => this.paint());
    store.on(["focus", "view"], () => this.recolour());
    store.on(["state", "queue", "selection", "focus", "positions", "current", "view", "suspects", "changed"], () => this.mark());
    store.on(["hovered", "hoveredCard", "card", "current", "selection", "focus"], () => this.map.wake());
  }

  resize() {
    this.overlay.resize();
    this.map.resize();
  }

  setTheme(theme) {
    this.theme = this.overlay.theme = theme;
    this.map.setBackground(bytesOf(themeColours(theme).background));
    this.recolour();
    this.mark();
  }

  takePositions() {
    const { positions, classes } = this.store;
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.before = this.positions?.length === positions.length ? this.positions : positions;
    this.positions = positions;
    this.grid = null;
    this.map.setPositions(positions, !isCalm);
    if (classes) this.paint(true);
  }

  /** Bytes of class and confidence as the view wants them. Only what the view shows differs is sent to the map. */
  paint(isForced = false) {
    const { store } = this;
    if (!store.classes || !this.positions || store.classes.length !== this.map.n) return;
    const hidden = this.hiddenRows();
    const key = `${store.state.generation} ${store.view} ${hidden} ${store.view === "suspects" ? store.suspects?.length : ""}`;
    if (key === this.painted && !isForced && store.classes === this.paintedClasses) return;
    this.painted = key;
    this.paintedClasses = store.classes;
    const { classes, confidence } = this.look();
    hidden.forEach((row) => (classes[row] = NONE));
    this.map.setLook(classes, confidence);
    this.map.generation = store.state.generation;
    if (this.map.table === undefined || this.map.table === null || this.nColours !== store.state.classes.length) this.recolour();
    this.placeNamesSoon();
  }

  /** Rows asked at random must not show what is predicted for them before they are answered. */
  hiddenRows() {
    const { current, queue } = this.store;
    const asked = queue.filter(({ audit }) => audit).map(({ row }) => row);
    return current?.audit ? [...asked, current.row] : asked;
  }

  look() {
    const { store } = this;
    const { view, state } = store;
    if (view === "prediction" || view === "confidence") return { classes: store.classes.slice(), confidence: store.confidence };
    const shown = new Uint8Array(store.classes.length).fill(NONE);
    const index = new Map(state.classes.map(({ id }, i) => [id, i]));
    if (view === "given") state.given_rows.rows.forEach((row, k) => (shown[row] = index.get(state.given_rows.classes[k]) ?? NONE));
    if (view === "suspects") store.suspects?.forEach(({ row, suggested }) => (shown[row] = index.get(suggested) ?? NONE));
    if (view === "changed") store.changed?.forEach((row) => (shown[row] = store.classes[row]));
    return { classes: shown, confidence: view === "changed" ? store.confidence : new Uint8Array(shown.length).fill(255) };
  }

  recolour() {
    const { store, theme } = this;
    if (!store.state) return;
    this.nColours = store.state.classes.length;
    this.map.setTable(colourTable({ colours: this.focus.colours(theme), view: store.view, theme }));
  }

  mark() {
    const { store, theme, camera } = this;
    if (!store.state || !this.positions) return;
    const size = pointSize(this.map.n, camera, 1);
    const colour = (id) => this.focus.colour(id, theme) ?? themeColours(theme).rest;
    const given = this.givenMarks().map(([row, id]) => [row, colour(id)]);
    const suggested = store.view === "suspects" ? [] : store.queue.slice(0, 10).map(({ row }) => row);
    this.map.setMarks(buildMarks({ selected: this.someSelected(), suggested, given }, { theme, size, where: (row) => this.bothPlaces(row) }));
  }

  /** [row, class] of the given labels that this view is about: they would hide suspects and changes among them. */
  givenMarks() {
    const { view, suspects, changed, state } = this.store;
    if (view === "suspects") return (suspects ?? []).map(({ row, suggested }) => [row, suggested]);
    const { rows, classes } = state.given_rows;
    const given = rows.map((row, k) => [row, classes[k]]);
    if (view !== "changed") return given;
    const isChanged = new Set(changed ?? []);
    return given.filter(([row]) => isChanged.has(row));
  }

  /** A selection of a hundred thousand rows is seen by its outline; of its rows no more are marked than draw quickly. */
  someSelected() {
    const rows = this.store.selection?.rows ?? [];
    const most = Math.max(2000, Math.min(40_000, (this.map.capacity ?? 20_000) / 8));
    const step = Math.ceil(rows.length / most);
    return step <= 1 ? rows : rows.filter((_, k) => k % step === 0);
  }

  bothPlaces(row) {
    const { before, positions } = this;
    return [before[2 * row], before[2 * row + 1], positions[2 * row], positions[2 * row + 1]];
  }

  placeOf(row) {
    const [x0, y0, x, y] = this.bothPlaces(row);
    const { progress } = this.map;
    return [x0 + progress * (x - x0), y0 + progress * (y - y0)];
  }

  /** Names move a moment after the colours: finding dense parts must not delay them. */
  placeNamesSoon() {
    clearTimeout(this.namesTimer);
    this.namesTimer = setTimeout(() => {
      const { store, map } = this;
      this.overlay.names = classCentres(store.classes, store.confidence, store.state.classes.map(({ id }) => id), store.positions, map.order);
      map.wake();
    }, 120);
  }

  drawOverlay() {
    if (!this.positions) return;
    this.overlay.draw(this.store, (row) => this.placeOf(row), (id) => this.focus.colour(id, this.theme));
  }

  // Pointer -----------------------------------------------------------------------------------------------------

  rowAt(sx, sy) {
    if (!this.positions || this.map.progress < 1) return null;
    this.grid ??= new Grid(this.positions);
    return this.grid.nearest(...this.camera.toPlane(sx, sy), REACH / this.camera.unit);
  }

  rowsIn(points) {
    return rowsInside(this.positions, points);
  }

  /** Pixels of the page at which a row stands. */
  screenPosition(row) {
    return this.camera.toScreen(...this.placeOf(row));
  }

  moved() {
    this.map.moved();
  }
}

/** A canvas that once had a WebGL context gets no other one: the coarse map then needs a new canvas. */
function createMap(canvas, camera, onNoWebgl) {
  try {
    return new PointMap(canvas, camera);
  } catch (error) {
    console.warn(`The map is drawn without WebGL 2: ${error.message}`);
    onNoWebgl();
    const fresh = canvas.cloneNode();
    canvas.replaceWith(fresh);
    return new DensityMap(fresh, camera);
  }
}
