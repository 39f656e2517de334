from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from agentdouble import Emulator
from tests.agentdouble.calling import TIMEOUT_S, http
from tests.agentdouble.runtimes.asking import shown_runtime

APPLICATIONS = Path(__file__).with_name("applications")


@pytest.fixture(scope="module")
def double() -> Iterator[Emulator]:
    table = {"name": "telling", "application": "simple:app", "directory": str(APPLICATIONS)}
    with Emulator(runtimes=[table]) as double:
        yield double


def test_runtime_answers_from_a_separate_process(double: Emulator) -> None:
    """It is started by the first request, and streams."""
    answer = http.post(f"{double.url}/runtimes/telling/invoke", json={"prompt": "one two"})

    first, *words = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line]
    assert (200, ["one", "two"]) == (answer.status_code, words)
    assert os.getpid() != int(first)
    assert "pong!" in http.get(f"{double.url}/runtimes/telling/ping").text


def test_unknown_runtime_is_not_found(double: Emulator) -> None:
    """The error names it and lists the existing ones."""
    answer = http.get(f"{double.url}/runtimes/nobody/ping")

    assert (404, "There is no runtime 'nobody'. There are telling.") == (
        answer.status_code,
        answer.json()["error"]["message"],
    )


def test_websocket_is_refused_by_name() -> None:
    """Before an instance starts."""
    runtime = {"name": "ws", "command": [sys.executable, "-c", ""]}
    with Emulator(runtimes=[runtime]) as double:
        url = f"ws{double.url.removeprefix('http')}/runtimes/ws/echo"
        with pytest.raises(InvalidStatus) as refused:
            connect(url, proxy=None, open_timeout=TIMEOUT_S)
        described = shown_runtime(double, "ws")

    assert 501 == refused.value.response.status_code
    assert "A WebSocket to a runtime" in json.loads(refused.value.response.body)["error"]["message"]
    assert [] == described["instances"]
