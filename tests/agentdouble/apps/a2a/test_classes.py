from __future__ import annotations

from typing import Any

import pytest
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import InMemoryTaskStore, TaskStore, TaskUpdater
from a2a.types import Task
from google.protobuf.json_format import MessageToDict

from agentdouble import A2AApp, agent_card
from agentdouble.agents.agent import Agent
from agentdouble.errors import CardError, DecorationError
from tests.agentdouble.apps.a2a.wire import V1, Wire, talk


class Says(AgentExecutor):
    """Answers with its constructor's arguments."""

    def __init__(self, runner: object, prefix: str = "") -> None:
        self.runner = runner
        self.prefix = prefix

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue, context.task_id or "", context.context_id or "")
        await updater.complete(updater.new_agent_message([_text(f"{self.prefix}{self.runner}")]))


def _text(text: str) -> Any:
    from a2a.helpers import new_text_part

    return new_text_part(text)


def answer(app: A2AApp) -> str:
    """Return an application's answer to a message."""

    async def conversation(wire: Wire) -> str:
        task = (await wire.send())["task"]
        message = task["status"].get("message")
        parts = message["parts"] if message else task["artifacts"][0]["parts"]
        return str(parts[0]["text"])

    return talk(app, conversation)


def test_executor_class_gets_its_runner_and_arguments() -> None:
    """They are passed to __init__, and the class stays unchanged."""
    app = A2AApp()

    decorated = app.agent_executor(runner="runner", prefix="my ")(Says)

    assert decorated is Says
    assert "my runner" == answer(app)


def test_runner_answers_if_execute_is_not_overridden() -> None:
    """A class may leave everything to it (section 4.6)."""
    app = A2AApp()

    @app.agent_executor(runner="echo")
    class Default(AgentExecutor):
        pass

    assert "hello" == answer(app)


class NotAnExecutor:
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        pass


class SyncExecutor(AgentExecutor):
    def execute(self, context: RequestContext, event_queue: EventQueue) -> None:  # type: ignore[override]
        pass


class Needy(AgentExecutor):
    def __init__(self) -> None:
        pass


def _function() -> None:
    pass


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (NotAnExecutor, "requires a class derived from a2a.server.agent_execution.AgentExecutor"),
        (_function, "requires a class derived from a2a.server.agent_execution.AgentExecutor"),
        (
            InMemoryTaskStore,
            "requires a class derived from a2a.server.agent_execution.AgentExecutor",
        ),
        (SyncExecutor, "SyncExecutor.execute must be async"),
        (Needy, "Needy does not take the arguments of @app.agent_executor"),
    ],
    ids=["class", "function", "store", "sync", "init"],
)
def test_class_that_is_not_an_executor_is_refused_at_decoration(value: Any, reason: str) -> None:
    """DEC-05: the error says what is wrong and what to write."""
    with pytest.raises(DecorationError, match=reason) as caught:
        A2AApp().agent_executor(runner="echo")(value)

    assert "agent_executor" == caught.value.decorator


def test_missing_runner_is_refused_at_decoration() -> None:
    """DEC-05, for each form of missing."""
    for arguments in ({}, {"runner": None}, {"other": 1}):
        with pytest.raises(DecorationError, match="needs a runner"):
            A2AApp().agent_executor(**arguments)
    with pytest.raises(DecorationError, match=r"needs a runner.*over Says"):
        A2AApp().agent_executor(Says)


class Kept(TaskStore):
    """The specification's store, sync."""

    def __init__(self, tasks: dict[str, Task] | None = None) -> None:
        self.tasks = {} if tasks is None else tasks

    def save_task(self, task: Task) -> None:
        self.tasks[task.id] = task

    def get_task(self, task_id: str) -> Task | None:
        return self.tasks.get(task_id)

    def delete_task(self, task_id: str) -> None:
        self.tasks.pop(task_id, None)


class AsyncKept(Kept):
    """The specification's store, async."""

    async def save_task(self, task: Task) -> None:  # type: ignore[override]
        super().save_task(task)

    async def get_task(self, task_id: str) -> Task | None:  # type: ignore[override]
        return super().get_task(task_id)

    async def delete_task(self, task_id: str) -> None:  # type: ignore[override]
        super().delete_task(task_id)


@pytest.mark.parametrize("cls", [Kept, AsyncKept])
def test_specification_s_store_keeps_the_tasks(cls: type[Kept]) -> None:
    """A2A-04: save_task and get_task, sync or async; saved tasks are listed."""
    tasks: dict[str, Task] = {}
    app = A2AApp(runner="echo")
    assert cls is app.task_store(tasks=tasks)(cls)

    async def conversation(wire: Wire) -> None:
        task = (await wire.send())["task"]
        assert [task["id"]] == list(tasks)
        assert task["status"] == (await wire.task(task["id"]))["status"]
        listed = (await wire.rpc("ListTasks", {}))["result"]["tasks"]
        assert [task["id"]] == [task["id"] for task in listed]
        del tasks[task["id"]]
        assert -32001 == (await wire.task(task["id"]))["error"]["code"]

    talk(app, conversation)


def test_sdk_store_is_used_directly() -> None:
    """A store that has the SDK's own methods."""
    app = A2AApp(runner="echo")

    @app.task_store
    class Own(InMemoryTaskStore):
        pass

    async def conversation(wire: Wire) -> None:
        task = (await wire.send())["task"]
        assert task["status"] == (await wire.task(task["id"]))["status"]

    talk(app, conversation)


class Half(TaskStore):
    def save_task(self, task: Task) -> None:
        pass


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (NotAnExecutor, "requires a class derived from a2a.server.tasks.TaskStore"),
        (Says, "requires a class derived from a2a.server.tasks.TaskStore"),
        (Half, "it lacks get_task, delete_task"),
    ],
    ids=["class", "executor", "half"],
)
def test_class_that_is_not_a_task_store_is_refused_at_decoration(value: Any, reason: str) -> None:
    """DEC-06: the error says what is missing."""
    with pytest.raises(DecorationError, match=reason) as caught:
        A2AApp().task_store()(value)

    assert "task_store" == caught.value.decorator


URL = "http://127.0.0.1:8000"
CARD = "/.well-known/agent-card.json"


def helper(message: Any, session: Any) -> None:
    """Helps."""


class Named:
    name = "ann"
    description = "Knows everything."


@pytest.mark.parametrize(
    ("agent", "name", "description"),
    [
        (Named(), "ann", "Knows everything."),
        (Agent("bob", helper, "Runs."), "bob", "Runs."),  # type: ignore[arg-type]
        (helper, "helper", "Helps."),
        ("eve", "eve", "The agent eve."),
        (A2AApp("app", runner=Named()), "app", "Knows everything."),
        (object(), "agent", "The agent agent."),
    ],
    ids=["object", "agent", "function", "name", "app", "nameless"],
)
def test_card_is_generated_from_an_agent_and_a_url(agent: Any, name: str, description: str) -> None:
    """A2A-01: any agent gets a complete card."""
    card = MessageToDict(agent_card(agent, URL + "/"))

    assert {
        "name": name,
        "description": description,
        "version": "1.0.0",
        "supportedInterfaces": [
            {"url": URL, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
            {"url": URL, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"},
        ],
        "capabilities": {"streaming": True, "pushNotifications": True},
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": [{"id": name, "name": name, "description": description, "tags": ["agent"]}],
    } == card


def test_given_card_is_served_unchanged() -> None:
    """As an AgentCard or as its JSON, with an ETag."""
    card = agent_card(Named(), "https://elsewhere.example/agent")

    async def conversation(wire: Wire) -> Any:
        answer = await wire.http.get(CARD, headers=V1)
        tag = answer.headers["etag"]
        again = await wire.http.get(CARD, headers={**V1, "If-None-Match": tag})
        assert (200, 304) == (answer.status_code, again.status_code)
        assert "last-modified" in answer.headers
        return answer.json()

    expected = MessageToDict(card)
    assert expected == talk(A2AApp(card=card), conversation)
    assert expected == talk(A2AApp(card=expected), conversation)


@pytest.mark.parametrize(
    ("card", "reason"),
    [
        ({}, "lacks name, description"),
        ({"name": "x"}, "lacks description"),
        ({"name": 7}, "This is not an agent card"),
        ("text", "is an AgentCard or its JSON, not str"),
        ({**MessageToDict(agent_card("x", URL)), "skills": [{"id": "s"}]}, r"skills\[?0?\]?"),
    ],
    ids=["empty", "name", "type", "text", "skill"],
)
def test_incomplete_card_is_refused(card: Any, reason: str) -> None:
    """When the application is created, and when it is run."""
    with pytest.raises(CardError, match=reason):
        A2AApp(card=card)
    with pytest.raises(CardError, match=reason):
        A2AApp(runner="echo").run(card, port=0)
