// What has happened to a session, which the double remembers for a while after its end.

import { ApiError, act } from "../../lib/api.js";
import { h, setText } from "../../lib/dom.js";
import { double } from "../../lib/live.js";

/** @param {import("./session.js").Session} session */
export function sessionLog({ latest, ids }) {
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
