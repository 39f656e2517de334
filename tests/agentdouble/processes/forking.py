"""A fork server for tests, and requests to it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

import psutil

from agentdouble.processes.fork_server.client import ForkServerClient
from agentdouble.processes.fork_server.protocol import ForkRequest

ROOT = Path(__file__).parents[3]


def with_fork_server(
    test: Callable[[ForkServerClient, psutil.Process, Path], Awaitable[None]],
    kind: Literal["kernels", "commands"] = "kernels",
) -> None:
    """Run a test with a fork server, its guardian and a directory."""

    async def run_test(directory: Path) -> None:
        before = set(psutil.Process().children())
        server = ForkServerClient(kind=kind)
        (process,) = set(psutil.Process().children()) - before
        try:
            await test(server, process, directory)
        finally:
            await server.stop()

    with tempfile.TemporaryDirectory(prefix="t-") as directory:
        asyncio.run(run_test(Path(directory)))


def request_in(directory: Path, name: str, *, padding: int = 0) -> ForkRequest:
    """Return a request for a Python kernel with extra environment variables."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "PADDING": " " * padding}
    return ForkRequest(str(directory / f"{name}.json"), str(directory), environment)


def forked_by(fork_server: psutil.Process) -> set[psutil.Process]:
    """Return the processes that a fork server has forked, but not the one that helps it."""
    return {child for child in fork_server.children() if child.name() != "namespaces"}
