"""veadk's transport to a sandbox's data plane: commands that are waited for, and long output."""

from __future__ import annotations

from typing import Any

from frontend.server.sandbox_remote import SandboxRemoteTransport
from veadk.tools.builtin_tools._agentkit import ensure_agentkit_session_endpoint

LONG = 200_000


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Hold the whole conversation; return what came of each step."""
    endpoint = ensure_agentkit_session_endpoint(
        tool_id=facts["tool"], tool_user_session_id="transport"
    )
    transport = SandboxRemoteTransport(endpoint)
    started = await transport.start_command("sleep 2; echo done", hard_timeout=60)
    waited = started
    while waited["status"] == "running":
        waited = await transport.wait_command(started["session_id"])
    long = await transport.exec_text(f"python3 -c \"print('x' * {LONG})\"")
    return {
        "started": [started["status"], bool(started["session_id"])],
        "waited": waited["status"],
        "short": (await transport.exec_text("echo hello")).strip(),
        "long": len(long.strip()),
    }
