"""Callers who close their connections while what they asked for starts; nothing of it stays."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

if sys.platform != "linux":
    pytest.skip("counts descriptors and processes as Linux shows them", allow_module_level=True)

from agentdouble import Emulator
from agentdouble.invoke_tool import HttpRequest
from tests.agentdouble.calling import body_of, eventually, home_of, http, result, signed
from tests.stress.tally import Stress

pytestmark = [pytest.mark.once, pytest.mark.slow]

STARTS = {
    "python3": "print(1)",
    "javascript": "console.log(1)",
    "typescript": "console.log(1 as number)",
    "bash": "echo 1",
}
AT_ONCE = 8
LONGEST_S = 3.0  # by then many have their answer


@dataclass(frozen=True)
class Present:
    """What there is of a double beside its listening socket."""

    processes: int
    descriptors: int
    workspaces: int


class Seen:
    """Looks at a double at rest."""

    def __init__(self, double: Emulator, root: Path) -> None:
        self._double = double
        self._root = root

    def now(self) -> Present:
        gc.collect()  # sockets that were let go of are closed now
        return Present(
            len(psutil.Process().children(recursive=True)),
            len(os.listdir("/proc/self/fd")),  # noqa: PTH208 (names are all that is needed)
            sum(one.is_dir() for one in self._root.iterdir()),
        )

    def after_reset(self) -> Present:
        http.post(f"{self._double.url}/_emulator/reset").raise_for_status()
        return self.now()


async def leave(request: HttpRequest, patience_s: float) -> bool:
    """Send a request and leave after a while; return whether it was answered by then."""
    place = urlsplit(request.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    headers = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    path = f"{place.path or '/'}?{place.query}"
    writer.write(f"{request.method} {path} HTTP/1.1\r\n{headers}".encode())
    writer.write(f"Content-Length: {len(request.body)}\r\n\r\n".encode() + request.body)
    try:
        return bool(await asyncio.wait_for(reader.read(1), patience_s))
    except asyncio.TimeoutError:
        return False
    finally:
        writer.transport.abort()


async def leave_all(requests: list[tuple[HttpRequest, float]]) -> int:
    """Have some callers at a time leave; return how many were answered before."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(request: HttpRequest, patience_s: float) -> bool:
        async with room:
            return await leave(request, patience_s)

    return sum(await asyncio.gather(*(one(*asked) for asked in requests)))


def request_of(double: Emulator, session: str, language: str) -> HttpRequest:
    request = signed(double, body_of(double, STARTS[language], session, language=language))
    headers = dict(request.headers)
    headers.setdefault("Host", urlsplit(request.url).netloc)
    return HttpRequest(request.method, request.url, headers, request.body)


def test_callers_who_leave_while_their_sessions_start(stress: Stress) -> None:
    """Processes, descriptors and directories are as many as before, once the sessions are gone."""
    callers = stress.scale(12, 500)
    with Emulator(pool_size=0, max_instances=2 * callers) as double:
        for language in STARTS:
            result(double, STARTS[language], "first", language=language)
        seen = Seen(double, home_of(double, "first").parent.parent)
        before = seen.after_reset()
        for language in STARTS:
            moments = [stress.random.random() ** 2 * LONGEST_S for _ in range(callers)]
            asked = [
                (request_of(double, f"{language}-{i}", language), patience_s)
                for i, patience_s in enumerate(moments)
            ]
            stress.tried += callers
            stress.figures[f"{language} answered"] = asyncio.run(leave_all(asked))
        try:
            after = eventually(seen.after_reset, lambda found: found == before)
        except AssertionError:
            after = seen.now()
        stress.figures["left"] = f"{after} of {before}"
        if after != before:
            stress.lost(f"{after} are there, and {before} were before")
        answered = result(double, "print(6 * 7)", "last")["Result"]
        if "42" not in answered:
            stress.failed(answered)
