"""The sources of documents: a mapping, a file or a URL, JSON or YAML, of limited size."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentdouble import on_behalf, strict_json
from agentdouble.errors import DefinitionError
from agentdouble.imports import import_now
from agentdouble.mcp_services.openapi import yaml_documents
from agentdouble.mcp_services.openapi.definition import Json

if TYPE_CHECKING:
    import httpx

Source = Mapping[str, Any] | str | Path

LARGEST = 32 * 1024 * 1024  # bytes
FETCH_S = 30.0
REDIRECTS = 3
_TOO_LARGE = f"it is larger than {LARGEST // 1024 // 1024} MiB"


def name_of(source: Source) -> str:
    """Return the name of a source in messages, without the secret parts of a URL."""
    if isinstance(source, Mapping):
        return "the definition"
    if not is_url(source):
        return f"the definition {source}"
    try:
        parts = urlsplit(str(source))
    except ValueError:  # read() reports the error
        return "the definition"
    return f"the definition {parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def is_url(source: Source) -> bool:
    """Return whether a source is a URL."""
    return isinstance(source, str) and source.lower().startswith(("http://", "https://"))


def read(source: Source) -> tuple[Json, str | None]:
    """Return a source's document, which has only JSON's types, and the URL it came from."""
    if isinstance(source, Mapping):
        return _object(yaml_documents.plain(source)), None
    if is_url(source):
        content, origin = _fetched(str(source))
        return parsed(content), origin
    if not isinstance(source, (str, Path)):
        raise DefinitionError(
            f"a {type(source).__name__} is neither a document, nor the path of a file, nor a URL"
        )
    return parsed(_file(Path(source))), None


def _file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        raise DefinitionError(f"it cannot be read: {error.strerror}") from None
    except ValueError:  # a null byte in the path
        raise DefinitionError("it cannot be read: that is no path") from None
    if len(content) > LARGEST:
        raise DefinitionError(_TOO_LARGE)
    return content


def parsed(content: bytes) -> Json:
    """Return the document of a text in JSON or YAML; raise DefinitionError if it is none."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    if content.lstrip()[:1] != b"{":
        return _object(yaml_documents.parsed(content))
    try:
        return _object(strict_json.loads(content))
    except ValueError as error:
        try:  # YAML may begin with a brace, too
            return _object(yaml_documents.parsed(content))
        except DefinitionError:
            raise DefinitionError(f"it is not JSON: {error}") from None


def decoded(document: str) -> Json:
    """Return a document that is known to be JSON, and let other threads run meanwhile."""
    found: Json = strict_json.loads(document, patient=True)
    return found


def _object(document: Any) -> Json:
    if not isinstance(document, dict):
        raise DefinitionError("it is not an object, as a definition is")
    return document


def _fetched(url: str) -> tuple[bytes, str]:
    """Return the content at a URL, and the final URL after redirects."""
    import_now("httpx", "httpcore")
    import httpx

    limits = httpx.Timeout(FETCH_S)
    try:
        with on_behalf.client(
            follow_redirects=True, max_redirects=REDIRECTS, timeout=limits
        ) as client:
            accept = {"Accept": "application/json, application/yaml;q=0.9, */*;q=0.1"}
            with client.stream("GET", url, headers=accept) as answer:
                return _content(answer), str(answer.url)
    except httpx.TooManyRedirects:
        raise DefinitionError(f"its URL redirects more than {REDIRECTS} times") from None
    except httpx.TimeoutException:
        raise DefinitionError(_slow()) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise DefinitionError(f"it cannot be fetched: {type(error).__name__}") from None


def _content(answer: httpx.Response) -> bytes:
    if answer.status_code != 200:
        raise DefinitionError(f"it cannot be fetched: its URL answers HTTP {answer.status_code}")
    ends = time.monotonic() + FETCH_S
    content = bytearray()
    for chunk in answer.iter_bytes():
        content += chunk
        if len(content) > LARGEST:
            raise DefinitionError(_TOO_LARGE)
        if time.monotonic() > ends:
            raise DefinitionError(_slow())
    return bytes(content)


def _slow() -> str:
    return f"it cannot be fetched: that takes longer than {FETCH_S:g} s"
