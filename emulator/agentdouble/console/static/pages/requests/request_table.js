// A table of requests.

import { h, namedLink, setName, setText } from "../../lib/dom.js";
import { duration, timeOfDay } from "../../lib/format.js";
import { nameOf, operationOf, outcome } from "../../lib/journal_entry.js";
import { table } from "../../lib/table.js";

/** Return the notes of a row: a state for its colour, and a text. @param {any} entry */
function notes(entry) {
  return [
    ...entry.faults.map(() => ["fault", "fault"]),
    ...(entry.unread.length ? [["unread", `${entry.unread.length} unread`]] : []),
    ...(entry.failures.length ? [["fault", "failure"]] : []),
  ];
}

/** @param {string} label */
export function requestTable(label) {
  return table({
    label,
    columns: ["Time", "Request", "Caller", "About", "Status", "Took", "Notes"],
    height: 32,
    className: "requests",
    key: (entry) => entry.id,
    row: (entry) => {
      const status = h("span", { class: "tag" });
      const took = h("span", { class: "number" });
      const remarks = h("span", { class: "notes" });
      const caller = h("span", { class: "caller" });
      const subject = h("span", { class: "subject" });
      const row = h("div", { class: entry.caused_by ? "caused" : null },
        h("span", { class: "number" }, timeOfDay(entry.at)),
        h("span", { class: "what" }, namedLink(`/requests/${entry.id}`, nameOf(entry)),
          operationOf(entry).startsWith("/") && h("small", null, entry.method)),
        caller, subject, h("span", null, status), took, remarks);
      row.update = (/** @type {any} */ next) => {
        const kind = outcome(next);
        setText(status, kind === "running" ? "running" : next.status ?? "none");
        status.dataset.state = kind;
        setText(took, duration(next.duration_ms));
        setName(caller, next.caller);
        setText(subject, next.subject);
        const text = notes(next).map(([, note]) => note).join(" · ");
        setText(remarks, text);
      };
      return row;
    },
  });
}
