"""Checks of the library's A2A applications: their decorators and run() (DEC, A2A-05)."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import agentdouble
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.in_process import accepted, rpc, sent
from doublecheck.wire.a2a import CARD

if TYPE_CHECKING:
    from a2a.server.agent_execution import AgentExecutor
    from a2a.server.tasks import TaskStore

TASK_NOT_FOUND = -32001
RUN = """
import json, sys
from types import SimpleNamespace
from agentdouble import A2AApp, agent_card

given = json.loads(sys.argv[1])
agent = SimpleNamespace(name=given["name"], description=given["description"])
card = agent_card(agent, given["url"], version=given["version"])
A2AApp("checked", runner="echo").run(card, given["host"], given["port"])
"""
ANSWERS = "answers at "
LOOPBACK, NEXT_TO_IT = "127.0.0.1", "127.0.0.2"
START_WITHIN_S = 60.0


def _executors() -> tuple[type[AgentExecutor], ...]:
    """Return an executor class, a subclass of it, and one that leaves the work to its runner."""
    from a2a.server.agent_execution import AgentExecutor  # slow: 0.4 s

    class Executor(AgentExecutor):
        def __init__(self, runner: Any, prefix: str = "", **ignored: Any) -> None:
            self.said = f"{prefix}{runner}"

        async def execute(self, context: Any, event_queue: Any) -> None:
            from a2a.helpers import new_text_message  # slow: 0.4 s

            await event_queue.enqueue_event(new_text_message(self.said))

    class Derived(Executor):
        pass

    class Unchanged(AgentExecutor):
        pass

    return Executor, Derived, Unchanged


class _NoExecutor:
    """A class with the methods of an executor, but without the base class."""

    async def execute(self, context: Any, event_queue: Any) -> None: ...

    async def cancel(self, context: Any, event_queue: Any) -> None: ...


async def _execute(context: Any, event_queue: Any) -> None: ...


@clause("DEC-05")
def test_agent_executor_refuses_what_is_no_executor() -> None:
    """Only direct and indirect subclasses of an executor class are accepted."""
    right = _executors()
    wrong = (_NoExecutor, object, dict, _execute, "executor", None)

    def decorate(cls: type) -> type:
        return agentdouble.A2AApp().agent_executor(runner="echo")(cls)

    assert [*right] == accepted(decorate, (*right, *wrong))


@clause("DEC-05")
def test_agent_executor_refuses_a_class_alone() -> None:
    """A class needs a runner: no argument, None, other arguments, and no parentheses are refused."""
    classes = (*_executors(), _NoExecutor)

    def app() -> agentdouble.A2AApp:
        return agentdouble.A2AApp()

    assert [] == accepted(lambda cls: app().agent_executor()(cls), classes)
    assert [] == accepted(lambda cls: app().agent_executor(runner=None)(cls), classes)
    assert [] == accepted(lambda cls: app().agent_executor(prefix="a")(cls), classes)
    assert [] == accepted(lambda cls: app().agent_executor(cls), classes)


@clause("DEC-05")
def test_the_executor_gets_the_arguments() -> None:
    """execute() answers messages with the runner and the other arguments of the decorator."""
    for cls in _executors()[:2]:
        app = agentdouble.A2AApp()
        app.agent_executor(runner="echo", prefix="to ", more=1)(cls)

        assert [{"text": "to echo"}] == sent(app, "hello")["parts"]


@clause("DEC-05")
def test_an_executor_need_not_override_execute() -> None:
    """Overriding execute() is optional; without it the runner's agent answers."""
    app = agentdouble.A2AApp()
    app.agent_executor(runner="echo")(_executors()[2])

    task = sent(app, "hello")

    assert "hello" in _texts(task)


class _Sync:
    """The three operations of a task store as functions. ``tasks`` holds the tasks."""

    tasks: dict[str, Any]

    def save_task(self, task: Any) -> None:
        self.tasks[task.id] = task

    def get_task(self, task_id: str) -> Any:
        return self.tasks.get(task_id)

    def delete_task(self, task_id: str) -> None:
        self.tasks.pop(task_id, None)


class _Async:
    """The three operations of a task store as async functions."""

    tasks: dict[str, Any]

    async def save_task(self, task: Any) -> None:
        self.tasks[task.id] = task

    async def get_task(self, task_id: str) -> Any:
        return self.tasks.get(task_id)

    async def delete_task(self, task_id: str) -> None:
        self.tasks.pop(task_id, None)


def _stores() -> tuple[type[TaskStore], ...]:
    """Return task-store classes with sync and async operations, and a subclass of another."""
    from a2a.server.tasks import TaskStore  # slow: 0.4 s

    class Store(_Sync, TaskStore):
        pass

    class AsyncStore(_Async, TaskStore):
        pass

    class Derived(Store):
        pass

    return Store, AsyncStore, Derived


def _incomplete_stores() -> list[type]:
    """Return task-store classes that lack one of the three operations, or all of them."""
    from a2a.server.tasks import TaskStore  # slow: 0.4 s

    operations = {"save_task", "get_task", "delete_task"}
    return [
        type(f"Without_{missing}", (TaskStore,), {name: getattr(_Sync, name) for name in has})
        for missing in (*sorted(operations), "all")
        for has in [operations - {missing} if missing != "all" else set()]
    ]


@clause("DEC-06")
def test_task_store_refuses_what_is_no_task_store() -> None:
    """Only subclasses of a task-store class with all three operations are accepted."""
    right = _stores()
    wrong = (*_incomplete_stores(), _Sync, _Async, object, dict, _execute, "store", None)

    assert [*right] == accepted(lambda cls: agentdouble.A2AApp().task_store(tasks={})(cls), right)
    assert [] == accepted(lambda cls: agentdouble.A2AApp().task_store(tasks={})(cls), wrong)
    assert [] == accepted(lambda cls: agentdouble.A2AApp().task_store()(cls), wrong)


@clause("DEC-06")
def test_the_task_store_keeps_the_tasks() -> None:
    """Tasks are saved in and read from the store, which gets the decorator's arguments."""
    for cls in _stores():
        app, stored = agentdouble.A2AApp(runner="echo"), dict[str, Any]()
        app.task_store(tasks=stored)(cls)

        tasks = [sent(app, text) for text in ("one", "two")]
        read = [rpc(app, "GetTask", {"id": task["id"]}).get("result") for task in tasks]
        first = stored.pop(tasks[0]["id"])
        unknown = rpc(app, "GetTask", {"id": tasks[0]["id"]})

        assert [*tasks] == read
        assert (tasks[0]["id"], [tasks[1]["id"]]) == (first.id, [*stored])
        assert TASK_NOT_FOUND == unknown.get("error", {}).get("code")


@clause("DEC-06")
def test_without_a_task_store_tasks_are_in_memory() -> None:
    """Each task can be read again, but not by another application."""
    app, other_app = (agentdouble.A2AApp(runner="echo") for _ in range(2))

    tasks = [sent(app, text) for text in ("one", "two")]
    read = [rpc(app, "GetTask", {"id": task["id"]}).get("result") for task in tasks]
    unknown = [rpc(other_app, "GetTask", {"id": task["id"]}) for task in tasks]

    assert tasks == read
    assert {TASK_NOT_FOUND} == {answer.get("error", {}).get("code") for answer in unknown}


@clause("A2A-05")
def test_the_application_serves_with_a_card_a_host_and_a_port() -> None:
    """It serves the card at that host and port only, until it is interrupted."""
    card = {
        "name": "named by its card",
        "description": "described by it: ü 日本語",
        "version": "7.8.9",
        "url": "http://elsewhere.example/agent",
    }
    port = _free_port()

    with _serving({**card, "host": LOOPBACK, "port": port}):
        served = _get(f"http://{LOOPBACK}:{port}{CARD}").json()
        with pytest.raises((httpx.ConnectError, httpx.ConnectTimeout)):
            _get(f"http://{NEXT_TO_IT}:{port}{CARD}")

    names = ("name", "description", "version")
    assert {name: card[name] for name in names} == {name: served[name] for name in names}
    assert {card["url"]} == {interface["url"] for interface in served["supportedInterfaces"]}


def _get(url: str) -> httpx.Response:
    """Request a page, even of a busy machine."""
    return httpx.get(url, trust_env=False, timeout=START_WITHIN_S)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        port: int = free.getsockname()[1]
        return port


@contextmanager
def _serving(options: Mapping[str, Any]) -> Iterator[None]:
    """Run an application in a separate process, until it is interrupted."""
    process = subprocess.Popen(  # noqa: S603 (our own script)
        [sys.executable, "-c", RUN, json.dumps(options)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert ANSWERS in line, f"it did not start: {line!r}"
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=START_WITHIN_S)


def _texts(task: dict[str, Any]) -> list[str]:
    """Return the texts in a task's artifacts and status, or of a message."""
    carriers = [task, task.get("status", {}).get("message", {}), *task.get("artifacts", [])]
    return [part["text"] for item in carriers for part in item.get("parts", []) if "text" in part]
