"""A running A2A application: the SDK's handler and routes with the executor and the task store.

Both versions of the protocol are served, and ``/.well-known/agent-card.json`` has one form for each
kind of caller:

- who sends ``A2A-Version: 1.0``, or accepts ``application/a2a+json``, gets the fields of 1.0 alone.
  A strict reader of 1.0 refuses all others.
- who sends ``A2A-Version: 0.3``, or reads ``/.well-known/agent.json``, gets the card of 0.3.
- who sends no version gets the fields of both. a2a-sdk 0.3 asks in this way, and fails without
  ``url``. So does the card resolver of a2a-sdk 1.x, which would speak 0.3 if it got that card. Both
  ignore the fields that they do not know.
"""

from __future__ import annotations

import email.utils
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.routes import create_agent_card_routes
from a2a.server.tasks import InMemoryTaskStore, TaskStore
from a2a.types import AgentCapabilities, AgentCard
from a2a.utils.errors import UnsupportedOperationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from agentdouble import ledger
from agentdouble.agents.directory import AgentsDirectory
from agentdouble.application_loop import ApplicationLoop
from agentdouble.apps.a2a import bindings, paths
from agentdouble.apps.a2a.application import A2ADefinition
from agentdouble.apps.a2a.cards import both_versions, legacy, modern
from agentdouble.apps.a2a.guarding_executor import ExecutorLoop, GuardingExecutor
from agentdouble.apps.a2a.paths import VERSION_HEADER
from agentdouble.apps.a2a.push import Configs, Pusher, Receivers
from agentdouble.apps.a2a.request_handler import Callers, Contexts, Handler
from agentdouble.apps.a2a.runner_executor import RunnerExecutor
from agentdouble.apps.a2a.task_stores import GuardedTaskStore, PersistentTaskStore
from agentdouble.apps.adapters import ADAPTERS
from agentdouble.guard import Refusal
from agentdouble.openapi import operation

CARD_LIFETIME_S = 60
_VARY = {"Vary": f"{VERSION_HEADER}, Accept"}
_MODERN_TYPE = "application/a2a+json"  # registered with version 1.0 (section 14.1)


@dataclass(frozen=True)
class Parts:
    """The parts of a service; ``card`` returns the card for the URL of the request."""

    executor: GuardingExecutor
    store: TaskStore
    card: Callable[[str], AgentCard]
    keys: Sequence[str]
    push_hosts: Sequence[str]


class Service:
    """Answers requests of the protocol on one event loop, until ``close()``."""

    def __init__(self, parts: Parts) -> None:
        self._callers = Callers(parts.keys)
        self._card = parts.card
        self._since = email.utils.formatdate(usegmt=True)
        card = HandlerCard(parts.card)
        configs = Configs()
        receivers = Receivers(parts.push_hosts)
        self._pusher = Pusher(configs, receivers, parts.store)
        self.handler = Handler(
            agent_executor=parts.executor,
            task_store=parts.store,
            agent_card=card,  # type: ignore[arg-type]
            push_config_store=configs,
            push_sender=self._pusher,
            push_url_validator=receivers.named,
            request_context_builder=Contexts(parts.store),
        )
        # The ledger's answer may change from one request to the next, so there are two
        # applications.
        self._apps = {
            "both": self._app(bindings.both(self.handler, self._callers)),
            "0.3": self._app(bindings.legacy(self.handler, self._callers)),
        }

    @property
    def routes(self) -> Sequence[BaseRoute]:
        """The routes of both versions."""
        return self._apps["both"].routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        if not self._is_public(request) and not self._callers.admits(request):
            refusal = Refusal(401, "Unauthorized", "Send 'Authorization: Bearer <key>'.")
            await paths.render_refusal(request, refusal)(scope, receive, send)
            return
        await self._apps[ledger.choose("U-A2A-TASK")](scope, receive, send)

    async def close(self) -> None:
        """End every turn and stop sending notifications."""
        await self.handler.aclose()
        await self._pusher.close()

    def _app(self, operations: list[BaseRoute]) -> Starlette:
        cards = [
            Route(paths.CARD, self._on_card),
            Route(paths.LEGACY_CARD, self._on_legacy_card),
        ]
        errors: Mapping[Any, Any] = {HTTPException: bindings.on_http_error}
        app = Starlette(routes=[*cards, *operations], exception_handlers=errors)
        app.router.redirect_slashes = False
        return app

    @operation(dict[str, Any])
    async def _on_card(self, request: Request) -> Response:
        """Return the agent card in the version that the request names."""
        asked = request.headers.get(VERSION_HEADER, "").strip()
        if ledger.choose("U-A2A-TASK") == "0.3" or asked.startswith("0."):
            return await self._on_legacy_card(request)
        takes_modern = asked or _MODERN_TYPE in request.headers.get("Accept", "").lower()
        form = modern if takes_modern else both_versions
        [route] = create_agent_card_routes(
            form(self._card_for(request)), cache_control=f"max-age={CARD_LIFETIME_S}"
        )
        answer: Response = await route.endpoint(request)
        answer.headers["Last-Modified"] = self._since
        answer.headers.update(_VARY)
        return answer

    @operation(dict[str, Any])
    async def _on_legacy_card(self, request: Request) -> Response:
        """Return the agent card of version 0.3."""
        return JSONResponse(legacy(self._card_for(request)), headers=_VARY)

    def _card_for(self, request: Request) -> AgentCard:
        card = AgentCard()
        url = request.url
        card.CopyFrom(self._card(f"{url.scheme}://{url.netloc}{request.scope['root_path']}"))
        if ledger.choose("U-WEBHOOKS") == "none":
            card.capabilities.push_notifications = False
        return card

    def _is_public(self, request: Request) -> bool:
        path: str = request.scope["path"]
        return path.endswith((paths.CARD, paths.LEGACY_CARD))


class HandlerCard:
    """The fields of a card that the handler reads, with the ledger's answers."""

    def __init__(self, card: Callable[[str], AgentCard]) -> None:
        self._card = card("http://localhost")
        self.default_input_modes = self._card.default_input_modes
        self.skills = self._card.skills

    @property
    def capabilities(self) -> AgentCapabilities:
        """The capabilities, without push notifications if the platform has no webhooks."""
        capabilities = self._card.capabilities
        if ledger.choose("U-WEBHOOKS") != "none":
            return capabilities
        without = AgentCapabilities()
        without.CopyFrom(capabilities)
        without.push_notifications = False
        return without


@dataclass(frozen=True)
class RunningApplication:
    """The running parts of an application, until it is closed."""

    service: Service
    executors: ExecutorLoop
    store_loop: ApplicationLoop

    async def close(self) -> None:
        """End every turn and every event loop."""
        await self.service.close()
        await self.executors.close()
        await self.store_loop.stop()


async def assemble(app: A2ADefinition) -> RunningApplication:
    """Start an application; raise StateError if its tasks cannot be read."""
    executors, store_loop = ExecutorLoop(app.name), ApplicationLoop()
    if app.hosted:
        executors.open()
    store = await _store(app, store_loop)
    executor = GuardingExecutor(_executor(app), app, executors)
    service = Service(Parts(executor, store, app.card, app.keys, app.push_hosts))
    return RunningApplication(service, executors, store_loop)


async def _store(app: A2ADefinition, loop: ApplicationLoop) -> TaskStore:
    if app.store is not None:
        if app.hosted:
            await loop.start()
        return GuardedTaskStore(app.store, loop.run, app.store_limit_s)
    if app.memory is None:
        app.memory = await _own_store(app)
    return app.memory


async def _own_store(app: A2ADefinition) -> TaskStore:
    if app.state is None:
        return InMemoryTaskStore()
    store = PersistentTaskStore(app.state, app.name)
    await store.load(app.clock.now())
    return store


def _executor(app: A2ADefinition) -> AgentExecutor:
    executor = app.executor
    if executor is None and app.runner is None:
        return _NoExecutor()
    if executor is None:
        executor = RunnerExecutor()
        executor.runner = app.runner
    if isinstance(executor, RunnerExecutor):
        executor.hosted(app.name, app.directory or AgentsDirectory(adapters=ADAPTERS))
    return executor


class _NoExecutor(AgentExecutor):
    """An executor that refuses every message, because no executor class is registered."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise UnsupportedOperationError(
            "The application has no executor. Register a class with @app.agent_executor."
        )

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise UnsupportedOperationError("The application has no executor.")
