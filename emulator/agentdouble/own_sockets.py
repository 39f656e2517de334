"""Sockets of a double and of its clients, in a test run that forbids sockets.

pytest-socket replaces the class of sockets or its ``connect`` for the whole process, and so does
pytest-recording. A double in that process would neither accept nor reach its sessions. Here the
replacements learn to let some threads and calls through, and refuse all others as before.
"""

from __future__ import annotations

import _socket
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import FunctionType
from typing import Any

_thread = threading.local()
_calling: ContextVar[bool] = ContextVar("agentdouble_own_sockets", default=False)
_plain: Any = _socket.socket  # the class below socket.socket, which nobody replaces
_CONNECTING = ("connect", "connect_ex")


def permit_thread() -> None:
    """Let this thread make and connect sockets from now on."""
    _thread.permitted = True
    _teach()


@contextmanager
def permitted() -> Iterator[None]:
    """Let this call, and the tasks that it starts, make and connect sockets."""
    _teach()
    token = _calling.set(True)
    try:
        yield
    finally:
        _calling.reset(token)


def connect(host: str, port: int, timeout_s: float | None) -> socket.socket:
    """Return a connected socket, also where ``getaddrinfo`` is replaced; raise OSError."""
    *earlier, last = _socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
    for family, kind, protocol, _, address in earlier:
        with suppress(OSError):
            return _connected(family, kind, protocol, address, timeout_s)
    family, kind, protocol, _, address = last
    return _connected(family, kind, protocol, address, timeout_s)


def _connected(
    family: int, kind: int, protocol: int, address: Any, timeout_s: float | None
) -> socket.socket:
    connected = socket.socket(family, kind, protocol)
    try:
        connected.settimeout(timeout_s)
        connected.connect(address)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        connected.close()
        raise
    return connected


def _is_permitted() -> bool:
    return _calling.get() or getattr(_thread, "permitted", False)


def _teach() -> None:
    """Make the replacements that are there now ask who calls them."""
    present: Any = socket.socket
    for kind in present.__mro__:
        if kind.__module__ == "socket" or kind is _plain:
            break
        if "__new__" in vars(kind) and kind.__new__.__module__ != __name__:
            kind.__new__ = staticmethod(_asking(kind.__new__, _plain.__new__))
    for kind in present.__mro__:
        for name in _CONNECTING:
            replaced = vars(kind).get(name)
            if isinstance(replaced, FunctionType) and replaced.__module__ != __name__:
                setattr(kind, name, _asking(replaced, getattr(_plain, name)))


def _asking(replacement: Any, original: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        return (original if _is_permitted() else replacement)(*args, **kwargs)

    return call
