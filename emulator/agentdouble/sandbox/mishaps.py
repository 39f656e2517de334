"""What an armed fault does to code while it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from agentdouble import faults
from agentdouble.sandbox.kernel import Kernel, Midway


def midway(expire: Callable[[], Awaitable[None]]) -> Midway | None:
    """Return what is to happen while the code at hand runs, None for nothing.

    ``expire`` has its session's instance reach the deadline.
    """
    mishap = faults.mishap()
    if mishap is None:
        return None

    async def happen(kernel: Kernel) -> None:
        mishap.happened()
        await (kernel.crash() if mishap.kind == "kill_kernel" else expire())

    return Midway(mishap.after, happen)
