"""Input rounds: results that ask the client, which calls again with the answers."""

from __future__ import annotations

from typing import TypeVar

from mcp import MCPError
from mcp.types import INTERNAL_ERROR, InputRequiredResult
from mcp_types.version import is_version_at_least

from agentdouble.apps.mcp.context import FIRST_WITH_ROUNDS, Request

Result = TypeVar("Result")


def check_round(request: Request, result: Result) -> Result:
    """Return a result, unless it asks a client that knows no rounds; raise MCPError."""
    if not isinstance(result, InputRequiredResult):
        return result
    if is_version_at_least(request.protocol_version, FIRST_WITH_ROUNDS):
        return result
    raise MCPError(
        INTERNAL_ERROR,
        f"An InputRequiredResult was returned, which the protocol version "
        f"{request.protocol_version} does not have: ask with ctx.elicit or ctx.sample where "
        "ctx.session.can_send_request is true.",
    )
