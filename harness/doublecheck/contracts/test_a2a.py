"""The A2A application under test, a model of its tasks, and checks of it (A2A)."""

from __future__ import annotations

import functools
import json
import uuid
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any, ClassVar
from urllib.parse import urlsplit

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, consumes, multiple, rule

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import inputs, wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.engine import TEXTS, Examples, Model, at_once, for_each, model
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.contracts.reference.actions import EXECUTOR_NAME
from doublecheck.contracts.sentences import instead, listed
from doublecheck.contracts.verdicts import not_observable
from doublecheck.errors import RefusedError
from doublecheck.values.agents import A2aAnswer
from doublecheck.wire import a2a

NOT_FOUND = "-32001"
ENDED_BADLY = ("failed", "rejected", "canceled", "error")
SEVERAL = st.lists(TEXTS, min_size=1, max_size=4, unique=True)


class Agent:
    """The A2A application of a platform. ``tasks`` holds the ids of its tasks."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._agent = wire.send(platform, a2a.card(platform.target, a2a.PATH))
        self.tasks: set[str] = set()

    def send(self, *texts: str, context_id: str | None = None) -> A2aAnswer:
        """Send a message with one part per text, and wait for its result."""
        call = a2a.send(self._agent, *texts, contextId=context_id)
        return self._noted(wire.send(self._platform, call))

    def order(self, do: str, texts: list[str]) -> A2aAnswer:
        """Send an order to the reference application, and wait for its result."""
        return self.send(json.dumps({"do": do, "texts": texts}))

    def obey(self, do: str, name: str | None) -> A2aAnswer:
        """Send an order about a gate or a task to the reference application."""
        return self.send(json.dumps({"do": do, "name": name}))

    def failure(self, texts: list[str]) -> str | None:
        """Send an order that fails. Return the state of its task, or "error" for an error."""
        try:
            return self.order("fail", texts).state
        except RefusedError:
            return "error"

    def stream(self, text: str) -> Generator[A2aAnswer, None, None]:
        """Send a message and yield each event as it arrives."""
        with closing(self._platform.a2a().stream(text)) as events:
            yield from map(self._noted, events)

    def task(self, task_id: str | None) -> A2aAnswer | None:
        """Return a stored task, or None."""
        try:
            return wire.send(self._platform, a2a.task(self._agent, str(task_id)))
        except RefusedError as error:
            if error.code == NOT_FOUND:
                return None
            raise

    def forget(self) -> None:
        """Make the reference application delete its tasks."""
        for task_id in tuple(self.tasks):
            self.obey("forget", task_id)

    def _noted(self, answer: A2aAnswer) -> A2aAnswer:
        if answer.task_id:
            self.tasks.add(answer.task_id)
        return answer


@pytest.fixture
def agent(platform: Platform, leftovers: Leftovers) -> Agent:
    """The platform's A2A application. Its tasks are removed afterwards."""
    agent = Agent(platform)
    leftovers.add(agent.forget)
    return agent


class TasksModel(Model):
    """The tasks of an agent. Each stays as its answer was, until it is deleted."""

    agent: ClassVar[Agent]
    tasks: Bundle[str] = Bundle("tasks")

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[str, A2aAnswer] = {}
        self.deleted: set[str] = set()

    @rule(target=tasks, texts=SEVERAL)
    def send(self, texts: list[str]) -> Any:
        """Send messages at the same time."""
        results = [[text, f"{text} again", "last"] for text in texts]
        answers = at_once([functools.partial(self.agent.order, "say", it) for it in results])
        return multiple(*map(self._created, answers, results))

    @rule(target=tasks, texts=SEVERAL)
    def stream(self, texts: list[str]) -> Any:
        """Send messages at the same time and read their streams to the end."""
        results = [[text, f"{text} again", "last"] for text in texts]
        return multiple(*at_once([functools.partial(self._streamed, it) for it in results]))

    def _streamed(self, texts: list[str]) -> str:
        order = json.dumps({"do": "say", "texts": texts})
        events = list(self.agent.stream(order))
        sent = a2a.artifact_texts(event for event in events if event.kind != "task")
        assert texts == sent, f"the stream has results {instead(sent, texts)}"
        state = events[-1].state
        assert state == "completed", f"the stream ends with the state {state}"
        id_ = str(events[-1].task_id)
        task = self.agent.task(id_)
        assert task is not None, "the task of a stream is not stored"
        return self._created(task, texts)

    @rule(texts=st.sampled_from([[], ["sent"]]))
    def fail(self, texts: list[str]) -> None:
        """Send a message whose executor raises, before or after a result."""
        state = self.agent.failure(texts)
        assert state in ENDED_BADLY, f"the task of an executor that raises is {state}"

    @rule(ids=st.lists(tasks, min_size=1, max_size=4, unique=True))
    def read(self, ids: list[str]) -> None:
        """Read tasks at the same time. They are as they were or do not exist any more."""
        at_once([functools.partial(self._read, id_) for id_ in ids])

    @rule(id_=consumes(tasks))
    def delete(self, id_: str) -> None:
        """Delete a task."""
        if self.answers.pop(id_, None) is not None:
            self.agent.obey("forget", id_)
            self.deleted.add(id_)
            self._read(id_)

    def compare(self) -> None:
        """Fail if a task differs."""
        for id_ in {*self.answers, *self.deleted}:
            self._read(id_)

    def _created(self, answer: A2aAnswer, texts: list[str]) -> str:
        _require_results(answer, texts)
        id_ = str(answer.task_id)
        assert id_ not in {*self.answers, *self.deleted}, f"{id_} is the id of two tasks"
        self.answers[id_] = answer
        return id_

    def _read(self, id_: str) -> None:
        expected, stored = _told(self.answers.get(id_)), _told(self.agent.task(id_))
        assert expected == stored, f"the stored task is {instead(stored, expected)}"


def _require_results(answer: A2aAnswer, texts: list[str]) -> None:
    """Fail unless a task is completed with these results."""
    assert "completed" == answer.state, f"the state of the task is {answer.state}"
    results = a2a.artifact_texts([answer])
    assert texts == results, f"the task has results {instead(results, texts)}"


def _told(task: A2aAnswer | None) -> tuple[Any, ...] | None:
    """Return what an answer tells about a task, whatever its form."""
    if task is None:
        return None
    return task.task_id, task.context_id, task.state, a2a.artifact_texts([task])


def _urls(agent: a2a.A2aAgent) -> list[str]:
    """Return the URLs at which a card offers JSON-RPC."""
    interfaces = agent.card.get("supportedInterfaces") or [{"url": agent.card.get("url")}]
    rpc = [entry for entry in interfaces if entry.get("protocolBinding", "JSONRPC") == "JSONRPC"]
    return [str(entry["url"]) for entry in rpc if entry.get("url")]


@clause("A2A-01")
def test_the_card_is_served(platform: Platform) -> None:
    """Every time, the card has a name, a description, a version, skills, and the agent's URLs."""
    agent = wire.send(platform, a2a.card(platform.target, a2a.PATH))
    card, urls = agent.card, _urls(agent)
    names = ("name", "description", "version", "skills")

    missing = [name for name in names if not card.get(name)]
    assert [] == missing, f"the card lacks {listed(missing)}"
    assert urls, "the card has no URL for JSON-RPC"
    wrong = [url for url in urls if not url.startswith(("http://", "https://"))]
    assert [] == wrong, f"the card has URLs of another scheme: {listed(wrong)}"
    again = platform.a2a().card
    assert card == again, f"the card changes: {instead(dict(again), dict(card))}"
    if platform.target.reference_app:
        assert EXECUTOR_NAME == card["name"], f"the card is of {card['name']!r}"


@clause("A2A-01")
def test_the_agent_answers_at_the_url_of_its_card(platform: Platform) -> None:
    """An agent answers at each URL of the card. URLs of other hosts are not requested."""
    agent = wire.send(platform, a2a.card(platform.target, a2a.PATH))
    for url in _urls(agent):
        _require_ours(platform, url)
        request = a2a.request(agent, "task", {"id": uuid.uuid4().hex})
        answer = platform.send(replace(request, url=url))

        document = wire.json_of(answer)
        is_rpc = isinstance(document, dict) and {"jsonrpc", "error"} <= document.keys()
        assert is_rpc, f"{url} answers {answer.status_code} without a JSON-RPC error"


@clause("A2A-02", writes=True)
@for_each(text=inputs.texts(empty=False))
def test_a_message_reaches_the_executor_and_its_result_arrives(agent: Agent, text: str) -> None:
    """Every part of a message and its ids reach execute(), and everything that it sends arrives.

    A task fails if execute() raises, before or after a result.
    """
    parts = [json.dumps({"do": "heard"}), text, "", "Last ü"]

    heard, echoed = agent.send(*parts), agent.order("say", texts=[text, "ü"])

    expected = {"texts": parts, "task": heard.task_id, "context": heard.context_id}
    results = a2a.artifact_texts([heard])
    assert 1 == len(results), f"one result arrives as {len(results)}"
    received = wire.parsed(results[0])
    assert expected == received, f"execute() gets a message {instead(received, expected)}"
    _require_results(heard, results)
    _require_results(echoed, [text, "ü"])
    assert echoed.task_id, "the task has no id"
    for texts in ([], [text]):
        state = agent.failure(texts)
        assert state in ENDED_BADLY, f"the task of an executor that raises is {state}"


@clause("A2A-02", writes=True)
def test_a_message_continues_its_context(agent: Agent) -> None:
    """Messages of one context share its id; a message without a context gets a new one."""
    order = json.dumps({"do": "heard"})
    first, separate = agent.send(order), agent.send(order)

    more = [agent.send(order, context_id=first.context_id) for _ in range(5)]

    assert first.context_id, "the task has no contextId"
    answered = {answer.context_id for answer in more}
    assert {first.context_id} == answered, f"a context continues in {len(answered)}"
    contexts = {wire.parsed("".join(a2a.artifact_texts([it])))["context"] for it in more}
    assert {first.context_id} == contexts, "execute() gets another contextId than the client"
    assert separate.context_id != first.context_id, "a message without a context gets an old one"
    ids = {answer.task_id for answer in (first, separate, *more)}
    assert 7 == len(ids), f"seven messages have {len(ids)} tasks"


@clause("A2A-03", writes=True)
@for_each(cost=3, text=inputs.texts(empty=False, long=5000))
def test_intermediate_results_arrive_while_it_works(agent: Agent, text: str) -> None:
    """The client reads each result before the executor may continue to the next."""
    tasks = set()
    for event in _in_step(agent, ["one", text, "three", "ü", "one", "six"]):
        tasks.add(event.task_id)

    assert "completed" == event.state, f"the stream ends with the state {event.state}"
    assert 1 == len(tasks), f"the stream has {len(tasks)} tasks"


def _in_step(agent: Agent, steps: list[str]) -> Iterator[A2aAnswer]:
    """Yield the events of a task with a result per step, which waits until that has been read."""
    gate, updates = uuid.uuid4().hex, list[A2aAnswer]()
    order = json.dumps({"do": "steps", "gate": gate, "texts": steps})
    with closing(agent.stream(order)) as events:
        for event in events:
            yield event
            if event.kind == "artifact-update":
                updates.append(event)
                texts = a2a.artifact_texts(updates)
                *before, last = steps[: len(texts)]
                begun = [*before, last[: len(texts[-1])]]
                assert begun == texts, f"the stream has results {instead(texts, begun)}"
                if last == texts[-1]:
                    agent.obey("release", gate)
    results = a2a.artifact_texts(updates)
    assert steps == results, f"the stream has results {instead(results, steps)}"


def _require_ours(platform: Platform, url: str) -> None:
    """Fail or skip if a URL belongs to another host: only a double surely knows its own URL."""
    target = platform.target
    if urlsplit(url)[:2] == urlsplit(target.a2a)[:2]:
        return
    assert target.kind != "double", f"{url} is not at {target.a2a}"
    not_observable("the card names another host than the requested one")


@clause("A2A-04", writes=True)
def test_tasks_match_their_model(agent: Agent, examples: Examples) -> None:
    """Whatever was sent before, even at the same time, each task has its own results."""
    examples.run_model(model(TasksModel, agent=agent), steps=16)


@clause("A2A-04", writes=True)
def test_the_task_of_a_stream_is_persisted(agent: Agent) -> None:
    """A streamed task is stored while its executor works, and after it has ended."""
    steps, states = ["one", "two ü", "three"], []
    for event in _in_step(agent, steps):
        if event.kind == "artifact-update":
            task = agent.task(event.task_id)
            assert task is not None, "the task is not found while its executor works"
            states.append(task.state)

    ended = agent.task(event.task_id)
    assert "completed" not in states, "the task is completed while its executor works"
    assert ended is not None, "the task is not found after its stream has ended"
    _require_results(ended, steps)


@clause("A2A-04", writes=True)
def test_there_is_nothing_for_another_id(agent: Agent) -> None:
    """Unknown ids, and variants of a known id, do not lead to a task."""
    answer = agent.order("say", texts=["kept"])
    id_ = str(answer.task_id)
    others = {uuid.uuid4().hex, id_[:-1], id_[1:], id_[: len(id_) // 2], f"{id_}0", id_.swapcase()}

    for ids in ({id_}, others - {id_}, {id_}):
        for other in ids:
            expected, found = _told(answer if other == id_ else None), _told(agent.task(other))
            assert expected == found, f"for {other}, the stored task is {instead(found, expected)}"
