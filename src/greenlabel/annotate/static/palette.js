// Colours of classes and of doubt. Mixed in OKLab, where a step looks equally large everywhere.

/** Okabe and Ito's eight, told apart also by people who see fewer colours; the faint and the dark one come last. */
const OKABE_ITO = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#f0e442", "#000000"];
export const MAX_COLOURS = OKABE_ITO.length;
export const LEVELS = 64; // steps of confidence in the table of colours
const NONE = 255;

const THEMES = {
  light: { background: "#fbfbf9", doubt: "#c3c5c4", neutral: "#d8dad8", rest: "#8d9291", eighth: "#1b1b1b", yellow: "#e0d020", ramp: ["#d5d8d4", "#8fb7a5", "#00664b"] },
  dark: { background: "#14181a", doubt: "#484f52", neutral: "#343a3d", rest: "#767d80", eighth: "#f4f4f0", yellow: "#f0e442", ramp: ["#3a4144", "#2f8a6c", "#9ff2cf"] },
};

export const themeColours = (theme) => THEMES[theme];

/** The colour of a slot 0-7 in a theme; black would vanish on a dark page, yellow on a light one. */
export function slotColour(slot, theme) {
  if (slot === 7) return THEMES[theme].eighth;
  if (slot === 6) return THEMES[theme].yellow;
  return OKABE_ITO[slot];
}

/** "#rrggbb" -> [r, g, b] in 0-255. */
export const bytesOf = (hex) => [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));

const toLinear = (byte) => (byte / 255 <= 0.04045 ? byte / 255 / 12.92 : ((byte / 255 + 0.055) / 1.055) ** 2.4);
const fromLinear = (value) => Math.round(255 * Math.min(1, Math.max(0, value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055)));

function oklab(hex) {
  const [r, g, b] = bytesOf(hex).map(toLinear);
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function fromOklab([L, a, b]) {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ].map(fromLinear);
}

const mix = (from, to, share) => from.map((value, index) => value + share * (to[index] - value));

/** The colour between two, as [r, g, b]. */
export const between = (from, to, share) => fromOklab(mix(oklab(from), oklab(to), share));

/**
 * Colours for (class byte, confidence level): RGBA, one line of LEVELS per class byte.
 * With c classes a confidence of 1/c is no more than a guess: there the colour is the grey of doubt.
 */
export function colourTable({ colours, view, theme }) {
  const table = new Uint8Array(256 * LEVELS * 4).fill(255);
  const ramp = THEMES[theme].ramp.map(oklab);
  const doubt = oklab(THEMES[theme].doubt);
  const neutral = oklab(THEMES[theme].neutral);
  const guess = 1 / Math.max(2, colours.length);
  for (let index = 0; index < 256; index++) {
    const colour = oklab(colours[index] ?? THEMES[theme].rest);
    for (let level = 0; level < LEVELS; level++) {
      const strength = Math.min(1, Math.max(0, (level / (LEVELS - 1) - guess) / (1 - guess)));
      const lab = index === NONE ? neutral : view === "confidence" ? onRamp(ramp, strength) : mix(doubt, colour, strength ** 0.8);
      table.set(fromOklab(lab), 4 * (index * LEVELS + level));
    }
  }
  return table;
}

function onRamp([low, middle, high], share) {
  return share < 0.5 ? mix(low, middle, 2 * share) : mix(middle, high, 2 * share - 1);
}

/**
 * Slots of colour for classes. Every class has a home among the eight, and is seen in that colour or in grey; only where
 * two that must be seen share a home, one of them moves for as long as that lasts.
 * `must` and `rest`: ids in order of importance; `home`: Map id -> slot.
 */
export function assignSlots(must, rest, home) {
  const slots = new Map();
  const taken = new Set();
  const give = (id, slot) => {
    slots.set(id, slot);
    taken.add(slot);
  };
  for (const id of must) if (!taken.has(home.get(id))) give(id, home.get(id));
  for (const id of must) {
    const free = [...Array(MAX_COLOURS).keys()].find((slot) => !taken.has(slot));
    if (!slots.has(id) && free !== undefined) give(id, free);
  }
  for (const id of rest) if (!slots.has(id) && !taken.has(home.get(id))) give(id, home.get(id));
  return slots;
}

/** Homes of classes that have none yet: the slots that fewest of the others live in. */
export function settleHomes(ids, home) {
  const lived = new Array(MAX_COLOURS).fill(0);
  for (const id of ids) if (home.has(id)) lived[home.get(id)] += 1;
  for (const id of ids) {
    if (home.has(id)) continue;
    const slot = lived.indexOf(Math.min(...lived));
    home.set(id, slot);
    lived[slot] += 1;
  }
}
