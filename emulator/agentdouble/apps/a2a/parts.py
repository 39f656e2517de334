"""Parts of A2A messages as agents have them, and back."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable

from a2a.helpers import new_data_part
from a2a.types import Message as A2AMessage
from a2a.types import Part as A2APart
from google.protobuf.json_format import MessageToDict

from agentdouble.agents.events import Message, Part


def to_agent(message: A2AMessage) -> Message:
    """Return a caller's message as an agent hears it; data is told as its JSON."""
    return Message(tuple(_to_agent(part) for part in message.parts))


def from_agent(parts: Iterable[Part]) -> list[A2APart]:
    """Return what an agent says as parts of the protocol; a tool call is data."""
    return [_from_agent(part) for part in parts]


def _to_agent(part: A2APart) -> Part:
    kind = part.WhichOneof("content")
    if kind == "raw":
        return Part.of_data(part.raw, part.media_type or "application/octet-stream")
    if kind == "url":
        return Part({"fileData": {"fileUri": part.url, "mimeType": part.media_type}})
    if kind == "data":
        return Part.of_text(json.dumps(MessageToDict(part.data), ensure_ascii=False))
    return Part.of_text(part.text)


def _from_agent(part: Part) -> A2APart:
    if part.text is not None:
        return A2APart(text=part.text)
    inline = part.wire.get("inlineData")
    if inline is not None:
        encoded = inline.get("data", "").replace("-", "+").replace("_", "/")
        return A2APart(raw=base64.b64decode(encoded), media_type=inline.get("mimeType", ""))
    file = part.wire.get("fileData")
    if file is not None:
        return A2APart(url=file.get("fileUri", ""), media_type=file.get("mimeType", ""))
    return new_data_part(dict(part.wire))
