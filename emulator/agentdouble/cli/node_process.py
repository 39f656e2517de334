"""The process of a node: a double that answers only its front (``sandbox.nodes``).

It reads its configuration as a line of JSON, writes its address as another, and ends with its
standard input, or when no front has sent it a request for some time.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp

from agentdouble import __version__
from agentdouble.emulator import Emulator
from agentdouble.processes import capacity
from agentdouble.processes.fork_server import processes
from agentdouble.sandbox.nodes.node_app import NodeApp
from agentdouble.settings import PREFIX, Settings
from agentdouble.surfaces.sandbox import Sandbox

_START_S = 60.0  # for the first request of the front
_LOOK_S = 0.5


class _NodeDouble(Emulator):
    """A double whose surfaces answer nobody; ``NodeApp`` answers the front."""

    def __init__(self, settings: Settings, key: str, limit: int | None) -> None:
        super().__init__(settings=settings)
        context = self._platform.context
        sandbox = self._surface(Sandbox)
        self.node_app = NodeApp(
            self.app, sandbox.sessions, sandbox.data_plane, context.ledger, key, limit
        )

    @property
    def _served(self) -> ASGIApp:
        return self.node_app


def main() -> None:
    """Serve the front until the standard input or the front ends."""
    config: Mapping[str, Any] = json.loads(sys.stdin.readline())
    for name in [name for name in os.environ if name.upper().startswith(PREFIX)]:
        del os.environ[name]  # the front's settings are in force here
    capacity.raise_limit()
    host: str = config["host"]
    settings = Settings(host=host, port=0, insecure=True, **config["settings"])
    double = _NodeDouble(settings, config["key"], config["capacity"])
    threading.Thread(target=_end_with_parent, daemon=True).start()
    threading.Thread(
        target=_end_without_front, args=(double.node_app, config["silence_s"]), daemon=True
    ).start()
    hello = {"url": double.url, "version": __version__, "capacity": double.node_app.capacity}
    double.serve(lambda: print(json.dumps(hello), flush=True))  # noqa: T201 (for the engine)


def _end_with_parent() -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    _end()


def _end_without_front(app: NodeApp, silence_s: float) -> None:
    started = time.monotonic()
    while True:
        time.sleep(_LOOK_S)
        patience_s = silence_s if app.asked_at > started else _START_S
        if time.monotonic() - app.asked_at > patience_s:
            _end()
            return


def _end() -> None:
    processes.send(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
