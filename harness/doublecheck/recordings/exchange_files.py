"""Exchanges from a file: a double's journal, or a recording."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from doublecheck.comparing.references import loaded
from doublecheck.errors import SaveError
from doublecheck.recordings import recording_file
from doublecheck.wire.calls import Request
from doublecheck.wire.exchanges import Exchange

LARGEST = 256 * 1024 * 1024
_CUT = re.compile(r"\.\.\. \(\d+ more bytes\)$")
_IS_RECORDING = re.compile(r'\s*\{"format": "doublecheck-recording/')


def read(path: Path) -> Sequence[Exchange]:
    """Return the exchanges of a journal or a recording; raise SaveError or RecordingError."""
    try:
        if path.stat().st_size > LARGEST:
            raise SaveError(f"{path} is larger than the {LARGEST} bytes that are read.")
        text = path.read_text("utf-8")
    except OSError as error:
        raise SaveError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise SaveError(f"{path} is no journal: it is not UTF-8.") from None
    if _IS_RECORDING.match(text):
        return list(_recorded(recording_file.read(path)))
    return _journal(path, text)


def _recorded(recording: recording_file.Recording) -> Iterator[Exchange]:
    """Yield the exchanges with the address of the recorded platform."""
    for one in recording.exchanges:
        request = one.exchange.request
        asked = dataclasses.replace(request, url=recording.target + request.url)
        yield dataclasses.replace(one.exchange, request=asked)


def _journal(path: Path, text: str) -> Sequence[Exchange]:
    explanation = (
        f"{path} is no journal: it must be what GET /_emulator/journal?bodies=true answers, or what "
        "doublecheck record writes"
    )
    try:
        document = loaded(text)
    except ValueError as error:
        raise SaveError(f"{explanation} ({error}).") from None
    entries = document.get("entries") if isinstance(document, dict) else document
    if not isinstance(entries, list):
        raise SaveError(f"{explanation}.")
    return exchanges(entries, explanation)


def exchanges(entries: Sequence[Any], explanation: str) -> Sequence[Exchange]:
    """Return the exchanges of complete entries of a journal.

    Raises SaveError, which begins with the explanation, for what is no entry.
    """
    return [_exchange(explanation, number, one) for number, one in enumerate(entries, 1)]


def _exchange(explanation: str, number: int, entry: Any) -> Exchange:
    try:
        asked, answered = str(entry["request_body"]), str(entry["response_body"])
        return Exchange(
            Request(
                str(entry["method"]),
                str(entry["url"]),
                _headers(entry["request_headers"]),
                asked.encode(),
            ),
            entry["status"],
            _headers(entry["response_headers"]),
            answered.encode(),
            request_cut=bool(_CUT.search(asked)),
            body_cut=bool(_CUT.search(answered)),
        )
    except (KeyError, TypeError, AttributeError) as error:
        wrong = f"entry {number}: {type(error).__name__}: {error}"
        raise SaveError(f"{explanation} ({wrong}).") from None


def _headers(headers: Mapping[str, Any] | Iterable[Any]) -> Mapping[str, str]:
    return {str(name): str(value) for name, value in dict(headers).items()}
