// What is drawn on top of the points: the selection, suggestions, given labels. 32 bytes a mark, as the shader reads them.

import { bytesOf } from "./palette.js";

const BYTES = 32;
const INK = { light: [28, 34, 33], dark: [240, 244, 242] };
const PAPER = { light: [255, 255, 255], dark: [16, 20, 22] };

/** Diameters in pixels of the page; marks are a little larger than the points among which they stand. */
const sizes = (size) => ({ given: Math.max(7, size + 3), suggested: Math.max(9, size + 5), selected: Math.max(3, size + 1) });

/**
 * layers: {selected, suggested, given: [[row, colour], ...]}; where(row) -> [x, y, x, y], before and now.
 * Later ones cover earlier ones.
 */
export function buildMarks({ selected, suggested, given }, { theme, size, where }) {
  const n = selected.length + suggested.length + given.length;
  const buffer = new ArrayBuffer(n * BYTES);
  const floats = new Float32Array(buffer);
  const bytes = new Uint8Array(buffer);
  const ink = INK[theme];
  const paper = PAPER[theme];
  const diameter = sizes(size);
  let k = 0;
  const add = (row, fill, ring, width, thickness) => {
    floats.set(where(row), (k * BYTES) / 4);
    bytes.set(fill, k * BYTES + 16);
    bytes.set(ring, k * BYTES + 20);
    floats.set([width, thickness], (k * BYTES) / 4 + 6);
    k += 1;
  };
  for (const row of selected) add(row, [...ink, 0], [...ink, 240], diameter.selected, 1);
  for (const row of suggested) add(row, [...paper, 0], [...ink, 200], diameter.suggested, 1.4);
  for (const [row, colour] of given) {
    const fill = bytesOf(colour);
    const isLikeInk = fill.every((byte, i) => Math.abs(byte - ink[i]) < 32); // its rim would not be seen: it gets a hole
    add(row, [...(isLikeInk ? paper : fill), 255], [...ink, 255], diameter.given, isLikeInk ? 2.6 : 1.8);
  }
  return { n, bytes };
}
