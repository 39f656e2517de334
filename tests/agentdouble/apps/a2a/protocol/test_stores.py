"""Users' task stores that misbehave: each answer is an error, and arrives (A2A-04)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from a2a.server.tasks import TaskStore
from a2a.types import Task

from agentdouble import A2AApp
from tests.agentdouble.apps.a2a.wire import Wire, message, talk

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


@pytest.mark.parametrize("method", ASKED)
def test_store_that_cannot_read_is_an_error(method: str) -> None:
    """Of every operation, without the exception's text; the next call is answered too."""

    async def conversation(wire: Wire) -> None:
        for _ in range(2):
            error = await error_of(wire, method)
            assert FAILED == error["code"]
            assert SECRET not in str(error)

    talk(failing(when("get", raise_(RuntimeError(SECRET)))), conversation)


@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
def test_store_that_cannot_write_is_an_error(method: str) -> None:
    """A task that is not stored is not reported as stored."""

    async def conversation(wire: Wire) -> None:
        error = await error_of(wire, method)
        assert FAILED == error["code"]
        assert SECRET not in str(error)

    talk(failing(when("save", raise_(RuntimeError(SECRET)))), conversation)


@pytest.mark.parametrize("method", ["GetTask", "SendMessage"])
@pytest.mark.parametrize("rubbish", ["text", {"id": "t"}, Task(id="u")], ids=repr)
def test_stored_object_that_is_not_a_task_is_an_error(method: str, rubbish: object) -> None:
    """Of every operation that reads it."""

    async def conversation(wire: Wire) -> None:
        assert FAILED == (await error_of(wire, method))["code"]

    talk(failing(when("get", lambda: rubbish)), conversation)
