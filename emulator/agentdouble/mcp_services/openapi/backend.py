"""The API behind the tools: requests with the service's credential, answers of limited size.

The credential is added below the HTTP client, because the client logs and repeats what it is
given. So no error and no log has the key, even if the key is a part of the URL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import httpx

from agentdouble.errors import ToolCallError
from agentdouble.mcp_services.authentication import Credential

if TYPE_CHECKING:
    from agentdouble.mcp_services.openapi.requests import Request

LARGEST = 8 * 1024 * 1024  # bytes of an answer
REDIRECTS = 5


@dataclass(frozen=True)
class Answer:
    """An answer of the API."""

    status: int
    media_type: str
    charset: str
    content: bytes


class _Credentialed(httpx.AsyncHTTPTransport):
    """Adds the credential below the client, which logs and keeps only what it is given."""

    def __init__(self, credential: Credential, verify: bool) -> None:
        super().__init__(verify=verify, limits=httpx.Limits(max_connections=100))
        self._credential = credential

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        sent = httpx.Request(
            request.method,
            request.url,
            headers=request.headers,
            stream=request.stream,
            extensions=request.extensions,
        )
        self._credential.put_on(sent)
        return await super().handle_async_request(sent)


class Backend:
    """A client of one API; its errors name neither the API's address nor the credential."""

    def __init__(self, credential: Credential, *, timeout_s: float, verify: bool) -> None:
        self._timeout_s = timeout_s
        self._client = httpx.AsyncClient(
            transport=_Credentialed(credential, verify),
            timeout=httpx.Timeout(timeout_s),
            headers={"User-Agent": "agentdouble"},
            trust_env=False,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    async def send(self, request: Request) -> Answer:
        """Return the API's answer; raise ToolCallError if there is no valid answer."""
        try:
            with anyio.fail_after(self._timeout_s):
                return await self._sent(self._built(request))
        except (TimeoutError, httpx.TimeoutException):
            raise ToolCallError(f"The API did not answer within {self._timeout_s:g} s.") from None
        except httpx.ConnectError:
            raise ToolCallError("The API cannot be reached.") from None
        except httpx.DecodingError:
            raise ToolCallError("The API's answer is not encoded as it says.") from None
        except httpx.TransportError:
            raise ToolCallError(
                "The API closed the connection, or its answer was not HTTP."
            ) from None
        except httpx.InvalidURL:
            raise ToolCallError("The arguments make a URL that is too long.") from None

    def _built(self, request: Request) -> httpx.Request:
        return self._client.build_request(
            request.method,
            request.url,
            headers=request.headers,
            content=request.content,
            files=request.files,
        )

    async def _sent(self, request: httpx.Request) -> Answer:
        for _ in range(REDIRECTS):
            response = await self._client.send(request, stream=True)
            try:
                if response.next_request is None:
                    return await _read(response)
                if not _same_origin(request.url, response.next_request.url):
                    raise ToolCallError(
                        f"HTTP {response.status_code}: the API redirects to another host, which "
                        "is not followed."
                    )
                request = response.next_request
            finally:
                await response.aclose()
        raise ToolCallError(f"The API redirects more than {REDIRECTS - 1} times.")


async def _read(response: httpx.Response) -> Answer:
    content = bytearray()
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > LARGEST:
            raise ToolCallError(f"The API's answer is larger than {LARGEST // 1024 // 1024} MiB.")
    written = response.headers.get("content-type", "")
    return Answer(
        response.status_code,
        written.partition(";")[0].strip().lower(),
        response.charset_encoding or "utf-8",
        bytes(content),
    )


def _same_origin(one: httpx.URL, other: httpx.URL) -> bool:
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)
