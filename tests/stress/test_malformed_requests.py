"""Requests that are malformed in every way, to every route: each is answered, and with no failure.

A client's mistake is the client's to mend: it is told so by a status below 500, in a bounded
time, and the log has no traceback of it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentdouble import Emulator
from tests.stress.malformed.judging import Tracebacks, wrong_with
from tests.stress.malformed.requests import Made, make
from tests.stress.malformed.target import Target
from tests.stress.malformed.targets import KEY, RUNTIME, SERVICE, open_session, targets_of
from tests.stress.malformed.wire import HungError, exchange
from tests.stress.tally import Stress

pytestmark = [pytest.mark.once, pytest.mark.slow]

_AT_ONCE = 8
_BETWEEN = 100  # requests, after which the session is looked after: some of them end it


@pytest.fixture(scope="module")
def double(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """A double with everything that requests go to; nothing is signed, so that bodies are read."""
    served: Path = tmp_path_factory.mktemp("served")
    runtime = {
        "name": RUNTIME,
        "command": "python3 -m http.server --bind 127.0.0.1 $PORT",
        "directory": str(served),
        "min_instances": 1,
    }
    with Emulator(
        runtimes=[runtime], check_signatures=False, max_browsers=0, exec_timeout_s=10
    ) as emulator:
        yield emulator


@pytest.fixture
def tracebacks() -> Iterator[Tracebacks]:
    """What the process logs while a test runs, at the level at which a double is served."""
    handler, root = Tracebacks(), logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield handler
    root.removeHandler(handler)
    root.setLevel(before)


def _prepare(double: Emulator) -> dict[str, str]:
    if SERVICE not in {one.name for one in double.mcp.list()}:
        double.mcp.create(SERVICE, f"{double.url}/mcp", key=KEY)
    return open_session(double)


def test_malformed_requests(stress: Stress, double: Emulator, tracebacks: Tracebacks) -> None:
    """Each is answered within its bound, none with an unexplained 5xx, none with a traceback."""
    host = double.url.partition("://")[2]
    left = stress.scale(600, 20_000)
    statuses: dict[str, int] = {}
    while left > 0:
        targets = targets_of(double, _prepare(double))
        for _ in range(min(left, 10 * _BETWEEN) // _BETWEEN):
            made = [_made(targets, host, stress.random) for _ in range(_BETWEEN)]
            asyncio.run(_send(double, made, stress, statuses))
            _tell_log(stress, tracebacks, made)
            left -= _BETWEEN
    stress.figures.update(statuses)


def _made(targets: list[Target], host: str, chance: random.Random) -> tuple[Target, Made]:
    target = chance.choice(targets)
    return target, make(target, host, chance)


async def _send(
    double: Emulator, made: list[tuple[Target, Made]], stress: Stress, statuses: dict[str, int]
) -> None:
    port = int(double.url.rpartition(":")[2])
    waiting = iter(made)

    async def work() -> None:
        for target, one in waiting:
            stress.tried += 1
            wrong = await _judged(port, one, statuses)
            if wrong is not None:
                stress.failed(f"{target.path} ({one.kind}): {wrong} to {one.data[:600]!r}")

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))


async def _judged(port: int, one: Made, statuses: dict[str, int]) -> str | None:
    """Return what was wrong with the answer to a request, if anything."""
    try:
        answer = await exchange(port, one.data, ends=one.ends)
    except HungError as error:
        return str(error)
    kind = "closed" if answer.status is None else f"{answer.status // 100}xx"
    statuses[kind] = statuses.get(kind, 0) + 1
    return wrong_with(one, answer)


def _tell_log(stress: Stress, log: Tracebacks, made: list[tuple[Target, Made]]) -> None:
    """Count what the log has to say of the last requests that is more than a line."""
    for text in log.found:
        paths = sorted({f"{target.path} ({one.kind})" for target, one in made})
        stress.failed(f"logged: {text[:100]} ... {text[-2000:]} after one of {paths[:5]}")
    log.found.clear()
