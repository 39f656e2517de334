"""The result of an execution: the values of the JSON in section 2.7."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from typing_extensions import TypedDict

from agentdouble.core import ledger

TOO_DEEP = "An output is nested too deeply to be shown.\n"  # replaces the output, on stderr
Status = Literal["ok", "error", "timeout"]


class OutputFields(TypedDict):
    """An output in JSON."""

    output_type: str
    name: str | None
    text: str | None
    data: dict[str, Any] | None
    metadata: dict[str, Any]
    execution_count: int | None
    ename: str | None
    evalue: str | None
    traceback: list[str] | None


class ResultData(TypedDict):
    """The ``data`` of section 2.7."""

    kernel_name: str
    session_id: str
    status: str
    execution_count: int | None
    outputs: list[OutputFields]
    code: str
    msg_id: str


@dataclass(frozen=True)
class CellOutput:
    """One item of ``outputs``; on the wire it always has all nine keys."""

    output_type: str
    name: str | None = None
    text: str | None = None
    data: Mapping[str, Any] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    execution_count: int | None = None
    ename: str | None = None
    evalue: str | None = None
    traceback: tuple[str, ...] | None = None

    def to_dict(self) -> OutputFields:
        """Return the nine keys of section 2.7, in the specification's order."""
        return {
            "output_type": self.output_type,
            "name": self.name,
            "text": self.text,
            "data": None if self.data is None else dict(self.data),
            "metadata": dict(self.metadata),
            "execution_count": self.execution_count,
            "ename": self.ename,
            "evalue": self.evalue,
            "traceback": None if self.traceback is None else list(self.traceback),
        }


@dataclass(frozen=True)
class ExecutionResult:
    """The result of one execution: its status, a message for people, and its outputs."""

    status: Status
    message: str
    outputs: tuple[CellOutput, ...]
    execution_count: int
    code: str
    msg_id: str
    context_lost: bool = False
    began: bool = True  # False if the kernel had ended before

    @property
    def succeeded(self) -> bool:
        """The value of ``success`` in the answer (U-EXEC-SUCCESS)."""
        if self.status == "error" and ledger.choose("U-EXEC-SUCCESS") == "true":
            return True
        return self.status == "ok"

    @property
    def ends_session(self) -> bool:
        """Whether it ends its session: its context is lost, or the ledger says so."""
        timed_out = self.status == "timeout"
        return self.context_lost or (
            timed_out and ledger.choose("U-EXEC-TIMEOUT") == "instance-lost"
        )

    def to_data(self, session_id: str, kernel_name: str) -> ResultData:
        """Return the ``data`` of section 2.7."""
        return {
            "kernel_name": kernel_name,
            "session_id": session_id,
            "status": self.status,
            "execution_count": self.execution_count,
            "outputs": [output.to_dict() for output in self.outputs],
            "code": self.code,
            "msg_id": self.msg_id,
        }

    def ended_by(self, reason: str) -> ExecutionResult:
        """Return the result of code that the end of its session has interrupted.

        Code that succeeded in time keeps its result.
        """
        if self.status == "ok" or self.context_lost:
            return self
        text = f"{reason}; the session's context is lost"
        return replace(
            self,
            status="error",
            message=f"Code execution failed: {text}",
            outputs=(*(it for it in self.outputs if it.output_type != "error"), died(text)),
            context_lost=True,
        )

    @property
    def error(self) -> CellOutput | None:
        """The last error among the outputs, or None."""
        errors = [output for output in self.outputs if output.output_type == "error"]
        return errors[-1] if errors else None


def died(text: str) -> CellOutput:
    """Return the output of code whose kernel has ended."""
    traceback = (f"KernelDied: {text}",)
    return CellOutput("error", ename="KernelDied", evalue=text, traceback=traceback)
