"""The official suite against servers on the TypeScript SDK: directly, and through services."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from agentdouble import Emulator
from agentdouble.mcp_services import CommandBackend
from tests import ports
from tests.mcp_official.keyed import keyed
from tests.mcp_official.suite import Outcome, Suite, find_node
from tests.real_servers.running import KEY, Result, compared, served, tried
from tests.real_servers.servers import HERE, ON_TYPESCRIPT, Npm

SDK_EXAMPLES = ("simpleStreamableHttp", "honoWebStandardStreamableHttp")  # over HTTP alone


def results(double: Emulator, cache: Path, only: list[str]) -> Iterator[Result]:
    """Compare the suite's results directly and through a service."""
    chosen = {f"suite: {name}": value for name, value in ON_TYPESCRIPT.items()}
    chosen = {name: value for name, value in chosen.items() if not only or name in only}
    if not chosen:
        return
    folder = cache / "suite"
    folder.mkdir(exist_ok=True)
    suite = Suite(find_node(), folder)
    suite.install()
    for name, environment in chosen.items():
        environment.make(cache)
        yield tried(name, lambda: _compare(double, suite, name, environment, cache))  # noqa: B023


def _compare(double: Emulator, suite: Suite, name: str, server: Npm, cache: Path) -> str:
    service = name.partition(" ")[2]
    words = () if service in SDK_EXAMPLES else ("streamableHttp",)
    with ExitStack() as stack:
        addresses = {"directly": stack.enter_context(served(server, cache, words))}
        double.mcp.create(service, addresses["directly"], key=KEY)
        proxy = stack.enter_context(ports.served(keyed(double.url, KEY)))
        addresses["through the service"] = f"{proxy}/mcp/{service}"
        if words:
            command = CommandBackend((*server.command(cache), "stdio"), HERE)
            double.mcp.create(f"{service}-stdio", command, key=KEY)
            addresses["over stdio"] = f"{proxy}/mcp/{service}-stdio"
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        figures, outcomes = compared(suite, addresses, folder)
    directly, *others = outcomes.values()
    for other in others:
        differing = _differing(directly, other)
        assert not differing, f"not the same: {differing}"
    return figures


def _differing(outcome: Outcome, other: Outcome) -> dict[str, object]:
    """Return the scenarios that only one passes; the double checks Host for any server."""
    return {
        name: (outcome.scored.get(name), other.scored.get(name))
        for name in (outcome.scored.keys() | other.scored.keys()) - {"dns-rebinding-protection"}
        if bool(outcome.scored.get(name, True)) != bool(other.scored.get(name, True))
    }
