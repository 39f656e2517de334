// The snapshots of a session: take, restore, copy to a new session, and delete.

import { navigate, sessionPath } from "../../lib/address.js";
import { act, ask } from "../../lib/api.js";
import { attempt, confirmThen } from "../../lib/attempt.js";
import { announce, h, list, setText } from "../../lib/dom.js";
import { refresh } from "../../lib/live.js";

/** @typedef {{SnapshotId: string, ToolId: string, Status: string, CreatedAt: string, Reason: string}} Snapshot */

/** @param {import("./session.js").Session} session */
export function sessionSnapshots({ latest }) {
  /** @type {Map<string, string>} */
  let leftOut = new Map(); // what the snapshots do not contain, by their ids
  const note = h("p", { class: "none", role: "status" });
  const rows = h("ul", { class: "keys", "aria-label": "Snapshots of the session" });
  const element = h("section", { class: "panel", "aria-label": "Snapshots" },
    h("p", { class: "buttons" }, h("button", { onclick: () => attempt(take) }, "Take a snapshot")),
    note, rows,
    h("p", { class: "hint" }, "A snapshot contains the state of Python and the files, but not threads, child processes, "
      + "connections, bash, JavaScript and the browser."));

  async function show() {
    const { ToolId, UserSessionId } = latest();
    const { Snapshots } = await act("ListSessionSnapshots", { ToolId, UserSessionId, MaxResults: 100 });
    const { snapshots } = await ask("/snapshots");
    leftOut = new Map(snapshots.map((/** @type {any} */ known) => [known.SnapshotId, known.left_out.join(", ")]));
    list(rows, Snapshots, (/** @type {Snapshot} */ snapshot) => `${snapshot.SnapshotId} ${snapshot.Status}`, row);
    setText(note, Snapshots.length ? "" : "No snapshots yet.");
  }

  async function take() {
    const { ToolId, SessionId } = latest();
    const { SnapshotId } = await act("CreateSessionSnapshot", { ToolId, SessionId });
    await show();
    announce(`Took snapshot ${SnapshotId}.`);
  }

  /** @param {Snapshot} snapshot */
  function row(snapshot) {
    const { SnapshotId, ToolId, CreatedAt, Reason } = snapshot;
    const ids = { SnapshotId, ToolId };
    const ready = snapshot.Status === "Ready";
    const missing = leftOut.get(SnapshotId);
    const notes = [CreatedAt, Reason, missing && `Not in it: ${missing}`].filter(Boolean).join("\n");
    return h("li", null, h("div", null, h("span", null, SnapshotId), h("small", { class: "hint" }, notes)),
      h("span", { class: "buttons" },
        ready && h("button", { onclick: () => restore(ids) }, "Return to it"),
        ready && h("button", { onclick: () => attempt(() => copy(ids)) }, "New session"),
        h("button", { class: "danger", onclick: () => attempt(() => discard(ids)) }, "Delete")));
  }

  /** @param {Pick<Snapshot, "SnapshotId" | "ToolId">} ids */
  function restore(ids) {
    confirmThen("Return to this snapshot?", "Everything the session has done since then is lost.", "Return", async () => {
      await act("ResumeSessionFromSnapshot", ids);
      await refresh("sessions");
      announce(`The session was restored from ${ids.SnapshotId}.`);
    });
  }

  /** @param {Pick<Snapshot, "SnapshotId" | "ToolId">} ids */
  async function copy(ids) {
    const { SessionId } = await act("ResumeSessionFromSnapshot", { ...ids, CreateNewInstance: true });
    await refresh("sessions");
    navigate(sessionPath({ SessionId }));
  }

  /** @param {Pick<Snapshot, "SnapshotId" | "ToolId">} ids */
  async function discard(ids) {
    await act("DeleteSessionSnapshot", ids);
    await show();
  }

  return { element, show: () => attempt(show) };
}
