"""The messages that agents get, the events that they yield, and their parts (sections 2.2, 2.4)."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MODEL = "model"


@dataclass(frozen=True)
class Part:
    """One part of a message or an event; ``wire`` is its JSON-ready form."""

    wire: Mapping[str, Any]

    @classmethod
    def of_text(cls, text: str) -> Part:
        """Return a text."""
        return cls({"text": text})

    @classmethod
    def of_data(cls, data: bytes, mime_type: str) -> Part:
        """Return bytes, for instance an image."""
        encoded = base64.urlsafe_b64encode(data).decode()
        return cls({"inlineData": {"data": encoded, "mimeType": mime_type}})

    @classmethod
    def of_call(cls, name: str, arguments: Mapping[str, Any], id_: str | None = None) -> Part:
        """Return a tool call; its id is generated unless it is given."""
        call = {"id": id_ or f"call-{uuid.uuid4()}", "args": dict(arguments), "name": name}
        return cls({"functionCall": call})

    @classmethod
    def of_response(cls, call: Part, response: Mapping[str, Any]) -> Part:
        """Return a tool's answer to a call."""
        called = call.function_call or {}
        answer = {"id": called.get("id"), "name": called.get("name"), "response": dict(response)}
        return cls({"functionResponse": answer})

    @property
    def text(self) -> str | None:
        """The text, if it is one."""
        text: str | None = self.wire.get("text")
        return text

    @property
    def function_call(self) -> Mapping[str, Any] | None:
        """The tool call, if it is one: ``id``, ``name`` and ``args``."""
        return self.wire.get("functionCall")

    @property
    def function_response(self) -> Mapping[str, Any] | None:
        """The tool's answer, if it is one: ``id``, ``name`` and ``response``."""
        return self.wire.get("functionResponse")

    @property
    def data(self) -> bytes | None:
        """The bytes, if it has any."""
        inline = self.wire.get("inlineData")
        if inline is None:
            return None
        encoded = inline.get("data", "").replace("+", "-").replace("/", "_")
        return base64.urlsafe_b64decode(encoded)

    @property
    def mime_type(self) -> str | None:
        """The type of the bytes, if it has any."""
        mime_type: str | None = self.wire.get("inlineData", {}).get("mimeType")
        return mime_type


@dataclass(frozen=True)
class Message:
    """A user's message in one turn."""

    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The texts of its parts, joined."""
        return _text(self.parts)


@dataclass(frozen=True)
class Event:
    """An agent's content or action.

    A ``partial`` one is an increment: it is streamed and never stored. ``more`` are further
    fields of the wire, such as ``errorCode`` or ``usageMetadata``, as they are written there.
    """

    parts: tuple[Part, ...] = ()
    role: str = MODEL
    partial: bool | None = None
    author: str | None = None
    state_delta: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The texts of its parts, joined."""
        return _text(self.parts)

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Event:
        """Return an event of the wire as an Event."""
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
    """An event of another framework, as that framework writes it on the wire."""

    wire: Mapping[str, Any]


def _text(parts: tuple[Part, ...]) -> str:
    return "".join(part.text or "" for part in parts)
