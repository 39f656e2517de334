"""Nodes on the machines of a Ray cluster: ``ray://HOST:6379``, the address of its head.

This program is a driver of the cluster, so it runs on one of its machines. It asks for an actor on
each machine with a free CPU. The actor starts the node as a child process: a double inside an
actor would block Ray's own threads, and would die with them. The actor ends with this program, and
the node ends with the actor.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from agentdouble.sandbox.nodes import ray_token
from agentdouble.sandbox.nodes.engine import (
    ChildNode,
    Connected,
    Event,
    Failed,
    Lost,
    report,
)
from agentdouble.sandbox.nodes.ray_token import Access

_LOOK_S = 0.5


class NodeActor:
    """An actor on a machine of the cluster; its child process is the node."""

    def __init__(self, name: str, config: Mapping[str, Any]) -> None:
        self._name = name
        host = ray.util.get_node_ip_address()
        self._process = ChildNode({**config, "host": host})

    def hello(self) -> Event:
        """Wait until the node answers."""
        return self._process.hello(self._name)

    def how_it_ended(self) -> str:
        """Wait until the node's process has ended."""
        return self._process.how_it_ended()

    def end(self) -> None:
        """End the node's process."""
        self._process.end()


class _Cluster:
    """The actors of this driver, by the names of their nodes."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config
        self._actors: dict[str, Any] = {}
        self._pending: dict[Any, tuple[str, bool]] = {}  # by future: name, whether it has joined
        self.released: set[str] = set()

    def start_missing(self) -> None:
        """Start a node on each living machine that has none."""
        for machine in ray.nodes():
            name = f"{machine['NodeName']}-{machine['NodeID'][:6]}"
            usable = machine["Alive"] and machine["Resources"].get("CPU", 0) >= 1
            if usable and name not in self._actors and name not in self.released:
                self._start(name, machine["NodeID"])

    def _start(self, name: str, machine: str) -> None:
        place = NodeAffinitySchedulingStrategy(machine, soft=False)
        remote = ray.remote(num_cpus=1, max_concurrency=3, scheduling_strategy=place)(NodeActor)
        actor = self._actors[name] = remote.remote(name, self._config)
        self._pending[actor.hello.remote()] = name, False

    def look(self) -> None:
        """Report the nodes that have joined or ended meanwhile."""
        if not self._pending:
            threading.Event().wait(_LOOK_S)
            return
        done, _ = ray.wait([*self._pending], num_returns=1, timeout=_LOOK_S)
        for future in done:
            name, joined = self._pending.pop(future)
            try:
                event = ray.get(future)
            except ray.exceptions.RayError as error:
                event = Lost(name, f"has ended ({_first_line(error)})")
            if joined and isinstance(event, str):
                event = Lost(name, f"has ended ({event})")
            report(event)
            if isinstance(event, Lost):
                self.forget(name)
            else:
                self._pending[self._actors[name].how_it_ended.remote()] = name, True

    def forget(self, name: str) -> None:
        """End a node; ``start_missing`` starts another."""
        if name in self._actors:
            ray.kill(self._actors.pop(name))
            self._pending = {f: entry for f, entry in self._pending.items() if entry[0] != name}

    def close(self) -> None:
        """End every node, and return when their processes have ended."""
        endings = [actor.end.remote() for actor in self._actors.values()]
        ray.wait(endings, num_returns=len(endings), timeout=5) if endings else None


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def main(address: str, config: Mapping[str, Any], received: Iterator[Mapping[str, Any]]) -> None:
    """Keep a node on each machine of the cluster at ``address`` until the front ends."""
    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    except Exception as error:  # Ray raises many kinds
        report(Failed(f"the Ray cluster at {address} cannot be used: {_first_line(error)}"))
        sys.exit(1)
    if config["needs_token"] and ray_token.try_without(address) is not Access.NEEDS_TOKEN:
        report(Failed(ray_token.refusal(address)))
        sys.exit(1)
    report(Connected())
    cluster, waiting = _Cluster(config), queue.Queue[Mapping[str, Any] | None]()
    threading.Thread(target=_receive, args=(received, waiting), daemon=True).start()
    while True:
        cluster.start_missing()
        cluster.look()
        while not waiting.empty():
            order = waiting.get()
            if order is None:
                cluster.close()
                ray.shutdown()
                return
            for action, name in order.items():
                if action == "release":
                    cluster.released.add(name)
                cluster.forget(name)


def _receive(
    received: Iterator[Mapping[str, Any]], waiting: queue.Queue[Mapping[str, Any] | None]
) -> None:
    for order in received:
        waiting.put(order)
    waiting.put(None)
