"""Who has asked: the user and the session that the headers of a request name."""

from __future__ import annotations

from typing import Any

from mcp.server import ServerRequestContext

from agentdouble.code_tool import DEFAULT_SESSION, DEFAULT_USER, Invocation


def invocation_of(name: str, request: ServerRequestContext[Any, Any]) -> Invocation:
    """Return the invocation that the headers describe, with defaults for missing headers."""
    headers = {} if request.request is None else request.request.headers
    return Invocation(
        user_id=headers.get("user_id") or DEFAULT_USER,
        session_id=headers.get("session_id") or DEFAULT_SESSION,
        agent=name,
    )
