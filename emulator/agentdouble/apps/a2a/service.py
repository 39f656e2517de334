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
from typing import Any

from a2a.server.agent_execution import AgentExecutor, RequestContext, SimpleRequestContextBuilder
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes
from a2a.server.tasks import InMemoryTaskStore, TaskStore
from a2a.types import AgentCapabilities, AgentCard, CancelTaskRequest, SendMessageRequest, Task
from a2a.utils.errors import PushNotificationNotSupportedError, UnsupportedOperationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from agentdouble.agents.directory import AgentsDirectory
from agentdouble.apps.a2a import bindings, paths
from agentdouble.apps.a2a.cards import both_versions, legacy, modern
from agentdouble.apps.a2a.events import ENDS
from agentdouble.apps.a2a.executor_loop import ExecutorLoop
from agentdouble.apps.a2a.guarding_executor import GuardingExecutor
from agentdouble.apps.a2a.paths import VERSION_HEADER
from agentdouble.apps.a2a.push import Configs, Pusher, Receivers
from agentdouble.apps.a2a.runner_executor import RunnerExecutor
from agentdouble.apps.a2a.served_application import ServedApplication
from agentdouble.apps.a2a.task_stores import PersistentTaskStore
from agentdouble.apps.adapters import ADAPTERS
from agentdouble.core import ledger
from agentdouble.openapi import operation

CARD_LIFETIME_S = 60
_VARY = {"Vary": f"{VERSION_HEADER}, Accept"}
_MODERN_TYPE = "application/a2a+json"  # registered with version 1.0 (section 14.1)


class A2AHandler(DefaultRequestHandler):
    """Calls the executor before its task is canceled, and refuses push if the platform has none."""

    agent_executor: GuardingExecutor

    async def on_cancel_task(
        self, params: CancelTaskRequest, context: ServerCallContext
    ) -> Task | None:
        """Cancel a task; the task continues if its executor refuses."""
        task = await self.task_store.get(params.id, context) if params.id else None
        if isinstance(task, Task) and task.status.state not in ENDS:
            request = RequestContext(
                call_context=context, task_id=task.id, context_id=task.context_id, task=task
            )
            await self.agent_executor.ask_to_cancel(request)
        canceled: Task | None = await super().on_cancel_task(params, context)
        return canceled

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Any:
        """Answer a message with a task or a message."""
        self._check(params)
        return await super().on_message_send(params, context)

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> Any:
        """Answer a message with the events of its turn."""
        self._check(params)
        async for event in super().on_message_send_stream(params, context):
            yield event

    def _check(self, params: SendMessageRequest) -> None:
        card = self._agent_card
        wants_push = params.configuration.HasField("task_push_notification_config")
        if wants_push and not card.capabilities.push_notifications:
            raise PushNotificationNotSupportedError


class Contexts(SimpleRequestContextBuilder):
    """Adds the context of the task to a message that gives only the task; the SDK does not."""

    def __init__(self, store: TaskStore) -> None:
        super().__init__()
        self._store = store

    async def build(
        self,
        context: ServerCallContext,
        params: SendMessageRequest | None = None,
        task_id: str | None = None,
        context_id: str | None = None,
        task: Task | None = None,
    ) -> RequestContext:
        """Return the context of a message."""
        if task_id and not context_id:
            known_task = await self._store.get(task_id, context)
            context_id = known_task.context_id if known_task is not None else None
        return await super().build(context, params, task_id, context_id, task)


class A2AService:
    """Answers requests of the protocol on one event loop, until ``close()``."""

    def __init__(self, app: ServedApplication, store: TaskStore) -> None:
        self._executors = ExecutorLoop(app.name)
        if app.hosted:
            self._executors.open()
        self._card = app.card
        self._since = email.utils.formatdate(usegmt=True)
        card = HandlerCard(app.card)
        configs = Configs()
        receivers = Receivers(app.push_hosts)
        self._pusher = Pusher(configs, receivers, store)
        self.handler = A2AHandler(
            agent_executor=GuardingExecutor(_executor(app), app, self._executors),
            task_store=store,
            agent_card=card,  # type: ignore[arg-type]
            push_config_store=configs,
            push_sender=self._pusher,
            push_url_validator=receivers.named,
            request_context_builder=Contexts(store),
        )
        # The ledger's answer may change from one request to the next, so there are two
        # applications.
        self._apps = {
            "both": self._app(bindings.both_versions(self.handler)),
            "0.3": self._app(bindings.legacy(self.handler)),
        }

    @property
    def routes(self) -> Sequence[BaseRoute]:
        """The routes of both versions."""
        return self._apps["both"].routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._apps[ledger.choose("U-A2A-TASK")](scope, receive, send)

    async def close(self) -> None:
        """End every turn and every event loop, and stop sending notifications."""
        await self.handler.aclose()
        await self._pusher.close()
        await self._executors.close()

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
        version = request.headers.get(VERSION_HEADER, "").strip()
        if ledger.choose("U-A2A-TASK") == "0.3" or version.startswith("0."):
            return await self._on_legacy_card(request)
        takes_modern = version or _MODERN_TYPE in request.headers.get("Accept", "").lower()
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


class HandlerCard:
    """The fields of a card that the handler reads, with the ledger's answers."""

    def __init__(self, card: Callable[[str], AgentCard]) -> None:
        self._card = card("http://localhost")
        self.default_input_modes = self._card.default_input_modes
        self.skills = self._card.skills

    @property
    def capabilities(self) -> AgentCapabilities:
        """The capabilities, without push notifications if the platform has no webhooks."""
        capabilities = AgentCapabilities()
        capabilities.CopyFrom(self._card.capabilities)
        if ledger.choose("U-WEBHOOKS") == "none":
            capabilities.push_notifications = False
        return capabilities


async def assemble(app: ServedApplication) -> A2AService:
    """Start an application; raise StateError if its tasks cannot be read."""
    return A2AService(app, app.store or await _own_store(app))


async def _own_store(app: ServedApplication) -> TaskStore:
    if app.memory is None and app.state is not None:
        app.memory = store = PersistentTaskStore(app.state, app.name)
        await store.load(app.clock.now())
    app.memory = app.memory or InMemoryTaskStore()
    return app.memory


def _executor(app: ServedApplication) -> AgentExecutor:
    executor = app.executor
    if executor is None and app.runner is None:
        return _MissingExecutor()
    if executor is None:
        executor = RunnerExecutor()
        executor.runner = app.runner
    if isinstance(executor, RunnerExecutor):
        executor.hosted(app.name, app.directory or AgentsDirectory(adapters=ADAPTERS))
    return executor


class _MissingExecutor(AgentExecutor):
    """An executor that refuses every message, because no executor class is registered."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise UnsupportedOperationError(
            "The application has no executor. Register a class with @app.agent_executor."
        )

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise UnsupportedOperationError("The application has no executor.")
