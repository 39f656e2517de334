"""Where tasks are kept: in memory, and in the double's state where it has one (DEC-06, A2A-04)."""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import uuid
from collections.abc import Awaitable, Coroutine
from typing import Any, Protocol, TypeVar

from a2a.server.context import ServerCallContext
from a2a.server.owner_resolver import resolve_user_scope
from a2a.server.tasks import InMemoryTaskStore, TaskStore
from a2a.types import (
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
from a2a.utils.errors import A2AError, InternalError
from google.protobuf.json_format import MessageToDict, ParseDict

from agentdouble.apps.a2a.callers import Caller
from agentdouble.apps.a2a.event_order import ENDS, PAUSES
from agentdouble.apps.a2a.paths import KIND
from agentdouble.errors import StateError
from agentdouble.state import Change, Record, Store, unbroken

FAILED = "The task store failed. The application's log says why."
RESTARTED = "The platform was restarted while the agent worked."

T = TypeVar("T")

_log = logging.getLogger(__name__)


class KeptTaskStore(TaskStore):
    """Tasks in memory, each saved in the state before a caller hears of it.

    ``app`` is the application whose tasks these are; ``load()`` takes up those of an earlier
    process.
    """

    def __init__(self, state: Store, app: str) -> None:
        self._state = state
        self._app = app
        self._tasks = InMemoryTaskStore()

    async def load(self, now: dt.datetime) -> None:
        """Take up the tasks that were saved; those that nobody works at any more have failed."""
        for id_, record in (await self._state.load(KIND)).items():
            if not id_.startswith(f"{self._app}/"):
                continue
            task = ParseDict(record["task"], Task(), ignore_unknown_fields=True)
            context = _context_of(record["owner"])
            if task.status.state in ENDS | PAUSES:
                await self._tasks.save(task, context)
            else:
                await self.save(_abandoned(task, now), context)

    async def save(self, task: Task, context: ServerCallContext) -> None:
        """Save a task; return when it cannot be lost any more. Raises InternalError."""
        owner, twin = resolve_user_scope(context), Task()
        twin.CopyFrom(task)
        record = {"owner": owner, "task": MessageToDict(task)}
        await unbroken(self._keep(task.id, record, self._tasks.save(twin, context)))

    async def get(self, task_id: str, context: ServerCallContext) -> Task | None:
        """Return a task of the caller's, or None."""
        return await self._tasks.get(task_id, context)

    async def list(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """Return a page of the caller's tasks."""
        return await self._tasks.list(params, context)

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        """Delete a task of the caller's."""
        if await self._tasks.get(task_id, context) is None:
            return
        await unbroken(self._keep(task_id, None, self._tasks.delete(task_id, context)))

    async def _keep(
        self, task_id: str, record: Record | None, remember: Coroutine[Any, Any, None]
    ) -> None:
        """Have the state keep a record, and then memory."""
        try:
            await self._state.write([Change(KIND, self._id(task_id), record)], _nothing)
        except StateError as error:
            remember.close()
            _log.error("Task %s: %s", task_id, error)
            raise InternalError(str(error)) from None
        await remember

    def _id(self, task_id: str) -> str:
        return f"{self._app}/{task_id}"


class Run(Protocol):
    """Runs a coroutine somewhere, and returns its result."""

    async def __call__(self, coroutine: Any, /) -> Any: ...


class GuardedTaskStore(TaskStore):
    """A store that users wrote: run beside the server, and waited for no longer than a limit.

    What it raises is logged, and the caller hears of an InternalError without the text.
    """

    def __init__(self, store: TaskStore, run: Run, limit_s: float) -> None:
        self._store = store
        self._run = run
        self._limit_s = limit_s

    async def save(self, task: Task, context: ServerCallContext) -> None:
        """Save a task."""
        await self._guarded(self._store.save(task, context))

    async def get(self, task_id: str, context: ServerCallContext) -> Task | None:
        """Return a task, or None."""
        return await self._guarded(self._store.get(task_id, context))

    async def list(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """Return a page of tasks."""
        return await self._guarded(self._store.list(params, context))

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        """Delete a task."""
        await self._guarded(self._store.delete(task_id, context))

    async def _guarded(self, call: Awaitable[T]) -> T:
        try:
            return await asyncio.wait_for(self._run(call), self._limit_s)
        except A2AError:
            raise
        except Exception as error:
            _log.error("The task store failed.", exc_info=error)
            raise InternalError(FAILED) from None


def _nothing() -> None:
    """Take nothing back: memory follows what is kept."""


def _abandoned(task: Task, now: dt.datetime) -> Task:
    """Return a task whose turn ended with an earlier process."""
    said = Message(message_id=str(uuid.uuid4()), role=Role.ROLE_AGENT, parts=[Part(text=RESTARTED)])
    said.task_id, said.context_id = task.id, task.context_id
    task.status.CopyFrom(TaskStatus(state=TaskState.TASK_STATE_FAILED, message=said))
    task.status.timestamp.FromDatetime(now)
    return task


def _context_of(owner: str) -> ServerCallContext:
    return ServerCallContext(user=Caller(owner))
