"""The smallest image, the smallest sound, and resources, as content."""

from __future__ import annotations

import base64
import io
import struct
import wave
import zlib

from mcp.types import AudioContent, EmbeddedResource, ImageContent, TextResourceContents


def picture() -> str:
    """Return a PNG of one red pixel."""
    head = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\x00\xff\x00\x00")
    chunks = _chunk(b"IHDR", head) + _chunk(b"IDAT", pixel) + _chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + chunks).decode()


def sound() -> str:
    """Return a WAV of one silent sample."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"\x00\x00")
    return base64.b64encode(buffer.getvalue()).decode()


def image_content() -> ImageContent:
    return ImageContent(data=picture(), mime_type="image/png")


def audio_content() -> AudioContent:
    return AudioContent(data=sound(), mime_type="audio/wav")


def resource_content(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
