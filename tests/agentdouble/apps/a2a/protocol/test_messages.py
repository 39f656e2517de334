"""SendMessage, over both bindings (sections 3.1.1, 3.2.2, 3.3 and 3.4 of the protocol)."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.agentdouble.apps.a2a.protocol.bindings import Binding, Refused
from tests.agentdouble.apps.a2a.protocol.ordinary import GATE, message

pytestmark = pytest.mark.smoke

REFUSED = Refused("INVALID_PARAMS")
UNKNOWN = "00000000-0000-4000-8000-000000000000"


def send(wire: Binding, text: str, **more: Any) -> dict[str, Any]:
    """Return the task that results from a message."""
    answer = wire.call("SendMessage", message(text, **more))
    assert isinstance(answer, dict), answer
    task: dict[str, Any] = answer["task"]
    return task


def raw(**fields: Any) -> dict[str, Any]:
    """Return a message with other fields, without those that are None."""
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}], **fields}
    return {"message": {name: value for name, value in message.items() if value is not None}}


@pytest.mark.parametrize(
    ("text", "state", "reply"),
    [
        ("hello", "COMPLETED", "You said: hello"),
        ("work", "COMPLETED", "done"),
        ("fail", "FAILED", "no luck"),
        ("reject", "REJECTED", "not me"),
        ("ask", "INPUT_REQUIRED", "Which?"),
        ("authorize", "AUTH_REQUIRED", "Who?"),
    ],
)
def test_message_is_answered_when_its_task_ends_or_pauses(
    wire: Binding, text: str, state: str, reply: str
) -> None:
    """With the task in its current state (3.2.2)."""
    task = send(wire, text)

    assert f"TASK_STATE_{state}" == task["status"]["state"]
    assert [{"text": reply}] == task["status"]["message"]["parts"]
    assert task == wire.call("GetTask", {"id": task["id"]})


def test_task_has_the_protocol_s_format(wire: Binding) -> None:
    """Camel case, states and roles by name, times in UTC, no extra fields (5.5, 5.6)."""
    task = send(wire, "work", messageId="m-1")
    status, done = task["status"], task["status"]["message"]
    ids = {"contextId": task["contextId"], "taskId": task["id"]}
    task_message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "work"}], **ids}
    reading = {**done, "messageId": task["history"][1]["messageId"], "parts": [{"text": "reading"}]}

    assert {"id", "contextId", "status", "artifacts", "history"} == set(task)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", status["timestamp"])
    assert {
        "messageId": done["messageId"],
        "role": "ROLE_AGENT",
        "parts": [{"text": "done"}],
        **ids,
    } == done
    assert [
        {"artifactId": "a", "name": "text", "parts": [{"text": "one "}, {"text": "two"}]}
    ] == task["artifacts"]
    assert [task_message, reading] == task["history"]


def test_every_kind_of_part_round_trips(wire: Binding) -> None:
    """Text, data, bytes and a URL; each part has one of them (4.1.6)."""
    (artifact,) = send(wire, "parts")["artifacts"]

    assert [
        {"text": "text"},
        {"data": {"key": "value"}},
        {"raw": "AAE=", "mediaType": "application/octet-stream", "filename": "f.bin"},
        {"url": "http://localhost/f.txt", "mediaType": "text/plain"},
    ] == artifact["parts"]


def test_agent_may_answer_with_a_message_alone(wire: Binding) -> None:
    """It belongs to the context created for it (3.4.1)."""
    answer = wire.call("SendMessage", message("talk"))
    assert isinstance(answer, dict)

    assert ["message"] == list(answer)
    assert ("ROLE_AGENT", [{"text": "Hi."}]) == (
        answer["message"]["role"],
        answer["message"]["parts"],
    )
    assert answer["message"]["contextId"]


def test_follow_up_continues_its_task(wire: Binding) -> None:
    """It inherits the task's context (3.4.3); the history has it once."""
    task = send(wire, "ask")
    done = send(wire, "this", taskId=task["id"])

    assert (task["id"], task["contextId"]) == (done["id"], done["contextId"])
    assert ("TASK_STATE_COMPLETED", [{"text": "Then this."}]) == (
        done["status"]["state"],
        done["status"]["message"]["parts"],
    )
    assert ["ask", "Which?", "this"] == [message["parts"][0]["text"] for message in done["history"]]


@pytest.mark.parametrize("text", ["hello", "fail", "reject"])
def test_ended_task_accepts_no_message(wire: Binding, text: str) -> None:
    """A terminal state is final (3.1.1)."""
    task = send(wire, text)
    params = message("more", taskId=task["id"])

    assert Refused("UNSUPPORTED_OPERATION") == wire.call("SendMessage", params)
    with wire.stream("SendStreamingMessage", params) as events:
        assert [Refused("UNSUPPORTED_OPERATION")] == list(events)


@pytest.mark.parametrize(
    "params",
    [
        {},
        raw(parts=[]),
        raw(parts=None),
        raw(messageId=None),
        raw(messageId=""),
        raw(role=None),
        raw(role="ROLE_UNSPECIFIED"),
        raw(role="nobody"),
        {**raw(), "configuration": {"historyLength": -1}},
    ],
)
def test_incomplete_message_is_refused(wire: Binding, params: dict[str, Any]) -> None:
    """Every parameter is checked before anything is done (3.3.2)."""
    assert REFUSED == wire.call("SendMessage", params)


@pytest.mark.parametrize(("length", "length_kept"), [(None, 3), (0, 0), (1, 1), (2, 2), (50, 3)])
def test_history_length_is_limited(wire: Binding, length: int | None, length_kept: int) -> None:
    """To the newest messages, in chronological order (3.2.4)."""
    task = send(wire, "ask")
    configuration = None if length is None else {"historyLength": length}
    done = send(wire, "this", taskId=task["id"], configuration=configuration)
    expected = ["ask", "Which?", "this"]

    texts = [message["parts"][0]["text"] for message in done.get("history", [])]
    assert expected[len(expected) - length_kept :] == texts
    assert (length_kept > 0) == ("history" in done)


def test_caller_need_not_wait_for_the_end(wire: Binding, gate: None) -> None:
    """With returnImmediately the running task is returned (3.2.2)."""
    task = send(wire, "wait", configuration={"returnImmediately": True})
    assert task["status"]["state"] in ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")

    with wire.stream("SubscribeToTask", {"id": task["id"]}) as events:
        GATE.open()
        list(events)
    done = wire.call("GetTask", {"id": task["id"]})
    assert isinstance(done, dict)

    assert "TASK_STATE_COMPLETED" == done["status"]["state"]
