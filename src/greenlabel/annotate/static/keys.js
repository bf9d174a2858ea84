// One key for everything that is done often. Keys typed into a field are text.

import { VIEWS } from "./store.js";

/** For the help: what is listed is what works. */
export const KEYS = [
  ["1 – 9, a – z", "give the class with this key, go on to the next row"],
  ["Enter", "accept the prediction; with a selection: assign the class shown"],
  ["Space", "skip the row"],
  ["x", "ignore the row, or the selection, for good"],
  ["=", "keep the label of a suspect: it is right"],
  ["Delete", "take the label of the row, or of the selection, away"],
  ["/", "find a class or a row, or type a new class and press Enter"],
  ["Ctrl-Z", "undo"],
  ["Ctrl-Shift-Z, Ctrl-Y", "redo"],
  ["Ctrl-S", "save"],
  ["Escape", "clear the selection, close what is open"],
  ["[, ]", "the view before, the next view"],
  ["0", "fit the map"],
  ["+, −", "zoom"],
  ["←, ↑, →, ↓", "move the map, when it has the focus"],
  ["?", "this list"],
];

const STEP = 60; // pixels an arrow key moves the map

export class Keys {
  /** parts: {store, flow, gestures, dialogs, filter}. */
  constructor(parts) {
    Object.assign(this, parts);
    document.addEventListener("keydown", (event) => this.onKey(event));
    document.addEventListener("click", (event) => this.afterClick(event));
  }

  onKey(event) {
    if (event.defaultPrevented || event.isComposing || !event.key || !this.store.state) return;
    const isHandled = event.ctrlKey || event.metaKey ? this.withControl(event) : this.plain(event);
    if (isHandled) event.preventDefault();
  }

  /** A button clicked by hand gives the focus back: Space and Enter stay keys of the row, and press it not again. */
  afterClick(event) {
    const isButton = Boolean(event.target.closest?.("button"));
    if (event.detail === 0 || !isButton || this.dialogs.isOpen) return;
    document.activeElement?.closest("button")?.blur(); // perhaps a new one in the place of the one that was clicked
  }

  withControl(event) {
    if (event.altKey) return false;
    const key = letterOf(event);
    if (key === "s") return this.run(() => this.dialogs.openSave());
    if (this.isTyping(event) || this.dialogs.isOpen) return false;
    if (key === "z" && !event.shiftKey) return this.run(() => this.flow.undo());
    if ((key === "z" && event.shiftKey) || key === "y") return this.run(() => this.flow.redo());
    return false;
  }

  plain(event) {
    if (event.altKey || this.dialogs.isOpen) return false;
    if (event.key === "Escape") return this.run(() => this.escape());
    if (this.isTyping(event)) return false;
    return this.command(event) || this.classKey(event);
  }

  command(event) {
    const { flow, gestures, store } = this;
    const onButton = event.target.closest?.("button, a, summary");
    const isOwn = onButton && !onButton.matches("[role=tab][aria-selected=true]"); // that tab is open already
    if (isOwn && (event.key === "Enter" || event.key === " ")) return false; // the button's own keys
    const commands = {
      Enter: () => flow.accept(),
      " ": () => flow.onRow("skip"),
      x: () => flow.onRows("ignore"),
      "=": () => this.keep(),
      Delete: () => flow.onRows("unlabel"),
      "?": () => this.dialogs.openHelp(),
      "/": () => this.filter.open(),
      0: () => gestures.fit(),
      "+": () => gestures.zoom(1.5),
      "-": () => gestures.zoom(1 / 1.5),
      "[": () => this.switchView(-1),
      "]": () => this.switchView(1),
      ...(event.target === gestures.surface ? this.arrows() : {}),
    };
    const command = commands[event.key] ?? commands[letterOf(event)];
    if (!command || (event.repeat && ["Enter", " ", "x", "=", "Delete"].includes(event.key))) return Boolean(command);
    return this.run(command, store);
  }

  arrows() {
    const { gestures } = this;
    return {
      ArrowLeft: () => gestures.pan(STEP, 0),
      ArrowRight: () => gestures.pan(-STEP, 0),
      ArrowUp: () => gestures.pan(0, STEP),
      ArrowDown: () => gestures.pan(0, -STEP),
    };
  }

  classKey(event) {
    const pressed = letterOf(event);
    const found = this.store.state.classes.find(({ key }) => key !== null && key === pressed);
    if (!found) return false;
    if (!event.repeat) this.flow.pressClass(found.id); // a key held down must not label row after row
    return true;
  }

  keep() {
    if (this.store.card?.given !== null) this.flow.onRow("keep");
  }

  switchView(step) {
    const index = VIEWS.findIndex(({ id }) => id === this.store.view);
    this.flow.setView(VIEWS[(index + step + VIEWS.length) % VIEWS.length].id);
  }

  escape() {
    this.filter.close();
    this.flow.clearSelection();
    this.store.set({ tool: "pan" });
  }

  isTyping(event) {
    return Boolean(event.target.closest?.("input:not([type=checkbox]):not([type=radio]), textarea, select"));
  }

  run(command) {
    command();
    return true;
  }
}

/** The letter of a key; where the keyboard writes others (Greek, Russian), the one that stands on it elsewhere. */
function letterOf({ key, code }) {
  const isForeign = key.length === 1 && key > "~" && /^Key[A-Z]$/.test(code);
  return (isForeign ? code.at(-1) : key).toLowerCase();
}
