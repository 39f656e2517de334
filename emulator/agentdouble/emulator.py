"""Emulator: a double that a program starts and controls."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import reprlib
import socket
import ssl
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import SecretStr
from starlette.types import ASGIApp

from agentdouble.apps.loading import App, application
from agentdouble.core import environment, ledger
from agentdouble.core.invoke_tool import DEFAULT_REGION
from agentdouble.core.signing import Credentials
from agentdouble.errors import NotRunningError
from agentdouble.mcp_services import McpServices
from agentdouble.platform import LocalPlatform
from agentdouble.processes import workspace
from agentdouble.routing import certificate
from agentdouble.sandbox.fork_planner import ForkPlanner
from agentdouble.server.sockets import address_of, open_socket
from agentdouble.server.starting import ServerThread, serve
from agentdouble.settings import Settings
from agentdouble.standby import Standby, end_if_replaced
from agentdouble.surfaces.applications import HostedA2A, HostedApplications
from agentdouble.surfaces.mcp_services import MCPServices
from agentdouble.surfaces.runtimes import Runtimes
from agentdouble.surfaces.sandbox import Sandbox
from agentdouble.surfaces.surface import Surface

if TYPE_CHECKING:
    from agentdouble.console import Console

_logger = logging.getLogger(__name__)

S = TypeVar("S", bound=Surface)
T = TypeVar("T")


class Emulator:
    """The double of a platform.

    The first SimpleApp and the first A2AApp answer at the root, and the first MCPApp at ``/mcp``.
    Every further application answers below ``/runtimes/<name>``. If there is no application of a
    kind, the shipped coder answers. As a context manager it serves on a free port in a thread and
    changes nothing else in its process::

        with Emulator() as double:
            print(double.url)

    Keyword arguments are settings. Raises SettingsError for a wrong setting, ApplicationLoadError
    for two applications of one name or an object that is not an application, and AddressInUseError
    if the port is in use.
    """

    def __init__(self, *apps: App, settings: Settings | None = None, **overrides: Any) -> None:
        for app in apps:
            application(app, called=reprlib.repr(app))
        self.settings = settings or Settings.load(**{"port": 0, **overrides})
        if self.settings.lowered_by:  # nobody may have noticed the file in the working directory
            _logger.warning("%s", self.settings.lowered_by)
        ForkPlanner.check(self.settings)
        self.credentials = self.settings.key_pair()
        self.token = self.settings.own_token()
        workspace.find()
        with ExitStack() as resources:
            listener = open_socket(self.settings.host, self.settings.port)
            resources.callback(listener.close)
            self._tls = certificate(self.settings)
            if self._tls is not None:
                resources.callback(self._tls.close)
            self.url = address_of(listener, "http" if self._tls is None else "https")
            self._platform = LocalPlatform(
                self.settings,
                apps,
                self.credentials,
                environment.for_hosted_code(self.connection),
                self.token,
                self._start_fresh,
            )
            self._console = self._open_console()
            if self._console is not None:
                resources.callback(self._console.listener.close)
            self._resources = resources.pop_all()
        self._listener = listener
        self.app = self._platform.app
        context = self._platform.context
        self.clock, self.journal, self.faults = context.clock, context.journal, context.faults
        mcp = self._surface(MCPServices)
        self.mcp = McpServices(mcp.services, self._call, self.url)
        self.runtimes = self._surface(Runtimes).handle(self._call, self.url)
        self._thread: ServerThread | None = None
        self._stopped = False

    @property
    def tool_id(self) -> str:
        """The id of the sandbox tool."""
        return self.settings.tool_id

    @property
    def apps(self) -> tuple[str, ...]:
        """The names of the applications, the one at the root first."""
        names = self._surface(HostedApplications).hosted.names
        return tuple(dict.fromkeys((*names, *self.a2a.values())))

    @property
    def addresses(self) -> Mapping[str, str]:
        """The paths at which the applications answer, each with the application's name."""
        return self._surface(HostedApplications).hosted.addresses

    @property
    def a2a(self) -> Mapping[str, str]:
        """The paths at which A2A applications answer, each with the application's name."""
        return self._surface(HostedA2A).hosted.addresses

    @property
    def runtime_addresses(self) -> Mapping[str, str]:
        """The addresses of the existing runtimes, by name."""
        return self._surface(Runtimes).addresses(self.url)

    @property
    def ca_file(self) -> Path | None:
        """The file that clients trust, or None if the double does not serve https (CTL-08)."""
        return None if self._tls is None else self._tls.bundle

    @property
    def console_url(self) -> str | None:
        """The address of the web console, with its token, or None without ``console=True``."""
        return None if self._console is None else self._console.url

    @property
    def connection(self) -> environment.DoubleConnection:
        """The data that a client needs to call this double."""
        return environment.DoubleConnection(
            url=self.url,
            tool_id=self.tool_id,
            access_key=self.credentials.access_key,
            secret_key=self.credentials.secret_key,
            region=DEFAULT_REGION,
            ca_file=None if self.ca_file is None else str(self.ca_file),
            token=self.token,
        )

    def environment(self, client: str = "platform") -> Mapping[str, str]:
        """Return the environment variables that point a client at this double.

        ``client`` is one of ``agentdouble.core.environment.CLIENTS``. Raises ValueError for any
        other name.
        """
        return environment.variables(self.connection, client)

    def start(self) -> Emulator:
        """Serve in a thread and return when the double answers."""
        if self._thread is not None or self._stopped:
            raise NotRunningError("This Emulator was already started or stopped; create a new one.")
        platform, tls = self._platform, self._ssl_context
        self._thread = ServerThread(
            self._served,
            self._listener,
            platform.restore,
            tls,
            platform.begin_shutdown,
            self._further,
        )
        try:
            self._thread.start()
        except BaseException:
            self._stopped = True
            self._resources.close()
            raise
        unwatch = self.clock.watch(lambda: self._call(self._platform.settle()))
        self._resources.callback(unwatch)
        return self

    def stop(self) -> None:
        """Stop serving, once, and return when the processes of all sessions have ended."""
        if self._stopped:
            return
        self._stopped = True
        if self._thread is not None:
            self._thread.stop()
        self._resources.close()

    def serve(self, started: Callable[[], None], *, standby: bool = False) -> None:
        """Serve in the foreground until SIGINT or SIGTERM; call ``started`` when it answers.

        A ``standby`` first waits until no other double has the state.
        """
        platform, tls, store = self._platform, self._ssl_context, self._platform.context.store

        async def prepare() -> None:
            if standby:
                waiting = Standby(store, platform.context.version)
                await waiting.wait((self._listener, *self._further), tls)
            await platform.restore()
            self._watching = asyncio.ensure_future(end_if_replaced(store))

        with self._resources:
            serve(
                self._served,
                self._listener,
                started,
                prepare,
                tls,
                platform.begin_shutdown,
                self._further,
            )

    def reset(self, *, keep: Collection[str] | None = None) -> None:
        """Return the double to its initial state, except for the parts that are kept.

        The parts are ``sessions`` (of the sandbox), ``session_snapshots``, ``tools``, ``mcp``,
        ``runtimes``, ``agent_sessions`` (of API-server mode, with artifacts), ``tasks`` (of A2A),
        ``journal``, ``clock`` and ``faults``. By default, the parts that outlive the double in its
        state are kept; ``state`` is a name for all of them; ``keep=()`` keeps nothing. Raises
        PartError.
        """
        self._call(self._platform.parts.reset(keep=keep))

    def __enter__(self) -> Emulator:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _surface(self, kind: type[S]) -> S:
        return self._platform.context.surface(kind)

    @property
    def _served(self) -> ASGIApp:
        """The application of both listeners."""
        return self.app if self._console is None else self._console.beside(self.app)

    @property
    def _further(self) -> tuple[socket.socket, ...]:
        return () if self._console is None else (self._console.listener,)

    def _open_console(self) -> Console | None:
        if not self.settings.console:
            return None
        from agentdouble.console import Double, open_console  # slow: 10 ms

        context, key = self._platform.context, self.settings.api_key
        double = Double(
            app=self._platform.app,
            journal=context.journal,
            connection=self.connection,
            credentials=self.credentials,
            version=context.version,
            served=self.addresses,
            a2a=self.a2a,
            variables=self.environment(),
            api_key=None if key is None else key.get_secret_value(),
        )
        return open_console(double, self.settings.console_port)

    def _start_fresh(self, unknowns: Mapping[str, str]) -> AbstractContextManager[str]:
        """Return a double with the same applications, tools and time."""
        settings = _fresh_settings(self.settings, self.credentials, unknowns)
        tools = self._surface(Sandbox).tools.all()

        @contextmanager
        def running() -> Iterator[str]:
            apps = (app.clone() for app in self._platform.context.apps)
            double = Emulator(*apps, settings=settings)
            double.clock.move(max(self.clock.offset, dt.timedelta(0)))
            if self.clock.frozen:
                double.clock.freeze()
            with double:
                double._surface(Sandbox).tools.adopt(tools)
                yield double.url

        return running()

    @property
    def _ssl_context(self) -> ssl.SSLContext | None:
        return None if self._tls is None else self._tls.context

    def _call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        if self._thread is None or self._stopped:
            coroutine.close()
            raise NotRunningError("This Emulator is not running; use it in a with statement.")
        try:
            return self._thread.call(self._in_force(coroutine))
        except RuntimeError:
            coroutine.close()  # it may not have been started
            raise

    async def _in_force(self, coroutine: Coroutine[Any, Any, T]) -> T:
        with ledger.using(self._platform.context.ledger):
            return await coroutine


def _fresh_settings(
    settings: Settings, credentials: Credentials, unknowns: Mapping[str, str]
) -> Settings:
    """Return the settings of a double that shares nothing with the running one.

    It has no runtimes: their programs might use the files and ports of the running ones.
    """
    changes = {
        "host": "127.0.0.1",
        "port": 0,
        "tls": False,
        "tls_directory": None,
        "console": False,
        "console_port": 0,
        "state": "memory",
        "access_key": credentials.access_key,
        "secret_key": SecretStr(credentials.secret_key),
        "pool_size": 0,
        "reload": False,
        "nodes": None,
        "runtimes": (),
        "faults": (),
        "profile": None,
        "unknowns": dict(unknowns),
    }
    return settings.model_copy(update=changes)
