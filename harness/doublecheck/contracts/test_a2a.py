"""Checks of an A2A application: its card, messages, streams and tasks (A2A)."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from urllib.parse import urlsplit

import pytest

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import inputs, sequences, wire
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.engine import FAILURES, Examples, for_each
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.contracts.losses import Patience
from doublecheck.contracts.reference.actions import EXECUTOR_NAME
from doublecheck.contracts.sentences import instead, listed
from doublecheck.contracts.task_model import Agent, TasksModel, require_results, told_of
from doublecheck.contracts.verdicts import not_observable
from doublecheck.errors import RefusedError
from doublecheck.values.agents import A2aAnswer
from doublecheck.wire import a2a


@pytest.fixture
def agent(platform: Platform, leftovers: Leftovers, patience: Patience) -> Agent:
    """The platform's A2A application. Its tasks are removed afterwards."""
    agent = patience.repeat(lambda _: Agent(platform), FAILURES)
    leftovers.add(agent.forget)
    return agent


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

    A result may be a task or a message. A task fails if execute() raises, before or after results.
    """
    many = inputs.many("number {}")
    parts = [json.dumps({"do": "heard"}), text, "", *many, "Last ü"]

    heard, echoed = agent.send(*parts), agent.order("say", texts=[text, *many, "ü"])
    replied = agent.obey("reply", text)

    expected = {"texts": parts, "task": heard.task_id, "context": heard.context_id}
    results = a2a.artifact_texts([heard])
    assert 1 == len(results), f"one result arrives as {len(results)}"
    received = wire.parsed(results[0])
    assert expected == received, f"execute() gets a message {instead(received, expected)}"
    require_results(heard, results)
    require_results(echoed, [text, *many, "ü"])
    assert echoed.task_id, "the task has no id"
    told = "".join(replied.texts)
    assert text == told, f"a result that is a message arrives as {instead(told, text)}"
    for texts in ([], [text]):
        agent.fail(texts)


@clause("A2A-02", writes=True)
def test_a_message_continues_its_context(agent: Agent) -> None:
    """Messages of one context share its id; a message without a context gets a new one."""
    order, failing = json.dumps({"do": "heard"}), json.dumps({"do": "fail", "texts": []})
    first, separate = agent.send(order), agent.send(order)

    more = [agent.send(order, context_id=first.context_id) for _ in range(3)]
    with suppress(RefusedError):
        agent.send(failing, context_id=first.context_id)
    more += [agent.send(order, context_id=first.context_id) for _ in range(2)]
    if first.task_id is not None:
        agent.cancel(first.task_id)
    more.append(agent.send(order, context_id=first.context_id))

    assert first.context_id, "the task has no contextId"
    answered = {answer.context_id for answer in more}
    assert {first.context_id} == answered, f"a context continues in {len(answered)}"
    contexts = {wire.parsed("".join(a2a.artifact_texts([it])))["context"] for it in more}
    assert {first.context_id} == contexts, "execute() gets another contextId than the client"
    assert separate.context_id != first.context_id, "a message without a context gets an old one"
    ids = {answer.task_id for answer in (first, separate, *more)}
    assert 8 == len(ids), f"eight messages have {len(ids)} tasks"


@clause("A2A-02", writes=True)
def test_each_message_has_its_own_answer(agent: Agent, platform: Platform) -> None:
    """Requests with the same JSON-RPC id are answered separately, also if they come in parts."""
    tasks = set()
    for text in ("one", "two"):
        order = json.dumps({"do": "say", "texts": [text]})
        request = agent.request(order, id_="the-same")
        for answer in (platform.send(request), wire.send_in_parts(platform, request)):
            read = a2a.read_answer(answer)
            assert [text] == a2a.artifact_texts([read]), "the answer to another message"
            tasks.add(read.task_id)
    agent.tasks |= {str(id_) for id_ in tasks}
    assert 4 == len(tasks), "an answer is sent again"


@clause("A2A-03", writes=True)
def test_every_result_arrives_in_a_stream(agent: Agent) -> None:
    """Many results, a result that is a message, and the results before a failure arrive."""
    many = inputs.many("result {}")
    events = list(agent.stream(json.dumps({"do": "say", "texts": many})))
    replied = list(agent.stream(json.dumps({"do": "reply", "name": "a message"})))

    results = a2a.artifact_texts(event for event in events if event.kind != "task")
    assert many == results, f"the stream has results {instead(results, many)}"
    messages = [text for it in replied if it.kind == "message" for text in it.texts]
    assert ["a message"] == messages, "the result is a message, which does not arrive"
    for texts in ([], many):
        agent.fail_in_a_stream(texts)


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
    sequences.run(examples, lambda: TasksModel(agent), TasksModel.sequences((), 16))


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
    require_results(ended, steps)


@clause("A2A-04", writes=True)
def test_there_is_nothing_for_another_id(agent: Agent) -> None:
    """Unknown ids, and variants of a known id, do not lead to a task."""
    answer = agent.order("say", texts=["kept"])
    id_ = str(answer.task_id)
    others = {uuid.uuid4().hex, id_[:-1], id_[1:], id_[: len(id_) // 2], f"{id_}0", id_.swapcase()}

    for ids in ({id_}, others - {id_}, {id_}):
        for other in ids:
            expected, found = told_of(answer if other == id_ else None), told_of(agent.task(other))
            assert expected == found, f"for {other}, the stored task is {instead(found, expected)}"
