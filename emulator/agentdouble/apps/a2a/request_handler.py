"""The SDK's request handler with the platform's additions, and the callers of an application."""

from __future__ import annotations

from typing import Any

from a2a.server.agent_execution import RequestContext, SimpleRequestContextBuilder
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import TaskStore
from a2a.types import (
    CancelTaskRequest,
    SendMessageRequest,
    Task,
)
from a2a.utils.errors import PushNotificationNotSupportedError

from agentdouble.apps.a2a.events import ENDS
from agentdouble.apps.a2a.guarding_executor import GuardingExecutor


class Handler(DefaultRequestHandler):
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
