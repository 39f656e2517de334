"""The reference applications: what a target must run for checks that look inside an application.

The field ``do`` of the payload selects what the first one does:

=============== ===================================================================
``echo``        (default) returns payload and headers as the application saw them, as JSON
``say``         returns ``prompt`` itself
``fail``        raises, with ``prompt`` as the message
``stream``      yields each of ``chunks``; with ``gate``, the next one only when released
``release``     lets the stream of that ``gate`` go on by one chunk
``fail_late``   yields each of ``chunks``, then raises
``run_code``    runs ``prompt`` in the session's sandbox and returns the result of 2.7
``block``       blocks its event loop until the ping function has been called meanwhile
=============== ===================================================================

The second one has an entrypoint and no ping function. The third, of MCP, is in
``reference_tools``, the fourth, of A2A, in ``reference_executor``.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

import agentdouble
from doublecheck.contracts.reference_executor import reference_executor
from doublecheck.contracts.reference_tools import reference_tools

if TYPE_CHECKING:
    from agentdouble import A2AApp, MCPApp, SimpleApp

NAME = "reference"
BARE_NAME = "reference-bare"
PING = "reference application"
BUSY = "reference application, busy"
BLOCKED_AT_MOST_S = 5.0
READ_WITHIN_S = 5.0

Payload = Mapping[str, Any]


def reference_apps() -> tuple[SimpleApp, SimpleApp, MCPApp, A2AApp]:
    """Return the reference application, that without a ping function, and those of MCP and A2A."""
    return reference_app(), bare_app(), reference_tools(), reference_executor()


def reference_app() -> SimpleApp:
    """Return the reference application."""
    app = agentdouble.SimpleApp(NAME)
    deeds = _Deeds()

    @app.entrypoint
    async def entrypoint(payload: dict[str, Any], headers: dict[str, str]) -> Any:
        do = payload.get("do", "echo")
        if do == "stream":
            return deeds.stream(payload)
        if do == "fail_late":
            return fail_late(payload)
        if do == "echo":
            return json.dumps({"payload": payload, "headers": headers})
        return await getattr(deeds, do)(payload)

    @app.ping
    def ping() -> str:
        return deeds.ping()

    return app


def bare_app() -> SimpleApp:
    """Return an application that has an entrypoint and nothing else."""
    app = agentdouble.SimpleApp(BARE_NAME)

    @app.entrypoint
    async def entrypoint(payload: dict[str, Any], headers: dict[str, str]) -> str:
        return str(payload["prompt"])

    return app


class _Deeds:
    def __init__(self) -> None:
        self._gates: dict[str, asyncio.Semaphore] = {}
        self._blocked = threading.Event()
        self._pinged = threading.Event()

    async def say(self, payload: Payload) -> str:
        return str(payload["prompt"])

    async def fail(self, payload: Payload) -> str:
        raise RuntimeError(payload["prompt"])

    async def run_code(self, payload: Payload) -> str:
        return await asyncio.to_thread(agentdouble.run_code, payload["prompt"])

    async def stream(self, payload: Payload) -> AsyncIterator[str]:
        gate = payload.get("gate")
        if gate is None:
            for chunk in payload["chunks"]:
                yield chunk
            return
        released = self._gates[gate] = asyncio.Semaphore(0)
        try:
            for chunk in payload["chunks"]:
                yield chunk
                await asyncio.wait_for(released.acquire(), READ_WITHIN_S)
        except asyncio.TimeoutError:
            raise RuntimeError(f"{chunk!r} was not read within {READ_WITHIN_S:g} s") from None
        finally:
            del self._gates[gate]

    async def release(self, payload: Payload) -> str:
        gate = self._gates.get(payload["gate"])
        if gate is None:
            return "no such stream"
        gate.release()
        return "released"

    async def block(self, _payload: Payload) -> str:
        self._pinged.clear()
        self._blocked.set()
        pinged = self._pinged.wait(BLOCKED_AT_MOST_S)  # blocks the loop on purpose
        self._blocked.clear()
        return BUSY if pinged else "nobody pinged"

    def ping(self) -> str:
        if not self._blocked.is_set():
            return PING
        self._pinged.set()
        return BUSY


async def fail_late(payload: Payload) -> AsyncIterator[str]:
    """Yield the chunks, then raise."""
    for chunk in payload["chunks"]:
        yield chunk
    raise RuntimeError(payload["prompt"])
