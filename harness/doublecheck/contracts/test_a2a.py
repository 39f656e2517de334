"""Checks of A2A applications (A2A)."""

from __future__ import annotations

import uuid
from contextlib import closing

import pytest

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts.a2a import Agent
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.leftovers import Leftovers


@pytest.fixture
def agent(platform: Platform, leftovers: Leftovers) -> Agent:
    """The A2A application of the platform; its tasks are removed afterwards."""
    agent = Agent.of(platform)
    leftovers.add(agent.forget)
    return agent


@clause("A2A-01")
def test_the_card_is_served(platform: Platform) -> None:
    """The card has a name, a description, a version, skills, and the agent's URLs."""
    card = Agent.of(platform).card
    told = [name for name in ("name", "description", "version", "skills") if card.get(name)]
    urls = [one.get("url", "") for one in card.get("supportedInterfaces", [card])]

    assert ["name", "description", "version", "skills"] == told
    assert urls
    assert [] == [url for url in urls if not url.startswith(("http://", "https://"))]


@clause("A2A-02", writes=True)
def test_a_message_reaches_the_executor_and_its_result_arrives(agent: Agent) -> None:
    """The caller gets the events that execute() sends."""
    word = uuid.uuid4().hex

    answer = agent.send(f"say {word} ü")

    assert ("completed", (f"{word} ü",)) == (answer.state, answer.texts)


@clause("A2A-03", writes=True)
def test_intermediate_results_arrive_while_it_works(agent: Agent) -> None:
    """The client reads each result before the executor may continue to the next."""
    gate = uuid.uuid4().hex
    arrived: list[str] = []

    with closing(agent.stream(f"steps {gate} one two three")) as events:  # type: ignore[type-var]
        for event in events:
            arrived += event.texts
            if event.texts:
                agent.send(f"release {gate}")

    assert ["one", "two", "three"] == arrived
    assert "completed" == event.state


@clause("A2A-04", writes=True)
def test_tasks_are_persisted_by_the_task_store(agent: Agent) -> None:
    """get_task returns what save_task stored; a removed task is not found."""
    answer = agent.send("say kept")
    assert answer.task_id

    assert answer == agent.task(answer.task_id)
    agent.send(f"forget {answer.task_id}")
    assert agent.task(answer.task_id) is None
    assert agent.task(uuid.uuid4().hex) is None
