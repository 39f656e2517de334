// The catalogue of unknowns: what the specification leaves open, and the double's current answers.

import { ask } from "./api.js";
import { h } from "./dom.js";
import { versionOf } from "./live.js";

/** @typedef {{name: string, meaning: string, built: boolean, default: boolean}} Alternative */
/** @typedef {{kind: string, says: string, source?: string, date?: string, answer?: string}} Evidence */
/** @typedef {{id: string, section: string, question: string, evidence: Evidence[], rests_on: string, in_force: string,
 *             settled: boolean, alternatives: Alternative[]}} Unknown */

let cached = /** @type {Promise<Unknown[]> | null} */ (null);
let cachedVersion = "";

/** Return the catalogue, which is loaded again after an answer has changed. @returns {Promise<Unknown[]>} */
export function catalogue() {
  if (!cached || cachedVersion !== versionOf("unknowns")) {
    cachedVersion = versionOf("unknowns");
    cached = ask("/unknowns/catalogue").then(({ unknowns }) => unknowns);
    cached.catch(() => { cached = null; });
  }
  return cached;
}

/** Return the other answers that this version can give. @param {Unknown} unknown */
export const others = (unknown) => unknown.alternatives.filter((alternative) => alternative.built && alternative.name !== unknown.in_force);

/** Answer an unknown from the next request on. @param {string} id @param {string} answer */
export async function choose(id, answer) {
  const { in_force } = await ask("/unknowns");
  await ask("/unknowns", { method: "PUT", body: { ...in_force, [id]: answer } });
}

/** Return the unknowns whose answer is not the default, or is settled by a deployment. @param {Unknown[]} unknowns */
export const chosen = (unknowns) => unknowns.filter((unknown) =>
  unknown.settled || !unknown.alternatives.some((alternative) => alternative.default && alternative.name === unknown.in_force));

/** Return the text of profile.toml for "agentdouble serve --profile". @param {Unknown[]} unknowns */
export const profileOf = (unknowns) =>
  `[unknowns]\n${chosen(unknowns).map((unknown) => `${unknown.id} = ${JSON.stringify(unknown.in_force)}\n`).join("")}`;

/** Return an evidence as a line. @param {Evidence} evidence */
export const evidenceText = ({ kind, says, source, date, answer }) => kind === "none" ? says
  : `${kind}${answer ? `, for ${answer}` : ""}: ${says} (${[source, date].filter(Boolean).join(", ")})`;

/** Describe an unknown: its section, its question and the evidence for its answers. @param {Unknown} unknown */
export const about = (unknown) => h("div", { class: "about" },
  h("p", null, unknown.question),
  h("p", { class: "hint" }, `Section ${unknown.section}. The answer rests on: ${unknown.rests_on}.`),
  unknown.evidence.map((evidence) => h("p", { class: "hint" }, evidenceText(evidence))));
