"""The official client in this environment; tests/real_clients has the others."""

from __future__ import annotations

import asyncio

import pytest

from agentdouble import Emulator
from tests.agentdouble.apps.a2a.protocol.receiver import Receiver
from tests.agentdouble.apps.a2a.wire import kinds
from tests.real_clients.expected import OUTCOME, PUSHED
from tests.real_clients.programs.a2a_1 import converse_over

BOUND_S = 120


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_official_client_has_a_whole_conversation(
    ordinary_double: Emulator, receiver: Receiver, binding: str
) -> None:
    """Messages, streams, input, cancelling, failing, resuming and notifications."""
    talk = converse_over(ordinary_double.url, binding, receiver.url)

    assert OUTCOME == asyncio.run(asyncio.wait_for(talk, BOUND_S))
    assert PUSHED == kinds(receiver.until("completed"))
