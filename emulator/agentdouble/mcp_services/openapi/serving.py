"""A definition as a low-level MCP server: its operations are the tools.

The SDK validates and dumps a list of tools again for each client that requests it, which for a
thousand tools takes longer than everything else. The tools of a definition do not change, so the
list is made once for each version of the protocol, in pages.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from agentdouble.errors import DefinitionError, ToolCallError
from agentdouble.imports import import_now
from agentdouble.mcp_services.openapi.authentication import Auth, credential
from agentdouble.mcp_services.openapi.definition import Definition, Operation
from agentdouble.threads import run_in_thread

if TYPE_CHECKING:
    import mcp.types
    from mcp.server import Server
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from agentdouble.mcp_hosting.pages import ToolPages
    from agentdouble.mcp_services.openapi.backend import Backend


_NEEDED = (
    "mcp.server",
    "mcp.types",
    "agentdouble.mcp_hosting.pages",
    *(
        f"agentdouble.mcp_services.openapi.{name}"
        for name in ("arguments", "backend", "requests", "tool_results")
    ),
)

_log = logging.getLogger("agentdouble.mcp_services")


def server(
    definition: Definition,
    *,
    base_url: str | None = None,
    auth: Auth | None = None,
    timeout_s: float = 30.0,
    variables: Mapping[str, str] | None = None,
) -> Server[Backend]:
    """Return a low-level MCP server whose tools call the API that a definition describes.

    ``base_url`` replaces every address in the definition, ``variables`` are values for the
    variables of its server, and ``auth`` is sent with each request. Of a caller's request, only the
    arguments reach the API. Raises DefinitionError if the definition does not say where the API is,
    or how the key is sent. The connections to the API belong to the server's lifespan.
    """
    import_now(*_NEEDED)
    from mcp.server import Server

    tools = _Tools(definition, base_url, auth, timeout_s, variables or {})
    made = Server(
        definition.title or "openapi",
        version=definition.version,
        instructions=definition.description or None,
        lifespan=tools.lifespan,
        get_tool_input_schema=tools.input_schema,
        on_list_tools=tools.list,
        on_call_tool=tools.call,
    )
    made.middleware.append(ListedOnce())
    return made


class _Tools:
    """The tools of one server."""

    def __init__(
        self,
        definition: Definition,
        base_url: str | None,
        auth: Auth | None,
        timeout_s: float,
        variables: Mapping[str, str],
    ) -> None:
        from agentdouble.mcp_services.openapi.arguments import Arguments
        from agentdouble.mcp_services.openapi.definition import Addresses

        self._operations = {one.name: one for one in definition.operations}
        self._addresses = Addresses(definition, base_url, variables)
        self._credential = credential(auth, definition)
        self._timeout_s = timeout_s
        self._arguments = Arguments()
        self._pages: ToolPages | None = None

    @asynccontextmanager
    async def lifespan(self, _server: Server[Any]) -> AsyncIterator[Backend]:
        from agentdouble.mcp_services.openapi.backend import Backend

        backend = Backend(
            self._credential,
            timeout_s=self._timeout_s,
            verify=any(self._addresses.of(one).startswith("https:") for one in self._all()),
        )
        try:
            yield backend
        finally:
            await backend.aclose()

    def _all(self) -> list[Operation]:
        return list(self._operations.values())

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        operation = self._operations.get(name)
        return operation.input_schema if operation else None

    async def list(
        self,
        _context: ServerRequestContext[Backend],
        params: mcp.types.PaginatedRequestParams | None,
    ) -> mcp.types.ListToolsResult:
        from agentdouble.mcp_hosting.pages import ToolPages

        if self._pages is None:
            self._pages = await run_in_thread(
                lambda: ToolPages([_tool(one) for one in self._all()])
            )
        return self._pages.page(params)

    async def call(
        self, context: ServerRequestContext[Backend], params: mcp.types.CallToolRequestParams
    ) -> mcp.types.CallToolResult:
        from agentdouble.mcp_services.openapi import tool_results

        try:
            return await self._called(context.lifespan_context, params)
        except (ToolCallError, DefinitionError) as error:
            return tool_results.error(str(error))
        except Exception as error:
            # Its text may have the API's address or a secret in it.
            _log.error("The tool %r failed: %s", params.name, type(error).__name__)
            return tool_results.error(f"The tool {params.name!r} failed ({type(error).__name__}).")

    async def _called(
        self, backend: Backend, params: mcp.types.CallToolRequestParams
    ) -> mcp.types.CallToolResult:
        from agentdouble.mcp_services.openapi import requests, tool_results

        operation = self._operations.get(params.name)
        if operation is None:
            raise ToolCallError(f"There is no tool {params.name!r}.")
        arguments = params.arguments or {}
        self._arguments.check(operation, arguments)
        request = requests.build(operation, arguments, self._addresses.of(operation))
        answer = await backend.send(request)
        return tool_results.result(answer, self._credential.secrets, operation.name)


def _tool(operation: Operation) -> mcp.types.Tool:
    from mcp.types import Tool, ToolAnnotations

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


class ListedOnce:
    """A middleware that caches the pages that the server's ``tools/list`` handler returns."""

    def __init__(self) -> None:
        self._answers: dict[tuple[str, str | None], dict[str, Any]] = {}

    async def __call__(self, ctx: ServerRequestContext[Any], call_next: CallNext) -> HandlerResult:
        """Answer from the cache; pass a request that could be refused to the server."""
        if ctx.method != "tools/list" or not _is_plain(ctx):
            return await call_next(ctx)
        asked = ctx.protocol_version, (ctx.params or {}).get("cursor")
        kept = self._answers.get(asked)
        if kept is not None:
            return kept
        answer = await call_next(ctx)
        if isinstance(answer, dict):
            self._answers[asked] = answer
        return answer


def _is_plain(context: ServerRequestContext[Any]) -> bool:
    """Return whether the request has at most a cursor, so that its answer can be cached."""
    params = context.params or {}
    return not params.keys() - {"_meta", "cursor"} and isinstance(
        params.get("cursor"), (str, type(None))
    )
