"""One Jupyter kernel, spoken to over its sockets.

They are read by us and not by jupyter_client's client, because that one drops outputs at its
high-water mark and always waits 200 ms for readiness. How a kernel comes to be: ``kernels``.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

from agentdouble.errors import KernelStartError
from agentdouble.sandbox.execution import ASKED, Execution, ExpressionError, settle
from agentdouble.sandbox.languages import Language
from agentdouble.sandbox.outputs import OutputCollector
from agentdouble.sandbox.result import ExecutionResult
from agentdouble.sandbox.undivided import undivided

if TYPE_CHECKING:
    import zmq.asyncio

    from agentdouble.sandbox.manager import SandboxKernelManager
    from agentdouble.sandbox.output_feed import ExecutionPublisher

_log = logging.getLogger(__name__)

INTERRUPT_GRACE_S = 2.0
_NUDGE = signal.SIGURG  # the Python kernel is woken by it; by default nothing heeds it
_NUDGED_S = 0.2
_ANSWERED_S = 0.5
_EVALUATED_S = 5.0
_HEARD_S = 0.02
_SHARE = 20  # messages, some 0.1 ms each
_SAID = 500  # characters
_LARGE = 64 * 1024  # bytes; such a message takes as long as several

_Ending = Literal["interrupted", "killed", "died"]


@dataclass(frozen=True)
class MidRunFault:
    """What is to happen to a kernel while it runs code, after so many messages of output."""

    after: int
    happen: Callable[[Kernel], Awaitable[None]]


class Kernel:
    """A kernel whose process has been started; ``died`` is done when it has ended."""

    def __init__(self, manager: SandboxKernelManager, language: Language) -> None:
        self.language = language
        self._manager = manager
        self._provisioner: Any = manager.provisioner
        self._session = manager.session
        self._shell, self._iopub = _connected(manager)
        self._running: Execution | None = None
        self._count = 0
        self._heard = False
        self._unanswered = False
        self._last_question = ""
        self._asked: dict[str, asyncio.Future[Mapping[str, Any]]] = {}
        self._asking = asyncio.Lock()
        self._wanted = 0
        self._answered = _future()
        self._ready = _future()
        self.died = asyncio.ensure_future(self._wait())
        self._listeners = (
            asyncio.ensure_future(self._listen(self._iopub, self._on_iopub)),
            asyncio.ensure_future(self._listen(self._shell, self._on_shell)),
        )
        self._end_reason: str | None = None

    @property
    def pid(self) -> int | None:
        """The kernel's process id, where its provisioner knows one."""
        return getattr(self._provisioner, "pid", None)

    @property
    def alive(self) -> bool:
        """Whether the kernel's process lives, as far as has been heard."""
        return not self.died.done()

    async def lives(self) -> bool:
        """Return whether the kernel's process lives this moment; asks the machine."""
        return self.alive and await self._provisioner.poll() is None

    async def execute(
        self,
        code: str,
        *,
        timeout_s: float,
        output_limit: int,
        midway: MidRunFault | None = None,
        publisher: ExecutionPublisher | None = None,
    ) -> ExecutionResult:
        """Run code and return what it came to; call it for one execution at a time.

        After ``timeout_s`` the code is interrupted; code that does not heed that within
        2 s is killed with its kernel, and the result says that the context is lost.
        ``midway`` happens once the code runs; if the kernel has ended then, that is what the
        code came to, however fast it was. ``publisher`` tells listeners of the code as it runs.
        """
        await self._unasked()
        self._count += 1
        execution = self._execution(code, output_limit, publisher)
        if not self.alive:  # it was killed while the code waited
            return execution.died(self.last_words())
        request = self._session.msg("execute_request", _execute_request(code))
        execution.msg_id = request["header"]["msg_id"]
        self._running = execution
        try:
            await self._send(request)
            if midway is None:
                return await self._outcome(execution, timeout_s)
            return await self._outcome_midway(execution, timeout_s, midway)
        except asyncio.CancelledError:  # the caller has gone away
            await asyncio.shield(self._end_execution(execution))
            raise
        finally:
            self._running = None

    def _execution(
        self, code: str, output_limit: int, publisher: ExecutionPublisher | None
    ) -> Execution:
        if publisher is None:
            return Execution(code, OutputCollector(output_limit), self._count)
        started = partial(publisher.started, self.language.name)
        return Execution(
            code, OutputCollector(output_limit, publisher.output), self._count, started
        )

    async def evaluate(self, expression: str) -> str:
        """Return the text of an expression's value; no execution is counted, nothing put out.

        Call it while nothing runs. Raises ExpressionError if it fails or takes 5 s.
        """
        await self._unasked()
        if not self.alive:
            raise ExpressionError(self.last_words())
        execution = Execution("", OutputCollector(0), self._count)
        request = self._session.msg("execute_request", _question(expression))
        execution.msg_id = request["header"]["msg_id"]
        self._running = execution
        try:
            await self._send(request)
            if not await self._finished(execution, _EVALUATED_S):
                raise ExpressionError(f"the {self.language.display_name} kernel does not answer")
            return execution.value()
        finally:
            self._running = None

    async def ask(
        self, msg_type: str, content: Mapping[str, Any], timeout_s: float
    ) -> Mapping[str, Any] | None:
        """Return the kernel's answer to a request, None if there is none in time.

        Call it while nothing runs; one is asked after the other. An execution that comes
        meanwhile waits for the one, and the others are not asked any more. What takes longer is
        interrupted: a ``__dir__`` of the session's own, say.
        """
        now = asyncio.get_running_loop().time
        deadline = now() + timeout_s
        async with self._asking:
            left_s = deadline - now()
            if self._wanted or left_s <= 0:
                return None
            return await self._answer(self._session.msg(msg_type, dict(content)), left_s)

    async def _answer(self, question: dict[str, Any], timeout_s: float) -> Mapping[str, Any] | None:
        asked = question["header"]["msg_id"]
        answer: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._asked[asked] = answer
        try:
            await self._send(question)
            await self._wait_for(answer, timeout_s)
            if answer.done():
                return answer.result()
            await self._give_up()
            return None
        finally:
            del self._asked[asked]

    async def _give_up(self) -> None:
        """Interrupt what the kernel does for a question, until it is at the one that follows.

        Once does not do: an interrupt is lost that comes before the kernel has begun, and what
        completes code passes some over.
        """
        now = asyncio.get_running_loop().time
        deadline = now() + INTERRUPT_GRACE_S
        while self.alive and now() < deadline:
            await self.interrupt()
            await self._wait_for(self._answered, _NUDGED_S)
            if self._answered.done():
                return

    async def _unasked(self) -> None:
        """Return when nothing is asked: an answer may take its time, and be interrupted."""
        self._wanted += 1
        try:
            async with self._asking:
                pass
        finally:
            self._wanted -= 1

    async def _outcome_midway(
        self, execution: Execution, timeout_s: float, midway: MidRunFault
    ) -> ExecutionResult:
        await self._has_begun(execution)
        await self._wait_for(execution.has_told(midway.after), timeout_s)
        if execution.told < midway.after:  # it was over before that, or out of time
            over = execution.finished.done()
            return execution.result() if over else await self._unfinished(execution, timeout_s)
        await midway.happen(self)
        if self.died.done():
            return execution.died(self.last_words())
        return await self._outcome(execution, timeout_s)

    async def crash(self) -> None:
        """Kill the kernel's process as if it had died by itself; return when it is gone."""
        if self.alive:
            await self._provisioner.kill()
        await asyncio.wait({self.died})

    async def _outcome(self, execution: Execution, timeout_s: float) -> ExecutionResult:
        if await self._finished(execution, timeout_s):
            return execution.result()
        return await self._unfinished(execution, timeout_s)

    async def _unfinished(self, execution: Execution, timeout_s: float) -> ExecutionResult:
        """End an execution that has had its time, or whose kernel has died."""
        ending = await self._end_execution(execution)
        if ending == "died":
            return execution.died(self.last_words())
        return execution.timed_out(timeout_s, context_kept=ending == "interrupted")

    async def _end_execution(self, execution: Execution) -> _Ending:
        """Interrupt the code; kill its kernel if it goes on; say how it ended."""
        if self.alive:
            await self._has_begun(execution)
            execution.interrupted = True
            await self.interrupt()
            if await self._heeds(execution):
                await self._wait_for(self._answered, _ANSWERED_S)  # no interrupt is on its way now
                return "interrupted"
        if self.died.done():
            return "died"
        await self.kill("killed: its code did not heed the interrupt")
        return "killed"

    async def _heeds(self, execution: Execution) -> bool:
        """Wait until interrupted code has ended; return whether it has, in its time."""
        nudging = asyncio.ensure_future(self._nudge())
        try:
            return await self._finished(execution, INTERRUPT_GRACE_S)
        finally:
            nudging.cancel()

    async def _nudge(self) -> None:
        """Wake code that has not heard of its interrupt, again and again.

        A signal that comes just before code waits in the system, by ``time.sleep`` say, is heeded
        only after that. Another one ends the wait, and does nothing else.
        """
        while True:
            await asyncio.sleep(_NUDGED_S)
            with contextlib.suppress(OSError):  # it ended meanwhile
                await self._provisioner.send_signal(_NUDGE)

    async def _finished(self, execution: Execution, timeout_s: float) -> bool:
        """Wait until an execution is finished; return whether it is, at the latest after the timeout."""
        await self._wait_for(execution.finished, timeout_s)
        return execution.finished.done()

    async def _has_begun(self, execution: Execution) -> None:
        """Wait until the code runs: an interrupt that comes before is lost."""
        await self._wait_for(execution.begun, INTERRUPT_GRACE_S)

    async def interrupt(self) -> None:
        """Interrupt the code that runs.

        ipykernel does not wake from an ``await`` by the signal alone, only by the next message
        (https://github.com/ipython/ipykernel/issues/881); so one follows.
        """
        with contextlib.suppress(RuntimeError):  # the kernel ended meanwhile
            await self._manager.interrupt_kernel()
        await self._ask_info()

    async def _ask_info(self) -> None:
        self._unanswered = True
        if self._answered.done():
            self._answered = _future()
        question = self._session.msg("kernel_info_request", {})
        self._last_question = question["msg_id"]
        await self._send(question)

    async def _send(self, message: dict[str, Any]) -> None:
        """Send a message through the asyncio socket itself.

        ``Session.send`` goes past it, to the socket underneath, which takes away the one sign
        that replies have come: then nobody reads them.
        """
        await self._shell.send_multipart(self._session.serialize(message))

    async def kill(self, reason: str) -> None:
        """Kill the kernel, close its sockets and return when it is gone."""
        if self._end_reason is None:
            self._end_reason = reason
        await undivided(self._end())

    async def _end(self) -> None:
        if self.alive:
            await self._provisioner.kill()
        await asyncio.wait({self.died})
        for listener in self._listeners:
            listener.cancel()
        await asyncio.gather(*self._listeners, return_exceptions=True)
        for socket in (self._shell, self._iopub):
            socket.close(linger=0)  # jupyter_client gave it a second for what nobody will read
        await self._manager.cleanup_resources()

    def last_words(self) -> str:
        """Say how a kernel that has ended did."""
        if self._end_reason is not None:
            return self._end_reason
        code = self.died.result()
        if code is None:
            return "the kernel's process has ended with its fork server"
        if code < 0:
            return f"the kernel's process was killed by signal {-code} ({_signal_name(-code)})"
        return f"the kernel's process exited with code {code}"

    async def _wait(self) -> int | None:
        code: int | None = await self._provisioner.wait()
        return code

    async def ready(self) -> None:
        """Return when the kernel has answered all it was asked, and its outputs are heard too.

        The output socket subscribes asynchronously: what a kernel publishes before is lost.
        So it is asked again until something of its output arrives. Raises KernelStartError if
        the kernel ends before that.
        """
        while not self._ready.done():
            await self._ask_info()
            await self._wait_for(self._answered, _ANSWERED_S)
            await self._wait_for(self._ready, _HEARD_S)
            if self.died.done():
                raise KernelStartError(self.language.display_name, self._why_it_ended())

    def _why_it_ended(self) -> str:
        """Say how a kernel ended that has run no code yet, and what it said last."""
        with contextlib.suppress(OSError):  # what is not forked says it to the double's own stderr
            said = self._manager.words.read_text("utf-8", "replace").strip()
            if said:
                return f"{self.last_words()}. It said: {said.splitlines()[-1][:_SAID]}"
        return self.last_words()

    async def _wait_for(self, future: asyncio.Future[Any], timeout_s: float) -> None:
        """Wait for a future, the kernel's end or the timeout, whatever comes first."""
        first: set[asyncio.Future[Any]] = {future, self.died}
        if not any(one.done() for one in first):
            await asyncio.wait(first, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)

    async def _listen(self, socket: zmq.asyncio.Socket, on_message: Any) -> None:
        turn = 0
        while True:
            turn += 1
            if turn % _SHARE == 0:  # what waits is received without a pause: let others run
                await asyncio.sleep(0)
            received = await socket.recv_multipart()
            if sum(map(len, received)) > _LARGE:
                turn = 0
                await asyncio.sleep(0)
            try:
                message = self._session.deserialize(self._session.feed_identities(received)[1])
            except (ValueError, TypeError):  # not signed with this kernel's key, or garbled
                continue
            try:
                on_message(message)
            except Exception:  # code can publish what it likes; the next message must be heard
                _log.exception("A message of the %s kernel is malformed.", self.language.name)

    def _on_iopub(self, message: dict[str, Any]) -> None:
        self._heard = True
        self._check_ready()
        execution = self._running
        if execution is not None and message["parent_header"].get("msg_id") == execution.msg_id:
            execution.on_iopub(message["header"]["msg_type"], message["content"])

    def _check_ready(self) -> None:
        if self._unanswered:
            return
        settle(self._answered)
        if self._heard:
            settle(self._ready)

    def _on_shell(self, message: dict[str, Any]) -> None:
        execution, request_id = self._running, message["parent_header"].get("msg_id")
        if request_id in self._asked and not self._asked[request_id].done():
            self._asked[request_id].set_result(message["content"])
        if request_id == self._last_question:  # those before it have been, or were interrupted
            self._unanswered = False
            self._check_ready()
        if execution is None:
            return
        if request_id == execution.msg_id:
            execution.on_reply(message["content"])
        elif request_id == self._last_question and execution.interrupted:
            execution.on_no_reply()  # its own would have come before this one


def _connected(manager: SandboxKernelManager) -> tuple[zmq.asyncio.Socket, zmq.asyncio.Socket]:
    """Return the sockets of requests and of outputs: asyncio ones, as the manager's context is."""
    shell = manager.connect_shell()
    try:
        iopub = manager.connect_iopub()
    except BaseException:
        shell.close(linger=0)
        raise
    return cast("zmq.asyncio.Socket", shell), cast("zmq.asyncio.Socket", iopub)


def _future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def _question(expression: str) -> dict[str, Any]:
    asked = {"silent": True, "store_history": False, "user_expressions": {ASKED: expression}}
    return {**_execute_request(""), **asked}


def _execute_request(code: str) -> dict[str, Any]:
    return {
        "code": code,
        "silent": False,
        "store_history": True,
        "user_expressions": {},
        "allow_stdin": False,
        "stop_on_error": False,
    }
