"""The channels of a kernel that few clients use: each is opened when its first client comes.

The heartbeat and the control channel have a thread and a socket of ZMQ each, which would cost every
start, and every copy, a tenth of its time. Until a client comes, a plain socket listens at the
channel's address. A client of ZMQ connects again when its connection is closed.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress

from tornado.ioloop import IOLoop


class LateChannel:
    """Waits at ``path`` for the first client of a channel; then ``open_channel`` binds to it.

    It waits in ``loop``, whose thread calls ``open_channel``. No code of the session runs there, so
    a busy kernel opens its channels, too.
    """

    def __init__(self, path: str, loop: IOLoop, open_channel: Callable[[], None]) -> None:
        self._loop = loop
        self._open_channel = open_channel
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listening.setblocking(False)
        self._listening.bind(path)
        self._listening.listen()
        loop.add_handler(self._listening, self._on_client, IOLoop.READ)

    def _on_client(self, *_: object) -> None:
        self._loop.remove_handler(self._listening)
        # Forks of this process have the socket, too. Without these two steps, clients that have
        # connected would wait for them.
        self._listening.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):  # no client is left
            while True:
                self._listening.accept()[0].close()
        self._listening.close()
        self._open_channel()
