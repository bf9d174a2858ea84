// Where the name of a class stands: in the densest part of it, not at a mean that may lie among other rows.

const SIDE = 32;
const MAX_ROWS = 150_000; // enough to find a dense part

/**
 * [{id, x, y, size}] of classes with predicted rows; `order` shuffled row numbers, so that a part of them will do.
 * Confident rows count more: after the first label all rows are predicted alike, and its name belongs to where it is.
 */
export function classCentres(classes, confidence, ids, positions, order) {
  const counts = new Uint32Array(ids.length * SIDE * SIDE);
  const n = Math.min(order.length, MAX_ROWS);
  const cellOf = (row) => line(positions[2 * row + 1]) * SIDE + line(positions[2 * row]);
  for (let i = 0; i < n; i++) {
    const index = classes[order[i]];
    if (index < ids.length) counts[index * SIDE * SIDE + cellOf(order[i])] += 1 + confidence[order[i]];
  }
  const best = ids.map((_, index) => densest(counts.subarray(index * SIDE * SIDE, (index + 1) * SIDE * SIDE)));
  const sums = ids.map(() => [0, 0, 0]);
  for (let i = 0; i < n; i++) {
    const row = order[i];
    const index = classes[row];
    if (index >= ids.length || !isNear(cellOf(row), best[index].cell)) continue;
    const sum = sums[index];
    sum[0] += positions[2 * row];
    sum[1] += positions[2 * row + 1];
    sum[2] += 1;
  }
  return ids.flatMap((id, index) => {
    const [x, y, near] = sums[index];
    return near === 0 ? [] : [{ id, x: x / near, y: y / near, size: best[index].total }];
  });
}

const line = (value) => Math.min(SIDE - 1, Math.max(0, Math.floor(((value + 1) / 2) * SIDE)));

function isNear(cell, other) {
  return Math.abs((cell % SIDE) - (other % SIDE)) <= 1 && Math.abs(Math.floor(cell / SIDE) - Math.floor(other / SIDE)) <= 1;
}

/** The cell with most rows in it and its eight neighbours. */
function densest(counts) {
  let cell = 0;
  let most = -1;
  let total = 0;
  for (let y = 0; y < SIDE; y++) {
    for (let x = 0; x < SIDE; x++) {
      total += counts[y * SIDE + x];
      if (counts[y * SIDE + x] === 0) continue;
      let sum = 0;
      for (let j = Math.max(0, y - 1); j <= Math.min(SIDE - 1, y + 1); j++) {
        for (let i = Math.max(0, x - 1); i <= Math.min(SIDE - 1, x + 1); i++) sum += counts[j * SIDE + i];
      }
      if (sum > most) [cell, most] = [y * SIDE + x, sum];
    }
  }
  return { cell, total };
}
