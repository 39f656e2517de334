from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from agentdouble import Emulator
from agentdouble.mcp_services import CommandBackend
from tests.agentdouble import mcp_wire
from tests.agentdouble.calling import http

HERE = Path(__file__).parent
KEY = "service-key"


class Services:
    """A double, and services whose backend is ``program.py``."""

    def __init__(self, double: Emulator) -> None:
        self.double = double

    def make(self, name: str, *words: str, **options: Any) -> str:
        """Create a service and return its address."""
        command = (sys.executable, "program.py", name, *words)
        self.double.mcp.create(name, CommandBackend(command, HERE, **options), key=KEY)
        return f"{self.double.url}/mcp/{name}"

    def log(self, name: str) -> str:
        """Return the log of a service."""
        return http.get(f"{self.double.url}/_emulator/mcp-services/{name}/logs?format=text").text


def processes(name: str) -> list[psutil.Process]:
    """Return the processes of a service."""
    live = []
    for process in psutil.Process().children(recursive=True):
        try:
            words = process.cmdline()
        except psutil.Error:
            continue
        if words[1:3] == ["program.py", name]:
            live.append(process)
    return live


def text(result: dict[str, Any]) -> str:
    """Return the text of a tool's result."""
    (content,) = result["content"]
    return str(content["text"])


def call(url: str, session: str, tool: str, **arguments: Any) -> str:
    """Call a tool in a session."""
    return text(mcp_wire.call(url, KEY, session, tool, **arguments))


@pytest.fixture(scope="package")
def services() -> Iterator[Services]:
    """A double for services; each test uses new names."""
    with Emulator(pool_size=0) as double:
        yield Services(double)
