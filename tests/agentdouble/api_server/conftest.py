from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from agentdouble import Emulator
from tests.agentdouble.api_server.wire import AGENTS, run, run_body, sessions_of
from tests.agentdouble.calling import http


@pytest.fixture(scope="session")
def _served() -> Iterator[tuple[Emulator, ModuleType]]:
    with Emulator(agents=AGENTS) as double:
        http.post(f"{double.url}{sessions_of('first', 'scripted')}/s1")
        run(double.url, run_body("first", do="say", texts=[]))
        yield double, sys.modules["scripted"]


@pytest.fixture(scope="session")
def agents(_served: tuple[Emulator, ModuleType]) -> Emulator:
    """A double with the tests' agents; each test uses new users."""
    return _served[0]


@pytest.fixture(scope="session")
def scripted(_served: tuple[Emulator, ModuleType]) -> ModuleType:
    """The module of the scripted agent, as imported by the double."""
    return _served[1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty agents directory."""
    folder = tmp_path / "agents"
    folder.mkdir()
    return folder
