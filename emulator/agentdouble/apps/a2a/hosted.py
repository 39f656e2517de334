"""The A2A applications of a double, and where each of them answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Receive, Scope, Send

from agentdouble.agents.directory import AgentsDirectory
from agentdouble.agents.shipped.coder import root_agent as coder
from agentdouble.apps.a2a import paths
from agentdouble.apps.a2a.application import A2AApp
from agentdouble.apps.a2a.grpc_listener import GrpcBinding
from agentdouble.clock import Clock
from agentdouble.state import MemoryStore, Store

SHIPPED = "coder"


@dataclass(frozen=True)
class HostContext:
    """What a double gives the applications that it hosts."""

    clock: Clock
    state: Store
    directory: AgentsDirectory


class A2AApplications:
    """The first application at the root, further ones below ``/runtimes/<name>``.

    Where none is given the shipped coder answers.
    """

    def __init__(self, apps: Iterable[object]) -> None:
        given = tuple(app for app in apps if isinstance(app, A2AApp))
        self._apps = given or (A2AApp(SHIPPED, runner=coder),)

    @property
    def addresses(self) -> Mapping[str, str]:
        """The paths at which they answer, each with the application's name."""
        first, *further = self._apps
        return {"/": first.name, **{_base_path(app): app.name for app in further}}

    @property
    def root(self) -> A2AApp:
        """The application at the root, which gets what is posted there."""
        return self._apps[0]

    def asks(self, connection: HTTPConnection) -> bool:
        """Whether a request is for an application that has keys of its own."""
        path: str = connection.scope["path"]
        first, *further = self._apps
        for app in further:
            if path == _base_path(app) or path.startswith(f"{_base_path(app)}/"):
                return bool(app.keys)
        return bool(first.keys) and (path == "/" or paths.is_a2a(connection))

    def routes(self) -> list[BaseRoute]:
        """Return their routes, but ``POST /``."""
        first, *further = self._apps
        return [
            *(Route(pattern, first) for pattern in paths.PATTERNS),
            *(Route(_base_path(app), _AtPath(app)) for app in further),
            *(Mount(_base_path(app), app) for app in further),
        ]

    async def listen_grpc(self, binding: GrpcBinding | None) -> None:
        """Have the first one listen for gRPC, if there is a binding; raise as its own method does."""
        for app in self._apps[1:]:
            await app.listen_grpc(None)
        await self.root.listen_grpc(binding)

    @asynccontextmanager
    async def running(self, context: HostContext) -> AsyncIterator[None]:
        """Let them answer inside, with what the double gives them."""
        async with AsyncExitStack() as stack:
            for app in self._apps:
                app.clock, app.directory = context.clock, context.directory
                app.state = None if isinstance(context.state, MemoryStore) else context.state
                await stack.enter_async_context(app.lifespan())
            yield

    async def reset(self) -> None:
        """End every turn and forget every task."""
        for app in self._apps:
            await app.reset()


class _AtPath:
    """An application at a path without a slash at its end."""

    def __init__(self, app: A2AApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        root = scope.get("root_path", "") + _base_path(self._app)
        await self._app({**scope, "root_path": root}, receive, send)


def _base_path(app: A2AApp) -> str:
    return f"/runtimes/{app.name}"
