"""Push notifications, over both bindings (3.1.7 to 3.1.10, 3.5.3 and 4.3)."""

from __future__ import annotations

from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.apps.a2a.protocol.bindings import Answer, Binding, Refused
from tests.agentdouble.apps.a2a.protocol.receiver import WAIT_S, Receiver
from tests.agentdouble.apps.a2a.protocol.test_messages import send
from tests.agentdouble.apps.a2a.wire import kinds
from tests.agentdouble.calling import http

NOT_FOUND = Refused("TASK_NOT_FOUND")


def config(wire: Binding, operation: str, **params: Any) -> Answer:
    """Call an operation on configurations."""
    return wire.call(operation.replace("Config", "TaskPushNotificationConfig"), params)


def test_configuration_is_kept_until_deleted(wire: Binding) -> None:
    """In full, for reads and lists; deleting twice does no harm (3.1.7 to 3.1.10)."""
    id_ = send(wire, "hello")["id"]
    sent = {
        "id": "c1",
        "taskId": id_,
        "url": "http://127.0.0.1:1/hook",
        "token": "t",
        "authentication": {"scheme": "Bearer", "credentials": "k"},
    }
    named = {"taskId": id_, "id": "c1"}

    assert sent == config(wire, "CreateConfig", **sent)
    assert sent == config(wire, "GetConfig", **named)
    assert {"configs": [sent]} == config(wire, "ListConfigs", taskId=id_)
    assert [{}] * 2 == [config(wire, "DeleteConfig", **named) for _ in range(2)]
    assert NOT_FOUND == config(wire, "GetConfig", **named)
    assert {} == config(wire, "ListConfigs", taskId=id_)


@pytest.mark.parametrize("url", ["", "file:///etc/passwd", "no url", "http://", "http://h:x/"])
def test_receiver_must_be_an_http_url(wire: Binding, url: str) -> None:
    id_ = send(wire, "hello")["id"]

    assert Refused("INVALID_PARAMS") == config(wire, "CreateConfig", taskId=id_, url=url)


def test_receiver_gets_every_event(wire: Binding, receiver: Receiver) -> None:
    """With its token and credentials, in chronological order (4.3.3)."""
    config = {
        "url": receiver.url,
        "token": "told",
        "authentication": {"scheme": "Bearer", "credentials": "k"},
    }
    send(wire, "work", configuration={"taskPushNotificationConfig": config})
    headers, first = receiver.got.get(timeout=WAIT_S)

    assert ("told", "Bearer k", "application/json") == (
        headers["X-A2A-Notification-Token"],
        headers["Authorization"],
        headers["Content-Type"],
    )
    assert ["submitted", "working", "artifactUpdate", "artifactUpdate", "completed"] == kinds(
        [first, *receiver.until("completed")]
    )


def test_failing_receiver_does_not_delay_the_task(wire: Binding, receiver: Receiver) -> None:
    """Nor does a missing one; the next one gets everything."""
    receiver.status = 500
    task = send(wire, "ask")
    config(wire, "CreateConfig", taskId=task["id"], url="http://127.0.0.1:1/nobody")
    config(wire, "CreateConfig", taskId=task["id"], url=receiver.url)
    done = send(wire, "this", taskId=task["id"])

    assert "TASK_STATE_COMPLETED" == done["status"]["state"]
    assert "completed" == kinds(receiver.until("completed"))[-1]


def test_receiver_of_0_3_gets_the_whole_task(ordinary_double: Emulator, receiver: Receiver) -> None:
    """In that version's format, at each event; one of 1.0 gets the event."""
    message = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "work"}]}
    config = {
        "url": receiver.url,
        "token": "told",
        "authentication": {"schemes": ["Bearer"], "credentials": "k"},
    }
    params = {"message": message, "configuration": {"pushNotificationConfig": config}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params}
    answer = http.post(ordinary_double.url, json=body).json()["result"]
    pushes = [receiver.got.get(timeout=WAIT_S) for _ in range(5)]

    assert answer == pushes[-1][1]
    assert ("task", "completed") == (answer["kind"], answer["status"]["state"])
    assert ["submitted", "working", "working", "working", "completed"] == [
        task["status"]["state"] for _, task in pushes
    ]
    assert {("told", "Bearer k")} == {
        (headers["X-A2A-Notification-Token"], headers["Authorization"]) for headers, _ in pushes
    }
