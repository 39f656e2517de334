"""The alternatives of the unknowns about A2A, on the wire."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentdouble import A2AApp, Emulator
from tests.agentdouble.apps.a2a.wire import V1, message, request
from tests.agentdouble.calling import http

CARD = "/.well-known/agent-card.json"
OLD = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "hello"}]}
RECEIVER = {"url": "http://127.0.0.1:9/"}


@pytest.fixture(scope="module")
def other() -> Iterator[Emulator]:
    """A double with the other answer to each unknown."""
    unknowns = {"U-A2A-TASK": "0.3", "U-WEBHOOKS": "none"}
    with Emulator(A2AApp("one", runner="echo"), unknowns=unknowns) as double:
        yield double


def test_version_0_3_alone(other: Emulator) -> None:
    """U-A2A-TASK: its card and its methods, and nothing of 1.0."""
    card = http.get(other.url + CARD).json()
    done = http.post(other.url, json=request("message/send", {"message": OLD})).json()
    refused = http.post(other.url, json=request("SendMessage", message()), headers=V1).json()

    assert ("0.3.0", other.url, "JSONRPC") == (
        card["protocolVersion"],
        card["url"],
        card["preferredTransport"],
    )
    assert "supportedInterfaces" not in card
    assert "completed" == done["result"]["status"]["state"]
    assert -32601 == refused["error"]["code"]
    assert 404 == http.post(other.url + "/message:send", json=message(), headers=V1).status_code


def test_webhooks_can_be_disabled(other: Emulator) -> None:
    """U-WEBHOOKS: no card declares push notifications, and each operation is refused."""
    assert not http.get(other.url + CARD).json()["capabilities"]["pushNotifications"]
    sent = http.post(other.url, json=request("message/send", {"message": OLD})).json()
    config = {"taskId": sent["result"]["id"], "pushNotificationConfig": RECEIVER}
    registered = http.post(other.url, json=request("tasks/pushNotificationConfig/set", config))
    along = {"message": OLD, "configuration": {"pushNotificationConfig": RECEIVER}}
    with_message = http.post(other.url, json=request("message/send", along))

    assert [-32003, -32003] == [
        answer.json()["error"]["code"] for answer in (registered, with_message)
    ]
    assert "U-WEBHOOKS" in with_message.headers["x-agentdouble-unknowns"]
