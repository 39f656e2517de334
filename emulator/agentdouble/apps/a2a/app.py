"""A2AApp: an executor and a task store behind the A2A protocol (sections 2.9 and 4.6)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketClose

from agentdouble import guard, serving
from agentdouble.agents.directory import AgentsDirectory
from agentdouble.apps.a2a import over_grpc, paths
from agentdouble.apps.a2a.cards import MODES, agent_card, checked
from agentdouble.apps.a2a.paths import KIND
from agentdouble.clock import Clock
from agentdouble.errors import DecorationError
from agentdouble.forwarded_prefix import Forwarded
from agentdouble.imports import import_now
from agentdouble.shutdown import ShutdownMiddleware
from agentdouble.state import Change, Store
from agentdouble.threads import import_in_thread

if TYPE_CHECKING:
    from a2a.server.agent_execution import AgentExecutor
    from a2a.server.tasks import TaskStore
    from a2a.types import AgentCard, AgentInterface

    from agentdouble.apps.a2a.assembly import AtWork

_CLASSES = "agentdouble.apps.a2a.classes"

C = TypeVar("C", bound=type)


TURN_LIMIT_S = 600.0
CANCEL_LIMIT_S = 5.0
STORE_LIMIT_S = 30.0


class A2AApp:
    """An A2A application: an ASGI application that any server can host.

    ``runner`` answers where no executor class is registered; see ``runners.agent_of`` for what
    it may be. ``card`` is an AgentCard or its JSON; without one a card is made for the address
    at which it is asked for, with the media types that messages may have as ``input_modes``.
    With ``keys`` every call but that for the card needs one of them as ``Authorization:
    Bearer``, and each key's tasks are its own. ``push_hosts`` are the hosts besides loopback
    that push notifications go to. A turn that has not ended after ``turn_limit_s`` fails; a
    ``cancel`` is waited for ``cancel_limit_s``, each call of a task store ``store_limit_s``.
    ``show_errors`` tells callers the text of exceptions.

    Executors run on loops beside the server's, so that one which blocks stops nobody else.
    """

    def __init__(
        self,
        name: str = "agent",
        *,
        runner: object = None,
        card: AgentCard | Mapping[str, Any] | None = None,
        input_modes: Sequence[str] = MODES,
        keys: Sequence[str] = (),
        push_hosts: Sequence[str] = (),
        turn_limit_s: float = TURN_LIMIT_S,
        cancel_limit_s: float = CANCEL_LIMIT_S,
        store_limit_s: float = STORE_LIMIT_S,
        show_errors: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self.clock = clock or Clock()
        self.runner = runner
        self.input_modes = tuple(input_modes)
        self.keys = tuple(keys)
        self.push_hosts = tuple(push_hosts)
        self.turn_limit_s = turn_limit_s
        self.cancel_limit_s = cancel_limit_s
        self.store_limit_s = store_limit_s
        self.show_errors = show_errors
        self.directory: AgentsDirectory | None = None
        self.state: Store | None = None
        self.hosted = False
        self.grpc: over_grpc.Listening | None = None
        self.memory: TaskStore | None = None
        self.executor: AgentExecutor | None = None
        self.store: TaskStore | None = None
        self._card = None if card is None else checked(card)
        self._at_work: asyncio.Future[AtWork] | None = None
        self._guarded = guard.Guard(
            self._answer, guard.Policy(hosts=None, origins=frozenset({"*"}), render=_render)
        )
        self._lifespans = Starlette(lifespan=lambda _app: self.lifespan())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespans(scope, receive, send)
        elif scope["type"] == "http":
            await self._guarded(_without_slash(scope), receive, send)
        else:
            await WebSocketClose()(scope, receive, send)

    def agent_executor(
        self, cls: object = None, /, *, runner: object = None, **arguments: Any
    ) -> Callable[[C], C]:
        """Register an executor class; it is made with the runner and the other arguments.

        ``execute(context, event_queue)`` may be overridden; without it the runner answers, see
        ``runners.agent_of`` for what that may be. Raises DecorationError for a class that is no
        agent executor, without a runner, and for a second class (DEC-05).
        """
        import_now(_CLASSES)
        from agentdouble.apps.a2a.classes import executor_of, without_runner

        if cls is not None or runner is None:
            raise without_runner(cls)

        def register(given: C) -> C:
            made = executor_of(given, {"runner": runner, **arguments})
            if self.executor is not None:
                raise _twice("agent_executor", given)
            self.executor = made
            return given

        return register

    def task_store(self, cls: C | None = None, /, **arguments: Any) -> Any:
        """Register a task store class, made with the arguments; tasks are in memory without one.

        Raises DecorationError for a class that is no task store, or a second one (DEC-06).
        """
        import_now(_CLASSES)
        from agentdouble.apps.a2a.classes import store_of

        def register(given: C) -> C:
            made = store_of(given, arguments)
            if self.store is not None:
                raise _twice("task_store", given)
            self.store = made
            return given

        return register if cls is None else register(cls)

    def run(
        self,
        agent_card: AgentCard | Mapping[str, Any] | None = None,
        host: str = "0.0.0.0",  # noqa: S104 (specified)
        port: int = 8000,
        *,
        grpc_port: int | None = None,
        grpc_host: str = over_grpc.LOOPBACK,
    ) -> None:
        """Serve the application with a card, or its own, until SIGINT or SIGTERM (A2A-05).

        With ``grpc_port`` it answers over gRPC too, which needs the extra ``grpc``. Raises
        CardError for a card that lacks what it must have or promises what is not served, and
        AddressInUseError if a port is taken.
        """
        if agent_card is not None:
            self._card = checked(agent_card)
        listener = serving.open_socket(host, port)
        place = None if grpc_port is None else over_grpc.Place(grpc_port, grpc_host)

        def started() -> None:
            also = "" if self.grpc is None else f", over gRPC at {self.grpc.address}"
            address = serving.address_of(listener)
            print(f"{self.name} answers at {address}{also}", flush=True)  # noqa: T201

        guarded = guard.Guard(
            ShutdownMiddleware(Forwarded(self), _render), guard.Policy(hosts=None)
        )
        serving.serve(guarded, listener, started, lambda: over_grpc.prepare(self, place))

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Run executors on loops of their own inside, and end all turns afterwards."""
        self.hosted = True
        try:
            async with over_grpc.answering(self):
                yield
        finally:
            self.hosted = False
            await self._stop()

    async def reset(self) -> None:
        """End every turn and forget every task, but those in a store that users wrote."""
        await self._stop()
        self.memory = None
        if self.state is not None:
            await self._forget(self.state)

    def card(self, url: str) -> AgentCard:
        """Return the card that is served at a URL (A2A-01)."""
        if self._card is not None:
            return self._card
        modes, grpc = self.input_modes, "" if self.grpc is None else self.grpc.address
        return agent_card(self, url, bearer=bool(self.keys), input_modes=modes, grpc=grpc)

    @property
    def interfaces(self) -> Sequence[AgentInterface]:
        """Where the card that was given says the application is spoken to."""
        return () if self._card is None else tuple(self._card.supported_interfaces)

    @property
    def description(self) -> str:
        """What the application's executor or runner says of itself."""
        for one in (self.executor, self.runner):
            said = getattr(one, "description", None)
            if isinstance(said, str) and said:
                return said
            if one is not None and (inspect.isroutine(one) or one is self.executor):
                return inspect.cleandoc(vars(type(one)).get("__doc__") or inspect.getdoc(one) or "")
        return ""

    async def _forget(self, state: Store) -> None:
        ids = [id_ for id_ in await state.load(KIND) if id_.startswith(f"{self.name}/")]
        await state.write([Change(KIND, id_) for id_ in ids], lambda: None)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        at_work = await self.started()
        await at_work.service(scope, receive, send)

    async def started(self) -> AtWork:
        """Put the application to work with its first request: the SDK takes long to import."""
        if self._at_work is None:
            self._at_work = asyncio.ensure_future(self._start())
        starting = self._at_work
        try:
            return await asyncio.shield(starting)
        except BaseException:
            if starting.done() and self._at_work is starting:
                self._at_work = None  # the next request tries again
            raise

    async def _start(self) -> AtWork:
        over_grpc.check(self)
        await import_in_thread("agentdouble.apps.a2a.assembly")
        from agentdouble.apps.a2a.assembly import assemble

        return await assemble(self)

    async def _stop(self) -> None:
        at_work, self._at_work = self._at_work, None
        if at_work is not None:
            await (await at_work).close()


def _render(connection: HTTPConnection, refusal: guard.Refusal) -> Response:
    return paths.render_refusal(connection, refusal)


def _without_slash(scope: Scope) -> Scope:
    """Return a request whose path has no slash at the end, but that of the root."""
    root = scope.get("root_path", "")
    path = scope["path"].rstrip("/")
    if path == root:
        path = f"{root}/"
    return scope if path == scope["path"] else {**scope, "path": path}


def _twice(decorator: str, cls: type) -> DecorationError:
    return DecorationError(
        f"@app.{decorator} has registered a class already; {cls.__qualname__} is a second one.",
        decorator=decorator,
    )
