// Keeps the store in step with the server: frames, positions, events. Replies that come late are dropped.

import * as api from "./api.js";

const RETRY = 1000; // ms until the next look whether the server is back

export class Sync {
  /** isBusy(): an action is on its way, whose reply brings the frame anyway. */
  constructor(store, { isBusy, onProblem }) {
    this.store = store;
    this.isBusy = isBusy;
    this.onProblem = onProblem;
    this.isReborn = false; // the server was away: its generations may start anew
    this.isFetching = false;
    this.live = null; // the last frame of the live model: what a label changes is told apart from what the blend does
  }

  async start() {
    while (!(await this.catchUp(Infinity, Infinity))) await pause(RETRY);
    this.listen();
  }

  listen() {
    this.events?.close();
    this.events = new EventSource("/api/events");
    this.events.onmessage = (event) => this.onEvent(JSON.parse(event.data));
    this.events.onerror = () => this.lookAgain();
  }

  onEvent({ generation, map, stage }) {
    this.setConnection("fine");
    if (stage && typeof stage === "object" && this.store.state) {
      this.store.set({ state: { ...this.store.state, stage } });
    }
    this.catchUp(generation, map);
  }

  /** Asks until somebody answers; the browser's own retry ends for good when it is refused once. */
  async lookAgain() {
    this.events?.close();
    if (this.isLooking) return;
    this.isLooking = true;
    for (;;) {
      try {
        if (this.isOurs(await api.getState())) break;
        this.setConnection("other");
      } catch (error) {
        this.setConnection(error.connection ?? "gone");
      }
      await pause(RETRY);
    }
    this.isLooking = false;
    this.setConnection("fine");
    await this.catchUp(Infinity, Infinity);
    this.listen();
  }

  /** A server may be started on another table at the same address: its rows are not those of this page. */
  isOurs({ identity }) {
    return [null, identity].includes(this.store.state?.identity ?? null);
  }

  setConnection(connection) {
    if (connection !== "fine") this.isReborn = true;
    this.store.set({ connection });
  }

  /** Fetches what is behind; true unless the server could not be asked. */
  async catchUp(generation, map) {
    this.wanted = { generation, map }; // an event that comes meanwhile is looked at afterwards
    if (this.isFetching) return true;
    this.isFetching = true;
    try {
      const isBehind = generation !== this.store.state?.generation || this.isReborn || this.isPreparing();
      if (isBehind && !this.isBusy()) this.take(await api.getFrame());
      if (map > this.store.mapVersion) await this.fetchPositions();
      return this.store.state !== null;
    } catch (error) {
      if (!(error instanceof api.Unreachable)) this.onProblem(error);
      else this.setConnection(error.connection ?? "gone");
      return false;
    } finally {
      this.isFetching = false;
      const { wanted } = this;
      if (wanted.generation !== generation || wanted.map !== map) this.catchUp(wanted.generation, wanted.map);
    }
  }

  isPreparing() {
    return this.store.state !== null && this.store.positions === null;
  }

  /** A frame goes into the store unless a newer one is there already. */
  take(frame) {
    const before = this.store.state;
    if (!this.isOurs(frame.state)) return void this.lookAgain();
    const isStale = before !== null && frame.state.generation < before.generation && !this.isReborn;
    if (isStale) return;
    this.isReborn = false;
    this.store.set({ ...frame, changed: this.changedBy(frame) });
    if (frame.state.shown?.model !== "blend") this.live = frame;
    if (frame.state.map > this.store.mapVersion && !this.isFetching) this.catchUp(frame.state.generation, frame.state.map);
  }

  /** Rows that the last change of the labels changed; a skipped row, a new name or the blend change none. */
  changedBy(frame) {
    const { state, changed } = this.store;
    return state === null || state.labelled === frame.state.labelled ? changed : changedRows(this.live ?? this.store, frame);
  }

  async fetchPositions() {
    if (["graph", "failed"].includes(this.store.state.stage.name)) return; // there are none yet
    const { version, positions } = await api.getPositions();
    if (version <= this.store.mapVersion && !this.isReborn) return;
    if (positions.length === 0) return; // still preparing
    this.store.set({ positions, mapVersion: version });
  }
}

/** Rows whose class is another one than before; classes are compared by id, since their indices may have moved. */
function changedRows(last, frame) {
  const indexNow = new Uint8Array(256).fill(254); // a class that is gone equals none of today's
  indexNow[255] = 255;
  const now = new Map(frame.state.classes.map(({ id }, index) => [id, index]));
  last.state.classes.forEach(({ id }, index) => (indexNow[index] = now.get(id) ?? 254));
  const { classes: before } = last;
  const { classes } = frame;
  const rows = new Uint32Array(classes.length);
  let size = 0;
  for (let row = 0; row < classes.length; row++) if (indexNow[before[row]] !== classes[row]) rows[size++] = row;
  return rows.slice(0, size);
}

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
