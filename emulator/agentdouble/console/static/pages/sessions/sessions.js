// Sessions that live, and those that have ended with the reason.

import { navigate, sessionPath } from "../../lib/address.js";
import { act } from "../../lib/api.js";
import { attempt } from "../../lib/bar.js";
import { h, setText, table } from "../../lib/dom.js";
import { double, read } from "../../lib/live.js";
import { sessionTable } from "./session_table.js";
import { timeOfDay } from "../../lib/words.js";

export function sessions() {
  const living = sessionTable();
  const ended = table({
    label: "Ended sessions",
    columns: ["Session", "Ended", "Reason", "Runs"],
    height: 36,
    className: "ended",
    key: (session) => session.SessionId,
    row: (session) => h("div", null,
      h("span", null, h("a", { href: sessionPath(session) }, session.UserSessionId)),
      h("span", { class: "number" }, timeOfDay(session.ended_at)),
      h("span", null, session.reason), h("span", { class: "number" }, session.executions)),
  });
  const filter = h("input", { type: "search", "aria-label": "Filter sessions", placeholder: "Name, id or state",
    "aria-keyshortcuts": "/", oninput: () => update() });
  const begin = h("button", { onclick: () => attempt(async () => {
    const { SessionId } = await act("CreateSession", { ToolId: double.connection.tool_id });
    await read("sessions");
    navigate(sessionPath({ SessionId }));
  }) }, "Begin a session");
  const none = h("p", { class: "none" });
  const over = h("section", { class: "panel", "aria-label": "Ended" }, h("h2", null, "Ended"), ended.element);
  const element = h("div", { class: "stack" }, h("h1", null, "Sessions"),
    h("div", { class: "tools" }, filter, begin),
    h("section", { class: "panel", "aria-label": "Living" }, h("h2", null, "Living"), living.element, none), over);

  function update() {
    const word = filter.value.toLowerCase();
    const fits = (/** @type {any} */ session) =>
      `${session.UserSessionId} ${session.SessionId} ${session.state} ${session.reason ?? ""}`.toLowerCase().includes(word);
    const alive = double.sessions.filter(fits);
    living.show(alive);
    living.element.hidden = !alive.length;
    none.hidden = alive.length > 0;
    setText(none, double.sessions.length ? "No session fits." : "No active sessions. A session starts when an agent runs code.");
    const past = double.ended.filter(fits).reverse();
    over.hidden = !past.length;
    ended.show(past);
  }

  return { element, update, tick: living.tick, move: living.move, filter };
}
