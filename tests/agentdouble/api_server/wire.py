"""Requests to the API server, and answers without generated values."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import httpx

from tests.agentdouble.calling import http

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
AGENTS = Path(__file__).parent.parent.parent / "agents"
JSON = {"content-type": "application/json"}
NO_ACTIONS: dict[str, Any] = {
    "stateDelta": {},
    "artifactDelta": {},
    "requestedAuthConfigs": {},
    "requestedToolConfirmations": {},
}
_users = itertools.count(1)


def new_user() -> str:
    """Return a user that no other test uses."""
    return f"user{next(_users)}"


def sessions_of(user: str, app: str = "echo") -> str:
    """Return the path of a user's sessions."""
    return f"/apps/{app}/users/{user}/sessions"


def detail(response: httpx.Response) -> tuple[int, Any]:
    """Return status and detail of an error, which must be JSON with nothing else."""
    assert {"detail"} == response.json().keys(), response.text
    return response.status_code, response.json()["detail"]


def create(url: str, user: str, body: Any = None, app: str = "echo") -> Any:
    """Create a session and return it."""
    response = http.post(url + sessions_of(user, app), json=body)
    assert 200 == response.status_code, response.text
    return response.json()


def read(url: str, user: str, id_: str, app: str = "echo") -> Any:
    """Get a session and return it."""
    response = http.get(f"{url}{sessions_of(user, app)}/{id_}")
    assert 200 == response.status_code, response.text
    return response.json()


def generalised(value: Any) -> Any:
    """Return an answer with "<id>" for generated ids and "<time>" for Unix seconds."""
    if isinstance(value, dict):
        return {key: generalised(value) for key, value in value.items()}
    if isinstance(value, list):
        return [generalised(item) for item in value]
    if isinstance(value, str):
        return UUID.sub("<id>", value)
    if isinstance(value, float) and value > 1e9:
        return "<time>"
    return value


def run_body(user: str, session: str = "s1", *, app: str = "scripted", **order: Any) -> Any:
    """Return the body of a run with an order for the scripted agent."""
    return {
        "appName": app,
        "userId": user,
        "sessionId": session,
        "newMessage": {"role": "user", "parts": [{"text": json.dumps(order)}]},
    }


def run(url: str, body: Any) -> httpx.Response:
    """POST /run."""
    return http.post(f"{url}/run", json=body)


def run_sse(url: str, body: Any) -> httpx.Response:
    """POST /run_sse, and read it to its end."""
    return http.post(f"{url}/run_sse", json=body, timeout=120)


def run_order(url: str, user: str, session: str = "s1", **order: Any) -> Any:
    """Give the scripted agent an order in a new session; return the events of the run."""
    http.post(f"{url}{sessions_of(user, 'scripted')}/{session}")
    response = run(url, run_body(user, session, **order))
    assert 200 == response.status_code, response.text
    return response.json()


def lines(response: httpx.Response) -> list[Any]:
    """Return the JSON of a stream's lines, and check its framing."""
    assert 200 == response.status_code, response.text
    *events, rest = response.text.split("\n\n")
    assert ("", []) == (rest, [event for event in events if not event.startswith("data: {")])
    return [json.loads(event.removeprefix("data: ")) for event in events]


def texts(events: Any) -> list[str]:
    """Return the text of each event, "" for events without one."""
    return [
        "".join(part.get("text", "") for part in event.get("content", {}).get("parts", ()))
        for event in events
    ]


def event(text: str | None = None, author: str = "scripted", **more: Any) -> dict[str, Any]:
    """Return an event, generalised."""
    content = {} if text is None else {"content": {"parts": [{"text": text}], "role": "model"}}
    return {
        **content,
        "invocationId": "e-<id>",
        "author": author,
        "actions": NO_ACTIONS,
        "nodeInfo": {"path": ""},
        "id": "<id>",
        "timestamp": "<time>",
        **more,
    }
