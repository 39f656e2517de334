"""A second double on the database of another: it waits, holds nothing, and takes over.

The lock on the database says which double has it. PostgreSQL releases the lock when the connection
that holds it ends, and the standby gets it. A double that finds another one in its place ends: its
sessions are lost, and the other one has recorded that.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import ssl
from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from agentdouble.processes.fork_server import processes
from agentdouble.server.guard import HEALTH, Refusal, render_json
from agentdouble.server.starting import answer_during
from agentdouble.state import Store

_log = logging.getLogger(__name__)


class Standby:
    """What a double answers while another one has its database."""

    def __init__(self, store: Store, version: str) -> None:
        self._store = store
        self._version = version
        self._reason = "It waits for the lock on the database."
        self._app = Starlette(routes=[Route(HEALTH, self._health), Mount("/", self._refuse)])

    async def wait(self, listeners: Sequence[socket.socket], tls: ssl.SSLContext | None) -> None:
        """Return when the database is ours; answer requests until then.

        Raises SystemExit if a signal comes first.
        """
        _log.warning("Standby: waits until no other double has the database.")
        await answer_during(self._store.wait(self._note), self._app, listeners, tls)
        _log.warning("Standby: takes over.")

    def _note(self, reason: str) -> None:
        self._reason = reason

    async def _health(self, _request: Request) -> Response:
        """Return that the process is well, and what it waits for."""
        document = {"status": "standby", "reason": self._reason, "version": self._version}
        return JSONResponse({**document, "pid": os.getpid()})

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        message = f"This double is a standby, and has not taken over: {self._reason}"
        refusal = render_json(HTTPConnection(scope), Refusal(503, "Standby", message))
        await refusal(scope, receive, send)


async def end_if_replaced(store: Store) -> None:
    """End this process as soon as another double has the store."""
    _log.error("Stopping: %s", await store.replaced())
    processes.send(os.getpid(), signal.SIGTERM)
