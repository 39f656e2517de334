// The button that wakes a session that is asleep: it has expired, and its snapshot can be resumed.

import { act } from "../../lib/api.js";
import { attempt } from "../../lib/attempt.js";
import { announce, h } from "../../lib/dom.js";
import { refresh } from "../../lib/live.js";

/** @param {{ToolId: string, SnapshotId: string, UserSessionId: string}} session */
export function wakeButton({ ToolId, SnapshotId, UserSessionId }) {
  return h("button", { onclick: () => attempt(async () => {
    await act("ResumeSessionFromSnapshot", { ToolId, SnapshotId });
    await refresh("sessions");
    announce(`The session ${UserSessionId} is awake.`);
  }) }, "Wake");
}
