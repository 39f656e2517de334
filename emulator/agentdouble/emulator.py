"""Emulator: the surfaces put together into one ASGI application on one port."""

from __future__ import annotations

import asyncio
import datetime as dt
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any

from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from agentdouble import __version__, admin, environment, guard, ledger, serving
from agentdouble.apps import SimpleApp
from agentdouble.apps.shipped import coder_app
from agentdouble.apps.simple import PATHS
from agentdouble.clock import Clock
from agentdouble.control_plane import ControlPlane, InvokeTool, is_control_plane, render_refusal
from agentdouble.errors import ApplicationLoadError, NotBuiltError
from agentdouble.invoke_tool import DEFAULT_REGION
from agentdouble.journal import Journal, JournalMiddleware
from agentdouble.run_code import hosted_by
from agentdouble.sandbox.instances import Instances
from agentdouble.settings import Settings
from agentdouble.signing import Credentials

NOT_BUILT = {
    "/list-apps": "API-server mode",
    "/apps": "API-server mode",
    "/run": "API-server mode",
    "/run_sse": "API-server mode",
    "/version": "API-server mode",
    "/mcp": "MCP",
    "/.well-known/agent-card.json": "A2A",
    "/v1": "The session's data plane",
}


class Emulator:
    """The double of a platform.

    The first application answers at the root, every further one at ``/runtimes/<name>``;
    without any, the shipped coder does. As a context manager it serves on a free port in a
    thread and changes nothing else of its process::

        with Emulator() as double:
            print(double.url)

    Keyword arguments are settings. Raises SettingsError for a wrong one, ApplicationLoadError
    for two applications of one name, and AddressInUseError if the port is taken.
    """

    def __init__(
        self, *apps: SimpleApp, settings: Settings | None = None, **overrides: Any
    ) -> None:
        self.settings = settings or Settings.load(**{"port": 0, **overrides})
        self.clock = Clock()
        self.journal = Journal(self.settings.journal_size, self.clock)
        self.credentials = _credentials(self.settings)
        self._ledger = self.settings.chosen()
        self._instances = Instances(self.clock, self.settings)
        self._apps = _named(apps or (coder_app(),))
        self._listener = serving.open_socket(self.settings.host, self.settings.port)
        self.url = serving.address_of(self._listener)
        self._thread: serving.ServerThread | None = None
        self._stopped = False
        self.app: ASGIApp = self._build()

    @property
    def tool_id(self) -> str:
        """The id of the sandbox tool."""
        return self.settings.tool_id

    @property
    def apps(self) -> tuple[str, ...]:
        """The names of the applications, the one at the root first."""
        return tuple(self._apps)

    def environment(self, client: str = "platform") -> Mapping[str, str]:
        """Return the environment variables that point a client at this double.

        ``client`` is one of ``agentdouble.environment.CLIENTS``; raises ValueError for another.
        """
        connection = environment.Connection(
            url=self.url,
            tool_id=self.tool_id,
            access_key=self.credentials.access_key,
            secret_key=self.credentials.secret_key,
            region=DEFAULT_REGION,
        )
        return environment.variables(connection, client)

    def start(self) -> Emulator:
        """Serve in a thread; return when the double answers."""
        if self._thread is not None or self._stopped:
            raise RuntimeError("This Emulator has been started or stopped already; make a new one.")
        self._thread = serving.ServerThread(self.app, self._listener)
        try:
            self._thread.start()
        except BaseException:
            self._stopped = True
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
            return
        self._unwatch()
        self._thread.stop()

    def serve(self, started: Callable[[], None]) -> None:
        """Serve in the foreground until SIGINT or SIGTERM; call ``started`` when it answers."""
        serving.serve(self.app, self._listener, started)

    def reset(self) -> None:
        """Destroy every session instance, empty the journal and set the clock back."""
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

    def _call(self, coroutine: Any) -> None:
        if self._thread is None or self._stopped:
            coroutine.close()
            raise RuntimeError("This Emulator is not running; use it in a with statement.")
        self._thread.call(coroutine)

    def _destroy_due(self) -> None:
        self._call(self._in_force(self._instances.settle()))

    async def _in_force(self, coroutine: Any) -> None:
        with ledger.using(self._ledger):
            await coroutine

    async def _reset(self) -> None:
        await self._instances.reset("the double was reset")
        self.journal.clear()
        self.clock.reset()

    async def _advance(self, by: dt.timedelta) -> None:
        self.clock.move(by)
        await self._instances.settle()

    def _build(self) -> ASGIApp:
        inner = Starlette(routes=self._routes(), lifespan=lambda _app: self._lifespan())
        hosting = _Hosting(inner, self.environment())
        journal = JournalMiddleware(
            hosting, self.journal, self._ledger, except_prefix=admin.PREFIX + "/"
        )
        return guard.Guard(journal, _policy(self.settings))

    def _routes(self) -> list[BaseRoute]:
        controls = admin.Controls(
            version=__version__,
            clock=self.clock,
            journal=self.journal,
            instances=self._instances,
            reset=self._reset,
            advance=self._advance,
        )
        actions = {"InvokeTool": InvokeTool(self._instances, self.settings)}
        control_plane = ControlPlane(actions, self.credentials, self.clock)
        default, *further = self._apps.items()
        return [
            Mount(
                admin.PREFIX,
                admin.admin_app(controls, loopback_only=self.settings.api_key is None),
            ),
            Route("/", _root(control_plane), methods=["POST"]),
            *(Route(path, default[1]) for path in PATHS),
            *(Mount(f"/runtimes/{name}", app) for name, app in further),
            *_not_built(),
            Mount("/", default[1]),
        ]

    @asynccontextmanager
    async def _lifespan(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.enter_context(ledger.using(self._ledger))
            stack.push_async_callback(self._instances.close)
            reaper = asyncio.ensure_future(self._instances.reap())
            stack.callback(reaper.cancel)
            for app in self._apps.values():
                app.clock = self.clock
                await stack.enter_async_context(app.lifespan())
            yield


class _Hosting:
    """Lets the run_code of hosted applications find this double, whatever the environment says."""

    def __init__(self, app: ASGIApp, variables: Mapping[str, str]) -> None:
        self._app = app
        self._variables = variables

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with hosted_by(self._variables):
            await self._app(scope, receive, send)


def _root(control_plane: ControlPlane) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        if is_control_plane(request):
            return await control_plane.dispatch(request)
        return _refuse_not_built(request, "A2A")

    return answer


def _not_built() -> list[BaseRoute]:
    """Refuse by name what the platform has and this version does not."""

    def route(path: str, what: str) -> list[BaseRoute]:
        async def refuse(request: Request) -> Response:
            return _refuse_not_built(request, what)

        methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        return [
            Route(path, refuse, methods=methods),
            Route(path + "/{rest:path}", refuse, methods=methods),
        ]

    return [one for path, what in NOT_BUILT.items() for one in route(path, what)]


def _refuse_not_built(request: Request, what: str) -> Response:
    refusal = guard.Refusal(501, "NotImplemented", str(NotBuiltError(what)))
    return guard.render_json(request, refusal)


def _policy(settings: Settings) -> guard.Policy:
    beyond_loopback = settings.host not in guard.LOOPBACK_NAMES
    key = settings.api_key
    return guard.Policy(
        hosts=guard.names((*settings.allow_hosts, settings.host)),
        any_address=beyond_loopback,
        body_limit=settings.body_limit,
        api_key=None if key is None else key.get_secret_value(),
        signed=_signs_itself(settings),
        render=_render,
    )


def _signs_itself(settings: Settings) -> guard.SignsItself:
    """Return which requests need no API key: those whose signature is verified."""
    if settings.chosen().answer("U-SIGNING").name == "none":
        return lambda _connection: False
    return is_control_plane


def _render(connection: HTTPConnection, refusal: guard.Refusal) -> Response:
    if is_control_plane(connection):
        return render_refusal(connection, refusal)
    return guard.render_json(connection, refusal)


def _credentials(settings: Settings) -> Credentials:
    secret = settings.secret_key
    return Credentials(
        settings.access_key or f"AKLT{secrets.token_hex(12)}",
        secrets.token_urlsafe(32) if secret is None else secret.get_secret_value(),
    )


def _named(apps: tuple[SimpleApp, ...]) -> dict[str, SimpleApp]:
    named = {app.name: app for app in apps}
    if len(named) != len(apps):
        names = ", ".join(app.name for app in apps)
        raise ApplicationLoadError(
            f"Every application needs a name of its own; these are called {names}.", spec=names
        )
    return named
