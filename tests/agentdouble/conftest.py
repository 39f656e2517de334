from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from agentdouble import Emulator
from agentdouble.core.environment import TOKEN
from tests import postgresql
from tests.agentdouble import calling

NODES = "AGENTDOUBLE_NODES"  # runs the sessions of all doubles on nodes


@pytest.fixture(scope="session", autouse=True)
def _clean_environment() -> Iterator[None]:
    """Hide the developer's settings and credentials from tests."""
    environment = dict(os.environ)
    for name in environment:
        if name.upper().startswith(("AGENTDOUBLE_", "PLATFORM_")) and name != NODES:
            del os.environ[name]
    os.environ[TOKEN] = calling.TOKEN
    yield
    os.environ.update(environment)


@pytest.fixture(scope="session")
def shared() -> Iterator[Emulator]:
    """A double that is never reset; its tests use their own sessions or share one."""
    # code has long: the first plot of a kernel takes a busy machine half a minute
    with Emulator(exec_timeout_s=120) as emulator:
        yield emulator


@pytest.fixture(scope="session")
def _running() -> Iterator[Emulator]:
    with Emulator() as emulator:
        yield emulator


@pytest.fixture
def double(_running: Emulator) -> Emulator:
    """A double without sessions, with an empty journal and an unmoved clock."""
    _running.reset()
    return _running


@pytest.fixture(scope="session")
def _postgresql_server() -> Iterator[str]:
    with postgresql.running(postgresql.required()) as url:
        yield url


@pytest.fixture
def postgresql_url(_postgresql_server: str) -> str:
    """The URL of an empty PostgreSQL database."""
    import asyncio

    import asyncpg

    async def empty() -> None:
        connection = await asyncpg.connect(_postgresql_server)
        await connection.execute("DROP SCHEMA IF EXISTS agentdouble CASCADE")
        await connection.close()

    asyncio.run(empty())
    return _postgresql_server
