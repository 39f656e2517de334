// The active sessions, and the ended ones with the reason.

import { navigate, sessionPath } from "../../lib/address.js";
import { act } from "../../lib/api.js";
import { attempt } from "../../lib/attempt.js";
import { h, namedLink, setText } from "../../lib/dom.js";
import { pluralize, timestamp } from "../../lib/format.js";
import { double, refresh } from "../../lib/live.js";
import { table } from "../../lib/table.js";
import { agoOf, sessionTable } from "./session_table.js";
import { wakeButton } from "./wake_button.js";

const REFRESH_S = 5; // the double measures memory as often, and sends no event about it

export function sessions() {
  const active = sessionTable();
  const ended = table({
    label: "Ended sessions",
    columns: ["Session", "Ended", "Reason", "Runs"],
    height: 36,
    className: "ended",
    key: (session) => `${session.SessionId} ${session.SnapshotId ?? ""}`,
    row: (session) => {
      const at = h("span", { class: "number", title: timestamp(new Date(session.ended_at)) });
      const row = h("div", null, h("span", null, namedLink(sessionPath(session), session.UserSessionId)), at,
        h("span", null, session.state === "asleep" && [wakeButton(session), " asleep: "], session.reason), h("span", { class: "number" }, session.executions));
      row.tick = () => setText(at, agoOf(session.ended_at));
      row.tick();
      return row;
    },
  });
  const filter = h("input", { type: "search", "aria-label": "Filter sessions", placeholder: "Name, id or state",
    "aria-keyshortcuts": "/", oninput: () => update() });
  const start = h("button", { onclick: () => attempt(async () => {
    const { SessionId } = await act("CreateSession", { ToolId: double.connection.tool_id });
    await refresh("sessions");
    navigate(sessionPath({ SessionId }));
  }) }, "Start a session");
  const count = h("span", { class: "count", role: "status" });
  const none = h("p", { class: "none" });
  const endedPanel = h("section", { class: "panel", "aria-label": "Ended" }, h("h2", null, "Ended"), ended.element);
  const element = h("div", { class: "stack lists" }, h("h1", null, "Sessions"),
    h("div", { class: "tools" }, filter, count, start),
    h("section", { class: "panel", "aria-label": "Active" }, h("h2", null, "Active"), active.element, none), endedPanel);

  function update() {
    const word = filter.value.toLowerCase();
    const matches = (/** @type {any} */ session) =>
      `${session.UserSessionId} ${session.SessionId} ${session.state} ${session.reason ?? ""}`.toLowerCase().includes(word);
    const matching = double.sessions.filter(matches);
    active.show(matching);
    active.element.hidden = !matching.length;
    none.hidden = matching.length > 0;
    setText(none, double.sessions.length ? "No sessions match." : "No active sessions. A session starts when an agent runs code.");
    const past = double.ended.filter(matches).reverse();
    endedPanel.hidden = !past.length;
    ended.show(past);
    setText(count, `${pluralize(matching.length, "session")}${past.length ? `, ${past.length} ended` : ""}`);
  }

  let ticks = 0;
  function tick() {
    ticks += 1;
    if (ticks % REFRESH_S === 0 && double.status === "live") refresh("sessions").catch(() => undefined);
    active.tick();
    for (const row of ended.element.querySelectorAll(".rows > .row")) row.tick();
  }

  return { element, update, tick, move: active.move, filter };
}
