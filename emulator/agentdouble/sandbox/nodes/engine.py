"""The program that starts nodes, as the front sees it, and what it reports.

The program runs apart from the front, because the library of a cluster may end its process. It
reads JSON objects, one in a line: first the configuration of nodes, then orders. ``{"replace":
NAME}`` ends a node that the front has given up, and another starts. ``{"release": NAME}`` ends a
node, and no other starts on its machine. It writes a JSON object for each event. When its input
ends, it ends all nodes and then itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

CLUSTERS = {
    "ray": "agentdouble.sandbox.nodes.ray_cluster",
    "local": "agentdouble.sandbox.nodes.engine",
}
_NODE = "agentdouble.cli.node_process"
START_S = 60.0  # a program or a node that has not started by then never will
_AGAIN_S = 2.0
_RESTART_S = 1.0
_END_PATIENCE_S = 10.0


@dataclass(frozen=True)
class Joined:
    """A node answers at ``url``; ``capacity`` is the number of sessions that it can hold."""

    name: str
    url: str
    version: str
    capacity: int


@dataclass(frozen=True)
class Lost:
    """A node has ended; ``reason`` continues a sentence about it."""

    name: str
    reason: str


@dataclass(frozen=True)
class Connected:
    """The program has reached the cluster, and starts nodes."""


@dataclass(frozen=True)
class Failed:
    """The engine cannot start nodes now; it tries again."""

    reason: str


Event: TypeAlias = Joined | Lost | Connected | Failed
_EVENTS: Mapping[str, type[Event]] = {
    kind.__name__: kind for kind in (Joined, Lost, Connected, Failed)
}


def report(event: Event) -> None:
    """Write an event to the standard output of the program, for the front."""
    fields = {"event": type(event).__name__, **asdict(event)}
    print(json.dumps(fields), flush=True)  # noqa: T201 (for the front)


def orders() -> Iterator[Mapping[str, Any]]:
    """Yield the JSON objects that the front sends to the program, until it ends."""
    for line in sys.stdin:
        yield json.loads(line)


class Engine:
    """The program for the nodes at ``url``; it is started again if it ends.

    ``config`` is the configuration of every node, with the secret key of the front.
    """

    def __init__(self, url: str, config: Mapping[str, Any]) -> None:
        self._url = url
        self._config = config
        self._process: asyncio.subprocess.Process | None = None

    async def events(self) -> AsyncGenerator[Event, None]:
        """Yield what happens to the nodes, until the task is cancelled."""
        while True:
            failed = False
            async with self._program() as process:
                assert process.stdout is not None
                limit_s: float | None = START_S  # the library of a cluster may wait for ever
                try:
                    while line := await asyncio.wait_for(process.stdout.readline(), limit_s):
                        fields, limit_s = json.loads(line), None
                        event = _EVENTS[fields.pop("event")](**fields)
                        failed = isinstance(event, Failed)
                        yield event
                except (TimeoutError, asyncio.TimeoutError):
                    process.kill()
                    failed = True
                    yield Failed(f"{self._url} could not be reached within {START_S:g} s")
            if not failed:
                yield Failed(f"the program for {self._url} ended with code {process.returncode}")
            await asyncio.sleep(_AGAIN_S)

    def order(self, order: Mapping[str, Any]) -> None:
        """Send the program an order."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(ConnectionError, RuntimeError):  # it and its nodes have ended
                self._process.stdin.write(json.dumps(order).encode() + b"\n")

    @asynccontextmanager
    async def _program(self) -> AsyncIterator[asyncio.subprocess.Process]:
        """Run the program during the context; end it and all nodes afterwards."""
        process = self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "agentdouble.sandbox.nodes", self._url),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the front, which then ends the program
        )
        self.order(self._config)
        try:
            yield process
        finally:
            self._process = None
            await asyncio.shield(_ended(process))


async def _ended(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()
    try:
        await asyncio.wait_for(process.communicate(), _END_PATIENCE_S)
    except asyncio.TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


class ChildNode:
    """The process of a node, as a child of the program that starts nodes.

    It ends when this process ends, because then its standard input does.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._process = subprocess.Popen(  # noqa: S603 (our own module)
            [sys.executable, "-m", _NODE],
            # without the cluster's token, which a node does not need
            env={n: v for n, v in os.environ.items() if not n.startswith("RAY_")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the program did not start: see ``hello``
            self._process.stdin.write(f"{json.dumps(config)}\n")
            self._process.stdin.flush()

    def hello(self, name: str) -> Event:
        """Wait until the node answers; return that it has joined, or that it is lost."""
        assert self._process.stdout is not None
        timer = threading.Timer(START_S, self._process.kill)
        timer.start()
        line = self._process.stdout.readline()
        timer.cancel()
        if not line:
            return Lost(name, f"did not start within {START_S:g} s ({self.how_it_ended()})")
        return Joined(name=name, **json.loads(line))

    def how_it_ended(self) -> str:
        """Wait until the process has ended; return how."""
        code = self._process.wait()
        return f"killed by signal {-code}" if code < 0 else f"it exited with code {code}"

    def end(self, patience_s: float = _END_PATIENCE_S) -> None:
        """End the process; return when it has ended."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _Keeper(threading.Thread):
    """Keeps one node running until it is released."""

    def __init__(self, name: str, config: Mapping[str, Any]) -> None:
        super().__init__(name=name, daemon=True)
        self.released = threading.Event()
        self._config = config
        self._node: ChildNode | None = None

    def run(self) -> None:
        while not self.released.is_set():
            node = self._node = ChildNode(self._config)
            event = node.hello(self.name)
            report(event)
            ended = node.how_it_ended()
            if self._node is node and not isinstance(event, Lost):  # nobody ordered the end
                report(Lost(self.name, f"has ended ({ended})"))
            self.released.wait(_RESTART_S)

    def end(self) -> None:
        """End the node's process."""
        node, self._node = self._node, None
        if node is not None:
            node.end()


def main(count: str, config: Mapping[str, Any], received: Iterator[Mapping[str, Any]]) -> None:
    """Keep ``count`` nodes running on this machine until the front ends: ``local://3``."""
    report(Connected())
    keepers = {name: _Keeper(name, config) for name in (f"node-{n + 1}" for n in range(int(count)))}
    for keeper in keepers.values():
        keeper.start()
    for order in received:
        for action, name in order.items():
            if action == "release":
                keepers[name].released.set()
            threading.Thread(target=keepers[name].end, daemon=True).start()
    endings = []
    for keeper in keepers.values():
        keeper.released.set()
        endings.append(threading.Thread(target=keeper.end))
        endings[-1].start()
    for ending in endings:
        ending.join()
