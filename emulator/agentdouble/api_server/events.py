"""Events as JSON, and the events of a run, built from its agent's yields (sections 2.4 and 6)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from agentdouble.agents.agent import MODEL, Event, Message, Part, WireEvent
from agentdouble.api_server.agent_run import Finished, Yielded
from agentdouble.api_server.json_text import dumps, loads
from agentdouble.api_server.models import EventBody, to_wire
from agentdouble.api_server.state_scopes import TEMP
from agentdouble.api_server.stores import StoredEvent

USER = "user"


def build(
    *,
    invocation_id: str,
    author: str,
    timestamp: float,
    fields: Mapping[str, Any] | None = None,
    custom_metadata: Mapping[str, Any] | None = None,
    actions: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a new event; ``fields`` are the fields before the invocation's id."""
    event: dict[str, Any] = dict(fields or {})
    if custom_metadata:
        event["customMetadata"] = custom_metadata
    event["invocationId"] = invocation_id
    event["author"] = author
    event["actions"] = {**no_actions(), **(actions or {})}
    event["nodeInfo"] = {"path": ""}
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
    lasting = {key: value for key, value in delta.items() if not key.startswith(TEMP)}
    if len(lasting) != len(delta):
        event = {**event, "actions": {**event["actions"], "stateDelta": lasting}}
    json = dumps(event)
    return StoredEvent(event["id"], event["timestamp"], json, _copy(lasting))


def _copy(delta: dict[str, Any]) -> dict[str, Any]:
    """Return a deep copy, because the creator of the event may change the values later."""
    return loads(dumps(delta)) if delta else delta


ABORTED = {
    "errorCode": "INVOCATION_ABORTED",
    "errorMessage": "Invocation was aborted by client.",
}


class EventBuilder:
    """Builds the events of one run; ``now`` returns the platform's time in Unix seconds."""

    def __init__(
        self,
        *,
        invocation_id: str,
        author: str,
        streaming: bool,
        custom_metadata: Mapping[str, Any] | None,
        now: Callable[[], float],
    ) -> None:
        self._invocation_id = invocation_id
        self._author = author
        self._streaming = streaming
        self._custom_metadata = custom_metadata
        self._now = now
        self._texts: list[str] = []
        self._state_delta: dict[str, Any] = {}
        self._artifact_delta: dict[str, int] = {}
        self._open_calls: dict[str, Mapping[str, Any]] = {}

    def of_user(self, message: Message, delta: Mapping[str, Any]) -> dict[str, Any]:
        """Return the event of the user's message; its role is always ``user``."""
        content = {"parts": [part.wire for part in message.parts], "role": USER}
        return self._build(USER, {"content": content}, {"stateDelta": delta})

    def of_yielded(self, yielded: Yielded) -> list[dict[str, Any]]:
        """Return the events that are ready after a yielded value, including increments."""
        self._state_delta.update(yielded.state_delta)
        self._artifact_delta.update(yielded.artifact_delta)
        value = yielded.value
        if isinstance(value, str):
            self._texts.append(value)
            return [self._increment(value)] if self._streaming else []
        before = self._whole_text()
        if isinstance(value, Part):
            return [*before, self._event(Event((value,)))]
        if isinstance(value, WireEvent):
            return [*before, self._wire(value)]
        if value.partial and not self._streaming:
            return before
        return [*before, self._event(value)]

    def of_end(self, finished: Finished) -> list[dict[str, Any]]:
        """Return the remaining events at the end of the run."""
        self._state_delta.update(finished.state_delta)
        self._artifact_delta.update(finished.artifact_delta)
        events = self._whole_text()
        if self._state_delta or self._artifact_delta:
            events.append(self._event(Event()))
        return events

    def of_abort(self) -> dict[str, Any]:
        """Return the event for a disconnected client; it answers open tool calls."""
        fields: dict[str, Any] = dict(ABORTED)
        if self._open_calls:
            response = {"error": ABORTED["errorMessage"]}
            parts = [
                {"functionResponse": {"id": id_, "name": call.get("name"), "response": response}}
                for id_, call in self._open_calls.items()
            ]
            fields = {"content": {"parts": parts, "role": USER}, **fields}
        return self._build(self._author, fields, {})

    def _whole_text(self) -> list[dict[str, Any]]:
        if not self._texts:
            return []
        text = "".join(self._texts)
        self._texts.clear()
        return [self._event(Event((Part.of_text(text),)))]

    def _increment(self, text: str) -> dict[str, Any]:
        fields = {"content": {"parts": [{"text": text}], "role": MODEL}, "partial": True}
        return self._build(self._author, fields, {})

    def _event(self, event: Event) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if event.parts:
            parts = [part.wire for part in event.parts]
            fields["content"] = {"parts": parts, "role": event.role}
        if event.partial is not None:
            fields["partial"] = event.partial
        fields.update(event.more)
        actions = {} if event.partial else self._take_actions(event.state_delta)
        built = self._build(event.author or self._author, fields, actions)
        self._note_calls(built)
        return built

    def _wire(self, event: WireEvent) -> dict[str, Any]:
        self._note_calls(event.wire)
        wire = {**event.wire, "invocationId": self._invocation_id}
        if self._custom_metadata:
            wire["customMetadata"] = self._custom_metadata
        if wire.get("partial"):
            return wire
        actions_sent = event.wire["actions"]
        saved = self._take_actions(actions_sent["stateDelta"])
        artifacts = {**saved["artifactDelta"], **actions_sent["artifactDelta"]}
        actions = {**actions_sent, "stateDelta": saved["stateDelta"], "artifactDelta": artifacts}
        return {**wire, "actions": actions}

    def _take_actions(self, own_delta: Mapping[str, Any]) -> dict[str, Any]:
        state, self._state_delta = {**self._state_delta, **own_delta}, {}
        artifacts, self._artifact_delta = self._artifact_delta, {}
        return {"stateDelta": state, "artifactDelta": artifacts}

    def _note_calls(self, event: Mapping[str, Any]) -> None:
        for part in (event.get("content") or {}).get("parts") or ():
            call, response = part.get("functionCall"), part.get("functionResponse")
            if call and call.get("id"):
                self._open_calls[call["id"]] = call
            if response:
                self._open_calls.pop(response.get("id"), None)

    def _build(
        self, author: str, fields: Mapping[str, Any], actions: Mapping[str, Any]
    ) -> dict[str, Any]:
        return build(
            invocation_id=self._invocation_id,
            author=author,
            timestamp=self._now(),
            fields=fields,
            custom_metadata=self._custom_metadata,
            actions=actions,
        )
