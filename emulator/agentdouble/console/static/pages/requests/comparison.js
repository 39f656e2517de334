// Two requests side by side: what differs between them, their timelines and their bodies.

import { h } from "../../lib/dom.js";
import { operationOf } from "../../lib/journal_entry.js";
import { expandedJson, prettyJson } from "../../lib/json.js";
import { leavesOf } from "../../lib/leaves.js";
import { timeline } from "./timeline.js";

const MOST_ROWS = 200;
const LONGEST = 500; // characters of a value
/** Headers that differ between any two requests, or say what other rows say. */
const OMITTED = /^(authorization|date|x-date|content-length|x-content-sha256|x-agentdouble-.*)$/;

/** Return what can be compared of an entry, by its place. @param {any} entry @returns {Map<string, string>} */
function partsOf(entry) {
  const facts = new Map(Object.entries({
    Request: `${entry.method} ${operationOf(entry)}`, Status: String(entry.status ?? "none"),
    Caller: entry.caller, Session: entry.session ?? "", Unknowns: entry.unknowns.join(", "), "Unread fields": entry.unread.join(", "),
    Faults: entry.faults.join(", "),
  }));
  for (const part of ["request", "response"]) {
    const headers = Object.entries(entry[`${part}_headers`]).filter(([name]) => !OMITTED.test(name));
    for (const [name, value] of headers) facts.set(`${part} header ${name}`, value);
    const body = entry[`${part}_body`];
    if (body) leavesOf(expandedJson(body) ?? body, part, facts);
  }
  return facts;
}

/** @param {any} first @param {any} second */
export function comparisonOf(first, second) {
  const entries = [first, second];
  const [before, after] = entries.map(partsOf);
  const places = [...new Set([...before.keys(), ...after.keys()])].filter((place) => before.get(place) !== after.get(place));
  const timelines = entries.map(timeline);
  const link = (/** @type {any} */ entry) => h("a", { href: `/requests/${entry.id}` }, `#${entry.id} ${operationOf(entry)}`);
  const elements = [
    h("h2", null, `#${first.id} and #${second.id}`),
    h("p", { class: "facts" }, entries.map(link)),
    places.length ? differenceTable(places.slice(0, MOST_ROWS), entries, [before, after])
      : h("p", null, "Both requests and their responses are the same."),
    places.length > MOST_ROWS && h("p", { class: "hint" }, `${places.length - MOST_ROWS} more differ; see the bodies.`),
    h("div", { class: "pair" }, timelines.map((part) => h("div", null, part.element))),
    ["Request", "Response"].map((title) => h("details", null, h("summary", null, `${title} bodies`),
      h("div", { class: "pair" }, entries.map((entry) => body(title, entry))))),
  ];
  return { elements: elements.flat().filter(Boolean), update: () => timelines.forEach((part) => part.update()) };
}

/** @param {string[]} places @param {any[]} entries @param {Map<string, string>[]} parts */
function differenceTable(places, entries, parts) {
  const cell = (/** @type {string | undefined} */ text) => h("td", null, text === undefined ? h("span", { class: "hint" }, "absent")
    : text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text || h("span", { class: "hint" }, "empty"));
  return h("table", { class: "differences" }, h("caption", { class: "sr" }, "Differences"),
    h("thead", null, h("tr", null, ["Where", ...entries.map((entry) => `#${entry.id}`)].map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", null, places.map((place) => h("tr", null, h("th", { scope: "row" }, place), parts.map((part) => cell(part.get(place)))))));
}

/** @param {string} title @param {any} entry */
function body(title, entry) {
  const text = entry[`${title.toLowerCase()}_body`];
  return h("pre", { role: "group", tabindex: "0", "aria-label": `${title} of #${entry.id}` }, prettyJson(text) ?? text);
}
