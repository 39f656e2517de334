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
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from agentdouble import (
    __version__,
    admin,
    certificates,
    environment,
    guard,
    ledger,
    routing,
    serving,
)
from agentdouble.admission import Address, Admission, Admitting
from agentdouble.apps.loading import App, application
from agentdouble.clock import Clock
from agentdouble.control_plane import ControlPlane
from agentdouble.control_plane.action_names import OF_THE_PLATFORM
from agentdouble.control_plane.authentication import Authenticator, Keys
from agentdouble.control_plane.routes import Action
from agentdouble.errors import NotRunningError
from agentdouble.failing import Failing
from agentdouble.faults import FaultLayer, Faults
from agentdouble.invoke_tool import DEFAULT_REGION
from agentdouble.journal import Journal, JournalMiddleware
from agentdouble.mcp_services import McpServices
from agentdouble.mcp_services.toolsets import McpToolsets
from agentdouble.runtimes.gateway import PREFIX as RUNTIMES
from agentdouble.sandbox.callers import Callers
from agentdouble.settings import Settings
from agentdouble.shutdown import ShutdownMiddleware
from agentdouble.signing import Credentials
from agentdouble.state import make_store
from agentdouble.surfaces import (
    ApiServerMode,
    Context,
    HostedA2A,
    HostedApplications,
    MCPServices,
    Runtimes,
    Sandbox,
    Surface,
)

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
        self._make_surfaces(apps)
        self._callers = Callers(self._roots, self._runtimes.hosting.below)
        self._listener = serving.open_socket(self.settings.host, self.settings.port)
        self._tls = self._certified()
        self.url = serving.address_of(self._listener, "http" if self._tls is None else "https")
        services, toolsets = self._mcp_services.services, self._mcp_services.toolsets
        self.mcp = McpServices(services, self._call, self.url)
        self.mcp_toolsets = McpToolsets(toolsets, services, self._call, self.url)
        self.runtimes = self._runtimes.hosting.handle(self._call, self.url)
        self._thread: serving.ServerThread | None = None
        self._stopped = False
        self._resetting = asyncio.Lock()
        self.app: ASGIApp = self._build()

    def _make_surfaces(self, apps: tuple[App, ...]) -> None:
        context = Context(self.settings, self.clock, self._store, __version__)
        self._apps = HostedApplications(context, apps)
        self._api = ApiServerMode(context)
        self._a2a = HostedA2A(context, apps, self._api.agents, self._refuses)
        self._in_process = self._taken()
        self._runtimes = Runtimes(context, taken=self._in_process, variables=self.environment)
        self._mcp_services = MCPServices(context)
        self._sandbox = Sandbox(context)
        # in the order in which they start; they end the other way round
        self._surfaces: tuple[Surface, ...] = (
            self._sandbox,
            self._runtimes,
            self._api,
            self._mcp_services,
            self._apps,
            self._a2a,
        )

    @property
    def tool_id(self) -> str:
        """The id of the sandbox tool."""
        return self.settings.tool_id

    @property
    def apps(self) -> tuple[str, ...]:
        """The names of the applications, the one at the root first."""
        return tuple(dict.fromkeys((*self._apps.hosted.names, *self.a2a.values())))

    @property
    def addresses(self) -> Mapping[str, str]:
        """The paths at which the applications answer, each with the application's name."""
        return self._apps.hosted.addresses

    @property
    def a2a(self) -> Mapping[str, str]:
        """The paths at which A2A applications answer, each with the application's name."""
        return self._a2a.hosted.addresses

    @property
    def runtime_addresses(self) -> Mapping[str, str]:
        """The addresses of the runtimes there are, by their names."""
        return self._runtimes.hosting.addresses(self.url)

    @property
    def a2a_grpc(self) -> str | None:
        """Where the first A2A application answers over gRPC, ``host:port``, while it does."""
        listening = self._a2a.hosted.root.grpc
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
            self.app, self._listener, self._prepare, self._context, self._begin_shutdown
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
                self._begin_shutdown,
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

    def _begin_shutdown(self) -> None:
        self.faults.clear()
        for surface in self._surfaces:
            surface.begin_shutdown()

    def _forget_certificate(self) -> None:
        if self._tls is not None:
            self._tls.close()

    def _taken(self) -> set[str]:
        """Return the names of the applications of this process that answer below /runtimes/."""
        paths = [*self.addresses, *self.a2a]
        below = [path for path in paths if path.startswith(RUNTIMES)]
        return {path.removeprefix(RUNTIMES).partition("/")[0] for path in below}

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
        for surface in self._surfaces:
            await surface.settle()

    async def _in_force(self, coroutine: Coroutine[Any, Any, T]) -> T:
        with ledger.using(self._ledger):
            return await coroutine

    async def _reset(self, wait: bool = True) -> None:
        async with self._resetting:  # two at once would declare the same runtimes
            await self._begin_anew(wait)

    async def _begin_anew(self, wait: bool) -> None:
        self.faults.reset()
        self.clock.reset()  # first: what is declared is made anew, at the time that it is then
        for surface in self._surfaces:
            await surface.reset(wait=wait)
        self.journal.clear()  # last: calls that the reset has ended are written, too

    async def _prepare(self) -> None:
        """Restore what was kept; raise StateError, and DeclarationError, with nothing left open."""
        try:
            await self._restore()
        except BaseException:
            await self._store.close()
            raise

    async def _restore(self) -> None:
        await self._store.open()
        with ledger.using(self._ledger):
            for surface in self._surfaces:
                await surface.restore()

    async def _refuses(self, client: Address, server: Address) -> bool:
        """Whether a caller over gRPC is refused where no key is asked for."""
        return await self._rules.refuses(client, server)

    async def _advance(self, by: dt.timedelta) -> None:
        self.clock.move(by)
        await self._settle()

    def _build(self) -> ASGIApp:
        own, policy = admin.PREFIX + "/", routing.policy(self.settings, self._asks_itself)
        rules = self._rules = routing.admission(
            self.settings,
            policy,
            self._callers.caller,
            asks=self._a2a.hosted.asks,
            pages=self._has_pages,
        )
        inner = Starlette(routes=self._routes(rules), lifespan=lambda _app: self._lifespan())
        hosting = routing.Hosting(inner, self.environment())
        faults = FaultLayer(hosting, self.faults, policy.render, except_prefix=own)
        told = ShutdownMiddleware(Failing(faults, policy.render), policy.render)
        journal = JournalMiddleware(told, self.journal, self._ledger, except_prefix=own)
        admitting = Admitting(journal, rules, own)
        guarded = guard.Guard(admitting, policy, routing.shared(self.settings))
        return Failing(guarded, policy.render)  # the guard itself, too

    def _routes(self, rules: Admission) -> list[BaseRoute]:
        controls = admin.Controls(
            version=__version__,
            clock=self.clock,
            journal=self.journal,
            ledger=self._ledger,
            instances=self._sandbox.instances,
            faults=self.faults,
            routes=[route for surface in self._surfaces for route in surface.admin_routes()],
            state=self._store,
            reset=self._reset,
            advance=self._advance,
        )
        actions: dict[str, Action] = {}
        for surface in self._surfaces:
            actions.update(surface.actions())
        control_plane = ControlPlane(actions, self._authenticator())
        simple, a2a = self._apps.hosted.root, self._a2a.hosted.root
        return [
            Route("/", routing.Root(control_plane, a2a), methods=["POST"]),  # the busiest
            Route("/health", routing.Health(simple, self._api.app)),
            *self._apps.routes(),
            *self._api.routes(),
            Mount(admin.PREFIX, admin.admin_app(controls, rules)),
            *self._a2a.routes(),
            *self._runtimes.routes(),
            *self._mcp_services.routes(),
            *self._sandbox.routes(),
            Route("/", routing.NotPosted(simple)),
            Mount("/", simple),
        ]

    def _asks_itself(self, connection: HTTPConnection) -> bool:
        """Whether a request is for a hosted runtime that has keys or an issuer of its own."""
        return self._has_pages(connection) and self._runtimes.hosting.authenticates(
            connection.scope
        )

    def _has_pages(self, connection: HTTPConnection) -> bool:
        """Whether a request is for a hosted runtime, and none of this process's applications."""
        path: str = connection.scope["path"]
        name, _, _ = path.removeprefix(RUNTIMES).partition("/")
        return path.startswith(RUNTIMES) and name not in self._in_process

    def _roots(self) -> tuple[int, ...]:
        """Return the processes below which code of others runs as this process's user."""
        return (*self._sandbox.instances.roots(), *self._runtimes.hosting.roots())

    def _authenticator(self) -> Authenticator:
        return Authenticator(Keys.of(self.credentials, self.settings), self.clock)

    @asynccontextmanager
    async def _lifespan(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.enter_context(ledger.using(self._ledger))
            stack.push_async_callback(self._store.close)
            for surface in self._surfaces:
                await stack.enter_async_context(surface.running())
            yield


def _credentials(settings: Settings) -> Credentials:
    secret = settings.secret_key
    return Credentials(
        settings.access_key or f"AKLT{secrets.token_hex(12)}",
        secrets.token_urlsafe(32) if secret is None else secret.get_secret_value(),
    )
