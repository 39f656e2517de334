// A timeline: a request, the requests that its code sent, and the steps of each, on one axis.

import { h, list, setText } from "../../lib/dom.js";
import { duration } from "../../lib/format.js";
import { fullNameOf, outcome } from "../../lib/journal_entry.js";
import { double } from "../../lib/live.js";

/** The names of the steps that the journal notes. @type {Record<string, string>} */
const STEPS = {
  turn: "Waits for other code of the session", kernel: "Starts a kernel", code: "Runs the code", workbench: "Starts the shell",
  command: "Runs the command", node: "Runs on a node", fault: "Waits because of a fault",
};
const SHORTEST_MS = 0.1; // of a step that is shown

/** @typedef {{key: string, depth: number, name: string, href?: string, state: string, from: number, to: number | null}} Row */

/** Return the rows of the request that began it all, of which an entry is a part.
 * @param {any} entry @returns {Row[]} */
function rowsOf(entry) {
  const byId = new Map(double.requests.map((request) => [request.id, request]));
  if (typeof byId.get(entry.id)?.duration_ms !== "number") byId.set(entry.id, entry); // events tell no step of a running request
  let root = byId.get(entry.id);
  while (byId.has(root.caused_by)) root = byId.get(root.caused_by);
  /** @type {Map<number, any[]>} */
  const effects = new Map();
  for (const request of byId.values()) {
    if (request.caused_by) effects.set(request.caused_by, [...effects.get(request.caused_by) ?? [], request]);
  }
  return rowsBelow(root, 0, effects);
}

/** @param {any} entry @param {number} depth @param {Map<number, any[]>} effects @returns {Row[]} */
function rowsBelow(entry, depth, effects) {
  const from = entry.started_ms;
  const to = entry.duration_ms === null ? null : from + entry.duration_ms;
  const steps = entry.steps.map((/** @type {any} */ step, /** @type {number} */ index) => ({
    key: `${entry.id} ${index}`, depth: depth + 1, name: STEPS[step.name] ?? step.name, state: "step", from: from + step.after_ms,
    to: step.duration_ms === null ? null : from + step.after_ms + step.duration_ms }))
    .filter((/** @type {Row} */ step) => step.to === null || step.to - step.from >= SHORTEST_MS);
  const parts = [...steps.map((/** @type {Row} */ step) => [step]),
    ...(effects.get(entry.id) ?? []).map((effect) => rowsBelow(effect, depth + 1, effects))];
  return [{ key: `${entry.id}`, depth, name: fullNameOf(entry), href: `/requests/${entry.id}`, state: outcome(entry), from, to },
    ...parts.sort(([a], [b]) => a.from - b.from).flat()];
}

/** The timeline of a request; hidden if the journal knows nothing but the request itself. @param {any} entry */
export function timeline(entry) {
  const body = h("tbody");
  const element = h("section", { class: "timeline", "aria-label": `Timeline of #${entry.id}` }, h("h3", null, "Timeline"),
    h("table", null, h("thead", null, h("tr", null,
      ["What", "After", "Took", "When"].map((name) => h("th", { scope: "col" }, name)))), body));

  function update() {
    const rows = rowsOf(entry);
    const start = rows[0].from;
    const end = Math.max(...rows.map((row) => row.to ?? row.from), start + SHORTEST_MS);
    const percent = (/** @type {number} */ ms) => `${(100 * ms / (end - start)).toFixed(2)}%`;
    element.hidden = rows.length < 2;
    list(body, rows, (row) => row.key, (row) => {
      const [after, took] = [h("td", { class: "number" }), h("td", { class: "number" })];
      const span = h("span", { "data-state": row.state });
      const name = h("th", { scope: "row" }, row.href ? h("a", { href: row.href, "aria-current": row.key === String(entry.id) && "true" }, row.name) : row.name);
      name.style.paddingLeft = `${row.depth * 14}px`;
      return Object.assign(h("tr", null, name, after, took, h("td", { class: "axis", "aria-hidden": "true" }, span)), {
        update: (/** @type {Row} */ next) => {
          setText(after, duration(next.from - start));
          setText(took, duration(next.to === null ? null : next.to - next.from));
          span.dataset.state = next.state;
          span.style.marginLeft = percent(next.from - start);
          span.style.width = percent((next.to ?? end) - next.from);
        },
      });
    });
  }

  update();
  return { element, update };
}
