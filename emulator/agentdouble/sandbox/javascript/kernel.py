"""The part of the JavaScript kernel that speaks Jupyter's protocol."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar, cast

from ipykernel.kernelbase import Kernel
from traitlets.config import Config

from agentdouble.processes.fork_server.kernel_app import KernelApp, refused_debugging
from agentdouble.sandbox.javascript import cells, deno
from agentdouble.sandbox.javascript.engine import DenoEngine, EngineGoneError
from agentdouble.sandbox.javascript.inspector import CellError, InspectorError

T = TypeVar("T")

_HEED_S = 1.0
_TABLE = "JavaScriptKernel"


class JavaScriptKernel(Kernel):
    """Runs cells in an engine; starts a new engine if the engine has ended."""

    implementation = "agentdouble-javascript"
    implementation_version = "1"
    banner = "JavaScript (deno)"
    language_info = {  # noqa: RUF012 (as the base class has it)
        "name": "javascript",
        "mimetype": "text/javascript",
        "file_extension": ".js",
    }
    _execute_sleep = 0.0  # the default of half a millisecond is for IPython's own outputs

    def use(self, options: deno.Options, engine: DenoEngine | None) -> None:
        """Set the options, and the engine if one has been started already."""
        self._options = options
        self._engine = engine
        self._home = os.getcwd()  # noqa: PTH109 (a string is what is needed)
        self._parent: dict[str, Any] = {}
        self._running: asyncio.Future[Any] | None = None
        self._running_in: DenoEngine | None = None

    def start(self) -> None:
        """Start to serve, and connect to the engine in the background."""
        super().start()  # type: ignore[no-untyped-call]
        loop = asyncio.get_event_loop()
        loop.add_signal_handler(signal.SIGINT, self._on_interrupt)
        self._opened = loop.create_task(self._open())

    def pre_handler_hook(self) -> None:
        """Do nothing, so that our own handler of SIGINT stays while a message is handled."""

    def post_handler_hook(self) -> None:
        """Do nothing, because there is no handler to restore."""

    async def do_execute(
        self,
        code: str,
        silent: bool,
        store_history: bool = True,
        user_expressions: Mapping[str, str] | None = None,
        allow_stdin: bool = False,
        **_: object,
    ) -> dict[str, Any]:
        """Run a cell and return the reply."""
        self._parent = self.get_parent("shell")  # type: ignore[no-untyped-call]
        self._app.mark_begun(self._parent)
        try:
            result = await self._run(code)
        except CellError as error:
            return self._failed(error)
        if result is not None and not silent:
            content = {"data": result, "metadata": {}, "execution_count": self.execution_count}
            self._publish("execute_result", content)
        return {
            "status": "ok",
            "execution_count": self.execution_count,
            "user_expressions": {
                name: await self._value(code) for name, code in (user_expressions or {}).items()
            },
            "payload": [],
        }

    @property
    def _app(self) -> KernelApp:
        return cast("KernelApp", self.parent)

    async def _value(self, expression: str) -> dict[str, Any]:
        """Return an expression's value as JSON: Python reads strings and numbers the same way."""
        engine = await self._ready_engine()
        answer = await engine.call("Runtime.evaluate", expression=expression, returnByValue=True)
        details = answer.get("exceptionDetails")
        if details is not None:
            thrown = details.get("exception", {})
            message = str(thrown.get("description", details["text"])).partition("\n")[0]
            return {"status": "error", "ename": thrown.get("className", "Error"), "evalue": message}
        text = json.dumps(answer["result"].get("value"), ensure_ascii=False)
        return {"status": "ok", "data": {"text/plain": text}, "metadata": {}}

    async def do_debug_request(self, msg: Mapping[str, Any]) -> dict[str, Any]:
        """Refuse to debug."""
        return refused_debugging(msg)

    async def do_shutdown(self, restart: bool) -> dict[str, Any]:
        """End the engine."""
        if self._engine is not None:
            self._engine.kill("was shut down")
        return {"status": "ok", "restart": restart}

    # ---- a cell ----

    async def _run(self, code: str) -> dict[str, Any] | None:
        self._interrupted = False
        engine = await self._interruptible(self._ready_engine())
        if self._interrupted:  # just when the engine was ready
            raise _interrupted()
        engine.renew_outputs()
        self._running_in = engine
        try:
            return await self._interruptible(
                cells.run(engine, code, self.execution_count, typescript=self._options.typescript)
            )
        except EngineGoneError as error:
            self._replace()
            raise CellError(
                error.name,
                f"{error}; its variables are lost, and the next cell gets a new one",
                context_lost=True,
            ) from None
        finally:
            self._running_in = None
            engine.settle()
            engine.release()

    async def _interruptible(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of ``work``; raise CellError if it is interrupted."""
        running = asyncio.ensure_future(work)
        self._running = running
        try:
            await asyncio.wait({running})
            return running.result()
        except (CellError, asyncio.CancelledError):
            if self._interrupted:  # a termination can also come back as an error without a value
                raise _interrupted() from None
            raise
        finally:
            self._running = None

    async def _ready_engine(self) -> DenoEngine:
        """Return an engine that is connected; raise CellError if there is none."""
        for _ in range(2):  # an engine may have ended while no code ran
            engine = await asyncio.shield(self._opened)  # an interrupt does not end its start
            if not engine.ended:
                return engine
            ended = (await engine.gone).error()
            text = f"Between two cells, {ended}. Its variables are lost: this is a new one.\n"
            self._publish("stream", {"name": "stderr", "text": text})
            self._replace()
        raise CellError("EngineNotStarted", "the JavaScript engine ends as soon as it starts")

    def _failed(self, error: CellError) -> dict[str, Any]:
        content = {"ename": error.name, "evalue": error.value, "traceback": error.traceback}
        self._publish("error", content)
        reply = {"status": "error", "execution_count": self.execution_count, **content}
        if error.context_lost:
            reply["context_lost"] = True
        return reply

    # ---- the engine ----

    async def _open(self) -> DenoEngine:
        try:
            engine = self._engine or DenoEngine(self._options, self._home)
            await engine.open(self._publish)
        except (OSError, ImportError, EngineGoneError) as error:
            raise CellError("EngineNotStarted", str(error)) from None
        self._engine = engine
        return engine

    def _replace(self) -> None:
        """Start a new engine for the next cell."""
        self._engine = None
        self._opened = asyncio.ensure_future(self._open())

    def _on_interrupt(self) -> None:
        self._interrupting = asyncio.ensure_future(self._interrupt())

    async def _interrupt(self) -> None:
        engine, running = self._running_in, self._running
        if running is None:
            return
        self._interrupted = True
        if engine is None:  # the engine is still starting, so the code has not begun
            running.cancel()
            return
        try:
            await asyncio.wait_for(engine.interrupt(), _HEED_S)
        except asyncio.TimeoutError:
            engine.kill("ignored the interrupt and was killed")
        except InspectorError:
            pass  # a second interrupt while the first is under way
        except EngineGoneError:
            pass  # the cell's error reports it
        else:
            running.cancel()

    def _publish(self, msg_type: str, content: dict[str, Any]) -> None:
        assert self.session is not None
        self.session.send(
            self.iopub_socket,
            msg_type,
            content,
            parent=self._parent,
            ident=self._topic(msg_type),  # type: ignore[no-untyped-call]
        )


class JavaScriptKernelApp(KernelApp):
    """The kernel application."""

    kernel_class = JavaScriptKernel
    streams = ()  # nothing in this process prints


def run(connection_file: str, config: Mapping[str, Mapping[str, Any]]) -> None:
    """Run a kernel in this process until it is shut down.

    ``config`` has the engine's options in the table ``JavaScriptKernel``, and one table of
    traitlets settings for each other class.
    """
    tables = dict(config)
    options = deno.Options(**tables.pop(_TABLE, {}))
    engine = _start_engine(options)  # it starts in parallel with the kernel's own parts
    app = JavaScriptKernelApp.instance(connection_file=connection_file, config=Config(tables))
    app.initialize([])
    app.kernel.use(options, engine)
    app.start()


def _start_engine(options: deno.Options) -> DenoEngine | None:
    try:
        return DenoEngine(options, os.getcwd())  # noqa: PTH109 (a string is what is needed)
    except (OSError, ImportError):
        return None  # the kernel tries again, and reports the error to the client


def _interrupted() -> CellError:
    return CellError("Interrupted", "the code was interrupted")


if __name__ == "__main__":
    run(sys.argv[1], json.loads(sys.argv[2]))
