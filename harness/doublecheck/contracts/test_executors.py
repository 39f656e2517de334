"""Checks of the library's A2A applications: their decorators and run() (DEC, A2A-05)."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

import agentdouble
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.in_process import accepted, rpc, sent
from doublecheck.contracts.sentences import instead, listed, short
from doublecheck.wire.a2a import CARD

if TYPE_CHECKING:
    from a2a.server.agent_execution import AgentExecutor

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
    """Only subclasses of an executor class are accepted, and only with a runner."""
    right = _executors()
    wrong = (_NoExecutor, object, dict, _execute, "executor", None)

    def accepts(things: Iterable[Any], **options: Any) -> list[Any]:
        return accepted(lambda it: agentdouble.A2AApp().agent_executor(**options)(it), things)

    those = accepts((*right, *wrong), runner="echo")
    assert [*right] == those, f"agent_executor accepts {listed(those)}"
    for options in ({}, {"runner": None}, {"prefix": "a"}):
        those = accepts((*right, _NoExecutor), **options)
        assert [] == those, f"agent_executor({options}) accepts {listed(those)} without a runner"
    those = accepted(lambda it: agentdouble.A2AApp().agent_executor(it), right)
    assert [] == those, f"agent_executor without arguments accepts {listed(those)}"


@clause("DEC-05")
def test_the_executor_gets_the_arguments() -> None:
    """execute() answers messages with the runner and the other arguments of the decorator.

    Overriding it is optional; without it the runner's agent answers.
    """
    *overriding, unchanged = _executors()
    for cls in overriding:
        app = agentdouble.A2AApp()
        app.agent_executor(runner="echo", prefix="to ", more=1)(cls)
        parts = sent(app, "hello")["parts"]
        assert [{"text": "to echo"}] == parts, f"execute() does not answer: {short(parts)}"
    app = agentdouble.A2AApp()
    app.agent_executor(runner="echo")(unchanged)
    artifacts = sent(app, "hello").get("artifacts")
    assert '"hello"' in json.dumps(artifacts), f"the runner does not answer: {short(artifacts)}"


def _stores() -> tuple[list[type], list[type]]:
    """Return task-store classes with sync and async operations, and classes that are none."""
    from a2a.server.tasks import TaskStore  # slow: 0.4 s

    class Store(TaskStore):
        tasks: dict[str, Any]

        def save_task(self, task: Any) -> None:
            self.tasks[task.id] = task

        def get_task(self, task_id: str) -> Any:
            return self.tasks.get(task_id)

        def delete_task(self, task_id: str) -> None:
            self.tasks.pop(task_id, None)

    class AsyncStore(Store):
        async def save_task(self, task: Any) -> None:  # type: ignore[override]
            self.tasks[task.id] = task

        async def get_task(self, task_id: str) -> Any:
            return self.tasks.get(task_id)

    class Derived(Store):
        pass

    has = {name: value for name, value in vars(Store).items() if name.endswith("_task")}
    no_store = type("NoStore", (), has)
    incomplete = [
        type(f"Without_{missing}", (TaskStore,), {it: has[it] for it in has if it != missing})
        for missing in has
    ]
    return [Store, AsyncStore, Derived], [no_store, type("Empty", (TaskStore,), {}), *incomplete]


@clause("DEC-06")
def test_task_store_refuses_what_is_no_task_store() -> None:
    """Only subclasses of a task-store class with all three operations are accepted."""
    right, wrong = _stores()
    things = [*right, *wrong, object, dict, _execute, "store", None]

    those = accepted(lambda it: agentdouble.A2AApp().task_store(tasks={})(it), things)
    assert right == those, f"task_store accepts {listed(those)}"
    those = accepted(lambda it: agentdouble.A2AApp().task_store()(it), things[len(right) :])
    assert [] == those, f"task_store without arguments accepts {listed(those)}"


@clause("DEC-06")
def test_the_task_store_keeps_the_tasks() -> None:
    """Tasks are saved in and read from the store, which gets the decorator's arguments.

    Without a task store they are in memory, which other applications do not share.
    """
    for cls in (None, *_stores()[0]):
        app, stored = agentdouble.A2AApp(runner="echo"), dict[str, Any]()
        if cls is not None:
            app.task_store(tasks=stored)(cls)

        tasks = [sent(app, text) for text in ("one", "two")]
        ids = [task["id"] for task in tasks]
        found = [rpc(app, "GetTask", {"id": id_}).get("result") for id_ in ids]
        assert tasks == found, f"GetTask returns a task {instead(found, tasks)}"
        if cls is None:
            app = agentdouble.A2AApp(runner="echo")
        else:
            saved = [task.id for task in stored.values()]
            assert ids == saved == [*stored], f"the store has the tasks {listed(saved)}"
            stored.clear()
        unknown = rpc(app, "GetTask", {"id": ids[0]})
        code = unknown.get("error", {}).get("code")
        assert TASK_NOT_FOUND == code, f"a task that is not stored has the error {code}"


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
    expected, actual = ({name: it[name] for name in names} for it in (card, served))
    assert expected == actual, f"the card is served with {instead(actual, expected)}"
    urls = {interface["url"] for interface in served["supportedInterfaces"]}
    assert {card["url"]} == urls, f"the card is served with the URLs {listed(urls)}"


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
    assert process.stdout is not None, "the process has no output"
    try:
        line = process.stdout.readline()
        assert ANSWERS in line, f"it did not start: {line!r}"
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=START_WITHIN_S)
