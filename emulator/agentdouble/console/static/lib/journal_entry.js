// Entries of the journal: their operation, outcome and order.

/** Return the path and query of a request. @param {any} entry */
export function pathAndQuery(entry) {
  // not URL, which throws on an invalid host or port; clients can send any
  const [, path = "", query = ""] = /^[^:]*:\/\/[^/?]*([^?]*)\??([^]*)$/.exec(entry.url) ?? [];
  return { path: path || "/", query: new URLSearchParams(query) };
}

/** Return a request's operation: the action of the control plane, or the path. @param {any} entry */
export function operationOf(entry) {
  const { path, query } = pathAndQuery(entry);
  return query.get("Action") || path;
}

const ANSWERS = /^(?:chat\/completions|responses|generateContent|streamGenerateContent)$/; // what an agent asks the model for
const SHOWN = 40; // characters of a subject in a name

/** Return a request's name in lists: its operation, but "model" for the long path of a request to the model. @param {any} entry */
export function nameOf(entry) {
  const operation = operationOf(entry);
  const [, asked] = /^\/model\/(?:.*:|v1\/)([^:]+)$/.exec(operation) ?? [];
  if (!asked) return operation;
  return ANSWERS.test(asked) ? "model" : `model ${asked}`;
}

/** Return a request's name where its subject is not shown beside it. @param {any} entry */
export function fullNameOf(entry) {
  const name = nameOf(entry), subject = entry.subject ?? "";
  if (name === operationOf(entry) || !subject) return name;
  return `${name}: ${subject.length > SHOWN ? `${subject.slice(0, SHOWN)}…` : subject}`;
}

/** Sort entries, newest first; the requests that one caused follow it, oldest first.
 * @param {any[]} entries */
export function newestFirst(entries) {
  const root = (/** @type {any} */ entry) => entry.caused_by ?? entry.id;
  return [...entries].sort((a, b) => root(b) - root(a) || a.id - b.id);
}

/** Return "ok", "bad" (4xx), "worse" (5xx or no response) or "running". @param {any} entry */
export function outcome(entry) {
  if (entry.status === null) return entry.duration_ms === null ? "running" : "worse";
  return entry.status >= 500 ? "worse" : entry.status >= 400 ? "bad" : "ok";
}
