"""The events of an executor's turn, in the order that the protocol requires.

An executor may send no event, begin with a status, or send events after the end. The SDK would wait
forever, fail the turn, or store those events. This module turns each into a valid turn.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable

from a2a.server.events import Event
from a2a.types import (
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import InvalidAgentResponseError
from google.protobuf.timestamp_pb2 import Timestamp

ENDS = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_REJECTED,
    }
)
PAUSES = frozenset({TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED})

_log = logging.getLogger(__name__)


class EventOrder:
    """The events of one turn of a task; each method returns the events to send.

    ``task`` is the task before the turn, None for a new task. A message before any task is the
    answer, and there is no task.
    """

    def __init__(
        self,
        task_id: str,
        context_id: str,
        message: Message | None,
        task: Task | None,
        now: Callable[[], Timestamp],
    ) -> None:
        self._task_id = task_id
        self._context_id = context_id
        self._message = message
        self._now = now
        self._has_task = task is not None
        self._state = TaskState.TASK_STATE_UNSPECIFIED  # the last one of this turn
        self._artifacts = {artifact.artifact_id for artifact in task.artifacts} if task else set()
        self._has_events = False

    @property
    def ended(self) -> bool:
        """Whether the turn has its answer: a message, or a task with a final state."""
        return self._state in ENDS

    def take(self, event: Event) -> list[Event]:
        """Accept an event of the executor; the event is changed in place."""
        if self.ended:
            self._warn("%s after the end is dropped", type(event).__name__)
            return []
        self._has_events = True
        if isinstance(event, Message):
            return self._take_message(event)
        if isinstance(event, Task):
            return self._take_task(event)
        event.task_id, event.context_id = self._task_id, self._context_id
        if isinstance(event, TaskStatusUpdateEvent):
            return [*self._opened(), self._status(event.status, event)]
        return [*self._opened(), self._artifact(event)]

    def finish(self) -> list[Event]:
        """End the turn after the executor has returned.

        Raises InvalidAgentResponseError if there were no events.
        """
        if not self._has_events:
            raise InvalidAgentResponseError("The agent ended its turn without an event.")
        if self.ended or self._state in PAUSES:
            return []
        self._warn("a turn without an end is completed")
        return [self._status(TaskStatus(state=TaskState.TASK_STATE_COMPLETED))]

    def fail(self, text: str) -> list[Event]:
        """End the task as failed, with a text for the caller."""
        message = Message(
            message_id=str(uuid.uuid4()), role=Role.ROLE_AGENT, parts=[Part(text=text)]
        )
        return self._end(TaskStatus(state=TaskState.TASK_STATE_FAILED, message=message))

    def cancel(self) -> list[Event]:
        """End the task as canceled."""
        return self._end(TaskStatus(state=TaskState.TASK_STATE_CANCELED))

    def _end(self, status: TaskStatus) -> list[Event]:
        return [] if self.ended else [*self._opened(), self._status(status)]

    def _take_message(self, message: Message) -> list[Event]:
        message.role = Role.ROLE_AGENT
        message.message_id = message.message_id or str(uuid.uuid4())
        if not self._has_task:
            self._state = TaskState.TASK_STATE_COMPLETED
            return [message]
        self._warn("a message within a task becomes a part of its status")
        return [self._status(TaskStatus(state=TaskState.TASK_STATE_WORKING, message=message))]

    def _take_task(self, task: Task) -> list[Event]:
        task.id, task.context_id = self._task_id, self._context_id
        if self._has_task:  # the SDK ignores a task that is sent again
            updates = [TaskArtifactUpdateEvent(artifact=artifact) for artifact in task.artifacts]
            return [event for update in updates for event in self.take(update)] + [
                self._status(task.status)
            ]
        self._has_task = True
        self._artifacts = {artifact.artifact_id for artifact in task.artifacts}
        self._status(task.status)
        return [task]

    def _opened(self) -> list[Event]:
        """Return the task that must come first, or nothing if it has come."""
        if self._has_task:
            return []
        self._has_task = True
        task = Task(id=self._task_id, context_id=self._context_id)
        task.status.state = TaskState.TASK_STATE_SUBMITTED
        task.status.timestamp.CopyFrom(self._now())
        if self._message is not None:
            task.history.append(self._message)
        return [task]

    def _status(
        self, status: TaskStatus, event: TaskStatusUpdateEvent | None = None
    ) -> TaskStatusUpdateEvent:
        """Complete a status; return the event with it, which is ``event`` if it has one."""
        status.state = status.state or TaskState.TASK_STATE_WORKING
        self._state = status.state
        if not status.HasField("timestamp"):
            status.timestamp.CopyFrom(self._now())
        if status.HasField("message"):
            status.message.task_id, status.message.context_id = self._task_id, self._context_id
            status.message.role = Role.ROLE_AGENT
        return event or TaskStatusUpdateEvent(
            task_id=self._task_id, context_id=self._context_id, status=status
        )

    def _artifact(self, event: TaskArtifactUpdateEvent) -> TaskArtifactUpdateEvent:
        """Begin an artifact that has no earlier part to append to, which the SDK refuses."""
        artifact = event.artifact
        artifact.artifact_id = artifact.artifact_id or str(uuid.uuid4())
        event.append = event.append and artifact.artifact_id in self._artifacts
        self._artifacts.add(artifact.artifact_id)
        return event

    def _warn(self, message: str, *arguments: str) -> None:
        _log.warning("Task %s: " + message + ".", self._task_id, *arguments)
