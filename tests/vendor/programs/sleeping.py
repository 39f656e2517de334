"""Agents that sleep: a session that has expired wakes from the snapshot that was taken of it."""

from __future__ import annotations

from typing import Any

from agentkit.sdk.tools import types
from agentkit.sdk.tools.client import AgentkitToolsClient
from agentkit.toolkit.cli.sandbox.session_create import ensure_sandbox_session_with_status
from agentkit.toolkit.cli.sandbox.tool_resolve import save_tool_result
from double import advance, run_at
from veadk.cli.frontend_sandbox import AgentkitSandboxGateway

EIGHT_HOURS = 8 * 3600


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Hold the whole conversation; return what came of each step."""
    client = AgentkitToolsClient()
    return {"veadk": await wake(facts, client), "agentkit": ensure(facts, client)}


async def wake(facts: dict[str, Any], client: AgentkitToolsClient) -> dict[str, Any]:
    """Let veadk's gateway wake a session that has expired, and one that lives."""
    gateway = AgentkitSandboxGateway(client)
    tool = facts["tool"]
    created = await gateway.create_session(tool, display_name="sleeper", username="ann")
    run_at(created.endpoint, "x = 6 * 7; open('/home/gem/note', 'w').write('kept')")
    before = await gateway.list_snapshots(tool)
    advance(facts, EIGHT_HOURS + 1)
    (snapshot,) = await gateway.list_snapshots(tool)
    woken = await gateway.resume_snapshot(snapshot)
    again = await gateway.resume_snapshot(snapshot)  # finds the session that lives
    told = {
        "snapshots before": len(before),
        "snapshot": [snapshot.status, snapshot.reason, snapshot.created_by, snapshot.display_name],
        "of the session": [
            snapshot.session_id == created.instance_id,
            snapshot.user_session_id == created.user_session_id,
        ],
        "same session": woken.instance_id == created.instance_id,
        "same user session": woken.user_session_id == created.user_session_id,
        "kernel": run_at(woken.endpoint, "print(x)"),
        "file": run_at(woken.endpoint, "print(open('/home/gem/note').read())"),
        "no second": again.instance_id == woken.instance_id,
    }
    await gateway.delete_session(woken)
    for item in await gateway.list_snapshots(tool):
        await gateway.delete_snapshot(item)
    return {**told, "left": len(await gateway.list_snapshots(tool))}


def ensure(facts: dict[str, Any], client: AgentkitToolsClient) -> dict[str, Any]:
    """Let agentkit's command line ensure a session three times, the last one after its end."""
    made = client.create_tool(
        types.CreateToolRequest(Name="sleeping", ToolType="CodeEnv", EnableSnapshot=True)
    )
    save_tool_result(
        "CodeEnv", {"ToolId": made.tool_id, "ToolType": "CodeEnv", "EnableSnapshot": True}
    )
    how = {"session_id": "mine", "tool_id": made.tool_id, "ttl": 3600, "resolve_tool": False}
    first, is_new = ensure_sandbox_session_with_status(**how)
    run_at(first["endpoint"], "open('/home/gem/note', 'w').write('kept')")
    second, is_second_new = ensure_sandbox_session_with_status(**how)
    advance(facts, 3601)
    third, is_third_new = ensure_sandbox_session_with_status(**how)
    return {
        "is new": [is_new, is_second_new, is_third_new],
        "same": [it["instance_id"] == first["instance_id"] for it in (second, third)],
        "file": run_at(third["endpoint"], "print(open('/home/gem/note').read())"),
    }
