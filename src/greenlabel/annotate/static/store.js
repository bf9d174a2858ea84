// What the page knows, in one place. Parts of the page listen to the keys they show.

/**
 * set({key: value, ...}) changes, on(["key", ...], render) listens. Listeners run once per turn of the event loop,
 * however many keys changed in it, and in the order in which they asked.
 */
export function createStore(initial) {
  const listeners = [];
  let changed = new Set();

  function flush() {
    const keys = changed;
    changed = new Set();
    for (const { wanted, render } of listeners) if (wanted.some((key) => keys.has(key))) render(store);
  }

  const store = {
    ...initial,
    set(values) {
      for (const [key, value] of Object.entries(values)) {
        if (store[key] === value) continue;
        if (changed.size === 0) queueMicrotask(flush);
        store[key] = value;
        changed.add(key);
      }
    },
    on(wanted, render) {
      listeners.push({ wanted, render });
    },
  };
  return store;
}

export const VIEWS = [
  { id: "prediction", name: "Prediction", says: "Colour is the predicted class; it fades to grey with doubt." },
  { id: "confidence", name: "Confidence", says: "From doubtful to confident, whatever the class." },
  { id: "given", name: "Labels", says: "Only rows whose label was given are coloured." },
  { id: "suspects", name: "Suspects", says: "Given labels that the others contradict." },
  { id: "changed", name: "Last change", says: "Predictions of the live model that the last change of the labels changed." },
];

export const INITIAL = {
  state: null, // JSON of the server, see docs/annotate.md
  classes: null, // per row: index of its class in state.classes; 255 none
  confidence: null, // per row: 0-255
  changed: null, // rows whose live prediction the last change of the labels changed
  positions: null, // x, y per row
  mapVersion: -1,
  current: null, // {row, source, audit, reason, between}: what a key labels
  card: null, // of the current row
  hovered: null, // a row under the pointer, and its card
  hoveredCard: null,
  queue: [],
  words: new Map(), // row -> its first words, where rows are texts
  suspects: null,
  selection: null, // {rows, outline}
  selected: null, // what the server says about it
  preview: null, // {class, changes}: what assigning would do
  armed: null, // class id chosen for the selection by a key; the same key again assigns
  focus: [], // class ids that have colours
  pinnedFocus: [], // those of them that the person chose
  view: "prediction",
  tool: "pan",
  tab: "next",
  listed: { class: null, rows: [], total: 0 }, // the tab "by class"
  connection: "fine", // "gone" | "locked" | "other"
  pending: 0, // actions that wait for the server
  last: null, // what the last label said against the prediction
};

/** The class of an id, or a stand-in for one that another tab has just removed. */
export function classOf(store, id) {
  return store.state?.classes.find((one) => one.id === id) ?? null;
}

export function nameOf(store, id) {
  return id === null || id === undefined ? "not reached" : (classOf(store, id)?.name ?? "removed class");
}

/** Class id that a row is predicted as, or null. */
export function predictedClass(store, row) {
  const index = store.classes?.[row] ?? 255;
  return store.state.classes[index]?.id ?? null;
}
