"""A receiver of push notifications."""

from __future__ import annotations

import json
import queue
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.agentdouble.apps.a2a.wire import heard

WAIT_S = 60


@dataclass
class Receiver:
    """Takes notifications, each with its headers."""

    url: str
    status: int = 200
    got: queue.Queue[tuple[Mapping[str, str], dict[str, Any]]] = field(default_factory=queue.Queue)

    def until(self, kind: str) -> list[dict[str, Any]]:
        """Return the notifications that came until one of a kind."""
        found: list[dict[str, Any]] = []
        while not found or heard(found)[-1] != kind:
            found.append(self.got.get(timeout=WAIT_S)[1])
        return found


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Receive on this machine inside."""
    made: Receiver

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.got.put((dict(self.headers), json.loads(body)))
            self.send_response(made.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made = Receiver(f"http://127.0.0.1:{server.server_port}/hook")
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield made
        server.shutdown()
        thread.join()
