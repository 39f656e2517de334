"""Events as JSON: their fields, in the order in which they are written (U-EVENT-FIELDS)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from agentdouble.api_server.bodies import EventBody
from agentdouble.api_server.stores import TEMP, StoredEvent
from agentdouble.api_server.wire import dumps, loads, to_wire

USER = "user"


def build(
    *,
    invocation_id: str,
    author: str,
    timestamp: float,
    fields: Mapping[str, Any] | None = None,
    custom_metadata: Mapping[str, Any] | None = None,
    actions: Mapping[str, Any] | None = None,
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a new event; ``fields`` are the fields before the invocation's id."""
    event: dict[str, Any] = dict(fields or {})
    if custom_metadata:
        event["customMetadata"] = custom_metadata
    event["invocationId"] = invocation_id
    event["author"] = author
    event["actions"] = {**no_actions(), **(actions or {})}
    event["nodeInfo"] = {"path": ""}
    event.update(more or {})
    event["id"] = str(uuid.uuid4())
    event["timestamp"] = timestamp
    return event


def no_actions() -> dict[str, Any]:
    """Return the actions of an event that has only content."""
    return {
        "stateDelta": {},
        "artifactDelta": {},
        "requestedAuthConfigs": {},
        "requestedToolConfirmations": {},
    }


def imported(body: EventBody, now: float) -> dict[str, Any]:
    """Return an event from the body that creates a session; fill in missing fields."""
    event = to_wire(body)
    event["id"] = body.id or str(uuid.uuid4())
    event["timestamp"] = now if body.timestamp is None else body.timestamp
    return event


def stored(event: Mapping[str, Any]) -> StoredEvent:
    """Return an event in the form for the stores, without the state of one run (``temp:``)."""
    delta = event["actions"]["stateDelta"]
    kept = {key: value for key, value in delta.items() if not key.startswith(TEMP)}
    if len(kept) != len(delta):
        event = {**event, "actions": {**event["actions"], "stateDelta": kept}}
    json = dumps(event)
    return StoredEvent(event["id"], event["timestamp"], json, _copy(kept))


def _copy(delta: dict[str, Any]) -> dict[str, Any]:
    """Return a deep copy, because the creator of the event may change the values later."""
    copied: dict[str, Any] = loads(dumps(delta)) if delta else delta
    return copied
