"""What an armed fault does to code while it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from agentdouble import faults
from agentdouble.sandbox.kernel import Kernel, OnBegun


def on_begun(expire: Callable[[], Awaitable[None]]) -> OnBegun | None:
    """Return what is to happen once the code at hand has begun, None for nothing.

    ``expire`` has its session's instance reach the deadline.
    """
    mishap = faults.mishap()
    if mishap is None:
        return None

    async def strike(kernel: Kernel) -> None:
        mishap.happened()
        await (kernel.crash() if mishap.kind == "kill_kernel" else expire())

    return strike
