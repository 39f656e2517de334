"""A conversation with an agent over the wire, recorded without ids and times."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

Json = Any

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIMES = {"timestamp", "lastUpdateTime", "createTime", "startTimestamp", "endTimestamp"}
_OAUTH_STATE = re.compile(r"(?<=state=)[A-Za-z0-9]{30}|^[A-Za-z0-9]{30}$")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+\S*")


@dataclass(frozen=True)
class Answer:
    """A short form of the request, and the response."""

    request: str
    status: int
    body: Json


@dataclass
class Conversation:
    """A user's requests in one session of an application; ``answers`` has the responses."""

    url: str
    app: str
    user: str = "ann"
    session_id: str = "s1"
    answers: list[Answer] = field(default_factory=list)

    def create(self, body: Json = None, *, session_id: str | None = None) -> None:
        """Create the session, or another one, which becomes the session of this conversation."""
        self.session_id = session_id or self.session_id
        self.ask("POST", self._path(), {"sessionId": self.session_id, **(body or {})})

    def run(self, message: str | Json, **more: Json) -> list[Json]:
        """Run a turn by ``/run`` and return its events."""
        return _events(self.ask("POST", "/run", self._run_body(message, more)))

    def stream(self, message: str | Json, **more: Json) -> list[Json]:
        """Run a turn by ``/run_sse`` and return the events."""
        body = self._run_body(message, {"streaming": True, **more})
        return _events(self.ask("POST", "/run_sse", body))

    def stream_whole(self, message: str | Json) -> list[Json]:
        """Run a turn by ``/run_sse`` without increments."""
        return self.stream(message, streaming=False)

    def read(self) -> Json:
        """Return the session."""
        return self.ask("GET", self._path(self.session_id))

    def state(self, delta: Json) -> None:
        """Change the session's state."""
        self.ask("PATCH", self._path(self.session_id), {"stateDelta": delta})

    def artifacts(self) -> None:
        """List the artifacts, and read each with its versions."""
        for name in self.ask("GET", f"{self._path(self.session_id)}/artifacts"):
            for suffix in ("", "/versions", "/versions/metadata"):
                self.ask("GET", f"{self._path(self.session_id)}/artifacts/{name}{suffix}")

    def remember(self) -> None:
        """Add the session to the memory."""
        path = f"/apps/{self.app}/users/{self.user}/memory"
        self.ask("PATCH", path, {"sessionId": self.session_id})

    def delete(self) -> None:
        """Delete the session, try to read it, and list the remaining ones."""
        self.ask("DELETE", self._path(self.session_id))
        self.read()
        self.ask("GET", self._path())

    def ask(self, method: str, path: str, body: Json = None) -> Json:
        """Send a request, record the answer and return its body."""
        status, answer = self._sent(method, path, body)
        request = f"{method} {path} {_summary(body)}".strip()
        self.answers.append(Answer(request, status, answer))
        return answer

    def _sent(self, method: str, path: str, body: Json) -> tuple[int, Json]:
        # The real server closes the connection after some errors, and does not say so.
        headers = {"connection": "close"}
        with httpx.Client(base_url=self.url, timeout=60, trust_env=False) as client:
            try:
                response = client.request(method, path, json=body, headers=headers)
            except httpx.RemoteProtocolError as error:
                return 0, f"the connection ended: {error}"
        return response.status_code, _body(response)

    def normalized(self) -> list[Answer]:
        """Return the answers without times, and with ids numbered in order."""
        ids: dict[str, str] = {}
        return [
            Answer(_plain(answer.request, ids), answer.status, _plain(answer.body, ids))
            for answer in self.answers
        ]

    def _path(self, *more: str) -> str:
        return "/".join((f"/apps/{self.app}/users/{self.user}/sessions", *more))

    def _run_body(self, message: str | Json, more: Mapping[str, Json]) -> Json:
        parts = [{"text": message}] if isinstance(message, str) else message
        return {
            "appName": self.app,
            "userId": self.user,
            "sessionId": self.session_id,
            "newMessage": {"role": "user", "parts": parts},
            **more,
        }


def _events(answer: Json) -> list[Json]:
    return answer if isinstance(answer, list) else []


def responses(events: list[Json], name: str, response: Json) -> list[Json]:
    """Return the message parts that answer a function's calls in these events."""
    calls = [
        part["functionCall"]
        for event in events
        for part in event.get("content", {}).get("parts", ())
        if "functionCall" in part
    ]
    return [
        {"functionResponse": {"id": call["id"], "name": name, "response": response}}
        for call in calls
        if call["name"] == name
    ]


def _body(response: httpx.Response) -> Json:
    kind = response.headers.get("content-type", "")
    if kind.startswith("text/event-stream"):
        lines = [part.removeprefix("data: ") for part in response.text.split("\n\n") if part]
        return [json.loads(line) for line in lines]
    return response.json() if kind.startswith("application/json") else response.text


def _summary(body: Json) -> str:
    if not isinstance(body, dict) or "newMessage" not in body:
        return "" if body is None else json.dumps(body)
    return json.dumps(body["newMessage"]["parts"], ensure_ascii=False)


def _plain(value: Json, ids: dict[str, str]) -> Json:
    if isinstance(value, dict):
        return {
            _plain(key, ids): 0 if key in _TIMES else _plain(value, ids)
            for key, value in value.items()
        }
    if isinstance(value, list):
        return [_plain(item, ids) for item in value]
    if isinstance(value, str):
        value = _OAUTH_STATE.sub("<state>", value)
        numbered = _ID.sub(lambda match: ids.setdefault(match[0], f"<id {len(ids)}>"), value)
        return _TIME.sub("<time>", numbered)
    return value
