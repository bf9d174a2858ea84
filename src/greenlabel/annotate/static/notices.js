// Short words at the edge: toasts that go away, and the banner that stays while the server is gone.

import { byId, element } from "./dom.js";
import { many } from "./words.js";

const STAYS = { note: 5000, problem: 9000 };

export class Notices {
  constructor() {
    this.place = byId("toasts");
    this.said = new Set();
  }

  say(text, { action, run } = {}) {
    this.show("note", text, action && element("button", { class: "quiet", type: "button", onclick: run }, action));
  }

  problem(text) {
    this.show("problem", text);
  }

  show(kind, text, button = null) {
    const toast = element("div", { class: `toast ${kind}`, role: kind === "problem" ? "alert" : "status" }, element("span", {}, text), button);
    const remove = () => toast.remove();
    button?.addEventListener("click", remove);
    this.place.append(toast);
    while (this.place.children.length > 4) this.place.firstChild.remove();
    setTimeout(remove, STAYS[kind]);
  }

  /** Sentences of the server that are said once: "went on with 31 labels". */
  notes(sentences) {
    for (const sentence of sentences) {
      if (this.said.has(sentence)) continue;
      this.said.add(sentence);
      this.say(sentence);
    }
  }
}

const BANNERS = {
  gone: "The server does not answer. Your last action is kept and is sent when it is back.",
  idle: "The server does not answer. The page goes on when it is back.",
  locked: "The server was started anew and does not know this page. Open the address it printed in this browser; this page then goes on.",
  other: "Another table is open at this address now. Reload the page to see it; what waits here is kept for its own table.",
};

export function showBanner({ connection, pending }) {
  const banner = byId("banner");
  banner.hidden = connection === "fine";
  if (banner.hidden) return;
  const kind = connection === "gone" && pending === 0 ? "idle" : connection;
  const waiting = pending > 0 ? ` (${many(pending, "action")} waiting)` : "";
  banner.textContent = BANNERS[kind] + waiting;
}
