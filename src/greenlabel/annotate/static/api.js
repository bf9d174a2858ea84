// Talking to the server. Errors are of two kinds: it refused with a sentence, or it does not answer.

const HEADERS = { "Content-Type": "application/json", "X-Greenlabel": "1" };
const ACTION = "/api/action";
const PATIENCE = 60_000; // ms; a million rows take a second, a laptop that wakes up takes longer

export class Refused extends Error {}

/**
 * No answer. `connection`: "gone"; "locked", it does not know this tab, as after a restart; "other", it serves another
 * table now; "fine", it is just busy.
 */
export class Unreachable extends Error {
  constructor(message, connection = "gone") {
    super(message);
    this.connection = connection;
  }
}

async function request(path, options = {}) {
  let reply;
  try {
    reply = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE), ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable("The server does not answer.");
  }
  if (reply.ok) return reply;
  const sentence = await sentenceOf(reply);
  if (reply.status === 401 || reply.status === 403) throw new Unreachable(sentence, "locked");
  if (reply.status === 409 && path === ACTION) throw new Unreachable(sentence, "other");
  if (reply.status === 503) throw new Unreachable(sentence, "fine"); // still preparing: ask again
  if (sentence === null) throw new Unreachable(`The server answered with status ${reply.status}.`);
  throw new Refused(sentence);
}

async function sentenceOf(reply) {
  try {
    return (await reply.json()).error ?? null;
  } catch {
    return null;
  }
}

const post = (path, body, options) => request(path, { method: "POST", headers: HEADERS, body: JSON.stringify(body), ...options });
const json = async (reply) => (await reply).json();

export const getState = () => json(request("/api/state"));
export const getCard = (row, hide) => json(request(`/api/row/${row}${hide ? "?hide=1" : ""}`));
export const getQueue = (n) => json(request(`/api/next?n=${n}`));
export const getSuspects = () => json(request("/api/suspects"));
export const getRowsOfClass = (id, n) => json(request(`/api/class/${id}?n=${n}`));
export const search = (words, n) => json(request(`/api/search?q=${encodeURIComponent(words)}&n=${n}`));
export const describeSelection = (rows, classId, signal) =>
  json(post("/api/selection", { rows: Array.from(rows), class: classId }, signal ? { signal } : {}));
export const save = (report, model) => json(post("/api/save", { report, model }));
/** `run` is another one after each start of the server, so that the browser keeps no picture of another table. */
export const pictureAddress = ({ run }, row) => `/api/picture/${row}?run=${run}`;

export const getFrame = async () => decodeFrame(await (await request("/api/frame")).arrayBuffer());
export const act = async (action) => decodeFrame(await (await post(ACTION, action)).arrayBuffer());

export async function getPositions() {
  const reply = await request("/api/positions");
  const version = Number(reply.headers.get("X-Map-Version"));
  return { version, positions: new Float32Array(await reply.arrayBuffer()) };
}

/** A frame: length of the JSON, the JSON, a byte per row for the class, a byte per row for the confidence. */
export function decodeFrame(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const state = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  return {
    state,
    classes: new Uint8Array(buffer, 4 + length, state.n),
    confidence: new Uint8Array(buffer, 4 + length + state.n, state.n),
  };
}
