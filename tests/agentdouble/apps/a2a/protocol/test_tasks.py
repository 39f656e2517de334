"""GetTask, ListTasks and CancelTask, over both bindings (3.1.3 to 3.1.5)."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from tests.agentdouble.apps.a2a.protocol.bindings import Binding, Refused
from tests.agentdouble.apps.a2a.protocol.test_messages import UNKNOWN, send


def listed(wire: Binding, **params: Any) -> dict[str, Any]:
    """Return a page of tasks."""
    page = wire.call("ListTasks", params)
    assert isinstance(page, dict), page
    return page


def ids(page: dict[str, Any]) -> list[str]:
    return [task["id"] for task in page["tasks"]]


@pytest.fixture
def context() -> str:
    """A context that no other test uses."""
    return str(uuid.uuid4())


@pytest.mark.parametrize("operation", ["GetTask", "CancelTask"])
def test_unknown_task_is_not_found(wire: Binding, operation: str) -> None:
    """For every operation (3.1.3, 3.1.5)."""
    assert Refused("TASK_NOT_FOUND") == wire.call(operation, {"id": UNKNOWN})


def test_tasks_are_listed_last_changed_first(wire: Binding, context: str) -> None:
    """A continued task moves to the top (3.1.4)."""
    task_ids = [send(wire, text, contextId=context)["id"] for text in ("ask", "hello", "fail")]
    assert task_ids[::-1] == ids(listed(wire, contextId=context))

    send(wire, "this", taskId=task_ids[0])

    assert [task_ids[0], task_ids[2], task_ids[1]] == ids(listed(wire, contextId=context))


def test_list_is_paginated(wire: Binding, context: str) -> None:
    """Each token leads to the next page; the last one is present and empty (3.1.4)."""
    task_ids = [send(wire, "hello", contextId=context)["id"] for _ in range(5)]
    pages: list[dict[str, Any]] = []
    token = ""
    while not pages or token:
        more = {"pageToken": token} if token else {}
        pages.append(listed(wire, contextId=context, pageSize=2, **more))
        token = pages[-1]["nextPageToken"]

    assert [2, 2, 1] == [len(page["tasks"]) for page in pages]
    assert task_ids[::-1] == [id_ for page in pages for id_ in ids(page)]
    assert [(2, 5)] * 3 == [(page["pageSize"], page["totalSize"]) for page in pages]


@pytest.mark.parametrize(
    "params",
    [
        {"pageSize": 0},
        {"pageSize": -1},
        {"pageSize": 101},
        {"pageToken": "made up"},
        {"pageToken": "bm9uc2Vuc2U"},
    ],
)
def test_invalid_list_parameters_are_refused(wire: Binding, params: dict[str, Any]) -> None:
    """Section 3.1.4."""
    assert Refused("INVALID_PARAMS") == wire.call("ListTasks", params)


def test_running_task_is_canceled(wire: Binding, gate: None) -> None:
    """Its stream ends with that."""
    task = send(wire, "wait", configuration={"returnImmediately": True})
    with wire.stream("SubscribeToTask", {"id": task["id"]}) as events:
        next(events)
        canceled = wire.call("CancelTask", {"id": task["id"]})
        *_, last = events
    assert isinstance(canceled, dict)

    assert "TASK_STATE_CANCELED" == canceled["status"]["state"]
    assert "TASK_STATE_CANCELED" == last["statusUpdate"]["status"]["state"]


@pytest.mark.parametrize("text", ["hello", "fail", "reject"])
def test_ended_task_cannot_be_canceled(wire: Binding, text: str) -> None:
    """It stays unchanged (3.1.5)."""
    task = send(wire, text)

    assert Refused("TASK_NOT_CANCELABLE") == wire.call("CancelTask", {"id": task["id"]})
    assert task == wire.call("GetTask", {"id": task["id"]})
