// The unknowns: the double's answers, the requests that relied on them, and other answers.

import { attempt } from "../lib/attempt.js";
import { copyButton } from "../lib/copy_button.js";
import { announce, h, list, setText } from "../lib/dom.js";
import { saveBlob } from "../lib/files.js";
import { pluralize } from "../lib/format.js";
import { double, versionOf } from "../lib/live.js";
import { about, catalogue, choose, chosen, evidenceText, profileOf } from "../lib/unknowns.js";

/** @typedef {import("../lib/unknowns.js").Unknown} Unknown */
/** @typedef {import("../lib/unknowns.js").Alternative} Alternative */

export function unknowns() {
  let all = /** @type {Unknown[]} */ ([]);
  let shownVersion = "";
  const filter = h("input", { type: "search", "aria-label": "Filter unknowns", "aria-keyshortcuts": "/",
    placeholder: "Name, section or words", spellcheck: "false", oninput: () => draw() });
  const used = h("button", { "aria-pressed": "false", onclick: () => {
    used.setAttribute("aria-pressed", String(used.getAttribute("aria-pressed") !== "true"));
    draw();
  } }, "Relied on");
  const count = h("span", { class: "count", role: "status" });
  const open = h("div", { class: "unknowns" });
  const none = h("p", { class: "none" }, "No unknowns match.");
  const fixed = h("div", { class: "unknowns" });
  const single = h("details", null, h("summary", null, "One answer only"), fixed);
  const profile = h("pre", { role: "group", tabindex: "0", "aria-label": "profile.toml" });
  const differs = h("p", { class: "hint" });
  const exportButtons = h("p", { class: "buttons" }, copyButton("Copy", () => profileOf(all)),
    h("button", { onclick: () => saveBlob(new Blob([profileOf(all)], { type: "application/toml" }), "profile.toml") }, "Save as profile.toml"),
    copyButton("Copy as options", () => options(all)));
  const element = h("div", { class: "stack" }, h("h1", null, "Unknowns"),
    h("div", { class: "tools" }, filter, count, used),
    h("section", { class: "panel", "aria-label": "Profile" }, h("h2", null, "Your answers as a profile"), differs, profile,
      exportButtons),
    h("section", { class: "panel", "aria-label": "Unknowns with other answers" }, h("h2", null, "With other answers"), open, none),
    h("section", { class: "panel", "aria-label": "Unknowns with one answer" }, single));

  function draw() {
    const uses = usesOf(double.requests);
    const words = filter.value.toLowerCase().split(/\s+/);
    const onlyUsed = used.getAttribute("aria-pressed") === "true";
    const visible = all.filter((unknown) => {
      const text = `${unknown.id} ${unknown.section} ${unknown.question} ${unknown.evidence.map(evidenceText).join(" ")}`.toLowerCase();
      return words.every((/** @type {string} */ word) => text.includes(word)) && (!onlyUsed || uses.has(unknown.id));
    }).map((unknown) => ({ ...unknown, uses: uses.get(unknown.id) ?? [] }));
    const isOpen = (/** @type {Unknown} */ unknown) => unknown.alternatives.filter((alternative) => alternative.built).length > 1;
    list(open, visible.filter(isOpen), (unknown) => unknown.id, row);
    list(fixed, visible.filter((unknown) => !isOpen(unknown)), (unknown) => unknown.id, row);
    none.hidden = open.children.length > 0;
    single.hidden = !fixed.children.length;
    setText(count, pluralize(visible.length, "unknown"));
    const own = chosen(all).length;
    setText(differs, own ? `${pluralize(own, "answer")} of ${all.length} differ from the defaults. Start a double with them: agentdouble serve --profile profile.toml`
      : "These are the default answers. Answers that you choose below apply from the next request until the double stops.");
    setText(profile, profileOf(all));
    for (const element of [profile, exportButtons]) element.hidden = !own;
  }

  async function read() {
    shownVersion = versionOf("unknowns");
    all = await catalogue();
    draw();
  }

  return {
    element,
    filter,
    update() {
      if (shownVersion !== versionOf("unknowns")) attempt(read);
      else draw();
    },
  };
}

/** Return the ids of the requests that relied on each unknown. @param {any[]} requests @returns {Map<string, number[]>} */
function usesOf(requests) {
  const uses = new Map();
  for (const { id, unknowns: ids } of requests) {
    for (const unknown of ids) {
      if (!uses.has(unknown)) uses.set(unknown, []);
      uses.get(unknown).push(id);
    }
  }
  return uses;
}

/** @param {Unknown & {uses: number[]}} first */
function row(first) {
  const answers = first.alternatives.map((alternative) => answer(first.id, alternative));
  const use = h("a", { class: "notes" });
  const settled = h("span", { class: "tag", "data-state": "ok" }, "settled by a deployment");
  const element = h("section", { class: "unknown", "aria-label": first.id },
    h("div", { class: "title" }, h("h3", null, first.id), settled, use), about(first),
    h("div", { class: "answers", role: "group", "aria-label": `Answers to ${first.id}` }, answers.map((answer) => answer.element)));
  element.update = (/** @type {Unknown & {uses: number[]}} */ next) => {
    settled.hidden = !next.settled;
    use.hidden = !next.uses.length;
    setText(use, pluralize(next.uses.length, "request"));
    use.setAttribute("href", `/requests/${next.uses.at(-1)}`);
    for (const answer of answers) answer.update(next.in_force);
  };
  return element;
}

/** @param {string} id @param {Alternative} alternative */
function answer(id, { name, meaning, built, default: isDefault }) {
  const button = h("button", { disabled: !built, onclick: () => attempt(async () => {
    await choose(id, name);
    announce(`${id} is ${name} from the next request on.`);
  }) }, name);
  const notes = [isDefault && "default", !built && "not supported yet"].filter(Boolean).join(", ");
  return {
    element: h("div", { class: "alternative" }, button, h("span", null, meaning, notes && h("small", null, ` (${notes})`))),
    /** @param {string} inForce */
    update: (inForce) => button.setAttribute("aria-pressed", String(name === inForce)),
  };
}

/** Return the answers as options of "agentdouble serve". @param {Unknown[]} all */
const options = (all) => chosen(all).map((unknown) => `--unknown ${unknown.id}=${unknown.in_force}`).join(" ");
