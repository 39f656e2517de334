"""Check that an event can be written as JSON; if stored, it would break every later response."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Union

from a2a.server.events import Event
from a2a.types import Artifact, Message, Task, TaskArtifactUpdateEvent, TaskState
from google.protobuf.json_format import MessageToDict, SerializeToJsonError

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
