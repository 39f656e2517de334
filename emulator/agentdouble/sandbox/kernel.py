"""One Jupyter kernel: started through a kernel provisioner, spoken to over its sockets.

The process is started by whichever provisioner the settings name (jupyter_client's
interface), so a kernel may live anywhere a provisioner can put it. The sockets are read by
us and not by jupyter_client's client, because that one drops outputs at its high-water mark
and always waits 200 ms for readiness.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, cast

from agentdouble.errors import KernelStartError
from agentdouble.sandbox.languages import Language
from agentdouble.sandbox.outputs import OutputCollector
from agentdouble.sandbox.result import ExecutionResult, Status
from agentdouble.sandbox.workspace import Workspace

if TYPE_CHECKING:
    import zmq.asyncio
    from jupyter_client.manager import AsyncKernelManager

_log = logging.getLogger(__name__)

INTERRUPT_GRACE_S = 2.0
_READY_RETRY_S = 0.05


class KernelSockets:
    """The zmq context of every kernel of a double; close it when the last kernel is gone."""

    def __init__(self) -> None:
        import zmq
        import zmq.asyncio

        self.context = zmq.asyncio.Context()
        self.context.setsockopt(zmq.RECONNECT_IVL, 5)  # ms; zmq's own 100 delays every start
        self.context.setsockopt(zmq.RCVHWM, 0)  # no limit: a flood must not drop outputs

    def close(self) -> None:
        """Close the context and whatever socket is still open."""
        self.context.destroy(linger=0)


class Kernel:
    """A running kernel; make one with ``Kernel.start()``."""

    def __init__(self, manager: AsyncKernelManager, language: Language) -> None:
        self.language = language
        self._manager = manager
        self._session = manager.session
        # asyncio sockets, because the manager's context is an asyncio one
        self._shell = cast("zmq.asyncio.Socket", manager.connect_shell())
        self._iopub = cast("zmq.asyncio.Socket", manager.connect_iopub())
        self._running: _Execution | None = None
        self._count = 0
        self._heard = False
        self._unanswered = 0
        self._ready_now = asyncio.Event()
        self._death = asyncio.ensure_future(self._wait_for_death())
        self._listeners = (
            asyncio.ensure_future(self._listen(self._iopub, self._on_iopub)),
            asyncio.ensure_future(self._listen(self._shell, self._on_shell)),
        )
        self._end_reason: str | None = None

    @classmethod
    async def start(
        cls,
        language: Language,
        workspace: Workspace,
        sockets: KernelSockets,
        *,
        provisioner: str,
        timeout_s: float,
    ) -> Kernel:
        """Start a kernel and return when it answers; raise KernelStartError if it does not."""
        manager = _manager(language, workspace, sockets, provisioner)
        try:
            await manager.start_kernel(env=dict(workspace.environment()), cwd=str(workspace.home))
        except (OSError, RuntimeError, ModuleNotFoundError) as error:
            raise KernelStartError(language.display_name, str(error)) from error
        kernel = cls(manager, language)
        try:
            await asyncio.wait_for(kernel._ready(), timeout_s)
        except asyncio.TimeoutError:
            await kernel.kill("it did not start")
            reason = f"it gave no answer for {timeout_s:g} s"
            raise KernelStartError(language.display_name, reason) from None
        except BaseException:
            await kernel.kill("its start was given up")
            raise
        return kernel

    @property
    def pid(self) -> int | None:
        """The kernel's process id, where its provisioner knows one."""
        return getattr(self._manager.provisioner, "pid", None)

    @property
    def alive(self) -> bool:
        """Whether the kernel's process lives."""
        return not self._death.done()

    async def execute(self, code: str, *, timeout_s: float, output_limit: int) -> ExecutionResult:
        """Run code and return what it came to; call it for one execution at a time.

        After ``timeout_s`` the code is interrupted; code that does not heed that within
        2 s is killed with its kernel, and the result says that the context is lost.
        """
        self._count += 1
        execution = _Execution(code, OutputCollector(output_limit), self._count)
        request = self._session.msg("execute_request", _execute_request(code))
        execution.msg_id = request["header"]["msg_id"]
        self._running = execution
        try:
            await self._send(request)
            return await self._outcome(execution, timeout_s)
        except asyncio.CancelledError:
            await asyncio.shield(self.interrupt())
            raise
        finally:
            self._running = None

    async def _outcome(self, execution: _Execution, timeout_s: float) -> ExecutionResult:
        if await self._finished(execution, timeout_s):
            return execution.result()
        if self.alive:
            await self.interrupt()
            if await self._finished(execution, INTERRUPT_GRACE_S):
                message = (
                    f"The code ran longer than its timeout of {timeout_s:g} s and was "
                    "interrupted; the context is kept."
                )
                return execution.result("timeout", message)
            if self.alive:
                await self.kill("killed: it did not heed the interrupt")
                message = (
                    f"The code ran longer than its timeout of {timeout_s:g} s, did not heed the "
                    "interrupt and was killed; the context is lost."
                )
                return execution.result("timeout", message, context_lost=True)
        return execution.died(await self.last_words())

    async def _finished(self, execution: _Execution, timeout_s: float) -> bool:
        done = asyncio.ensure_future(execution.finished.wait())
        try:
            await asyncio.wait(
                {done, self._death}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            done.cancel()
        return execution.finished.is_set()

    async def interrupt(self) -> None:
        """Interrupt the code that runs.

        ipykernel does not wake from an ``await`` by the signal alone, only by the next message
        (https://github.com/ipython/ipykernel/issues/881); so one follows.
        """
        with contextlib.suppress(RuntimeError):  # the kernel ended meanwhile
            await self._manager.interrupt_kernel()
        await self._ask_info()

    async def _ask_info(self) -> None:
        self._unanswered += 1
        await self._send(self._session.msg("kernel_info_request", {}))

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
        if self.alive:
            await self._provisioner.kill()
        await asyncio.wait({self._death})
        for listener in self._listeners:
            listener.cancel()
        await asyncio.gather(*self._listeners, return_exceptions=True)
        for socket in (self._shell, self._iopub):
            socket.close(linger=0)  # jupyter_client gave it a second for what nobody will read
        await self._manager.cleanup_resources()

    async def last_words(self) -> str:
        """Say how the kernel ended; wait for its end."""
        code = await asyncio.shield(self._death)
        if self._end_reason is not None:
            return self._end_reason
        if code is not None and code < 0:
            return f"the kernel's process was killed by signal {-code}"
        return f"the kernel's process exited with code {code}"

    @property
    def _provisioner(self) -> Any:
        return self._manager.provisioner

    async def _wait_for_death(self) -> int | None:
        code: int | None = await self._provisioner.wait()
        return code

    async def _ready(self) -> None:
        """Return when the kernel has answered all it was asked, and its outputs are heard too.

        The output socket subscribes asynchronously: what a kernel publishes before is lost.
        So it is asked again until something of its output arrives; one question at a time,
        because ipykernel may overlook a request that comes while it sends a reply
        (https://github.com/ipython/ipykernel/issues/1554).
        """
        while not self._ready_now.is_set():
            if not self._unanswered:
                await self._ask_info()
            ready = asyncio.ensure_future(self._ready_now.wait())
            try:
                await asyncio.wait(
                    {ready, self._death},
                    timeout=_READY_RETRY_S,
                    return_when=asyncio.FIRST_COMPLETED,
                )
            finally:
                ready.cancel()
            if self._death.done():
                raise KernelStartError(self.language.display_name, await self.last_words())

    async def _listen(self, socket: zmq.asyncio.Socket, on_message: Any) -> None:
        while True:
            _, parts = self._session.feed_identities(await socket.recv_multipart())
            try:
                message = self._session.deserialize(parts)
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
        if self._heard and not self._unanswered:
            self._ready_now.set()

    def _on_shell(self, message: dict[str, Any]) -> None:
        if message["header"]["msg_type"] == "kernel_info_reply":
            self._unanswered -= 1
            self._check_ready()
        execution = self._running
        if execution is not None and message["parent_header"].get("msg_id") == execution.msg_id:
            execution.on_reply(message["content"])


class _Execution:
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
            context_lost=context_lost,
        )

    def died(self, reason: str) -> ExecutionResult:
        """Return the outcome of code whose kernel ended under it."""
        text = f"{reason}; the session's context is lost"
        self._collector.add(
            "error", {"ename": "KernelDied", "evalue": text, "traceback": [f"KernelDied: {text}"]}
        )
        return self.result("error", f"Code execution failed: {text}", context_lost=True)


def _execute_request(code: str) -> dict[str, Any]:
    return {
        "code": code,
        "silent": False,
        "store_history": True,
        "user_expressions": {},
        "allow_stdin": False,
        "stop_on_error": False,
    }


def _manager(
    language: Language, workspace: Workspace, sockets: KernelSockets, provisioner: str
) -> AsyncKernelManager:
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    manager = AsyncKernelManager(
        context=sockets.context,
        transport="ipc",
        connection_file=str(workspace.run / f"{language.name}.json"),
    )
    manager._kernel_spec = KernelSpec(
        argv=list(language.argv),
        display_name=language.display_name,
        language=language.name,
        metadata={"kernel_provisioner": {"provisioner_name": provisioner}},
    )
    return manager
