"""The actions of the reference application.

The field ``do`` of the payload selects one:

=============== ===================================================================
``echo``        (default) returns payload and headers as the application saw them, as JSON
``say``         returns ``prompt`` itself
``fail``        raises, with ``prompt`` as the message
``stream``      yields each of ``chunks``; with ``gate``, each next one only when released
                ``within_s``
``release``     lets the stream with that ``gate`` yield one more chunk
``fail_late``   yields each of ``chunks``, then raises
``run_code``    runs ``prompt`` in the session's sandbox and returns the result of 2.7
``wait``        waits until the ping function has been called twice meanwhile
``block``       does the same and blocks its event loop
``where``       returns which environment and session this is, as JSON
``print``       prints ``prompt`` to standard output and to standard error
``spy``         returns what it can reach of ``neighbour``, given the neighbour's report, as JSON
=============== ===================================================================
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

NAME = "reference"
EXECUTOR_NAME = "reference-executor"
BARE_NAME = "reference-bare"
PING = "reference application"
BUSY = "reference application, busy"
PINGS = (PING, BUSY)
REPLIES = (BUSY, "nobody pinged", "released", "no such stream", "printed")
BUSY_AT_MOST_S = 15.0
READ_WITHIN_S = 20.0  # both bound a check, on a machine that may be busy
ENVIRONMENT = uuid.uuid4().hex  # differs between processes

Payload = Mapping[str, Any]
Headers = Mapping[str, str]
RunCode = Callable[[str, Headers], str]


class Actions:
    """The actions of the reference application. ``run_code(code, headers)`` uses its sandbox."""

    def __init__(self, run_code: RunCode) -> None:
        self._run_code = run_code
        self._gates: dict[str, asyncio.Semaphore] = {}
        self._busy = threading.Event()
        self._pinged = threading.Semaphore(0)

    async def do(self, payload: Payload, headers: Headers) -> str | AsyncIterator[str]:
        """Perform the action that the payload names. Return a string or a stream of strings."""
        do = payload.get("do", "echo")
        actions: dict[str, Callable[[], Any]] = {
            "echo": lambda: json.dumps({"payload": payload, "headers": dict(headers)}),
            "say": lambda: str(payload["prompt"]),
            "fail": lambda: _fail(payload["prompt"]),
            "stream": lambda: self._stream(**payload),
            "release": lambda: self._release(payload["gate"]),
            "fail_late": lambda: _fail_late(payload),
            "run_code": lambda: asyncio.to_thread(self._run_code, payload["prompt"], headers),
            "wait": lambda: asyncio.to_thread(self._wait),
            "block": self._wait,  # blocks the loop on purpose
            "where": lambda: json.dumps(
                {"environment": ENVIRONMENT, "session": headers.get("session_id")}
            ),
            "print": lambda: _print(payload["prompt"]),
            "spy": lambda: json.dumps(reached(payload["neighbour"])),
        }
        if do not in actions:
            raise ValueError(f"The reference application has no action {do!r}.")
        result: str | AsyncIterator[str] = actions[do]()
        return await result if inspect.isawaitable(result) else result

    def ping(self) -> str:
        """Return whether the application is busy, and release the action that waits for a ping."""
        if not self._busy.is_set():
            return PING
        self._pinged.release()
        return BUSY

    async def _stream(
        self,
        chunks: Sequence[str],
        gate: str | None = None,
        within_s: float = READ_WITHIN_S,
        **_others: Any,
    ) -> AsyncIterator[str]:
        released = asyncio.Semaphore(0 if gate else len(chunks))
        if gate:
            self._gates[gate] = released
        try:
            for chunk in chunks:
                yield chunk
                await asyncio.wait_for(released.acquire(), within_s)
        except asyncio.TimeoutError:
            raise RuntimeError(f"{chunk!r} was not read within {within_s:g} s") from None
        finally:
            self._gates.pop(gate or "", None)

    def _release(self, name: str) -> str:
        gate = self._gates.get(name)
        if gate is None:
            return "no such stream"
        gate.release()
        return "released"

    def _wait(self) -> str:
        self._pinged = threading.Semaphore(0)
        self._busy.set()
        # the first ping may have been sent before this began
        pinged = all(self._pinged.acquire(timeout=BUSY_AT_MOST_S) for _ in range(2))
        self._busy.clear()
        return BUSY if pinged else "nobody pinged"


def _print(text: str) -> str:
    for stream in (sys.stdout, sys.stderr):
        print(text, file=stream, flush=True)
    return "printed"


def _fail(message: str) -> None:
    raise RuntimeError(message)


async def _fail_late(payload: Payload) -> AsyncIterator[str]:
    for chunk in payload["chunks"]:
        yield chunk
    raise RuntimeError(payload["prompt"])


def reached(neighbour: Mapping[str, Any]) -> list[str]:
    """Return which of a neighbour's secrets can be reached: none if it is isolated.

    Files in this application's own folders do not count.
    """
    pid, secret = neighbour["pid"], neighbour["secret"]
    files = [path for path in map(Path, neighbour["files"]) if Path.cwd() not in path.parents]
    environments = Path("/proc").glob("[0-9]*/environ")
    places = [str(path) for path in (*files, *environments) if _holds(path, secret)]
    is_there = pid != os.getpid() and _start_time(pid) in ("", neighbour["begun"])
    if is_there and _may_signal(pid):
        places.append(f"its process {pid}, to signal it")
    return places


def _holds(path: Path, secret: str) -> bool:
    """Whether a file can be read and contains the secret."""
    try:
        return secret.encode() in path.read_bytes()
    except (OSError, ValueError):
        return False


def _start_time(pid: int) -> str:
    """Return the start time of a process in clock ticks, or "" if it cannot be read."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _may_signal(pid: int) -> bool:
    try:
        os.kill(pid, 0)  # noqa: TID251 (0 sends no signal)
    except OSError:
        return False
    return True
