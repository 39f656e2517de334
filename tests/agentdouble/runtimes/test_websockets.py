from __future__ import annotations

import json
import sys

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from agentdouble import Emulator
from tests.agentdouble.calling import TIMEOUT_S
from tests.agentdouble.runtimes.asking import shown_runtime


def test_a_websocket_is_refused_by_name() -> None:
    """Before an instance starts for it."""
    runtime = {"name": "ws", "command": [sys.executable, "-c", ""]}
    with Emulator(runtimes=[runtime]) as double:
        url = f"ws{double.url.removeprefix('http')}/runtimes/ws/echo"
        with pytest.raises(InvalidStatus) as refused:
            connect(url, proxy=None, open_timeout=TIMEOUT_S)
        shown = shown_runtime(double, "ws")

    assert 501 == refused.value.response.status_code
    assert "A WebSocket to a runtime" in json.loads(refused.value.response.body)["error"]["message"]
    assert [] == shown["instances"]
