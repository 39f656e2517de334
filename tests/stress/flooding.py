"""Opens connections to a double and says the same on all of them: run as a program, or by a session.

The standard library alone, as it is sent to a session as it stands.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import sys
import time


def flood(port: int, count: int, said: bytes, seconds: float) -> int:
    """Keep the connections open, reading what comes, for so long; return how many there were."""
    ways = selectors.DefaultSelector()
    for _ in range(count):
        one = socket.create_connection(("127.0.0.1", port))
        one.setblocking(False)
        ways.register(one, selectors.EVENT_READ | (selectors.EVENT_WRITE if said else 0), [said])
    until = time.monotonic() + seconds
    while ways.get_map() and time.monotonic() < until:
        for key, events in ways.select(0.1):
            _step(ways, key, events)
    for key in list(ways.get_map().values()):
        key.fileobj.close()  # type: ignore[union-attr]
    return count


def _step(ways: selectors.BaseSelector, key: selectors.SelectorKey, events: int) -> None:
    one = key.fileobj
    assert isinstance(one, socket.socket)
    left = key.data
    try:
        if events & selectors.EVENT_WRITE:
            left[0] = left[0][one.send(left[0]) :]
            if not left[0]:
                ways.modify(one, selectors.EVENT_READ, left)
        elif one.recv(65536):
            return
        else:
            raise ConnectionError
    except BlockingIOError:
        pass
    except OSError:
        ways.unregister(one)
        with contextlib.suppress(OSError):
            one.close()


if __name__ == "__main__" and len(sys.argv) == 4:
    flood(int(sys.argv[1]), int(sys.argv[2]), sys.stdin.buffer.read(), float(sys.argv[3]))
