"""A node as the front sees it: its state, its load, and requests to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from agentdouble.core.ledger import Ledger
from agentdouble.errors import AnswerLostError
from agentdouble.faults import InjectedFault
from agentdouble.sandbox.nodes.engine import Joined
from agentdouble.server.upstream import Connections
from agentdouble.server.upstream_connection import RawHeaders, UpstreamAnswer

PREFIX = "/_node"
OURS = b"x-agentdouble-"  # begins all headers between a front and its nodes
KEY = "x-agentdouble-node"
SESSION = "x-agentdouble-session"
FAULT = "x-agentdouble-fault"
SCHEME = "x-agentdouble-scheme"
UNKNOWNS = "x-agentdouble-relied-on"
_KEPT_S = 30.0  # less than the 75 s after which a node closes an idle connection
_OK = 200

State = Literal["joining", "open", "draining", "drained", "refused", "lost"]
OnEvent = Callable[[Mapping[str, Any]], None]


class PlacedSession(Protocol):
    """A session whose processes run on a node.

    One that has ended may live again, with its id and another token.
    """

    @property
    def id(self) -> str:
        """The id."""

    @property
    def token(self) -> str:
        """The secret of this life."""

    def lose(self, reason: str) -> None:
        """End it, because its node no longer has it."""


def described(fault: InjectedFault | None) -> Mapping[str, Any] | None:
    """Return a fault for the node, to which it happens."""
    return None if fault is None else {"kind": fault.kind, "after": fault.after}


class Node:
    """One node; ``sessions`` are the sessions that are placed there, by id.

    ``key`` is the header with the secret of the front. A node that does not answer for
    ``silence_s`` is lost.
    """

    def __init__(self, joined: Joined, key: str, ledger: Ledger, silence_s: float) -> None:
        self.name = joined.name
        self.url = joined.url
        self.version = joined.version
        self.capacity = joined.capacity
        self.state: State = "joining"  # until it has answered
        self.reason: str | None = None  # why it is not open
        self.sessions: dict[str, PlacedSession] = {}
        # done when it is lost
        self.gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.free = joined.capacity  # for how many more sessions it has resources
        self.busy = 0.0  # the share of its processor time that is used
        self.connections = Connections(self.url, _KEPT_S, silence_s)
        self.key: RawHeaders = [(KEY.encode(), key.encode())]
        self._ledger = ledger
        self._sent_version = -1  # the version of the choices that the node has
        self._silence_s = silence_s
        self._ending: list[dict[str, str]] = []
        self._flush: asyncio.Task[None] | None = None

    @property
    def room(self) -> float:
        """The number of further sessions that can be placed, lower if the processor is busy."""
        if self.state != "open":
            return 0
        places = min(self.free, self.capacity - len(self.sessions))
        return places * max(0.1, 1 - self.busy)

    async def ask(
        self, path: str, document: Mapping[str, Any], on_event: OnEvent | None = None
    ) -> dict[str, Any]:
        """Send a request and return the answer; ``on_event`` gets what comes before it.

        Raises AnswerLostError; if it is ``unreached``, the node has received nothing.
        """
        await self.tell_choices()
        return await self._ask(path, document, on_event)

    async def tell_choices(self) -> None:
        """Send the node the choices of the ledger, unless it has them."""
        version = self._ledger.version
        if version != self._sent_version:
            await self._ask("/choices", self._ledger.answers())
            self._sent_version = version

    async def _ask(
        self, path: str, document: Mapping[str, Any], on_event: OnEvent | None = None
    ) -> dict[str, Any]:
        answer = await self._send(path, json.dumps(document).encode())
        try:
            rest = b""
            while not answer.done:
                rest += await answer.read()
                if on_event is not None:
                    *lines, rest = rest.split(b"\n")
                    for line in lines:
                        on_event(json.loads(line))
        finally:
            answer.close()
        if answer.status != _OK:
            raise AnswerLostError(f"it answers {answer.status}: {rest[:200].decode('latin-1')}")
        reply: dict[str, Any] = json.loads(rest)
        return reply

    async def _send(self, path: str, body: bytes) -> UpstreamAnswer:
        connection = await self.connections.open()
        lines = [b"POST %s%s HTTP/1.1" % (PREFIX.encode(), path.encode()), b"host: node"]
        lines += [b"%s: %s" % pair for pair in self.key]
        lines += [b"content-length: %d" % len(body), b"", body]
        return await connection.ask(b"\r\n".join(lines))

    async def watch(self, on_open: Callable[[], None]) -> str:
        """Ask the node for news until it is lost; return why, as the end of a sentence.

        ``on_open`` is called when it has answered for the first time. Sessions that ended there are
        lost.
        """
        latest, failed, wait_s = 0, False, 0.0
        while True:
            news_request = self.ask("/watch", {"seen": latest, "wait_s": wait_s})
            try:
                news = await asyncio.wait_for(news_request, self._silence_s)
            except (TimeoutError, asyncio.TimeoutError):
                return f"did not answer for {self._silence_s:g} s"
            except AnswerLostError as error:
                # One broken connection is no lost node. Asking again is safe: the node keeps its
                # news until ``seen`` says that they have arrived.
                if failed or error.unreached:
                    return f"has ended or cannot be reached ({error})"
                failed = True
                continue
            failed, latest, wait_s = False, news["seen"], min(1.0, self._silence_s / 4)
            self.free, self.busy = news["free"], news["busy"]
            if self.state == "joining":
                self.state, self.reason = "open", None
                on_open()
            for id_, token, reason in news["ended"]:
                session = self.sessions.get(id_)
                # A session may have begun to live again before the news of its end arrives.
                if session is not None and session.token == token:
                    session.lose(reason)

    def lose(self, reason: str) -> None:
        """Give the node up: break off what waits for it."""
        # In this order: calls that break off when the connections close name the reason, and
        # ``end`` sends nothing to a lost node.
        self.state, self.reason = "lost", reason
        self.gone.set_result(None)
        self.connections.close()

    async def end(self, session: PlacedSession, reason: str) -> None:
        """End a session there, together with others that end now; return when they have ended."""
        self._ending.append({"id": session.id, "token": session.token, "reason": reason})
        if self._flush is None:
            self._flush = asyncio.ensure_future(self._end_all())
        await asyncio.shield(self._flush)

    async def _end_all(self) -> None:
        # Sessions that expire together, or with a reset, end in one step of the loop: one request
        # ends them all. Those that follow while it is on its way get a flush of their own.
        await asyncio.sleep(0)
        self._flush, ending = None, self._ending
        self._ending = []
        if self.state == "lost":
            return
        try:
            await self.ask("/end", {"parts": ending})
        except AnswerLostError:  # then the node is about to be lost, and ends all that it has
            return

    def to_dict(self) -> dict[str, Any]:
        """Return the node as JSON-ready data."""
        names = ("name", "url", "version", "state", "reason", "capacity", "free")
        listed = {name: getattr(self, name) for name in names}
        return {**listed, "sessions": len(self.sessions), "busy": round(self.busy, 2)}
