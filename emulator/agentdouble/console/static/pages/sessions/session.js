// One session: what it is, prolong, pause or end it, and a tab for each thing that one does in it.

import { ApiError, act } from "../../lib/api.js";
import { attempt, confirmed } from "../../lib/bar.js";
import { factRows, h, setText } from "../../lib/dom.js";
import { double, read } from "../../lib/live.js";
import { tabs } from "../../lib/tabs.js";
import { mebibytes, span, stamp } from "../../lib/words.js";
import { remaining } from "./session_table.js";

/** What its tabs know of a session: "living" is undefined after its end, "latest" is not.
 * @typedef {{id: string, path: string, living: () => any, latest: () => any,
 *   ids: () => {ToolId: string, SessionId: string}}} Session */

/** @param {string} id */
export function session(id) {
  const path = `/sessions/${encodeURIComponent(id)}`;
  const alive = () => double.sessions.find((other) => other.SessionId === id);
  /** @type {Session} */
  const self = { id, path, living: alive, latest: () => alive() ?? double.ended.findLast((other) => other.SessionId === id),
    ids: () => ({ ToolId: self.latest().ToolId, SessionId: id }) };
  const title = h("h1", null, id);
  const state = h("span", { class: "tag" });
  const rest = h("span");
  const facts = h("dl", { class: "facts" });
  /** @param {string} action @param {any} [fields] */
  const change = (action, fields = {}) => attempt(async () => {
    await act(action, { ...self.ids(), ...fields });
    await read("sessions");
  });
  const pause = h("button", { onclick: () => change(alive()?.state === "paused" ? "ResumeSession" : "PauseSession") }, "Pause");
  const actions = h("p", { class: "buttons" }, pause,
    h("button", { onclick: () => change("SetSessionTtl", { Ttl: 1800, TtlUnit: "second" }) }, "Reset to 30 min"),
    h("button", { onclick: () => change("SetSessionTtl", { Ttl: 10, TtlUnit: "second" }) }, "End in 10 s"),
    h("button", { class: "danger", onclick: () => end() }, "End now"));
  const over = h("p", { class: "none", role: "status" });
  const living = tabs("This session", path, [
    { path: "", name: "Code", make: async () => (await import("./session_code.js")).sessionCode(self) },
    { path: "files", name: "Files", make: async () => (await import("./session_files.js")).sessionFiles(self) },
    { path: "snapshots", name: "Snapshots", make: async () => (await import("./session_snapshots.js")).sessionSnapshots(self) },
    { path: "log", name: "Log", make: async () => sessionLog(self) },
  ]);
  const past = h("div", { class: "stack" });
  const element = h("div", { class: "stack session" },
    h("section", { class: "panel" }, h("div", { class: "title" }, title, state, rest), facts, actions, over),
    living.elements, past);
  let within = "";
  /** @type {import("../../lib/tabs.js").Panel | null} */
  let pastLog = null;

  const end = () => confirmed("End this session?", "Its kernel and its files are deleted too.", "End", () => change("DeleteSession"));

  /** Show what is left of a session that has ended. */
  function remember() {
    if (!past.firstChild) {
      past.append(h("p", { class: "none" }, "Its log:"));
      pastLog = sessionLog(self);
      past.append(pastLog.element);
    }
    pastLog?.update?.();
  }

  return {
    element,
    close: living.close,
    /** @param {string} place */
    go(place) {
      within = place;
      if (alive()) living.go(within);
    },
    update() {
      const now = alive();
      const current = self.latest();
      setText(title, current?.UserSessionId ?? id);
      setText(state, current?.state ?? "unknown");
      state.dataset.state = current?.state ?? "unknown";
      actions.hidden = !now;
      for (const element of living.elements) element.hidden = !now;
      over.hidden = Boolean(now);
      past.hidden = Boolean(now) || !current;
      if (now) {
        setText(pause, now.state === "paused" ? "Resume" : "Pause");
        living.go(within);
        living.update();
      } else {
        living.hide();
        setText(over, current ? `Ended ${stamp(new Date(current.ended_at))}: ${current.reason}.`
          : "The double has no such session, neither active nor ended.");
        if (current) remember();
      }
      facts.replaceChildren(...factRows(factsOf(current)));
    },
    tick() {
      const now = alive();
      setText(rest, now ? `${span(remaining(now))} left` : "");
    },
  };
}

/** @param {any} current */
function factsOf(current) {
  if (!current) return {};
  const { SessionId, ToolId, executions, pids = [], home, memory_bytes } = current;
  return { Id: SessionId, Tool: ToolId, Runs: executions,
    Processes: pids.join(", "), Files: home, Memory: memory_bytes && mebibytes(memory_bytes) };
}

/** What has happened to a session, which the double remembers for a while after its end.
 * @param {Session} session */
function sessionLog({ latest, ids }) {
  const log = h("pre", { class: "log", role: "group", tabindex: "0", "aria-label": "Log" });
  const element = h("section", { class: "panel", "aria-label": "Log" }, log);
  let read = "";

  async function update() {
    const session = latest();
    const news = `${double.status} ${session?.state} ${session?.executions} ${session?.deadline} ${session?.pids}`;
    if (double.status !== "live" || news === read) return;
    read = news;
    try {
      setText(log, (await act("GetSessionLogs", ids())).Logs || "Nothing has happened yet.");
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) setText(log, "The double has no log of this session.");
    }
  }

  return { element, update, show: update };
}
