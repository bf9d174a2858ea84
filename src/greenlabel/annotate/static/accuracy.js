// How good the predictions are, from rows drawn at random, and whether they still change.

import { element, replaceChildren, svg } from "./dom.js";
import { count, percent } from "./words.js";

const WIDTH = 168;
const HEIGHT = 56;
const PAD = 4;

export function renderAccuracy(place, view) {
  const { state } = view.store;
  if (!state) return;
  const { accuracy } = state;
  replaceChildren(place, element("div", { class: "figures" }, figure(accuracy), change(accuracy)), curve(accuracy), element("p", { class: accuracy.estimate === null ? "quiet-text" : "quiet-text short", title: accuracy.sentence }, accuracy.sentence));
}

function figure({ estimate, low, high, audits, right }) {
  if (estimate === null) return null;
  const title = `${count(right)} of ${count(audits)} random checks were predicted right`;
  return element("div", { title }, element("b", { class: "large" }, percent(estimate)), element("span", { class: "one-piece" }, `accuracy, ${Math.round(100 * low)}–${Math.round(100 * high)} %`));
}

/** What the last ten times of labelling changed, or as many as there were. */
function change({ changed, times }) {
  if (changed === null) return null;
  const last = times === 1 ? "the last label" : `the last ${times} labels`;
  return element("div", { title: `Share of the predictions that ${last} changed` }, element("b", { class: "large" }, percent(changed)), element("span", {}, `changed by ${last}`));
}

/** Estimate and interval over the number of labels. */
function curve({ curve: points }) {
  if (points.length < 2) return null;
  const labels = points.map(([n]) => n);
  const [first, last] = [Math.min(...labels), Math.max(...labels)];
  const bottom = Math.min(0.9, Math.max(0, Math.min(...points.map(([, , low]) => low)) - 0.05));
  const x = (n) => PAD + ((n - first) / (last - first || 1)) * (WIDTH - 2 * PAD);
  const y = (share) => PAD + (1 - (share - bottom) / (1 - bottom)) * (HEIGHT - 2 * PAD);
  const place = ([n, value]) => `${x(n).toFixed(1)},${y(value).toFixed(1)}`;
  const upper = points.map(([n, , , high]) => place([n, high]));
  const lower = points.map(([n, , low]) => place([n, low])).reverse();
  const ends = points.at(-1);
  return svg(
    "svg",
    { class: "curve", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `Accuracy over the number of labels, from ${count(first)} to ${count(last)}` },
    svg("line", { class: "axis", x1: PAD, x2: WIDTH - PAD, y1: y(1), y2: y(1) }),
    svg("polygon", { class: "band", points: [...upper, ...lower].join(" ") }),
    svg("polyline", { class: "line", points: points.map(place).join(" ") }),
    svg("circle", { class: "end", cx: x(ends[0]), cy: y(ends[1]), r: 2.6 }),
  );
}
