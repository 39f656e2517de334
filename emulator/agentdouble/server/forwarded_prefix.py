"""The path prefix of an application behind a gateway on this machine."""

from __future__ import annotations

import re

from starlette.types import ASGIApp, Receive, Scope, Send

from agentdouble.server.protocols import PEER
from agentdouble.server.sockets import is_loopback

_PREFIX = re.compile(rb"(/[A-Za-z0-9._~-]+)+")


class Forwarded:
    """An application that takes its prefix from ``X-Forwarded-Prefix``, so its addresses are right.

    The header counts only from a client on this machine, as uvicorn does with similar headers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        prefix = _prefix(scope) if scope["type"] == "http" else ""
        if prefix:
            path = prefix + scope["path"]
            scope = {**scope, "root_path": prefix, "path": path}
        await self._app(scope, receive, send)


def _prefix(scope: Scope) -> str:
    peer = scope.get(PEER)
    prefixes = [value for name, value in scope["headers"] if name == b"x-forwarded-prefix"]
    if peer is None or not is_loopback(peer[0]) or len(prefixes) != 1:
        return ""
    return prefixes[0].decode() if _PREFIX.fullmatch(prefixes[0]) else ""
