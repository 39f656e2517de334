"""Snapshots as the vendor's samples and its workbench of skills take and resume them."""

from __future__ import annotations

import time
from typing import Any

from agentkit.sdk.tools import types
from agentkit.sdk.tools.client import AgentkitToolsClient
from double import advance, run_at

ATTEMPTS = 100


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Hold the whole conversation; return what came of each step."""
    client, tool = AgentkitToolsClient(), facts["tool"]
    session = client.create_session(
        types.CreateSessionRequest(ToolId=tool, UserSessionId="job-1", Ttl=3600)
    )
    run_at(session.endpoint, "x = 42")
    taken = client.create_session_snapshot(
        types.CreateSessionSnapshotRequest(ToolId=tool, SessionId=session.session_id)
    )
    ready = until_ready(client, tool, taken.snapshot_id)
    copy = resume(client, tool, taken.snapshot_id, create_new_instance=True)
    found = sessions_of(client, tool, "job-1")
    advance(facts, 3601)
    restored = resume(client, tool, taken.snapshot_id, create_new_instance=False)
    return {
        "first status": taken.status,
        "then": ready,
        "copy": copy != session.session_id,
        "found by the user session": copy in found,
        "restored": restored == session.session_id,
        "refused without EnableSnapshot": refused(client),
    }


def until_ready(client: AgentkitToolsClient, tool: str, snapshot_id: str) -> str:
    """Ask until a snapshot is no longer being taken; return its Status."""
    request = types.GetSessionSnapshotRequest(ToolId=tool, SnapshotId=snapshot_id)
    for _ in range(ATTEMPTS):
        status = client.get_session_snapshot(request).snapshot.status
        if status != "Creating":
            return status
        time.sleep(0.05)  # as the samples do, with 5 s
    return "Creating"


def resume(client: AgentkitToolsClient, tool: str, snapshot_id: str, **how: Any) -> str:
    """Resume a snapshot, again while its instance ends; return the SessionId."""
    request = types.ResumeSessionFromSnapshotRequest(
        tool_id=tool, snapshot_id=snapshot_id, ttl=3600, **how
    )
    for _ in range(ATTEMPTS):
        try:
            return client.resume_session_from_snapshot(request).session_id
        except Exception as error:
            if "InvalidSnapshot.Instance" not in str(error):
                raise
            time.sleep(0.05)
    return ""


def sessions_of(client: AgentkitToolsClient, tool: str, user_session: str) -> list[str]:
    """Return the sessions of a user session."""
    only = types.FiltersItemForListSessions(Name="UserSessionId", Values=[user_session])
    request = types.ListSessionsRequest(ToolId=tool, Filters=[only], MaxResults=100)
    return [it.session_id for it in client.list_sessions(request).session_infos or []]


def refused(client: AgentkitToolsClient) -> bool:
    """Say whether the session of a tool without snapshots has none taken."""
    tool = client.create_tool(types.CreateToolRequest(Name="without", ToolType="CodeEnv")).tool_id
    session = client.create_session(types.CreateSessionRequest(ToolId=tool, Ttl=3600))
    try:
        client.create_session_snapshot(
            types.CreateSessionSnapshotRequest(ToolId=tool, SessionId=session.session_id)
        )
    except Exception:
        return True
    return False
