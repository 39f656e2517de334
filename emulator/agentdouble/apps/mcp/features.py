"""What a server can do beyond tools: as much as the application uses by now."""

from __future__ import annotations

from typing import Any

from mcp.server import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.types import (
    EmptyResult,
    SetLevelRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)

from agentdouble.apps.mcp.context import LOG_LEVEL, Request, connection_of
from agentdouble.apps.mcp.offers import Offers
from agentdouble.apps.mcp.prompt_handlers import CompletionHandler, PromptHandlers
from agentdouble.apps.mcp.requests import Requests
from agentdouble.apps.mcp.resource_handlers import ResourceHandlers


class Features:
    """Lets a server answer what functions with a context, resources and prompts need."""

    def __init__(self, name: str, offers: Offers, requests: Requests) -> None:
        self._name = name
        self._offers = offers
        self._requests = requests

    def install(self, server: Server[Any]) -> None:
        """Let a server answer what the application uses by now."""
        offers, requests = self._offers, self._requests
        if server.get_request_handler("subscriptions/listen") is None:
            self._install_common(server)
        if offers.uris or offers.templates:
            ResourceHandlers(offers, requests).install(server)
        if offers.prompts:
            PromptHandlers(offers, requests).install(server)
        if offers.completion is not None:
            CompletionHandler(offers, requests, offers.completion).install(server)

    def _install_common(self, server: Server[Any]) -> None:
        # what a client carries between two rounds is sealed, as with the SDK's own class
        security = RequestStateSecurity.ephemeral()
        server.middleware.append(RequestStateBoundary(security, default_audience=self._name))
        add = server.add_request_handler
        add("subscriptions/listen", SubscriptionsListenRequestParams, self._listen)
        add("logging/setLevel", SetLevelRequestParams, _set_level)

    async def _listen(
        self, request: Request, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        return await self._requests.runner.listen(request, params)


async def _set_level(request: Request, params: SetLevelRequestParams) -> EmptyResult:
    connection_of(request.session).state[LOG_LEVEL] = params.level
    return EmptyResult()
