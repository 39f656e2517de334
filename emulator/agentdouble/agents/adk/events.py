"""Events of ADK in the server's form: dumped once, and shown as `adk api_server` shows them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agentdouble.agents.framework import FrameworkEvent

if TYPE_CHECKING:
    from google.adk.events import Event

# An event without one of these has nothing that ADK hides from clients. Looking for them costs less
# than 1 µs, and redacting an event 60.
_HIDDEN = (b"redential", b"uthType", b"uth_type", b'AuthConfigs":{"', b"__adk_internal_")


def to_store(event: Event) -> FrameworkEvent:
    """Return an event as it is stored."""
    whole = _dumped(event)
    shown = _shown(event, whole)
    delta = event.actions.state_delta
    return FrameworkEvent(
        value=event,
        id=event.id,
        timestamp=event.timestamp,
        json=shown,
        state_delta=json.loads(whole)["actions"]["stateDelta"] if delta else {},
        private=b"" if shown is whole else whole,
    )


def to_send(event: Event) -> bytes:
    """Return an event as clients see it."""
    return _shown(event, _dumped(event))


def _dumped(event: Event) -> bytes:
    dumped: str = event.model_dump_json(by_alias=True, exclude_none=True)
    return dumped.encode()


def _shown(event: Event, whole: bytes) -> bytes:
    for mark in _HIDDEN:
        if mark in whole:
            return _redacted(event, whole)
    return whole


def _redacted(event: Event, whole: bytes) -> bytes:
    # Private functions: a version that has none of them hides nothing from its clients either.
    try:
        from google.adk.auth.auth_credential import _redact_credential_secrets as redact
        from google.adk.events._internal_metadata import public_event
    except ImportError:
        return whole
    wire: Any = public_event(event).model_dump(mode="json", by_alias=True, exclude_none=True)
    shown = json.dumps(redact(wire), ensure_ascii=False, separators=(",", ":")).encode()
    return whole if shown == whole else shown
