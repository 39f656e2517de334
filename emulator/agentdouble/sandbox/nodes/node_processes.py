"""The processes of a session on a node: each call of them is a request to the node."""

from __future__ import annotations

import asyncio
import secrets
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agentdouble import faults
from agentdouble.errors import (
    AnswerLostError,
    NotBuiltError,
    SnapshotRefusedError,
)
from agentdouble.journal.entries import note_step
from agentdouble.sandbox import exec_bash
from agentdouble.sandbox.completions import KernelCompletion, no_completion
from agentdouble.sandbox.languages import Language
from agentdouble.sandbox.nodes.node import described
from agentdouble.sandbox.nodes.proxy import DataPlaneProxy
from agentdouble.sandbox.result import CellOutput, ExecutionResult, died
from agentdouble.sandbox.session_processes import EmptySnapshot
from agentdouble.sandbox.variables import Variables

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from agentdouble.sandbox.kernel import Kernel
    from agentdouble.sandbox.nodes.node import Node, OnEvent
    from agentdouble.sandbox.nodes.node_part import NodePart
    from agentdouble.sandbox.output_feed import ExecutionEnded, ExecutionPublisher
    from agentdouble.sandbox.session_processes import LastSnapshot, Snapshot


@dataclass(frozen=True, eq=False)
class NodeSnapshot:
    """A snapshot of a session on a node, which stays there."""

    node: Node
    id: str
    size: int
    omitted: tuple[str, ...]
    files: None = None  # they are on the node
    used: int = 0  # its memory and files, in bytes, if its session has ended

    async def measure(self) -> int:
        """Return what the node has measured."""
        return self.used

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
    """The processes of one session, which its node makes when they are first needed.

    See ``Processes`` for what its methods do.
    """

    directories: tuple[Path, ...] = ()  # the node itself limits memory and files
    kernels: Mapping[str, Kernel] = MappingProxyType({})

    def __init__(self, part: NodePart) -> None:
        self._session = part.session
        self._part = part

    @property
    def node(self) -> str:
        return self._part.home_node.name

    @property
    def home(self) -> Path | None:
        return self._part.home

    @property
    def pids(self) -> tuple[int, ...]:
        return self._part.pids

    async def serve(self, _app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        await DataPlaneProxy(self._part)(scope, receive, send)

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
            with note_step("node"):
                reply = await self._part.ask("/execute", body, on_event)
            await self._part.note_fault(fault, happened=reply.get("fault_happened", False))
            result = _result(reply["result"], code)
            ended, lost = result.status, result.ends_session
        except AnswerLostError as error:
            lost, ended = True, "error"
            result = self._died(code, self._part.loss(error))
        finally:
            if publisher is not None:
                publisher.finished(ended, context_lost=lost)
        return result

    def _died(self, code: str, reason: str) -> ExecutionResult:
        text = f"{reason}; the session's context is lost, and the code may have run"
        return ExecutionResult(
            status="error",
            message=f"Code execution failed: {text}",
            outputs=(died(text),),
            execution_count=self._session.executions + 1,
            code=code,
            msg_id=str(uuid.uuid4()),
            context_lost=True,
        )

    async def complete(self, code: str, position: int, language: Language) -> KernelCompletion:
        if not self._part.sent or not self._session.idle:
            return no_completion(position)
        body = {"code": code, "position": position, "language": language.name}
        reply = await self._part.ask_or_end("/complete", body)
        return KernelCompletion(tuple(reply["matches"]), reply["start"], reply["end"])

    async def list_variables(self) -> Variables:
        if not self._part.sent:
            return Variables("none")
        if not self._session.idle:
            return Variables("busy")
        reply = await self._part.ask_or_end("/variables", {})
        return Variables(reply["state"], tuple(reply["variables"]), reply["omitted"])

    async def interrupt(self) -> tuple[str, ...]:
        if not self._part.sent:
            return ()
        if self._session.end_reason is None:
            return tuple((await self._part.ask_or_end("/interrupt", {}))["languages"])
        with suppress(AnswerLostError):  # then the node is about to be lost
            return tuple((await self._part.ask_last("/interrupt", {}))["languages"])
        return ()

    async def exec_bash(
        self, command: Mapping[str, Any], publisher: ExecutionPublisher, *, alone: bool = False
    ) -> dict[str, Any]:
        self._session.check_usable()
        publisher.started("bash", None)
        ended: ExecutionEnded = "interrupted"
        with self._session.working():
            try:
                body = {"command": dict(command), "alone": alone}
                with note_step("node"):
                    reply = await self._part.ask_or_end("/bash", body)
                ended = exec_bash.publish(reply["answer"], publisher)
            finally:
                publisher.finished(ended, context_lost=self._session.end_reason is not None)
        answer: dict[str, Any] = reply["answer"]
        return answer

    async def kernel(self, _language: Language) -> Kernel:
        raise NotBuiltError("A notebook of a session on a node", "Use InvokeTool or /v1/jupyter.")

    async def drop_kernel(self, _language: Language) -> None:
        """Do nothing: notebooks have no kernel here."""

    def note_death(self, _kernel: Kernel, _circumstances: str) -> None:
        """Do nothing: the node reports the deaths of its kernels."""

    async def snapshot(self) -> NodeSnapshot:
        id_ = secrets.token_hex(8)
        reply = await self._part.ask_or_end("/snapshot", {"snapshot": id_})
        return NodeSnapshot(self._part.home_node, id_, reply["size"], tuple(reply["omitted"]))

    async def last_snapshot(self) -> LastSnapshot:
        if not self._part.sent:
            return EmptySnapshot()
        id_ = secrets.token_hex(8)
        reply = await self._part.ask_last("/last_snapshot", {"snapshot": id_})
        size, omitted = reply["size"], tuple(reply["omitted"])
        return NodeSnapshot(self._part.home_node, id_, size, omitted, used=reply["used"])

    async def return_to(self, snapshot: Snapshot) -> None:
        if not isinstance(snapshot, NodeSnapshot):
            raise SnapshotRefusedError("it is on no node, and the session is")
        node = snapshot.node
        if not self._part.sent and node.room > 0:
            self._part.chooser.place(self._part, node)
        if self._part.home_node is not node:
            reason = (
                f"the session is on {self.node}" if self._part.sent else "that has no place now"
            )
            raise SnapshotRefusedError(f"it is on the node {node.name}, and {reason}")
        await self._part.ask_or_end("/return", {"snapshot": snapshot.id})

    async def kill(self, reason: str) -> None:
        await self._part.end(reason)

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
        CellOutput(
            **{**output, "traceback": None if (t := output["traceback"]) is None else tuple(t)}
        )
        for output in fields.pop("outputs")
    )
    return ExecutionResult(outputs=outputs, code=code, **fields)
