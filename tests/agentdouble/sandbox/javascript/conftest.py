from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.agentdouble.sandbox.javascript.session import Session


@pytest.fixture(scope="session", autouse=True)
def _forked() -> None:
    """Pass engine options through the fork server."""
    if sys.platform != "linux":
        pytest.skip("kernels are forked on Linux only")


@pytest.fixture(scope="module")
def shared() -> Iterator[Session]:
    """A session that is never reset; its tests use their own names."""
    session = Session()
    yield session
    session.close()


@pytest.fixture
def session() -> Iterator[Session]:
    """A session that a test may break."""
    session = Session()
    yield session
    session.close()
