"""Keep a process off the network: refuse connections to other machines, with their names."""

from __future__ import annotations

import ipaddress
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any
from unittest import mock

Refuse = Callable[[str, "str | None"], Exception]

_LIBRARIES = ("requests", "httpx2", "aiohttp", "urllib3", "urllib.request", "http.client")


@contextmanager
def offline(refuse: Refuse) -> Iterator[None]:
    """Block name lookups and connections to other machines inside the context.

    ``refuse`` gets the host, and the library that connects if it is known; its result is raised
    there. This applies to every thread of this process.
    """
    look_up, connect = socket.getaddrinfo, socket.socket.connect

    def looked_up(host: Any, *arguments: Any, **named: Any) -> Any:
        _check(host, refuse)
        return look_up(host, *arguments, **named)

    def connected(self: socket.socket, address: Any) -> None:
        _check(address[0] if isinstance(address, tuple) else None, refuse)
        connect(self, address)

    with (
        mock.patch.object(socket, "getaddrinfo", looked_up),
        mock.patch.object(socket.socket, "connect", connected),
    ):
        yield


def _check(host: Any, refuse: Refuse) -> None:
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else host
    if isinstance(name, str) and not _is_here(name):
        raise refuse(name, _library(sys._getframe()))


def _is_here(name: str) -> bool:
    if name in ("", "localhost", socket.gethostname()):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def _library(frame: FrameType | None) -> str | None:
    """Return the HTTP library that sends the request; of several, the one that the code called."""
    found = None
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        found = next((one for one in _LIBRARIES if f"{module}.".startswith(f"{one}.")), found)
        frame = frame.f_back
    return found
