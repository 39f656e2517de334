"""What a console knows of its double."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from agentdouble.core.environment import DoubleConnection
from agentdouble.core.signing import Credentials
from agentdouble.journal.entries import Journal
from agentdouble.server.guard import OWN

KEY_HEADER = b"x-agentdouble-key"  # a page sends the key of an MCP service in it
_OF_THE_PAGE = (
    KEY_HEADER,
    *(b"authorization", b"cookie", b"origin", b"referer", b"x-api-key"),
    *(b"sec-fetch-dest", b"sec-fetch-mode", b"sec-fetch-site", b"sec-fetch-user"),
)


@dataclass(frozen=True)
class Double:
    """What a console knows of its double; ``app`` is the whole double with all its middleware."""

    app: ASGIApp = field(repr=False)
    journal: Journal = field(repr=False)
    connection: DoubleConnection = field(repr=False)
    credentials: Credentials = field(repr=False)
    version: str
    served: Mapping[str, str]
    a2a: Mapping[str, str]
    variables: Mapping[str, str] = field(repr=False)
    api_key: str | None = field(default=None, repr=False)

    async def send_on(self, scope: Scope, receive: Receive, send: Send, path: bytes) -> None:
        """Have the double answer a request at another path.

        Forwarding keeps one set of routes, so that pages and commands cannot differ. The request
        passes all middleware of the double. The headers that a browser adds are removed, because
        the console has already checked them.
        """
        sent = (header for header in scope["headers"] if header[0] not in _OF_THE_PAGE)
        headers = [self._at_the_double(header) for header in sent]
        key_value = self.connection.token if path.startswith(OWN.encode()) else self.api_key
        key = dict(scope["headers"]).get(KEY_HEADER, (key_value or "").encode())
        if key:
            headers.append((b"authorization", b"Bearer " + key))
        changed = {
            "path": unquote_to_bytes(path).decode("utf-8", "replace"),
            "raw_path": path,
            "root_path": "",
            "headers": headers,
        }
        await self.app({**scope, **changed}, receive, send)

    def _at_the_double(self, header: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
        """Return a header with the double's port, because some answers have its own address."""
        name, value = header
        if name != b"host":
            return header
        console_s = urlsplit(f"//{value.decode('latin-1')}").hostname or "localhost"
        host = f"[{console_s}]" if ":" in console_s else console_s
        return name, f"{host}:{urlsplit(self.connection.url).port}".encode()
