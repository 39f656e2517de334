"""Emulator: the surfaces put together into one ASGI application on one port."""

from __future__ import annotations

import asyncio
import datetime as dt
import reprlib
import secrets
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.routing import BaseRoute, Mount, Route, WebSocketRoute
from starlette.types import ASGIApp

from agentdouble import (
    __version__,
    admin,
    certificates,
    entrance,
    environment,
    guard,
    ledger,
    mcp_hosting,
    serving,
)
from agentdouble.admission import Admission, Admitting
from agentdouble.agents.adk import adk_agent
from agentdouble.agents.directory import SHIPPED, AgentsDirectory
from agentdouble.api_server import routes as api_routes
from agentdouble.api_server.server import ApiServer
from agentdouble.apps.a2a.hosted import A2AApplications, House
from agentdouble.apps.a2a.over_grpc import Place
from agentdouble.apps.agents import simple_agent
from agentdouble.apps.hosted import Applications
from agentdouble.apps.loading import App, application
from agentdouble.clock import Clock
from agentdouble.control_plane import (
    ControlPlane,
    InvokeTool,
    MCPServiceActions,
    MCPToolsetActions,
    RuntimeActions,
    RuntimeVersionActions,
    SessionActions,
    ToolActions,
)
from agentdouble.control_plane.action_names import OF_THE_PLATFORM
from agentdouble.control_plane.authentication import Authenticator
from agentdouble.control_plane.keys import Keys
from agentdouble.control_plane.routes import Action
from agentdouble.control_plane.runtime_artifacts import Sources
from agentdouble.errors import NotRunningError
from agentdouble.failing import Failing
from agentdouble.farewell import Farewell
from agentdouble.faults import FaultLayer, Faults
from agentdouble.invoke_tool import DEFAULT_REGION
from agentdouble.journal import Journal, JournalMiddleware
from agentdouble.mcp_services import McpServices, Services
from agentdouble.mcp_services.toolsets import McpToolsets, Toolsets
from agentdouble.runtimes.gateway import PREFIX as RUNTIMES
from agentdouble.runtimes.hosting import Hosting
from agentdouble.sandbox import data_plane
from agentdouble.sandbox.browser.hands import Hands
from agentdouble.sandbox.callers import Callers
from agentdouble.sandbox.instances import Instances
from agentdouble.sandbox.tools import Tools
from agentdouble.settings import Settings
from agentdouble.signing import Credentials
from agentdouble.state import make_store

T = TypeVar("T")


class Emulator:
    """The double of a platform.

    The first SimpleApp and the first A2AApp answer at the root, the first MCPApp at ``/mcp``,
    every further one below ``/runtimes/<name>``; without one of a kind, the shipped coder does.
    As a context manager it serves on a free port in a thread and changes nothing else of its
    process::

        with Emulator() as double:
            print(double.url)

    Keyword arguments are settings. Raises SettingsError for a wrong one, ApplicationLoadError
    for two applications of one name and for what is none, and AddressInUseError if the port is taken.
    """

    def __init__(self, *apps: App, settings: Settings | None = None, **overrides: Any) -> None:
        for app in apps:
            application(app, called=reprlib.repr(app))
        self.settings = settings or Settings.load(**{"port": 0, **overrides})
        self.faults = Faults(OF_THE_PLATFORM, self.settings.faults)
        self.clock = Clock()
        self.journal = Journal(self.settings.journal_size, self.clock)
        self.credentials = _credentials(self.settings)
        self._ledger = self.settings.chosen()
        self._store = make_store(self.settings.state)
        self._tools = Tools(self.clock, self.settings.tool_id, self._store)
        self._instances = Instances(
            self.clock,
            self.settings,
            store=self._store,
            variables_of=self._tools.variables,
        )
        self._api = ApiServer(self.clock, __version__, self._agents(), self._store)
        self._mcp_host = mcp_hosting.Host()
        self._services = Services(self.clock, self._mcp_host, self._store)
        self._toolsets = Toolsets(self.clock, self._mcp_host, self._services, self._store)
        self._hands = Hands()
        self._a2a = A2AApplications(apps)
        self._apps = Applications(*apps)
        self._in_process = self._taken()
        self._hosting = Hosting(
            self.settings,
            self.clock,
            self._store,
            taken=self._in_process,
            variables=self.environment,
            version=__version__,
        )
        self._callers = Callers(self._roots, self._hosting.below)
        self._sources = Sources.of(self.settings.runtime_sources)
        self._listener = serving.open_socket(self.settings.host, self.settings.port)
        self._tls = self._certified()
        self.url = serving.address_of(self._listener, "http" if self._tls is None else "https")
        self.mcp = McpServices(self._services, self._call, self.url)
        self.mcp_toolsets = McpToolsets(self._toolsets, self._services, self._call, self.url)
        self.runtimes = self._hosting.handle(self._call, self.url)
        self._thread: serving.ServerThread | None = None
        self._stopped = False
        self._resetting = asyncio.Lock()
        self.app: ASGIApp = self._build()

    @property
    def tool_id(self) -> str:
        """The id of the sandbox tool."""
        return self.settings.tool_id

    @property
    def apps(self) -> tuple[str, ...]:
        """The names of the applications, the one at the root first."""
        return tuple(dict.fromkeys((*self._apps.names, *self._a2a.addresses.values())))

    @property
    def addresses(self) -> Mapping[str, str]:
        """The paths at which the applications answer, each with the application's name."""
        return self._apps.addresses

    @property
    def a2a(self) -> Mapping[str, str]:
        """The paths at which A2A applications answer, each with the application's name."""
        return self._a2a.addresses

    @property
    def runtime_addresses(self) -> Mapping[str, str]:
        """The addresses of the runtimes there are, by their names."""
        return self._hosting.addresses(self.url)

    @property
    def a2a_grpc(self) -> str | None:
        """Where the first A2A application answers over gRPC, ``host:port``, while it does."""
        listening = self._a2a.root.grpc
        return None if listening is None else listening.address

    @property
    def ca_file(self) -> Path | None:
        """The file that clients trust, where the double serves https (CTL-08)."""
        return None if self._tls is None else self._tls.bundle

    @property
    def connection(self) -> environment.Connection:
        """What a client must know to call this double."""
        return environment.Connection(
            url=self.url,
            tool_id=self.tool_id,
            access_key=self.credentials.access_key,
            secret_key=self.credentials.secret_key,
            region=DEFAULT_REGION,
            ca_file=None if self.ca_file is None else str(self.ca_file),
        )

    def environment(self, client: str = "platform") -> Mapping[str, str]:
        """Return the environment variables that point a client at this double.

        ``client`` is one of ``agentdouble.environment.CLIENTS``; raises ValueError for another.
        """
        return environment.variables(self.connection, client)

    def start(self) -> Emulator:
        """Serve in a thread; return when the double answers."""
        if self._thread is not None or self._stopped:
            raise NotRunningError(
                "This Emulator has been started or stopped already; make a new one."
            )
        self._thread = serving.ServerThread(
            self.app, self._listener, self._prepare, self._context, self._let_go
        )
        try:
            self._thread.start()
        except BaseException:
            self._stopped = True
            self._forget_certificate()
            raise
        self._unwatch = self.clock.watch(self._destroy_due)
        return self

    def stop(self) -> None:
        """Stop serving; return when every session's processes are gone. Once is enough."""
        if self._stopped:
            return
        self._stopped = True
        if self._thread is None:
            self._listener.close()
        else:
            self._unwatch()
            self._thread.stop()
        self._forget_certificate()

    def serve(self, started: Callable[[], None]) -> None:
        """Serve in the foreground until SIGINT or SIGTERM; call ``started`` when it answers."""
        try:
            serving.serve(
                self.app,
                self._listener,
                started,
                self._prepare,
                self._context,
                self._let_go,
            )
        finally:
            self._forget_certificate()

    def reset(self) -> None:
        """Destroy every session instance, tool, MCP service and runtime but the declared ones.

        The journal is emptied, the clock reset.
        Faults are taken away, but for those of the settings, which begin anew.
        """
        self._call(self._reset())

    def __enter__(self) -> Emulator:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _certified(self) -> certificates.Tls | None:
        """Return the certificate of the names by which the double may be called."""
        settings = self.settings
        if not settings.tls:
            return None
        names = guard.names((*settings.allow_hosts, settings.host))
        try:
            return certificates.prepare(settings.tls_directory, names | guard.LOOPBACK_NAMES)
        except BaseException:
            self._listener.close()
            raise

    @property
    def _context(self) -> ssl.SSLContext | None:
        return None if self._tls is None else self._tls.context

    def _let_go(self) -> None:
        self.faults.clear()
        self._instances.feed.let_go()
        self._mcp_host.let_go()
        self._apps.let_go()
        self._hosting.let_go()

    def _forget_certificate(self) -> None:
        if self._tls is not None:
            self._tls.close()

    def _taken(self) -> set[str]:
        """Return the names of the applications of this process that answer below /runtimes/."""
        paths = [*self._apps.addresses, *self._a2a.addresses]
        below = [path for path in paths if path.startswith(RUNTIMES)]
        return {path.removeprefix(RUNTIMES).partition("/")[0] for path in below}

    def _agents(self) -> AgentsDirectory:
        settings = self.settings
        path, reload = settings.agents or SHIPPED, settings.reload
        return AgentsDirectory(path, adapters=(simple_agent, adk_agent), reload=reload)

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if self._thread is None or self._stopped:
            coroutine.close()
            raise NotRunningError("This Emulator is not running; use it in a with statement.")
        try:
            return self._thread.call(self._in_force(coroutine))
        except RuntimeError:
            coroutine.close()  # it may not have been begun
            raise

    def _destroy_due(self) -> None:
        self._call(self._settle())

    async def _settle(self) -> None:
        await self._instances.settle()
        await self._hosting.settle()

    async def _in_force(self, coroutine: Coroutine[Any, Any, T]) -> T:
        with ledger.using(self._ledger):
            return await coroutine

    async def _reset(self, wait: bool = True) -> None:
        async with self._resetting:  # two at once would declare the same runtimes
            await self._begin_anew(wait)

    async def _begin_anew(self, wait: bool) -> None:
        self.faults.reset()
        await self._instances.reset("the double was reset", wait=wait)
        await self._api.reset()
        await self._a2a.reset()
        self.journal.clear()
        self.clock.reset()
        await self._tools.reset()
        await self._toolsets.reset()
        await self._services.reset()
        await self._hosting.registry.reset()

    async def _prepare(self) -> None:
        """Take up what was kept; raise StateError, and DeclarationError, with nothing left open."""
        try:
            await self._take_up()
        except BaseException:
            await self._store.close()
            raise

    async def _take_up(self) -> None:
        await self._store.open()
        await self._tools.load()
        await self._instances.load()
        await self._api.load()
        await self._services.load()
        await self._toolsets.load()
        await self._hosting.registry.load()
        with ledger.using(self._ledger):
            await self._a2a.prepare(self._grpc_place())

    def _grpc_place(self) -> Place | None:
        settings = self.settings
        if settings.a2a_grpc_port is None:
            return None
        return Place(
            settings.a2a_grpc_port,
            api_key=None if settings.api_key is None else settings.api_key.get_secret_value(),
            body_limit=settings.body_limit,
            refuses=self._rules.refuses,
        )

    async def _advance(self, by: dt.timedelta) -> None:
        self.clock.move(by)
        await self._settle()

    def _build(self) -> ASGIApp:
        own, policy = admin.PREFIX + "/", entrance.policy(self.settings, self._asks_itself)
        rules = self._rules = entrance.admission(
            self.settings, policy, self._callers.caller, asks=self._a2a.asks, pages=self._has_pages
        )
        inner = Starlette(routes=self._routes(rules), lifespan=lambda _app: self._lifespan())
        hosting = entrance.Hosting(inner, self.environment())
        faults = FaultLayer(hosting, self.faults, policy.render, except_prefix=own)
        told = Farewell(Failing(faults, policy.render), policy.render)
        journal = JournalMiddleware(told, self.journal, self._ledger, except_prefix=own)
        admitting = Admitting(journal, rules, own)
        guarded = guard.Guard(admitting, policy, entrance.shared(self.settings))
        return Failing(guarded, policy.render)  # the guard itself, too

    def _routes(self, rules: Admission) -> list[BaseRoute]:
        controls = admin.Controls(
            version=__version__,
            clock=self.clock,
            journal=self.journal,
            ledger=self._ledger,
            instances=self._instances,
            tool_id=self.tool_id,
            faults=self.faults,
            runtimes=self._hosting.own_routes(),
            state=self._store,
            reset=self._reset,
            advance=self._advance,
        )
        actions: dict[str, Action] = {
            "InvokeTool": InvokeTool(self._instances, self._tools, self.settings),
            **ToolActions(self._tools, self._instances).by_name(),
            **SessionActions(self._instances, self._tools).by_name(),
            **MCPServiceActions(self._services).by_name(),
            **MCPToolsetActions(self._toolsets).by_name(),
            **RuntimeActions(self._hosting.registry, self._sources).by_name(),
            **RuntimeVersionActions(self._hosting.registry).by_name(),
        }
        root = entrance.Root(ControlPlane(actions, self._authenticator()), self._a2a.root)
        return [
            Route("/", root, methods=["POST"]),  # first: the busiest
            Route("/health", entrance.Health(self._apps.root, self._api.app)),
            *self._apps.routes(),
            *(Route(path, self._api.app) for path in api_routes.PATHS),
            WebSocketRoute(api_routes.RUN_LIVE, self._api.app),
            Mount(
                admin.PREFIX,
                admin.admin_app(controls, rules),
            ),
            *self._a2a.routes(),
            *self._hosting.routes(),
            Route(mcp_hosting.PREFIX + "{name:path}", self._mcp_host),
            *self._data_plane(),
            Route("/", entrance.NotPosted(self._apps.root)),
            Mount("/", self._apps.root),
        ]

    def _asks_itself(self, connection: HTTPConnection) -> bool:
        """Whether a request is for a hosted runtime that has keys or an issuer of its own."""
        return self._has_pages(connection) and self._hosting.authenticates(connection.scope)

    def _has_pages(self, connection: HTTPConnection) -> bool:
        """Whether a request is for a hosted runtime, and none of this process's applications."""
        path: str = connection.scope["path"]
        name, _, _ = path.removeprefix(RUNTIMES).partition("/")
        return path.startswith(RUNTIMES) and name not in self._in_process

    def _roots(self) -> tuple[int, ...]:
        """Return the processes below which code of others runs as this process's user."""
        return (*self._instances.roots(), *self._hosting.roots())

    def _authenticator(self) -> Authenticator:
        return Authenticator(Keys.of(self.credentials, self.settings), self.clock)

    def _data_plane(self) -> list[BaseRoute]:
        browser = data_plane.BrowserRoutes(self._hands, self.settings.browser_size)
        app = data_plane.data_plane(self._instances, self.settings, browser, __version__)
        path = f"{data_plane.PREFIX}/{{rest:path}}"
        return [Route(path, app), WebSocketRoute(path, app)]

    @asynccontextmanager
    async def _lifespan(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.enter_context(ledger.using(self._ledger))
            stack.push_async_callback(self._store.close)
            stack.push_async_callback(self._hands.close)
            stack.push_async_callback(self._instances.close)
            await stack.enter_async_context(self._hosting.running())
            stack.push_async_callback(self._api.close)
            await stack.enter_async_context(self._mcp_host.running())
            for keeper in (self._instances.reap(), self._instances.watch()):
                stack.callback(asyncio.ensure_future(keeper).cancel)
            await stack.enter_async_context(self._apps.running(self.clock))
            house = House(self.clock, self._store, self._api.runs.directory)
            await stack.enter_async_context(self._a2a.running(house))
            self._hosting.keep_up()
            yield


def _credentials(settings: Settings) -> Credentials:
    secret = settings.secret_key
    return Credentials(
        settings.access_key or f"AKLT{secrets.token_hex(12)}",
        secrets.token_urlsafe(32) if secret is None else secret.get_secret_value(),
    )
