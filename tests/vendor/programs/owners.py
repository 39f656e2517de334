"""veadk's gateway with owners: the metadata of sessions, and a list for each owner."""

from __future__ import annotations

from typing import Any

from agentkit.sdk.tools.client import AgentkitToolsClient
from veadk.cli.frontend_sandbox import AgentkitSandboxGateway


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Hold the whole conversation; return what came of each step."""
    gateway = AgentkitSandboxGateway(AgentkitToolsClient())
    for owner in ("ann", "bob"):
        await gateway.create_session(
            facts["tool"],
            display_name=f"Sandbox of {owner}",
            username=owner,
            creator_name=owner.title(),
            agent_kind="codex",
        )
    listed = {
        owner or "all": [
            [it.created_by, it.creator_name, it.display_name, it.agent_kind]
            for it in await gateway.list_sessions(facts["tool"], username=owner)
        ]
        for owner in ("ann", "bob", "eve", None)
    }
    (session,) = await gateway.list_sessions(facts["tool"], username="ann")
    read = await gateway.get_session(facts["tool"], session.instance_id)
    return {**listed, "all": len(listed["all"]), "read": read.created_by}
