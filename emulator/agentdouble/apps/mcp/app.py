"""MCPApp: functions as tools, resources and prompts of an MCP server (sections 4.3 and 4.6)."""

from __future__ import annotations

import copy
import functools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar, overload

from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from agentdouble.apps import contract
from agentdouble.apps.contract import Offered, names_at
from agentdouble.core.imports import import_now
from agentdouble.errors import DecorationError
from agentdouble.journal.failures import ServerErrorMiddleware
from agentdouble.mcp_hosting import render_refusal
from agentdouble.server import guard
from agentdouble.server.sockets import address_of, open_socket
from agentdouble.server.starting import serve

if TYPE_CHECKING:
    from mcp.server import Server

    from agentdouble.apps.mcp.sdk_server import AppServer
from agentdouble.apps.mcp.hosting import HostedTools, Runner

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])

PATH = "/mcp"


class MCPApp:
    """An MCP application: an ASGI application that answers at ``/mcp``, on any server.

    A function that is decorated may ask for the context of the request, by a parameter annotated
    with ``agentdouble.Context`` or with the SDK's::

        @app.tool
        async def count(words: list[str], ctx: Context) -> int:
            await ctx.report_progress(1, 2, "counted")
            return len(words)

    ``name`` is the application's name in the protocol, and the agent's name in the sandbox session
    ids of run_code; the rest of such an id comes from the headers ``user_id`` and ``session_id`` of
    a call. ``instructions`` explain the tools to a client's model; ``version`` is reported to
    clients. Both eras of the protocol are supported. Functions may block: sync ones run in threads,
    async ones on a separate event loop.
    """

    def __init__(
        self, name: str = "mcp", *, instructions: str | None = None, version: str = "1.0.0"
    ) -> None:
        self.name = name
        self.version = version
        self.instructions = instructions
        self._offered: dict[tuple[str, str], Offered] = {}
        self._host()

    def _host(self) -> None:
        self._alone = Runner()
        self._hosted = self.hosted()
        self._app = Starlette(
            routes=[Route(PATH, self._hosted)],
            exception_handlers={404: self._not_found},
            lifespan=lambda _app: self.lifespan(),
        )
        self._app.router.redirect_slashes = False

    def clone(self) -> MCPApp:
        """Return an application with the same functions, to be served beside this one."""
        clone = copy.copy(self)
        vars(clone).pop("_sdk", None)
        clone._host()
        return clone

    @property
    def routes(self) -> list[BaseRoute]:
        """The route of the endpoint."""
        return self._app.routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    @overload
    def tool(self, function: AnyFunction) -> AnyFunction: ...

    @overload
    def tool(
        self, *, name: str | None = None, description: str | None = None
    ) -> Callable[[AnyFunction], AnyFunction]: ...

    def tool(
        self,
        function: Any = None,
        *,
        name: str | None = None,
        description: str | None = None,
    ) -> Any:
        """Register a function, sync or async, as a tool: ``@app.tool`` or ``@app.tool(...)``.

        The types of its parameters become the tool's schema, its docstring the description, and a
        returned dict becomes structured content (MCP-03 to MCP-05). An exception becomes a tool
        error with the exception's text. Raises DecorationError for a parameter without an
        annotation, and for a second tool with the same name (DEC-04).
        """
        names = names_at(1)

        def register(registered: AnyFunction) -> AnyFunction:
            self._add(contract.tool(registered, names, name, description))
            return registered

        return register if function is None else register(function)

    def agent_as_a_tool(self, function: AnyFunction) -> AnyFunction:
        """Register an agent, ``async def f(prompt: str) -> str``, as a tool (MCP-06).

        Its docstring becomes the description. Raises DecorationError for any other function.
        """
        # its signature is known, so the SDK need not check it now
        self._add(contract.agent(function, names_at(1)), now=False)
        return function

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
    ) -> Callable[[AnyFunction], AnyFunction]:
        """Register a function as a resource: ``@app.resource("notes://{name}")``.

        The variables of an address that is a template (RFC 6570) are the function's parameters. A
        string is sent as text, bytes as binary content, anything else as JSON. Raises
        DecorationError, including for a second resource with the same address.
        """
        names = names_at(1)
        contract.check_address(uri)
        texts = {"title": title, "description": description, "mime_type": mime_type}

        def register(registered: AnyFunction) -> AnyFunction:
            self._add(
                contract.offered("resource", uri, registered, names, shown_name=name, **texts)
            )
            return registered

        return register

    @overload
    def prompt(self, function: AnyFunction) -> AnyFunction: ...

    @overload
    def prompt(
        self,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
    ) -> Callable[[AnyFunction], AnyFunction]: ...

    def prompt(
        self,
        function: Any = None,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
    ) -> Any:
        """Register a function as a prompt: ``@app.prompt`` or ``@app.prompt(...)``.

        It returns a string, content or a message of the SDK, or a list of these. Raises
        DecorationError, including for a second prompt with the same name.
        """
        names = names_at(1)
        texts = {"shown_name": name, "title": title, "description": description}

        def register(registered: AnyFunction) -> AnyFunction:
            self._add(contract.offered("prompt", name, registered, names, **texts))
            return registered

        return register if function is None else register(function)

    def completion(self, function: AnyFunction) -> AnyFunction:
        """Register the function that completes arguments of prompts and resource templates.

        ``def complete(ref, argument, context)`` gets the SDK's values and returns a Completion, a
        list of strings or None. Raises DecorationError for a second one.
        """
        names = names_at(1)
        self._add(
            contract.offered("completion", "for arguments", function, names, description=None)
        )
        return function

    @property
    def tools(self) -> Mapping[str, Callable[..., Any]]:
        """The functions of the tools by their names."""
        return {
            name: offered.function
            for (kind, name), offered in self._offered.items()
            if kind == "tool"
        }

    @property
    def server(self) -> Server[Any]:
        """The low-level server of the MCP SDK; the first access imports the SDK."""
        return self._sdk.low_level

    @functools.cached_property
    def _sdk(self) -> AppServer:
        import_now("agentdouble.apps.mcp.sdk_server")
        from agentdouble.apps.mcp.sdk_server import AppServer  # slow: the MCP SDK, 1 s

        server = AppServer(self.name, self.instructions, self.version, self._alone)
        for offered in self._offered.values():
            server.offer(offered)
        return server

    @property
    def endpoint(self) -> HostedTools:
        """The application that answers at ``/mcp``; it can be mounted at any path."""
        return self._hosted

    def hosted(self) -> HostedTools:
        """Return the tools as an ASGI application that answers requests inside ``running()``."""
        return HostedTools(lambda: self.server)

    def run(self, host: str = "0.0.0.0", port: int = 8000) -> None:  # noqa: S104 (specified)
        """Serve the application until SIGINT or SIGTERM, by default at 0.0.0.0:8000.

        Raises AddressInUseError if the port is taken.
        """
        listener = open_socket(host, port)
        print(f"{self.name} answers at {address_of(listener)}{PATH}", flush=True)  # noqa: T201
        policy = guard.Policy(hosts=None, render=_render)
        guarded = guard.GuardMiddleware(ServerErrorMiddleware(self, policy.render), policy)
        serve(guarded, listener, lambda: None, stopping=self._hosted.begin_shutdown)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Answer requests inside."""
        async with self._hosted.running():
            yield

    def begin_shutdown(self) -> None:
        """End the streams that only listen, when the server of this application stops."""
        self._hosted.begin_shutdown()

    def _add(self, offered: Offered, *, now: bool = True) -> None:
        key = offered.kind, offered.name
        if key in self._offered:
            raise DecorationError(
                f"{self.name} already has a {offered.kind} {offered.name!r}; use another name.",
                decorator=offered.kind,
            )
        if now or "_sdk" in vars(self):
            self._sdk.offer(offered)
        self._offered[key] = offered

    async def _not_found(self, _request: Request, _error: Exception) -> Response:
        message = f"{self.name} is an MCP application and answers at {PATH}."
        return JSONResponse({"error": {"message": message, "type": "NotFound"}}, 404)


def _render(_connection: HTTPConnection, refusal: guard.Refusal) -> Response:
    return render_refusal(refusal)
