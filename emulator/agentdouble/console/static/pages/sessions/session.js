// One session: its state, buttons that change its lifetime, and tabs for code, files, snapshots and log.

import { ApiError, act } from "../../lib/api.js";
import { attempt, confirmThen } from "../../lib/attempt.js";
import { factRows, h, setText } from "../../lib/dom.js";
import { hms, mebibytes, timestamp } from "../../lib/format.js";
import { double, refresh } from "../../lib/live.js";
import { tabs } from "../../lib/tabs.js";
import { remaining } from "./session_table.js";
import { wakeButton } from "./wake_button.js";

/** What the tabs use of a session. "active" returns undefined once it has ended, "latest" its last state.
 * @typedef {{id: string, path: string, active: () => any, latest: () => any,
 *   ids: () => {ToolId: string, SessionId: string}}} Session */

/** @param {string} id */
export function session(id) {
  const path = `/sessions/${encodeURIComponent(id)}`;
  const active = () => double.sessions.find((other) => other.SessionId === id);
  /** @type {Session} */
  const self = { id, path, active, latest: () => active() ?? double.ended.findLast((other) => other.SessionId === id),
    ids: () => ({ ToolId: self.latest().ToolId, SessionId: id }) };
  const title = h("h1", null, id);
  const state = h("span", { class: "tag" });
  const waking = h("p", { class: "buttons" });
  const rest = h("span");
  const facts = h("dl", { class: "facts" });
  /** @param {string} action @param {any} [fields] */
  const change = (action, fields = {}) => attempt(async () => {
    await act(action, { ...self.ids(), ...fields });
    await refresh("sessions");
  });
  const pause = h("button", { onclick: () => change(active()?.state === "paused" ? "ResumeSession" : "PauseSession") }, "Pause");
  const actions = h("p", { class: "buttons" }, pause,
    h("button", { onclick: () => change("SetSessionTtl", { Ttl: 1800, TtlUnit: "second" }) }, "Reset to 30 min"),
    h("button", { onclick: () => change("SetSessionTtl", { Ttl: 10, TtlUnit: "second" }) }, "End in 10 s"),
    h("button", { class: "danger", onclick: () => end() }, "End now"));
  const ending = h("p", { class: "none", role: "status" });
  const activeTabs = tabs("This session", path, [
    { path: "", name: "Code", load: async () => (await import("./session_code.js")).sessionCode(self) },
    { path: "files", name: "Files", load: async () => (await import("./session_files.js")).sessionFiles(self) },
    { path: "snapshots", name: "Snapshots", load: async () => (await import("./session_snapshots.js")).sessionSnapshots(self) },
    { path: "log", name: "Log", load: async () => sessionLog(self) },
  ]);
  const past = h("div", { class: "stack" });
  const element = h("div", { class: "stack session" },
    h("section", { class: "panel" }, h("div", { class: "title" }, title, state, rest), facts, actions, ending, waking),
    activeTabs.elements, past);
  let tab = "";
  /** @type {import("../../lib/tabs.js").Panel | null} */
  let pastLog = null;

  const end = () => confirmThen("End this session?", "Its kernel and its files are deleted too.", "End", () => change("DeleteSession"));

  /** Show the log of a session that has ended. */
  function showPast() {
    if (!past.firstChild) {
      past.append(h("p", { class: "none" }, "Its log:"));
      pastLog = sessionLog(self);
      past.append(pastLog.element);
    }
    pastLog?.update?.();
  }

  return {
    element,
    close: activeTabs.close,
    /** @param {string} within */
    go(within) {
      tab = within;
      if (active()) activeTabs.go(tab);
    },
    update() {
      const now = active();
      const current = self.latest();
      setText(title, current?.UserSessionId ?? id);
      setText(state, current?.state ?? "unknown");
      state.dataset.state = current?.state ?? "unknown";
      actions.hidden = !now;
      for (const element of activeTabs.elements) element.hidden = !now;
      ending.hidden = Boolean(now);
      past.hidden = Boolean(now) || !current;
      const sleeper = now ? "" : current?.SnapshotId ?? "";
      if (waking.dataset.snapshot !== sleeper) waking.replaceChildren(...(sleeper ? [wakeButton(current)] : []));
      waking.dataset.snapshot = sleeper;
      if (now) {
        setText(pause, now.state === "paused" ? "Resume" : "Pause");
        activeTabs.go(tab);
        activeTabs.update();
      } else {
        activeTabs.hide();
        setText(ending, current ? `Ended ${timestamp(new Date(current.ended_at))}: ${current.reason}.`
          : "The double has no session with this id.");
        if (current) showPast();
      }
      facts.replaceChildren(...factRows(factsOf(current)));
    },
    tick() {
      const now = active();
      setText(rest, now ? `${hms(remaining(now))} left` : "");
    },
  };
}

/** @param {any} current */
function factsOf(current) {
  if (!current) return {};
  const { SessionId, ToolId, executions, pids = [], home, memory_bytes } = current;
  return { Id: SessionId, Tool: ToolId, Runs: executions,
    "Process ids": pids.join(", "), Files: home, Memory: memory_bytes ? mebibytes(memory_bytes) : "" };
}

/** The log of a session, which the double keeps for a while after the session's end.
 * @param {Session} session */
function sessionLog({ latest, ids }) {
  const log = h("pre", { class: "log", role: "group", tabindex: "0", "aria-label": "Log" });
  const element = h("section", { class: "panel", "aria-label": "Log" }, log);
  let shownVersion = "";

  async function update() {
    const session = latest();
    const version = `${double.status} ${session?.state} ${session?.executions} ${session?.deadline} ${session?.pids}`;
    if (double.status !== "live" || version === shownVersion) return;
    shownVersion = version;
    try {
      setText(log, (await act("GetSessionLogs", ids())).Logs || "The log is empty.");
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) setText(log, "The double has no log of this session.");
    }
  }

  return { element, update, show: update };
}
