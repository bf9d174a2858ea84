// Which row is under the pointer, which rows are inside a shape. Plain arithmetic on typed arrays.

const ROWS_PER_CELL = 4;
const BANDS = 256;

/** Rows sorted by the cells of a uniform grid over [-1, 1] x [-1, 1]; made once per map. */
export class Grid {
  constructor(positions) {
    this.positions = positions;
    const n = positions.length / 2;
    this.side = Math.max(1, Math.min(1024, Math.round(Math.sqrt(n / ROWS_PER_CELL))));
    const cells = new Uint32Array(n);
    this.start = new Uint32Array(this.side * this.side + 1);
    for (let row = 0; row < n; row++) {
      cells[row] = this.line(positions[2 * row + 1]) * this.side + this.line(positions[2 * row]);
      this.start[cells[row] + 1]++;
    }
    for (let cell = 0; cell < this.start.length - 1; cell++) this.start[cell + 1] += this.start[cell];
    const next = this.start.slice();
    this.rows = new Uint32Array(n);
    for (let row = 0; row < n; row++) this.rows[next[cells[row]]++] = row;
  }

  line(value) {
    return Math.min(this.side - 1, Math.max(0, Math.floor(((value + 1) / 2) * this.side)));
  }

  /** The row nearest to a point of the plane, no farther than `radius`; null where there is none. */
  nearest(x, y, radius) {
    const { positions, rows, start, side } = this;
    let best = null;
    let least = radius * radius;
    for (let j = this.line(y - radius); j <= this.line(y + radius); j++) {
      for (let k = start[j * side + this.line(x - radius)]; k < start[j * side + this.line(x + radius) + 1]; k++) {
        const dx = positions[2 * rows[k]] - x;
        const dy = positions[2 * rows[k] + 1] - y;
        const distance = dx * dx + dy * dy;
        if (distance <= least) [best, least] = [rows[k], distance];
      }
    }
    return best;
  }
}

/** Rows inside a polygon [[x, y], ...] of the plane, by the even-odd rule; ascending. */
export function rowsInside(positions, polygon) {
  const n = positions.length / 2;
  const found = new Uint32Array(n);
  let size = 0;
  const { left, right, bottom, top } = bounds(polygon);
  const bands = edgesByBand(polygon, bottom, top);
  const perUnit = BANDS / (top - bottom || 1);
  for (let row = 0; row < n; row++) {
    const x = positions[2 * row];
    const y = positions[2 * row + 1];
    if (x < left || x > right || y < bottom || y > top) continue;
    const edges = bands[Math.min(BANDS - 1, Math.floor((y - bottom) * perUnit))];
    if (isInside(x, y, edges)) found[size++] = row;
  }
  return found.slice(0, size);
}

function bounds(polygon) {
  const xs = polygon.map(([x]) => x);
  const ys = polygon.map(([, y]) => y);
  return { left: Math.min(...xs), right: Math.max(...xs), bottom: Math.min(...ys), top: Math.max(...ys) };
}

/** Of a lasso of hundreds of edges a point needs only those at its height: lists of them, for 256 bands of y. */
function edgesByBand(polygon, bottom, top) {
  const bands = Array.from({ length: BANDS }, () => []);
  const band = (y) => Math.min(BANDS - 1, Math.max(0, Math.floor(((y - bottom) / (top - bottom || 1)) * BANDS)));
  polygon.forEach(([x1, y1], index) => {
    const [x2, y2] = polygon[(index + 1) % polygon.length];
    if (y1 === y2) return;
    for (let b = band(Math.min(y1, y2)); b <= band(Math.max(y1, y2)); b++) bands[b].push(x1, y1, x2, y2);
  });
  return bands.map((edges) => Float64Array.from(edges));
}

function isInside(x, y, edges) {
  let inside = false;
  for (let e = 0; e < edges.length; e += 4) {
    const y1 = edges[e + 1];
    const y2 = edges[e + 3];
    if (y1 > y !== y2 > y && x < edges[e] + ((y - y1) / (y2 - y1)) * (edges[e + 2] - edges[e])) inside = !inside;
  }
  return inside;
}

/** Two ascending lists of rows joined: "replace", "add" (Shift) or "subtract" (Alt). */
export function combined(before, rows, how) {
  if (how === "replace" || before === null) return how === "subtract" ? new Uint32Array(0) : rows;
  const inNew = new Set(rows);
  if (how === "subtract") return before.filter((row) => !inNew.has(row));
  const inOld = new Set(before);
  return Uint32Array.from([...before, ...rows.filter((row) => !inOld.has(row))]).sort();
}

/** Numbers 0..n-1 in an order that is the same every time and has nothing to do with the table's. */
export function shuffled(n, seed = 1) {
  const order = new Uint32Array(n);
  let state = seed >>> 0;
  for (let i = 0; i < n; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const j = Math.floor((state / 4294967296) * (i + 1));
    order[i] = order[j];
    order[j] = i;
  }
  return order;
}
