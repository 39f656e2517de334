"""The messages to agents, the events that agents yield, and their parts (sections 2.2, 2.4)."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MODEL = "model"


@dataclass(frozen=True)
class Part:
    """A part of a message or an event; ``wire`` is its JSON-ready form."""

    wire: Mapping[str, Any]

    @classmethod
    def of_text(cls, text: str) -> Part:
        """Return a part with a text."""
        return cls({"text": text})

    @classmethod
    def of_data(cls, data: bytes, mime_type: str) -> Part:
        """Return a part with bytes, for instance an image."""
        encoded = base64.urlsafe_b64encode(data).decode()
        return cls({"inlineData": {"data": encoded, "mimeType": mime_type}})

    @classmethod
    def of_call(cls, name: str, arguments: Mapping[str, Any], id_: str | None = None) -> Part:
        """Return a part with a tool call; the id is generated unless it is given."""
        call = {"id": id_ or f"call-{uuid.uuid4()}", "args": dict(arguments), "name": name}
        return cls({"functionCall": call})

    @classmethod
    def of_response(cls, call: Part, response: Mapping[str, Any]) -> Part:
        """Return a part with the tool's answer to a call."""
        called = call.function_call or {}
        answer = {"id": called.get("id"), "name": called.get("name"), "response": dict(response)}
        return cls({"functionResponse": answer})

    @property
    def text(self) -> str | None:
        """The text, or None for a part without text."""
        text: str | None = self.wire.get("text")
        return text

    @property
    def function_call(self) -> Mapping[str, Any] | None:
        """The tool call with ``id``, ``name`` and ``args``, or None."""
        return self.wire.get("functionCall")

    @property
    def function_response(self) -> Mapping[str, Any] | None:
        """The tool's answer with ``id``, ``name`` and ``response``, or None."""
        return self.wire.get("functionResponse")

    @property
    def data(self) -> bytes | None:
        """The bytes, or None for a part without bytes."""
        inline = self.wire.get("inlineData")
        if inline is None:
            return None
        encoded = inline.get("data", "").replace("+", "-").replace("/", "_")
        return base64.urlsafe_b64decode(encoded)

    @property
    def mime_type(self) -> str | None:
        """The MIME type of the bytes, or None."""
        mime_type: str | None = self.wire.get("inlineData", {}).get("mimeType")
        return mime_type


@dataclass(frozen=True)
class Message:
    """A user's message in one turn."""

    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The joined texts of the parts."""
        return _text(self.parts)


@dataclass(frozen=True)
class Event:
    """An event of an agent: content or an action.

    A ``partial`` event is an increment, which is sent but never stored. ``more`` contains further
    fields of the event's JSON, such as ``errorCode`` or ``usageMetadata``.
    """

    parts: tuple[Part, ...] = ()
    role: str = MODEL
    partial: bool | None = None
    author: str | None = None
    state_delta: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The joined texts of the parts."""
        return _text(self.parts)

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Event:
        """Return an Event for the JSON of an event."""
        content = wire.get("content") or {}
        known = {"content", "partial", "author", "actions"}
        return cls(
            parts=tuple(Part(part) for part in content.get("parts") or ()),
            role=content.get("role") or MODEL,
            partial=wire.get("partial"),
            author=wire.get("author"),
            state_delta=(wire.get("actions") or {}).get("stateDelta") or {},
            more={key: value for key, value in wire.items() if key not in known},
        )


@dataclass(frozen=True)
class WireEvent:
    """An event of another framework, in that framework's JSON."""

    wire: Mapping[str, Any]


def _text(parts: tuple[Part, ...]) -> str:
    return "".join(part.text or "" for part in parts)
