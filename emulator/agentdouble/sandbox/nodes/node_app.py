"""The answers of a node to its front; it answers nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import hmac
import itertools
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import psutil
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentdouble import faults
from agentdouble.core import ledger
from agentdouble.core.ledger import Ledger
from agentdouble.errors import (
    InstanceEndedError,
    NotBuiltError,
    SandboxError,
    SnapshotRefusedError,
    UnknownSessionError,
)
from agentdouble.processes import capacity
from agentdouble.sandbox import languages
from agentdouble.sandbox.instance_key import InstanceKey
from agentdouble.sandbox.nodes.node import FAULT, KEY, OURS, PREFIX, SCHEME, SESSION, UNKNOWNS
from agentdouble.sandbox.output_feed import ExecutionPublisher, Kind
from agentdouble.sandbox.result import ExecutionResult
from agentdouble.sandbox.session import SandboxSession
from agentdouble.sandbox.session_processes import Snapshot
from agentdouble.sandbox.sessions import SandboxSessions
from agentdouble.server.disconnects import cancel_on_disconnect

_TYPE = (b"content-type", b"application/x-ndjson")

Body = Mapping[str, Any]
Reply = dict[str, Any]


class NodeApp:
    """The application of a node, in front of the double's own one, which only starts and ends.

    ``capacity_limit`` is the largest number of sessions.
    """

    def __init__(
        self,
        app: ASGIApp,
        sessions: SandboxSessions,
        data_plane: ASGIApp,
        in_force: Ledger,
        key: str,
        capacity_limit: int | None,
    ) -> None:
        self._app = app
        self._sessions = sessions
        self._data_plane = data_plane
        self._ledger = in_force
        self._key = key.encode()
        self._news: dict[int, tuple[str, str, str]] = {}  # the session's id and token, the reason
        self._numbers = itertools.count(1)
        self._arrived = asyncio.Event()
        self._snapshots: dict[str, Snapshot] = {}
        self._operations = {
            "/end": self._end,
            "/watch": self._watch,
            "/choices": self._choices,
            "/discard": self._discard,
        }
        self._session_operations = {
            "/open": self._open,
            "/execute": self._execute,
            "/bash": self._bash,
            "/complete": self._complete,
            "/variables": self._variables,
            "/interrupt": self._interrupt,
            "/snapshot": self._snapshot,
            "/last_snapshot": self._last_snapshot,
            "/return": self._return,
        }
        limit = capacity.session_limit().sessions
        self.capacity = limit if capacity_limit is None else min(limit, capacity_limit)
        self.asked_at = time.monotonic()  # when the front last asked for something
        sessions.on_end = self._note_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        presented = HTTPConnection(scope).headers.get(KEY, "")
        if not hmac.compare_digest(presented.encode(), self._key):
            refusal = Response("This node answers only its front, which has its key.", 401)
            await refusal(scope, receive, send)
            return
        self.asked_at = time.monotonic()
        with ledger.using(self._ledger) as noted:
            if scope["path"].startswith(f"{PREFIX}/"):
                await self._answer(Request(scope, receive), noted, send)
            else:
                await self._pass_on(scope, receive, send, noted)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, noted: set[str]) -> None:
        """Answer for the data plane; headers tell the front what it must know of the session."""
        connection = HTTPConnection(scope)
        headers = connection.headers
        session = self._sessions.by_id(connection.query_params.get("faasInstanceName", ""))
        fault = json.loads(headers.get(FAULT, "null"))
        happened: list[bool] = []

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                facts = {**_facts(session), "fault_happened": bool(happened)}
                more = [
                    (UNKNOWNS.encode(), " ".join(noted).encode()),
                    (SESSION.encode(), json.dumps(facts).encode()),
                ]
                # code of the session may have answered
                theirs = [pair for pair in message["headers"] if not pair[0].startswith(OURS)]
                message = {**message, "headers": [*theirs, *more]}
            await send(message)

        scheme = headers.get(SCHEME, scope["scheme"])
        with _injecting(fault, happened):
            await self._data_plane({**scope, "scheme": scheme}, receive, send_noted)

    async def _answer(self, request: Request, noted: set[str], send: Send) -> None:
        path, body = request.scope["path"].removeprefix(PREFIX), json.loads(await request.body())
        output = _Output(send)
        try:
            work = self._work(path, body, output)
            reply = await cancel_on_disconnect(request.receive, work)
            await output.finish({**reply, "unknowns": sorted(noted)})
        except ClientDisconnect:
            return
        finally:
            output.close()

    async def _work(self, path: str, body: Mapping[str, Any], output: _Output) -> Reply:
        """Do what is asked; return the reply or the failure, with the state of the session."""
        if path in self._operations:
            return await self._operations[path](body)
        if "open" in body:
            try:
                await self._open_part(body["id"], body["open"])
            except SandboxError as error:
                return {"unopened": str(error)}
            output.write({"kind": "opened"})  # now, so that others need not wait for the reply
        try:
            session = await self._sessions.look_up(body["id"])
            reply = await self._session_operations[path](session, body, output)
        except (SandboxError, NotBuiltError) as error:
            failure = {"message": str(error), "code": error.code, "status": error.status}
            reply = {"error": failure}
            if isinstance(error, InstanceEndedError | UnknownSessionError):
                reply["session"] = {"ended": getattr(error, "reason", str(error))}
        living = self._sessions.by_id(body["id"])
        return reply if living is None else {**reply, "session": _facts(living)}

    async def _open_part(self, id_: str, part: Mapping[str, Any]) -> None:
        """Make the node's part of a session, unless it has it."""
        present = self._sessions.by_id(id_)
        if present is not None and present.token != part["token"]:
            # The session lives again, and the end of its earlier part is still on its way.
            await self._sessions.destroy(present, "it lives again")
            present = None
        if present is None:
            if len(self._sessions) >= self.capacity:
                message = f"it has {self.capacity} sessions, as many as it can hold"
                raise SandboxError(message, "QuotaExceeded", 429)
            key = InstanceKey(self._sessions.settings.tool_id, id_)
            # Nothing suspends between the count and the creation, and the front sends one first
            # call of a session at a time, so two at once cannot exceed the limit.
            identity = (id_, part["token"])
            session = await self._sessions.create_as(identity, key, part["variables"])
            # It is only shown: the front ends the session.
            session.lifetime.ttl = dt.timedelta(seconds=part["ttl_s"])

    async def _open(self, _session: SandboxSession, _body: Body, _output: _Output) -> Reply:
        return {}

    async def _execute(self, session: SandboxSession, body: Body, output: _Output) -> Reply:
        happened: list[bool] = []
        publisher = _StreamPublisher(self._sessions, session, output) if body["streams"] else None
        run = self._sessions.execute(
            session, body["code"], body["language"], body["timeout_s"], body["cwd"], publisher
        )
        with _injecting(body["fault"], happened):
            result = await run
        return {"result": _fields(result), "fault_happened": bool(happened)}

    async def _bash(self, session: SandboxSession, body: Body, _output: _Output) -> Reply:
        publisher = self._sessions.feed.publisher(session.key)
        command, alone = body["command"], body["alone"]
        return {"answer": await session.processes.exec_bash(command, publisher, alone=alone)}

    async def _complete(self, session: SandboxSession, body: Body, _output: _Output) -> Reply:
        language = languages.find(body["language"])
        return asdict(await session.processes.complete(body["code"], body["position"], language))

    async def _variables(self, session: SandboxSession, _body: Body, _output: _Output) -> Reply:
        return asdict(await session.processes.list_variables())

    async def _interrupt(self, session: SandboxSession, _body: Body, _output: _Output) -> Reply:
        return {"languages": await session.processes.interrupt()}

    async def _snapshot(self, session: SandboxSession, body: Body, _output: _Output) -> Reply:
        return self._keep(body["snapshot"], await session.snapshot())

    async def _last_snapshot(self, session: SandboxSession, body: Body, _output: _Output) -> Reply:
        snapshot = await session.last_snapshot()
        used = await snapshot.measure()
        return {**self._keep(body["snapshot"], snapshot), "used": used}

    def _keep(self, id_: str, snapshot: Snapshot) -> Reply:
        self._snapshots[id_] = snapshot
        return {"size": snapshot.size, "omitted": snapshot.omitted}

    async def _return(self, session: SandboxSession, body: Body, _output: _Output) -> Reply:
        snapshot = self._snapshots.get(body["snapshot"])
        if snapshot is None or snapshot.gone.done():
            message = "the process that held it has ended; take another one"
            raise SnapshotRefusedError(message, "InvalidSnapshot.NotReady")
        await session.return_to(snapshot)
        return {}

    async def _discard(self, body: Body) -> Reply:
        snapshot = self._snapshots.pop(body["snapshot"], None)
        if snapshot is not None:
            await snapshot.discard()
        return {}

    async def _end(self, body: Body) -> Reply:
        ending = [(self._sessions.by_id(part["id"]), part) for part in body["parts"]]
        await asyncio.gather(
            *(
                self._sessions.destroy(session, part["reason"])
                for session, part in ending
                if session is not None and session.token == part["token"]
            )
        )
        return {}

    async def _choices(self, body: Body) -> Reply:
        self._ledger.change(body)
        return {}

    def _note_end(self, session: SandboxSession, reason: str) -> None:
        self._news[next(self._numbers)] = session.id, session.token, reason
        self._arrived.set()

    async def _watch(self, body: Body) -> Reply:
        """Return the load, and the sessions that have ended since the front's last question.

        Wait ``wait_s`` seconds for one to end.
        """
        # Not before the front has said that it has them: an answer can be lost on its way.
        for number in [number for number in self._news if number <= body["seen"]]:
            del self._news[number]
        if not self._news:
            self._arrived.clear()
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(self._arrived.wait(), body["wait_s"])
        free = min((h.sessions for h in capacity.headrooms()), default=self.capacity)
        return {
            "seen": max(self._news, default=body["seen"]),
            "ended": [*self._news.values()],
            "free": free,
            "busy": psutil.cpu_percent() / 100,
        }


@contextlib.contextmanager
def _injecting(fault: Mapping[str, Any] | None, happened: list[bool]) -> Iterator[None]:
    """Make a fault of the front happen to the first code that runs inside."""
    if fault is None:
        yield
        return
    with faults.injecting(faults.InjectedFault(lambda: happened.append(True), **fault)):
        yield


def _facts(session: SandboxSession | None) -> dict[str, Any]:
    """Return what the front shows of a session."""
    if session is None:
        return {}
    home = session.processes.home
    return {
        "ended": session.end_reason,
        "executions": session.executions,
        "pids": session.processes.pids,
        "home": None if home is None else str(home),
        "used": None if session.used is None else asdict(session.used),
    }


class _Output:
    """The body of an answer: lines that are sent at once, and the reply as the last one."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self._sending: asyncio.Task[None] | None = None

    def write(self, event: Mapping[str, Any]) -> None:
        """Send an event now."""
        if self._sending is None:
            self._sending = asyncio.ensure_future(self._send_lines())
        self._lines.put_nowait(json.dumps(event).encode() + b"\n")

    async def _send_lines(self) -> None:
        await self._send({"type": "http.response.start", "status": 200, "headers": [_TYPE]})
        while True:
            line = await self._lines.get()
            await self._send({"type": "http.response.body", "body": line, "more_body": True})
            self._lines.task_done()

    async def finish(self, reply: Reply) -> None:
        """Send the reply as the last line."""
        body = json.dumps(reply).encode()
        if self._sending is None:
            headers = [_TYPE, (b"content-length", b"%d" % len(body))]
            await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        else:
            await self._lines.join()  # the reply is the last line, after all events
        await self._send({"type": "http.response.body", "body": body})

    def close(self) -> None:
        """Send no more."""
        if self._sending is not None:
            self._sending.cancel()


class _StreamPublisher(ExecutionPublisher):
    """Sends the outputs of an execution to the front, which publishes them."""

    def __init__(self, sessions: SandboxSessions, session: SandboxSession, output: _Output) -> None:
        super().__init__(sessions.feed, session.key, None)
        self._output = output

    def _publish(self, kind: Kind, data: Mapping[str, Any], size: int = 0) -> None:
        if kind != "finished":  # the reply reports the end
            self._output.write({"kind": kind, "data": data, "size": size})


def _fields(result: ExecutionResult) -> Mapping[str, Any]:
    return {
        "status": result.status,
        "message": result.message,
        "outputs": [output.to_dict() for output in result.outputs],
        "execution_count": result.execution_count,
        "msg_id": result.msg_id,
        "context_lost": result.context_lost,
    }
