"""A small A2A client for the checks; it uses the version that the application's card declares."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from httpx_sse import EventSource

from doublecheck.contracts import wire
from doublecheck.wire import calls

if TYPE_CHECKING:
    from doublecheck.client._sync.platform import Platform

CARD = "/.well-known/agent-card.json"
NOT_FOUND = -32001
TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Answer:
    """The result of a message: the id of its task ("" for none), its state, and its texts."""

    task_id: str
    state: str
    texts: tuple[str, ...]


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

    def send(self, text: str) -> Answer:
        """Send a message and wait for its result."""
        method = "SendMessage" if self.modern else "message/send"
        return self._noted(_answer(self._result(method, self._message(text))))

    def stream(self, text: str) -> Iterator[Answer]:
        """Send a message and yield each event as it arrives."""
        method = "SendStreamingMessage" if self.modern else "message/stream"
        request = self._request(method, self._message(text))
        with self.platform.streaming(request) as response:
            for event in EventSource(response).iter_sse():
                yield self._noted(_answer(_result_of(json.loads(event.data))))

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

    def _message(self, text: str) -> dict[str, Any]:
        part = {"text": text} if self.modern else {"kind": "text", "text": text}
        role = "ROLE_USER" if self.modern else "user"
        return {"message": {"messageId": uuid.uuid4().hex, "role": role, "parts": [part]}}

    def _result(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        return _result_of(self._call(method, params))

    def _call(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        answer = self.platform.send(self._request(method, params))
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = wire.json_of(answer)
        return found

    def _request(self, method: str, params: Mapping[str, Any]) -> calls.Request:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
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


def _result_of(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    assert "result" in answer, f"The answer is an error: {json.dumps(answer)}"
    found: Mapping[str, Any] = answer["result"]
    return found


def _answer(result: Mapping[str, Any]) -> Answer:
    """Read a task, a message or an event of a stream, of either version."""
    said = next((result[one] for one in _KINDS if one in result), result)
    status = said.get("status", {})
    state = str(status.get("state", "")).removeprefix("TASK_STATE_").lower().replace("_", "-")
    carriers = [
        said,
        status.get("message", {}),
        said.get("artifact", {}),
        *said.get("artifacts", []),
    ]
    texts = [part["text"] for one in carriers for part in one.get("parts", []) if "text" in part]
    return Answer(said.get("taskId") or said.get("id", ""), state, tuple(texts))


_KINDS = ("task", "message", "statusUpdate", "artifactUpdate")
