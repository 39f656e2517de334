"""A definition as a low-level MCP server: its operations are the tools."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    Tool,
    ToolAnnotations,
)

from agentdouble.core.suggestions import did_you_mean
from agentdouble.core.threads import run_in_thread
from agentdouble.core.urls import is_https
from agentdouble.errors import DefinitionError, ToolCallError
from agentdouble.mcp_services.backend_credentials import Auth
from agentdouble.mcp_services.openapi import http_client, requests, security
from agentdouble.mcp_services.openapi.definition import ApiDefinition, DefinedOperation, address_of
from agentdouble.mcp_services.openapi.http_client import ApiBackend

LARGEST_PAGE = 512 * 1024  # bytes of JSON, unless one tool alone has more


def pages_of(tools: list[Tool]) -> list[ListToolsResult]:
    """Return a list of tools in pages that clients accept; a page's cursor is its number."""
    pages: list[list[Tool]] = [[]]
    size = 0
    for tool in tools:
        length = len(json.dumps(tool.model_dump(by_alias=True, exclude_none=True), default=str))
        if pages[-1] and size + length > LARGEST_PAGE:
            pages.append([])
            size = 0
        pages[-1].append(tool)
        size += length
    last = len(pages) - 1
    return [
        ListToolsResult(tools=page, next_cursor=None if number == last else str(number + 1))
        for number, page in enumerate(pages)
    ]


_log = logging.getLogger("agentdouble.mcp_services")


def server(
    definition: ApiDefinition,
    *,
    base_url: str | None = None,
    auth: Auth | None = None,
    timeout_s: float = 30.0,
) -> Server[ApiBackend]:
    """Return a low-level MCP server whose tools call the API that a definition describes.

    ``base_url`` replaces every address in the definition, and ``auth`` is sent with each request.
    Of a caller's request, only the arguments reach the API. Raises DefinitionError if the
    definition does not say where the API is, or how the key is sent. The connections to the API
    belong to the server's lifespan.
    """
    tools = _Tools(definition, base_url, auth, timeout_s)
    return Server(
        definition.title or "openapi",
        version=definition.version,
        instructions=definition.description or None,
        lifespan=tools.lifespan,
        get_tool_input_schema=tools.input_schema,
        on_list_tools=tools.list,
        on_call_tool=tools.call,
    )


class _Tools:
    """The tools of one server."""

    def __init__(
        self,
        definition: ApiDefinition,
        base_url: str | None,
        auth: Auth | None,
        timeout_s: float,
    ) -> None:
        self._operations = {operation.name: operation for operation in definition.operations}
        self._addresses = {
            operation.name: address_of(definition, operation, base_url)
            for operation in definition.operations
        }
        self._credentials = security.credentials(definition, auth)
        self._timeout_s = timeout_s
        self._pages: list[ListToolsResult] = []

    @asynccontextmanager
    async def lifespan(self, _server: Server[Any]) -> AsyncIterator[ApiBackend]:
        encrypted = any(map(is_https, self._addresses.values()))
        backend = ApiBackend(timeout_s=self._timeout_s, verify=encrypted)
        try:
            yield backend
        finally:
            await backend.aclose()

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        operation = self._operations.get(name)
        return operation.input_schema if operation else None

    async def list(
        self,
        _context: ServerRequestContext[ApiBackend],
        params: PaginatedRequestParams | None,
    ) -> ListToolsResult:
        if not self._pages:
            tools = map(_tool, self._operations.values())
            self._pages = await run_in_thread(lambda: pages_of([*tools]))
        cursor = (params.cursor if params else None) or "0"
        for number, page in enumerate(self._pages):
            if str(number) == cursor:
                return page
        raise MCPError(INVALID_PARAMS, f"The list of tools has no page at {cursor[:80]!r}.")

    async def call(
        self, context: ServerRequestContext[ApiBackend], params: CallToolRequestParams
    ) -> CallToolResult:
        try:
            return await self._called(context.lifespan_context, params)
        except (ToolCallError, DefinitionError) as error:
            return http_client.error(str(error))
        except Exception as error:
            # Its text may have the API's address or a secret in it.
            _log.error("The tool %r failed: %s", params.name, type(error).__name__)
            return http_client.error(f"The tool {params.name!r} failed ({type(error).__name__}).")

    async def _called(self, backend: ApiBackend, params: CallToolRequestParams) -> CallToolResult:
        operation = self._operations.get(params.name)
        if operation is None:
            near = did_you_mean(params.name, self._operations)
            raise ToolCallError(f"There is no tool {params.name!r}.{near}")
        arguments = params.arguments or {}
        _check(operation, arguments)
        request = requests.build(operation, arguments, self._addresses[operation.name])
        credential = self._credentials[operation.name]
        answer = await backend.send(request, credential)
        return http_client.result(answer, credential.secrets, operation.name)


def _check(operation: DefinedOperation, arguments: Mapping[str, Any]) -> None:
    """Raise ToolCallError with the arguments that are missing or unknown; the API checks values.

    Schemas of other people are not evaluated: they can be made to take any time.
    """
    schema = operation.input_schema
    properties = schema["properties"]
    unknown = [name for name in arguments if name not in properties]
    missing = [repr(name) for name in schema.get("required", ()) if name not in arguments]
    problems = [f"{name} is required" for name in missing]
    problems += [f"{name!r:.100} is not an argument" for name in unknown]
    if problems:
        near = did_you_mean(unknown[0], properties) if unknown else ""
        raise ToolCallError(f"The arguments are wrong: {'; '.join(problems[:5])}.{near}")


def _tool(operation: DefinedOperation) -> Tool:
    return Tool(
        name=operation.name,
        title=operation.title,
        description=operation.description,
        input_schema=operation.input_schema,
        annotations=ToolAnnotations(
            read_only_hint=operation.method in ("GET", "HEAD", "OPTIONS", "TRACE"),
            destructive_hint=operation.method in ("DELETE", "PUT", "PATCH"),
            idempotent_hint=operation.method != "POST" and operation.method != "PATCH",
            open_world_hint=True,
        ),
    )
