"""A small A2A client for the checks; it uses the version that the application's card declares."""

from __future__ import annotations

import itertools
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from doublecheck.client._sync.platform import Platform
from doublecheck.contracts import wire
from doublecheck.contracts.leftovers import Leftovers
from doublecheck.wire import calls
from doublecheck.wire.event_stream import read_events

CARD = "/.well-known/agent-card.json"
NOT_FOUND = -32001
TIMEOUT_S = 30.0


_ids = itertools.count(1)


@dataclass(frozen=True)
class Answer:
    """The result of a message, or an event of its stream.

    ``task_id`` and ``state`` are "" where there is no task. ``texts`` are what the agent said in
    it; ``is_task`` tells the task as a whole from an event that adds to it.
    """

    task_id: str
    state: str
    texts: tuple[str, ...]
    context_id: str = ""
    is_task: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Agent:
    """An A2A application; ``card`` is its unchanged card, ``tasks`` are the ids of its tasks."""

    platform: Platform
    card: Mapping[str, Any]
    tasks: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, platform: Platform) -> Agent:
        """Return the application at a platform's address, by its card."""
        answer = platform.request("GET", CARD)
        assert answer.status_code == 200, answer.text
        card = wire.json_of(answer)
        assert isinstance(card, dict), answer.text
        return cls(platform, card)

    @property
    def modern(self) -> bool:
        """Whether it speaks version 1.0."""
        versions = [
            one.get("protocolVersion", "") for one in self.card.get("supportedInterfaces", [])
        ]
        return any(version.startswith("1.") for version in versions)

    @property
    def urls(self) -> list[str]:
        """The URLs at which its card says that it answers JSON-RPC."""
        interfaces = self.card.get("supportedInterfaces")
        if not interfaces:
            return [str(self.card["url"])] if self.card.get("url") else []
        return [
            str(one.get("url", ""))
            for one in interfaces
            if one.get("protocolBinding", "JSONRPC") == "JSONRPC"
        ]

    def send(self, *texts: str, context_id: str | None = None) -> Answer:
        """Send a message with a part for each text, and wait for its result."""
        return self._noted(_answer(_result_of(self._sent(texts, context_id))))

    def order(self, do: str, **given: Any) -> Answer:
        """Send the reference application an order, and wait for its result."""
        return self.send(json.dumps({"do": do, **given}))

    def failure(self, do: str, **given: Any) -> str:
        """Send an order that fails; return the state of its task, or "error" for an error."""
        answer = self._sent([json.dumps({"do": do, **given})], None)
        return "error" if "error" in answer else self._noted(_answer(_result_of(answer))).state

    def stream(self, text: str) -> Iterator[Answer]:
        """Send a message and yield each event as it arrives."""
        method = "SendStreamingMessage" if self.modern else "message/stream"
        body = self._body(method, self._message([text], None))
        with self.platform.streaming(self._request(body)) as response:
            for event in read_events(response):
                if event.data:
                    document = _checked(json.loads(event.data), body)
                    yield self._noted(_answer(_result_of(document)))

    def task(self, task_id: str) -> Answer | None:
        """Return a stored task, or None."""
        method = "GetTask" if self.modern else "tasks/get"
        answer = self._call(method, {"id": task_id})
        if answer.get("error", {}).get("code") == NOT_FOUND:
            return None
        return _answer(_result_of(answer))

    def forget(self) -> None:
        """Make the reference application forget its tasks."""
        for task_id in tuple(self.tasks):
            self.send(f"forget {task_id}")

    def _noted(self, answer: Answer) -> Answer:
        if answer.task_id:
            self.tasks.add(answer.task_id)
        return answer

    def _sent(self, texts: Sequence[str], context_id: str | None) -> dict[str, Any]:
        method = "SendMessage" if self.modern else "message/send"
        return self._call(method, self._message(texts, context_id))

    def _message(self, texts: Sequence[str], context_id: str | None) -> dict[str, Any]:
        kind = {} if self.modern else {"kind": "text"}
        role = "ROLE_USER" if self.modern else "user"
        message: dict[str, Any] = {
            "messageId": uuid.uuid4().hex,
            "role": role,
            "parts": [{**kind, "text": text} for text in texts],
        }
        if context_id is not None:
            message["contextId"] = context_id
        return {"message": message}

    def _call(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        body = self._body(method, params)
        answer = self.platform.send(self._request(body))
        return _checked(wire.json_of(answer), body)

    def _body(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": params}

    def _request(self, body: Mapping[str, Any]) -> calls.Request:
        headers = {"Content-Type": "application/json"}
        if self.modern:
            headers["A2A-Version"] = "1.0"
        return calls.request(
            self.platform.target,
            "POST",
            "/",
            headers=headers,
            content=calls.json_content(body),
            timeout_s=TIMEOUT_S,
        )


@pytest.fixture
def agent(platform: Platform, leftovers: Leftovers) -> Agent:
    """The A2A application of the platform; its tasks are removed afterwards."""
    agent = Agent.of(platform)
    leftovers.add(agent.forget)
    return agent


def _checked(answer: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer of JSON-RPC; fail if it answers another request than the one asked."""
    assert isinstance(answer, dict), f"no answer of JSON-RPC: {json.dumps(answer)}"
    assert ("2.0", asked["id"]) == (answer.get("jsonrpc"), answer.get("id")), json.dumps(answer)
    return answer


def _result_of(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    assert "result" in answer, f"The answer is an error: {json.dumps(answer)}"
    found: Mapping[str, Any] = answer["result"]
    return found


def _answer(result: Mapping[str, Any]) -> Answer:
    """Read a task, a message or an event of a stream, of either version."""
    name = next((one for one in _KINDS if one in result), "")
    said = result[name] if name else result
    status = said.get("status") or {}
    state = str(status.get("state", "")).removeprefix("TASK_STATE_").lower().replace("_", "-")
    carriers = [
        said,
        status.get("message") or {},
        said.get("artifact") or {},
        *(said.get("artifacts") or []),
    ]
    texts = [part["text"] for one in carriers for part in one.get("parts", []) if "text" in part]
    return Answer(
        said.get("taskId") or said.get("id", ""),
        state,
        tuple(texts),
        said.get("contextId") or "",
        is_task=(name or said.get("kind", "task")) == "task",
    )


_KINDS = ("task", "message", "statusUpdate", "artifactUpdate")
