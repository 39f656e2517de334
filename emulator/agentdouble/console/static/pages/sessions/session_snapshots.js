// The snapshots of a session: take one, return to it, make another session of it, delete it.

import { navigate, sessionPath } from "../../lib/address.js";
import { act } from "../../lib/api.js";
import { attempt, confirmed } from "../../lib/bar.js";
import { h, list, say, setText } from "../../lib/dom.js";
import { read } from "../../lib/live.js";

/** @typedef {{SnapshotId: string, ToolId: string, Status: string, CreatedAt: string, Reason: string}} Snapshot */

/** @param {import("./session.js").Session} session */
export function sessionSnapshots({ shown }) {
  const note = h("p", { class: "none", role: "status" });
  const rows = h("ul", { class: "keys", "aria-label": "Snapshots of the session" });
  const element = h("section", { class: "panel", "aria-label": "Snapshots" },
    h("p", { class: "buttons" }, h("button", { onclick: () => attempt(take) }, "Take a snapshot")),
    note, rows,
    h("p", { class: "hint" }, "A snapshot contains the state of Python and the files. Threads, child processes, "
      + "connections, bash, JavaScript and the browser are not. It ends with the double."));

  async function show() {
    const { ToolId, UserSessionId } = shown();
    const { Snapshots } = await act("ListSessionSnapshots", { ToolId, UserSessionId, MaxResults: 100 });
    list(rows, Snapshots, (/** @type {Snapshot} */ one) => `${one.SnapshotId} ${one.Status}`, row);
    setText(note, Snapshots.length ? "" : "There is no snapshot yet.");
  }

  async function take() {
    const { ToolId, SessionId } = shown();
    const { SnapshotId } = await act("CreateSessionSnapshot", { ToolId, SessionId });
    await show();
    say(`${SnapshotId} is taken.`);
  }

  /** @param {Snapshot} one */
  function row(one) {
    const { SnapshotId, ToolId, CreatedAt, Reason } = one;
    const named = { SnapshotId, ToolId };
    const ready = one.Status === "Ready";
    return h("li", null, h("div", null, h("span", null, SnapshotId), h("small", { class: "hint" }, `${CreatedAt}${Reason && `\n${Reason}`}`)),
      h("span", { class: "buttons" },
        ready && h("button", { onclick: () => back(named) }, "Return to it"),
        ready && h("button", { onclick: () => attempt(() => copy(named)) }, "New session"),
        h("button", { class: "danger", onclick: () => attempt(() => discard(named)) }, "Delete")));
  }

  /** @param {Pick<Snapshot, "SnapshotId" | "ToolId">} named */
  function back(named) {
    confirmed("Return to this snapshot?", "Everything the session has done since then is lost.", "Return", async () => {
      await act("ResumeSessionFromSnapshot", named);
      await read("sessions");
      say(`The session was restored from ${named.SnapshotId}.`);
    });
  }

  /** @param {Pick<Snapshot, "SnapshotId" | "ToolId">} named */
  async function copy(named) {
    const { SessionId } = await act("ResumeSessionFromSnapshot", { ...named, CreateNewInstance: true });
    await read("sessions");
    navigate(sessionPath({ SessionId }));
  }

  /** @param {Pick<Snapshot, "SnapshotId" | "ToolId">} named */
  async function discard(named) {
    await act("DeleteSessionSnapshot", named);
    await show();
  }

  return { element, show: () => attempt(show) };
}
