// Where an application answers, and the requests of the journal that were turns of a conversation.

import { REQUEST_HEADER, ask } from "../../lib/api.js";
import { double } from "../../lib/live.js";
import { operationOf } from "../../lib/words.js";

const LOOKED_AT = 40; // the latest requests

/** The path of an application. @param {Record<string, string>} served names by their paths
 * @param {string} name @param {string} [end] of its path */
export function addressOf(served, name, end = "") {
  const entry = Object.entries(served).find(([path, route]) => route === name && path.endsWith(end));
  if (!entry) throw new Error(`The double does not serve an application ${name} here.`);
  return entry[0];
}

/** @param {Response} answer @returns {string | null} the id of its request in the journal */
export const requestOf = (answer) => answer.headers.get(REQUEST_HEADER);

/** Complete entries of the latest requests to these paths, the oldest first.
 * @param {string[]} paths @returns {Promise<any[]>} */
export async function entriesAt(paths) {
  const latest = double.requests.filter((request) => request.method === "POST" && paths.includes(operationOf(request))).slice(-LOOKED_AT);
  const complete = await Promise.all(latest.map((results) => ask(`/journal/${results.id}`).catch(() => null)));
  return complete.filter(Boolean); // without those that the journal has forgotten meanwhile
}
