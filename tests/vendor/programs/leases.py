"""veadk's leases of sandbox sessions: one that lasts long enough, reused or moved to another."""

from __future__ import annotations

from typing import Any

from double import advance, run_at
from veadk.agents._remote_sandbox.session import ensure_agentkit_session_lease

LOGICAL = "agent/ann:1"  # has characters that a UserSessionId has not


async def converse(facts: dict[str, Any]) -> dict[str, Any]:
    """Hold the whole conversation; return what came of each step."""
    first = lease(facts)
    printed = run_at(first.select_endpoint(), "x = 6 * 7; print(x)")
    again = lease(facts)
    moved = lease(facts, min_remaining_seconds=3600)
    newest = lease(facts)
    told = {
        "kept": run_at(again.select_endpoint(), "print(x)"),
        "fresh": run_at(moved.select_endpoint(), "print('x' in globals())"),
    }
    advance(facts, 86400)
    later = lease(facts)
    return {
        **told,
        "status": first.status,
        "shape": first.user_session_id.startswith("agent_ann_1_"),
        "lifetime": 1790 < (first.remaining_seconds() or 0) <= 1800,
        "printed": printed,
        "reused": again.session_id == first.session_id,
        "moved": moved.user_session_id.startswith(f"{first.user_session_id}_r_"),
        "long enough": (moved.remaining_seconds() or 0) > 3600,
        "newest is taken": newest.session_id in {first.session_id, moved.session_id},
        "new after expiry": later.session_id not in {first.session_id, moved.session_id},
        "ready after expiry": later.status,
    }


def lease(facts: dict[str, Any], **how: Any) -> Any:
    """Lease a session for the logical user session."""
    return ensure_agentkit_session_lease(
        tool_id=facts["tool"], tool_user_session_id=LOGICAL, poll_interval=0.05, **how
    )
