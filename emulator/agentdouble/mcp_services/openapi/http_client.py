"""The API behind the tools: it gets requests with the service's credential, and its answers are results.

The credential is added below the HTTP client, because the client logs and repeats what it is
given. So no error or log shows the key, even if the key is a part of the URL."""

from __future__ import annotations

import base64
import codecs
import json
import logging
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import mcp.types
import pydantic_core

from agentdouble.core import strict_json
from agentdouble.errors import ToolCallError
from agentdouble.mcp_services.backend_credentials import Credential
from agentdouble.mcp_services.openapi import inputs

if TYPE_CHECKING:
    from agentdouble.mcp_services.openapi.requests import ApiRequest

_log = logging.getLogger(__name__)

LARGEST = 8 * 1024 * 1024  # bytes of an answer
REDIRECTS = 5

LONGEST_ERROR = 4000  # characters
_MARKS = {  # UTF-32 first: its mark begins with the one of UTF-16
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_CREDENTIAL = "agentdouble_credential"  # of httpx's extensions; redirections keep them
_BINARY = re.compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c\x1d\x1f\x7f]")  # not in texts
_MEDIA = ("image/", "audio/", "video/", "font/", "model/")
_BYTES = ("application/octet-stream", "application/pdf")  # also if they decode
_SHORTEST_SECRET = 6  # shorter secrets may be ordinary words


@dataclass(frozen=True)
class ApiAnswer:
    """An answer of the API."""

    status: int
    media_type: str
    charset: str | None
    content: bytes


class _Credentialed(httpx.AsyncHTTPTransport):
    """Adds the credential below the client, which logs and keeps only what it is given."""

    def __init__(self, verify: bool) -> None:
        super().__init__(verify=verify, limits=httpx.Limits(max_connections=100))

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        sent = httpx.Request(
            request.method,
            request.url,
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions,
        )
        credential: Credential = request.extensions[_CREDENTIAL]
        credential.put_on(sent)
        return await super().handle_async_request(sent)


class ApiBackend:
    """A client of one API; its errors name neither the API's address nor the credential."""

    def __init__(self, *, timeout_s: float, verify: bool) -> None:
        self._timeout_s = timeout_s
        self._client = httpx.AsyncClient(
            transport=_Credentialed(verify),
            timeout=httpx.Timeout(timeout_s),
            headers={"User-Agent": "agentdouble"},
            trust_env=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # no caller gets another's
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def send(self, request: ApiRequest, credential: Credential) -> ApiAnswer:
        """Return the API's answer; raise ToolCallError if there is no valid answer."""
        try:
            with anyio.fail_after(self._timeout_s):
                return await self._sent(self._built(request, credential))
        except (TimeoutError, httpx.TimeoutException):
            raise _lost(request, f"did not answer within {self._timeout_s:g} s.") from None
        except httpx.ConnectError:
            raise _lost(request, "cannot be reached.") from None
        except httpx.DecodingError:
            raise ToolCallError("The API's answer is not encoded as it says.") from None
        except httpx.TransportError:
            raise _lost(request, "closed the connection, or its answer was not HTTP.") from None
        except httpx.InvalidURL:
            raise ToolCallError("The arguments make a URL that is too long.") from None

    def _built(self, request: ApiRequest, credential: Credential) -> httpx.Request:
        return self._client.build_request(
            request.method,
            request.url,
            headers=request.headers,
            content=request.content,
            files=request.files,
            extensions={_CREDENTIAL: credential},
        )

    async def _sent(self, request: httpx.Request) -> ApiAnswer:
        for _ in range(REDIRECTS):
            response = await self._client.send(request, stream=True)
            try:
                if response.next_request is None:
                    return await _read(response)
                url, target = request.url, response.next_request.url
                if (url.scheme, url.host, url.port) != (target.scheme, target.host, target.port):
                    raise ToolCallError(
                        f"HTTP {response.status_code}: the API redirects to another host, which "
                        "is not followed."
                    )
                cookie = request.headers.get("cookie")
                request = response.next_request
                if cookie is not None:  # httpx drops it
                    request.headers["cookie"] = cookie
            finally:
                await response.aclose()
        raise ToolCallError(f"The API redirects more than {REDIRECTS - 1} times.")


def _lost(request: ApiRequest, what: str) -> ToolCallError:
    """Return the error of a call without an answer; only the log names the API's server.

    The rest of the URL may have a secret in it.
    """
    url = httpx.URL(request.url)
    _log.warning("The API at %s://%s %s", url.scheme, url.netloc.decode("ascii"), what)
    return ToolCallError(f"The API {what}")


async def _read(response: httpx.Response) -> ApiAnswer:
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > LARGEST:
            raise ToolCallError(f"The API's answer is larger than {LARGEST // 1024 // 1024} MiB.")
    written = response.headers.get("content-type", "")
    return ApiAnswer(
        response.status_code,
        written.partition(";")[0].strip().lower(),
        response.charset_encoding,
        bytes(content),
    )


def result(answer: ApiAnswer, secrets: Iterable[str], name: str) -> mcp.types.CallToolResult:
    """Return the result of the tool ``name``; its errors do not show ``secrets``."""
    if answer.status >= 300:
        return error(_refusal(answer, secrets))
    if not answer.content or (_says_json(answer) and not answer.content.strip()):
        return _text(f"HTTP {answer.status} {_phrase(answer.status)}: an answer without a body")
    if _says_json(answer):
        return _json(answer)
    if answer.media_type and not inputs.is_text(answer.media_type) and not _is_readable(answer):
        return _binary(answer, name)
    return _text_or_binary(answer, name)


def _is_readable(answer: ApiAnswer) -> bool:
    """Return whether the bytes of a media type that nobody knows, such as TOML's, are text."""
    if answer.media_type.startswith(_MEDIA) or answer.media_type in _BYTES:
        return False
    try:
        return not _BINARY.search(_decoded(answer, "strict"))
    except UnicodeDecodeError:
        return False


def _says_json(answer: ApiAnswer) -> bool:
    return bool(answer.media_type) and inputs.is_json(answer.media_type)


def error(message: str) -> mcp.types.CallToolResult:
    """Return a result that is an error with this message."""
    return mcp.types.CallToolResult(content=[mcp.types.TextContent(text=message)], is_error=True)


def _text(text: str, structured: Any = None) -> mcp.types.CallToolResult:
    return mcp.types.CallToolResult(
        content=[mcp.types.TextContent(text=text)], structured_content=structured
    )


def _refusal(answer: ApiAnswer, secrets: Iterable[str]) -> str:
    text = _decoded(answer, "replace").strip() or _phrase(answer.status)
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    if len(text) > LONGEST_ERROR:
        text = f"{text[:LONGEST_ERROR]}... ({len(text)} characters)"
    return f"HTTP {answer.status}: {text}"


def _json(answer: ApiAnswer) -> mcp.types.CallToolResult:
    text = _decoded(answer, "replace")
    try:
        value = strict_json.loads(text, surrogates=True)
    except (ValueError, RecursionError):  # NaN, several lines, a prefix: a model can still read it
        return _text(text)
    return _text(text, value if isinstance(value, dict) and _can_be_sent(value) else None)


def _can_be_sent(value: Any) -> bool:
    """Return whether a value can be sent: lone surrogates cannot, nor can deep nesting."""
    try:
        pydantic_core.to_json(value)
    except (ValueError, RecursionError):  # pydantic's serialization error is a ValueError
        return False
    return True


def _text_or_binary(answer: ApiAnswer, name: str) -> mcp.types.CallToolResult:
    try:
        return _text(_decoded(answer, "strict"))
    except UnicodeDecodeError:
        if answer.media_type:
            return _text(_decoded(answer, "replace"))
        return _binary(answer, name)


def _binary(answer: ApiAnswer, name: str) -> mcp.types.CallToolResult:
    data = base64.b64encode(answer.content).decode()
    kind = answer.media_type or "application/octet-stream"
    block: mcp.types.ContentBlock
    if kind.startswith("image/") and not kind.endswith("+xml"):
        block = mcp.types.ImageContent(data=data, mime_type=kind)
    elif kind.startswith("audio/"):
        block = mcp.types.AudioContent(data=data, mime_type=kind)
    else:
        contents = mcp.types.BlobResourceContents(
            uri=f"tool://{name}/answer", mime_type=kind, blob=data
        )
        block = mcp.types.EmbeddedResource(resource=contents)
    return mcp.types.CallToolResult(content=[block])


def _decoded(answer: ApiAnswer, errors: str) -> str:
    """Return an answer's text without a byte order mark, which comes before every charset."""
    for mark, encoding in _MARKS.items():
        if answer.content.startswith(mark):
            return answer.content.removeprefix(mark).decode(encoding, errors)
    guessed = json.detect_encoding(answer.content) if _says_json(answer) else "utf-8"
    charset = answer.charset or guessed
    for name, strictness in ((charset, "strict"), (guessed, "strict"), (charset, errors)):
        with suppress(LookupError, UnicodeError):  # unknown, none of text, or not this one
            return answer.content.decode(name, strictness)
    return answer.content.decode(guessed, errors)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
