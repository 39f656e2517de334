"""One execution under way: what its kernel has said of it so far, and what that comes to."""

from __future__ import annotations

import asyncio
from typing import Any

from agentdouble.sandbox.outputs import OutputCollector
from agentdouble.sandbox.result import ExecutionResult, Status


class Execution:
    """One execution under way: finished when its reply and the kernel's idle are both here."""

    def __init__(self, code: str, collector: OutputCollector, count: int) -> None:
        self.msg_id = ""
        self.finished = asyncio.Event()
        self._code = code
        self._collector = collector
        self._reply: dict[str, Any] | None = None
        self._idle = False
        self._count = count

    def on_iopub(self, msg_type: str, content: dict[str, Any]) -> None:
        if msg_type == "status":
            self._idle = content["execution_state"] == "idle"
        else:
            self._collector.add(msg_type, content)
        self._check()

    def on_reply(self, content: dict[str, Any]) -> None:
        self._reply = content
        self._check()

    def _check(self) -> None:
        if self._idle and self._reply is not None:
            self.finished.set()

    def result(
        self, status: Status | None = None, message: str = "", *, context_lost: bool = False
    ) -> ExecutionResult:
        """Return the outcome; without a status, the kernel's reply says how it went."""
        reply = self._reply or {}
        if status is None:
            status, message = "ok", "Code executed successfully"
            if reply.get("status") != "ok":
                status = "error"
                message = f"Code execution failed: {reply.get('ename')}: {reply.get('evalue')}"
                self._collector.add_missing_error(reply)
        return ExecutionResult(
            status=status,
            message=message,
            outputs=self._collector.outputs(),
            execution_count=reply.get("execution_count", self._count),
            code=self._code,
            msg_id=self.msg_id,
            context_lost=context_lost or bool(reply.get("context_lost")),
        )

    def timed_out(self, timeout_s: float, *, context_kept: bool) -> ExecutionResult:
        """Return the outcome of code that ran longer than it may."""
        ending = "was interrupted; the context is kept"
        if not context_kept:
            ending = "did not heed the interrupt and was killed; the context is lost"
        message = f"The code ran longer than its timeout of {timeout_s:g} s and {ending}."
        return self.result("timeout", message, context_lost=not context_kept)

    def died(self, reason: str) -> ExecutionResult:
        """Return the outcome of code whose kernel ended under it."""
        text = f"{reason}; the session's context is lost"
        self._collector.add(
            "error", {"ename": "KernelDied", "evalue": text, "traceback": [f"KernelDied: {text}"]}
        )
        return self.result("error", f"Code execution failed: {text}", context_lost=True)
