// Elements without markup: whatever comes from a table becomes text, never HTML.

/**
 * element("button", {class: "key", onclick: act, data: {key: 5}, aria: {label: "Undo"}}, "text", child, null)
 * Attributes that are null or false are left out; `style` takes custom properties, which the content policy allows.
 */
export function element(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) setAttribute(node, key, value);
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function setAttribute(node, key, value) {
  if (value === null || value === undefined || value === false) return;
  if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
  else if (key === "data") Object.assign(node.dataset, value);
  else if (key === "aria") for (const [name, text] of Object.entries(value)) node.setAttribute(`aria-${name}`, text);
  else if (key === "style") for (const [name, text] of Object.entries(value)) node.style.setProperty(name, text);
  else node.setAttribute(key, value === true ? "" : value);
}

export const byId = (id) => document.getElementById(id);

/** New children; the one with the same data-key keeps the focus, or someone who types would lose their place. */
export function replaceChildren(parent, ...children) {
  const active = document.activeElement;
  const key = parent.contains(active) ? active.dataset.key : undefined;
  const scroll = parent.scrollTop;
  parent.replaceChildren(...children.flat(Infinity).filter(Boolean));
  parent.scrollTop = scroll;
  if (key === undefined) return;
  [...parent.querySelectorAll("[data-key]")].find((node) => node.dataset.key === key)?.focus({ preventScroll: true });
}

const ICONS = {
  undo: "M9 14 4 9l5-5M4 9h10a6 6 0 0 1 0 12h-3",
  redo: "m15 14 5-5-5-5M20 9H10a6 6 0 0 0 0 12h3",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8ZM12 2v2M12 20v2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M2 12h2M20 12h2M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4",
  moon: "M20 14.5A8.5 8.5 0 1 1 9.5 4a7 7 0 0 0 10.5 10.5Z",
  help: "M9.2 9a3 3 0 1 1 4.3 2.7c-1 .5-1.5 1.1-1.5 2.3M12 17.5v.01",
  save: "M12 3v12M7 10l5 5 5-5M4 19h16",
  hand: "M12 3v18M3 12h18M12 3 9.5 5.5M12 3l2.5 2.5M12 21l-2.5-2.5M12 21l2.5-2.5M3 12l2.5-2.5M3 12l2.5 2.5M21 12l-2.5-2.5M21 12l-2.5 2.5",
  lasso: "M8 16.5C5 15.400 3 13 3 10c0-3.900 4-7 9-7s9 3.100 9 7-4 7-9 7c-.700 0-1.400-.100-2-.200M8 14.500a2 2 0 1 0 .010 4 2 2 0 0 0-.010-4ZM9.500 18c.500 1.500 0 3-2 3.500",
  box: "M4 4h3M10.500 4h3M17 4h3M4 20h3M10.500 20h3M17 20h3M4 4v3M4 10.500v3M4 17v3M20 4v3M20 10.500v3M20 17v3",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  fit: "M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5",
  more: "M6 12h.01M12 12h.01M18 12h.01",
  close: "M6 6l12 12M18 6 6 18",
  check: "m5 12.500 4.500 4.500L19 7.500",
  eye: "M2.500 12S6 5.500 12 5.500 21.500 12 21.500 12 18 18.500 12 18.500 2.500 12 2.500 12ZM12 9.300a2.700 2.700 0 1 0 0 5.400 2.700 2.700 0 0 0 0-5.400Z",
};

/** A small line drawing; the button around it says what it means. */
export function icon(name) {
  const path = svg("path", { d: ICONS[name] });
  return svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, path);
}
