"""Helpers to run session kernels and copies of them in tests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from agentdouble.processes.copies.kernel_snapshot import KernelSnapshot
from agentdouble.sandbox.kernel import Kernel
from agentdouble.sandbox.kernel_pool import KernelPool, PooledKernel
from agentdouble.sandbox.process_starter import ProcessStarter
from agentdouble.settings import Settings


def with_pool(test: Callable[[Source], Awaitable[None]], **settings: Any) -> None:
    """Run a test with a session's kernel that can be copied, then clean up."""

    async def run() -> None:
        starter = ProcessStarter(Settings(pool_size=0, **settings))
        pool = KernelPool(starter)
        try:
            await test(Source(pool, await pool.take()))
        finally:
            await pool.close()
            await starter.close()

    asyncio.run(run())


class Source:
    """A session's kernel and what is needed to copy it."""

    def __init__(self, pool: KernelPool, pooled: PooledKernel) -> None:
        self.pool = pool
        self.kernel, self.workspace = pooled.kernel, pooled.workspace

    async def snapshot(self, *setup: str) -> KernelSnapshot:
        """Run code in the source and take a snapshot."""
        for code in setup:
            assert "" == await error_of(self.kernel, code)
        return await self.pool.snapshot(self.kernel, self.workspace)

    @contextlib.asynccontextmanager
    async def copies(self, *setup: str, count: int = 1) -> AsyncIterator[list[Kernel]]:
        """Run code in the source and copy it."""
        snapshot = await self.snapshot(*setup)
        copies = [await self.pool.copy(snapshot) for _ in range(count)]
        yield [copy.kernel for copy in copies]
        for copy in copies:
            await copy.kernel.kill("the test is over")
        await snapshot.discard()
        await asyncio.wait_for(snapshot.gone, 10)


async def value_of(kernel: Kernel, code: str, timeout_s: float = 30) -> str:
    """Run code and return the text of its outputs or its value."""
    result = await kernel.execute(code, timeout_s=timeout_s, output_limit=1 << 20)
    assert "ok" == result.status, result
    return "".join(out.text or (out.data or {}).get("text/plain", "") for out in result.outputs)


async def error_of(kernel: Kernel, code: str, timeout_s: float = 30) -> str:
    """Run code and return its error as text, empty if there is none."""
    result = await kernel.execute(code, timeout_s=timeout_s, output_limit=1 << 20)
    return "" if result.status == "ok" else f"{result.status}: {result.message}"
