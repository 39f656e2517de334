"""The nodes of a double, and the choice of a node for a session."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import secrets
from typing import Any

from agentdouble.core.ledger import Ledger
from agentdouble.errors import (
    MissingExtraError,
    SandboxError,
    SettingsError,
    TooManyInstancesError,
)
from agentdouble.sandbox.nodes import ray_token
from agentdouble.sandbox.nodes.engine import Connected, Engine, Event, Failed, Joined
from agentdouble.sandbox.nodes.node import Node
from agentdouble.sandbox.nodes.node_part import NodePart
from agentdouble.sandbox.nodes.node_processes import NodeProcesses
from agentdouble.sandbox.nodes.ray_token import Access
from agentdouble.sandbox.placement import unknown_node
from agentdouble.sandbox.session import SandboxSession
from agentdouble.settings import Settings

_log = logging.getLogger(__name__)

_ACCESS_S = 5.0  # a cluster that answers later is asked when it is joined
PATIENCE_S = 30.0  # for the first node of a front that has just started


class NodePlacement:
    """Places sessions on nodes, which an engine starts and replaces (see ``Placement``)."""

    def __init__(self, settings: Settings, ledger: Ledger, version: str) -> None:
        assert settings.nodes is not None
        if settings.nodes.startswith("ray://") and importlib.util.find_spec("ray") is None:
            raise MissingExtraError("The setting nodes = ray://...", extra="ray")
        self.nodes: dict[str, Node] = {}
        self._settings = settings
        self._ledger = ledger
        self._key = secrets.token_urlsafe(32)
        self._version = version
        self._engine = Engine(settings.nodes, self._config())
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._drains: dict[str, asyncio.TimerHandle] = {}
        self._joined = asyncio.Event()
        self._started: float | None = None
        self._following: asyncio.Task[None] | None = None
        self._failure = "no node has joined yet"

    def _config(self) -> dict[str, Any]:
        settings = self._settings
        return {
            "key": self._key,
            "host": "127.0.0.1",
            "silence_s": 2 * settings.node_silence_s,
            "capacity": settings.node_capacity,
            "needs_token": self._needs_token,
            "settings": settings.for_nodes(),
        }

    @property
    def _needs_token(self) -> bool:
        """Whether sessions reach the ports of Ray, which then must demand a token."""
        return self._settings.network != "none" and not self._settings.ray_without_token

    async def check_access(self) -> None:
        """Raise SettingsError if code of a session could join the cluster.

        A cluster that does not answer yet is asked again when it does.
        """
        kind, _, address = (self._settings.nodes or "").partition("://")
        if kind != "ray" or not self._needs_token:
            return
        if await asyncio.to_thread(ray_token.try_without, address, _ACCESS_S) is Access.OPEN:
            message = f"The setting nodes is refused: {ray_token.refusal(address)}."
            raise SettingsError(message, key="nodes", source="the settings")

    async def ready(self) -> None:
        """Wait for the first node, for a front that has just started."""
        if any(node.state == "open" for node in self.nodes.values()):
            return
        now = asyncio.get_running_loop().time()
        rest_s = PATIENCE_S - (now - self._started) if self._started is not None else 0
        with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
            await asyncio.wait_for(self._joined.wait(), max(0, rest_s))

    def check(self, living: int) -> None:
        """Raise TooManyInstancesError at the limit, and SandboxError if no node has a place."""
        most = self._settings.max_instances
        if most is not None and living >= most:
            raise TooManyInstancesError(most)
        self.choose()

    def choose(self, *, except_for: Node | None = None) -> Node:
        """Return the node with the most room; raise SandboxError if none has any."""
        nodes = [node for node in self.nodes.values() if node is not except_for]
        best = max(nodes, key=lambda node: node.room, default=None)
        if best is None or best.room <= 0:
            states = [
                f"{node.name} is {'full' if node.state == 'open' else node.state}, with "
                f"{len(node.sessions)} of {node.capacity} sessions ({node.reason})"
                for node in self.nodes.values()
            ]
            reason = "; ".join(states) or self._failure
            message = f"No node has a place for another session: {reason}."
            raise SandboxError(message, "QuotaExceeded", 429)
        return best

    def processes_for(self, session: SandboxSession) -> NodeProcesses:
        """Return the processes of a new session on the node with the most room."""
        part = NodePart(session, self.choose(), self)
        self._enter(part, part.home_node)
        return NodeProcesses(part)

    def place(self, part: NodePart, node: Node) -> None:
        """Give a session a place on another node than the one it has."""
        self.leave(part)
        self._enter(part, node)

    def _enter(self, part: NodePart, node: Node) -> None:
        # The node's news, which say what is really free, come once a second. Sessions that arrive
        # in between would all choose the same node if each did not count here.
        node.free -= 1
        node.sessions[part.session.id] = part.session
        part.home_node = node

    def move(self, part: NodePart, reason: str) -> None:
        """Give a session that has run nothing a place on another node.

        ``reason`` is why its node could not make its part of the session. Raises SandboxError.
        """
        node = part.home_node
        node.free, node.reason = 0, reason  # until its next news, no other session tries it
        self.place(part, self.choose(except_for=node))

    def leave(self, part: NodePart) -> None:
        """Take the place of a session away from it."""
        node = part.home_node
        if node.sessions.get(part.session.id) is part.session:  # else the session lives again there
            del node.sessions[part.session.id]
        self._finish_draining(node)

    def start(self) -> None:
        """Start the engine, and follow it until ``close``."""
        self._started = asyncio.get_running_loop().time()
        self._following = asyncio.ensure_future(self._follow())

    async def _follow(self) -> None:
        async with contextlib.aclosing(self._engine.events()) as events:
            async for event in events:
                self._handle(event)

    def _handle(self, event: Event) -> None:
        match event:
            case Joined():
                self._join(event)
            case Connected():
                self._failure = "no machine with a free CPU has started a node yet"
            case Failed():
                self._failure = event.reason
                _log.warning("Nodes: %s", event.reason)
            case _:
                if event.name in self.nodes:
                    self._lose(self.nodes[event.name], event.reason)
                else:
                    self._failure = f"the node {event.name} {event.reason}"
                    _log.warning("The node %s %s.", event.name, event.reason)

    def _join(self, joined: Joined) -> None:
        if joined.name in self.nodes:  # the successor may join before the node's end is noticed
            self._lose(self.nodes[joined.name], "was replaced")
        settings = self._settings
        node = Node(joined, self._key, self._ledger, settings.node_silence_s)
        self.nodes[joined.name] = node
        node.reason = f"before: {self._failure}"
        if joined.version != self._version:
            node.state = "refused"
            node.reason = f"it has agentdouble {joined.version}, and the front has {self._version}"
            _log.warning("The node %s is refused: %s.", node.name, node.reason)
            return
        self._watches[node.name] = asyncio.ensure_future(self._watch(node))
        _log.warning("The node %s has joined, for %d sessions.", node.name, node.capacity)

    async def _watch(self, node: Node) -> None:
        reason = await node.watch(self._joined.set)
        if (
            self.nodes.get(node.name) is node
        ):  # else the engine noticed first, or its successor is here
            self._lose(node, reason)
            self._engine.order({"replace": node.name})

    def _lose(self, node: Node, reason: str) -> None:
        """Give a node up, with the sessions that it has."""
        del self.nodes[node.name]
        watch = self._watches.pop(node.name, None)
        # the watch itself may have found the loss
        if watch is not None and watch is not asyncio.current_task():
            watch.cancel()
        if node.state != "drained":
            _log.warning("The node %s %s; %d sessions.", node.name, reason, len(node.sessions))
        if not self.nodes:
            self._joined.clear()
            self._failure = f"the node {node.name} {reason}"
        node.lose(reason)
        for session in [*node.sessions.values()]:
            session.lose(f"its node {node.name} {reason}")

    def list_nodes(self) -> list[dict[str, Any]]:
        return [node.to_dict() for node in self.nodes.values()]

    def drain(self, name: str, deadline_s: float) -> None:
        node = self.nodes.get(name)
        if node is None:
            raise unknown_node(name, [*self.nodes])
        if node.state in ("joining", "open"):
            node.state, node.reason = "draining", f"no new sessions; it ends in {deadline_s:g} s"
            loop = asyncio.get_running_loop()
            self._drains[name] = loop.call_later(deadline_s, self._end_drained, node)
            self._finish_draining(node)

    def _end_drained(self, node: Node) -> None:
        for session in [*node.sessions.values()]:
            session.lose(f"its node {node.name} was drained")

    def _finish_draining(self, node: Node) -> None:
        if node.state == "draining" and not node.sessions:
            node.state, node.reason = "drained", "it has ended"
            self._drains.pop(node.name).cancel()
            self._engine.order({"release": node.name})

    async def close(self) -> None:
        """Close the connections and end the engine, with all nodes."""
        for drain in self._drains.values():
            drain.cancel()
        tasks = [*self._watches.values(), *((self._following,) if self._following else ())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for node in self.nodes.values():
            node.connections.close()
