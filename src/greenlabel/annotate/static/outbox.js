// Actions on their way to the server, one after the other. What is not acknowledged is kept, also through a reload,
// and sent again with the same id, so that the server does it once.

import * as api from "./api.js";

const KEY = "greenlabel.outbox."; // and a name of the tab: tabs must not write over what others keep
const PAUSE = 700; // ms between two tries

export class Outbox {
  /** hooks: onFrame(frame, action), onRefused(error, action), onConnection("fine" | "gone" | "locked" | "other"), onCount(n). */
  constructor(hooks) {
    this.hooks = hooks;
    this.actions = [];
    this.isSending = false;
    this.table = null;
    this.key = KEY + newId();
  }

  /** Actions of a tab that was closed or reloaded before they were sent, if they were meant for this table. */
  restore(state) {
    this.table = state.identity;
    for (const { key, kept } of allKept()) {
      if (kept?.table !== this.table || key === this.key) continue;
      this.actions.push(...kept.actions); // a tab that is still open sends them too; the server does them once
      localStorage.removeItem(key);
    }
    if (this.actions.length > 0) this.keep();
    this.send();
  }

  /** Resolves to whether the server took it. */
  add(action) {
    const whole = { id: newId(), ...action };
    this.actions.push(whole);
    this.keep();
    const done = new Promise((resolve) => Object.defineProperty(whole, "resolve", { value: resolve, enumerable: false }));
    this.send();
    return done;
  }

  keep() {
    this.hooks.onCount(this.actions.length);
    try {
      if (this.actions.length === 0) localStorage.removeItem(this.key);
      else localStorage.setItem(this.key, JSON.stringify({ table: this.table, actions: this.actions }));
    } catch {
      // A full or forbidden storage costs the safety net for a reload, nothing else.
    }
  }

  async send() {
    if (this.isSending) return;
    this.isSending = true;
    while (this.actions.length > 0) {
      const isThrough = await this.sendFirst();
      if (!isThrough) await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
    this.isSending = false;
  }

  async sendFirst() {
    const [action] = this.actions;
    try {
      const frame = await api.act({ ...action, table: this.table });
      this.finish(action, true);
      this.hooks.onConnection("fine");
      this.hooks.onFrame(frame, action);
    } catch (error) {
      if (error instanceof api.Unreachable) {
        this.hooks.onConnection(error.connection);
        return false;
      }
      this.finish(action, false);
      this.hooks.onRefused(error, action);
    }
    return true;
  }

  finish(action, isDone) {
    this.actions.shift();
    this.keep();
    action.resolve?.(isDone);
  }
}

function allKept() {
  try {
    const keys = Object.keys(localStorage).filter((key) => key.startsWith(KEY));
    return keys.map((key) => ({ key, kept: JSON.parse(localStorage.getItem(key)) }));
  } catch {
    return [];
  }
}

function newId() {
  if (crypto.randomUUID) return crypto.randomUUID(); // only where the page counts as secure, which loopback does
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
