"""A task store as the specification has it, behind the interface of the SDK (A2A-04)."""

from __future__ import annotations

import inspect
from typing import Any

from a2a.server.context import ServerCallContext
from a2a.server.owner_resolver import resolve_user_scope
from a2a.server.tasks import InMemoryTaskStore, TaskStore
from a2a.types import ListTasksRequest, ListTasksResponse, Task
from a2a.utils.errors import InternalError

METHODS = ("save_task", "get_task", "delete_task")
OWNER = "agentdouble.owner"


class UserTaskStore(TaskStore):
    """Keeps tasks with ``save_task``, ``get_task`` and ``delete_task``, sync or async.

    Those know nothing of callers and cannot list: a task of a caller with a name carries it in
    its metadata, and what has been saved or read here can be listed.
    """

    def __init__(self, store: Any) -> None:
        self._store = store
        self._seen = InMemoryTaskStore()

    async def save(self, task: Task, context: ServerCallContext) -> None:
        """Save a task."""
        kept = _copy(task)
        owner = resolve_user_scope(context)
        if owner:
            kept.metadata[OWNER] = owner
        await self._call("save_task", kept)
        await self._seen.save(task, context)

    async def get(self, task_id: str, context: ServerCallContext) -> Task | None:
        """Return a task of the caller's, or None; raise InternalError for what is no task."""
        found = await self._call("get_task", task_id)
        if found is None:
            await self._seen.delete(task_id, context)
            return None
        if not isinstance(found, Task) or found.id != task_id:
            kind = type(found).__name__
            raise InternalError(f"The task store returned no task {task_id!r} but a {kind}.")
        task = _copy(found)
        if _take_owner(task) != resolve_user_scope(context):
            return None
        await self._seen.save(task, context)
        return task

    async def list(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """List what has been saved or read since the start."""
        return await self._seen.list(params, context)

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        """Delete a task of the caller's."""
        if await self.get(task_id, context) is not None:
            await self._call("delete_task", task_id)
            await self._seen.delete(task_id, context)

    async def _call(self, name: str, argument: Any) -> Any:
        result = getattr(self._store, name)(argument)
        return await result if inspect.isawaitable(result) else result


def _copy(task: Task) -> Task:
    copy = Task()
    copy.CopyFrom(task)
    return copy


def _take_owner(task: Task) -> str:
    """Return whose task it is, and take that out."""
    if not task.HasField("metadata") or OWNER not in task.metadata:
        return ""
    owner = task.metadata[OWNER]
    del task.metadata.fields[OWNER]
    if not task.metadata.fields:
        task.ClearField("metadata")
    return str(owner)
