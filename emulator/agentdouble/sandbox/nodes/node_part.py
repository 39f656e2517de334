"""The part of a session that its node has: the first request makes it, later ones use it.

A request may have run code when its answer is lost, so it is never sent again; the session ends
then. The one exception is the request that makes the part, while it is certain that no node has
received it (``unreached``), or a node says that it has made nothing (``unopened``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agentdouble.core import ledger
from agentdouble.errors import AnswerLostError, InstanceEndedError, SandboxError
from agentdouble.faults import InjectedFault
from agentdouble.journal.entries import note_node
from agentdouble.processes.watch import Used

if TYPE_CHECKING:
    from agentdouble.sandbox.nodes.node import Node, OnEvent
    from agentdouble.sandbox.session import SandboxSession


class NodeChooser(Protocol):
    """Assigns parts to nodes, and takes their places away: ``NodePlacement``."""

    def place(self, part: NodePart, node: Node) -> None:
        """Give a part a place on another node than the one it has."""

    def move(self, part: NodePart, reason: str) -> None:
        """Give a part that has run nothing a place on another node; raise SandboxError.

        ``reason`` is why its node could not make it.
        """

    def leave(self, part: NodePart) -> None:
        """Take the place of a part away from it."""


class NodePart:
    """The part of one session that ``home_node`` has, or will have when it is first asked.

    ``home`` and ``pids`` are what the node said last.
    """

    def __init__(self, session: SandboxSession, node: Node, chooser: NodeChooser) -> None:
        self.session = session
        self.home_node = node
        self.home: Path | None = None
        self.pids: tuple[int, ...] = ()
        self.sent = False  # whether a node may have it, even if no answer said so
        self._opened = False  # whether its node has it
        # Held while it is not decided which node has it: two first calls at once could make two
        # parts, on two nodes if the first call has to move.
        self._opening = asyncio.Lock()
        self.chooser = chooser

    async def open(self) -> Node:
        """Return the node that has the part, made there if need be; raise the errors of ``ask``."""
        self.session.check_usable()
        if not self._opened:
            await self.ask("/open", {})
        note_node(self.home_node.name)
        return self.home_node

    def note(self, facts: Mapping[str, Any]) -> None:
        """Note what the node says of the session."""
        self.session.executions = facts.get("executions", self.session.executions)
        self.pids = tuple(facts.get("pids", self.pids))
        if facts.get("home") is not None:
            self.home = Path(facts["home"])
        if facts.get("used") is not None:
            self.session.used = Used(**facts["used"])
        if facts.get("ended") is not None:
            self.session.lose(facts["ended"])

    async def note_fault(self, fault: InjectedFault | None, *, happened: bool) -> None:
        """Note that a fault has happened on the node, or not."""
        if fault is not None and happened:
            fault.happened()
            if fault.kind != "kill_kernel":
                await self.session.expire()

    async def ask(
        self, path: str, body: Mapping[str, Any], on_event: OnEvent | None = None
    ) -> dict[str, Any]:
        """Send a request about the session to its node and return the answer.

        The first one makes the part; until the node says that it has, others wait. It goes to
        another node if it reached none, or if that one is full. Raises AnswerLostError,
        InstanceEndedError, and SandboxError with the node's refusal.
        """
        while True:
            with ExitStack() as opening:
                if not self._opened:
                    await self._opening.acquire()
                    opening.callback(self._opening.release)
                self.session.check_living()
                node = self.home_node
                note_node(node.name)
                hear, fields = on_event, {**body, "id": self.session.id}
                if self._opened:  # by the call that this one waited for
                    opening.close()
                else:
                    # Set before anything is sent: if the answer is lost, ``end`` must still end the
                    # part.
                    self.sent, fields["open"] = True, self._description()
                    hear = self._hearing(opening, on_event)
                try:
                    reply = await node.ask(path, fields, hear)
                except AnswerLostError as error:
                    # "/open" runs no code, so it may be repeated even if the node received it.
                    if path != "/open" and (
                        self._opened or self.session.end_reason or not error.unreached
                    ):
                        raise
                    reply = {"unopened": str(error)}
                self._opened = "unopened" not in reply
                if self._opened:
                    return self._read(reply)
                self.session.check_living()
                self.chooser.move(self, reply["unopened"])

    def _description(self) -> Mapping[str, Any]:
        session = self.session
        return {
            "token": session.token,
            "ttl_s": session.lifetime.ttl.total_seconds(),
            "variables": dict(session.variables),
        }

    def _hearing(self, opening: ExitStack, on_event: OnEvent | None) -> OnEvent:
        def hear(event: Mapping[str, Any]) -> None:
            # The first call may run code for minutes. Others, such as an interrupt of that code,
            # go on as soon as the node says that it has the part, not when the answer comes.
            if event["kind"] == "opened":
                self._opened = True
                opening.close()
            elif on_event is not None:
                on_event(event)

        return hear

    def _read(self, reply: dict[str, Any]) -> dict[str, Any]:
        for unknown in reply.get("unknowns", ()):
            ledger.choose(unknown)
        facts, error = reply.get("session", {}), reply.get("error")
        # Whoever gets a result that ends the session ends it, with the result's message as the
        # reason, so the facts must not do so first.
        ended = None if "result" in reply else facts.get("ended")
        self.note({**facts, "ended": ended})
        if error is not None:
            if ended is not None:
                raise InstanceEndedError(self.session.key.user_session_id, ended)
            raise SandboxError(error["message"], error["code"], error["status"])
        return reply

    def cut_off(self, error: AnswerLostError) -> SandboxError:
        """End the session, because a call was cut off; return the error for the caller."""
        reason = self.loss(error)
        self.session.lose(reason)
        message = f"The session is lost, and the call may have run: {reason}."
        return SandboxError(message, "InternalError.Node", 502)

    def loss(self, error: AnswerLostError) -> str:
        """Return the message about a call that was cut off.

        A node that is lost has a reason before its connections are closed (``Node.lose``).
        """
        return f"its node {self.home_node.name} {self.home_node.reason or f'broke off ({error})'}"

    async def ask_or_end(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the node; if the answer is lost, end the session and raise SandboxError."""
        try:
            return await self.ask(path, body)
        except AnswerLostError as error:
            raise self.cut_off(error) from error

    async def ask_last(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the node about a session that has ended; raise AnswerLostError and SandboxError."""
        async with self._opening:  # the node may still be making the part
            reply = await self.home_node.ask(path, {**body, "id": self.session.id}, None)
        return self._read(reply)

    async def end(self, reason: str) -> None:
        """End the part; return when its processes have ended."""
        # The node may still be making the part. When this has the lock, the first call has ended or
        # the part is there, and calls that waited find the session refused.
        async with self._opening:
            if self.sent:
                await self.home_node.end(self.session, reason)
        self.chooser.leave(self)
