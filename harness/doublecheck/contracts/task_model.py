"""An A2A application under test, and a model of its tasks."""

from __future__ import annotations

import functools
import json
from collections.abc import Generator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import inputs, wire
from doublecheck.contracts.engine import at_once
from doublecheck.contracts.sentences import instead
from doublecheck.contracts.sequences import NUMBERS, TEXTS, Model, call, numbered, step
from doublecheck.errors import NoAnswerError, RefusedError
from doublecheck.values.agents import A2aAnswer
from doublecheck.wire import a2a
from doublecheck.wire.calls import Request

NOT_FOUND = "-32001"
ENDED_BADLY = ("failed", "rejected", "canceled", "error")
COUNTS = st.sampled_from([0, 1, 5])
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

    def request(self, text: str, id_: str) -> Request:
        """Return the request that sends a message with this JSON-RPC id."""
        request = a2a.send(self._agent, text).request
        return replace(
            request, content=json.dumps({**json.loads(request.content), "id": id_}).encode()
        )

    def order(self, do: str, texts: list[str]) -> A2aAnswer:
        """Send an order to the reference application, and wait for its result."""
        return self.send(json.dumps({"do": do, "texts": texts}))

    def obey(self, do: str, name: str | None) -> A2aAnswer:
        """Send an order about a gate or a task to the reference application."""
        return self.send(json.dumps({"do": do, "name": name}))

    def fail(self, texts: list[str]) -> None:
        """Send an order that fails after these results. Fail if it does not, or loses a result."""
        try:
            answer = self.order("fail", texts)
        except RefusedError:  # whose error is all that is known of its task
            return
        _require_failed(answer.state, texts, [answer])
        task = self.task(answer.task_id) if answer.task_id else None
        if task is not None:
            _require_failed(task.state, texts, [task])

    def fail_in_a_stream(self, texts: list[str]) -> None:
        """Send the same order as a stream, which has the results before the failure."""
        events, state = list[A2aAnswer](), None
        try:
            for event in self.stream(json.dumps({"do": "fail", "texts": texts})):
                events.append(event)
                state = event.state or state
        except (RefusedError, NoAnswerError):  # an error, or a stream that breaks off
            state = ENDED_BADLY[0]
        _require_failed(state, texts, [event for event in events if event.kind != "task"])

    def cancel(self, task_id: str) -> None:
        """Cancel a task that has ended, which is refused or changes nothing."""
        with suppress(RefusedError):
            wire.send(self._platform, a2a.cancel(self._agent, task_id))

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


class TasksModel(Model):
    """The tasks of an agent. Each stays as its answer was, until it is deleted."""

    scenario = (
        call("send", texts=["one", "two"], count=1),
        call("stream", texts=[inputs.INVISIBLE, "b"], count=inputs.MANY),
        call("fail", texts=["sent"]),
        call("read", numbers=[0, 1, 2, 3]),
        call("cancel", number=0),
        call("delete", number=1),
        call("send", texts=["one"], count=inputs.MANY),
        call("fail", texts=[]),
        call("continue_context", number=0, text="again"),
        call("send", texts=[f"task {number}" for number in range(40)], count=0),
        call("read", numbers=[0, 1, 2, 3]),
    )

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.answers: dict[str, A2aAnswer] = {}
        self.deleted: set[str] = set()

    @step(texts=SEVERAL, count=COUNTS)
    def send(self, texts: list[str], count: int) -> None:
        """Send messages at the same time."""
        results = [_results(text, count) for text in texts]
        answers = at_once([functools.partial(self._agent.order, "say", it) for it in results])
        for answer, result in zip(answers, results, strict=True):
            self._created(answer, result)

    @step(texts=SEVERAL, count=COUNTS)
    def stream(self, texts: list[str], count: int) -> None:
        """Send messages at the same time and read their streams to the end."""
        results = [_results(text, count) for text in texts]
        at_once([functools.partial(self._streamed, it) for it in results])

    @step(texts=st.sampled_from([[], ["sent"]]))
    def fail(self, texts: list[str]) -> None:
        """Send a message whose executor raises, before or after a result."""
        self._agent.fail(texts)
        self._agent.fail_in_a_stream(texts)

    @step(number=NUMBERS)
    def cancel(self, number: int) -> None:
        """Cancel a task that has ended, which is refused or changes nothing."""
        for id_ in numbered(self.answers, [number]):
            self._agent.cancel(id_)
            self._read(id_)

    @step(number=NUMBERS, text=TEXTS)
    def continue_context(self, number: int, text: str) -> None:
        """Send a message in the context of a task that has ended."""
        for id_ in numbered(self.answers, [number]):
            context = self.answers[id_].context_id
            order = json.dumps({"do": "say", "texts": [text]})
            answer = self._agent.send(order, context_id=context)
            assert context == answer.context_id, "a message has left its context"
            self._created(answer, [text])

    @step(numbers=st.lists(NUMBERS, min_size=1, max_size=4, unique=True))
    def read(self, numbers: list[int]) -> None:
        """Read tasks at the same time."""
        at_once([functools.partial(self._read, id_) for id_ in numbered(self.answers, numbers)])

    @step(number=NUMBERS)
    def delete(self, number: int) -> None:
        """Delete a task."""
        for id_ in numbered(self.answers, [number]):
            del self.answers[id_]
            self._agent.obey("forget", id_)
            self.deleted.add(id_)
            self._read(id_)

    def compare(self) -> None:
        """Fail if a task differs."""
        for id_ in {*self.answers, *self.deleted}:
            self._read(id_)

    def _streamed(self, texts: list[str]) -> None:
        order = json.dumps({"do": "say", "texts": texts})
        events = list(self._agent.stream(order))
        sent = a2a.artifact_texts(event for event in events if event.kind != "task")
        assert texts == sent, f"the stream has results {instead(sent, texts)}"
        state = events[-1].state
        assert state == "completed", f"the stream ends with the state {state}"
        task = self._agent.task(str(events[-1].task_id))
        assert task is not None, "the task of a stream is not stored"
        self._created(task, texts)

    def _created(self, answer: A2aAnswer, texts: list[str]) -> None:
        require_results(answer, texts)
        id_ = str(answer.task_id)
        assert id_ not in {*self.answers, *self.deleted}, f"{id_} is the id of two tasks"
        self.answers[id_] = answer

    def _read(self, id_: str) -> None:
        expected, stored = told_of(self.answers.get(id_)), told_of(self._agent.task(id_))
        assert expected == stored, f"the stored task is {instead(stored, expected)}"


def _require_failed(state: str | None, texts: Sequence[str], answers: Sequence[A2aAnswer]) -> None:
    """Fail unless a task has failed after these results."""
    assert state in ENDED_BADLY, f"the executor raised, and its task is {state}"
    results = a2a.artifact_texts(answers)
    assert [*texts] == results, f"the failed task has results {instead(results, texts)}"


def require_results(answer: A2aAnswer, texts: list[str]) -> None:
    """Fail unless a task is completed with these results."""
    assert answer.state == "completed", f"the state of the task is {answer.state}"
    results = a2a.artifact_texts([answer])
    assert texts == results, f"the task has results {instead(results, texts)}"


def told_of(task: A2aAnswer | None) -> tuple[Any, ...] | None:
    """Return what an answer tells about a task, whatever its form."""
    if task is None:
        return None
    return task.task_id, task.context_id, task.state, a2a.artifact_texts([task])


def _results(text: str, count: int) -> list[str]:
    return [text, *(f"{text} {number}" for number in range(count)), "last"]
