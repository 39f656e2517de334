// The unknowns that a response relied on, and what other answers to them would have changed.

import { post } from "../../lib/api.js";
import { attempt } from "../../lib/attempt.js";
import { announce, h, setText } from "../../lib/dom.js";
import { pluralize } from "../../lib/format.js";
import { about, catalogue, choose, others } from "../../lib/unknowns.js";

/** @typedef {import("../../lib/unknowns.js").Unknown} Unknown */

/** Show the unknowns that an entry's response relied on. @param {any} entry */
export function guessesOf(entry) {
  if (!entry.unknowns.length) return false;
  const element = h("section", { "aria-label": "Guesses" });
  catalogue().then((all) => {
    const used = all.filter((unknown) => entry.unknowns.includes(unknown.id));
    const open = used.filter((unknown) => others(unknown).length);
    const fixed = used.filter((unknown) => !others(unknown).length);
    element.replaceChildren(...[
      open.length > 0 && h("details", { open: true },
        h("summary", null, `This response relies on ${pluralize(open.length, "guess", "guesses")} with other answers`),
        h("p", { class: "hint" }, "What-if sends this request to three fresh doubles, after the requests that it depends on. All their code runs again."),
        open.map((unknown) => guess(entry.id, unknown))),
      fixed.length > 0 && h("details", null,
        h("summary", null, `${open.length ? "And on" : "This response relies on"} ${pluralize(fixed.length, "guess", "guesses")} with one answer only`),
        h("dl", { class: "rests" }, fixed.map((unknown) =>
          h("div", null, h("dt", null, unknown.id), h("dd", null, unknown.in_force, h("small", { class: "hint" }, unknown.question)))))),
    ].filter((part) => part !== false));
  }, (error) => element.replaceChildren(h("p", { class: "bad" }, error.message)));
  return element;
}

/** @param {number} entry @param {Unknown} unknown */
function guess(entry, unknown) {
  const result = h("div", { role: "status" });
  const buttons = others(unknown).map((other) => {
    const button = h("button", { "aria-label": `What if ${other.name} for ${unknown.id}?`, title: other.meaning,
      onclick: () => tryAnswer(button, result, { entry, unknown: unknown.id, answer: other.name }) }, `What if ${other.name}?`);
    return button;
  });
  return h("div", { class: "guess" },
    h("p", null, h("code", null, unknown.id), " ", h("strong", null, unknown.in_force)), about(unknown),
    h("p", { class: "buttons" }, buttons), result);
}

/** @param {any} button @param {any} result @param {{entry: number, unknown: string, answer: string}} question */
async function tryAnswer(button, result, question) {
  const name = button.textContent;
  button.disabled = true;
  setText(button, "Asking…");
  try {
    result.replaceChildren(...comparison(await post("/what-if", question)));
  } catch (error) {
    result.replaceChildren(h("p", { class: "bad" }, /** @type {Error} */ (error).message));
  }
  setText(button, name);
  button.disabled = false;
  button.focus();
}

/** @param {any} result */
function comparison(result) {
  const { unknown, in_force, other, differences, asked_before, notes } = result;
  const use = h("button", { onclick: () => attempt(async () => {
    await choose(unknown, other.answer);
    use.disabled = true;
    setText(use, `${other.answer} is used from now on`);
    announce(`${unknown} is ${other.answer} from the next request on.`);
  }) }, `Use ${other.answer} from now on`);
  return [
    differences.length ? differenceTable(result) : h("p", null, h("span", { class: "tag", "data-state": "ok" }, "no difference"),
      ` Under ${other.answer} the response is the same as under ${in_force.answer}, except for ids and times.`),
    asked_before.length > 0 && h("p", { class: "hint" }, `Sent to the fresh doubles first: ${asked_before.map((/** @type {number} */ id) => `#${id}`).join(", ")}.`),
    ...notes.map((/** @type {string} */ note) => h("p", { class: "hint" }, note)),
    differences.length > 0 && h("details", null, h("summary", null, "Both responses"),
      [in_force, other].flatMap((answer) => [h("p", null, h("strong", null, answer.answer), ` ${answer.status ?? "no response"}`),
        h("pre", { role: "group", tabindex: "0", "aria-label": `Response under ${answer.answer}` }, answer.body || "empty")])),
    h("p", { class: "buttons" }, use),
  ].filter(Boolean);
}

/** @param {any} result */
function differenceTable({ in_force, other, differences }) {
  const cell = (/** @type {any} */ difference, /** @type {string} */ name) =>
    h("td", { class: name === "other" ? "new" : null }, name in difference ? JSON.stringify(difference[name]) : h("span", { class: "hint" }, "absent"));
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Differences" }, h("table", { class: "differences" },
    h("caption", { class: "sr" }, `${other.answer} instead of ${in_force.answer}`),
    h("thead", null, h("tr", null, ["Where", in_force.answer, other.answer].map((heading) => h("th", { scope: "col" }, heading)))),
    h("tbody", null, differences.map((/** @type {any} */ difference) =>
      h("tr", null, h("th", { scope: "row" }, difference.path), cell(difference, "in_force"), cell(difference, "other"))))));
}
