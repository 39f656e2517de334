"""Who has asked: the user and the session that the headers of a request name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mcp.server import ServerRequestContext

from agentdouble import causes
from agentdouble.code_tool import DEFAULT_SESSION, DEFAULT_USER, Invocation, invoked_by


@contextmanager
def invoked(name: str, request: ServerRequestContext[Any, Any]) -> Iterator[None]:
    """Make run_code inside use the session that the headers name, with defaults for missing ones.

    ``name`` is that of the application.
    """
    headers: Mapping[str, str] = {} if request.request is None else request.request.headers
    invocation = Invocation(
        user_id=headers.get("user_id") or DEFAULT_USER,
        session_id=headers.get("session_id") or DEFAULT_SESSION,
        agent=name,
    )
    with invoked_by(invocation), causes.passed_on(headers):
        yield
