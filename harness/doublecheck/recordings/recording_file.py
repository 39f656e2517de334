"""A recording: a file of exchanges, each on a line of JSON, without secrets.

The first line describes the recording::

    {"format": "doublecheck-recording/1", "target": "https://agent.example.com", "at": "..."}
    {"request": {"method": "POST", "path": "/invoke", ...}, "response": {"status": 200, ...}, ...}

A line is written when its exchange ends, so the file is valid at any time.
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from doublecheck.comparing.references import loaded
from doublecheck.errors import RecordingError
from doublecheck.wire.calls import Request
from doublecheck.wire.exchanges import Exchange

FORMAT = "doublecheck-recording/1"
KEPT = 1024 * 1024  # bytes of a body
LARGEST = 256 * 1024 * 1024
_FAMILY = FORMAT.partition("/")[0]


@dataclass(frozen=True)
class Recorded:
    """One exchange of a recording; its URL is only the path, ``line`` its line in the file."""

    line: int
    exchange: Exchange


@dataclass(frozen=True)
class Recording:
    """A recording that has been read; ``target`` is the address of the recorded platform."""

    target: str
    exchanges: tuple[Recorded, ...]


class Writer:
    """Writes a recording, line by line."""

    def __init__(self, file: IO[str], target: str) -> None:
        self._file = file
        self.written = 0
        self._line({"format": FORMAT, "target": target, "at": _now()})

    def add(self, exchange: Exchange) -> None:
        """Write an exchange; its secrets must already be removed."""
        self._line({"at": _now(), **_document(exchange)})
        self.written += 1

    def _line(self, document: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(document) + "\n")
        self._file.flush()


def read(path: Path) -> Recording:
    """Read a recording from a file; raise RecordingError, with the line, if it is not one."""
    try:
        if path.stat().st_size > LARGEST:
            raise RecordingError(f"{path} is larger than the {LARGEST} bytes that are read.")
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise RecordingError(f"{path} is no recording: it is not UTF-8.") from None
    if not lines:
        raise RecordingError(f"{path} is no recording: it is empty.")
    target = _target(path, _object(path, 1, lines[0]))
    return Recording(target, tuple(_exchanges(path, lines)))


def _target(path: Path, head: Mapping[str, Any]) -> str:
    version, target = head.get("format"), head.get("target")
    if version != FORMAT:
        other = isinstance(version, str) and version.startswith(f"{_FAMILY}/")
        what = f"is of the version {version}" if other else "does not say that it is a recording"
        raise RecordingError(f"{path}, line 1: it {what}; {FORMAT} is what can be read.", line=1)
    if not isinstance(target, str):
        raise RecordingError(f"{path}, line 1: target must be the address recorded.", line=1)
    return target


def _exchanges(path: Path, lines: list[str]) -> Iterator[Recorded]:
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        document = _object(path, number, line)
        try:
            yield Recorded(number, _exchange(document))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RecordingError(
                f"{path}, line {number}: it is no exchange ({type(error).__name__}: {error}).",
                line=number,
            ) from None


def _object(path: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        document = loaded(line)
    except ValueError as error:
        raise RecordingError(
            f"{path}, line {number}: it is no JSON, or was cut ({error}).", line=number
        ) from None
    if not isinstance(document, dict):
        raise RecordingError(f"{path}, line {number}: it is no JSON object.", line=number)
    return document


def _document(exchange: Exchange) -> Mapping[str, Any]:
    request = exchange.request
    asked = {
        "method": request.method,
        "path": request.url,
        "headers": dict(request.headers),
        **_body(request.content),
        "cut": exchange.request_cut,
    }
    answered = None
    if exchange.status is not None:
        answered = {
            "status": exchange.status,
            "headers": dict(exchange.headers),
            **_body(exchange.body),
            "cut": exchange.body_cut,
        }
    return {
        "request": asked,
        "response": answered,
        "error": exchange.error,
        "elapsed_s": round(exchange.elapsed_s, 6),
    }


def _exchange(document: Mapping[str, Any]) -> Exchange:
    asked, answered = document["request"], document["response"] or {}
    path, method = asked["path"], asked["method"]
    if not (isinstance(path, str) and path.startswith("/") and isinstance(method, str)):
        raise ValueError(f"{method!r} {path!r} is no request")
    status = answered.get("status")
    if status is not None and not isinstance(status, int):
        raise ValueError(f"{status!r} is no status")
    return Exchange(
        request=Request(method, path, _headers(asked), _content(asked)),
        status=status,
        headers=_headers(answered),
        body=_content(answered),
        error=document.get("error"),
        elapsed_s=float(document.get("elapsed_s", 0)),
        request_cut=bool(asked.get("cut")),
        body_cut=bool(answered.get("cut")),
    )


def _headers(message: Mapping[str, Any]) -> Mapping[str, str]:
    return {str(name): str(value) for name, value in message.get("headers", {}).items()}


def _body(content: bytes) -> Mapping[str, str]:
    try:
        return {"body": content.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def _content(message: Mapping[str, Any]) -> bytes:
    encoded = message.get("base64")
    if encoded is None:
        return str(message.get("body", "")).encode()
    try:
        return base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise ValueError(f"base64: {error}") from None


def _now() -> str:
    return dt.datetime.now(dt.timezone.utc).isoformat(timespec="milliseconds")
