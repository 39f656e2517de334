"""The A2A application under test, and a model of its tasks."""

from __future__ import annotations

import functools
import json
from collections.abc import Generator
from contextlib import closing
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, consumes, multiple, rule

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import wire
from doublecheck.contracts.engine import at_once
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.contracts.models import TEXTS, Model
from doublecheck.errors import RefusedError
from doublecheck.values.agents import A2aAnswer
from doublecheck.wire import a2a

NOT_FOUND = "-32001"


class Agent:
    """The A2A application of a platform. ``tasks`` holds the ids of its tasks."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._agent = wire.send(platform, a2a.card(platform.target, a2a.PATH))
        self.tasks: set[str] = set()

    def send(self, *texts: str, context_id: str | None = None) -> A2aAnswer:
        """Send a message with one part per text, and wait for its result."""
        return self._noted(
            wire.send(self._platform, a2a.send(self._agent, *texts, contextId=context_id))
        )

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

    @rule(target=tasks, texts=st.lists(TEXTS, min_size=1, max_size=4))
    def send(self, texts: list[str]) -> str:
        """Send a message."""
        return self._created(self.agent.order("say", texts), texts)

    @rule(target=tasks, texts=st.lists(TEXTS, min_size=2, max_size=5, unique=True))
    def send_at_once(self, texts: list[str]) -> Any:
        """Send several messages at the same time."""
        calls = [lambda text=text: self.agent.order("say", [text, text]) for text in texts]
        answers = at_once(calls)
        return multiple(
            *(self._created(it, [text, text]) for it, text in zip(answers, texts, strict=True))
        )

    @rule(target=tasks, texts=st.lists(TEXTS, min_size=1, max_size=3))
    def stream(self, texts: list[str]) -> str:
        """Send a message and read the stream to its end."""
        return self._streamed(texts)

    @rule(target=tasks, count=st.integers(2, 4))
    def stream_at_once(self, count: int) -> Any:
        """Send several messages at the same time and read their streams."""
        texts = [[f"{name} of {number}" for name in ("a", "b", "c")] for number in range(count)]
        return multiple(*at_once([functools.partial(self._streamed, some) for some in texts]))

    def _streamed(self, texts: list[str]) -> str:
        order = json.dumps({"do": "say", "texts": texts})
        events = list(self.agent.stream(order))
        results = [text for event in events if event.kind != "task" for text in event.texts]
        assert texts == results
        assert events[-1].state == "completed"
        id_ = str(events[-1].task_id)
        task = self.agent.task(id_)
        assert task is not None
        return self._created(task, texts)

    @rule(texts=st.sampled_from([[], ["sent"]]))
    def fail(self, texts: list[str]) -> None:
        """Send a message whose executor raises, before or after a result."""
        assert self.agent.failure(texts) in ("failed", "rejected", "canceled", "error")

    @rule(ids=st.lists(tasks, min_size=2, max_size=4, unique=True))
    def read_at_once(self, ids: list[str]) -> None:
        """Read several tasks at the same time."""
        at_once([functools.partial(self._read, id_) for id_ in ids])

    @rule(id_=tasks)
    def read(self, id_: str) -> None:
        """Read a task, which is as it was or does not exist any more."""
        self._read(id_)

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
        assert ("completed", tuple(texts)) == (answer.state, answer.texts)
        id_ = str(answer.task_id)
        assert id_ not in {*self.answers, *self.deleted}, f"{id_} is the id of two tasks"
        self.answers[id_] = answer
        return id_

    def _read(self, id_: str) -> None:
        assert self.answers.get(id_) == self.agent.task(id_), f"task {id_}"
