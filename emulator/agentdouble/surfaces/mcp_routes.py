"""``/_emulator/mcp-services``: create MCP services and call their tools, without a key.

Beside the routes of ``resource_routes``:

======================================= ========================================================
``GET  /mcp-services/{name}/access``    the access record of section 2.5, with the key:
                                        ``{"mcpServers": {name: {"httpUrl", "headers"}}}``
``GET  /mcp-services/{name}/tools``     ``{"tools": [...]}``, each as MCP's ``tools/list`` has it
``POST /mcp-services/{name}/call``      ``{"tool", "arguments"?: {}}``; ``{"result": {...}}``, the
                                        result of MCP's ``tools/call``, also if ``isError``
``GET  /mcp-services/{name}/logs``      what its command has printed, as ``/runtimes/{name}/logs``
======================================= ========================================================

A service that does not answer is 502. ``POST /mcp-services`` takes a body of CreateMCPService, or
in its place ``Name`` and what stands behind: ``Url``; ``Definition``, the text of a Swagger or
OpenAPI definition, if need be with the ``Url`` of its API; or ``Command``, a list of words, with
``Directory`` and ``Env``.
"""

from __future__ import annotations

import json
from collections.abc import Coroutine
from typing import Any, TypeVar
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import NotRequired, TypedDict

from agentdouble.disconnects import cancel_on_disconnect
from agentdouble.errors import ServiceUnansweredError
from agentdouble.mcp_services.service import AccessRecord, access_record
from agentdouble.openapi import operation
from agentdouble.surfaces.admin import RefusedError
from agentdouble.surfaces.own_requests import as_refusals, json_object
from agentdouble.surfaces.resource_routes import Body, ResourceRoutes
from agentdouble.threads import import_in_thread, run_in_thread

T = TypeVar("T")

_CALLING = "agentdouble.mcp_services.calling"
_BEHIND = ("Url", "Definition", "Command", "Directory", "Env")


class NewService(TypedDict, total=False):
    """An MCP service: its name, what stands behind it, and other fields of CreateMCPService."""

    Name: str
    Url: str
    Definition: str
    Command: list[str]
    Directory: str
    Env: dict[str, str]


class Record(TypedDict):
    """An access record: the servers by their names, each with ``httpUrl`` and ``headers``."""

    mcpServers: dict[str, dict[str, Any]]


class ToolList(TypedDict):
    """The tools of a service, as MCP describes them."""

    tools: list[dict[str, Any]]


class ToolCall(TypedDict):
    """A call of a tool."""

    tool: str
    arguments: NotRequired[dict[str, Any]]


class ToolResult(TypedDict):
    """The result of a tool, as MCP describes it."""

    result: dict[str, Any]


class AccessRoutes:
    """The routes of services in addition to those of any resource.

    ``url`` is the double's, for access records.
    """

    def __init__(self, resources: ResourceRoutes, url: str) -> None:
        self._resources = resources
        self._url = url

    def routes(self) -> list[Route]:
        """Return the routes; they raise RefusedError."""
        one = f"{self._resources.path}/{{name}}"
        return [
            *self._resources.routes(),
            Route(f"{one}/access", self.access),
            Route(f"{one}/tools", self.tools),
            Route(f"{one}/call", self.call, methods=["POST"]),
        ]

    @operation(Record, errors=(404,))
    async def access(self, request: Request) -> Response:
        """Return the access record of section 2.5, with the key."""
        record = self._record(request)
        return JSONResponse(record, headers={"Cache-Control": "no-store"})

    @operation(ToolList, errors=(404, 502))
    async def tools(self, request: Request) -> Response:
        """Return the tools, asked of the service itself."""
        record = self._record(request)
        await request.body()
        await import_in_thread(_CALLING)
        from agentdouble.mcp_services.calling import list_tools

        tools = await _answered(request, list_tools(record))
        listed = await run_in_thread(lambda: ",".join(json.dumps(_dumped(tool)) for tool in tools))
        return Response(f'{{"tools":[{listed}]}}', media_type="application/json")

    @operation(ToolResult, body=ToolCall, errors=(404, 502))
    async def call(self, request: Request) -> Response:
        """Call a tool of the service itself; a client that disconnects cancels the call."""
        record = self._record(request)
        asked = await json_object(await request.body(), ToolCall.__annotations__)
        tool, arguments = asked.get("tool"), asked.get("arguments", {})
        if not isinstance(tool, str) or not isinstance(arguments, dict):
            message = 'The body must be {"tool": NAME, "arguments": {...}}.'
            raise RefusedError(400, "BadRequest", message)
        await import_in_thread(_CALLING)
        from agentdouble.mcp_services.calling import call_tool

        result = await _answered(request, call_tool(record, tool, arguments))
        return JSONResponse({"result": _dumped(result)})

    def _record(self, request: Request) -> AccessRecord:
        with as_refusals():
            return access_record(self._resources.find(request), self._url)


async def _answered(request: Request, asked: Coroutine[Any, Any, T]) -> T:
    """Return what a service answers; raise RefusedError if it refuses or does not answer."""
    from mcp.shared.exceptions import MCPError

    try:
        return await cancel_on_disconnect(request.receive, asked)
    except ServiceUnansweredError as error:
        raise RefusedError(502, "ServiceUnanswered", str(error)) from error
    except MCPError as error:
        raise RefusedError(400, "McpError", str(error)) from error


def _dumped(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return found


def service_body(body: Body) -> Body:
    """Return the body of CreateMCPService for a service with a Url, a Definition or a Command."""
    rest = {name: value for name, value in body.items() if name not in _BEHIND}
    if "Command" in body:
        return {**_command(body), **rest}
    place = _place(body["Url"]) if "Url" in body else {"Path": "/"}
    if "Definition" in body:
        api = {"Configuration": body["Definition"], "Type": "Swagger"}
        definition = {"ProtocolConfiguration": {"HttpApiConfiguration": api}}
        return {"ProtocolType": "HTTP", "BackendType": "Custom", **definition, **place, **rest}
    return (
        {"ProtocolType": "MCP", "BackendType": "Custom", **place, **rest} if "Url" in body else body
    )


def _command(body: Body) -> dict[str, Any]:
    words = body["Command"]
    if not isinstance(words, list) or not words:
        raise RefusedError(400, "BadRequest", "Command must be a list of words, the program first.")
    server = {"command": words[0], "args": words[1:], "env": body.get("Env", {})}
    where = {"cwd": body["Directory"]} if "Directory" in body else {}
    package = {"McpType": "stdio", "RawConfig": json.dumps({**server, **where})}
    return {
        "Path": "/",
        "ProtocolType": "MCP",
        "BackendType": "CustomMcp",
        "BackendConfiguration": {"CustomMcpConfiguration": {"PublicPackage": package}},
    }


def _place(url: Any) -> dict[str, Any]:
    """Return the fields with the address of a backend; raise RefusedError."""
    from agentdouble.control_plane.mcp_backends import custom_configuration

    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        if parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc:
            configuration, path = custom_configuration(url)
            return {"BackendConfiguration": configuration, "Path": path}
    except ValueError:  # its port is none
        pass
    message = "Url must be an address such as http://HOST:PORT/mcp, without user and password."
    raise RefusedError(400, "BadRequest", message)
