"""The engine: one deno process, from its start to its end."""

from __future__ import annotations

import array
import asyncio
import fcntl
import json
import os
import re
import secrets
import termios
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

from agentdouble.sandbox.javascript import deno
from agentdouble.sandbox.javascript.deno import EngineStreams, FrameReader, Send
from agentdouble.sandbox.javascript.inspector import Inspector, InspectorClosedError, readable

CELL = "cell"  # the inspector's name for the group of one cell's objects
_TOO_DEEP = "A display is nested too deeply to be shown.\n"
_IDLE_S = 0.025
_EXIT_S = 5.0  # even a busy machine ends a process sooner
_URL = re.compile(rb"ws://\S+")
_BANNER = re.compile(
    r"(?:Debugger listening on |Visit chrome://inspect |Debugger session |Waiting for the debugger )"
    r".*\n"
)
_CRASH = re.compile(r"\n<--- Last few GCs --->|\n#\n# Fatal|=====\nDeno has panicked")
_OUT_OF_MEMORY = "JavaScript out of memory"


class EngineGoneError(Exception):
    """The engine has ended; ``name`` is the kind of the end, and the message describes it."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class HelperError(Exception):
    """A function of boot.js has thrown; ``details`` are the inspector's exception details."""

    def __init__(self, details: dict[str, Any]) -> None:
        super().__init__(details.get("text"))
        self.details = details


@dataclass(frozen=True)
class Ending:
    """The end of an engine: its exit code (negative for a signal), last output and reason.

    ``reason`` is None unless ``Engine.kill`` was called.
    """

    code: int
    words: str
    reason: str | None

    def error(self) -> EngineGoneError:
        """Return the ending as an error."""
        if self.reason is not None:
            return EngineGoneError("EngineKilled", f"the JavaScript engine {self.reason}")
        if _OUT_OF_MEMORY in self.words:
            return EngineGoneError("OutOfMemory", "the JavaScript engine ran out of memory")
        if self.code < 0:
            message = f"the JavaScript engine was killed by signal {-self.code}"
            return EngineGoneError("EngineKilled", message)
        return EngineGoneError("Exit", f"the JavaScript engine exited with code {self.code}")


class DenoEngine:
    """A deno process and its inspector; ``gone`` is done when the process has ended."""

    def __init__(self, options: deno.Options, home: str) -> None:
        """Start the process, without an event loop. Raise DenoMissingError if deno is missing."""
        self._reason: str | None = None
        self._interrupting = False
        self._token = secrets.token_hex(8)
        self.process = deno.start(options, home, self._token)
        self.gone: asyncio.Future[Ending]
        self._inspector: Inspector
        self._helper: str

    async def open(self, send: Send) -> None:
        """Connect, and send outputs to ``send`` as Jupyter messages. May raise EngineGoneError."""
        loop = asyncio.get_running_loop()
        self.gone = loop.create_future()
        self._url: asyncio.Future[str] = loop.create_future()
        self._ready: asyncio.Future[str] = loop.create_future()
        self._send = send
        self._streams = EngineStreams(send)
        self._frames = FrameReader(
            self._token, partial(self._streams.write, "stdout"), self._on_frame
        )
        self._listening, self._crash = b"", ""
        self._pipes: dict[int, Callable[[bytes], None]] = {}
        self._watch(self.process.stdout, self._frames.feed)
        self._watch(self.process.stderr, self._on_stderr)
        try:
            await self._connect()
        except (OSError, InspectorClosedError):
            raise (await self._ending()).error() from None

    @property
    def ended(self) -> bool:
        """Whether the process has ended, even if ``gone`` still waits for its last output."""
        return self.gone.done() or self.process.poll() is not None

    async def _connect(self) -> None:
        self._inspector = await Inspector.connect(await self._while_alive(self._url))
        await self._while_alive(self._ready)
        answer = await self._inspector.call("Runtime.evaluate", expression="__cell.kernel")
        self._helper = answer["result"]["objectId"]
        await self.call("Runtime.evaluate", expression="delete __cell.kernel")

    async def _while_alive(self, future: asyncio.Future[str]) -> str:
        futures: set[asyncio.Future[Any]] = {future, self.gone}
        await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
        if self.gone.done():
            raise self.gone.result().error()
        return future.result()

    # ---- calls ----

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call the inspector; raise EngineGoneError if the engine ends before it answers.

        While the cell is interrupted this sends nothing and does not return: its caller is about
        to be cancelled, and what it sent now would run after all.
        """
        if self._interrupting:
            raise (await asyncio.shield(self.gone)).error()
        return await self._call(method, **params)

    async def _call(self, method: str, **params: Any) -> dict[str, Any]:
        try:
            return await self._inspector.call(method, **params)
        except InspectorClosedError:
            raise (await self._ending()).error() from None

    async def begin(self) -> None:
        """Announce a cell to boot.js."""
        # without awaitPromise: V8 would make a promise that nothing holds, and might collect it
        await self.call(
            "Runtime.callFunctionOn",
            objectId=self._helper,
            functionDeclaration="function() { this.begin(); }",
        )

    async def help(self, function: str, *arguments: dict[str, Any]) -> Any:
        """Call an async function of boot.js's ``kernel`` with arguments in the inspector's form."""
        answer = await self.call(
            "Runtime.callFunctionOn", **self._helping(function), arguments=list(arguments)
        )
        if "exceptionDetails" in answer:  # a display function of the cell's own has thrown
            raise HelperError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def _helping(self, function: str) -> dict[str, Any]:
        return {
            "objectId": self._helper,
            "functionDeclaration": f"function(...v) {{ return this.promise('{function}', v); }}",
            "awaitPromise": True,
            "returnByValue": True,
            "objectGroup": CELL,
        }

    def release(self) -> None:
        """Release the values that the inspector keeps for the finished cell."""
        self._inspector.call("Runtime.releaseObjectGroup", objectGroup=CELL)

    async def interrupt(self) -> None:
        """Stop the code that runs, and all code that would run later."""
        # Do not terminate code that only waits: the termination would hit the next code that
        # deno runs, and if that is deno's own event loop, deno ends.
        self._interrupting = True
        try:
            await asyncio.wait_for(self._abandon(), _IDLE_S)
        except asyncio.TimeoutError:
            await self._call("Runtime.terminateExecution")
            await self._abandon()
        finally:
            self._interrupting = False

    async def _abandon(self) -> None:
        await self._call("Runtime.callFunctionOn", **self._helping("abandon"))

    async def _ending(self) -> Ending:
        """Return how the engine ended after it closed the connection; kill it if it still runs."""
        try:
            return await asyncio.wait_for(asyncio.shield(self.gone), _EXIT_S)
        except asyncio.TimeoutError:
            self.process.kill()
            return await asyncio.shield(self.gone)

    def kill(self, reason: str) -> None:
        """Kill the process; ``reason`` completes the sentence "the JavaScript engine ..."."""
        self._reason = reason
        self.process.kill()

    # ---- outputs ----

    def renew_outputs(self) -> None:
        """Reset the limits of the outputs, because an execution begins."""
        self._streams.renew()

    def settle(self) -> None:
        """Send all output that the engine has written until now."""
        for descriptor in tuple(self._pipes):
            waiting = array.array("i", [0])
            fcntl.ioctl(descriptor, termios.FIONREAD, waiting)
            # do not drain the pipe: a timer may write for ever
            if waiting[0]:
                self._read(descriptor, waiting[0])
        self._streams.flush()

    def _watch(self, pipe: IO[bytes] | None, on_data: Callable[[bytes], None]) -> None:
        assert pipe is not None
        descriptor = pipe.fileno()
        os.set_blocking(descriptor, False)
        self._pipes[descriptor] = on_data
        asyncio.get_running_loop().add_reader(descriptor, self._read, descriptor, deno.PIPE_SIZE)

    def _read(self, descriptor: int, size: int) -> None:
        try:
            data = os.read(descriptor, size)
        except BlockingIOError:
            return
        if data:
            self._pipes[descriptor](data)
        else:
            del self._pipes[descriptor]
            asyncio.get_running_loop().remove_reader(descriptor)
            if not self._pipes:
                self._waiting = asyncio.ensure_future(self._wait())

    def _on_frame(self, kind: str, payload: str) -> None:
        if kind == "stderr":
            self._streams.write("stderr", payload)
        elif kind == "uncaught":
            self._streams.write("stderr", "\n".join([*readable(payload, {}), ""]))
        elif kind == "ready":
            self._ready.set_result(payload)
        else:
            self._streams.flush()
            try:
                self._send(kind, json.loads(payload))
            except RecursionError:
                self._streams.write("stderr", _TOO_DEEP)

    def _on_stderr(self, data: bytes) -> None:
        """Handle the output on standard error: the inspector's address, a crash, or text."""
        if not self._url.done():
            self._listening += data
            address = _URL.search(self._listening)
            if address is None:
                return
            self._url.set_result(address[0].decode())
            data = self._listening
        text = _BANNER.sub("", data.decode("utf-8", "replace"))
        crash = _CRASH.search(self._crash + text)
        if self._crash or crash:
            self._crash += text  # a crash report is not output of the cell
        else:
            self._streams.write("stderr", text)

    async def _wait(self) -> None:
        code = await asyncio.to_thread(self.process.wait)
        self._streams.flush()
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()
        words = self._crash or self._listening.decode("utf-8", "replace")
        self.gone.set_result(Ending(code, words, self._reason))
