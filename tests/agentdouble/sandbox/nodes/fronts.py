"""Doubles whose sessions run on nodes, and what one sees of the nodes."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psutil
import pytest

from agentdouble import Emulator
from agentdouble.sandbox.nodes import node_placement
from agentdouble.sandbox.nodes.engine import Engine, Event, Joined
from tests.agentdouble.calling import eventually, http, result

MODULE = "agentdouble.cli.node_process"


@contextmanager
def front(count: int = 2, **settings: Any) -> Iterator[Emulator]:
    """Run a double with nodes on this machine; yield when all have joined."""
    with Emulator(**{"nodes": f"local://{count}", "pool_size": 0, **settings}) as double:
        have_joined(double, count)
        yield double


def have_joined(double: Emulator, count: int) -> None:
    """Wait until so many nodes have joined."""
    eventually(
        lambda: [node["state"] for node in nodes(double).values()],
        lambda states: len(states) == count and "joining" not in states,
    )


def nodes(double: Emulator) -> dict[str, dict[str, Any]]:
    """Return the nodes of a double by name."""
    listed = http.get(f"{double.url}/_emulator/nodes").json()["nodes"]
    return {node["name"]: node for node in listed}


def living(double: Emulator) -> dict[str, dict[str, Any]]:
    """Return the living sessions by their UserSessionId."""
    listed = http.get(f"{double.url}/_emulator/sessions").json()["sessions"]
    return {session["UserSessionId"]: session for session in listed}


def process_of(double: Emulator, name: str) -> psutil.Process:
    """Return the process of a node on this machine."""
    port = int(nodes(double)[name]["url"].rpartition(":")[2])
    for process in psutil.Process().children(recursive=True):
        if MODULE in " ".join(process.cmdline()):
            ports = [c.laddr.port for c in process.net_connections() if c.status == "LISTEN"]
            if port in ports:
                return process
    raise AssertionError(f"no process listens on {port}")


def on_both(double: Emulator) -> dict[str, str]:
    """Start sessions until each of two nodes has one; return a session of each node.

    A node may seem busy until its next news, within a second.
    """
    for number in range(200):
        result(double, "x = 41", f"s{number}")
        by_node = {session["node"]: name for name, session in living(double).items()}
        if len(by_node) == 2:
            return by_node
    raise AssertionError(f"all sessions are on one node: {by_node}")


def drain(double: Emulator, name: str, deadline_s: object) -> tuple[int, str]:
    """Drain a node; return the status of the answer and its text."""
    answer = http.post(
        f"{double.url}/_emulator/nodes/{name}/drain", json={"deadline_s": deadline_s}
    )
    return answer.status_code, answer.text


def altering(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Let real nodes report something else when they join; ``key`` gives them another key."""
    key = changes.pop("key", None)

    class Altered(Engine):
        def __init__(self, url: str, config: Any) -> None:
            super().__init__(url, config if key is None else {**config, "key": key})

        async def events(self) -> AsyncGenerator[Event, None]:
            async for event in super().events():
                yield replace(event, **changes) if isinstance(event, Joined) else event

    monkeypatch.setattr(node_placement, "Engine", Altered)


def journal(double: Emulator) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = http.get(f"{double.url}/_emulator/journal").json()["entries"]
    return entries


def inner(answer: Any) -> dict[str, Any]:
    """Return the JSON of section 2.7 in an answer."""
    document: dict[str, Any] = json.loads(answer.json()["Result"]["Result"])
    return document
