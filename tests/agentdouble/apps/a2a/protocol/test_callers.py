"""Callers with keys: each has tasks of its own (sections 3.1.4, 7 and 13.1 of the protocol)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from agentdouble import Emulator
from tests.agentdouble.apps.a2a.protocol.bindings import VERSION, JsonRpc, Refused, Rest
from tests.agentdouble.apps.a2a.protocol.ordinary import message, ordinary
from tests.agentdouble.apps.a2a.wire import V1
from tests.agentdouble.calling import http

ANN = {"Authorization": "Bearer ann"}
BOB = {"Authorization": "Bearer bob"}
NOT_FOUND = Refused("TASK_NOT_FOUND")


@pytest.fixture(scope="module")
def keyed() -> Iterator[Emulator]:
    """A double with an application that has two keys."""
    with Emulator(ordinary(keys=["ann", "bob"])) as double:
        yield double


@pytest.fixture(params=[JsonRpc, Rest], ids=["jsonrpc", "rest"])
def wire(request: pytest.FixtureRequest, keyed: Emulator) -> Any:
    """A binding of it."""
    return request.param(keyed.url)


def ask(wire: Any) -> str:
    """Return the id of a task of Ann's that waits."""
    return str(wire.call("SendMessage", message("ask"), **ANN)["task"]["id"])


@pytest.mark.parametrize(
    ("operation", "params"),
    [
        ("GetTask", {}),
        ("CancelTask", {}),
        ("SubscribeToTask", {}),
        ("ListTaskPushNotificationConfigs", {}),
        ("CreateTaskPushNotificationConfig", {"url": "http://127.0.0.1:1"}),
        ("GetTaskPushNotificationConfig", {"id": "c"}),
        ("DeleteTaskPushNotificationConfig", {"id": "c"}),
        ("SendMessage", {}),
    ],
)
def test_a_task_of_another_caller_is_not_found(
    wire: Any, operation: str, params: dict[str, str]
) -> None:
    """Like one that there is not, and nothing happens to it (13.1)."""
    id_ = ask(wire)
    before = wire.call("GetTask", {"id": id_}, **ANN)
    if operation == "SendMessage":
        params = message("this", taskId=id_)
    elif "Push" in operation:
        params = {"taskId": id_, **params}
    else:
        params = {"id": id_}

    assert NOT_FOUND == wire.call(operation, params, **BOB)
    assert before == wire.call("GetTask", {"id": id_}, **ANN)


def test_a_list_has_the_callers_own_tasks(wire: Any) -> None:
    """Though others are in the same context (3.1.4)."""
    context = f"shared-{type(wire).__name__}"
    mine = wire.call("SendMessage", message("hello", contextId=context), **ANN)["task"]["id"]
    theirs = wire.call("SendMessage", message("hello", contextId=context), **BOB)["task"]["id"]

    for headers, id_ in [(ANN, mine), (BOB, theirs)]:
        page = wire.call("ListTasks", {"contextId": context}, **headers)
        assert ([id_], 1) == ([task["id"] for task in page["tasks"]], page["totalSize"])


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer eve"}, {"Authorization": "ann"}])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", ""),
        ("POST", "/message:send"),
        ("POST", "/message:stream"),
        ("GET", "/tasks"),
        ("GET", "/extendedAgentCard"),
        ("POST", "/v1/message:send"),
        ("GET", "/v1/card"),
    ],
)
def test_nobody_gets_in_without_a_key(
    keyed: Emulator, method: str, path: str, headers: dict[str, str]
) -> None:
    """401 with what is missing, on every path of both versions (7.4)."""
    answer = http.request(method, keyed.url + path, headers={**VERSION, **headers})

    assert (401, "Bearer") == (answer.status_code, answer.headers["www-authenticate"])


def test_the_card_is_for_all_and_says_what_is_needed(keyed: Emulator) -> None:
    """Who has no key learns there that a key is needed (7.3)."""
    card = http.get(keyed.url + "/.well-known/agent-card.json", headers=V1).json()

    assert {"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}} == card["securitySchemes"]
    assert [{"schemes": {"bearer": {}}}] == card["securityRequirements"]


def test_no_answer_has_a_key(wire: Any) -> None:
    """Whose a task is, is kept without it."""
    task = wire.call("SendMessage", message("hello"), **ANN)

    assert "ann" not in str(task).lower().replace("channel", "")
