"""The actions on session snapshots: create, list, get, delete, resume."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict

from agentdouble.control_plane import listing, session_actions, session_metadata
from agentdouble.control_plane.action_methods import ActionMethods, action
from agentdouble.control_plane.listing import Listed
from agentdouble.control_plane.wire import stamp
from agentdouble.core import ledger
from agentdouble.errors import SnapshotRefusedError
from agentdouble.sandbox.session_snapshot import SessionSnapshot
from agentdouble.sandbox.session_snapshots import SessionSnapshots
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.sandbox.tools import Tools


class ShownSnapshot(TypedDict):
    """A snapshot of a session; ``Reason`` says why it was taken, or why it cannot be resumed."""

    SnapshotId: str
    SnapshotType: Literal["Manual", "Automatic"]
    Status: Literal["Creating", "Ready", "Failed"]
    Reason: str
    ToolId: str
    SessionId: str
    SandboxId: str
    UserSessionId: str
    SessionMetadata: list[session_metadata.ShownEntry]
    CreatedAt: str


class SnapshotActions(ActionMethods):
    """The actions on session snapshots; a snapshot belongs to the tool of its session."""

    def __init__(
        self, snapshots: SessionSnapshots, sessions: SandboxSessions, tools: Tools
    ) -> None:
        self._snapshots = snapshots
        self._sessions = sessions
        self._tools = tools

    @action(
        "CreateSessionSnapshot",
        session_actions.CreateSessionSnapshot,
        SnapshotId=str,
        Status=Literal["Ready", "Creating"],
    )
    async def create(self, request: session_actions.CreateSessionSnapshot) -> dict[str, Any]:
        """Take a snapshot of a session's Python kernel and files, while it runs no code."""
        tool = self._tools.get(request.ToolId)
        session = await self._sessions.look_up(request.SessionId, request.ToolId)
        if not tool.enables_snapshots and ledger.choose("U-SNAPSHOT-ENABLED") == "required":
            raise SnapshotRefusedError(
                f"the tool {tool.id!r} was created without EnableSnapshot",
                "InvalidSnapshot.NotEnabled",
            )
        snapshot = await self._snapshots.take(session, request.RetentionCount)
        at_once = ledger.choose("U-SNAPSHOT-STATUS") == "ready"
        return {"SnapshotId": snapshot.id, "Status": "Ready" if at_once else "Creating"}

    @action(
        "ListSessionSnapshots",
        session_actions.ListSessionSnapshots,
        Snapshots=list[ShownSnapshot],
        NextToken=str,
        PageNumber=int,
        PageSize=int,
        TotalCount=int,
    )
    async def list(self, request: session_actions.ListSessionSnapshots) -> dict[str, Any]:
        """Return the snapshots of a tool's sessions that pass every filter, the newest first."""
        if self._tools.get(request.ToolId).enables_snapshots:
            ledger.choose("U-SNAPSHOT-AUTOMATIC")  # it decides which snapshots there are
        names = ("SessionId", "UserSessionId", "SnapshotType")
        filters = {name: value for name in names if (value := getattr(request, name)) is not None}
        every = (
            Listed(snapshot.id, snapshot.created_at, dict(_details(snapshot)))
            for snapshot in self._snapshots.of_tool(request.ToolId)
        )
        rows = [
            row for row in every if filters.items() <= row.item.items() and request.has(row.item)
        ]
        newest_first = ledger.choose("U-SNAPSHOT-ORDER") == "newest-first"
        items, token = listing.page(request, rows, newest_first=newest_first)
        return {
            "Snapshots": items,
            "NextToken": token,
            "PageNumber": request.PageNumber or 1,
            "PageSize": request.PageSize or request.MaxResults or listing.DEFAULT_PAGE,
            "TotalCount": len(rows),
        }

    @action("GetSessionSnapshot", session_actions.OneSnapshot, Snapshot=ShownSnapshot)
    async def get(self, request: session_actions.OneSnapshot) -> dict[str, Any]:
        """Return a session snapshot."""
        return {"Snapshot": _details(self._find(request))}

    @action("DeleteSessionSnapshot", session_actions.OneSnapshot, SnapshotId=str)
    async def delete(self, request: session_actions.OneSnapshot) -> dict[str, Any]:
        """Delete a session snapshot; sessions that were resumed from it live on."""
        snapshot = self._find(request)
        await self._snapshots.delete(snapshot)
        return {"SnapshotId": snapshot.id}

    @action("ResumeSessionFromSnapshot", session_actions.ResumeSessionFromSnapshot, SessionId=str)
    async def resume(self, request: session_actions.ResumeSessionFromSnapshot) -> dict[str, Any]:
        """Return a session to a snapshot; with CreateNewInstance, create a session from it."""
        resumed = await self._snapshots.resume(
            self._find(request), request.Ttl, new_instance=bool(request.CreateNewInstance)
        )
        return {"SessionId": resumed.id}

    def _find(self, request: session_actions.OneSnapshot) -> SessionSnapshot:
        self._tools.get(request.ToolId)
        return self._snapshots.get(request.SnapshotId, request.ToolId)


def _details(snapshot: SessionSnapshot) -> ShownSnapshot:
    return {
        "SnapshotId": snapshot.id,
        "SnapshotType": snapshot.type,
        "Status": snapshot.status,
        "Reason": snapshot.reason,
        "ToolId": snapshot.key.tool_id,
        "SessionId": snapshot.session_id,
        "SandboxId": snapshot.session_id,
        "UserSessionId": snapshot.key.user_session_id,
        "SessionMetadata": session_metadata.shown(snapshot.metadata),
        "CreatedAt": stamp(snapshot.created_at),
    }
