// One request with its response: what the journal has, unread fields, and the unknowns it relied on;
// or two requests side by side.

import { navigate } from "../../lib/address.js";
import { ApiError, ask, post } from "../../lib/api.js";
import { attempt } from "../../lib/attempt.js";
import { copyButton } from "../../lib/copy_button.js";
import { announce, h, setText } from "../../lib/dom.js";
import { duration, timestamp } from "../../lib/format.js";
import { fullNameOf, operationOf, outcome } from "../../lib/journal_entry.js";
import { prettyJson } from "../../lib/json.js";
import { double } from "../../lib/live.js";
import { comparisonOf } from "./comparison.js";
import { faultLink } from "./fault_link.js";
import { guessesOf } from "./guesses.js";
import { timeline } from "./timeline.js";

/** @typedef {{elements: Element[], update: () => void}} Content */

export function requestDetail() {
  const element = h("section", { class: "panel detail", "aria-label": "Request", tabindex: "-1" });
  let current = /** @type {string[]} */ ([]); // the ids of the requests
  let complete = false;
  let isLoading = false;
  let content = /** @type {Content | null} */ (null);

  async function load() {
    const ids = current;
    isLoading = true;
    const entries = await Promise.all(ids.map((id) => ask(`/journal/${encodeURIComponent(id)}`).catch((error) => error)));
    if (ids !== current) return;
    isLoading = false;
    const failed = entries.findIndex((entry) => entry instanceof Error);
    complete = failed >= 0 || entries.every((entry) => entry.duration_ms !== null);
    if (failed >= 0) return fail(problemOf(entries[failed], ids[failed]));
    const [first, second] = entries;
    content = second ? comparisonOf(first, second) : contentOf(first);
    element.replaceChildren(...content.elements);
  }

  /** @param {string} text */
  function fail(text) {
    content = null;
    element.replaceChildren(h("p", { class: "none" }, text));
  }

  /** @param {string[]} ids */
  function choose(ids) {
    if (ids.length && ids.join() === current.join()) return;
    current = ids;
    complete = false;
    fail(ids.length ? "Loading…" : "Choose a request.");
    if (ids.length) load();
  }

  return {
    element,
    /** @param {string} id of a request, or empty */
    show: (id) => choose(id ? [id] : []),
    /** @param {string} first @param {string} second their ids */
    compare: (first, second) => choose([first, second]),
    update() {
      content?.update();
      if (complete || isLoading || !current.length) return;
      const answered = new Set(double.requests.filter((request) => request.duration_ms !== null).map((request) => String(request.id)));
      if (current.every((id) => answered.has(id))) load();
    },
  };
}

/** @param {Error} error @param {string} id */
function problemOf(error, id) {
  if (!/^\d+$/.test(id)) return `There is no request ${id}: the id of a request is a number.`;
  return error instanceof ApiError && error.status === 404 ? `The journal does not have request ${id}; it keeps only the latest.` : error.message;
}

/** @param {any} entry @returns {Content} */
function contentOf(entry) {
  const kind = outcome(entry);
  const times = timeline(entry);
  const elements = [
    h("h2", null, operationOf(entry)),
    h("p", { class: "facts" },
      h("span", { class: "tag", "data-state": kind }, kind === "running" ? "running" : entry.status ?? "none"),
      h("span", null, duration(entry.duration_ms)), h("span", null, timestamp(new Date(entry.at))),
      h("span", null, `#${entry.id}`),
      entry.session && h("a", { href: `/sessions/${encodeURIComponent(entry.session)}` }, "Its session"),
      entry.caused_by && h("a", { href: `/requests/${entry.caused_by}` }, `Caused by #${entry.caused_by}`),
      causedBy(entry)),
    h("p", { class: "address" }, h("code", null, `${entry.method} ${entry.url}`)),
    h("p", { class: "buttons" }, copyButton("Copy as curl", () => entry.curl), repeatButton(entry)),
    entry.curl.includes("***") && h("p", { class: "hint" }, "*** stands for secrets that the journal hides. Fill them in."),
    tags("Failures of the double", entry.failures, "bad"),
    tags("Faults that happened", entry.faults, "bad"),
    tags("Unread fields", entry.unread, "unread"),
    times.element,
    bodyOf("Response", entry.response_body, true),
    bodyOf("Request", entry.request_body, true),
    guessesOf(entry),
    faultLink(entry),
    headers("Response headers", entry.response_headers),
    headers("Request headers", entry.request_headers),
    compareForm(entry),
  ].filter(Boolean);
  return { elements, update: times.update };
}

/** A form that compares a request with another one: at first the previous one of the same operation.
 * @param {any} entry */
function compareForm(entry) {
  const previous = double.requests.findLast((other) => other.id < entry.id && operationOf(other) === operationOf(entry));
  const other = h("input", { id: "compared", type: "number", min: 1, required: true, value: previous?.id ?? "" });
  return h("form", { class: "compare", onsubmit: (/** @type {Event} */ event) => {
    event.preventDefault();
    navigate(`/requests/${other.value}/${entry.id}`);
  } }, h("label", { for: "compared" }, "Compare with request"), other, h("button", null, "Compare"));
}

/** @param {any} entry */
function causedBy(entry) {
  const caused = double.requests.filter((effect) => effect.caused_by === entry.id);
  return caused.map((other) => h("a", { href: `/requests/${other.id}` }, `Caused #${other.id} ${fullNameOf(other)}`));
}

/** @param {any} entry */
function repeatButton(entry) {
  return h("button", { onclick: () => attempt(async () => {
    const { id, status } = await post(`/console/repeat/${entry.id}`);
    announce(`The double answered ${status}.`);
    if (id) navigate(`/requests/${id}`);
  }) }, "Repeat");
}

/** @param {string} title @param {string[]} names @param {string} state */
function tags(title, names, state) {
  return names.length > 0 && h("section", null, h("h3", null, title),
    h("ul", { class: "tags" }, names.map((name) => h("li", { class: "tag", "data-state": state }, name))));
}

/** @param {string} title @param {string} text @param {boolean} open */
function bodyOf(title, text, open) {
  const pretty = prettyJson(text);
  const pre = h("pre", { role: "group", tabindex: "0", "aria-label": title }, pretty ?? text);
  const raw = pretty !== null && pretty !== text && h("button", { "aria-pressed": "false", onclick: () => {
    const wasRaw = raw.getAttribute("aria-pressed") === "true";
    raw.setAttribute("aria-pressed", String(!wasRaw));
    setText(pre, wasRaw ? pretty : text);
  } }, "As sent");
  return h("details", { open }, h("summary", null, title),
    text ? [h("p", { class: "buttons" }, raw, copyButton("Copy", () => pre.textContent)), pre]
      : h("p", { class: "none" }, "empty"));
}

/** @param {string} title @param {Record<string, string>} values */
function headers(title, values) {
  return h("details", null, h("summary", null, title), h("dl", { class: "headers" },
    Object.entries(values).map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value)))));
}
