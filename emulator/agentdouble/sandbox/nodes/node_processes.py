"""The processes of a session on a node: what is asked of them is a request to the node.

A request may have run code when its answer is lost, so it is never sent again; the session ends
then. The one exception is the request that makes the node's part of a session, while it is certain
that no node has received it (``unreached``), or a node says that it has made nothing (``unopened``).
"""

from __future__ import annotations

import asyncio
import secrets
import uuid
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agentdouble import faults
from agentdouble.core import ledger
from agentdouble.errors import (
    AnswerLostError,
    InstanceEndedError,
    NotBuiltError,
    SandboxError,
    SnapshotRefusedError,
)
from agentdouble.journal.entries import note_node
from agentdouble.processes.watch import Used
from agentdouble.sandbox import exec_bash
from agentdouble.sandbox.completions import Completion, no_completion
from agentdouble.sandbox.languages import Language
from agentdouble.sandbox.nodes.node import described
from agentdouble.sandbox.nodes.proxy import DataPlaneProxy
from agentdouble.sandbox.result import ExecutionResult, Output
from agentdouble.sandbox.variables import Variables

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from agentdouble.sandbox.kernel import Kernel
    from agentdouble.sandbox.nodes.node import Node, OnEvent
    from agentdouble.sandbox.nodes.node_placement import NodePlacement
    from agentdouble.sandbox.output_feed import ExecutionEnded, ExecutionPublisher
    from agentdouble.sandbox.session import SandboxSession
    from agentdouble.sandbox.session_processes import Snapshot


@dataclass(frozen=True, eq=False)
class NodeSnapshot:
    """A snapshot of a session on a node, which stays there."""

    node: Node
    id: str
    size: int
    omitted: tuple[str, ...]

    @property
    def gone(self) -> asyncio.Future[None]:
        return self.node.gone

    @property
    def ending(self) -> str:
        return f"its node {self.node.name} {self.node.reason}"

    async def discard(self) -> None:
        if not self.gone.done():
            with suppress(AnswerLostError):  # then the node is about to be lost
                await self.node.ask("/discard", {"snapshot": self.id})


class NodeProcesses:
    """The processes of one session on ``home_node``, which makes them when they are first needed."""

    directories: tuple[Path, ...] = ()  # the node itself limits memory and files
    kernels: Mapping[str, Kernel] = MappingProxyType({})

    def __init__(self, session: SandboxSession, node: Node, placement: NodePlacement) -> None:
        self.session = session
        self.home_node = node
        self._placement = placement
        self._opening = asyncio.Lock()  # while it is not decided which node has its part
        self._sent = False  # whether a node may have a part of it
        self._opened = False  # whether its node has its part
        self._home: Path | None = None
        self._pids: tuple[int, ...] = ()

    @property
    def node(self) -> str:
        return self.home_node.name

    @property
    def home(self) -> Path | None:
        return self._home

    @property
    def pids(self) -> tuple[int, ...]:
        return self._pids

    async def serve(self, _app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        await DataPlaneProxy(self)(scope, receive, send)

    async def open(self) -> Node:
        """Return the node that has the session's part, made there if need be.

        Raises the errors of ``_ask``.
        """
        self.session.check_usable()
        if not self._opened:
            await self._ask("/open", {})
        note_node(self.home_node.name)
        return self.home_node

    def note(self, facts: Mapping[str, Any]) -> None:
        """Note what the node says of the session."""
        self.session.executions = facts.get("executions", self.session.executions)
        self._pids = tuple(facts.get("pids", self._pids))
        if facts.get("home") is not None:
            self._home = Path(facts["home"])
        if facts.get("used") is not None:
            self.session.used = Used(**facts["used"])
        if facts.get("ended") is not None:
            self.session.lose(facts["ended"])

    async def note_fault(self, fault: faults.InjectedFault | None, *, happened: bool) -> None:
        """Note that a fault has happened on the node, or not."""
        if fault is not None and happened:
            fault.happened()
            if fault.kind != "kill_kernel":
                await self.session.expire()

    async def _ask(
        self, path: str, body: Mapping[str, Any], on_event: OnEvent | None = None
    ) -> dict[str, Any]:
        """Send a request about the session to its node and return the answer.

        The first one makes the node's part of the session; until the node says that it has, others
        wait. It goes to another node if it reached none, or if that one is full. Raises
        AnswerLostError, InstanceEndedError, and SandboxError with the node's refusal.
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
                if self._opened:
                    opening.close()
                else:
                    self._sent, fields["open"] = True, self._part()
                    hear = self._hearing(opening, on_event)
                try:
                    reply = await node.ask(path, fields, hear)
                except AnswerLostError as error:
                    if path != "/open" and (
                        self._opened or self.session.end_reason or not error.unreached
                    ):
                        raise
                    reply = {"unopened": str(error)}
                self._opened = "unopened" not in reply
                if self._opened:
                    return self._read(reply)
                self.session.check_living()
                self._placement.move(self, reply["unopened"])

    def _part(self) -> Mapping[str, Any]:
        session = self.session
        return {
            "token": session.token,
            "ttl_s": session.lifetime.ttl.total_seconds(),
            "variables": dict(session.variables),
        }

    def _hearing(self, opening: ExitStack, on_event: OnEvent | None) -> OnEvent:
        def hear(event: Mapping[str, Any]) -> None:
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
        # A result that ends the session says so itself.
        ended = None if "result" in reply else facts.get("ended")
        self.note({**facts, "ended": ended})
        if error is not None:
            if ended is not None:
                raise InstanceEndedError(self.session.key.user_session_id, ended)
            raise SandboxError(error["message"], error["code"], error["status"])
        return reply

    def cut_off(self, error: AnswerLostError) -> SandboxError:
        """End the session, because a call was cut off; return the error for the caller."""
        reason = self._lost(error)
        self.session.lose(reason)
        message = f"The session is lost, and the call may have run: {reason}."
        return SandboxError(message, "InternalError.Node", 502)

    def _lost(self, error: AnswerLostError) -> str:
        """Return what is said of a call that was cut off."""
        reason = self.home_node.reason or f"broke off ({error})"
        return f"its node {self.node} {reason}"

    async def execute(
        self,
        language: Language,
        code: str,
        timeout_s: float,
        cwd: str | None,
        publisher: ExecutionPublisher | None,
    ) -> ExecutionResult:
        fault = faults.injected_fault()
        streams = publisher is not None and publisher.heard
        body = {
            "code": code,
            "language": language.name,
            "timeout_s": timeout_s,
            "cwd": cwd,
            "streams": streams,
            "fault": described(fault),
        }
        on_event = _publishing(publisher) if streams and publisher is not None else None
        ended: ExecutionEnded = "interrupted"
        lost = False
        try:
            reply = await self._ask("/execute", body, on_event)
            await self.note_fault(fault, happened=reply.get("fault_happened", False))
            result = _result(reply["result"], code)
            ended, lost = result.status, result.ends_session
        except AnswerLostError as error:
            lost, ended = True, "error"
            result = self._died(code, self._lost(error))
        finally:
            if publisher is not None:
                publisher.finished(ended, context_lost=lost)
        return result

    def _died(self, code: str, reason: str) -> ExecutionResult:
        text = f"{reason}; the session's context is lost, and the code may have run"
        output = Output(
            "error", ename="KernelDied", evalue=text, traceback=(f"KernelDied: {text}",)
        )
        return ExecutionResult(
            status="error",
            message=f"Code execution failed: {text}",
            outputs=(output,),
            execution_count=self.session.executions + 1,
            code=code,
            msg_id=str(uuid.uuid4()),
            context_lost=True,
        )

    async def complete(self, code: str, position: int, language: Language) -> Completion:
        if not self._sent or not self.session.idle:
            return no_completion(position)
        body = {"code": code, "position": position, "language": language.name}
        reply = await self._short("/complete", body)
        return Completion(tuple(reply["matches"]), reply["start"], reply["end"])

    async def list_variables(self) -> Variables:
        if not self._sent:
            return Variables("none")
        if not self.session.idle:
            return Variables("busy")
        reply = await self._short("/variables", {})
        return Variables(reply["state"], tuple(reply["variables"]), reply["omitted"])

    async def interrupt(self) -> tuple[str, ...]:
        if not self._sent:
            return ()
        return tuple((await self._short("/interrupt", {}))["languages"])

    async def exec_bash(
        self, command: Mapping[str, Any], publisher: ExecutionPublisher
    ) -> dict[str, Any]:
        self.session.check_usable()
        publisher.started("bash", None)
        ended: ExecutionEnded = "interrupted"
        with self.session.working():
            try:
                reply = await self._short("/bash", {"command": dict(command)})
                ended = exec_bash.publish(reply["answer"], publisher)
            finally:
                publisher.finished(ended, context_lost=self.session.end_reason is not None)
        answer: dict[str, Any] = reply["answer"]
        return answer

    async def _short(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the node; if the answer is lost, end the session and raise SandboxError."""
        try:
            return await self._ask(path, body)
        except AnswerLostError as error:
            raise self.cut_off(error) from error

    async def kernel(self, _language: Language) -> Kernel:
        raise NotBuiltError("A notebook of a session on a node", "Use InvokeTool or /v1/jupyter.")

    async def drop_kernel(self, _language: Language) -> None:
        """Do nothing: notebooks have no kernel here."""

    def note_death(self, _kernel: Kernel, _circumstances: str) -> None:
        """Do nothing: the node reports the deaths of its kernels."""

    async def snapshot(self) -> NodeSnapshot:
        id_ = secrets.token_hex(8)
        reply = await self._short("/snapshot", {"snapshot": id_})
        return NodeSnapshot(self.home_node, id_, reply["size"], tuple(reply["omitted"]))

    async def return_to(self, snapshot: Snapshot) -> None:
        if not isinstance(snapshot, NodeSnapshot):
            raise SnapshotRefusedError("it is on no node, and the session is")
        node = snapshot.node
        if not self._sent and node.room > 0:
            self._placement.place(self, node)
        if self.home_node is not node:
            reason = f"the session is on {self.node}" if self._sent else "that has no place now"
            raise SnapshotRefusedError(f"it is on the node {node.name}, and {reason}")
        await self._short("/return", {"snapshot": snapshot.id})

    async def kill(self, reason: str) -> None:
        async with self._opening:  # its node may be making its part
            if self._sent:
                await self.home_node.end(self.session.id, reason)
        self._placement.leave(self)

    async def remove(self) -> None:
        """Do nothing: the node has removed the files."""


def _publishing(publisher: ExecutionPublisher) -> OnEvent:
    def publish(event: Mapping[str, Any]) -> None:
        kind, data = event["kind"], event["data"]
        if kind == "started":
            publisher.started(data["language"], data["execution_count"])
        elif kind == "output":
            publisher.output(data["msg_type"], data["content"], event["size"])

    return publish


def _result(fields: dict[str, Any], code: str) -> ExecutionResult:
    outputs = tuple(
        Output(**{**output, "traceback": None if (t := output["traceback"]) is None else tuple(t)})
        for output in fields.pop("outputs")
    )
    return ExecutionResult(outputs=outputs, code=code, **fields)
