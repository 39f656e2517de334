"""What a tool asks its caller amid a call, passed on to the caller of the toolset."""

from __future__ import annotations

from typing import Any

from mcp.client import ClientRequestContext
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

Context = ServerRequestContext[Any, Any]


class AskingBack:
    """Answers what a service asks with what the caller of ``context`` answers."""

    def __init__(self, context: Context) -> None:
        self._session = context.session
        self._metadata = ServerMessageMetadata(related_request_id=context.request_id)

    def callbacks(self) -> dict[str, Any]:
        """Return those for which the caller has said that it can answer, for the SDK's client."""
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
