"""A2AApp: serves an executor and a task store over the A2A protocol (sections 2.9 and 4.6).

The SDK is imported when a class is registered, a card is made or a request arrives, not earlier.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocketClose

from agentdouble.agents.directory import AgentsDirectory
from agentdouble.apps.a2a import paths
from agentdouble.core.clock import Clock
from agentdouble.core.imports import import_now
from agentdouble.core.threads import import_in_thread
from agentdouble.errors import DecorationError
from agentdouble.journal.failures import ServerErrorMiddleware
from agentdouble.server import guard
from agentdouble.server.forwarded_prefix import Forwarded
from agentdouble.server.sockets import address_of, open_socket
from agentdouble.server.starting import serve
from agentdouble.state import Change, Store

if TYPE_CHECKING:
    from a2a.server.agent_execution import AgentExecutor
    from a2a.server.tasks import TaskStore
    from a2a.types import AgentCard

    from agentdouble.apps.a2a.service import A2AService

_CARDS = "agentdouble.apps.a2a.cards"
_CLASSES = "agentdouble.apps.a2a.task_stores"

C = TypeVar("C", bound=type)

TURN_LIMIT_S = 600.0
CANCEL_LIMIT_S = 5.0


class A2AApp:
    """An A2A application: an ASGI application that any server can host.

    ``runner`` answers if no executor class is registered; ``adapters.agent_of`` says which objects
    it accepts. ``card`` is an AgentCard or its JSON; without one, the application makes a card for
    the URL of the request, with ``input_modes`` as the media types that it accepts. Push
    notifications are sent to loopback and to ``push_hosts``. A turn that takes longer than
    ``turn_limit_s`` fails, and ``cancel_limit_s`` limits the wait for ``cancel``. ``show_errors``
    sends the text of exceptions to callers.

    Executors run on separate event loops, so a blocking executor does not stop the server.
    """

    _running: asyncio.Future[A2AService] | None = None

    def __init__(
        self,
        name: str = "agent",
        *,
        runner: object = None,
        card: AgentCard | Mapping[str, Any] | None = None,
        input_modes: Sequence[str] = paths.MODES,
        push_hosts: Sequence[str] = (),
        turn_limit_s: float = TURN_LIMIT_S,
        cancel_limit_s: float = CANCEL_LIMIT_S,
        show_errors: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self.clock = clock or Clock()
        self.runner = runner
        self.input_modes = tuple(input_modes)
        self.push_hosts = tuple(push_hosts)
        self.turn_limit_s = turn_limit_s
        self.cancel_limit_s = cancel_limit_s
        self.show_errors = show_errors
        self.directory: AgentsDirectory | None = None
        self.state: Store | None = None
        self.hosted = False
        self.memory: TaskStore | None = None
        self.executor: AgentExecutor | None = None
        self.store: TaskStore | None = None
        self._card = None if card is None else _checked(card)

    def agent_executor(
        self, cls: object = None, /, *, runner: object = None, **arguments: Any
    ) -> Callable[[C], C]:
        """Register an executor class; it is created with the runner and the other arguments.

        The class may define ``execute(context, event_queue)``; otherwise the runner answers.
        ``adapters.agent_of`` says which objects a runner can be. Raises DecorationError for a class
        that is not an agent executor, for a missing runner, and for a second class (DEC-05).
        """
        import_now(_CLASSES)
        from agentdouble.apps.a2a.task_stores import (  # slow: the A2A SDK
            executor_of,
            without_runner,
        )

        if cls is not None or runner is None:
            raise without_runner(cls)

        def register(cls: C) -> C:
            executor = executor_of(cls, {"runner": runner, **arguments})
            if self.executor is not None:
                raise _twice("agent_executor", cls)
            self.executor = executor
            return cls

        return register

    def task_store(self, cls: C | None = None, /, **arguments: Any) -> Any:
        """Register a task store class, created with the arguments; the default store is in memory.

        Raises DecorationError for a class that is not a task store, and for a second class
        (DEC-06).
        """
        import_now(_CLASSES)
        from agentdouble.apps.a2a.task_stores import store_of  # slow: the A2A SDK

        def register(cls: C) -> C:
            store = store_of(cls, arguments)
            if self.store is not None:
                raise _twice("task_store", cls)
            self.store = store
            return cls

        return register if cls is None else register(cls)

    def card(self, url: str) -> AgentCard:
        """Return the card that is served at a URL (A2A-01)."""
        if self._card is not None:
            return self._card
        import_now(_CARDS)
        from agentdouble.apps.a2a.cards import agent_card  # slow: the A2A SDK

        return agent_card(self, url, input_modes=self.input_modes)

    @property
    def description(self) -> str:
        """The description of the executor or the runner."""
        for agent in (self.executor, self.runner):
            text = getattr(agent, "description", None)
            if isinstance(text, str) and text:
                return text
            if agent is not None and (inspect.isroutine(agent) or agent is self.executor):
                doc = vars(type(agent)).get("__doc__") or inspect.getdoc(agent)
                return inspect.cleandoc(doc or "")
        return ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespans(scope, receive, send)
        elif scope["type"] == "http":
            root = scope.get("root_path", "")
            path = scope["path"].rstrip("/")  # a slash at the end counts only at the root
            if path == root:
                path = f"{root}/"
            await self._guarded(
                scope if path == scope["path"] else {**scope, "path": path}, receive, send
            )
        else:
            await WebSocketClose()(scope, receive, send)

    def clone(self) -> A2AApp:
        """Return an application with the same executor, to be served beside this one.

        Its tasks are in memory, because a user's store belongs to this application.
        """
        clone = copy.copy(self)
        for cached in ("_running", "_guarded", "_lifespans"):
            vars(clone).pop(cached, None)
        clone.directory = clone.state = clone.memory = clone.store = None
        clone.executor, clone.hosted = copy.copy(self.executor), False
        return clone

    async def late_routes(self) -> Sequence[BaseRoute]:
        """Return the routes of the cards and of the protocol; this starts the application."""
        return (await self.started()).routes

    def run(
        self,
        agent_card: AgentCard | Mapping[str, Any] | None = None,
        host: str = "0.0.0.0",  # noqa: S104 (specified)
        port: int = 8000,
    ) -> None:
        """Serve the application until SIGINT or SIGTERM, with this or a generated card (A2A-05).

        Raises CardError for a card that lacks a required field, NotBuiltError for one that
        promises gRPC, and AddressInUseError if the port is taken.
        """
        if agent_card is not None:
            self._card = _checked(agent_card)
        listener = open_socket(host, port)

        def started() -> None:
            print(f"{self.name} answers at {address_of(listener)}", flush=True)  # noqa: T201

        guarded = guard.GuardMiddleware(
            ServerErrorMiddleware(Forwarded(self), _render), guard.Policy(hosts=None)
        )
        serve(guarded, listener, started)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Run executors on their own event loops in this context, and end all turns afterwards."""
        async with AsyncExitStack() as ending:
            ending.push_async_callback(self._stop)
            ending.callback(setattr, self, "hosted", False)
            self.hosted = True
            yield

    async def reset(self) -> None:
        """End every turn and forget every task, except those in a user's own store."""
        await self._stop()
        self.memory = None
        if self.state is not None:
            await self._forget(self.state)

    async def started(self) -> A2AService:
        """Return the running application; the first request starts it (the SDK imports slowly)."""
        if self._running is None:
            self._running = asyncio.ensure_future(self._start())
        starting = self._running
        try:
            return await asyncio.shield(starting)
        except BaseException:
            if starting.done() and self._running is starting:
                self._running = None  # the next request tries again
            raise

    @cached_property
    def _guarded(self) -> guard.GuardMiddleware:
        policy = guard.Policy(hosts=None, origins=frozenset({"*"}), render=_render)
        return guard.GuardMiddleware(self._answer, policy)

    @cached_property
    def _lifespans(self) -> Starlette:
        return Starlette(lifespan=lambda _app: self.lifespan())

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        service = await self.started()
        await service(scope, receive, send)

    async def _start(self) -> A2AService:
        await import_in_thread("agentdouble.apps.a2a.service")
        from agentdouble.apps.a2a.service import assemble  # slow: the A2A SDK, 0.5 s

        return await assemble(self)

    async def _stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            await (await running).close()

    async def _forget(self, state: Store) -> None:
        ids = [id_ for id_ in await state.load(paths.KIND) if id_.startswith(f"{self.name}/")]
        await state.write(*(Change(paths.KIND, id_) for id_ in ids))


def _twice(decorator: str, cls: type) -> DecorationError:
    return DecorationError(
        f"@app.{decorator} accepts one class; {cls.__qualname__} is a second one.",
        decorator=decorator,
    )


def _checked(card: AgentCard | Mapping[str, Any]) -> AgentCard:
    import_now(_CARDS)
    from agentdouble.apps.a2a.cards import checked  # slow: the A2A SDK

    return checked(card)


def _render(connection: HTTPConnection, refusal: guard.Refusal) -> Response:
    return paths.render_refusal(connection, refusal)
