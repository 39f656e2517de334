"""A receiver of push notifications."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.agentdouble.apps.a2a.wire import kinds
from tests.ports import handled

WAIT_S = 60


@dataclass
class Receiver:
    """Records notifications with their headers."""

    url: str
    status: int = 200
    got: queue.Queue[tuple[Mapping[str, str], dict[str, Any]]] = field(default_factory=queue.Queue)

    def until(self, kind: str) -> list[dict[str, Any]]:
        """Return the notifications up to the first of a kind."""
        requests: list[dict[str, Any]] = []
        while not requests or kinds(requests)[-1] != kind:
            requests.append(self.got.get(timeout=WAIT_S)[1])
        return requests


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver on this machine in the block."""
    receiver: Receiver

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.got.put((dict(self.headers), json.loads(body)))
            self.send_response(receiver.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with handled(Handler) as url:
        receiver = Receiver(f"{url}/hook")
        yield receiver
