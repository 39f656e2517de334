"""Run servers behind services, and compare the results."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentdouble import Emulator
from agentdouble.mcp_services import CommandBackend
from tests import ports
from tests.mcp_official.suite import Outcome, Suite
from tests.real_servers.servers import AUTO, HERE, LEGACY, Environment, Server
from tests.real_servers.talking import talk

KEY = "service-key"
REVISION = "2025-11-25"  # the newest that the SDK of TypeScript 1 knows
_START_S = 60.0


@dataclass(frozen=True)
class Result:
    """A row of the table; ``problem`` is empty if nothing differs."""

    server: str
    ran: str
    problem: str = ""


@contextmanager
def served(environment: Environment, cache: Path, words: Sequence[str]) -> Iterator[str]:
    """Run a server over HTTP; yield its address."""
    with ports.reserved() as port, (cache / "server.log").open("ab") as log:
        variables = {"PORT": str(port), "MCP_PORT": str(port)}
        command = [
            *environment.command(cache),
            *(word.replace("$PORT", str(port)) for word in words),
        ]
        process = subprocess.Popen(
            command, env={**os.environ, **variables}, stdout=log, stderr=log, start_new_session=True
        )
        try:
            _await(process, port)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()
            process.wait()


def _await(process: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError("The server does not listen; server.log says why.")


def over_stdio(double: Emulator, server: Server, cache: Path) -> Iterator[Result]:
    """Use a server over standard input and output."""
    name = f"stdio-{server.name.replace(' ', '-')}"
    command = (*server.environment.command(cache), *server.stdio)
    double.mcp.create(name, CommandBackend(command, HERE, server.variables), key=KEY)
    yield from _both_eras(double, server, name, "stdio")
    double.mcp.delete(name)


def over_http(double: Emulator, server: Server, cache: Path) -> Iterator[Result]:
    """Use a server over HTTP, if it has that."""
    if server.http is None:
        return
    name = f"http-{server.name.replace(' ', '-')}"
    with served(server.environment, cache, server.http) as url:
        double.mcp.create(name, url, key=KEY)
        yield from _both_eras(double, server, name, "HTTP")
        double.mcp.delete(name)


def _both_eras(double: Emulator, server: Server, name: str, transport: str) -> Iterator[Result]:
    for mode, calls in ((AUTO, server.modern_calls), (LEGACY, server.calls)):
        label = f"{server.name}, {transport}, client {mode}"

        def use() -> str:
            version, ran = talk(f"{double.url}/mcp/{name}", KEY, mode, calls)  # noqa: B023
            return f"{version}: {', '.join(ran)}"

        yield tried(label, use)


def tried(label: str, use: Callable[[], str]) -> Result:
    """Run a function and return its result as a row."""
    try:
        return Result(label, use())
    except Exception:
        return Result(label, "", traceback.format_exc()[-2500:])


def compared(
    suite: Suite, addresses: Mapping[str, str], results: Path
) -> tuple[str, Mapping[str, Outcome]]:
    """Run the suite against each address; return the steps and the outcomes."""
    runs = {name: suite.revision(url, REVISION, results / name) for name, url in addresses.items()}
    figures = [
        f"{name} {len(outcome.scored) - len(outcome.failed)}/{len(outcome.scored)}"
        for name, outcome in runs.items()
    ]
    return ", ".join(figures), runs
