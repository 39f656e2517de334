"""A server that records the requested paths."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TIMEOUT_S = 60


@dataclass
class Hearing:
    """The requested paths."""

    url: str
    paths: list[str] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def note(self, path: str) -> None:
        """Record a path."""
        with self._changed:
            self.paths.append(path)
            self._changed.notify_all()

    def wait_for(self, path: str) -> None:
        """Return when a path has been requested."""
        with self._changed:
            assert self._changed.wait_for(lambda: path in self.paths, TIMEOUT_S), self.paths


@contextmanager
def hearing() -> Iterator[Hearing]:
    """Listen on a free port of loopback and answer every request with an empty body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard_requests.note(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        heard_requests = Hearing(f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield heard_requests
        server.shutdown()
        thread.join()
