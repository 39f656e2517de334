"""MCPApp: functions as tools, resources and prompts of an MCP server (sections 4.3 and 4.6)."""

from __future__ import annotations

import copy
import functools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, overload

from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from agentdouble import guard, serving
from agentdouble.apps.mcp.hosting import HostedTools, Runner
from agentdouble.apps.mcp.tools import Tool, make_agent_tool, make_tool, names_at
from agentdouble.errors import DecorationError
from agentdouble.imports import import_now
from agentdouble.mcp_hosting import render_refusal
from agentdouble.shutdown import ShutdownMiddleware

if TYPE_CHECKING:
    from mcp.server import Server

    from agentdouble.apps.mcp.features import Features
    from agentdouble.apps.mcp.offers import Offers
    from agentdouble.apps.mcp.requests import Requests

PATH = "/mcp"

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


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
    a call. ``instructions`` explain the tools to a client's model; ``version`` is told to clients.
    Both eras of the protocol are supported. Functions may block: sync ones run in threads, async
    ones on a separate event loop.
    """

    def __init__(
        self, name: str = "mcp", *, instructions: str | None = None, version: str = "1.0.0"
    ) -> None:
        self.name = name
        self.version = version
        self.instructions = instructions
        self._tools: dict[str, Tool] = {}
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

    def again(self) -> MCPApp:
        """Return an application with the same functions, to be served beside this one."""
        other = copy.copy(self)
        for made in ("server", "_features", "_requests"):
            vars(other).pop(made, None)
        other._host()
        return other

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
            self._add(make_tool(registered, names, name=name, description=description), "tool")
            return registered

        return register if function is None else register(function)

    def agent_as_a_tool(self, function: AnyFunction) -> AnyFunction:
        """Register an agent, ``async def f(prompt: str) -> str``, as a tool (MCP-06).

        Its docstring becomes the description. Raises DecorationError for any other function.
        """
        self._add(make_agent_tool(function, names_at(1)), "agent_as_a_tool")
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
        DecorationError, also for a second resource with the same address.
        """
        names, offers = names_at(1), self._offers
        offers.check_address(uri)
        shown = {"name": name, "title": title, "description": description, "mime_type": mime_type}

        def register(registered: AnyFunction) -> AnyFunction:
            offers.add_resource(uri, registered, names, **shown)
            self._grow()
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
        DecorationError, also for a second prompt with the same name.
        """
        names = names_at(1)
        shown = {"name": name, "title": title, "description": description}

        def register(registered: AnyFunction) -> AnyFunction:
            self._offers.add_prompt(registered, names, **shown)
            self._grow()
            return registered

        return register if function is None else register(function)

    def completion(self, function: AnyFunction) -> AnyFunction:
        """Register the function that completes arguments of prompts and resource templates.

        ``def complete(ref, argument, context)`` gets the SDK's values and returns a Completion, a
        list of strings or None. Raises DecorationError for a second one.
        """
        self._offers.set_completion(function, names_at(1))
        self._grow()
        return function

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by their names."""
        return MappingProxyType(self._tools)

    @functools.cached_property
    def server(self) -> Server[Any]:
        """The low-level server of the MCP SDK; the first access imports the SDK."""
        import_now("agentdouble.apps.mcp.server")
        from agentdouble.apps.mcp.server import make_server

        made: Server[Any] = make_server(
            self.name,
            self._tools,
            self._alone,
            lambda: self._requests,
            self.instructions,
            self.version,
        )
        if self._has_features:
            self._features.install(made)
        return made

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
        listener = serving.open_socket(host, port)
        print(f"{self.name} answers at {serving.address_of(listener)}{PATH}", flush=True)  # noqa: T201
        policy = guard.Policy(hosts=None, render=_render)
        guarded = guard.Guard(ShutdownMiddleware(self, policy.render), policy)
        serving.serve(guarded, listener, lambda: None, stopping=self._hosted.begin_shutdown)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Answer requests inside."""
        async with self._hosted.running():
            yield

    def begin_shutdown(self) -> None:
        """End the streams that only listen, when the server of this application stops."""
        self._hosted.begin_shutdown()

    @property
    def _has_features(self) -> bool:
        """Whether the application uses more than tools; those alone change nothing for clients."""
        return "_offers" in vars(self) or any(tool.asks for tool in self._tools.values())

    @functools.cached_property
    def _offers(self) -> Offers:
        import_now("agentdouble.apps.mcp.offers")
        from agentdouble.apps.mcp.offers import Offers

        return Offers(self.name)

    @functools.cached_property
    def _requests(self) -> Requests:
        import_now("agentdouble.apps.mcp.requests")
        from agentdouble.apps.mcp.requests import Requests

        return Requests(self.name, self._offers, self._alone)

    @functools.cached_property
    def _features(self) -> Features:
        import_now("agentdouble.apps.mcp.features")
        from agentdouble.apps.mcp.features import Features

        return Features(self.name, self._offers, self._requests)

    def _grow(self) -> None:
        """Let a server that has been made already answer what the application uses by now."""
        if "server" in vars(self) and self._has_features:
            self._features.install(self.server)

    def _add(self, tool: Tool, decorator: str) -> None:
        if tool.name in self._tools:
            raise DecorationError(
                f"{self.name} has a tool {tool.name!r} already; give this one another name.",
                decorator=decorator,
            )
        self._tools[tool.name] = tool
        self._grow()

    async def _not_found(self, _request: Request, _error: Exception) -> Response:
        message = f"{self.name} is an MCP application and answers at {PATH}."
        return JSONResponse({"error": {"message": message, "type": "NotFound"}}, 404)


def _render(_connection: HTTPConnection, refusal: guard.Refusal) -> Response:
    return render_refusal(refusal)
