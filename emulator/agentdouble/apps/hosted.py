"""The applications that a double hosts, and the shipped ones, which are used if none is given."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agentdouble.agents.directory import AgentsDirectory
from agentdouble.agents.shipped.coder import answer, root_agent
from agentdouble.apps import mcp, simple
from agentdouble.apps.a2a import paths
from agentdouble.apps.a2a.application import A2AApp
from agentdouble.apps.loading import App
from agentdouble.apps.mcp import MCPApp
from agentdouble.apps.simple import SimpleApp
from agentdouble.core.clock import Clock
from agentdouble.errors import ApplicationLoadError
from agentdouble.openapi import Operation
from agentdouble.openapi.operation import described
from agentdouble.state import Store

_CODER = "coder"


class ApplicationHost:
    """The simple and MCP applications: the first of each kind at the root, others below /runtimes.

    If none of a kind is given, the shipped coder answers. Raises ApplicationLoadError for two
    applications with the same name.
    """

    def __init__(self, *apps: App) -> None:
        _check_names(apps)
        self._simple = tuple(app for app in apps if isinstance(app, SimpleApp)) or (coder_app(),)
        self._mcp = tuple(app for app in apps if isinstance(app, MCPApp)) or (coder_mcp_app(),)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the applications; the one at ``/invoke`` comes first."""
        return tuple(dict.fromkeys(app.name for app in self._all))

    @property
    def addresses(self) -> Mapping[str, str]:
        """The paths at which the applications answer, each with the application's name."""
        (first, *simple_further), (mcp_first, *mcp_further) = self._simple, self._mcp
        return {
            "/invoke": first.name,
            mcp.PATH: mcp_first.name,
            **{f"{_base_path(app)}/invoke": app.name for app in simple_further},
            **{f"{_base_path(app)}{mcp.PATH}": app.name for app in mcp_further},
        }

    @property
    def root(self) -> ASGIApp:
        """The simple application at the root."""
        return self._simple[0]

    def routes(self) -> list[BaseRoute]:
        """Return the routes of the applications."""
        further: tuple[App, ...] = (*self._simple[1:], *self._mcp[1:])
        return [
            Route(mcp.PATH, self._mcp[0].endpoint),
            *(Route(path, self._simple[0]) for path in simple.PATHS),
            *(Mount(_base_path(app), app) for app in further),
        ]

    @asynccontextmanager
    async def running(self, clock: Clock) -> AsyncIterator[None]:
        """Run the applications in this context, with this clock."""
        async with AsyncExitStack() as stack:
            for app in self._all:
                if isinstance(app, SimpleApp):
                    app.clock = clock
                await stack.enter_async_context(app.lifespan())
            yield

    def begin_shutdown(self) -> None:
        """End the streams that only listen, because they would never end by themselves."""
        for app in self._mcp:
            app.begin_shutdown()

    @property
    def _all(self) -> tuple[App, ...]:
        return (*self._simple, *self._mcp)


class A2AApplications:
    """The A2A applications: the first at the root, others below ``/runtimes/<name>``.

    If none is given, the shipped coder answers.
    """

    def __init__(self, apps: Iterable[object]) -> None:
        chosen = tuple(app for app in apps if isinstance(app, A2AApp))
        self._apps = chosen or (A2AApp(_CODER, runner=root_agent),)

    @property
    def addresses(self) -> Mapping[str, str]:
        """The paths at which the applications answer, each with the application's name."""
        first, *further = self._apps
        return {"/": first.name, **{_base_path(app): app.name for app in further}}

    @property
    def root(self) -> A2AApp:
        """The application at the root, which answers requests to ``/``."""
        return self._apps[0]

    def routes(self) -> list[BaseRoute]:
        """Return the routes of the applications, except ``POST /``."""
        first, *further = self._apps
        return [
            *(Route(pattern, first) for pattern in paths.PATTERNS),
            *(Route(_base_path(app), _AtPath(app)) for app in further),
            *(Mount(_base_path(app), app) for app in further),
        ]

    @asynccontextmanager
    async def running(
        self, clock: Clock, state: Store, directory: AgentsDirectory
    ) -> AsyncIterator[None]:
        """Run the applications in this context, with the double's clock, state and agents."""
        async with AsyncExitStack() as stack:
            for app in self._apps:
                app.clock, app.directory = clock, directory
                app.state = state if state.outlives else None
                await stack.enter_async_context(app.lifespan())
            yield

    async def reset(self) -> None:
        """End every turn and forget every task."""
        for app in self._apps:
            await app.reset()


@described({"POST": Operation(body=dict[str, Any] | list[Any])})
class _AtPath:
    """Send a message of A2A over JSON-RPC, at a path that does not end with a slash."""

    def __init__(self, app: A2AApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        root = scope.get("root_path", "") + _base_path(self._app)
        await self._app({**scope, "root_path": root}, receive, send)


def _base_path(app: App) -> str:
    return f"/runtimes/{app.name}"


def _check_names(apps: Sequence[App]) -> None:
    names = [app.name for app in apps]
    if len(set(names)) == len(names):
        return
    for index, app in enumerate(apps):
        if any(app is earlier for earlier in apps[:index]):
            raise ApplicationLoadError(
                f"The application {app.name!r} is listed twice, perhaps under another name. "
                "List it once.",
                spec=app.name,
            )
    several = ", ".join(repr(name) for name in dict.fromkeys(names) if names.count(name) > 1)
    raise ApplicationLoadError(
        f"Application names must be unique, but several are called {several}. "
        "Rename one with NAME=MODULE:APP, or in its code.",
        spec=", ".join(names),
    )


def coder_app() -> SimpleApp:
    """Return the coder as a simple application, which runs the code in ``prompt``."""
    app = SimpleApp(_CODER)

    @app.entrypoint
    async def run(payload: Mapping[str, Any], headers: Mapping[str, str]) -> str:
        prompt = payload.get("prompt")
        if not isinstance(prompt, str):
            return "Error: Missing required field 'prompt', a string."
        return await answer(prompt)

    return app


def coder_mcp_app() -> MCPApp:
    """Return an MCP application with the coder as its tool."""
    app = MCPApp(_CODER)

    @app.agent_as_a_tool
    async def coder(prompt: str) -> str:
        """Run the code in the prompt and return its results as Markdown.

        The prompt is code, or text with fenced code blocks, in Python, JavaScript, TypeScript or
        bash. State is kept from call to call.
        """
        return await answer(prompt)

    return app
