// An application's path, and its latest requests in the journal.

import { REQUEST_HEADER, ask } from "../../lib/api.js";
import { operationOf } from "../../lib/journal_entry.js";
import { double } from "../../lib/live.js";

const MOST_ENTRIES = 40;

/** Return the path of an application. @param {Record<string, string>} served names by path
 * @param {string} name @param {string} [end] the path's end */
export function applicationPath(served, name, end = "") {
  const entry = Object.entries(served).find(([path, route]) => route === name && path.endsWith(end));
  if (!entry) throw new Error(`The double does not serve an application ${name} here.`);
  return entry[0];
}

/** Return the id of a response's request in the journal. @param {Response} response */
export const requestIdOf = (response) => response.headers.get(REQUEST_HEADER);

/** Return the complete entries of the latest requests to these paths, oldest first.
 * @param {string[]} paths @returns {Promise<any[]>} */
export async function latestEntries(paths) {
  const latest = double.requests.filter((request) => request.method === "POST" && paths.includes(operationOf(request))).slice(-MOST_ENTRIES);
  const complete = await Promise.all(latest.map((entry) => ask(`/journal/${entry.id}`).catch(() => null)));
  return complete.filter(Boolean); // the journal may have dropped some meanwhile
}
