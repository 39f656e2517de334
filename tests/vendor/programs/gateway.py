"""veadk's gateway to cloud sessions: those of an owner, renewed and deleted."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from agentkit.sdk.tools.client import AgentkitToolsClient
from double import run_at
from veadk.cli.frontend_sandbox import AgentkitSandboxGateway, SandboxSessionNotFoundError


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Hold the whole conversation; return what came of each step."""
    gateway = AgentkitSandboxGateway(AgentkitToolsClient())
    tool = facts["tool"]
    created = await gateway.create_session(tool, envs={"GREETING": "hello"})
    read = await gateway.get_session(tool, created.instance_id)
    listed = await gateway.list_sessions(tool)
    near = (datetime.now(timezone.utc) + timedelta(minutes=10)).isoformat()
    renewed = await gateway.renew_session(replace(read, expire_at=near))
    greeting = run_at(read.endpoint, "import os; print(os.environ['GREETING'])")
    await gateway.delete_session(created)
    await gateway.delete_session(created)  # again: it is gone, and that is no error
    return {
        "created": [created.status, created.user_session_id == read.user_session_id],
        "read": [read.status, read.tool_type],
        "lifetime": 28_700 < seconds_left(read.expire_at) <= 28_800,
        "listed": [session.instance_id == created.instance_id for session in listed],
        "not renewed": await gateway.renew_session(read) == read,
        "renewed": 28_700 < seconds_left(renewed.expire_at) <= 28_800,
        "variable": greeting,
        "gone": await is_gone(gateway, tool, created.instance_id),
        "left": len(await gateway.list_sessions(tool)),
    }


def seconds_left(expire_at: str) -> float:
    """Return the seconds until a time."""
    at = datetime.fromisoformat(expire_at.replace("Z", "+00:00"))
    return (at - datetime.now(timezone.utc)).total_seconds()


async def is_gone(gateway: AgentkitSandboxGateway, tool: str, session_id: str) -> bool:
    """Say whether the gateway takes a session for gone."""
    try:
        await gateway.get_session(tool, session_id)
    except SandboxSessionNotFoundError:
        return True
    return False
