// The catalogue of unknowns: questions that the specification leaves open, and the answers in force.

import { ask } from "./api.js";
import { h } from "./dom.js";
import { newsOf } from "./live.js";

/** @typedef {{name: string, meaning: string, built: boolean, default: boolean}} Alternative */
/** @typedef {{id: string, section: string, question: string, evidence: string, in_force: string,
 *             settled: boolean, alternatives: Alternative[]}} Unknown */

let read = /** @type {Promise<Unknown[]> | null} */ (null);
let readAt = "";

/** The catalogue; it is read anew after another answer was chosen. @returns {Promise<Unknown[]>} */
export function catalogue() {
  if (!read || readAt !== newsOf("unknowns")) {
    readAt = newsOf("unknowns");
    read = ask("/unknowns/catalogue").then(({ unknowns }) => unknowns);
    read.catch(() => { read = null; });
  }
  return read;
}

/** The other answers that this version has built. @param {Unknown} unknown */
export const others = (unknown) => unknown.alternatives.filter((alternative) => alternative.built && alternative.name !== unknown.in_force);

/** Answer an unknown from the next request on. @param {string} id @param {string} answer */
export async function choose(id, answer) {
  const { in_force } = await ask("/unknowns");
  await ask("/unknowns", { method: "PUT", body: { ...in_force, [id]: answer } });
}

/** The answers that are not the double's own, or are known of a deployment. @param {Unknown[]} unknowns */
export const chosen = (unknowns) => unknowns.filter((unknown) =>
  unknown.settled || !unknown.alternatives.some((alternative) => alternative.default && alternative.name === unknown.in_force));

/** profile.toml, which "agentdouble serve --profile" reads. @param {Unknown[]} unknowns */
export const profileOf = (unknowns) =>
  `[unknowns]\n${chosen(unknowns).map((unknown) => `${unknown.id} = ${JSON.stringify(unknown.in_force)}\n`).join("")}`;

/** Where it stands, what it asks, and why the double answers as it does. @param {Unknown} unknown */
export const about = (unknown) => h("div", { class: "about" },
  h("p", null, unknown.question),
  h("p", { class: "hint" }, `Section ${unknown.section}. `, unknown.evidence));
