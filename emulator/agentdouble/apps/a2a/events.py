"""The events of an executor's turn, in the order that the protocol requires, and writable as JSON.

An executor may send no event, begin with a status, or send events after the end. The SDK would wait
forever, fail the turn, or store those events. This module makes a valid turn of each."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from typing import Union

from a2a.server.events import Event
from a2a.types import (
    Artifact,
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
from google.protobuf.json_format import MessageToDict, SerializeToJsonError
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

    ``task`` is the task before the turn, None for a new task. A first message is held back: if no
    other event follows, it is the answer and there is no task.
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
        self._artifacts = {one.artifact_id for one in task.artifacts} if task else set()
        self._held: Message | None = None
        self._has_events = False

    @property
    def ended(self) -> bool:
        """Whether the task has a final state."""
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
            return [*self._opened(), self._status(event)]
        return [*self._opened(), self._artifact(event)]

    def finish(self) -> list[Event]:
        """End the turn after the executor has returned.

        Raises InvalidAgentResponseError if there were no events.
        """
        if not self._has_events:
            raise InvalidAgentResponseError("The agent ended its turn without saying anything.")
        if self._held is not None:
            held, self._held = self._held, None
            self._state = TaskState.TASK_STATE_COMPLETED
            return [held]
        if self.ended or self._state in PAUSES:
            return []
        self._warn("a turn without an end is completed")
        return [self._to(TaskState.TASK_STATE_COMPLETED)]

    def fail(self, text: str) -> list[Event]:
        """End the task as failed, with a text for the caller."""
        return self._end(TaskState.TASK_STATE_FAILED, text)

    def cancel(self) -> list[Event]:
        """End the task as canceled."""
        return self._end(TaskState.TASK_STATE_CANCELED, "")

    def _end(self, state: TaskState, text: str) -> list[Event]:
        if self.ended:
            return []
        return [*self._opened(), self._to(state, text)]

    def _take_message(self, message: Message) -> list[Event]:
        if not message.message_id:
            message.message_id = str(uuid.uuid4())
        message.role = Role.ROLE_AGENT
        if not self._has_task and self._held is None:
            self._held = message
            return []
        self._warn("a message within a task becomes a part of its status")
        return [*self._opened(), self._working(message)]

    def _take_task(self, task: Task) -> list[Event]:
        task.id, task.context_id = self._task_id, self._context_id
        if self._has_task or self._held is not None:
            return [*self._opened(), *self._updates(task)]
        self._has_task = True
        self._complete(task.status)
        self._state = task.status.state
        self._artifacts = {one.artifact_id for one in task.artifacts}
        return [task]

    def _updates(self, task: Task) -> list[Event]:
        """Convert a task that is sent again into updates of its artifacts and its status."""
        new = [self._artifact(self._carrying(artifact)) for artifact in task.artifacts]
        return [*new, self._status(self._at(task.status))]

    def _opened(self) -> list[Event]:
        """Return the task that must come first, and the message that was held back."""
        opening: list[Event] = []
        if not self._has_task:
            self._has_task = True
            task = Task(id=self._task_id, context_id=self._context_id)
            task.status.state = TaskState.TASK_STATE_SUBMITTED
            task.status.timestamp.CopyFrom(self._now())
            if self._message is not None:
                task.history.append(self._message)
            opening.append(task)
        if self._held is not None:
            held, self._held = self._held, None
            opening.append(self._working(held))
        return opening

    def _working(self, message: Message) -> TaskStatusUpdateEvent:
        message.task_id, message.context_id = self._task_id, self._context_id
        return self._status(
            self._at(TaskStatus(state=TaskState.TASK_STATE_WORKING, message=message))
        )

    def _to(self, state: TaskState, text: str = "") -> TaskStatusUpdateEvent:
        status = TaskStatus(state=state)
        if text:
            status.message.CopyFrom(
                Message(message_id=str(uuid.uuid4()), role=Role.ROLE_AGENT, parts=[Part(text=text)])
            )
        return self._status(self._at(status))

    def _status(self, event: TaskStatusUpdateEvent) -> TaskStatusUpdateEvent:
        self._complete(event.status)
        self._state = event.status.state
        return event

    def _complete(self, status: TaskStatus) -> None:
        if status.state == TaskState.TASK_STATE_UNSPECIFIED:
            status.state = TaskState.TASK_STATE_WORKING
        if not status.HasField("timestamp"):
            status.timestamp.CopyFrom(self._now())
        if status.HasField("message"):
            message = status.message
            message.task_id, message.context_id = self._task_id, self._context_id
            message.message_id = message.message_id or str(uuid.uuid4())
            message.role = Role.ROLE_AGENT

    def _artifact(self, event: TaskArtifactUpdateEvent) -> TaskArtifactUpdateEvent:
        artifact = event.artifact
        artifact.artifact_id = artifact.artifact_id or str(uuid.uuid4())
        if event.append and artifact.artifact_id not in self._artifacts:
            event.append = False  # there is no earlier part to append to
        self._artifacts.add(artifact.artifact_id)
        return event

    def _at(self, status: TaskStatus) -> TaskStatusUpdateEvent:
        return TaskStatusUpdateEvent(
            task_id=self._task_id, context_id=self._context_id, status=status
        )

    def _carrying(self, artifact: Artifact) -> TaskArtifactUpdateEvent:
        return TaskArtifactUpdateEvent(
            task_id=self._task_id, context_id=self._context_id, artifact=artifact
        )

    def _warn(self, what: str, *arguments: str) -> None:
        _log.warning("Task %s: " + what + ".", self._task_id, *arguments)


STATES = frozenset(TaskState.values())

_Holder = Union[Message, Artifact]  # noqa: UP007 (evaluated, also on Python 3.10)


def check(event: Event) -> None:
    """Raise ValueError for an event that JSON cannot represent, or with an unknown state.

    Only objects that may hold arbitrary values are written for the check, because files may be
    large.
    """
    if isinstance(event, Message):
        holders = iter([event])
    elif isinstance(event, TaskArtifactUpdateEvent):
        holders = iter([event.artifact])
    else:
        if event.status.state not in STATES:
            raise ValueError(f"There is no task state {event.status.state}.")
        holders = _holders(event) if isinstance(event, Task) else iter([event.status.message])
    if event.HasField("metadata") or any(map(_holds_values, holders)):
        _write(event)


def _holders(task: Task) -> Iterator[_Holder]:
    yield from task.artifacts
    yield from task.history
    yield task.status.message


def _holds_values(holder: _Holder) -> bool:
    return holder.HasField("metadata") or any(
        part.HasField("metadata") or part.WhichOneof("content") == "data" for part in holder.parts
    )


def _write(event: Event) -> None:
    kind = type(event).__name__
    try:
        MessageToDict(event)
    except (SerializeToJsonError, ValueError) as error:
        raise ValueError(f"This {kind} cannot be written as JSON: {error}") from None
    except RecursionError:  # protobuf 5 can read deeper messages than it can write
        raise ValueError(f"This {kind} cannot be written as JSON: it is too deep.") from None
