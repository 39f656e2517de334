"""Task stores (in memory, in the state, or a user's class) and users' executors (DEC-05, DEC-06).

The specification requires fewer methods of a class than the SDK does. An executor may omit
``cancel``, and also ``execute`` if its runner does the work. A task store has three methods with
other names. A subclass adds the missing methods.
"""

from __future__ import annotations

import datetime as dt
import inspect
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from a2a.server.agent_execution import AgentExecutor
from a2a.server.context import ServerCallContext
from a2a.server.tasks import InMemoryTaskStore, TaskStore
from a2a.server.tasks.copying_task_store import CopyingTaskStoreAdapter
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

from agentdouble.apps.a2a.events import ENDS, PAUSES
from agentdouble.apps.a2a.paths import KIND
from agentdouble.apps.a2a.runner_executor import RunnerExecutor
from agentdouble.errors import DecorationError, StateError
from agentdouble.state import Change, Record, Store, unbroken

FAILED = "The task store failed. The application's log says why."
RESTARTED = "The platform was restarted while the agent worked."

T = TypeVar("T")

_log = logging.getLogger(__name__)


class PersistentTaskStore(InMemoryTaskStore):
    """Tasks in memory; each change is saved in the state before the caller gets an answer.

    ``app`` is the application that owns the tasks. ``load()`` restores the tasks of an earlier
    process.
    """

    def __init__(self, state: Store, app: str) -> None:
        super().__init__()
        self._state = state
        self._app = app

    async def load(self, now: dt.datetime) -> None:
        """Restore the saved tasks; mark those that were running as failed."""
        for id_, record in (await self._state.load(KIND)).items():
            if not id_.startswith(f"{self._app}/"):
                continue
            task = ParseDict(record["task"], Task(), ignore_unknown_fields=True)
            context = ServerCallContext()
            if task.status.state in ENDS | PAUSES:
                await super().save(task, context)
            else:
                await self.save(_abandoned(task, now), context)

    async def save(self, task: Task, context: ServerCallContext) -> None:
        """Save a task, so that it cannot be lost after this returns. Raises InternalError."""
        record = {"task": MessageToDict(task)}
        await unbroken(self._save(task.id, record, partial(super().save, _copy(task), context)))

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        """Delete a task of the caller."""
        if await self.get(task_id, context) is not None:
            await unbroken(self._save(task_id, None, partial(super().delete, task_id, context)))

    async def _save(
        self, task_id: str, record: Record | None, save: Callable[[], Awaitable[None]]
    ) -> None:
        """Write a record to the state, then to memory."""
        try:
            await self._state.write(Change(KIND, f"{self._app}/{task_id}", record))
        except StateError as error:
            _log.error("Task %s: %s", task_id, error)
            raise InternalError(str(error)) from None
        await save()


def _abandoned(task: Task, now: dt.datetime) -> Task:
    """Return a task whose turn ended with an earlier process."""
    message = Message(
        message_id=str(uuid.uuid4()), role=Role.ROLE_AGENT, parts=[Part(text=RESTARTED)]
    )
    message.task_id, message.context_id = task.id, task.context_id
    task.status.CopyFrom(TaskStatus(state=TaskState.TASK_STATE_FAILED, message=message))
    task.status.timestamp.FromDatetime(now)
    return task


METHODS = ("save_task", "get_task", "delete_task")


class UserTaskStore(TaskStore):
    """A store over a user's ``save_task``, ``get_task`` and ``delete_task``, sync or async.

    These methods cannot list tasks, so only tasks that were saved or read here are listed.
    """

    def __init__(self, store: Any) -> None:
        self._store = store
        self._seen = InMemoryTaskStore()

    async def save(self, task: Task, context: ServerCallContext) -> None:
        """Save a task."""
        await self._call("save_task", _copy(task))
        await self._seen.save(task, context)

    async def get(self, task_id: str, context: ServerCallContext) -> Task | None:
        """Return a task of the caller, or None; raise InternalError for other objects."""
        result = await self._call("get_task", task_id)
        if result is None:
            await self._seen.delete(task_id, context)
            return None
        if not isinstance(result, Task) or result.id != task_id:
            kind = type(result).__name__
            raise InternalError(f"The task store returned a {kind} instead of task {task_id!r}.")
        task = _copy(result)
        await self._seen.save(task, context)
        return task

    async def list(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """List the tasks that have been saved or read since the start."""
        return await self._seen.list(params, context)

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        """Delete a task of the caller."""
        if await self.get(task_id, context) is not None:
            await self._call("delete_task", task_id)
            await self._seen.delete(task_id, context)

    async def _call(self, name: str, argument: Any) -> Any:
        try:
            result = getattr(self._store, name)(argument)
            return await result if inspect.isawaitable(result) else result
        except A2AError:
            raise
        except Exception as error:
            _log.error("The task store failed.", exc_info=error)
            raise InternalError(FAILED) from None


def _copy(task: Task) -> Task:
    copy = Task()
    copy.CopyFrom(task)
    return copy


def executor_of(cls: type, arguments: Mapping[str, Any]) -> AgentExecutor:
    """Return an instance of an executor class; raise DecorationError if it is not one.

    ``arguments``, such as the runner, are passed to the class's ``__init__``, or set as
    attributes if the class has no ``__init__``.
    """
    if not (isinstance(cls, type) and issubclass(cls, AgentExecutor)):
        raise DecorationError(
            f"@app.agent_executor requires a class derived from a2a.server.agent_execution."
            f"AgentExecutor; {_named(cls)} is not.",
            decorator="agent_executor",
        )
    for name in ("execute", "cancel"):
        if not inspect.iscoroutinefunction(getattr(cls, name)):
            raise DecorationError(
                f"{_named(cls)}.{name} must be async: 'async def {name}(self, context, "
                "event_queue)'.",
                decorator="agent_executor",
            )
    return _make(_completed(cls, RunnerExecutor), arguments, "agent_executor")


def without_runner(cls: object) -> DecorationError:
    """Return the error for a class that is registered without a runner."""
    over = "" if cls is None else f" over {_named(cls)}"
    return DecorationError(
        f"@app.agent_executor needs a runner: write @app.agent_executor(runner=...){over}.",
        decorator="agent_executor",
    )


def store_of(cls: type, arguments: Mapping[str, Any]) -> TaskStore:
    """Return an instance of a task store class; raise DecorationError if it is not one."""
    if not (isinstance(cls, type) and issubclass(cls, TaskStore)):
        raise DecorationError(
            f"@app.task_store requires a class derived from a2a.server.tasks.TaskStore; "
            f"{_named(cls)} is not.",
            decorator="task_store",
        )
    missing = [name for name in METHODS if not callable(getattr(cls, name, None))]
    if not missing:
        return UserTaskStore(_make(_completed(cls, _Unused), arguments, "task_store"))
    if inspect.isabstract(cls):
        raise DecorationError(
            f"{_named(cls)} is not a complete task store: it lacks {', '.join(missing)}.",
            decorator="task_store",
        )
    return CopyingTaskStoreAdapter(_make(cls, arguments, "task_store"))


class _Unused(TaskStore):
    """The SDK's methods, for a class that has the specification's methods instead."""

    async def save(self, *_: Any) -> None:
        raise NotImplementedError

    async def get(self, *_: Any) -> None:
        raise NotImplementedError

    async def list(self, *_: Any) -> Any:
        raise NotImplementedError

    async def delete(self, *_: Any) -> None:
        raise NotImplementedError


def _completed(cls: type[T], missing: type) -> type[T]:
    """Return a subclass that adds the methods which the class lacks."""
    if issubclass(cls, missing):
        return cls
    attributes = {"__module__": cls.__module__, "__doc__": cls.__doc__}
    return type(cls.__name__, (cls, missing), attributes)


def _make(cls: type[T], arguments: Mapping[str, Any], decorator: str) -> T:
    if cls.__init__ is object.__init__:
        instance = cls()
        for name, value in arguments.items():
            setattr(instance, name, value)
        return instance
    try:
        inspect.signature(cls).bind(**arguments)
    except TypeError as error:
        raise DecorationError(
            f"{_named(cls)} does not take the arguments of @app.{decorator}: {error}.",
            decorator=decorator,
        ) from None
    return cls(**arguments)


def _named(cls: object) -> str:
    return getattr(cls, "__qualname__", repr(cls))
