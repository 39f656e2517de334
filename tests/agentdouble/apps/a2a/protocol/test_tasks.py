"""GetTask, ListTasks and CancelTask, over both bindings (3.1.3 to 3.1.5); users' task stores."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from a2a.server.tasks import TaskStore
from a2a.types import Task

from agentdouble import A2AApp
from tests.agentdouble.apps.a2a.protocol.bindings import Binding, Refused
from tests.agentdouble.apps.a2a.protocol.test_messages import UNKNOWN, send
from tests.agentdouble.apps.a2a.wire import Wire, message, talk


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


SECRET = "the disk is full of secrets"
FAILED = -32603


class Kept(TaskStore):
    """The specification's store, with its tasks in a dictionary; it fails on demand."""

    def __init__(self) -> None:
        self.tasks: dict[str, Task] = {}
        self.failure: Callable[[str], Any] = lambda _name: None

    def save_task(self, task: Task) -> None:
        self.failure("save")
        self.tasks[task.id] = task

    def get_task(self, task_id: str) -> Any:
        return self.failure("get") or self.tasks.get(task_id)

    def delete_task(self, task_id: str) -> None:
        self.tasks.pop(task_id, None)


def failing(failure: Callable[[str], Any]) -> A2AApp:
    """Return an application whose store fails like this."""
    app = A2AApp(runner="echo")

    @app.task_store
    class Failing(Kept):
        def __init__(self) -> None:
            super().__init__()
            self.failure = failure

    return app


def when(name: str, does: Callable[[], Any]) -> Callable[[str], Any]:
    return lambda called: does() if called == name else None


def raise_(error: BaseException) -> Callable[[], Any]:
    def does() -> None:
        raise error

    return does


ASKED = {
    "SendMessage": message(),
    "SendStreamingMessage": message(),
    "GetTask": {"id": "t"},
    "CancelTask": {"id": "t"},
}


async def error_of(wire: Wire, request: str) -> dict[str, Any]:
    """Return the error of an operation, in a stream or not."""
    method = request.split()[0]
    if method == "SendStreamingMessage":
        return dict((await wire.stream())[-1]["error"])
    return dict((await wire.rpc(method, ASKED[request]))["error"])


@pytest.mark.parametrize(
    ("operation", "method"),
    [
        *(("get", method) for method in ASKED),
        *(("save", method) for method in ("SendMessage", "SendStreamingMessage")),
    ],
)
def test_store_that_cannot_read_or_write_is_an_error(operation: str, method: str) -> None:
    """Without the exception's text; the next call is answered too."""

    async def conversation(wire: Wire) -> None:
        for _ in range(2):
            error = await error_of(wire, method)
            assert FAILED == error["code"]
            assert SECRET not in str(error)

    talk(failing(when(operation, raise_(RuntimeError(SECRET)))), conversation)


@pytest.mark.parametrize("method", ["GetTask", "SendMessage"])
@pytest.mark.parametrize("rubbish", ["text", {"id": "t"}, Task(id="u")], ids=repr)
def test_stored_object_that_is_not_a_task_is_an_error(method: str, rubbish: object) -> None:
    """Of every operation that reads it."""

    async def conversation(wire: Wire) -> None:
        assert FAILED == (await error_of(wire, method))["code"]

    talk(failing(when("get", lambda: rubbish)), conversation)
