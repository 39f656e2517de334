"""MCPApp: functions and agents as tools of an MCP server (sections 4.3 and 4.6)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar, overload

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from agentdouble import guard, serving
from agentdouble.application_loop import ApplicationLoop, containing_exit
from agentdouble.apps.tools import Tool, make_agent_tool, make_tool, names_at
from agentdouble.errors import DecorationError
from agentdouble.imports import import_now
from agentdouble.mcp_hosting import OPERATIONS, Endpoint, render_refusal
from agentdouble.openapi.operation import described
from agentdouble.shutdown import ShutdownMiddleware

if TYPE_CHECKING:
    from mcp.server import Server

PATH = "/mcp"
THREADS = 64  # for an application's sync tools; further calls wait

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])

# An application may be hosted at several places, but has one SDK server for its tools. So each
# request carries the runner for the tools.
_runs_on: ContextVar[_Runner | None] = ContextVar("agentdouble_mcp_runner", default=None)


class MCPApp:
    """An MCP application: an ASGI application that answers at ``/mcp``, on any server.

    ``name`` is the application's name in the protocol, and the agent's name in the sandbox session
    ids of run_code; the rest of such an id comes from the headers ``user_id`` and ``session_id`` of
    a call. ``instructions`` explain the tools to a client's model. Both eras of the protocol are
    supported. Tools may block: sync tools run in threads, async tools on a separate event loop.
    """

    def __init__(self, name: str = "mcp", *, instructions: str | None = None) -> None:
        self.name = name
        self.instructions = instructions
        self._tools: dict[str, Tool] = {}
        self._hosted = self.hosted()
        self._app = Starlette(
            routes=[Route(PATH, self._hosted)],
            exception_handlers={404: self._not_found},
            lifespan=lambda _app: self.lifespan(),
        )
        self._app.router.redirect_slashes = False

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

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by their names."""
        return MappingProxyType(self._tools)

    @functools.cached_property
    def server(self) -> Server[Any]:
        """The low-level server of the MCP SDK; the first access imports the SDK."""
        import_now("agentdouble.apps.mcp_server")
        from agentdouble.apps.mcp_server import make_server

        made: Server[Any] = make_server(self.name, self._tools, _run, self.instructions)
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

    def _add(self, tool: Tool, decorator: str) -> None:
        if tool.name in self._tools:
            raise DecorationError(
                f"{self.name} has a tool {tool.name!r} already; give this one another name.",
                decorator=decorator,
            )
        self._tools[tool.name] = tool

    async def _not_found(self, _request: Request, _error: Exception) -> Response:
        message = f"{self.name} is an MCP application and answers at {PATH}."
        return JSONResponse({"error": {"message": message, "type": "NotFound"}}, 404)


@described(OPERATIONS)
class HostedTools:
    """An MCPApp at one place; the same MCPApp may be hosted at several."""

    def __init__(self, make_server: Callable[[], Server[Any]]) -> None:
        self._endpoint = Endpoint(make_server)
        self._runner: _Runner | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._runner is None:
            raise RuntimeError(
                "An MCPApp answers while its lifespan runs: let the server that hosts it speak the "
                "lifespan protocol, or enter 'async with app.lifespan()'."
            )
        token = _runs_on.set(self._runner)
        try:
            await self._endpoint(scope, receive, send)
        finally:
            _runs_on.reset(token)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests inside."""
        runner = _Runner()
        await runner.loop.start()
        try:
            async with self._endpoint.running():
                self._runner = runner
                yield
        finally:
            self._runner = None
            await runner.loop.stop()

    def begin_shutdown(self) -> None:
        """End the streams that only listen, because they would never end by themselves."""
        self._endpoint.begin_shutdown()


class _Runner:
    """Runs tools: async ones on a separate event loop, sync ones in threads."""

    def __init__(self) -> None:
        self.loop = ApplicationLoop()
        self._threads = anyio.CapacityLimiter(THREADS)

    async def run(self, tool: Tool, arguments: inspect.BoundArguments) -> Any:
        call = functools.partial(tool.function, *arguments.args, **arguments.kwargs)
        if tool.is_async:
            return await self.loop.run(call())
        # A thread cannot be cancelled: after a cancelled call, the tool keeps its thread until it
        # returns.
        value = await anyio.to_thread.run_sync(
            functools.partial(_contain_exit, call), abandon_on_cancel=True, limiter=self._threads
        )
        return await self.loop.run(value) if inspect.iscoroutine(value) else value


async def _run(tool: Tool, arguments: Mapping[str, Any]) -> Any:
    runner = _runs_on.get() or _Runner()  # without a host: on the caller's loop
    return await runner.run(tool, tool.arguments.read(arguments))


def _contain_exit(call: Callable[[], Any]) -> Any:
    with containing_exit():
        return call()


def _render(_connection: HTTPConnection, refusal: guard.Refusal) -> Response:
    return render_refusal(refusal)
