"""uvicorn's HTTP protocol for requests that ask for another protocol or name another host."""

from __future__ import annotations

import logging
import re

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

LARGEST_HEAD = 256 * 1024  # bytes
_INVALID = "Invalid HTTP request received."

_log = logging.getLogger("uvicorn.error")


class OneProtocol(HttpToolsProtocol):
    """A connection that continues with HTTP if a request asks for an unsupported protocol."""

    _head = 0  # bytes received since the last head or body ended

    def data_received(self, data: bytes) -> None:
        """Read bytes; if a request asks for an unsupported protocol, continue with HTTP.

        httptools leaves the body of such a request unread. For example, Java's client asks for
        HTTP/2 with its first POST.
        """
        self._unset_keepalive_if_required()
        self._head += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._should_upgrade():
                self.handle_websocket_upgrade()
                return
            rest = self._head_without_upgrade() + data[upgrade.args[0] :]
            self.parser = httptools.HttpRequestParser(self)
            OneProtocol.data_received(self, rest)
        except httptools.HttpParserError:
            _log.warning(_INVALID)
            self.send_400_response(_INVALID)
        else:
            if self._head > LARGEST_HEAD:
                self._refuse_head()

    def _refuse_head(self) -> None:
        reason = b"The head of the request is too large.\n"
        head = b"content-type: text/plain\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        self.transport.write(STATUS_LINE[431] + head % len(reason) + reason)
        self.transport.close()

    def _head_without_upgrade(self) -> bytes:
        said = b",".join(value for name, value in self.headers if name == b"connection")
        tokens = [one.strip() for one in said.split(b",")]
        kept = b", ".join(one for one in tokens if one.lower() != b"upgrade")
        others = [one for one in self.headers if one[0] not in (b"connection", b"upgrade")]
        lines = [b"%s: %s" % one for one in (*others, (b"connection", kept))]
        first = b"%s %s HTTP/%s" % (
            self.scope["method"].encode(),
            self.url,
            self.parser.get_http_version().encode(),
        )
        return b"\r\n".join([first, *lines, b"", b""])

    def _should_upgrade(self) -> bool:
        """Return whether the connection becomes a WebSocket, which needs the method GET."""
        return bool(self.scope["method"] == "GET" and super()._should_upgrade())

    def _is_asked_again(self) -> bool:
        """Return whether this head asks for an unsupported protocol."""
        if not self.parser.should_upgrade():
            return False
        if self.parser.get_method() == b"CONNECT":
            raise ValueError("This server is no proxy.")  # the answer is a 400
        self.scope["method"] = self.parser.get_method().decode("ascii")
        return not self._should_upgrade()

    def on_message_complete(self) -> None:
        self._head = 0
        if not self._is_asked_again():
            super().on_message_complete()

    def on_headers_complete(self) -> None:
        if self._is_asked_again():
            return
        named = _authority(self.url)
        if named and named != next((v for n, v in self.headers if n == b"host"), named):
            self.headers.append((b"host", named))  # two hosts, so it is refused
        super().on_headers_complete()
        self._head = 0

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._head = 0


def _authority(target: bytes) -> bytes | None:
    """Return the host of a target that is a whole URL, as sent to proxies (RFC 9112, 3.2.2)."""
    _, scheme, rest = target.partition(b"://")
    return re.split(b"[/?#]", rest, maxsplit=1)[0] if scheme and target[:1] not in b"/*" else None
