"""The faults that a double injects into calls.

Faults test how code handles a failing platform. Operations have the names of the specification:
``InvokeTool`` or another action, ``invoke``, ``ping``, ``run``, ``run_sse``, ``mcp:<tool>``,
``a2a:message/send``, or a path, ``POST /v1/bash/exec``, in which ``*`` matches one segment and
``**`` the rest of the path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar

from doublecheck.client._async.connection import AsyncConnection
from doublecheck.client.arguments import require
from doublecheck.errors import FaultError
from doublecheck.values.double import ArmedFault, FaultPlan
from doublecheck.wire import admin
from doublecheck.wire.calls import Call

if TYPE_CHECKING:
    import httpx
    from typing_extensions import Unpack

WITHIN_S = 10.0
_MARGIN_S = 30.0  # extra time for the answer to a request that waits

T = TypeVar("T")


class Which(TypedDict, total=False):
    """Which calls of the operation get a fault.

    ``nth`` is the first such call since the fault was armed (1 is the next call), ``every`` the
    step to the following ones, and ``times`` their number or "all". Without ``times`` one call gets
    the fault, or with ``every`` all calls in these steps.
    """

    nth: int
    every: int
    times: int | Literal["all"]


class AsyncPlatformFaults:
    """A double's faults. On a live platform every method raises NotADoubleError.

    The methods that arm a fault raise FaultError if the double does not accept it.
    """

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def arm(self, kind: str, operation: str, **fields: Any) -> ArmedFault:
        """Arm a fault of any kind, with the fields that the double accepts for it."""
        document = {"kind": kind, "operation": operation, **fields}
        return await self._call("POST", "", admin.read_fault, document)

    async def fail(
        self,
        operation: str,
        *,
        status: int = 500,
        code: str | None = None,
        message: str | None = None,
        body: str | None = None,
        headers: Mapping[str, str] | None = None,
        retry_after_s: int | None = None,
        after_execution: bool = False,
        **filters: Unpack[Which],
    ) -> ArmedFault:
        """Refuse a call with its surface's error format or the given body.

        Nothing is executed; with ``after_execution``, the call is executed all the same.
        """
        return await self._arm(
            "fail",
            operation,
            filters,
            status=status,
            code=code,
            message=message,
            body=body,
            headers=None if headers is None else dict(headers),
            retry_after_s=retry_after_s,
            after_execution=after_execution,
        )

    async def gateway(
        self, operation: str, *, status: Literal[502, 503, 504] = 502, **filters: Unpack[Which]
    ) -> ArmedFault:
        """Answer a call with a gateway's HTML error page; nothing is executed."""
        return await self._arm("gateway", operation, filters, status=status)

    async def reset(self, operation: str, **filters: Unpack[Which]) -> ArmedFault:
        """Reset a call's connection; nothing is executed."""
        return await self._arm("reset", operation, filters)

    async def delay(
        self,
        operation: str,
        *,
        seconds: float | None = None,
        after_execution: bool = False,
        **filters: Unpack[Which],
    ) -> ArmedFault:
        """Delay a call, or its answer with ``after_execution``, by at most 60 s of real time.

        Without ``seconds`` the delay lasts until ``release(fault)``.
        """
        return await self._arm(
            "delay", operation, filters, seconds=seconds, after_execution=after_execution
        )

    async def cut(
        self,
        operation: str,
        *,
        after: int = 0,
        after_bytes: int | None = None,
        **filters: Unpack[Which],
    ) -> ArmedFault:
        """Close the connection during an answer, after some events of its stream or some bytes."""
        return await self._arm("cut", operation, filters, after=after, after_bytes=after_bytes)

    async def lose_answer(self, operation: str, **filters: Unpack[Which]) -> ArmedFault:
        """Execute a call and close its connection before any of the answer."""
        return await self._arm("lose_answer", operation, filters)

    async def wrong_json(
        self,
        operation: str = "InvokeTool",
        *,
        text: str | None = None,
        without: Sequence[str] = (),
        **filters: Unpack[Which],
    ) -> ArmedFault:
        """Run the code and answer with a Result.Result that is ``text``, or lacks fields.

        ``without`` names the fields: ``["data.outputs"]``. With neither, the JSON is cut off.
        """
        return await self._arm("wrong_json", operation, filters, text=text, without=list(without))

    async def kill_kernel(
        self, operation: str = "InvokeTool", *, after: int = 0, **filters: Unpack[Which]
    ) -> ArmedFault:
        """Kill the kernel when it starts to run the code, or after ``after`` output messages."""
        return await self._arm("kill_kernel", operation, filters, after=after)

    async def expire_instance(
        self, operation: str = "InvokeTool", *, after: int = 0, **filters: Unpack[Which]
    ) -> ArmedFault:
        """Let the session's instance expire while it runs the code, or after ``after`` messages."""
        return await self._arm("expire_instance", operation, filters, after=after)

    async def fail_start(
        self, operation: str = "CreateSession", **filters: Unpack[Which]
    ) -> ArmedFault:
        """Let the session that a call creates fail to start; the call itself succeeds.

        GetSession says Creating, then Failed, and code in the session is refused.
        """
        return await self._arm("fail_start", operation, filters)

    async def plan(self) -> FaultPlan:
        """Return the armed faults with their counts, and the operations called since."""
        return await self._call("GET", "", admin.read_fault_plan)

    async def wait(
        self, fault: ArmedFault, *, fired: int = 1, within_s: float = WITHIN_S
    ) -> ArmedFault:
        """Wait until a fault has fired ``fired`` times. Raise FaultError on timeout."""
        path = f"{_path(fault, 'wait')}?fired={fired}&within_s={within_s}"
        timeout_s = within_s + _MARGIN_S
        waited = await self._call("GET", path, admin.read_fault, timeout_s=timeout_s)
        if waited.fired < fired:
            raise FaultError(
                f"{waited.described} fired {waited.fired} of {fired} times within {within_s:g} s; "
                f"its operation was called {waited.calls} times."
            )
        return waited

    async def release(self, fault: ArmedFault) -> ArmedFault:
        """Release the calls that a fault delays."""
        return await self._call("POST", f"{_path(fault, 'release')}/release", admin.read_fault)

    async def disarm(self, fault: ArmedFault) -> ArmedFault:
        """Disarm a fault and return its final state."""
        return await self._call("DELETE", _path(fault, "disarm"), admin.read_fault)

    async def clear(self) -> FaultPlan:
        """Disarm all faults and return their final states."""
        return await self._call("DELETE", "", admin.read_fault_plan)

    async def _arm(self, kind: str, operation: str, filters: Which, **fields: Any) -> ArmedFault:
        given_fields = {name: value for name, value in fields.items() if value is not None}
        return await self.arm(kind, operation, **given_fields, **filters)

    async def _call(
        self,
        method: str,
        path: str,
        read: Callable[[httpx.Response], T],
        document: Any = None,
        timeout_s: float | None = None,
    ) -> T:
        target, path = self._connection.target, f"/faults{path}"
        request = admin.request(target, "Arming faults", method, path, document, timeout_s)
        return await self._connection.call(Call(request, read))

    def __repr__(self) -> str:
        return f"<AsyncPlatformFaults of {self._connection.target.url}>"


def _path(fault: ArmedFault, method: str) -> str:
    require(fault, ArmedFault, method, "the fault that arm() or fail() returned")
    return f"/{fault.id}"
