// The active sessions, with bars for the time that is left.

import { sessionPath } from "../../lib/address.js";
import { h, namedLink, setText } from "../../lib/dom.js";
import { ago, hms, mebibytes, timestamp } from "../../lib/format.js";
import { double, now } from "../../lib/live.js";
import { table } from "../../lib/table.js";

const FULL_BAR_S = 1800; // at least, so that the bars of short sessions can be compared with others

/** Return the seconds until a session ends. @param {any} session */
export const remaining = (session) => (Date.parse(session.deadline) - now().getTime()) / 1000;

/** Return how long ago a time of the platform was. @param {string} at an ISO time */
export const agoOf = (at) => ago((now().getTime() - Date.parse(at)) / 1000);

/** Return the fraction of a session's lifetime that is left, 0 to 1. @param {any} session */
function left(session) {
  const whole = Math.max(FULL_BAR_S, (Date.parse(session.deadline) - Date.parse(session.created_at)) / 1000);
  return Math.min(1, Math.max(0, remaining(session) / whole));
}

export function sessionTable() {
  /** @type {Set<any>} */
  const rows = new Set();
  const sessionRows = table({
    label: "Active sessions",
    columns: ["Session", "Tool", "State", "Time left", "Last use", "Memory", "Runs"],
    height: 36,
    className: "sessions",
    key: (session) => session.SessionId,
    row: (first) => {
      let session = first;
      let usedAt = first.created_at;
      const state = h("span", { class: "tag" });
      const bar = h("span", { class: "bar", "aria-hidden": "true" }, h("span"));
      const rest = h("span", { class: "rest" });
      const number = () => h("span", { class: "number" });
      const [used, memory, runs] = [number(), number(), number()];
      const row = h("div", null,
        h("span", null, namedLink(sessionPath(session), session.UserSessionId)),
        h("span", { class: "tool" }, session.ToolId),
        h("span", null, state), h("span", { class: "left" }, bar, rest), used, memory, runs);
      row.tick = () => {
        bar.firstChild.style.width = `${(left(session) * 100).toFixed(1)}%`; // rounded, so that it seldom changes
        setText(rest, hms(remaining(session)));
        setText(used, agoOf(usedAt));
      };
      row.update = (/** @type {any} */ next) => {
        session = next;
        setText(state, next.busy ? "busy" : next.state);
        state.dataset.state = next.busy ? "busy" : next.state;
        setText(runs, next.executions);
        setText(memory, next.memory_bytes ? mebibytes(next.memory_bytes) : "");
        const last = double.requests.findLast((request) => request.session === next.SessionId);
        usedAt = last?.at ?? next.created_at;
        used.title = timestamp(new Date(usedAt));
        row.tick();
      };
      rows.add(row);
      return row;
    },
  });
  const tick = () => {
    for (const row of rows) {
      if (row.isConnected) row.tick();
      else rows.delete(row);
    }
  };
  return {
    element: sessionRows.element,
    /** @param {any[]} sessions */
    show: (sessions) => sessionRows.show([...sessions].sort((a, b) => a.deadline.localeCompare(b.deadline))),
    tick,
    /** @param {number} by */
    move: (by) => {
      const next = sessionRows.move(by);
      if (next) sessionRows.focus();
    },
  };
}
