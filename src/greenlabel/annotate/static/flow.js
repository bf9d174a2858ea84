// What a key does, and what comes next. No elements here: the panel shows what the store says.

import * as api from "./api.js";
import { classOf, nameOf, predictedClass } from "./store.js";
import { many, percent } from "./words.js";

const QUEUE = 10;
const LISTED = 100;
const PATIENCE = 350; // ms to wait for a fresh queue before the next of the old one is shown
const HOVER = 50; // ms that the pointer rests on a row before its card is fetched

export class Flow {
  constructor(store, outbox, notices) {
    Object.assign(this, { store, outbox, notices, turn: 0 });
    store.on(["state", "connection"], () => this.onState());
    store.on(["current"], () => this.fetchCard());
  }

  get isReady() {
    const { state, positions } = this.store;
    return Boolean(state && positions && state.stage.name !== "graph");
  }

  /** Every change of the labels makes another queue, other cards, other suspects. */
  onState() {
    const { state, connection } = this.store;
    if (!this.isReady || connection !== "fine" || this.outbox.actions.length > 0) return;
    if (this.generation === state.generation && this.wasFine) return;
    this.generation = state.generation;
    this.wasFine = true;
    this.refreshed = this.refreshQueue();
    if (!this.isTurning) this.fetchCard();
    if (this.store.tab === "suspects" || this.store.view === "suspects") this.fetchSuspects();
  }

  /** A reply, or null. What another table would answer is about other rows. */
  async ask(question) {
    if (this.store.connection === "other") {
      this.wasFine = false; // what was asked for is fetched when its table is back
      return null;
    }
    try {
      const reply = await question();
      for (const [row, words] of Object.entries(reply.words ?? {})) this.store.words.set(Number(row), words);
      return reply;
    } catch (error) {
      if (error instanceof api.Refused) this.notices.problem(error.message);
      else if (error instanceof api.Unreachable) this.wasFine = false;
      return null;
    }
  }

  // What next ---------------------------------------------------------------------------------------------------

  async refreshQueue() {
    const turn = ++this.turn;
    const reply = await this.ask(() => api.getQueue(QUEUE));
    if (reply === null || turn !== this.turn) return;
    this.store.set({ queue: reply.queue });
    if (this.store.current === null && !this.isTurning) this.goTo(this.entry(reply.queue[0]));
  }

  entry(suggestion) {
    return suggestion ? { source: "next", ...suggestion } : null;
  }

  /** A row that is to be answered before its prediction is seen stays one, by whichever way it is reached. */
  goTo(entry) {
    const asked = this.store.queue.find(({ row, audit }) => audit && row === entry?.row);
    this.store.set({ current: asked ? this.entry(asked) : entry, last: entry ? this.store.last : null });
  }

  /** On to the next row. A fresh queue knows the label just given; but nobody waits long for it. */
  async advance(from, done) {
    this.isTurning = true;
    const isFresh = done.then(() => settle()).then(() => this.refreshed);
    await Promise.race([isFresh, pause(PATIENCE)]);
    this.isTurning = false;
    if (this.store.current !== from) return; // a click or another key was quicker
    this.goTo(this.following(from));
  }

  following(from) {
    const { queue, suspects, listed } = this.store;
    if (from?.source === "suspects") {
      const left = (suspects ?? []).filter(({ row }) => row !== from.row);
      if (left.length > 0) return this.suspectEntry(left[0]);
    }
    if (from?.source === "class") {
      const row = listed.rows[listed.rows.indexOf(from.row) + 1];
      if (row !== undefined) return { row, source: "class" };
    }
    return this.entry(queue.find(({ row }) => row !== from?.row));
  }

  async fetchCard() {
    const { current } = this.store;
    if (current === null) return this.store.set({ card: null });
    const reply = await this.ask(() => api.getCard(current.row, Boolean(current.audit)));
    if (reply === null || this.store.current !== current) return undefined;
    if (current.audit && reply.given !== null) return this.goTo({ ...current, audit: false, reason: "labelled elsewhere" });
    return this.store.set({ card: reply });
  }

  /** The row that a key labels: one that is on the screen, or nobody knows what they label. */
  get row() {
    const { current, card } = this.store;
    return current !== null && card?.row === current.row && !this.isTurning ? current.row : null;
  }

  // Actions -----------------------------------------------------------------------------------------------------

  /** A class key or button: for the selection if there is one, else for the current row. */
  assign(classId) {
    if (this.store.selection) return this.assignSelection(classId);
    const { row } = this;
    if (row === null) return undefined;
    const { current } = this.store;
    this.compare(row, classId);
    const action = { do: "label", rows: [row], class: classId };
    if (current.audit) action.audit = true;
    return this.advance(current, this.outbox.add(action));
  }

  /** What the prediction was, told after the label is given. */
  compare(row, classId) {
    const { store } = this;
    const predicted = predictedClass(store, row);
    const confidence = store.confidence[row] / 255;
    const isGiven = store.card?.given !== null && store.card?.given !== undefined;
    const last = predicted === null || isGiven ? null : { row, classId, predicted, confidence, isAudit: Boolean(store.current.audit) };
    store.set({ last });
  }

  assignSelection(classId) {
    const { rows } = this.store.selection;
    if (rows.length === 0) return undefined;
    this.notices.say(`${many(rows.length, "row")} labelled ${nameOf(this.store, classId)}.`, { action: "Undo", run: () => this.undo() });
    const done = this.outbox.add({ do: "label", rows: Array.from(rows), class: classId });
    this.clearSelection();
    return done;
  }

  /** A key with a selection: once shows what it would change, twice assigns. */
  pressClass(classId) {
    const { selection, armed } = this.store;
    if (!selection || armed === classId) return this.assign(classId);
    this.store.set({ armed: classId });
    return this.preview(classId);
  }

  accept() {
    const { store } = this;
    if (store.selection) return store.armed === null ? undefined : this.assign(store.armed);
    const { current, card } = store;
    if (current?.source === "suspects" && current.suggested !== undefined) return this.assign(current.suggested);
    if (this.row === null || card.hidden || card.prediction === null) return undefined;
    return this.assign(card.prediction);
  }

  addClass(name) {
    const { store } = this;
    const rows = store.selection ? Array.from(store.selection.rows) : this.row === null ? [] : [this.row];
    const action = { do: "add_class", name };
    const from = store.current;
    if (rows.length > 0) action.then_label = rows;
    if (rows.length > 0 && !store.selection && from.audit) action.audit = true;
    const done = this.outbox.add(action);
    if (store.selection) return this.clearSelection();
    return rows.length > 0 ? this.advance(from, done) : done;
  }

  /** With a selection no row is beside the map: what is done there is done to the selection, or not at all. */
  onRow(kind) {
    const { row } = this;
    const { current, selection } = this.store;
    if (row === null || selection) return undefined;
    const action = kind === "skip" || kind === "keep" ? { do: kind, row } : { do: kind, rows: [row] };
    const done = this.outbox.add(action);
    return kind === "unlabel" || kind === "unignore" ? done : this.advance(current, done);
  }

  /** "ignore" or "unlabel", for the selection if there is one, else for the current row. */
  onRows(kind) {
    const { selection } = this.store;
    if (!selection) return this.onRow(kind);
    const done = this.outbox.add({ do: kind, rows: Array.from(selection.rows) });
    this.clearSelection();
    return done;
  }

  /** Back to the row it was about, which the server knows: another tab, or a visit before this one, may have done it. */
  async undo() {
    if (this.store.state?.undo === null) return;
    this.store.set({ last: null });
    const isDone = await this.outbox.add({ do: "undo" });
    const row = this.store.state.redo_row;
    if (isDone && row !== null) this.store.set({ current: { row, source: "next", reason: "taken back" } }); // seen, so no check
  }

  redo() {
    if (this.store.state?.redo === null) return;
    const from = this.store.current;
    this.advance(from, this.outbox.add({ do: "redo" }));
  }

  change(action) {
    return this.outbox.add(action);
  }

  // Looking around ----------------------------------------------------------------------------------------------

  pin(row) {
    this.clearSelection();
    const asked = this.store.queue.find((entry) => entry.row === row);
    this.goTo(asked ? this.entry(asked) : { row, source: "map" });
  }

  hover(row) {
    if (row === this.store.hovered) return;
    this.store.set({ hovered: row, hoveredCard: null });
    clearTimeout(this.hoverTimer);
    if (row !== null) this.hoverTimer = setTimeout(() => this.fetchHovered(row), HOVER);
  }

  async fetchHovered(row) {
    const isAsked = this.store.queue.some((entry) => entry.row === row && entry.audit) || (this.store.current?.row === row && this.store.current.audit);
    const card = await this.ask(() => api.getCard(row, isAsked));
    if (card !== null && this.store.hovered === row) this.store.set({ hoveredCard: card });
  }

  openTab(tab) {
    this.store.set({ tab });
    if (tab === "suspects") this.fetchSuspects(true);
    if (tab === "next" && this.store.current?.source !== "next") this.goTo(this.entry(this.store.queue[0]));
    if (tab === "class") this.list(this.store.listed.class ?? this.largestClass());
  }

  largestClass() {
    return [...(this.store.state?.classes ?? [])].sort((a, b) => b.predicted - a.predicted)[0]?.id ?? null;
  }

  async fetchSuspects(isOpening = false) {
    const reply = await this.ask(api.getSuspects);
    if (reply === null) return;
    this.store.set({ suspects: reply.suspects });
    if (isOpening && reply.suspects.length > 0 && this.store.tab === "suspects") this.goTo(this.suspectEntry(reply.suspects[0]));
  }

  suspectEntry(suspect) {
    const { store } = this;
    const reason = `given as ${nameOf(store, suspect.given)}; the other labels say ${nameOf(store, suspect.suggested)} (${percent(suspect.probability)})`;
    return { source: "suspects", reason, ...suspect };
  }

  async list(classId) {
    if (classId === null || !classOf(this.store, classId)) return;
    this.store.set({ listed: { class: classId, rows: [], total: 0 } });
    const reply = await this.ask(() => api.getRowsOfClass(classId, LISTED));
    if (reply === null || this.store.listed.class !== classId) return;
    this.store.set({ listed: { class: classId, ...reply } });
  }

  setView(view) {
    this.store.set({ view });
    if (view === "suspects") this.fetchSuspects();
  }

  // Selection ---------------------------------------------------------------------------------------------------

  async select(rows, outlines) {
    if (rows.length === 0) {
      this.notices.say(this.store.selection ? "No row is selected any more." : "No row is inside.");
      return this.clearSelection();
    }
    const selection = { rows, outlines };
    this.store.set({ selection, selected: null, preview: null, armed: null, tool: "pan" });
    const reply = await this.ask(() => api.describeSelection(rows, null));
    if (reply !== null && this.store.selection === selection) this.store.set({ selected: reply });
    return undefined;
  }

  /** How many predictions would change if the selection got this class. */
  async preview(classId) {
    const { selection, preview } = this.store;
    if (!selection || preview?.class === classId) return;
    this.previewing?.abort();
    this.previewing = new AbortController();
    const { signal } = this.previewing;
    this.store.set({ preview: { class: classId, changes: null } });
    const reply = await this.ask(() => api.describeSelection(selection.rows, classId, signal));
    if (reply !== null && this.store.selection === selection && this.store.preview?.class === classId) {
      this.store.set({ preview: { class: classId, changes: reply.changes } });
    }
  }

  /** All rows that hold these words. */
  async selectFound(words, total) {
    const reply = await this.ask(() => api.search(words, total));
    if (reply !== null) await this.select(Uint32Array.from(reply.rows), []);
  }

  selectClass(classId) {
    const index = this.store.state.classes.findIndex(({ id }) => id === classId);
    const rows = [];
    this.store.classes.forEach((value, row) => value === index && rows.push(row));
    return this.select(Uint32Array.from(rows), []);
  }

  unselect(row) {
    const { rows, outlines } = this.store.selection;
    this.hover(null);
    return this.select(rows.filter((other) => other !== row), outlines);
  }

  clearSelection() {
    this.store.set({ selection: null, selected: null, preview: null, armed: null });
  }
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const settle = () => pause(0); // listeners of the store have run by then
