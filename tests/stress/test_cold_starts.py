"""The first requests of a double, many at once, as soon as it answers at all."""

from __future__ import annotations

import asyncio
import itertools
import signal
from collections.abc import Callable, Iterator, Sequence

import httpx
import pytest

from tests.agentdouble.cli.conftest import CommandLine, Serving, command_line_in, serving
from tests.stress.first_calls import AGENT, APPLICATION, DECLARED, KEYS, WAYS_IN, Call, Fresh
from tests.stress.tally import Stress

pytestmark = [pytest.mark.once, pytest.mark.slow]

AT_ONCE = (4, 12)
PATIENCE_S = 120.0

# What it imports, the double imports as well, when it first needs it; neither waits for the other.
AGENT_CODE = """
import asyncio

import jupyter_client.manager
import mcp.server.lowlevel
import websockets.asyncio.client
import httpx

from agentdouble import run_code


async def root_agent(message, session):
    yield await asyncio.to_thread(run_code, message.text)
"""
APPLICATION_CODE = """
from agentdouble import SimpleApp, run_code

app = SimpleApp("app")


@app.entrypoint
async def run(payload, headers):
    return run_code(payload["prompt"])
"""
SETTINGS = f"""
[[runtimes]]
name = "{DECLARED}"
application = "application:app"
"""


@pytest.fixture
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Serving]]:
    """Give what serves a double with agents, applications and a runtime of its own."""
    command_line = command_line_in(tmp_path_factory.mktemp("cold"))
    _write_sources(command_line)
    command_line.environment["AGENTDOUBLE_ACCESS_KEY"] = KEYS.access_key
    command_line.environment["AGENTDOUBLE_SECRET_KEY"] = KEYS.secret_key
    with serving(command_line) as serve:
        yield lambda: serve(
            "--quiet", "--agents", "agents", "a=shipped:app", f"{APPLICATION}=application:app"
        )


def _write_sources(command_line: CommandLine) -> None:
    folder = command_line.folder
    for app, code in (
        (AGENT, AGENT_CODE),
        ("coder", "from agentdouble.agents.shipped.coder import root_agent\n"),
    ):
        (folder / "agents" / app).mkdir(parents=True)
        (folder / "agents" / app / "agent.py").write_text(code)
    (folder / "shipped.py").write_text(
        "from agentdouble.apps.hosted import coder_app\napp = coder_app()\n"
    )
    (folder / "application.py").write_text(APPLICATION_CODE)
    (folder / "agentdouble.toml").write_text(SETTINGS)


def test_the_first_calls_of_each_way_in(stress: Stress, start: Callable[[], Serving]) -> None:
    """As many at once as a client has that starts with several sessions."""
    ways = list(WAYS_IN) if stress.long else [stress.random.choice(list(WAYS_IN))]
    for way in ways:
        for at_once in itertools.islice(itertools.cycle(AT_ONCE), stress.scale(1, 30)):
            _try(stress, start(), [way] * at_once)


def test_the_first_calls_of_all_ways_in(stress: Stress, start: Callable[[], Serving]) -> None:
    """Each needs something that others need, too."""
    for _ in range(stress.scale(1, 30)):
        ways = list(WAYS_IN)
        stress.random.shuffle(ways)
        _try(stress, start(), ways)


def _try(stress: Stress, served: Serving, ways: Sequence[str]) -> None:
    """Ask a double for all of that at once, and end it."""
    double = Fresh(served.url)
    calls = [WAYS_IN[way](double) for way in ways]
    faults = asyncio.run(_at_once(served.url, calls))
    stress.tried += len(ways)
    for way, fault in zip(ways, faults, strict=True):
        if fault is not None:
            stress.failed(f"{way}: {fault}")
    code, _, log = served.stop(signal.SIGTERM)
    if code or "Traceback" in log:
        stress.failed(f"{ways[0]}, {len(ways)} at once: ended with {code} and said {log[-2000:]}")


async def _at_once(url: str, calls: Sequence[Call]) -> list[str | None]:
    async with httpx.AsyncClient(timeout=PATIENCE_S, trust_env=False) as client:
        health = await client.get(f"{url}/_emulator/health")
        assert health.status_code == 200, health.text
        return list(await asyncio.gather(*(_fault(client, call) for call in calls)))


async def _fault(client: httpx.AsyncClient, call: Call) -> str | None:
    try:
        return call.fault(await client.send(call.request))
    except httpx.HTTPError as error:
        return f"{call.request.url}: {error!r}"
