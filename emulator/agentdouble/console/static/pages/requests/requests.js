// Every request, and one of them beside.

import { navigate } from "../../lib/address.js";
import { remove } from "../../lib/api.js";
import { attempt } from "../../lib/bar.js";
import { h, setText } from "../../lib/dom.js";
import { EXAMPLES, filterOf, unknownTerms } from "./filter.js";
import { double, read } from "../../lib/live.js";
import { requestDetail } from "./request.js";
import { requestTable } from "./request_table.js";
import { counted, newestFirst } from "../../lib/words.js";

export function requests() {
  const rows = requestTable("Requests");
  const detail = requestDetail();
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
    await read("requests");
    navigate("/requests");
  }) }, "Clear");
  const count = h("span", { class: "count", role: "status" });
  const none = h("p", { class: "none" }, "No request fits.");
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
    const wrong = unknownTerms(filter.value).map((name) => ` There is no filter ${name}:.`).join("");
    setText(none, all.length ? `No requests match the filter.${wrong}` : "No request has come yet.");
    const later = frozen ? double.requests.filter((request) => request.id > (frozen?.at(-1)?.id ?? 0)).length : 0;
    setText(count, counted(visible.length, "request") + (later ? `, ${later} more since` : ""));
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
    },
    /** @param {string} id */
    go(id) {
      rows.mark(id ? Number(id) : null);
      detail.show(id ? Number(id) : null);
      element.classList.toggle("detailed", Boolean(id));
    },
  };
}
