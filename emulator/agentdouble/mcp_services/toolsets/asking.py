"""Requests to a service by the MCP SDK's own client, and the requests that its tools send back.

A toolset sends each request separately, inside the process and behind the keys. If the SDK's client
is kept open in a server, it ends that server when its peer ends, so each request has its own
connection. Requests of a tool pass to the caller. So the service is called in the caller's era of
the protocol, if it has that era.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx2
from mcp.client import Client, ClientRequestContext, ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
)
from starlette.types import ASGIApp

from agentdouble.errors import ServiceUnansweredError
from agentdouble.mcp_services.toolsets.inside import Inside

T = TypeVar("T")

Headers = list[tuple[str, str]]

_URL = "http://service/mcp"  # no part of it is used
_log = logging.getLogger(__name__)
Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True)
class Member:
    """A service of a toolset, and the application that answers for it without a key."""

    name: str
    app: ASGIApp = field(repr=False)


async def ask(
    member: Member,
    question: Callable[[ClientSession], Awaitable[T]],
    headers: Headers,
    mode: str = "auto",
    **callbacks: Any,
) -> T:
    """Return a service's answer to a request that is sent with ``headers``.

    Each request has its own connection: an open connection would take the toolset down with the
    service. ``mode`` and ``callbacks`` are those of the SDK's client. Raises MCPError if the
    service refuses by the protocol, and ServiceUnansweredError if it cannot be called.
    """
    inside = Inside(member.app)
    refused: MCPError | None = None
    try:
        async with _connected(inside, headers, mode, callbacks) as session:
            try:
                return await question(session)
            except MCPError as error:
                refused = error
    except Exception as error:
        _log.info("The MCP service %s: %r", member.name, error)
        reason = _reason(error) if refused is None else str(refused)
        raise ServiceUnansweredError(member.name, inside.refusal or reason) from None
    if inside.refusal is not None:
        raise ServiceUnansweredError(member.name, inside.refusal)
    assert refused is not None
    raise refused


@asynccontextmanager
async def _connected(
    inside: Inside, headers: Headers, mode: str, callbacks: Mapping[str, Any]
) -> AsyncIterator[ClientSession]:
    async with httpx2.AsyncClient(transport=inside, headers=headers, timeout=None) as http:
        transport = streamable_http_client(_URL, http_client=http, max_sse_event_size=None)
        async with Client(transport, cache=None, mode=mode, **callbacks) as client:
            yield client.session


def _reason(error: BaseException) -> str:
    """Return the reason inside the exception groups that the client's tasks raise."""
    while inner := getattr(error, "exceptions", None):
        error = inner[0]
    return str(error) or type(error).__name__


class AskingBack:
    """Answers a service's requests with the answers of the caller of ``context``."""

    def __init__(self, context: Context) -> None:
        self._session = context.session
        self._metadata = ServerMessageMetadata(related_request_id=context.request_id)

    def callbacks(self) -> dict[str, Any]:
        """Return the callbacks for the SDK's client that the caller is able to answer."""
        able = self._session.client_capabilities
        found: dict[str, Any] = {}
        if able is not None and able.elicitation is not None:
            found["elicitation_callback"] = self._elicit
        if able is not None and able.sampling is not None:
            found["sampling_callback"] = self._sample
            found["sampling_capabilities"] = able.sampling
        return found

    async def _elicit(
        self, _: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        request = ElicitRequest(params=params)
        try:
            return await self._session.send_request(request, ElicitResult, metadata=self._metadata)
        except MCPError as error:
            return error.error

    async def _sample(
        self, _: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | CreateMessageResultWithTools | ErrorData:
        request = CreateMessageRequest(params=params)
        with_tools = params.tools is not None
        kind = CreateMessageResultWithTools if with_tools else CreateMessageResult
        try:
            return await self._session.send_request(request, kind, metadata=self._metadata)
        except MCPError as error:
            return error.error
