// Starts the page: makes the parts and says which of them shows what.

import { renderAccuracy } from "./accuracy.js";
import { renderCard, renderLast } from "./card.js";
import { renderClasses } from "./classes.js";
import { Dialogs } from "./dialogs.js";
import { byId } from "./dom.js";
import { Filter } from "./filter.js";
import { Flow } from "./flow.js";
import { Focus } from "./focus.js";
import { Gestures } from "./gestures.js";
import { Keys } from "./keys.js";
import { renderList, renderTabs } from "./lists.js";
import { Notices, showBanner } from "./notices.js";
import { Outbox } from "./outbox.js";
import { Scene } from "./scene.js";
import { renderSelection } from "./selection.js";
import { INITIAL, createStore } from "./store.js";
import { Sync } from "./sync.js";
import { startTheme } from "./theme.js";
import { renderTooltip } from "./tooltip.js";
import { fillButtons, renderHistory, renderLegend, renderStage, renderTitle, renderTools, renderViews } from "./topbar.js";

const store = createStore(INITIAL);
const notices = new Notices();
const focus = new Focus(store);
const outbox = new Outbox({
  onFrame: (frame) => sync.take(frame),
  onRefused: (error) => notices.problem(error.message),
  onConnection: (connection) => sync.setConnection(connection),
  onCount: (pending) => store.set({ pending }),
});
const sync = new Sync(store, { isBusy: () => outbox.isSending && store.connection === "fine", onProblem: (error) => notices.problem(error.message) });
const scene = new Scene(store, focus, { points: byId("points"), sheet: byId("sheet"), onNoWebgl: () => (byId("no-webgl").hidden = false) });
const view = { store, colourOf: (id) => focus.colour(id, scene.theme) };
const flow = new Flow(store, outbox, notices);
const dialogs = new Dialogs(view, flow, notices);
const filter = new Filter(view, flow);
const gestures = new Gestures(store, scene, byId("map"), {
  hover: (row) => flow.hover(row),
  pin: (row) => flow.pin(row),
  select: (rows, outlines) => flow.select(rows, outlines),
});
new Keys({ store, flow, gestures, dialogs, filter });

/** Once, when the server has said which table this is. */
function onFirstState() {
  if (!store.state || focus.key) return;
  focus.restore(store.state);
  outbox.restore(store.state);
  if (store.state.classes.length === 0) filter.open();
}

function listen() {
  store.on(["state"], onFirstState);
  store.on(["state"], () => notices.notes(store.state.notes ?? []));
  store.on(["state", "current", "card", "pinnedFocus", "armed"], () => focus.update());
  store.on(["state"], () => [renderTitle, renderHistory, renderStage].forEach((render) => render(view, flow)));
  store.on(["view"], () => renderViews(view, flow));
  store.on(["view", "state", "changed"], () => renderLegend(view));
  store.on(["tool"], () => renderTools(view));
  store.on(["state", "current", "card", "focus", "connection", "theme"], () => renderCard(byId("card"), view, flow));
  store.on(["last", "state", "focus", "theme"], () => renderLast(byId("last"), view));
  store.on(["state", "focus", "armed", "selection", "pinnedFocus", "theme"], () => renderClasses(byId("classes"), view, { flow, focus, dialogs }));
  store.on(["selection", "selected", "preview", "armed", "state", "focus", "theme"], () => renderSelection(byId("selection"), view, flow));
  store.on(["selection"], () => (byId("card").hidden = store.selection !== null));
  store.on(["tab", "state"], () => renderTabs(byId("tabs"), view, flow));
  store.on(["tab", "queue", "suspects", "listed", "current", "state", "focus", "theme"], () => renderList(byId("list"), view, flow));
  store.on(["state"], () => renderAccuracy(byId("accuracy"), view));
  store.on(["hovered", "hoveredCard"], () => renderTooltip(byId("tooltip"), view, scene));
  store.on(["connection", "pending"], () => showBanner(store));
}

function connectButtons() {
  const clicks = {
    undo: () => flow.undo(),
    redo: () => flow.redo(),
    save: () => dialogs.openSave(),
    help: () => dialogs.openHelp(),
    "zoom-in": () => gestures.zoom(1.5),
    "zoom-out": () => gestures.zoom(1 / 1.5),
    fit: () => gestures.fit(),
  };
  for (const [id, run] of Object.entries(clicks)) byId(id).addEventListener("click", run);
  for (const button of byId("tools").querySelectorAll("[data-tool]")) {
    button.addEventListener("click", () => store.set({ tool: button.dataset.tool }));
  }
}

listen();
fillButtons();
connectButtons();
[renderViews, renderTools, renderStage, renderTabs].forEach((render) => (render === renderTabs ? render(byId("tabs"), view, flow) : render(view, flow)));
startTheme((theme) => {
  scene.setTheme(theme);
  store.set({ theme });
});
// For tests, benchmarks and the curious: what the page knows, and where it draws it.
window.greenlabel = { store, scene, flow };
sync.start();
