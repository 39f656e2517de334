"""A definition as a low-level MCP server: its operations are the tools."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

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
from pydantic import BaseModel

from agentdouble.errors import DefinitionError, ToolCallError
from agentdouble.mcp_services.authentication import Auth, credential
from agentdouble.mcp_services.openapi import client, requests
from agentdouble.mcp_services.openapi.client import Backend
from agentdouble.mcp_services.openapi.definition import Addresses, Definition, Operation
from agentdouble.threads import run_in_thread

LARGEST_PAGE = 512 * 1024  # bytes of JSON, unless one item alone has more

Item = TypeVar("Item", bound=BaseModel)
Result = TypeVar("Result", bound=BaseModel)


class Pages(Generic[Result]):
    """The pages of a list, by their cursors; ``of`` says in errors what is listed."""

    def __init__(
        self, of: str, items: Sequence[Item], make: Callable[[list[Item], str | None], Result]
    ) -> None:
        self._of = of
        starts = list(_starts(items))
        ends = [*starts[1:], (None, len(items))]
        self._pages = {
            cursor: make(list(items[start:end]), following)
            for (cursor, start), (following, end) in zip(starts, ends, strict=True)
        }

    def __len__(self) -> int:
        return len(self._pages)

    def __contains__(self, cursor: object) -> bool:
        return cursor in self._pages

    def page(self, params: PaginatedRequestParams | None) -> Result:
        """Return the page at a request's cursor; raise MCPError if it is not a cursor of these."""
        cursor = params.cursor if params else None
        found = self._pages.get(cursor)
        if found is None:
            raise MCPError(
                INVALID_PARAMS,
                f"The list of {self._of} has no page at the cursor {str(cursor)[:80]!r}, or has "
                "changed since: ask for it again without a cursor.",
            )
        return found


class ToolPages(Pages[ListToolsResult]):
    """The pages of a list of tools."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        super().__init__(
            "tools", tools, lambda page, cursor: ListToolsResult(tools=page, next_cursor=cursor)
        )


def _starts(items: Sequence[BaseModel]) -> Iterator[tuple[str | None, int]]:
    """Yield the cursor and the first index of each page."""
    yield None, 0
    digest, size = hashlib.sha256(), 1  # a bracket; what follows each item is a comma or the other
    for index, item in enumerate(items):
        data = _json(item) + b","
        if size > 1 and size + len(data) > LARGEST_PAGE:
            yield digest.hexdigest(), index
            size = 1
        digest.update(data)
        size += len(data)


def _json(item: BaseModel) -> bytes:
    """Return an item as JSON, also one with a lone surrogate, which pydantic refuses to encode."""
    value = item.model_dump(by_alias=True, exclude_none=True)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return text.encode("utf-8", "surrogatepass")


_log = logging.getLogger("agentdouble.mcp_services")


def server(
    definition: Definition,
    *,
    base_url: str | None = None,
    auth: Auth | None = None,
    timeout_s: float = 30.0,
) -> Server[Backend]:
    """Return a low-level MCP server whose tools call the API that a definition describes.

    ``base_url`` replaces every address in the definition, and ``auth`` is sent with each request.
    Of a caller's request, only the arguments reach the API. Raises DefinitionError if the definition
    does not say where the API is, or how the key is sent. The connections to the API belong to the server's lifespan.
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
        definition: Definition,
        base_url: str | None,
        auth: Auth | None,
        timeout_s: float,
    ) -> None:
        self._operations = {one.name: one for one in definition.operations}
        self._addresses = Addresses(definition, base_url)
        self._credential = credential(auth, definition.api_keys)
        self._timeout_s = timeout_s
        self._pages: ToolPages | None = None

    @asynccontextmanager
    async def lifespan(self, _server: Server[Any]) -> AsyncIterator[Backend]:
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
        params: PaginatedRequestParams | None,
    ) -> ListToolsResult:
        if self._pages is None:
            self._pages = await run_in_thread(
                lambda: ToolPages([_tool(one) for one in self._all()])
            )
        return self._pages.page(params)

    async def call(
        self, context: ServerRequestContext[Backend], params: CallToolRequestParams
    ) -> CallToolResult:
        try:
            return await self._called(context.lifespan_context, params)
        except (ToolCallError, DefinitionError) as error:
            return client.error(str(error))
        except Exception as error:
            # Its text may have the API's address or a secret in it.
            _log.error("The tool %r failed: %s", params.name, type(error).__name__)
            return client.error(f"The tool {params.name!r} failed ({type(error).__name__}).")

    async def _called(self, backend: Backend, params: CallToolRequestParams) -> CallToolResult:
        operation = self._operations.get(params.name)
        if operation is None:
            raise ToolCallError(f"There is no tool {params.name!r}.")
        arguments = params.arguments or {}
        _check(operation, arguments)
        request = requests.build(operation, arguments, self._addresses.of(operation))
        answer = await backend.send(request)
        return client.result(answer, self._credential.secrets, operation.name)


def _check(operation: Operation, arguments: Mapping[str, Any]) -> None:
    """Raise ToolCallError with the arguments that are missing or unknown; the API checks values.

    Schemas of other people are not evaluated: they can be made to take any time.
    """
    schema = operation.input_schema
    known = schema["properties"]
    unknown = [repr(name)[:100] for name in arguments if name not in known]
    missing = [repr(name) for name in schema.get("required", ()) if name not in arguments]
    problems = [f"{name} is required" for name in missing]
    problems += [f"{name} is not an argument" for name in unknown]
    if problems:
        raise ToolCallError(f"The arguments are wrong: {'; '.join(problems[:5])}.")


def _tool(operation: Operation) -> Tool:
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
