"""One execution: the messages that its kernel has sent so far, and its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from agentdouble.sandbox.outputs import OutputCollector
from agentdouble.sandbox.result import CellOutput, ExecutionResult, Status

_MESSAGE_LENGTH = 10_000  # characters; the error among the outputs has more
_EXITED = "the code has ended its kernel, as exit() does"
FAILED = "Code execution failed: "  # before the reason, in messages
OUTPUTS = frozenset({"stream", "display_data", "execute_result", "error"})


class Execution:
    """One execution: ``finished`` when the reply and the kernel's idle status have both arrived.

    ``begun`` is done when the kernel has sent more than its busy status for this execution.
    ``started`` is called with the execution's number when the code is about to run.
    """

    def __init__(
        self,
        code: str,
        collector: OutputCollector,
        count: int,
        started: Callable[[int | None], None] | None = None,
    ) -> None:
        self.msg_id = ""
        loop = asyncio.get_running_loop()
        self.begun: asyncio.Future[None] = loop.create_future()
        self.finished: asyncio.Future[None] = loop.create_future()
        self.code = code
        self._collector = collector
        self._reply: dict[str, Any] | None = None
        self._idle = False
        self._count = count
        self._started = started
        self._output_messages = 0
        self._awaited: tuple[int, asyncio.Future[None]] | None = None

    def on_iopub(self, msg_type: str, content: dict[str, Any]) -> None:
        if msg_type == "status":
            self._idle = content["execution_state"] == "idle"
        else:
            settle(self.begun)  # first comes execute_input: the code is about to run
            if msg_type == "execute_input" and self._started is not None:
                self._started(content.get("execution_count"))
            self._collector.add(msg_type, content)
            self._output_messages += msg_type in OUTPUTS
        self._check()

    def on_reply(self, content: dict[str, Any]) -> None:
        self._reply = content
        self._check()

    def on_no_reply(self) -> None:
        """Expect no reply: an interrupt just before the code runs prevents it."""
        if self._reply is None:
            self.on_reply({})

    @property
    def count(self) -> int:
        """The number of the execution, as its result has it."""
        count: int = (self._reply or {}).get("execution_count", self._count)
        return count

    @property
    def ends_kernel(self) -> bool:
        """Whether the reply says that the kernel is about to end, as after ``exit()``."""
        payload = (self._reply or {}).get("payload") or ()
        return any(
            part.get("source") == "ask_exit" and not part.get("keepkernel") for part in payload
        )

    def after_outputs(self, messages: int) -> asyncio.Future[None]:
        """Return a future that is done after that many outputs, or when the execution ends."""
        awaited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaited = (messages, awaited)
        self._check()
        return awaited

    @property
    def output_messages(self) -> int:
        """The number of output messages that have arrived."""
        return self._output_messages

    def _check(self) -> None:
        if self._idle and self._reply is not None:
            settle(self.finished)
        if self._awaited is not None:
            messages, awaited = self._awaited
            if self._output_messages >= messages or self.finished.done():
                settle(awaited)

    def result(
        self, status: Status | None = None, message: str = "", *, context_lost: bool = False
    ) -> ExecutionResult:
        """Return the result; without ``status``, take the status from the kernel's reply."""
        reply = self._reply or {}
        if status is None:
            status = "ok" if reply.get("status") == "ok" else "error"
            if status == "error":
                self._collector.add_missing_error(reply)
        outputs = self._collector.outputs()
        if not message:
            message = "Code executed successfully" if status == "ok" else _failure(outputs)
        return ExecutionResult(
            status=status,
            message=message,
            outputs=outputs,
            execution_count=self.count,
            code=self.code,
            msg_id=self.msg_id,
            context_lost=context_lost or bool(reply.get("context_lost")),
        )

    def timed_out(self, timeout_s: float, *, context_kept: bool) -> ExecutionResult:
        """Return the result of code that ran longer than its timeout."""
        ending = "was interrupted; the context is kept"
        if not context_kept:
            ending = "ignored the interrupt and was killed; the context is lost"
        message = f"The code ran longer than its timeout of {timeout_s:g} s and {ending}."
        return self.result("timeout", message, context_lost=not context_kept)

    def exited(self) -> ExecutionResult:
        """Return the result of code that ended its kernel on purpose."""
        return self.died(_EXITED)

    def died(self, reason: str, *, began: bool = True) -> ExecutionResult:
        """Return the result of code whose kernel ended while it ran, or before it began."""
        text = f"{reason}; the session's context is lost"
        self._collector.add_last_error(
            {"ename": "KernelDied", "evalue": text, "traceback": [f"KernelDied: {text}"]}
        )
        message = f"{FAILED}{text}"
        return replace(self.result("error", message, context_lost=True), began=began)


def _failure(outputs: Iterable[CellOutput]) -> str:
    """Return the message of code that failed: its last error, shortened if it is long.

    Not the reply's: if a result cannot be shown, ipykernel replies with an error without a name.
    """
    text = next(
        (f"{it.ename}: {it.evalue}" for it in reversed([*outputs]) if it.output_type == "error"),
        "its kernel names no error",
    )
    text = text if len(text) <= _MESSAGE_LENGTH else f"{text[:_MESSAGE_LENGTH]}..."
    return f"{FAILED}{text}"


def settle(future: asyncio.Future[None]) -> None:
    """Mark a future as done, unless it is done already."""
    if not future.done():
        future.set_result(None)
