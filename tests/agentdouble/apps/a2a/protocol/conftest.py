"""A double per module, and each test over both bindings."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentdouble import Emulator
from tests.agentdouble.apps.a2a.protocol.bindings import Binding, JsonRpc, Rest
from tests.agentdouble.apps.a2a.protocol.ordinary import GATE, ordinary
from tests.agentdouble.apps.a2a.protocol.receiver import Receiver, receiving


@pytest.fixture(scope="session")
def ordinary_double() -> Iterator[Emulator]:
    """A double with an ordinary application."""
    with Emulator(ordinary()) as double:
        yield double


@pytest.fixture(params=[JsonRpc, Rest], ids=["jsonrpc", "rest"])
def wire(request: pytest.FixtureRequest, ordinary_double: Emulator) -> Binding:
    """A binding of the ordinary application."""
    binding: Binding = request.param(ordinary_double.url)
    return binding


@pytest.fixture
def gate() -> Iterator[None]:
    """A gate that holds waiting turns until the test opens it, or ends."""
    GATE.close()
    yield
    GATE.open()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver on this machine."""
    with receiving() as receiver:
        yield receiver
