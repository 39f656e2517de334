"""One Jupyter kernel: its state, executions, questions and end.

Kernels are started by ``kernel_pool``; the sockets are in ``kernel_channels``.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from agentdouble import faults
from agentdouble.errors import KernelStartError
from agentdouble.processes import session_files
from agentdouble.processes.fork_server.protocol import BEGUN, BEGUN_LENGTH
from agentdouble.processes.launcher import STDERR
from agentdouble.sandbox.execution import OUTPUTS, Execution, settle
from agentdouble.sandbox.expressions import (
    ExpressionError,
    Question,
    expression_request,
    value_of,
)
from agentdouble.sandbox.languages import PYTHON, Language
from agentdouble.sandbox.late_outputs import LateOutputs
from agentdouble.sandbox.outputs import OutputCollector
from agentdouble.sandbox.result import ExecutionResult
from agentdouble.sandbox.session_process import SessionProcess, run_to_completion

if TYPE_CHECKING:
    from agentdouble.processes.launcher import ForkPlan, StartedProcess
    from agentdouble.sandbox.kernel_channels import Handler, KernelConnection, Message
    from agentdouble.sandbox.output_feed import ExecutionPublisher

INTERRUPT_GRACE_S = 2.0
_NUDGE = signal.SIGURG  # wakes the Python kernel; other processes ignore it by default
_NUDGE_INTERVAL_S = 0.2
_INFO_TIMEOUT_S = 0.5
_EVALUATION_TIMEOUT_S = 5.0
_IOPUB_TIMEOUT_S = 0.02
_EXIT_S = 5.0  # the time that a kernel has to end by itself after exit()
_STDERR_LENGTH = 500  # characters
_STDERR_SIZE = 8192  # bytes, of which the last line is shown

_Ending = Literal["interrupted", "killed", "died"]


@dataclass(frozen=True)
class MidRunFault:
    """A fault that happens to a kernel while it runs code, after ``after`` outputs."""

    after: int
    happen: Callable[[Kernel], Awaitable[None]]

    @classmethod
    def armed(cls, expire: Callable[[], Awaitable[None]]) -> MidRunFault | None:
        """Return the fault that is armed for this call, or None if there is none.

        ``expire`` makes the deadline of the kernel's session pass.
        """
        fault = faults.injected_fault()
        if fault is None:
            return None

        async def happen(kernel: Kernel) -> None:
            fault.happened()
            await (kernel.crash() if fault.kind == "kill_kernel" else expire())

        return cls(fault.after, happen)


class Kernel(SessionProcess):
    """A kernel whose process has been started."""

    def __init__(
        self,
        language: Language,
        process: StartedProcess,
        connection: KernelConnection,
        plan: ForkPlan | None,
    ) -> None:
        super().__init__(process)
        self.language = language
        self.plan = plan  # how it was forked, or None if it was not
        self.run = connection.run
        self.connection = connection
        self._channels = connection.channels(on_shell=self._on_shell, on_iopub=self._on_iopub)
        self.listeners: list[Handler] = []  # called with each message of IOPub
        self.late = LateOutputs()
        self._ending = False  # whether the code or the question is being interrupted
        self._turn = asyncio.Lock()  # held while the kernel does something
        self._code_waits = 0  # how many executions and expressions wait for their turn
        self._request: Execution | Question | None = None
        self._count = 0
        self._info_id = ""
        self._info = _future()  # done when the last kernel_info_request is answered
        self._heard = _future()  # done when the first IOPub message has arrived
        self._welcomed = _future()  # done when the kernel has welcomed the IOPub socket
        self.left = _future()  # done when it has ended, or its session has let it go
        self.died.add_done_callback(lambda _: settle(self.left))

    def lives(self) -> bool:
        """Return whether the kernel's process lives now, even if nobody has reported its end yet."""
        return self.alive and not self._process.has_ended()

    async def ready(self) -> None:
        """Wait until the kernel answers and its IOPub messages arrive.

        The IOPub socket subscribes asynchronously, and messages that the kernel publishes before
        that are lost. Our Python kernel says there that it is starting, or welcomes a later
        subscriber. To others, we send requests until an IOPub message arrives. Raises
        KernelStartError if the kernel ends before that.
        """
        is_forked_python = self.plan is not None and self.language.name == PYTHON.name
        if is_forked_python and await self._wait_for(self._welcomed, _INFO_TIMEOUT_S):
            return
        while not (self._info.done() and self._heard.done()):
            await self._ask_info()
            await self._wait_for(self._info, _INFO_TIMEOUT_S)
            await self._wait_for(self._heard, _IOPUB_TIMEOUT_S)
            if self.died.done():
                raise KernelStartError(self.language.display_name, self._start_failure())

    def _start_failure(self) -> str:
        """Return how a kernel ended before it was ready, with the last line that it printed."""
        with contextlib.suppress(OSError):  # a kernel that is not forked has no file for stderr
            printed = session_files.read_end(self.run / STDERR, _STDERR_SIZE)
            lines = printed.decode("utf-8", "replace").strip().splitlines()
            if lines:
                return f"{self.how_it_ended()}. It said: {lines[-1][:_STDERR_LENGTH]}"
        return self.how_it_ended()

    async def execute(
        self,
        code: str,
        *,
        timeout_s: float,
        output_limit: int,
        fault: MidRunFault | None = None,
        publisher: ExecutionPublisher | None = None,
    ) -> ExecutionResult:
        """Run code and return its result.

        After ``timeout_s`` the code is interrupted. If it still runs 2 s later, the kernel is
        killed, and the result says that the context is lost. ``fault`` happens while the code
        runs; if it ends the kernel, the result says so, even if the code was faster.
        ``publisher`` publishes the outputs while the code runs.
        """
        async with self._code_turn():
            self._count += 1
            execution = self._execution(code, output_limit, publisher)
            if not self.alive:  # it was killed while the code waited
                return execution.died(self.how_it_ended(), began=False)
            try:
                return await self._run(execution, timeout_s, fault)
            except asyncio.CancelledError:  # the caller has disconnected
                await run_to_completion(self._end_execution(execution))
                raise
            finally:
                self._request = None
                self._ending = False
                self.late.remember(execution.msg_id, execution.count, publisher)

    @contextlib.asynccontextmanager
    async def _code_turn(self) -> AsyncIterator[None]:
        """Wait until code may run; waiting questions return without an answer.

        So code has priority over completions, and waits at most a second for one.
        """
        self._code_waits += 1
        try:
            await self._turn.acquire()
        finally:
            self._code_waits -= 1
        try:
            yield
        finally:
            self._turn.release()

    def _execution(
        self, code: str, output_limit: int, publisher: ExecutionPublisher | None
    ) -> Execution:
        if publisher is None:
            return Execution(code, OutputCollector(output_limit), self._count)
        started = partial(publisher.started, self.language.name)
        return Execution(
            code, OutputCollector(output_limit, publisher.output), self._count, started
        )

    async def _run(
        self, execution: Execution, timeout_s: float, fault: MidRunFault | None
    ) -> ExecutionResult:
        await self._send(
            execution,
            "execute_request",
            {
                "code": execution.code,
                "silent": False,
                "store_history": True,
                "user_expressions": {},
                "allow_stdin": False,
                "stop_on_error": False,
            },
        )
        if fault is not None:
            await self._has_begun(execution)
            await self._wait_for(execution.after_outputs(fault.after), timeout_s)
            if execution.output_messages >= fault.after:
                await fault.happen(self)
                if self.died.done():
                    return execution.died(self.how_it_ended())
            elif not execution.finished.done():
                return await self._unfinished(execution, timeout_s)
        if await self._wait_for(execution.finished, timeout_s):
            if execution.ends_kernel:
                return await self._exited(execution)
            return execution.result()
        return await self._unfinished(execution, timeout_s)

    async def _exited(self, execution: Execution) -> ExecutionResult:
        """Return the result of code that called ``exit()``, when its kernel has ended.

        A kernel answers such code first, and would end while the next code runs.
        """
        await self._wait_for(self.left, _EXIT_S)
        if not self.died.done():
            await self.kill("killed: its code had called exit(), and it did not end")
        return execution.exited()

    async def _unfinished(self, execution: Execution, timeout_s: float) -> ExecutionResult:
        """End an execution that has timed out or whose kernel has died, and return its result."""
        ending = await self._end_execution(execution)
        if ending == "died":
            return execution.died(self.how_it_ended(), began=self._began(execution))
        return execution.timed_out(timeout_s, context_kept=ending == "interrupted")

    async def _end_execution(self, execution: Execution) -> _Ending:
        """Interrupt the code, kill its kernel if the code goes on, and return how it ended."""
        if self.alive:
            await self._has_begun(execution)
            if await self._stop(execution):
                return "interrupted"
        if self.died.done():
            return "died"
        await self.kill("killed: its code ignored the interrupt")
        return "killed"

    def _began(self, execution: Execution) -> bool:
        """Return whether code began in a kernel that has ended.

        Its messages do not tell: code may end the kernel before they are sent.
        """
        try:
            mark = session_files.read_end(self.run / BEGUN, BEGUN_LENGTH)
        except OSError:
            return execution.begun.done()
        return execution.begun.done() or mark.rstrip() == execution.msg_id.encode()

    async def _has_begun(self, execution: Execution) -> None:
        """Wait until the code runs, because ipykernel ignores an interrupt before that."""
        await self._wait_for(execution.begun, INTERRUPT_GRACE_S)

    async def _stop(self, execution: Execution) -> bool:
        """Interrupt code; return whether it ended within the grace time.

        If a signal comes just before a system call that waits, as in ``time.sleep``, Python
        handles it only after that call. Another signal ends the call, and does nothing else.
        """
        self._ending = True  # or a reply that never comes would be waited for
        await self.interrupt()
        for _ in range(round(INTERRUPT_GRACE_S / _NUDGE_INTERVAL_S)):
            if await self._wait_for(execution.finished, _NUDGE_INTERVAL_S):
                await self._wait_for(self._info, _INFO_TIMEOUT_S)  # no interrupt is pending now
                return True
            if not self.alive:
                return False
            self._process.send_signal(_NUDGE)
        return False

    async def interrupt_code(self) -> bool:
        """Interrupt the code that runs, if any; return whether there was some.

        Return when it has ended, or after 2 s if it goes on. What waits for its turn is not
        interrupted.
        """
        execution = self._request
        if not isinstance(execution, Execution):
            return False
        await self._has_begun(execution)
        if not self.alive or self._request is not execution or execution.finished.done():
            return False
        await self._stop(execution)
        return True

    async def evaluate(self, expression: str) -> str:
        """Return the text of an expression's value, without an output or an execution count.

        Raises ExpressionError if the expression fails or takes 5 s.
        """
        async with self._code_turn():
            answer = None
            if self.alive:
                content = expression_request(expression)
                answer = await self._answer("execute_request", content, _EVALUATION_TIMEOUT_S)
        if answer is not None:
            return value_of(answer)
        if not self.alive:
            raise ExpressionError(self.how_it_ended())
        raise ExpressionError(f"the {self.language.display_name} kernel does not answer")

    async def ask(
        self, msg_type: str, content: Mapping[str, Any], timeout_s: float
    ) -> Mapping[str, Any] | None:
        """Return the kernel's answer to a request, or None if none comes within ``timeout_s``.

        A request that takes longer is interrupted.
        """
        now = asyncio.get_running_loop().time
        deadline = now() + timeout_s
        async with self._turn:
            left_s = deadline - now()
            if self._code_waits or left_s <= 0:
                return None
            return await self._answer(msg_type, content, left_s)

    async def _answer(
        self, msg_type: str, content: Mapping[str, Any], timeout_s: float
    ) -> Mapping[str, Any] | None:
        question = Question()
        try:
            await self._send(question, msg_type, content)
            if await self._wait_for(question.finished, timeout_s):
                return question.answer
            await self._end_question()
            return None
        finally:
            self._request = None
            self._ending = False

    async def _end_question(self) -> None:
        """Interrupt a question again and again, until the kernel answers another request.

        One interrupt is not enough: it is lost if it comes before the kernel has begun, and
        IPython's completer ignores some interrupts.
        """
        self._ending = True
        now = asyncio.get_running_loop().time
        deadline = now() + INTERRUPT_GRACE_S
        while self.alive and now() < deadline:
            await self.interrupt()
            if await self._wait_for(self._info, _NUDGE_INTERVAL_S):
                return

    async def _send(
        self, request: Execution | Question, msg_type: str, content: Mapping[str, Any]
    ) -> None:
        message = self._channels.message(msg_type, content)
        request.msg_id = message["header"]["msg_id"]
        self._request = request
        await self._channels.send(message)

    async def _wait_for(self, future: asyncio.Future[None], timeout_s: float) -> bool:
        """Wait for a future, the kernel's end or the timeout; return whether the future is done."""
        if not (future.done() or self.died.done()):
            first: set[asyncio.Future[Any]] = {future, self.died}
            await asyncio.wait(first, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        return future.done()

    async def interrupt(self) -> None:
        """Interrupt the code that runs.

        The signal alone does not wake ipykernel from an ``await``. The next message does
        (https://github.com/ipython/ipykernel/issues/881), so we send one.
        """
        self._process.send_signal(signal.SIGINT)
        await self._ask_info()

    async def _ask_info(self) -> None:
        if self._info.done():
            self._info = _future()
        message = self._channels.message("kernel_info_request", {})
        self._info_id = message["header"]["msg_id"]
        await self._channels.send(message)

    def _on_iopub(self, message: Message) -> None:
        settle(self._heard)
        msg_type, content = message["header"]["msg_type"], message["content"]
        if msg_type == "iopub_welcome" or content.get("execution_state") == "starting":
            settle(self._welcomed)
        for listener in self.listeners:
            listener(message)
        request, parent = self._request, message["parent_header"].get("msg_id")
        if request is not None and parent == request.msg_id:
            request.on_iopub(msg_type, content)
        elif parent and msg_type in OUTPUTS:
            self.late.take(parent, msg_type, content)

    def _on_shell(self, message: Message) -> None:
        request, request_id = self._request, message["parent_header"].get("msg_id")
        if request is not None and request_id == request.msg_id:
            request.on_reply(message["content"])
        elif request_id == self._info_id:  # earlier requests are answered or interrupted
            settle(self._info)
            if request is not None and self._ending:
                request.on_no_reply()  # its own reply would have come before this one

    def let_go(self) -> None:
        """Part the kernel from its session, which has ended, and from all its listeners."""
        settle(self.left)
        self.listeners.clear()
        self.left = _future()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal to the kernel's process."""
        self._process.send_signal(number)

    async def crash(self) -> None:
        """Kill the kernel's process as if it had died by itself; return when it has ended."""
        await self._process.end()

    async def _end(self) -> None:
        await self.crash()
        await self._channels.close()
        self.connection.remove()

    def how_it_ended(self) -> str:
        """Return why the kernel was killed, or how its process ended."""
        if self._end_reason is not None:
            return self._end_reason
        code = self.died.result()
        if code is None:
            return "the kernel's process has ended with its fork server"
        if code < 0:
            return f"the kernel's process was killed by signal {-code} ({_signal_name(-code)})"
        return f"the kernel's process exited with code {code}"


def _future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
