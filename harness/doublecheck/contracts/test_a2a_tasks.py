"""Checks of the tasks that A2A applications store (A2A-04)."""

from __future__ import annotations

import json
import uuid
from contextlib import closing

from doublecheck.contracts import inputs
from doublecheck.contracts.a2a import Agent
from doublecheck.contracts.clauses import clause
from doublecheck.contracts.examples import for_each


@clause("A2A-04", writes=True)
@for_each(cost=2, text=inputs.texts(empty=False, long=5000))
def test_tasks_are_persisted_by_the_task_store(agent: Agent, text: str) -> None:
    """get_task returns each as save_task stored it: its state, and all that was said."""
    told = [agent.order("say", texts=texts) for texts in ([text, "ü", text], ["two"], [text])]

    assert 3 == len({one.task_id for one in told})
    for _ in range(2):
        assert told == [agent.task(one.task_id) for one in told]


@clause("A2A-04", writes=True)
def test_the_task_of_a_stream_is_persisted(agent: Agent) -> None:
    """While its executor works, and when it has ended."""
    gate, steps = uuid.uuid4().hex, ["one", "two ü", "three"]
    order = json.dumps({"do": "steps", "gate": gate, "texts": steps})
    states = []
    with closing(agent.stream(order)) as events:  # type: ignore[type-var]
        for event in events:
            if event.texts and not event.is_task:
                found = agent.task(event.task_id)
                assert found is not None, "the task is not found while its executor works"
                states.append(found.state)
                agent.send(f"release {gate}")

    ended = agent.task(event.task_id)
    assert 3 == len(states)
    assert "completed" not in states
    assert ended is not None
    assert ("completed", tuple(steps)) == (ended.state, ended.texts)


@clause("A2A-04", writes=True)
def test_the_task_of_an_executor_that_raised_is_not_completed(agent: Agent) -> None:
    """Where it has been stored at all, it is as the caller was told."""
    before = set(agent.tasks)
    told = agent.failure("fail", texts=["sent"])

    for task_id in agent.tasks - before:
        found = agent.task(task_id)
        assert found is None or found.state == told


@clause("A2A-04", writes=True)
def test_there_is_nothing_for_another_id(agent: Agent) -> None:
    """Not for one that nobody has, nor for a part or another form of one that a task has."""
    told = agent.order("say", texts=["kept"])
    id_ = told.task_id
    others = {uuid.uuid4().hex, id_[:-1], id_[1:], id_[: len(id_) // 2], f"{id_}0", id_.swapcase()}

    assert told == agent.task(id_)
    assert {} == {one: found for one in others - {id_} if (found := agent.task(one)) is not None}
    assert told == agent.task(id_)


@clause("A2A-04", writes=True)
def test_a_deleted_task_is_not_found(agent: Agent) -> None:
    """The others are, and nothing that is said afterwards brings it back."""
    first, deleted, last = (agent.order("say", texts=[text]) for text in ("1", "2", "3"))
    assert deleted == agent.task(deleted.task_id)

    agent.send(f"forget {deleted.task_id}")

    assert agent.task(deleted.task_id) is None
    assert [first, last] == [agent.task(one.task_id) for one in (first, last)]
    agent.order("say", texts=["4"])
    assert agent.task(deleted.task_id) is None
