// One request with its response: what the journal has, unread fields, and the unknowns it relied on.

import { navigate } from "../../lib/address.js";
import { ApiError, ask, post } from "../../lib/api.js";
import { attempt } from "../../lib/attempt.js";
import { copyButton } from "../../lib/copy_button.js";
import { announce, h, setText } from "../../lib/dom.js";
import { duration, timestamp } from "../../lib/format.js";
import { operationOf, outcome } from "../../lib/journal_entry.js";
import { prettyJson } from "../../lib/json.js";
import { double } from "../../lib/live.js";
import { faultLink } from "./fault_link.js";
import { guessesOf } from "./guesses.js";

export function requestDetail() {
  const element = h("section", { class: "panel detail", "aria-label": "Request" });
  let current = /** @type {number | null} */ (null);
  let complete = false;

  async function load() {
    const id = current;
    if (id === null) return;
    try {
      const entry = await ask(`/journal/${id}`);
      if (id !== current) return;
      complete = entry.duration_ms !== null;
      element.replaceChildren(...contentOf(entry));
    } catch (error) {
      if (id !== current) return;
      const isGone = error instanceof ApiError && error.status === 404;
      element.replaceChildren(h("p", { class: "none" },
        isGone ? `The journal no longer has request ${id}.` : /** @type {Error} */ (error).message));
      complete = true;
    }
  }

  return {
    element,
    /** @param {number | null} id */
    show(id) {
      if (id === current && id !== null) return;
      current = id;
      complete = false;
      element.replaceChildren(h("p", { class: "none" }, id === null ? "Choose a request." : "Loading…"));
      load();
    },
    update() {
      const known = double.requests.find((request) => request.id === current);
      if (!complete && known && known.duration_ms !== null) load();
    },
  };
}

/** @param {any} entry */
function contentOf(entry) {
  const kind = outcome(entry);
  return [
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
    bodyOf("Response", entry.response_body, true),
    bodyOf("Request", entry.request_body, true),
    guessesOf(entry),
    faultLink(entry),
    headers("Response headers", entry.response_headers),
    headers("Request headers", entry.request_headers),
  ].filter(Boolean);
}

/** @param {any} entry */
function causedBy(entry) {
  const caused = double.requests.filter((effect) => effect.caused_by === entry.id);
  return caused.map((other) => h("a", { href: `/requests/${other.id}` }, `Caused #${other.id} ${operationOf(other)}`));
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
