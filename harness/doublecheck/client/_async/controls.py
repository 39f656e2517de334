"""The clock of a double, the faults that it injects into calls, and its model.

Faults test how code handles a failing platform. Operations have the names of the specification:
``InvokeTool`` or another action, ``invoke``, ``ping``, ``run``, ``run_sse``, ``mcp:<tool>``,
``a2a:message/send``, or a path, ``POST /v1/bash/exec``, in which ``*`` matches one segment and
``**`` the rest of the path.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from doublecheck.client._async.connection import AsyncConnection
from doublecheck.values.double import ArmedFault, ClockTime, ModelRequests
from doublecheck.wire import admin
from doublecheck.wire.admin import FaultPlan, ModelState
from doublecheck.wire.calls import Call

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

WITHIN_S = 10.0


class Which(TypedDict, total=False):
    """The calls of the operation that get a fault.

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
        return await self._connection.call(admin.arm(self._connection.target, document))

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
        **filters: Unpack[Which],
    ) -> ArmedFault:
        """Refuse a call with its surface's error format or the given body; nothing is executed."""
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

    async def plan(self) -> FaultPlan:
        """Return the armed faults with their counts, and the operations called meanwhile."""
        return await self._connection.call(admin.plan(self._connection.target))

    async def wait(
        self, fault: ArmedFault, *, fired: int = 1, within_s: float = WITHIN_S
    ) -> ArmedFault:
        """Wait until a fault has fired ``fired`` times. Raise FaultError on timeout."""
        target = self._connection.target
        return await self._connection.call(admin.wait(target, fault.id, fired, within_s))

    async def release(self, fault: ArmedFault) -> ArmedFault:
        """Release the calls that a fault delays."""
        return await self._connection.call(admin.release(self._connection.target, fault.id))

    async def disarm(self, fault: ArmedFault) -> ArmedFault:
        """Disarm a fault and return its final state."""
        return await self._connection.call(admin.disarm(self._connection.target, fault.id))

    async def clear(self) -> FaultPlan:
        """Disarm all faults and return their final states."""
        return await self._connection.call(admin.clear(self._connection.target))

    async def _arm(self, kind: str, operation: str, filters: Which, **fields: Any) -> ArmedFault:
        given_fields = {name: value for name, value in fields.items() if value is not None}
        return await self.arm(kind, operation, **given_fields, **filters)

    def __repr__(self) -> str:
        return f"<AsyncPlatformFaults of {self._connection.target.url}>"


class AsyncPlatformClock:
    """A double's clock. On a live platform every method raises NotADoubleError."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self._seen: ClockTime | None = None

    async def now(self) -> dt.datetime:
        """Return the platform's time, in UTC."""
        return await self._time(admin.clock(self._connection.target))

    async def advance(
        self,
        by: dt.timedelta | None = None,
        *,
        seconds: float = 0,
        minutes: float = 0,
        hours: float = 0,
        days: float = 0,
    ) -> dt.datetime:
        """Advance the platform's clock, wait for expired sessions to end, and return the time."""
        step = admin.duration(by, seconds=seconds, minutes=minutes, hours=hours, days=days)
        return await self._time(admin.advance(self._connection.target, step))

    async def freeze(self) -> AsyncFrozenClock:
        """Stop the platform's clock until ``unfreeze()``, a reset, or the end of a with block.

        Meanwhile only ``advance()`` moves it: ``async with await clock.freeze():``.
        """
        await self._time(admin.freeze(self._connection.target, True))
        return AsyncFrozenClock(self)

    async def unfreeze(self) -> dt.datetime:
        """Restart the platform's clock from its frozen time, and return the time."""
        return await self._time(admin.freeze(self._connection.target, False))

    async def _time(self, call: Call[ClockTime]) -> dt.datetime:
        self._seen = await self._connection.call(call)
        return self._seen.now

    def __repr__(self) -> str:
        return f"<AsyncPlatformClock {self._seen or self._connection.target.url}>"


class AsyncFrozenClock:
    """A stopped clock of a double. It runs again at the end of a with block."""

    def __init__(self, clock: AsyncPlatformClock) -> None:
        self._clock = clock

    async def __aenter__(self) -> AsyncPlatformClock:
        return self._clock

    async def __aexit__(self, *_: object) -> None:
        await self._clock.unfreeze()

    def __repr__(self) -> str:
        return repr(self._clock)


Times = int | Literal["all"]


class AsyncModelScript:
    """The answers of a double's model to the requests of one condition, in order.

    Each is used once, or ``times`` times. In a text, ``{{result}}`` is the result of the tool that
    was called last, and ``{{output}}`` the output of the code if that tool is run_code. On a live
    platform every method raises NotADoubleError.
    """

    def __init__(self, connection: AsyncConnection, when: Mapping[str, str]) -> None:
        self._connection = connection
        self._when = when

    async def reply(self, text: str, *, times: Times = 1) -> Self:
        """Answer with a text."""
        return await self.answer(text, times=times)

    async def call_tool(
        self, name: str, arguments: Mapping[str, Any] | str | None = None, /, **fields: Any
    ) -> Self:
        """Answer with a call of a tool: ``call_tool("run_code", code="6*7")``.

        The request must offer the tool. Arguments that are text are sent as they are, so a test can
        have malformed ones.
        """
        return await self.answer(calls=[(name, fields if arguments is None else arguments)])

    async def answer(
        self,
        text: str = "",
        *,
        calls: Sequence[tuple[str, Mapping[str, Any] | str]] = (),
        times: Times = 1,
    ) -> Self:
        """Answer with a text, with calls of tools, or with both."""
        named = [{"name": name, "arguments": arguments} for name, arguments in calls]
        step = {"text": text, "calls": named, "times": times}
        document = {"when": dict(self._when), "steps": [step]}
        await self._connection.call(admin.change_model(self._connection.target, document))
        return self

    def __repr__(self) -> str:
        conditions = ", ".join(f"{name}={value!r}" for name, value in self._when.items())
        return f"<{type(self).__name__} {conditions or 'for any request'}>"


class AsyncPlatformModel(AsyncModelScript):
    """The model of a double, in the wire forms of OpenAI and Gemini.

    ``reply()`` and ``call_tool()`` add answers to any request. Those of ``when()`` come first.
    """

    def __init__(self, connection: AsyncConnection) -> None:
        super().__init__(connection, {})

    def when(
        self,
        *,
        contains: str | None = None,
        model: str | None = None,
        tool: str | None = None,
        after: str | None = None,
    ) -> AsyncModelScript:
        """Return the script for some requests.

        ``contains`` is a part of the last text of the user, in any case of letters, ``model`` the
        requested model, ``tool`` the name of an offered tool, and ``after`` the name of the tool
        whose result the request ends with. All conditions must hold.
        """
        fields = {"contains": contains, "model": model, "tool": tool, "after": after}
        when = {name: value for name, value in fields.items() if value is not None}
        return AsyncModelScript(self._connection, when)

    async def serve(self, *names: str) -> None:
        """Let only these models exist; requests for others get an error. None: all exist."""
        document = {"models": list(names)}
        await self._connection.call(admin.change_model(self._connection.target, document))

    async def state(self) -> ModelState:
        """Return the requests, and the answers that no request has used."""
        return await self._connection.call(admin.model_state(self._connection.target))

    # sync only: @property
    async def requests(self) -> ModelRequests:
        """The requests to the model, oldest first; the last 200 are there."""
        return (await self.state()).requests

    async def clear(self) -> None:
        """Remove every answer."""
        await self._connection.call(admin.clear_model(self._connection.target))

    async def record(self, upstreams: Mapping[str, Mapping[str, str]]) -> None:
        """Pass requests on to real endpoints and record their answers, until a reset.

        ``upstreams`` has an endpoint for ``openai`` or ``gemini``, each with ``url``, and the
        ``key`` for its ``header``.
        """
        document = {"upstreams": {name: dict(fields) for name, fields in upstreams.items()}}
        await self._connection.call(admin.start_recording(self._connection.target, document))

    async def replay(self, exchanges: Sequence[Mapping[str, Any]]) -> None:
        """Answer with what was recorded, until a reset; another request gets an error."""
        document = {"exchanges": list(exchanges)}
        await self._connection.call(admin.start_recording(self._connection.target, document))

    async def recording(self) -> list[dict[str, Any]]:
        """Return the requests that were recorded, each with its answer, without secrets."""
        return await self._connection.call(admin.recording(self._connection.target))
