"""Run JavaScript kernels in tests without HTTP."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import psutil

from agentdouble.sandbox.kernel_pool import KernelPool
from agentdouble.sandbox.languages import JAVASCRIPT
from agentdouble.sandbox.process_starter import ProcessStarter
from agentdouble.sandbox.result import CellOutput, ExecutionResult
from agentdouble.settings import Settings

MIB = 1024 * 1024


class Session:
    """One kernel on its own loop; ``memory`` is a setting, ``options`` go to its engine."""

    def __init__(self, memory: int | None = None, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        settings = Settings.load(pool_size=0, javascript_memory_limit=memory)
        self._starter = ProcessStarter(settings)
        self.kernels = KernelPool(self._starter)
        self.workspace = self._starter.workspace()
        language = replace(JAVASCRIPT, config={"JavaScriptKernel": options})
        start = self.kernels.start(language, self.workspace)
        self.kernel = self._loop.run_until_complete(start)

    def __call__(self, code: str, timeout_s: float = 10) -> ExecutionResult:
        """Run code."""
        run = self.kernel.execute(code, timeout_s=timeout_s, output_limit=16 * MIB)
        return self._loop.run_until_complete(run)

    def engine(self) -> psutil.Process:
        """Return the engine's process."""
        self("0")  # it is there when it has answered
        (engine,) = psutil.Process(self.kernel.pid).children()
        return engine

    def close(self) -> None:
        """End the kernel and its loop."""
        self._loop.run_until_complete(self.kernels.close())
        self._loop.run_until_complete(self._starter.close())
        self._loop.close()


def text_of(result: ExecutionResult) -> str:
    """Return the plain text of the result of a cell that succeeded."""
    assert "ok" == result.status, result
    (text,) = (o.data["text/plain"] for o in result.outputs if o.data is not None)
    return str(text)


def streams(result: ExecutionResult) -> list[tuple[str | None, str | None]]:
    return [(o.name, o.text) for o in result.outputs if o.output_type == "stream"]


def failure(result: ExecutionResult) -> CellOutput:
    assert "error" == result.status, result
    assert result.error is not None
    return result.error
