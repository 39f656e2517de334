"""The requests of the protocol that concern resources."""

from __future__ import annotations

import base64
from typing import Any

from mcp import MCPError
from mcp.server import Server
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver.exceptions import (
    ResourceError,
    ResourceNotFoundError,
    UnexpectedResourceError,
)
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    BlobResourceContents,
    EmptyResult,
    InputRequiredResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    SubscribeRequestParams,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from pydantic import ValidationError

from agentdouble.apps.contract import text_of
from agentdouble.apps.mcp.context import Request, connection_of
from agentdouble.apps.mcp.offers import Offers
from agentdouble.apps.mcp.requests import Requests
from agentdouble.apps.mcp.rounds import check_round
from agentdouble.apps.mcp.tool_arguments import problems_of
from agentdouble.mcp_hosting.pages import Pages

Content = TextResourceContents | BlobResourceContents


class ResourceHandlers:
    """Lists and reads the resources of an application, and notes who watches them."""

    def __init__(self, offers: Offers, requests: Requests) -> None:
        self._offers = offers
        self._requests = requests

    def install(self, server: Server[Any]) -> None:
        """Let a server answer these requests."""
        add = server.add_request_handler
        add("resources/list", PaginatedRequestParams, self.list)
        add("resources/templates/list", PaginatedRequestParams, self.list_templates)
        add("resources/read", ReadResourceRequestParams, self.read)
        add("resources/subscribe", SubscribeRequestParams, self.subscribe)
        add("resources/unsubscribe", UnsubscribeRequestParams, self.unsubscribe)

    async def list(self, _: Request, params: PaginatedRequestParams | None) -> ListResourcesResult:
        pages = Pages(
            "resources",
            await self._offers.sdk.list_resources(),
            lambda page, cursor: ListResourcesResult(resources=page, next_cursor=cursor),
        )
        return pages.page(params)

    async def list_templates(
        self, _: Request, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        pages = Pages(
            "resource templates",
            await self._offers.sdk.list_resource_templates(),
            lambda page, cursor: ListResourceTemplatesResult(
                resource_templates=page, next_cursor=cursor
            ),
        )
        return pages.page(params)

    async def read(
        self, request: Request, params: ReadResourceRequestParams
    ) -> ReadResourceResult | InputRequiredResult:
        with self._requests.asked(request, params) as asked:
            try:
                found = await self._offers.sdk.read_resource(params.uri, asked.context)
            except ResourceError as error:
                raise _failure(params.uri, error, reached=asked.reached) from error
        if isinstance(found, InputRequiredResult):
            return check_round(request, found)
        return ReadResourceResult(contents=[_content(params.uri, one) for one in found])

    async def subscribe(self, request: Request, params: SubscribeRequestParams) -> EmptyResult:
        if not self._offers.has_resource(params.uri):
            raise _unknown(params.uri)
        self._requests.runner.changes.watch(connection_of(request.session), params.uri)
        return EmptyResult()

    async def unsubscribe(self, request: Request, params: UnsubscribeRequestParams) -> EmptyResult:
        self._requests.runner.changes.unwatch(connection_of(request.session), params.uri)
        return EmptyResult()


def _content(uri: str, read: ReadResourceContents) -> Content:
    if isinstance(read.content, bytes):
        blob = base64.b64encode(read.content).decode()
        return BlobResourceContents(uri=uri, blob=blob, mime_type=read.mime_type)
    return TextResourceContents(uri=uri, text=read.content, mime_type=read.mime_type)


def _failure(uri: str, error: ResourceError, *, reached: bool) -> MCPError:
    cause = error.__cause__
    if isinstance(error, UnexpectedResourceError) and isinstance(cause, Exception):
        if isinstance(cause, ValidationError) and not reached:
            return _unknown(uri, f" {problems_of(cause)}.")
        return MCPError(INTERNAL_ERROR, f"{error}: {text_of(cause)}", {"uri": uri})
    if isinstance(error, ResourceNotFoundError):
        return _unknown(uri) if not reached else MCPError(INVALID_PARAMS, str(error), {"uri": uri})
    return MCPError(INTERNAL_ERROR, str(error), {"uri": uri})


def _unknown(uri: str, why: str = "") -> MCPError:
    listed = "resources/list and resources/templates/list name those that there are."
    return MCPError(INVALID_PARAMS, f"Unknown resource: {uri}.{why or ' ' + listed}", {"uri": uri})
