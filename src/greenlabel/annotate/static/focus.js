// Which classes have a colour, and which one. Up to eight classes all have theirs; beyond that those in focus.

import { MAX_COLOURS, assignSlots, settleHomes, slotColour } from "./palette.js";

const KEY = "greenlabel.colours";

export class Focus {
  constructor(store) {
    this.store = store;
    this.home = new Map(); // class id -> its slot
    this.slots = new Map();
    this.transient = null; // a class under the pointer
  }

  /** Slots remembered from an earlier visit: a class keeps its colour through a reload. */
  restore(state) {
    this.key = `${KEY}.${state.identity}`;
    try {
      this.home = new Map(JSON.parse(localStorage.getItem(this.key) ?? "[]"));
    } catch {
      this.home = new Map();
    }
  }

  update() {
    const { state } = this.store;
    if (!state) return;
    const ids = state.classes.map(({ id }) => id);
    settleHomes(ids, this.home);
    this.remember();
    this.slots = ids.length <= MAX_COLOURS ? assignSlots(ids, [], this.home) : assignSlots(...this.wanted(ids), this.home);
    const focus = [...this.slots.keys()];
    const key = [...this.slots].join(); // ids with their slots
    if (key !== this.shown) this.store.set({ focus });
    this.shown = key;
  }

  /** Must: chosen ones, the one a selection may get, and those the current row lies between. Rest: those in focus already, so that the map is calm. */
  wanted(ids) {
    const { state, pinnedFocus, current, card, focus, armed } = this.store;
    const known = (id) => ids.includes(id);
    const bySize = [...state.classes].sort((a, b) => b.predicted - a.predicted || b.given - a.given).map(({ id }) => id);
    const near = current?.audit ? [] : [...(current?.between ?? []), ...(card?.probabilities ?? []).slice(0, 2).map(([id]) => id)];
    const must = [...new Set([this.transient, armed, ...pinnedFocus, ...near])].filter(known).slice(0, MAX_COLOURS);
    return [must, [...focus, ...bySize].filter(known)];
  }

  remember() {
    try {
      localStorage.setItem(this.key, JSON.stringify([...this.home]));
    } catch {
      // Without storage the colours are given out anew after a reload.
    }
  }

  /** "#rrggbb", or null for a class that is out of focus. */
  colour(id, theme) {
    return this.slots.has(id) ? slotColour(this.slots.get(id), theme) : null;
  }

  /** Colours by index of the class, as the table of colours takes them. */
  colours(theme) {
    return this.store.state.classes.map(({ id }) => this.colour(id, theme));
  }

  togglePin(id) {
    const { pinnedFocus } = this.store;
    const without = pinnedFocus.filter((other) => other !== id);
    const isPinned = without.length < pinnedFocus.length;
    this.store.set({ pinnedFocus: isPinned ? without : [id, ...without].slice(0, MAX_COLOURS) });
    this.update();
  }

  hover(id) {
    if (this.store.state.classes.length <= MAX_COLOURS) return;
    this.transient = id;
    this.update();
  }
}
