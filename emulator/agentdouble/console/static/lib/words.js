// How times, requests and JSON look.

/** A duration as 1:34 or 2:03:00. @param {number} seconds */
export function span(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const tail = `${String(rest).padStart(2, "0")}`;
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${tail}` : `${minutes}:${tail}`;
}

/** @param {Date} date */
export const stamp = (date) => `${date.toISOString().slice(0, 19).replace("T", " ")}Z`;

/** The time of day of a request. @param {string} at */
export const timeOfDay = (at) => new Date(at).toISOString().slice(11, 19);

/** @param {number | null} ms */
export const duration = (ms) => (ms === null ? "…" : ms < 10 ? `${ms.toFixed(1)} ms`
  : ms < 10000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);

/** @param {number} bytes */
export const mebibytes = (bytes) => `${Math.round(bytes / 2 ** 20)} MiB`;

/** "1 session", "2 sessions". @param {number} count @param {string} noun @param {string} [more] */
export const counted = (count, noun, more = `${noun}s`) => `${count} ${count === 1 ? noun : more}`;

/** The path and the query of a request. @param {any} entry */
export function addressOf(entry) {
  // no URL of the browser, which throws where a client sent a port or a name that cannot be
  const [, path = "", query = ""] = /^[^:]*:\/\/[^/?]*([^?]*)\??([^]*)$/.exec(entry.url) ?? [];
  return { path: path || "/", query: new URLSearchParams(query) };
}

/** What a request asks for: an action of the control plane, or a path. @param {any} entry */
export function operationOf(entry) {
  const { path, query } = addressOf(entry);
  return query.get("Action") || path;
}

/** The newest first, and below each what it caused, in the order in which it came.
 * @param {any[]} entries */
export function newestFirst(entries) {
  const root = (/** @type {any} */ entry) => entry.caused_by ?? entry.id;
  return [...entries].sort((a, b) => root(b) - root(a) || a.id - b.id);
}

/** "ok", "bad", "worse" or "running", for colour and for words. @param {any} entry */
export function outcome(entry) {
  if (entry.status === null) return entry.duration_ms === null ? "running" : "worse";
  return entry.status >= 500 ? "worse" : entry.status >= 400 ? "bad" : "ok";
}

/** The median of numbers, null of none. @param {number[]} numbers */
export function median(numbers) {
  if (!numbers.length) return null;
  return numbers.sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
}

const DEEPEST = 100; // beyond it the spaces before the lines are more than the text

/** A value as JSON says it, or the text itself. @param {string} text @returns {any} */
export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** JSON in lines; text inside that is JSON itself is unfolded. null if it is none, or nested too deep.
 * @param {string} text @returns {string | null} */
export function unfolded(text) {
  try {
    return JSON.stringify(inner(JSON.parse(text)), null, 2);
  } catch {
    return null;
  }
}

/** @param {any} value @param {number} [depth] @returns {any} */
function inner(value, depth = 0) {
  if (depth > DEEPEST) throw new RangeError("nested too deep");
  if (Array.isArray(value)) return value.map((item) => inner(item, depth + 1));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, inner(item, depth + 1)]));
  }
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  try {
    return inner(JSON.parse(value), depth + 1);
  } catch {
    return value;
  }
}
