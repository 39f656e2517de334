"""A kernel's messages on a WebSocket: Jupyter's protocol v1, and the older one with JSON.

A message is a channel and its parts: header, parent header, metadata and content as JSON, then
buffers. Both forms are those of jupyter_server (``services/kernels/connection/base.py``), which is
too large to depend on.
"""

from __future__ import annotations

import itertools
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentdouble.sandbox.result import TOO_DEEP

V1 = "v1.kernel.websocket.jupyter.org"
CHANNELS = ("shell", "control", "stdin")  # those that a client sends on
_NAMED = ("msg_id", "msg_type", "version")  # a kernel ignores a message without its version
_UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, struct.error, RecursionError)
_FIELDS = ("header", "parent_header", "metadata", "content")


@dataclass(frozen=True)
class ChannelMessage:
    """A message of one channel, as its parts."""

    channel: str
    parts: Sequence[bytes]

    @property
    def header(self) -> dict[str, Any]:
        """The header; raise ValueError without an id, a type or a version."""
        return _header(self.parts[0])

    @property
    def is_beside(self) -> bool:
        """Whether a subshell of the kernel handles it, beside what the kernel does."""
        return bool(_header(self.parts[0]).get("subshell_id"))

    @property
    def size(self) -> int:
        """The number of bytes."""
        return sum(map(len, self.parts))


def _header(part: bytes) -> dict[str, Any]:
    try:
        header = json.loads(part)
        if all(isinstance(header[name], str) for name in _NAMED):
            return dict(header)
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    raise ValueError(f"A message needs a header with {', '.join(_NAMED)}.")


def write(message: ChannelMessage, *, v1: bool) -> str | bytes:
    """Return a message as a WebSocket carries it: as text, or as bytes if necessary.

    In JSON, a text replaces an output that is nested too deeply for Python. Raises ValueError or
    RecursionError for a message that no kernel has written.
    """
    if v1:
        return _write_v1(message)
    try:
        return _write_json(message)
    except RecursionError:
        header = {**message.header, "msg_type": "stream"}
        content = {"name": "stderr", "text": TOO_DEEP}
        parts = [json.dumps(header).encode(), message.parts[1], b"{}", json.dumps(content).encode()]
        return _write_json(ChannelMessage(message.channel, parts))


def _write_json(message: ChannelMessage) -> str | bytes:
    header = message.header
    document = {name: json.loads(message.parts[i]) for i, name in enumerate(_FIELDS)}
    named = {"msg_id": header["msg_id"], "msg_type": header["msg_type"]}
    buffers = [*message.parts[4:]]
    if not buffers:
        return json.dumps({**document, **named, "channel": message.channel, "buffers": []})
    text = json.dumps({**document, **named, "channel": message.channel}).encode()
    offsets = [4 * (len(buffers) + 2)]
    for part in (text, *buffers[:-1]):
        offsets.append(offsets[-1] + len(part))
    head = struct.pack(f"!{len(offsets) + 1}I", len(offsets), *offsets)
    return b"".join([head, text, *buffers])


def _write_v1(message: ChannelMessage) -> bytes:
    channel = message.channel.encode()
    parts = [channel, *message.parts]
    offsets = [8 * (len(parts) + 2)]
    for part in parts:
        offsets.append(offsets[-1] + len(part))
    return b"".join([struct.pack(f"<{len(offsets) + 1}Q", len(offsets), *offsets), *parts])


def read(data: str | bytes, *, v1: bool) -> ChannelMessage:
    """Return the message that a WebSocket carries; raise ValueError."""
    try:
        message = _read_v1(data) if v1 else _read_json(data)
    except _UNREADABLE as error:
        raise ValueError(f"A message cannot be read: {error!r:.100}.") from None
    if message.channel not in CHANNELS or len(message.parts) < len(_FIELDS):
        raise ValueError(
            f"A message needs a channel ({', '.join(CHANNELS)}) and {', '.join(_FIELDS)}."
        )
    _header(message.parts[0])
    for index in range(1, len(_FIELDS)) if v1 else ():  # the other form is JSON as a whole
        try:
            json.loads(message.parts[index])
        except (ValueError, RecursionError):
            raise ValueError(f"The {_FIELDS[index]} of a message is not JSON.") from None
    return message


def _read_v1(data: str | bytes) -> ChannelMessage:
    if isinstance(data, str):
        raise ValueError(f"{V1} has binary messages")
    (count,) = struct.unpack_from("<Q", data)
    offsets = struct.unpack_from(f"<{min(count, len(data))}Q", data, 8)
    channel, *parts = (data[a:b] for a, b in itertools.pairwise(offsets))
    return ChannelMessage(channel.decode(), parts)


def _read_json(data: str | bytes) -> ChannelMessage:
    buffers: list[bytes] = []
    if isinstance(data, bytes):
        (count,) = struct.unpack_from("!I", data)
        offsets = struct.unpack_from(f"!{min(count, len(data))}I", data, 4)
        ends = (*offsets[1:], len(data))
        data, *buffers = (data[a:b] for a, b in zip(offsets, ends, strict=True))
    document = json.loads(data)
    parts = [json.dumps(document.get(name) or {}).encode() for name in _FIELDS]
    return ChannelMessage(document.get("channel") or "shell", [*parts, *buffers])
