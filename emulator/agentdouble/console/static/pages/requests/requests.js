// The journal's requests with a filter, and one of them in detail.

import { navigate } from "../../lib/address.js";
import { remove } from "../../lib/api.js";
import { attempt } from "../../lib/attempt.js";
import { h, setText } from "../../lib/dom.js";
import { pluralize } from "../../lib/format.js";
import { newestFirst, operationOf } from "../../lib/journal_entry.js";
import { double, refresh } from "../../lib/live.js";
import { requestDetail } from "./request.js";
import { requestTable } from "./request_table.js";

/** Terms of the filter, written name:value; other words match the method and URL.
 * @type {Record<string, (entry: any, value: string) => boolean>} */
const TERMS = {
  status: (entry, value) => new RegExp(`^${value.replace(/[^\dx]/gi, "").replace(/x/gi, "\\d")}`)
    .test(String(entry.status ?? "")),
  method: (entry, value) => entry.method === value.toUpperCase(),
  op: (entry, value) => contains(operationOf(entry), value),
  session: (entry, value) => contains(entry.session ?? "", value),
  unknown: (entry, value) => entry.unknowns.some((/** @type {string} */ unknown) => contains(unknown, value)),
  unread: (entry, value) => entry.unread.some((/** @type {string} */ field) => contains(field, value)),
  fault: (entry, value) => entry.faults.some((/** @type {string} */ fault) => contains(fault, value)),
  slow: (entry, value) => entry.duration_ms > Number(value.replace(/[^\d.]/g, "")),
};

const EXAMPLES = "status:4xx op:InvokeTool unknown:TTL unread: fault: slow:>100 method:POST";

/** @param {string} text @param {string} part */
const contains = (text, part) => text.toLowerCase().includes(part.toLowerCase());

/** Return the names of terms in a filter that do not exist. @param {string} text */
const unknownTerms = (text) => [...text.matchAll(/(?:^|\s)(\w+):(?!\/)/g)].map((match) => match[1])
  .filter((name) => !Object.hasOwn(TERMS, name));

/** Return a predicate for a filter. A term that does not exist is searched for as a word.
 * @param {string} text @returns {(entry: any) => boolean} */
function filterOf(text) {
  const tests = text.split(/\s+/).filter(Boolean).map((word) => {
    const [, name, value] = /^(\w+):(.*)$/.exec(word) ?? [];
    const term = Object.hasOwn(TERMS, name ?? "") ? TERMS[name] : undefined;
    return term ? (/** @type {any} */ entry) => term(entry, value)
      : (/** @type {any} */ entry) => contains(`${entry.method} ${entry.url}`, word);
  });
  return (entry) => tests.every((test) => test(entry));
}

export function requests() {
  const rows = requestTable("Requests");
  const detail = requestDetail();
  let isShown = false;
  let frozen = /** @type {any[] | null} */ (null);
  const filter = h("input", { type: "search", "aria-label": "Filter requests", placeholder: EXAMPLES,
    "aria-keyshortcuts": "/", spellcheck: "false", oninput: () => update() });
  const hold = h("button", { "aria-pressed": "false", onclick: () => {
    frozen = frozen ? null : [...double.requests];
    hold.setAttribute("aria-pressed", String(frozen !== null));
    update();
  } }, "Hold");
  const clear = h("button", { onclick: () => attempt(async () => {
    await remove("/journal");
    await refresh("requests");
    navigate("/requests");
  }) }, "Clear");
  const count = h("span", { class: "count", role: "status" });
  const none = h("p", { class: "none" }, "No requests match.");
  const element = h("div", { class: "stack" }, h("h1", null, "Requests"),
    h("div", { class: "tools" }, filter, count, hold, clear),
    h("div", { class: "beside" }, h("div", { class: "panel fill" }, rows.element, none), detail.element));

  /** @type {any[]} */
  let visible = [];
  function update() {
    const all = frozen ?? double.requests;
    visible = newestFirst(all.filter(filterOf(filter.value)));
    rows.show(visible);
    none.hidden = visible.length > 0;
    rows.element.hidden = !none.hidden;
    const hints = unknownTerms(filter.value).map((name) => ` There is no filter ${name}:.`).join("");
    setText(none, all.length ? `No requests match the filter.${hints}` : "No requests yet.");
    const later = frozen ? double.requests.filter((request) => request.id > (frozen?.at(-1)?.id ?? 0)).length : 0;
    setText(count, pluralize(visible.length, "request") + (later ? `, ${later} more since` : ""));
    detail.update();
  }

  return {
    element,
    update,
    filter,
    /** @param {number} by */
    move: (by) => {
      const next = rows.move(by);
      if (next) navigate(`/requests/${next.id}`);
      rows.focus();
    },
    /** Show the request "12", or compare two, "9/12". @param {string} within */
    go(within) {
      const [id, other] = within.split("/");
      rows.mark(id ? Number(other ?? id) : null);
      element.classList.toggle("comparing", other !== undefined);
      if (other === undefined) detail.show(id);
      else detail.compare(id, other);
      if (isShown && id) detail.element.focus({ preventScroll: true });
      isShown = true;
    },
  };
}
