"""The web console: a double's pages in a browser, on a listener of their own.

It has its own port because everything else that a double serves (applications, runtimes, files that
agents write) shares the origin of the double's port: a page there could read what the console
reads. ``application`` has the routes, ``pages`` the shell and the frames of outputs, and
``relayed_requests`` calls actions and sends requests again. ``checks`` refuses requests of other
pages and programs, and ``double`` passes requests on to the double. ``static`` has the JavaScript.

This package is below ``emulator``, because an ``Emulator`` opens its own console; it knows of the
double only what it is given.
"""

from __future__ import annotations

import secrets
import socket
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Receive, Scope, Send

from agentdouble.console.application import make_app
from agentdouble.console.checks import Checks
from agentdouble.console.double import Double
from agentdouble.errors import AddressInUseError
from agentdouble.server.sockets import address_of, open_socket

__all__ = ["Console", "Double", "open_console"]

HOST = "127.0.0.1"  # loopback only, even where the double is not


@dataclass(frozen=True)
class Console:
    """An open console; ``url`` has the token in its fragment, which no browser sends."""

    listener: socket.socket
    app: ASGIApp = field(repr=False)
    url: str = field(repr=False)

    def beside(self, double: ASGIApp) -> ASGIApp:
        """Return one application that answers both listeners, each with its own."""
        address = self.listener.getsockname()[:2]

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            is_console = scope["type"] != "lifespan" and tuple(scope["server"] or ()) == address
            await (self.app if is_console else double)(scope, receive, send)

        return answer


def open_console(double: Double, port: int) -> Console:
    """Open a console; port 0 takes a free one. Raises AddressInUseError if the port is in use.

    It has a separate token: the output of ``serve`` shows its address and may be kept, and the
    double's token may be the same at every start.
    """
    try:
        listener = open_socket(HOST, port)
    except AddressInUseError:
        raise AddressInUseError(HOST, port, option="--console-port") from None
    scheme = double.connection.url.partition(":")[0]
    token = secrets.token_urlsafe(32)
    url = f"{address_of(listener, scheme)}/#token={token}"
    return Console(listener, Checks(make_app(double), token), url)
