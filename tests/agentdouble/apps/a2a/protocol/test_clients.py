"""Clients that are not ours: the official one, and one of the 0.3 era.

The latter needs an older SDK and so a Python of its own::

    python3 -m venv a2a-0.3 && a2a-0.3/bin/pip install 'a2a-sdk[http-server]>=0.3.20,<0.4'
    export DOUBLECHECK_A2A_0_3_PYTHON=$PWD/a2a-0.3/bin/python
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.apps.a2a.protocol.conversation_1_3 import converse
from tests.agentdouble.apps.a2a.protocol.receiver import WAIT_S, Receiver
from tests.agentdouble.apps.a2a.wire import heard

PYTHON = "DOUBLECHECK_A2A_0_3_PYTHON"
BOUND_S = 120
PUSHED = ["submitted", "working", "artifactUpdate", "artifactUpdate", "completed"]
OUTCOME: dict[str, Any] = {
    "message": "You said: hello",
    "asked": ("input_required", "Which?"),
    "continued": (True, "completed", "Then this."),
    "failed": ("failed", "no luck"),
    "canceled": "canceled",
    "errors": ["TaskNotCancelableError", "TaskNotFoundError"],
    "listed": True,
    "streamed": ["submitted", "working", "artifact", "artifact", "completed"],
    "artifact": "one two",
    "resumed": ["artifact", "completed"],
}


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
def test_the_official_client_has_a_whole_conversation(
    ordinary_double: Emulator, receiver: Receiver, binding: str
) -> None:
    """Messages, streams, input, cancelling, failing, resuming and notifications."""
    talk = converse(ordinary_double.url, binding, receiver.url)

    assert OUTCOME == asyncio.run(asyncio.wait_for(talk, BOUND_S))
    assert PUSHED == heard(receiver.until("completed"))


OLD_OUTCOME: dict[str, Any] = {
    **{name: value for name, value in OUTCOME.items() if name != "listed"},
    "asked": ["input-required", "Which?"],
    "continued": list(OUTCOME["continued"]),
    "failed": list(OUTCOME["failed"]),
    "errors": {
        "JSONRPC": ["A2AClientJSONRPCError"] * 2,
        "HTTP+JSON": ["A2AClientHTTPError"] * 2,
    },
}


@pytest.mark.skipif(PYTHON not in os.environ, reason=f"{PYTHON} names no Python with a2a-sdk 0.3")
@pytest.mark.parametrize("transport", ["JSONRPC", "HTTP+JSON"])
def test_a_client_of_0_3_has_a_whole_conversation(
    ordinary_double: Emulator, receiver: Receiver, transport: str, tmp_path: Path
) -> None:
    """The same one, but for lists, which that version has none of."""
    outcome = tmp_path / "outcome"
    script = Path(__file__).with_name("conversation_0_3.py")
    ended = subprocess.run(
        [os.environ[PYTHON], script, ordinary_double.url, transport, receiver.url, outcome],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=BOUND_S,
        check=False,
    )

    assert 0 == ended.returncode, ended.stderr
    expected = {**OLD_OUTCOME, "errors": OLD_OUTCOME["errors"][transport]}
    assert expected == json.loads(outcome.read_text())
    told = [receiver.got.get(timeout=WAIT_S)[1] for _ in PUSHED]
    assert ["submitted", *["working"] * 3, "completed"] == [
        task["status"]["state"] for task in told
    ]
