"""What an armed fault does to code while it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from agentdouble import faults
from agentdouble.sandbox.kernel import Kernel, MidRunFault


def midway(expire: Callable[[], Awaitable[None]]) -> MidRunFault | None:
    """Return what is to happen while the code at hand runs, None for nothing.

    ``expire`` has its session's instance reach the deadline.
    """
    fault = faults.injected_fault()
    if fault is None:
        return None

    async def happen(kernel: Kernel) -> None:
        fault.happened()
        await (kernel.crash() if fault.kind == "kill_kernel" else expire())

    return MidRunFault(fault.after, happen)
