"""SendStreamingMessage and SubscribeToTask, over both bindings (3.1.2, 3.1.6 and 3.5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from agentdouble import A2AApp, Emulator
from tests.agentdouble.apps.a2a.protocol.bindings import VERSION, Binding, JsonRpc, Refused, Rest
from tests.agentdouble.apps.a2a.protocol.ordinary import GATE, message, ordinary
from tests.agentdouble.apps.a2a.protocol.test_messages import send
from tests.agentdouble.apps.a2a.wire import kinds
from tests.agentdouble.calling import http

pytestmark = pytest.mark.smoke


def streamed(wire: Binding, text: str, **more: Any) -> list[dict[str, Any]]:
    """Return every event of a message's stream until it ends."""
    with wire.stream("SendStreamingMessage", message(text, **more)) as events:
        return list(events)


def started(wire: Binding) -> dict[str, Any]:
    """Return a task whose turn waits at the gate."""
    return send(wire, "wait", configuration={"returnImmediately": True})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello", ["submitted", "completed"]),
        ("work", ["submitted", "working", "artifactUpdate", "artifactUpdate", "completed"]),
        ("fail", ["submitted", "failed"]),
        ("reject", ["submitted", "rejected"]),
        ("ask", ["submitted", "input_required"]),
        ("authorize", ["submitted", "auth_required"]),
        ("talk", ["message"]),
    ],
)
def test_stream_starts_with_a_task_and_ends_with_its_end(
    wire: Binding, text: str, expected: list[str]
) -> None:
    """In chronological order; a message is the only event (3.1.2, 3.5.2)."""
    assert expected == kinds(streamed(wire, text))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/message:stream", message("work")),
        (
            "",
            {
                "jsonrpc": "2.0",
                "id": 7,
                "method": "SendStreamingMessage",
                "params": message("work"),
            },
        ),
    ],
    ids=["rest", "jsonrpc"],
)
def test_streams_are_server_sent_events(
    ordinary_double: Emulator, path: str, body: Mapping[str, Any]
) -> None:
    """No proxy may cache them (9.4.2, 11.7)."""
    answer = http.post(ordinary_double.url + path, json=body, headers=VERSION)

    assert answer.headers["content-type"].startswith("text/event-stream")
    assert "no-store" == answer.headers["cache-control"]
    assert 5 == len([line for line in answer.text.splitlines() if line.startswith("data: ")])


def test_events_arrive_while_the_turn_runs(wire: Binding, gate: None) -> None:
    """The first two before the agent has done the rest (A2A-03)."""
    with wire.stream("SendStreamingMessage", message("wait")) as events:
        first = [next(events), next(events)]
        GATE.open()
        rest = list(events)

    assert ["submitted", "working"] == kinds(first)
    assert ["artifactUpdate", "completed"] == kinds(rest)


def test_dropped_connection_can_be_resumed(wire: Binding, gate: None) -> None:
    """The turn continues, and the caller gets the current task and then the rest."""
    with wire.stream("SendStreamingMessage", message("wait")) as events:
        id_ = next(events)["task"]["id"]  # and the caller is gone
    with wire.stream("SubscribeToTask", {"id": id_}) as events:
        first = next(events)
        GATE.open()
        rest = list(events)

    assert id_ == first["task"]["id"]
    assert ["artifactUpdate", "completed"] == kinds(rest)[-2:]


@pytest.mark.parametrize("text", ["hello", "fail", "reject"])
def test_ended_task_cannot_be_subscribed_to(wire: Binding, text: str) -> None:
    """It has no further events (3.1.6)."""
    with wire.stream("SubscribeToTask", {"id": send(wire, text)["id"]}) as events:
        assert [Refused("UNSUPPORTED_OPERATION")] == list(events)


@pytest.fixture(scope="module")
def modest() -> Iterator[Emulator]:
    """A double with an application without capabilities, and one with requirements."""
    with Emulator(_with("modest"), _with("strict", **EXTENDED)) as double:
        yield double


REQUIRED = "https://example.com/needed"
EXTENDED: dict[str, Any] = {
    "extendedAgentCard": True,
    "extensions": [{"uri": REQUIRED, "required": True}, {"uri": "urn:optional"}],
}


def _with(name: str, **capabilities: Any) -> A2AApp:
    card = {
        "name": name,
        "description": "d",
        "version": "1",
        "supportedInterfaces": [
            {"url": "http://localhost", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ],
        "capabilities": capabilities,
        "defaultInputModes": ["text"],
        "defaultOutputModes": ["text"],
        "skills": [{"id": "s", "name": "s", "description": "s", "tags": ["t"]}],
    }
    return ordinary(name, card=card)


@pytest.mark.parametrize("kind", [JsonRpc, Rest])
def test_undeclared_capability_is_refused(modest: Emulator, kind: type) -> None:
    """By name, for each capability (3.3.4)."""
    wire = kind(modest.url)
    task = send(wire, "ask")
    config = {"taskId": task["id"], "url": "http://127.0.0.1:1"}
    for operation, params in [
        ("SendStreamingMessage", message("hello")),
        ("SubscribeToTask", {"id": task["id"]}),
    ]:
        with wire.stream(operation, params) as events:
            assert [Refused("UNSUPPORTED_OPERATION")] == list(events)
    for operation, params in [
        ("CreateTaskPushNotificationConfig", config),
        ("GetTaskPushNotificationConfig", {"taskId": task["id"], "id": "c"}),
        ("ListTaskPushNotificationConfigs", {"taskId": task["id"]}),
        ("DeleteTaskPushNotificationConfig", {"taskId": task["id"], "id": "c"}),
        ("SendMessage", message("hello", configuration={"taskPushNotificationConfig": config})),
    ]:
        assert Refused("PUSH_NOTIFICATION_NOT_SUPPORTED") == wire.call(operation, params)
    assert Refused("UNSUPPORTED_OPERATION") == wire.call("GetExtendedAgentCard", {})
