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
    """A context that no other test has."""
    return str(uuid.uuid4())


@pytest.mark.parametrize("operation", ["GetTask", "CancelTask"])
def test_an_unknown_task_is_not_found(wire: Binding, operation: str) -> None:
    """Whatever is asked of it (3.1.3, 3.1.5)."""
    assert Refused("TASK_NOT_FOUND") == wire.call(operation, {"id": UNKNOWN})


@pytest.mark.parametrize(("length", "kept"), [(0, 0), (1, 1), (2, 2), (9, 3)])
def test_a_task_has_the_requested_length_of_history(wire: Binding, length: int, kept: int) -> None:
    """Its newest messages (3.2.4)."""
    asked = send(wire, "ask")
    send(wire, "this", taskId=asked["id"])
    task = wire.call("GetTask", {"id": asked["id"], "historyLength": length})
    assert isinstance(task, dict)

    assert ["ask", "Which?", "this"][3 - kept :] == [
        one["parts"][0]["text"] for one in task.get("history", [])
    ]


@pytest.mark.parametrize("operation", ["GetTask", "ListTasks"])
def test_no_history_is_shorter_than_none(wire: Binding, operation: str) -> None:
    """A negative length is refused."""
    params = {"historyLength": -1, **({"id": UNKNOWN} if operation == "GetTask" else {})}

    assert Refused("INVALID_PARAMS") == wire.call(operation, params)


def test_tasks_are_listed_with_the_last_changed_first(wire: Binding, context: str) -> None:
    """A task that goes on comes to the top (3.1.4)."""
    made = [send(wire, text, contextId=context)["id"] for text in ("ask", "hello", "fail")]
    assert made[::-1] == ids(listed(wire, contextId=context))

    send(wire, "this", taskId=made[0])

    assert [made[0], made[2], made[1]] == ids(listed(wire, contextId=context))


def test_a_list_comes_in_pages(wire: Binding, context: str) -> None:
    """The token of each leads to the next, that of the last is empty and yet there (3.1.4)."""
    made = [send(wire, "hello", contextId=context)["id"] for _ in range(5)]
    pages: list[dict[str, Any]] = []
    token = ""
    while not pages or token:
        more = {"pageToken": token} if token else {}
        pages.append(listed(wire, contextId=context, pageSize=2, **more))
        token = pages[-1]["nextPageToken"]

    assert [2, 2, 1] == [len(page["tasks"]) for page in pages]
    assert made[::-1] == [id_ for page in pages for id_ in ids(page)]
    assert [(2, 5)] * 3 == [(page["pageSize"], page["totalSize"]) for page in pages]


def test_pages_stay_right_while_tasks_come(wire: Binding, context: str) -> None:
    """None is told twice and none is left out."""
    made = [send(wire, "hello", contextId=context)["id"] for _ in range(4)]
    first = listed(wire, contextId=context, pageSize=2)
    send(wire, "hello", contextId=context)
    second = listed(wire, contextId=context, pageSize=2, pageToken=first["nextPageToken"])

    assert made[::-1] == ids(first) + ids(second)


def test_a_page_has_50_tasks_by_default(wire: Binding, context: str) -> None:
    """Also one that has fewer, and one without any (3.1.4)."""
    page = listed(wire, contextId=context)

    assert {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0} == page


def test_tasks_are_listed_by_state(wire: Binding, context: str) -> None:
    """Together with the context (3.1.4)."""
    done, asked = (send(wire, text, contextId=context)["id"] for text in ("hello", "ask"))

    assert [done] == ids(listed(wire, contextId=context, status="TASK_STATE_COMPLETED"))
    assert [asked] == ids(listed(wire, contextId=context, status="TASK_STATE_INPUT_REQUIRED"))
    assert [] == ids(listed(wire, contextId=context, status="TASK_STATE_FAILED"))


def test_tasks_are_listed_by_time(wire: Binding, context: str) -> None:
    """Those that changed at a time or later (3.1.4)."""
    send(wire, "hello", contextId=context)
    second = send(wire, "hello", contextId=context)
    since = second["status"]["timestamp"]

    assert [second["id"]] == ids(listed(wire, contextId=context, statusTimestampAfter=since))
    future = "2999-01-01T00:00:00Z"
    assert [] == ids(listed(wire, contextId=context, statusTimestampAfter=future))


def test_artifacts_are_listed_where_they_are_asked_for(wire: Binding, context: str) -> None:
    """Without that a task has no such field (3.1.4)."""
    send(wire, "work", contextId=context)
    (without,) = listed(wire, contextId=context)["tasks"]
    (refused,) = listed(wire, contextId=context, includeArtifacts=False)["tasks"]
    (with_,) = listed(wire, contextId=context, includeArtifacts=True)["tasks"]

    assert ("artifacts" in without, "artifacts" in refused) == (False, False)
    assert ["a"] == [artifact["artifactId"] for artifact in with_["artifacts"]]


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
def test_a_question_for_no_list_is_refused(wire: Binding, params: dict[str, Any]) -> None:
    """Its parameters are checked (3.1.4)."""
    assert Refused("INVALID_PARAMS") == wire.call("ListTasks", params)


@pytest.mark.parametrize(
    "params", [{"pageSize": "many"}, {"statusTimestampAfter": "yesterday"}, {"pageSize": 2**40}]
)
def test_a_question_of_other_types_is_refused(wire: Binding, params: dict[str, Any]) -> None:
    """As bad parameters over JSON-RPC, as a bad request over REST."""
    found = wire.call("ListTasks", params)
    assert isinstance(found, Refused)

    assert found.reason in ("INVALID_PARAMS", "INVALID_REQUEST")


def test_a_task_that_waits_is_canceled(wire: Binding) -> None:
    """Its new state is the answer, and stays (3.1.5)."""
    task = send(wire, "ask")
    canceled = wire.call("CancelTask", {"id": task["id"]})
    assert isinstance(canceled, dict)

    assert (task["id"], "TASK_STATE_CANCELED") == (canceled["id"], canceled["status"]["state"])
    assert canceled == wire.call("GetTask", {"id": task["id"]})


def test_a_task_that_runs_is_canceled(wire: Binding, gate: None) -> None:
    """And its stream ends with that."""
    task = send(wire, "wait", configuration={"returnImmediately": True})
    with wire.stream("SubscribeToTask", {"id": task["id"]}) as events:
        next(events)
        canceled = wire.call("CancelTask", {"id": task["id"]})
        *_, last = events
    assert isinstance(canceled, dict)

    assert "TASK_STATE_CANCELED" == canceled["status"]["state"]
    assert "TASK_STATE_CANCELED" == last["statusUpdate"]["status"]["state"]


@pytest.mark.parametrize("text", ["hello", "fail", "reject"])
def test_an_ended_task_cannot_be_canceled(wire: Binding, text: str) -> None:
    """It stays as it is (3.1.5)."""
    task = send(wire, text)

    assert Refused("TASK_NOT_CANCELABLE") == wire.call("CancelTask", {"id": task["id"]})
    assert task == wire.call("GetTask", {"id": task["id"]})


def test_a_canceled_task_cannot_be_canceled_again(wire: Binding) -> None:
    """It has ended like any other."""
    id_ = send(wire, "ask")["id"]
    wire.call("CancelTask", {"id": id_})

    assert Refused("TASK_NOT_CANCELABLE") == wire.call("CancelTask", {"id": id_})
