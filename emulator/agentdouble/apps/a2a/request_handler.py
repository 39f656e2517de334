"""The SDK's request handler with the platform's additions, and the callers of an application."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from a2a.auth.user import User
from a2a.server.agent_execution import RequestContext, SimpleRequestContextBuilder
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import DefaultServerCallContextBuilder
from a2a.server.tasks import TaskStore
from a2a.types import (
    CancelTaskRequest,
    SendMessageRequest,
    Task,
)
from a2a.utils.errors import PushNotificationNotSupportedError
from starlette.requests import HTTPConnection, Request

from agentdouble.apps.a2a.events import ENDS
from agentdouble.apps.a2a.guarding_executor import GuardingExecutor
from agentdouble.mcp_hosting.host import find, presented


class Handler(DefaultRequestHandler):
    """Calls the executor before its task is canceled, and refuses push if the platform has none."""

    agent_executor: GuardingExecutor

    async def on_cancel_task(
        self, params: CancelTaskRequest, context: ServerCallContext
    ) -> Task | None:
        """Cancel a task; the task continues if its executor refuses."""
        task = await self.task_store.get(params.id, context) if params.id else None
        if isinstance(task, Task) and task.status.state not in ENDS:
            asked = RequestContext(
                call_context=context, task_id=task.id, context_id=task.context_id, task=task
            )
            await self.agent_executor.ask_to_cancel(asked)
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
            found = await self._store.get(task_id, context)
            context_id = found.context_id if found is not None else None
        return await super().build(context, params, task_id, context_id, task)


class Caller(User):
    """A caller by name, which does not reveal the key; the empty name is any caller."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def is_authenticated(self) -> bool:
        """Whether the caller has sent a key."""
        return bool(self._name)

    @property
    def user_name(self) -> str:
        """The caller's name; other callers do not see this caller's tasks."""
        return self._name


class Callers(DefaultServerCallContextBuilder):
    """Identifies callers by the application's keys; without keys all callers are the same."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = tuple(keys)

    def admits(self, request: HTTPConnection) -> bool:
        """Return whether a request has one of the keys, or no keys are set."""
        return not self._keys or find(presented(request.scope), self._keys) is not None

    def build(self, request: Request) -> ServerCallContext:
        """Return the context of a call."""
        context = super().build(request)
        context.user = self.caller(request)
        return context

    def caller(self, request: HTTPConnection) -> Caller:
        """Return the caller of a request."""
        key = find(presented(request.scope), self._keys)
        return Caller("" if key is None else _name(key))


# The name is stored with the caller's tasks; the key must not be stored there.
def _name(key: str) -> str:
    return f"key-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
