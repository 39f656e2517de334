"""A session whose processes run on a node: its calls go there."""

from __future__ import annotations

import asyncio
import secrets
import uuid
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp

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
from agentdouble.sandbox import exec_bash, languages
from agentdouble.sandbox.instance import Instance, ends_session
from agentdouble.sandbox.languages import Language
from agentdouble.sandbox.nodes.node import described
from agentdouble.sandbox.nodes.proxy import DataPlaneProxy
from agentdouble.sandbox.questions import Completion, Variables, no_completion
from agentdouble.sandbox.result import ExecutionResult, Output

if TYPE_CHECKING:
    from agentdouble.processes.copies.kernel_snapshot import Snapshot
    from agentdouble.sandbox.kernel import Kernel
    from agentdouble.sandbox.nodes.node import Node, OnEvent
    from agentdouble.sandbox.nodes.node_places import NodePlaces
    from agentdouble.sandbox.output_feed import ExecutionEnded, ExecutionPublisher


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


class NodeInstance(Instance):
    """A session on a node; the node makes its part of the session when it is first needed."""

    home_node: Node | None = None

    def __init__(self, key: Any, *, places: NodePlaces, **parts: Any) -> None:
        super().__init__(key, **parts)
        self._places = places
        self._opening = asyncio.Lock()  # while it is not decided which node has its part
        self._sent = False  # whether a node may have a part of it
        self._opened = False  # whether its node has its part
        self._home: Path | None = None
        self._pids: tuple[int, ...] = ()

    @property
    def node(self) -> str | None:
        return None if self.home_node is None else self.home_node.name

    @property
    def data_plane(self) -> ASGIApp:
        return DataPlaneProxy(self)

    def lose(self, reason: str) -> None:
        if self._ended is None:
            self._on_lost(self, reason)

    async def open(self) -> Node:
        """Return the node that has the session's part, made there if need be.

        Raises the errors of ``_ask``.
        """
        self.check_usable()
        if not self._opened:
            await self._ask("/open", {})
        assert self.home_node is not None
        note_node(self.home_node.name)
        return self.home_node

    @property
    def home(self) -> Path | None:
        """The directory of the session's own files on its node."""
        return self._home

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids of the session on its node."""
        return self._pids

    def note(self, facts: Mapping[str, Any]) -> None:
        """Note what the node says of the session."""
        self.executions = facts.get("executions", self.executions)
        self._pids = tuple(facts.get("pids", self._pids))
        if facts.get("home") is not None:
            self._home = Path(facts["home"])
        if facts.get("used") is not None:
            self.used = Used(**facts["used"])
        if facts.get("ended") is not None:
            self.lose(facts["ended"])

    async def note_fault(self, fault: faults.InjectedFault | None, *, happened: bool) -> None:
        """Note that a fault has happened on the node, or not."""
        if fault is not None and happened:
            fault.happened()
            if fault.kind != "kill_kernel":
                await self._expire()

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
                self.check_usable()
                node = self.home_node
                assert node is not None
                note_node(node.name)
                hear, fields = on_event, {**body, "id": self.id}
                if self._opened:
                    opening.close()
                else:
                    self._sent, fields["open"] = True, self._part()
                    hear = self._hearing(opening, on_event)
                try:
                    reply = await node.ask(path, fields, hear)
                except AnswerLostError as error:
                    if path != "/open" and (self._opened or self._ended or not error.unreached):
                        raise
                    reply = {"unopened": str(error)}
                self._opened = "unopened" not in reply
                if self._opened:
                    return self._read(reply)
                self.check_usable()
                self._places.move(self, reply["unopened"])

    def _part(self) -> Mapping[str, Any]:
        ttl_s, variables = self.lifetime.ttl.total_seconds(), dict(self.variables)
        return {"token": self.token, "ttl_s": ttl_s, "variables": variables}

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
                raise InstanceEndedError(self.key.user_session_id, ended)
            raise SandboxError(error["message"], error["code"], error["status"])
        return reply

    def cut_off(self, error: AnswerLostError) -> SandboxError:
        """End the session, because a call was cut off; return the error for the caller."""
        reason = self._lost(error)
        self.lose(reason)
        message = f"The session is lost, and the call may have run: {reason}."
        return SandboxError(message, "InternalError.Node", 502)

    def _lost(self, error: AnswerLostError) -> str:
        """Return what is said of a call that was cut off."""
        node = self.home_node
        reason = (node.reason if node is not None else None) or f"broke off ({error})"
        return f"its node {self.node} {reason}"

    async def _run(
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
            ended, lost = result.status, ends_session(result)
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
            execution_count=self.executions + 1,
            code=code,
            msg_id=str(uuid.uuid4()),
            context_lost=True,
        )

    async def complete(self, code: str, position: int, language: str) -> Completion:
        name = languages.find(language).name
        if not self._sent or self.busy or self.lifetime.state != "active":
            return no_completion(position)
        body = {"code": code, "position": position, "language": name}
        reply = await self._short("/complete", body)
        return Completion(tuple(reply["matches"]), reply["start"], reply["end"])

    async def list_variables(self) -> Variables:
        if not self._sent:
            return Variables("none")
        if self.busy or self.lifetime.state != "active":
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
        self.check_usable()
        publisher.started("bash", None)
        ended: ExecutionEnded = "interrupted"
        with self.working():
            try:
                reply = await self._short("/bash", {"command": dict(command)})
                ended = exec_bash.publish(reply["answer"], publisher)
            finally:
                publisher.finished(ended, context_lost=self._ended is not None)
        answer: dict[str, Any] = reply["answer"]
        return answer

    async def _short(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the node; if the answer is lost, end the session and raise SandboxError."""
        try:
            return await self._ask(path, body)
        except AnswerLostError as error:
            raise self.cut_off(error) from error

    async def _kernel(self, language: Language) -> Kernel:
        raise NotBuiltError("A notebook of a session on a node", "Use InvokeTool or /v1/jupyter.")

    async def snapshot(self) -> NodeSnapshot:
        self.check_at_rest()
        id_ = secrets.token_hex(8)
        async with self._taking_turns():
            reply = await self._short("/snapshot", {"snapshot": id_})
        assert self.home_node is not None
        return NodeSnapshot(self.home_node, id_, reply["size"], tuple(reply["omitted"]))

    async def return_to(self, snapshot: Snapshot) -> None:
        assert isinstance(snapshot, NodeSnapshot)
        node = snapshot.node
        if not self._sent and node.room > 0:
            self._places.place(self, node)
        if self.home_node is not node:
            reason = f"the session is on {self.node}" if self._sent else "that has no place now"
            raise SnapshotRefusedError(f"it is on the node {node.name}, and {reason}")
        async with self._taking_turns():
            await self._short("/return", {"snapshot": snapshot.id})

    async def end(self, reason: str) -> None:
        self.refuse(reason)
        async with self._opening:  # its node may be making its part
            if self._sent and self.home_node is not None:
                await self.home_node.end(self.id, reason)
        self._places.leave(self)
        self.processes_gone.set()


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
